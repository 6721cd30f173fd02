/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small put that quiet follows at once, on an ordered network: the write itself asks for word of
 * its delivery, which then comes back without a message behind it to ask for, and without the
 * target's engine. What was written before is delivered, too, so the word proves all of that; but
 * not what the target's engine has to do: messages, those of signals that wait for other rails,
 * too, and signals that came as immediates.
 *
 * Word of delivery costs the target a message, so only those ask who will want it: peers to whom a
 * quiet followed each of the last few puts that went out by themselves.
 *
 * On a network without order such a put goes in a message, so that signals behind it need not wait.
 * Where writes are heard of when they are delivered and quiet follows, a write is there and back
 * once, without the target's engine; the message would have an echo behind it.
 */
#include "transport/core_int.h"

#define HABIT 3u /* such puts in a row */

void gi_core_proven(struct gi_core_peer *p, uint64_t to)
{
    if (to >= p->loose.hi)
        p->loose.lo = p->loose.hi = 0;
    else if (p->loose.lo != 0 && to >= p->loose.lo)
        p->loose.lo = to + 1;
}

static bool engine_is_behind(const struct gi_core_peer *p)
{
    return p->out.sent != p->out.acked || p->bundle.bytes != 0 || p->apart != 0 ||
           gi_core_imms_unproven(p);
}

/* For a put without action that goes out by itself: NULL, or the piece whose delivery is told. */
struct gi_core_chunk *gi_core_prompt_take(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    if (p->prompt.lone != 0)
        p->prompt.habit = 0; /* no quiet came between */
    if (!ctx->plan->prompt || p->prompt.habit < HABIT ||
        (engine_is_behind(p) && !(ctx->mutate & GI_CORE_MUTATE_PROMPT)))
        return NULL;
    return gi_core_chunk_take(ctx, p);
}

void gi_core_prompt_sent(struct gi_core_peer *p, struct gi_core_chunk *c, uint64_t seq)
{
    p->prompt.lone = seq;
    if (c == NULL)
        return;
    c->op = NULL;
    c->peer = p;
    c->seq = seq;
    c->bytes = 0;
    c->action = false;
    p->prompt.n++;
    p->prompt.hi = seq;
}

/* By a write, what would go in a message. */
bool gi_core_prompt_writes(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    return ctx->plan->remote_complete && p->prompt.habit >= HABIT && p->prompt.lone == 0;
}

void gi_core_prompt_lone(struct gi_core_peer *p, uint64_t seq)
{
    if (p->prompt.lone != 0)
        p->prompt.habit = 0;
    p->prompt.lone = seq;
}

void gi_core_prompt_quiet(struct gi_core_peer *p)
{
    if (p->prompt.lone == 0)
        return;
    p->prompt.habit = p->prompt.lone == p->issued ? p->prompt.habit + 1 : 0;
    p->prompt.lone = 0;
}

static void ended(struct gi_core_ctx *ctx, struct gi_core_chunk *c)
{
    struct gi_core_peer *p = c->peer;
    p->prompt.n--;
    if (p->prompt.n == 0)
        p->prompt.hi = 0;
    gi_core_chunk_give(ctx, p, c);
}

void gi_core_prompt_done(struct gi_core_ctx *ctx, struct gi_core_chunk *c)
{
    struct gi_core_peer *p = c->peer;
    uint64_t seq = c->seq;
    ended(ctx, c);
    gi_core_sign(ctx, p, true);
    if (p->status != GIN_OK)
        return;
    gi_core_proven(p, seq);
    if (p->first != NULL || p->echo.want != 0)
        gi_core_kick(ctx, p);
}

void gi_core_prompt_failed(struct gi_core_ctx *ctx, struct gi_core_chunk *c)
{
    ended(ctx, c);
}
