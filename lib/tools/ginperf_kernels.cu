/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels of ginperf --cuda, compiled to a fat binary that the tool carries. One block each; a
 * tenth more of rounds before the clock starts.
 */
#include "ginperf_cuda.h"

/* Bare limits: no library, a release store to the partner's word, an acquiring poll of mine. */
__device__ static void store(uint64_t *p, uint64_t v)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}
__device__ static uint64_t load(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
__device__ static uint64_t now(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Round i from 1 on; the clock starts with round `warm`. */
#define ROUNDS(i, warm)                \
    uint64_t began = 0;                \
    const int warm = a.iters / 10 + 1; \
    for (int i = 1; i <= a.iters + warm; began = i == warm ? now() : began, i++)
#define TRY(call)                                        \
    do {                                                 \
        int st_ = (call);                                \
        if (st_ != GIN_OK) {                             \
            if (threadIdx.x == 0 && *a.status == GIN_OK) \
                *a.status = st_;                         \
            return;                                      \
        }                                                \
    } while (0)
#define DONE()                     \
    do {                           \
        if (threadIdx.x == 0)      \
            *a.ns = now() - began; \
    } while (0)

extern "C" __global__ void raw_pingpong(struct perf_cuda a)
{
    ROUNDS(i, warm)
    {
        if (a.first)
            store(a.theirs, (uint64_t)i);
        while (load(a.mine) < (uint64_t)i)
            ;
        if (!a.first)
            store(a.theirs, (uint64_t)i);
    }
    DONE();
}

extern "C" __global__ void value_pingpong(struct perf_cuda a)
{
    gin_t g;
    TRY(gin_open(&a.dev, 0, &g));
    ROUNDS(i, warm)
    {
        for (int half = 0; half < 2; half++)
            if (half != a.first)
                TRY(gin_wait_signal_until_at(&g, gin_thread(), a.word, GIN_CMP_GE, (uint64_t)i,
                                             NULL));
            else
                TRY(gin_put_value(&g, gin_thread(), gin_world(&g), a.peer, a.word, (uint64_t)i, 8,
                                  gin_no_action()));
    }
    DONE();
}

extern "C" __global__ void signal_pingpong(struct perf_cuda a)
{
    gin_t g;
    TRY(gin_open(&a.dev, 0, &g));
    ROUNDS(i, warm)
    {
        for (int half = 0; half < 2; half++)
            if (half != a.first)
                TRY(gin_wait_signal(&g, gin_block(), 0, (uint64_t)i));
            else
                TRY(gin_put(&g, gin_block(), gin_world(&g), a.peer, a.dst, a.src, a.bytes,
                            gin_weak_inc(0)));
    }
    DONE();
}

extern "C" __global__ void get_flush(struct perf_cuda a)
{
    gin_t g;
    TRY(gin_open(&a.dev, 0, &g));
    ROUNDS(i, warm)
    {
        TRY(gin_get(&g, gin_block(), gin_world(&g), a.peer, a.src, a.dst, a.bytes));
        TRY(gin_flush(&g, gin_block()));
    }
    DONE();
}

extern "C" __global__ void put_quiet_thread(struct perf_cuda a)
{
    gin_t g;
    TRY(gin_open(&a.dev, 0, &g));
    ROUNDS(i, warm)
    {
        TRY(gin_put(&g, gin_thread(), gin_world(&g), a.peer, a.dst, a.src, a.bytes,
                    gin_no_action()));
        TRY(gin_quiet(&g, gin_thread()));
    }
    DONE();
}

extern "C" __global__ void barriers(struct perf_cuda a)
{
    gin_t g;
    TRY(gin_open(&a.dev, 0, &g));
    ROUNDS(i, warm)
    {
        TRY(gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
    DONE();
}

/* A word of host memory has the CPU as its applier: there and back through the engine. */
extern "C" __global__ void engine_hop(struct perf_cuda a)
{
    gin_t g;
    uint64_t old;
    TRY(gin_open(&a.dev, 0, &g));
    ROUNDS(i, warm)
    {
        TRY(gin_amo_fetch_add(&g, gin_thread(), gin_world(&g), g.rank, a.host, 1, &old));
    }
    DONE();
}
