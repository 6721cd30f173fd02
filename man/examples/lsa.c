/* SPDX-License-Identifier: BSD-3-Clause */
/* The sum of what the ranks of a host have. */
#include "frame.h"

/* begin sum */
/* Every rank of the LSA team has n numbers at `mine`, in the heap;
 * all get the sums, in `sums`. */
static int add_up(const gin_t *g, double *mine, double *sums,
                  size_t n)
{
    gin_barrier_t lsa = gin_barrier_lsa();
    int st =
        gin_barrier(g, gin_thread(), lsa, 0, GIN_ORDER_ACQ_REL,
                    GIN_FENCE_NONE); /* all have written theirs */
    gin_at_t from = gin_at_ptr(g, mine), to = gin_at_local(sums);
    if (st == GIN_OK)
        st = gin_lsa_reduce(g, gin_thread(), to, from, n, GIN_DOUBLE,
                            GIN_SUM);
    if (st == GIN_OK)
        st = gin_barrier(g, gin_thread(), lsa, 0, GIN_ORDER_ACQ_REL,
                         GIN_FENCE_NONE); /* all have read mine */
    return st;
}
/* end sum */

int example(gin_comm_t *comm, const gin_t *g)
{
    enum { N = 4 };
    double sums[N], *mine = gin_malloc(comm, N * sizeof(*mine));
    int n = gin_lsa(g).size;
    if (mine == NULL)
        return gin_last_status();
    for (int i = 0; i < N; i++)
        mine[i] = i;
    int st = add_up(g, mine, sums, N);
    for (int i = 0; i < N && st == GIN_OK; i++)
        st = sums[i] < i * n || sums[i] > i * n ? GIN_ERANGE : GIN_OK;
    int freed = gin_free(comm, mine);
    return st != GIN_OK ? st : freed;
}
