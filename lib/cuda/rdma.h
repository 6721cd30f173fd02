/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU's memory for other devices: as a DMA-BUF, and what has to be done before the GPU sees what
 * a network device has written there.
 */
#ifndef GI_CUDA_RDMA_H
#define GI_CUDA_RDMA_H

#include <stdbool.h>
#include <stdint.h>
#include "cuda/gpu.h"

/* The calling thread has a CUDA context, of whomever. False where this process has not opened the
 * driver, which is not opened for this. */
bool gi_gpu_has_context(const char *driver);

/*
 * A descriptor of a DMA-BUF that holds [addr, addr + bytes) from *off of it on; the caller's, to be
 * closed once a device has registered it. The buffer consists of whole pages of the host.
 */
int gi_gpu_dmabuf(struct gi_gpu *gpu, uint64_t addr, uint64_t bytes, int *fd, uint64_t *off);

/* Copies by the driver, of the memory around addr, that are said to be done when a call returns are
 * done then, for devices too. What cannot be set stays as it is. */
void gi_gpu_sync_memops(struct gi_gpu *gpu, uint64_t addr);

enum gi_gpu_order {
    GI_GPU_ORDER_NONE,  /* what devices write, kernels may see later than what is told of it */
    GI_GPU_ORDER_FLUSH, /* ... unless gi_gpu_rdma_flush() was called between */
    GI_GPU_ORDER_KEPT
};
enum gi_gpu_order gi_gpu_rdma_order(const struct gi_gpu *gpu);
/* What devices have written by now is seen by this GPU's kernels. */
int gi_gpu_rdma_flush(struct gi_gpu *gpu);

#endif
