/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of kernels: nobody leaves before all have come, whatever the team, index, group, order
 * and fence; what was put before is there behind it.
 */
#include "tests/gpu/gpu.h"

#define BLOCKS 16

__device__ static const gin_order_t orders[] = {GIN_ORDER_RELAXED, GIN_ORDER_ACQUIRE,
                                                GIN_ORDER_RELEASE, GIN_ORDER_ACQ_REL};
__device__ static const unsigned fences[] = {GIN_FENCE_ALL, GIN_FENCE_PUT, GIN_FENCE_GET,
                                             GIN_FENCE_NONE};

/* ---- puts of a phase are there behind its barrier ---- */

/* Each block goes through the phases by its own index; row: one word per rank. */
__global__ void phases(gin_devcomm_t dev, gin_barrier_t which, gin_team_t team, gin_at_t table,
                       const unsigned long long *mine, int n, int all, struct gpu_report *r)
{
    gin_t g, any;
    unsigned row = blockIdx.x * (unsigned)team.size;
    D_OK(r, gin_open(&dev, blockIdx.x % dev.n_contexts, &g));
    D_OK(r, gin_open(&dev, all ? GIN_ALL_CONTEXTS : blockIdx.x % dev.n_contexts, &any));
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        D_STEP(r, i);
        for (int to = (int)threadIdx.x; to < team.size; to += (int)blockDim.x)
            D_OK(r, gin_put_value(&g, gin_thread(), team, to,
                                  gin_at(table.win, table.off + (row + (unsigned)team.rank) * 8),
                                  i * 1000 + (unsigned)team.rank, 8, gin_no_action()));
        __syncthreads();
        if (gpu_draw(i, blockIdx.x, 8) == 0)
            __nanosleep(gpu_draw(i, blockIdx.x + (unsigned)team.rank, 5000));
        D_OK(r, gin_barrier(&any, gin_block(), which, blockIdx.x, GIN_ORDER_ACQ_REL,
                            i % 2 ? GIN_FENCE_PUT : GIN_FENCE_ALL));
        for (int from = (int)threadIdx.x; from < team.size; from += (int)blockDim.x)
            D_EQ(r, gpu_look(&mine[row + (unsigned)from]), i * 1000 + (unsigned)from);
        D_OK(r,
             gin_barrier(&any, gin_block(), which, blockIdx.x, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    }
}

static void run_phases(struct gpu *gp, gin_barrier_t which, gin_team_t team, int blocks,
                       const char *name)
{
    gin_at_t at;
    unsigned long long *p = (unsigned long long *)gpu_symmetric(
        gp, GIN_KIND_CUDA, (size_t)blocks * (size_t)gp->size * 8, &at);
    if (p == NULL)
        return;
    for (int all = 0; all < 2; all++)
        if (team.size > 0) {
            phases<<<(unsigned)blocks, 64, 0, gp->stream>>>(gp->dev, which, team, at, p,
                                                            gpu_rounds(gp, 2000), all, gp->report);
            if (!GPU_DONE(gp))
                FAIL("barrier of the %s team", name);
        }
    EXPECT_OK(gin_free(gp->comm, p));
}

GPU_TEST(puts_are_there_behind_it, 1)
{
    gin_devcomm_reqs_t reqs;
    gpu_reqs(&reqs);
    reqs.world_barriers = reqs.lsa_barriers = reqs.hybrid_barriers = reqs.rail_barriers = BLOCKS;
    reqs.contexts = 3;
    if (!gpu_dev(gp, &reqs))
        return;
    run_phases(gp, gin_barrier_world(), gin_team_world(gp->comm), BLOCKS, "world");
    run_phases(gp, gin_barrier_lsa(), gin_team_lsa(gp->comm), BLOCKS, "lsa");
    run_phases(gp, gin_barrier_hybrid(), gin_team_world(gp->comm), BLOCKS, "hybrid");
    run_phases(gp, gin_barrier_rail(), gin_team_rail(gp->comm), BLOCKS, "rail");
}

/* Overlapping teams: a list in reverse order, the even ranks, the odd ones. */
GPU_TEST(teams, 2)
{
    gin_devcomm_reqs_t reqs;
    gin_team_barrier_t want[3];
    gin_team_t world = gin_team_world(gp->comm);
    int *list = (int *)calloc((size_t)gp->size, sizeof(int));
    for (int i = 0; i < gp->size; i++)
        list[i] = gp->size - 1 - i;
    memset(want, 0, sizeof(want));
    EXPECT_OK(gin_team_create(gp->comm, list, gp->size, &want[0].team));
    EXPECT_OK(gin_team_split_strided(gp->comm, world, 0, 2, (gp->size + 1) / 2, &want[1].team));
    EXPECT_OK(gin_team_split_strided(gp->comm, world, 1, 2, gp->size / 2, &want[2].team));
    free(list);
    gpu_reqs(&reqs);
    reqs.team_barriers = want;
    reqs.n_team_barriers = 3;
    for (int i = 0; i < 3; i++)
        want[i].count = 4;
    if (!gpu_dev(gp, &reqs))
        return;
    run_phases(gp, want[0].handle, want[0].team, 4, "reversed");
    run_phases(gp, want[1].handle, want[1].team, 4, "even");
    run_phases(gp, want[2].handle, want[2].team, 4, "odd");
    gpu_dev_end(gp);
    EXPECT_OK(gin_team_free(gp->comm, want[0].team));
}

/* ---- nobody leaves early: all orders, fences and groups ---- */

/* Group i of the grid uses index i and a tally at rank 0, which each rank raises before it. */
__global__ void tallies(gin_devcomm_t dev, gin_barrier_t which, gin_at_t at, int kind, int n,
                        struct gpu_report *r)
{
    gin_t g;
    struct gpu_place p = gpu_place_of((enum gpu_kind)kind);
    unsigned index = blockIdx.x * p.groups + p.group;
    gin_at_t tally = gin_at(at.win, at.off + index * 8ull);
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t world = gin_world(&g);
    if (gin_lsa(&g).size != g.size)
        which = gin_barrier_world(); /* all ranks count */
    for (int i = 1; i <= n; i++) {
        uint64_t now = 0;
        D_STEP(r, i);
        D_OK(r, gin_amo_add(&g, p.grp, world, 0, tally, 1));
        D_OK(r, gin_quiet(&g, p.grp));
        D_OK(r, gin_barrier(&g, p.grp, which, index, orders[i % 4], fences[(i / 4) % 4]));
        D_OK(r, gin_amo_fetch(&g, p.grp, world, 0, tally, &now));
        /* the fastest may have begun the next round, not the one behind it */
        D_EXPECT(r, now >= (unsigned long long)i * g.size && now < (i + 1ull) * g.size);
    }
}

GPU_TEST(orders_fences_and_groups, 1)
{
    gin_devcomm_reqs_t reqs;
    gin_at_t at;
    const unsigned most = 4 * 64;
    gpu_reqs(&reqs);
    reqs.world_barriers = reqs.lsa_barriers = most;
    for (int kind = 0; kind < K_KINDS; kind++) {
        void *p = gpu_symmetric(gp, GIN_KIND_CUDA, most * 8, &at);
        if (p == NULL || !gpu_dev(gp, &reqs))
            return;
        gin_barrier_t which = kind % 2 ? gin_barrier_world() : gin_barrier_lsa();
        tallies<<<4, 64, 0, gp->stream>>>(gp->dev, which, at, kind, gpu_rounds(gp, 800),
                                          gp->report);
        if (!GPU_DONE(gp))
            FAIL("kind of group %d", kind);
        gpu_dev_end(gp);
        EXPECT_OK(gin_free(gp->comm, p));
    }
}

/* ---- halves ---- */

__global__ void __launch_bounds__(1024)
    halves(gin_devcomm_t dev, gin_at_t at, const unsigned long long *mine, int n,
           struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t lsa = gin_lsa(&g);
    int right = (lsa.rank + 1) % lsa.size, left = (lsa.rank + lsa.size - 1) % lsa.size;
    gin_at_t place = gin_at(at.win, at.off + blockIdx.x * 8192ull);
    unsigned long long *far = (unsigned long long *)gin_lsa_ptr(&g, right, place);
    const unsigned long long *in = mine + blockIdx.x * 1024;
    if (!D_EXPECT(r, far != NULL))
        return;
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        far[threadIdx.x] = gpu_word((unsigned)lsa.rank, threadIdx.x + (unsigned)i);
        D_OK(r, gin_lsa_arrive(&g, gin_block(), blockIdx.x, GIN_ORDER_RELEASE));
        __nanosleep(gpu_draw((unsigned)i, blockIdx.x, 300));
        D_OK(r, gin_lsa_wait(&g, gin_block(), blockIdx.x, GIN_ORDER_ACQUIRE, NULL));
        unsigned other = (threadIdx.x + 11) % blockDim.x;
        D_EQ(r, gpu_look(&in[other]), gpu_word((unsigned)left, other + (unsigned)i));
        D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_lsa(), blockIdx.x, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
    }
}

