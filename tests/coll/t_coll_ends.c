/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that end badly, on all members alike: arguments that differ or are refused, a member
 * that dies, one that does not come.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/mp.h"

#define N 4096

struct bed {
    gin_t *g;
    gin_team_t world;
    double *heap;
    gin_at_t dst, src;
};

static bool bed_up(struct mp *mp, struct bed *b, gin_devcomm_reqs_t *reqs)
{
    if (mp->config.host_id != NULL ? !mp_net(mp, reqs) : !mp_dev(mp, reqs))
        return false;
    b->g = &mp->g;
    b->world = gin_world(&mp->g);
    b->heap = gin_calloc(mp->comm, 2 * N, 64);
    if (!EXPECT(b->heap != NULL))
        return false;
    b->dst = gin_at_ptr(b->g, b->heap);
    b->src = gin_at_ptr(b->g, b->heap + N * 8);
    return true;
}

static int sum(const struct bed *b, size_t count, gin_type_t type, gin_reduction_t op)
{
    return gin_allreduce(b->g, gin_thread(), b->world, 0, b->dst, b->src, count, type, op);
}

static int cast(const struct bed *b, size_t count, int root)
{
    return gin_broadcast(b->g, gin_thread(), b->world, 0, b->dst, b->src, count, GIN_INT32, root);
}

/* All is well after it. */
static void expect_works(struct mp *mp, struct bed *b)
{
    b->heap[0] = -1;
    b->heap[N * 8] = mp->rank + 1;
    EXPECT_OK(sum(b, 1, GIN_DOUBLE, GIN_SUM));
    EXPECT_EQ_INT((int)b->heap[0], mp->size * (mp->size + 1) / 2);
}

/* One rank, the last, asks for something else: all of them say so. */
static void one_differs(struct mp *mp)
{
    struct bed b;
    if (!bed_up(mp, &b, NULL))
        return;
    bool odd = mp->rank == mp->size - 1;
    size_t n = (size_t)mp->size, counts[8] = {0}, others[8] = {0};
    b.heap[0] = 77;
    EXPECT_FAILS(sum(&b, odd ? 5 : 6, GIN_DOUBLE, GIN_SUM), GIN_EMISMATCH, "count differs");
    EXPECT_FAILS(sum(&b, 6, odd ? GIN_FLOAT : GIN_DOUBLE, GIN_SUM), GIN_EMISMATCH, "type differs");
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, odd ? GIN_MAX : GIN_MIN), GIN_EMISMATCH,
                 "operation differs");
    EXPECT_FAILS(cast(&b, 3, odd ? 1 : 0), GIN_EMISMATCH, "root differs");
    EXPECT_FAILS(odd ? sum(&b, 3, GIN_INT32, GIN_SUM) : cast(&b, 3, 0), GIN_EMISMATCH,
                 "calls gin_");
    gin_team_t back;
    EXPECT_OK(gin_team_split_strided(mp->comm, b.world, mp->size - 1, -1, mp->size, &back));
    gin_team_t team = odd ? b.world : back;
    EXPECT_FAILS(gin_sync(b.g, gin_thread(), team, 0), GIN_EMISMATCH, "members or their order");
    /* of one pair alone; the others hear of it */
    counts[0] = others[0] = 1;
    others[n - 1] = mp->rank == 0;
    EXPECT_FAILS(gin_alltoallv(b.g, gin_thread(), b.world, 0, b.dst, counts, NULL, b.src,
                               mp->rank == 0 ? others : counts, NULL, GIN_INT8),
                 GIN_EMISMATCH, "");
    EXPECT(b.heap[0] > 76 && b.heap[0] < 78);
    expect_works(mp, &b);
}

MP_TEST_OPT(one_asks_for_something_else, .ranks = "2 3 5", .env = "GINSHMEM_CHECK=1")
{
    one_differs(mp);
}

MP_TEST_OPT(one_asks_for_something_else_elsewhere, .ranks = "4", .hosts = "AABB", .only = MP_PROCS,
            .env = "GINSHMEM_CHECK=1")
{
    one_differs(mp);
}

/* The team of rank 0 has rank 1 alone beside it, everybody else's has all: those whom it does not
 * know wait for it, until they are told. */
