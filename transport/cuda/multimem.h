/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One address for the GPU memory of a whole LSA team: what is stored there is stored in every
 * rank's slot, what is loaded there is reduced over them (multimem instructions). Made over a map
 * whose memory is there, on demand; it does not grow with the map.
 */
#ifndef GI_TRANSPORT_CUDA_MULTIMEM_H
#define GI_TRANSPORT_CUDA_MULTIMEM_H

#include "transport/cuda/map.h"

struct gi_cuda_multimem {
    uint64_t base;  /* the address of every slot's start */
    uint64_t bytes; /* of it that are there */
    struct gi_cuda_map *map;
    struct gi_cuda_multimem_share *share; /* the process' */
    uint64_t bound;                       /* pieces of mine that are bound */
    bool mapped;
};

/*
 * Collective over the communicator. GIN_OK on all ranks with *mm; or on none, with the text of the
 * rank that refuses or failed, and nothing left. off: why this rank does not want it, or NULL.
 * GIN_ENOTSUP: it cannot be had, and why.
 */
int gi_cuda_multimem_open(struct gi_cuda_map *map, const char *off, uint64_t deadline,
                          struct gi_cuda_multimem **mm);
/* Local; before the map's memory goes. NULL is fine. */
void gi_cuda_multimem_close(struct gi_cuda_multimem *mm);

#endif
