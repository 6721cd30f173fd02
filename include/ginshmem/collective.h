/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on teams. All members of a team make the same call; when it returns, its result is in
 * `dst` of this rank and both buffers may be used again: no barrier is needed between two of them.
 *
 * `team` is any team that the caller is a member of, however its ranks lie on hosts. `index` names
 * the collective's place among those of the device communicator (gin_devcomm_reqs_t.collectives of
 * them): index i of one rank meets index i of the others, whatever contexts the callers are bound
 * to. One collective per index may be under way on a rank, different threads use different indices;
 * and any two ranks make those that both are members of, of one index, in the same order.
 *
 * `dst` and `src` are places of the caller: of windows over host memory or gin_at_local(). They
 * need not lie at the same offset on all ranks, nor be aligned. Memory of the heap is fastest:
 * ranks of one host read it where it lies. The two must not overlap, unless they are the same
 * place, which works in place as each call says. count 0 is a gin_sync().
 *
 * Counts are of elements, and team, count, type, operation and root are the same on all members.
 * With GINSHMEM_CHECK=1 members compare them first: GIN_EMISMATCH then, on all of them, with both
 * values in gin_last_error(), and nothing is written. What one member alone is refused is that
 * member's status on all of them. Where a member is refused its team, or they differ about who is
 * one, all return GIN_EMISMATCH, but for who was refused, and the index cannot be used any more.
 *
 * GIN_ERANGE: index beyond the requirements, place outside its window, root outside the team;
 * GIN_EINVAL: team, group, type or operation that is none, places that overlap; GIN_ENOTSUP:
 * operation that the type has not, GPU memory, two members that do not reach each other by what
 * paths and connection of the requirements leave; GIN_ESTATE: no member, stale window or context,
 * the index is in use; GIN_EPEER: a member has died; GIN_ETIMEDOUT: members have not come in
 * reqs.collective_timeout_ns. After the last two, the destination is undefined and the index cannot
 * be used any more.
 *
 * The same calls in kernels are among kernels of all members: a member whose device is the host is
 * refused (GIN_ENOTSUP). All threads of the group pass the same arguments, arrays of counts among
 * them, which are memory that the GPU reads; they get the same status. Places are of GPU memory or
 * of host memory that this GPU reaches, not a block's shared memory. Members meet in their GPUs'
 * memory, or through the engine, in the bound context's ring; one index there is one among kernels,
 * and host threads' is another one. GINSHMEM_CHECK, GIN_KERNEL_CHECK and GINSHMEM_COLL_ALGO change
 * nothing: arguments are not compared, and members that others wait for in vain time out. Elements
 * are always combined in the order of ranks.
 */
#ifndef GINSHMEM_COLLECTIVE_H
#define GINSHMEM_COLLECTIVE_H

#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>

/*
 * Operations, of gin_reduction_t. Integers have all; real numbers GIN_SUM, GIN_PROD, GIN_MIN and
 * GIN_MAX; complex numbers GIN_SUM and GIN_PROD.
 *
 * Integers wrap. A half or bfloat16 is computed as float, and rounded to nearest, even, after each
 * operation. GIN_MIN and GIN_MAX leave NaNs out: the result is one only where all elements are; -0
 * is less than +0. Sums and products with a NaN are NaNs; which one is not said.
 *
 * Elements are combined in an order that is not said, the same for all members: they all get the
 * same bits. It depends on the team, where its ranks lie, and the count, not on time. With
 * GINSHMEM_COLL_ORDER=rank it is that of the ranks, ((0 op 1) op 2) op 3 ..., and the result has
 * the same bits for any placement; scans are always in that order.
 */

/* In programs of CUDA compilers they are functions of host and kernels: impl/coll.h. */
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
GIN_BEGIN_DECLS

/* Wait until all members have come. What each of them stored, and its operations that were
 * complete, before it came, is visible to all. */
GIN_API int gin_sync(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index);

/* dst = the root's src. In place: src equals dst. The root's dst is written, too. */
GIN_API int gin_broadcast(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                          gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, int root);

/* Elements r * count .. + count - 1 of dst = the src of rank r. In place, where src equals dst: my
 * elements are in their place in dst. */
GIN_API int gin_allgather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                          gin_at_t dst, gin_at_t src, size_t count, gin_type_t type);
/* The same at the root alone; others' dst is not looked at. In place at the root, others pass
 * their src as usual. */
GIN_API int gin_gather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                       gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, int root);

/* Elements r * count .. + count - 1 of dst = those from me * count on of the src of rank r. In
 * place: src equals dst. */
GIN_API int gin_alltoall(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type);
/*
 * The same with counts of their own: src_counts[r] elements from src_firsts[r] on go to rank r,
 * dst_counts[r] from rank r arrive at dst_firsts[r] on; dst_counts[r] here equals src_counts[me]
 * there. NULL for both firsts of a side: one behind another. In place, where src equals dst and
 * counts and firsts of both sides are equal.
 */
GIN_API int gin_alltoallv(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                          gin_at_t dst, const size_t *dst_counts, const size_t *dst_firsts,
                          gin_at_t src, const size_t *src_counts, const size_t *src_firsts,
                          gin_type_t type);

/* Element i of dst = element i of the src of rank 0, op that of rank 1, ... In place: src equals
 * dst. */
GIN_API int gin_allreduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                          gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                          gin_reduction_t op);
/* The same at the root alone; others' dst is not looked at. */
GIN_API int gin_reduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                       gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                       gin_reduction_t op, int root);
/* Element i of dst = element me * count + i of src at rank 0, op that at rank 1, ... In place: src
 * equals dst, of which the first count elements are written. */
GIN_API int gin_reduce_scatter(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                               gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                               gin_reduction_t op);

/* Element i of dst = element i of src at rank 0, op that at rank 1, ... up to mine. In place: src
 * equals dst. */
GIN_API int gin_scan(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                     gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op);
/* The same up to the rank before mine; rank 0 gets what changes nothing: 0, 1, the greatest, the
 * least, all bits set, none, none. */
GIN_API int gin_scan_exclusive(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                               gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                               gin_reduction_t op);

GIN_END_DECLS
#else
#include <ginshmem/impl/coll.h>
#endif
#endif
