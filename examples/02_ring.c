/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring exchange: blocks travel from neighbour to neighbour until every rank has seen all of them.
 *
 * In step k a rank passes on the block that it got in step k - 1. A weak signal rides on each put:
 * when it is seen, the put's bytes are here. The signal is never reset; what is waited for is the
 * number of puts so far. Slots are written once per round, and a barrier divides the rounds: no
 * rank may get bytes of the next one while it still reads the last.
 */
#include "example.h"

#define ROUNDS 50
#define WORDS  2048
#define BYTES  (WORDS * sizeof(uint64_t))

static uint64_t word(int round, int rank, int i)
{
    return ((uint64_t)round << 40) + ((uint64_t)rank << 20) + (uint64_t)i;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1;
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    uint64_t *blocks = CHECK_PTR(gin_malloc(comm, (size_t)size * BYTES)); /* one slot per origin */
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));

    uint64_t arrived = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            blocks[rank * WORDS + i] = word(round, rank, i);
        /* begin ring */
        int right = (rank + 1) % size;
        for (int k = 0; k < size - 1; k++) {
            int origin = (rank - k + size) % size;
            gin_at_t slot = gin_at_ptr(&g, &blocks[origin * WORDS]);
            CHECK(gin_put(&g, gin_thread(), gin_world(&g), right, slot, slot, BYTES,
                          gin_weak_inc(0)));
            /* The next block to pass on is here once one more signal has come in. */
            CHECK(gin_wait_signal(&g, gin_thread(), 0, ++arrived));
        }
        /* end ring */
        for (int r = 0; r < size; r++)
            for (int i = 0; i < WORDS; i++)
                ok = ok && blocks[r * WORDS + i] == word(round, r, i);
        CHECK(gin_barrier(&g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_ALL));
    }
    /* Waits are for "at least"; in the end there must not be more. */
    ok = ok && gin_read_signal(&g, 0) == arrived;
    show_paths(comm);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, blocks));
    return finish(comm, ok, "ring: 50 rounds of 16 KiB blocks");
}
