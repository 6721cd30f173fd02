/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer: from a descriptor to an operation of the network's core. Nothing that a descriptor
 * names is believed: windows, generations, bounds and ids are checked here, and a bad one kills its
 * context. What the network cannot take now stays at the head; the core keeps the peers' queues
 * apart.
 */
#include "engine_net.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "engine_int.h"
#include "net_up.h"

#define TAKE_AT_ONCE 64
#define COPIED       16u /* most bytes that the core copies */
#define ACTIONS      (GIN_I_DESC_SLOT | GIN_I_DESC_ADD_AT | GIN_I_DESC_SET_AT)

/* ---- names ---- */

static int check_place(const struct gi_net_ring *x, uint32_t name, uint64_t off, uint64_t bytes,
                       bool update)
{
    const struct gin_i_window *w = gi_engine_window(x->comm, name);
    bool other = x->op.peer != (uint32_t)x->comm->rank;
    return w == NULL ? GIN_ESTATE : gi_engine_inside(x->comm, w, off, bytes, update && other);
}

/* My memory: an address, or a place in a window. */
static int find_mine(const struct gi_net_ring *x, uint32_t name, uint64_t off, bool *copied,
                     void **addr, struct gi_core_region **region)
{
    const struct gin_i_op *o = &x->op;
    *addr = (void *)(uintptr_t)off;
    if (!(o->flags & GIN_I_DESC_LOCAL)) {
        const struct gin_i_window *w = gi_engine_window(x->comm, name);
        int st = w == NULL ? GIN_ESTATE : gi_engine_inside(x->comm, w, off, o->size, false);
        if (st != GIN_OK)
            return st;
        if (w->kind == GIN_KIND_CUDA)
            return gi_fail(GIN_ENOTSUP, "the network does not reach GPU memory yet");
        *addr = (void *)(uintptr_t)(w->local + off);
    }
    *region = NULL;
    if (!x->comm->net->needs_region || o->size == 0 || (copied != NULL && *copied))
        return GIN_OK;
    *region = gi_net_region_of(x->comm, *addr, o->size);
    if (*region == NULL && copied != NULL)
        *copied = o->size <= GI_CORE_COPY;
    return *region != NULL || (copied != NULL && *copied)
               ? GIN_OK
               : gi_fail(GIN_EINVAL, "%" PRIu64 " bytes at %p are not registered", o->size, *addr);
}

static int find_action(const struct gi_net_ring *x, struct gi_core_action *a)
{
    const struct gin_i_op *o = &x->op;
    *a = (struct gi_core_action){.strong = (o->flags & GIN_I_DESC_STRONG) != 0, .value = o->value};
    if (!(o->flags & ACTIONS))
        return GIN_OK;
    if (o->flags & GIN_I_DESC_SLOT) {
        a->kind = GI_CORE_SLOT_ADD;
        a->id = (uint32_t)o->sig_off;
        return o->sig_off < x->ring.n_signals
                   ? GIN_OK
                   : gi_fail(GIN_ERANGE, "signal %" PRIu64 " is out of range", o->sig_off);
    }
    a->kind = o->flags & GIN_I_DESC_SET_AT ? GI_CORE_WORD_SET : GI_CORE_WORD_ADD;
    a->id = o->sig_win;
    a->off = o->sig_off;
    return check_place(x, o->sig_win, o->sig_off, 8, true);
}

static uint64_t *counter_of(const struct gi_net_ring *x)
{
    return x->op.flags & GIN_I_DESC_COUNTER
               ? &x->d->dc->ctx[x->ring.context].counters[x->op.counter].cell
               : NULL;
}

/* ---- operations ---- */

static int put(struct gi_net_ring *x, bool more)
{
    const struct gin_i_op *o = &x->op;
    void *src = (void *)(uintptr_t)&o->immediate;
    struct gi_core_put p = {.window = o->dst_win,
                            .off = o->dst_off,
                            .bytes = o->size,
                            .more = more,
                            .copy = o->size <= COPIED,
                            .counter = counter_of(x)};
    int st = find_action(x, &p.action);
    if (st == GIN_OK && o->size != 0)
        st = check_place(x, o->dst_win, o->dst_off, o->size, true);
    if (st == GIN_OK && o->op == GIN_I_DESC_PUT) {
        st = find_mine(x, o->src_win, o->src_off, &p.copy, &src, &p.region);
    } else if (st == GIN_OK && o->size > sizeof(o->immediate)) {
        st = gi_fail(GIN_ERANGE, "a value of %" PRIu64 " bytes", o->size);
    }
    p.src = src;
    return st == GIN_OK ? gi_core_put(x->ctx, (int)o->peer, &p) : st;
}

