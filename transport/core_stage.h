/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staging: what is shared by core_stage*.c. Memory that neither the CPU nor the network reaches is
 * moved by way of slabs, host memory that the network can read and the mover can copy from and to.
 */
#ifndef GI_TRANSPORT_CORE_STAGE_H
#define GI_TRANSPORT_CORE_STAGE_H

#include "transport/core_int.h"

#define GI_STAGE_SLAB  ((uint32_t)256 << 10)
#define GI_STAGE_CELL  256u /* of words, and of what fits a message */
#define GI_STAGE_SLABS 32u  /* of each kind */
#define GI_STAGE_CELLS 256u

/* What waits for the peers to read, and what is read from them, do not take each other's room:
 * the latter ends by itself, so that everything does. */
enum gi_stage_room {
    GI_STAGE_OUT,
    GI_STAGE_IN,
    GI_STAGE_OUT_CELL,
    GI_STAGE_IN_CELL,
    GI_STAGE_ROOMS
};

struct gi_stage_pool {
    char *base;
    uint32_t size, n_free;
    uint16_t free[GI_STAGE_CELLS];
};

struct gi_core_stage {
    struct gi_core_mover mover;
    struct gi_core_region *region; /* of all slabs, at all ranks */
    struct gi_core_region gpu;     /* gi_core_gpu() */
    atomic_flag lock;              /* of the pools: contexts have different owners */
    struct gi_stage_pool pool[GI_STAGE_ROOMS];
};

/* A slab or cell, NULL: all are in use. */
char *gi_stage_take(struct gi_core_stage *s, enum gi_stage_room room);
void gi_stage_give(struct gi_core_stage *s, enum gi_stage_room room, char *at);

void gi_core_stage_close(struct gi_core *core);

#endif
