/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metadata of the allocator: the pool of nodes, the table from offset to live block, and for each
 * chunk a tree of bits that answers "which live block starts at or before here". Everything that
 * can fail for lack of memory happens in reserve() and chunk_open(), before anything changes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "heap/alloc_impl.h"

#define FIRST_NODES 256u
#define FIRST_BITS  9u

static uint32_t tag_of(uint64_t off)
{
    return (uint32_t)(((off >> GI_ALLOC_SHIFT) * 0x9e3779b97f4a7c15u) >> 32);
}

static int no_metadata(const struct gi_alloc *a, size_t bytes)
{
    return gi_fail(GIN_ENOMEM, "no memory for heap tables: %zu bytes of malloc for %u live blocks",
                   bytes, a->blocks);
}

static int nodes_grow(struct gi_alloc *a)
{
    uint32_t cap = a->nodes_cap ? a->nodes_cap * 2 : FIRST_NODES;
    size_t bytes = (size_t)cap * sizeof(*a->nodes);
    void *p = NULL;

    if (cap > a->nodes_cap)
        p = aligned_alloc(sizeof(*a->nodes), bytes);
    if (!p)
        return no_metadata(a, bytes);
    if (a->nodes)
        memcpy(p, a->nodes, (size_t)a->nodes_made * sizeof(*a->nodes));
    free(a->nodes);
    a->nodes = p;
    a->nodes_cap = cap;
    if (a->nodes_made == 0)
        a->nodes_made = 1; /* 0 is none */
    return GIN_OK;
}

static void slot_put(struct gi_alloc_slot *slots, uint32_t bits, uint32_t tag, uint32_t node)
{
    uint32_t mask = (1u << bits) - 1, i = tag >> (32 - bits);

    while (slots[i].node)
        i = (i + 1) & mask;
    slots[i] = (struct gi_alloc_slot){tag, node};
}

static int slots_grow(struct gi_alloc *a)
{
    uint32_t bits = a->slot_bits ? a->slot_bits + 1 : FIRST_BITS;
    size_t bytes = sizeof(*a->slots) << bits;
    struct gi_alloc_slot *p = bits < 32 ? calloc(1, bytes) : NULL;

    if (!p)
        return no_metadata(a, bytes);
    for (size_t i = 0; a->slots && i < (size_t)1 << a->slot_bits; i++)
        if (a->slots[i].node)
            slot_put(p, bits, a->slots[i].tag, a->slots[i].node);
    free(a->slots);
    a->slots = p;
    a->slot_bits = bits;
    return GIN_OK;
}

int gi_alloc_reserve(struct gi_alloc *a, uint32_t k)
{
    int st = GIN_OK;

    if (GIN_UNLIKELY(a->fail_in) && --a->fail_in == 0)
        return no_metadata(a, 0);
    if (GIN_UNLIKELY(a->n_spare + (a->nodes_cap - a->nodes_made) < k))
        st = nodes_grow(a);
    if (st == GIN_OK && GIN_UNLIKELY(a->slot_bits == 0 || a->blocks >= 1u << (a->slot_bits - 1)))
        st = slots_grow(a);
    return st;
}

uint32_t gi_alloc_node_get(struct gi_alloc *a)
{
    uint32_t n = a->spare;

    if (!n)
        return a->nodes_made++;
    a->spare = a->nodes[n].list_next;
    a->n_spare--;
    return n;
}

void gi_alloc_node_put(struct gi_alloc *a, uint32_t n)
{
    a->nodes[n].list_next = a->spare;
    a->spare = n;
    a->n_spare++;
}

void gi_alloc_live_add(struct gi_alloc *a, uint32_t n)
{
    uint64_t off = a->nodes[n].off;
    struct gi_alloc_chunk *c = &a->chunks[a->nodes[n].chunk];
    uint64_t i = (off - c->start) >> GI_ALLOC_SHIFT;

    slot_put(a->slots, a->slot_bits, tag_of(off), n);
    for (uint32_t l = 0; l < c->levels; l++, i >>= 6) {
        uint64_t old = c->bits[l][i >> 6];

        c->bits[l][i >> 6] = old | (uint64_t)1 << (i & 63);
        if (old)
            break;
    }
}

static uint32_t slot_of(const struct gi_alloc *a, uint64_t off)
{
    uint32_t mask = (1u << a->slot_bits) - 1, tag = tag_of(off), i = tag >> (32 - a->slot_bits);

    for (; a->slots[i].node; i = (i + 1) & mask)
        if (a->slots[i].tag == tag && a->nodes[a->slots[i].node].off == off)
            return i;
    return UINT32_MAX;
}

/* Close the gap at i: an entry moves up unless that would put it before its home. */
static void slot_del(struct gi_alloc *a, uint32_t i)
{
    uint32_t mask = (1u << a->slot_bits) - 1, j = i;

    for (;;) {
        j = (j + 1) & mask;
        if (!a->slots[j].node)
            break;
        if (((j - (a->slots[j].tag >> (32 - a->slot_bits))) & mask) >= ((j - i) & mask)) {
            a->slots[i] = a->slots[j];
            i = j;
        }
    }
    a->slots[i].node = 0;
}

