/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put and get as they are called: checked against what the window is at the peer, then posted or
 * queued. A small put to a peer for whom nothing waits is handed to the network at once and leaves
 * no operation behind.
 */
#include "transport/core_stage.h"
#include "transport/core_stripe.h"

static int check(const struct gi_core_ctx *ctx, int peer, uint32_t window, uint64_t off,
                 uint64_t bytes, struct gi_core_place *at)
{
    if (GIN_UNLIKELY(ctx->peers[peer].status != GIN_OK))
        return ctx->peers[peer].status;
    int st = gi_core_locate(ctx->core, ctx->rail, peer, window, off, bytes, at);
    /* Of a window's pieces some may be staged. */
    if (GIN_UNLIKELY(st == GIN_OK && !at->host && at->run < bytes))
        at->staged = gi_core_any_staged(ctx->core, peer, window, off, bytes);
    return st;
}

/* True: done with it, *st says how. False: it takes an operation. */
static bool at_once(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_put *put,
                    const struct gi_core_place *at, enum gi_core_way way)
{
    if (put->bytes > ctx->plan->inject || put->bytes == 0 || p->unposted != NULL ||
        at->run < put->bytes || (way != GI_CORE_WAY_NONE && way != GI_CORE_WAY_IMM) || p->pushing)
        return false;
    bool imm = way == GI_CORE_WAY_IMM;
    if (p->bundle.bytes != 0 && !gi_core_bundle_send(ctx, p))
        return false;
    struct gi_core_chunk *told = imm ? NULL : gi_core_prompt_take(ctx, p);
    struct gi_net_io io = {.peer = gi_core_rank_of(ctx, p),
                           .flags = GI_NET_INLINE | (imm ? GI_NET_IMM : 0) |
                                    (told != NULL ? GI_NET_DELIVERED : 0),
                           .local = (void *)(uintptr_t)put->src,
                           .mr = put->region != NULL ? put->region->mr[ctx->rail] : NULL,
                           .key = at->key,
                           .remote = at->remote,
                           .len = put->bytes,
                           .imm = imm ? gi_core_imm(ctx, &put->action) : 0,
                           .req = told != NULL ? &told->req : NULL};
    if (gi_core_posted(ctx, p, ctx->ops->write(ctx->lane, &io)) != GIN_OK) {
        if (told != NULL)
            gi_core_chunk_give(ctx, p, told);
        return false;
    }
    p->bundle.burst = ctx->pauses;
    p->out.imms += imm;
    ctx->counts[imm ? GI_CORE_N_WRITE_IMM : GI_CORE_N_WRITE]++;
    uint64_t seq = gi_core_op_none(ctx, p);
    gi_core_loosen(ctx, p, seq);
    if (imm)
        p->imm_hi = seq;
    else
        gi_core_prompt_sent(p, told, seq);
    if (put->counter != NULL)
        GIN_ADD_RELEASE(put->counter, (uint64_t)1);
    if (put->notice != NULL)
        put->notice->fn(put->notice, GIN_OK);
    return true;
}

/* The engine there may have to wait for its GPU before it has handled the put's action. */
static inline bool is_slow(const struct gi_core *core, const struct gi_core_action *a)
{
    bool word = a->kind == GI_CORE_WORD_ADD || a->kind == GI_CORE_WORD_SET;
    return word && core->stage != NULL && gi_core_window_is_slow(core, a->id);
}

static void fill(struct gi_core_op *op, const struct gi_core_put *put, enum gi_core_way way)
{
    op->way = (uint8_t)way;
    op->sent = way == GI_CORE_WAY_NONE || way == GI_CORE_WAY_IMM || way == GI_CORE_WAY_WHOLE;
    op->msg = way == GI_CORE_WAY_WHOLE || way == GI_CORE_WAY_MSG || way == GI_CORE_WAY_WEAK ||
              way == GI_CORE_WAY_STRONG;
    op->window = put->window;
    op->off = put->off;
    op->bytes = put->bytes;
    op->region = put->region;
    op->local = (char *)(uintptr_t)put->src;
    op->action = put->action;
    op->counter = put->counter;
    op->notice = put->notice;
    bool device = put->region != NULL && put->region->device;
    if (put->copy && put->bytes != 0 && !device) {
        memcpy(op->inlined, put->src, put->bytes);
        op->local = op->inlined;
    }
}

/* A later signal does not wait for the operations before it, if it is not told to. */
static bool others_pass(const struct gi_core_ctx *ctx)
{
    return ctx->plan->ordered || ctx->epochs != NULL;
}

/* Where messages carry puts, the CPU has to reach both ends. */
static bool is_staged(const struct gi_core_ctx *ctx, const struct gi_core_put *put,
                      const struct gi_core_place *at)
{
    return at->staged || ctx->plan->by_msg || (put->region != NULL && put->region->staged);
}

