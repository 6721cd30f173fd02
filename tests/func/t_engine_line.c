/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of the backend ENGINE when the network takes nothing for one peer: descriptors for the
 * others go on, each wait asks for what it needs alone, and what is parked leaves in order, or with
 * its context.
 */
#include <pthread.h>
#include <unistd.h>
#include "engine_net.h"
#include "net_up.h"
#include "tests/mp.h"
#include "transport/fault/fault.h"

#define SPOILT "GINSHMEM_DISABLE_CMA=1 GINSHMEM_TEST_NET=hold=1,seed=3"
#define PUTS   400u /* more than the core, the parked ones and the ring have room for */

/* Context 0 of a ring so deep; the network takes nothing for rank 1 from rank 0. */
static uint64_t *up_deep(struct mp *mp, enum gi_fault_peer how, uint32_t depth, uint64_t limit_ns)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = GIN_BACKEND_ENGINE;
    reqs.queue_depth = depth;
    reqs.wait_timeout_ns = limit_ns;
    if (!mp_net(mp, &reqs))
        return NULL;
    uint64_t *words = gin_calloc(mp->comm, PUTS + 2, 8);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 0)
        gi_fault_peer(mp->comm->net->domains[0], 1, how);
    return words;
}

static uint64_t *up(struct mp *mp, enum gi_fault_peer how)
{
    return up_deep(mp, how, 16, 0);
}

static int put(const gin_t *g, int peer, uint64_t *at, uint64_t value)
{
    return gin_put_value(g, gin_thread(), gin_world(g), peer, gin_at_ptr(g, at), value, 8,
                         gin_no_action());
}

struct flood {
    gin_t g;
    uint64_t *words;
    uint32_t puts; /* then a fence, a put, and an atomic */
    int status;
    uint64_t old;
    char why[200];
};

static void *flood(void *arg)
{
    struct flood *f = arg;
    gin_team_t w = gin_world(&f->g);
    int st = GIN_OK;
    for (uint64_t i = 0; st == GIN_OK && i < f->puts; i++)
        st = put(&f->g, 1, &f->words[i], i + 1);
    if (st == GIN_OK)
        st = gin_fence(&f->g, gin_thread(), w, 1);
    if (st == GIN_OK)
        st = put(&f->g, 1, &f->words[0], 77);
    if (st == GIN_OK)
        st = gin_amo_fetch_add(&f->g, gin_thread(), w, 1, gin_at_ptr(&f->g, &f->words[PUTS]), 5,
                               &f->old);
    if (st != GIN_OK)
        snprintf(f->why, sizeof(f->why), "%.190s", gin_last_error());
    f->status = st;
    return NULL;
}

/* The peer has something parked, and so has the ring. */
static bool parked(const struct mp *mp, bool crowded)
{
    const struct gi_devcomm *d = mp->g.dc->priv;
    struct gi_net_ring *x = &d->rings[0];
    bool yes = false;
    for (int i = 0; i < 30000 * MP_FACTOR && !yes; i++) {
        usleep(1000);
        gi_core_enter(x->ctx);
        yes = x->peers[1].first != NULL && x->oldest != NULL &&
              (!crowded || atomic_load(&x->peers[1].crowded) != 0);
        gi_core_leave(x->ctx);
    }
    return EXPECT(yes);
}

/* What goes to rank 2 meanwhile, behind a fence of all; a wait for what went to rank 1 is not
 * over. */
