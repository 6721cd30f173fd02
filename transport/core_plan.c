/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How operations travel on a rail, decided once from its capability record. Four classes come out
 * of it, but the code asks for the single fields:
 *
 *   A  ordered, NIC atomics       write + atomic add
 *   B  ordered                    the signal rides in the last piece's immediate, or in a message
 *   C  unordered                  one piece: immediate; more, or strong: a message once delivered
 *   D  unordered, fenced atomics  write + atomic add behind a fence
 *
 * An unordered network that tells of no delivery carries puts in messages, which the target's
 * engine applies in order: slow, and right on anything.
 */
#include "transport/core_int.h"

#include <stdio.h>

/* Below this, an order of small writes only is not worth its many pieces. */
#define ORDER_LEAST 4096u

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool gi_core_bypasses(const struct gi_net_caps *caps)
{
    struct gi_core_plan plan;
    gi_core_plan(&plan, caps);
    return plan.native || plan.remote_complete || plan.prompt;
}

static void describe(struct gi_core_plan *plan)
{
    const char *data = plan->ordered     ? "ordered"
                       : plan->by_msg    ? "unordered, no word of delivery: puts go in messages"
                       : plan->delivered ? "unordered, writes ask for delivery"
                                         : "unordered, a completion means delivery";
    const char *weak = plan->native          ? "NIC atomics"
                       : plan->by_msg        ? "messages"
                       : plan->imm_bits != 0 ? "immediates"
                                             : "messages";
    const char *strong = plan->ordered || plan->native ? "the same" : "once delivered";
    snprintf(plan->text, sizeof(plan->text), "%s; signals: %s, %u bits; strong: %s", data, weak,
             plan->native ? 64 : plan->imm_bits, strong);
}

void gi_core_plan(struct gi_core_plan *plan, const struct gi_net_caps *caps)
{
    bool writes = caps->waw_bytes >= min64(ORDER_LEAST, caps->max_msg);
    *plan = (struct gi_core_plan){.ordered = writes && caps->saw};
    plan->by_msg = !plan->ordered && caps->dc == GI_NET_DC_NO;
    plan->delivered = !plan->ordered && caps->dc == GI_NET_DC_YES;
    plan->remote_complete = plan->delivered || caps->dc == GI_NET_DC_SAME;
    /* A NIC's word of delivery asks for a read behind the write: no cheaper than an echo. */
    plan->prompt = plan->ordered && caps->dc == GI_NET_DC_YES && !caps->target_passive;
    bool behind = caps->amo_ordered; /* also where messages are not behind writes */
    plan->native = caps->amo == GI_NET_AMO_NATIVE && (behind || caps->amo_fence) && !plan->by_msg;
    plan->native_fence = plan->native && !behind;
    /* What eats receives, or can overrun a queue, would need credits: messages have them. */
    bool counted = caps->imm_eats_recv || caps->cq_overrun;
    plan->imm_bits = counted || plan->by_msg ? 0 : caps->imm_bits;
    plan->imm_after_msg = caps->was;
    plan->fence_reads = !caps->raw;
    plan->piece =
        min64(caps->max_msg, caps->target_passive ? GI_CORE_PIECE_MAX : GI_CORE_PIECE_CPU);
    plan->most = caps->target_passive ? UINT64_MAX : GI_CORE_MOST_CPU;
    if (plan->ordered)
        plan->piece = min64(plan->piece, caps->waw_bytes);
    /* What leaves no request has no completion either, which would be worth an echo. */
    plan->inject = plan->ordered && !plan->remote_complete ? min64(caps->inject, plan->piece) : 0;
    /* Half of the receives are for what has no credit: replies, and a few acknowledgements. */
    uint32_t credits = caps->recvs == 0  ? GI_CORE_CREDITS
                       : caps->recvs > 5 ? (caps->recvs - 2) / 2
                                         : 1;
    plan->credits = credits < GI_CORE_CREDITS ? credits : GI_CORE_CREDITS;
    uint32_t msg = caps->msg_max < GI_CORE_MSG_BYTES ? caps->msg_max : GI_CORE_MSG_BYTES;
    plan->payload = msg - GI_CORE_BYTES_PUT;
    /* Where the target's CPU moves every byte anyway, many small puts may as well share a message.
     */
    bool bundle = plan->ordered && caps->sas && caps->was && !caps->target_passive;
    plan->bundle = bundle && !plan->remote_complete ? caps->msg_max / 8 * 8 : 0;
    describe(plan);
}
