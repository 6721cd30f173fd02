/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producers of a ring to the network: a ticket, a slot once it is free, eight words with the
 * phase of the lap. A ticket is taken once there is a slot for it, and published: who gives up
 * waiting leaves no gap, and so costs nobody else anything. Who waits drives the network, and so
 * takes the consumer's place.
 */
#include <inttypes.h>
#include <string.h>

#include "engine_net.h"
#include "net_wait.h"

/* ---- waiting ---- */

static int dead(const struct gi_net_ring *x, const char *call)
{
    int st = (int)(uint32_t)GIN_LOAD_ACQUIRE(&x->ring.host->error);
    return gi_fail(st, "%s: context %" PRIu32 " is dead: %s", call, x->ring.context,
                   gi_net_ring_why(x, st));
}

static bool is_dead(const struct gi_net_ring *x)
{
    return GIN_LOAD_ACQUIRE(&x->ring.host->error) != 0;
}

int gi_net_ring_status(const struct gi_net_ring *x, const char *call)
{
    return GIN_LIKELY(!is_dead(x)) ? GIN_OK : dead(x, call);
}

uint64_t gi_net_ring_mark(struct gi_net_ring *x)
{
    return atomic_load_explicit(&x->ticket, memory_order_acquire);
}

/* The next ticket, and whether there is a slot for it. The tickets are looked at last: they are
 * never behind what is consumed. */
static inline bool has_slot(const struct gi_net_ring *x, uint64_t *ticket)
{
    const uint64_t consumed = GIN_LOAD_ACQUIRE(&x->ring.host->consumed);
    *ticket = atomic_load_explicit(&x->ticket, memory_order_relaxed);
    return *ticket - consumed < x->ring.depth;
}

/* A slot; or, for a peer, that not too much is parked for it. */
static inline bool there_is(const struct gi_net_ring *x, const struct gi_net_peer *peer)
{
    uint64_t ticket;
    if (peer != NULL)
        return atomic_load_explicit(&peer->crowded, memory_order_relaxed) == 0;
    return has_slot(x, &ticket);
}

/* Until there was some; another thread may have it by now. *began: when the call's first wait did,
 * 0 before; all of them share its time limit. */
static int wait_for(struct gi_net_ring *x, const struct gi_net_peer *peer, uint64_t *began,
                    const char *call)
{
    struct gi_net_wait n;
    uint64_t limit = x->d->wait_timeout_ns, now = gi_now_ns();
    int st = GIN_OK;
    *began = *began != 0 ? *began : now;
    if (limit != 0)
        limit = now - *began < limit ? limit - (now - *began) : 1;
    for (uint32_t i = 0; !there_is(x, peer) && !is_dead(x) && i < gi_net_spin(x->comm); i++)
        gi_net_drive(x->comm, x->ctx);
    if (is_dead(x)) /* there is room in it, and nobody takes what comes */
        return dead(x, call);
    if (there_is(x, peer))
        return GIN_OK;
    gi_net_wait_for(&n, x->comm, limit,
                    peer != NULL ? "room in the ring of context # for rank #"
                                 : "room in the ring of context # behind ticket #",
                    x->ring.context,
                    peer != NULL ? (uint64_t)(peer - x->peers) : gi_net_ring_mark(x));
    while (!there_is(x, peer) && !is_dead(x) && st == GIN_OK) {
        gi_net_drive(x->comm, x->ctx);
        st = gi_net_wait_step(&n);
    }
    gi_net_wait_end(&n);
    if (is_dead(x))
        return dead(x, call);
    if (st == GIN_OK || there_is(x, peer))
        return GIN_OK;
    if (st == GIN_ETIMEDOUT)
        return gi_fail(st, "%s: context %" PRIu32 ": no room in its ring after %.3f s", call,
                       x->ring.context, (double)x->d->wait_timeout_ns * 1e-9);
    return gi_fail_context("%s", call);
}

/* ---- posting ---- */

static inline bool is_crowded(const struct gi_net_ring *x, uint32_t peer)
{
    return peer < (uint32_t)x->comm->size &&
           atomic_load_explicit(&x->peers[peer].crowded, memory_order_relaxed) != 0;
}

static int take_ticket(struct gi_net_ring *x, uint64_t *ticket, uint64_t *began, const char *call)
{
    for (;;) {
        if (GIN_LIKELY(has_slot(x, ticket))) {
            if (GIN_LIKELY(atomic_compare_exchange_strong_explicit(
                    &x->ticket, ticket, *ticket + 1, memory_order_relaxed, memory_order_relaxed)))
                return GIN_OK;
            continue;
        }
        int st = wait_for(x, NULL, began, call);
        if (st != GIN_OK)
            return st;
    }
}

