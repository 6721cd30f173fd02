/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for a value, for all the calls that do: the leader polls, with relaxed loads and one
 * acquire at the end (as quick as polling by acquires, and it leaves the cache alone meanwhile);
 * then the group meets.
 *
 * A value's far cells lie in host memory, about as far away as a dozen polls of the near one. A
 * long wait keeps one load of them under way and uses what the previous one brought. With ranks
 * that only the network reaches, most waits are for these cells: each poll looks at them then.
 * Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_WATCH_H
#define GINSHMEM_IMPL_DEV_WATCH_H

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
    uint32_t far_net;     /* the network raises them, and is what is waited for, as a rule */
};

#define GIN_I_SUM_TRIES 64 /* looks before cells that never rest are taken as they are */

/*
 * A signal's cells, of one moment: they may be taken from as well as added to, so a sum of two
 * moments may be one that never was. The far ones are read again until they are as they were when
 * the near one was read.
 */
GIN_DEV uint64_t gin_i_watched_sum(const uint64_t *near, const uint64_t *far)
{
    struct gin_i_16 now = gin_i_ld128_acquire_sys(far), was;
    uint64_t value;
    int tries = GIN_I_SUM_TRIES;
    do {
        was = now;
        value = gin_i_ld_acquire_sys(near);
        now = gin_i_ld128_acquire_sys(far);
    } while ((now.a != was.a || now.b != was.b) && --tries != 0);
    return value + now.a + now.b;
}

/* The base first: a reset in between then shows as a value from before it. One far word is a
 * counter's, and those only grow. */
GIN_DEV uint64_t gin_i_watched_now(const struct gin_i_watched *w)
{
    uint64_t base = w->base != NULL ? gin_i_ld_acquire_gpu(w->base) : 0;
    if (w->far != NULL && w->far_words > 1)
        return gin_i_watched_sum(w->near, w->far) - base;
    uint64_t far = w->far != NULL ? gin_i_ld_acquire_sys(w->far) : 0;
    return far + gin_i_ld_acquire_sys(w->near) - base;
}

/* What the value is, and 0 from then on: the base takes over what the cells hold, unless another
 * did so meanwhile; then they are read again. */
