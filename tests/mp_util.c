/* SPDX-License-Identifier: BSD-3-Clause */
/* The harness for several ranks: what bodies call. */
#include <dirent.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "tests/mp_shared.h"

#define CANARY_SEED 0xca9a

struct mp_shared *mp_shared_new(int size)
{
    size_t n = (size_t)size;
    size_t areas = (n + 1) * sizeof(struct mp_area), rooms = (n + 1) * n * MP_CHUNK;
    size_t bytes = sizeof(struct mp_shared) + areas + n * MP_STEP_BYTES + n + 64 + MP_SHARE + rooms;
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    struct mp_shared *s = (struct mp_shared *)(void *)p;
    if (p == MAP_FAILED)
        return NULL;
    s->size = size;
    s->bytes = bytes;
    s->areas = (struct mp_area *)(void *)(p + sizeof(*s));
    s->steps = (char(*)[MP_STEP_BYTES])(p + sizeof(*s) + areas);
    s->may_die = (char *)(s->steps + n);
    s->share = s->may_die + n;
    s->share += 64 - ((uintptr_t)s->share & 63);
    s->rooms = s->share + MP_SHARE;
    return s;
}

void mp_shared_free(struct mp_shared *s)
{
    munmap(s, s->bytes);
}

/* Sleeps in the kernel, so that ranks without a core take none; looks up now and then in case a
 * rank is gone. */
static int barrier(struct mp_group *g)
{
    struct mp_area *a = &g->shared->areas[g->area];
    uint32_t turn = __atomic_load_n(&a->turn, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&a->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)g->size) {
        __atomic_store_n(&a->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&a->turn, turn + 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &a->turn, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        return 0;
    }
    while (__atomic_load_n(&a->turn, __ATOMIC_ACQUIRE) == turn) {
        struct timespec t = {0, 50000000};
        if (__atomic_load_n(&g->shared->gone, __ATOMIC_ACQUIRE))
            return -1;
        syscall(SYS_futex, &a->turn, FUTEX_WAIT, turn, &t, NULL, 0);
    }
    return 0;
}

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    struct mp_group *g = arg;
    char *room = g->shared->rooms + (size_t)g->area * (size_t)g->shared->size * MP_CHUNK;
    for (size_t at = 0; at < bytes; at += MP_CHUNK) {
        size_t n = bytes - at < MP_CHUNK ? bytes - at : MP_CHUNK;
        memcpy(room + (size_t)g->rank * MP_CHUNK, (const char *)in + at, n);
        if (barrier(g) != 0)
            return -1;
        for (int r = 0; r < g->size; r++)
            memcpy((char *)out + (size_t)r * bytes + at, room + (size_t)r * MP_CHUNK, n);
        if (barrier(g) != 0)
            return -1;
    }
    return 0;
}

int mp_barrier(struct mp *mp)
{
    return barrier(&mp->all);
}

int mp_allgather(struct mp *mp, const void *in, void *out, size_t bytes)
{
    return gather(&mp->all, in, out, bytes);
}

void mp_group(struct mp *mp, struct mp_group *group, gin_config_t *config, int color, int rank,
              int size)
{
    *group = (struct mp_group){mp->shared, color, rank, size};
    gin_config_init(config);
    config->rank = rank;
    config->n_ranks = size;
    config->allgather = gather;
    config->allgather_arg = group;
    if (mp->host[0] != 0)
        config->host_id = mp->host;
}

