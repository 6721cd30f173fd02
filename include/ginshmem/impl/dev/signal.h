/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of signal.h in kernels on slot signals and their shadows. Not API. */
#ifndef GINSHMEM_IMPL_DEV_SIGNAL_H
#define GINSHMEM_IMPL_DEV_SIGNAL_H

#include <ginshmem/impl/dev/watch.h>

GIN_DEV int gin_i_signal_id(const gin_t *g, uint32_t id)
{
    if (GIN_LIKELY(id < g->n_signals))
        return GIN_OK;
    return g->flags & GIN_I_DC_DEAD  ? (int)GIN_ESTATE
           : g->flags & GIN_I_DC_ALL ? (int)GIN_EINVAL
                                     : (int)GIN_ERANGE;
}

GIN_DEV struct gin_i_watched gin_i_watch_signal(const gin_t *g, uint32_t id)
{
    struct gin_i_watched w;
    w.near = gin_i_dev_cell(g, g->lsa_rank, id);
    w.base = &g->bases[id].base;
    w.far = g->host_signals != NULL ? &g->host_signals[id].cpu : NULL;
    w.far_words = 2;
    w.far_first = g->flags & GIN_I_DC_KERNELS ? GIN_I_ENGINE_FIRST : GIN_I_HOST_FIRST;
    w.far_net = g->flags & GIN_I_DC_FAR;
    return w;
}

GIN_OP uint64_t gin_read_signal(const gin_t *g, uint32_t id)
{
    int st = gin_i_signal_id(g, id);
    gin_i_note(g, st);
    if (GIN_UNLIKELY(st != GIN_OK))
        return 0;
    struct gin_i_watched w = gin_i_watch_signal(g, id);
    return gin_i_watched_now(&w);
}

GIN_OP int gin_wait_signal_x(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                             const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint32_t bits = gin_i_bits(opt);
    if (GIN_UNLIKELY(bits == 0))
        return GIN_EINVAL;
    if (GIN_UNLIKELY(id >= g->n_signals))
        return GIN_ERANGE;
    struct gin_i_watched w = gin_i_watch_signal(g, id);
    struct gin_i_cond c = gin_i_at_least(least, bits);
    return gin_i_dev_wait(g, &q, &w, &c, opt);
}

GIN_OP int gin_wait_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least)
{
    return gin_wait_signal_x(g, grp, id, least, NULL);
}

GIN_OP int gin_test_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least)
{
    gin_wait_opt_t once = {0, 0, 1};
    return gin_wait_signal_x(g, grp, id, least, &once);
}

GIN_OP int gin_wait_signal_until(const gin_t *g, gin_group_t grp, uint32_t id, gin_cmp_t cmp,
                                 uint64_t operand, const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint32_t bits = gin_i_bits(opt);
    if (GIN_UNLIKELY(bits == 0 || (uint32_t)cmp > GIN_CMP_LE))
        return GIN_EINVAL;
    if (GIN_UNLIKELY(id >= g->n_signals))
        return GIN_ERANGE;
    struct gin_i_watched w = gin_i_watch_signal(g, id);
    struct gin_i_cond c = gin_i_at_least(operand, bits);
    c.cmp = (uint32_t)cmp;
    return gin_i_dev_wait(g, &q, &w, &c, opt);
}

GIN_OP int gin_consume_signal(const gin_t *g, uint32_t id, uint64_t n)
{
    int st = gin_i_signal_id(g, id);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_red_add_relaxed_gpu(&g->bases[id].base, n);
    return st;
}

GIN_OP int gin_reset_signal(const gin_t *g, uint32_t id, uint64_t *old)
{
    int st = gin_i_signal_id(g, id);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_watched w = gin_i_watch_signal(g, id);
    uint64_t taken = gin_i_watched_take(&w);
    gin_i_st_relaxed_gpu(&g->bases[id].shadow, 0);
    if (old != NULL)
        *old = taken;
    return GIN_OK;
}

/* ---- shadows ---- */

GIN_OP uint64_t *gin_signal_shadow(const gin_t *g, uint32_t id)
{
    int st = gin_i_signal_id(g, id);
    gin_i_note(g, st);
    return st == GIN_OK ? &g->bases[id].shadow : NULL;
}

GIN_OP int gin_increase_shadow(const gin_t *g, uint32_t id, uint64_t delta)
{
    int st = gin_i_signal_id(g, id);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_red_add_relaxed_gpu(&g->bases[id].shadow, delta);
    return st;
}

/* The shadow is read by the leader, once the group has met. */
GIN_DEV int gin_i_wait_shadow(const gin_t *g, const struct gin_i_group *q, uint32_t id,
                              uint64_t ahead, const gin_wait_opt_t *opt)
{
    int st = GIN_OK;
    uint32_t bits = gin_i_bits(opt);
    if (GIN_UNLIKELY(bits == 0))
        return GIN_EINVAL;
    if (GIN_UNLIKELY(id >= g->n_signals))
        return GIN_ERANGE;
    gin_i_group_sync(q);
    if (q->lane == 0) {
        struct gin_i_watched w = gin_i_watch_signal(g, id);
        uint64_t shadow = gin_i_ld_relaxed_gpu(&g->bases[id].shadow);
        struct gin_i_cond c = gin_i_at_least(shadow + ahead, bits);
        st = gin_i_wait_long(g->dc, g->ring, w, c, opt != NULL ? opt->timeout_ns : 0,
                             gin_i_dev_poll(opt));
    }
    return gin_i_group_status(q, st);
}

GIN_OP int gin_wait_signal_meet_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                                       const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    return GIN_UNLIKELY(st != GIN_OK) ? st : gin_i_wait_shadow(g, &q, id, 0, opt);
}

GIN_OP int gin_wait_signal_follow_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                                         uint64_t least, uint64_t *before, uint64_t *delta,
                                         const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK)
        st = gin_i_wait_shadow(g, &q, id, least, opt);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint64_t now = 0, was = 0;
    if (q.lane == 0) {
        struct gin_i_watched w = gin_i_watch_signal(g, id);
        now = gin_i_watched_now(&w);
        was = gin_i_atom_exch_gpu(&g->bases[id].shadow, now); /* threads' deltas add up */
    }
    was = gin_i_group_share(&q, was);
    now = gin_i_group_share(&q, now);
    gin_i_group_order(&q);
    if (before != NULL)
        *before = was;
    if (delta != NULL)
        *delta = now - was;
    return GIN_OK;
}

#endif