int gi_net_ring_post(struct gi_net_ring *x, const struct gin_i_op *op, const char *call)
{
    struct gi_ring *r = &x->ring;
    struct gin_i_desc d;
    uint64_t t, began = 0;
    int st = GIN_OK;
    if (GIN_UNLIKELY(is_dead(x)))
        return dead(x, call);
    if (GIN_UNLIKELY(is_crowded(x, op->peer)))
        st = wait_for(x, &x->peers[op->peer], &began, call);
    if (st == GIN_OK)
        st = take_ticket(x, &t, &began, call);
    if (st != GIN_OK)
        return st;
    gin_i_desc_pack(&d, op, gin_i_desc_phase(t, r->depth));
    struct gin_i_desc *slot = &r->slots[t & (r->depth - 1)];
    for (unsigned k = 1; k < GIN_I_DESC_WORDS; k++)
        GIN_STORE_RELAXED(&slot->w[k], d.w[k]);
    GIN_STORE_RELEASE(&slot->w[0], d.w[0]);
    gi_core_wake(x->ctx);
    return GIN_OK;
}

static void set_action(struct gin_i_op *o, const struct gi_core_action *a)
{
    if (a->kind == GI_CORE_NONE)
        return;
    o->value = a->value;
    o->flags |= a->strong ? GIN_I_DESC_STRONG : 0;
    if (a->kind == GI_CORE_SLOT_ADD) {
        o->flags |= GIN_I_DESC_SLOT;
        o->sig_off = a->id;
        return;
    }
    o->flags |= a->kind == GI_CORE_WORD_SET ? GIN_I_DESC_SET_AT : GIN_I_DESC_ADD_AT;
    o->sig_win = a->id;
    o->sig_off = a->off;
}

static void set_counter(const struct gi_net_ring *x, struct gin_i_op *o, const uint64_t *cell)
{
    const struct gin_i_counter *first = x->d->dc->ctx[x->ring.context].counters;
    if (cell == NULL)
        return;
    o->flags |= GIN_I_DESC_COUNTER;
    o->counter = (uint32_t)((const struct gin_i_counter *)(const void *)cell - first);
}

int gi_net_ring_put(struct gi_net_ring *x, int world, const struct gi_core_put *p, const char *call)
{
    struct gin_i_op o = {.op = p->bytes != 0 ? GIN_I_DESC_PUT : GIN_I_DESC_SIGNAL,
                         .peer = (uint32_t)world,
                         .dst_win = p->window,
                         .dst_off = p->off,
                         .size = p->bytes};
    o.flags |= p->more ? GIN_I_DESC_MORE : 0;
    set_action(&o, &p->action);
    set_counter(x, &o, p->counter);
    if (p->bytes != 0 && p->bytes <= sizeof(o.immediate)) {
        o.op = GIN_I_DESC_PUT_VALUE;
        memcpy(&o.immediate, p->src, p->bytes);
    } else if (p->bytes != 0) {
        o.flags |= GIN_I_DESC_LOCAL;
        o.src_off = (uint64_t)(uintptr_t)p->src;
    }
    return gi_net_ring_post(x, &o, call);
}

int gi_net_ring_get(struct gi_net_ring *x, int world, const struct gi_core_get *p, const char *call)
{
    struct gin_i_op o = {.op = GIN_I_DESC_GET,
                         .flags = GIN_I_DESC_LOCAL,
                         .peer = (uint32_t)world,
                         .src_win = p->window,
                         .src_off = p->off,
                         .dst_off = (uint64_t)(uintptr_t)p->dst,
                         .size = p->bytes};
    set_counter(x, &o, p->counter);
    return gi_net_ring_post(x, &o, call);
}

int gi_net_ring_amo(struct gi_net_ring *x, int world, const struct gi_core_amo *a, const char *call)
{
    struct gin_i_op o = {.op = (uint8_t)(GIN_I_DESC_AMO + a->op),
                         .flags = a->bytes == 4 ? GIN_I_DESC_WORD32 : 0,
                         .peer = (uint32_t)world,
                         .dst_win = a->window,
                         .dst_off = a->off,
                         .size = (uint64_t)(uintptr_t)a->old,
                         .sig_off = (uint64_t)(uintptr_t)a->notice,
                         .immediate = a->value,
                         .value = a->expected};
    return gi_net_ring_post(x, &o, call);
}

int gi_net_ring_fence(struct gi_net_ring *x, int world, const char *call)
{
    struct gin_i_op o = {.op = GIN_I_DESC_FENCE,
                         .peer = world == GI_CORE_ALL ? GIN_I_DESC_ALL : (uint32_t)world};
    return gi_net_ring_post(x, &o, call);
}
