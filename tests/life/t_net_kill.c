/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of another host is killed, stopped, or says that all is over, in the middle of something:
 * the others' waits end, name it, and what they have with each other goes on. Hosts are names here,
 * so all that tells of it is the network and the watch.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "net_up.h"
#include "tests/mp.h"

#define VICTIM 1
#define BUDGET 90000000000ull /* ns from the end to the last status */

static gin_group_t me(void)
{
    return gin_thread();
}

static void nap(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

struct scene {
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g, idle; /* on idle nothing is under way when the victim dies */
    gin_team_t world;
    uint64_t *block;
    gin_at_t at;
};

static uint64_t *moment(struct mp *mp) /* of the end */
{
    return (uint64_t *)(void *)mp->share;
}

/* The harness's allgather waits for the dead: meet by unique id. */
static bool by_id(struct mp *mp)
{
    static gin_unique_id_t id;
    gin_unique_id_t *shown = (gin_unique_id_t *)(void *)(mp->share + 4096);
    if (mp->rank == 0 && !EXPECT_OK(gin_unique_id(shown)))
        return false;
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    id = *shown;
    mp->config.allgather = NULL;
    mp->config.unique_id = &id;
    return true;
}

/* True: go on. */
static bool scene_open(struct mp *mp, struct scene *s)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    if (!by_id(mp) || !EXPECT_OK(gin_init(&mp->config, &s->comm)) ||
        !EXPECT_OK(gin_devcomm_create(s->comm, NULL, &s->dev)) ||
        !EXPECT_OK(gin_open(&s->dev, 0, &s->g)) || !EXPECT_OK(gin_open(&s->dev, 1, &s->idle)) ||
        !EXPECT_OK(gin_query(s->comm, &caps)))
        return false;
    if (caps.cap[GIN_CAP_NET].have != 1) {
        mp_skip(mp, "no network: %s", caps.cap[GIN_CAP_NET].reason);
        EXPECT_OK(gin_finalize(s->comm));
        return false;
    }
    s->block = gin_calloc(s->comm, 64, 8);
    s->world = gin_world(&s->g);
    s->at = gin_at_ptr(&s->g, s->block);
    mp_expect_death(mp, VICTIM);
    return EXPECT(s->block != NULL) && EXPECT_OK(gin_comm_barrier(s->comm));
}

static void die(struct mp *mp)
{
    nap(30);
    GIN_STORE_RELEASE(moment(mp), gi_now_ns());
    kill(getpid(), SIGKILL);
}

static void *die_soon(void *arg)
{
    die(arg);
    return NULL;
}

static void die_meanwhile(struct mp *mp)
{
    pthread_t thread;
    if (mp->rank == VICTIM)
        EXPECT_EQ_INT(pthread_create(&thread, NULL, die_soon, mp), 0);
}

static void expect_named(struct mp *mp, int st)
{
    uint64_t now = gi_now_ns(), then = GIN_LOAD_ACQUIRE(moment(mp));
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "rank 1");
    EXPECT(then != 0 && now - then < BUDGET * MP_FACTOR);
}

/* The first one after the victim that lives, and the last before it. */
static int next(const struct mp *mp)
{
    int r = (mp->rank + 1) % mp->size;
    return r == VICTIM ? (r + 1) % mp->size : r;
}

/* Survivors: puts, gets, atomics and signals between them still work; where the network holds up
 * what comes behind the dead one's answers, on contexts that it owed none. */
static void go_on(struct mp *mp, struct scene *s)
{
    bool held_up = gi_core_caps(gi_net_of(s->comm)->core, 0)->one_queue;
    const gin_t *g = held_up ? &s->idle : &s->g;
    uint64_t word = 7777 + (uint64_t)mp->rank, back = 0, old = 0;
    int to = next(mp);
    gin_at_t at = gin_at(s->at.win, s->at.off + 8 * (uint64_t)(10 + mp->rank));
    mp_step(mp, "goes on with rank %d", to);
    EXPECT_OK(gin_put(g, me(), s->world, to, at, gin_at_local(&word), 8, gin_strong_inc(7)));
    EXPECT_OK(gin_fence(g, me(), s->world, to)); /* a get may overtake a put */
    EXPECT_OK(gin_get(g, me(), s->world, to, at, gin_at_local(&back), 8));
    EXPECT_OK(gin_flush_peer(g, me(), s->world, to));
    EXPECT_EQ_U64(back, word);
    EXPECT_OK(gin_amo_fetch_add(g, me(), s->world, to, at, 5, &old));
    EXPECT_EQ_U64(old, word);
    for (uint64_t began = gi_now_ns(); gin_read_signal(g, 7) == 0;)
        if (!EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR))
            break;
}

