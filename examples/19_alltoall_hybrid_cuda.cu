/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all, near and far at once, from a whole grid: 16 blocks of 512 threads store straight into
 * the inboxes of ranks whose memory is mapped here, while puts to all others are under way.
 *
 * Far pieces tell of themselves by the signal of their block. Near ones tell nothing: the barrier
 * behind them does, and the one before the next round keeps the inboxes until they have been read.
 * Both go by load and store inside a host and by the network between them (gin_barrier_hybrid()).
 * With all ranks on one host everything is near, with "ginrun --hosts 2" half of it is.
 */
#include "example_cuda.h"

#define BLOCKS  16
#define THREADS 512
#define WORDS   256 /* of a piece: what a block sends to a rank */
#define BYTES   (WORDS * sizeof(uint64_t))
#define ROUNDS  10

struct memory {
    gin_at_t inbox, outbox; /* of pieces: [rank][block] */
    uint64_t *in, *out;
};

__device__ static uint64_t word(int round, int from, int to, int block, int i)
{
    return ((uint64_t)round << 56) + ((uint64_t)from << 44) + ((uint64_t)to << 32) +
           ((uint64_t)block << 16) + (uint64_t)i;
}

__device__ static gin_at_t piece(gin_at_t box, int rank, int block)
{
    return gin_at(box.win, box.off + ((uint64_t)rank * BLOCKS + (uint64_t)block) * BYTES);
}

/* The whole block's piece to a near rank. */
__device__ static void store(uint64_t *to, const uint64_t *from)
{
    for (int i = (int)threadIdx.x; i < WORDS; i += (int)blockDim.x)
        to[i] = from[i];
}

__global__ void __launch_bounds__(THREADS) alltoall(gin_devcomm_t dev, struct memory m, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    gin_team_t world = gin_world(&g);
    int size = g.size, rank = g.rank, b = (int)blockIdx.x;
    int t = (int)threadIdx.x, threads = (int)blockDim.x, far = 0;
    for (int r = 0; r < size; r++)
        far += gin_peer_ptr(&g, world, r, m.inbox) == NULL;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = t; k < size * WORDS; k += threads)
            m.out[(k / WORDS * BLOCKS + b) * WORDS + k % WORDS] =
                word(round, rank, k / WORDS, b, k % WORDS);
        /* begin hybrid */
        CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_hybrid(), blockIdx.x, GIN_ORDER_ACQ_REL,
                             GIN_FENCE_NONE));
        for (int k = t; k < size; k += threads) { /* the far ones first: they take longer */
            int to = (rank + k) % size;
            if (gin_peer_ptr(&g, world, to, m.inbox) == NULL)
                CALL(ok, gin_put(&g, gin_thread(), world, to, piece(m.inbox, rank, b),
                                 piece(m.outbox, to, b), BYTES, gin_weak_inc(blockIdx.x)));
        }
        for (int k = 0; k < size; k++) {
            int to = (rank + k) % size;
            uint64_t *near = (uint64_t *)gin_peer_ptr(&g, world, to, piece(m.inbox, rank, b));
            if (near != NULL)
                store(near, m.out + (to * BLOCKS + b) * WORDS);
        }
        CALL(ok, gin_wait_signal(&g, gin_block(), blockIdx.x, (uint64_t)far * (round + 1)));
        CALL(ok, gin_flush(&g, gin_block()));
        CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_hybrid(), blockIdx.x, GIN_ORDER_ACQ_REL,
                             GIN_FENCE_NONE));
        /* end hybrid */
        for (int k = t; k < size * WORDS; k += threads)
            MUST(ok, m.in[(k / WORDS * BLOCKS + b) * WORDS + k % WORDS] ==
                         word(round, k / WORDS, rank, b, k % WORDS));
    }
    MUST(ok, gin_read_signal(&g, blockIdx.x) == (uint64_t)far * ROUNDS);
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    struct memory m;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok();
    size_t bytes = (size_t)gin_size(comm) * BLOCKS * BYTES;
    m.in = (uint64_t *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, bytes));
    m.out = (uint64_t *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, bytes));
    m.inbox = place_of(comm, m.in);
    m.outbox = place_of(comm, m.out);
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = 1;
    reqs.signals = reqs.hybrid_barriers = BLOCKS;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));

    alltoall<<<BLOCKS, THREADS>>>(dev, m, ok);
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, m.out));
    CHECK(gin_free(comm, m.in));
    return finish(comm, *ok, "alltoall near and far: 10 rounds, 16 blocks of 512 threads");
}
