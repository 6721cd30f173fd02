/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LSA over GPU memory: the slots of an LSA team side by side in one range of GPU addresses, slot r
 * the memory of LSA rank r. A slot consists of memory objects of the driver, one per growth, passed
 * as file descriptors. Ranks that are threads of one process share one range; its lowest LSA rank
 * maps for all of them, for the devices of all of them.
 *
 * A rank without GPU takes part in everything. Its own slot, and all slots in a process whose ranks
 * have no GPU, are addresses at which there is never anything: they name places.
 */
#ifndef GI_TRANSPORT_CUDA_MAP_H
#define GI_TRANSPORT_CUDA_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include "cuda/gpu.h"
#include "transport/shm/shm.h"

struct gi_cuda_map_config {
    struct gi_shm_config shm;  /* rank, size, ranks, allgather and its arg; the rest is unused */
    const struct gi_shm *team; /* who is with whom */
    struct gi_gpu *gpu;        /* mine, or NULL */
    const int *devices;        /* by world rank, as its process numbers them; -1: none */
    bool fabric;               /* all GPUs have fabric handles, and they shall be used */
    uint64_t stride;           /* wished; the agreed one may be smaller */
    uint64_t min_stride;       /* below it opening fails (GIN_ENOMEM) */
    uint64_t granule;          /* multiple of every GPU's */
};

struct gi_cuda_map {
    uint64_t base, stride;
    uint64_t mapped;  /* bytes of every slot that are there */
    uint64_t align;   /* what every slot is a multiple of */
    uint8_t *reach;   /* by LSA rank: my GPU reads and writes its slot; proven by a token */
    bool complete;    /* every GPU of every LSA team reaches all GPUs of its team */
    char refused[96]; /* about the first rank that has a GPU and is not reached, or "" */
    struct gi_cuda_map_config c;
    struct gi_cuda_region *region; /* the process' */
    bool leader;                   /* I map */
    bool passes;                   /* my team has several processes */
    bool failed;                   /* I did, not another rank */
    uint64_t more;                 /* bytes to be shared */
};

/* Collective over the communicator, one allgather: addresses, nothing in them. */
int gi_cuda_map_open(const struct gi_cuda_map_config *config, struct gi_cuda_map **map);
/* Local; every rank of the process must have stopped using it. NULL is fine. */
void gi_cuda_map_close(struct gi_cuda_map *map);

/* Local: [map->mapped, to) of every slot shall be shared. */
void gi_cuda_map_grow(struct gi_cuda_map *map, uint64_t to);
/*
 * Collective, after all ranks have grown alike: make the new memory and map it everywhere, or fail
 * on all ranks, with the text of the one that failed, and undo. The first time it also proves the
 * mapping.
 */
int gi_cuda_map_share(struct gi_cuda_map *map, uint64_t deadline);
/* Local, alike on all ranks: forget what is beyond `to`, shared or not. */
void gi_cuda_map_shrink(struct gi_cuda_map *map, uint64_t to);

/* The i-th piece of memory of a slot that is mapped here; false: there is none. Local, while
 * nothing grows. */
bool gi_cuda_map_piece(const struct gi_cuda_map *map, int slot, size_t i, uint64_t *off,
                       uint64_t *bytes);

static inline uint64_t gi_cuda_slot(const struct gi_cuda_map *map, int lsa_rank)
{
    return map->base + (uint64_t)lsa_rank * map->stride;
}

#endif
