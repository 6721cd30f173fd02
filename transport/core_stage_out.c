/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What leaves by slabs: puts, whose source or place at the target is staged, and answers to peers
 * that ask for staged memory of mine. While one chunk is with the network the mover copies the
 * next. Chunks are told of in the order in which they were begun.
 */
#include "transport/core_epoch.h"
#include "transport/core_stage.h"

enum gi_core_way gi_core_stage_way(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                                   const struct gi_core_put *put)
{
    const struct gi_core_plan *plan = ctx->plan;
    bool small = put->bytes <= plan->payload;
    bool strong = put->action.strong && !(ctx->mutate & GI_CORE_MUTATE_STRONG);
    if (put->action.kind == GI_CORE_NONE)
        return small ? GI_CORE_WAY_WHOLE : GI_CORE_WAY_NONE;
    bool loose = !plan->ordered && !plan->by_msg && p->first != NULL;
    if (strong && (loose || p->apart != 0))
        return GI_CORE_WAY_STRONG;
    return small ? GI_CORE_WAY_WHOLE : GI_CORE_WAY_MSG;
}

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static uint32_t most_of(const struct gi_core_ctx *ctx)
{
    return least(GI_STAGE_SLAB, ctx->plan->piece);
}

/* ---- to the slab ---- */

/* GIN_EAGAIN: no room, or the mover has none. */
static int begin(struct gi_core_ctx *ctx, struct gi_stage_peer *s, const struct gi_stage_out *what,
                 const void *from, bool device)
{
    struct gi_core_stage *g = ctx->core->stage;
    struct gi_stage_out *o = &s->out[s->begun % GI_STAGE_DEEP];
    if (s->begun - s->acked == GI_STAGE_DEEP)
        return GIN_EAGAIN;
    *o = *what;
    o->slab = gi_stage_take(g, o->room);
    if (o->slab == NULL)
        return GIN_EAGAIN;
    int st = GIN_OK;
    if (device)
        st = g->mover.copy(g->mover.arg, (uint64_t)(uintptr_t)o->slab, (uint64_t)(uintptr_t)from,
                           o->len, &o->ticket);
    else
        memcpy(o->slab, from, o->len);
    if (st != GIN_OK) {
        gi_stage_give(g, o->room, o->slab);
        return st;
    }
    o->state = device ? GI_STAGE_COPY : GI_STAGE_OVER;
    o->counted = device && o->op != NULL;
    if (o->counted)
        o->op->pieces++;
    s->begun++;
    gi_core_stage_kick(ctx, s->peer);
    return GIN_OK;
}

static void give(struct gi_core_ctx *ctx, struct gi_stage_out *o)
{
    if (o->slab != NULL)
        gi_stage_give(ctx->core->stage, o->room, o->slab);
    o->slab = NULL;
}

/* A copy that failed: the peer will miss what was put, or what it asked for. */
static void lost(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_stage_out *o,
                 int status)
{
    gi_stage_failed(ctx->core->stage);
    gi_core_nack(ctx, p, status, GI_CORE_NACK_COPY, o->window, o->off);
    if (!o->answers)
        gi_core_peer_fail(ctx, p, status, ctx->core->stage->why);
}

/* ---- from there ---- */

static int tell_put(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_stage_out *o)
{
    const struct gi_core_op *op = o->op;
    struct gi_core_msg m;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_PUT);
    m.h.len = (uint8_t)o->len;
    m.h.action = op->action.kind;
    m.put.window = o->window;
    m.put.off = o->off;
    m.put.id = op->action.id;
    m.put.word_off = op->action.off;
    m.put.value = op->action.value;
    memcpy(m.put.data, o->slab, o->len);
    int st = op->action.strong ? gi_core_epoch_send(ctx, p, &m, GI_CORE_BYTES_PUT + o->len)
                               : gi_core_msg_send(ctx, p, &m, GI_CORE_BYTES_PUT + o->len);
    if (st != GIN_OK)
        return st;
    gi_core_note_slow(p, op->slow);
    give(ctx, o);
    return GIN_OK;
}

static int tell(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_stage_out *o)
{
    const struct gi_core_stage *g = ctx->core->stage;
    struct gi_core_msg m;
    /* What is bundled is older, and must not come behind what the peer has to wait for. */
    if (p->bundle.bytes != 0 && !gi_core_bundle_send(ctx, p))
        return GIN_EAGAIN;
    if (o->room == GI_STAGE_OUT_CELL)
        return tell_put(ctx, p, o);
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_STAGED);
    m.h.flags = o->answers ? GI_CORE_ANSWERS : 0;
    m.staged.window = o->window;
    m.staged.fetch = o->fetch;
    m.staged.off = o->off;
    m.staged.slab = (uint32_t)(o->slab - g->memory);
    m.staged.len = o->len;
    m.staged.turn = o->turn;
    m.staged.unused = 0;
    int st = gi_core_msg_send(ctx, p, &m, GI_CORE_BYTES_STAGED);
    gi_core_note_slow(p, st == GIN_OK);
    return st;
}

