/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offset allocator: which bytes of a heap belong to whom. It is given no memory, only numbers,
 * so the heap may lie anywhere (another process, a GPU). Fed the same calls it returns the same
 * offsets on every rank; that is all that keeps the heap symmetric.
 *
 * Two-level segregated fit: constant time, except that before it says "no room" it looks at every
 * free block that could serve. Blocks are multiples of a cache line, so two never share one. The
 * space is made of chunks; no block crosses from one chunk to the next.
 *
 * Taking a block and giving it back, with nothing in between, restores the state exactly: order of
 * the free lists and fingerprint included. That is what makes an allocation tentative.
 *
 * Not thread-safe; the heap serialises.
 */
#ifndef GI_HEAP_ALLOC_H
#define GI_HEAP_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GI_ALLOC_GRANULE    64u                 /* size and offset of every block is a multiple */
#define GI_ALLOC_MAX_ALIGN  ((uint64_t)1 << 30) /* largest alignment */
#define GI_ALLOC_MAX_BYTES  ((uint64_t)1 << 56) /* largest block and space */
#define GI_ALLOC_ROWS       48                  /* first level: powers of two of granules */
#define GI_ALLOC_COLS       32                  /* second level: linear steps in a power of two */
#define GI_ALLOC_BIT_LEVELS 9 /* 64^9 granules in a chunk: more than the maximum */

struct gi_alloc_node;
struct gi_alloc_slot;

struct gi_alloc_chunk {
    uint64_t start, bytes;
    uint64_t before, after; /* fingerprint around the call that added it */
    uint32_t first;         /* node of its first block */
    uint32_t levels;
    uint64_t *bits[GI_ALLOC_BIT_LEVELS]; /* where live blocks start; level n+1: words of n not 0 */
};

struct gi_alloc {
    uint64_t bias;        /* alignment holds for offset + bias */
    uint64_t red;         /* bytes on either side of every block that belong to nobody */
    uint64_t fingerprint; /* of the history, undone calls left out */
    uint64_t size;        /* bytes of all chunks */
    uint64_t used;        /* bytes of live blocks */
    uint32_t blocks;      /* live blocks */
    uint32_t n_chunks;
    uint32_t fail_in; /* test only: the take this many from now fails for lack of metadata */

    /* nodes: one for each block, live or free; index 0 is none */
    struct gi_alloc_node *nodes;
    uint32_t nodes_made, nodes_cap, spare, n_spare;

    /* live blocks by offset: open addressing, at most half full */
    struct gi_alloc_slot *slots;
    uint32_t slot_bits;

    struct gi_alloc_chunk *chunks;
    uint32_t chunks_cap;

    uint64_t row_map;
    uint32_t col_map[GI_ALLOC_ROWS];
    uint32_t head[GI_ALLOC_ROWS * GI_ALLOC_COLS];
};

struct gi_alloc_stats {
    uint64_t total, used, largest_free;
    uint64_t blocks, free_blocks, chunks;
};

/*
 * An empty allocator without chunks. bias is added to offsets before they are aligned: where offset
 * 0 lies behind an address of the greatest alignment. red bytes in front of and behind every block
 * stay unused; sizes and offsets in the calls below do not count them, `used` and the space do.
 * Both are multiples of the granule.
 */
int gi_alloc_init(struct gi_alloc *a, uint64_t bias, uint64_t red);
void gi_alloc_fini(struct gi_alloc *a);

/* Append [size, size + bytes); bytes is a multiple of the granule. */
int gi_alloc_add_chunk(struct gi_alloc *a, uint64_t bytes);
/* Undo the last add. GIN_ESTATE if a block of that chunk is live. */
int gi_alloc_drop_chunk(struct gi_alloc *a);

/*
 * Take `bytes` (> 0) at a multiple of `align` (a power of two; less than the granule means the
 * granule). GIN_EAGAIN without a text: no free block fits, the caller may add a chunk. GIN_ENOMEM:
 * no memory for the metadata. On failure nothing has changed.
 */
int gi_alloc_take(struct gi_alloc *a, uint64_t bytes, uint64_t align, uint64_t *off);
/* Bytes that a new chunk must have for this take to succeed. */
uint64_t gi_alloc_chunk_for(const struct gi_alloc *a, uint64_t bytes, uint64_t align);

/* Give a block back; *bytes (may be NULL) gets what was asked for it. Never fails on a live block.
 */
int gi_alloc_give(struct gi_alloc *a, uint64_t off, uint64_t *bytes);

/*
 * What a live block was asked to be: bytes and alignment (either may be NULL). Refuses, with a text
 * that tells which: an offset outside the space, inside a block, or at a block that is not live.
 */
int gi_alloc_size_of(const struct gi_alloc *a, uint64_t off, uint64_t *bytes, uint64_t *align);

/*
 * Change a live block's size where it is, in two steps. prepare() changes no block: GIN_OK promises
 * that resize() with the same arguments will succeed; GIN_EAGAIN without a text: it would have to
 * move. resize() without a prepare() before it is not allowed.
 */
int gi_alloc_resize_prepare(struct gi_alloc *a, uint64_t off, uint64_t bytes);
int gi_alloc_resize(struct gi_alloc *a, uint64_t off, uint64_t bytes);

/* The live block whose asked bytes contain `off`. False: there is none. */
bool gi_alloc_find(const struct gi_alloc *a, uint64_t off, uint64_t *start, uint64_t *bytes);

/* The first live block that starts at or after `off`, for walks over all of them. */
bool gi_alloc_next(const struct gi_alloc *a, uint64_t off, uint64_t *start, uint64_t *bytes);

void gi_alloc_get_stats(const struct gi_alloc *a, struct gi_alloc_stats *stats);

/*
 * Walk everything and check what must hold (alloc_check.c). GIN_OK or GIN_ESTATE with the first
 * contradiction in the text.
 */
int gi_alloc_check(const struct gi_alloc *a);
/* Would the two answer every sequence of calls alike? Compares blocks and orders of free lists. */
bool gi_alloc_equal(const struct gi_alloc *a, const struct gi_alloc *b);

#endif
