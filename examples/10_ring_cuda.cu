/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring exchange in a kernel: blocks travel from GPU to GPU until every rank has seen all of them.
 *
 * One kernel does all rounds; the host only launches it. A weak signal rides on each put: when it
 * is seen, the put's bytes are here, for every thread of the block that waited. The signal is never
 * reset: what is waited for is the number of puts so far. (A reset in this loop would race with the
 * neighbour's next put.)
 */
#include "example_cuda.h"

#define ROUNDS 50
#define WORDS  2048
#define BYTES  (WORDS * sizeof(uint64_t))

__device__ static uint64_t word(int round, int rank, int i)
{
    return ((uint64_t)round << 40) + ((uint64_t)rank << 20) + (uint64_t)i;
}

__global__ void ring(gin_devcomm_t dev, gin_at_t at, uint64_t *blocks, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g)); /* takes registers, nothing else */
    int rank = g.rank, size = g.size;
    uint64_t arrived = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = (int)threadIdx.x; i < WORDS; i += (int)blockDim.x)
            blocks[rank * WORDS + i] = word(round, rank, i);
        __syncthreads();
        /* begin ring */
        int right = (rank + 1) % size;
        for (int k = 0; k < size - 1; k++) {
            int origin = (rank - k + size) % size;
            gin_at_t slot = gin_at(at.win, at.off + (uint64_t)origin * BYTES);
            CALL(ok, gin_put(&g, gin_block(), gin_world(&g), right, slot, slot, BYTES,
                             gin_weak_inc(0)));
            /* The next block to pass on is here once one more signal has come in. */
            CALL(ok, gin_wait_signal(&g, gin_block(), 0, ++arrived));
        }
        /* end ring */
        for (int r = 0; r < size; r++)
            for (int i = (int)threadIdx.x; i < WORDS; i += (int)blockDim.x)
                MUST(ok, blocks[r * WORDS + i] == word(round, r, i));
        /* Nobody may get bytes of the next round while it still reads the last. */
        CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                             GIN_FENCE_ALL));
    }
    /* Waits are for "at least"; in the end there must not be more. */
    MUST(ok, gin_read_signal(&g, 0) == arrived);
}

int main(void)
{
    gin_comm_t *comm;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok();
    uint64_t *blocks =
        (uint64_t *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, (size_t)gin_size(comm) * BYTES));
    gin_devcomm_t dev = kernel_devcomm(comm, 1, 1);

    ring<<<1, 256>>>(dev, place_of(comm, blocks), blocks, ok);
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, blocks));
    return finish(comm, *ok, "ring in kernels: 50 rounds of 16 KiB blocks");
}
