/* SPDX-License-Identifier: BSD-3-Clause */
/* What ginperf --cuda passes to its kernels. C and CUDA. */
#ifndef GI_TOOLS_GINPERF_CUDA_H
#define GI_TOOLS_GINPERF_CUDA_H

#include <ginshmem.h>

/* One argument of every kernel. A kernel leaves nanoseconds for `iters` rounds in *ns, and the
 * first bad status in *status. */
struct perf_cuda {
    gin_devcomm_t dev;
    gin_at_t src, dst, word, host; /* a block each; two words; a word of the host heap */
    uint64_t *mine, *theirs; /* words of GPU memory, mine and the partner's, for bare limits */
    uint64_t *ns;
    int *status;
    uint64_t bytes;
    int peer, first; /* first: I send first */
    int iters;
};

#endif