/* All survivors are here; the harness's barrier wants the dead, too. */
static void meet(struct mp *mp)
{
    uint64_t *here = moment(mp) + 8, want, began = gi_now_ns();
    want = (__atomic_fetch_add(here, 1, __ATOMIC_ACQ_REL) / (uint64_t)(mp->size - 1) + 1) *
           (uint64_t)(mp->size - 1);
    mp_step(mp, "meets the survivors");
    while (GIN_LOAD_ACQUIRE(here) < want && EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR))
        nap(1);
}

/* Nobody may leave before, since that is a death to the others. */
static void scene_close(struct mp *mp, struct scene *s)
{
    int st = GIN_OK;
    meet(mp);
    mp_step(mp, "ends");
    /* The provider may have failed operations before the watch knows. */
    for (uint64_t began = gi_now_ns(); gin_comm_status(s->comm) == GIN_OK; nap(1))
        if (!EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR))
            break;
    EXPECT_FAILS(gin_comm_status(s->comm), GIN_EPEER, "rank 1");
    EXPECT_FAILS(gin_wait_signal(&s->g, me(), 9, 1), GIN_EPEER, "rank 1");
    for (int i = 0; st == GIN_OK && i < 3; i++) /* one in which all had arrived may end */
        st = gin_barrier(&s->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE);
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "rank 1");
    EXPECT_FAILS(gin_finalize(s->comm), GIN_EPEER, "rank 1");
}

/* Nobody owes the victim, or is owed by it, anything. */
MP_TEST_OPT(in_a_wait, .ranks = "2 3 5", .hosts = "ABCDE", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    if (mp->rank == VICTIM)
        die(mp);
    expect_named(mp, gin_wait_signal(&s.g, me(), 0, 1));
    if (mp->size > 2)
        go_on(mp, &s);
    scene_close(mp, &s);
}

/* The call may be too early to know; then what completes it says so. */
static void asks_the_dead(const gin_t *g, const struct scene *s)
{
    uint64_t word = 6;
    int st = gin_put(g, me(), s->world, VICTIM, s->at, gin_at_local(&word), 8, gin_no_action());
    st = st == GIN_OK ? gin_quiet(g, me()) : st;
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "rank 1");
}

/* Contexts on which nothing to the victim was under way stay good, until something to it is asked
 * of them: by a thread's own call, which says so, or by an engine, whose flush does. */
MP_TEST_OPT(nothing_under_way, .ranks = "3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t dev;
    gin_t direct, asked, idle;
    uint64_t word = 5;
    if (!scene_open(mp, &s))
        return;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = GIN_BACKEND_ENGINE;
    if (!EXPECT_OK(gin_devcomm_create(s.comm, &reqs, &dev)))
        return;
    EXPECT_OK(gin_open(&s.dev, 1, &direct));
    EXPECT_OK(gin_open(&dev, 0, &asked));
    EXPECT_OK(gin_open(&dev, 1, &idle));
    EXPECT_OK(
        gin_put(&asked, me(), s.world, next(mp), s.at, gin_at_local(&word), 8, gin_no_action()));
    EXPECT_OK(gin_quiet(&asked, me()));
    EXPECT_OK(gin_comm_barrier(s.comm));
    if (mp->rank == VICTIM)
        die(mp);
    expect_named(mp, gin_wait_signal(&s.g, me(), 0, 1));
    EXPECT_OK(gin_quiet(&direct, me()));
    EXPECT_OK(gin_quiet(&asked, me()));
    asks_the_dead(&direct, &s);
    asks_the_dead(&asked, &s);
    EXPECT_OK(gin_put(&idle, me(), s.world, next(mp), gin_at(s.at.win, s.at.off + 8),
                      gin_at_local(&word), 8, gin_no_action()));
    EXPECT_OK(gin_quiet(&idle, me()));
    scene_close(mp, &s);
}

