/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the device code is tried: on a GPU through the CUDA runtime, or with GIN_EMULATE by threads
 * of this process. Memory is zeroed and never freed. bed_copy() works between any two places.
 */
#ifndef GINSHMEM_TESTS_GPU_BED_H
#define GINSHMEM_TESTS_GPU_BED_H

#ifdef GIN_EMULATE
#include "tests/gpu/device/emulate.h"
#endif
#include <ginshmem/amo.h>
#include <ginshmem/barrier.h>
#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>
#include <ginshmem/signal.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef GIN_EMULATE

static inline void *bed_device_alloc(size_t bytes)
{
    void *p = aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    if (p == NULL)
        abort();
    return memset(p, 0, bytes);
}

static inline void *bed_host_alloc(size_t bytes)
{
    return bed_device_alloc(bytes);
}

/* In words where it can be, as a copy engine is no tearer of words. */
static inline void bed_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

#else

#define BED_DO(call)                                                        \
    do {                                                                    \
        cudaError_t bed_st = (call);                                        \
        if (bed_st != cudaSuccess) {                                        \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(bed_st)); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

/* Copies go on a stream of their own: the kernels under test are running. */
static inline cudaStream_t bed_stream(void)
{
    static cudaStream_t s;
    if (s == NULL)
        BED_DO(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

static inline void bed_copy(void *dst, const void *src, size_t bytes)
{
    BED_DO(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, bed_stream()));
    BED_DO(cudaStreamSynchronize(bed_stream()));
}

static __attribute__((noinline, unused)) void *bed_device_alloc(size_t bytes)
{
    void *p = NULL;
    BED_DO(cudaMalloc(&p, bytes));
    BED_DO(cudaMemset(p, 0, bytes));
    BED_DO(cudaDeviceSynchronize());
    return p;
}

static __attribute__((noinline, unused)) void *bed_host_alloc(size_t bytes)
{
    void *p = NULL;
    BED_DO(cudaHostAlloc(&p, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    return memset(p, 0, bytes);
}

#endif
#endif
