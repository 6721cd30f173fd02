/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How collectives go: what crosses between hosts, counted; calls one behind another without a
 * barrier, with ranks that lag; threads with an index each.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "tests/mp.h"

#define CALLS 40

static gin_group_t me(void)
{
    return gin_thread();
}

/* ---- what crosses ---- */

static uint64_t sent(struct mp *mp, uint64_t *two)
{
    gin_stats_t s = {.size_of = sizeof(s)};
    EXPECT_OK(gin_stats(mp->comm, &s));
    *two = s.coll_two;
    return s.net_writes + s.net_messages;
}

/* Messages of all ranks during CALLS of what `call` does; its share of those that go by hosts. */
static double crossed(struct mp *mp, int (*call)(struct mp *mp, char *heap, size_t n), char *heap,
                      size_t n, uint64_t *two)
{
    uint64_t before, after, all[8], total = 0, two_before;
    EXPECT_OK(call(mp, heap, n)); /* connected, plans made */
    mp_barrier(mp);
    before = sent(mp, &two_before);
    for (int i = 0; i < CALLS; i++)
        if (!EXPECT_OK(call(mp, heap, n)))
            break;
    after = sent(mp, two) - before;
    *two -= two_before;
    EXPECT_EQ_INT(mp_allgather(mp, &after, all, sizeof(after)), 0);
    for (int r = 0; r < mp->size; r++)
        total += all[r];
    return (double)total / CALLS;
}

static int allreduce(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_allreduce(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32, GIN_SUM);
}

static int broadcast(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_broadcast(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32, 1);
}

static int allgather(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_allgather(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32);
}

static int alltoall(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_alltoall(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32);
}

static int alltoallv(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    size_t counts[8] = {n, n, n, n, n, n, n, n};
    return gin_alltoallv(&mp->g, me(), gin_world(&mp->g), 0, at, counts, NULL, at, counts, NULL,
                         GIN_INT32);
}

static int reduce_scatter(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_reduce_scatter(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32, GIN_SUM);
}

static int reduce(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_reduce(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32, GIN_SUM, 2);
}

static int scan(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_scan(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32, GIN_SUM);
}

static int sync_all(struct mp *mp, char *heap, size_t n)
{
    (void)heap;
    (void)n;
    return gin_sync(&mp->g, me(), gin_world(&mp->g), 0);
}

static int gather(struct mp *mp, char *heap, size_t n)
{
    gin_at_t at = gin_at_ptr(&mp->g, heap);
    return gin_gather(&mp->g, me(), gin_world(&mp->g), 0, at, at, n, GIN_INT32, 5);
}

/*
 * Four ranks on each of two hosts: so many messages per call between them by hosts, and half of one
 * more for what is told of messages taken, or where a value does not fit into an immediate; and
 * directly, where some share a message.
 */
static const struct {
    const char *name;
    int (*call)(struct mp *mp, char *heap, size_t n);
    size_t n;
    double hosts, flat;
} crossings[] = {
    {"sync", sync_all, 0, 2, 32},
    {"broadcast", broadcast, 2, 1, 2},
    {"allgather", allgather, 2, 2, 16},
    {"gather", gather, 2, 1, 1},
    {"alltoall", alltoall, 2, 2, 16},
    {"alltoallv", alltoallv, 2, 2, 16},
    {"allreduce", allreduce, 2, 2, 16},
    {"reduce", reduce, 2, 1, 1},
    {"reduce_scatter", reduce_scatter, 2, 2, 16},
    {"scan", scan, 2, 2, 8},
    /* 128 KiB by 4 lanes: 8 steps of 16 KiB, each once in either direction */
    {"large allreduce", allreduce, 1 << 15, 16, 64},
    /* what 4 ranks have for 4, 4 KiB each, and so on: 64 KiB are 4 messages */
    {"large alltoall", alltoall, 1 << 10, 8, 32},
    {"large allgather", allgather, 1 << 12, 8, 32},
    {"large broadcast", broadcast, 1 << 15, 8, 32},
};

static void count(struct mp *mp, bool flat)
{
    uint64_t two;
    if (!mp_net(mp, NULL))
        return;
    char *heap = gin_calloc(mp->comm, 1, 1 << 20);
    if (!EXPECT(heap != NULL))
        return;
    for (size_t i = 0; i < sizeof(crossings) / sizeof(crossings[0]); i++) {
        mp_step(mp, "%s", crossings[i].name);
        double n = crossed(mp, crossings[i].call, heap, crossings[i].n, &two);
        if (mp->rank == 0)
            printf("%s: %.2f messages\n", crossings[i].name, n);
        EXPECT_EQ_U64(two, flat ? 0 : CALLS);
        EXPECT(flat ? n >= crossings[i].flat : n < 1.6 * crossings[i].hosts);
    }
}

MP_TEST_OPT(once_per_host_pair, .ranks = "8", .hosts = "AAAABBBB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=hosts")
{
    count(mp, false);
}

