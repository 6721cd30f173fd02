/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: which peers are lost. While a peer owes something and shows no sign of life it is
 * asked for an echo after a quarter of the time allowed, and given up when all of it has passed
 * since the last sign, and half of it since the question left. So is one for which the network
 * takes nothing all that time, unless that may be the fault of a silent one whose operations fill
 * the lane: that one goes first, and the others get their time anew.
 *
 * Signs of life are what its process did: messages, immediates, completions that need its CPU.
 * Where a NIC serves peers alone, what that completes counts as long as nothing is owed by the
 * process. A healthy peer behind a slow or distant link is told apart by what is in front of its
 * answer (pieces that complete after the question left) and by how long echoes took before.
 *
 * A peer that lives while the same operation stays under way for twice that time is not to blame:
 * the network has lost it, as some do with what the target refused. That fails the peer here, with
 * GIN_ENET, and is no death.
 *
 * Time is that of the context, which stands still while nobody polls: a process that was stopped
 * does not take its own silence for its peers'.
 */
#include "transport/core_stage.h"

#include <stdio.h>

#define WATCH_IDLE  16u /* polls without an event between looks at the clock */
#define WATCH_BUSY  4096u
#define NS_PER_BYTE 100u /* of the piece under way, added to the time allowed: 10 MB/s */
#define STEPS       4u   /* most looks' worth of time that one look counts for */
#define STRETCH     4u   /* most times the time allowed that distance can ask for */

bool gi_core_owes(const struct gi_core_peer *p)
{
    return p->first != NULL || p->out.sent != p->out.acked || p->loose.lo != 0 || p->amos != 0 ||
           (p->stage != NULL && p->stage->busy != 0);
}

/* ... something that a NIC cannot give. */
static bool process_owes(const struct gi_core_peer *p)
{
    return p->out.sent != p->out.acked || p->amos != 0;
}

static uint64_t limit_of(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    uint64_t limit = ctx->core->config.peer_timeout_ns, most = STRETCH * limit;
    uint64_t far = 2 * (p->watched.rtt + 4 * p->watched.rtt_var);
    uint64_t bytes = p->bytes < ctx->plan->piece ? p->bytes : ctx->plan->piece;
    far = far < most ? far : most;
    return (far > limit ? far : limit) + bytes * NS_PER_BYTE;
}

static void see_echo(const struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_watched *w = &p->watched;
    if (p->echo.msgs == w->echo)
        return;
    if (w->echo != 0) {
        /* It left up to one look before it was seen. */
        uint64_t took = ctx->clock - w->echo_since + ctx->core->watch_ns;
        uint64_t off = took > w->rtt ? took - w->rtt : w->rtt - took;
        w->rtt_var = w->rtt != 0 ? (3 * w->rtt_var + off) / 4 : took / 2;
        w->rtt = w->rtt != 0 ? (7 * w->rtt + took) / 8 : took;
    }
    w->echo = p->echo.msgs;
    w->echo_since = ctx->clock;
}

/* Count the time in which the oldest operation gets nowhere. Those that only an echo proves are
 * under way while one is, or the word of their delivery. */
static void see_oldest(const struct gi_core_ctx *ctx, struct gi_core_peer *p, bool begin, bool life)
{
    struct gi_core_watched *w = &p->watched;
    const struct gi_core_op *op = p->first;
    uint64_t quiet = ctx->clock - w->silent_since;
    uint64_t oldest = op != NULL ? op->seq : 0, part = op != NULL ? op->offset + op->pieces : 0;
    if (p->loose.lo != 0 && (p->echo.msgs != 0 || p->prompt.hi != 0) &&
        (oldest == 0 || p->loose.lo < oldest))
        oldest = p->loose.lo;
    if (begin || oldest == 0 || oldest != w->oldest || part != w->part)
        w->held = 0;
    else if (life) /* since the last sign of it; a stop in between is not held against it whole */
        w->held += quiet < limit_of(ctx, p) / 2 ? quiet : limit_of(ctx, p) / 2;
    w->oldest = oldest;
    w->part = part;
}

