/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of lsa.h: the library's. Not API. */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_LSA_H
#define GINSHMEM_IMPL_LSA_H

#include <ginshmem/impl/path.h>

GIN_OP int gin_lsa_broadcast(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src,
                             size_t bytes)
{
    return gin_i_lsa_broadcast(g, grp, dst, src, bytes);
}

GIN_OP int gin_lsa_reduce(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src, size_t count,
                          gin_type_t type, gin_reduction_t op)
{
    return gin_i_lsa_reduce(g, grp, dst, src, count, type, op);
}

GIN_OP int gin_lsa_add(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t value)
{
    return gin_i_lsa_add(g, grp, at, value);
}

#endif
