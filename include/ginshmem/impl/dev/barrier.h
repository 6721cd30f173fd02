/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of barrier.h in kernels. Arriving stores the round into my word of every member's
 * inbox, waiting polls mine; lanes of the leader's warp share the members out. All arrivals are
 * stored before the first wait. The state of an index is claimed by one atomic, which also brings
 * the round, so that entering costs one access of GPU memory, and it goes on while the group's
 * stores drain. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_BARRIER_H
#define GINSHMEM_IMPL_DEV_BARRIER_H

#include <ginshmem/impl/dev/amo.h>

/* struct gin_i_round.state */
#define GIN_I_ROUND_INSIDE  1u
#define GIN_I_ROUND_ARRIVED 2u
#define GIN_I_ROUND_BUSY    ((uint64_t)1 << 63) /* among lanes: the engine has something to do */

#define GIN_I_BARRIER_POLLS 64 /* before a wait leaves the inlined code */

/* What a call does of a barrier. */
#define GIN_I_BARRIER_ARRIVE 1
#define GIN_I_BARRIER_WAIT   2

/* A pool in registers; a line of constants, read whole, so that a loop keeps it there. */
GIN_DEV struct gin_i_pool gin_i_pool_read(const struct gin_i_pool *p)
{
    struct gin_i_pool v;
    struct gin_i_48 line = gin_i_nc_384(p);
    v.count = (uint32_t)line.a.a;
    v.n = (uint32_t)(line.a.a >> 32);
    v.me = (uint32_t)line.a.b;
    v.beyond = (int32_t)(line.a.b >> 32);
    v.slot = line.b.a;
    v.peers = (const uint64_t *)line.b.b;
    v.rounds = (struct gin_i_round *)line.c.a;
    v.multimem = line.c.b;
    v.world_of = NULL;
    v.net = 0;
    return v;
}

/* The same verdict in all lanes. */
GIN_DEV int gin_i_pool_find(const gin_t *g, gin_barrier_t which, uint32_t index,
                            struct gin_i_pool *pool)
{
    const struct gin_i_barriers *b = (const struct gin_i_barriers *)gin_i_nc_u64(&g->dc->barriers);
    const struct gin_i_pool *p;
    if (GIN_UNLIKELY(b == NULL))
        return GIN_ERANGE;
    if (which.kind < GIN_BARRIER_TEAM)
        p = &b->fixed[which.kind];
    else if (which.kind == GIN_BARRIER_TEAM && which.place < gin_i_nc_u32(&b->n_teams))
        p = (const struct gin_i_pool *)gin_i_nc_u64(&b->teams) + which.place;
    else
        return GIN_EINVAL;
    *pool = gin_i_pool_read(p);
    if (GIN_LIKELY((index < pool->count) & (pool->n != 0) & (pool->beyond < 0)))
        return GIN_OK;
    if (GIN_UNLIKELY(index >= pool->count))
        return GIN_ERANGE;
    if (GIN_UNLIKELY(pool->n == 0))
        return GIN_ESTATE;
    pool->net = gin_i_nc_u64(&p->net);
    pool->world_of = (const int32_t *)gin_i_nc_u64(&p->world_of);
    return pool->net == 0 ? GIN_ENOTSUP : GIN_OK;
}

/* The member `i` places to the right of me. */
GIN_DEV uint32_t gin_i_member(const struct gin_i_pool *p, uint32_t i)
{
    uint32_t r = p->me + i;
    return r < p->n ? r : r - p->n;
}

/* By lanes that have members; `to`: the inboxes of the first, in a hurry. */
GIN_DEV void gin_i_barrier_arrive(const struct gin_i_pool *p, const struct gin_i_group *q,
                                  uint64_t row, uint64_t to, uint64_t round)
{
#if GIN_I_MULTIMEM
    if (p->multimem != 0) { /* one store for all; my own word, which nobody reads, gets it too */
        if (q->lane == 0)
            gin_i_mm_st64((uint64_t *)(p->multimem + row) + p->me, round);
        return;
    }
#endif
    gin_i_st_relaxed_sys((uint64_t *)(to + row) + p->me, round);
#pragma unroll 1
    for (uint32_t i = q->lane + 1 + q->lanes; i < p->n; i += q->lanes) {
        to = gin_i_nc_u64(&p->peers[gin_i_member(p, i)]);
        gin_i_st_relaxed_sys((uint64_t *)(to + row) + p->me, round);
    }
}

