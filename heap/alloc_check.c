/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must hold of an allocator between calls, checked by walking all of it: chunks tile the
 * space and blocks tile a chunk, no two free neighbours, each free block in the one list of its
 * class, maps and bits say what the lists and blocks say, sums agree. Also the deep comparison of
 * two allocators. For tests and GINSHMEM_CHECK; the reader is not expected to be fast.
 */
#include "base/log.h"
#include "heap/alloc_impl.h"

#define REQUIRE(cond, fmt, ...)                                                                \
    do {                                                                                       \
        if (!(cond))                                                                           \
            return gi_fail(GIN_ESTATE, "heap allocator inconsistent, not so: %s: " fmt, #cond, \
                           __VA_ARGS__);                                                       \
    } while (0)

typedef unsigned long long ull;

struct sums {
    uint64_t used, live, free, nodes;
};

static bool bit_set(const struct gi_alloc_chunk *c, uint64_t i, uint32_t level)
{
    return c->bits[level][i >> 6] >> (i & 63) & 1;
}

static int check_block(const struct gi_alloc *a, const struct gi_alloc_chunk *c, uint32_t n)
{
    const struct gi_alloc_node *b = &a->nodes[n];

    REQUIRE(b->size > 0 && b->size % GI_ALLOC_GRANULE == 0, "size %llu", (ull)b->size);
    REQUIRE(b->chunk == (uint32_t)(c - a->chunks), "chunk %u", b->chunk);
    REQUIRE(!b->next || a->nodes[b->next].prev == n, "links at %llu", (ull)b->off);
    REQUIRE(bit_set(c, (b->off - c->start) >> GI_ALLOC_SHIFT, 0) == b->live, "at %llu",
            (ull)b->off);
    if (b->live) {
        uint64_t align = (uint64_t)1 << b->align_log2, most = b->size - 2 * a->red;

        REQUIRE(b->size > 2 * a->red && b->asked > 0 && b->asked <= most &&
                    most - b->asked < GI_ALLOC_GRANULE,
                "asked %llu of %llu", (ull)b->asked, (ull)b->size);
        REQUIRE((b->off + a->bias + a->red) % align == 0, "offset %llu alignment %llu", (ull)b->off,
                (ull)align);
        REQUIRE(gi_alloc_live_at(a, b->off) == n, "table at %llu", (ull)b->off);
    } else {
        REQUIRE(!b->next || a->nodes[b->next].live, "two free blocks at %llu", (ull)b->off);
        REQUIRE(gi_alloc_live_at(a, b->off) == 0, "table at %llu", (ull)b->off);
    }
    return GIN_OK;
}

/* A bit of a level is set exactly where the word below is not 0; level 0 is checked by blocks. */
static int check_bits(const struct gi_alloc_chunk *c, uint64_t live)
{
    uint64_t n = c->bytes >> GI_ALLOC_SHIFT, starts = 0;

    for (uint32_t l = 0; l < c->levels; l++) {
        n = (n + 63) / 64;
        for (uint64_t w = 0; w < n; w++) {
            if (l == 0)
                starts += (unsigned)__builtin_popcountll(c->bits[0][w]);
            if (l + 1 < c->levels)
                REQUIRE(bit_set(c, w, l + 1) == (c->bits[l][w] != 0), "level %u word %llu", l,
                        (ull)w);
        }
    }
    REQUIRE(starts == live, "%llu starts, %llu live", (ull)starts, (ull)live);
    return GIN_OK;
}

static int check_chunk(const struct gi_alloc *a, uint32_t i, struct sums *s)
{
    const struct gi_alloc_chunk *c = &a->chunks[i];
    uint64_t at = c->start, live = 0;
    int st;

    REQUIRE(a->nodes[c->first].prev == 0, "chunk %u", i);
    for (uint32_t n = c->first; n; n = a->nodes[n].next) {
        const struct gi_alloc_node *b = &a->nodes[n];

        REQUIRE(b->off == at, "block at %llu, expected at %llu", (ull)b->off, (ull)at);
        st = check_block(a, c, n);
        if (st != GIN_OK)
            return st;
        s->used += b->live ? b->size : 0;
        s->nodes++;
        s->free += !b->live;
        live += b->live;
        at += b->size;
    }
    s->live += live;
    REQUIRE(at == c->start + c->bytes, "chunk %u ends at %llu", i, (ull)at);
    return check_bits(c, live);
}

