/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A core for each rank's own thread. Two ranks that the scheduler has put on one core measure how
 * it shares that one out, and it is free to, for their threads sleep now and then. The library's
 * threads stay where they like, and so do those that a measurement starts.
 */
#include <sched.h>

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

bool perf_core_own(const struct perf *p)
{
    cpu_set_t one;
    if (sched_getaffinity(0, sizeof(before), &before) != 0 || CPU_COUNT(&before) < p->size)
        return false;
    CPU_ZERO(&one);
    CPU_SET(nth_core(p->rank), &one);
    bound = sched_setaffinity(0, sizeof(one), &one) == 0;
    return bound;
}

void perf_core_any(void)
{
    if (bound && sched_setaffinity(0, sizeof(before), &before) != 0)
        perror("ginperf: sched_setaffinity");
}