static void go_on(struct mp *mp, uint64_t *words)
{
    gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_request_t here, there;
    uint64_t old = 0;
    EXPECT_OK(gin_flush_async(g, gin_thread(), w, 1, &there));
    for (uint64_t i = 0; i < PUTS; i++)
        EXPECT_OK(put(g, 2, &words[i], i + 1));
    EXPECT_OK(gin_flush_async(g, gin_thread(), w, 2, &here));
    EXPECT_OK(gin_wait(g, gin_thread(), &here));
    EXPECT_OK(gin_flush_peer(g, gin_thread(), w, 2));
    EXPECT_OK(gin_fence_all(g, gin_thread()));
    EXPECT_OK(put(g, 2, &words[0], 78));
    EXPECT_OK(gin_amo_fetch_add(g, gin_thread(), w, 2, gin_at_ptr(g, &words[PUTS]), 6, &old));
    EXPECT_EQ_U64(old, 0);
    EXPECT_OK(gin_flush_peer(g, gin_thread(), w, 2));
    EXPECT_EQ_INT(gin_test(g, gin_thread(), &there), GIN_EAGAIN);
    EXPECT_OK(gin_test(g, gin_thread(), &here));
}

static void one_is_stuck(struct mp *mp)
{
    struct flood f = {.puts = PUTS};
    pthread_t thread;
    uint64_t *words = up(mp, GI_FAULT_PEER_AGAIN);
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        f.g = mp->g;
        f.words = words;
        pthread_create(&thread, NULL, flood, &f);
        if (parked(mp, true))
            go_on(mp, words);
        gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
        pthread_join(thread, NULL);
        EXPECT_EQ_STR(f.why, "");
        EXPECT_EQ_U64(f.old, 0);
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; mp->rank != 0 && i < PUTS; i++)
        EXPECT_EQ_U64(words[i], i == 0 ? 76 + (uint64_t)mp->rank : i + 1);
    if (mp->rank != 0)
        EXPECT_EQ_U64(words[PUTS], 4 + (uint64_t)mp->rank);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(others_go_on_when_one_is_stuck, .ranks = "3", .hosts = "ABC", .env = SPOILT)
{
    one_is_stuck(mp);
}

MP_TEST_OPT(others_go_on_with_engine_threads, .ranks = "3", .hosts = "ABC",
            .env = SPOILT " GINSHMEM_ENGINE_THREADS=3")
{
    one_is_stuck(mp);
}

/* The context dies of another descriptor: who waits for a parked one learns it. */
static void dies(struct mp *mp, uint32_t puts, bool crowded)
{
    struct flood f = {.puts = puts};
    pthread_t thread;
    uint64_t *words = up(mp, GI_FAULT_PEER_AGAIN);
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        const struct gi_devcomm *d = mp->g.dc->priv;
        struct gin_i_op bad = {.op = 13, .peer = 2};
        f.g = mp->g;
        f.words = words;
        pthread_create(&thread, NULL, flood, &f);
        if (parked(mp, crowded))
            EXPECT_OK(gi_net_ring_post(&d->rings[0], &bad, "test"));
        pthread_join(thread, NULL);
        EXPECT_EQ_INT(f.status, GIN_EINVAL);
        EXPECT_FAILS(gin_flush_peer(&mp->g, gin_thread(), gin_world(&mp->g), 1), GIN_EINVAL,
                     "is dead");
        gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
    }
    mp_barrier(mp);
}

MP_TEST_OPT(parked_ones_die_with_their_context, .ranks = "3", .hosts = "ABC", .env = SPOILT)
{
    dies(mp, 140, false);
}

MP_TEST_OPT(producers_of_a_crowded_peer_hear_of_the_end, .ranks = "3", .hosts = "ABC",
            .env = SPOILT)
{
    dies(mp, PUTS, true);
}

/* Who waits for room in a ring that dies meanwhile has posted nothing: a dead one has room. */
MP_TEST_OPT(nobody_posts_into_a_dead_ring, .ranks = "2", .hosts = "AB", .env = SPOILT)
{
    struct flood f = {.puts = 1};
    pthread_t thread;
    uint64_t *words = up(mp, GI_FAULT_PEER_WELL);
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        const struct gi_devcomm *d = mp->g.dc->priv;
        struct gi_net_ring *x = &d->rings[0];
        struct gin_i_op op = {.op = 13, .peer = 1};
        gi_core_enter(x->ctx); /* nobody takes anything */
        for (uint32_t i = 0; i < x->ring.depth; i++, op.op = GIN_I_DESC_NOP)
            EXPECT_OK(gi_net_ring_post(x, &op, "test"));
        uint64_t full = gi_net_ring_mark(x);
        f.g = mp->g;
        f.words = words;
        pthread_create(&thread, NULL, flood, &f);
        usleep(5000);
        gi_core_leave(x->ctx);
        pthread_join(thread, NULL);
        EXPECT_EQ_INT(f.status, GIN_EINVAL);
        EXPECT_HAS(f.why, "gin_put_value: context 0 is dead");
        EXPECT_EQ_U64(gi_net_ring_mark(x), full);
    }
    mp_barrier(mp);
}

