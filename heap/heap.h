/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank's heap of one kind of memory: the allocator, the memory object behind it and the
 * agreement with the other ranks. The calls marked collective are made by all ranks in the same
 * order; each does its part tentatively, agrees, and commits or undoes, so that heaps stay equal.
 * They are serial; the others may run beside them on any thread.
 *
 * Offsets count from the heap's first byte: address = slot + control + offset.
 */
#ifndef GI_HEAP_HEAP_H
#define GI_HEAP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/agree.h"
#include "heap/segment.h"

#define GI_HEAP_NONE UINT64_MAX /* offset of no block: NULL */
#define GI_HEAP_FOREIGN                                                       \
    (UINT64_MAX - 1) /* offset for a pointer outside the heap: always refused \
                      */

#define GI_HEAP_ZERO 1u /* flag of gi_heap_malloc: zeroed before any rank sees the block */

struct gi_heap;

struct gi_heap_config {
    struct gi_segment *segment; /* its bytes are the first chunk; the caller closes it afterwards */
    char *slot;     /* where my memory object is mapped here; NULL: CPU cannot reach it */
    uint64_t align; /* what a slot is a multiple of, where the CPU cannot reach it */
    uint64_t max;   /* bytes up to which the heap may grow, the same on every rank */
    uint64_t chunk; /* least growth, the same on every rank */
    uint32_t kind;
    bool check;      /* red zones, fill patterns; the same on every rank */
    int size;        /* ranks */
    uint64_t *calls; /* number of collective calls so far; counted up by each agreement */
    gi_agree_exchange_fn exchange;
    void *arg;
};

struct gi_heap_state {
    uint64_t size, max, used, peak, largest_free, blocks;
    const char *backing;
};

/* Local. The alignment that blocks can have is that of `slot`, up to 1 GiB. */
int gi_heap_create(const struct gi_heap_config *config, struct gi_heap **heap);
void gi_heap_destroy(struct gi_heap *heap); /* NULL is allowed; the segment stays */

/*
 * Collective. align is a power of two; less than 64 means 64. bytes 0: local, *off is
 * GI_HEAP_NONE and GIN_OK. On failure nothing has changed on any rank.
 */
int gi_heap_malloc(struct gi_heap *heap, uint64_t bytes, uint64_t align, unsigned flags,
                   uint64_t *off);
/* Collective; GI_HEAP_NONE: local, GIN_OK. A bad offset is refused on all ranks. */
int gi_heap_free(struct gi_heap *heap, uint64_t off);
/*
 * Collective. Keeps the block's alignment and min(old, new) bytes. GI_HEAP_NONE allocates; bytes 0
 * frees and yields GI_HEAP_NONE. On failure the old block is as it was.
 */
int gi_heap_realloc(struct gi_heap *heap, uint64_t off, uint64_t bytes, uint64_t *new_off);

/* Bytes of all chunks; grows in collective calls only. */
uint64_t gi_heap_size(const struct gi_heap *heap);
/* The live block that contains `off`. False: there is none. */
bool gi_heap_find(struct gi_heap *heap, uint64_t off, uint64_t *start, uint64_t *bytes);
/* GIN_OK, or GIN_ESTATE naming the first contradiction or, in checked mode, damaged red zone. */
int gi_heap_check(struct gi_heap *heap);
void gi_heap_get_state(struct gi_heap *heap, struct gi_heap_state *state);
/* Equal on ranks whose heaps are. */
uint64_t gi_heap_fingerprint(struct gi_heap *heap);

/* Test only: this rank's n-th reservation of metadata from now fails. */
void gi_heap_inject(struct gi_heap *heap, unsigned n);

#endif
