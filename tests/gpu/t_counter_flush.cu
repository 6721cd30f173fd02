/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local completion: counters count operations exactly once, flush makes sources reusable and got
 * bytes visible, requests can be waited for, quiet completes what a whole block issued.
 */
#include "tests/gpu/gpu.h"

#define BLOCKS  4
#define THREADS 128

__device__ static int right_of(const gin_t *g)
{
    return (g->rank + 1) % g->size;
}

__device__ static int meet(const gin_t *g, unsigned index)
{
    return gin_barrier(g, gin_block(), gin_barrier_world(), index, GIN_ORDER_ACQ_REL,
                       GIN_FENCE_ALL);
}

/* Threads, warps and the block put and get; each call counts once, whatever its group. */
__global__ void counts(gin_devcomm_t dev, gin_at_t at, unsigned long long *priv, int n,
                       struct gpu_report *r)
{
    gin_t g;
    gin_op_opt_t opt = {};
    unsigned long long *mine = priv + blockIdx.x * 4096;
    gin_at_t far = gin_at(at.win, at.off + blockIdx.x * 32768ull);
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    for (int i = 0; i < n; i++) {
        D_STEP(r, i);
        opt.local = gin_counter_inc(0);
        D_OK(r, gin_put_x(&g, gin_thread(), gin_world(&g), right_of(&g),
                          gin_at(far.win, far.off + threadIdx.x * 8ull),
                          gin_at_local(mine + threadIdx.x), 8, gin_no_action(), &opt));
        opt.local = gin_counter_inc(1);
        D_OK(r, gin_put_x(&g, gin_block(), gin_world(&g), g.rank, gin_at(far.win, far.off + 16384),
                          gin_at_local(mine + 2048), 4096, gin_weak_inc(0), &opt));
        opt.local = gin_counter_inc(2);
        D_OK(r, gin_get_x(&g, gin_warp(), gin_world(&g), right_of(&g),
                          gin_at(far.win, far.off + 8192 + threadIdx.x / 32 * 64),
                          gin_at_local(mine + 1024 + threadIdx.x / 32 * 8), 64, &opt));
        opt.local = gin_counter_inc(3);
        D_OK(r, gin_put_value_x(&g, gin_block(), gin_world(&g), right_of(&g),
                                gin_at(far.win, far.off + 24576), i, 8, gin_no_action(), &opt));
        D_OK(r, gin_put_x(&g, gin_block(), gin_world(&g), right_of(&g), far, far, 0,
                          gin_no_action(), &opt));
    }
    unsigned long long calls = (unsigned long long)n;
    D_OK(r, gin_wait_counter(&g, gin_block(), 0, calls * blockDim.x));
    D_OK(r, gin_wait_counter(&g, gin_warp(), 1, calls));
    D_OK(r, gin_wait_counter(&g, gin_thread(), 2, calls * gpu_warps()));
    D_OK(r, gin_wait_counter(&g, gin_block(), 3, calls * 2));
    D_OK(r, meet(&g, blockIdx.x));
    D_EQ(r, gin_read_counter(&g, 0), calls * blockDim.x);
    D_EQ(r, gin_read_counter(&g, 1), calls);
    D_EQ(r, gin_read_counter(&g, 2), calls * gpu_warps());
    D_EQ(r, gin_read_counter(&g, 3), calls * 2);
    D_EQ(r, gin_read_counter(&g, 4), 0);
    D_EQ(r, gin_read_signal(&g, 0), calls);
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t old = 0;
        D_OK(r, gin_reset_counter(&g, 3, &old));
        D_EQ(r, old, calls * 2);
        D_EQ(r, gin_read_counter(&g, 3), 0);
        opt.local = gin_counter_inc(3);
        D_OK(r, gin_put_x(&g, gin_thread(), gin_world(&g), g.rank, far, gin_at_local(mine), 8,
                          gin_no_action(), &opt));
        D_OK(r, gin_wait_counter(&g, gin_thread(), 3, 1));
    }
}

GPU_TEST(counters_count_each_call, 1)
{
    gin_devcomm_reqs_t reqs;
    gin_at_t at;
    unsigned long long *priv;
    gpu_reqs(&reqs);
    reqs.world_barriers = BLOCKS;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, BLOCKS * 32768, &at);
    GPU_PRIVATE(&priv, BLOCKS * 32768);
    if (p == NULL || !gpu_dev(gp, &reqs))
        return;
    counts<<<BLOCKS, THREADS, 0, gp->stream>>>(gp->dev, at, priv, gpu_rounds(gp, 300), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(priv);
}

