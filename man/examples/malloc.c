/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric heap. */
#include "frame.h"

/* begin grow */
/* Room for `count` more doubles; the old block stays on failure. */
static int grow(gin_comm_t *comm, double **table, size_t *have,
                size_t count)
{
    size_t want = *have + count;
    double *more = gin_realloc(comm, *table, want * sizeof(**table));

    if (more == NULL && gin_last_status() != GIN_OK)
        return gin_last_status(); /* the same on every rank */
    *table = more;
    *have = want;
    return GIN_OK;
}
/* end grow */

int example(gin_comm_t *comm, const gin_t *g)
{
    double *table = NULL;
    size_t have = 0;
    gin_heap_usage_t usage;
    (void)g;
    for (int i = 0; i < 3; i++) {
        int st = grow(comm, &table, &have, 1000);
        if (st != GIN_OK)
            return st;
    }
    usage.size_of = sizeof(usage);
    int st = gin_heap_usage(comm, GIN_KIND_HOST, &usage);
    if (st == GIN_OK && usage.used < have * sizeof(*table))
        st = GIN_ERANGE;
    if (st == GIN_OK)
        st = gin_heap_check(comm);
    int freed = gin_free(comm, table);
    return st != GIN_OK ? st : freed;
}
