/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory that the program made, of all ranks: where each rank's GPU has the parts of its LSA
 * team. Ranks of this process: at their own address. Ranks of other processes: memory of
 * cuMemAlloc() is opened by its IPC handle; mapped memory is passed piece by piece as file
 * descriptors, and mapped side by side by the process' lowest LSA rank, for all of its GPUs.
 *
 * A GPU that may not use a peer's memory is no failure: then that place is unknown, and the whole
 * is not complete.
 */
#ifndef GI_TRANSPORT_CUDA_PARTS_H
#define GI_TRANSPORT_CUDA_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include "cuda/gpu.h"
#include "transport/shm/shm.h"

struct gi_cuda_parts_config {
    struct gi_shm_config shm;  /* rank, size, ranks, allgather and its arg, deadline */
    const struct gi_shm *team; /* who is with whom */
    const char *driver;        /* the driver's library, "" for the default */
    struct gi_gpu *gpu;        /* mine, or NULL */
    const int *devices;        /* by world rank, as its process numbers them; -1: none */
    const uint8_t *reach;      /* by LSA rank: whether my GPU reaches GPU memory of that rank */
    uint64_t addr, bytes;      /* my part; a rank without GPU has none (addr 0) */
};

struct gi_cuda_parts {
    bool complete;  /* every GPU reaches the parts of all of its LSA team */
    char why[128];  /* about the first part that mine does not reach, or another rank's; or "" */
    uint64_t *at;   /* by LSA rank: my GPU's address of its part, 0: none, or not reached */
    uint64_t *open; /* by LSA rank: opened by handle, 0: not */
    int n;
    struct gi_gpu *gpu;
    struct gi_cuda_pieces *pieces; /* the process', or NULL */
};

/*
 * Collective over the communicator. Fails on all ranks, with the words of the one that failed, or
 * on none.
 */
int gi_cuda_parts_open(const struct gi_cuda_parts_config *config, struct gi_cuda_parts **parts);
/* Local; every rank of the process must have stopped using it. NULL is fine. */
void gi_cuda_parts_close(struct gi_cuda_parts *parts);

#endif
