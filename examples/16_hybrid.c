/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all that takes the best way to each peer: blocks for ranks that map each other's memory
 * are stored there by the program itself, all others are put with a signal, over whatever path the
 * library has. With one host everything is near, with a rank on each host everything is far; in
 * between, both go on at the same time.
 *
 * A barrier of the near ranks says that their blocks are here, a weak signal that the far ones are.
 * Two inboxes in turn, as in 04_alltoall: who takes part in a round has read the one before.
 */
#include <string.h>
#include "example.h"

#define ROUNDS 100
#define WORDS  512 /* per block */
#define BYTES  (WORDS * sizeof(uint64_t))

static uint64_t word(int round, int from, int to, int i)
{
    return ((uint64_t)round << 48) + ((uint64_t)from << 32) + ((uint64_t)to << 16) + (uint64_t)i;
}

/* The peers whose part of the window is loaded and stored; their number. */
static int find_near(gin_comm_t *comm, gin_window_t win, char *near)
{
    int n = 0;
    /* begin paths */
    for (int peer = 0; peer < gin_size(comm); peer++) {
        gin_path_t path = gin_window_path(comm, win, peer);
        if (path == GIN_PATH_NONE)
            check(GIN_ENOTSUP, "gin_window_path");
        near[peer] = path == GIN_PATH_SELF || path == GIN_PATH_LSA;
        n += near[peer];
    }
    /* end paths */
    return n;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1;
    char line[120];
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    uint64_t *outbox = malloc((size_t)size * BYTES);
    uint64_t *inbox[2];
    for (int i = 0; i < 2; i++)
        inbox[i] = CHECK_PTR(gin_malloc(comm, (size_t)size * BYTES));
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));
    char *near = malloc((size_t)size);
    int n_near = find_near(comm, gin_heap_window(comm, GIN_KIND_HOST), near), n_far = size - n_near;

    for (int round = 0; round < ROUNDS; round++) {
        for (int to = 0; to < size; to++)
            for (int i = 0; i < WORDS; i++)
                outbox[to * WORDS + i] = word(round, rank, to, i);
        /* begin hybrid */
        uint64_t *mine = inbox[round % 2] + rank * WORDS; /* my block at each peer */
        for (int to = 0; to < size; to++)                 /* far first: it takes longer */
            if (!near[to])
                CHECK(gin_put(&g, gin_thread(), gin_world(&g), to, gin_at_ptr(&g, mine),
                              gin_at_local(outbox + to * WORDS), BYTES,
                              gin_weak_inc((uint32_t)round % 2)));
        for (int to = 0; to < size; to++)
            if (near[to])
                memcpy(gin_ptr(comm, mine, to), outbox + to * WORDS, BYTES);
        CHECK(
            gin_barrier(&g, gin_thread(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        CHECK(gin_wait_signal(&g, gin_thread(), (uint32_t)round % 2,
                              (uint64_t)n_far * (uint64_t)(round / 2 + 1)));
        /* end hybrid */
        for (int from = 0; from < size; from++)
            for (int i = 0; i < WORDS; i++)
                ok = ok && inbox[round % 2][from * WORDS + i] == word(round, from, rank, i);
        CHECK(gin_flush(&g, gin_thread())); /* before the outbox is filled again */
    }
    ok = ok && gin_read_signal(&g, 0) + gin_read_signal(&g, 1) == (uint64_t)n_far * ROUNDS;
    snprintf(line, sizeof(line), "hybrid all-to-all: %d near, %d far", n_near, n_far);
    show_paths(comm);
    CHECK(gin_devcomm_destroy(comm, &dev));
    for (int i = 0; i < 2; i++)
        CHECK(gin_free(comm, inbox[i]));
    free(near);
    free(outbox);
    return finish(comm, ok, line);
}
