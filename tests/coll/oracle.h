/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What collectives are to bring, computed by one rank alone: elements depend on case, rank and
 * place, so everybody knows everybody's. Without `bits` they are such that no order of combining
 * them rounds; with it they are any bits at all, for reductions in the order of ranks.
 */
#ifndef GINSHMEM_TESTS_ORACLE_H
#define GINSHMEM_TESTS_ORACLE_H

#include <ginshmem/impl/reduce.h>
#include "tests/mp.h"

enum kind {
    BROADCAST,
    ALLGATHER,
    GATHER,
    ALLTOALL,
    ALLTOALLV,
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    SCAN_EXCLUSIVE,
    KINDS
};
extern const char *const kind_names[KINDS];

struct job {
    enum kind kind;
    gin_type_t type;
    gin_reduction_t op;
    size_t count;
    int n, me, root; /* in the team */
    bool bits, in_place;
    uint64_t seed;
};

size_t type_size(gin_type_t type);
bool has_op(gin_type_t type, gin_reduction_t op);
/* Elements that rank r sends to rank `to` by ALLTOALLV. */
size_t job_count_v(const struct job *j, int r, int to);
/* Elements of either side on rank j->me, as the caller passes them; 0: not looked at. */
size_t job_src(const struct job *j);
size_t job_dst(const struct job *j);
/* Fill what rank r passes as src. */
void job_fill(const struct job *j, int r, void *src);
/* What dst of rank j->me shall hold; its length in bytes. */
size_t job_want(const struct job *j, void *dst);
/* Are they equal, but for the bits of NaNs? */
bool job_equal(const struct job *j, const void *got, const void *want, size_t bytes, size_t *where);

#endif
