/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Updates of words that the CPU does not reach: fetched into a cell, changed there, put back. While
 * that lasts this update has the one right of the rank to do so, which keeps out other contexts'
 * and whoever else applies updates there.
 */
#include "base/amo.h"
#include "transport/core_stage.h"

static void end(struct gi_core_ctx *ctx, struct gi_stage_pull *k, int status)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    if (status != GIN_OK)
        gi_stage_spoilt(ctx, k, status);
    mover->give(mover->arg);
    gi_stage_over(ctx, k, status);
}

static void take(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    if (k->slab == NULL) {
        k->room = GI_STAGE_IN_CELL;
        k->slab = gi_stage_take(ctx->core->stage, k->room);
        if (k->slab == NULL)
            return;
    }
    int st = mover->take(mover->arg, k->update.window, k->update.op);
    if (st == GIN_OK)
        k->state = k->update.op == GIN_I_AMO_SET ? GI_STAGE_APPLY : GI_STAGE_FROM;
    else if (st != GIN_EAGAIN)
        gi_stage_over(ctx, k, st);
}

static void copy(struct gi_core_ctx *ctx, struct gi_stage_pull *k, bool back,
                 enum gi_stage_state then)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    uint64_t word = (uint64_t)(uintptr_t)k->to, cell = (uint64_t)(uintptr_t)k->slab;
    int st = mover->copy(mover->arg, back ? word : cell, back ? cell : word, k->update.bytes,
                         &k->ticket);
    if (st == GIN_OK)
        k->state = (uint8_t)then;
    else if (st != GIN_EAGAIN)
        end(ctx, k, st);
}

/* False: not yet, or it failed. */
static bool arrived(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    int st = mover->done(mover->arg, k->ticket);
    if (st < 0)
        end(ctx, k, st);
    return st > 0;
}

/* Tried again, it begins with the old value again. */
static void apply(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    const struct gi_core_update *u = &k->update;
    uint64_t now = 0;
    memcpy(k->slab, &k->old, sizeof(k->old));
    (void)gi_amo_apply(k->slab, u->op, u->bytes, u->value, u->expected);
    memcpy(&now, k->slab, u->bytes);
    if (u->op != GIN_I_AMO_SET && now == k->old)
        end(ctx, k, GIN_OK);
    else
        copy(ctx, k, true, GI_STAGE_PUT);
}

void gi_stage_word_step(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    if (k->state == GI_STAGE_TAKE)
        take(ctx, k);
    if (k->state == GI_STAGE_FROM)
        copy(ctx, k, false, GI_STAGE_GET);
    if (k->state == GI_STAGE_GET && arrived(ctx, k)) {
        memcpy(&k->old, k->slab, k->update.bytes);
        k->state = GI_STAGE_APPLY;
    }
    if (k->state == GI_STAGE_APPLY)
        apply(ctx, k);
    if (k->state == GI_STAGE_PUT && arrived(ctx, k))
        end(ctx, k, GIN_OK);
}
