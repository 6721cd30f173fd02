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

#define GI_NET_BATCHES 64u

/* Tickets up to `ticket` are complete here once the core's context has reached `mark`. */
struct gi_net_batch {
    uint64_t ticket, mark;
};

/* The consumer's part belongs to who owns the core's context. */
struct gi_net_ring {
    struct gi_ring ring;
    gin_comm_t *comm;
    struct gi_devcomm *d; /* NULL: a test's */
    struct gi_core_ctx *ctx;
    char *memory;
    struct gin_i_op op; /* taken, and not yet the network's where `holds` */
    bool holds;
    bool buried;     /* dead, and all who wait on the context know */
    uint64_t issued; /* tickets that are through with */
    struct gi_net_batch batch[GI_NET_BATCHES];
    uint32_t first, n; /* of batches under way */
    char why[160];     /* what it died of; before the error word */

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

/* GIN_OK, or what it died of, recorded. Any thread. */
int gi_net_ring_status(const struct gi_net_ring *x);
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
/* All tickets below `mark` are with the network, or complete here. GIN_EAGAIN: not yet, with poll.
 */
int gi_net_ring_drain(struct gi_net_ring *x, uint64_t mark, uint64_t timeout_ns, bool poll,
                      const char *call);
int gi_net_ring_flush(struct gi_net_ring *x, uint64_t mark, uint64_t timeout_ns, bool poll,
                      const char *call);

/* Init and close one alone. */
int gi_net_ring_init(struct gi_net_ring *x, uint32_t depth, uint32_t n_counters);
void gi_net_ring_free(struct gi_net_ring *x);

#endif
