/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory model from kernels: message passing, strong signals, fences, store buffering with
 * quiet, causality over three ranks; by threads, warps and blocks, with senders and receivers of
 * one GPU or several.
 */
#include "tests/gpu/gpu.h"

__device__ static int right_of(const gin_t *g)
{
    return (g->rank + 1) % g->size;
}

__device__ static int left_of(const gin_t *g)
{
    return (g->rank + g->size - 1) % g->size;
}

/* Message passing: the rank's group writes its data with plain stores into its own memory and puts
 * it; who sees the signal sees all of it. Acknowledged, so that rounds do not mix. */
template <int KIND>
__global__ void message(gin_devcomm_t dev, gin_at_t at, const unsigned *in, unsigned *src,
                        unsigned words, int strong, int n, struct gpu_report *r)
{
    gin_t g;
    struct gpu_place p = gpu_place_of((enum gpu_kind)KIND);
    unsigned index = blockIdx.x * p.groups + p.group, members = 1, me = 0;
    if (KIND == K_WARP) {
        members = blockDim.x < 32 ? blockDim.x : 32;
        me = threadIdx.x % 32;
    } else if (KIND == K_BLOCK) {
        members = blockDim.x;
        me = threadIdx.x;
    }
    gin_at_t place = gin_at(at.win, at.off + index * words * 4ull);
    in += (size_t)index * words;
    src += (size_t)index * words;
    D_OK(r, gin_open(&dev, 0, &g));
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        for (unsigned k = me; k < words; k += members)
            src[k] = (unsigned)gpu_word((unsigned)g.rank, k + (unsigned)i * 3u);
        if (strong) { /* the data in halves, then a signal of its own */
            unsigned half = words / 2;
            D_OK(r, gin_put(&g, p.grp, gin_world(&g), right_of(&g), place, gin_at_local(src),
                            half * 4ull, gin_no_action()));
            D_OK(r, gin_put(&g, p.grp, gin_world(&g), right_of(&g),
                            gin_at(place.win, place.off + half * 4ull), gin_at_local(src + half),
                            (words - half) * 4ull, gin_no_action()));
            D_OK(r, gin_signal(&g, p.grp, gin_world(&g), right_of(&g), gin_strong_inc(2 * index)));
        } else {
            D_OK(r, gin_put(&g, p.grp, gin_world(&g), right_of(&g), place, gin_at_local(src),
                            words * 4ull, gin_weak_inc(2 * index)));
        }
        D_OK(r, gin_wait_signal(&g, p.grp, 2 * index, (unsigned)i));
        for (unsigned k = me; k < words; k += members) {
            unsigned want = (unsigned)gpu_word((unsigned)left_of(&g), k + (unsigned)i * 3u);
            if (in[k] != want) {
                D_EQ(r, in[k], want);
                break;
            }
        }
        D_OK(r, gin_signal(&g, p.grp, gin_world(&g), left_of(&g), gin_weak_inc(2 * index + 1)));
        D_OK(r, gin_wait_signal(&g, p.grp, 2 * index + 1, (unsigned)i));
    }
}

GPU_TEST(signals_cover_data, 1)
{
    static const unsigned words[] = {1, 2, 33, 1025};
    gin_devcomm_reqs_t reqs;
    gin_at_t at;
    unsigned *src;
    const size_t bytes = 4 * 64 * 1025 * 4;
    gpu_reqs(&reqs);
    reqs.signals = 4 * 64 * 2;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, bytes, &at);
    GPU_PRIVATE(&src, bytes);
    for (int i = 0; i < 24 && p != NULL && gpu_dev(gp, &reqs); i++) {
        int n = gpu_rounds(gp, 1500), strong = i / 12;
        unsigned w = words[i / 3 % 4], *in = (unsigned *)p;
        if (i % 3 == 0)
            message<K_THREAD>
                <<<4, 64, 0, gp->stream>>>(gp->dev, at, in, src, w, strong, n / 5, gp->report);
        else if (i % 3 == 1)
            message<K_WARP>
                <<<4, 64, 0, gp->stream>>>(gp->dev, at, in, src, w, strong, n, gp->report);
        else
            message<K_BLOCK>
                <<<4, 64, 0, gp->stream>>>(gp->dev, at, in, src, w, strong, n, gp->report);
        if (!GPU_DONE(gp))
            FAIL("kind of group %d, %u words, %s", i % 3, w, strong ? "strong" : "weak");
        gpu_dev_end(gp);
    }
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(src);
}