/* The chunk is in its slab: its source may be used again. */
static void copied(struct gi_core_ctx *ctx, struct gi_stage_out *o)
{
    struct gi_core_op *op = o->op;
    o->state = GI_STAGE_OVER;
    if (!o->counted)
        return;
    o->counted = false;
    op->pieces--;
    if (op->done) { /* it failed meanwhile, and is not mine any more */
        o->op = NULL;
        gi_core_op_check(ctx, op);
    }
}

/* 1: it is; 0: not yet; or why it never will be. */
static int is_copied(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_stage_out *o)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    int st = o->state == GI_STAGE_COPY ? mover->done(mover->arg, o->ticket) : 1;
    if (st != 0 && o->state == GI_STAGE_COPY)
        copied(ctx, o);
    if (st < 0)
        lost(ctx, p, o, st);
    return st;
}

/* One that nothing is told of, for the peer has failed here; who asked for it waits no longer. */
static void drop(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_stage_out *o)
{
    if (o->answers && p->status != GIN_OK)
        gi_core_nack(ctx, p, p->status, GI_CORE_MSG_FETCH, o->window, o->off);
    give(ctx, o);
    o->msg = 0;
}

static int send_copied(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    struct gi_core_peer *p = s->peer;
    int n = 0;
    for (; s->sent != s->begun; s->sent++, n++) { /* in their order */
        struct gi_stage_out *o = &s->out[s->sent % GI_STAGE_DEEP];
        int there = is_copied(ctx, p, o);
        if (there == 0)
            break;
        if (there < 0 || p->status != GIN_OK) {
            drop(ctx, p, o);
            continue;
        }
        int st = tell(ctx, p, o);
        if (st != GIN_OK && p->status == GIN_OK)
            break;
        if (st != GIN_OK) {
            drop(ctx, p, o);
            continue;
        }
        o->msg = o->slab != NULL ? p->out.sent : 0; /* a cell is free again */
        if (o->op == NULL)
            continue;
        o->op->offset += o->len;
        gi_core_loosen(ctx, p, o->op->seq);
        o->op = NULL;
        gi_core_kick(ctx, p);
    }
    return n;
}

/* Whoever is only out of reach from here may still read what it was told of. */
static void free_acked(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    const struct gi_core_peer *p = s->peer;
    bool dead = p->gone && gi_core_peer_is_dead(ctx->core, gi_core_rank_of(ctx, p));
    for (; s->acked != s->sent; s->acked++) {
        struct gi_stage_out *o = &s->out[s->acked % GI_STAGE_DEEP];
        if (o->msg > p->out.acked && !dead)
            break;
        give(ctx, o);
    }
}

void gi_core_stage_acked(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    free_acked(ctx, p->stage);
}

/* ---- put ---- */

int gi_core_stage_put(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_core_peer *p = op->peer;
    struct gi_stage_peer *s = gi_stage_peer(p);
    bool cell = op->way == GI_CORE_WAY_WHOLE;
    const struct gi_stage_out failed = {.window = op->window, .off = op->off};
    int st = GIN_OK;
    if (s == NULL) {
        gi_core_peer_fail(ctx, p, GIN_ENOMEM, "no memory to stage its GPU memory");
        return GIN_ENOMEM;
    }
    while (op->begun < op->bytes && st == GIN_OK) {
        struct gi_stage_out o = {.op = op,
                                 .room = cell ? GI_STAGE_OUT_CELL : GI_STAGE_OUT,
                                 .window = op->window,
                                 .off = op->off + op->begun,
                                 .len = least(op->bytes - op->begun, most_of(ctx))};
        st = begin(ctx, s, &o, op->local + op->begun, op->device);
        if (st == GIN_OK)
            op->begun += o.len;
    }
    if (st != GIN_OK && st != GIN_EAGAIN) {
        lost(ctx, p, &failed, st);
        return st;
    }
    send_copied(ctx, s);
    free_acked(ctx, s);
    return p->status != GIN_OK ? p->status : op->offset == op->bytes ? GIN_OK : GIN_EAGAIN;
}

/* ---- get: what is asked for ---- */

static struct gi_stage_get *free_get(struct gi_stage_peer *s)
{
    for (uint32_t i = 0; i < GI_STAGE_DEEP; i++)
        if (s->get[i].op == NULL)
            return &s->get[i];
    return NULL;
}

static int ask(struct gi_core_ctx *ctx, struct gi_stage_peer *s, struct gi_stage_get *e,
               const struct gi_core_op *op)
{
    struct gi_core_msg m;
    gi_core_msg_init(ctx, &m, GI_CORE_MSG_FETCH);
    m.fetch.window = op->window;
    m.fetch.fetch = (uint32_t)(e - s->get);
    m.fetch.off = op->off + op->offset;
    m.fetch.len = e->len;
    m.fetch.turn = e->turn;
    return gi_core_msg_send(ctx, s->peer, &m, GI_CORE_BYTES_FETCH);
}

