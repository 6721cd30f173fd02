/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: a grid of ranks. */
#include "frame.h"

/* begin grid */
/* World rank of my right neighbour in a grid of `width` columns. */
static int right_of_me(gin_comm_t *comm, int width, int *world_rank)
{
    gin_team_t row, column;
    int st = gin_team_split_2d(comm, gin_team_world(comm), width,
                               &row, &column);

    if (st != GIN_OK)
        return st;
    *world_rank =
        gin_team_rank_to_world(comm, row, (row.rank + 1) % row.size);
    gin_team_free(comm, column);
    gin_team_free(comm, row);
    return GIN_OK;
}
/* end grid */

int example(gin_comm_t *comm, const gin_t *g)
{
    int right, width = 2, me = gin_rank(comm), n = gin_size(comm);
    (void)g;
    int st = right_of_me(comm, width, &right);
    if (st != GIN_OK)
        return st;
    int first = me - me % width;
    int in_row = n - first < width ? n - first : width;
    return right == first + (me % width + 1) % in_row ? GIN_OK
                                                      : GIN_ERANGE;
}
