/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that are split over the rails, between core_stripe.c and the rest of the core. A context's
 * lanes on other rails than its home are its sides: they carry pieces of large puts and nothing
 * else. There are none unless every rail tells of delivery.
 */
#ifndef GI_TRANSPORT_CORE_STRIPE_H
#define GI_TRANSPORT_CORE_STRIPE_H

#include "transport/core_int.h"

struct gi_core_side {
    struct gi_core_ctx *ctx;
    struct gi_net_lane *lane;
    const struct gi_net_ops *ops;
    const struct gi_net_caps *caps;
    uint32_t rail;
    uint32_t idle;     /* polls on end without an event */
    uint32_t pieces;   /* with the network ... */
    uint64_t bytes;    /* ... and their bytes */
    uint32_t n_chunks; /* of the pool */
    uint32_t owed;     /* answers to greetings */
    uint8_t *met;      /* by rank: what was said */
    struct gi_core_chunk *free_chunks, *chunks_memory;
};

struct gi_core_stripe {
    uint32_t n;
    uint32_t first; /* lane that is asked first where several are as free: 0 is the home */
    struct gi_core_side side[];
};

/* Decide whether there are sides, from what all ranks have agreed on. */
void gi_core_stripe_plan(struct gi_core *core, bool wanted);

/* A context's sides; their names into name[0 .. core->sides - 1]. Undone by close, also where it
 * fails. */
int gi_core_stripe_open(struct gi_core_ctx *ctx, const struct gi_core_ctx_config *config,
                        struct gi_core_name *name);
/* names: of a context's sides at rank 0, those of the next rank `step` further. */
int gi_core_stripe_connect(struct gi_core_ctx *ctx, const struct gi_core_name *names, size_t step);
bool gi_core_stripe_part(struct gi_core_ctx *ctx); /* false: none needs it */
void gi_core_stripe_close(struct gi_core_ctx *ctx);

enum gi_core_way gi_core_stripe_way(const struct gi_core_put *put);
/* Post what lanes take: GIN_OK once the network has all. */
int gi_core_stripe_post(struct gi_core_ctx *ctx, struct gi_core_op *op);
int gi_core_stripe_progress(struct gi_core_ctx *ctx); /* number of events */
void gi_core_stripe_gone(struct gi_core_ctx *ctx, int rank);
/* As gi_core_sleep(), of the sides. */
int gi_core_stripe_fds(struct gi_core_ctx *ctx, int *fds, int max);

#endif
