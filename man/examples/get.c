/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets in flight together, waited for by a counter. */
#include "frame.h"

/* begin gather */
enum { GOT = 3 }; /* a counter */

/* One long of every rank into out[]; `mine` is a symmetric heap
 * block. */
static int gather(const gin_t *g, const long *mine, long *out)
{
    gin_team_t world = gin_world(g);
    gin_op_opt_t opt = {.local = gin_counter_inc(GOT)};
    int st = GIN_OK;

    for (int r = 0; st == GIN_OK && r < world.size; r++)
        st = gin_get_x(g, gin_thread(), world, r, gin_at_ptr(g, mine),
                       gin_at_local(&out[r]), sizeof(*out), &opt);
    if (st == GIN_OK)
        st = gin_wait_counter(g, gin_thread(), GOT,
                              (uint64_t)world.size);
    if (st == GIN_OK)
        st = gin_reset_counter(g, GOT, NULL);
    return st;
}
/* end gather */

int example(gin_comm_t *comm, const gin_t *g)
{
    int n = gin_size(comm);
    long *out = calloc((size_t)n, sizeof(*out));
    long *mine = gin_malloc(comm, sizeof(*mine));
    if (out == NULL || mine == NULL)
        return out == NULL ? GIN_ENOMEM : gin_last_status();
    *mine = 7L * gin_rank(comm);
    int st = gin_comm_barrier(comm);
    if (st == GIN_OK)
        st = gather(g, mine, out);
    for (int r = 0; st == GIN_OK && r < n; r++)
        if (out[r] != 7L * r)
            st = GIN_ERANGE;
    free(out);
    int freed = gin_free(comm, mine);
    return st != GIN_OK ? st : freed;
}
