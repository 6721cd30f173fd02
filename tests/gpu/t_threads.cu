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
