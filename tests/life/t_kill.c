/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-29: a rank is killed in the middle of something; the others' waits end and name it. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "barrier.h"
#include "base/clock.h"
#include "tests/mp.h"

#define VICTIM 1
#define BUDGET 15000000000ull /* ns from the death to the last status */

static gin_group_t me(void)
{
    return gin_thread();
}

static uint64_t *death(struct mp *mp) /* when it happens */
{
    return (uint64_t *)(void *)mp->share;
}

static void *kill_soon(void *arg)
{
    struct mp *mp = arg;
    struct timespec wait = {0, 30000000};
    nanosleep(&wait, NULL);
    GIN_STORE_RELEASE(death(mp), gi_now_ns());
    kill(getpid(), SIGKILL);
    return NULL;
}

struct scene {
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
};

static bool scene_set(struct mp *mp, struct scene *s)
{
    mp_expect_death(mp, VICTIM);
    return EXPECT_OK(gin_init(&mp->config, &s->comm)) &&
           EXPECT_OK(gin_devcomm_create(s->comm, NULL, &s->dev)) &&
           EXPECT_OK(gin_open(&s->dev, 0, &s->g)) && EXPECT_OK(gin_comm_barrier(s->comm));
}

static bool scene_open(struct mp *mp, struct scene *s)
{
    pthread_t thread;
    if (!scene_set(mp, s))
        return false;
    if (mp->rank == VICTIM)
        EXPECT_EQ_INT(pthread_create(&thread, NULL, kill_soon, mp), 0);
    return true;
}

/* What a survivor sees in the call that failed. */
static void expect_named(struct mp *mp, int st)
{
    uint64_t now = gi_now_ns(), then = GIN_LOAD_ACQUIRE(death(mp));
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "rank 1 is dead");
    EXPECT(then != 0 && now - then < BUDGET * MP_FACTOR);
}

