/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of signal.h in kernels. The leader polls, with relaxed loads and one acquire at the end
 * (as quick as polling by acquires, and it leaves the cache alone meanwhile); then the group meets.
 *
 * A signal's second cell lies in host memory, about as far away as a dozen polls of the first one.
 * A long wait keeps one load of it under way and uses what the previous one brought. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_WAIT_H
#define GINSHMEM_IMPL_DEV_WAIT_H

#include <ginshmem/impl/dev/calls.h>
#include <ginshmem/impl/rolling.h>

#define GIN_I_QUICK_POLLS 256 /* before a wait leaves the inlined code */
/* Polls of the near cell before the first look at the far ones, until it is used, until the next
 * look; and from there on for each look. What an engine raises has taken longer than the first. */
#define GIN_I_HOST_FIRST   8u
#define GIN_I_ENGINE_FIRST 48u
#define GIN_I_HOST_USED    12u
#define GIN_I_HOST_AGAIN   20u
#define GIN_I_HOST_EVERY   16u
#define GIN_I_ROLLING      6 /* beside gin_cmp_t: at least, on a wheel */

/* A 64-bit value that is the sum of up to three cells, less a base. */
struct gin_i_watched {
    const uint64_t *near; /* GPU memory */
    const uint64_t *base; /* or NULL */
    const uint64_t *far;  /* host memory, or NULL; */
    uint32_t far_words;   /* one cell or two beside each other */
    uint32_t far_first;   /* polls before the first look at them */
};

GIN_DEV struct gin_i_watched gin_i_watch_signal(const gin_t *g, uint32_t id)
{
    struct gin_i_watched w;
    w.near = gin_i_dev_cell(g, g->lsa_rank, id);
    w.base = &g->bases[id].base;
    w.far = g->host_signals != NULL ? &g->host_signals[id].cpu : NULL;
    w.far_words = 2;
    w.far_first = g->flags & GIN_I_DC_KERNELS ? GIN_I_ENGINE_FIRST : GIN_I_HOST_FIRST;
    return w;
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
    return w;
}

GIN_DEV struct gin_i_watched gin_i_watch_word(const uint64_t *word)
{
    struct gin_i_watched w = {word, NULL, NULL, 0, 0};
    return w;
}

/* The base first: a reset in between then shows as a value from before it. */
GIN_DEV uint64_t gin_i_watched_now(const struct gin_i_watched *w)
{
    uint64_t value = w->base != NULL ? 0 - gin_i_ld_relaxed_gpu(w->base) : 0;
    if (w->far != NULL) {
        value += gin_i_ld_acquire_sys(w->far);
        if (w->far_words > 1)
            value += gin_i_ld_acquire_sys(w->far + 1);
    }
    return value + gin_i_ld_acquire_sys(w->near);
}

/* ---- conditions ---- */

struct gin_i_cond {
    uint64_t operand, mask;
    uint32_t cmp; /* gin_cmp_t or GIN_I_ROLLING */
};

GIN_DEV struct gin_i_cond gin_i_at_least(uint64_t least, uint32_t bits)
{
    struct gin_i_cond c = {least, ~(uint64_t)0 >> (64 - bits), GIN_I_ROLLING};
    return c;
}

GIN_DEV int gin_i_holds(const struct gin_i_cond *c, uint64_t value)
{
    uint64_t v = value & c->mask, o = c->operand & c->mask;
    switch (c->cmp) {
    case GIN_I_ROLLING: return ((v - o) & c->mask) <= c->mask >> 1;
    case GIN_CMP_EQ: return v == o;
    case GIN_CMP_NE: return v != o;
    case GIN_CMP_GT: return v > o;
    case GIN_CMP_GE: return v >= o;
    case GIN_CMP_LT: return v < o;
    default: return v <= o;
    }
}

/* Bits of a comparison, 0 for a width without meaning. */
GIN_DEV uint32_t gin_i_bits(const gin_wait_opt_t *opt)
{
    uint32_t bits = opt != NULL && opt->bits != 0 ? opt->bits : 64;
    return bits <= 64 ? bits : 0;
}

