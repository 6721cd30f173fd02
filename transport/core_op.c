/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of an operation: from the pool into the two queues, through "complete here" out of them.
 * Numbers are the context's; a queue loses its first operation only when that is complete, so the
 * first one's number says how far everything is. Notices are the last thing done with an
 * operation, since they may start others.
 */
#include "transport/core_land.h"
#include "transport/core_stage.h"

struct gi_core_op *gi_core_op_take(struct gi_core_ctx *ctx, int peer, enum gi_core_op_kind kind)
{
    struct gi_core_peer *p = &ctx->peers[peer];
    struct gi_core_op *op = ctx->free_ops;
    if (op == NULL || p->ops >= ctx->peer_ops)
        return NULL;
    ctx->free_ops = op->next_ctx;
    uint32_t turn = op->turn;
    memset(op, 0, offsetof(struct gi_core_op, inlined));
    op->kind = (uint8_t)kind;
    op->peer = p;
    op->turn = turn;
    op->sent = op->replied = true;
    return op;
}

static void give(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_op **to = &ctx->free_ops;
    struct gi_core_peer *p = op->peer;
    p->kept.stuck -= op->lost;
    if (GIN_UNLIKELY(p->kept.ops > p->kept.stuck)) {
        p->kept.ops--;
        to = &ctx->spare_ops;
    }
    op->turn++;
    op->next_ctx = *to;
    *to = op;
}

void gi_core_dirty(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->dirty)
        return;
    p->dirty = true;
    p->watched.silent_since = 0;
    p->next_dirty = ctx->dirty;
    ctx->dirty = p;
}

static void show_retired(struct gi_core_ctx *ctx)
{
    uint64_t to = ctx->first != NULL ? ctx->first->seq - 1 : ctx->issued;
    atomic_store_explicit(&ctx->retired, to, memory_order_release);
}

void gi_core_op_enqueue(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_peer *p = op->peer;
    op->seq = ++ctx->issued;
    p->issued = op->seq;
    p->ops++;
    p->msgs += op->msg;
    p->slows += op->slow;
    p->apart += op->apart;
    op->queued_ctx = op->queued_peer = true;
    *(ctx->first == NULL ? &ctx->first : &ctx->last->next_ctx) = op;
    ctx->last = op;
    *(p->first == NULL ? &p->first : &p->last->next_peer) = op;
    p->last = op;
    if (p->unposted == NULL)
        p->unposted = op;
    gi_core_dirty(ctx, p);
}

/* Number of an operation that is complete at once. */
uint64_t gi_core_op_none(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    p->issued = ++ctx->issued;
    show_retired(ctx);
    return p->issued;
}

void gi_core_loosen(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t seq)
{
    if (p->loose.lo == 0 || seq < p->loose.lo)
        p->loose.lo = seq;
    if (seq > p->loose.hi)
        p->loose.hi = seq;
    gi_core_dirty(ctx, p);
}

static void free_if_unused(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    if (!op->queued_ctx && !op->queued_peer && op->pieces == 0)
        give(ctx, op);
}

static void retire_peer(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    bool moved = false;
    while (p->first != NULL && p->first->done) {
        struct gi_core_op *op = p->first;
        p->first = op->next_peer;
        if (p->first == NULL)
            p->last = NULL;
        p->ops--;
        op->queued_peer = false;
        free_if_unused(ctx, op);
        moved = true;
    }
    /* The new first one may have waited for that. */
    if (moved && (p->first != NULL || p->echo.want != 0))
        gi_core_kick(ctx, p);
}

void gi_core_retire(struct gi_core_ctx *ctx)
{
    bool moved = false;
    while (ctx->first != NULL && ctx->first->done) {
        struct gi_core_op *op = ctx->first;
        ctx->first = op->next_ctx;
        if (ctx->first == NULL)
            ctx->last = NULL;
        op->queued_ctx = false;
        free_if_unused(ctx, op);
        moved = true;
    }
    if (moved)
        show_retired(ctx);
}

static void tell(struct gi_core_notice *notice, uint64_t *counter, int status)
{
    if (counter != NULL && status == GIN_OK)
        GIN_ADD_RELEASE(counter, (uint64_t)1);
    if (notice != NULL)
        notice->fn(notice, status);
}

/* Its own pieces are delivered: what follows them by message? */
static void action_due(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_peer *p = op->peer;
    if (op->way == GI_CORE_WAY_STRONG) {
        gi_core_kick(ctx, p); /* goes once it is the first */
    } else if (op->way == GI_CORE_WAY_WEAK && !op->ready) {
        op->ready = true;
        op->next_ready = NULL;
        *(p->ready_first == NULL ? &p->ready_first : &p->ready_last->next_ready) = op;
        p->ready_last = op;
        gi_core_kick(ctx, p);
    }
}

void gi_core_op_check(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_notice *notice = NULL;
    uint64_t *counter = NULL;
    if (op->done) {
        free_if_unused(ctx, op); /* the last piece of one that had failed */
        return;
    }
    if (!op->posted || op->pieces != 0)
        return;
    if (!op->told && op->replied && (op->kind != GI_CORE_AMO || op->sent)) {
        op->told = true;
        notice = op->notice;
        counter = op->counter;
    }
    int status = op->status;
    if (!op->sent)
        action_due(ctx, op);
    else if (op->replied) {
        struct gi_core_peer *p = op->peer;
        op->done = true;
        p->gets -= op->kind == GI_CORE_GET;
        p->msgs -= op->msg;
        p->slows -= op->slow;
        p->apart -= op->apart;
        /* From the peer's queue first: the context's gives it back. */
        if (p->first == op)
            retire_peer(ctx, p);
        if (ctx->first == op)
            gi_core_retire(ctx);
    }
    tell(notice, counter, status);
}

