/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduce through pointers: ranks that share memory add up each other's vectors with loads and
 * stores.
 *
 * Every rank owns a slice: it loads that slice of all ranks, adds, and stores the sum into all
 * ranks' results. Thread block b meets block b of the other ranks, by index b of the barriers; what
 * joins the blocks of a rank is the end of the kernel. All blocks must be able to run at once.
 */
#include "example_cuda.h"

#define COUNT  (1 << 18)
#define BLOCKS 16
#define ROUNDS 20

__device__ static int element(int round, int rank, int i)
{
    return (i * 7 + rank * 13 + round) % 1000;
}

__global__ void allreduce(gin_devcomm_t dev, gin_at_t result, gin_at_t vector, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    gin_team_t lsa = gin_lsa(&g);
    int size = lsa.size, threads = (int)(gridDim.x * blockDim.x);
    /* begin allreduce */
    /* Behind this barrier everybody's vector is filled and nobody still reads old results: the
     * kernels that did so are done on every rank that has come here. */
    CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_lsa(), blockIdx.x, GIN_ORDER_ACQ_REL,
                         GIN_FENCE_NONE));
    int first = (int)((long)COUNT * lsa.rank / size);
    int last = (int)((long)COUNT * (lsa.rank + 1) / size);
    for (int i = first + (int)(blockIdx.x * blockDim.x + threadIdx.x); i < last; i += threads) {
        int sum = 0;
        for (int r = 0; r < size; r++)
            sum += ((const int *)gin_lsa_ptr(&g, r, vector))[i];
        for (int r = 0; r < size; r++)
            ((int *)gin_lsa_ptr(&g, r, result))[i] = sum;
    }
    /* Release of my stores, acquire of theirs. Once all my blocks are through, all of the result
     * is here. */
    CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_lsa(), blockIdx.x, GIN_ORDER_ACQ_REL,
                         GIN_FENCE_NONE));
    /* end allreduce */
}

__global__ void fill(int *vector, int round, int rank)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < COUNT;
         i += (int)(gridDim.x * blockDim.x))
        vector[i] = element(round, rank, i);
}

__global__ void verify(const int *result, int round, int ranks, int *ok)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < COUNT;
         i += (int)(gridDim.x * blockDim.x)) {
        int sum = 0;
        for (int r = 0; r < ranks; r++)
            sum += element(round, r, i);
        MUST(ok, result[i] == sum);
    }
}

int main(void)
{
    gin_comm_t *comm;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok(), rank = gin_rank(comm), size = gin_size(comm);
    int *vector = (int *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, COUNT * sizeof(int)));
    int *result = (int *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, COUNT * sizeof(int)));
    gin_devcomm_t dev = kernel_devcomm(comm, 1, BLOCKS);
    if (gin_team_lsa(comm).size != size)
        return finish(comm, 1, "allreduce in kernels: not all ranks share memory, nothing done");

    for (int round = 0; round < ROUNDS; round++) {
        fill<<<BLOCKS, 256>>>(vector, round, rank);
        allreduce<<<BLOCKS, 256>>>(dev, place_of(comm, result), place_of(comm, vector), ok);
        verify<<<BLOCKS, 256>>>(result, round, size, ok);
        /* The vector may be filled again: all ranks have read it before my kernel could end. */
    }
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, result));
    CHECK(gin_free(comm, vector));
    return finish(comm, *ok, "allreduce in kernels: 20 rounds of 1 MiB");
}