/* ---- the loops ---- */

/* What the far cells held at the last look, and the look that is under way. */
struct gin_i_far {
    uint64_t seen, first, second;
};

/*
 * `polls` polls of the near cell for "at least", with a look at the far ones under way. 1: it
 * holds, and has been acquired. What the far cells held some polls ago is a lower bound, and so is
 * the sum; a base that moved meanwhile makes it less still.
 */
GIN_DEV int gin_i_poll_some(const struct gin_i_watched *w, const struct gin_i_cond *c,
                            struct gin_i_far *far, int look, uint32_t polls)
{
    if (w->far != NULL)
        far->seen = far->first + far->second;
    if (look && w->far != NULL) {
        far->first = gin_i_ld_relaxed_sys(w->far);
        far->second = w->far_words > 1 ? gin_i_ld_relaxed_sys(w->far + 1) : 0;
    }
#pragma unroll 1
    for (; polls != 0; polls--) {
        uint64_t base = w->base != NULL ? gin_i_ld_relaxed_gpu(w->base) : 0;
        uint64_t value = gin_i_ld_relaxed_sys(w->near) + far->seen - base;
        if (((value - c->operand) & c->mask) > c->mask >> 1)
            continue;
        gin_i_ld_acquire_sys(w->near);
        if (far->seen != 0) {
            gin_i_ld_acquire_sys(w->far);
            if (w->far_words > 1)
                gin_i_ld_acquire_sys(w->far + 1);
        }
        return 1;
    }
    return 0;
}

/* For long, with a look at the error words and the clock now and then. timeout_ns 0: the device
 * communicator's. Other comparisons than "at least" need all cells as they are now. */
GIN_DEV_CALL int gin_i_wait_long(const struct gin_i_dc *dc, const struct gin_i_ring *ring,
                                 struct gin_i_watched w, struct gin_i_cond c, uint64_t timeout_ns,
                                 int poll)
{
    struct gin_i_pause p = gin_i_pause_begin(
        (const uint64_t *)gin_i_nc_u64(&dc->error), ring != NULL ? &ring->host->error : NULL,
        timeout_ns != 0 ? timeout_ns : gin_i_nc_u64(&dc->wait_timeout_ns));
    struct gin_i_far far = {0, 0, 0};
    int quick = c.cmp == GIN_I_ROLLING && !poll, st = GIN_OK;
    for (;;) {
        if (quick && gin_i_poll_some(&w, &c, &far, 1, GIN_I_HOST_EVERY))
            return GIN_OK;
        if ((!quick || st != GIN_OK) && gin_i_holds(&c, gin_i_watched_now(&w)))
            return GIN_OK;
        if (poll)
            return GIN_EAGAIN;
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        st = gin_i_pause_step(&p, quick ? GIN_I_HOST_EVERY : 1);
    }
}

/*
 * At least, of a signal: for a while, without leaving the inlined code. A look at the far cells
 * that is still under way when the near one comes would hold up what the caller does next, so it
 * starts after the shortest waits and is not repeated before the usual ones are over.
 */
GIN_DEV int gin_i_wait_quick(const struct gin_i_watched *w, const struct gin_i_cond *c)
{
    struct gin_i_far far = {0, 0, 0};
    uint32_t polls = w->far_first;
#pragma unroll 1
    for (uint32_t n = 0; n < GIN_I_QUICK_POLLS;) {
        int used = n == w->far_first + GIN_I_HOST_USED;
        if (GIN_LIKELY(gin_i_poll_some(w, c, &far, n != 0 && !used, polls)))
            return 1;
        n += polls;
        polls = n == w->far_first                     ? GIN_I_HOST_USED
                : n == w->far_first + GIN_I_HOST_USED ? GIN_I_HOST_AGAIN
                                                      : GIN_I_HOST_EVERY;
    }
    return 0;
}

