/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the program made: what the driver knows of an address, and showing GPU memory to
 * other processes. Memory of cuMemAlloc() or cudaMalloc() goes by the driver's IPC handles, which
 * stand for a whole allocation; memory that was mapped (cuMemMap) goes piece by piece, as the
 * objects behind it.
 */
#ifndef GI_CUDA_MEMORY_H
#define GI_CUDA_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include "cuda/gpu.h"

enum gi_gpu_memory {
    GI_GPU_UNKNOWN, /* the driver does not know it: ordinary host memory */
    GI_GPU_PINNED,  /* host memory that GPUs reach at the same address */
    GI_GPU_DEVICE,  /* a GPU's */
    GI_GPU_MANAGED  /* migrates */
};

struct gi_gpu_range {
    enum gi_gpu_memory place;
    int device;            /* DEVICE: whose, as this process numbers them */
    void *context;         /* of cuMemAlloc(): which CUDA context's, else NULL */
    bool legacy;           /* DEVICE: an IPC handle can be had for it */
    uint64_t start, bytes; /* PINNED: what was pinned at once */
};

/*
 * What the driver knows of an address. Where this process has not opened the driver, nothing (and
 * it is not opened for this).
 */
void gi_gpu_look(const char *driver, uint64_t addr, struct gi_gpu_range *range);

/* The allocation of cuMemAlloc() that holds addr. */
int gi_gpu_allocation(struct gi_gpu *gpu, uint64_t addr, uint64_t *start, uint64_t *bytes);

/* ---- IPC handles ---- */

struct gi_gpu_ipc {
    unsigned char bytes[64];
};

/* Of the allocation that starts at addr. */
int gi_gpu_ipc_get(struct gi_gpu *gpu, uint64_t addr, struct gi_gpu_ipc *handle);
/* Another process' allocation, for this GPU: opened once per CUDA context, and counted. */
int gi_gpu_ipc_open(struct gi_gpu *gpu, const struct gi_gpu_ipc *handle, uint64_t *addr);
void gi_gpu_ipc_close(struct gi_gpu *gpu, uint64_t addr);
/* Let this GPU reach what another CUDA context of this process has allocated, now and later. */
int gi_gpu_befriend(struct gi_gpu *gpu, void *context);

/* ---- mapped memory ---- */

struct gi_gpu_piece {
    uint64_t object; /* to be released */
    uint64_t addr, bytes;
};

/*
 * The pieces that hold [addr, addr + bytes), by address, *n of them in an array that is the
 * caller's. share: they must be such as other processes can have.
 */
int gi_gpu_pieces(struct gi_gpu *gpu, uint64_t addr, uint64_t bytes, bool share,
                  struct gi_gpu_piece **pieces, uint32_t *n);
void gi_gpu_pieces_free(struct gi_gpu_piece *pieces, uint32_t n);

#endif
