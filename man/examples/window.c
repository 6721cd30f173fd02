/* SPDX-License-Identifier: BSD-3-Clause */
/* User memory as a window. */
#include "frame.h"

/* begin exchange */
/* My slot of every rank's board, by put or, where there is no path,
 * not at all. */
static int post(gin_comm_t *comm, const gin_t *g, gin_window_t board,
                int value)
{
    gin_team_t world = gin_world(g);
    int st = GIN_OK;

    for (int r = 0; st == GIN_OK && r < world.size; r++) {
        if (gin_window_path(comm, board, r) == GIN_PATH_NONE) {
            fprintf(stderr, "rank %d: %s\n", r, gin_last_error());
            continue;
        }
        st = gin_put(
            g, gin_thread(), world, r,
            gin_at(board, (uint64_t)world.rank * sizeof(value)),
            gin_at_local(&value), sizeof(value), gin_no_action());
    }
    return st == GIN_OK ? gin_quiet(g, gin_thread()) : st;
}
/* end exchange */

int example(gin_comm_t *comm, const gin_t *g)
{
    int n = gin_size(comm);
    size_t bytes = (size_t)n * sizeof(int);
    int *board = calloc((size_t)n, sizeof(*board));
    gin_window_t win;
    if (board == NULL)
        return GIN_ENOMEM;
    int st = gin_window_register(comm, board, bytes, GIN_WIN_DEFAULT,
                                 &win);
    if (st != GIN_OK)
        goto free_board;
    st = post(comm, g, win, 100 + gin_rank(comm));
    if (st == GIN_OK)
        st = gin_comm_barrier(comm);
    for (int r = 0; st == GIN_OK && r < n; r++)
        if (gin_window_path(comm, win, r) != GIN_PATH_NONE &&
            board[r] != 100 + r)
            st = GIN_ERANGE;
    int undone = gin_window_deregister(comm, win);
    if (st == GIN_OK)
        st = undone;
free_board:
    free(board);
    return st;
}
