/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of the examples that can be asked for some (--bench). */
#ifndef BENCH_H
#define BENCH_H

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "example.h"

static inline int bench_asked(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--bench") == 0;
}

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Of all ranks. */
static inline double slowest(const gin_t *g, double us)
{
    CHECK(gin_allreduce(g, gin_thread(), gin_world(g), 0, gin_at_local(&us), gin_at_local(&us), 1,
                        GIN_DOUBLE, GIN_MAX));
    return us;
}

static inline int bench_less(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), bench_less);
    return v[n / 2];
}

#endif
