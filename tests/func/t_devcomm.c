/* SPDX-License-Identifier: BSD-3-Clause */
/* Device communicators: requirements and their limits, agreement, making and freeing many. */
#include <stdio.h>
#include <string.h>
#include "base/os.h"
#include "tests/mp.h"

static gin_devcomm_reqs_t defaults(void)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    return r;
}

MP_TEST(defaults_are_documented)
{
    gin_devcomm_reqs_t r = defaults();
    EXPECT_EQ_U64(r.size, sizeof(r));
    EXPECT_EQ_INT(r.version, GIN_VERSION);
    EXPECT_EQ_INT(r.contexts, 4);
    EXPECT_EQ_INT(r.signals, 64);
    EXPECT_EQ_INT(r.counters, 64);
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_EQ_INT(mp->dev.rank, mp->rank);
    EXPECT_EQ_INT(mp->dev.size, mp->size);
    EXPECT_EQ_INT(mp->dev.n_contexts, 4);
    EXPECT_EQ_INT(mp->dev.n_signals, 64);
    EXPECT_EQ_INT(mp->dev.n_counters, 64);
    gin_t g;
    EXPECT_OK(gin_open(&mp->dev, 3, &g));
    EXPECT_FAILS(gin_open(&mp->dev, 4, &g), GIN_ERANGE, "4");
    EXPECT_FAILS(gin_signal(&g, gin_thread(), gin_world(&mp->g), 0, gin_weak_inc(0)), GIN_ESTATE,
                 "gin_signal");
    EXPECT_OK(gin_open(&mp->dev, GIN_ALL_CONTEXTS, &g));
    EXPECT_FAILS(gin_put_value(&g, gin_thread(), gin_world(&g), 0, gin_at(gin_window_none(), 0), 1,
                               8, gin_no_action()),
                 GIN_EINVAL, "GIN_ALL_CONTEXTS");
}

#define TRY(field, value, status)                                                       \
    do {                                                                                \
        gin_devcomm_reqs_t r_ = defaults();                                             \
        gin_devcomm_t d_;                                                               \
        memset(&d_, 0x5a, sizeof(d_));                                                  \
        r_.field = value;                                                               \
        EXPECT_FAILS(gin_devcomm_create(mp->comm, &r_, &d_), status, "devcomm_create"); \
        EXPECT_FILLED(&d_, sizeof(d_), 0x5a);                                           \
    } while (0)

MP_TEST_N(limits_are_refused, "1 3")
{
    TRY(contexts, 0, GIN_ERANGE);
    TRY(contexts, 1025, GIN_ERANGE);
    TRY(contexts, ~0u, GIN_ERANGE);
    TRY(signals, (1u << 20) + 1, GIN_ERANGE);
    TRY(counters, (1u << 20) + 1, GIN_ERANGE);
    TRY(world_barriers, 65537, GIN_ERANGE);
    TRY(lsa_barriers, ~0u, GIN_ERANGE);
    TRY(rail_barriers, 65537, GIN_ERANGE);
    TRY(hybrid_barriers, 65537, GIN_ERANGE);
    TRY(scratch, SIZE_MAX, GIN_ERANGE);
    TRY(connection, 3, GIN_ERANGE);
    TRY(device, 2, GIN_ERANGE);
    TRY(backend, 4, GIN_ERANGE);
    TRY(strategy, 3, GIN_ERANGE);
    TRY(n_team_barriers, 1, GIN_EINVAL); /* without a list */
    TRY(size, 4, GIN_EINVAL);
    void *gpu = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 8);
    if (gpu == NULL) /* else it is no limit */
        TRY(device, GIN_DEVICE_CUDA, GIN_ENOTSUP);
    EXPECT_OK(gin_free(mp->comm, gpu));
    TRY(backend, GIN_BACKEND_GDA, GIN_ENOTSUP);
    TRY(multimem, 1, GIN_ENOTSUP);
    TRY(traffic_class, -2, GIN_ERANGE);
    TRY(traffic_class, 6, GIN_ERANGE);
    TRY(traffic_class, GIN_TC_DSCP + 64, GIN_ERANGE);
    TRY(paths, GIN_PATH_LSA | 16, GIN_ERANGE);
    EXPECT_FAILS(gin_devcomm_create(mp->comm, NULL, NULL), GIN_EINVAL, "gin_devcomm_create");
    gin_devcomm_reqs_init(NULL);
    mp_dev(mp, NULL); /* and nothing is broken by all that */
}

