/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain stores where a peer is mapped, puts elsewhere. */
#include "frame.h"

/* begin store */
/* Write `value` into slot `slot` of a peer's board. */
static int store(const gin_t *g, int peer, int *board, int slot,
                 int value)
{
    gin_team_t world = gin_world(g);
    gin_at_t at = gin_at_ptr(g, &board[slot]);
    int *there = gin_peer_ptr(g, world, peer, at);

    if (there != NULL) {
        *there = value; /* made visible by the barrier that follows */
        return GIN_OK;
    }
    return gin_put_value(g, gin_thread(), world, peer, at,
                         (uint32_t)value, sizeof(value),
                         gin_no_action());
}
/* end store */

int example(gin_comm_t *comm, const gin_t *g)
{
    int n = gin_size(comm), me = gin_rank(comm), st = GIN_OK;
    int *board = gin_calloc(comm, (size_t)n, sizeof(*board));
    if (board == NULL)
        return gin_last_status();
    for (int r = 0; st == GIN_OK && r < n; r++)
        st = store(g, r, board, me, me + r);
    if (st == GIN_OK)
        st = gin_barrier(g, gin_thread(), gin_barrier_world(), 0,
                         GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
    for (int r = 0; st == GIN_OK && r < n; r++)
        if (board[r] != r + me)
            st = GIN_ERANGE;
    int freed = gin_free(comm, board);
    return st != GIN_OK ? st : freed;
}
