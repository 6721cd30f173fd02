/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on one place of all ranks of the LSA team at once, mine included: by multicast
 * (reqs.multimem) from kernels where there is some, else by loads and stores of each rank's memory,
 * with the same results. None of them synchronises: ranks meet in a barrier before and after.
 */
#ifndef GINSHMEM_LSA_H
#define GINSHMEM_LSA_H

#include <ginshmem/gin.h>

typedef enum gin_type {
    GIN_INT8,
    GIN_UINT8,
    GIN_INT16,
    GIN_UINT16,
    GIN_INT32,
    GIN_UINT32,
    GIN_INT64,
    GIN_UINT64,
    GIN_HALF,
    GIN_BFLOAT16,
    GIN_FLOAT,
    GIN_DOUBLE,
    GIN_COMPLEX_FLOAT,
    GIN_COMPLEX_DOUBLE
} gin_type_t;

typedef enum gin_reduction {
    GIN_SUM,
    GIN_PROD,
    GIN_MIN,
    GIN_MAX,
    GIN_AND,
    GIN_OR,
    GIN_XOR
} gin_reduction_t;

/*
 * Copy `bytes` bytes from `src` (mine) to `dst` at every rank of the LSA team. They are visible
 * there after a quiet and a signal, or a barrier, as those of puts. GIN_ERANGE, GIN_ESTATE,
 * GIN_ENOTSUP: a rank's place is not mapped here, or read-only.
 */
GIN_OP int gin_lsa_broadcast(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src,
                             size_t bytes);

/*
 * Element i of `dst` (mine) = element i of `src` at LSA rank 0, op that of rank 1, ... Types: 32
 * and 64 bit integers with every op but GIN_PROD, GIN_FLOAT and GIN_DOUBLE with GIN_SUM, GIN_MIN
 * and GIN_MAX; others are GIN_ENOTSUP. Multicast adds floating-point numbers in an order of its
 * own; all else is exact. dst must not overlap src.
 */
GIN_OP int gin_lsa_reduce(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src, size_t count,
                          gin_type_t type, gin_reduction_t op);

/* The 8-byte word at `at` += value, at every rank of the LSA team; each by itself is atomic with
 * the operations of amo.h. */
GIN_OP int gin_lsa_add(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t value);

#define GIN_I_DECLARED_LSA
#include <ginshmem/impl/bodies.h>

#endif
