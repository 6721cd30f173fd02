/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large puts over several rails. The pieces of one go out by the lane that has least under way, so
 * that a faster rail takes more of them; each asks for word of its delivery, wherever the rail is
 * not the home. The put's own signal is a message on the home rail, which leaves when all pieces
 * are delivered.
 *
 * What lies on other rails is not ordered with the home. As long as a peer's queue holds a striped
 * put (peer->apart), strong signals to it wait until they are the first there, and fences until
 * that; everything else goes on.
 *
 * Rails are in the same order at all ranks, so a lane's counterpart is on the rail of that number.
 */
#include "transport/core_stripe.h"

#include <stdio.h>
#include <stdlib.h>

#define PIECE_LEAST ((uint64_t)64 << 10)
#define PIECE_MOST  ((uint64_t)1 << 20)
#define SHARES      4u  /* pieces of a put for each lane, at least, where they are not too small */
#define WINDOW      3u  /* pieces of the most bytes that a lane has under way */
#define POOL        64u /* pieces of a side */
#define ALIGNED     4096u /* bytes of all pieces but the last */
#define SELDOM      16u   /* polls to one of a side that has been idle for as many */

bool gi_core_stripes(const struct gi_core *core)
{
    return core->sides != 0;
}

uint32_t gi_core_lanes_each(const struct gi_core *core)
{
    return 1 + core->sides;
}

void gi_core_stripe_plan(struct gi_core *core, bool wanted)
{
    uint32_t rails = core->config.n_domains;
    core->sides = 0;
    for (uint32_t i = 0; i < rails && wanted; i++) {
        if (core->caps[i]->dc == GI_NET_DC_NO) {
            gi_info("net", "rail %u tells of no delivery: no put is split over rails", i);
            wanted = false;
        }
    }
    if (wanted)
        core->sides = rails - 1;
}

/* ---- opening ---- */

/* Beside writes a lane carries a greeting to each peer, and the answer. */
struct hello {
    uint32_t answer, source;
};
enum { GREETED = 1, ANSWERED = 2, OWED = 4 };

static int say(struct gi_core_side *s, int rank, bool answer)
{
    struct hello h = {.answer = answer, .source = (uint32_t)s->ctx->core->config.rank};
    return gi_core_posted(s->ctx, &s->ctx->peers[rank], s->ops->msg(s->lane, rank, &h, sizeof(h)));
}

static void answer_all(struct gi_core_side *s)
{
    for (int r = 0; s->owed != 0 && r < s->ctx->core->config.size; r++) {
        if ((s->met[r] & OWED) == 0 || (!s->ctx->peers[r].gone && say(s, r, true) == GIN_EAGAIN))
            continue;
        s->met[r] &= (uint8_t)~OWED;
        s->owed--;
    }
}

int gi_core_greet_sides(struct gi_core_ctx *ctx, int peer, uint32_t *rail)
{
    int all = 1;
    for (uint32_t i = 0; ctx->stripe != NULL && i < ctx->stripe->n; i++) {
        struct gi_core_side *s = &ctx->stripe->side[i];
        if ((s->met[peer] & GREETED) == 0 && ctx->peers[peer].status == GIN_OK &&
            say(s, peer, false) == GIN_OK)
            s->met[peer] |= GREETED;
        if (ctx->peers[peer].status == GIN_OK && (s->met[peer] & ANSWERED) != 0)
            continue;
        *rail = s->rail;
        all = 0;
    }
    return ctx->peers[peer].status != GIN_OK ? ctx->peers[peer].status : all;
}

uint32_t gi_core_home(const struct gi_core_ctx *ctx)
{
    return ctx->rail;
}

static void arrived_imm(void *arg, int peer, uint64_t imm)
{
    struct gi_core_side *s = arg;
    (void)peer;
    gi_core_refuse(s->ctx, NULL, GIN_EINVAL, NULL, (uint32_t)imm, 0);
}