/* For long. also: the error word of the context that the arrivals take, or NULL. */
GIN_DEV_CALL int gin_i_barrier_wait_long(const uint64_t *word, uint64_t round,
                                         const uint64_t *error, const uint64_t *also,
                                         uint64_t timeout_ns, int poll)
{
    struct gin_i_pause pause = gin_i_pause_begin(error, also, timeout_ns);
    int st = GIN_OK;
    while (gin_i_ld_relaxed_sys(word) < round) {
        if (poll)
            return GIN_EAGAIN;
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        st = gin_i_pause_step(&pause, 1);
    }
    return GIN_OK;
}

GIN_DEV int gin_i_barrier_soon(const uint64_t *word, uint64_t round, uint32_t polls)
{
#pragma unroll 1
    for (; polls != 0; polls--)
        if (gin_i_ld_relaxed_sys(word) >= round)
            return 1;
    return 0;
}

GIN_DEV uint64_t gin_i_barrier_deadline(const gin_t *g, const gin_wait_opt_t *opt)
{
    return opt != NULL && opt->timeout_ns != 0 ? opt->timeout_ns
                                               : gin_i_nc_u64(&g->dc->barrier_timeout_ns);
}

/* What a call asks for. */
struct gin_i_barrier_call {
    uint32_t index;
    int what, acquire, release;
    int complete; /* what the engine has still to do: 2 puts, 1 gets, 0 nothing */
    const gin_wait_opt_t *opt;
};

/* A member's word may be a round ahead, never behind one that I finished. */
GIN_DEV int gin_i_barrier_wait(const gin_t *g, const struct gin_i_pool *p,
                               const struct gin_i_group *q, const uint64_t *inbox, uint64_t round,
                               const struct gin_i_barrier_call *c)
{
    int st = GIN_OK;
#pragma unroll 1
    for (uint32_t i = q->lane + 1; st == GIN_OK && i < p->n; i += q->lanes) {
        const uint64_t *word = inbox + gin_i_member(p, i);
        int poll = gin_i_dev_poll(c->opt);
        if (GIN_UNLIKELY(!gin_i_barrier_soon(word, round, poll ? 1 : GIN_I_BARRIER_POLLS)))
            st = gin_i_barrier_wait_long(word, round, gin_i_error_word(g), NULL,
                                         gin_i_barrier_deadline(g, c->opt), poll);
        if (c->acquire)
            gin_i_ld_acquire_sys(word);
    }
    return st;
}

/* What the engine has to finish first; then the arrivals' release begins anew. Who only looks, or
 * has waited too long, has not arrived yet. */
GIN_DEV int gin_i_barrier_complete(const gin_t *g, const struct gin_i_group *q,
                                   const struct gin_i_barrier_call *c, int release)
{
    gin_wait_opt_t opt = {gin_i_barrier_deadline(g, c->opt), 0, (uint32_t)gin_i_dev_poll(c->opt)};
    int st = GIN_OK;
    if (q->lane == 0)
        st = gin_i_complete_now(g, c->complete > 1 ? GIN_I_QUIET : GIN_I_FLUSH, &opt);
    st = gin_i_group_status(q, st);
    if (release)
        gin_i_fence_sys();
    return st;
}

/*
 * Anything but a round that begins with nothing in its way. `was`: the state as it was claimed,
 * with what the engine has to do. *arrived: the arrivals of this round stand. A failure leaves the
 * state as it was.
 */