/* The source changes right after the flush; what arrives is what was there before. */
__global__ void reuse(gin_devcomm_t dev, gin_at_t at, const unsigned *in, unsigned *src,
                      unsigned words, int how, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    int left = (g.rank + g.size - 1) % g.size;
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
            src[k] = (unsigned)gpu_word(g.rank, k + i);
        __syncthreads();
        /* one thread issues it all, a large piece too: the engine may carry that */
        if (threadIdx.x == 0) {
            gin_request_t q;
            D_OK(r, gin_put(&g, gin_thread(), gin_world(&g), right_of(&g), at, gin_at_local(src),
                            words * 4ull, gin_weak_inc(0)));
            if (how == 0)
                D_OK(r, gin_flush(&g, gin_thread()));
            if (how == 1)
                D_OK(r, gin_flush_peer(&g, gin_thread(), gin_world(&g), right_of(&g)));
            if (how >= 2) {
                D_OK(r, gin_flush_async(&g, gin_thread(), gin_world(&g), right_of(&g), &q));
                if (how == 2)
                    D_OK(r, gin_wait(&g, gin_thread(), &q));
                int st = GIN_EAGAIN;
                while (st == GIN_EAGAIN)
                    st = gin_test(&g, gin_thread(), &q);
                D_OK(r, st);
                D_OK(r, gin_test(&g, gin_thread(), &q)); /* what is done stays done */
            }
        }
        __syncthreads();
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
            src[k] = 0xdeadbeef;
        D_OK(r, gin_wait_signal(&g, gin_block(), 0, (unsigned)i));
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
            if (in[k] != (unsigned)gpu_word(left, k + i)) {
                D_EQ(r, in[k], (unsigned)gpu_word(left, k + i));
                break;
            }
        D_OK(r, meet(&g, 0));
    }
}

GPU_TEST(sources_may_change_after_flush, 1)
{
    static const unsigned words[] = {2, 300, 16384, 262144};
    gin_at_t at;
    unsigned *src;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 1 << 20, &at);
    GPU_PRIVATE(&src, 1 << 20);
    for (int i = 0; i < 16 && p != NULL && gpu_dev(gp, NULL); i++) {
        reuse<<<1, 256, 0, gp->stream>>>(gp->dev, at, (unsigned *)p, src, words[i % 4], i / 4,
                                         gpu_rounds(gp, 40), gp->report);
        if (!GPU_DONE(gp))
            FAIL("%u words, way %d", words[i % 4], i / 4);
        gpu_dev_end(gp);
    }
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(src);
}

/* Gets of all threads; after the block's flush every thread may read every byte. */
__global__ void __launch_bounds__(1024)
    gets(gin_devcomm_t dev, gin_at_t at, unsigned long long *mine, unsigned long long *got, int n,
         struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        mine[threadIdx.x] = gpu_word(g.rank + 100ull * i, threadIdx.x);
        D_OK(r, meet(&g, 0));
        D_OK(r, gin_get(&g, gin_thread(), gin_world(&g), right_of(&g),
                        gin_at(at.win, at.off + threadIdx.x * 8ull),
                        gin_at_local(got + threadIdx.x), 8));
        __syncthreads();
        D_OK(r, gin_flush(&g, gin_block()));
        unsigned other = (threadIdx.x * 7 + 3) % blockDim.x;
        D_EQ(r, got[other], gpu_word(right_of(&g) + 100ull * i, other));
        D_OK(r, meet(&g, 0));
    }
}

GPU_TEST(got_bytes_are_here_after_flush, 1)
{
    gin_at_t at;
    unsigned long long *got;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 8192, &at);
    GPU_PRIVATE(&got, 8192);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    gets<<<1, 512, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, got, gpu_rounds(gp, 1000),
                                    gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(got);
}

/* All threads put, the block synchronises, one thread's quiet and signal cover them all. */
__global__ void __launch_bounds__(1024)
    covers(gin_devcomm_t dev, gin_at_t at, const unsigned long long *in, int all, int n,
           struct gpu_report *r)
{
    gin_t g;
    int left;
    D_OK(r, gin_open(&dev, all ? GIN_ALL_CONTEXTS : 0, &g));
    gin_t one;
    D_OK(r, gin_open(&dev, 0, &one));
    left = (g.rank + g.size - 1) % g.size;
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        D_OK(r, gin_put_value(&one, gin_thread(), gin_world(&g), right_of(&g),
                              gin_at(at.win, at.off + threadIdx.x * 8ull),
                              gpu_word(g.rank + 50ull * i, threadIdx.x), 8, gin_no_action()));
        __syncthreads();
        if (threadIdx.x == 0) {
            D_OK(r, gin_quiet(&g, gin_thread()));
            D_OK(r, gin_signal(&one, gin_thread(), gin_world(&g), right_of(&g), gin_weak_inc(0)));
        }
        D_OK(r, gin_wait_signal(&one, gin_block(), 0, (unsigned)i));
        unsigned other = (threadIdx.x * 5 + 1) % blockDim.x;
        D_EQ(r, in[other], gpu_word(left + 50ull * i, other));
        D_OK(r, meet(&one, 0));
    }
}

GPU_TEST(one_threads_quiet_covers_its_block, 1)
{
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 8192, &at);
    for (int all = 0; all < 2 && p != NULL && gpu_dev(gp, NULL); all++) {
        covers<<<1, 1024, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, all,
                                           gpu_rounds(gp, 1000), gp->report);
        GPU_DONE(gp);
        gpu_dev_end(gp);
    }
    EXPECT_OK(gin_free(gp->comm, p));
}