static int get(struct gi_net_ring *x)
{
    const struct gin_i_op *o = &x->op;
    struct gi_core_get p = {
        .window = o->src_win, .off = o->src_off, .bytes = o->size, .counter = counter_of(x)};
    int st = check_place(x, o->src_win, o->src_off, o->size, false);
    if (st == GIN_OK)
        st = find_mine(x, o->dst_win, o->dst_off, NULL, &p.dst, &p.region);
    return st == GIN_OK ? gi_core_get(x->ctx, (int)o->peer, &p) : st;
}

/* Threads of the program leave the addresses of old value and notice, 0: not wanted. */
static int amo(struct gi_net_ring *x)
{
    const struct gin_i_op *o = &x->op;
    struct gi_core_amo a = {.window = o->dst_win,
                            .off = o->dst_off,
                            .op = (enum gin_i_amo_op)(o->op - GIN_I_DESC_AMO),
                            .bytes = o->flags & GIN_I_DESC_WORD32 ? 4 : 8,
                            .value = o->immediate,
                            .expected = o->value,
                            .old = (uint64_t *)(uintptr_t)o->size,
                            .notice = (struct gi_core_notice *)(uintptr_t)o->sig_off};
    if (a.op > GIN_I_AMO_CAS)
        return gi_fail(GIN_EINVAL, "atomic %u is none", (unsigned)a.op);
    int st = check_place(x, o->dst_win, o->dst_off, a.bytes, a.op != GIN_I_AMO_FETCH);
    return st == GIN_OK ? gi_core_amo(x->ctx, (int)o->peer, &a) : st;
}

static int carry_out(struct gi_net_ring *x, bool more)
{
    const struct gin_i_op *o = &x->op;
    if (o->op == GIN_I_DESC_NOP)
        return GIN_OK;
    if (o->op == GIN_I_DESC_FENCE && o->peer == GIN_I_DESC_ALL)
        return gi_core_fence(x->ctx, GI_CORE_ALL);
    if (o->peer >= (uint32_t)x->comm->size ||
        ((o->flags & GIN_I_DESC_COUNTER) && o->counter >= x->ring.n_counters))
        return gi_fail(GIN_ERANGE, "rank %" PRIu32 " or counter %" PRIu32 " is out of range",
                       o->peer, o->counter);
    if (o->op >= GIN_I_DESC_AMO)
        return amo(x);
    switch (o->op) {
    case GIN_I_DESC_PUT:
    case GIN_I_DESC_PUT_VALUE:
    case GIN_I_DESC_SIGNAL: return put(x, more);
    case GIN_I_DESC_GET: return get(x);
    case GIN_I_DESC_FENCE: return gi_core_fence(x->ctx, (int)o->peer);
    default: return gi_fail(GIN_EINVAL, "operation %u is unknown", o->op);
    }
}

/* ---- a turn ---- */

/* The core keeps the status of a peer that is lost, and goes on with the others. */
static bool is_fatal(int status)
{
    return status != GIN_OK && status != GIN_EPEER && status != GIN_ENET;
}

static void die(struct gi_net_ring *x, int status)
{
    struct gi_ring *r = &x->ring;
    snprintf(x->why, sizeof(x->why), "operation %u to rank %" PRIu32 ": %.110s", x->op.op,
             x->op.peer, gin_last_error());
    gi_warn("engine", "context %" PRIu32 " is dead: %s", r->context, x->why);
    gi_ring_kill(r, r->taken - 1, status, x->comm->rank);
}

/* Nobody will hear of an atomic that is never posted, but from here. */
static void refuse(struct gi_net_ring *x, int status)
{
    struct gi_core_notice *n = (struct gi_core_notice *)(uintptr_t)x->op.sig_off;
    if (x->op.op >= GIN_I_DESC_AMO && n != NULL)
        n->fn(n, status);
}

/* One mark for what was taken together; when there are too many, the last one serves for more. */
static void note_batch(struct gi_net_ring *x)
{
    if (x->n == GI_NET_BATCHES)
        x->n--;
    struct gi_net_batch *b = &x->batch[(x->first + x->n++) % GI_NET_BATCHES];
    *b = (struct gi_net_batch){x->issued, gi_core_mark(x->ctx)};
}

