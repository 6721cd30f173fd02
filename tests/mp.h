/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness for tests of several ranks, on top of pt.h, without a launcher. A program is a file
 * of bodies that every rank runs:
 *
 *     MP_TEST(name) { ... mp->rank, mp->size, mp->comm ... }             1 2 3 5 8 ranks
 *     MP_TEST_N(name, "2 3") { ... }                                     these counts
 *     MP_TEST_OPT(name, .ranks = "4", .hosts = "AABB", .env = "GINSHMEM_CHECK=1") { ... }
 *
 * Each count runs twice: ranks as processes and as threads of one process; both are children of the
 * program, so every run starts with a fresh library. mp->comm is a communicator, made before the
 * body and finalized after it, unless .bare is set: then the body calls mp_up() or gin_init()
 * itself with mp->config, which carries rank, size, host id and an allgather over shared memory.
 *
 * A run has a deadline (60 s, more under sanitizers), which the first failure shortens; when it
 * passes, the last mp_step() of every rank is printed and the ranks are killed by their ids.
 *
 * With MP_BACKEND=engine in the environment mp_dev() asks for the backend ENGINE.
 *
 * Usage: program [-l] [-n LIST] [-m procs|threads] [-s SEED] [-t SECONDS] [-L] [-H HOSTS]
 *                [-X NAME,...] [-f FACTOR] [NAME...]
 */
#ifndef GINSHMEM_TESTS_MP_H
#define GINSHMEM_TESTS_MP_H

#include <ginshmem.h>
#include "tests/pt.h"

enum mp_modes { MP_BOTH = 0, MP_PROCS = 1, MP_THREADS = 2 };

struct mp_opts {
    const char *ranks;  /* counts, blank between them; NULL: "1 2 3 5 8" */
    const char *hosts;  /* rank r is on host hosts[r % length]; NULL: all on this one */
    const char *env;    /* "NAME=value NAME=value", set before gin_init() */
    uint64_t heap_size; /* of gin_config_t */
    uint64_t heap_max;  /* of gin_config_t */
    unsigned deadline;  /* seconds; 0: 60 */
    enum mp_modes only; /* processes or threads only */
    bool bare;          /* no communicator */
};

struct mp_shared;

/* Ranks that gather among themselves: all of a test, or what mp_group() made. */
struct mp_group {
    struct mp_shared *shared;
    int area;
    int rank, size;
};

/* What a body gets; one per rank. */
struct mp {
    int rank, size;
    bool threads;   /* ranks are threads of one process */
    bool long_mode; /* -L: as long as it takes */
    int slow;       /* -f: do everything so many times less often */
    gin_config_t config;
    gin_comm_t *comm;  /* NULL in bare tests before mp_up() */
    gin_devcomm_t dev; /* made by mp_dev() */
    gin_t g;           /* context 0 of dev */
    uint64_t rng;      /* state for pt_random(), another one on every rank */
    uint64_t common;   /* the same on all ranks */
    char *share;       /* MP_SHARE zeroed bytes that all ranks see, without the library */
    struct mp_shared *shared;
    struct mp_group all;
    char host[32];
};
#define MP_SHARE 65536u

struct mp_test {
    const char *name;
    void (*body)(struct mp *mp);
    struct mp_opts opts;
    struct mp_test *next;
};
void mp_register(struct mp_test *test);

