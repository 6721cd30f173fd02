/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong. An operation that fails takes its (context, peer) along, for what comes later
 * could be seen without it; other peers go on. A peer that seems to be lost is lost for all
 * contexts. The watchdog finds those that fell silent: while a peer owes an answer it is asked
 * after a quarter of the time allowed, and given up after all of it; so is one that the network
 * would take nothing for, all that time.
 */
#include "transport/core_int.h"

#include <stdio.h>

#define WATCH_IDLE  16u /* polls without an event between looks at the clock */
#define WATCH_BUSY  4096u
#define NS_PER_BYTE 100u /* of what is under way, added to the time allowed: 10 MB/s */

void gi_core_ctx_error(struct gi_core_ctx *ctx, int status, int rank, const char *why)
{
    if (atomic_load_explicit(&ctx->status, memory_order_relaxed) != GIN_OK)
        return;
    snprintf(ctx->status_text, sizeof(ctx->status_text), "%s", why);
    ctx->status_rank = rank;
    atomic_store_explicit(&ctx->status, status, memory_order_release);
    gi_info("net", "context %u: %s", ctx->tag, ctx->status_text);
}

int gi_core_ctx_status(const struct gi_core_ctx *ctx, int *rank, const char **text)
{
    int st = atomic_load_explicit(&ctx->status, memory_order_acquire);
    if (rank != NULL)
        *rank = st != GIN_OK ? ctx->status_rank : -1;
    if (text != NULL)
        *text = st != GIN_OK ? ctx->status_text : "";
    return st;
}

/* Told by whom: hook says that nobody outside knows it. */
static void mark_dead(struct gi_core *core, int rank, const char *why, bool hook)
{
    if (atomic_exchange_explicit(&core->dead[rank], 1, memory_order_acq_rel) != 0)
        return;
    atomic_fetch_add_explicit(&core->deaths, 1, memory_order_acq_rel);
    if (hook && core->config.hooks.peer_lost != NULL)
        core->config.hooks.peer_lost(core->config.hooks.arg, rank, why);
}

void gi_core_peer_dead(struct gi_core *core, int rank, const char *why)
{
    gi_info("net", "rank %d is dead: %s", rank, why);
    mark_dead(core, rank, why, false);
}

bool gi_core_peer_is_dead(const struct gi_core *core, int rank)
{
    return atomic_load_explicit(&core->dead[rank], memory_order_acquire) != 0;
}

void gi_core_peer_fail(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status, const char *why)
{
    int rank = gi_core_rank_of(ctx, p);
    char text[GI_CORE_TEXT];
    if (p->status != GIN_OK)
        return;
    p->status = status;
    snprintf(text, sizeof(text), "rank %d: %s", rank, why);
    gi_core_ctx_error(ctx, status, rank, text);
    ctx->ops->cancel_peer(ctx->lane, rank);
    p->unposted = NULL;
    p->ready_first = p->ready_last = NULL;
    p->want = p->loose_lo = p->loose_hi = p->cover_msg = 0;
    p->nack = 0;
    p->bundled = 0;
    p->early_mask = p->reply_count = p->amos = p->gets = p->msgs = 0;
    p->probe = p->ack_now = false;
    while (p->first != NULL) {
        struct gi_core_op *op = p->first;
        p->first = op->next_peer;
        p->ops--;
        op->queued_peer = false;
        gi_core_op_fail(ctx, op, op->status != GIN_OK ? op->status : status);
    }
    p->last = NULL;
    if (status == GIN_EPEER)
        mark_dead(ctx->core, rank, why, true);
}

void gi_core_lane_dead(struct gi_core_ctx *ctx, const char *why)
{
    if (ctx->lane_dead)
        return;
    ctx->lane_dead = true;
    gi_core_ctx_error(ctx, GIN_ENET, -1, why);
    for (int r = 0; r < ctx->core->config.size; r++)
        gi_core_peer_fail(ctx, &ctx->peers[r], GIN_ENET, why);
}

void gi_core_failed(void *arg, struct gi_net_request *req, int peer, int status, int provider_error,
                    const char *text)
{
    struct gi_core_ctx *ctx = arg;
    struct gi_core_chunk *c = (struct gi_core_chunk *)req;
    char why[GI_CORE_TEXT];
    snprintf(why, sizeof(why), "%s (%d)", text != NULL ? text : "the network failed",
             provider_error);
    if (c == NULL) {
        if (peer >= 0 && peer < ctx->core->config.size)
            gi_core_peer_fail(ctx, &ctx->peers[peer], status, why);
        else
            gi_core_lane_dead(ctx, why);
        return;
    }
    struct gi_core_op *op = c->op;
    struct gi_core_peer *p = op != NULL ? op->peer : c->peer;
    if (op == NULL) {
        gi_core_prompt_failed(ctx, c);
        gi_core_peer_fail(ctx, p, status, why);
        return;
    }
    op->pieces--;
    p->bytes -= c->bytes;
    gi_core_chunk_give(ctx, p, c);
    if (op->done)
        gi_core_op_check(ctx, op);
    else
        gi_core_peer_fail(ctx, p, status, why);
}

