/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's own kernels, and work on streams of the program. Kernels come as a fat binary and
 * are loaded once per CUDA context, at once: a kernel that waits must never wait for the loading of
 * the one that it waits for. Nothing here waits, allocates or takes a lock, but for opening.
 */
#ifndef GI_CUDA_LAUNCH_H
#define GI_CUDA_LAUNCH_H

#include <stddef.h>
#include "cuda/gpu.h"

struct gi_kernels;

/* The fat binary of lib/cuda/kernels; NULL in a build without nvcc. */
extern const void *const gi_kernels_image;

/*
 * Make gpu->kernels: what `names` lists, shared by all GPUs of this context, with the same names.
 * They stay until the GPU is closed: unloading waits for all kernels, which may wait for this rank.
 * A failure leaves NULL, and may be tried again.
 */
int gi_kernels_open(struct gi_gpu *gpu, const char *const *names, unsigned n);
void gi_kernels_close(struct gi_gpu *gpu);

/* Whether work for this GPU may be given to a program's stream now; NULL: the default stream. */
int gi_stream_usable(const struct gi_gpu *gpu, void *stream);
/* One block; `arg` is the kernel's one argument and is copied. */
int gi_stream_launch(const struct gi_gpu *gpu, unsigned kernel, void *stream, unsigned threads,
                     void *arg);
/* Between addresses that the GPU knows, one of them at least in GPU memory. */
int gi_stream_copy(const struct gi_gpu *gpu, void *stream, uint64_t to, uint64_t from,
                   uint64_t bytes);

#endif
