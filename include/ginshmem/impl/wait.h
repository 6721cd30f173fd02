/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of signal.h. A wait looks here a few times, then goes to the library, whose waiting loop
 * yields and watches deadlines and peers. Not API.
 */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_WAIT_H
#define GINSHMEM_IMPL_WAIT_H

#include <ginshmem/impl/path.h>
#include <ginshmem/impl/rolling.h>

/*
 * Value of cells over their base, both of one moment. Another thread may move the base meanwhile,
 * and an old cell under a new base would show a value below 0, which no signal ever had.
 */
GIN_OP uint64_t gin_i_above(const uint64_t *cells, const uint64_t *base)
{
    uint64_t b, v;
    do {
        b = GIN_LOAD_ACQUIRE(base);
        v = GIN_LOAD_ACQUIRE(cells);
    } while (GIN_UNLIKELY(GIN_LOAD_RELAXED(base) != b));
    return v - b;
}

/* Move the base up to the cells and return what lay between: nothing is lost or taken twice. */
GIN_OP uint64_t gin_i_take(const uint64_t *cells, uint64_t *base)
{
    uint64_t b = GIN_LOAD_ACQUIRE(base), v;
    do
        v = GIN_LOAD_ACQUIRE(cells);
    while (!__atomic_compare_exchange_n(base, &b, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return v - b;
}

/*
 * The same of a signal, whose value is the sum of a cell that CPUs raise and one that NICs do. Both
 * are of one moment, too: adds may be negative.
 */
GIN_OP uint64_t gin_i_cells_above(const struct gin_i_cells *cells, const uint64_t *base)
{
    uint64_t b, cpu, net;
    do {
        b = GIN_LOAD_ACQUIRE(base);
        cpu = GIN_LOAD_ACQUIRE(&cells->cpu);
        net = GIN_LOAD_ACQUIRE(&cells->net);
    } while (
        GIN_UNLIKELY(((GIN_LOAD_RELAXED(base) ^ b) | (GIN_LOAD_RELAXED(&cells->cpu) ^ cpu)) != 0));
    return cpu + net - b;
}

GIN_OP uint64_t gin_i_cells_take(const struct gin_i_cells *cells, uint64_t *base)
{
    uint64_t b = GIN_LOAD_ACQUIRE(base), v;
    do
        v = GIN_LOAD_ACQUIRE(&cells->cpu) + GIN_LOAD_ACQUIRE(&cells->net);
    while (!__atomic_compare_exchange_n(base, &b, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return v - b;
}

/* Value of slot `id`, which the caller has checked. */
GIN_OP uint64_t gin_i_signal_value(const gin_t *g, uint32_t id)
{
    return gin_i_cells_above(&g->ctx->signals[id], &g->ctx->bases[id].base);
}

GIN_OP uint64_t gin_i_counter_value(const gin_t *g, uint32_t id)
{
    return gin_i_above(&g->ctx->counters[id].cell, &g->ctx->counters[id].base);
}

GIN_OP uint64_t gin_read_signal(const gin_t *g, uint32_t id)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_signals)) {
        gin_i_bad_id(g, "signal", id, g->ctx->n_signals);
        return 0;
    }
    return gin_i_signal_value(g, id);
}

GIN_OP int gin_wait_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least)
{
    if (GIN_LIKELY(id < g->ctx->n_signals && grp.kind == GIN_GROUP_THREAD)) {
        uint32_t spin = g->dc->spin;
        do {
            if (GIN_LIKELY(gin_i_rolling_le(least, gin_i_signal_value(g, id), 64)))
                return GIN_OK;
            GIN_PAUSE(); /* polling without it keeps taking the line from its writer */
        } while (spin-- != 0);
    }
    return gin_i_wait_signal(g, grp, id, least, NULL);
}

GIN_OP int gin_wait_signal_x(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                             const gin_wait_opt_t *opt)
{
    return gin_i_wait_signal(g, grp, id, least, opt);
}

GIN_OP int gin_test_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least)
{
    gin_wait_opt_t once = {0, 0, 1};
    if (GIN_LIKELY(id < g->ctx->n_signals && grp.kind == GIN_GROUP_THREAD)) {
        if (gin_i_rolling_le(least, gin_i_signal_value(g, id), 64))
            return GIN_OK;
        if (!(g->flags & GIN_I_DC_NET)) /* else the library drives it, and knows of failures */
            return GIN_EAGAIN;
    }
    return gin_i_wait_signal(g, grp, id, least, &once);
}

GIN_OP int gin_wait_signal_until(const gin_t *g, gin_group_t grp, uint32_t id, gin_cmp_t cmp,
                                 uint64_t operand, const gin_wait_opt_t *opt)
{
    return gin_i_wait_until(g, grp, id, gin_at(gin_window_none(), 0), cmp, operand, opt);
}

GIN_OP int gin_consume_signal(const gin_t *g, uint32_t id, uint64_t n)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_signals))
        return gin_i_bad_id(g, "signal", id, g->ctx->n_signals);
    GIN_ADD_RELEASE(&g->ctx->bases[id].base, n); /* who sees it sees the cells that I saw */
    return GIN_OK;
}

