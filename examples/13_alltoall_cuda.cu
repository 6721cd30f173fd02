/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all in a kernel, with weak signals and no barrier: every rank puts one block to every
 * rank, many times.
 *
 * The warps of a thread block share the peers among them, so puts to several peers are under way at
 * once. Two inboxes are used in turn, each with a signal of its own. A round is complete when its
 * signal says that all blocks are here. That also tells that every rank has begun the round, hence
 * has read the one before: so its inbox may be written again in the next round. One signal for both
 * inboxes would be wrong: a fast rank's block of the next round could stand in for a slow rank's
 * block of this one.
 */
#include "example_cuda.h"

#define ROUNDS 200
#define WORDS  512 /* per block */
#define BYTES  (WORDS * sizeof(uint64_t))

struct memory {
    gin_at_t inbox[2];
    const uint64_t *in[2];
    uint64_t *outbox;
};

__device__ static uint64_t word(int round, int from, int to, int i)
{
    return ((uint64_t)round << 48) + ((uint64_t)from << 32) + ((uint64_t)to << 16) + (uint64_t)i;
}

__global__ void alltoall(gin_devcomm_t dev, struct memory m, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    gin_team_t world = gin_world(&g);
    int size = world.size, rank = world.rank, t = (int)threadIdx.x, threads = (int)blockDim.x;
    int warp = t / 32, warps = (threads + 31) / 32;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = t; k < size * WORDS; k += threads)
            m.outbox[k] = word(round, rank, k / WORDS, k % WORDS);
        __syncthreads(); /* a warp puts what other warps wrote */
        /* begin alltoall */
        uint32_t turn = (uint32_t)round % 2;
        gin_at_t mine = m.inbox[turn]; /* my block at each peer */
        mine.off += (uint64_t)rank * BYTES;
        for (int k = warp; k < size; k += warps) {
            int to = (rank + k) % size; /* not all at rank 0 first */
            CALL(ok, gin_put(&g, gin_warp(), world, to, mine, gin_at_local(m.outbox + to * WORDS),
                             BYTES, gin_weak_inc(turn)));
        }
        CALL(ok,
             gin_wait_signal(&g, gin_block(), turn, (uint64_t)size * (uint64_t)(round / 2 + 1)));
        /* end alltoall */
        for (int k = t; k < size * WORDS; k += threads)
            MUST(ok, m.in[turn][k] == word(round, k / WORDS, rank, k % WORDS));
        /* The whole block's puts are done with the outbox, and the inbox has been read, before any
         * warp goes on. */
        __syncthreads();
        CALL(ok, gin_flush(&g, gin_block()));
    }
    /* No rank can be more than one round ahead of me; that one raises the signal of the other turn,
     * but there is none after the last round. */
    MUST(ok, gin_read_signal(&g, 0) + gin_read_signal(&g, 1) == (uint64_t)size * ROUNDS);
}

int main(void)
{
    gin_comm_t *comm;
    struct memory m;
    void *inbox[2];
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok();
    size_t bytes = (size_t)gin_size(comm) * BYTES;
    for (int i = 0; i < 2; i++) {
        inbox[i] = CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, bytes));
        m.inbox[i] = place_of(comm, inbox[i]);
        m.in[i] = (const uint64_t *)inbox[i];
    }
    CUDA(cudaMalloc(&m.outbox, bytes));
    gin_devcomm_t dev = kernel_devcomm(comm, 1, 0);

    alltoall<<<1, 512>>>(dev, m, ok);
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    for (int i = 0; i < 2; i++)
        CHECK(gin_free(comm, inbox[i]));
    return finish(comm, *ok, "alltoall in kernels: 200 rounds of 4 KiB blocks");
}