MP_TEST_OPT(in_a_barrier, .ranks = "2 3 5", .hosts = "ABCDE", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    int st = GIN_OK;
    if (!scene_open(mp, &s))
        return;
    die_meanwhile(mp);
    while (st == GIN_OK)
        st = gin_barrier(&s.g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE);
    expect_named(mp, st);
    if (mp->size > 2)
        go_on(mp, &s);
    scene_close(mp, &s);
}

/* Puts of all to all, each with a signal, the victim's too. */
MP_TEST_OPT(while_all_put, .ranks = "2 3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    int st = GIN_OK;
    if (!scene_open(mp, &s))
        return;
    uint64_t *big = gin_malloc(s.comm, 1u << 20);
    char *src = calloc(1, 65536);
    if (!EXPECT(big != NULL && src != NULL))
        return;
    gin_at_t at = gin_at_ptr(&s.g, big);
    die_meanwhile(mp);
    for (uint64_t i = 0; st == GIN_OK; i++) {
        for (int r = 0; r < mp->size && st == GIN_OK; r++)
            if (r != mp->rank)
                st = gin_put(&s.g, me(), s.world, r, at, gin_at_local(src), i % 3 == 0 ? 65536 : 64,
                             gin_weak_inc(0));
        if (st == GIN_OK && i % 8 == 0)
            st = gin_quiet(&s.g, me());
    }
    expect_named(mp, st);
    if (mp->size > 2)
        go_on(mp, &s);
    scene_close(mp, &s);
    free(src);
}

MP_TEST_OPT(in_gets_and_atomics, .ranks = "2 3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    uint64_t words[512], old;
    int st = GIN_OK;
    if (!scene_open(mp, &s))
        return;
    die_meanwhile(mp);
    for (uint64_t i = 0; st == GIN_OK; i++) {
        st = gin_get(&s.g, me(), s.world, VICTIM, s.at, gin_at_local(words), 256);
        if (st == GIN_OK && i % 2 == 0)
            st = gin_flush(&s.g, me());
        if (st == GIN_OK && i % 3 == 0)
            st = gin_amo_fetch_add(&s.g, me(), s.world, VICTIM, s.at, 1, &old);
    }
    expect_named(mp, st);
    if (mp->size > 2)
        go_on(mp, &s);
    scene_close(mp, &s);
}

MP_TEST_OPT(in_a_collective_call, .ranks = "3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    void *p;
    if (!scene_open(mp, &s))
        return;
    die_meanwhile(mp);
    while ((p = gin_malloc(s.comm, 4096)) != NULL && gin_free(s.comm, p) == GIN_OK)
        continue;
    expect_named(mp, gin_last_status());
    scene_close(mp, &s);
}

/* The others are in their last meeting already. */
MP_TEST_OPT(before_it_finalizes, .ranks = "2 3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    if (mp->rank == VICTIM)
        die(mp);
    expect_named(mp, gin_finalize(s.comm));
}

/* Who left properly may end; nobody is told of a death. */
MP_TEST_OPT(after_it_finalized, .ranks = "3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    gin_comm_t *pair;
    struct mp_group group;
    gin_config_t config = mp->config;
    gin_devcomm_t dev;
    gin_t g;
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    mp_group(mp, &group, &config, mp->rank == VICTIM, mp->rank / 2, mp->rank == VICTIM ? 1 : 2);
    if (mp->rank != VICTIM &&
        (!EXPECT_OK(gin_init(&config, &pair)) || !EXPECT_OK(gin_devcomm_create(pair, NULL, &dev)) ||
         !EXPECT_OK(gin_open(&dev, 0, &g))))
        return;
    EXPECT_OK(gin_finalize(s.comm));
    if (mp->rank == VICTIM)
        return; /* ends */
    nap(50);
    EXPECT_OK(gin_signal(&g, me(), gin_world(&g), 1 - mp->rank / 2, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&g, me(), 0, 1));
    EXPECT_OK(gin_comm_status(pair));
    EXPECT_OK(gin_finalize(pair));
}

