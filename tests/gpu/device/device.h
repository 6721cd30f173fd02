/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the device code as kernels see it: what each has at hand. A test is a function that the
 * lanes of one group run on every rank at once; it checks in every lane and compares exactly.
 */
#ifndef GINSHMEM_TESTS_GPU_DEVICE_H
#define GINSHMEM_TESTS_GPU_DEVICE_H

#include "tests/gpu/device/fake.h"

/* In host memory: what went wrong first, and how often. */
struct verdict {
    uint32_t fails, claimed;
    uint32_t line, thread;
    uint64_t got, want;
};

/* What a launch gets. */
struct launch {
    gin_devcomm_t dev;
    gin_group_t grp;
    int test, n;
    int32_t list;       /* name of the list of ranks */
    int rings;          /* there is an engine */
    uint64_t multicast; /* address, 0: none */
    int lsa;            /* ranks of the LSA team */
    struct verdict *verdict;
    uint64_t *error_seen; /* the host waits for it before it raises the error word */
    uint64_t *hold; /* two words: while the first is not 0 the engine stands still; it says so */
};

/* What follows is read on the side of the device only: it uses what kernels are made of. */
#ifdef __CUDA_ARCH__

struct env {
    gin_t g;
    gin_group_t grp;
    struct gin_i_group q;
    int n, rank, right, left, rings;
    gin_team_t world;
    const struct launch *l;
};

#ifdef __CUDACC__
#define DEVICE __device__ __noinline__ static
#else
#define DEVICE static __attribute__((noinline))
#endif

DEVICE void check(const struct env *e, uint32_t line, uint64_t got, uint64_t want)
{
    struct verdict *v = e->l->verdict;
    if (got == want)
        return;
    gin_i_atom32_add_sys(&v->fails, 1);
    if (gin_i_atom32_exch_sys(&v->claimed, 1) != 0)
        return;
    v->line = line;
    v->thread = gin_i_thread_in_block();
    v->got = got;
    v->want = want;
}

#define CHECK(got, want) check(e, __LINE__, (uint64_t)(got), (uint64_t)(want))
#define CHECK_OK(call)   CHECK(call, GIN_OK)

DEVICE void meet(struct env *e)
{
    CHECK_OK(gin_barrier(&e->g, e->grp, gin_barrier_world(), 3, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
}

DEVICE uint8_t pattern(int rank, uint64_t round, uint64_t i)
{
    uint64_t x = (round * 7919 + (uint64_t)rank * 104729 + i) * 0x9E3779B97F4A7C15ull;
    return (uint8_t)(x >> 56);
}

/* Offsets in the heap: below REACH in registers' reach, the rest is found in the table. */
#define REACH (FAKE_USER / 2)

GIN_DEV gin_at_t heap_at(uint64_t off)
{
    return gin_at(fake_window(FAKE_HEAP), off);
}

#endif
#endif