/* Any comparison, of one word. */
GIN_DEV int gin_i_wait_word_quick(const uint64_t *word, const struct gin_i_cond *c)
{
#pragma unroll 1
    for (uint32_t n = 0; n < GIN_I_QUICK_POLLS; n++)
        if (gin_i_holds(c, gin_i_ld_relaxed_sys(word))) {
            gin_i_ld_acquire_sys(word);
            return 1;
        }
    return 0;
}

GIN_DEV int gin_i_wait_soon(const struct gin_i_watched *w, const struct gin_i_cond *c)
{
    if (w->far == NULL && w->base == NULL)
        return gin_i_wait_word_quick(w->near, c);
    return c->cmp == GIN_I_ROLLING && gin_i_wait_quick(w, c);
}

/* By the group; the wait that all of the calls below come to. */
GIN_DEV int gin_i_dev_wait(const gin_t *g, const struct gin_i_group *q,
                           const struct gin_i_watched *w, const struct gin_i_cond *c,
                           const gin_wait_opt_t *opt)
{
    int st = GIN_OK;
    if (q->lane == 0 && !(opt == NULL && gin_i_wait_soon(w, c)))
        st = gin_i_wait_long(g->dc, g->ring, *w, *c, opt != NULL ? opt->timeout_ns : 0,
                             gin_i_dev_poll(opt));
    return gin_i_group_status(q, st);
}

/* ---- slot signals ---- */

GIN_DEV int gin_i_signal_id(const gin_t *g, uint32_t id)
{
    if (GIN_LIKELY(id < g->n_signals))
        return GIN_OK;
    return g->flags & GIN_I_DC_DEAD  ? (int)GIN_ESTATE
           : g->flags & GIN_I_DC_ALL ? (int)GIN_EINVAL
                                     : (int)GIN_ERANGE;
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

/* The base takes over what the cells hold now; exchanges keep the sum of all deltas exact. */
GIN_OP int gin_reset_signal(const gin_t *g, uint32_t id, uint64_t *old)
{
    int st = gin_i_signal_id(g, id);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_watched w = gin_i_watch_signal(g, id);
    w.base = NULL;
    uint64_t cells = gin_i_watched_now(&w);
    uint64_t base = gin_i_atom_exch_gpu(&g->bases[id].base, cells);
    gin_i_st_relaxed_gpu(&g->bases[id].shadow, 0);
    if (old != NULL)
        *old = cells - base;
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
    if (before != NULL)
        *before = was;
    if (delta != NULL)
        *delta = now - was;
    return GIN_OK;
}

/* ---- words of windows ---- */

/* An atomic operation by descriptor, by one lane. */
GIN_DEV_CALL int gin_i_amo_engine(struct gin_i_ring *ring, const uint64_t *error, int world,
                                  gin_at_t at, int op, uint32_t bytes, uint64_t value,
                                  uint64_t expected, uint64_t timeout_ns, uint64_t *old)
{
    struct gin_i_op o;
    gin_i_op_begin(&o, GIN_I_DESC_AMO + op, world);
    o.flags = bytes == 4 ? (uint8_t)GIN_I_DESC_WORD32 : (uint8_t)0;
    o.dst_win = gin_i_desc_window(at.win);
    o.dst_off = at.off;
    o.size = bytes;
    o.immediate = value;
    o.value = expected;
    if (op < GIN_I_AMO_FETCH)
        return gin_i_ring_post(ring, error, &o, 0, NULL);
    return gin_i_ring_fetch(ring, error, &o, timeout_ns, old);
}

/* My 8-byte word at a place. *mine: I may update it, and need not ask its one applier. */
GIN_DEV int gin_i_dev_word(const gin_t *g, gin_at_t at, uint64_t **word, int *mine)
{
    if (GIN_UNLIKELY(g->flags & GIN_I_DC_DEAD))
        return GIN_ESTATE;
    struct gin_i_place p = gin_i_dev_local(g, at, 8);
    if (GIN_UNLIKELY(p.status != GIN_OK))
        return p.status < 0 ? p.status : (int)GIN_ENOTSUP;
    if (GIN_UNLIKELY((p.addr & 7) != 0))
        return GIN_EINVAL;
    *word = (uint64_t *)p.addr;
    *mine = (p.apply & GIN_I_APPLY_ATOMICS) != 0 || at.win.w == GIN_I_WINDOW_LOCAL;
    return GIN_OK;
}

/* Update my own word by its applier, with an operation that brings the value before. */
GIN_DEV int gin_i_dev_word_engine(const gin_t *g, gin_at_t at, int op, uint64_t value,
                                  uint64_t *old)
{
    if (g->ring == NULL)
        return GIN_ENOTSUP;
    return gin_i_amo_engine(g->ring, gin_i_error_word(g), g->rank, at, op, 8, value, 0,
                            gin_i_nc_u64(&g->dc->wait_timeout_ns), old);
}

GIN_OP uint64_t gin_read_signal_at(const gin_t *g, gin_at_t at)
{
    uint64_t *word;
    int mine, st = gin_i_dev_word(g, at, &word, &mine);
    gin_i_note(g, st);
    return st == GIN_OK ? gin_i_ld_acquire_sys(word) : 0;
}

GIN_DEV int gin_i_wait_word(const gin_t *g, gin_group_t grp, gin_at_t at, uint32_t cmp,
                            uint64_t operand, const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    uint64_t *word;
    int mine, st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint32_t bits = gin_i_bits(opt);
    if (GIN_UNLIKELY(bits == 0))
        return GIN_EINVAL;
    st = gin_i_dev_word(g, at, &word, &mine);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_watched w = gin_i_watch_word(word);
    struct gin_i_cond c = gin_i_at_least(operand, bits);
    c.cmp = cmp;
    return gin_i_dev_wait(g, &q, &w, &c, opt);
}

GIN_OP int gin_wait_signal_at(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t least,
                              const gin_wait_opt_t *opt)
{
    return gin_i_wait_word(g, grp, at, GIN_I_ROLLING, least, opt);
}

GIN_OP int gin_wait_signal_until_at(const gin_t *g, gin_group_t grp, gin_at_t at, gin_cmp_t cmp,
                                    uint64_t operand, const gin_wait_opt_t *opt)
{
    return (uint32_t)cmp > GIN_CMP_LE ? (int)GIN_EINVAL
                                      : gin_i_wait_word(g, grp, at, (uint32_t)cmp, operand, opt);
}

GIN_OP int gin_consume_signal_at(const gin_t *g, gin_at_t at, uint64_t n)
{
    uint64_t *word, was;
    int mine, st = gin_i_dev_word(g, at, &word, &mine);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_UNLIKELY(!mine))
        return gin_i_dev_word_engine(g, at, GIN_I_AMO_FETCH_ADD, 0 - n, &was);
    gin_i_red_add_relaxed_sys(word, 0 - n);
    return GIN_OK;
}

