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

/* begin barrier */
/* A device communicator with a barrier for each row of a grid, and
 * one pass through it. Every rank lists its own row. */
static int meet_in_rows(gin_comm_t *comm, int width)
{
    gin_team_t row, column;
    gin_team_barrier_t demand = {.count = 1}; /* indices: 0 only */
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t dev;
    gin_t g;
    int st = gin_team_split_2d(comm, gin_team_world(comm), width,
                               &row, &column);

    if (st != GIN_OK)
        return st;
    demand.team = row;
    gin_devcomm_reqs_init(&reqs);
    reqs.team_barriers = &demand;
    reqs.n_team_barriers = 1;
    st = gin_devcomm_create(comm, &reqs, &dev); /* fills the handle */
    if (st != GIN_OK)
        return st;
    st = gin_open(&dev, 0, &g);
    if (st == GIN_OK)
        st = gin_barrier(&g, gin_thread(), demand.handle, 0,
                         GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
    int undone = gin_devcomm_destroy(comm, &dev);
    gin_team_free(comm, column);
    gin_team_free(comm, row);
    return st != GIN_OK ? st : undone;
}
/* end barrier */

int example(gin_comm_t *comm, const gin_t *g)
{
    int right, width = 2, me = gin_rank(comm), n = gin_size(comm);
    (void)g;
    int st = right_of_me(comm, width, &right);
    if (st != GIN_OK)
        return st;
    st = meet_in_rows(comm, width);
    if (st != GIN_OK)
        return st;
    int first = me - me % width;
    int in_row = n - first < width ? n - first : width;
    return right == first + (me % width + 1) % in_row ? GIN_OK
                                                      : GIN_ERANGE;
}
