/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of kernels: phases in which all ranks write, then all ranks read.
 *
 * Several blocks of each rank go through the phases on their own: block b of one rank meets block b
 * of the others, by index b of the barriers and with context b. The kernel must be able to run all
 * its blocks at once, since they wait for each other's ranks. Then ranks that share memory meet by
 * the two halves of an LSA barrier and work between them, with plain stores to each other.
 */
#include "example_cuda.h"

#define PHASES 200
#define BLOCKS 8

/* One row of the table per block, one word in it per rank. */
__global__ void phases(gin_devcomm_t dev, gin_at_t table, const uint64_t *mine, int *ok)
{
    gin_t g;
    uint32_t b = blockIdx.x;
    CALL(ok, gin_open(&dev, b, &g));
    gin_team_t world = gin_world(&g);
    const volatile uint64_t *row = mine + b * (uint32_t)world.size;
    gin_at_t slot =
        gin_at(table.win, table.off + 8ull * (b * (uint32_t)world.size + (uint32_t)world.rank));
    for (uint64_t phase = 1; phase <= PHASES; phase++) {
        /* begin phases */
        /* Each thread puts to other ranks; the group of a barrier is the whole block, and a block's
         * barrier completes what all its threads have put. */
        for (int to = (int)threadIdx.x; to < world.size; to += (int)blockDim.x)
            CALL(ok, gin_put_value(&g, gin_thread(), world, to, slot,
                                   phase * 1000 + (uint64_t)world.rank, 8, gin_no_action()));
        /* Behind this barrier everybody's puts of the phase are visible here ... */
        CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_world(), b, GIN_ORDER_ACQ_REL,
                             GIN_FENCE_PUT));
        for (int from = (int)threadIdx.x; from < world.size; from += (int)blockDim.x)
            MUST(ok, row[from] == phase * 1000 + (uint64_t)from);
        /* ... and behind this one everybody has read them. It has no operations to complete. */
        CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_world(), b, GIN_ORDER_ACQ_REL,
                             GIN_FENCE_NONE));
        /* end phases */
    }
}

/* word: one per thread. */
__global__ void halves(gin_devcomm_t dev, gin_at_t at, const uint64_t *word, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    gin_team_t lsa = gin_lsa(&g);
    unsigned t = threadIdx.x, other = (t + 1) % blockDim.x;
    uint64_t left = (uint64_t)((lsa.rank + lsa.size - 1) % lsa.size), work = 0;
    uint64_t *right = (uint64_t *)gin_lsa_ptr(&g, (lsa.rank + 1) % lsa.size, at);
    MUST(ok, right != NULL);
    for (uint64_t phase = 1; phase <= PHASES && right != NULL; phase++) {
        /* begin halves */
        right[t] = phase * 1000 + (uint64_t)lsa.rank + t;
        CALL(ok, gin_lsa_arrive(&g, gin_block(), 0, GIN_ORDER_RELEASE));
        for (uint64_t i = 0; i < 100; i++) /* work that needs nobody */
            work += i * phase;
        CALL(ok, gin_lsa_wait(&g, gin_block(), 0, GIN_ORDER_ACQUIRE, NULL));
        /* any thread of the block may read what any of the neighbour's wrote */
        MUST(ok, ((const volatile uint64_t *)word)[other] == phase * 1000 + left + other);
        /* end halves */
        CALL(ok,
             gin_barrier(&g, gin_block(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    }
    MUST(ok, work != 0);
}

int main(void)
{
    gin_comm_t *comm;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok();
    size_t size = (size_t)gin_size(comm);
    uint64_t *table = (uint64_t *)CHECK_PTR(gin_calloc_kind(comm, GIN_KIND_CUDA, BLOCKS * size, 8));
    uint64_t *words = (uint64_t *)CHECK_PTR(gin_calloc_kind(comm, GIN_KIND_CUDA, 256, 8));
    gin_devcomm_t dev = kernel_devcomm(comm, BLOCKS, BLOCKS);

    phases<<<BLOCKS, 64>>>(dev, place_of(comm, table), table, ok);
    halves<<<1, 256>>>(dev, place_of(comm, words), words, ok);
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, words));
    CHECK(gin_free(comm, table));
    return finish(comm, *ok, "barrier demo in kernels: 8 blocks, 200 phases");
}
