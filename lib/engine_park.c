/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network cannot take now for one peer leaves the ring all the same, so that it does not
 * stand in the way of the others: it is parked, behind what is parked for that peer already, and
 * goes before whatever follows for it. A peer with much of it is crowded: producers wait until it
 * is not before they take a ticket for it. What the ring still holds then, the lots have room for;
 * once they have none, the ring stands still.
 *
 * Per peer there is also how far its operations have come: groups of them, of which the first one
 * is closed and the second one grows until that is complete.
 */
#include "engine_net.h"

#include <stdlib.h>

static bool add_lot(struct gi_net_ring *x)
{
    const uint32_t n = gi_net_park_lot(&x->ring);
    struct gi_net_parked *lot = x->n_lots < GI_NET_LOTS ? malloc((size_t)n * sizeof(*lot)) : NULL;
    if (lot == NULL)
        return false;
    x->lots[x->n_lots++] = lot;
    for (uint32_t i = 0; i < n; i++) {
        lot[i].next = x->vacant;
        x->vacant = &lot[i];
    }
    return true;
}

bool gi_net_park(struct gi_net_ring *x, const struct gin_i_op *op, uint64_t ticket)
{
    struct gi_net_peer *p = &x->peers[op->peer];
    if (x->vacant == NULL && !add_lot(x))
        return false;
    struct gi_net_parked *k = x->vacant;
    x->vacant = k->next;
    *k = (struct gi_net_parked){.older = x->newest, .ticket = ticket, .op = *op};
    *(x->newest == NULL ? &x->oldest : &x->newest->newer) = k;
    x->newest = k;
    if (p->first == NULL) {
        p->next = x->stuck;
        x->stuck = p;
    }
    *(p->first == NULL ? &p->first : &p->last->next) = k;
    p->last = k;
    if (++p->parked == gi_net_park_most(&x->ring))
        atomic_store_explicit(&p->crowded, 1, memory_order_relaxed);
    return true;
}

/* Its first one is through with. */
static void leave(struct gi_net_ring *x, struct gi_net_peer *p)
{
    struct gi_net_parked *k = p->first;
    p->first = k->next;
    *(k->older == NULL ? &x->oldest : &k->older->newer) = k->newer;
    *(k->newer == NULL ? &x->newest : &k->newer->older) = k->older;
    k->next = x->vacant;
    x->vacant = k;
    if (--p->parked == gi_net_park_most(&x->ring) / 2)
        atomic_store_explicit(&p->crowded, 0, memory_order_relaxed);
}

int gi_net_unpark(struct gi_net_ring *x, uint32_t each, gi_net_place_fn place)
{
    int n = 0;
    for (struct gi_net_peer **at = &x->stuck, *p; (p = *at) != NULL;) {
        for (uint32_t i = 0; i < each && p->first != NULL; i++, n++) {
            const struct gi_net_parked *k = p->first;
            if (x->ring.dead || !place(x, &k->op, k->ticket, k->next != NULL))
                break;
            leave(x, p);
        }
        if (p->first == NULL)
            *at = p->next;
        else
            at = &p->next;
    }
    return n;
}

void gi_net_park_close(struct gi_net_ring *x)
{
    for (uint32_t i = 0; i < x->n_lots; i++)
        free(x->lots[i]);
    x->n_lots = 0;
    free(x->peers);
    x->peers = NULL;
}

/* ---- how far a peer's are ---- */

static void close_group(const struct gi_net_ring *x, struct gi_net_peer *p)
{
    const int peer = (int)(p - x->peers);
    if (p->grows.ticket == 0 ||
        (p->closed.ticket != 0 && gi_core_flushed_peer(x->ctx, peer, p->closed.mark) == 0))
        return;
    p->closed = p->grows;
    p->grows.ticket = 0;
}

void gi_net_peer_note(struct gi_net_ring *x, uint32_t peer, uint64_t ticket)
{
    struct gi_net_peer *p = &x->peers[peer];
    p->grows = (struct gi_net_group){ticket + 1, gi_core_mark_peer(x->ctx, (int)peer)};
    close_group(x, p);
}

/* Those of a peer are done with in the order of their tickets. */
int gi_net_ring_left(struct gi_net_ring *x, int world, uint64_t ticket, uint64_t *mark)
{
    const struct gi_ring *r = &x->ring;
    if (r->dead || GIN_LOAD_RELAXED(&r->host->error) != 0 || world == GI_CORE_ALL) {
        if (GIN_LOAD_RELAXED(&x->passed) < ticket)
            return (int)(uint32_t)GIN_LOAD_ACQUIRE(&r->host->error);
        *mark = world == GI_CORE_ALL ? gi_core_mark(x->ctx) : gi_core_mark_peer(x->ctx, world);
        return 1;
    }
    struct gi_net_peer *p = &x->peers[world];
    if (r->taken - x->holds < ticket || (p->first != NULL && p->first->ticket < ticket))
        return 0;
    close_group(x, p);
    *mark = p->closed.ticket >= ticket || p->grows.ticket == 0 ? p->closed.mark : p->grows.mark;
    *mark = *mark > p->beside ? *mark : p->beside;
    return 1;
}
