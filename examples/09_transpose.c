/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transpose by gets: each rank fetches from the others what it needs, when it needs it.
 *
 * The matrix is spread by blocks of rows. A rank gets its columns from all ranks, row piece by row
 * piece, and turns them over on its own. A barrier before the gets makes sure that the sources are
 * complete, one behind them that they may change again. Flush makes the got bytes visible.
 */
#include "example.h"

#define N 333 /* divides by few numbers of ranks */

static int first(int rank, int size)
{
    return (int)((int64_t)rank * N / size);
}

static double value(int round, int y, int x)
{
    return round * 1e6 + y * 1000 + x;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1;
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    int y0 = first(rank, size), rows = first(rank + 1, size) - y0;
    size_t most = N / (size_t)size + 1; /* rows of any rank: symmetric blocks have one size */
    double *a = CHECK_PTR(gin_malloc(comm, most * N * sizeof(double)));
    double *piece = malloc(N * most * sizeof(double)); /* N rows of my columns */
    double *t = malloc(most * N * sizeof(double));
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));
    gin_barrier_t world = gin_barrier_world();

    for (int round = 0; round < 5; round++) {
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < N; x++)
                a[y * N + x] = value(round, y0 + y, x);
        /* begin transpose */
        CHECK(gin_barrier(&g, gin_thread(), world, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        for (int k = 0; k < size; k++) {
            int from = (rank + k) % size; /* each rank asks another one first */
            for (int y = first(from, size); y < first(from + 1, size); y++)
                CHECK(gin_get(&g, gin_thread(), gin_world(&g), from,
                              gin_at_ptr(&g, a + (y - first(from, size)) * N + y0),
                              gin_at_local(piece + y * rows), (size_t)rows * sizeof(double)));
        }
        CHECK(gin_flush(&g, gin_thread())); /* the got bytes are here */
        CHECK(gin_barrier(&g, gin_thread(), world, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        /* end transpose */
        for (int y = 0; y < N; y++)
            for (int x = 0; x < rows; x++)
                t[x * N + y] = piece[y * rows + x];
        for (int x = 0; x < rows; x++)
            for (int y = 0; y < N; y++)
                ok = ok && t[x * N + y] == value(round, y, y0 + x);
    }
    free(piece);
    free(t);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, a));
    return finish(comm, ok, "transpose: 333 x 333, 5 rounds");
}
