/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Teams: ordered sets of ranks. A team is a value: an arithmetic progression of world ranks, or the
 * id of a list that gin_team_create() and its kin committed on this rank. Making and converting
 * teams is local and needs no communication: every member makes the same team by the same call.
 */
#ifndef GINSHMEM_TEAM_H
#define GINSHMEM_TEAM_H

#include <ginshmem/init.h>

typedef struct gin_team {
    int32_t size;   /* number of ranks; 0: the invalid team */
    int32_t rank;   /* my rank in it, -1 where I am no member */
    int32_t first;  /* world rank of team rank 0; of a list: its id and generation */
    int32_t stride; /* world distance of neighbours, may be negative; 0: a list */
} gin_team_t;

GIN_VALUE gin_team_t gin_team_invalid(void)
{
    gin_team_t t = {0, -1, 0, 1};
    return t;
}

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

GIN_API gin_team_t gin_team_world(gin_comm_t *comm); /* all ranks */
GIN_API gin_team_t gin_team_node(gin_comm_t *comm);  /* ranks with my host id */
/* Ranks that proved load/store access to each other, me among them. Brings the heap up: collective
 * the first time. */
GIN_API gin_team_t gin_team_lsa(gin_comm_t *comm);
/* Ranks with my LSA index in every LSA team that has one. Collective the first time. */
GIN_API gin_team_t gin_team_rail(gin_comm_t *comm);

/*
 * Members start, start + stride, ... (size of them), numbered in the parent. A rank outside gets
 * the invalid team and GIN_OK; size 0 gives the invalid team and GIN_EINVAL on all; an invalid
 * parent is GIN_EINVAL; members outside the parent are GIN_ERANGE. stride may be negative, not 0
 * unless size 1.
 */
GIN_API int gin_team_split_strided(gin_comm_t *comm, gin_team_t parent, int start, int stride,
                                   int size, gin_team_t *team);
/* Parent rank r has place (r % xrange, r / xrange); *x gets my row, *y my column. */
GIN_API int gin_team_split_2d(gin_comm_t *comm, gin_team_t parent, int xrange, gin_team_t *x,
                              gin_team_t *y);
/* The `count` world ranks of a list, in its order; duplicates and strangers are GIN_EINVAL/ERANGE.
 */
GIN_API int gin_team_create(gin_comm_t *comm, const int *world_ranks, int count, gin_team_t *team);
/* Consecutive groups of `inner` parent ranks (the last may be smaller): mine. */
GIN_API int gin_team_inner_factor(gin_comm_t *comm, gin_team_t parent, int inner, gin_team_t *team);
/* The parent ranks with my place in their group of `inner`. */
GIN_API int gin_team_outer_factor(gin_comm_t *comm, gin_team_t parent, int inner, gin_team_t *team);
/* Release a team. Predefined ones stay, the invalid one is GIN_OK, a stale one GIN_ESTATE. Local.
 */
GIN_API int gin_team_free(gin_comm_t *comm, gin_team_t team);

/* World rank of a team's rank, or -1 (GIN_ERANGE, GIN_EINVAL in gin_last_status()). */
GIN_API int gin_team_rank_to_world(gin_comm_t *comm, gin_team_t team, int rank);
/* Rank in `to` of rank `rank` of `from`, or -1 when it is no member. */
GIN_API int gin_team_translate(gin_comm_t *comm, gin_team_t from, int rank, gin_team_t to);
/* LSA rank of a team's rank, or -1 when it is not load/store accessible. */
GIN_API int gin_team_rank_to_lsa(gin_comm_t *comm, gin_team_t team, int rank);
/* 1 when rank `rank` of team b is a member of team a, else 0. */
GIN_API int gin_team_is_member(gin_comm_t *comm, gin_team_t a, gin_team_t b, int rank);
/* Parent rank of the index-th parent member that is not in `subset`, or -1. */
GIN_API int gin_team_rank_in_difference(gin_comm_t *comm, gin_team_t parent, gin_team_t subset,
                                        int index);

GIN_END_DECLS
#endif
#endif
