/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all with weak signals and no barrier: every rank puts one block to every rank, many times.
 *
 * Two inboxes are used in turn, each with a signal of its own. A round is complete when its signal
 * says that all blocks are here. That also tells that every rank has begun the round, hence has
 * read the one before: so its inbox may be written again in the next round. One signal for both
 * inboxes would be wrong: a fast rank's block of the next round could stand in for a slow rank's
 * block of this one.
 */
#include "example.h"

#define ROUNDS 200
#define WORDS  512 /* per block */
#define BYTES  (WORDS * sizeof(uint64_t))

static uint64_t word(int round, int from, int to, int i)
{
    return ((uint64_t)round << 48) + ((uint64_t)from << 32) + ((uint64_t)to << 16) + (uint64_t)i;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1;
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    uint64_t *outbox = malloc((size_t)size * BYTES); /* a put's source may be any memory of mine */
    uint64_t *inbox[2];
    for (int i = 0; i < 2; i++)
        inbox[i] = CHECK_PTR(gin_malloc(comm, (size_t)size * BYTES));
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));

    for (int round = 0; round < ROUNDS; round++) {
        for (int to = 0; to < size; to++)
            for (int i = 0; i < WORDS; i++)
                outbox[to * WORDS + i] = word(round, rank, to, i);
        /* begin alltoall */
        uint32_t turn = (uint32_t)round % 2;
        gin_at_t mine = gin_at_ptr(&g, inbox[turn] + rank * WORDS); /* my block at each peer */
        for (int k = 0; k < size; k++) {
            int to = (rank + k) % size; /* not all at rank 0 first */
            CHECK(gin_put(&g, gin_thread(), gin_world(&g), to, mine,
                          gin_at_local(outbox + to * WORDS), BYTES, gin_weak_inc(turn)));
        }
        CHECK(gin_wait_signal(&g, gin_thread(), turn, (uint64_t)size * (round / 2 + 1)));
        /* end alltoall */
        for (int from = 0; from < size; from++)
            for (int i = 0; i < WORDS; i++)
                ok = ok && inbox[turn][from * WORDS + i] == word(round, from, rank, i);
        CHECK(gin_flush(&g, gin_thread())); /* before the outbox is filled again */
    }
    ok = ok && gin_read_signal(&g, 0) + gin_read_signal(&g, 1) == (uint64_t)size * ROUNDS;
    show_paths(comm);
    CHECK(gin_devcomm_destroy(comm, &dev));
    for (int i = 0; i < 2; i++)
        CHECK(gin_free(comm, inbox[i]));
    free(outbox);
    return finish(comm, ok, "alltoall: 200 rounds of 4 KiB blocks");
}
