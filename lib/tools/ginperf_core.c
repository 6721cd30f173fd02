/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A core for each rank's own thread. Two ranks that the scheduler has put on one core measure how
 * it shares that one out, and it is free to, for their threads sleep now and then. The library's
 * threads stay where they like, and so do those that a measurement starts.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ginperf.h"

static cpu_set_t before;
static bool bound;

/* The n-th of the cores that this program may use; -1: there are fewer. */
static int nth_core(int n)
{
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &before) && n-- == 0)
            return c;
    return -1;
}

/* The kernel that runs this rank; hosts may be names or namespaces and share its cores. */
struct machine {
    char id[40];
};

/* My place among the ranks of this machine, and their number. Collective. */
static int place_here(const struct perf *p, int *ranks)
{
    struct machine mine = {""}, *all = calloc((size_t)p->size, sizeof(*all));
    int place = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f != NULL) {
        if (fgets(mine.id, sizeof(mine.id), f) == NULL)
            mine.id[0] = 0;
        fclose(f);
    }
    if (all == NULL || gin_comm_allgather(p->comm, &mine, all, sizeof(mine)) != GIN_OK) {
        fprintf(stderr, "ginperf: rank %d: %s\n", p->rank,
                all != NULL ? gin_last_error() : "no memory");
        exit(1);
    }
    *ranks = 0;
    for (int r = 0; r < p->size; r++)
        if (strcmp(all[r].id, mine.id) == 0) {
            place += r < p->rank;
            ++*ranks;
        }
    free(all);
    return place;
}

bool perf_core_own(const struct perf *p)
{
    cpu_set_t one;
    int ranks, place = place_here(p, &ranks);
    if (sched_getaffinity(0, sizeof(before), &before) != 0 || CPU_COUNT(&before) < ranks)
        return false;
    CPU_ZERO(&one);
    CPU_SET(nth_core(place), &one);
    bound = sched_setaffinity(0, sizeof(one), &one) == 0;
    return bound;
}

void perf_core_any(void)
{
    if (bound && sched_setaffinity(0, sizeof(before), &before) != 0)
        perror("ginperf: sched_setaffinity");
}
