/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of signal.h in kernels on counters. Not API. */
#ifndef GINSHMEM_IMPL_DEV_COUNTER_H
#define GINSHMEM_IMPL_DEV_COUNTER_H

#include <ginshmem/impl/dev/watch.h>

GIN_DEV int gin_i_counter_id(const gin_t *g, uint32_t id)
{
    if (GIN_UNLIKELY(g->flags & (GIN_I_DC_DEAD | GIN_I_DC_ALL)))
        return g->flags & GIN_I_DC_DEAD ? GIN_ESTATE : GIN_EINVAL;
    return id < gin_i_nc_u32(&g->ctx->n_counters) ? GIN_OK : GIN_ERANGE;
}

GIN_DEV struct gin_i_watched gin_i_watch_counter(const gin_t *g, uint32_t id)
{
    struct gin_i_watched w;
    const struct gin_i_counter *c =
        (const struct gin_i_counter *)gin_i_nc_u64(&g->ctx->counters) + id;
    const uint64_t *host = (const uint64_t *)gin_i_nc_u64(&g->ctx->host_counters);
    w.near = &c->cell;
    w.base = &c->base;
    w.far = host != NULL ? host + id : NULL;
    w.far_words = 1;
    w.far_first = GIN_I_HOST_FIRST;
    w.far_net = g->flags & GIN_I_DC_FAR;
    return w;
}

GIN_OP uint64_t gin_read_counter(const gin_t *g, uint32_t id)
{
    int st = gin_i_counter_id(g, id);
    gin_i_note(g, st);
    if (GIN_UNLIKELY(st != GIN_OK))
        return 0;
    struct gin_i_watched w = gin_i_watch_counter(g, id);
    return gin_i_watched_now(&w);
}

GIN_OP int gin_wait_counter_x(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                              const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK)
        st = gin_i_counter_id(g, id);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint32_t bits = gin_i_bits(opt);
    if (GIN_UNLIKELY(bits == 0))
        return GIN_EINVAL;
    if (q.lane == 0)
        st =
            gin_i_wait_long(g->dc, g->ring, gin_i_watch_counter(g, id), gin_i_at_least(least, bits),
                            opt != NULL ? opt->timeout_ns : 0, gin_i_dev_poll(opt));
    return gin_i_group_status(&q, st);
}

GIN_OP int gin_wait_counter(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least)
{
    return gin_wait_counter_x(g, grp, id, least, NULL);
}

GIN_OP int gin_reset_counter(const gin_t *g, uint32_t id, uint64_t *old)
{
    int st = gin_i_counter_id(g, id);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_watched w = gin_i_watch_counter(g, id);
    uint64_t taken = gin_i_watched_take(&w);
    if (old != NULL)
        *old = taken;
    return GIN_OK;
}

#endif