static void arrived_msg(void *arg, int peer, const void *bytes, uint32_t len)
{
    struct gi_core_side *s = arg;
    const struct hello *h = bytes;
    if (len != sizeof(*h) || h->source >= (uint32_t)s->ctx->core->config.size ||
        (peer >= 0 && (uint32_t)peer != h->source)) {
        gi_core_refuse(s->ctx, NULL, GIN_EINVAL, NULL, len, 0);
        return;
    }
    uint8_t *met = &s->met[h->source];
    if (h->answer != 0) {
        *met |= ANSWERED;
    } else if ((*met & OWED) == 0) {
        *met |= OWED;
        s->owed++;
    }
}

static void give(struct gi_core_side *s, struct gi_core_chunk *c)
{
    s->pieces--;
    s->bytes -= c->bytes;
    c->op->pieces--;
    c->op = NULL;
    c->next = s->free_chunks;
    s->free_chunks = c;
}

static void done(void *arg, struct gi_net_request *req)
{
    struct gi_core_side *s = arg;
    struct gi_core_chunk *c = (struct gi_core_chunk *)req;
    struct gi_core_op *op = c->op;
    op->peer->signs.moved++; /* nothing that the home's echo is behind */
    op->peer->signs.heard += !s->caps->target_passive;
    give(s, c);
    gi_core_op_check(s->ctx, op);
}

static void failed(void *arg, struct gi_net_request *req, int peer, int status, int provider_error,
                   const char *text)
{
    struct gi_core_side *s = arg;
    struct gi_core_chunk *c = (struct gi_core_chunk *)req;
    char why[GI_CORE_TEXT];
    snprintf(why, sizeof(why), "rail %u: %.150s (%d)", s->rail,
             text != NULL ? text : "the network failed", provider_error);
    if (c == NULL) {
        if (peer >= 0 && peer < s->ctx->core->config.size)
            gi_core_peer_fail(s->ctx, &s->ctx->peers[peer], status, why);
        else
            gi_core_lane_dead(s->ctx, why);
        return;
    }
    struct gi_core_op *op = c->op;
    give(s, c);
    if (op->done)
        gi_core_op_check(s->ctx, op);
    else
        gi_core_peer_fail(s->ctx, op->peer, status, why);
}