/* ---- refusals ---- */

void gi_core_refuse(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status,
                    const struct gi_core_msg *m, uint32_t window, uint64_t off)
{
    ctx->counts[GI_CORE_N_REFUSED]++;
    if (p == NULL || p->status != GIN_OK || p->nack != 0)
        return;
    p->nack = status;
    p->nack_kind = m != NULL ? m->h.kind : 0;
    p->nack_window = window;
    p->nack_off = off;
    gi_core_kick(ctx, p);
}

void gi_core_nacked(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m)
{
    static const char *const kinds[] = {"an immediate or a malformed message", "a signal",
                                        "a put or signal", "an atomic", "a small put"};
    char text[GI_CORE_TEXT];
    uint32_t kind = m->nack.kind < 5 ? m->nack.kind : 0;
    int rank = gi_core_rank_of(ctx, p);
    int status = m->nack.status < 0 ? m->nack.status : GIN_ENET;
    snprintf(text, sizeof(text), "rank %d refused %s for window or slot 0x%x, offset %llu: %s",
             rank, kinds[kind], m->nack.window, (unsigned long long)m->nack.off,
             gin_status_name(status));
    gi_core_ctx_error(ctx, status, rank, text);
}

/* ---- watchdog ---- */

static void see_deaths(struct gi_core_ctx *ctx)
{
    struct gi_core *core = ctx->core;
    ctx->dead_seen = atomic_load_explicit(&core->deaths, memory_order_acquire);
    for (int r = 0; r < core->config.size; r++)
        if (gi_core_peer_is_dead(core, r))
            gi_core_peer_fail(ctx, &ctx->peers[r], GIN_EPEER, "it is dead");
}

static bool owes(const struct gi_core_peer *p)
{
    return p->first != NULL || p->sent != p->acked || p->loose_lo != 0 || p->amos != 0;
}

static void watch_peer(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t now)
{
    uint64_t limit = ctx->core->config.peer_timeout_ns + p->bytes * NS_PER_BYTE;
    char why[GI_CORE_TEXT];
    if (p->again == 0 || p->again_since == 0)
        p->again_since = now;
    if (p->events != p->seen_events || p->quiet_since == 0) {
        p->seen_events = p->events;
        p->quiet_since = now;
    }
    if (p->again != 0 && now - p->again_since >= limit) {
        snprintf(why, sizeof(why), "the network takes nothing for it for %llu ms",
                 (unsigned long long)(limit / 1000000));
        gi_core_peer_fail(ctx, p, GIN_EPEER, why);
    } else if (now - p->quiet_since >= limit) {
        snprintf(why, sizeof(why), "no answer for %llu ms", (unsigned long long)(limit / 1000000));
        gi_core_peer_fail(ctx, p, GIN_EPEER, why);
    } else if (now - p->quiet_since >= limit / 4 && !p->probe && p->cover_msg == 0) {
        p->probe = true;
        gi_core_kick(ctx, p);
    }
}

static void watch_all(struct gi_core_ctx *ctx, uint64_t now)
{
    for (struct gi_core_peer **at = &ctx->dirty, *p; (p = *at) != NULL;) {
        if (p->status == GIN_OK && owes(p)) {
            watch_peer(ctx, p, now);
            at = &p->next_dirty;
        } else {
            *at = p->next_dirty;
            p->dirty = false;
            p->quiet_since = p->again_since = 0;
        }
    }
}

void gi_core_watch(struct gi_core_ctx *ctx)
{
    struct gi_core *core = ctx->core;
    if (GIN_UNLIKELY(atomic_load_explicit(&core->deaths, memory_order_relaxed) != ctx->dead_seen))
        see_deaths(ctx);
    if (core->watch_ns == 0 || ctx->dirty == NULL)
        return;
    if (ctx->idle++ < WATCH_IDLE && ++ctx->busy < WATCH_BUSY)
        return;
    ctx->idle = ctx->busy = 0;
    uint64_t now = gi_now_ns();
    if (now < ctx->next_watch)
        return;
    ctx->next_watch = now + core->watch_ns;
    watch_all(ctx, now);
}
