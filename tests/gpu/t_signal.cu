/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals between kernels: every kind of action arrives exactly once, every form of wait ends when
 * it should and not before, nothing is lost by consume and reset, time limits hold.
 */
#include "tests/gpu/gpu.h"

#define BLOCKS 4

__device__ static int right_of(const gin_t *g)
{
    return (g->rank + 1) % g->size;
}

__device__ static int meet(const gin_t *g, unsigned index)
{
    return gin_barrier(g, gin_block(), gin_barrier_world(), index, GIN_ORDER_ACQ_REL,
                       GIN_FENCE_ALL);
}

/* ---- all threads signal all ranks ---- */

/* ids of slots: 0 weak inc, 1 weak add, 2 strong inc, 3 strong add; words: the same at places */
__global__ void storm(gin_devcomm_t dev, gin_at_t words, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    gin_team_t world = gin_world(&g);
    gin_at_t word[4];
    unsigned long long adds = 0;
    for (unsigned k = 0; k < 4; k++)
        word[k] = gin_at(words.win, words.off + 64ull * (blockIdx.x * 4 + k));
    for (int i = 0; i < n; i++) {
        D_STEP(r, i);
        for (int k = 0; k < g.size; k++) {
            int to = (g.rank + k) % g.size;
            unsigned long long v = (unsigned long long)i * 3 + 1;
            D_OK(r, gin_signal(&g, gin_thread(), world, to, gin_weak_inc(0)));
            D_OK(r, gin_signal(&g, gin_thread(), world, to, gin_weak_add(1, v)));
            D_OK(r, gin_signal(&g, gin_thread(), world, to, gin_strong_inc(2)));
            D_OK(r, gin_signal(&g, gin_warp(), world, to, gin_strong_add(3, v)));
            D_OK(r, gin_signal(&g, gin_thread(), world, to, gin_weak_inc_at(word[0])));
            D_OK(r, gin_signal(&g, gin_block(), world, to, gin_weak_add_at(word[1], v)));
            D_OK(r, gin_signal(&g, gin_thread(), world, to, gin_strong_inc_at(word[2])));
            D_OK(r, gin_signal(&g, gin_thread(), world, to, gin_strong_add_at(word[3], ~0ull)));
        }
        adds += (unsigned long long)i * 3 + 1;
    }
    unsigned long long ranks = (unsigned long long)g.size, each = ranks * blockDim.x * n;
    unsigned long long warps = gpu_warps();
    D_OK(r, gin_wait_signal(&g, gin_block(), 0, each));
    D_OK(r, gin_wait_signal(&g, gin_warp(), 1, ranks * blockDim.x * adds));
    D_OK(r, gin_wait_signal(&g, gin_thread(), 2, each));
    D_OK(r, gin_wait_signal(&g, gin_block(), 3, ranks * warps * adds));
    D_OK(r, gin_wait_signal_at(&g, gin_block(), word[0], each, NULL));
    D_OK(r, gin_wait_signal_at(&g, gin_warp(), word[1], ranks * adds, NULL));
    D_OK(r, gin_wait_signal_until_at(&g, gin_thread(), word[2], GIN_CMP_EQ, each, NULL));
    D_OK(r, gin_wait_signal_until_at(&g, gin_block(), word[3], GIN_CMP_EQ, 0 - each, NULL));
    D_OK(r, meet(&g, blockIdx.x));
    D_EQ(r, gin_read_signal(&g, 0), each);
    D_EQ(r, gin_read_signal(&g, 1), ranks * blockDim.x * adds);
    D_EQ(r, gin_read_signal(&g, 2), each);
    D_EQ(r, gin_read_signal(&g, 3), ranks * warps * adds);
    D_EQ(r, gin_read_signal_at(&g, word[1]), ranks * adds);
    D_EQ(r, gin_read_signal(&g, 4), 0);
    D_OK(r, gin_status(&g));
}

