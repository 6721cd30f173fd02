/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes by slabs: what peers have staged for me is read from there, straight to its place or,
 * where neither network nor CPU reaches that, into a slab of mine and copied. What comes as a
 * message begins when it arrives, and is handled in its turn; so several copies are under way.
 */
#include "transport/core_stage.h"

#include <stdio.h>

static struct gi_stage_pull *slot_of(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    return &p->stage->in[m->h.seq % GI_CORE_CREDITS];
}

void gi_stage_over(struct gi_core_ctx *ctx, struct gi_stage_pull *k, int status)
{
    if (k->slab != NULL)
        gi_stage_give(ctx->core->stage, k->room, k->slab);
    k->slab = NULL;
    k->status = status;
    k->state = GI_STAGE_OVER;
}

void gi_stage_spoilt(struct gi_core_ctx *ctx, struct gi_stage_pull *k, int status)
{
    gi_stage_failed(ctx->core->stage);
    k->ours = true;
    gi_stage_over(ctx, k, status);
}

/* ---- from slab to slab to memory ---- */

/* False: not now. */
static bool read_it(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    struct gi_core_peer *p = k->peer;
    struct gi_core_chunk *c = gi_core_chunk_take(ctx, p);
    if (c == NULL)
        return false;
    const struct gi_core_region *slabs = ctx->core->stage->region;
    struct gi_net_io io = {.peer = gi_core_rank_of(ctx, p),
                           .local = k->slab != NULL ? k->slab : k->to,
                           .mr = k->slab != NULL ? slabs->mr[ctx->rail] : k->mr,
                           .key = k->key,
                           .remote = k->remote,
                           .len = k->len,
                           .req = &c->req};
    c->op = NULL;
    c->peer = p;
    c->pull = k;
    c->bytes = k->len;
    c->action = false;
    int st = gi_core_posted(ctx, p, ctx->ops->read(ctx->lane, &io));
    if (st != GIN_OK) {
        gi_core_chunk_give(ctx, p, c);
        if (st != GIN_EAGAIN)
            gi_stage_over(ctx, k, st);
        return false;
    }
    ctx->counts[GI_CORE_N_READ]++;
    p->bytes += k->len;
    k->state = GI_STAGE_READ;
    return true;
}

static void make_room(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    bool by_slab = k->device || (ctx->caps->mr_local && k->mr == NULL);
    if (k->peer->gone && k->payload == NULL) {
        gi_stage_over(ctx, k, GIN_EPEER);
        return;
    }
    if (by_slab && k->slab == NULL) {
        k->room = k->payload != NULL ? GI_STAGE_IN_CELL : GI_STAGE_IN;
        k->slab = gi_stage_take(ctx->core->stage, k->room);
        if (k->slab == NULL)
            return;
    }
    if (k->payload == NULL) {
        read_it(ctx, k);
        return;
    }
    memcpy(k->slab, k->payload, k->len);
    k->state = GI_STAGE_LAND;
}

static void land(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    if (!k->device) {
        if (k->slab != NULL)
            memcpy(k->to, k->slab, k->len);
        gi_stage_over(ctx, k, GIN_OK);
        return;
    }
    int st = mover->copy(mover->arg, (uint64_t)(uintptr_t)k->to, (uint64_t)(uintptr_t)k->slab,
                         k->len, &k->ticket);
    if (st == GIN_OK)
        k->state = GI_STAGE_COPY;
    else if (st != GIN_EAGAIN)
        gi_stage_spoilt(ctx, k, st);
}

/* As far as it goes now; true: to its end. */
static bool step(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    if (k->state == GI_STAGE_OVER)
        return false;
    if (k->word)
        gi_stage_word_step(ctx, k);
    if (k->state == GI_STAGE_ROOM)
        make_room(ctx, k);
    if (k->state == GI_STAGE_LAND)
        land(ctx, k);
    int st = k->state == GI_STAGE_COPY ? mover->done(mover->arg, k->ticket) : 0;
    if (st < 0)
        gi_stage_spoilt(ctx, k, st);
    else if (st > 0)
        gi_stage_over(ctx, k, GIN_OK);
    return k->state == GI_STAGE_OVER;
}

void gi_stage_pull_begin(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    k->state = GI_STAGE_ROOM;
    gi_core_stage_kick(ctx, k->peer);
    step(ctx, k);
}

void gi_core_stage_read(struct gi_core_ctx *ctx, struct gi_core_chunk *c, int status)
{
    struct gi_stage_pull *k = c->pull;
    struct gi_core_peer *p = k->peer;
    p->bytes -= c->bytes;
    if (status == GIN_OK)
        gi_core_sign(ctx, p, true);
    gi_core_chunk_give(ctx, p, c);
    if (status == GIN_OK)
        k->state = GI_STAGE_LAND;
    else
        gi_stage_over(ctx, k, status);
    gi_core_stage_kick(ctx, p);
}

/* ---- messages ---- */