GIN_OP int gin_reset_signal_at(const gin_t *g, gin_at_t at, uint64_t *old)
{
    uint64_t *word;
    int mine, st = gin_i_dev_word(g, at, &word, &mine);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint64_t was = 0;
    if (GIN_LIKELY(mine))
        was = gin_i_atom_exch_sys(word, 0);
    else
        st = gin_i_dev_word_engine(g, at, GIN_I_AMO_SWAP, 0, &was);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_fence_gpu();
    if (old != NULL)
        *old = was;
    return GIN_OK;
}

/* ---- counters ---- */

GIN_DEV int gin_i_counter_id(const gin_t *g, uint32_t id)
{
    if (GIN_UNLIKELY(g->flags & (GIN_I_DC_DEAD | GIN_I_DC_ALL)))
        return g->flags & GIN_I_DC_DEAD ? GIN_ESTATE : GIN_EINVAL;
    return id < gin_i_nc_u32(&g->ctx->n_counters) ? GIN_OK : GIN_ERANGE;
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
    uint64_t *base = (uint64_t *)w.base;
    w.base = NULL;
    uint64_t cells = gin_i_watched_now(&w);
    uint64_t was = gin_i_atom_exch_gpu(base, cells);
    if (old != NULL)
        *old = cells - was;
    return GIN_OK;
}

#endif
