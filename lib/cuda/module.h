/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels loaded and launched through the driver, for a tool that has none of CUDA's runtime. One
 * GPU per process, whose primary context becomes the calling thread's current one.
 */
#ifndef GI_CUDA_MODULE_H
#define GI_CUDA_MODULE_H

#include <stddef.h>
#include <stdint.h>

/* GPU `local_rank` modulo their number, and the kernels of a fat binary. 0, or -1 with why. */
int gi_module_open(const void *image, int local_rank, char *why, size_t n);
/* Pinned host memory that kernels write at the same address, zeroed; NULL: none. */
void *gi_module_host_alloc(size_t bytes);
/* Run a kernel with one argument, passed by value, to its end. 0, or -1 with why. */
int gi_module_run(const char *kernel, unsigned blocks, unsigned threads, void *arg, char *why,
                  size_t n);
/* Copy between GPU addresses `times` times, to the end. 0, or -1 with why. */
int gi_module_copy(uint64_t to, uint64_t from, size_t bytes, int times, char *why, size_t n);

#endif
