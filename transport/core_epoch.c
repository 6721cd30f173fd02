/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strong signals on an unordered network without a wait at the source (strategy T-epoch). Every
 * write's immediate carries the number of the epoch that is open towards the peer; the message of a
 * strong signal closes it and says how many writes it had. The target counts by epoch, and a
 * message that closes one is handled when that one is whole: it and those behind it wait in the
 * slots of early ones, so earlier epochs are closed before. What waits there has no credit yet,
 * which bounds the open epochs: the source stalls, as it does for messages that nobody handles.
 *
 * Completion, and with it fence and quiet, are strategy S's: writes still tell of their delivery.
 */
#include "transport/core_epoch.h"

#include <stdlib.h>

/* What an immediate has room for beside the tag (bits 24-31 or 56-63) and the epoch. */
#define WIDE_ADDEND   0 /* 16 bits, 0: no signal */
#define WIDE_SLOT     16
#define WIDE_EPOCH    40
#define NARROW_SLOT   0 /* 16 bits, slot + 1, 0: no signal; adds 1 */
#define NARROW_EPOCH  16
#define EPOCH_NUMBERS 0xffu

_Static_assert(GI_CORE_EPOCHS > GI_CORE_CREDITS, "as many are open as messages unacknowledged");
_Static_assert((GI_CORE_EPOCHS & (GI_CORE_EPOCHS - 1)) == 0, "numbers go round");

/* Immediates that may be unread at a lane whose queue nobody protects, and the fewest writes of an
 * epoch that are worth its message. */
#define UNREAD 16384u
#define FEWEST 4u

/* Writes of an epoch, such that all that all peers may have under way find room. */
static uint32_t most_there(const struct gi_core_ctx *ctx)
{
    uint64_t epochs = (uint64_t)ctx->core->config.size * (ctx->plan->credits + 1);
    return ctx->caps->cq_overrun ? (uint32_t)(UNREAD / epochs) : UINT16_MAX;
}

const char *gi_core_uncounted(const struct gi_net_caps *caps)
{
    return caps->imm_bits == 0   ? "the network has no immediates"
           : caps->imm_eats_recv ? "each immediate takes a posted receive"
           : !caps->imm_source   ? "immediates do not tell their source"
                                 : NULL;
}

/* NULL: strong signals may be counted. */
static const char *why_not(const struct gi_core_ctx *ctx)
{
    return ctx->plan->ordered         ? "the network keeps order"
           : ctx->plan->native        ? "its atomics keep order"
           : ctx->plan->by_msg        ? "nothing tells of delivery, puts travel in messages"
           : most_there(ctx) < FEWEST ? "the queue of arrivals is too short for so many ranks"
                                      : gi_core_uncounted(ctx->caps);
}

int gi_core_epochs_open(struct gi_core_ctx *ctx, uint32_t most, uint32_t *unread)
{
    const char *why = why_not(ctx);
    if (why != NULL) {
        gi_info("net", "context %u: strategy EPOCH is of no use here: %s", ctx->tag, why);
        return GIN_OK;
    }
    uint32_t room = most_there(ctx);
    ctx->epoch_most = most < room ? most : room;
    gi_info("net", "context %u: strong signals are counted, in epochs of at most %u writes",
            ctx->tag, ctx->epoch_most);
    *unread = ctx->caps->cq_overrun ? UNREAD : 0;
    ctx->epochs = calloc((size_t)ctx->core->config.size, sizeof(*ctx->epochs));
    return ctx->epochs != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for a context's epochs");
}

static struct gi_core_epochs *of(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    return &ctx->epochs[gi_core_rank_of(ctx, p)];
}

/* ---- source ---- */

bool gi_core_epoch_fits(const struct gi_core_ctx *ctx, const struct gi_core_action *a)
{
    return ctx->caps->imm_bits == 64 ? a->value != 0 && a->value >> 16 == 0
                                     : a->value == 1 && a->id < 0xffffu;
}