/* It is out of its peer's queue already. */
void gi_core_op_fail(struct gi_core_ctx *ctx, struct gi_core_op *op, int status)
{
    struct gi_core_notice *notice = op->told ? NULL : op->notice;
    op->told = op->done = true;
    op->lost = op->pieces != 0;
    op->peer->kept.stuck += op->lost;
    if (ctx->first == op)
        gi_core_retire(ctx);
    tell(notice, NULL, status);
}

bool gi_core_has_room(const struct gi_core_ctx *ctx, const struct gi_core_peer *p, uint64_t more)
{
    return ctx->free_chunks != NULL && p->pieces < ctx->peer_pieces &&
           p->bytes + more < ctx->plan->most;
}

struct gi_core_chunk *gi_core_chunk_take(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_chunk *c = ctx->free_chunks;
    if (!gi_core_has_room(ctx, p, 0))
        return NULL;
    ctx->free_chunks = c->next;
    p->pieces++;
    return c;
}

void gi_core_chunk_give(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_core_chunk *c)
{
    struct gi_core_chunk **to = &ctx->free_chunks;
    p->pieces--;
    if (GIN_UNLIKELY(p->kept.pieces > p->pieces)) {
        p->kept.pieces--;
        to = &ctx->spare_chunks;
    }
    c->op = NULL;
    c->pull = NULL;
    c->next = *to;
    *to = c;
}

/* ---- what the network keeps of a lost peer's ---- */

static struct gi_core_op *spare_op(struct gi_core_ctx *ctx)
{
    struct gi_core_op *op = ctx->spare_ops;
    if (op != NULL)
        ctx->spare_ops = op->next_ctx;
    else if (ctx->fresh_ops < ctx->all_ops)
        op = &ctx->ops_memory[ctx->fresh_ops++];
    return op;
}

static struct gi_core_chunk *spare_chunk(struct gi_core_ctx *ctx)
{
    struct gi_core_chunk *c = ctx->spare_chunks;
    if (c != NULL)
        ctx->spare_chunks = c->next;
    else if (ctx->fresh_chunks < ctx->all_chunks)
        c = &ctx->chunks_memory[ctx->fresh_chunks++];
    return c;
}

/* What comes back after all is spare again. */
void gi_core_replace(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_op *op;
    struct gi_core_chunk *c;
    while (p->kept.ops < p->kept.stuck && (op = spare_op(ctx)) != NULL) {
        op->next_ctx = ctx->free_ops;
        ctx->free_ops = op;
        p->kept.ops++;
    }
    while (p->kept.pieces < p->pieces && (c = spare_chunk(ctx)) != NULL) {
        c->next = ctx->free_chunks;
        ctx->free_chunks = c;
        p->kept.pieces++;
    }
}

/*
 * What does a completion prove of the peer? That its process lives, where its CPU had to do
 * something for it. Nothing, where the source is merely free again; but those that were under way
 * when an echo left are in front of its answer, and they are finite.
 */
void gi_core_sign(const struct gi_core_ctx *ctx, struct gi_core_peer *p, bool there)
{
    if (there) {
        p->signs.moved++;
        p->signs.heard += !ctx->caps->target_passive;
    }
    if (p->echo.ahead != 0) {
        p->echo.ahead--;
        p->signs.heard++;
    }
}

void gi_core_done(void *arg, struct gi_net_request *req)
{
    struct gi_core_ctx *ctx = arg;
    struct gi_core_chunk *c = (struct gi_core_chunk *)req;
    struct gi_core_op *op = c->op;
    if (op == NULL) {
        if (c->pull != NULL)
            gi_core_stage_read(ctx, c, GIN_OK);
        else
            gi_core_prompt_done(ctx, c);
        return;
    }
    struct gi_core_peer *p = op->peer;
    if (op->kind == GI_CORE_GET && op->device)
        (void)gi_core_landed(ctx); /* or the context has failed, which flush tells */
    op->pieces--;
    op->sent = op->sent || c->action;
    p->bytes -= c->bytes;
    gi_core_sign(ctx, p, ctx->plan->remote_complete || op->kind == GI_CORE_GET);
    gi_core_chunk_give(ctx, p, c);
    gi_core_op_check(ctx, op);
}

/* ---- marks ---- */

uint64_t gi_core_mark(const struct gi_core_ctx *ctx)
{
    return ctx->issued;
}

uint64_t gi_core_mark_peer(const struct gi_core_ctx *ctx, int peer)
{
    return ctx->peers[peer].issued;
}

int gi_core_flushed(const struct gi_core_ctx *ctx, uint64_t mark)
{
    if (atomic_load_explicit(&ctx->retired, memory_order_acquire) >= mark)
        return gi_core_ctx_status(ctx, NULL, NULL) == GIN_OK ? 1
                                                             : gi_core_ctx_status(ctx, NULL, NULL);
    return 0;
}

int gi_core_flushed_peer(const struct gi_core_ctx *ctx, int peer, uint64_t mark)
{
    const struct gi_core_peer *p = &ctx->peers[peer];
    if (p->status != GIN_OK)
        return p->status;
    return p->first == NULL || p->first->seq > mark;
}