/* Stopped, not ended: no connection ends, and it is the silence that tells. */
MP_TEST_OPT(stopped, .ranks = "2 3", .hosts = "ABC", .env = "GINSHMEM_PEER_TIMEOUT=8s",
            .only = MP_PROCS, .bare = true)
{
    struct scene s;
    pid_t *pid = (pid_t *)(void *)(moment(mp) + 16);
    if (!scene_open(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        __atomic_store_n(pid, getpid(), __ATOMIC_RELEASE);
        GIN_STORE_RELEASE(moment(mp), gi_now_ns());
        raise(SIGSTOP);
        /* it goes on, and finds that the others do without it */
        EXPECT_FAILS(gin_wait_signal(&s.g, me(), 0, 1), GIN_EPEER, "rank 1");
        EXPECT_FAILS(gin_finalize(s.comm), GIN_EPEER, "rank 1");
        return;
    }
    expect_named(mp, gin_wait_signal(&s.g, me(), 0, 1));
    EXPECT_HAS(gin_last_error(), "silent");
    if (mp->size > 2)
        go_on(mp, &s);
    EXPECT_FAILS(gin_comm_status(s.comm), GIN_EPEER, "rank 1");
    meet(mp);
    if (mp->rank == 0)
        kill(__atomic_load_n(pid, __ATOMIC_ACQUIRE), SIGCONT);
    EXPECT_FAILS(gin_finalize(s.comm), GIN_EPEER, "rank 1");
}

struct waiter {
    gin_comm_t *comm;
    gin_t *g;
    int st;
};

static void *wait_for_ever(void *arg)
{
    struct waiter *a = arg;
    a->st = gin_wait_signal(a->g, me(), 5, 1);
    EXPECT_HAS(gin_last_error(), "rank 1 aborted: enough of it");
    return NULL;
}

/* Whatever is asked of the network from then on says who it was, and why. */
static void all_say_so(struct mp *mp, struct scene *s)
{
    static const char said[] = "rank 1 aborted: enough of it";
    int far = (mp->rank + mp->size / 2) % mp->size;
    uint64_t word = 1, old;
    mp_step(mp, "asks for more");
    EXPECT_FAILS(
        gin_put(&s->g, me(), s->world, far, s->at, gin_at_local(&word), 8, gin_no_action()),
        GIN_EPEER, said);
    EXPECT_FAILS(gin_get(&s->g, me(), s->world, far, s->at, gin_at_local(&word), 8), GIN_EPEER,
                 said);
    EXPECT_FAILS(gin_signal(&s->g, me(), s->world, far, gin_weak_inc(7)), GIN_EPEER, said);
    EXPECT_FAILS(gin_amo_fetch_add(&s->g, me(), s->world, far, s->at, 1, &old), GIN_EPEER, said);
    EXPECT_FAILS(gin_flush(&s->g, me()), GIN_EPEER, said);
    EXPECT_FAILS(gin_flush_peer(&s->g, me(), s->world, far), GIN_EPEER, said);
    EXPECT_FAILS(gin_quiet(&s->g, me()), GIN_EPEER, said);
    EXPECT_FAILS(gin_fence(&s->g, me(), s->world, far), GIN_EPEER, said);
}

/* Two ranks per host: the word goes by the watch and by shared memory. */
MP_TEST_OPT(by_its_own_word, .ranks = "2 4", .hosts = "AABB", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    pthread_t thread;
    if (mp->size == 2)
        snprintf(mp->host, sizeof(mp->host), "host-%d", mp->rank), mp->config.host_id = mp->host;
    if (!scene_open(mp, &s))
        return;
    struct waiter a = {s.comm, &s.g, 0};
    EXPECT_EQ_INT(pthread_create(&thread, NULL, wait_for_ever, &a), 0);
    nap(10);
    if (mp->rank == VICTIM)
        EXPECT_OK(gin_comm_abort(s.comm, "enough of it"));
    else
        EXPECT_FAILS(
            gin_barrier(&s.g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE),
            GIN_EPEER, "rank 1 aborted: enough of it");
    pthread_join(thread, NULL);
    EXPECT_EQ_INT(a.st, GIN_EPEER);
    EXPECT_FAILS(gin_comm_status(s.comm), GIN_EPEER, "enough of it");
    all_say_so(mp, &s);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_FAILS(gin_finalize(s.comm), GIN_EPEER, "enough of it");
}

/* ---- its children ---- */

/* A child has the parent's descriptors, and yet the others see the parent's end. */
MP_TEST_OPT(with_a_child_that_lives, .ranks = "2 3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    uint64_t *seen = moment(mp) + 24;
    if (!scene_open(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 6000 && GIN_LOAD_ACQUIRE(seen) == 0; i++)
                nap(10);
            _exit(0);
        }
        EXPECT(child > 0);
        die(mp);
    }
    EXPECT_FAILS(gin_wait_signal(&s.g, me(), 0, 1), GIN_EPEER, "rank 1");
    EXPECT_HAS(gin_last_error(), "connection");
    GIN_STORE_RELEASE(seen, 1);
    scene_close(mp, &s);
}

