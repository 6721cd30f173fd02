/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer: from a descriptor to an operation of the network's core. Nothing that a descriptor
 * names is believed: windows, generations, bounds and ids are checked here, and a bad one kills its
 * context. (Addresses are those of this process's own threads, which could do as they like anyway.)
 * What the network cannot take now for one peer is parked (engine_park.c) and does not
 * keep the others' from it.
 */
#include "engine_net.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "engine_int.h"
#include "net_up.h"

#define TAKE_AT_ONCE 64
#define ADDRESSES    ((uint64_t)1 << GIN_I_DESC_OFF_BITS)
#define ACTIONS      (GIN_I_DESC_SLOT | GIN_I_DESC_ADD_AT | GIN_I_DESC_SET_AT)

/* ---- names ---- */

static int check_place(const struct gi_net_ring *x, const struct gin_i_op *o, uint32_t name,
                       uint64_t off, uint64_t bytes, bool update)
{
    const struct gin_i_window *w = gi_engine_window(x->comm, name);
    bool other = o->peer != (uint32_t)x->comm->rank;
    return w == NULL ? GIN_ESTATE : gi_engine_inside(x->comm, w, off, bytes, update && other);
}

/* My memory: an address, or a place in a window. */
static int find_mine(const struct gi_net_ring *x, const struct gin_i_op *o, uint32_t name,
                     uint64_t off, bool *copied, void **addr, struct gi_core_region **region)
{
    bool gpu = false;
    *addr = (void *)(uintptr_t)off;
    if (!(o->flags & GIN_I_DESC_LOCAL)) {
        const struct gin_i_window *w = gi_engine_window(x->comm, name);
        int st = w == NULL ? GIN_ESTATE : gi_engine_inside(x->comm, w, off, o->size, false);
        if (st != GIN_OK)
            return st;
        *addr = (void *)(uintptr_t)(w->local + off);
        gpu = w->kind == GIN_KIND_CUDA;
    } else if (o->size != 0 && (off == 0 || off + o->size > ADDRESSES)) {
        return gi_fail(GIN_EINVAL, "%" PRIu64 " bytes at %p are no memory", o->size, *addr);
    }
    return gi_net_mine(x->comm, gpu, *addr, o->size, copied, region);
}

static int find_action(const struct gi_net_ring *x, const struct gin_i_op *o,
                       struct gi_core_action *a)
{
    *a = gi_engine_action(o);
    if (!(o->flags & ACTIONS))
        return GIN_OK;
    if (a->kind != GI_CORE_SLOT_ADD)
        return check_place(x, o, o->sig_win, o->sig_off, 8, true);
    return o->sig_off < x->ring.n_signals
               ? GIN_OK
               : gi_fail(GIN_ERANGE, "signal %" PRIu64 " is out of range", o->sig_off);
}

static uint64_t *counter_of(const struct gi_net_ring *x, const struct gin_i_op *o)
{
    return o->flags & GIN_I_DESC_COUNTER ? &x->d->dc->ctx[x->ring.context].counters[o->counter].cell
                                         : NULL;
}

/* ---- operations ---- */

/* The core keeps the status of a peer that is lost, and goes on with the others. */
static bool is_fatal(int status)
{
    return status != GIN_OK && status != GIN_EPEER && status != GIN_ENET;
}

/* The core refuses without a text, but for want of memory. */
static int told(int st)
{
    return !is_fatal(st) || st == GIN_EAGAIN || st == GIN_ENOMEM
               ? st
               : gi_fail(st, "the network refuses it (%s)", gin_status_name(st));
}

static int put(struct gi_net_ring *x, const struct gin_i_op *o, bool more)
{
    void *src = (void *)(uintptr_t)&o->immediate;
    struct gi_core_put p = {.window = o->dst_win,
                            .off = o->dst_off,
                            .bytes = o->size,
                            .more = more || (o->flags & GIN_I_DESC_MORE) != 0,
                            .copy = o->size <= GI_NET_COPIED,
                            .counter = counter_of(x, o)};
    int st = find_action(x, o, &p.action);
    if (st == GIN_OK && o->size != 0)
        st = check_place(x, o, o->dst_win, o->dst_off, o->size, true);
    if (st == GIN_OK && o->op == GIN_I_DESC_PUT) {
        st = find_mine(x, o, o->src_win, o->src_off, &p.copy, &src, &p.region);
    } else if (st == GIN_OK && o->size > sizeof(o->immediate)) {
        st = gi_fail(GIN_ERANGE, "a value of %" PRIu64 " bytes", o->size);
    }
    p.src = src;
    return st == GIN_OK ? told(gi_core_put(x->ctx, (int)o->peer, &p)) : st;
}

static int get(struct gi_net_ring *x, const struct gin_i_op *o)
{
    struct gi_core_get p = {
        .window = o->src_win, .off = o->src_off, .bytes = o->size, .counter = counter_of(x, o)};
    int st = check_place(x, o, o->src_win, o->src_off, o->size, false);
    if (st == GIN_OK)
        st = find_mine(x, o, o->dst_win, o->dst_off, NULL, &p.dst, &p.region);
    return st == GIN_OK ? told(gi_core_get(x->ctx, (int)o->peer, &p)) : st;
}

/* Threads of the program leave the addresses of old value and notice, 0: not wanted. */
static int amo(struct gi_net_ring *x, const struct gin_i_op *o)
{
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
    if ((o->size == 0) != (o->sig_off == 0) || ((o->size | o->sig_off) & 7) != 0)
        return gi_fail(GIN_EINVAL, "an answer to %p and its notice %p", (void *)a.old,
                       (void *)a.notice);
    int st = check_place(x, o, o->dst_win, o->dst_off, a.bytes, a.op != GIN_I_AMO_FETCH);
    return st == GIN_OK ? told(gi_core_amo(x->ctx, (int)o->peer, &a)) : st;
}

static int carry_out(struct gi_net_ring *x, const struct gin_i_op *o, bool more)
{
    if (o->op == GIN_I_DESC_NOP)
        return GIN_OK;
    if (o->peer >= (uint32_t)x->comm->size ||
        ((o->flags & GIN_I_DESC_COUNTER) && o->counter >= x->ring.n_counters))
        return gi_fail(GIN_ERANGE, "rank %" PRIu32 " or counter %" PRIu32 " is out of range",
                       o->peer, o->counter);
    if (o->op >= GIN_I_DESC_AMO)
        return amo(x, o);
    switch (o->op) {
    case GIN_I_DESC_PUT:
    case GIN_I_DESC_PUT_VALUE:
    case GIN_I_DESC_SIGNAL: return put(x, o, more);
    case GIN_I_DESC_GET: return get(x, o);
    case GIN_I_DESC_FENCE: return gi_core_fence(x->ctx, (int)o->peer);
    default: return gi_fail(GIN_EINVAL, "operation %u is unknown", o->op);
    }
}

/* ---- a turn ---- */

/* Tickets are with the network up to the first one that is held or parked. A failed one is either
 * as long as it fails, so that this stops there for good. */
static void advance(struct gi_net_ring *x)
{
    uint64_t to = x->ring.taken - x->holds;
    if (x->oldest != NULL && x->oldest->ticket < to)
        to = x->oldest->ticket;
    if (to != x->passed && !x->ring.dead)
        GIN_STORE_RELEASE(&x->passed, to);
}

static void die(struct gi_net_ring *x, const struct gin_i_op *o, uint64_t ticket, int status)
{
    struct gi_ring *r = &x->ring;
    advance(x);
    snprintf(x->why, sizeof(x->why), "operation %u to rank %" PRIu32 ": %.110s", o->op, o->peer,
             gin_last_error());
    gi_warn("engine", "context %" PRIu32 " is dead: %s", r->context, x->why);
    atomic_store_explicit(&x->why_of, status, memory_order_release);
    gi_ring_kill(r, ticket, status, x->comm->rank);
}

/* Nobody will hear of an atomic that is never posted, but from here. */
static void refuse(const struct gin_i_op *o, int status)
{
    struct gi_core_notice *n = (struct gi_core_notice *)(uintptr_t)o->sig_off;
    if (o->op >= GIN_I_DESC_AMO && n != NULL && o->size != 0 && (o->sig_off & 7) == 0)
        n->fn(n, status);
}

/* What waits on the context for what the ring still holds must not wait for ever. */
static void bury(struct gi_net_ring *x)
{
    int st = (int)(uint32_t)GIN_LOAD_ACQUIRE(&x->ring.host->error);
    x->buried = true;
    if (x->holds)
        refuse(&x->op, st);
    x->holds = false;
    for (const struct gi_net_parked *k = x->oldest; k != NULL; k = k->newer)
        refuse(&k->op, st);
    x->oldest = x->newest = NULL; /* peers keep theirs, which nobody looks at any more */
    GIN_STORE_RELAXED(&x->d->dc->ctx[x->ring.context].error, st);
    gi_core_ctx_fail(x->ctx, st, gi_net_ring_why(x, st));
}

/* Of a peer that refused something, the core keeps the status, and goes on with the others. */
static bool is_peers(const struct gi_net_ring *x, const struct gin_i_op *o, int status)
{
    return o->peer < (uint32_t)x->comm->size &&
           gi_core_peer_status(x->ctx, (int)o->peer, NULL) == status;
}

/* Give it to the network. False: not now. */
static bool place(struct gi_net_ring *x, const struct gin_i_op *o, uint64_t ticket, bool more)
{
    int st = carry_out(x, o, more);
    if (st == GIN_EAGAIN)
        return false;
    if (st != GIN_OK)
        refuse(o, st);
    bool peers = st != GIN_OK && is_peers(x, o, st);
    if (is_fatal(st) && !peers)
        die(x, o, ticket, st);
    else if (o->peer < (uint32_t)x->comm->size)
        gi_net_peer_note(x, o->peer, ticket);
    if (peers)
        gi_core_peer_cost(x->ctx, (int)o->peer);
    return true;
}

/* One for every peer, behind what is parked for it. */
static bool fence_all(struct gi_net_ring *x, uint64_t ticket)
{
    if (x->stuck == NULL && x->fence_from == 0 && gi_core_fence(x->ctx, GI_CORE_ALL) != GIN_EAGAIN)
        return true;
    for (; x->fence_from < x->comm->size; x->fence_from++) {
        struct gin_i_op one = {.op = GIN_I_DESC_FENCE, .peer = (uint32_t)x->fence_from};
        bool parked = x->peers[x->fence_from].first != NULL;
        if ((parked || gi_core_fence(x->ctx, x->fence_from) == GIN_EAGAIN) &&
            !gi_net_park(x, &one, ticket))
            return false;
    }
    x->fence_from = 0;
    return true;
}

/* The one that is held. */
static bool place_or_park(struct gi_net_ring *x, bool more)
{
    const struct gin_i_op *o = &x->op;
    uint64_t ticket = x->ring.taken - 1;
    if (o->op == GIN_I_DESC_FENCE && o->peer == GIN_I_DESC_ALL)
        return fence_all(x, ticket);
    if (o->peer >= (uint32_t)x->comm->size || x->peers[o->peer].first == NULL)
        if (place(x, o, ticket, more))
            return true;
    return gi_net_park(x, o, ticket);
}

static int take(void *arg)
{
    struct gi_net_ring *x = arg;
    struct gi_ring *r = &x->ring;
    gi_ring_look(r);
    int n = x->stuck != NULL && !r->dead ? gi_net_unpark(x, TAKE_AT_ONCE, place) : 0;
    for (int i = 0; i < TAKE_AT_ONCE && !r->dead; i++, n++) {
        if (!x->holds && !gi_ring_next(r, &x->op))
            break;
        x->holds = true;
        if (!place_or_park(x, gi_ring_has_next(r)))
            break;
        x->holds = false;
    }
    advance(x);
    if (r->host->consumed != r->taken)
        GIN_STORE_RELEASE(&r->host->consumed, r->taken);
    if (GIN_UNLIKELY(r->dead && !x->buried))
        bury(x);
    return n;
}

static bool has(const void *arg)
{
    const struct gi_net_ring *x = arg;
    return !x->ring.dead && (x->holds || x->oldest != NULL || gi_ring_has_next(&x->ring));
}

struct gi_core_intake gi_net_ring_intake(struct gi_net_ring *x)
{
    return (struct gi_core_intake){.take = take, .has = has, .arg = x};
}

/* ---- coming and going ---- */

static int open_one(struct gi_net_ring *x, struct gi_devcomm *d, uint32_t context)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    const uint32_t depth = gi_ring_depth(r->queue_depth);
    uint64_t bytes = (gi_ring_plan(depth, 0).bytes + 63) & ~(uint64_t)63;
    x->memory = aligned_alloc(64, bytes);
    x->peers = calloc((size_t)d->comm->size, sizeof(*x->peers));
    if (x->memory == NULL || x->peers == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a ring of %" PRIu32 " descriptors", depth);
    memset(x->memory, 0, bytes);
    gi_ring_init(&x->ring, x->memory, depth, 0);
    x->comm = d->comm;
    x->d = d;
    x->ring.context = context;
    x->ring.n_signals = r->signals;
    x->ring.n_counters = r->counters;
    return GIN_OK;
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
    for (uint32_t c = 0; st == GIN_OK && c < r->contexts; c++)
        st = open_one(&d->rings[c], d, c);
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
    for (uint32_t c = 0; c < d->reqs.contexts; c++) {
        gi_net_park_close(&d->rings[c]);
        free(d->rings[c].memory);
    }
    free(d->rings);
    d->rings = NULL;
}
