/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting to the network's core. A context is owned only for the time of a call into the core; who
 * waits for room lets go of it between two tries, so that other threads' operations get through.
 */
#include "engine_net.h"
#include "net_answer.h"
#include "net_int.h"
#include "net_lend.h"
#include "net_wait.h"

/* ---- posting ---- */

typedef int (*post_fn)(struct gi_core_ctx *ctx, int world, void *op);

static int post_put(struct gi_core_ctx *ctx, int world, void *op)
{
    return gi_core_put(ctx, world, op);
}

static int post_get(struct gi_core_ctx *ctx, int world, void *op)
{
    return gi_core_get(ctx, world, op);
}

static int post_amo(struct gi_core_ctx *ctx, int world, void *op)
{
    return gi_core_amo(ctx, world, op);
}

static int post_fence(struct gi_core_ctx *ctx, int world, void *op)
{
    (void)op;
    return gi_core_fence(ctx, world);
}

/* x: the ring that it passes by, or NULL. */
static int post_once(struct gi_core_ctx *ctx, struct gi_net_ring *x, int world, post_fn post,
                     void *op)
{
    gi_core_enter(ctx);
    int st = post(ctx, world, op);
    if (st == GIN_EAGAIN && gi_core_progress(ctx) > 0)
        st = post(ctx, world, op);
    if (x != NULL)
        x->peers[world].beside = gi_core_mark_peer(ctx, world);
    gi_core_leave(ctx);
    return st;
}

static int post_to(const gin_t *g, struct gi_core_ctx *ctx, int world, post_fn fn, void *op,
                   const char *call)
{
    gin_comm_t *comm = gi_comm_of(g);
    struct gi_net_ring *x = gi_net_ring_of(g);
    struct gi_net_wait w;
    uint64_t ns = gi_devcomm_of(g)->wait_timeout_ns;
    int st = post_once(ctx, x, world, fn, op), over = GIN_OK;
    if (GIN_LIKELY(st == GIN_OK))
        return GIN_OK;
    if (st == GIN_EAGAIN) {
        gi_net_wait_for(&w, comm, ns, "room for an operation of context # to rank #", g->ctx->index,
                        (uint64_t)world);
        while (st == GIN_EAGAIN && (over = gi_net_wait_step(&w)) == GIN_OK)
            st = post_once(ctx, x, world, fn, op);
        if (over == GIN_ETIMEDOUT) /* this thread may have stood still for long */
            st = post_once(ctx, x, world, fn, op);
        gi_net_wait_end(&w);
    }
    if (st == GIN_EAGAIN && over == GIN_ETIMEDOUT)
        return gi_fail(over, "%s: no room for an operation to rank %d after %.3f s", call, world,
                       (double)ns * 1e-9);
    if (st == GIN_EAGAIN)
        return gi_fail_context("%s", call);
    return st == GIN_OK ? st : gi_net_failure(g, ctx, world, st, call);
}

/* Past the engine, behind what it has. */
static int post(const gin_t *g, int world, post_fn fn, void *op, const char *call)
{
    bool rings = gi_devcomm_of(g)->rings != NULL;
    int st = GIN_UNLIKELY(rings) ? gi_net_drain(g, world, call) : GIN_OK;
    return st == GIN_OK ? post_to(g, gi_net_ctx(g), world, fn, op, call) : st;
}

int gi_net_post_fence(const gin_t *g, struct gi_core_ctx *ctx, int world, const char *call)
{
    return post_to(g, ctx, world, post_fence, NULL, call);
}

/* ---- the operations ---- */

/*
 * To a load/store peer the next operation may take loads and stores, which overtake this one.
 * Strong signals and fences must not: from now on they ask (gi_net_settle_near()).
 */
static int note_near(const gin_t *g, int world, int st)
{
    gi_net_posts++;
    if (GIN_UNLIKELY(g->lsa_of[world] >= 0) && GIN_LOAD_RELAXED(&g->ctx->near_net) == 0) {
        GIN_STORE_RELAXED(&g->ctx->near_net, 1);
        GIN_STORE_RELAXED(&g->dc->all.near_net, 1);
    }
    return st;
}

