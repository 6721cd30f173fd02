/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How an action travels, and what a slot signal does on arrival.
 *
 * A context that signals through the NIC and by message at the same time must not let the former
 * overtake: while messages to a peer are not acknowledged, its signals go by message, into words
 * that the engine adds to.
 */
#include "transport/core_epoch.h"
#include "transport/core_land.h"

#define IMM_SLOTS 24 /* bits of the slot in an immediate */

/* Slot and addend fit into what an immediate has room for. */
static bool fits_imm(const struct gi_core_ctx *ctx, const struct gi_core_action *a)
{
    unsigned bits = ctx->plan->imm_bits;
    if (a->kind != GI_CORE_SLOT_ADD || a->id >> IMM_SLOTS != 0)
        return false;
    if (ctx->epochs != NULL)
        return gi_core_epoch_fits(ctx, a);
    return bits == 64 ? a->value >> 32 == 0 : bits == 32 && a->value == 1;
}

/* 64 bits: addend 0-31, slot 32-55, low bits of the context's tag 56-63. 32 bits: slot 0-23, tag
 * 24-31. */
uint64_t gi_core_imm(const struct gi_core_ctx *ctx, const struct gi_core_action *a)
{
    uint64_t tag = ctx->tag & 0xff;
    if (ctx->plan->imm_bits == 32)
        return (uint64_t)a->id | tag << 24;
    return a->value | (uint64_t)a->id << 32 | tag << 56;
}

static bool native(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                   const struct gi_core_action *a)
{
    return a->kind == GI_CORE_SLOT_ADD && ctx->plan->native && ctx->native_stride != 0 &&
           ((p->out.sent == p->out.acked && p->msgs == 0 && p->bundle.bytes == 0) ||
            (ctx->mutate & GI_CORE_MUTATE_NATIVE) != 0);
}

static enum gi_core_way choose_ordered(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                                       const struct gi_core_put *put, bool small)
{
    bool behind = (ctx->plan->imm_after_msg && !gi_core_is_slow(p)) ||
                  (p->out.sent == p->out.acked && p->msgs == 0 && p->bundle.bytes == 0) ||
                  (ctx->mutate & GI_CORE_MUTATE_IMM) != 0;
    if (put->bytes != 0 && fits_imm(ctx, &put->action) && (behind || !put->action.strong))
        return GI_CORE_WAY_IMM;
    return small ? GI_CORE_WAY_WHOLE : GI_CORE_WAY_MSG;
}

static enum gi_core_way choose_unordered(const struct gi_core_ctx *ctx,
                                         const struct gi_core_peer *p,
                                         const struct gi_core_put *put, bool small, bool single)
{
    bool strong = put->action.strong && !(ctx->mutate & GI_CORE_MUTATE_STRONG);
    if (strong)
        return p->first != NULL  ? GI_CORE_WAY_STRONG
               : put->bytes == 0 ? GI_CORE_WAY_MSG
               : small           ? GI_CORE_WAY_WHOLE
                                 : GI_CORE_WAY_STRONG;
    if (put->bytes == 0 || (ctx->mutate & GI_CORE_MUTATE_WEAK))
        return GI_CORE_WAY_MSG;
    if (single && fits_imm(ctx, &put->action))
        return GI_CORE_WAY_IMM;
    return small ? GI_CORE_WAY_WHOLE : GI_CORE_WAY_WEAK;
}

/* The target counts: a signal is behind what was posted before it, if its message closes. */
static enum gi_core_way choose_counted(const struct gi_core_ctx *ctx, const struct gi_core_put *put,
                                       bool small, bool single)
{
    if (!put->action.strong && single && put->bytes != 0 && fits_imm(ctx, &put->action))
        return GI_CORE_WAY_IMM;
    return small ? GI_CORE_WAY_WHOLE : GI_CORE_WAY_MSG;
}

/* single: the bytes are one piece. host: the CPU there reaches them. */
enum gi_core_way gi_core_choose(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                                const struct gi_core_put *put, bool single, bool host)
{
    const struct gi_core_plan *plan = ctx->plan;
    bool small = host && put->bytes != 0 && put->bytes <= plan->payload;
    if (plan->by_msg && put->bytes != 0)
        return GI_CORE_WAY_WHOLE;
    if (put->action.kind == GI_CORE_NONE)
        return !plan->ordered && put->copy && small && !gi_core_prompt_writes(ctx, p)
                   ? GI_CORE_WAY_WHOLE
                   : GI_CORE_WAY_NONE;
    if (GIN_UNLIKELY(p->apart != 0) && put->action.strong && !(ctx->mutate & GI_CORE_MUTATE_APART))
        return GI_CORE_WAY_STRONG; /* what is before it may be on another rail */
    if (native(ctx, p, &put->action))
        return GI_CORE_WAY_NATIVE;
    if (plan->ordered || plan->by_msg)
        return choose_ordered(ctx, p, put, small);
    return ctx->epochs != NULL ? choose_counted(ctx, put, small, single)
                               : choose_unordered(ctx, p, put, small, single);
}