/* Mine, which the message says to be read into. NULL: there is no such question. */
static struct gi_stage_get *asked_for(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    struct gi_stage_get *e = &p->stage->get[m->staged.fetch % GI_STAGE_DEEP];
    bool mine = m->staged.fetch < GI_STAGE_DEEP && e->op != NULL && e->asked && !e->answered;
    return mine && e->turn == m->staged.turn && e->len == m->staged.len ? e : NULL;
}

/* Registered memory of mine in a window, where the network wants that; NULL: not in one piece. */
static struct gi_net_mr *my_mr(const struct gi_core_ctx *ctx, const struct gi_core_msg *m)
{
    struct gi_core_place at;
    if (gi_core_locate(ctx->core, ctx->rail, ctx->core->config.rank, m->staged.window,
                       m->staged.off, m->staged.len, &at) != GIN_OK)
        return NULL;
    return at.run >= m->staged.len ? at.mr : NULL;
}

static int fill_put(struct gi_core_ctx *ctx, struct gi_stage_pull *k, const struct gi_core_msg *m)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    void *at;
    int st = h->resolve(h->arg, m->staged.window, m->staged.off, m->staged.len, true, &at);
    k->device = st == GIN_ENOTSUP && ctx->core->stage->mover.copy != NULL;
    if (st != GIN_OK && !k->device)
        return st;
    k->to = at;
    k->mr = k->device ? NULL : my_mr(ctx, m);
    return GIN_OK;
}

static int fill_answer(struct gi_core_ctx *ctx, struct gi_stage_pull *k,
                       const struct gi_core_msg *m)
{
    struct gi_stage_get *e = asked_for(k->peer, m);
    if (e == NULL)
        return GIN_EINVAL;
    const struct gi_core_op *op = e->op;
    e->answered = true;
    k->get = e;
    k->device = op->device;
    k->to = op->local + e->offset;
    k->mr = op->region != NULL && !op->device ? op->region->mr[ctx->rail] : NULL;
    return op->done ? GIN_EPEER : GIN_OK; /* it failed: its memory is not to be written */
}

static int fill(struct gi_core_ctx *ctx, struct gi_stage_pull *k, const struct gi_core_msg *m)
{
    const struct gi_core_region *slabs = ctx->core->stage->region;
    int rank = gi_core_rank_of(ctx, k->peer);
    const struct gi_core_key *key =
        &slabs->key[(size_t)rank * ctx->core->config.n_domains + ctx->rail];
    uint64_t have = slabs->part[rank].bytes;
    k->len = m->staged.len;
    if (k->len == 0 || k->len > GI_STAGE_SLAB || k->len > ctx->plan->piece ||
        m->staged.slab > have || k->len > have - m->staged.slab)
        return GIN_ERANGE;
    k->key = key->key;
    k->remote = key->base + m->staged.slab;
    return m->h.flags & GI_CORE_ANSWERS ? fill_answer(ctx, k, m) : fill_put(ctx, k, m);
}

/* The message's slot, unused before. NULL: no memory. From then on the peer is watched: it may have
 * to be alive for what follows. */
static struct gi_stage_pull *open_slot(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                                       const struct gi_core_msg *m)
{
    struct gi_stage_peer *s = gi_stage_peer(p);
    if (s == NULL)
        return NULL;
    struct gi_stage_pull *k = slot_of(p, m);
    if (k->state == GI_STAGE_IDLE) {
        bool stored = k->stored;
        *k = (struct gi_stage_pull){.peer = p, .stored = stored};
        s->busy |= (uint64_t)1 << (m->h.seq % GI_CORE_CREDITS);
        gi_core_dirty(ctx, p);
    }
    return k;
}

void gi_core_stage_begin(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m)
{
    struct gi_stage_pull *k = ctx->core->stage != NULL ? open_slot(ctx, p, m) : NULL;
    if (k == NULL || k->state != GI_STAGE_IDLE)
        return;
    int st = fill(ctx, k, m);
    if (st == GIN_OK)
        gi_stage_pull_begin(ctx, k);
    else
        gi_stage_over(ctx, k, st);
}

/* A piece of a get that must not seem complete. */
static void get_failed(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                       const struct gi_stage_pull *k)
{
    char text[GI_CORE_TEXT];
    if (k->status == GIN_OK || p->status != GIN_OK)
        return;
    snprintf(text, sizeof(text), "what was got from it could not be stored here: %s",
             k->ours ? ctx->core->stage->why : gin_status_name(k->status));
    gi_core_peer_fail(ctx, p, k->status, text);
}

/* A piece of a get is over, well or not. */
static void end_get(struct gi_core_ctx *ctx, struct gi_stage_get *e)
{
    struct gi_core_op *op = e->op;
    struct gi_core_peer *p = op->peer;
    e->op = NULL;
    op->pieces--;
    gi_core_op_check(ctx, op); /* from then on it may be another's */
    gi_core_kick(ctx, p);      /* another piece may be asked for */
}