uint64_t gi_core_epoch_imm(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                           const struct gi_core_action *a)
{
    uint64_t tag = ctx->tag & 0xff, epoch = of(ctx, p)->out;
    if (ctx->mutate & GI_CORE_MUTATE_REUSE)
        epoch &= 1;
    if (ctx->caps->imm_bits == 32)
        return (a != NULL ? (uint64_t)a->id + 1 : 0) << NARROW_SLOT | epoch << NARROW_EPOCH |
               tag << 24;
    return (a != NULL ? a->value << WIDE_ADDEND | (uint64_t)a->id << WIDE_SLOT : 0) |
           epoch << WIDE_EPOCH | tag << 56;
}

void gi_core_epoch_posted(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    of(ctx, p)->posted++;
}

bool gi_core_epoch_ends(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    return of(ctx, p)->posted + 1u >= ctx->epoch_most;
}

int gi_core_epoch_room(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_core_msg m;
    if (of(ctx, p)->posted < ctx->epoch_most)
        return GIN_OK;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_CLOSE);
    return gi_core_epoch_send(ctx, p, &m, sizeof(m.h));
}

int gi_core_epoch_send(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_core_msg *m,
                       uint32_t len)
{
    struct gi_core_epochs *e = ctx->epochs != NULL ? of(ctx, p) : NULL;
    if (e == NULL || e->posted == 0)
        return gi_core_msg_send(ctx, p, m, len);
    m->h.flags |= GI_CORE_CLOSES;
    m->h.imms = e->posted;
    if (ctx->mutate & GI_CORE_MUTATE_SHORT)
        m->h.imms--;
    int st = gi_core_msg_send(ctx, p, m, len);
    if (st == GIN_OK) {
        e->out++;
        e->posted = 0;
    }
    return st;
}

/* ---- target ---- */

/* The counter of a number, NULL: no such epoch can be open. */
static uint16_t *counter(const struct gi_core_ctx *ctx, struct gi_core_epochs *e, uint64_t number)
{
    uint8_t ahead = (uint8_t)(number - e->in);
    if (ctx->mutate & GI_CORE_MUTATE_REUSE)
        return &e->arrived[number & 1];
    if (ctx->mutate & GI_CORE_MUTATE_SHORT) /* the one that was not counted comes late */
        return &e->arrived[number % GI_CORE_EPOCHS];
    return ahead <= GI_CORE_CREDITS ? &e->arrived[number % GI_CORE_EPOCHS] : NULL;
}

bool gi_core_epoch_is_whole(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                            const struct gi_core_msg *m)
{
    struct gi_core_epochs *e = of(ctx, p);
    return *counter(ctx, e, e->in) >= m->h.imms;
}

void gi_core_epoch_close(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m)
{
    struct gi_core_epochs *e = of(ctx, p);
    *counter(ctx, e, e->in) -= m->h.imms;
    e->in++;
}

void gi_core_epoch_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t imm)
{
    bool narrow = ctx->caps->imm_bits == 32;
    uint64_t number = imm >> (narrow ? NARROW_EPOCH : WIDE_EPOCH) & EPOCH_NUMBERS;
    uint64_t value = narrow ? imm >> NARROW_SLOT & 0xffff : imm >> WIDE_ADDEND & 0xffff;
    uint32_t slot = (uint32_t)(narrow ? value - 1 : imm >> WIDE_SLOT & 0xffffff);
    uint16_t *n = counter(ctx, of(ctx, p), number);
    int st = n != NULL ? GIN_OK : GIN_EINVAL;
    /* Signals first: who waits for the epoch has them, too. */
    if (st == GIN_OK && value != 0)
        st = gi_core_signal_slot(ctx, p, slot, narrow ? 1 : value);
    if (st != GIN_OK)
        gi_core_refuse(ctx, p, st, NULL, slot, 0);
    if (n == NULL)
        return;
    ++*n;
    gi_core_go_on(ctx, p);
}