/* The action of an operation whose bytes go otherwise. */
int gi_core_send_action(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    const struct gi_core_action *a = &op->action;
    struct gi_core_msg m;
    uint32_t len = GI_CORE_BYTES_SLOT;
    if (a->kind == GI_CORE_SLOT_ADD) {
        gi_core_msg_init(ctx, &m, GI_CORE_MSG_SLOT);
        m.slot.id = a->id;
        m.slot.unused = 0;
        m.slot.value = a->value;
    } else {
        len = GI_CORE_BYTES_PUT;
        gi_core_msg_init(ctx, &m, GI_CORE_MSG_PUT);
        m.h.action = a->kind;
        m.put.window = 0;
        m.put.id = a->id;
        m.put.off = 0;
        m.put.word_off = a->off;
        m.put.value = a->value;
    }
    int st = a->strong || op->bytes != 0 ? gi_core_epoch_send(ctx, op->peer, &m, len)
                                         : gi_core_msg_send(ctx, op->peer, &m, len);
    if (st != GIN_OK)
        return st;
    op->sent = true;
    gi_core_note_slow(op->peer, op->slow);
    gi_core_loosen(ctx, op->peer, op->seq);
    return GIN_OK;
}

int gi_core_send_native(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_peer *p = op->peer;
    struct gi_core_place at;
    int rank = gi_core_rank_of(ctx, p);
    uint64_t off = ctx->native_off + op->action.id * ctx->native_stride;
    int st = gi_core_locate(ctx->core, ctx->rail, rank, ctx->native_window, off, 8, &at);
    if (st != GIN_OK) {
        gi_core_peer_fail(ctx, p, st, "the signals' window is not live");
        return st;
    }
    struct gi_core_chunk *c = gi_core_chunk_take(ctx, p);
    bool fence = ctx->plan->native_fence && !(ctx->mutate & GI_CORE_MUTATE_UNFENCED);
    if (c == NULL)
        return GIN_EAGAIN;
    struct gi_net_io io = {.peer = rank,
                           .flags = (fence ? GI_NET_FENCE : 0) |
                                    (ctx->plan->delivered ? GI_NET_DELIVERED : 0),
                           .key = at.key,
                           .remote = at.remote,
                           .len = 8,
                           .imm = op->action.value,
                           .req = &c->req};
    c->op = op;
    c->bytes = 0;
    c->action = true;
    st = gi_core_posted(ctx, p, ctx->ops->amo_add(ctx->lane, &io));
    if (st != GIN_OK) {
        gi_core_chunk_give(ctx, p, c);
        return st;
    }
    ctx->counts[GI_CORE_N_NATIVE]++;
    op->pieces++;
    return GIN_OK;
}

/* ---- arrival ---- */

int gi_core_signal_slot(struct gi_core_ctx *ctx, const struct gi_core_peer *p, uint32_t slot,
                        uint64_t value)
{
    const struct gi_core_cells *cells = &ctx->cells;
    if (slot >= cells->n)
        return GIN_ERANGE;
    if (GIN_UNLIKELY(p != NULL && p->in.lacks))
        return GIN_OK;
    uint64_t *cell = (uint64_t *)((char *)cells->first + slot * cells->stride);
    if (cells->shared)
        GIN_ADD_RELEASE(cell, value);
    else
        GIN_STORE_RELEASE(cell, GIN_LOAD_RELAXED(cell) + value);
    return GIN_OK;
}

void gi_core_arrived_imm(void *arg, int peer, uint64_t imm)
{
    struct gi_core_ctx *ctx = arg;
    bool narrow = ctx->caps->imm_bits == 32;
    uint64_t tag = narrow ? imm >> 24 & 0xff : imm >> 56;
    uint32_t slot = (uint32_t)(narrow ? imm : imm >> 32) & ((1u << IMM_SLOTS) - 1);
    ctx->counts[GI_CORE_N_GOT_IMM]++;
    struct gi_core_peer *p = NULL;
    if (peer >= 0 && peer < ctx->core->config.size) {
        p = &ctx->peers[peer];
        p->signs.heard++;
        p->in.imms++;
    } else {
        ctx->anonymous = true;
    }
    int st = GIN_EINVAL;
    if (GIN_UNLIKELY(!gi_core_landed(ctx))) {
        gi_core_refuse(ctx, p, GIN_ENET, NULL, slot, 0);
        return;
    }
    if (ctx->epochs != NULL && p != NULL && tag == (ctx->tag & 0xff)) {
        gi_core_epoch_arrived(ctx, p, imm);
        return;
    }
    if (ctx->epochs == NULL && tag == (ctx->tag & 0xff))
        st = gi_core_signal_slot(ctx, p, slot, narrow ? 1 : (uint32_t)imm);
    if (st != GIN_OK)
        gi_core_refuse(ctx, p, st, NULL, slot, 0);
}
