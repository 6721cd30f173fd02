/* SPDX-License-Identifier: BSD-3-Clause */
/* What the network wrote into a device's memory, before anything tells of it. */
#ifndef GI_TRANSPORT_CORE_LAND_H
#define GI_TRANSPORT_CORE_LAND_H

#include "transport/core_int.h"

bool gi_core_land(struct gi_core_ctx *ctx); /* core_region.c */

/* Something that arrived is about to be told of. False: the device cannot see what came before it,
 * and the context has failed. */
static inline bool gi_core_landed(struct gi_core_ctx *ctx)
{
    return GIN_LIKELY(atomic_load_explicit(&ctx->core->lands, memory_order_relaxed) == 0) ||
           gi_core_land(ctx);
}

#endif
