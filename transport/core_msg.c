/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on their way out. Those that carry operations are numbered per (context, peer) and need
 * a credit: at most `credits` are not yet acknowledged. Every message acknowledges what came the
 * other way; half a window, or a demand, makes a message for that alone. Replies have no number:
 * who asked has paid for them by asking for at most `credits` at a time.
 */
#include "transport/core_stage.h"

#include <stdlib.h>

void gi_core_msg_init(const struct gi_core_ctx *ctx, struct gi_core_msg *m, unsigned kind)
{
    m->h = (struct gi_core_header){
        .kind = (uint8_t)kind, .ctx = ctx->tag, .source = (uint32_t)ctx->core->config.rank};
}

int gi_core_msg_send(struct gi_core_ctx *ctx, struct gi_core_peer *p, void *bytes, uint32_t len)
{
    struct gi_core_header *h = bytes;
    bool numbered = h->kind < GI_CORE_MSG_REPLY;
    if (p->gone || (numbered && p->status != GIN_OK))
        return p->status;
    if (numbered && p->out.sent - p->out.acked >= ctx->credits)
        return GIN_EAGAIN;
    /* Whoever was refused must not take what was refused for handled before it hears of that. */
    bool tells = !p->refused || h->kind == GI_CORE_MSG_NACK;
    bool late = (h->flags & GI_CORE_LATE) != 0 && !numbered;
    h->seq = (uint16_t)p->out.sent;
    h->ack = (uint16_t)(tells || late ? p->in.got : p->in.told);
    int st = gi_core_posted(ctx, p, ctx->ops->msg(ctx->lane, gi_core_rank_of(ctx, p), bytes, len));
    if (st != GIN_OK)
        return st;
    if (tells)
        p->in.told = p->in.got;
    p->ack_now = p->ack_now && !tells && !late;
    if (numbered) {
        p->out.sent++;
        gi_core_dirty(ctx, p);
    }
    ctx->counts[h->kind == GI_CORE_MSG_REPLY  ? GI_CORE_N_REPLY
                : h->kind == GI_CORE_MSG_ECHO ? GI_CORE_N_ECHO
                : h->kind == GI_CORE_MSG_ACK  ? GI_CORE_N_ACK
                : h->kind == GI_CORE_MSG_NACK ? GI_CORE_N_NACK
                                              : GI_CORE_N_MSG]++;
    return GIN_OK;
}

void gi_core_acked(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint16_t ack)
{
    int16_t more = (int16_t)(ack - (uint16_t)p->out.acked);
    if (more <= 0 || (uint64_t)more > p->out.sent - p->out.acked)
        return; /* older than what is known, or a lie */
    p->out.acked += (uint64_t)more;
    if (p->stage != NULL)
        gi_core_stage_acked(ctx, p);
    if (p->echo.msgs != 0 && p->out.acked >= p->echo.msgs) {
        gi_core_proven(p, p->echo.cover);
        p->echo.msgs = 0;
        p->echo.ahead = 0;
    }
    if (p->first != NULL || p->echo.want != 0)
        gi_core_kick(ctx, p);
}

/* ---- what goes out beside the operations ---- */

void gi_core_reply_queue(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_reply *r)
{
    if (p->replies.slot == NULL)
        p->replies.slot = malloc(GI_CORE_CREDITS * sizeof(*p->replies.slot));
    if (p->replies.slot == NULL || p->replies.count == GI_CORE_CREDITS) {
        gi_core_peer_fail(ctx, p, GIN_ENET, "it asks for more atomics than it may");
        return;
    }
    p->replies.slot[(p->replies.head + p->replies.count++) % GI_CORE_CREDITS] = *r;
    gi_core_kick(ctx, p);
}

static bool send_replies(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    while (p->replies.count != 0) {
        const struct gi_core_reply *r = &p->replies.slot[p->replies.head];
        struct gi_core_msg m;
        gi_core_msg_init(ctx, &m, GI_CORE_MSG_REPLY);
        m.reply.reply = r->reply;
        m.reply.reply_turn = r->turn;
        m.reply.value = r->value;
        m.reply.status = r->status;
        m.reply.unused = 0;
        if (gi_core_msg_send(ctx, p, &m, GI_CORE_BYTES_REPLY) != GIN_OK)
            return false;
        p->replies.head = (p->replies.head + 1) % GI_CORE_CREDITS;
        p->replies.count--;
    }
    return true;
}

static bool send_nack(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_msg m;
    if (p->nack.status == 0)
        return true;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_NACK);
    m.nack.status = p->nack.status;
    m.nack.window = p->nack.window;
    m.nack.off = p->nack.off;
    m.nack.kind = p->nack.kind;
    m.nack.unused = 0;
    if (gi_core_msg_send(ctx, p, &m, GI_CORE_BYTES_NACK) != GIN_OK)
        return false;
    p->nack.status = 0;
    return true;
}

static bool send_ack(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_msg m;
    uint64_t half = ctx->credits > 1 ? ctx->credits / 2 : 1;
    if (!p->ack_now && (p->refused || p->in.got - p->in.told < half))
        return true;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_ACK);
    m.h.flags =
        p->refused ? GI_CORE_LATE : 0; /* what it was refused, it knows: it was sent before */
    return gi_core_msg_send(ctx, p, &m, sizeof(m.h)) == GIN_OK;
}

bool gi_core_control(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->gone)
        return true;
    return send_replies(ctx, p) && send_nack(ctx, p) && send_ack(ctx, p);
}