/* ... and in all later ones. */
static void scene_close(struct mp *mp, struct scene *s, int st)
{
    expect_named(mp, st);
    EXPECT_FAILS(gin_comm_status(s->comm), GIN_EPEER, "rank 1 is dead");
    gin_clear_error();
    EXPECT_EQ_INT(gin_status(&s->g), GIN_EPEER);
    EXPECT_FAILS(gin_wait_signal(&s->g, me(), 9, 1), GIN_EPEER, "rank 1 is dead");
    EXPECT_FAILS(gin_barrier(&s->g, me(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, 0), GIN_EPEER,
                 "rank 1 is dead");
    EXPECT(gin_malloc(s->comm, 64) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EPEER);
    EXPECT_FAILS(gin_finalize(s->comm), GIN_EPEER, "rank 1 is dead");
}

MP_TEST_OPT(while_it_puts, .ranks = "2 3 5", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    uint64_t n = 0;
    int st = GIN_OK;
    if (!scene_open(mp, &s))
        return;
    char *p = gin_malloc(s.comm, 65536), src[4096] = {0};
    if (!EXPECT(p != NULL))
        return;
    gin_at_t at = gin_at_ptr(&s.g, p);
    while (st == GIN_OK)
        if (mp->rank == VICTIM)
            for (int r = 0; r < mp->size; r++)
                EXPECT_OK(gin_put(&s.g, me(), gin_world(&s.g), r, at, gin_at_local(src),
                                  sizeof(src), gin_weak_inc(0)));
        else
            st = gin_wait_signal(&s.g, me(), 0, ++n);
    scene_close(mp, &s, st);
}

MP_TEST_OPT(in_a_barrier, .ranks = "2 3 5", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    int st = GIN_OK;
    if (!scene_open(mp, &s))
        return;
    while (st == GIN_OK)
        st = gin_barrier(&s.g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0);
    scene_close(mp, &s, st);
}

MP_TEST_OPT(in_a_barrier_by_tree, .ranks = "3 9", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    int st = GIN_OK;
    gi_barriers_set_flat_max(2);
    if (!scene_open(mp, &s))
        return;
    while (st == GIN_OK)
        st = gin_barrier(&s.g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0);
    scene_close(mp, &s, st);
}

MP_TEST_OPT(in_a_wait, .ranks = "2 3 5", .only = MP_PROCS, .bare = true)
{
    static const uint32_t ids[2] = {1, 2};
    static const uint64_t least[2] = {1, 1};
    gin_wait_opt_t late = {.timeout_ns = 60000000000u};
    struct scene s;
    size_t which;
    if (!scene_open(mp, &s))
        return;
    if (mp->rank % 2 == 0)
        scene_close(mp, &s, gin_wait_signal_x(&s.g, me(), 0, 1, &late));
    else
        scene_close(mp, &s, gin_wait_signal_any(&s.g, me(), ids, least, 2, NULL, &which, NULL));
}

MP_TEST_OPT(in_a_collective_call, .ranks = "2 3 5", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    void *p;
    if (!scene_open(mp, &s))
        return;
    while ((p = gin_malloc(s.comm, 4096)) != NULL && gin_free(s.comm, p) == GIN_OK)
        continue;
    scene_close(mp, &s, gin_last_status());
}

/* The others are in their last meeting already. */
MP_TEST_OPT(before_it_finalizes, .ranks = "2 3 5", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    if (mp->rank == VICTIM)
        pause();
    expect_named(mp, gin_finalize(s.comm));
}

/* A rank that left may end whenever it likes; the others' waits go on. */
MP_TEST_OPT(after_it_finalized, .ranks = "3", .only = MP_PROCS, .bare = true)
{
    gin_comm_t *all, *pair;
    struct mp_group group;
    gin_config_t config = mp->config;
    gin_devcomm_t dev;
    gin_t g;
    if (!EXPECT_OK(gin_init(&mp->config, &all)) || !EXPECT(gin_malloc(all, 64) != NULL))
        return;
    mp_group(mp, &group, &config, mp->rank == VICTIM, mp->rank / 2, mp->rank == VICTIM ? 1 : 2);
    if (mp->rank != VICTIM &&
        (!EXPECT_OK(gin_init(&config, &pair)) || !EXPECT_OK(gin_devcomm_create(pair, NULL, &dev)) ||
         !EXPECT_OK(gin_open(&dev, 0, &g))))
        return;
    EXPECT_OK(gin_finalize(all));
    if (mp->rank == VICTIM)
        return; /* ends */
    struct timespec wait = {0, 50000000};
    nanosleep(&wait, NULL);
    EXPECT_OK(gin_signal(&g, me(), gin_world(&g), 1 - mp->rank / 2, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&g, me(), 0, 1));
    EXPECT_OK(gin_comm_status(pair));
    EXPECT_OK(gin_finalize(pair));
}

/* What it did before it died counts. */
MP_TEST_OPT(what_came_before_is_there, .ranks = "2 3", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    gin_wait_opt_t narrow = {.bits = 32};
    if (!scene_set(mp, &s))
        return;
    for (int r = 0; r < mp->size && mp->rank == VICTIM; r++)
        EXPECT_OK(gin_signal(&s.g, me(), gin_world(&s.g), r, gin_weak_inc(3)));
    EXPECT_OK(gin_lsa_arrive(&s.g, me(), 0, GIN_ORDER_RELEASE));
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (mp->rank == VICTIM)
        kill_soon(mp);
    int st = gin_wait_signal(&s.g, me(), 0, 1); /* until it is dead */
    expect_named(mp, st);
    EXPECT_OK(gin_wait_signal_x(&s.g, me(), 3, 1, &narrow));
    EXPECT_OK(gin_wait_signal(&s.g, me(), 3, 1));
    EXPECT_OK(gin_lsa_wait(&s.g, me(), 0, GIN_ORDER_ACQUIRE, NULL));
    EXPECT_FAILS(gin_finalize(s.comm), GIN_EPEER, "rank 1 is dead");
}

struct aborter {
    gin_comm_t *comm;
    gin_t *g;
    int st;
};

static void *wait_for_ever(void *arg)
{
    struct aborter *a = arg;
    a->st = gin_wait_signal(a->g, me(), 5, 1);
    EXPECT_HAS(gin_last_error(), "rank 1 aborted: enough of it");
    return NULL;
}

/* Ranks and threads of all processes get the abort, whoever waits for whatever. */
MP_TEST_OPT(by_its_own_word, .ranks = "2 3 5", .bare = true)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    pthread_t thread;
    if (!EXPECT_OK(gin_init(&mp->config, &comm)) ||
        !EXPECT_OK(gin_devcomm_create(comm, NULL, &dev)) || !EXPECT_OK(gin_open(&dev, 0, &g)) ||
        !EXPECT_OK(gin_comm_barrier(comm)))
        return;
    struct aborter a = {comm, &g, 0};
    EXPECT_EQ_INT(pthread_create(&thread, NULL, wait_for_ever, &a), 0);
    struct timespec wait = {0, 10000000};
    nanosleep(&wait, NULL);
    uint64_t began = gi_now_ns();
    if (mp->rank == VICTIM)
        EXPECT_OK(gin_comm_abort(comm, "enough of it"));
    else
        EXPECT_FAILS(gin_barrier(&g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0), GIN_EPEER,
                     "rank 1 aborted: enough of it");
    pthread_join(thread, NULL);
    EXPECT_EQ_INT(a.st, GIN_EPEER);
    EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR);
    EXPECT_OK(gin_comm_abort(comm, "again")); /* the first one stays */
    EXPECT_FAILS(gin_comm_status(comm), GIN_EPEER, "enough of it");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_FAILS(gin_finalize(comm), GIN_EPEER, "enough of it");
}

MP_TEST_OPT(shrinking_is_not_built, .ranks = "1")
{
    gin_comm_t *left = NULL;
    EXPECT_FAILS(gin_comm_shrink(mp->comm, &left), GIN_ENOTSUP, "not built");
    EXPECT_FAILS(gin_comm_shrink(mp->comm, NULL), GIN_EINVAL, "NULL");
    EXPECT(left == NULL);
}
