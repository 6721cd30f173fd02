/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank is killed, or its GPU faults, or the job is given up, while the others wait in kernels:
 * their waits end with GIN_EPEER, soon, and the host's calls name the rank.
 */
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "tests/gpu/gpu.h"

#define VICTIM 1
#define BUDGET 2.0 /* seconds from the death to the last status */

enum wait { SIGNAL, SIGNAL_UNTIL, SIGNAL_AT, SIGNAL_ANY, COUNTER, BARRIER, LSA_HALVES, WAITS };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__device__ static int wait_for(const gin_t *g, int how, gin_at_t at)
{
    const uint32_t ids[2] = {1, 2};
    const uint64_t least[2] = {1, 1};
    size_t which = 0;
    switch (how) {
    case SIGNAL: return gin_wait_signal(g, gin_block(), 0, 1);
    case SIGNAL_UNTIL: return gin_wait_signal_until(g, gin_warp(), 0, GIN_CMP_NE, 0, NULL);
    case SIGNAL_AT: return gin_wait_signal_at(g, gin_block(), at, 1, NULL);
    case SIGNAL_ANY: return gin_wait_signal_any(g, gin_thread(), ids, least, 2, NULL, &which, NULL);
    case COUNTER: return gin_wait_counter(g, gin_block(), 0, 1);
    case LSA_HALVES: {
        int st = gin_lsa_arrive(g, gin_block(), 0, GIN_ORDER_ACQ_REL);
        return st != GIN_OK ? st : gin_lsa_wait(g, gin_block(), 0, GIN_ORDER_ACQ_REL, NULL);
    }
    default: return gin_barrier(g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0);
    }
}

/* Every way of waiting in a block of its own; the barriers wait where others do not come. */
__global__ void waits(gin_devcomm_t dev, gin_at_t at, int *st)
{
    gin_t g;
    gin_open(&dev, 0, &g);
    int mine = wait_for(&g, (int)blockIdx.x, at);
    if (threadIdx.x == 0)
        st[blockIdx.x] = mine;
    /* and what comes later fails at once */
    if (threadIdx.x == 0 && blockIdx.x == 0)
        st[WAITS] = gin_wait_signal(&g, gin_thread(), 3, 1);
}

__global__ void fault(int *nowhere)
{
    *nowhere = 1;
}

/* The rank's GPU, a communicator and a device communicator of its own. */
struct scene {
    struct gpu gp;
    gin_comm_t *comm;
    gin_at_t at;
    int *st; /* of the waits, in host memory */
};

static bool scene_set(struct mp *mp, struct scene *s)
{
    char why[200] = "";
    if (!EXPECT_OK(gin_init(&mp->config, &s->comm)))
        return false;
    if (!gpu_open(&s->gp, s->comm, -1, why, sizeof(why))) {
        mp_skip(mp, "%s", why);
        EXPECT_OK(gin_finalize(s->comm));
        return false;
    }
    CU(cudaHostAlloc((void **)&s->st, 64 * sizeof(int), cudaHostAllocPortable));
    memset(s->st, 0, 64 * sizeof(int));
    return gpu_symmetric(&s->gp, GIN_KIND_CUDA, 4096, &s->at) != NULL && gpu_dev(&s->gp, NULL) &&
           EXPECT_OK(gin_comm_barrier(s->comm));
}

static double *death(struct mp *mp)
{
    return (double *)(void *)mp->share;
}

