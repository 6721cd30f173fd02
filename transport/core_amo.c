/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics: a message to the word's owner, whose engine applies it with the CPU's atomics, so that
 * they mix with those of ranks that reach the word by load and store. Old values come back in a
 * reply that names the operation's place in the pool and how often that was used.
 */
#include "base/amo.h"
#include "transport/core_stage.h"

/* Where it is. GIN_ENOTSUP: for hooks.apply, if there is one. */
int gi_core_word(const struct gi_core_ctx *ctx, const struct gi_core_update *u, void **at)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    int st = h->resolve(h->arg, u->window, u->off, u->bytes, u->op != GIN_I_AMO_FETCH, at);
    if (st == GIN_ENOTSUP && u->off % u->bytes != 0)
        return GIN_EINVAL;
    return st == GIN_OK && (uintptr_t)*at % u->bytes != 0 ? GIN_EINVAL : st;
}

int gi_core_apply(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                  const struct gi_core_update *u, uint64_t *old)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    void *at = NULL;
    int st = gi_core_stage_updates(p, m) ? GIN_ENOTSUP : gi_core_word(ctx, u, &at);
    if (GIN_LIKELY(st == GIN_OK))
        *old = gi_amo_apply(at, u->op, u->bytes, u->value, u->expected);
    else if (st == GIN_ENOTSUP && gi_core_gpu(ctx->core) != NULL)
        st = gi_core_stage_apply(ctx, p, m, u, at, old);
    else if (st == GIN_ENOTSUP && h->apply != NULL)
        st = h->apply(h->arg, u, old);
    return st;
}

int gi_core_amo(struct gi_core_ctx *ctx, int peer, const struct gi_core_amo *a)
{
    struct gi_core_peer *p = &ctx->peers[peer];
    struct gi_core_place at;
    if (GIN_UNLIKELY(p->status != GIN_OK))
        return p->status;
    int st = gi_core_locate(ctx->core, ctx->rail, peer, a->window, a->off, a->bytes, &at);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gi_core_op *op = gi_core_op_take(ctx, peer, GI_CORE_AMO);
    if (op == NULL) {
        gi_core_push(ctx, p);
        return GIN_EAGAIN;
    }
    op->amo = (uint8_t)a->op;
    op->amo_bytes = (uint8_t)a->bytes;
    op->window = a->window;
    op->off = a->off;
    op->value = a->value;
    op->expected = a->expected;
    op->old = a->old;
    op->notice = a->notice;
    op->sent = false;
    op->msg = true;
    op->slow = !at.host;
    op->replied = a->old == NULL;
    gi_core_op_enqueue(ctx, op);
    gi_core_push(ctx, p);
    return GIN_OK;
}

int gi_core_amo_send(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_peer *p = op->peer;
    struct gi_core_msg m;
    if (!op->replied && p->amos >= ctx->credits)
        return GIN_EAGAIN;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_AMO);
    m.h.action = op->amo;
    m.h.len = op->amo_bytes;
    m.amo.window = op->window;
    m.amo.off = op->off;
    m.amo.value = op->value;
    m.amo.expected = op->expected;
    m.amo.reply = (uint32_t)(op - ctx->ops_memory);
    m.amo.reply_turn = op->turn;
    m.amo.wanted = !op->replied;
    int st = gi_core_msg_send(ctx, p, &m, GI_CORE_BYTES_AMO);
    if (st != GIN_OK)
        return st;
    p->amos += !op->replied;
    op->sent = true;
    gi_core_note_slow(p, op->slow);
    gi_core_loosen(ctx, p, op->seq);
    return GIN_OK;
}

bool gi_core_amo_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m)
{
    struct gi_core_reply r = {
        .reply = m->amo.reply, .turn = m->amo.reply_turn, .status = GIN_EINVAL};
    struct gi_core_update u = {.window = m->amo.window,
                               .off = m->amo.off,
                               .op = (enum gin_i_amo_op)m->h.action,
                               .bytes = m->h.len,
                               .value = m->amo.value,
                               .expected = m->amo.expected};
    if (GIN_UNLIKELY(p->in.lacks) && !gi_core_stage_updates(p, m))
        r.status = GIN_ESTATE; /* it comes to its end with what was refused */
    else if ((m->h.len == 4 || m->h.len == 8) && m->h.action <= GIN_I_AMO_CAS)
        r.status = gi_core_apply(ctx, p, m, &u, &r.value);
    if (r.status == GIN_EAGAIN)
        return false;
    if (m->amo.wanted)
        gi_core_reply_queue(ctx, p, &r);
    if (r.status != GIN_OK)
        gi_core_refuse(ctx, p, r.status, m, m->amo.window, m->amo.off);
    return true;
}

void gi_core_amo_replied(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m)
{
    struct gi_core_op *op = &ctx->ops_memory[m->reply.reply < ctx->all_ops ? m->reply.reply : 0];
    if (m->reply.reply >= ctx->all_ops || op->turn != m->reply.reply_turn || op->peer != p ||
        op->kind != GI_CORE_AMO || op->replied || op->told || op->done || !op->posted) {
        gi_core_refuse(ctx, NULL, GIN_EINVAL, m, m->reply.reply, 0);
        return;
    }
    p->amos--;
    op->replied = true;
    op->status = m->reply.status;
    if (op->status == GIN_OK)
        *op->old = m->reply.value;
    gi_core_op_check(ctx, op);
    gi_core_kick(ctx, p); /* another may be asked for now */
}