static void members_differ(struct mp *mp)
{
    struct bed b;
    if (!bed_up(mp, &b, NULL))
        return;
    gin_team_t two;
    EXPECT_OK(gin_team_split_strided(mp->comm, b.world, 0, 1, 2, &two));
    b.world = mp->rank == 0 ? two : b.world;
    b.heap[0] = 77;
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, GIN_SUM), GIN_EMISMATCH, "");
    EXPECT(b.heap[0] > 76 && b.heap[0] < 78);
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, GIN_SUM), GIN_EMISMATCH, "cannot be used any more");
    mp_barrier(mp);
}

MP_TEST_OPT(one_has_other_members, .ranks = "3 5", .env = "GINSHMEM_CHECK=1")
{
    members_differ(mp);
}

MP_TEST_OPT(one_has_other_members_elsewhere, .ranks = "4", .hosts = "AABB", .only = MP_PROCS,
            .env = "GINSHMEM_CHECK=1")
{
    members_differ(mp);
}

/* One passes the invalid team, or one that it has freed: it cannot know who waits for it. */
static void one_has_no_team(struct mp *mp)
{
    struct bed b;
    gin_team_t list, world;
    gin_devcomm_reqs_t reqs;
    int ranks[8] = {1, 0, 2, 3, 4, 5, 6, 7};
    bool odd = mp->rank == mp->size - 1;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 3;
    if (!bed_up(mp, &b, &reqs))
        return;
    world = b.world;
    b.world = odd ? gin_team_invalid() : world;
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, GIN_SUM), odd ? GIN_EINVAL : GIN_EMISMATCH,
                 odd ? "invalid" : "refused its team");
    EXPECT_FAILS(gin_sync(b.g, gin_thread(), world, 0), GIN_EMISMATCH, "cannot be used any more");
    if (mp->size > 2) { /* of two it were no list */
        EXPECT_OK(gin_team_create(mp->comm, ranks, mp->size, &list));
        EXPECT_OK(gin_sync(b.g, gin_thread(), list, 1));
        if (odd)
            EXPECT_OK(gin_team_free(mp->comm, list));
        EXPECT_FAILS(gin_sync(b.g, gin_thread(), list, 1), odd ? GIN_ESTATE : GIN_EMISMATCH,
                     odd ? "freed" : "refused its team");
    }
    EXPECT_FAILS(gin_sync(b.g, odd ? gin_warp() : gin_thread(), world, 2), GIN_EINVAL, "");
    EXPECT_OK(gin_sync(b.g, gin_thread(), world, 2));
    mp_barrier(mp);
}

MP_TEST_OPT(one_is_refused_its_team, .ranks = "2 3 5", .env = "GINSHMEM_CHECK=1", .deadline = 30)
{
    one_has_no_team(mp);
}

MP_TEST_OPT(one_is_refused_its_team_elsewhere, .ranks = "4", .hosts = "AABB", .only = MP_PROCS,
            .env = "GINSHMEM_CHECK=1", .deadline = 30)
{
    one_has_no_team(mp);
}

/* By different ways they would take each other's messages for something else. */
MP_TEST_OPT(environments_differ, .ranks = "2", .only = MP_PROCS, .bare = true)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t dev;
    if (mp->rank == 1)
        setenv("GINSHMEM_COLL_ORDER", "rank", 1);
    if (!mp_up(mp))
        return;
    EXPECT_FAILS(gin_devcomm_create(mp->comm, NULL, &dev), GIN_EMISMATCH, "GINSHMEM_COLL_ORDER");
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 0;
    if (EXPECT_OK(gin_devcomm_create(mp->comm, &reqs, &dev)))
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &dev));
    mp_down(mp);
}

/* What the requirements leave out is not used by collectives either, and all members of a team hear
 * it, those who reach all others among them. The index stays. */
static void some_are_apart(struct mp *mp, gin_devcomm_reqs_t *reqs, bool rails, const char *word)
{
    struct bed b;
    if (!bed_up(mp, &b, reqs))
        return;
    gin_team_t world = b.world, rail, near, corner;
    EXPECT_OK(gin_team_split_strided(mp->comm, world, mp->rank % 2, 2, 2, &rail));
    EXPECT_OK(gin_team_split_strided(mp->comm, world, mp->rank & ~1, 1, 2, &near));
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 1, 3, &corner));
    EXPECT_FAILS(sum(&b, 5, GIN_DOUBLE, GIN_SUM), GIN_ENOTSUP, word);
    EXPECT_FAILS(cast(&b, N, 0), GIN_ENOTSUP, word);
    if (corner.rank >= 0)
        EXPECT_FAILS(gin_sync(b.g, gin_thread(), corner, 0), GIN_ENOTSUP,
                     rails ? "ranks 1 and 2" : "ranks 0 and 2");
    if (rails)
        EXPECT_OK(gin_sync(b.g, gin_thread(), rail, 0));
    else
        EXPECT_FAILS(gin_sync(b.g, gin_thread(), rail, 0), GIN_ENOTSUP, word);
    EXPECT_OK(gin_sync(b.g, gin_thread(), near, 0));
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(connections_are_left_out, .ranks = "4", .hosts = "AABB")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.connection = GIN_CONNECT_RAIL;
    some_are_apart(mp, &reqs, true, "GIN_CONNECT_RAIL");
}