static int get_piece(struct gi_core_ctx *ctx, struct gi_stage_peer *s, struct gi_core_op *op)
{
    struct gi_stage_get *e = free_get(s);
    struct gi_core_place at;
    uint64_t left = op->bytes - op->offset;
    int st = gi_core_locate(ctx->core, ctx->rail, gi_core_rank_of(ctx, s->peer), op->window,
                            op->off + op->offset, 1, &at);
    if (st != GIN_OK) {
        gi_core_peer_fail(ctx, s->peer, st, "a window was deregistered under an operation");
        return st;
    }
    if (e == NULL)
        return GIN_EAGAIN;
    *e = (struct gi_stage_get){.turn = e->turn + 1,
                               .offset = op->offset,
                               .len = least(left < at.run ? left : at.run, most_of(ctx)),
                               .asked = at.staged};
    if (e->asked) {
        st = ask(ctx, s, e, op);
        if (st != GIN_OK)
            return st;
    }
    e->op = op;
    op->pieces++;
    op->offset += e->len;
    if (e->asked)
        return GIN_OK;
    e->pull = (struct gi_stage_pull){
        .peer = s->peer,
        .get = e,
        .key = at.key,
        .remote = at.remote,
        .len = e->len,
        .device = op->device,
        .mr = op->region != NULL && !op->device ? op->region->mr[ctx->rail] : NULL,
        .to = op->local + e->offset};
    gi_stage_pull_begin(ctx, &e->pull);
    return GIN_OK;
}

int gi_core_stage_get(struct gi_core_ctx *ctx, struct gi_core_op *op)
{
    struct gi_stage_peer *s = gi_stage_peer(op->peer);
    int st = GIN_OK;
    if (s == NULL) {
        gi_core_peer_fail(ctx, op->peer, GIN_ENOMEM, "no memory to stage its GPU memory");
        return GIN_ENOMEM;
    }
    while (op->offset < op->bytes && st == GIN_OK)
        st = get_piece(ctx, s, op);
    return st;
}

/* ---- ... and is answered ---- */

int gi_core_stage_asked(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    struct gi_stage_peer *s = ctx->core->stage != NULL ? gi_stage_peer(p) : NULL;
    void *at;
    if (s == NULL || s->asks == GI_STAGE_DEEP || m->fetch.len == 0 ||
        m->fetch.len > most_of(ctx)) /* it asks for more than it may */
        return GIN_EINVAL;
    int st = h->resolve(h->arg, m->fetch.window, m->fetch.off, m->fetch.len, false, &at);
    if (st != GIN_OK && (st != GIN_ENOTSUP || ctx->core->stage->mover.copy == NULL))
        return st;
    memcpy(&s->ask[(s->asks_head + s->asks++) % GI_STAGE_DEEP], m, GI_CORE_BYTES_FETCH);
    gi_core_stage_kick(ctx, p);
    return GIN_OK;
}

static int answer(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    const struct gi_core_msg *m = &s->ask[s->asks_head];
    void *at;
    int st = s->peer->status;
    bool well = st == GIN_OK; /* else nothing is sent to it any more */
    if (well)
        st = h->resolve(h->arg, m->fetch.window, m->fetch.off, m->fetch.len, false, &at);
    bool device = well && st == GIN_ENOTSUP;
    const struct gi_stage_out o = {.room = GI_STAGE_OUT,
                                   .answers = true,
                                   .window = m->fetch.window,
                                   .off = m->fetch.off,
                                   .len = m->fetch.len,
                                   .fetch = m->fetch.fetch,
                                   .turn = m->fetch.turn};
    if (st == GIN_OK || device)
        st = begin(ctx, s, &o, at, device);
    if (st == GIN_EAGAIN)
        return st;
    s->asks_head = (s->asks_head + 1) % GI_STAGE_DEEP;
    s->asks--;
    if (st != GIN_OK && device)
        lost(ctx, s->peer, &o, st);
    else if (st != GIN_OK)
        gi_core_refuse(ctx, s->peer, st, m, m->fetch.window, m->fetch.off);
    return GIN_OK;
}

int gi_stage_out_run(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    int n = 0;
    while (s->asks != 0 && answer(ctx, s) == GIN_OK)
        n++;
    n += send_copied(ctx, s);
    free_acked(ctx, s);
    return n;
}

void gi_stage_out_close(struct gi_core_ctx *ctx, struct gi_stage_peer *s)
{
    const struct gi_core_mover *mover = &ctx->core->stage->mover;
    for (; s->acked != s->begun; s->acked++) {
        struct gi_stage_out *o = &s->out[s->acked % GI_STAGE_DEEP];
        while (o->slab != NULL && o->state == GI_STAGE_COPY &&
               mover->done(mover->arg, o->ticket) == 0)
            gi_os_yield();
        give(ctx, o);
    }
}