GPU_TEST(plain_stores_and_the_two_halves, 1)
{
    gin_devcomm_reqs_t reqs;
    gin_at_t at;
    if (gpu_net_skips(gp, "plain_stores_and_the_two_halves"))
        return;
    gpu_reqs(&reqs);
    reqs.lsa_barriers = BLOCKS;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, BLOCKS * 8192, &at);
    if (p == NULL || !gpu_dev(gp, &reqs))
        return;
    halves<<<BLOCKS, 1024, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p,
                                            gpu_rounds(gp, 2000), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- as often as it goes; limits of time ---- */

__global__ void often(gin_devcomm_t dev, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    for (int i = 0; i < n; i++)
        if (!D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), blockIdx.x,
                                 GIN_ORDER_ACQ_REL, GIN_FENCE_ALL)))
            break;
}

GPU_TEST(many_indices_at_once, 1)
{
    gin_devcomm_reqs_t reqs;
    gpu_reqs(&reqs);
    reqs.world_barriers = 128;
    if (!gpu_dev(gp, &reqs))
        return;
    often<<<1, 32, 0, gp->stream>>>(gp->dev, gpu_rounds(gp, 30000), gp->report);
    GPU_DONE(gp);
    often<<<128, 128, 0, gp->stream>>>(gp->dev, gpu_rounds(gp, 3000), gp->report);
    GPU_DONE(gp);
}

__global__ void once(gin_devcomm_t dev, uint64_t timeout, int expected, struct gpu_report *r)
{
    gin_t g;
    gin_wait_opt_t opt = {};
    opt.timeout_ns = timeout;
    D_OK(r, gin_open(&dev, 0, &g));
    D_EQ(r,
         gin_barrier_x(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL,
                       &opt),
         expected);
}

/* A wait that ran out of time goes on with the next call: the arrival stands. */
GPU_TEST(time_limit, 2)
{
    if (!gpu_dev(gp, NULL))
        return;
    for (int late = 0; late < gp->size; late++) {
        if (gp->rank != late) {
            once<<<1, 64, 0, gp->stream>>>(gp->dev, 30000000, GIN_ETIMEDOUT, gp->report);
            GPU_DONE(gp);
        }
        EXPECT_OK(gin_comm_barrier(gp->comm));
        once<<<1, 64, 0, gp->stream>>>(gp->dev, 0, GIN_OK, gp->report);
        GPU_DONE(gp);
        often<<<1, 64, 0, gp->stream>>>(gp->dev, 10, gp->report);
        GPU_DONE(gp);
    }
}