MP_TEST_OPT(all_connections_are_left_out, .ranks = "4", .hosts = "AABB")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.connection = GIN_CONNECT_NONE;
    some_are_apart(mp, &reqs, false, "GIN_CONNECT_NONE");
}

MP_TEST_OPT(the_network_is_left_out, .ranks = "4", .hosts = "AABB", .env = "GINSHMEM_CHECK=1")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_LSA | GIN_PATH_SELF;
    some_are_apart(mp, &reqs, false, "GIN_PATH_NET");
}

/* What one rank is refused, all are. */
MP_TEST_OPT(one_is_refused, .ranks = "1 2 5", .env = "GINSHMEM_CHECK=1")
{
    struct bed b;
    if (!bed_up(mp, &b, NULL))
        return;
    bool odd = mp->rank == 0;
    gin_at_t dst = b.dst;
    b.dst = odd ? gin_at_local(NULL) : dst;
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, GIN_SUM), GIN_EINVAL, "");
    b.dst = odd ? gin_at(dst.win, 1ull << 50) : dst;
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, GIN_SUM), GIN_ERANGE, "");
    b.dst = odd ? gin_at(b.src.win, b.src.off + 8) : dst;
    EXPECT_FAILS(sum(&b, 6, GIN_DOUBLE, GIN_SUM), GIN_EINVAL, "");
    b.dst = dst;
    expect_works(mp, &b);
}

/* What all are refused, without a word to the others. */
MP_TEST_OPT(all_are_refused, .ranks = "1 3")
{
    struct bed b;
    if (!bed_up(mp, &b, NULL))
        return;
    EXPECT_FAILS(sum(&b, 1, GIN_FLOAT, GIN_XOR), GIN_ENOTSUP, "operation 6 on type 10");
    EXPECT_FAILS(sum(&b, 1, GIN_COMPLEX_FLOAT, GIN_MIN), GIN_ENOTSUP, "complex");
    EXPECT_FAILS(sum(&b, 1, (gin_type_t)99, GIN_SUM), GIN_EINVAL, "type 99");
    EXPECT_FAILS(sum(&b, 1, GIN_INT8, (gin_reduction_t)7), GIN_EINVAL, "operation 7");
    EXPECT_FAILS(cast(&b, 1, mp->size), GIN_ERANGE, "root");
    EXPECT_FAILS(cast(&b, 1, -1), GIN_ERANGE, "root -1");
    EXPECT_FAILS(sum(&b, SIZE_MAX / 2, GIN_INT8, GIN_SUM), GIN_ERANGE, "");
    EXPECT_FAILS(gin_sync(b.g, gin_thread(), b.world, 1), GIN_ERANGE, "index 1");
    EXPECT_FAILS(gin_sync(b.g, gin_warp(), b.world, 0), GIN_EINVAL, "group");
    EXPECT_FAILS(gin_sync(b.g, gin_thread(), gin_team_invalid(), 0), GIN_EINVAL, "invalid");
    gin_team_t t;
    int list[3] = {2, 0, 1};
    if (mp->size == 3) {
        EXPECT_OK(gin_team_create(mp->comm, list, 3, &t));
        EXPECT_OK(gin_sync(b.g, gin_thread(), t, 0));
        EXPECT_OK(gin_team_free(mp->comm, t));
        EXPECT_FAILS(gin_sync(b.g, gin_thread(), t, 0), GIN_ESTATE, "freed");
    }
    expect_works(mp, &b);
}

/* ---- a heap without room ---- */

