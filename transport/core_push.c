/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: what waits for a peer goes out in its order, as far as the network takes it. A peer that
 * the network refuses holds up nobody else; its operation stays first and is tried again from the
 * next poll on. Pools, caps per peer and credits bound what is under way.
 */
#include "transport/core_epoch.h"
#include "transport/core_stage.h"
#include "transport/core_stripe.h"

void gi_core_kick(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->active)
        return;
    p->active = true;
    p->next_active = ctx->active;
    ctx->active = p;
}

/* What a post's answer means for the peer. */
int gi_core_posted(struct gi_core_ctx *ctx, struct gi_core_peer *p, int st)
{
    if (GIN_LIKELY(st == GIN_OK)) {
        p->signs.again = 0;
        p->signs.taken++;
    } else if (st == GIN_EAGAIN) {
        p->signs.again++;
        ctx->counts[GI_CORE_N_AGAIN]++;
    } else {
        if (p->status != GIN_OK)
            gi_core_gone(ctx, p); /* not even answers get through */
        gi_core_peer_fail(ctx, p, st,
                          gin_last_status() == st ? gin_last_error()
                                                  : "the network refused an operation");
    }
    return st;
}

static struct gi_net_mr *local_mr(const struct gi_core_ctx *ctx, const struct gi_core_op *op)
{
    if (op->local == op->inlined)
        return ctx->ops_mr;
    return op->region != NULL ? op->region->mr[ctx->rail] : NULL;
}

int gi_core_next_piece(struct gi_core_ctx *ctx, uint32_t rail, const struct gi_core_op *op,
                       uint64_t most, struct gi_core_place *at, uint64_t *len)
{
    struct gi_core_peer *p = op->peer;
    uint64_t left = op->bytes - op->offset;
    int st = gi_core_locate(ctx->core, rail, gi_core_rank_of(ctx, p), op->window,
                            op->off + op->offset, 1, at);
    if (st != GIN_OK) {
        gi_core_peer_fail(ctx, p, st, "a window was deregistered under an operation");
        return st;
    }
    left = left < at->run ? left : at->run;
    *len = left < most ? left : most;
    return GIN_OK;
}

int gi_core_post_piece(struct gi_core_ctx *ctx, struct gi_core_op *op, bool read, uint64_t most)
{
    struct gi_core_peer *p = op->peer;
    const struct gi_core_plan *plan = ctx->plan;
    struct gi_core_place at;
    uint64_t len;
    int st = gi_core_next_piece(ctx, ctx->rail, op, most, &at, &len);
    if (st != GIN_OK)
        return st;
    bool counted = ctx->epochs != NULL && !read;
    if (counted && (st = gi_core_epoch_room(ctx, p)) != GIN_OK)
        return st;
    struct gi_core_chunk *c = gi_core_chunk_take(ctx, p);
    if (c == NULL)
        return GIN_EAGAIN;
    bool last = len == op->bytes - op->offset;
    bool delivered = plan->delivered && !read && !(ctx->mutate & GI_CORE_MUTATE_DELIVERED);
    /* What holds its doorbell back must be followed: where there is no room, nothing follows. */
    bool more = (!last || op->way == GI_CORE_WAY_NATIVE) && !op->striped &&
                gi_core_has_room(ctx, p, len) && !(counted && gi_core_epoch_ends(ctx, p));
    bool imm =
        op->way == GI_CORE_WAY_IMM && (ctx->mutate & GI_CORE_MUTATE_LAST ? op->offset == 0 : last);
    struct gi_net_io io = {.peer = gi_core_rank_of(ctx, p),
                           .local = op->local + op->offset,
                           .mr = local_mr(ctx, op),
                           .key = at.key,
                           .remote = at.remote,
                           .len = len,
                           .req = &c->req};
    io.flags =
        (imm ? GI_NET_IMM : 0) | (delivered ? GI_NET_DELIVERED : 0) | (more ? GI_NET_MORE : 0);
    io.imm = imm ? gi_core_imm(ctx, &op->action) : 0;
    if (counted) {
        io.imm = gi_core_epoch_imm(ctx, p, imm ? &op->action : NULL);
        io.flags |= GI_NET_IMM;
        imm = true;
    }
    c->op = op;
    c->bytes = len;
    c->action = false;
    st = gi_core_posted(ctx, p,
                        read ? ctx->ops->read(ctx->lane, &io) : ctx->ops->write(ctx->lane, &io));
    if (st != GIN_OK) {
        gi_core_chunk_give(ctx, p, c);
        return st;
    }
    p->out.imms += imm;
    if (counted)
        gi_core_epoch_posted(ctx, p);
    ctx->counts[read ? GI_CORE_N_READ : imm ? GI_CORE_N_WRITE_IMM : GI_CORE_N_WRITE]++;
    op->pieces++;
    op->offset += len;
    p->bytes += len;
    return GIN_OK;
}

