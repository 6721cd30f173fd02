/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A measurement bounded by time: in growing steps, each as long as the last one lets expect to fit,
 * so that a machine whose cores others use ends it soon with fewer repetitions, and no rank is
 * waited for longer than the bootstrap's deadline. The figure is that of the longest step. Every
 * rank decides by the same times, those of the slowest, so all do the same steps.
 */
#include <stdlib.h>

#include "ginperf.h"

#define FIRST    8
#define GROWTH   8
#define LIMIT_NS 2e8

struct step {
    double ns, took;
};

/* The figure of rank 0 and the time of the slowest rank, known to all. */
static struct step by_all(struct perf *p, struct step mine)
{
    struct step *all = malloc((size_t)p->size * sizeof(*all));
    if (all == NULL || gin_comm_allgather(p->comm, &mine, all, sizeof(mine)) != GIN_OK) {
        fprintf(stderr, "ginperf: rank %d: %s\n", p->rank,
                all != NULL ? gin_last_error() : "no memory");
        exit(1);
    }
    mine = all[0];
    for (int r = 1; r < p->size; r++)
        mine.took = all[r].took > mine.took ? all[r].took : mine.took;
    free(all);
    return mine;
}

double perf_timed(struct perf *p, perf_timed_fn run, const void *what, long most)
{
    long n = most < FIRST ? most : FIRST;
    for (double spent = 0;;) {
        double began = perf_now_ns();
        double ns = run(p, what, n);
        struct step s = by_all(p, (struct step){ns, perf_now_ns() - began});
        spent += s.took;
        most -= n;
        double fits = (LIMIT_NS - spent) / (s.took / (double)n);
        if (s.ns <= 0 || most < n || fits < (double)n)
            return s.ns;
        n = most < GROWTH * n ? most : GROWTH * n;
        if (fits < (double)n)
            n = (long)fits;
    }
}
