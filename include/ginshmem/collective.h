/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to come, shown so that their shape can be reviewed beside what exists: collectives. Nothing
 * here is in the library, and ginshmem.h does not include this header; it declares its calls only
 * where GIN_PREVIEW is defined, for the checks of the headers.
 */
#ifndef GINSHMEM_COLLECTIVE_H
#define GINSHMEM_COLLECTIVE_H

#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>

#ifdef GIN_PREVIEW
#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/* Collectives on a team: all members call, in the same order; in place where src equals dst. */
int gin_broadcast(const gin_t *g, gin_group_t grp, gin_team_t team, gin_at_t dst, gin_at_t src,
                  size_t count, gin_type_t type, int root);
int gin_alltoall(const gin_t *g, gin_group_t grp, gin_team_t team, gin_at_t dst, gin_at_t src,
                 size_t count, gin_type_t type);
int gin_allgather(const gin_t *g, gin_group_t grp, gin_team_t team, gin_at_t dst, gin_at_t src,
                  size_t count, gin_type_t type);
int gin_reduce(const gin_t *g, gin_group_t grp, gin_team_t team, gin_at_t dst, gin_at_t src,
               size_t count, gin_type_t type, gin_reduction_t op, int root);
int gin_allreduce(const gin_t *g, gin_group_t grp, gin_team_t team, gin_at_t dst, gin_at_t src,
                  size_t count, gin_type_t type, gin_reduction_t op);
int gin_reduce_scatter(const gin_t *g, gin_group_t grp, gin_team_t team, gin_at_t dst, gin_at_t src,
                       size_t count, gin_type_t type, gin_reduction_t op);

GIN_END_DECLS
#endif
#endif
#endif