static int open_side(struct gi_core_side *s, const struct gi_core_ctx_config *config,
                     struct gi_core_name *name)
{
    struct gi_core_ctx *ctx = s->ctx;
    struct gi_net_domain *d = ctx->core->domain[s->rail];
    struct gi_net_lane_config lc = gi_core_lane_config(ctx, config);
    lc.handler = (struct gi_net_handler){.arg = s,
                                         .done = done,
                                         .failed = failed,
                                         .arrived_imm = arrived_imm,
                                         .arrived_msg = arrived_msg};
    s->ops = d->ops;
    s->caps = ctx->core->caps[s->rail];
    uint32_t depth =
        config->depth != 0 && config->depth < s->caps->depth ? config->depth : s->caps->depth;
    s->n_chunks = depth == 0 ? 1 : depth < POOL ? depth : POOL;
    s->chunks_memory = calloc(s->n_chunks, sizeof(*s->chunks_memory));
    s->met = calloc((size_t)ctx->core->config.size, 1);
    if (s->chunks_memory == NULL || s->met == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for %u pieces of a rail", s->n_chunks);
    for (uint32_t i = s->n_chunks; i-- > 0;) {
        s->chunks_memory[i].next = s->free_chunks;
        s->free_chunks = &s->chunks_memory[i];
    }
    int st = s->ops->lane_open(d, &lc, &s->lane);
    if (st != GIN_OK)
        return st;
    name->len = sizeof(name->bytes);
    return s->ops->name(s->lane, name->bytes, &name->len);
}

int gi_core_stripe_open(struct gi_core_ctx *ctx, const struct gi_core_ctx_config *config,
                        struct gi_core_name *name)
{
    struct gi_core *core = ctx->core;
    struct gi_core_stripe *t = calloc(1, sizeof(*t) + core->sides * sizeof(t->side[0]));
    int st = GIN_OK;
    if (t == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a context's %u rails", core->sides + 1);
    ctx->stripe = t;
    for (; st == GIN_OK && t->n < core->sides; t->n++) {
        struct gi_core_side *s = &t->side[t->n];
        s->ctx = ctx;
        s->rail = (ctx->rail + 1 + t->n) % core->config.n_domains;
        st = open_side(s, config, &name[t->n]);
    }
    ctx->stripe_from = core->config.stripe_from;
    return st;
}

int gi_core_stripe_connect(struct gi_core_ctx *ctx, const struct gi_core_name *names, size_t step)
{
    int st = GIN_OK;
    for (uint32_t i = 0; i < ctx->stripe->n; i++)
        for (int r = 0; r < ctx->core->config.size && st == GIN_OK; r++) {
            const struct gi_core_name *from = &names[(size_t)r * step + i];
            struct gi_core_side *s = &ctx->stripe->side[i];
            if (ctx->peers[r].gone)
                continue; /* not a peer of this context */
            st = s->ops->connect(s->lane, r, from->bytes, from->len);
        }
    return st;
}

bool gi_core_stripe_part(struct gi_core_ctx *ctx)
{
    bool asked = false;
    for (uint32_t i = 0; i < ctx->stripe->n; i++) {
        struct gi_core_side *s = &ctx->stripe->side[i];
        if (!ctx->core->caps[s->rail]->part_late)
            continue;
        s->ops->part(s->lane);
        asked = true;
    }
    return asked;
}

void gi_core_stripe_close(struct gi_core_ctx *ctx)
{
    struct gi_core_stripe *t = ctx->stripe;
    ctx->stripe = NULL;
    for (uint32_t i = 0; t != NULL && i < t->n; i++) {
        if (t->side[i].lane != NULL)
            t->side[i].ops->lane_close(t->side[i].lane);
        free(t->side[i].chunks_memory);
        free(t->side[i].met);
    }
    free(t);
}

/* ---- posting ---- */

enum gi_core_way gi_core_stripe_way(const struct gi_core_put *put)
{
    return put->action.kind == GI_CORE_NONE ? GI_CORE_WAY_NONE
           : put->action.strong             ? GI_CORE_WAY_STRONG
                                            : GI_CORE_WAY_WEAK;
}

static uint64_t piece_of(const struct gi_core_ctx *ctx, const struct gi_core_op *op)
{
    uint64_t share = op->bytes / (SHARES * (ctx->stripe->n + 1)) / ALIGNED * ALIGNED;
    return share < PIECE_LEAST ? PIECE_LEAST : share < PIECE_MOST ? share : PIECE_MOST;
}

static int post_side(struct gi_core_side *s, struct gi_core_op *op, uint64_t most)
{
    struct gi_core_ctx *ctx = s->ctx;
    struct gi_core_peer *p = op->peer;
    struct gi_core_chunk *c = s->free_chunks;
    struct gi_core_place at;
    uint64_t len;
    most = most < s->caps->max_msg ? most : s->caps->max_msg;
    int st = gi_core_next_piece(ctx, s->rail, op, most, &at, &len);
    if (st != GIN_OK)
        return st;
    if (c == NULL)
        return GIN_EAGAIN;
    bool told = s->caps->dc == GI_NET_DC_YES && (ctx->mutate & GI_CORE_MUTATE_DELIVERED) == 0;
    struct gi_net_io io = {.peer = gi_core_rank_of(ctx, p),
                           .flags = told ? GI_NET_DELIVERED : 0,
                           .local = op->local + op->offset,
                           .mr = op->region != NULL ? op->region->mr[s->rail] : NULL,
                           .key = at.key,
                           .remote = at.remote,
                           .len = len,
                           .req = &c->req};
    s->free_chunks = c->next;
    c->op = op;
    c->bytes = len;
    c->action = false;
    st = gi_core_posted(ctx, p, s->ops->write(s->lane, &io));
    if (st != GIN_OK) {
        c->op = NULL;
        c->next = s->free_chunks;
        s->free_chunks = c;
        return st;
    }
    ctx->counts[GI_CORE_N_WRITE]++;
    ctx->counts[GI_CORE_N_SIDE]++;
    s->pieces++;
    s->bytes += len;
    s->idle = 0;
    op->pieces++;
    op->offset += len;
    return GIN_OK;
}

/* The lane with the least under way of those that are not in `full`; lane 0 is the home. */
static uint32_t freest(const struct gi_core_ctx *ctx, const struct gi_core_peer *p, uint32_t full,
                       uint64_t *bytes)
{
    struct gi_core_stripe *t = ctx->stripe;
    uint32_t best = 0, lanes = t->n + 1;
    *bytes = UINT64_MAX;
    for (uint32_t k = 0; k < lanes; k++) {
        uint32_t i = (t->first + k) % lanes;
        uint64_t b = i == 0 ? p->bytes : t->side[i - 1].bytes;
        if ((full >> i & 1) == 0 && b < *bytes) {
            best = i;
            *bytes = b;
        }
    }
    return best;
}

int gi_core_stripe_post(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_stripe *t = ctx->stripe;
    uint64_t piece = piece_of(ctx, op), bytes, least;
    uint32_t full = 0, all = (2u << t->n) - 1;
    while (op->offset < op->bytes && full != all) {
        uint32_t i = freest(ctx, op->peer, full, &bytes);
        if (bytes >= WINDOW * PIECE_MOST)
            return GIN_EAGAIN;
        least = piece < ctx->plan->piece ? piece : ctx->plan->piece;
        int st = i == 0 ? gi_core_post_piece(ctx, op, false, least)
                        : post_side(&t->side[i - 1], op, piece);
        if (st == GIN_EAGAIN)
            full |= 1u << i;
        else if (st != GIN_OK)
            return st;
        else
            t->first = (i + 1) % (t->n + 1);
    }
    return op->offset == op->bytes ? GIN_OK : GIN_EAGAIN;
}

void gi_core_stripe_gone(struct gi_core_ctx *ctx, int rank)
{
    for (uint32_t i = 0; i < ctx->stripe->n; i++)
        ctx->stripe->side[i].ops->cancel_peer(ctx->stripe->side[i].lane, rank);
}

/* ---- driving ---- */

/* A target sees to what comes here, too, on networks that need that: never leave one alone. */
int gi_core_stripe_progress(struct gi_core_ctx *ctx)
{
    int events = 0;
    for (uint32_t i = 0; i < ctx->stripe->n; i++) {
        struct gi_core_side *s = &ctx->stripe->side[i];
        if (s->pieces == 0 && s->owed == 0 && s->idle > SELDOM && s->idle++ % SELDOM != 0)
            continue;
        int n = s->ops->progress(s->lane, POOL);
        if (GIN_UNLIKELY(n < 0)) {
            gi_core_lane_dead(ctx, gin_last_error());
            return events;
        }
        s->idle = n != 0 ? 0 : s->idle + 1;
        if (GIN_UNLIKELY(s->owed != 0))
            answer_all(s);
        events += n;
    }
    return events;
}

int gi_core_stripe_fds(struct gi_core_ctx *ctx, int *fds, int max)
{
    int count = 0;
    for (uint32_t i = 0; i < ctx->stripe->n; i++) {
        struct gi_core_side *s = &ctx->stripe->side[i];
        s->idle = 0; /* to be looked at before and after the sleep */
        if (!s->caps->wait_fd || count == max)
            return GI_CORE_BLIND;
        int idle = s->ops->progress_fd(s->lane, &fds[count]);
        if (fds[count] < 0 || idle != 1)
            return fds[count] < 0 ? GI_CORE_BLIND : GI_CORE_BUSY;
        count++;
    }
    return count;
}
