/* SPDX-License-Identifier: BSD-3-Clause */
/* Several signals at once: serve whichever peer is ready. */
#include "frame.h"

/* begin serve */
enum { FIRST = 8, MAX = 32 };

/* Call serve(r) once for every rank, in the order in which their
 * signals come. */
static int serve_all(const gin_t *g, int n, void (*serve)(int rank))
{
    uint32_t ids[MAX];
    uint64_t least[MAX];
    int done[MAX] = {0};

    for (int r = 0; r < n; r++) {
        ids[r] = (uint32_t)(FIRST + r);
        least[r] = 1;
    }
    for (;;) {
        size_t r;
        int st = gin_wait_signal_any(g, gin_thread(), ids, least,
                                     (size_t)n, done, &r, NULL);
        if (st != GIN_OK)
            return st;
        if (r == (size_t)n)
            return GIN_OK; /* none is left */
        serve((int)r);
        done[r] = 1;
    }
}
/* end serve */

static int served[MAX];

static void serve(int rank)
{
    served[rank]++;
}

int example(gin_comm_t *comm, const gin_t *g)
{
    gin_team_t world = gin_world(g);
    int n = gin_size(comm) < MAX ? gin_size(comm) : MAX, st = GIN_OK;
    if (world.rank < n)
        for (int r = 0; st == GIN_OK && r < world.size; r++)
            st = gin_signal(
                g, gin_thread(), world, r,
                gin_weak_inc((uint32_t)(FIRST + world.rank)));
    if (st == GIN_OK)
        st = serve_all(g, n, serve);
    for (int r = 0; st == GIN_OK && r < n; r++) {
        if (served[r] != 1)
            st = GIN_ERANGE;
        else
            st = gin_reset_signal(g, (uint32_t)(FIRST + r), NULL);
    }
    return st;
}