static void look(const struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_watched *w = &p->watched;
    bool begin = w->silent_since == 0;
    bool life = p->signs.heard != w->heard || (p->signs.moved != w->moved && !process_owes(p));
    bool asked = p->echo.msgs != 0 || p->out.sent - p->out.acked >= ctx->credits;
    see_oldest(ctx, p, begin, life);
    if (begin || life)
        w->silent_since = ctx->clock;
    if (begin || p->signs.again == 0 || p->signs.taken != w->taken)
        w->refused_since = ctx->clock;
    if (!asked)
        w->asked_since = 0;
    else if (begin || life || w->asked_since == 0)
        w->asked_since = ctx->clock;
    w->heard = p->signs.heard;
    w->moved = p->signs.moved;
    w->taken = p->signs.taken;
    see_echo(ctx, p);
    if (ctx->clock - w->silent_since >= limit_of(ctx, p) / 4 && !p->probe && p->echo.msgs == 0) {
        p->probe = true;
        gi_core_kick((struct gi_core_ctx *)(uintptr_t)ctx, p);
    }
}

static bool is_silent(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    const struct gi_core_watched *w = &p->watched;
    uint64_t limit = limit_of(ctx, p);
    return ctx->clock - w->silent_since >= limit && w->asked_since != 0 &&
           ctx->clock - w->asked_since >= limit / 2;
}

static bool is_refused(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    const struct gi_core_watched *w = &p->watched;
    uint64_t limit = limit_of(ctx, p);
    return p->signs.again != 0 && ctx->clock - w->refused_since >= limit &&
           ctx->clock - w->silent_since >= limit;
}

static void lost_by_network(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    char why[GI_CORE_TEXT];
    snprintf(why, sizeof(why),
             "the network has lost an operation: not complete after %llu ms, "
             "though the rank answers",
             (unsigned long long)(p->watched.held / 1000000));
    gi_core_peer_fail(ctx, p, GIN_ENET, why);
}

static void give_up(struct gi_core_ctx *ctx, struct gi_core_peer *p, const char *what)
{
    char why[GI_CORE_TEXT];
    snprintf(why, sizeof(why), "%s for %llu ms", what,
             (unsigned long long)((ctx->clock - p->watched.silent_since) / 1000000));
    gi_core_lost(ctx->core, gi_core_rank_of(ctx, p), why);
    gi_core_peer_fail(ctx, p, GIN_EPEER, why);
}

/* Look at all that owe something; the others are no longer watched. True: one is silent. */
static bool look_at_all(struct gi_core_ctx *ctx)
{
    bool silent = false;
    for (struct gi_core_peer **at = &ctx->dirty, *p; (p = *at) != NULL;) {
        if (p->status == GIN_OK && gi_core_owes(p)) {
            look(ctx, p);
            silent |= is_silent(ctx, p);
            at = &p->next_dirty;
        } else {
            *at = p->next_dirty;
            p->dirty = false;
        }
    }
    return silent;
}

static void watch_all(struct gi_core_ctx *ctx)
{
    bool silent = look_at_all(ctx);
    for (struct gi_core_peer *p = ctx->dirty; p != NULL; p = p->next_dirty) {
        if (p->status != GIN_OK || p->watched.silent_since == 0)
            continue; /* it came while others were given up */
        if (is_silent(ctx, p))
            give_up(ctx, p, "no answer");
        else if (p->signs.again != 0 && silent)
            p->watched.silent_since = 0;
        else if (is_refused(ctx, p))
            give_up(ctx, p, "the network takes nothing for it");
        else if (p->watched.held >= 2 * limit_of(ctx, p))
            lost_by_network(ctx, p);
    }
}

void gi_core_watch(struct gi_core_ctx *ctx)
{
    struct gi_core *core = ctx->core;
    if (GIN_UNLIKELY(atomic_load_explicit(&core->deaths, memory_order_relaxed) != ctx->dead_seen))
        gi_core_see_deaths(ctx);
    if (core->watch_ns == 0 || ctx->dirty == NULL)
        return;
    if (ctx->idle++ < WATCH_IDLE && ++ctx->busy < WATCH_BUSY)
        return;
    ctx->idle = ctx->busy = 0;
    uint64_t now = gi_now_ns(), past = now - ctx->last_watch;
    if (past < core->watch_ns)
        return;
    ctx->last_watch = now;
    ctx->clock += past < STEPS * core->watch_ns ? past : STEPS * core->watch_ns;
    watch_all(ctx);
}