static void tell(struct gi_net_ring *x)
{
    struct gin_i_ring_host *h = x->ring.host;
    uint64_t done = x->ring.done;
    for (; x->n != 0; x->n--, x->first = (x->first + 1) % GI_NET_BATCHES) {
        if (gi_core_flushed(x->ctx, x->batch[x->first].mark) == 0)
            break;
        done = x->batch[x->first].ticket;
    }
    if (h->consumed != x->issued)
        GIN_STORE_RELEASE(&h->consumed, x->issued);
    if (done != x->ring.done)
        GIN_STORE_RELEASE(&h->done, done);
    x->ring.done = done;
}

/* What waits on the context for what the ring still holds must not wait for ever. */
static void bury(struct gi_net_ring *x)
{
    int st = (int)(uint32_t)GIN_LOAD_ACQUIRE(&x->ring.host->error);
    x->buried = true;
    if (x->holds)
        refuse(x, st);
    x->holds = false;
    if (x->d != NULL)
        GIN_STORE_RELAXED(&x->d->dc->ctx[x->ring.context].error, st);
    gi_core_ctx_fail(x->ctx, st, x->why[0] != 0 ? x->why : "an operation found no room in time");
}

static int take(void *arg)
{
    struct gi_net_ring *x = arg;
    struct gi_ring *r = &x->ring;
    int n = 0;
    gi_ring_look(r);
    while (!r->dead && n < TAKE_AT_ONCE) {
        if (!x->holds && !gi_ring_next(r, &x->op))
            break;
        int st = carry_out(x, gi_ring_has_next(r));
        x->holds = st == GIN_EAGAIN;
        if (x->holds)
            break;
        if (st != GIN_OK)
            refuse(x, st);
        if (is_fatal(st)) {
            die(x, st);
            break;
        }
        x->issued++;
        n++;
    }
    if (n != 0)
        note_batch(x);
    if (x->n != 0)
        tell(x);
    if (GIN_UNLIKELY(r->dead && !x->buried))
        bury(x);
    return n;
}

static bool has(const void *arg)
{
    const struct gi_net_ring *x = arg;
    return !x->ring.dead && (x->holds || gi_ring_has_next(&x->ring));
}

struct gi_core_intake gi_net_ring_intake(struct gi_net_ring *x)
{
    return (struct gi_core_intake){.take = take, .has = has, .arg = x};
}

/* ---- coming and going ---- */

int gi_net_ring_init(struct gi_net_ring *x, uint32_t depth, uint32_t n_counters)
{
    uint64_t bytes = gi_ring_plan(depth, n_counters).bytes;
    x->memory = aligned_alloc(64, (bytes + 63) & ~(uint64_t)63);
    if (x->memory == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a ring of %" PRIu32 " descriptors", depth);
    memset(x->memory, 0, bytes);
    gi_ring_init(&x->ring, x->memory, depth, n_counters);
    return GIN_OK;
}

void gi_net_ring_free(struct gi_net_ring *x)
{
    free(x->memory);
    x->memory = NULL;
}

int gi_net_rings_open(struct gi_devcomm *d)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    int st = GIN_OK;
    if (r->backend != GIN_BACKEND_ENGINE || r->device != GIN_DEVICE_HOST)
        return GIN_OK;
    d->rings = aligned_alloc(64, r->contexts * sizeof(*d->rings));
    if (d->rings == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u rings", r->contexts);
    memset(d->rings, 0, r->contexts * sizeof(*d->rings));
    for (uint32_t c = 0; st == GIN_OK && c < r->contexts; c++) {
        struct gi_net_ring *x = &d->rings[c];
        st = gi_net_ring_init(x, gi_ring_depth(r->queue_depth), 0);
        x->comm = d->comm;
        x->d = d;
        x->ring.context = c;
        x->ring.n_signals = r->signals;
        x->ring.n_counters = r->counters;
    }
    if (st != GIN_OK)
        gi_net_rings_close(d);
    return st;
}

void gi_net_rings_bind(struct gi_devcomm *d)
{
    for (uint32_t c = 0; d->rings != NULL && c < d->reqs.contexts; c++) {
        gi_core_enter(d->net[c]);
        d->rings[c].ctx = d->net[c];
        gi_core_leave(d->net[c]);
    }
    if (d->rings != NULL)
        atomic_fetch_add_explicit(&d->comm->net->rings, d->reqs.contexts, memory_order_relaxed);
}

void gi_net_rings_close(struct gi_devcomm *d)
{
    if (d->rings == NULL)
        return;
    if (d->rings[0].ctx != NULL)
        atomic_fetch_sub_explicit(&d->comm->net->rings, d->reqs.contexts, memory_order_relaxed);
    for (uint32_t c = 0; c < d->reqs.contexts; c++)
        gi_net_ring_free(&d->rings[c]);
    free(d->rings);
    d->rings = NULL;
}