/* Strong covers earlier signals too: who sees slot 1 has all increments of slot 0. */
__global__ void covers_signals(gin_devcomm_t dev, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        for (int k = 0; k < 5; k++)
            D_OK(r, gin_signal(&g, gin_block(), gin_world(&g), right_of(&g), gin_weak_inc(0)));
        D_OK(r, gin_signal(&g, gin_block(), gin_world(&g), right_of(&g), gin_strong_inc(1)));
        D_OK(r, gin_wait_signal(&g, gin_block(), 1, (unsigned)i));
        D_EXPECT(r, gin_read_signal(&g, 0) >= 5ull * i);
    }
}

GPU_TEST(strong_covers_signals, 1)
{
    if (!gpu_dev(gp, NULL))
        return;
    covers_signals<<<1, 32, 0, gp->stream>>>(gp->dev, gpu_rounds(gp, 5000), gp->report);
    GPU_DONE(gp);
}

/* A fence between two puts: who sees the second, polled with plain loads, sees the first. */
__global__ void fenced(gin_devcomm_t dev, gin_at_t at, const unsigned long long *mine, int all,
                       int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_at_t flag = gin_at(at.win, at.off + 512);
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        D_STEP(r, i);
        D_OK(r, gin_put_value(&g, gin_warp(), gin_world(&g), right_of(&g), at, i * 3, 8,
                              gin_no_action()));
        D_OK(r, all ? gin_fence_all(&g, gin_warp())
                    : gin_fence(&g, gin_warp(), gin_world(&g), right_of(&g)));
        D_OK(r, gin_put_value(&g, gin_warp(), gin_world(&g), right_of(&g), flag, i, 8,
                              gin_no_action()));
        D_OK(r, gin_wait_signal_until_at(&g, gin_warp(), flag, GIN_CMP_EQ, i, NULL));
        D_EQ(r, gpu_look(&mine[0]), i * 3);
        D_OK(r, gin_barrier(&g, gin_warp(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
    }
}

GPU_TEST(fence_orders_two_puts, 1)
{
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 1024, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    for (int all = 0; all < 2; all++) {
        fenced<<<1, 32, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, all,
                                         gpu_rounds(gp, 4000), gp->report);
        GPU_DONE(gp);
        gpu_fill(p, 0, 1024);
        CU(cudaDeviceSynchronize());
        EXPECT_OK(gin_comm_barrier(gp->comm));
    }
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* Store buffering: each puts into the other's word, quiet, looks at its own. After quiet the put is
 * visible to plain loads, so not both may miss the other's. Ranks in pairs. */
__global__ void buffering(gin_devcomm_t dev, gin_at_t at, const unsigned long long *mine,
                          unsigned char *seen, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    int peer = g.rank ^ 1;
    for (int i = 0; i < n; i++) {
        D_STEP(r, i);
        D_OK(r, gin_barrier(&g, gin_warp(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
        if (peer < g.size && threadIdx.x == 0) {
            D_OK(r, gin_put_value(&g, gin_thread(), gin_world(&g), peer, at, i + 1, 8,
                                  gin_no_action()));
            D_OK(r, gin_quiet(&g, gin_thread()));
            seen[i] = gpu_look(mine) == (unsigned long long)i + 1;
        }
        __syncwarp();
    }
}

GPU_TEST(quiet_before_later_loads, 2)
{
    gin_at_t at;
    int n = gpu_rounds(gp, 20000), missed = 0;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    unsigned char *seen, *host = (unsigned char *)calloc(20000, 1);
    unsigned char *all = (unsigned char *)calloc(20000, (size_t)gp->size);
    GPU_PRIVATE(&seen, 20000);
    gpu_fill(seen, 1, 20000);
    CU(cudaDeviceSynchronize());
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    buffering<<<1, 32, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, seen, n, gp->report);
    GPU_DONE(gp);
    CU(cudaMemcpy(host, seen, (size_t)n, cudaMemcpyDefault));
    EXPECT_OK(gin_comm_allgather(gp->comm, host, all, 20000));
    for (int r = 0; r + 1 < gp->size; r += 2)
        for (int i = 0; i < n; i++)
            missed += !all[r * 20000 + i] && !all[(r + 1) * 20000 + i];
    EXPECT_EQ_INT(missed, 0);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(seen);
    free(host);
    free(all);
}

/* Rank 0 puts to rank 1, quiet, tells rank 2, which gets from rank 1: it must be new. Then rank 2
 * tells rank 1 by a put and a signal, which looks at its own word: it must be new there, too. */
__global__ void third(gin_devcomm_t dev, gin_at_t at, const unsigned long long *mine, int n,
                      struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t w = gin_world(&g);
    gin_group_t b = gin_block();
    __shared__ unsigned long long got;
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        D_STEP(r, i);
        if (g.rank == 0) {
            D_OK(r, gin_put_value(&g, b, w, 1, at, i, 8, gin_no_action()));
            D_OK(r, gin_quiet(&g, b));
            D_OK(r, gin_signal(&g, b, w, 2, gin_weak_inc(0)));
            D_OK(r, gin_wait_signal(&g, b, 1, i));
        } else if (g.rank == 2) {
            D_OK(r, gin_wait_signal(&g, b, 0, i));
            D_OK(r, gin_get(&g, b, w, 1, at, gin_at_local(&got), 8));
            D_OK(r, gin_flush(&g, b));
            D_EQ(r, gpu_look(&got), i);
            __syncthreads();
            D_OK(r, gin_signal(&g, b, w, 1, gin_weak_inc(2)));
        } else if (g.rank == 1) {
            D_OK(r, gin_wait_signal(&g, b, 2, i));
            D_EQ(r, gpu_look(mine), i);
            __syncthreads();
            D_OK(r, gin_signal(&g, b, w, 0, gin_weak_inc(1)));
        }
    }
}

GPU_TEST(causality_over_three_ranks, 3)
{
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    third<<<1, 64, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, gpu_rounds(gp, 5000),
                                    gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* The other threads of the block wrote; one thread puts after __syncthreads(): its put and signal
 * release what they wrote, also what goes by plain stores through a peer's pointer. */
__global__ void others_stores(gin_devcomm_t dev, gin_at_t at, const unsigned *in, unsigned *src,
                              int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    unsigned *far =
        (unsigned *)gin_peer_ptr(&g, gin_world(&g), right_of(&g), gin_at(at.win, at.off + 4096));
    if (!D_EXPECT(r, far != NULL))
        return;
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        src[threadIdx.x] = (unsigned)gpu_word((unsigned)g.rank, threadIdx.x + (unsigned)i);
        far[threadIdx.x] = (unsigned)gpu_word((unsigned)g.rank, threadIdx.x + 2u * (unsigned)i);
        __syncthreads();
        if (threadIdx.x == 0)
            D_OK(r, gin_put(&g, gin_thread(), gin_world(&g), right_of(&g), at, gin_at_local(src),
                            blockDim.x * 4ull, gin_weak_inc(0)));
        D_OK(r, gin_wait_signal(&g, gin_block(), 0, (unsigned)i));
        unsigned k = (threadIdx.x + 5) % blockDim.x;
        D_EQ(r, in[k], (unsigned)gpu_word((unsigned)left_of(&g), k + (unsigned)i));
        D_EQ(r, in[1024 + k], (unsigned)gpu_word((unsigned)left_of(&g), k + 2u * (unsigned)i));
        D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
    }
}

GPU_TEST(signals_release_the_blocks_stores, 1)
{
    gin_at_t at;
    unsigned *src;
    if (gpu_net_skips(gp, "signals_release_the_blocks_stores"))
        return;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 8192, &at);
    GPU_PRIVATE(&src, 4096);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    others_stores<<<1, 256, 0, gp->stream>>>(gp->dev, at, (unsigned *)p, src, gpu_rounds(gp, 3000),
                                             gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(src);
}

/* A large put by one thread may go by the copy engine; a strong signal of its own covers it, and
 * small puts before and after. What was waited for is there for the next kernel, too. */
__global__ void large_then_signal(gin_devcomm_t dev, gin_at_t at, gin_at_t from, uint64_t *mine,
                                  unsigned words, unsigned round, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
        mine[k] = gpu_word((unsigned)g.rank + round, k);
    __syncthreads();
    if (threadIdx.x == 0) {
        const gin_team_t w = gin_world(&g);
        const int right = right_of(&g);
        D_OK(r, gin_put(&g, gin_thread(), w, right, at, from, 8ull * words, gin_no_action()));
        D_OK(r, gin_put_value(&g, gin_thread(), w, right, gin_at(at.win, at.off + 8ull * words),
                              round, 8, gin_no_action()));
        D_OK(r, gin_signal(&g, gin_thread(), w, right, gin_strong_inc(0)));
        D_OK(r, gin_wait_signal(&g, gin_thread(), 0, round));
        D_OK(r, gin_flush(&g, gin_thread())); /* the next round writes the source again */
    }
}

__global__ void look_at_large(gin_devcomm_t dev, const uint64_t *in, unsigned words, unsigned round,
                              struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
        if (gpu_look(&in[k]) != gpu_word((unsigned)left_of(&g) + round, k)) {
            D_EQ(r, k, -1);
            break;
        }
    D_EQ(r, gpu_look(&in[words]), round);
    D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                        GIN_FENCE_NONE)); /* before the next round overwrites it */
}

GPU_TEST(strong_signal_behind_a_large_put, 1)
{
    const unsigned words = 16384; /* 128 KiB: by the copy engine, where there is an engine */
    gin_at_t at, from;
    uint64_t *in = (uint64_t *)gpu_symmetric(gp, GIN_KIND_CUDA, 8 * words + 64, &at);
    uint64_t *out = (uint64_t *)gpu_symmetric(gp, GIN_KIND_CUDA, 8 * words, &from);
    if (in == NULL || out == NULL || !gpu_dev(gp, NULL))
        return;
    for (unsigned round = 1; round <= (unsigned)gpu_cases(gp, 50, 3); round++) {
        large_then_signal<<<1, 256, 0, gp->stream>>>(gp->dev, at, from, out, words, round,
                                                     gp->report);
        look_at_large<<<1, 256, 0, gp->stream>>>(gp->dev, in, words, round, gp->report);
    }
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, out));
    EXPECT_OK(gin_free(gp->comm, in));
}

