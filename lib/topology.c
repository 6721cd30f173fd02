/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is where: hosts by the cards' host ids, the node team. A host id only proposes that memory
 * can be shared; transport/shm proves it.
 */
#include <stdlib.h>

#include "comm.h"

/* Dense host numbers in the order of first appearance: the same on every rank. */
static void number_hosts(gin_comm_t *comm)
{
    comm->n_hosts = 0;
    for (int r = 0; r < comm->size; r++) {
        int first = 0;
        while (comm->cards[first].host != comm->cards[r].host)
            first++;
        comm->host_of[r] = first == r ? comm->n_hosts++ : comm->host_of[first];
    }
}

void gi_topology_close(gin_comm_t *comm)
{
    free(comm->host_of);
    comm->host_of = NULL;
}

int gi_topology_open(gin_comm_t *comm)
{
    int *members = malloc((size_t)comm->size * sizeof(*members));
    comm->host_of = malloc((size_t)comm->size * sizeof(*comm->host_of));
    if (members == NULL || comm->host_of == NULL) {
        free(members);
        gi_topology_close(comm);
        return gi_fail(GIN_ENOMEM, "gin_init: no memory for %d ranks' hosts", comm->size);
    }
    number_hosts(comm);
    int n = 0;
    comm->sharing = 0;
    for (int r = 0; r < comm->size; r++)
        comm->sharing += comm->cards[r].pid_space == comm->cards[comm->rank].pid_space;
    for (int r = 0; r < comm->size; r++)
        if (comm->host_of[r] == comm->host_of[comm->rank])
            members[n++] = r;
    comm->node_size = n;
    comm->sharing = comm->sharing > n ? comm->sharing : n;
    comm->world = (gin_team_t){comm->size, comm->rank, 0, 1};
    int st = gi_team_make(comm, members, n, 1, &comm->node);
    free(members);
    if (st != GIN_OK)
        gi_topology_close(comm);
    /* before the heap is up I reach nobody but myself */
    comm->lsa = comm->rail = gin_team_invalid();
    comm->spin = comm->env.spin != 0 ? (uint32_t)comm->env.spin
                                     : gi_wait_default_spin(comm->sharing, gi_os_cores());
    return st;
}