#define MP_TEST_OPT(test, ...)                                                  \
    static void mp_body_##test(struct mp *mp);                                  \
    __attribute__((constructor)) static void mp_register_##test(void)           \
    {                                                                           \
        static struct mp_test t = {#test, mp_body_##test, {__VA_ARGS__}, NULL}; \
        mp_register(&t);                                                        \
    }                                                                           \
    static void mp_body_##test(struct mp *mp)
#define MP_TEST(test)           MP_TEST_OPT(test, .ranks = NULL)
#define MP_TEST_N(test, counts) MP_TEST_OPT(test, .ranks = counts)

/* How much slower this build is; divide iterations by it, multiply times with it. */
#if PT_RACE_DETECTOR
#define MP_FACTOR 8
#elif PT_LEAK_DETECTOR
#define MP_FACTOR 3
#else
#define MP_FACTOR 1
#endif

/* How often to do what is done n times: less where this build, or the network under test (-f), is
 * slow; at least once. */
int mp_rounds(const struct mp *mp, int n);

/* Say what this rank does next; printed when the deadline passes. */
void mp_step(struct mp *mp, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* gin_init() and gin_finalize() of mp->comm; true when they succeed, which is expected. */
bool mp_up(struct mp *mp);
bool mp_down(struct mp *mp);
/* Make mp->dev (reqs may be NULL) and bind mp->g to its context 0; destroyed after the body. */
bool mp_dev(struct mp *mp, gin_devcomm_reqs_t *reqs);

/*
 * The same where there is a network, else skip. Not for the race detector: libfabric is not built
 * for it, and what a peer's process orders is unseen.
 */
bool mp_net(struct mp *mp, gin_devcomm_reqs_t *reqs);

/* Every rank is load/store accessible; behind mp_dev(). */
bool mp_near(const struct mp *mp);
/* A peer's word, 8 bytes: by a pointer where there is one, else by a get, which may overtake what
 * this context has under way. */
uint64_t mp_see(const gin_t *g, gin_team_t team, int peer, gin_at_t at);

/* Barrier and allgather of the harness; non-zero when a rank is gone. */
int mp_barrier(struct mp *mp);
int mp_allgather(struct mp *mp, const void *in, void *out, size_t bytes);
/* Prepare config and *group for a communicator of fewer ranks: `color` (0 .. mp->size - 1) names
 * the group; *group must live as long as the communicator. */
void mp_group(struct mp *mp, struct mp_group *group, gin_config_t *config, int color, int rank,
              int size);

/* Rank will not come back, by a signal or _exit(), and that is no failure. Call on any rank, before
 * it happens. */
void mp_expect_death(struct mp *mp, int rank);

/* Leave the body; the run counts as skipped when no rank fails. All ranks. */
#define MP_SKIP(...)              \
    do {                          \
        mp_skip(mp, __VA_ARGS__); \
        return;                   \
    } while (0)
void mp_skip(struct mp *mp, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The call returned GIN_OK; prints its name, status and text otherwise. */
#define EXPECT_OK(call) mp_ok(__FILE__, __LINE__, (call), #call)
/* The call was refused with this status, and the text of the last error has this word. */
#define EXPECT_FAILS(call, status, word) \
    mp_fails(__FILE__, __LINE__, (gin_clear_error(), (call)), (status), (word), #call)
bool mp_ok(const char *file, int line, int status, const char *what);
bool mp_fails(const char *file, int line, int got, int status, const char *word, const char *what);

/* Bytes that depend on seed and place; another seed differs in nearly every place. */
static inline uint64_t mp_word(uint64_t seed, uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xbf58476d1ce4e5b9u;
    return (x ^ x >> 29) * 0x94d049bb133111ebu;
}
static inline unsigned char mp_byte(uint64_t seed, uint64_t i)
{
    return (unsigned char)(mp_word(seed, i / 8) >> (8 * (i % 8)));
}
/* Fill with the bytes of a seed; check for them. */
void mp_poison(void *buf, size_t n, uint64_t seed);
#define MP_CHECK_PATTERN(buf, n, seed) \
    mp_check_pattern(__FILE__, __LINE__, (buf), (n), (seed), #buf)
bool mp_check_pattern(const char *file, int line, const void *buf, size_t n, uint64_t seed,
                      const char *what);

/* Canaries: MP_CANARY bytes before and behind the n bytes at buf, which the caller owns. */
#define MP_CANARY 64u
void mp_canaries(void *buf, size_t n);
#define MP_CHECK_CANARIES(buf, n) mp_check_canaries(__FILE__, __LINE__, (buf), (n), #buf)
bool mp_check_canaries(const char *file, int line, const void *buf, size_t n, const char *what);

/*
 * For checks that nothing piles up: open descriptors; maps of files and of shared memory, and large
 * reserved ranges.
 */
int mp_count_fds(void);
int mp_count_maps(void);

#endif