/* ---- a ring with room for all of it ---- */

#define DEEP  1024u
#define SOME  80u  /* parked of them, more than a turn's worth; how many the network has, varies */
#define ROOMY 220u /* the peer is not yet crowded */

static struct gi_net_ring *ring_of(const struct mp *mp)
{
    const struct gi_devcomm *d = mp->g.dc->priv;
    return &d->rings[0];
}

/* So many are parked for rank 1, now. */
static bool so_many(const struct mp *mp, uint32_t least)
{
    struct gi_net_ring *x = ring_of(mp);
    uint32_t n = 0;
    for (int i = 0; i < 30000 * MP_FACTOR && n < least; i++) {
        usleep(1000);
        gi_core_enter(x->ctx);
        n = x->peers[1].parked;
        gi_core_leave(x->ctx);
    }
    return EXPECT(n >= least);
}

/* The network takes something again while more than a turn's worth is parked, and more comes. */
static void writes_in_order(struct mp *mp, uint64_t *words)
{
    struct gi_net_ring *x = ring_of(mp);
    uint64_t i = 0;
    while (i < ROOMY)
        EXPECT_OK(put(&mp->g, 1, words, ++i));
    if (!so_many(mp, SOME))
        return;
    gi_core_enter(x->ctx);
    gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
    while (i < ROOMY + 20)
        EXPECT_OK(put(&mp->g, 1, words, ++i));
    gi_core_leave(x->ctx);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
}

MP_TEST_OPT(parked_ones_keep_their_order, .ranks = "3", .hosts = "ABC", .env = SPOILT)
{
    uint64_t *words = up_deep(mp, GI_FAULT_PEER_AGAIN, DEEP, 0);
    if (words == NULL)
        return;
    if (mp->rank == 0)
        writes_in_order(mp, words);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 1)
        EXPECT_EQ_U64(words[0], ROOMY + 20);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Nothing of a context that was flushed is parked, or under way. */