MP_TEST_OPT(directly_once_per_rank_pair, .ranks = "8", .hosts = "AAAABBBB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=flat")
{
    count(mp, true);
}

/* ---- which way ---- */

/* Calls that went by hosts, of `calls`. */
static uint64_t by_hosts(struct mp *mp, int (*call)(struct mp *mp, char *heap, size_t n),
                         char *heap, size_t n)
{
    uint64_t before, after;
    sent(mp, &before);
    EXPECT_OK(call(mp, heap, n));
    sent(mp, &after);
    return after - before;
}

/* Numbers by which messages between hosts cost nothing, and those inside all. */
MP_TEST_OPT(the_cheapest_one, .ranks = "4", .hosts = "AABB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_COST=far_wait=0,far_each=0,far_kib=0,near_each=1000000")
{
    if (!mp_net(mp, NULL))
        return;
    char *heap = gin_calloc(mp->comm, 1, 1 << 16);
    EXPECT_EQ_U64(by_hosts(mp, allreduce, heap, 2), 0);
    EXPECT_EQ_U64(by_hosts(mp, alltoall, heap, 2), 0);
    mp_barrier(mp);
}

/* A name for one rules over the one for all. */
MP_TEST_OPT(the_named_one, .ranks = "4", .hosts = "AABB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=flat GINSHMEM_COLL_ALLREDUCE=hosts")
{
    if (!mp_net(mp, NULL))
        return;
    char *heap = gin_calloc(mp->comm, 1, 1 << 16);
    EXPECT_EQ_U64(by_hosts(mp, allreduce, heap, 2), 1);
    EXPECT_EQ_U64(by_hosts(mp, allgather, heap, 2), 0);
    mp_barrier(mp);
}

/* Each name leads to its way. */
MP_TEST_OPT(every_name, .ranks = "3",
            .env = "GINSHMEM_COLL_SYNC=tree GINSHMEM_COLL_SCAN=chain "
                   "GINSHMEM_COLL_REDUCE_SCATTER=hosts "
                   "GINSHMEM_COLL_ALLREDUCE=flat")
{
    gin_stats_t s = {.size_of = sizeof(s)};
    if (!mp_dev(mp, NULL))
        return;
    char *heap = gin_calloc(mp->comm, 1, 1 << 12);
    EXPECT_OK(sync_all(mp, heap, 0));
    EXPECT_OK(scan(mp, heap, 3));
    EXPECT_OK(scan(mp, heap, 0)); /* a sync */
    EXPECT_OK(reduce_scatter(mp, heap, 3));
    EXPECT_OK(allreduce(mp, heap, 3));
    EXPECT_OK(gin_stats(mp->comm, &s));
    EXPECT_EQ_U64(s.collectives, 5);
    EXPECT_EQ_U64(s.coll_tree, 2);
    EXPECT_EQ_U64(s.coll_chain, 1);
    EXPECT_EQ_U64(s.coll_two, 1);
    EXPECT_EQ_U64(s.coll_flat, 1);
    mp_barrier(mp);
}

/* What cannot be is refused on all ranks alike, by the name of who asked for it. */
static void refuses(struct mp *mp, const char *name, const char *value, int status)
{
    gin_devcomm_t dev;
    setenv(name, value, 1);
    int st = gin_init(&mp->config, &mp->comm);
    if (st == GIN_OK)
        st = gin_devcomm_create(mp->comm, NULL, &dev);
    EXPECT_EQ_INT(st, status);
    EXPECT_HAS(gin_last_error(), name);
    if (mp->comm != NULL)
        EXPECT_OK(gin_finalize(mp->comm));
    mp->comm = NULL;
    unsetenv(name);
}

MP_TEST_OPT(what_cannot_be, .ranks = "1 2", .only = MP_PROCS, .bare = true)
{
    refuses(mp, "GINSHMEM_COLL_SCAN", "nonsense", GIN_EINVAL);
    refuses(mp, "GINSHMEM_COLL_COST", "far_wait", GIN_EINVAL);
    refuses(mp, "GINSHMEM_COLL_COST", "far_wait=1x", GIN_EINVAL);
    refuses(mp, "GINSHMEM_COLL_COST", "far_wait=1,nonsense=3", GIN_EINVAL);
    setenv("GINSHMEM_COLL_ORDER", "rank", 1);
    refuses(mp, "GINSHMEM_COLL_REDUCE", "tree", GIN_EINVAL);
    refuses(mp, "GINSHMEM_COLL_REDUCE_SCATTER", "hosts", GIN_EINVAL);
    unsetenv("GINSHMEM_COLL_ORDER");
    if (mp->size > 1) {
        setenv("GINSHMEM_COLL_COST", mp->rank == 0 ? "far_wait=1" : "far_wait=2", 1);
        refuses(mp, "GINSHMEM_COLL_ALGO", "auto", GIN_EMISMATCH);
    }
}

/* ---- one behind another ---- */