/* Or in one message, if the CPU reaches the source. */
static int put_staged(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                      const struct gi_core_put *put, const struct gi_core_place *at)
{
    bool device = put->region != NULL && put->region->device;
    enum gi_core_way way = gi_core_stage_way(ctx, p, put);
    if (GIN_UNLIKELY(device && gi_core_gpu(ctx->core) == NULL))
        return GIN_ENOTSUP;
    struct gi_core_op *op = gi_core_op_take(ctx, gi_core_rank_of(ctx, p), GI_CORE_PUT);
    if (op == NULL) {
        gi_core_push(ctx, p);
        return GIN_EAGAIN;
    }
    fill(op, put, way);
    op->device = device;
    op->staged = device || way != GI_CORE_WAY_WHOLE;
    op->msg = true;
    /* ... or its bytes, whether the network reaches their place or not. */
    op->slow = way != GI_CORE_WAY_WHOLE || !at->host || is_slow(ctx->core, &put->action);
    op->apart = way == GI_CORE_WAY_STRONG && others_pass(ctx);
    gi_core_op_enqueue(ctx, op);
    gi_core_push(ctx, p);
    return GIN_OK;
}

int gi_core_put(struct gi_core_ctx *ctx, int peer, const struct gi_core_put *put)
{
    struct gi_core_peer *p = &ctx->peers[peer];
    struct gi_core_place at = {.run = 0, .host = true};
    int st = p->status;
    if (put->bytes != 0)
        st = check(ctx, peer, put->window, put->off, put->bytes, &at);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_UNLIKELY(put->copy && put->bytes > GI_CORE_COPY))
        return GIN_EINVAL;
    bool device = put->region != NULL && put->region->device && put->bytes != 0;
    if (GIN_UNLIKELY(!at.host || device) && is_staged(ctx, put, &at))
        return gi_core_stages(ctx->core) ? put_staged(ctx, p, put, &at) : GIN_ENOTSUP;
    bool single = put->bytes <= at.run && put->bytes <= ctx->plan->piece;
    at.host = at.host && !device; /* what follows is for the NIC alone */
    /* Copies of small ones are registered on the home rail alone. */
    bool striped = GIN_UNLIKELY(put->bytes >= ctx->stripe_from) && !put->copy;
    enum gi_core_way way =
        striped ? gi_core_stripe_way(put) : gi_core_choose(ctx, p, put, single, at.host);
    if (way != GI_CORE_WAY_STRONG && gi_core_bundle_fits(ctx, p, put, at.host))
        return gi_core_bundle_add(ctx, p, put);
    if (!device && at_once(ctx, p, put, &at, way))
        return GIN_OK;
    if (GIN_UNLIKELY(p->status != GIN_OK))
        return p->status;
    struct gi_core_op *op = gi_core_op_take(ctx, peer, GI_CORE_PUT);
    if (op == NULL) {
        gi_core_push(ctx, p);
        return GIN_EAGAIN;
    }
    fill(op, put, way);
    op->slow = is_slow(ctx->core, &put->action);
    op->striped = striped;
    op->apart = striped || (way == GI_CORE_WAY_STRONG && others_pass(ctx));
    gi_core_op_enqueue(ctx, op);
    if (put->copy && put->action.kind == GI_CORE_NONE && !ctx->plan->ordered)
        gi_core_prompt_lone(p, op->seq);
    gi_core_push(ctx, p);
    return GIN_OK;
}

int gi_core_get(struct gi_core_ctx *ctx, int peer, const struct gi_core_get *get)
{
    struct gi_core_peer *p = &ctx->peers[peer];
    struct gi_core_place at = {.run = 0};
    int st = p->status;
    if (get->bytes != 0)
        st = check(ctx, peer, get->window, get->off, get->bytes, &at);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    bool device = get->region != NULL && get->region->device && get->bytes != 0;
    bool staged = at.staged || (device && get->region->staged);
    if (GIN_UNLIKELY(staged &&
                     (!gi_core_stages(ctx->core) || (device && gi_core_gpu(ctx->core) == NULL))))
        return GIN_ENOTSUP;
    struct gi_core_op *op = gi_core_op_take(ctx, peer, GI_CORE_GET);
    if (op == NULL) {
        gi_core_push(ctx, p);
        return GIN_EAGAIN;
    }
    op->window = get->window;
    op->off = get->off;
    op->bytes = get->bytes;
    op->staged = staged;
    op->device = device;
    op->local = get->dst;
    op->region = get->region;
    op->counter = get->counter;
    op->notice = get->notice;
    gi_core_op_enqueue(ctx, op);
    gi_core_push(ctx, p);
    return GIN_OK;
}

bool gi_core_needs_region(const struct gi_core *core)
{
    for (uint32_t i = 0; i < core->config.n_domains; i++)
        if (core->caps[i]->mr_local)
            return true;
    return false;
}
