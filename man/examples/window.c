/* SPDX-License-Identifier: BSD-3-Clause */
/* User memory as a window. */
#include "frame.h"

/* begin exchange */
/* `board` is memory of the program, one int per rank: everybody
 * writes its number into its own place of every board. Collective. */
static int exchange(gin_comm_t *comm, const gin_t *g, int *board)
{
    gin_team_t world = gin_world(g);
    gin_window_t win;
    int mine = 100 + world.rank;
    int st = gin_window_register(
        comm, board, (size_t)world.size * sizeof(*board),
        GIN_WIN_DEFAULT, &win); /* the addresses may differ by rank */

    if (st != GIN_OK)
        return st;
    for (int r = 0; st == GIN_OK && r < world.size; r++) {
        if (gin_window_path(comm, win, r) == GIN_PATH_NONE) {
            fprintf(stderr, "rank %d: %s\n", r, gin_last_error());
            continue;
        }
        st = gin_put(g, gin_thread(), world, r,
                     gin_at(win, (uint64_t)world.rank * sizeof(mine)),
                     gin_at_local(&mine), sizeof(mine),
                     gin_no_action());
    }
    if (st == GIN_OK)
        st = gin_comm_barrier(comm); /* all puts are visible now */
    int undone = gin_window_deregister(comm, win);
    return st != GIN_OK ? st : undone;
}
/* end exchange */

int example(gin_comm_t *comm, const gin_t *g)
{
    int n = gin_size(comm);
    int *board = calloc((size_t)n, sizeof(*board));
    if (board == NULL)
        return GIN_ENOMEM;
    int st = exchange(comm, g, board);
    for (int r = 0; st == GIN_OK && r < n; r++)
        if (board[r] != 100 + r && board[r] != 0) /* 0: no path */
            st = GIN_ERANGE;
    if (st == GIN_OK && board[gin_rank(comm)] == 0)
        st = GIN_ERANGE;
    free(board);
    return st;
}