int gi_core_stage_staged(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m)
{
    gi_core_stage_begin(ctx, p, m);
    if (p->stage == NULL)
        return ctx->core->stage == NULL ? GIN_ENOTSUP : GIN_ENOMEM;
    struct gi_stage_pull *k = slot_of(p, m);
    if (k->state != GI_STAGE_OVER)
        return GIN_EAGAIN;
    if (k->get == NULL && k->ours)
        gi_stage_fail_ctx(ctx, k->status);
    if (k->get == NULL)
        return k->status;
    get_failed(ctx, p, k);
    end_get(ctx, k->get);
    k->get = NULL;
    return GIN_OK;
}

int gi_core_stage_store(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m, void *at)
{
    if (!gi_core_is_kept(p, m))
        return GIN_EAGAIN; /* nothing has begun: its bytes are still needed then */
    struct gi_stage_pull *k = open_slot(ctx, p, m);
    if (k == NULL)
        return GIN_ENOMEM;
    if (k->state == GI_STAGE_IDLE) {
        k->device = true;
        k->to = at;
        k->len = m->h.len;
        k->payload = m->put.data;
        gi_stage_pull_begin(ctx, k);
        if (k->state != GI_STAGE_OVER)
            return GIN_EAGAIN;
    }
    if (k->state != GI_STAGE_OVER)
        return GIN_EAGAIN;
    k->state = GI_STAGE_IDLE;
    k->stored = true;
    if (k->ours)
        gi_stage_fail_ctx(ctx, k->status);
    return k->status;
}

int gi_core_stage_apply(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m, const struct gi_core_update *u, void *at,
                        uint64_t *old)
{
    struct gi_stage_pull *k = open_slot(ctx, p, m);
    if (k == NULL)
        return GIN_ENOMEM;
    if (!k->word) {
        if (((uintptr_t)at & (u->bytes - 1)) != 0)
            return GIN_EINVAL;
        k->word = true;
        k->to = at;
        k->update = *u;
        k->state = GI_STAGE_TAKE;
        gi_core_stage_kick(ctx, p);
        step(ctx, k);
    }
    if (k->state != GI_STAGE_OVER)
        return GIN_EAGAIN;
    *old = k->old;
    if (k->ours)
        gi_stage_fail_ctx(ctx, k->status);
    return k->status;
}

int gi_stage_look(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    const struct gi_stage_pull *k = slot_of(p, m);
    return k->stored || k->word ? 1 : k->state == GI_STAGE_IDLE ? 0 : GIN_EAGAIN;
}

void gi_stage_forget(struct gi_core_peer *p, const struct gi_core_msg *m)
{
    slot_of(p, m)->state = GI_STAGE_IDLE;
    slot_of(p, m)->stored = slot_of(p, m)->word = false;
    p->stage->busy &= ~((uint64_t)1 << (m->h.seq % GI_CORE_CREDITS));
}

/* ---- what is under way ---- */

/* Nobody will handle it: the peer is gone. */
static void abandon(struct gi_core_ctx *ctx, struct gi_stage_peer *s, uint32_t i)
{
    struct gi_stage_pull *k = &s->in[i];
    if (k->state != GI_STAGE_OVER && k->state != GI_STAGE_IDLE)
        return;
    if (k->get != NULL)
        end_get(ctx, k->get);
    *k = (struct gi_stage_pull){.state = GI_STAGE_IDLE};
    s->busy &= ~((uint64_t)1 << i);
}

static int run_gets(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    int n = 0;
    for (uint32_t i = 0; i < GI_STAGE_DEEP; i++) {
        struct gi_stage_get *e = &s->get[i];
        if (e->op == NULL)
            continue;
        if (e->asked && s->peer->gone && !e->answered) {
            end_get(ctx, e);
        } else if (!e->asked) {
            n += step(ctx, &e->pull);
            if (e->pull.state != GI_STAGE_OVER)
                continue;
            get_failed(ctx, s->peer, &e->pull);
            end_get(ctx, e);
        }
    }
    return n;
}

int gi_stage_in_run(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    struct gi_core_peer *p = s->peer;
    int n = 0;
    for (uint64_t left = s->busy; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        n += step(ctx, &s->in[i]);
        if (p->gone)
            abandon(ctx, s, i);
    }
    n += run_gets(ctx, s);
    const struct gi_stage_pull *head = &s->in[p->in.got % GI_CORE_CREDITS];
    if (head->state == GI_STAGE_OVER && !p->gone)
        gi_core_go_on(ctx, p);
    return n;
}

static void close_one(struct gi_core_ctx *ctx, struct gi_stage_pull *k)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    bool moves = k->state == GI_STAGE_COPY || k->state == GI_STAGE_GET || k->state == GI_STAGE_PUT;
    bool mine = k->word && k->state > GI_STAGE_TAKE && k->state < GI_STAGE_OVER;
    if (k->state == GI_STAGE_IDLE)
        return;
    while (moves && mover->done(mover->arg, k->ticket) == 0)
        gi_os_yield();
    if (mine)
        mover->give(mover->arg);
    gi_stage_over(ctx, k, GIN_EPEER);
}

void gi_stage_in_close(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    for (uint32_t i = 0; i < GI_CORE_CREDITS; i++)
        close_one(ctx, &s->in[i]);
    for (uint32_t i = 0; i < GI_STAGE_DEEP; i++)
        close_one(ctx, &s->get[i].pull);
}