/* Another value on one rank: refused everywhere, with both values, and the heaps stay equal. */
#define DIFFER(field, usual, other, word)                                          \
    do {                                                                           \
        gin_devcomm_reqs_t r_ = defaults();                                        \
        gin_devcomm_t d_;                                                          \
        r_.field = mp->rank == mp->size - 1 ? (other) : (usual);                   \
        EXPECT_FAILS(gin_devcomm_create(mp->comm, &r_, &d_), GIN_EMISMATCH, word); \
        EXPECT_HAS(gin_last_error(), #usual);                                      \
        EXPECT_HAS(gin_last_error(), #other);                                      \
    } while (0)

MP_TEST_N(mismatches_are_refused_everywhere, "2 3 5")
{
    DIFFER(contexts, 3, 7, "contexts");
    DIFFER(signals, 11, 12, "signals");
    DIFFER(counters, 21, 23, "counters");
    DIFFER(world_barriers, 31, 37, "world_barriers");
    DIFFER(scratch, 4096, 8192, "scratch");
    DIFFER(strong, 1, 0, "strong");
    DIFFER(va, 1, 0, "va");
    DIFFER(strategy, 1, 2, "strategy");
    gin_devcomm_reqs_t r = defaults();
    gin_devcomm_t d;
    if (mp->rank == 1)
        r.contexts = 0; /* one rank's own error: the others hear of it */
    EXPECT_EQ_INT(gin_devcomm_create(mp->comm, &r, &d), GIN_ERANGE);
    if (mp->rank != 1)
        EXPECT_HAS(gin_last_error(), "rank 1");
    uint64_t off[mp->size];
    char *p = gin_malloc(mp->comm, 100);
    uint64_t mine = 0;
    gin_window_t win;
    EXPECT_OK(gin_window_of(mp->comm, p, &win, &mine));
    EXPECT_EQ_INT(mp_allgather(mp, &mine, off, sizeof(mine)), 0);
    for (int i = 0; i < mp->size; i++)
        EXPECT_EQ_U64(off[i], mine);
    EXPECT_OK(gin_free(mp->comm, p));
    mp_dev(mp, NULL);
}

/* Who is in another call, or refuses this one, keeps nobody waiting. */
MP_TEST_N(different_calls_meet, "2 3 5")
{
    gin_devcomm_t d;
    char all[64], one = 1;
    mp_step(mp, "one rank in gin_malloc");
    if (mp->rank == 0)
        EXPECT(gin_malloc(mp->comm, 64) == NULL);
    else
        EXPECT_EQ_INT(gin_devcomm_create(mp->comm, NULL, &d), GIN_EMISMATCH);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "gin_malloc");
    EXPECT_HAS(gin_last_error(), "gin_devcomm_create");
    mp_step(mp, "one rank without a place for the result");
    EXPECT_EQ_INT(gin_devcomm_create(mp->comm, NULL, mp->rank == 1 ? NULL : &d), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), mp->rank == 1 ? "dev is NULL" : "rank 1");
    mp_step(mp, "one rank with nothing to gather");
    EXPECT_EQ_INT(gin_comm_allgather(mp->comm, mp->rank == 1 ? NULL : &one, all, 1), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), mp->rank == 1 ? "in is NULL" : "rank 1");
    mp_step(mp, "one rank with a bad alignment");
    EXPECT(gin_aligned_alloc(mp->comm, mp->rank == 1 ? 48 : 64, 8) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT_OK(gin_comm_allgather(mp->comm, &one, all, 1));
    EXPECT_OK(gin_heap_check(mp->comm));
    mp_dev(mp, NULL);
}

/* An older program's struct is smaller: what it does not know keeps its default. */
MP_TEST_N(older_requirements, "1 2")
{
    gin_devcomm_reqs_t r = defaults();
    r.size = offsetof(gin_devcomm_reqs_t, multimem);
    r.multimem = 1; /* not looked at */
    mp_dev(mp, &r);
}

MP_TEST_N(nothing_of_everything, "1 2")
{
    gin_devcomm_reqs_t r = defaults();
    r.contexts = 1;
    r.signals = r.counters = 0;
    r.world_barriers = r.lsa_barriers = r.rail_barriers = r.hybrid_barriers = 0;
    if (!mp_dev(mp, &r))
        return;
    gin_team_t w = gin_world(&mp->g);
    EXPECT_FAILS(gin_signal(&mp->g, gin_thread(), w, 0, gin_weak_inc(0)), GIN_ERANGE, "signal");
    EXPECT_FAILS(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0),
                 GIN_ERANGE, "barrier");
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 0), 0);
    EXPECT_EQ_INT(gin_status(&mp->g), GIN_ERANGE);
    EXPECT_EQ_U64(gin_scratch(&mp->g).win.w, 0);
}

