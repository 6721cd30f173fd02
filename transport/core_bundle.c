/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many small puts in one message, on ordered networks where the target's CPU moves the bytes in any
 * case and a post costs a system call. The first small put since the poster waited for something
 * goes out by itself, so that one alone is not held up; those that follow are collected, and leave
 * when there is no room for another, when something else goes to that peer, or with the next poll.
 *
 * An entry is 8 bytes (offset 0-47, length 48-55, slot + 1 of a signal by 1 or 0: 56-63) and the
 * data. All entries of a bundle are of one window.
 */
#include "transport/core_int.h"

#include <stdlib.h>

#define MOST     64u  /* bytes of a put that is worth it */
#define SLOTS    254u /* signals that an entry can name */
#define OFF_BITS 48
#define HEAD     ((uint32_t)offsetof(struct gi_core_bundle, entry))

static uint32_t words(uint64_t bytes)
{
    return 1 + (uint32_t)(bytes + 7) / 8;
}

/* A bundle that is begun would stay until the sleep ends by itself. */
static bool nobody_polls(const struct gi_core_ctx *ctx)
{
    const struct gi_core *core = ctx->core;
    return core->config.hooks.wake == NULL &&
           atomic_load_explicit(&core->asleep[ctx->driver], memory_order_relaxed) != 0;
}

/* The last bundle may not have been applied: a write could land before it. Nobody promises that it
 * does not, but a small put after a small put is better off behind it. */
static bool behind_bundle(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    return p->bundle.upto > p->out.acked && !(ctx->mutate & GI_CORE_MUTATE_BUNDLE);
}

static bool in_burst(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    return p->bundle.burst == ctx->pauses && !nobody_polls(ctx);
}

/* Others came, or are promised. */
static bool has_company(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                        const struct gi_core_put *put)
{
    return in_burst(ctx, p) || (put->more && !nobody_polls(ctx));
}

bool gi_core_bundle_fits(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                         const struct gi_core_put *put, bool host)
{
    const struct gi_core_action *a = &put->action;
    if (ctx->plan->bundle == 0 || put->bytes == 0 || put->bytes > MOST || !host ||
        p->unposted != NULL || p->pushing || gi_core_is_slow(p))
        return false;
    if (p->bundle.bytes == 0 && !behind_bundle(ctx, p) && !has_company(ctx, p, put))
        return false;
    if (put->off >> OFF_BITS != 0 || HEAD + 8 * words(put->bytes) > ctx->plan->bundle)
        return false;
    return a->kind == GI_CORE_NONE ||
           (a->kind == GI_CORE_SLOT_ADD && a->value == 1 && a->id < SLOTS);
}

bool gi_core_bundle_send(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    bool asks = gi_core_echo_rides(ctx, p);
    p->bundle.slot->h.flags = asks ? GI_CORE_ASKS : 0;
    p->bundle.slot->h.imms = (uint16_t)p->out.imms;
    int st = gi_core_msg_send(ctx, p, p->bundle.slot, p->bundle.bytes);
    if (st == GIN_OK) {
        p->bundle.bytes = 0;
        p->bundle.upto = p->out.sent;
        if (asks)
            gi_core_echo_sent(p, p->issued);
    }
    return p->bundle.bytes == 0; /* a peer that failed has none either */
}

static int begin(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint32_t window)
{
    if (p->bundle.slot == NULL)
        p->bundle.slot = malloc(sizeof(*p->bundle.slot));
    if (p->bundle.slot == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for small puts to rank %d", gi_core_rank_of(ctx, p));
    gi_core_msg_init(ctx, (struct gi_core_msg *)(void *)p->bundle.slot, GI_CORE_MSG_BUNDLE);
    p->bundle.slot->window = window;
    p->bundle.slot->n = 0;
    p->bundle.bytes = HEAD;
    gi_core_kick(ctx, p); /* leaves with the next poll */
    return GIN_OK;
}

int gi_core_bundle_add(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                       const struct gi_core_put *put)
{
    uint32_t n = words(put->bytes);
    if (p->bundle.bytes != 0 &&
        (p->bundle.slot->window != put->window || p->bundle.bytes + 8 * n > ctx->plan->bundle) &&
        !gi_core_bundle_send(ctx, p))
        return GIN_EAGAIN;
    if (GIN_UNLIKELY(p->status != GIN_OK))
        return p->status;
    int st = p->bundle.bytes == 0 ? begin(ctx, p, put->window) : GIN_OK;
    if (st != GIN_OK)
        return st;
    uint64_t *e = &p->bundle.slot->entry[(p->bundle.bytes - HEAD) / 8];
    uint64_t slot = put->action.kind == GI_CORE_SLOT_ADD ? put->action.id + 1 : 0;
    e[0] = put->off | put->bytes << OFF_BITS | slot << 56;
    e[n - 1] = 0; /* the padding */
    memcpy(&e[1], put->src, put->bytes);
    p->bundle.slot->n++;
    p->bundle.bytes += 8 * n;
    ctx->counts[GI_CORE_N_BUNDLED]++;
    gi_core_loosen(ctx, p, gi_core_op_none(ctx, p));
    if (!has_company(ctx, p, put)) { /* alone, for its order: not held up either */
        p->bundle.burst = ctx->pauses;
        gi_core_bundle_send(ctx, p);
    }
    if (put->counter != NULL)
        GIN_ADD_RELEASE(put->counter, (uint64_t)1);
    if (put->notice != NULL)
        put->notice->fn(put->notice, GIN_OK);
    return GIN_OK;
}

/* ---- arrival ---- */

static uint32_t len_of(uint64_t entry)
{
    return (uint32_t)(entry >> OFF_BITS) & 0xff;
}

bool gi_core_bundle_is_whole(const struct gi_core_bundle *b, uint32_t len)
{
    uint32_t at = HEAD;
    if (len < HEAD || len > sizeof(*b))
        return false;
    for (uint32_t i = 0; i < b->n; i++) {
        if (at + 8 > len || len_of(b->entry[(at - HEAD) / 8]) > MOST)
            return false;
        at += 8 * words(len_of(b->entry[(at - HEAD) / 8]));
    }
    return at == len;
}

void gi_core_bundle_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                            const struct gi_core_bundle *b)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    const uint64_t *e = b->entry;
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t off = e[0] & (((uint64_t)1 << OFF_BITS) - 1);
        uint32_t len = len_of(e[0]), slot = (uint32_t)(e[0] >> 56);
        void *at;
        int st = h->resolve(h->arg, b->window, off, len, true, &at);
        if (st == GIN_OK && slot > ctx->cells.n)
            st = GIN_ERANGE;
        if (st == GIN_OK) {
            gi_core_store(at, &e[1], len);
            if (slot != 0)
                gi_core_signal_slot(ctx, p, slot - 1, 1);
        } else {
            gi_core_refuse(ctx, p, st, (const struct gi_core_msg *)(const void *)b, b->window, off);
        }
        e += words(len);
    }
}