GIN_DEV int gin_i_barrier_odd(const gin_t *g, const struct gin_i_group *q, uint64_t *state,
                              uint64_t was, const struct gin_i_barrier_call *c, int release,
                              int *arrived)
{
    int st = GIN_OK, busy = (was & GIN_I_ROUND_BUSY) != 0;
    *arrived = (was & GIN_I_ROUND_ARRIVED) != 0;
    was &= ~GIN_I_ROUND_BUSY;
    if (GIN_UNLIKELY(was & GIN_I_ROUND_INSIDE))
        return GIN_ESTATE;
    /* the halves come one after the other */
    if (GIN_UNLIKELY(c->what == (*arrived ? GIN_I_BARRIER_ARRIVE : GIN_I_BARRIER_WAIT)))
        st = GIN_ESTATE;
    else if (busy && !*arrived)
        st = gin_i_barrier_complete(g, q, c, release);
    if (GIN_UNLIKELY(st != GIN_OK) && q->lane == 0)
        gin_i_st_relaxed_gpu(state, was);
    return st;
}

/*
 * The state as it was before it was claimed, and whether the engine has something to do; with a
 * release of what comes after it. What has to be read is on its way while that fence lasts. Of all
 * contexts each lane looks at some; a ring that is settled as GPU memory knows it needs no engine.
 */
GIN_DEV uint64_t gin_i_barrier_claim(const gin_t *g, const struct gin_i_group *q, uint64_t *state,
                                     const struct gin_i_barrier_call *c, int release)
{
    uint64_t was = 0, busy = 0;
    struct gin_i_16 posted = {0, 0};
    const int all = c->complete && g->ring == NULL && gin_i_has_rings(g);
    const struct gin_i_ring *ring = q->lane == 0 ? g->ring : NULL;
    if (q->lane == 0)
        was = gin_i_atom_or_gpu(state, GIN_I_ROUND_INSIDE);
    if (all)
        ring = gin_i_nth_ring(g->dc, q->lane);
    if (c->complete && ring != NULL)
        posted = gin_i_ld128_relaxed_gpu(&ring->ticket);
    if (all) /* where there are more contexts than lanes */
        busy = gin_i_rings_busy(g->dc, q->lane + q->lanes, q->lanes);
    /* where nobody is to be told, puts are to be complete all the same */
    if (release || (c->complete > 1 && (q->lane == 0 || all)))
        gin_i_fence_sys();
    else if (c->complete && (q->lane == 0 || all)) /* what another block saw complete */
        gin_i_fence_gpu();                         /* is so for this one */
    uint64_t zero = gin_i_zero_from_here();
    was |= zero;
    busy |= (posted.a | zero) ^ posted.b;
    if (all)
        busy = (uint64_t)gin_i_group_or(q, busy != 0);
    if (busy != 0)
        was |= GIN_I_ROUND_BUSY;
    return gin_i_group_share(q, was);
}

/* ---- over the network ---- */

/* The ring that arrivals take: where all contexts are meant, any will do. */
GIN_DEV struct gin_i_ring *gin_i_barrier_ring(const gin_t *g)
{
    if (g->ring != NULL || !(g->flags & GIN_I_DC_ALL))
        return g->ring;
    const struct gin_i_ctx *first = (const struct gin_i_ctx *)gin_i_nc_u64(&g->dc->ctx);
    return (struct gin_i_ring *)gin_i_nc_u64(&first->ring);
}

/* Tell the rank 2^step further on. What I have heard of goes along. */
GIN_DEV int gin_i_barrier_tell(const gin_t *g, struct gin_i_ring *ring, const struct gin_i_pool *p,
                               uint64_t row, uint32_t step, uint64_t round)
{
    uint32_t to = (uint32_t)((p->me + ((uint64_t)1 << step)) % p->n);
    uint64_t slot = gin_i_nc_u64(&p->peers[to]);
    if (slot != 0) {
        gin_i_st_release_sys((uint64_t *)(slot + row) + step, round);
        return GIN_OK;
    }
    struct gin_i_op o;
    gin_i_op_begin(&o, GIN_I_DESC_SIGNAL, (int)gin_i_nc_u32(&p->world_of[to]));
    o.flags = GIN_I_DESC_ADD_AT;
    o.value = 1;
    o.sig_win = (uint32_t)p->net;
    o.sig_off = p->multimem + row + 8 * (uint64_t)step;
    return ring == NULL ? (int)GIN_ENOTSUP
                        : gin_i_ring_post(ring, gin_i_error_word(g), &o, 1, NULL);
}

