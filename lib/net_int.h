/* SPDX-License-Identifier: BSD-3-Clause */
/* Between net_ops.c, which posts, net_done.c, which waits, and net_refuse.c, which says why not. */
#ifndef GI_NET_INT_H
#define GI_NET_INT_H

#include "net_ops.h"

/* The core's context of g, which stands for one and has a network. */
static inline struct gi_core_ctx *gi_net_ctx(const gin_t *g)
{
    return gi_devcomm_of(g)->net[g->ctx->index];
}

/* Later operations to the rank follow earlier ones; past a ring, if there is one. */
int gi_net_post_fence(const gin_t *g, struct gi_core_ctx *ctx, int world, const char *call);

/* Until what g's context was given for a rank is with the network; there is a ring. */
int gi_net_drain(const gin_t *g, int world, const char *call);

/* Record what the rank failed of, or what the context died of, or what the core said of one
 * operation. A barrier (g is NULL) has chosen that rank itself, and wants the first cause. */
int gi_net_failure(const gin_t *g, struct gi_core_ctx *ctx, int world, int st, const char *call);

/* Operations of this thread, for looks that follow each other (net_done.c). */
extern _Thread_local uint32_t gi_net_posts;

#endif
