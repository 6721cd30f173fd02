/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong. An operation that fails takes its (context, peer) along, for what comes later
 * could be seen without it; other peers go on, and so do the peer's own operations here, which
 * still get their answers unless it is gone. A peer that is lost is lost for all contexts.
 */
#include "transport/core_stage.h"
#include "transport/core_stripe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gi_core_ctx_error(struct gi_core_ctx *ctx, int status, int rank, const char *why)
{
    if (atomic_load_explicit(&ctx->status, memory_order_relaxed) != GIN_OK)
        return;
    snprintf(ctx->status_text, sizeof(ctx->status_text), "%s", why);
    ctx->status_rank = rank;
    atomic_store_explicit(&ctx->status, status, memory_order_release);
    gi_info("net", "context %u: %s", ctx->tag, ctx->status_text);
}

void gi_core_ctx_fail(struct gi_core_ctx *ctx, int status, const char *why)
{
    gi_core_ctx_error(ctx, status, -1, why);
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
    char *none = NULL, *text = strdup(why);
    if (text != NULL && !atomic_compare_exchange_strong(&core->whys[rank], &none, text))
        free(text);
    if (atomic_exchange_explicit(&core->dead[rank], 1, memory_order_acq_rel) != 0)
        return;
    atomic_fetch_add_explicit(&core->deaths, 1, memory_order_acq_rel);
    if (hook && core->config.hooks.peer_lost != NULL)
        core->config.hooks.peer_lost(core->config.hooks.arg, rank, why);
}

void gi_core_peer_dead(struct gi_core *core, int rank, const char *why)
{
    gi_info("net", "operations to rank %d end: %s", rank, why);
    mark_dead(core, rank, why, false);
}

bool gi_core_peer_is_dead(const struct gi_core *core, int rank)
{
    return atomic_load_explicit(&core->dead[rank], memory_order_acquire) != 0;
}

void gi_core_lost(struct gi_core *core, int rank, const char *why)
{
    mark_dead(core, rank, why, true);
}

/* A network's word is a hint, for those who have other ways to know; else it has to do. */
static void suspect(struct gi_core *core, int rank, const char *why)
{
    const struct gi_core_hooks *h = &core->config.hooks;
    if (gi_core_peer_is_dead(core, rank))
        return;
    if (h->peer_suspect != NULL)
        h->peer_suspect(h->arg, rank, why);
    else
        mark_dead(core, rank, why, true);
}

void gi_core_see_deaths(struct gi_core_ctx *ctx)
{
    struct gi_core *core = ctx->core;
    ctx->dead_seen = atomic_load_explicit(&core->deaths, memory_order_acquire);
    for (int r = 0; r < core->config.size; r++)
        if (gi_core_peer_is_dead(core, r)) {
            const char *why = atomic_load(&core->whys[r]);
            gi_core_peer_fail(ctx, &ctx->peers[r], GIN_EPEER, why != NULL ? why : "it is dead");
        }
}

void gi_core_gone(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->gone)
        return;
    p->gone = true;
    ctx->ops->cancel_peer(ctx->lane, gi_core_rank_of(ctx, p));
    if (ctx->stripe != NULL)
        gi_core_stripe_gone(ctx, gi_core_rank_of(ctx, p));
    p->nack.status = 0;
    p->in.early_mask = p->replies.count = 0;
    p->ack_now = false;
}

/* What waits for it fails, in its order. */
static void fail_all(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status)
{
    p->unposted = NULL;
    p->ready_first = p->ready_last = NULL;
    p->echo.want = p->loose.lo = p->loose.hi = p->echo.msgs = 0;
    p->bundle.bytes = 0;
    p->amos = p->gets = p->msgs = p->slows = p->apart = 0;
    p->probe = false;
    while (p->first != NULL) {
        struct gi_core_op *op = p->first;
        p->first = op->next_peer;
        p->ops--;
        op->queued_peer = false;
        gi_core_op_fail(ctx, op, op->status != GIN_OK ? op->status : status);
    }
    p->last = NULL;
}

/*
 * What the dead one owes is in front of the answers of all: nothing else that is asked for comes
 * through here. The context goes on to serve the others, who may have asked it for nothing.
 */
static void fail_others(struct gi_core_ctx *ctx, const struct gi_core_peer *dead)
{
    char text[GI_CORE_TEXT];
    snprintf(text, sizeof(text), "%.100s, which holds up the answers of others (%.30s)",
             dead->why != NULL ? dead->why : "it is dead", ctx->caps->name);
    for (int r = 0; r < ctx->core->config.size; r++)
        if (&ctx->peers[r] != dead && ctx->peers[r].status == GIN_OK)
            gi_core_peer_fail(ctx, &ctx->peers[r], GIN_ENET, text);
}