void mp_step(struct mp *mp, const char *fmt, ...)
{
    char text[MP_STEP_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    memcpy(mp->shared->steps[mp->rank], text, sizeof(text));
}

void mp_skip(struct mp *mp, const char *fmt, ...)
{
    char text[sizeof(mp->shared->why)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (__atomic_exchange_n(&mp->shared->skipped, 1, __ATOMIC_ACQ_REL) == 0)
        memcpy(mp->shared->why, text, sizeof(text));
}

void mp_expect_death(struct mp *mp, int rank)
{
    __atomic_store_n(&mp->shared->may_die[rank], 1, __ATOMIC_RELEASE);
}

bool mp_up(struct mp *mp)
{
    return EXPECT_OK(gin_init(&mp->config, &mp->comm)) && EXPECT(mp->comm != NULL);
}

bool mp_down(struct mp *mp)
{
    gin_comm_t *comm = mp->comm;
    mp->comm = NULL;
    return EXPECT_OK(gin_finalize(comm));
}

bool mp_dev(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    const char *backend = getenv("MP_BACKEND");
    gin_devcomm_reqs_t fresh;
    gin_devcomm_reqs_init(&fresh);
    if (reqs == NULL)
        reqs = &fresh;
    if (backend != NULL && strcmp(backend, "engine") == 0 && reqs->backend == GIN_BACKEND_AUTO)
        reqs->backend = GIN_BACKEND_ENGINE;
    return EXPECT_OK(gin_devcomm_create(mp->comm, reqs, &mp->dev)) &&
           EXPECT_OK(gin_open(&mp->dev, 0, &mp->g));
}

bool mp_net(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    if (PT_RACE_DETECTOR) {
        mp_skip(mp, "libfabric is not built for the race detector");
        return false;
    }
    if (!mp_dev(mp, reqs))
        return false;
    EXPECT_OK(gin_query(mp->comm, &caps));
    if (caps.cap[GIN_CAP_NET].have == 1)
        return true;
    mp_skip(mp, "no network: %s", caps.cap[GIN_CAP_NET].reason);
    return false;
}

bool mp_ok(const char *file, int line, int status, const char *what)
{
    if (status != GIN_OK)
        pt_fail(file, line, "%s: %s, \"%s\"", what, gin_status_name(status), gin_last_error());
    return status == GIN_OK;
}

bool mp_fails(const char *file, int line, int got, int status, const char *word, const char *what)
{
    bool ok = got == status && gin_last_error()[0] != 0 && strstr(gin_last_error(), word) != NULL;
    if (!ok)
        pt_fail(file, line, "%s: %s, \"%s\", expected %s and \"%s\"", what, gin_status_name(got),
                gin_last_error(), gin_status_name(status), word);
    return ok;
}

/* Eight bytes of the pattern in memory order. */
static uint64_t word_in_memory(uint64_t seed, uint64_t i)
{
    uint64_t w = mp_word(seed, i);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

void mp_poison(void *buf, size_t n, uint64_t seed)
{
    unsigned char *p = buf;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = word_in_memory(seed, i / 8);
        memcpy(p + i, &w, 8);
    }
    for (; i < n; i++)
        p[i] = mp_byte(seed, i);
}

bool mp_check_pattern(const char *file, int line, const void *buf, size_t n, uint64_t seed,
                      const char *what)
{
    const unsigned char *p = buf;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = word_in_memory(seed, i / 8);
        if (memcmp(p + i, &w, 8) != 0)
            break;
    }
    for (; i < n; i++)
        if (p[i] != mp_byte(seed, i)) {
            pt_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, n, p[i],
                    mp_byte(seed, i));
            return false;
        }
    return true;
}

void mp_canaries(void *buf, size_t n)
{
    mp_poison((char *)buf - MP_CANARY, MP_CANARY, CANARY_SEED);
    mp_poison((char *)buf + n, MP_CANARY, CANARY_SEED + 1);
}

bool mp_check_canaries(const char *file, int line, const void *buf, size_t n, const char *what)
{
    char text[100];
    snprintf(text, sizeof(text), "canary before %.60s", what);
    bool ok =
        mp_check_pattern(file, line, (const char *)buf - MP_CANARY, MP_CANARY, CANARY_SEED, text);
    snprintf(text, sizeof(text), "canary behind %.60s", what);
    return mp_check_pattern(file, line, (const char *)buf + n, MP_CANARY, CANARY_SEED + 1, text) &&
           ok;
}

int mp_count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n - 1; /* without the folder itself */
}

/* Sanitizers reserve ranges of their own. */
#if MP_FACTOR == 1
#define COUNT_RESERVED 1
#else
#define COUNT_RESERVED 0
#endif

/*
 * How malloc and the sanitizers cut private anonymous memory into maps is theirs and changes from
 * run to run; what leaks of it is the leak sanitizer's to find. Arenas of malloc reserve 64 MiB.
 */
int mp_count_maps(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512], prot[8];
    unsigned long long from, to, inode;
    int n = 0;
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "%llx-%llx %7s %*s %*s %llu", &from, &to, prot, &inode) == 4)
            n += prot[3] == 's' || inode != 0 ||
                 (COUNT_RESERVED && memcmp(prot, "---p", 4) == 0 && to - from > 64u << 20);
    if (f != NULL)
        fclose(f);
    return n;
}

int mp_rounds(const struct mp *mp, int n)
{
    n /= MP_FACTOR * mp->slow;
    return n > 0 ? n : 1;
}

/* ---- what peers have ---- */

bool mp_near(const struct mp *mp)
{
    return gin_lsa(&mp->g).size == mp->size;
}

uint64_t mp_see(const gin_t *g, gin_team_t team, int peer, gin_at_t at)
{
    uint64_t *there = gin_peer_ptr(g, team, peer, at), here = ~(uint64_t)0;
    if (there != NULL)
        return GIN_LOAD_ACQUIRE(there);
    EXPECT_OK(gin_get(g, gin_thread(), team, peer, at, gin_at_local(&here), 8));
    EXPECT_OK(gin_flush(g, gin_thread()));
    return here;
}
