/* SPDX-License-Identifier: BSD-3-Clause */
/* Phases with one barrier each. */
#include "frame.h"

/* begin phases */
enum { PHASES = 8 };

/* Phase i: everybody puts its number at everybody, then reads what it
 * got. Two boards in turn: a rank may be one phase ahead of a reader,
 * never two. */
static int phases(const gin_t *g, uint64_t *board[2])
{
    gin_team_t world = gin_world(g);
    uint64_t total = 0;

    for (int i = 0; i < PHASES; i++) {
        uint64_t *b = board[i % 2];
        int st = GIN_OK;
        for (int r = 0; st == GIN_OK && r < world.size; r++)
            st = gin_put_value(g, gin_thread(), world, r,
                               gin_at_ptr(g, &b[world.rank]),
                               (uint64_t)(i + world.rank), 8,
                               gin_no_action());
        if (st == GIN_OK)
            st = gin_barrier(g, gin_thread(), gin_barrier_world(), 0,
                             GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
        if (st != GIN_OK)
            return st;
        for (int r = 0; r < world.size; r++)
            total += b[r] - (uint64_t)(i + r);
    }
    return total == 0 ? GIN_OK : GIN_ERANGE;
}
/* end phases */

int example(gin_comm_t *comm, const gin_t *g)
{
    size_t n = (size_t)gin_size(comm);
    uint64_t *board[2];
    board[0] = gin_calloc(comm, 2 * n, sizeof(*board[0]));
    if (board[0] == NULL)
        return gin_last_status();
    board[1] = board[0] + n;
    int st = phases(g, board);
    int freed = gin_free(comm, board[0]);
    return st != GIN_OK ? st : freed;
}