MP_TEST_N(scratch_is_symmetric_and_zeroed, "1 2 3")
{
    for (int round = 0; round < 3; round++) {
        gin_devcomm_reqs_t r = defaults();
        r.scratch = 10000;
        gin_devcomm_t d;
        gin_t g;
        if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &d)))
            return;
        EXPECT_OK(gin_open(&d, 0, &g));
        char *mine = gin_local_ptr(&g, gin_scratch(&g));
        if (!EXPECT(mine != NULL))
            return;
        EXPECT_FILLED(mine, 10000, 0);
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        int to = (mp->rank + 1) % mp->size, from = (mp->rank + mp->size - 1) % mp->size;
        char src[10000];
        mp_poison(src, sizeof(src), (uint64_t)mp->rank);
        EXPECT_OK(gin_put(&g, gin_thread(), gin_world(&g), to, gin_scratch(&g), gin_at_local(src),
                          sizeof(src), gin_weak_inc(0)));
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, 1));
        MP_CHECK_PATTERN(mine, 10000, (uint64_t)from);
        EXPECT_EQ_U64(gin_read_signal(&g, 0), 1); /* fresh ones begin at 0 */
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &d));
    }
}

MP_TEST_N(stale_and_foreign_ones, "1 2")
{
    gin_devcomm_t d, copy, junk;
    gin_t g;
    memset(&junk, 0x11, sizeof(junk));
    memset(&g, 0, sizeof(g));
    EXPECT_FAILS(gin_open(&junk, 0, &g), GIN_ESTATE, "gin_open");
    EXPECT_FAILS(gin_open(NULL, 0, &g), GIN_ESTATE, "gin_open");
    memset(&junk, 0, sizeof(junk));
    EXPECT_FAILS(gin_open(&junk, 0, &g), GIN_ESTATE, "gin_open");
    EXPECT_FAILS(gin_devcomm_destroy(mp->comm, &junk), GIN_ESTATE, "gin_devcomm_destroy");
    EXPECT_FAILS(gin_devcomm_destroy(mp->comm, NULL), GIN_ESTATE, "gin_devcomm_destroy");
    EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &d));
    copy = d;
    EXPECT_OK(gin_open(&copy, 1, &g)); /* a value: copies are as good */
    EXPECT_OK(gin_signal(&g, gin_thread(), gin_world(&g), 0, gin_weak_inc(0)));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    copy.abi++;
    EXPECT_FAILS(gin_open(&copy, 0, &g), GIN_ESTATE, "gin_open");
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &d));
    EXPECT_FAILS(gin_devcomm_destroy(mp->comm, &d), GIN_ESTATE, "gin_devcomm_destroy");
    EXPECT_FAILS(gin_open(&d, 0, &g), GIN_ESTATE, "gin_open");
}

/* A context outlives its device communicator in a variable: signals, waits, completion say so, even
 * when a new one has taken the memory's place. */
MP_TEST_N(stale_contexts, "1 2")
{
    gin_devcomm_t d, copy;
    gin_t g, again;
    EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &d));
    EXPECT_OK(gin_open(&d, 0, &g));
    gin_team_t w = gin_world(&g);
    copy = d;
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &d));
    EXPECT_EQ_INT(gin_status(&g), GIN_ESTATE);
    EXPECT_FAILS(gin_signal(&g, gin_thread(), w, 0, gin_weak_inc(0)), GIN_ESTATE, "gin_signal");
    EXPECT_FAILS(gin_wait_signal(&g, gin_thread(), 0, 1), GIN_ESTATE, "signal");
    EXPECT_FAILS(gin_flush(&g, gin_thread()), GIN_ESTATE, "gin_flush");
    EXPECT_FAILS(gin_quiet(&g, gin_thread()), GIN_ESTATE, "gin_quiet");
    EXPECT_FAILS(gin_barrier(&g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0),
                 GIN_ESTATE, "barrier");
    EXPECT_FAILS(gin_open(&copy, 0, &again), GIN_ESTATE, "gin_open");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &d));
    EXPECT_EQ_INT(mp_barrier(mp), 0); /* rank threads share the retired memory */
    EXPECT_FAILS(gin_open(&copy, 0, &again), GIN_ESTATE, "gin_open");
    EXPECT_OK(gin_open(&d, 0, &again));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &d));
}

/* Several at once do not touch each other's signals. */
MP_TEST_N(several_at_once, "1 2 3")
{
    enum { N = 6 };
    gin_devcomm_t d[N];
    gin_t g[N];
    for (int i = 0; i < N; i++) {
        gin_devcomm_reqs_t r = defaults();
        r.contexts = 1 + (uint32_t)i;
        r.signals = 3 + (uint32_t)i;
        if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &d[i])))
            return;
        EXPECT_OK(gin_open(&d[i], (uint32_t)i, &g[i]));
    }
    for (int i = 0; i < N; i++)
        for (int to = 0; to < mp->size; to++)
            for (uint32_t s = 0; s < 3 + (uint32_t)i; s++)
                EXPECT_OK(gin_signal(&g[i], gin_thread(), gin_world(&g[i]), to,
                                     gin_weak_add(s, (uint64_t)i * 100 + s + 1)));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int i = 0; i < N; i++)
        for (uint32_t s = 0; s < 3 + (uint32_t)i; s++)
            EXPECT_EQ_U64(gin_read_signal(&g[i], s),
                          (uint64_t)mp->size * ((uint64_t)i * 100 + s + 1));
    for (int i = N - 1; i >= 0; i -= 2) /* any order */
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &d[i]));
    for (int i = 0; i < N; i += 2)
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &d[i]));
}

