/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A square matrix and its transposed one, spread over ranks by blocks of rows in the order of
 * places; the transposition by the library's all-to-all, and rounds that check every number.
 */
#ifndef SPREAD_H
#define SPREAD_H

#include "example.h"
#include "bench.h"

struct spread {
    gin_comm_t *comm;
    gin_t g;
    gin_team_t lsa, rail;
    int n, place, places; /* rows and columns; my block, blocks */
    double *a, *b;        /* my rows, those of the result */
    double *in, *out;     /* [host][row][column]: from a host, its columns are mine; for it */
};

/* The first row, or column, of a place's block. */
static inline int first(const struct spread *s, int place)
{
    return (int)((int64_t)place * s->n / s->places);
}

/* The first column of a host. */
static inline int host_first(const struct spread *s, int host)
{
    return first(s, host * s->lsa.size);
}

static inline size_t host_room(const struct spread *s)
{
    size_t most = (size_t)(s->n / s->places + 1);
    return most * most * (size_t)s->lsa.size;
}

typedef void spread_way_t(const struct spread *s);

/* The same by the library: blocks packed, exchanged, and turned over where they are needed. */
static inline void plain(const struct spread *s)
{
    int rows = first(s, s->g.rank + 1) - first(s, s->g.rank);
    size_t send[s->places], receive[s->places];
    double *out = s->out;
    for (int r = 0; r < s->places; r++) {
        int x0 = first(s, r), width = first(s, r + 1) - x0;
        send[r] = receive[r] = (size_t)width * (size_t)rows;
        for (int y = 0; y < rows; y++, out += width)
            memcpy(out, s->a + y * s->n + x0, (size_t)width * sizeof(double));
    }
    CHECK(gin_alltoallv(&s->g, gin_thread(), gin_world(&s->g), 0, gin_at_ptr(&s->g, s->in), receive,
                        NULL, gin_at_ptr(&s->g, s->out), send, NULL, GIN_DOUBLE));
    const double *in = s->in;
    for (int r = 0; r < s->places; in += receive[r++])
        for (int x = 0; x < rows; x++)
            for (int y = first(s, r); y < first(s, r + 1); y++)
                s->b[x * s->n + y] = in[(y - first(s, r)) * rows + x];
}

static inline double value(int round, int y, int x)
{
    return round * 1e8 + y * 1e4 + x;
}

/* Rounds with n rows by both ways, each number checked; place: of my rows. Medians in us. */
static inline int transpose(struct spread *s, spread_way_t *way, int n, int rounds, double *us)
{
    spread_way_t *const ways[] = {way, plain};
    int ok = 1, places[] = {s->rail.rank * s->lsa.size + s->lsa.rank, s->g.rank};
    double t[2][rounds];
    s->n = n;
    size_t part = (size_t)(n / s->places + 1) * (size_t)n * sizeof(double);
    size_t room = host_room(s) * (size_t)s->rail.size * sizeof(double);
    s->a = malloc(part);
    s->b = CHECK_PTR(gin_malloc(s->comm, part));
    s->in = CHECK_PTR(gin_malloc(s->comm, room));
    s->out = CHECK_PTR(gin_malloc(s->comm, room));
    for (int i = 0; i < 2 * rounds; i++) {
        s->place = places[i % 2];
        int y0 = first(s, s->place), rows = first(s, s->place + 1) - y0;
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < n; x++)
                s->a[y * n + x] = value(i, y0 + y, x);
        memset(s->b, 0xff, part);
        CHECK(gin_sync(&s->g, gin_thread(), gin_world(&s->g), 0));
        double begin = now_us();
        ways[i % 2](s);
        t[i % 2][i / 2] = slowest(&s->g, now_us() - begin);
        for (int x = 0; x < rows; x++)
            for (int y = 0; y < n; y++)
                ok = ok && s->b[x * n + y] == value(i, y, y0 + x);
    }
    us[0] = median(t[0], rounds), us[1] = median(t[1], rounds);
    CHECK(gin_free(s->comm, s->out));
    CHECK(gin_free(s->comm, s->in));
    CHECK(gin_free(s->comm, s->b));
    free(s->a);
    return ok;
}

#endif
