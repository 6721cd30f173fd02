/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C = the sum over ranks of A * B, in square tiles that lie one behind another: rank r has columns
 * of A and rows of B. The product of a tile, the numbers, and all of C by one rank.
 */
#ifndef GEMM_H
#define GEMM_H

#include <string.h>
#include "example.h"

#define EDGE  48
#define TILE  (EDGE * EDGE) /* numbers of a tile */
#define SIDE  6             /* tiles of a row or column of C */
#define TILES (SIDE * SIDE)
#define DEEP  128 /* columns of A, rows of B of a rank */

struct product {
    gin_t g;
    int size; /* ranks */
    gin_team_t lsa, rail;
    double *a, *b;    /* [SIDE * EDGE][DEEP], [DEEP][SIDE * EDGE] */
    double *mine, *c; /* tiles: my part of the sum, the sum */
    double *sum;      /* tiles: my slice of my host's */
    double *far;      /* [turn][tile][host]: my slice of the others' */
    int round;
};

static inline double a_value(int round, int rank, int y, int x)
{
    return (round * 5 + rank * 3 + y * 7 + x * 11) % 13 - 6;
}

static inline double b_value(int round, int rank, int y, int x)
{
    return (round * 3 + rank * 5 + y * 11 + x * 7) % 17 - 8;
}

static inline void multiply(const struct product *p, int tile)
{
    const double *a = p->a + (size_t)(tile / SIDE * EDGE * DEEP), *b = p->b + tile % SIDE * EDGE;
    double *c = p->mine + (size_t)tile * TILE;
    memset(c, 0, TILE * sizeof(*c));
    for (int y = 0; y < EDGE; y++)
        for (int k = 0; k < DEEP; k++)
            for (int x = 0; x < EDGE; x++)
                c[y * EDGE + x] += a[y * DEEP + k] * b[k * SIDE * EDGE + x];
}

static inline void fill(const struct product *p, int rank)
{
    for (int y = 0; y < SIDE * EDGE; y++)
        for (int k = 0; k < DEEP; k++) {
            p->a[y * DEEP + k] = a_value(p->round, rank, y, k);
            p->b[k * SIDE * EDGE + y] = b_value(p->round, rank, k, y);
        }
}

/* C by one rank alone, into `all`. Numbers are whole, so sums in any order have the same bits. */
static inline void alone(const struct product *p, double *all)
{
    struct product one = *p;
    memset(all, 0, (size_t)TILES * TILE * sizeof(*all));
    one.mine = (double *)malloc((size_t)TILES * TILE * sizeof(double));
    for (int r = 0; r < p->size; r++) {
        fill(&one, r);
        for (int j = 0; j < TILES; j++)
            multiply(&one, j);
        for (int i = 0; i < TILES * TILE; i++)
            all[i] += one.mine[i];
    }
    free(one.mine);
}

static inline int is_same(const double *a, const double *b)
{
    for (int i = 0; i < TILES * TILE; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

#endif
