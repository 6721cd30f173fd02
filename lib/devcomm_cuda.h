/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device communicator's side for kernels: struct gin_i_dc and all it leads to, in one block of
 * GPU memory; what the host writes and kernels read (the error word, the rings), in one block of
 * pinned host memory.
 */
#ifndef GI_DEVCOMM_CUDA_H
#define GI_DEVCOMM_CUDA_H

#include "cuda_up.h"
#include "devcomm.h"
#include "ring.h"

struct gi_kernel_side {
    struct gi_gpu *gpu;
    uint64_t block, used; /* in GPU memory; bytes handed out while it is filled */
    char *image;          /* of the block, until it is written */
    char *host;           /* pinned block: error word, then one part per ring */
    uint64_t host_addr;   /* the GPU's address of it */
    uint64_t lsa_of;      /* in the block */
    uint64_t *error;      /* 0, or (uint32_t)status | rank << 32 */
    uint32_t n_rings;
    struct gi_ring *rings;

    struct gi_devcomm *next; /* engine.c: the next one that it serves */
    bool served;
};

/* Bytes of symmetric GPU memory that a device communicator takes; the same on all ranks. Sets the
 * offsets in it, from its start. */
uint64_t gi_devcomm_cuda_plan(struct gi_devcomm *d);
/* Room for a part of the block: where it lies in the image, and at which GPU address. */
void *gi_kernel_take(struct gi_kernel_side *k, uint64_t bytes, uint64_t *addr);
#define GI_KERNEL_ROOM(n) (((uint64_t)(n) + 127) & ~(uint64_t)127)

/* ---- devcomm_colls.c ---- */

/* Bytes of the workspaces in symmetric GPU memory, which are 64-byte aligned; of words in the host
 * heap. 0: no collectives, or nobody to meet. The same on all ranks. */
uint64_t gi_kernel_colls_bytes(const struct gi_devcomm *d);
uint64_t gi_kernel_colls_words(const struct gi_devcomm *d);
/* Bytes of what kernels see of them, and filling it: its address, 0: there are none. */
uint64_t gi_kernel_colls_room(const struct gi_devcomm *d);
uint64_t gi_kernel_colls_fill(const struct gi_devcomm *d, struct gi_kernel_side *k);

/* Local, on ranks whose device is CUDA, with the symmetric blocks taken: makes d->kernel. */
int gi_devcomm_cuda_open(struct gi_devcomm *d);
void gi_devcomm_cuda_close(struct gi_devcomm *d);
/* Fill what the program passes to kernels. */
void gi_devcomm_cuda_show(const struct gi_devcomm *d, gin_devcomm_t *dev);

#endif