static int check_lists(const struct gi_alloc *a, uint64_t free)
{
    uint64_t seen = 0;

    for (unsigned c = 0; c < GI_ALLOC_ROWS * GI_ALLOC_COLS; c++) {
        unsigned row = c / GI_ALLOC_COLS, col = c % GI_ALLOC_COLS;

        REQUIRE((a->col_map[row] >> col & 1) == (a->head[c] != 0), "list %u", c);
        REQUIRE((a->row_map >> row & 1) == (a->col_map[row] != 0), "row %u", row);
        for (uint32_t n = a->head[c], prev = 0; n; prev = n, n = a->nodes[n].list_next) {
            const struct gi_alloc_node *b = &a->nodes[n];

            REQUIRE(!b->live, "live block at %llu in list %u", (ull)b->off, c);
            REQUIRE(gi_alloc_class(b->size >> GI_ALLOC_SHIFT) == c, "size %llu in list %u",
                    (ull)b->size, c);
            REQUIRE(b->list_prev == prev, "links of list %u at %llu", c, (ull)b->off);
            REQUIRE(++seen <= free, "list %u: more entries than free blocks", c);
        }
    }
    REQUIRE(seen == free, "%llu in lists, %llu free blocks", (ull)seen, (ull)free);
    return GIN_OK;
}

int gi_alloc_check(const struct gi_alloc *a)
{
    struct sums s = {0};
    uint64_t at = 0, slots = 0, spare = 0;
    int st;

    for (uint32_t i = 0; i < a->n_chunks; i++) {
        REQUIRE(a->chunks[i].start == at, "chunk %u at %llu", i, (ull)a->chunks[i].start);
        at += a->chunks[i].bytes;
        st = check_chunk(a, i, &s);
        if (st != GIN_OK)
            return st;
    }
    REQUIRE(at == a->size, "chunks end at %llu of %llu", (ull)at, (ull)a->size);
    REQUIRE(s.used == a->used, "%llu used, counted %llu", (ull)a->used, (ull)s.used);
    REQUIRE(s.live == a->blocks, "%u blocks, counted %llu", a->blocks, (ull)s.live);
    for (uint64_t i = 0; a->slot_bits && i < (uint64_t)1 << a->slot_bits; i++)
        slots += a->slots[i].node != 0;
    REQUIRE(slots == a->blocks, "%u blocks, %llu in the table", a->blocks, (ull)slots);
    for (uint32_t n = a->spare; n && spare <= a->n_spare; n = a->nodes[n].list_next)
        spare++;
    REQUIRE(spare == a->n_spare, "%u spare nodes, counted %llu", a->n_spare, (ull)spare);
    REQUIRE(s.nodes + spare + (a->nodes_made > 0) == a->nodes_made, "%llu nodes of %u",
            (ull)(s.nodes + spare), a->nodes_made);
    return check_lists(a, s.free);
}

static bool same_blocks(const struct gi_alloc *a, const struct gi_alloc *b)
{
    for (uint32_t i = 0; i < a->n_chunks; i++) {
        uint32_t m = a->chunks[i].first, n = b->chunks[i].first;

        for (; m && n; m = a->nodes[m].next, n = b->nodes[n].next) {
            const struct gi_alloc_node *x = &a->nodes[m], *y = &b->nodes[n];

            if (x->off != y->off || x->size != y->size || x->live != y->live ||
                x->asked != y->asked || (x->live && x->align_log2 != y->align_log2))
                return false;
        }
        if (m != n)
            return false;
    }
    return true;
}

static bool same_lists(const struct gi_alloc *a, const struct gi_alloc *b)
{
    for (unsigned c = 0; c < GI_ALLOC_ROWS * GI_ALLOC_COLS; c++) {
        uint32_t m = a->head[c], n = b->head[c];

        for (; m && n; m = a->nodes[m].list_next, n = b->nodes[n].list_next)
            if (a->nodes[m].off != b->nodes[n].off)
                return false;
        if (m != n)
            return false;
    }
    return true;
}

bool gi_alloc_equal(const struct gi_alloc *a, const struct gi_alloc *b)
{
    return a->fingerprint == b->fingerprint && a->size == b->size && a->bias == b->bias &&
           a->red == b->red && a->n_chunks == b->n_chunks && same_blocks(a, b) && same_lists(a, b);
}
