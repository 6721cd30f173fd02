/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers: phases in which all ranks write, then all ranks read.
 *
 * Two threads of each rank go through the phases on their own, each with its own context and its
 * own index of barriers. Then ranks that share memory meet by the two halves of an LSA barrier and
 * work between them.
 */
#include <pthread.h>
#include "example.h"

#define PHASES  200
#define THREADS 2

struct work {
    gin_devcomm_t dev;
    uint64_t *table; /* THREADS rows of one word per rank */
    uint32_t index;
    int ok;
};

static void *phases(void *arg)
{
    struct work *w = arg;
    gin_t g;
    CHECK(gin_open(&w->dev, w->index, &g));
    gin_team_t world = gin_world(&g);
    uint64_t *row = w->table + w->index * (uint32_t)world.size;
    for (uint64_t phase = 1; phase <= PHASES; phase++) {
        /* begin phases */
        for (int to = 0; to < world.size; to++)
            CHECK(gin_put_value(&g, gin_thread(), world, to, gin_at_ptr(&g, row + world.rank),
                                phase * 1000 + (uint64_t)world.rank, 8, gin_no_action()));
        /* Behind this barrier everybody's puts of the phase are visible here ... */
        CHECK(gin_barrier(&g, gin_thread(), gin_barrier_world(), w->index, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_PUT));
        for (int from = 0; from < world.size; from++)
            w->ok = w->ok && row[from] == phase * 1000 + (uint64_t)from;
        /* ... and behind this one everybody has read them. It has no operations to complete. */
        CHECK(gin_barrier(&g, gin_thread(), gin_barrier_world(), w->index, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_NONE));
        /* end phases */
    }
    return NULL;
}

/* Neighbours that share memory: plain stores and loads between the halves of a barrier. */
static int shared_memory(const gin_t *g, uint64_t *word)
{
    int ok = 1;
    gin_team_t lsa = gin_lsa(g);
    uint64_t *right = gin_lsa_ptr(g, (lsa.rank + 1) % lsa.size, gin_at_ptr(g, word));
    uint64_t private_sum = 0;
    for (uint64_t phase = 1; phase <= PHASES; phase++) {
        /* begin halves */
        *right = phase + (uint64_t)lsa.rank;
        CHECK(gin_lsa_arrive(g, gin_thread(), 0, GIN_ORDER_RELEASE));
        for (uint64_t i = 0; i < 1000; i++) /* work that needs nobody */
            private_sum += i * phase;
        CHECK(gin_lsa_wait(g, gin_thread(), 0, GIN_ORDER_ACQUIRE, NULL));
        ok = ok && *word == phase + (uint64_t)((lsa.rank + lsa.size - 1) % lsa.size);
        /* end halves */
        CHECK(
            gin_barrier(g, gin_thread(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    }
    return ok && private_sum != 0;
}

int main(void)
{
    gin_comm_t *comm;
    gin_t g;
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    pthread_t thread[THREADS];
    struct work work[THREADS];
    int ok = 1;
    CHECK(gin_init(NULL, &comm));
    size_t size = (size_t)gin_size(comm);
    uint64_t *table = CHECK_PTR(gin_calloc(comm, THREADS * size, sizeof(*table)));
    uint64_t *word = CHECK_PTR(gin_calloc(comm, 1, sizeof(*word)));
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = THREADS;
    reqs.world_barriers = THREADS;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));

    for (uint32_t i = 0; i < THREADS; i++) {
        work[i] = (struct work){dev, table, i, 1};
        if (pthread_create(&thread[i], NULL, phases, &work[i]) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ok = ok && work[i].ok;
    }
    CHECK(gin_open(&dev, 0, &g));
    ok = shared_memory(&g, word) && ok;

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, word));
    CHECK(gin_free(comm, table));
    return finish(comm, ok, "barrier phases: 2 threads, 200 phases");
}
