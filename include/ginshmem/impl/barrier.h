/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of barrier.h. Not API. */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_BARRIER_H
#define GINSHMEM_IMPL_BARRIER_H

#include <ginshmem/impl/path.h>

GIN_OP int gin_barrier(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                       gin_order_t order, unsigned fence)
{
    return gin_i_barrier(g, grp, which, index, order, fence, NULL);
}

GIN_OP int gin_barrier_x(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                         gin_order_t order, unsigned fence, const gin_wait_opt_t *opt)
{
    return gin_i_barrier(g, grp, which, index, order, fence, opt);
}

GIN_OP int gin_lsa_arrive(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order)
{
    return gin_i_lsa_arrive(g, grp, index, order);
}

GIN_OP int gin_lsa_wait(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order,
                        const gin_wait_opt_t *opt)
{
    return gin_i_lsa_wait(g, grp, index, order, opt);
}

#endif