/* By the leader: all steps, from the first one that is not known to be over. */
GIN_DEV int gin_i_barrier_steps(const gin_t *g, const struct gin_i_pool *p, uint64_t row,
                                uint64_t round, uint64_t *told, const struct gin_i_barrier_call *c)
{
    const uint64_t *inbox = (const uint64_t *)(gin_i_nc_u64(&p->peers[p->me]) + row);
    uint32_t steps = (uint32_t)(p->net >> 32), n = (uint32_t)gin_i_ld_relaxed_gpu(told);
    struct gin_i_ring *ring = gin_i_barrier_ring(g);
    const uint64_t *dead = ring != NULL ? &ring->host->error : NULL; /* then nobody is told */
    int st = GIN_OK, poll = gin_i_dev_poll(c->opt);
#pragma unroll 1
    for (uint32_t k = 0; st == GIN_OK && k < steps; k++) {
        if (n <= k) {
            st = gin_i_barrier_tell(g, ring, p, row, k, round);
            n += st == GIN_OK;
        }
        if (st == GIN_OK && !gin_i_barrier_soon(inbox + k, round, poll ? 1 : GIN_I_BARRIER_POLLS))
            st = gin_i_barrier_wait_long(inbox + k, round, gin_i_error_word(g), dead,
                                         gin_i_barrier_deadline(g, c->opt), poll);
        gin_i_ld_acquire_sys(inbox + k);
    }
    gin_i_st_relaxed_gpu(told, st == GIN_OK ? 0 : n);
    return st;
}

/* By the lanes of the leader's warp: where a member is beyond loads and stores. */
GIN_DEV_CALL int gin_i_barrier_far_of(const gin_t *g, const struct gin_i_group *q,
                                      const struct gin_i_pool *p,
                                      const struct gin_i_barrier_call *c)
{
    const uint64_t odd = GIN_I_ROUND_BUSY | GIN_I_ROUND_ARRIVED | GIN_I_ROUND_INSIDE;
    struct gin_i_round *r = &p->rounds[c->index];
    int st = GIN_OK, arrived = 0;
    if (GIN_UNLIKELY(c->what != (GIN_I_BARRIER_ARRIVE | GIN_I_BARRIER_WAIT)))
        return GIN_ENOTSUP;
    uint64_t was = gin_i_barrier_claim(g, q, &r->state, c, c->release);
    if (GIN_UNLIKELY((was & odd) != 0)) {
        st = gin_i_barrier_odd(g, q, &r->state, was, c, c->release, &arrived);
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
    }
    uint64_t round = ((was & ~GIN_I_ROUND_BUSY) >> 2) + !arrived;
    if (q->lane == 0)
        st = gin_i_barrier_steps(g, p, c->index * p->slot, round, &r->told, c);
    st = gin_i_group_worst(q, st);
    if (q->kind != GIN_GROUP_THREAD)
        __syncwarp(q->mask); /* the leader's state, below, opens the next round */
    if (q->lane == 0)
        gin_i_st_relaxed_gpu(&r->state, round << 2 | (st != GIN_OK ? GIN_I_ROUND_ARRIVED : 0u));
    return st;
}

/* With copies: what a function gets the address of is kept in memory, on the near way, too. */
GIN_DEV int gin_i_barrier_far(const gin_t *g, const struct gin_i_group *q,
                              const struct gin_i_pool *p, const struct gin_i_barrier_call *c)
{
    gin_t bound = *g;
    struct gin_i_group group = *q;
    struct gin_i_pool pool = *p;
    struct gin_i_barrier_call call = *c;
    return gin_i_barrier_far_of(&bound, &group, &pool, &call);
}

/* ---- the calls ---- */

/* By the lanes of the leader's warp: the whole of it. The release is a fence of the storing lanes.
 */
