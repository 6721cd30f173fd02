/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 2-D stencil: halos travel while the inside is computed.
 *
 * The field is cut into a grid of ranks. In each step a rank puts its four edges to its neighbours,
 * relaxes the inside, waits for the four halos, relaxes its edges. A counter on the puts says when
 * the edges may be overwritten; signals, one per side, say when halos are here. Halos have two
 * places, used in turn: a neighbour sends step s + 2 only once it has our halo of step s + 1, which
 * we send after the use of its halo of step s.
 */
#include <math.h>
#include <string.h>
#include "example.h"

#define N           120 /* the field, without its border of zeros */
#define STEPS       60
#define AT(f, y, x) (f)[(y) * (w + 2) + (x)]

enum { UP, DOWN, LEFT, RIGHT };

static int first(int i, int parts) /* of the cells of part i */
{
    return i * N / parts;
}

static double start(int y, int x)
{
    return (y * 31 + x * 17) % 100 / 10.0;
}

static void relax(double *to, const double *from, int w, int y, int x0, int x1)
{
    for (int x = x0; x <= x1; x++)
        AT(to, y, x) = 0.25 * (AT(from, y - 1, x) + AT(from, y, x - 1) + AT(from, y, x + 1) +
                               AT(from, y + 1, x));
}

/* The whole field by one rank. */
static double *serial(void)
{
    enum { w = N };
    double *a = calloc((N + 2) * (N + 2), sizeof(*a)), *b = calloc((N + 2) * (N + 2), sizeof(*b));
    for (int y = 1; y <= N; y++)
        for (int x = 1; x <= N; x++)
            AT(a, y, x) = start(y - 1, x - 1);
    for (int s = 0; s < STEPS; s++) {
        for (int y = 1; y <= N; y++)
            relax(b, a, w, y, 1, N);
        double *t = a;
        a = b;
        b = t;
    }
    free(b);
    return a;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1, rows = 1;
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    for (int d = 2; d * d <= size; d++)
        rows = size % d == 0 ? d : rows;
    int cols = size / rows, row = rank / cols, col = rank % cols;
    int y0 = first(row, rows), x0 = first(col, cols);
    int h = first(row + 1, rows) - y0, w = first(col + 1, cols) - x0;
    if (rows > N / 2 || cols > N / 2)
        return finish(comm, 1, "stencil2d: too many ranks for the field, nothing done");
    int peer[4] = {row > 0 ? rank - cols : -1, row < rows - 1 ? rank + cols : -1,
                   col > 0 ? rank - 1 : -1, col < cols - 1 ? rank + 1 : -1};
    double *halos = CHECK_PTR(gin_calloc(comm, 2 * 4 * N, sizeof(double))); /* [turn][side][N] */
    double *cur = calloc((size_t)(h + 2) * (size_t)(w + 2), sizeof(double));
    double *next = calloc((size_t)(h + 2) * (size_t)(w + 2), sizeof(double));
    double(*edges)[N] = calloc(4, sizeof(*edges));
    for (int y = 1; y <= h; y++)
        for (int x = 1; x <= w; x++)
            AT(cur, y, x) = start(y0 + y - 1, x0 + x - 1);
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));

    uint64_t sent = 0;
    for (int s = 0; s < STEPS; s++) {
        /* begin overlap */
        gin_op_opt_t count = {.local = gin_counter_inc(0)};
        int len[4] = {w, w, h, h};
        for (int i = 1; i <= w; i++)
            edges[UP][i - 1] = AT(cur, 1, i), edges[DOWN][i - 1] = AT(cur, h, i);
        for (int i = 1; i <= h; i++)
            edges[LEFT][i - 1] = AT(cur, i, 1), edges[RIGHT][i - 1] = AT(cur, i, w);
        for (uint32_t side = 0; side < 4; side++) {
            if (peer[side] < 0)
                continue;
            uint32_t there = side ^ 1; /* my upper edge is my upper neighbour's lower halo */
            CHECK(gin_put_x(&g, gin_thread(), gin_world(&g), peer[side],
                            gin_at_ptr(&g, halos + (s % 2 * 4 + (int)there) * N),
                            gin_at_local(edges[side]), (size_t)len[side] * sizeof(double),
                            gin_weak_inc(there), &count));
            sent++;
        }
        for (int y = 2; y < h; y++)
            relax(next, cur, w, y, 2, w - 1); /* needs no halo */
        for (uint32_t side = 0; side < 4; side++)
            if (peer[side] >= 0)
                CHECK(gin_wait_signal(&g, gin_thread(), side, (uint64_t)s + 1));
        /* end overlap */
        const double *in = halos + s % 2 * 4 * N;
        for (int i = 1; i <= w; i++)
            AT(cur, 0, i) = in[UP * N + i - 1], AT(cur, h + 1, i) = in[DOWN * N + i - 1];
        for (int i = 1; i <= h; i++)
            AT(cur, i, 0) = in[LEFT * N + i - 1], AT(cur, i, w + 1) = in[RIGHT * N + i - 1];
        for (int y = 1; y <= h; y++) {
            relax(next, cur, w, y, 1, y == 1 || y == h ? w : 1);
            relax(next, cur, w, y, w, w);
        }
        CHECK(gin_wait_counter(&g, gin_thread(), 0, sent)); /* before edges are filled again */
        double *t = cur;
        cur = next;
        next = t;
    }
    double *whole = serial();
    for (int y = 1; y <= h; y++)
        for (int x = 1; x <= w; x++)
            ok = ok && fabs(AT(cur, y, x) - whole[(y0 + y) * (N + 2) + x0 + x]) < 1e-9;
    free(whole), free(cur), free(next), free(edges);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, halos));
    return finish(comm, ok, "stencil2d: 120 x 120, 60 steps");
}
