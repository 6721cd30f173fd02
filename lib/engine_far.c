/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernels want of ranks that only the network reaches: from a request to an operation of the
 * network's core, and from its notice to the request's completion. The core is asked in the order
 * of tickets for each peer; what it cannot take now for one peer does not keep the others'.
 *
 * Notices come from whoever polls. They only put the operation on a list that the engine takes
 * whole, so nobody waits for anybody. Operations live until the context is closed: a request may be
 * given up before, its notice then finds nobody.
 */
#include "engine_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include "net_ops.h"
#include "window_impl.h"

#define OPS_EACH   512u  /* operations of a ring that are under way, */
#define OPS_IN_ALL 4096u /* of all rings of a device communicator, */
#define OPS_LEAST  64u   /* and of one that has many beside it */
#define IDLE_TURNS 64u   /* turns without work before the engine settles unasked */

struct gi_far_op {
    struct gi_core_notice notice;
    struct gi_far *far;
    struct gi_far_op *next;   /* arrived, or in the pool */
    struct gi_request *asker; /* NULL: it was given up */
    int status;
    uint64_t old;
};

struct gi_far {
    struct gi_core_ctx *ctx;
    bool owned;
    struct gi_far_op *ops, *pool;
    _Atomic(struct gi_far_op *) arrived;
    uint32_t *waiting; /* by rank: requests that the core cannot take yet */
    uint64_t *passed;  /* by rank: the last pass over these in which the core took none */
    uint32_t n_waiting;
    uint64_t pass;
    uint64_t posted, settled; /* operations: given to the core; of these at their targets */
    uint64_t mark, marked;    /* of a wait for that which nobody asked for; 0: none */
    uint32_t under_way, idle;
};

bool gi_far_is_open(const struct gi_devcomm *d)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    return d->net != NULL && (r->paths == 0 || (r->paths & GIN_PATH_NET)) &&
           r->connection != GIN_CONNECT_NONE;
}

/* ---- owning the context ---- */

static void own(struct gi_far *f)
{
    if (!f->owned)
        gi_core_enter(f->ctx);
    f->owned = true;
}

void gi_far_rest(struct gi_ring *r)
{
    struct gi_far *f = r->far;
    if (f != NULL && f->owned) {
        f->owned = false;
        gi_core_leave(f->ctx);
    }
}

/* ---- operations ---- */