static void all_end(struct mp *mp, struct scene *s, const char *word)
{
    double began = now();
    mp_step(mp, "waiting for the kernel to end");
    while (cudaStreamQuery(s->gp.stream) == cudaErrorNotReady && now() - began < 10)
        usleep(1000);
    double took = now() - *(volatile double *)death(mp);
    if (cudaStreamQuery(s->gp.stream) != cudaSuccess) {
        FAIL("the kernel still waits after 10 s: %s", gin_last_error());
        fflush(NULL);
        _Exit(1);
    }
    EXPECT(*(volatile double *)death(mp) > 0 && took < BUDGET);
    for (int i = 0; i <= WAITS; i++)
        if (s->st[i] != GIN_EPEER)
            FAIL("wait %d: %s", i, gin_status_name(s->st[i]));
    EXPECT_FAILS(gin_comm_status(s->comm), GIN_EPEER, word);
    mp_step(mp, "finalize");
    EXPECT_FAILS(gin_finalize(s->comm), GIN_EPEER, word);
}

/* The survivors wait in kernels of WAITS blocks. */
static void survive(struct mp *mp, struct scene *s, const char *word)
{
    waits<<<WAITS, 64, 0, s->gp.stream>>>(s->gp.dev, s->at, s->st);
    CU(cudaGetLastError());
    mp_step(mp, "kernel runs");
    all_end(mp, s, word);
}

MP_TEST_OPT(a_rank_is_killed, .ranks = "2 3 4", .only = MP_PROCS, .bare = true)
{
    struct scene s = {};
    mp_expect_death(mp, VICTIM);
    if (!scene_set(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        usleep(300000);
        *(volatile double *)death(mp) = now();
        kill(getpid(), SIGKILL);
    }
    survive(mp, &s, "rank 1");
}

/* Its own kernel waits, too. */
MP_TEST_OPT(killed_with_a_kernel_running, .ranks = "2 4", .only = MP_PROCS, .bare = true)
{
    struct scene s = {};
    mp_expect_death(mp, VICTIM);
    if (!scene_set(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        waits<<<BARRIER, 64, 0, s.gp.stream>>>(s.gp.dev, s.at, s.st); /* no barriers: they'd end */
        usleep(300000);
        *(volatile double *)death(mp) = now();
        kill(getpid(), SIGKILL);
    }
    survive(mp, &s, "rank 1");
}

/* Exit in order but without gin_finalize(). */
MP_TEST_OPT(a_rank_leaves, .ranks = "2 3", .only = MP_PROCS, .bare = true)
{
    struct scene s = {};
    mp_expect_death(mp, VICTIM);
    if (!scene_set(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        usleep(200000);
        *(volatile double *)death(mp) = now();
        _exit(0);
    }
    survive(mp, &s, "rank 1");
}

/* The process lives, its GPU has faulted. Its own calls fail; the others are told. */
MP_TEST_OPT(a_gpu_faults, .ranks = "2 3", .only = MP_PROCS, .bare = true)
{
    struct scene s = {};
#ifdef GPU_EMULATED
    MP_SKIP("no GPU that could fault");
#endif
    mp_expect_death(mp, VICTIM);
    if (!scene_set(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        usleep(200000);
        *(volatile double *)death(mp) = now();
        fault<<<1, 1, 0, s.gp.stream>>>((int *)8);
        EXPECT(cudaStreamSynchronize(s.gp.stream) != cudaSuccess);
        double began = now();
        int st = GIN_OK;
        while (st == GIN_OK && now() - began < 5) {
            usleep(10000);
            st = gin_comm_status(s.comm);
        }
        EXPECT(st != GIN_OK);
        usleep(500000); /* as long as the others take to notice it by themselves */
        fflush(NULL);
        _exit(pt_failures() != 0);
    }
    survive(mp, &s, "rank 1");
}

MP_TEST_OPT(the_job_is_given_up, .ranks = "2 3", .only = MP_PROCS, .bare = true)
{
    struct scene s = {};
    if (!scene_set(mp, &s))
        return;
    if (mp->rank == VICTIM) {
        usleep(200000);
        *(volatile double *)death(mp) = now();
        EXPECT_OK(gin_comm_abort(s.comm, "tired of it"));
        EXPECT(gin_finalize(s.comm) == GIN_EPEER);
        return;
    }
    survive(mp, &s, "tired of it");
}
