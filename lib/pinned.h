/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host heap under the eyes of kernels: all LSA ranks' slots, as far as they have memory, pinned
 * for the GPUs of this process. Ranks that are threads of one process see the same slots; the first
 * one pins.
 */
#ifndef GI_PINNED_H
#define GI_PINNED_H

#include "cuda/gpu.h"

struct gi_pinned {
    struct gi_gpu *gpu;
    char *slots;
    uint64_t stride;
    int n;
    uint64_t bytes;    /* of each slot from its start; 0: none */
    unsigned pieces;   /* growths that were pinned */
    uint64_t ends[64]; /* of each piece */
    bool mine[64];     /* whether this rank pinned it */
    char why[128];     /* why not, or not further */
};

/* Pin [p->bytes, to) of every slot. On failure nothing more is pinned, and why says so. */
void gi_pinned_grow(struct gi_pinned *p, uint64_t to);
void gi_pinned_release(struct gi_pinned *p);

#endif
