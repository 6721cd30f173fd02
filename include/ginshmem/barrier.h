/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers among the threads of ranks, by index: index i of one rank meets index i of the others.
 * One barrier per index may be under way on a rank; different threads use different indices. All
 * arrivals are posted before the first wait, so any group size works with any number of ranks.
 */
#ifndef GINSHMEM_BARRIER_H
#define GINSHMEM_BARRIER_H

#include <ginshmem/gin.h>

typedef enum gin_order {
    GIN_ORDER_RELAXED = 0,
    GIN_ORDER_ACQUIRE = 1,
    GIN_ORDER_RELEASE = 2,
    GIN_ORDER_ACQ_REL = 3
} gin_order_t;

/* Which earlier operations of the context (all contexts with GIN_ALL_CONTEXTS) a barrier completes.
 */
enum gin_fence_level {
    GIN_FENCE_ALL = 0, /* puts, signals and gets */
    GIN_FENCE_PUT = 1, /* puts and signals are visible at their targets */
    GIN_FENCE_GET = 2, /* got bytes are visible here */
    GIN_FENCE_NONE = 4 /* none: synchronises threads only */
};

/*
 * Wait until every rank of the barrier's team has arrived. Order says what the calling group's own
 * loads and stores get; fence, what its operations get. GIN_ERANGE: index beyond the requirements;
 * GIN_EINVAL: kind, order, fence; GIN_ESTATE: not a member, or the index is in use; GIN_ETIMEDOUT:
 * the arrival stands, calling again with the same index goes on waiting; GIN_EPEER.
 */
GIN_OP int gin_barrier(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                       gin_order_t order, unsigned fence);
GIN_OP int gin_barrier_x(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                         gin_order_t order, unsigned fence, const gin_wait_opt_t *opt);

/* The two halves of an LSA barrier: say that I am here; wait until all others were. */
GIN_OP int gin_lsa_arrive(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order);
GIN_OP int gin_lsa_wait(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order,
                        const gin_wait_opt_t *opt);

#define GIN_I_DECLARED_BARRIER
#include <ginshmem/impl/bodies.h>

#endif