void gi_core_peer_fail(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status, const char *why)
{
    int rank = gi_core_rank_of(ctx, p);
    char text[GI_CORE_TEXT];
    bool first = p->status == GIN_OK;
    bool held_up = first && status == GIN_EPEER && ctx->caps->one_queue && p->pieces != 0;
    if (first) {
        bool named = strncmp(why, "rank ", 5) == 0; /* a whole sentence, of a death */
        snprintf(text, sizeof(text), "%s", why);
        if (!named)
            snprintf(text, sizeof(text), "rank %d: %s", rank, why);
        p->why = strdup(text);
        __atomic_store_n(&p->status, status, __ATOMIC_RELEASE);
        int none = -1;
        __atomic_compare_exchange_n(&ctx->first_failed, &none, rank, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
        /* A death costs only the contexts on which something to the dead one was under way. */
        if (status != GIN_EPEER || gi_core_owes(p) || p->bundle.bytes != 0)
            gi_core_ctx_error(ctx, status, rank, text);
    }
    if (status == GIN_EPEER || ctx->lane_dead)
        gi_core_gone(ctx, p);
    if (first)
        fail_all(ctx, p, status);
    gi_core_stage_kick(ctx, p); /* what it has under way there ends, too */
    if (p->gone)
        gi_core_replace(ctx, p);
    if (status == GIN_EPEER && first)
        suspect(ctx->core, rank, why);
    if (held_up)
        fail_others(ctx, p);
}

int gi_core_peer_status(const struct gi_core_ctx *ctx, int peer, const char **text)
{
    const struct gi_core_peer *p = &ctx->peers[peer];
    int st = __atomic_load_n(&p->status, __ATOMIC_ACQUIRE);
    if (text != NULL)
        *text = st == GIN_OK ? "" : p->why != NULL ? p->why : gin_status_name(st);
    return st;
}

void gi_core_peer_cost(struct gi_core_ctx *ctx, int peer)
{
    const char *text;
    int st = gi_core_peer_status(ctx, peer, &text);
    if (st != GIN_OK)
        gi_core_ctx_error(ctx, st, peer, text);
}

int gi_core_first_failed(const struct gi_core_ctx *ctx)
{
    return __atomic_load_n(&ctx->first_failed, __ATOMIC_ACQUIRE);
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

/*
 * Nobody knows which one it was, so the peer may wait for just that: an answer, an acknowledgement.
 * It is told; and where not even that gets through, it hears nothing any more and finds out so.
 */
static void message_failed(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status,
                           const char *why)
{
    if (p->refused)
        gi_core_gone(ctx, p);
    gi_core_peer_fail(ctx, p, status, why);
    if (p->gone)
        return;
    p->refused = true;
    p->nack.status = GIN_ENET;
    p->nack.kind = GI_CORE_NACK_LOST;
    gi_core_kick(ctx, p);
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
            message_failed(ctx, &ctx->peers[peer], status, why);
        else
            gi_core_lane_dead(ctx, why);
        return;
    }
    struct gi_core_op *op = c->op;
    struct gi_core_peer *p = op != NULL ? op->peer : c->peer;
    if (op == NULL) {
        if (c->pull != NULL)
            gi_core_stage_read(ctx, c, status);
        else
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
    if (p != NULL && (m == NULL || m->h.kind != GI_CORE_MSG_FETCH))
        p->in.lacks = true;
    if (p != NULL)
        gi_core_nack(ctx, p, status, m != NULL ? m->h.kind : 0, window, off);
}

void gi_core_nack(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status, uint32_t kind,
                  uint32_t window, uint64_t off)
{
    if (p->gone || p->nack.status != 0)
        return;
    p->nack.status = status;
    p->refused = true;
    p->nack.kind = kind;
    p->nack.window = window;
    p->nack.off = off;
    gi_core_kick(ctx, p);
}

void gi_core_nacked(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m)
{
    static const char *const kinds[] = {"an immediate or a malformed message",
                                        "a signal",
                                        "a put or signal",
                                        "an atomic",
                                        "a small put",
                                        "an echo, for signals before it are lost,",
                                        "a staged put or answer",
                                        "a get of staged memory"};
    char text[GI_CORE_TEXT];
    uint32_t kind = m->nack.kind < 8 ? m->nack.kind : 0;
    /* It lives, and says so: its refusal is not to be taken for a death. */
    bool odd = m->nack.status >= 0 || m->nack.status == GIN_EPEER;
    int status = odd ? GIN_ENET : m->nack.status;
    if (m->nack.kind == GI_CORE_NACK_LOST)
        snprintf(text, sizeof(text), "the network lost what it sent to here");
    else if (m->nack.kind == GI_CORE_NACK_COPY)
        snprintf(text, sizeof(text),
                 "its GPU memory could not be copied, for window 0x%x, offset %llu: %s",
                 m->nack.window, (unsigned long long)m->nack.off, gin_status_name(status));
    else
        snprintf(text, sizeof(text), "it refused %s for window or slot 0x%x, offset %llu: %s",
                 kinds[kind], m->nack.window, (unsigned long long)m->nack.off,
                 gin_status_name(status));
    gi_core_peer_fail(ctx, p, status, text);
}
