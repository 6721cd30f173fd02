/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of peers' addresses in GPU memory, for windows in mode TABLE. Kernels read a row through
 * caches that nobody keeps coherent while they run, so a row that was given back is not written
 * again before thousands of others were.
 */
#ifndef GI_PEER_TABLES_H
#define GI_PEER_TABLES_H

#include "cuda/gpu.h"

struct gi_tables {
    struct gi_gpu *gpu;
    uint32_t n;      /* addresses in a row */
    uint64_t *chunk; /* GPU memory, so many rows in each */
    uint32_t n_chunks;
    uint32_t fresh;            /* rows below it were taken at least once */
    uint32_t *next;            /* by row: given back after it */
    uint32_t oldest, youngest; /* rows given back */
    uint32_t spare;            /* how many */
};

/* All zero but for gpu and n is an empty set of rows. */
void gi_tables_close(struct gi_tables *tables);
/* Make sure that the next take does not fail. */
int gi_tables_reserve(struct gi_tables *tables);
/* A row, never 0. Only after gi_tables_reserve(). */
uint32_t gi_tables_take(struct gi_tables *tables);
void gi_tables_give(struct gi_tables *tables, uint32_t row);
int gi_tables_write(struct gi_tables *tables, uint32_t row, const uint64_t *peers);
uint64_t gi_tables_at(const struct gi_tables *tables, uint32_t row); /* GPU address */

#endif
