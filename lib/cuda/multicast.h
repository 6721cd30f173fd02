/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast objects of the driver: memory of several GPUs behind one address, to which a store goes
 * everywhere and from which a load brings a reduction. An object is exported, imported, mapped and
 * released as memory objects are (gpu.h). In a build without CUDA, or with a driver that knows
 * none, gi_gpu_multicast_can() says so, and nothing else may be called.
 */
#ifndef GI_CUDA_MULTICAST_H
#define GI_CUDA_MULTICAST_H

#include "cuda/gpu.h"

bool gi_gpu_multicast_can(const struct gi_gpu *gpu, char *why, size_t n);
/* What sizes and offsets of an object for so many GPUs are multiples of. */
int gi_gpu_multicast_granule(int gpus, uint64_t bytes, uint64_t *granule);
int gi_gpu_multicast_create(int gpus, uint64_t bytes, uint64_t *object);
/* Every GPU is added before any memory is bound. */
int gi_gpu_multicast_add(uint64_t object, const struct gi_gpu *gpu);
/* [addr, addr + bytes), one mapping of gpu's memory, becomes gpu's part at `off`. */
int gi_gpu_multicast_bind(uint64_t object, const struct gi_gpu *gpu, uint64_t off, uint64_t addr,
                          uint64_t bytes);
void gi_gpu_multicast_unbind(uint64_t object, const struct gi_gpu *gpu, uint64_t off,
                             uint64_t bytes);

#endif
