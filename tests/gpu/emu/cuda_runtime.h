/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CUDA's runtime as host threads, as far as the GPU tests and examples use it, so that their logic
 * can be tried where there is no GPU. A block is one thread; memory is ordinary memory; a stream
 * runs one kernel after the other. tests/gpu/emulate turns kernel<<<...>>>(...) into
 * emu_launch(kernel, emu_cfg(...))(...).
 */
#ifndef GINSHMEM_TESTS_GPU_EMU_H
#define GINSHMEM_TESTS_GPU_EMU_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sched.h>
#include <atomic>
#include <thread>
#include <vector>

#include <ginshmem.h>

#define GPU_EMULATED 1
#define __global__   static
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __noinline__

/* Kernels are host threads: groups of one, on the host. */
#define gin_block()            gin_thread()
#define gin_warp()             gin_thread()
#define gin_tile(size)         ((void)(size), gin_thread())
#define gin_lanes(mask)        ((void)(mask), gin_thread())
#define gin_warp_span(a, b, c) ((void)(a), (void)(b), (void)(c), gin_thread())
#define GIN_KIND_CUDA          GIN_KIND_HOST
#define GIN_DEVICE_CUDA        GIN_DEVICE_HOST

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};
static thread_local dim3 blockIdx, threadIdx, gridDim, blockDim;

typedef int cudaError_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600 };
enum { cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaStreamNonBlocking = 1 };
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum { cudaDevAttrClockRate = 13, cudaDevAttrMultiProcessorCount = 16 };

struct emu_stream {
    std::vector<std::thread> threads;
    std::atomic<int> running{0};
};
typedef struct emu_stream *cudaStream_t;
typedef double *cudaEvent_t;

static inline std::vector<emu_stream *> &emu_streams(void)
{
    static thread_local std::vector<emu_stream *> all;
    return all;
}
static inline emu_stream *emu_default(void)
{
    static thread_local emu_stream s;
    return &s;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    for (auto &t : (s ? s : emu_default())->threads)
        t.join();
    (s ? s : emu_default())->threads.clear();
    return cudaSuccess;
}
static inline cudaError_t cudaStreamQuery(cudaStream_t s)
{
    return (s ? s : emu_default())->running ? cudaErrorNotReady : cudaSuccess;
}
static inline cudaError_t cudaDeviceSynchronize(void)
{
    cudaStreamSynchronize(NULL);
    for (emu_stream *s : emu_streams())
        cudaStreamSynchronize(s);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    *s = new emu_stream;
    emu_streams().push_back(*s);
    return cudaSuccess;
}
static inline cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    return cudaStreamCreateWithFlags(s, 0);
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    auto &all = emu_streams();
    cudaStreamSynchronize(s);
    for (size_t i = 0; i < all.size(); i++)
        if (all[i] == s)
            all.erase(all.begin() + (long)i--);
    delete s;
    return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e ? "emulated failure" : "no error";
}
static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *n)
{
    const char *text = getenv("EMU_DEVICES");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *n = visible && visible[0] == 0 ? 0 : text ? atoi(text) : 4;
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *v, int what, int)
{
    *v = what == cudaDevAttrClockRate ? 1000000 : 2; /* clock64() counts nanoseconds */
    return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    *free = *total = (size_t)1 << 30;
    return cudaSuccess;
}
static inline cudaError_t emu_malloc(void **p, size_t n)
{
    *p = aligned_alloc(256, (n + 255) / 256 * 256);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t n)
{
    return emu_malloc((void **)p, n);
}
template <class T> static inline cudaError_t cudaHostAlloc(T **p, size_t n, unsigned)
{
    return emu_malloc((void **)p, n);
}
template <class T> static inline cudaError_t cudaMallocHost(T **p, size_t n)
{
    return emu_malloc((void **)p, n);
}
static inline cudaError_t cudaFree(void *p)
{
    free(p);
    return cudaSuccess;
}
static inline cudaError_t cudaFreeHost(void *p)
{
    return cudaFree(p);
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind,
                                          cudaStream_t s = NULL)
{
    cudaStreamSynchronize(s);
    memcpy(to, from, n);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind k)
{
    cudaDeviceSynchronize();
    return cudaMemcpyAsync(to, from, n, k);
}
static inline cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s = NULL)
{
    cudaStreamSynchronize(s);
    memset(p, v, n);
    return cudaSuccess;
}
static inline cudaError_t cudaMemset(void *p, int v, size_t n)
{
    cudaDeviceSynchronize();
    return cudaMemsetAsync(p, v, n);
}

static inline long long clock64(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    *e = new double;
    return cudaSuccess;
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = NULL)
{
    cudaStreamSynchronize(s);
    *e = (double)clock64();
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    *ms = (float)((*b - *a) * 1e-6);
    return cudaSuccess;
}

/* ---- what kernels call ---- */

static inline void __syncthreads(void)
{
}
static inline void __syncwarp(unsigned = 0)
{
}
static inline void __threadfence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system(void)
{
    __threadfence();
}
static inline void __nanosleep(unsigned)
{
    sched_yield();
}
template <class T, class U> static inline T atomicAdd(T *p, U v)
{
    return __atomic_fetch_add(p, (T)v, __ATOMIC_RELAXED);
}
template <class T, class U> static inline T atomicMax(T *p, U v)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < (T)v &&
           !__atomic_compare_exchange_n(p, &old, (T)v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}

/* ---- launches ---- */

struct emu_config {
    unsigned blocks;
    emu_stream *stream;
};
static inline emu_config emu_cfg(dim3 blocks, dim3 = 1, size_t = 0, cudaStream_t s = NULL)
{
    return {blocks.x, s ? s : emu_default()};
}

template <class F> struct emu_kernel {
    F kernel;
    emu_config cfg;
    template <class... A> void operator()(A... args)
    {
        F k = kernel;
        unsigned n = cfg.blocks;
        emu_stream *stream = cfg.stream;
        cudaStreamSynchronize(stream);
        stream->running = (int)n;
        for (unsigned b = 0; b < n; b++)
            stream->threads.emplace_back([=] {
                blockIdx = dim3(b, 0, 0);
                threadIdx = dim3(0, 0, 0);
                gridDim = dim3(n);
                blockDim = dim3(1);
                k(args...);
                stream->running--;
            });
    }
};
template <class F> static inline emu_kernel<F> emu_launch(F kernel, emu_config cfg)
{
    return {kernel, cfg};
}

#endif
