/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet is honest: what it calls complete is in the target's memory. The origin tells the target so
 * past the library, through memory that both share, and the target looks at once, without a call
 * that could bring in what is still under way.
 */
#include <string.h>
#include "base/os.h"
#include "tests/mp.h"

#define MOST  (256u << 10)
#define WORDS 8 /* written by put_value, add and set, behind the bytes */

/* Of rank r, a line apart: rounds that its left neighbour called complete, and that r looked at. */
static uint64_t *flag_of(struct mp *mp, int r, int which)
{
    return (uint64_t *)(void *)mp->share + 16 * r + 8 * which;
}

static void tell(uint64_t *flag, uint64_t round)
{
    __atomic_store_n(flag, round, __ATOMIC_RELEASE);
}

static void await(uint64_t *flag, uint64_t round)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < round)
        gi_os_yield();
}

static size_t size_of(struct mp *mp, uint64_t round)
{
    static const size_t sizes[] = {8, 64, 65, 300, 4096, 65536, MOST};
    size_t n = sizes[round % 7];
    return round % 3 == 0 ? 1 + pt_below(&mp->rng, n) : n;
}

struct block {
    char *bytes;
    uint64_t *words;
};

/* Some of each kind, in one go; what the target must find follows from round and length. */
static void issue(struct mp *mp, const struct block *b, const char *src, size_t n, uint64_t round)
{
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_group_t me = gin_thread();
    int to = (mp->rank + 1) % mp->size;
    gin_at_t at = gin_at_ptr(g, b->bytes);
    gin_action_t act = round % 4 == 0   ? gin_weak_inc(1)
                       : round % 4 == 1 ? gin_strong_inc(1)
                                        : gin_no_action();
    EXPECT_OK(gin_put(g, me, w, to, at, gin_at_local(src), n, act));
    EXPECT_OK(gin_put_value(g, me, w, to, gin_at_ptr(g, b->words), round, 8, gin_no_action()));
    EXPECT_OK(gin_amo_add(g, me, w, to, gin_at_ptr(g, b->words + 1), round));
    EXPECT_OK(gin_amo_set(g, me, w, to, gin_at_ptr(g, b->words + 2), round));
    EXPECT_OK(gin_signal(g, me, w, to, gin_strong_add_at(gin_at_ptr(g, b->words + 3), 1)));
    for (int k = 4; k < WORDS; k++)
        EXPECT_OK(gin_put(g, me, w, to, gin_at_ptr(g, b->words + k), gin_at_local(&round), 8,
                          gin_no_action()));
}

static void look(struct mp *mp, const struct block *b, size_t n, uint64_t round)
{
    uint64_t seed = round * 64 + (uint64_t)((mp->rank + mp->size - 1) % mp->size);
    MP_CHECK_PATTERN(b->bytes, n, seed);
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(b->words), round);
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(b->words + 1), round * (round + 1) / 2);
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(b->words + 2), round);
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(b->words + 3), round);
    for (int k = 4; k < WORDS; k++)
        EXPECT_EQ_U64(GIN_LOAD_RELAXED(b->words + k), round);
}

static void check(struct mp *mp, int times)
{
    struct block b;
    gin_caps_t caps = {.size = sizeof(caps)};
    uint64_t rounds = (uint64_t)mp_rounds(mp, mp->long_mode ? 100 * times : times);
    int right = (mp->rank + 1) % mp->size;
    if (PT_RACE_DETECTOR)
        MP_SKIP("libfabric is not built for the thread sanitizer");
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_OK(gin_query(mp->comm, &caps));
    if (mp->host[0] != 0 && caps.cap[GIN_CAP_NET].have != 1)
        MP_SKIP("no network: %s", caps.cap[GIN_CAP_NET].reason);
    b.bytes = gin_calloc(mp->comm, 1, MOST);
    b.words = gin_calloc(mp->comm, WORDS, 8);
    char *src = malloc(MOST);
    if (!EXPECT(b.bytes != NULL && b.words != NULL && src != NULL))
        return;
    mp->rng = mp->common; /* all ranks make up the same lengths */
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 1; i <= rounds && pt_failures() == 0; i++) {
        size_t n = size_of(mp, i);
        mp_step(mp, "round %d, %zu bytes", (int)i, n);
        mp_poison(src, n, i * 64 + (uint64_t)mp->rank);
        await(flag_of(mp, right, 1), i - 1);
        issue(mp, &b, src, n, i);
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
        tell(flag_of(mp, right, 0), i);
        await(flag_of(mp, mp->rank, 0), i);
        look(mp, &b, n, i);
        tell(flag_of(mp, mp->rank, 1), i);
    }
    free(src);
}

#define OVER(id, what)                                                             \
    MP_TEST_OPT(id, .ranks = "2 3", .hosts = "ABC", .env = what, .only = MP_PROCS) \
    {                                                                              \
        check(mp, 70);                                                             \
    }

MP_TEST_OPT(near, .ranks = "2 3")
{
    check(mp, 300);
}

OVER(choice, NULL)
OVER(net, "GINSHMEM_PROVIDER=net")
OVER(tcp, "GINSHMEM_PROVIDER=tcp")
OVER(rxm, "GINSHMEM_PROVIDER=tcp;ofi_rxm")
OVER(shm, "GINSHMEM_PROVIDER=shm")
OVER(late, "GINSHMEM_TEST_NET=hold=12,early=1")
OVER(unordered, "GINSHMEM_TEST_NET=class=C,hold=12,early=1")
OVER(by_message, "GINSHMEM_TEST_NET=class=C,dc=0,hold=12,early=1")