GPU_TEST(every_action_arrives_once, 1)
{
    gin_devcomm_reqs_t reqs;
    gin_at_t at;
    gpu_reqs(&reqs);
    reqs.world_barriers = BLOCKS;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64 * 4 * BLOCKS, &at);
    if (p == NULL || !gpu_dev(gp, &reqs))
        return;
    storm<<<BLOCKS, 128, 0, gp->stream>>>(gp->dev, at, gpu_rounds(gp, 200), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- a flag that is set ---- */

__global__ void flags(gin_devcomm_t dev, gin_at_t at, const unsigned long long *mine, int n,
                      struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_at_t data = gin_at(at.win, at.off + 64);
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        D_STEP(r, i);
        D_OK(r, gin_put_value(&g, gin_block(), gin_world(&g), right_of(&g), data, i * 7, 8,
                              i % 2 ? gin_set_at(at, i) : gin_weak_set_at(at, i)));
        D_OK(r, gin_wait_signal_until_at(&g, gin_block(), at, GIN_CMP_EQ, i, NULL));
        D_EQ(r, gpu_look(&mine[8]), i * 7);
        D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
    }
}

GPU_TEST(set_covers_its_put, 1)
{
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 128, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    flags<<<1, 64, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, gpu_rounds(gp, 4000),
                                    gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- forms of waiting ---- */

__device__ static void comparisons(const gin_t *g, struct gpu_report *r)
{
    gin_wait_opt_t once = {};
    once.poll = 1;
    /* the value of slot 5 is 10 on every rank */
    static const struct {
        gin_cmp_t cmp;
        unsigned long long operand;
        int st;
    } c[] = {
        {GIN_CMP_EQ, 10, GIN_OK},     {GIN_CMP_EQ, 9, GIN_EAGAIN},  {GIN_CMP_NE, 9, GIN_OK},
        {GIN_CMP_NE, 10, GIN_EAGAIN}, {GIN_CMP_GT, 9, GIN_OK},      {GIN_CMP_GT, 10, GIN_EAGAIN},
        {GIN_CMP_GE, 10, GIN_OK},     {GIN_CMP_GE, 11, GIN_EAGAIN}, {GIN_CMP_LT, 11, GIN_OK},
        {GIN_CMP_LT, 10, GIN_EAGAIN}, {GIN_CMP_LE, 10, GIN_OK},     {GIN_CMP_LE, 9, GIN_EAGAIN}};
    for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        D_EQ(r, gin_wait_signal_until(g, gin_block(), 5, c[i].cmp, c[i].operand, &once), c[i].st);
    D_EQ(r, gin_test_signal(g, gin_block(), 5, 10), GIN_OK);
    D_EQ(r, gin_test_signal(g, gin_thread(), 5, 11), GIN_EAGAIN);
    D_EQ(r, gin_wait_signal_x(g, gin_warp(), 5, 11, &once), GIN_EAGAIN);
    /* on a wheel of 4 bits 10 is at least 3 .. 10, not 11 */
    once.bits = 4;
    D_EQ(r, gin_wait_signal_x(g, gin_block(), 5, 10, &once), GIN_OK);
    D_EQ(r, gin_wait_signal_x(g, gin_block(), 5, 3, &once), GIN_OK);
    D_EQ(r, gin_wait_signal_x(g, gin_block(), 5, 2, &once), GIN_EAGAIN);
    D_EQ(r, gin_wait_signal_x(g, gin_block(), 5, 11, &once), GIN_EAGAIN);
    once.bits = 3; /* 10 is 2 there: at least 7 .. 2 */
    D_EQ(r, gin_wait_signal_x(g, gin_block(), 5, 7, &once), GIN_OK);
    D_EQ(r, gin_wait_signal_x(g, gin_block(), 5, 6, &once), GIN_EAGAIN);
}

__device__ static void sets(const gin_t *g, struct gpu_report *r)
{
    __shared__ size_t which[4];
    __shared__ size_t count;
    const uint32_t ids[4] = {4, 5, 6, 7}; /* values 0, 10, 0, 3 */
    const uint64_t least[4] = {1, 10, 1, 3};
    const uint64_t met[4] = {0, 10, 0, 3};
    const int none[4] = {1, 1, 1, 1}, both[4] = {0, 1, 0, 1};
    gin_wait_opt_t once = {};
    once.poll = 1;
    D_OK(r, gin_wait_signal_any(g, gin_block(), ids, least, 4, NULL, &which[0], NULL));
    __syncthreads();
    D_EQ(r, which[0], 1);
    __syncthreads();
    D_OK(r, gin_wait_signal_some(g, gin_block(), ids, least, 4, NULL, which, &count, NULL));
    __syncthreads();
    D_EQ(r, count, 2);
    D_EQ(r, which[0] + which[1], 1 + 3);
    __syncthreads();
    D_EQ(r, gin_wait_signal_all(g, gin_block(), ids, least, 4, NULL, &once), GIN_EAGAIN);
    D_OK(r, gin_wait_signal_all(g, gin_block(), ids, met, 4, NULL, NULL));
    D_OK(r, gin_wait_signal_all(g, gin_warp(), ids + 1, least + 1, 1, NULL, NULL));
    D_EQ(r, gin_wait_signal_any(g, gin_block(), ids, least, 4, both, &which[0], &once), GIN_EAGAIN);
    /* nothing to wait for: all is satisfied, any and some report none */
    D_OK(r, gin_wait_signal_all(g, gin_block(), ids, least, 4, none, NULL));
    D_OK(r, gin_wait_signal_any(g, gin_block(), ids, least, 4, none, &which[0], NULL));
    D_OK(r, gin_wait_signal_some(g, gin_block(), ids, least, 4, none, &which[1], &count, NULL));
    __syncthreads();
    D_EQ(r, which[0], 4);
    D_EQ(r, count, 0);
    D_OK(r, gin_wait_signal_all(g, gin_block(), ids, least, 0, NULL, NULL));
    __syncthreads();
}

__device__ static void shadows(const gin_t *g, struct gpu_report *r)
{
    __shared__ uint64_t before, delta;
    uint64_t *shadow = gin_signal_shadow(g, 5); /* 10 */
    if (!D_EXPECT(r, shadow != NULL))
        return;
    D_EQ(r, gpu_look(shadow), 0);
    __syncthreads();
    if (threadIdx.x == 0)
        D_OK(r, gin_increase_shadow(g, 5, 10));
    __syncthreads();
    D_OK(r, gin_wait_signal_meet_shadow(g, gin_block(), 5, NULL));
    __syncthreads();
    if (threadIdx.x == 0)
        *shadow = 4;
    __syncthreads();
    D_OK(r, gin_wait_signal_follow_shadow(g, gin_block(), 5, 6, &before, &delta, NULL));
    __syncthreads();
    D_EQ(r, before, 4);
    D_EQ(r, delta, 6);
    D_EQ(r, gpu_look(shadow), 10);
    gin_wait_opt_t once = {};
    once.poll = 1;
    D_EQ(r, gin_wait_signal_follow_shadow(g, gin_block(), 5, 1, NULL, NULL, &once), GIN_EAGAIN);
    D_EQ(r, gpu_look(shadow), 10);
    __syncthreads();
}

__global__ void __launch_bounds__(1024) forms(gin_devcomm_t dev, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    D_OK(r, gin_signal(&g, gin_block(), gin_world(&g), right_of(&g), gin_weak_add(5, 10)));
    D_OK(r, gin_signal(&g, gin_block(), gin_world(&g), right_of(&g), gin_strong_add(7, 3)));
    D_OK(r, meet(&g, 0));
    comparisons(&g, r);
    __syncthreads();
    sets(&g, r);
    shadows(&g, r);
    /* consume and reset, alone */
    __shared__ uint64_t old;
    if (threadIdx.x == 0)
        D_OK(r, gin_consume_signal(&g, 5, 4));
    __syncthreads();
    D_EQ(r, gin_read_signal(&g, 5), 6);
    __syncthreads();
    if (threadIdx.x == 0)
        D_OK(r, gin_reset_signal(&g, 5, &old));
    __syncthreads();
    D_EQ(r, old, 6);
    D_EQ(r, gin_read_signal(&g, 5), 0);
    D_EQ(r, gpu_look(gin_signal_shadow(&g, 5)), 0);
    D_OK(r, meet(&g, 0));
}

GPU_TEST(forms_of_waiting, 1)
{
    static const unsigned widths[] = {32, 128, 1024};
    for (int i = 0; i < 3 && gpu_dev(gp, NULL); i++) {
        forms<<<1, widths[i], 0, gp->stream>>>(gp->dev, gp->report);
        GPU_DONE(gp);
        gpu_dev_end(gp);
    }
}

/* ---- nothing is lost while peers go on ---- */

__global__ void loss(gin_devcomm_t dev, gin_at_t word, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    if (blockIdx.x != 0) { /* senders */
        for (int i = 0; i < n; i++) {
            D_OK(r, gin_signal(&g, gin_thread(), gin_world(&g), right_of(&g), gin_weak_inc(0)));
            D_OK(r, gin_signal(&g, gin_thread(), gin_world(&g), right_of(&g), gin_weak_inc(1)));
            D_OK(r,
                 gin_signal(&g, gin_thread(), gin_world(&g), right_of(&g), gin_weak_inc_at(word)));
            if (i % 16 == 15)
                D_OK(r, gin_signal(&g, gin_thread(), gin_world(&g), right_of(&g),
                                   gin_weak_add_at(word, 1000000)));
        }
    } else if (threadIdx.x == 0) {
        unsigned long long total = (unsigned long long)n * blockDim.x * (gridDim.x - 1), taken = 0;
        unsigned long long more =
            (unsigned long long)(n / 16) * 1000000 * blockDim.x * (gridDim.x - 1);
        uint64_t old = 0, sum = 0, sum_at = 0;
        while (taken < total || sum < total || sum_at < total + more) {
            if (taken < total && gin_test_signal(&g, gin_thread(), 0, 1) == GIN_OK) {
                uint64_t v = gin_read_signal(&g, 0);
                D_OK(r, gin_consume_signal(&g, 0, v));
                taken += v;
            }
            D_OK(r, gin_reset_signal(&g, 1, &old));
            sum += old;
            D_OK(r, gin_reset_signal_at(&g, word, &old));
            sum_at += old;
            gpu_step(r, __LINE__, taken);
        }
        D_EQ(r, taken, total);
        D_EQ(r, sum, total);
        D_EQ(r, sum_at, total + more);
        D_EQ(r, gin_read_signal(&g, 0), 0);
        D_EQ(r, gin_read_signal(&g, 1), 0);
        D_EQ(r, gin_read_signal_at(&g, word), 0);
    }
}

GPU_TEST(consume_and_reset_lose_nothing, 1)
{
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    loss<<<3, 64, 0, gp->stream>>>(gp->dev, at, gpu_rounds(gp, 4800), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- time limits ---- */

__global__ void late(gin_devcomm_t dev, gin_at_t word, struct gpu_report *r)
{
    gin_t g;
    gin_wait_opt_t soon = {};
    __shared__ size_t which, count;
    const uint32_t ids[2] = {0, 1};
    const uint64_t least[2] = {1, 1};
    soon.timeout_ns = 20000000; /* 8 waits of 20 ms */
    D_OK(r, gin_open(&dev, 0, &g));
    D_EQ(r, gin_wait_signal_x(&g, gin_block(), 0, 1, &soon), GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_signal_x(&g, gin_thread(), 0, 1, &soon), GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_signal_until(&g, gin_warp(), 0, GIN_CMP_NE, 0, &soon), GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_signal_at(&g, gin_block(), word, 1, &soon), GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_signal_any(&g, gin_block(), ids, least, 2, NULL, &which, &soon),
         GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_signal_some(&g, gin_block(), ids, least, 2, NULL, &which, &count, &soon),
         GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_signal_all(&g, gin_block(), ids, least, 2, NULL, &soon), GIN_ETIMEDOUT);
    D_EQ(r, gin_wait_counter_x(&g, gin_block(), 0, 1, &soon), GIN_ETIMEDOUT);
    D_OK(r, gin_signal(&g, gin_block(), gin_world(&g), g.rank, gin_weak_inc(2)));
    D_OK(r, gin_wait_signal_x(&g, gin_block(), 2, 1, &soon)); /* nothing of that is sticky */
}

__global__ void late_by_default(gin_devcomm_t dev, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    D_EQ(r, gin_wait_signal(&g, gin_block(), 0, 1), GIN_ETIMEDOUT);
    D_OK(r, gin_signal(&g, gin_block(), gin_world(&g), right_of(&g), gin_weak_inc(1)));
    D_OK(r, gin_wait_signal(&g, gin_block(), 1, 1));
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

GPU_TEST(time_limits, 1)
{
    gin_devcomm_reqs_t reqs;
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    double began = now();
    late<<<1, 96, 0, gp->stream>>>(gp->dev, at, gp->report);
    GPU_DONE(gp);
    double took = now() - began;
    EXPECT(took > 0.15 && took < 5.0 * gp->sharers * gpu_slower());
    gpu_dev_end(gp);
    gpu_reqs(&reqs);
    reqs.wait_timeout_ns = 200000000;
    if (!gpu_dev(gp, &reqs))
        return;
    began = now();
    late_by_default<<<1, 32, 0, gp->stream>>>(gp->dev, gp->report);
    GPU_DONE(gp);
    took = now() - began;
    EXPECT(took > 0.19 && took < 5.0 * gp->sharers * gpu_slower());
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}