/* Not for long messages, but for all that is needed; then not for that either. */
MP_TEST_OPT(a_small_heap, .ranks = "1 3 8", .heap_size = 262144, .heap_max = 262144)
{
    static _Thread_local double mine[N], got[N];
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    if (!mp_dev(mp, NULL))
        return;
    for (int i = 0; i < N; i++)
        mine[i] = mp->rank + i;
    EXPECT_OK(gin_allreduce(&mp->g, gin_thread(), gin_world(&mp->g), 0, gin_at_local(got),
                            gin_at_local(mine), N, GIN_DOUBLE, GIN_SUM));
    for (int i = 0; i < N; i++)
        if (!EXPECT((int)got[i] == mp->size * i + mp->size * (mp->size - 1) / 2))
            break;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 4096;
    if (mp->size > 1)
        EXPECT_FAILS(gin_devcomm_create(mp->comm, &reqs, &dev), GIN_ENOMEM, "4096 collectives");
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* ---- members that are gone ---- */

#define VICTIM 1

/* Without the harness's own, which waits for the dead. */
static bool bare_up(struct mp *mp, struct bed *b, gin_devcomm_t *dev, gin_t *g)
{
    mp_expect_death(mp, VICTIM);
    if (!EXPECT_OK(gin_init(&mp->config, &mp->comm)) ||
        !EXPECT_OK(gin_devcomm_create(mp->comm, NULL, dev)) || !EXPECT_OK(gin_open(dev, 0, g)))
        return false;
    b->g = g;
    b->world = gin_world(g);
    b->heap = gin_calloc(mp->comm, 2 * N, 64);
    if (!EXPECT(b->heap != NULL))
        return false;
    b->dst = gin_at_ptr(g, b->heap);
    b->src = gin_at_ptr(g, b->heap + N * 8);
    return true;
}

/* In the middle of large calls a member dies; whoever is in one ends, and so do teams without it,
 * once a member of theirs has. */
static void killed(struct mp *mp)
{
    struct bed b;
    gin_devcomm_t dev;
    gin_t g;
    int st = GIN_OK;
    if (!bare_up(mp, &b, &dev, &g))
        return;
    for (int i = 0; st == GIN_OK; i++) {
        if (mp->rank == VICTIM && i == 20)
            kill(getpid(), SIGKILL);
        st = i % 2 ? cast(&b, N, 0) : sum(&b, N, GIN_DOUBLE, GIN_SUM);
    }
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "rank 1");
    EXPECT_FAILS(sum(&b, 1, GIN_DOUBLE, GIN_SUM), GIN_EPEER, "cannot be used any more");
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "rank 1");
    mp->comm = NULL;
}

MP_TEST_OPT(a_member_dies, .ranks = "2 3 5", .only = MP_PROCS, .bare = true)
{
    killed(mp);
}

MP_TEST_OPT(a_member_dies_elsewhere, .ranks = "5", .hosts = "ABABB", .only = MP_PROCS, .bare = true)
{
    if (PT_RACE_DETECTOR)
        MP_SKIP("libfabric is not built for the race detector");
    killed(mp);
}

/* ---- in the middle of any call ---- */

