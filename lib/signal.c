/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for signals, counters and words. Every wait is a condition on a 64-bit word, or a set of
 * them, and one loop: look often, give the core away where ranks share it, then wait with deadline
 * and health checks. A condition that has come true wins over whatever ended the wait.
 */
#include <inttypes.h>
#include <string.h>

#include "net_wait.h"

#define ROLLING ((gin_cmp_t)-1)

/* (cells or word - base) cmp operand, in the low bits */
struct cond {
    const struct gin_i_cells *cells; /* of a signal; else NULL */
    const uint64_t *word;
    const uint64_t *base; /* NULL: 0 */
    uint64_t operand;
    uint32_t bits;
    gin_cmp_t cmp;
};

/* A wait of one thread: one condition, or a set of signals. */
struct waiting {
    const gin_t *g;
    const char *call;
    const gin_wait_opt_t *opt;
    const char *what; /* with id, context, value and operand */
    const char *noun; /* "signal", "counter", "word" */
    uint64_t id;      /* printed behind noun */
    struct cond c;    /* the only one, or the one of the set that was looked at last */
    struct set *set;  /* NULL: only c */
};

struct set {
    int mode; /* enum set_mode */
    const uint32_t *ids;
    const uint64_t *least;
    const int *skip;
    size_t n;
    size_t from; /* all: nothing before this entry is unsatisfied */
    size_t *which, *count;
};
enum set_mode { SET_ALL = 0, SET_ANY = 1, SET_SOME = 2 };

static inline uint64_t value_of(const struct cond *c)
{
    if (c->cells != NULL)
        return gin_i_cells_above(c->cells, c->base);
    return c->base != NULL ? gin_i_above(c->word, c->base) : GIN_LOAD_ACQUIRE(c->word);
}

static int holds(const struct cond *c)
{
    uint64_t mask = ~(uint64_t)0 >> (64 - c->bits);
    uint64_t v = value_of(c) & mask, operand = c->operand & mask;
    switch ((int)c->cmp) {
    case (int)ROLLING: return gin_i_rolling_le(operand, v, c->bits);
    case GIN_CMP_EQ: return v == operand;
    case GIN_CMP_NE: return v != operand;
    case GIN_CMP_GT: return v > operand;
    case GIN_CMP_GE: return v >= operand;
    case GIN_CMP_LT: return v < operand;
    default: return v <= operand;
    }
}

/* ---- sets ---- */

static inline int set_skips(const struct set *s, size_t i)
{
    return s->skip != NULL && s->skip[i] != 0;
}

/* Points w->c at entry i. */
static int entry_holds(struct waiting *w, size_t i)
{
    const struct set *s = w->set;
    w->id = s->ids[i];
    w->c.cells = &w->g->ctx->signals[w->id];
    w->c.base = &w->g->ctx->bases[w->id].base;
    w->c.operand = s->least[i];
    return holds(&w->c);
}

/* Outputs are written when it is over only: count is taken last, when at least one is satisfied. */
static int set_holds(struct waiting *w)
{
    struct set *s = w->set;
    size_t found = 0;
    for (size_t i = s->from; i < s->n; i++) {
        if (set_skips(s, i))
            continue;
        int ok = entry_holds(w, i);
        if (s->mode == SET_ALL && !ok)
            return 0;
        if (s->mode == SET_ALL)
            s->from = i + 1;
        if (s->mode == SET_ANY && ok) {
            *s->which = i;
            return 1;
        }
        if (s->mode == SET_SOME && ok)
            s->which[found++] = i;
    }
    if (s->mode == SET_SOME && found != 0)
        *s->count = found;
    return s->mode == SET_ALL || found != 0;
}

/* ---- the loop ---- */

static inline int over(struct waiting *w)
{
    return w->set != NULL ? set_holds(w) : holds(&w->c);
}

static int late(const struct waiting *w, uint64_t ns)
{
    uint64_t v = value_of(&w->c);
    if (w->set != NULL && w->set->mode != SET_ALL)
        return gi_fail(GIN_ETIMEDOUT,
                       "%s: none of %zu signals of context %" PRIu32
                       " after %.3f s; the last, %" PRIu64 ", is %" PRIu64 ", wanted %" PRIu64,
                       w->call, w->set->n, w->g->ctx->index, (double)ns * 1e-9, w->id, v,
                       w->c.operand);
    return gi_fail(GIN_ETIMEDOUT,
                   "%s: %s %" PRIu64 " of context %" PRIu32 " is %" PRIu64 " (%#" PRIx64
                   ") after %.3f s, wanted %" PRIu64 " (%#" PRIx64 ")",
                   w->call, w->noun, w->id, w->g->ctx->index, v, v, (double)ns * 1e-9, w->c.operand,
                   w->c.operand);
}