static void lag(struct mp *mp, uint64_t *rng)
{
    struct timespec t = {0, (long)(pt_random(rng) % 100000)};
    if (pt_random(rng) % 16 == 0 && mp->rank != 0)
        nanosleep(&t, NULL);
}

/* The root runs ahead as far as it can; values and buffers change at once. */
static void stream(struct mp *mp)
{
    uint64_t value[600], got[600];
    int rounds = mp_rounds(mp, 2000);
    gin_team_t world = gin_world(&mp->g);
    for (int i = 0; i < rounds; i++) {
        size_t n = (size_t)(mp_word(mp->common, (uint64_t)i) % 600) + 1;
        lag(mp, &mp->rng);
        for (size_t k = 0; k < n; k++) {
            value[k] = mp->rank == 0 ? mp_word((uint64_t)i, k) : 0;
            got[k] = ~(uint64_t)0;
        }
        mp_step(mp, "broadcast %d of %zu", i, n);
        if (!EXPECT_OK(gin_broadcast(&mp->g, me(), world, 0, gin_at_local(got), gin_at_local(value),
                                     n, GIN_UINT64, 0)))
            return;
        for (size_t k = 0; k < n; k++)
            if (got[k] != mp_word((uint64_t)i, k)) {
                pt_fail(__FILE__, __LINE__, "broadcast %d: number %zu is wrong", i, k);
                return;
            }
    }
}

/* A sync among some, then among all, then of others: nobody leaves before all have come. */
static void syncs(struct mp *mp)
{
    uint64_t *mine = gin_calloc(mp->comm, 1, 64);
    gin_team_t world = gin_world(&mp->g), half;
    if (!EXPECT(mine != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, mine);
    int size = (mp->size + 1) / 2;
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, size, &half));
    for (uint64_t i = 1; i <= (uint64_t)mp_rounds(mp, 500); i++) {
        gin_team_t t = i % 3 != 0 && half.rank >= 0 ? half : world;
        if (i % 3 != 0 && half.rank < 0)
            continue;
        GIN_STORE_RELAXED(mine, i);
        if (!EXPECT_OK(gin_sync(&mp->g, me(), t, 0)))
            break;
        for (int r = 0; r < t.size; r++) {
            uint64_t v = mp_see(&mp->g, t, r, at);
            if (!EXPECT(v >= i && v <= i + 3))
                return;
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, mine));
}

MP_TEST_OPT(without_barriers_between, .ranks = "2 3 8")
{
    if (!mp_dev(mp, NULL))
        return;
    stream(mp);
    syncs(mp);
}

/* ---- threads ---- */

enum { THREADS = 3, SOME = 700 };

struct worker {
    struct mp *mp;
    uint32_t index;
    gin_team_t team; /* that its ranks have in common with others' */
};

/* Sums of one element and of many, in turn. */
static bool sums(const struct worker *w, int i, int64_t ranks)
{
    int64_t mine[SOME], got[SOME], n = i % 2 ? 1 : SOME;
    for (int64_t k = 0; k < n; k++)
        mine[k] = w->mp->rank + i + (int64_t)w->index + k;
    if (!EXPECT_OK(gin_allreduce(&w->mp->g, me(), w->team, w->index, gin_at_local(got),
                                 gin_at_local(mine), (size_t)n, GIN_INT64, GIN_SUM)))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (!EXPECT(got[k] == w->team.size * (i + (int64_t)w->index + k) + ranks))
            return false;
    return true;
}

static void *work(void *arg)
{
    const struct worker *w = arg;
    int64_t ranks = 0;
    for (int r = 0; r < w->team.size; r++)
        ranks += gin_team_rank_to_world(w->mp->comm, w->team, r);
    for (int i = 0; w->team.rank >= 0 && i < mp_rounds(w->mp, 200); i++)
        if (!sums(w, i, ranks))
            break;
    return NULL;
}

/* All ranks, the same the other way round, and every other one, at the same time. */
static void threads(struct mp *mp)
{
    struct worker w[THREADS];
    pthread_t t[THREADS];
    gin_team_t world = gin_world(&mp->g);
    for (uint32_t i = 0; i < THREADS; i++)
        w[i] = (struct worker){mp, i, world};
    EXPECT_OK(gin_team_split_strided(mp->comm, world, mp->size - 1, -1, mp->size, &w[1].team));
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, (mp->size + 1) / 2, &w[2].team));
    for (uint32_t i = 0; i < THREADS; i++)
        EXPECT_EQ_INT(pthread_create(&t[i], NULL, work, &w[i]), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(threads_with_an_index_each, .ranks = "2 5")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = THREADS;
    if (mp_dev(mp, &reqs))
        threads(mp);
}

MP_TEST_OPT(threads_with_an_index_each_on_hosts, .ranks = "5", .hosts = "AAB", .only = MP_PROCS)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = THREADS;
    if (mp_net(mp, &reqs))
        threads(mp);
}
