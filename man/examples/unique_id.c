/* SPDX-License-Identifier: BSD-3-Clause */
/* A second communicator by unique id, carried over by the first. */
#include "frame.h"

/* begin join */
/* Every rank of `parent` joins a new communicator. */
static int join(gin_comm_t *parent, gin_comm_t **comm)
{
    int n = gin_size(parent), st = GIN_OK;
    gin_config_t config;
    gin_unique_id_t mine = {{0}};
    gin_unique_id_t *all = calloc((size_t)n, sizeof(*all));

    if (all == NULL)
        return GIN_ENOMEM;
    if (gin_rank(parent) == 0)
        st = gin_unique_id(&mine);
    if (st == GIN_OK)
        st = gin_comm_allgather(parent, &mine, all, sizeof(mine));
    if (st == GIN_OK) {
        gin_config_init(&config);
        config.unique_id = &all[0];
        config.rank = gin_rank(parent);
        config.n_ranks = n;
        st = gin_init(&config, comm);
    }
    free(all);
    return st;
}
/* end join */

int example(gin_comm_t *comm, const gin_t *g)
{
    gin_comm_t *second;
    int st = join(comm, &second);
    (void)g;
    if (st != GIN_OK)
        return st;
    if (gin_size(second) != gin_size(comm) ||
        gin_rank(second) != gin_rank(comm))
        st = GIN_ERANGE;
    int left = gin_finalize(second);
    return st != GIN_OK ? st : left;
}
