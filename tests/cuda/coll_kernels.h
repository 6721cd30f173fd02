/* SPDX-License-Identifier: BSD-3-Clause */
/* Between colls.c, which makes cases, and coll_kernels.cc, whose functions are kernels. */
#ifndef GINSHMEM_TESTS_CUDA_COLL_KERNELS_H
#define GINSHMEM_TESTS_CUDA_COLL_KERNELS_H

#include <ginshmem/devcomm.h>
#include <ginshmem/lsa.h>

#define COLL_BLOCKS 2u /* each with an index of its own */

/* A call; `call` is gin_sync() for -1, else enum kind of the oracle. */
struct coll_case {
    int call, root, status;
    unsigned index;
    gin_type_t type;
    gin_reduction_t op;
    size_t count;
    gin_team_t team;
    gin_at_t dst, src;
    const size_t *dst_counts, *dst_firsts, *src_counts, *src_firsts;
};

struct coll_run {
    gin_devcomm_t dev;
    struct coll_case *cases;
    int n;
    gin_group_t group;
    unsigned threads; /* of a block */
};

#ifdef __cplusplus
extern "C" {
#endif
/* Every block makes the calls of its index, one behind the other; a case's status is what it
 * returned, or 1 where the lanes of the group differ. */
void coll_kernel(struct coll_run *run);
#ifdef __cplusplus
}
#endif

#endif
