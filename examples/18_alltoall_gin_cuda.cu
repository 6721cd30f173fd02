/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all by the network alone, from a whole grid: 16 blocks of 512 threads, each thread puts
 * pieces of its own.
 *
 * Block b of every rank works with block b of all the others: it fills its pieces, meets them in
 * the barrier of its index, so that everybody's inbox has been read, puts, and waits for the signal
 * of its index, which counts all pieces that are for it. So no block waits for another one of its
 * own rank. Load and store are left out of the paths: to a rank of this host, and to itself, a put
 * takes the way it takes to a far one.
 */
#include "example_cuda.h"

#define BLOCKS  16
#define THREADS 512
#define PIECES  8  /* of a block, for each rank */
#define WORDS   64 /* of a piece */
#define BYTES   (WORDS * sizeof(uint64_t))
#define ROUNDS  10

struct memory {
    gin_at_t inbox, outbox; /* of pieces: [rank][block][piece] */
    uint64_t *in, *out;
};

__device__ static uint64_t word(int round, int from, int to, int piece, int i)
{
    return ((uint64_t)round << 56) + ((uint64_t)from << 44) + ((uint64_t)to << 32) +
           ((uint64_t)piece << 16) + (uint64_t)i;
}

/* The n-th piece of a block for rank to, or from that rank. */
__device__ static int piece_of(int rank, int block, int n)
{
    return (rank * BLOCKS + block) * PIECES + n;
}

__device__ static gin_at_t place_of_piece(gin_at_t box, int piece)
{
    return gin_at(box.win, box.off + (uint64_t)piece * BYTES);
}

__global__ void __launch_bounds__(THREADS) alltoall(gin_devcomm_t dev, struct memory m, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    int size = g.size, rank = g.rank, b = (int)blockIdx.x;
    int t = (int)threadIdx.x, threads = (int)blockDim.x;
    uint64_t before = gin_read_signal(&g, blockIdx.x), each = (uint64_t)size * PIECES;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = t; k < size * PIECES * WORDS; k += threads) {
            int n = k / WORDS, piece = piece_of(n / PIECES, b, n % PIECES), i = k % WORDS;
            m.out[piece * WORDS + i] = word(round, rank, n / PIECES, b * PIECES + n % PIECES, i);
        }
        /* begin pure */
        CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_world(), blockIdx.x, GIN_ORDER_ACQ_REL,
                             GIN_FENCE_NONE));
        for (int n = t; n < size * PIECES; n += threads) {
            int to = (rank + n / PIECES) % size; /* not all at rank 0 first */
            CALL(ok, gin_put(&g, gin_thread(), gin_world(&g), to,
                             place_of_piece(m.inbox, piece_of(rank, b, n % PIECES)),
                             place_of_piece(m.outbox, piece_of(to, b, n % PIECES)), BYTES,
                             gin_weak_inc(blockIdx.x)));
        }
        CALL(ok,
             gin_wait_signal(&g, gin_block(), blockIdx.x, before + each * (uint64_t)(round + 1)));
        CALL(ok, gin_flush(&g, gin_block())); /* the outbox may be filled again */
        /* end pure */
        for (int k = t; k < size * PIECES * WORDS; k += threads) {
            int n = k / WORDS, piece = piece_of(n / PIECES, b, n % PIECES), i = k % WORDS;
            MUST(ok, m.in[piece * WORDS + i] ==
                         word(round, n / PIECES, rank, b * PIECES + n % PIECES, i));
        }
    }
    MUST(ok, gin_read_signal(&g, blockIdx.x) == before + each * ROUNDS);
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
    size_t bytes = (size_t)gin_size(comm) * BLOCKS * PIECES * BYTES;
    m.in = (uint64_t *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, bytes));
    m.out = (uint64_t *)CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, bytes));
    m.inbox = place_of(comm, m.in);
    m.outbox = place_of(comm, m.out);
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = 1;
    reqs.signals = reqs.world_barriers = BLOCKS;
    reqs.paths = GIN_PATH_SELF | GIN_PATH_NET;
    int st = gin_devcomm_create(comm, &reqs, &dev);
    if (st == GIN_ENOTSUP) { /* the same on all ranks */
        if (gin_rank(comm) == 0)
            printf("SKIP: %s\n", gin_last_error());
        CHECK(gin_finalize(comm));
        return 77;
    }
    CHECK(st);

    alltoall<<<BLOCKS, THREADS>>>(dev, m, ok);
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, m.out));
    CHECK(gin_free(comm, m.in));
    return finish(comm, *ok, "alltoall by the network alone: 10 rounds, 16 blocks of 512 threads");
}