GIN_DEV uint64_t gin_i_watched_take(const struct gin_i_watched *w)
{
    struct gin_i_watched cells = *w;
    uint64_t *base = (uint64_t *)w->base, was, now, seen = gin_i_ld_acquire_gpu(base);
    cells.base = NULL;
    do {
        was = seen;
        now = gin_i_watched_now(&cells);
        seen = gin_i_atom_cas_gpu(base, was, now);
    } while (seen != was);
    return now - was;
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

/* What the far cells held at the last look, and the look that is under way; the near one, before
 * the look that was used was begun, before the one under way was, and now. */
struct gin_i_far {
    uint64_t seen, near_seen, near_before, near;
    struct gin_i_16 look;
};

/* Nothing of it was seen yet; where a look comes before the first poll, the near cell must be. */
GIN_DEV struct gin_i_far gin_i_far_begin(const uint64_t *near)
{
    struct gin_i_far far = {};
    far.near = near != NULL ? gin_i_ld_relaxed_sys(near) : 0;
    return far;
}

GIN_DEV void gin_i_far_look(const struct gin_i_watched *w, struct gin_i_far *far)
{
    far->near_before = far->near;
    if (w->far_words > 1)
        far->look = gin_i_ld128_whole_sys(w->far);
    else
        far->look.a = gin_i_ld_relaxed_sys(w->far);
}

/* What the look brought is used from now on. */
GIN_DEV void gin_i_far_use(struct gin_i_far *far)
{
    far->seen = far->look.a + far->look.b;
    far->near_seen = far->near_before;
}

/* What some polls found. */
#define GIN_I_HOLDS 1 /* and has been acquired */
#define GIN_I_MAY   2 /* with what the far cells held some polls ago */

/*
 * `polls` polls of the near cell for "at least". Until the far ones hold something they count as 0,
 * and a base that moved meanwhile makes the value less: it is a lower bound as long as nobody takes
 * from them. Where they hold something and the near cell was the same before and after the look,
 * the sum is one of the moment of the look.
 */
GIN_DEV int gin_i_poll_near(const struct gin_i_watched *w, const struct gin_i_cond *c,
                            struct gin_i_far *far, uint32_t polls)
{
#pragma unroll 1
    for (; polls != 0; polls--) {
        uint64_t base = w->base != NULL ? gin_i_ld_relaxed_gpu(w->base) : 0;
        far->near = gin_i_ld_relaxed_sys(w->near);
        uint64_t value = far->near + far->seen - base;
        if (((value - c->operand) & c->mask) > c->mask >> 1)
            continue;
        int wide = w->far == NULL || c->mask == ~(uint64_t)0;
        if (wide && far->seen == 0) {
            gin_i_ld_acquire_sys(w->near);
            return GIN_I_HOLDS;
        }
        if (!wide || far->near != far->near_seen)
            return GIN_I_MAY; /* on a narrow wheel no sum of a part is a lower bound */
        gin_i_fence_sys();
        return GIN_I_HOLDS;
    }
    return 0;
}

/* The same with a look at the far cells under way meanwhile, which the next ones use. */
GIN_DEV int gin_i_poll_some(const struct gin_i_watched *w, const struct gin_i_cond *c,
                            struct gin_i_far *far, int look, uint32_t polls)
{
    if (w->far != NULL)
        gin_i_far_use(far);
    if (look && w->far != NULL)
        gin_i_far_look(w, far);
    return gin_i_poll_near(w, c, far, polls);
}

/* For what the network brings: a look, and what it brought is used at once, so that none is under
 * way when the wait is over, which would hold up the fence. */
GIN_DEV int gin_i_poll_net(const struct gin_i_watched *w, const struct gin_i_cond *c,
                           struct gin_i_far *far)
{
    gin_i_far_look(w, far);
    gin_i_far_use(far);
    return gin_i_poll_near(w, c, far, 1);
}

/*
 * For long, with a look at the error words and the clock now and then. Whatever the near cell does
 * not say alone is asked of all cells as they are now. timeout_ns 0: the device communicator's.
 */
GIN_DEV_CALL int gin_i_wait_long(const struct gin_i_dc *dc, const struct gin_i_ring *ring,
                                 struct gin_i_watched w, struct gin_i_cond c, uint64_t timeout_ns,
                                 int poll)
{
    struct gin_i_pause p = gin_i_pause_begin(
        (const uint64_t *)gin_i_nc_u64(&dc->error), ring != NULL ? &ring->host->error : NULL,
        timeout_ns != 0 ? timeout_ns : gin_i_nc_u64(&dc->wait_timeout_ns));
    struct gin_i_far far = gin_i_far_begin(w.near);
    const int net = w.far != NULL && w.far_net;
    const uint32_t polls = net ? 1 : GIN_I_HOST_EVERY;
    int quick = c.cmp == GIN_I_ROLLING && !poll, found = GIN_I_MAY, st = GIN_OK;
    for (;;) {
        if ((!quick || found == GIN_I_MAY || st != GIN_OK) &&
            gin_i_holds(&c, gin_i_watched_now(&w)))
            return GIN_OK;
        if (poll)
            return GIN_EAGAIN;
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        if (quick)
            found = net ? gin_i_poll_net(&w, &c, &far) : gin_i_poll_some(&w, &c, &far, 1, polls);
        if (found == GIN_I_HOLDS)
            return GIN_OK;
        st = gin_i_pause_step(&p, quick ? polls : 1);
    }
}

/*
 * At least, of a signal: for a while, without leaving the inlined code. A look at the far cells
 * that is still under way when the near one comes would hold up what the caller does next, so it
 * starts after the shortest waits and is not repeated before the usual ones are over.
 */
GIN_DEV int gin_i_wait_quick(const struct gin_i_watched *w, const struct gin_i_cond *c)
{
    struct gin_i_far far = gin_i_far_begin(NULL);
    const int net = w->far != NULL && w->far_net;
    uint32_t polls = net ? 1 : w->far_first;
#pragma unroll 1
    for (uint32_t n = 0; n < GIN_I_QUICK_POLLS;) {
        int used = n == w->far_first + GIN_I_HOST_USED;
        int found = net && n != 0 ? gin_i_poll_net(w, c, &far)
                                  : gin_i_poll_some(w, c, &far, n != 0 && !used, polls);
        if (GIN_LIKELY(found != 0))
            return found == GIN_I_HOLDS;
        n += polls;
        if (!net)
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

#endif