/* Put in messages: payload by payload, the action with the last. */
static int post_whole(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_msg m;
    uint64_t left = op->bytes - op->offset;
    uint32_t n = (uint32_t)(left < ctx->plan->payload ? left : ctx->plan->payload);
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_PUT);
    m.h.len = (uint8_t)n;
    m.put.window = op->window;
    m.put.off = op->off + op->offset;
    m.put.id = 0;
    m.put.word_off = m.put.value = 0;
    if (n == left) {
        m.h.action = op->action.kind;
        m.put.id = op->action.id;
        m.put.word_off = op->action.off;
        m.put.value = op->action.value;
    }
    memcpy(m.put.data, op->local + op->offset, n);
    bool signals = n == left && op->action.kind != GI_CORE_NONE && op->action.strong;
    int st = signals ? gi_core_epoch_send(ctx, op->peer, &m, GI_CORE_BYTES_PUT + n)
                     : gi_core_msg_send(ctx, op->peer, &m, GI_CORE_BYTES_PUT + n);
    if (st == GIN_OK) {
        op->offset += n;
        gi_core_note_slow(op->peer, op->slow);
        gi_core_loosen(ctx, op->peer, op->seq);
    }
    return st;
}

static int post_put(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    int st = GIN_OK;
    while (op->offset < op->bytes && st == GIN_OK)
        st = op->staged                     ? gi_core_stage_put(ctx, op)
             : op->way == GI_CORE_WAY_WHOLE ? post_whole(ctx, op)
             : op->striped                  ? gi_core_stripe_post(ctx, op)
                                            : gi_core_post_piece(ctx, op, false, ctx->plan->piece);
    if (st != GIN_OK)
        return st;
    bool posts = (op->bytes != 0 && op->way != GI_CORE_WAY_WHOLE && !op->staged) ||
                 op->way == GI_CORE_WAY_NATIVE;
    if (posts && (op->way == GI_CORE_WAY_IMM || !ctx->plan->remote_complete))
        gi_core_loosen(ctx, op->peer, op->seq);
    if (op->way == GI_CORE_WAY_IMM)
        op->peer->imm_hi = op->seq;
    if (op->way == GI_CORE_WAY_NATIVE)
        return gi_core_send_native(ctx, op);
    if (op->way == GI_CORE_WAY_MSG)
        return gi_core_send_action(ctx, op);
    return GIN_OK;
}

static int post_get(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    int st = GIN_OK;
    while (op->offset < op->bytes && st == GIN_OK)
        st = op->staged ? gi_core_stage_get(ctx, op)
                        : gi_core_post_piece(ctx, op, true, ctx->plan->piece);
    if (st == GIN_OK)
        op->peer->gets++;
    return st;
}

static int post(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    switch (op->kind) {
    case GI_CORE_PUT: return post_put(ctx, op);
    case GI_CORE_GET: return post_get(ctx, op);
    case GI_CORE_AMO: return gi_core_amo_send(ctx, op);
    default: return gi_core_fence_pass(ctx, op);
    }
}

static int push_ready(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    while (p->ready_first != NULL) {
        struct gi_core_op *op = p->ready_first;
        int st = gi_core_send_action(ctx, op);
        if (st != GIN_OK)
            return st;
        p->ready_first = op->next_ready;
        gi_core_op_check(ctx, op);
    }
    return GIN_OK;
}

/* Strategy S: the first operation's strong signal covers all before it, which are complete. */
static int push_strong(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    for (struct gi_core_op *op = p->first; op != NULL; op = p->first) {
        if (op->way != GI_CORE_WAY_STRONG || op->sent || !op->posted || op->pieces != 0)
            break;
        int st = gi_core_send_action(ctx, op);
        if (st != GIN_OK)
            return st;
        gi_core_op_check(ctx, op);
    }
    return GIN_OK;
}

static int push_unposted(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    while (p->unposted != NULL) {
        struct gi_core_op *op = p->unposted;
        int st = post(ctx, op);
        if (st != GIN_OK)
            return st;
        p->unposted = op->next_peer;
        op->posted = true;
        gi_core_op_check(ctx, op);
    }
    return GIN_OK;
}

void gi_core_push(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->pushing) {
        gi_core_kick(ctx, p);
        return;
    }
    p->pushing = true;
    bool left = !gi_core_control(ctx, p);
    /* A peer that failed has nothing in its queues. What is bundled comes before what is queued. */
    if (p->bundle.bytes != 0 && !gi_core_bundle_send(ctx, p)) {
        left = true;
    } else {
        left |= push_ready(ctx, p) != GIN_OK;
        left |= push_strong(ctx, p) != GIN_OK;
        left |= push_unposted(ctx, p) != GIN_OK;
        left |= push_strong(ctx, p) != GIN_OK; /* nothing before it was under way */
        left |= !gi_core_echo(ctx, p);
    }
    p->pushing = false;
    if (left && !p->gone)
        gi_core_kick(ctx, p);
}

int gi_core_push_all(struct gi_core_ctx *ctx)
{
    struct gi_core_peer *list = ctx->active, *p;
    int n = 0;
    ctx->active = NULL;
    while ((p = list) != NULL) {
        list = p->next_active;
        p->active = false;
        gi_core_push(ctx, p);
        n++;
    }
    return n;
}
