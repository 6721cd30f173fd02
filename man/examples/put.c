/* SPDX-License-Identifier: BSD-3-Clause */
/* A put with a weak signal, round a ring. */
#include "frame.h"

/* begin ring */
enum { N = 1000, DONE = 0 /* a slot signal */ };

/* Send a block to the right, get one from the left. `in` is a
 * symmetric heap block; the signal covers the bytes of its own put.
 * Use `in`, then let a barrier pass, before the next block overwrites
 * it. */
static int shift(const gin_t *g, double *in, const double *out)
{
    gin_team_t world = gin_world(g);
    int right = (world.rank + 1) % world.size;
    int st = gin_put(g, gin_thread(), world, right, gin_at_ptr(g, in),
                     gin_at_local(out), N * sizeof(*out),
                     gin_weak_inc(DONE));

    if (st == GIN_OK)
        st = gin_wait_signal(g, gin_thread(), DONE, 1);
    if (st == GIN_OK)
        st = gin_consume_signal(g, DONE,
                                1); /* what came meanwhile stays */
    if (st == GIN_OK)
        st = gin_flush(g, gin_thread()); /* `out` is free again */
    return st;
}
/* end ring */

int example(gin_comm_t *comm, const gin_t *g)
{
    static double out[N];
    int left = (gin_rank(comm) + gin_size(comm) - 1) % gin_size(comm);
    double *in = gin_calloc(comm, N, sizeof(*in));
    if (in == NULL)
        return gin_last_status();
    for (int i = 0; i < N; i++)
        out[i] = gin_rank(comm) * N + i;
    int st = shift(g, in, out);
    for (int i = 0; st == GIN_OK && i < N; i++)
        if (in[i] != left * N + i)
            st = GIN_ERANGE;
    int freed = gin_free(comm, in);
    return st != GIN_OK ? st : freed;
}