static void arrive(struct gi_core_notice *n, int status)
{
    struct gi_far_op *op = (struct gi_far_op *)(void *)n; /* its first member */
    struct gi_far *f = op->far;
    op->status = status;
    op->next = atomic_load_explicit(&f->arrived, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&f->arrived, &op->next, op, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

/* Of a peer the core knows why. */
static int told(const struct gi_far *f, uint32_t peer, int st)
{
    const char *text = NULL;
    if (st == GIN_OK || st == GIN_EAGAIN)
        return st;
    if (gi_core_peer_status(f->ctx, (int)peer, &text) == st && text != NULL)
        return gi_fail(st, "%s", text);
    return gi_fail(st, "the network refuses it (%s)", gin_status_name(st));
}

/* My memory, as the network wants it. copied: the core may take a copy. */
static int find_mine(const struct gi_job *j, uint32_t name, uint64_t off, bool *copied, void **addr,
                     struct gi_core_region **region)
{
    gin_comm_t *comm = j->e->comm;
    const uint64_t bytes = j->op->size;
    struct gi_spot s;
    int st = gi_find_mine(j, name, off, &s);
    if (st != GIN_OK)
        return st;
    *addr = (void *)(uintptr_t)s.addr;
    if (j->op->flags & GIN_I_DESC_LOCAL) {
        if (off == 0 && bytes != 0)
            return gi_fail(GIN_EINVAL, "%" PRIu64 " bytes at 0", bytes);
        st = gi_operand_is_gpu(comm, s.addr, bytes, &s.gpu);
        if (st != GIN_OK)
            return st;
    }
    return gi_net_mine(comm, s.gpu, *addr, bytes, copied, region);
}

static int put(const struct gi_job *j, const struct gi_request *q, struct gi_far_op *op)
{
    const struct gin_i_op *o = &q->op;
    bool data = q->far == GI_FAR_ALL && o->op != GIN_I_DESC_SIGNAL;
    void *src = (void *)(uintptr_t)&o->immediate;
    struct gi_core_put p = {.window = o->dst_win,
                            .off = o->dst_off,
                            .bytes = data ? o->size : 0,
                            .more = (o->flags & GIN_I_DESC_MORE) != 0,
                            .copy = !data || o->size <= GI_NET_COPIED,
                            .action = gi_engine_action(o),
                            .notice = &op->notice};
    int st = GIN_OK;
    if (data && o->op == GIN_I_DESC_PUT)
        st = find_mine(j, o->src_win, o->src_off, &p.copy, &src, &p.region);
    else if (data && o->size > sizeof(o->immediate))
        st = gi_fail(GIN_ERANGE, "a value of %" PRIu64 " bytes", o->size);
    p.src = src;
    if (st != GIN_OK)
        return st;
    return told(op->far, o->peer, gi_core_put(op->far->ctx, (int)o->peer, &p));
}

static int get(const struct gi_job *j, const struct gi_request *q, struct gi_far_op *op)
{
    const struct gin_i_op *o = &q->op;
    struct gi_core_get g = {
        .window = o->src_win, .off = o->src_off, .bytes = o->size, .notice = &op->notice};
    int st = find_mine(j, o->dst_win, o->dst_off, NULL, &g.dst, &g.region);
    if (st != GIN_OK)
        return st;
    return told(op->far, o->peer, gi_core_get(op->far->ctx, (int)o->peer, &g));
}

static int amo(const struct gi_request *q, struct gi_far_op *op)
{
    const struct gin_i_op *o = &q->op;
    struct gi_core_amo a = {.window = o->dst_win,
                            .off = o->dst_off,
                            .op = (enum gin_i_amo_op)(o->op - GIN_I_DESC_AMO),
                            .bytes = o->flags & GIN_I_DESC_WORD32 ? 4 : 8,
                            .value = o->immediate,
                            .expected = o->value,
                            .notice = &op->notice};
    if (a.op >= GIN_I_AMO_FETCH)
        a.old = &op->old;
    return told(op->far, o->peer, gi_core_amo(op->far->ctx, (int)o->peer, &a));
}

/* GIN_EAGAIN: not now, nothing has happened. */
static int hand_over(const struct gi_job *j, struct gi_request *q)
{
    struct gi_far *f = j->r->far;
    struct gi_far_op *op = f->pool;
    if (op == NULL)
        return GIN_EAGAIN;
    own(f);
    f->pool = op->next; /* the notice may come from within the call */
    op->asker = q;
    q->far_op = op;
    q->state = GI_REQUEST_FAR;
    f->posted++;
    f->under_way++;
    f->idle = 0;
    int st = q->op.op >= GIN_I_DESC_AMO   ? amo(q, op)
             : q->op.op == GIN_I_DESC_GET ? get(j, q, op)
                                          : put(j, q, op);
    if (st == GIN_OK)
        return GIN_OK;
    f->posted--;
    f->under_way--;
    op->next = f->pool;
    f->pool = op;
    q->far_op = NULL;
    return st;
}

int gi_far_post(const struct gi_job *j, struct gi_request *q)
{
    struct gi_far *f = j->r->far;
    int st = f->waiting[q->op.peer] != 0 ? GIN_EAGAIN : hand_over(j, q);
    if (st != GIN_EAGAIN)
        return st;
    q->state = GI_REQUEST_POSTING;
    f->waiting[q->op.peer]++;
    f->n_waiting++;
    return GIN_OK;
}

void gi_far_forget(struct gi_request *q)
{
    if (q->far_op != NULL)
        q->far_op->asker = NULL;
    q->far_op = NULL;
}

/* ---- a turn ---- */

static void no_longer_waits(struct gi_far *f, const struct gi_request *q)
{
    f->waiting[q->op.peer]--;
    f->n_waiting--;
}

/* By ticket; a peer for which one was not taken has to wait with the others. */
static bool try_again(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_far *f = r->far;
    bool any = false;
    f->pass++;
    for (struct gi_request *q = r->first; q != NULL && f->n_waiting != 0; q = q->next) {
        struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
        if (q->state != GI_REQUEST_POSTING)
            continue;
        if (gi_request_is_late(r, q)) {
            no_longer_waits(f, q);
            q->state = GI_REQUEST_FAILED;
            continue;
        }
        if (f->passed[q->op.peer] == f->pass)
            continue;
        int st = hand_over(&j, q);
        if (st == GIN_EAGAIN) {
            q->state = GI_REQUEST_POSTING;
            f->passed[q->op.peer] = f->pass;
            continue;
        }
        no_longer_waits(f, q);
        any = true;
        if (st != GIN_OK)
            gi_request_dead(&j, q, st);
    }
    return any;
}

static bool take_arrived(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_far *f = r->far;
    if (atomic_load_explicit(&f->arrived, memory_order_relaxed) == NULL)
        return false;
    struct gi_far_op *op = atomic_exchange_explicit(&f->arrived, NULL, memory_order_acquire);
    while (op != NULL) {
        struct gi_far_op *next = op->next;
        struct gi_request *q = op->asker;
        const uint64_t old = op->old;
        const int st = op->status;
        f->under_way--;
        op->next = f->pool;
        f->pool = op;
        op = next;
        if (q == NULL)
            continue;
        struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
        q->far_op = NULL;
        if (st != GIN_OK)
            gi_request_dead(&j, q, told(f, q->op.peer, st));
        else if (gi_request_is_late(r, q))
            q->state = GI_REQUEST_FAILED;
        else
            gi_engine_done(&j, q, old);
    }
    return true;
}

/* ---- at the targets ---- */

bool gi_far_is_settled(const struct gi_ring *r)
{
    return r->far == NULL || r->far->posted == r->far->settled;
}

bool gi_far_settle(const struct gi_job *j, struct gi_request *q)
{
    struct gi_far *f = j->r->far;
    const bool all = q->op.op == GIN_I_DESC_FENCE || q->op.op == GIN_I_DESC_QUIET;
    const bool strong = (q->op.flags & GIN_I_DESC_STRONG) && q->far == GI_FAR_NOTHING;
    if (gi_far_is_settled(j->r) || q->settled || (!all && !strong))
        return false;
    own(f);
    if (!all && gi_core_is_clean(f->ctx, (int)q->op.peer))
        return false;
    q->mark = gi_core_mark(f->ctx);
    q->posted = f->posted;
    q->state = GI_REQUEST_SETTLING;
    return true;
}

static void has_settled(struct gi_far *f, uint64_t posted)
{
    if (posted > f->settled)
        f->settled = posted;
}

/* The one at the head, if it waits for that. */
static bool settle_first(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_request *q = r->first;
    if (q == NULL || q->state != GI_REQUEST_SETTLING)
        return false;
    struct gi_far *f = r->far;
    struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
    if (gi_request_is_late(r, q)) {
        q->state = GI_REQUEST_FAILED;
        return true;
    }
    own(f);
    int st = gi_core_settled(f->ctx, GI_CORE_ALL, q->mark);
    if (st == 0)
        return false;
    if (st == 1) {
        has_settled(f, q->posted);
        q->settled = true;
        st = gi_engine_act(&j, q);
    } else {
        const char *text = NULL;
        gi_core_ctx_status(f->ctx, NULL, &text);
        gi_fail(st, "%s", text != NULL ? text : gin_status_name(st));
    }
    if (st != GIN_OK)
        gi_request_dead(&j, q, st);
    return true;
}

/* Kernels that only look whether all is settled ask for nothing. */
static void settle_unasked(struct gi_ring *r)
{
    struct gi_far *f = r->far;
    if (r->dead || r->first != NULL || f->posted == f->settled) {
        f->mark = 0;
        return;
    }
    if (f->idle++ < IDLE_TURNS)
        return;
    own(f);
    if (f->mark == 0) {
        f->mark = gi_core_mark(f->ctx);
        f->marked = f->posted;
    }
    if (gi_core_settled(f->ctx, GI_CORE_ALL, f->mark) == 1) {
        has_settled(f, f->marked);
        f->mark = 0;
    }
}

bool gi_far_turn(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_far *f = r->far;
    bool any = false;
    if (f->under_way != 0 && !f->owned && gi_core_try(f->ctx))
        f->owned = true; /* else somebody else drives it */
    if (f->under_way != 0 && f->owned)
        any = gi_core_progress(f->ctx) > 0;
    any |= take_arrived(e, d, r);
    if (f->n_waiting != 0)
        any |= try_again(e, d, r);
    any |= settle_first(e, d, r);
    settle_unasked(r);
    return any;
}

/* ---- coming and going ---- */

int gi_far_open(const struct gi_devcomm *d, struct gi_ring *r, uint32_t rings)
{
    uint32_t n = OPS_IN_ALL / rings, ranks = (uint32_t)d->comm->size;
    struct gi_far *f = calloc(1, sizeof(*f));
    n = n < OPS_LEAST ? OPS_LEAST : n > OPS_EACH ? OPS_EACH : n;
    r->far = f;
    if (f == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory");
    f->ctx = d->net[r->context];
    f->ops = calloc(n, sizeof(*f->ops));
    f->waiting = calloc(ranks, sizeof(*f->waiting));
    f->passed = calloc(ranks, sizeof(*f->passed));
    if (f->ops == NULL || f->waiting == NULL || f->passed == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %" PRIu32 " operations", n);
    for (uint32_t i = 0; i < n; i++) {
        f->ops[i] = (struct gi_far_op){.notice.fn = arrive, .far = f, .next = f->pool};
        f->pool = &f->ops[i];
    }
    return GIN_OK;
}

void gi_far_close(struct gi_ring *r)
{
    struct gi_far *f = r->far;
    if (f == NULL)
        return;
    free(f->passed);
    free(f->waiting);
    free(f->ops);
    free(f);
    r->far = NULL;
}
