/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits of host threads where there may be a network: they drive it, the network's own thread gives
 * way to them meanwhile, and the failure of the context that they wait on ends them.
 */
#ifndef GI_NET_WAIT_H
#define GI_NET_WAIT_H

#include "devcomm.h"
#include "net_up.h"

struct gi_net_wait {
    struct gi_wait w; /* detail may be set between begin and end */
    gin_comm_t *comm;
    gi_wait_check_fn health; /* ends it, too; to be changed after begin where it is known who is
                                waited for: gi_comm_whole, or of one's own */
    void *health_arg;
    struct gi_net *net;      /* driven as long as it lasts; NULL: there was none */
    struct gi_core_ctx *ctx; /* driven before the others, its failure ends it; or NULL */
    /* May the failure of this rank be ignored? NULL: of none. */
    bool (*ignores)(const void *arg, int rank);
    const void *arg;
};

/* As begun, but for w: for whoever polls instead of waiting. */
struct gi_net_wait gi_net_look(gin_comm_t *comm, struct gi_core_ctx *ctx);
/* timeout_ns 0: none. ctx: see above, may be NULL. */
void gi_net_wait_begin(struct gi_net_wait *n, gin_comm_t *comm, struct gi_core_ctx *ctx,
                       uint64_t timeout_ns, const char *what);
/* For what operations wait for, of a rank or a ticket: they learn of the dead themselves, so only
 * the communicator's end ends it. */
void gi_net_wait_for(struct gi_net_wait *n, gin_comm_t *comm, uint64_t timeout_ns, const char *what,
                     uint32_t context, uint64_t of);
static inline int gi_net_wait_step(struct gi_net_wait *n)
{
    return gi_wait_step(&n->w);
}
void gi_net_wait_end(struct gi_net_wait *n);

/* For whoever polls instead of waiting: the communicator's or the context's failure, recorded. */
int gi_net_failed(const struct gi_net_wait *n);

/* Looks before a wait yields where each of them drives the network: about as long as comm->spin
 * pauses take. A rank that keeps its core for longer keeps it from the one that it waits for. */
static inline uint32_t gi_net_spin(const gin_comm_t *comm)
{
    return comm->spin / 32 + 1;
}

/* The core's context of g: NULL without a network, and for all contexts. */
struct gi_core_ctx *gi_net_context(const gin_t *g);
/* Status of it, recorded in g for gin_status(), which is GIN_OK without a network. */
int gi_net_status(const gin_t *g);

#endif
