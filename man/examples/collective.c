/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of work, and the norm of a vector. */
#include "frame.h"

/* begin shares */
/* Rank r has n items; everybody gets the counts of all, and where the
 * items of each begin in the whole. */
static int share(const gin_t *g, uint64_t n, uint64_t *counts,
                 uint64_t *first)
{
    gin_team_t world = gin_world(g);
    gin_at_t mine = gin_at_local(&n);
    int st = gin_allgather(g, gin_thread(), world, 0,
                           gin_at_local(counts), mine, 1, GIN_UINT64);
    if (st == GIN_OK)
        st = gin_scan_exclusive(g, gin_thread(), world, 0,
                                gin_at_local(first), mine, 1,
                                GIN_UINT64, GIN_SUM);
    return st;
}
/* end shares */

/* begin norm */
/* *sum = the sum of squares of all ranks' x[0 .. n - 1]. */
static int norm(const gin_t *g, const double *x, size_t n,
                double *sum)
{
    *sum = 0;
    for (size_t i = 0; i < n; i++)
        *sum += x[i] * x[i];
    return gin_allreduce(g, gin_thread(), gin_world(g), 0,
                         gin_at_local(sum), gin_at_local(sum), 1,
                         GIN_DOUBLE, GIN_SUM);
}
/* end norm */

int example(gin_comm_t *comm, const gin_t *g)
{
    int rank = gin_rank(comm), size = gin_size(comm);
    uint64_t first, *counts = calloc((size_t)size, sizeof(*counts));
    double sum, x[2] = {1, 2};
    if (counts == NULL)
        return GIN_ENOMEM;
    int st = share(g, (uint64_t)rank + 1, counts, &first);
    for (int r = 0; r < size && st == GIN_OK; r++)
        if (counts[r] != (uint64_t)r + 1)
            st = GIN_ERANGE;
    if (st == GIN_OK && first != (uint64_t)(rank * (rank + 1) / 2))
        st = GIN_ERANGE;
    if (st == GIN_OK)
        st = norm(g, x, 2, &sum);
    if (st == GIN_OK && (sum < 5 * size || sum > 5 * size))
        st = GIN_ERANGE;
    free(counts);
    return st;
}
