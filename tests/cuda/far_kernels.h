/* SPDX-License-Identifier: BSD-3-Clause */
/* Between t_far.c, which makes communicators, and far_kernels.cc, whose functions are kernels. */
#ifndef GINSHMEM_TESTS_CUDA_FAR_KERNELS_H
#define GINSHMEM_TESTS_CUDA_FAR_KERNELS_H

#include <ginshmem/devcomm.h>

#define FAR_BLOCKS 3u
#define FAR_BYTES  8192u /* of each block in each buffer */

struct far_run {
    gin_devcomm_t dev;
    gin_at_t in, out, back, words; /* symmetric */
    unsigned char *in_p, *out_p, *back_p;
    int rounds;
    unsigned group; /* enum gin_group_kind */
    /* what came of it */
    int failures, line;
    long long got, want;
    int status; /* of a wait that was to be ended */
};

#ifdef __cplusplus
extern "C" {
#endif
void far_exchange(struct far_run *run); /* all operations, FAR_BLOCKS blocks at once */
void far_barriers(struct far_run *run); /* nobody leaves before all have come */
void far_stuck(struct far_run *run);    /* waits for what never comes */
void far_quiet(struct far_run *run);    /* one waits for its own, while others go on and on */
void far_dead(struct far_run *run);     /* barriers of contexts that are dead */
#ifdef __cplusplus
}
#endif

#endif
