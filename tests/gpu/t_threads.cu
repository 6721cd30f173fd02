/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are threads of one process, each with a GPU of its own or sharing one. */
#include <unistd.h>
#include "tests/gpu/gpu.h"

#define BLOCKS 4

/* Put to the right, get from the left, signals, words and barriers, some blocks at once. */
__global__ void ring(gin_devcomm_t dev, gin_at_t at, unsigned long long *mine, int n,
                     struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    gin_team_t w = gin_world(&g);
    gin_group_t b = gin_block();
    int right = (g.rank + 1) % g.size, left = (g.rank + g.size - 1) % g.size;
    const unsigned words = 512;
    unsigned long long base = blockIdx.x * 3ull * words;
    unsigned long long *out = mine + base, *in = out + words, *got = in + words;
    gin_at_t a_out = gin_at(at.win, at.off + base * 8);
    gin_at_t a_in = gin_at(at.win, a_out.off + words * 8);
    gin_at_t a_got = gin_at(at.win, a_in.off + words * 8);
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        D_STEP(r, i);
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x)
            out[k] = gpu_word((unsigned)g.rank + 100ull * i, k);
        __syncthreads();
        D_OK(r, gin_put(&g, b, w, right, a_in, a_out, words * 8, gin_weak_inc(0)));
        D_OK(r, gin_wait_signal(&g, b, 0, i));
        D_OK(r, gin_get(&g, b, w, left, a_out, a_got, words * 8));
        D_OK(r, gin_flush(&g, b));
        for (unsigned k = threadIdx.x; k < words; k += blockDim.x) {
            D_EQ(r, in[k], gpu_word((unsigned)left + 100ull * i, k));
            D_EQ(r, got[k], gpu_word((unsigned)left + 100ull * i, k));
        }
        D_OK(r,
             gin_barrier(&g, b, gin_barrier_world(), blockIdx.x, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
}

static void run_ring(struct mp *mp, int device)
{
    struct gpu gp;
    char why[200] = "";
    gin_at_t at;
    gin_devcomm_reqs_t reqs;
    if (!gpu_open(&gp, mp->comm, device, why, sizeof(why)))
        MP_SKIP("%s", why);
    gpu_reqs(&reqs);
    reqs.world_barriers = BLOCKS;
    void *p = gpu_symmetric(&gp, GIN_KIND_CUDA, BLOCKS * 3 * 512 * 8, &at);
    if (p == NULL || !gpu_dev(&gp, &reqs))
        return;
    /* all kernels must run at once: none may wait for another rank's launch or allocation */
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    mp_step(mp, "kernel");
    ring<<<BLOCKS, 128, 0, gp.stream>>>(gp.dev, at, (unsigned long long *)p, 1000, gp.report);
    GPU_DONE(&gp);
    mp_step(mp, "kernel done");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    gpu_dev_end(&gp);
    EXPECT_OK(gin_free(mp->comm, p));
    gpu_close(&gp);
}

static int devices(void)
{
    char why[200];
    return gpu_count(why, sizeof(why));
}

MP_TEST_OPT(a_gpu_for_each_thread, .ranks = "1 2 4", .only = MP_THREADS)
{
    int n = devices();
    if (n < mp->size)
        MP_SKIP("%d GPUs for %d threads", n, mp->size);
    run_ring(mp, mp->rank);
}

MP_TEST_OPT(threads_share_a_gpu, .ranks = "2 3", .only = MP_THREADS)
{
    if (devices() == 0)
        MP_SKIP("no GPU");
    run_ring(mp, 0);
}

MP_TEST_OPT(two_threads_each_on_two_gpus, .ranks = "4", .only = MP_THREADS)
{
    if (devices() < 2)
        MP_SKIP("%d GPUs", devices());
    run_ring(mp, mp->rank % 2);
}

/* Twice in one process: nothing is left of the first communicator that hinders the second. */
MP_TEST_OPT(one_after_the_other, .ranks = "2", .only = MP_BOTH, .bare = true)
{
    for (int i = 0; i < 2; i++) {
        int n = devices();
        if (n == 0)
            MP_SKIP("no GPU");
        if (!mp_up(mp))
            return;
        run_ring(mp, mp->threads ? mp->rank % n : -1);
        mp_down(mp);
    }
}

/* ---- the same by the hosts of the threads, on streams, out of a graph ---- */

#ifndef GPU_EMULATED
#define WORDS 4096

/* in: the words of the round before, from the left; out: this round's. */
__global__ void next_round(unsigned long long *out, const unsigned long long *in,
                           unsigned long long *round, int rank, int left, struct gpu_report *r)
{
    unsigned long long now = *round;
    __syncthreads();
    for (unsigned k = threadIdx.x; k < WORDS; k += blockDim.x) {
        if (now != 0)
            D_EQ(r, gpu_look(&in[k]), gpu_word(now * 64 + (unsigned)left, k));
        out[k] = gpu_word((now + 1) * 64 + (unsigned)rank, k);
    }
    if (threadIdx.x == 0)
        *round = now + 1;
}

static void run_graph(struct mp *mp, int device)
{
    struct gpu gp;
    char why[200] = "";
    gin_at_t at;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    const int per_wait = 50, rounds = 1000;
    if (!gpu_open(&gp, mp->comm, device, why, sizeof(why)))
        MP_SKIP("%s", why);
    unsigned long long *p =
        (unsigned long long *)gpu_symmetric(&gp, GIN_KIND_CUDA, (2 * WORDS + 1) * 8, &at);
    if (p == NULL || !gpu_dev(&gp, NULL))
        return;
    gin_stream_t s = (gin_stream_t)gp.stream;
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    gin_at_t in = gin_at(at.win, at.off + WORDS * 8);
    CU(cudaStreamBeginCapture(gp.stream, cudaStreamCaptureModeThreadLocal));
    next_round<<<1, 256, 0, gp.stream>>>(p, p + WORDS, p + 2 * WORDS, mp->rank, left, gp.report);
    EXPECT_OK(gin_barrier_on_stream(&gp.dev, gin_barrier_world(), 0, GIN_FENCE_ALL, s));
    EXPECT_OK(gin_put_on_stream(&gp.dev, 0, gin_team_world(mp->comm), right, in, at, WORDS * 8,
                                gin_weak_inc(0), s));
    EXPECT_OK(gin_wait_signal_on_stream(&gp.dev, 0, 0, 1, s));
    EXPECT_OK(gin_consume_signal_on_stream(&gp.dev, 0, 0, 1, s));
    CU(cudaStreamEndCapture(gp.stream, &graph));
    CU(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    CU(cudaGraphUpload(exec, gp.stream));
    CU(cudaStreamSynchronize(gp.stream));
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    mp_step(mp, "graphs");
    /* not more at once than the driver takes without making one thread wait for another */
    for (int i = 0; i < rounds; i++) {
        CU(cudaGraphLaunch(exec, gp.stream));
        if (i % per_wait == per_wait - 1)
            CU(cudaStreamSynchronize(gp.stream));
    }
    GPU_DONE(&gp);
    mp_step(mp, "graphs done");
    EXPECT_OK(gin_stream_status(&gp.dev));
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    CU(cudaGraphExecDestroy(exec));
    CU(cudaGraphDestroy(graph));
    gpu_dev_end(&gp);
    EXPECT_OK(gin_free(mp->comm, p));
    gpu_close(&gp);
}

MP_TEST_OPT(graphs_of_threads_that_share_a_gpu, .ranks = "2 4", .only = MP_THREADS)
{
    if (devices() == 0)
        MP_SKIP("no GPU");
    run_graph(mp, 0);
}

MP_TEST_OPT(graphs_of_threads, .ranks = "2 4", .only = MP_THREADS)
{
    if (devices() < mp->size)
        MP_SKIP("%d GPUs for %d threads", devices(), mp->size);
    run_graph(mp, mp->rank);
}
#endif