/* May my memory be reached by the network? On success end() has to follow. */
static int begin(const gin_t *g, struct gi_net_mine *m, const char *call)
{
    return gi_net_lend(gi_devcomm_of(g), m) == GIN_OK ? GIN_OK : gi_fail_context("%s", call);
}

static int end(const gin_t *g, int world, const struct gi_net_mine *m, int st)
{
    if (st != GIN_OK)
        gi_net_loan_undo(m->loan);
    return note_near(g, world, st);
}

int gi_net_put(const gin_t *g, int world, struct gi_core_put *p, const char *call)
{
    struct gi_net_ring *x = gi_net_ring_of(g);
    bool gpu = p->region != NULL,
         value = p->bytes <= GI_NET_COPIED && !gpu; /* copied in any case */
    struct gi_net_mine m = {.addr = (void *)(uintptr_t)p->src,
                            .bytes = value || gpu ? 0 : p->bytes,
                            .most_copied = GI_CORE_COPY};
    int st = begin(g, &m, call);
    if (st != GIN_OK)
        return st;
    p->copy = value || m.copy;
    p->region = gpu ? p->region : m.region;
    p->notice = gi_net_loan_notice(m.loan);
    st = x != NULL && m.loan == NULL && !gpu ? gi_net_ring_put(x, world, p, call)
                                             : post(g, world, post_put, p, call);
    return end(g, world, &m, st);
}

int gi_net_get(const gin_t *g, int world, struct gi_core_get *p, const char *call)
{
    struct gi_net_ring *x = gi_net_ring_of(g);
    bool gpu = p->region != NULL;
    struct gi_net_mine m = {.addr = p->dst, .bytes = gpu ? 0 : p->bytes};
    int st = begin(g, &m, call);
    if (st != GIN_OK)
        return st;
    p->region = gpu ? p->region : m.region;
    p->notice = gi_net_loan_notice(m.loan);
    st = x != NULL && m.loan == NULL && !gpu ? gi_net_ring_get(x, world, p, call)
                                             : post(g, world, post_get, p, call);
    return end(g, world, &m, st);
}

int gi_net_amo(const gin_t *g, int world, struct gi_core_amo *a, const char *call)
{
    struct gi_net_answer *mine = NULL;
    uint64_t *old = a->old;
    int st = gi_net_allowed(gi_devcomm_of(g), world, call);
    if (st != GIN_OK)
        return st;
    if (old != NULL) {
        mine = gi_net_answer_take();
        if (mine == NULL)
            return gi_fail(GIN_ENOMEM, "%s: no memory for an answer", call);
        a->old = &mine->old;
        a->notice = &mine->notice;
    }
    struct gi_net_ring *x = gi_net_ring_of(g);
    st = x != NULL ? gi_net_ring_amo(x, world, a, call) : post(g, world, post_amo, a, call);
    if (st == GIN_OK && mine != NULL)
        st = gi_net_answer_await(g, world, mine, call);
    if (st == GIN_OK && mine != NULL)
        *old = mine->old;
    return note_near(g, world, st);
}

int gi_net_tick(struct gi_devcomm *d, int world, uint64_t heap_off)
{
    struct gi_core_ctx *ctx = d->net[d->reqs.contexts];
    struct gi_core_put p = {
        .action = {.kind = GI_CORE_WORD_ADD,
                   .id = gin_i_desc_window(gin_heap_window(d->comm, GIN_KIND_HOST)),
                   .off = heap_off,
                   .value = 1}};
    gi_core_enter(ctx);
    int st = gi_core_put(ctx, world, &p);
    gi_core_leave(ctx);
    return st == GIN_OK || st == GIN_EAGAIN ? st
                                            : gi_net_failure(NULL, ctx, world, st, "gin_barrier");
}
