/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the offset allocator, shared by its files and nobody else. */
#ifndef GI_HEAP_ALLOC_IMPL_H
#define GI_HEAP_ALLOC_IMPL_H

#include "heap/alloc.h"

#define GI_ALLOC_SHIFT 6 /* log2 of the granule */

_Static_assert(1u << GI_ALLOC_SHIFT == GI_ALLOC_GRANULE, "shift and granule");

/* One block, live or free; a cache line. */
struct gi_alloc_node {
    uint64_t off, size;     /* red zones included */
    uint64_t asked;         /* live: bytes asked for; free: 0 */
    uint64_t before, after; /* live: fingerprint around the take */
    uint32_t prev, next;    /* neighbours within the chunk */
    uint32_t list_prev; /* free: in its list; live: behind whom the block stood, 0 at the head */
    uint32_t list_next; /* free, or a spare node: next in the list */
    uint32_t chunk;
    bool live;
    uint8_t align_log2;
};

_Static_assert(sizeof(struct gi_alloc_node) == 64, "one line per block");

struct gi_alloc_slot {
    uint32_t tag; /* hash of the offset; its upper bits are the home */
    uint32_t node;
};

/* Free list of blocks of g granules, g > 0. */
static inline unsigned gi_alloc_class(uint64_t g)
{
    unsigned log2;

    if (g < GI_ALLOC_COLS)
        return (unsigned)g;
    log2 = 63u - (unsigned)__builtin_clzll(g);
    return (log2 - 4) * GI_ALLOC_COLS + (unsigned)((g >> (log2 - 5)) & (GI_ALLOC_COLS - 1));
}

/* Make room for k more nodes and one more live block. GIN_OK or GIN_ENOMEM. */
int gi_alloc_reserve(struct gi_alloc *a, uint32_t k);
uint32_t gi_alloc_node_get(struct gi_alloc *a); /* after reserve: cannot fail */
void gi_alloc_node_put(struct gi_alloc *a, uint32_t n);

/* Live blocks by offset, in the table and in the chunk's bits */
void gi_alloc_live_add(struct gi_alloc *a, uint32_t n);
void gi_alloc_live_del(struct gi_alloc *a, uint32_t n);
uint32_t gi_alloc_live_at(const struct gi_alloc *a, uint64_t start); /* node.off; 0: none */

struct gi_alloc_chunk *gi_alloc_chunk_of(const struct gi_alloc *a, uint64_t off); /* or NULL */
int gi_alloc_chunk_open(struct gi_alloc *a, uint64_t bytes); /* room in the tables, not yet part */
void gi_alloc_chunk_close(struct gi_alloc_chunk *c);

#endif