GIN_DEV int gin_i_barrier_run(const gin_t *g, const struct gin_i_group *q,
                              const struct gin_i_pool *p, const struct gin_i_barrier_call *c)
{
    const uint64_t odd = GIN_I_ROUND_BUSY | GIN_I_ROUND_ARRIVED | GIN_I_ROUND_INSIDE;
    uint64_t *state = &p->rounds[c->index].state;
    int more = q->lane + 1 < p->n, st = GIN_OK, arrived = 0;
    uint64_t to = gin_i_nc_u64(&p->peers[more ? gin_i_member(p, q->lane + 1) : p->me]);
    uint64_t inbox = gin_i_nc_u64(&p->peers[p->me]), row = c->index * p->slot;
    int arriving = more && c->release && (c->what & GIN_I_BARRIER_ARRIVE);
    uint64_t was = gin_i_barrier_claim(g, q, state, c, arriving);
    if (GIN_UNLIKELY((was & odd) != 0 || !(c->what & GIN_I_BARRIER_ARRIVE))) {
        st = gin_i_barrier_odd(g, q, state, was, c, arriving, &arrived);
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
    }
    uint64_t round = ((was & ~GIN_I_ROUND_BUSY) >> 2) + !arrived;
    if (more && !arrived)
        gin_i_barrier_arrive(p, q, row, to, round);
    if (c->what & GIN_I_BARRIER_WAIT)
        st = gin_i_group_worst(
            q, gin_i_barrier_wait(g, p, q, (const uint64_t *)(inbox + row), round, c));
    if (q->kind != GIN_GROUP_THREAD)
        __syncwarp(q->mask); /* the leader's state, below, opens the next round */
    int open = !(c->what & GIN_I_BARRIER_WAIT) || st != GIN_OK;
    if (q->lane == 0)
        gin_i_st_relaxed_gpu(state, round << 2 | (open ? GIN_I_ROUND_ARRIVED : 0u));
    return st;
}

GIN_DEV int gin_i_dev_barrier(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                              gin_order_t order, unsigned fence, int what,
                              const gin_wait_opt_t *opt)
{
    struct gin_i_group q, warp;
    struct gin_i_pool pool;
    int st = gin_i_dev_enter(g, grp, 1, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_UNLIKELY(fence > GIN_FENCE_NONE || (unsigned)order > GIN_ORDER_ACQ_REL))
        return GIN_EINVAL;
    st = gin_i_pool_find(g, which, index, &pool);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int puts = fence == GIN_FENCE_ALL || (fence & GIN_FENCE_PUT);
    int gets = fence == GIN_FENCE_ALL || (fence & GIN_FENCE_GET);
    /* over load and store the arrivals' release completes puts, and gets are complete */
    struct gin_i_barrier_call c = {index,
                                   what,
                                   puts || (order & GIN_ORDER_ACQUIRE) != 0,
                                   puts || (order & GIN_ORDER_RELEASE) != 0,
                                   puts   ? 2
                                   : gets ? 1
                                          : 0,
                                   opt};
    gin_i_group_sync(&q);
    if (gin_i_group_helpers(&q, &warp))
        st = GIN_LIKELY(pool.net == 0) ? gin_i_barrier_run(g, &warp, &pool, &c)
                                       : gin_i_barrier_far(g, &warp, &pool, &c);
    return gin_i_group_is_wide(&q) ? gin_i_group_status(&q, q.lane == 0 ? st : GIN_OK) : st;
}

GIN_OP int gin_barrier(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                       gin_order_t order, unsigned fence)
{
    return gin_i_dev_barrier(g, grp, which, index, order, fence,
                             GIN_I_BARRIER_ARRIVE | GIN_I_BARRIER_WAIT, NULL);
}

GIN_OP int gin_barrier_x(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                         gin_order_t order, unsigned fence, const gin_wait_opt_t *opt)
{
    return gin_i_dev_barrier(g, grp, which, index, order, fence,
                             GIN_I_BARRIER_ARRIVE | GIN_I_BARRIER_WAIT, opt);
}

GIN_OP int gin_lsa_arrive(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order)
{
    return gin_i_dev_barrier(g, grp, gin_barrier_lsa(), index, order, GIN_FENCE_NONE,
                             GIN_I_BARRIER_ARRIVE, NULL);
}

GIN_OP int gin_lsa_wait(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order,
                        const gin_wait_opt_t *opt)
{
    return gin_i_dev_barrier(g, grp, gin_barrier_lsa(), index, order, GIN_FENCE_NONE,
                             GIN_I_BARRIER_WAIT, opt);
}

#endif
