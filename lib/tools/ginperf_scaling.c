/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginperf --scaling: what the steps of a program cost a rank in time, private memory and exchanges
 * through the bootstrap. One line of name=value pairs; tests/perf/scaling.sh runs it with more and
 * more ranks and draws lines through the figures. Memory is what the C library's allocator holds,
 * libfabric's included: neither the heap, which is mapped, nor the kernel's sockets.
 */
#include <malloc.h>
#include <stdlib.h>

#include "ginperf.h"

#define WINDOWS 8

/* After a step. */
struct point {
    double ms, bytes, rounds, gathered;
};

static gin_comm_t *comm;
static double began;

static int fail(const char *what)
{
    fprintf(stderr, "ginperf: --scaling: %s: %s\n", what, gin_last_error());
    return 1;
}

static struct point here(void)
{
    struct mallinfo2 m = mallinfo2();
    gin_stats_t s = {.size_of = sizeof(s)};
    if (comm != NULL)
        gin_stats(comm, &s);
    struct point p = {.ms = (perf_now_ns() - began) / 1e6,
                      .bytes = (double)(m.uordblks + m.hblkhd),
                      .rounds = (double)s.boot_rounds,
                      .gathered = (double)s.boot_bytes};
    return p;
}

/* Times: the slowest rank; the rest: the mean. Each figure of a step, by rank 0. */
static int tell(const char *step, const struct point *from, const struct point *to, double per)
{
    double mine[4] = {(to->ms - from->ms) / per, (to->bytes - from->bytes) / per,
                      (to->rounds - from->rounds) / per, (to->gathered - from->gathered) / per};
    int n = gin_size(comm);
    double *all = malloc((size_t)n * sizeof(mine)), slowest = 0, sum[3] = {0};
    if (all == NULL || gin_comm_allgather(comm, mine, all, sizeof(mine)) != GIN_OK) {
        free(all);
        return fail("results");
    }
    for (int r = 0; r < n; r++) {
        slowest = all[4 * r] > slowest ? all[4 * r] : slowest;
        for (int k = 0; k < 3; k++)
            sum[k] += all[4 * r + k + 1] / n;
    }
    if (gin_rank(comm) == 0)
        printf(" %s_ms=%.3f %s_bytes=%.0f %s_rounds=%.2f %s_gathered=%.0f", step, slowest, step,
               sum[0], step, sum[1], step, sum[2]);
    free(all);
    return 0;
}

/* A put to everybody, the farthest last. */
static int contact(const gin_devcomm_t *dev, char *heap)
{
    gin_t g;
    uint64_t word = 1;
    if (gin_open(dev, 0, &g) != GIN_OK)
        return fail("gin_open");
    gin_at_t to = gin_at_ptr(&g, heap);
    for (int i = 1; i < gin_size(comm); i++)
        if (gin_put(&g, gin_thread(), gin_world(&g), (gin_rank(comm) + i) % gin_size(comm), to,
                    gin_at_local(&word), 8, gin_no_action()) != GIN_OK)
            return fail("gin_put");
    if (gin_quiet(&g, gin_thread()) != GIN_OK)
        return fail("gin_quiet");
    return gin_comm_barrier(comm) == GIN_OK ? 0 : fail("gin_comm_barrier");
}

int perf_scaling_run(void)
{
    static char user[WINDOWS][4096] __attribute__((aligned(4096)));
    gin_window_t win[WINDOWS];
    gin_devcomm_reqs_t one;
    gin_devcomm_t dev, second;
    began = perf_now_ns();
    struct point start = here();
    if (gin_init(NULL, &comm) != GIN_OK)
        return fail("gin_init");
    struct point joined = here();
    char *heap = gin_calloc(comm, 1, 64);
    if (heap == NULL)
        return fail("gin_calloc");
    struct point up = here();
    if (gin_devcomm_create(comm, NULL, &dev) != GIN_OK)
        return fail("gin_devcomm_create");
    struct point made = here();
    gin_devcomm_reqs_init(&one);
    one.contexts = 5; /* one more than the default */
    if (gin_devcomm_create(comm, &one, &second) != GIN_OK)
        return fail("gin_devcomm_create");
    struct point again = here();
    for (int i = 0; i < WINDOWS; i++)
        if (gin_window_register(comm, user[i], sizeof(user[i]), 0, &win[i]) != GIN_OK)
            return fail("gin_window_register");
    struct point seen = here();
    int st = contact(&dev, heap);
    struct point met = here();
    if (gin_rank(comm) == 0)
        printf("ranks=%d", gin_size(comm));
    if (st == 0)
        st = tell("join", &start, &joined, 1) || tell("heap", &joined, &up, 1) ||
             tell("devcomm", &up, &made, 1) || tell("context", &made, &again, 6) ||
             tell("window", &again, &seen, WINDOWS) || tell("contact", &seen, &met, 1);
    if (gin_rank(comm) == 0)
        printf("\n");
    for (int i = 0; i < WINDOWS; i++)
        gin_window_deregister(comm, win[i]);
    gin_devcomm_destroy(comm, &second);
    gin_devcomm_destroy(comm, &dev);
    return gin_finalize(comm) == GIN_OK ? st : fail("gin_finalize");
}
