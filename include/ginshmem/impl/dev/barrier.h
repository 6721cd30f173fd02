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

/* What a call does of a barrier. */
#define GIN_I_BARRIER_ARRIVE 1
#define GIN_I_BARRIER_WAIT   2

/* A pool in registers; a line of constants. */
GIN_DEV struct gin_i_pool gin_i_pool_read(const struct gin_i_pool *p)
{
    struct gin_i_pool v;
    struct gin_i_16 a = gin_i_nc_128(&p->count), b = gin_i_nc_128(&p->slot);
    v.count = (uint32_t)a.a;
    v.n = (uint32_t)(a.a >> 32);
    v.me = (uint32_t)a.b;
    v.beyond = (int32_t)(a.b >> 32);
    v.slot = b.a;
    v.peers = (const uint64_t *)b.b;
    v.rounds = (struct gin_i_round *)gin_i_nc_u64(&p->rounds);
    v.world_of = NULL;
    return v;
}

/* The same verdict in all lanes. */
GIN_DEV int gin_i_pool_find(const gin_t *g, gin_barrier_t which, uint32_t index,
                            struct gin_i_pool *pool)
{
    const struct gin_i_barriers *b = (const struct gin_i_barriers *)gin_i_nc_u64(&g->dc->barriers);
    const struct gin_i_pool *p;
    if (b == NULL)
        return GIN_ERANGE;
    if (which.kind < GIN_BARRIER_TEAM)
        p = &b->fixed[which.kind];
    else if (which.kind == GIN_BARRIER_TEAM && which.place < gin_i_nc_u32(&b->n_teams))
        p = (const struct gin_i_pool *)gin_i_nc_u64(&b->teams) + which.place;
    else
        return GIN_EINVAL;
    *pool = gin_i_pool_read(p);
    if (GIN_UNLIKELY(index >= pool->count))
        return GIN_ERANGE;
    if (GIN_UNLIKELY(pool->n == 0))
        return GIN_ESTATE;
    return GIN_UNLIKELY(pool->beyond >= 0) ? GIN_ENOTSUP : GIN_OK;
}

/* Word of member `from` in the inbox of member `of`. */
GIN_DEV uint64_t *gin_i_inbox(const struct gin_i_pool *p, uint32_t index, uint32_t of,
                              uint32_t from)
{
    return (uint64_t *)(gin_i_nc_u64(&p->peers[of]) + index * p->slot) + from;
}

/* By the lanes of one warp, each its members, from my right-hand neighbour on. */
GIN_DEV void gin_i_barrier_arrive(const struct gin_i_pool *p, const struct gin_i_group *q,
                                  uint32_t index, uint64_t round)
{
    for (uint32_t i = q->lane + 1; i < p->n; i += q->lanes) {
        uint32_t r = p->me + i;
        gin_i_st_relaxed_sys(gin_i_inbox(p, index, r < p->n ? r : r - p->n, p->me), round);
    }
}

/* A member's word may be a round ahead, never behind one that I finished. */
GIN_DEV int gin_i_barrier_wait(const struct gin_i_pool *p, const struct gin_i_group *q,
                               uint32_t index, uint64_t round, int acquire,
                               struct gin_i_pause *pause, int poll)
{
    int st = GIN_OK;
    for (uint32_t i = q->lane + 1; i < p->n; i += q->lanes) {
        uint32_t r = p->me + i;
        const uint64_t *word = gin_i_inbox(p, index, p->me, r < p->n ? r : r - p->n);
        while (gin_i_ld_relaxed_sys(word) < round) {
            if (poll)
                return GIN_EAGAIN;
            if (GIN_UNLIKELY(st != GIN_OK))
                return st;
            st = gin_i_pause_step(pause, 1);
        }
        if (acquire)
            gin_i_ld_acquire_sys(word);
    }
    return GIN_OK;
}

GIN_DEV uint64_t gin_i_barrier_deadline(const gin_t *g, const gin_wait_opt_t *opt)
{
    return opt != NULL && opt->timeout_ns != 0 ? opt->timeout_ns
                                               : gin_i_nc_u64(&g->dc->barrier_timeout_ns);
}

/*
 * By the lanes of the leader's warp: the whole of it. The release is a fence of the storing lanes,
 * which goes on while the claim is on its way.
 */
GIN_DEV int gin_i_barrier_run(const gin_t *g, const struct gin_i_group *q,
                              const struct gin_i_pool *p, uint32_t index, int what,
                              gin_order_t order, const gin_wait_opt_t *opt)
{
    uint64_t *state = &p->rounds[index].state, was = 0;
    if (q->lane == 0)
        was = gin_i_atom_or_gpu(state, GIN_I_ROUND_INSIDE);
    if ((order & GIN_ORDER_RELEASE) && (what & GIN_I_BARRIER_ARRIVE) && q->lane + 1 < p->n)
        gin_i_fence_sys();
    was = gin_i_group_share(q, was);
    int arrived = (was & GIN_I_ROUND_ARRIVED) != 0, st = GIN_OK;
    uint64_t round = (was >> 2) + !arrived;
    if (GIN_UNLIKELY(was & GIN_I_ROUND_INSIDE))
        return GIN_ESTATE;
    /* the halves come one after the other */
    if (GIN_UNLIKELY(what == (arrived ? GIN_I_BARRIER_ARRIVE : GIN_I_BARRIER_WAIT))) {
        if (q->lane == 0)
            gin_i_st_relaxed_gpu(state, was);
        return GIN_ESTATE;
    }
    if (!arrived)
        gin_i_barrier_arrive(p, q, index, round);
    if (what & GIN_I_BARRIER_WAIT) {
        struct gin_i_pause pause =
            gin_i_pause_begin(gin_i_error_word(g), NULL, gin_i_barrier_deadline(g, opt));
        st = gin_i_group_worst(q, gin_i_barrier_wait(p, q, index, round,
                                                     (order & GIN_ORDER_ACQUIRE) != 0, &pause,
                                                     gin_i_dev_poll(opt)));
    }
    if (q->kind != GIN_GROUP_THREAD)
        __syncwarp(q->mask); /* the leader's state, below, opens the next round */
    int open = !(what & GIN_I_BARRIER_WAIT) || st != GIN_OK;
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
    gin_i_group_sync(&q);
    if (gin_i_group_helpers(&q, &warp)) {
        /* over load and store the arrivals' release does it */
        if ((puts || gets) && gin_i_has_rings(g)) {
            if (q.lane == 0)
                st = gin_i_complete_now(g, puts ? GIN_I_QUIET : GIN_I_FLUSH, NULL);
            st = gin_i_group_status(&warp, st);
        }
        if (GIN_LIKELY(st == GIN_OK))
            st = gin_i_barrier_run(g, &warp, &pool, index, what, puts ? GIN_ORDER_ACQ_REL : order,
                                   opt);
    }
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
