/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of the backend ENGINE over the network: the ring of impl/desc.h with many producers,
 * which are threads of the program, and one consumer at a time, whoever drives the network's
 * context: one of the network's threads, or one that waits. Producers never touch the network
 * itself.
 */
#ifndef GI_ENGINE_NET_H
#define GI_ENGINE_NET_H

#include "devcomm.h"
#include "ring.h"
#include "transport/core.h"

#define GI_NET_LOTS 4u /* most lots of parked descriptors */

/* A descriptor that the network could not take yet for its peer. */
struct gi_net_parked {
    struct gi_net_parked *next; /* of the same peer; or vacant */
    struct gi_net_parked *older, *newer;
    uint64_t ticket;
    struct gin_i_op op;
};

/* Operations with tickets below `ticket` have numbers of the core's up to `mark`. */
struct gi_net_group {
    uint64_t ticket, mark;
};

/* One peer of a ring. */
struct gi_net_peer {
    struct gi_net_parked *first, *last;
    struct gi_net_peer *next; /* that has parked ones */
    uint32_t parked;
    _Atomic uint32_t crowded; /* producers wait before they take a ticket for it */
    struct gi_net_group closed, grows;
    uint64_t beside; /* the core's mark behind what passed the ring by */
};

/* The consumer's part belongs to who owns the core's context. */
struct gi_net_ring {
    struct gi_ring ring;
    gin_comm_t *comm;
    struct gi_devcomm *d;
    struct gi_core_ctx *ctx;
    char *memory;
    struct gi_net_peer *peers; /* by rank */
    struct gin_i_op op;        /* taken, and neither the network's nor parked where `holds` */
    bool holds;
    bool buried;        /* dead, and all who wait on the context know */
    int fence_from;     /* of a fence of all that is held: the ranks before have theirs */
    uint64_t passed;    /* all tickets below are with the network; any thread looks at it */
    _Atomic int why_of; /* the status that `why` explains, 0: there is none yet */
    char why[160];
    struct gi_net_peer *stuck; /* engine_park.c */
    struct gi_net_parked *oldest, *newest, *vacant, *lots[GI_NET_LOTS];
    uint32_t n_lots;

    _Alignas(64) _Atomic uint64_t ticket; /* the next one */
};

/* A ring for each context, before the core's contexts are open; nothing to do where the backend is
 * not ENGINE. */
int gi_net_rings_open(struct gi_devcomm *d);
void gi_net_rings_bind(struct gi_devcomm *d); /* once they are open */
void gi_net_rings_close(struct gi_devcomm *d);
struct gi_core_intake gi_net_ring_intake(struct gi_net_ring *x);

static inline struct gi_net_ring *gi_net_ring_of(const gin_t *g)
{
    const struct gi_devcomm *d = g->dc->priv;
    return GIN_LIKELY(d->rings == NULL) ? NULL : &d->rings[g->ctx->index];
}

/* Why it died with that status. Any thread. */
static inline const char *gi_net_ring_why(const struct gi_net_ring *x, int status)
{
    bool explained = atomic_load_explicit(&x->why_of, memory_order_acquire) == status;
    return explained ? x->why : gin_status_name(status);
}

/* GIN_OK, or what it died of, recorded. Any thread. */
int gi_net_ring_status(const struct gi_net_ring *x, const char *call);
/* Put a descriptor into the ring, where need be once there is room. */
int gi_net_ring_post(struct gi_net_ring *x, const struct gin_i_op *op, const char *call);
/* The operations of lib/net_ops.h as descriptors. The answer of an atomic comes by its notice. */
int gi_net_ring_put(struct gi_net_ring *x, int world, const struct gi_core_put *p,
                    const char *call);
int gi_net_ring_get(struct gi_net_ring *x, int world, const struct gi_core_get *p,
                    const char *call);
int gi_net_ring_amo(struct gi_net_ring *x, int world, const struct gi_core_amo *a,
                    const char *call);
int gi_net_ring_fence(struct gi_net_ring *x, int world, const char *call);

/* Tickets taken so far. */
uint64_t gi_net_ring_mark(struct gi_net_ring *x);

/* ---- engine_park.c: by the consumer ---- */

/* Behind those of the same peer; false: no room for it. */
bool gi_net_park(struct gi_net_ring *x, const struct gin_i_op *op, uint64_t ticket);
/* Give them to the network in their order, up to `each` of a peer; how many went. place: true, it
 * is through with; more: another one of the same peer follows. */
typedef bool (*gi_net_place_fn)(struct gi_net_ring *x, const struct gin_i_op *op, uint64_t ticket,
                                bool more);
int gi_net_unpark(struct gi_net_ring *x, uint32_t each, gi_net_place_fn place);
void gi_net_park_close(struct gi_net_ring *x);
/* An operation to the peer went to the network. */
void gi_net_peer_note(struct gi_net_ring *x, uint32_t peer, uint64_t ticket);
/* 1: what was posted to the rank (GI_CORE_ALL: to any) below `ticket` is with the network, where
 * `mark` or less is its number; 0: not yet; else what the ring died of. */
int gi_net_ring_left(struct gi_net_ring *x, int world, uint64_t ticket, uint64_t *mark);

static inline uint32_t gi_net_park_lot(const struct gi_ring *r)
{
    return r->depth > 64 ? r->depth : 64;
}

static inline uint32_t gi_net_park_most(const struct gi_ring *r)
{
    return r->depth > 64 ? r->depth / 4 : 16;
}

#endif