GIN_OP int gin_reset_signal(const gin_t *g, uint32_t id, uint64_t *old)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_signals))
        return gin_i_bad_id(g, "signal", id, g->ctx->n_signals);
    uint64_t was = gin_i_cells_take(&g->ctx->signals[id], &g->ctx->bases[id].base);
    GIN_STORE_RELAXED(&g->ctx->bases[id].shadow, 0);
    if (old != NULL)
        *old = was;
    return GIN_OK;
}

GIN_OP int gin_wait_signal_all(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                               const uint64_t *least, size_t n, const int *skip,
                               const gin_wait_opt_t *opt)
{
    return gin_i_wait_set(g, grp, 0, ids, least, n, skip, NULL, NULL, opt);
}

GIN_OP int gin_wait_signal_any(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                               const uint64_t *least, size_t n, const int *skip, size_t *which,
                               const gin_wait_opt_t *opt)
{
    return gin_i_wait_set(g, grp, 1, ids, least, n, skip, which, NULL, opt);
}

GIN_OP int gin_wait_signal_some(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                                const uint64_t *least, size_t n, const int *skip, size_t *which,
                                size_t *count, const gin_wait_opt_t *opt)
{
    return gin_i_wait_set(g, grp, 2, ids, least, n, skip, which, count, opt);
}

GIN_OP uint64_t *gin_signal_shadow(const gin_t *g, uint32_t id)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_signals)) {
        gin_i_bad_id(g, "signal", id, g->ctx->n_signals);
        return NULL;
    }
    return &g->ctx->bases[id].shadow;
}

GIN_OP int gin_increase_shadow(const gin_t *g, uint32_t id, uint64_t delta)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_signals))
        return gin_i_bad_id(g, "signal", id, g->ctx->n_signals);
    GIN_ADD_RELAXED(&g->ctx->bases[id].shadow, delta);
    return GIN_OK;
}

GIN_OP int gin_wait_signal_meet_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                                       const gin_wait_opt_t *opt)
{
    return gin_i_meet_shadow(g, grp, id, opt);
}

GIN_OP int gin_wait_signal_follow_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                                         uint64_t least, uint64_t *before, uint64_t *delta,
                                         const gin_wait_opt_t *opt)
{
    return gin_i_follow_shadow(g, grp, id, least, before, delta, opt);
}

GIN_OP uint64_t gin_read_signal_at(const gin_t *g, gin_at_t at)
{
    uint64_t *word = gin_i_word(g, at);
    return word != NULL ? GIN_LOAD_ACQUIRE(word) : 0;
}

GIN_OP int gin_wait_signal_at(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t least,
                              const gin_wait_opt_t *opt)
{
    return gin_i_wait_at(g, grp, at, least, opt);
}

GIN_OP int gin_wait_signal_until_at(const gin_t *g, gin_group_t grp, gin_at_t at, gin_cmp_t cmp,
                                    uint64_t operand, const gin_wait_opt_t *opt)
{
    return gin_i_wait_until(g, grp, 0, at, cmp, operand, opt);
}

GIN_OP int gin_consume_signal_at(const gin_t *g, gin_at_t at, uint64_t n)
{
    uint64_t *word = gin_i_word(g, at);
    if (GIN_UNLIKELY(word == NULL))
        return gin_last_status();
    __atomic_fetch_sub(word, n, __ATOMIC_ACQ_REL);
    return GIN_OK;
}

GIN_OP int gin_reset_signal_at(const gin_t *g, gin_at_t at, uint64_t *old)
{
    uint64_t *word = gin_i_word(g, at);
    if (GIN_UNLIKELY(word == NULL))
        return gin_last_status();
    uint64_t was = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);
    if (old != NULL)
        *old = was;
    return GIN_OK;
}

GIN_OP uint64_t gin_read_counter(const gin_t *g, uint32_t id)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_counters)) {
        gin_i_bad_id(g, "counter", id, g->ctx->n_counters);
        return 0;
    }
    return gin_i_counter_value(g, id);
}

GIN_OP int gin_wait_counter(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least)
{
    if (GIN_LIKELY(id < g->ctx->n_counters && grp.kind == GIN_GROUP_THREAD &&
                   gin_i_rolling_le(least, gin_i_counter_value(g, id), 64)))
        return GIN_OK;
    return gin_i_wait_counter(g, grp, id, least, NULL);
}

GIN_OP int gin_wait_counter_x(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                              const gin_wait_opt_t *opt)
{
    return gin_i_wait_counter(g, grp, id, least, opt);
}

GIN_OP int gin_reset_counter(const gin_t *g, uint32_t id, uint64_t *old)
{
    if (GIN_UNLIKELY(id >= g->ctx->n_counters))
        return gin_i_bad_id(g, "counter", id, g->ctx->n_counters);
    uint64_t was = gin_i_take(&g->ctx->counters[id].cell, &g->ctx->counters[id].base);
    if (old != NULL)
        *old = was;
    return GIN_OK;
}

#endif
