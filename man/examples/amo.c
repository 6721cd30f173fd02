/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared counter deals out work. */
#include "frame.h"

/* begin queue */
enum { ITEMS = 1000 };

/* Do items 0 .. ITEMS-1, each on one rank; `next` is a zeroed
 * symmetric word. */
static int run(const gin_t *g, uint64_t *next,
               void (*item)(uint64_t i))
{
    for (;;) {
        uint64_t i;
        int st = gin_amo_fetch_add(g, gin_thread(), gin_world(g), 0,
                                   gin_at_ptr(g, next), 1, &i);
        if (st != GIN_OK)
            return st;
        if (i >= ITEMS)
            return GIN_OK;
        item(i);
    }
}
/* end queue */

static uint64_t count, sum;

static void item(uint64_t i)
{
    count++;
    sum += i;
}

int example(gin_comm_t *comm, const gin_t *g)
{
    uint64_t *next = gin_calloc(comm, 3, sizeof(*next));
    if (next == NULL)
        return gin_last_status();
    int st = run(g, next, item);
    if (st == GIN_OK)
        st = gin_amo_add(g, gin_thread(), gin_world(g), 0,
                         gin_at_ptr(g, next + 1), count);
    if (st == GIN_OK)
        st = gin_amo_add(g, gin_thread(), gin_world(g), 0,
                         gin_at_ptr(g, next + 2), sum);
    if (st == GIN_OK)
        st = gin_comm_barrier(comm);
    if (st == GIN_OK && gin_rank(comm) == 0 &&
        (next[1] != ITEMS ||
         next[2] != (uint64_t)ITEMS * (ITEMS - 1) / 2))
        st = GIN_ERANGE;
    int freed = gin_free(comm, next);
    return st != GIN_OK ? st : freed;
}
