/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large puts from the first rank to the last, as many as the first argument says, 4 MiB each, and
 * how long they took until they were there. What arrived is compared. For tests/beds/rails.
 */
#include <ginshmem.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)4 << 20)

static int said(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, gin_last_error());
    return 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A number for each 8 bytes of each put. */
static void fill(uint64_t *words, uint64_t put)
{
    for (size_t i = 0; i < BYTES / 8; i++)
        words[i] = put << 32 | i;
}

static int send(const gin_t *g, int to, uint64_t *here, uint64_t *there, uint64_t puts)
{
    gin_team_t w = gin_world(g);
    double began = now();
    for (uint64_t k = 0; k < puts; k++) {
        uint64_t *from = here + k * (BYTES / 8), *at = there + k * (BYTES / 8);
        if (gin_put(g, gin_thread(), w, to, gin_at_ptr(g, at), gin_at_ptr(g, from), BYTES,
                    gin_no_action()) != GIN_OK)
            return said("gin_put");
    }
    if (gin_signal(g, gin_thread(), w, to, gin_strong_inc(0)) != GIN_OK)
        return said("gin_signal");
    if (gin_quiet(g, gin_thread()) != GIN_OK)
        return said("gin_quiet");
    double took = now() - began;
    printf("rails: %.0f Mbit/s\n", (double)(puts * BYTES) * 8e-6 / took);
    return 0;
}

static int receive(const gin_t *g, const uint64_t *there, uint64_t puts)
{
    if (gin_wait_signal(g, gin_thread(), 0, 1) != GIN_OK)
        return said("gin_wait_signal");
    for (uint64_t i = 0; i < puts * (BYTES / 8); i++)
        if (there[i] != (i / (BYTES / 8) << 32 | i % (BYTES / 8))) {
            fprintf(stderr, "word %" PRIu64 " is %" PRIx64 "\n", i, there[i]);
            return 1;
        }
    printf("rails: %" PRIu64 " puts are whole\n", puts);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t puts = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    if (gin_init(NULL, &comm) != GIN_OK)
        return said("gin_init");
    uint64_t *there = gin_calloc(comm, puts, BYTES), *here = gin_calloc(comm, puts, BYTES);
    if (there == NULL || here == NULL)
        return said("gin_calloc");
    if (gin_devcomm_create(comm, NULL, &dev) != GIN_OK)
        return said("gin_devcomm_create");
    int rank = gin_rank(comm), last = gin_size(comm) - 1, rc = gin_open(&dev, 0, &g) != GIN_OK;
    for (uint64_t k = 0; k < puts; k++)
        fill(here + k * (BYTES / 8), k);
    if (rc == 0 && gin_comm_barrier(comm) != GIN_OK)
        return said("gin_comm_barrier");
    if (rc == 0 && rank == 0)
        rc = send(&g, last, here, there, puts);
    if (rc == 0 && rank == last)
        rc = receive(&g, there, puts);
    if (gin_comm_barrier(comm) != GIN_OK || gin_finalize(comm) != GIN_OK)
        return said("the end");
    return rc;
}