static void *dies_soon(void *arg)
{
    struct timespec t = {.tv_nsec = *(long *)arg};
    nanosleep(&t, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static int any_call(const struct bed *b, int i)
{
    const gin_t *g = b->g;
    gin_group_t me = gin_thread();
    gin_team_t w = b->world;
    switch (i % 8) {
    case 0: return sum(b, N, GIN_DOUBLE, GIN_SUM);
    case 1: return gin_allgather(g, me, w, 0, b->dst, b->src, 900, GIN_DOUBLE);
    case 2: return gin_alltoall(g, me, w, 0, b->dst, b->src, 700, GIN_DOUBLE);
    case 3: return gin_scan(g, me, w, 0, b->dst, b->src, N, GIN_DOUBLE, GIN_SUM);
    case 4: return gin_gather(g, me, w, 0, b->dst, b->src, 300, GIN_DOUBLE, 0);
    case 5: return gin_reduce(g, me, w, 0, b->dst, b->src, 3000, GIN_DOUBLE, GIN_SUM, 0);
    case 6: return gin_reduce_scatter(g, me, w, 0, b->dst, b->src, 700, GIN_DOUBLE, GIN_SUM);
    default: return gin_sync(g, me, w, 0);
    }
}

/* At any time, so that what it had under way ends anywhere. */
static void killed_anywhere(struct mp *mp)
{
    struct bed b;
    gin_devcomm_t dev;
    pthread_t t;
    gin_t g;
    long after = (long)(pt_random(&mp->rng) % 40000000);
    int st = GIN_OK;
    if (!bare_up(mp, &b, &dev, &g))
        return;
    EXPECT_OK(gin_sync(&g, gin_thread(), b.world, 0));
    if (mp->rank == VICTIM)
        pthread_create(&t, NULL, dies_soon, &after);
    for (int i = 0; st == GIN_OK; i++) {
        mp_step(mp, "call %d", i);
        st = any_call(&b, i);
    }
    EXPECT_EQ_INT(st, GIN_EPEER);
    mp_step(mp, "has failed");
    EXPECT_FAILS(any_call(&b, 0), GIN_EPEER, "cannot be used any more");
    while (gin_comm_status(mp->comm) == GIN_OK)
        sched_yield();
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "rank 1");
    mp->comm = NULL;
}

MP_TEST_OPT(a_member_dies_anywhere, .ranks = "2 3 8", .only = MP_PROCS, .bare = true)
{
    killed_anywhere(mp);
}

MP_TEST_OPT(a_member_dies_anywhere_elsewhere, .ranks = "5", .hosts = "AABBC", .only = MP_PROCS,
            .bare = true)
{
    if (PT_RACE_DETECTOR)
        MP_SKIP("libfabric is not built for the race detector");
    killed_anywhere(mp);
}

/* What is under way to a dead rank keeps nobody else: the root runs ahead to one that dies before
 * it comes, and the others go on among themselves, or hear of the death. */
MP_TEST_OPT(a_member_dies_before_it_comes, .ranks = "3", .hosts = "ABC", .only = MP_PROCS,
            .bare = true)
{
    struct bed b;
    gin_devcomm_t dev;
    gin_t g;
    if (PT_RACE_DETECTOR)
        MP_SKIP("libfabric is not built for the race detector");
    if (!bare_up(mp, &b, &dev, &g))
        return;
    gin_team_t world = b.world, others;
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, 2, &others));
    int st = gin_sync(&g, gin_thread(), world, 0);
    if (mp->rank == VICTIM)
        kill(getpid(), SIGKILL);
    for (int i = 0; st == GIN_OK && i < 3; i++)
        st = cast(&b, 300, 0);
    b.world = others;
    for (int i = 0; st == GIN_OK && i < 40; i++)
        st = sum(&b, 100, GIN_DOUBLE, GIN_SUM);
    EXPECT(st == GIN_OK || st == GIN_EPEER || st == GIN_ENET);
    mp_step(mp, "hears of the death");
    while (gin_comm_status(mp->comm) == GIN_OK)
        sched_yield();
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "rank");
    mp->comm = NULL;
}

/* The last one does not come: the others say who it was, each in its time, and the index is lost,
 * the other one is not. */
MP_TEST_OPT(one_does_not_come, .ranks = "2 3")
{
    struct bed b;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 2;
    reqs.collective_timeout_ns = 100000000;
    if (!bed_up(mp, &b, &reqs))
        return;
    mp_barrier(mp);
    if (mp->rank != mp->size - 1) {
        int st = sum(&b, 8, GIN_DOUBLE, GIN_SUM);
        /* another one may have given up before */
        EXPECT(st == GIN_ETIMEDOUT || st == GIN_EPEER);
        if (st == GIN_ETIMEDOUT)
            EXPECT_HAS(gin_last_error(), "has not come after");
        EXPECT_FAILS(sum(&b, 8, GIN_DOUBLE, GIN_SUM), st, "cannot be used any more");
    }
    mp_barrier(mp);
    if (mp->rank == mp->size - 1) {
        int st = sum(&b, 8, GIN_DOUBLE, GIN_SUM); /* for which it finds all that it needs */
        EXPECT_OK(st);
        EXPECT_FAILS(sum(&b, 8, GIN_DOUBLE, GIN_SUM), GIN_EPEER, "given it up");
    }
    mp_barrier(mp);
}

/* The root's time is up before the others come, and it writes into its source again. Who then finds
 * a message that says where the bytes lie must not take them for those of the call. */
MP_TEST_OPT(a_source_is_written_after_a_failure, .ranks = "2 3")
{
    struct bed b;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collective_timeout_ns = 100000000;
    if (!bed_up(mp, &b, &reqs))
        return;
    if (mp->rank == 0) {
        EXPECT_FAILS(cast(&b, 2 * N, 0), GIN_ETIMEDOUT, "has not come after");
        for (int i = 0; i < N; i++)
            b.heap[N * 8 + i] = -1;
    }
    mp_barrier(mp);
    if (mp->rank != 0)
        EXPECT_FAILS(cast(&b, 2 * N, 0), GIN_EPEER, "given it up");
    mp_barrier(mp);
}
