/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fence and quiet: what makes operations visible at their targets, and proves it.
 *
 * A peer is settled up to a mark when its queue holds nothing up to there and nothing up to there
 * is loose. An echo behind everything proves the loose ones: on an ordered network behind what was
 * posted, else behind what was delivered. One echo is under way per peer; who wants more waits for
 * its answer and then asks again.
 */
#include "transport/core_int.h"

bool gi_core_peer_settled(const struct gi_core_peer *p, uint64_t mark)
{
    return (p->first == NULL || p->first->seq > mark) && (p->loose.lo == 0 || p->loose.lo > mark);
}

static bool is_clean(const struct gi_core_peer *p)
{
    return !gi_core_owes(p) && p->echo.want == 0;
}

/* Up to which number an echo that is sent now proves. A signal that waits for other rails will be
 * behind it, though what it belongs to is posted. */
static uint64_t cover_now(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    bool behind = ctx->plan->ordered && p->apart == 0;
    const struct gi_core_op *op = behind ? p->unposted : p->first;
    if (ctx->mutate & GI_CORE_MUTATE_ECHO)
        return p->issued;
    return op != NULL ? op->seq - 1 : p->issued;
}

/* The last message is it. */
void gi_core_echo_sent(struct gi_core_peer *p, uint64_t cover)
{
    p->echo.cover = cover;
    p->echo.msgs = p->out.sent;
    p->echo.ahead = p->pieces;
    p->probe = false;
}

static bool send_echo(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t cover)
{
    struct gi_core_msg m;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_ECHO);
    m.echo.imms = p->out.imms;
    m.echo.unused = 0;
    if (gi_core_msg_send(ctx, p, &m, GI_CORE_BYTES_ECHO) != GIN_OK)
        return false;
    gi_core_echo_sent(p, cover);
    return true;
}

bool gi_core_imms_unproven(const struct gi_core_peer *p)
{
    return p->loose.lo != 0 && p->imm_hi >= p->loose.lo;
}

/* The last bundle of a burst that quiet waits for can ask for the answer itself; a message behind
 * it would cost as much as the bundle. */
bool gi_core_echo_rides(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    bool last = (p->unposted == NULL && p->apart == 0) || (ctx->mutate & GI_CORE_MUTATE_RIDES);
    return p->echo.want != 0 && p->echo.msgs == 0 && last && !(ctx->mutate & GI_CORE_MUTATE_QUIET);
}

/* Send the echo that is wanted, once it would prove enough. */
bool gi_core_echo(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->status != GIN_OK)
        return true;
    uint64_t cover = cover_now(ctx, p);
    if (p->echo.want != 0) {
        uint64_t need = p->echo.want < p->loose.hi ? p->echo.want : p->loose.hi;
        if (gi_core_peer_settled(p, p->echo.want))
            p->echo.want = 0;
        else if (need <= p->prompt.hi)
            ; /* word of delivery is under way */
        else if (p->echo.msgs == 0 && p->loose.lo != 0 && p->loose.lo <= p->echo.want &&
                 cover >= need)
            return send_echo(ctx, p, cover);
    }
    if (p->probe && p->echo.msgs == 0)
        return send_echo(ctx, p, cover);
    return true;
}

static void want(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t mark)
{
    uint64_t to = mark < p->issued ? mark : p->issued;
    if (p->echo.want < to)
        p->echo.want = to;
    gi_core_dirty(ctx, p);
}

/* ---- quiet ---- */

static int settled_one(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t mark)
{
    bool quiet = !(ctx->mutate & GI_CORE_MUTATE_QUIET);
    if (p->status != GIN_OK)
        return p->status;
    gi_core_prompt_quiet(p);
    if (gi_core_peer_settled(p, mark) || (!quiet && (p->first == NULL || p->first->seq > mark)))
        return 1;
    want(ctx, p, mark);
    gi_core_push(ctx, p);
    return p->status;
}

int gi_core_settled(struct gi_core_ctx *ctx, int peer, uint64_t mark)
{
    if (peer != GI_CORE_ALL)
        return settled_one(ctx, &ctx->peers[peer], mark);
    int all = 1;
    for (struct gi_core_peer **at = &ctx->dirty, *p; (p = *at) != NULL;) {
        int st = settled_one(ctx, p, mark);
        if (st == 0)
            all = 0;
        if (p->status == GIN_OK && !is_clean(p)) {
            at = &p->next_dirty;
        } else if (*at == p) { /* nobody came in front of it meanwhile */
            *at = p->next_dirty;
            p->dirty = false;
        }
    }
    if (all == 1 && gi_core_ctx_status(ctx, NULL, NULL) != GIN_OK)
        return gi_core_ctx_status(ctx, NULL, NULL);
    return all;
}

bool gi_core_is_clean(const struct gi_core_ctx *ctx, int peer)
{
    const struct gi_core_peer *p = &ctx->peers[peer];
    return p->first == NULL && p->loose.lo == 0;
}

/* ---- fence ---- */

/*
 * May what follows be posted now? On an ordered network writes are behind writes anyway; not so
 * reads that may still fetch what a later write replaces, and messages that the target's engine
 * has not applied.
 */
static int pass(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_op *op,
                uint64_t before)
{
    const struct gi_core_plan *plan = ctx->plan;
    bool reads = plan->fence_reads && !(ctx->mutate & GI_CORE_MUTATE_READS);
    bool settle = !plan->ordered || p->out.sent != p->out.acked || (reads && p->loose.lo != 0);
    if (ctx->mutate & GI_CORE_MUTATE_FENCE)
        return GIN_OK;
    bool apart = p->apart != 0 && !(ctx->mutate & GI_CORE_MUTATE_APART);
    if (!settle && p->gets == 0 && !apart)
        return GIN_OK;
    if (p->first == op && (!settle || gi_core_peer_settled(p, before)))
        return GIN_OK;
    if (settle)
        want(ctx, p, before);
    return GIN_EAGAIN;
}

int gi_core_fence_pass(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    return pass(ctx, op->peer, op, op->seq - 1);
}

static int fence_one(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->status != GIN_OK)
        return p->status;
    if (p->first == NULL && p->loose.lo == 0 && p->out.sent == p->out.acked)
        return GIN_OK;
    if (p->last != NULL && p->last->kind == GI_CORE_FENCE && p->last->seq == p->issued)
        return GIN_OK; /* nothing since the last one */
    struct gi_core_op *op = gi_core_op_take(ctx, gi_core_rank_of(ctx, p), GI_CORE_FENCE);
    if (op == NULL)
        return GIN_EAGAIN;
    gi_core_op_enqueue(ctx, op);
    gi_core_push(ctx, p);
    return GIN_OK;
}

int gi_core_fence(struct gi_core_ctx *ctx, int peer)
{
    if (peer != GI_CORE_ALL)
        return fence_one(ctx, &ctx->peers[peer]);
    for (struct gi_core_peer *p = ctx->dirty; p != NULL; p = p->next_dirty) {
        if (p->status == GIN_OK && fence_one(ctx, p) == GIN_EAGAIN)
            return GIN_EAGAIN; /* fencing some of them twice does no harm */
    }
    return gi_core_ctx_status(ctx, NULL, NULL);
}