/* ---- all LSA ranks at once ---- */

__global__ void everybody(gin_devcomm_t dev, gin_at_t at, uint64_t *mine, uint64_t *sums, int n,
                          struct gpu_report *r)
{
    gin_t g;
    const unsigned words = 300;
    D_OK(r, gin_open(&dev, 0, &g));
    const int size = gin_lsa(&g).size, me = gin_lsa(&g).rank;
    gin_at_t board = gin_at(at.win, at.off + 8192);
    for (int i = 1; i <= n; i++) {
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
            mine[k] = gpu_word((unsigned)me, k + (unsigned)i);
        D_OK(r,
             gin_barrier(&g, gin_block(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        D_OK(r,
             gin_lsa_reduce(&g, gin_block(), gin_at_local(sums), at, words, GIN_UINT64, GIN_SUM));
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x) {
            unsigned long long want = 0;
            for (int p = 0; p < size; p++)
                want += gpu_word((unsigned)p, k + (unsigned)i);
            D_EQ(r, sums[k], want);
        }
        if (i % size == me)
            D_OK(r, gin_lsa_broadcast(&g, gin_block(), board, gin_at_local(sums), 8ull * words));
        D_OK(r, gin_lsa_add(&g, gin_block(), gin_at(at.win, at.off + 16384), 1));
        D_OK(r,
             gin_barrier(&g, gin_block(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
        const uint64_t *there = mine + 1024;
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
            D_EQ(r, gpu_look(&there[k]), sums[k]);
        D_EQ(r, gin_read_signal_at(&g, gin_at(at.win, at.off + 16384)), i * size);
        D_OK(r,
             gin_barrier(&g, gin_block(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
}

GPU_TEST(all_lsa_ranks_at_once, 1)
{
    gin_at_t at;
    if (gpu_net_skips(gp, "all_lsa_ranks_at_once"))
        return;
    uint64_t *sums, *p = (uint64_t *)gpu_symmetric(gp, GIN_KIND_CUDA, 20480, &at);
    GPU_PRIVATE(&sums, 4096);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    everybody<<<1, 192, 0, gp->stream>>>(gp->dev, at, p, sums, gpu_rounds(gp, 300), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    gpu_private_free(sums);
    EXPECT_OK(gin_free(gp->comm, p));
}