static int wait_long(struct waiting *w, uint64_t timeout_ns)
{
    gin_comm_t *comm = gi_comm_of(w->g);
    struct gi_net_wait loop;
    int st = GIN_OK;
    atomic_fetch_add_explicit(&comm->n_waits, 1, memory_order_relaxed);
    gi_net_wait_begin(&loop, comm, gi_net_context(w->g), timeout_ns, w->what);
    loop.w.detail[1] = w->g->ctx->index;
    while (!over(w)) {
        loop.w.detail[0] = w->id;
        loop.w.detail[2] = value_of(&w->c);
        loop.w.detail[3] = w->c.operand;
        st = gi_net_wait_step(&loop);
        if (st != GIN_OK)
            break;
    }
    gi_net_wait_end(&loop);
    if (st == GIN_OK || over(w))
        return GIN_OK;
    if (st == GIN_ETIMEDOUT)
        return late(w, timeout_ns);
    gi_net_status(w->g);
    return gi_fail_context("%s: waiting for %s %" PRIu64 " of context %" PRIu32, w->call, w->noun,
                           w->id, w->g->ctx->index);
}

/* One look of a program that polls: it learns of failures, too. */
static int poll_once(struct waiting *w)
{
    struct gi_core_ctx *ctx = gi_net_context(w->g);
    const struct gi_net_wait n = gi_net_look(gi_comm_of(w->g), ctx);
    gi_net_drive(n.comm, ctx);
    if (over(w))
        return GIN_OK;
    int st = gi_net_failed(&n);
    if (GIN_LIKELY(st == GIN_OK))
        return GIN_EAGAIN;
    gi_net_status(w->g);
    return gi_fail_context("%s: waiting for %s %" PRIu64 " of context %" PRIu32, w->call, w->noun,
                           w->id, w->g->ctx->index);
}

static int run(struct waiting *w)
{
    const struct gi_devcomm *d = gi_devcomm_of(w->g);
    struct gi_core_ctx *ctx = gi_net_context(w->g);
    if (over(w))
        return GIN_OK;
    if (w->opt != NULL && w->opt->poll)
        return poll_once(w);
    uint32_t spin = ctx != NULL ? gi_net_spin(d->comm) : d->comm->spin;
    for (uint32_t i = 0; i < spin; i++) {
        if (ctx != NULL)
            gi_net_drive(d->comm, ctx);
        else
            GIN_PAUSE();
        if (over(w))
            return GIN_OK;
    }
    uint64_t ns =
        w->opt != NULL && w->opt->timeout_ns != 0 ? w->opt->timeout_ns : d->wait_timeout_ns;
    for (int i = 0; ns == 0 && i < GI_WAIT_QUICK_YIELDS; i++) {
        gi_net_drive(d->comm, ctx);
        gi_os_yield();
        if (over(w))
            return GIN_OK;
    }
    return wait_long(w, ns);
}

/* ---- arguments ---- */

static int enter(struct waiting *w, const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt,
                 const char *call)
{
    uint32_t bits = opt != NULL && opt->bits != 0 ? opt->bits : 64;
    memset(w, 0, sizeof(*w));
    w->g = g;
    w->call = call;
    w->opt = opt;
    w->c.cmp = ROLLING;
    int st = gi_op_enter(g, grp, 0, call);
    if (st != GIN_OK)
        return st;
    if (bits > 64)
        return gi_fail(GIN_EINVAL, "%s: a comparison %" PRIu32 " bits wide, it must be 1 .. 64",
                       call, bits);
    w->c.bits = bits;
    return GIN_OK;
}

static int on_signal(struct waiting *w, uint32_t id)
{
    const struct gin_i_ctx *ctx = w->g->ctx;
    if (id >= ctx->n_signals) {
        gin_i_bad_id(w->g, "signal", id, ctx->n_signals);
        return gi_fail_context("%s", w->call);
    }
    w->what = "signal # of context #, which is #, wanted #";
    w->noun = "signal";
    w->id = id;
    w->c.cells = &ctx->signals[id];
    w->c.base = &ctx->bases[id].base;
    return GIN_OK;
}

static int on_word(struct waiting *w, gin_at_t at)
{
    w->what = "word at offset # (context #), which is #, wanted #";
    w->noun = "word at offset";
    w->id = at.off;
    w->c.word = gin_i_word(w->g, at);
    return w->c.word != NULL ? GIN_OK : gi_fail_context("%s", w->call);
}

/* ---- the calls ---- */

int gin_i_wait_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                      const gin_wait_opt_t *opt)
{
    struct waiting w;
    int st = enter(&w, g, grp, opt, "gin_wait_signal");
    if (st == GIN_OK)
        st = on_signal(&w, id);
    if (st != GIN_OK)
        return st;
    w.c.operand = least;
    return run(&w);
}

