/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.h in programs of CUDA compilers: a call of one name is a function of host and device
 * there, so the library's go by other names. Not API. */
#ifndef GINSHMEM_IMPL_COLL_H
#define GINSHMEM_IMPL_COLL_H

#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>

#ifdef __CUDA_ARCH__
#include <ginshmem/impl/dev/coll.h>
#elif !defined(__CUDACC_RTC__)
GIN_BEGIN_DECLS
int gin_i_host_sync(const gin_t *g, gin_group_t grp, gin_team_t team,
                    uint32_t index) __asm__("gin_sync");
int gin_i_host_broadcast(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                         int root) __asm__("gin_broadcast");
int gin_i_host_allgather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count,
                         gin_type_t type) __asm__("gin_allgather");
int gin_i_host_gather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                      gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                      int root) __asm__("gin_gather");
int gin_i_host_alltoall(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                        gin_at_t dst, gin_at_t src, size_t count,
                        gin_type_t type) __asm__("gin_alltoall");
int gin_i_host_alltoallv(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, const size_t *dst_counts, const size_t *dst_firsts,
                         gin_at_t src, const size_t *src_counts, const size_t *src_firsts,
                         gin_type_t type) __asm__("gin_alltoallv");
int gin_i_host_allreduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                         gin_reduction_t op) __asm__("gin_allreduce");
int gin_i_host_reduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                      gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op,
                      int root) __asm__("gin_reduce");
int gin_i_host_reduce_scatter(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                              gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                              gin_reduction_t op) __asm__("gin_reduce_scatter");
int gin_i_host_scan(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                    gin_at_t src, size_t count, gin_type_t type,
                    gin_reduction_t op) __asm__("gin_scan");
int gin_i_host_scan_exclusive(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                              gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                              gin_reduction_t op) __asm__("gin_scan_exclusive");
GIN_END_DECLS

GIN_OP int gin_sync(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index)
{
    return gin_i_host_sync(g, grp, team, index);
}

GIN_OP int gin_broadcast(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, int root)
{
    return gin_i_host_broadcast(g, grp, team, index, dst, src, count, type, root);
}

GIN_OP int gin_allgather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type)
{
    return gin_i_host_allgather(g, grp, team, index, dst, src, count, type);
}

GIN_OP int gin_gather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                      gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, int root)
{
    return gin_i_host_gather(g, grp, team, index, dst, src, count, type, root);
}

GIN_OP int gin_alltoall(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                        gin_at_t dst, gin_at_t src, size_t count, gin_type_t type)
{
    return gin_i_host_alltoall(g, grp, team, index, dst, src, count, type);
}

GIN_OP int gin_alltoallv(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, const size_t *dst_counts, const size_t *dst_firsts,
                         gin_at_t src, const size_t *src_counts, const size_t *src_firsts,
                         gin_type_t type)
{
    return gin_i_host_alltoallv(g, grp, team, index, dst, dst_counts, dst_firsts, src, src_counts,
                                src_firsts, type);
}

GIN_OP int gin_allreduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                         gin_reduction_t op)
{
    return gin_i_host_allreduce(g, grp, team, index, dst, src, count, type, op);
}

GIN_OP int gin_reduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                      gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op,
                      int root)
{
    return gin_i_host_reduce(g, grp, team, index, dst, src, count, type, op, root);
}

GIN_OP int gin_reduce_scatter(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                              gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                              gin_reduction_t op)
{
    return gin_i_host_reduce_scatter(g, grp, team, index, dst, src, count, type, op);
}

GIN_OP int gin_scan(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                    gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op)
{
    return gin_i_host_scan(g, grp, team, index, dst, src, count, type, op);
}

GIN_OP int gin_scan_exclusive(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                              gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                              gin_reduction_t op)
{
    return gin_i_host_scan_exclusive(g, grp, team, index, dst, src, count, type, op);
}
#endif

#endif
