/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder share of a GPU. */
#ifndef GI_CUDA_GPU_INT_H
#define GI_CUDA_GPU_INT_H

#include "cuda/cu.h"
#include "cuda/gpu.h"

#if GI_HAVE_CUDA

#if CUDA_VERSION >= 12030
#define GI_HAVE_FABRIC 1
#else
#define GI_HAVE_FABRIC 0
#endif

/* Make the GPU's context current, and let this thread's calls pass while streams are captured;
 * both are undone by leaving. GIN_OK, or the recorded failure. */
int gi_gpu_enter(const struct gi_gpu *gpu, CUstreamCaptureMode *mode);
void gi_gpu_leave(CUstreamCaptureMode mode);

/* Of memory objects that this GPU makes. */
CUmemAllocationProp gi_gpu_properties(const struct gi_gpu *gpu);

int gi_gpu_store_open(struct gi_gpu *gpu);
void gi_gpu_store_close(struct gi_gpu *gpu);

#endif
#endif