/* ... and when a child ends that is nobody's business. (The leak detector would find at exit() what
 * the parent's threads hold, which a child lacks.) */
MP_TEST_OPT(with_children_that_end, .ranks = "2", .hosts = "AB", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    for (uint64_t i = 1; i <= 4; i++) {
        int status = -1;
        fflush(NULL);
        pid_t child = mp->rank == VICTIM ? fork() : -1;
        if (child == 0 && i % 2 == 0 && !PT_LEAK_DETECTOR)
            exit(0);
        if (child == 0)
            _exit(0);
        if (mp->rank == VICTIM)
            EXPECT(waitpid(child, &status, 0) == child && status == 0);
        EXPECT_OK(gin_signal(&s.g, me(), s.world, 1 - mp->rank, gin_weak_inc(0)));
        EXPECT_OK(gin_wait_signal(&s.g, me(), 0, i));
    }
    EXPECT_OK(gin_comm_status(s.comm));
    EXPECT_OK(gin_finalize(s.comm));
}

/* ---- its farewell is lost ---- */

/* The slow one's bootstrap looks at the communicator while it waits: once the other has gone. */
static int look_late(void *arg)
{
    gin_comm_t *comm = arg;
    for (uint64_t began = gi_now_ns(); atomic_load(&comm->deaths[VICTIM]) == NULL; nap(1))
        if (!EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR))
            break;
    return gi_comm_health(comm);
}

/* All have come to the last meeting, so it may go; that it said nothing is no death. */
MP_TEST_OPT(after_a_lost_farewell, .ranks = "3", .hosts = "ABC", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        atomic_store(&s.comm->leaving, 1);
        EXPECT_OK(gi_agree_on(s.comm, GI_AGREE_FINALIZE, 0, 0, 0, GIN_OK));
        kill(getpid(), SIGKILL);
    }
    if (mp->rank == 2)
        s.comm->boot->stop = look_late;
    EXPECT_OK(gin_finalize(s.comm));
}

/* ---- two of them ---- */

static void expect_name(struct scene *s, int rank, const char *name)
{
    uint64_t began = gi_now_ns();
    int st = GIN_OK;
    for (; st == GIN_OK && EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR); nap(1)) {
        st = gin_put_value(&s->g, me(), s->world, rank, s->at, 1, 8, gin_no_action());
        st = st == GIN_OK ? gin_flush_peer(&s->g, me(), s->world, rank) : st;
    }
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_HAS(gin_last_error(), name);
    for (; gi_comm_rank_health(s->comm, rank) == GIN_OK; nap(1))
        if (!EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR))
            break;
    EXPECT_FAILS(gi_comm_rank_health(s->comm, rank), GIN_EPEER, name);
}

/* Each is named where it is the one that is missing. */
MP_TEST_OPT(one_after_the_other, .ranks = "4", .hosts = "ABCD", .only = MP_PROCS, .bare = true)
{
    struct scene s;
    if (!scene_open(mp, &s))
        return;
    mp_expect_death(mp, 2);
    if (mp->rank == VICTIM)
        die(mp);
    for (uint64_t began = gi_now_ns(); gin_comm_status(s.comm) == GIN_OK; nap(1))
        if (!EXPECT(gi_now_ns() - began < BUDGET * MP_FACTOR))
            break;
    if (mp->rank == 2)
        kill(getpid(), SIGKILL);
    expect_name(&s, 2, "rank 2");
    expect_name(&s, VICTIM, "rank 1");
    EXPECT_FAILS(gin_comm_status(s.comm), GIN_EPEER, "rank 1");
    EXPECT_FAILS(gin_finalize(s.comm), GIN_EPEER, "rank 1");
}