/* BL-31: create until the heap is full, destroy half, use the rest, create again. */
MP_TEST_OPT(until_refused_and_again, .ranks = "1 3", .env = "GINSHMEM_HEAP_MAX=8M",
            .heap_size = 4 << 20)
{
    enum { MAX = 400 };
    gin_devcomm_t *d = calloc(MAX, sizeof(*d));
    gin_devcomm_reqs_t r = defaults();
    int n = 0, st = GIN_OK;
    r.signals = 4096; /* 256 KiB of cells, of one context: each has memory on the network, too */
    r.contexts = 1;
    r.collectives = 0;
    while (n < MAX && (st = gin_devcomm_create(mp->comm, &r, &d[n])) == GIN_OK)
        n++;
    EXPECT_EQ_INT(st, GIN_ENOMEM);
    EXPECT(n > 10 && n < MAX);
    int count[mp->size];
    EXPECT_EQ_INT(mp_allgather(mp, &n, count, sizeof(n)), 0);
    for (int i = 0; i < mp->size; i++)
        EXPECT_EQ_INT(count[i], n); /* refused on all ranks at the same one */
    for (int i = 0; i < n; i += 2)
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &d[i]));
    for (int i = 1; i < n; i += 2) {
        gin_t g;
        EXPECT_OK(gin_open(&d[i], 0, &g));
        EXPECT_OK(gin_signal(&g, gin_thread(), gin_world(&g), 0, gin_weak_inc(1)));
    }
    for (int i = 0; i < n; i += 2)
        EXPECT_OK(gin_devcomm_create(mp->comm, &r, &d[i]));
    for (int i = 0; i < n; i++)
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &d[i]));
    free(d);
    EXPECT_OK(gin_heap_check(mp->comm));
}

/* Of this process, by one rank of it at a time. */
static void count(struct mp *mp, int *fds, int *maps)
{
    *fds = *maps = 0;
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (!mp->threads || mp->rank == 0) {
        *fds = mp_count_fds();
        *maps = mp_count_maps();
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
}

/* Of this process. */
static uint64_t resident(void)
{
    char text[128] = "";
    unsigned long long all, pages = 0;
    EXPECT(gi_os_read_file("/proc/self/statm", text, sizeof(text)) >= 0);
    EXPECT_EQ_INT(sscanf(text, "%llu %llu", &all, &pages), 2);
    return pages * gi_os_page_size();
}

/* A context needs no more than some megabytes, whatever the network would like to set aside. */
MP_TEST_OPT(contexts_are_small, .ranks = "2 3", .only = MP_PROCS)
{
    enum { MANY = 8, MOST = 32 << 20 };
    gin_devcomm_t d;
    gin_devcomm_reqs_t r = defaults();
    r.contexts = MANY;
    EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &d)); /* brings all up */
    uint64_t before = resident();
    gin_devcomm_t more;
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &more));
    uint64_t now = resident(), each = now > before ? (now - before) / MANY : 0;
    if (each > MOST)
        FAIL("a context took %llu KiB", (unsigned long long)each >> 10);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &more));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &d));
}

/* BL-31, BL-35: nothing piles up. */
MP_TEST_N(a_thousand_cycles, "1 2")
{
    const int CYCLES = 10 + mp_rounds(mp, 990);
    gin_heap_usage_t before = {.size_of = sizeof(before)}, after = {.size_of = sizeof(after)};
    int fds = 0, maps = 0, fds2, maps2;
    for (int i = 0; i < CYCLES; i++) {
        gin_devcomm_t d;
        mp_step(mp, "cycle %d", i);
        if (i == 10) {
            EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &before));
            count(mp, &fds, &maps);
        }
        if (!EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &d)) ||
            !EXPECT_OK(gin_devcomm_destroy(mp->comm, &d)))
            return;
    }
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &after));
    EXPECT_EQ_U64(after.used, before.used);
    EXPECT_EQ_U64(after.blocks, before.blocks);
    EXPECT_EQ_U64(after.internal, before.internal);
    count(mp, &fds2, &maps2);
    EXPECT_EQ_INT(fds2, fds);
    EXPECT_EQ_INT(maps2, maps);
}
