/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for several signals in kernels: all, any, some. Ids are judged before the wait by every
 * lane; the leader then scans, and its findings become everybody's, whether the lanes gave one
 * place for them or each its own. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_SETS_H
#define GINSHMEM_IMPL_DEV_SETS_H

#include <ginshmem/impl/dev/signal.h>

struct gin_i_set {
    const uint32_t *ids;
    const uint64_t *least;
    const int *skip;
    uint64_t n;
    uint32_t bits;
};

GIN_DEV int gin_i_set_holds(const gin_t *g, const struct gin_i_set *s, uint64_t i)
{
    struct gin_i_watched w = gin_i_watch_signal(g, s->ids[i]);
    return gin_i_rolling_le(s->least[i], gin_i_watched_now(&w), s->bits);
}

GIN_DEV int gin_i_set_skips(const struct gin_i_set *s, uint64_t i)
{
    return s->skip != NULL && s->skip[i] != 0;
}

/* Ids in range; *some: there is something to wait for. */
GIN_DEV int gin_i_set_check(const gin_t *g, const struct gin_i_set *s, int *some)
{
    *some = 0;
    if (s->bits == 0 || (s->n != 0 && (s->ids == NULL || s->least == NULL)))
        return GIN_EINVAL;
    for (uint64_t i = 0; i < s->n; i++) {
        if (gin_i_set_skips(s, i))
            continue;
        *some = 1;
        if (s->ids[i] >= g->n_signals)
            return GIN_ERANGE;
    }
    return GIN_OK;
}

/* The first entry at or after `from` that holds (want 1) or does not (want 0); n: none. */
GIN_DEV uint64_t gin_i_set_find(const gin_t *g, const struct gin_i_set *s, uint64_t from, int want)
{
    for (uint64_t i = from; i < s->n; i++)
        if (!gin_i_set_skips(s, i) && gin_i_set_holds(g, s, i) == want)
            return i;
    return s->n;
}

/* The leader's loop. all: until none is missing; else until one holds, whose place is *found. */
GIN_DEV int gin_i_set_wait(const gin_t *g, const struct gin_i_set *s, int all,
                           const gin_wait_opt_t *opt, uint64_t *found)
{
    struct gin_i_pause p =
        gin_i_pause_begin(gin_i_error_word(g), g->ring != NULL ? &g->ring->host->error : NULL,
                          gin_i_dev_timeout(g, opt));
    uint64_t from = 0;
    int st = GIN_OK;
    for (;;) {
        uint64_t i = gin_i_set_find(g, s, from, !all);
        if (all ? i == s->n : i != s->n) {
            *found = i;
            return GIN_OK;
        }
        if (all)
            from = i;
        if (gin_i_dev_poll(opt))
            return GIN_EAGAIN;
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        st = gin_i_pause_step(&p, 1);
    }
}

GIN_DEV struct gin_i_set gin_i_set_of(const uint32_t *ids, const uint64_t *least, size_t n,
                                      const int *skip, const gin_wait_opt_t *opt)
{
    struct gin_i_set s = {ids, least, skip, n, gin_i_bits(opt)};
    return s;
}

GIN_OP int gin_wait_signal_all(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                               const uint64_t *least, size_t n, const int *skip,
                               const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    struct gin_i_set s = gin_i_set_of(ids, least, n, skip, opt);
    int some;
    uint64_t found;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK)
        st = gin_i_set_check(g, &s, &some);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (q.lane == 0 && some)
        st = gin_i_set_wait(g, &s, 1, opt, &found);
    return gin_i_group_status(&q, st);
}

GIN_OP int gin_wait_signal_any(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                               const uint64_t *least, size_t n, const int *skip, size_t *which,
                               const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    struct gin_i_set s = gin_i_set_of(ids, least, n, skip, opt);
    int some;
    uint64_t found = n;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK && which == NULL)
        st = GIN_EINVAL;
    if (st == GIN_OK)
        st = gin_i_set_check(g, &s, &some);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (q.lane == 0 && some)
        st = gin_i_set_wait(g, &s, 0, opt, &found);
    st = gin_i_group_status(&q, st);
    if (st == GIN_OK)
        *which = (size_t)gin_i_group_share(&q, found);
    return st;
}

GIN_OP int gin_wait_signal_some(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                                const uint64_t *least, size_t n, const int *skip, size_t *which,
                                size_t *count, const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    struct gin_i_set s = gin_i_set_of(ids, least, n, skip, opt);
    int some;
    uint64_t found = n;
    size_t k = 0;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK && (count == NULL || (n != 0 && which == NULL)))
        st = GIN_EINVAL;
    if (st == GIN_OK)
        st = gin_i_set_check(g, &s, &some);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (q.lane == 0 && some)
        st = gin_i_set_wait(g, &s, 0, opt, &found);
    st = gin_i_group_status(&q, st);
    if (st != GIN_OK)
        return st;
    for (found = gin_i_group_share(&q, found); found < n; k++) {
        which[k] = (size_t)found;
        uint64_t next = q.lane == 0 ? gin_i_set_find(g, &s, found + 1, 1) : 0;
        found = gin_i_group_share(&q, next);
        gin_i_group_order(&q);
    }
    *count = k;
    return GIN_OK;
}

#endif