MP_TEST_OPT(flush_waits_for_parked_ones, .ranks = "3", .hosts = "ABC", .env = SPOILT)
{
    uint64_t *words = up_deep(mp, GI_FAULT_PEER_AGAIN, DEEP, 0);
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        struct gi_net_ring *x = ring_of(mp);
        for (uint64_t i = 0; i < ROOMY; i++)
            EXPECT_OK(put(&mp->g, 1, &words[i], i + 1));
        so_many(mp, SOME);
        gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
        EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        gi_core_enter(x->ctx);
        EXPECT(x->oldest == NULL && !x->holds);
        EXPECT_EQ_INT(gi_core_flushed(x->ctx, gi_core_mark(x->ctx)), 1);
        gi_core_leave(x->ctx);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* A fence of all has a place for each peer: behind what is parked for it. */
MP_TEST_OPT(fences_go_behind_parked_ones, .ranks = "3", .hosts = "ABC", .env = SPOILT)
{
    uint64_t *words = up_deep(mp, GI_FAULT_PEER_AGAIN, DEEP, 0);
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        struct gi_net_ring *x = ring_of(mp);
        bool last = false;
        for (uint64_t i = 0; i < ROOMY; i++)
            EXPECT_OK(put(&mp->g, 1, &words[i], i + 1));
        so_many(mp, SOME);
        EXPECT_OK(gin_fence_all(&mp->g, gin_thread()));
        for (int i = 0; i < 20000 * MP_FACTOR && !last; i++) {
            usleep(1000);
            gi_core_enter(x->ctx);
            last = x->peers[1].last != NULL && x->peers[1].last->op.op == GIN_I_DESC_FENCE;
            gi_core_leave(x->ctx);
        }
        EXPECT(last);
        gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; mp->rank == 1 && i < ROOMY; i++)
        EXPECT_EQ_U64(words[i], i + 1);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Memory that is lent for one operation passes the ring by, and is waited for all the same. */
MP_TEST_OPT(flush_waits_for_what_passed_by, .ranks = "3", .hosts = "ABC", .env = SPOILT ",local=1")
{
    static char src[4096];
    uint64_t *words = up(mp, GI_FAULT_PEER_AGAIN);
    gin_request_t there;
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        gin_t *g = &mp->g;
        gin_team_t w = gin_world(g);
        EXPECT_OK(gin_put(g, gin_thread(), w, 1, gin_at_ptr(g, words), gin_at_local(src),
                          PUTS * sizeof(*words), gin_no_action()));
        EXPECT_OK(gin_flush_async(g, gin_thread(), w, 1, &there));
        EXPECT_EQ_INT(gin_test(g, gin_thread(), &there), GIN_EAGAIN);
        gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
        EXPECT_OK(gin_wait(g, gin_thread(), &there));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* ... and goes to the network behind what the ring still has for that peer. */
MP_TEST_OPT(what_passes_by_stays_behind, .ranks = "3", .hosts = "ABC", .env = SPOILT ",local=1")
{
    static char src[ROOMY * sizeof(uint64_t)];
    uint64_t *words = up_deep(mp, GI_FAULT_PEER_AGAIN, DEEP, 200000000);
    int st;
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        gin_t *g = &mp->g;
        for (uint64_t i = 0; i < ROOMY; i++)
            EXPECT_OK(put(g, 1, &words[i], i + 1));
        so_many(mp, SOME);
        EXPECT_FAILS(gin_put(g, gin_thread(), gin_world(g), 1, gin_at_ptr(g, words),
                             gin_at_local(src), sizeof(src), gin_no_action()),
                     GIN_ETIMEDOUT, "not complete");
        gi_fault_peer(mp->comm->net->domains[0], 1, GI_FAULT_PEER_WELL);
        do
            st = gin_quiet(g, gin_thread());
        while (st == GIN_ETIMEDOUT);
        EXPECT_OK(st);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; mp->rank == 1 && i < ROOMY; i++)
        EXPECT_EQ_U64(words[i], i + 1);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Nobody empties the ring for longer than its owner waits: that put was not done, and that is all.
 */
MP_TEST_OPT(who_finds_no_room_harms_nobody, .ranks = "3", .hosts = "ABC", .env = SPOILT)
{
    const uint32_t depth = 16;
    uint64_t *words = up_deep(mp, GI_FAULT_PEER_WELL, depth, 200000000);
    int st = GIN_ETIMEDOUT;
    if (words == NULL)
        return;
    if (mp->rank == 0) {
        struct gi_net_ring *x = ring_of(mp);
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
        gi_core_enter(x->ctx);
        for (uint32_t i = 0; i < depth; i++)
            EXPECT_OK(put(&mp->g, 2, &words[i], i + 1));
        EXPECT_FAILS(put(&mp->g, 2, words, 99), GIN_ETIMEDOUT, "no room");
        EXPECT_FAILS(put(&mp->g, 1, words, 99), GIN_ETIMEDOUT, "no room");
        gi_core_leave(x->ctx);
        EXPECT_OK(put(&mp->g, 2, &words[depth], depth + 1));
        while (st == GIN_ETIMEDOUT)
            st = gin_quiet(&mp->g, gin_thread());
        EXPECT_OK(st);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; i <= depth; i++)
        EXPECT_EQ_U64(words[i], mp->rank == 2 ? i + 1 : 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