int gin_i_wait_until(const gin_t *g, gin_group_t grp, uint32_t id, gin_at_t at, gin_cmp_t cmp,
                     uint64_t operand, const gin_wait_opt_t *opt)
{
    struct waiting w;
    int slot = at.win.w == gin_window_none().w;
    int st = enter(&w, g, grp, opt, slot ? "gin_wait_signal_until" : "gin_wait_signal_until_at");
    if (st == GIN_OK && (unsigned)cmp > GIN_CMP_LE)
        st = gi_fail(GIN_EINVAL, "%s: comparison %u", w.call, (unsigned)cmp);
    if (st == GIN_OK)
        st = slot ? on_signal(&w, id) : on_word(&w, at);
    if (st != GIN_OK)
        return st;
    w.c.cmp = cmp;
    w.c.operand = operand;
    return run(&w);
}

int gin_i_wait_at(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t least,
                  const gin_wait_opt_t *opt)
{
    struct waiting w;
    int st = enter(&w, g, grp, opt, "gin_wait_signal_at");
    if (st == GIN_OK)
        st = on_word(&w, at);
    if (st != GIN_OK)
        return st;
    w.c.operand = least;
    return run(&w);
}

int gin_i_wait_counter(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                       const gin_wait_opt_t *opt)
{
    struct waiting w;
    int st = enter(&w, g, grp, opt, "gin_wait_counter");
    if (st != GIN_OK)
        return st;
    if (id >= g->ctx->n_counters) {
        gin_i_bad_id(g, "counter", id, g->ctx->n_counters);
        return gi_fail_context("%s", w.call);
    }
    w.what = "counter # of context #, which is #, wanted #";
    w.noun = "counter";
    w.id = id;
    w.c.word = &g->ctx->counters[id].cell;
    w.c.base = &g->ctx->counters[id].base;
    w.c.operand = least;
    return run(&w);
}

static int check_set(struct waiting *w, const struct set *s)
{
    if (s->n != 0 && (s->ids == NULL || s->least == NULL))
        return gi_fail(GIN_EINVAL, "%s: %s is NULL with %zu entries", w->call,
                       s->ids == NULL ? "ids" : "least", s->n);
    if ((s->mode == SET_ANY || (s->mode == SET_SOME && s->n != 0)) && s->which == NULL)
        return gi_fail(GIN_EINVAL, "%s: which is NULL", w->call);
    if (s->mode == SET_SOME && s->count == NULL)
        return gi_fail(GIN_EINVAL, "%s: count is NULL", w->call);
    for (size_t i = 0; i < s->n; i++) {
        int st = set_skips(s, i) ? GIN_OK : on_signal(w, s->ids[i]);
        if (st != GIN_OK)
            return gi_fail_context("entry %zu", i);
    }
    return GIN_OK;
}

int gin_i_wait_set(const gin_t *g, gin_group_t grp, int mode, const uint32_t *ids,
                   const uint64_t *least, size_t n, const int *skip, size_t *which, size_t *count,
                   const gin_wait_opt_t *opt)
{
    static const char *const calls[] = {"gin_wait_signal_all", "gin_wait_signal_any",
                                        "gin_wait_signal_some"};
    static const char *const whats[] = {
        "all of several signals: # of context # is #, wanted #",
        "any of several signals: # of context # is #, wanted #",
        "some of several signals: # of context # is #, wanted #",
    };
    struct waiting w;
    struct set s = {.mode = mode,
                    .ids = ids,
                    .least = least,
                    .skip = skip,
                    .n = n,
                    .which = which,
                    .count = count};
    int st = enter(&w, g, grp, opt, calls[mode]);
    if (st == GIN_OK)
        st = check_set(&w, &s);
    if (st != GIN_OK)
        return st;
    if (w.noun == NULL) { /* nothing to wait for */
        if (mode == SET_ANY)
            *which = n;
        if (mode == SET_SOME)
            *count = 0;
        return GIN_OK;
    }
    w.set = &s;
    w.what = whats[mode];
    return run(&w);
}

int gin_i_meet_shadow(const gin_t *g, gin_group_t grp, uint32_t id, const gin_wait_opt_t *opt)
{
    struct waiting w;
    int st = enter(&w, g, grp, opt, "gin_wait_signal_meet_shadow");
    if (st == GIN_OK)
        st = on_signal(&w, id);
    if (st != GIN_OK)
        return st;
    w.c.operand = GIN_LOAD_RELAXED(&g->ctx->bases[id].shadow);
    return run(&w);
}

int gin_i_follow_shadow(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                        uint64_t *before, uint64_t *delta, const gin_wait_opt_t *opt)
{
    struct waiting w;
    int st = enter(&w, g, grp, opt, "gin_wait_signal_follow_shadow");
    if (st == GIN_OK)
        st = on_signal(&w, id);
    if (st != GIN_OK)
        return st;
    uint64_t *shadow = &g->ctx->bases[id].shadow;
    w.c.operand = GIN_LOAD_RELAXED(shadow) + least;
    st = run(&w);
    if (st != GIN_OK)
        return st;
    uint64_t now = value_of(&w.c);
    uint64_t was = __atomic_exchange_n(shadow, now, __ATOMIC_RELAXED); /* threads' deltas add up */
    if (before != NULL)
        *before = was;
    if (delta != NULL)
        *delta = now - was;
    return GIN_OK;
}