void gi_alloc_live_del(struct gi_alloc *a, uint32_t n)
{
    uint64_t off = a->nodes[n].off;
    struct gi_alloc_chunk *c = &a->chunks[a->nodes[n].chunk];
    uint64_t i = (off - c->start) >> GI_ALLOC_SHIFT;

    slot_del(a, slot_of(a, off));
    for (uint32_t l = 0; l < c->levels; l++, i >>= 6)
        if ((c->bits[l][i >> 6] &= ~((uint64_t)1 << (i & 63))) != 0)
            break;
}

uint32_t gi_alloc_live_at(const struct gi_alloc *a, uint64_t start)
{
    uint32_t i = a->slot_bits ? slot_of(a, start) : UINT32_MAX;

    return i == UINT32_MAX ? 0 : a->slots[i].node;
}

struct gi_alloc_chunk *gi_alloc_chunk_of(const struct gi_alloc *a, uint64_t off)
{
    uint32_t lo = 0, hi = a->n_chunks;

    if (off >= a->size)
        return NULL;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (a->chunks[mid].start <= off)
            lo = mid;
        else
            hi = mid;
    }
    return &a->chunks[lo];
}

int gi_alloc_chunk_open(struct gi_alloc *a, uint64_t bytes)
{
    uint64_t words[GI_ALLOC_BIT_LEVELS], total = 0, n = bytes >> GI_ALLOC_SHIFT;
    struct gi_alloc_chunk *c;
    uint64_t *bits;

    if (a->n_chunks == a->chunks_cap) {
        uint32_t cap = a->chunks_cap ? a->chunks_cap * 2 : 8;
        void *p = realloc(a->chunks, cap * sizeof(*a->chunks));

        if (!p)
            return no_metadata(a, cap * sizeof(*a->chunks));
        a->chunks = p;
        a->chunks_cap = cap;
    }
    c = &a->chunks[a->n_chunks];
    c->levels = 0;
    do {
        n = (n + 63) / 64;
        words[c->levels++] = n;
        total += n;
    } while (n > 1);
    bits = calloc(total, sizeof(*bits)); /* large ones are untouched pages until used */
    if (!bits)
        return no_metadata(a, total * sizeof(*bits));
    for (uint32_t l = 0; l < c->levels; bits += words[l++])
        c->bits[l] = bits;
    c->start = a->size;
    c->bytes = bytes;
    return GIN_OK;
}

void gi_alloc_chunk_close(struct gi_alloc_chunk *c)
{
    free(c->bits[0]);
    c->bits[0] = NULL;
}

/* Nearest set bit at or before (dir < 0) or at or after (dir > 0) i; UINT64_MAX: none. */
static uint64_t bit_near(const struct gi_alloc_chunk *c, uint64_t i, int dir)
{
    uint64_t limit = c->bytes >> GI_ALLOC_SHIFT;

    for (uint32_t l = 0; l < c->levels; l++) {
        uint64_t w, mask;

        if (i >= limit) /* only upwards: stepped off the end */
            return UINT64_MAX;
        mask = dir < 0 ? UINT64_MAX >> (63 - (i & 63)) : UINT64_MAX << (i & 63);
        w = c->bits[l][i >> 6] & mask;
        if (w) {
            i = (i & ~(uint64_t)63) |
                (dir < 0 ? 63u - (unsigned)__builtin_clzll(w) : (unsigned)__builtin_ctzll(w));
            while (l-- > 0) {
                w = c->bits[l][i];
                i = i << 6 |
                    (dir < 0 ? 63u - (unsigned)__builtin_clzll(w) : (unsigned)__builtin_ctzll(w));
            }
            return i;
        }
        i >>= 6;
        if (dir < 0 && i-- == 0)
            return UINT64_MAX;
        if (dir > 0)
            i++;
        limit = (limit + 63) >> 6;
    }
    return UINT64_MAX;
}

/* The live block whose bit is i. */
static const struct gi_alloc_node *node_at(const struct gi_alloc *a, const struct gi_alloc_chunk *c,
                                           uint64_t i)
{
    return &a->nodes[gi_alloc_live_at(a, c->start + (i << GI_ALLOC_SHIFT))];
}

bool gi_alloc_find(const struct gi_alloc *a, uint64_t off, uint64_t *start, uint64_t *bytes)
{
    const struct gi_alloc_chunk *c = gi_alloc_chunk_of(a, off);
    const struct gi_alloc_node *n;
    uint64_t i;

    if (!c || (i = bit_near(c, (off - c->start) >> GI_ALLOC_SHIFT, -1)) == UINT64_MAX)
        return false;
    n = node_at(a, c, i);
    if (off - n->off - a->red >= n->asked) /* in front of it the difference is huge */
        return false;
    *start = n->off + a->red;
    *bytes = n->asked;
    return true;
}

bool gi_alloc_next(const struct gi_alloc *a, uint64_t off, uint64_t *start, uint64_t *bytes)
{
    uint64_t from = off < a->red ? 0 : off - a->red;
    const struct gi_alloc_chunk *c = gi_alloc_chunk_of(a, from);

    for (; c && c < a->chunks + a->n_chunks; from = c->start + c->bytes, c++) {
        uint64_t i = bit_near(c, (from - c->start + GI_ALLOC_GRANULE - 1) >> GI_ALLOC_SHIFT, 1);

        if (i != UINT64_MAX) {
            const struct gi_alloc_node *n = node_at(a, c, i);

            *start = n->off + a->red;
            *bytes = n->asked;
            return true;
        }
    }
    return false;
}
