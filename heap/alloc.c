/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which free block serves a request, how blocks are cut and merged, and how a take is undone.
 *
 * A free list is last in, first out. A take normally gets the head of a list; where only a block
 * further down fits, the node remembers behind whom that block stood. Giving a block back while the
 * fingerprint is still the one its take left behind means that the lists are as they were then, so
 * the block goes back to its old place and the fingerprint to its old value.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "heap/alloc_impl.h"

enum history { TAKE = 1, GIVE, RESIZE, ADD, DROP };

static uint64_t mix(uint64_t fingerprint, enum history what, uint64_t x, uint64_t y)
{
    uint64_t h = fingerprint ^ (x * 0x9e3779b97f4a7c15u + y * 0xc2b2ae3d27d4eb4fu + what);

    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + GI_ALLOC_GRANULE - 1) & ~(uint64_t)(GI_ALLOC_GRANULE - 1);
}

static uint64_t size_for(const struct gi_alloc *a, uint64_t bytes)
{
    return round_up(bytes + 2 * a->red);
}

/* First start at or after off whose block, behind the red zone, is aligned. */
static uint64_t aligned(const struct gi_alloc *a, uint64_t off, uint64_t align)
{
    return ((off + a->bias + a->red + align - 1) & ~(align - 1)) - a->bias - a->red;
}

/* The live block that the caller knows as `off`; 0: none. */
static uint32_t live_block(const struct gi_alloc *a, uint64_t off)
{
    return off < a->red ? 0 : gi_alloc_live_at(a, off - a->red);
}

static unsigned node_class(const struct gi_alloc_node *n)
{
    return gi_alloc_class(n->size >> GI_ALLOC_SHIFT);
}

/* Put a free block into its list, behind `place` (0: at the head). */
static void list_add(struct gi_alloc *a, uint32_t n, uint32_t place)
{
    struct gi_alloc_node *b = &a->nodes[n];
    unsigned c = node_class(b);
    uint32_t *link = place ? &a->nodes[place].list_next : &a->head[c];

    b->list_prev = place;
    b->list_next = *link;
    if (*link)
        a->nodes[*link].list_prev = n;
    *link = n;
    a->col_map[c / GI_ALLOC_COLS] |= 1u << c % GI_ALLOC_COLS;
    a->row_map |= (uint64_t)1 << c / GI_ALLOC_COLS;
}

static void list_del(struct gi_alloc *a, uint32_t n)
{
    struct gi_alloc_node *b = &a->nodes[n];

    if (b->list_next)
        a->nodes[b->list_next].list_prev = b->list_prev;
    if (b->list_prev) {
        a->nodes[b->list_prev].list_next = b->list_next;
    } else {
        unsigned c = node_class(b);

        a->head[c] = b->list_next;
        if (!b->list_next && (a->col_map[c / GI_ALLOC_COLS] &= ~(1u << c % GI_ALLOC_COLS)) == 0)
            a->row_map &= ~((uint64_t)1 << c / GI_ALLOC_COLS);
    }
}

/* First list at or above c that is not empty; 0 (the class of no size): none. */
static unsigned class_from(const struct gi_alloc *a, unsigned c)
{
    unsigned row = c / GI_ALLOC_COLS;
    uint32_t cols = row < GI_ALLOC_ROWS ? a->col_map[row] & (UINT32_MAX << c % GI_ALLOC_COLS) : 0;

    if (!cols) {
        uint64_t rows = a->row_map & (UINT64_MAX << 1 << row);

        if (!rows)
            return 0;
        row = (unsigned)__builtin_ctzll(rows);
        cols = a->col_map[row];
    }
    return row * GI_ALLOC_COLS + (unsigned)__builtin_ctz(cols);
}

static bool fits(const struct gi_alloc *a, uint32_t n, uint64_t size, uint64_t align)
{
    const struct gi_alloc_node *b = &a->nodes[n];

    return aligned(a, b->off, align) + size <= b->off + b->size;
}

/*
 * The block to cut from: the last one freed of the same class if it fits (programs ask for the same
 * sizes again), else the head of the first list whose every block fits, else any that fits.
 */
static uint32_t choose(const struct gi_alloc *a, uint64_t size, uint64_t align)
{
    uint64_t g = size >> GI_ALLOC_SHIFT, most = g + (align >> GI_ALLOC_SHIFT) - 1;
    unsigned low = gi_alloc_class(g), sure, c;
    uint32_t n = a->head[low];

    if (n && fits(a, n, size, align))
        return n;
    if (most >= GI_ALLOC_COLS) /* up to the next class, whose least block is large enough */
        most += ((uint64_t)1 << (63 - __builtin_clzll(most) - 5)) - 1;
    sure = gi_alloc_class(most);
    c = class_from(a, sure);
    if (c)
        return a->head[c];
    for (c = class_from(a, low); c; c = class_from(a, c + 1))
        for (n = a->head[c]; n; n = a->nodes[n].list_next)
            if (fits(a, n, size, align))
                return n;
    return 0;
}

/* Cut a block in two at `off`: the upper part becomes a block of its own, in no list yet. */
static uint32_t cut(struct gi_alloc *a, uint32_t n, uint64_t off)
{
    uint32_t u = gi_alloc_node_get(a);
    struct gi_alloc_node *b = &a->nodes[n], *upper = &a->nodes[u];

    *upper = (struct gi_alloc_node){
        .off = off, .size = b->off + b->size - off, .prev = n, .next = b->next, .chunk = b->chunk};
    if (b->next)
        a->nodes[b->next].prev = u;
    b->next = u;
    b->size = off - b->off;
    return u;
}

/* Append the free block u, which is in no list, to its lower neighbour n; u is no more. */
static void join(struct gi_alloc *a, uint32_t n, uint32_t u)
{
    struct gi_alloc_node *b = &a->nodes[n], *upper = &a->nodes[u];

    b->size += upper->size;
    b->next = upper->next;
    if (b->next)
        a->nodes[b->next].prev = n;
    gi_alloc_node_put(a, u);
}

int gi_alloc_init(struct gi_alloc *a, uint64_t bias, uint64_t red)
{
    memset(a, 0, sizeof(*a));
    if (bias % GI_ALLOC_GRANULE || red % GI_ALLOC_GRANULE || red > GI_ALLOC_MAX_ALIGN)
        return gi_fail(GIN_EINVAL, "bias %llu, red zone %llu of a heap: no multiples of %u",
                       (unsigned long long)bias, (unsigned long long)red, GI_ALLOC_GRANULE);
    a->bias = bias;
    a->red = red;
    return GIN_OK;
}

void gi_alloc_fini(struct gi_alloc *a)
{
    for (uint32_t i = 0; i < a->n_chunks; i++)
        gi_alloc_chunk_close(&a->chunks[i]);
    free(a->chunks);
    free(a->slots);
    free(a->nodes);
    memset(a, 0, sizeof(*a));
}

int gi_alloc_add_chunk(struct gi_alloc *a, uint64_t bytes)
{
    struct gi_alloc_chunk *c;
    uint32_t n;
    int st;

    if (bytes == 0 || bytes % GI_ALLOC_GRANULE || bytes > GI_ALLOC_MAX_BYTES - a->size)
        return gi_fail(GIN_EINVAL, "heap chunk of %llu bytes: not a multiple of %u, or too large",
                       (unsigned long long)bytes, GI_ALLOC_GRANULE);
    st = gi_alloc_reserve(a, 1);
    if (st != GIN_OK)
        return st;
    st = gi_alloc_chunk_open(a, bytes);
    if (st != GIN_OK)
        return st;
    n = gi_alloc_node_get(a);
    a->nodes[n] = (struct gi_alloc_node){.off = a->size, .size = bytes, .chunk = a->n_chunks};
    list_add(a, n, 0);
    c = &a->chunks[a->n_chunks++];
    c->first = n;
    c->before = a->fingerprint;
    c->after = a->fingerprint = mix(a->fingerprint, ADD, a->size, bytes);
    a->size += bytes;
    return GIN_OK;
}

int gi_alloc_drop_chunk(struct gi_alloc *a)
{
    struct gi_alloc_chunk *c = a->n_chunks ? &a->chunks[a->n_chunks - 1] : NULL;

    if (!c)
        return gi_fail(GIN_ESTATE, "no heap chunk to drop");
    if (a->nodes[c->first].live || a->nodes[c->first].next)
        return gi_fail(GIN_ESTATE, "the last heap chunk (%llu bytes at %llu) has live blocks",
                       (unsigned long long)c->bytes, (unsigned long long)c->start);
    list_del(a, c->first);
    gi_alloc_node_put(a, c->first);
    a->fingerprint =
        a->fingerprint == c->after ? c->before : mix(a->fingerprint, DROP, c->start, c->bytes);
    a->size -= c->bytes;
    a->n_chunks--;
    gi_alloc_chunk_close(c);
    return GIN_OK;
}

static int bad_request(uint64_t bytes, uint64_t align)
{
    if (bytes == 0)
        return gi_fail(GIN_EINVAL, "a heap block of 0 bytes");
    return gi_fail(GIN_EINVAL, "alignment %llu is no power of two up to %llu",
                   (unsigned long long)align, (unsigned long long)GI_ALLOC_MAX_ALIGN);
}

int gi_alloc_take(struct gi_alloc *a, uint64_t bytes, uint64_t align, uint64_t *off)
{
    uint64_t size, start, before = a->fingerprint;
    uint32_t n, place;
    struct gi_alloc_node *b;
    int st;

    if (bytes == 0 || align == 0 || align & (align - 1) || align > GI_ALLOC_MAX_ALIGN)
        return bad_request(bytes, align);
    if (bytes > GI_ALLOC_MAX_BYTES)
        return GIN_EAGAIN;
    st = gi_alloc_reserve(a, 2);
    if (st != GIN_OK)
        return st;
    if (align < GI_ALLOC_GRANULE)
        align = GI_ALLOC_GRANULE;
    size = size_for(a, bytes);
    n = choose(a, size, align);
    if (!n)
        return GIN_EAGAIN;

    place = a->nodes[n].list_prev;
    list_del(a, n);
    start = aligned(a, a->nodes[n].off, align);
    if (start != a->nodes[n].off) {
        uint32_t gap = n;

        n = cut(a, gap, start);
        list_add(a, gap, 0);
    }
    if (a->nodes[n].size != size)
        list_add(a, cut(a, n, start + size), 0);

    b = &a->nodes[n];
    b->live = true;
    b->asked = bytes;
    b->align_log2 = (uint8_t)__builtin_ctzll(align);
    b->list_prev = place;
    b->before = before;
    b->after = a->fingerprint = mix(before, TAKE, start, bytes);
    a->used += size;
    a->blocks++;
    gi_alloc_live_add(a, n);
    *off = start + a->red;
    return GIN_OK;
}

uint64_t gi_alloc_chunk_for(const struct gi_alloc *a, uint64_t bytes, uint64_t align)
{
    if (align < GI_ALLOC_GRANULE)
        align = GI_ALLOC_GRANULE;
    return aligned(a, a->size, align) - a->size + size_for(a, bytes);
}

/* Why off is not the start of a live block; records the text. */
static int not_live(const struct gi_alloc *a, uint64_t off)
{
    unsigned long long at = off;
    uint64_t start, bytes;

    if (off >= a->size)
        return gi_fail(GIN_EINVAL, "offset %llu is outside the heap of %llu bytes", at,
                       (unsigned long long)a->size);
    if (gi_alloc_find(a, off, &start, &bytes))
        return gi_fail(GIN_EINVAL, "offset %llu is %llu bytes inside a heap block of %llu bytes",
                       at, (unsigned long long)(off - start), (unsigned long long)bytes);
    return gi_fail(GIN_EINVAL, "no heap block is allocated at offset %llu (freed already?)", at);
}

int gi_alloc_give(struct gi_alloc *a, uint64_t off, uint64_t *bytes)
{
    uint32_t n = live_block(a, off), place = 0, side;
    struct gi_alloc_node *b;

    if (!n)
        return not_live(a, off);
    b = &a->nodes[n];
    gi_alloc_live_del(a, n);
    a->used -= b->size;
    a->blocks--;
    if (bytes)
        *bytes = b->asked;
    if (a->fingerprint == b->after) {
        a->fingerprint = b->before;
        place = b->list_prev;
    } else {
        a->fingerprint = mix(a->fingerprint, GIVE, off, b->asked);
    }
    b->live = false;
    b->asked = 0;

    side = b->next;
    if (side && !a->nodes[side].live) {
        list_del(a, side);
        join(a, n, side);
    }
    side = b->prev;
    if (side && !a->nodes[side].live) {
        list_del(a, side);
        join(a, side, n);
        n = side;
    }
    list_add(a, n, place);
    return GIN_OK;
}

int gi_alloc_size_of(const struct gi_alloc *a, uint64_t off, uint64_t *bytes, uint64_t *align)
{
    uint32_t n = live_block(a, off);

    if (!n)
        return not_live(a, off);
    if (bytes)
        *bytes = a->nodes[n].asked;
    if (align)
        *align = (uint64_t)1 << a->nodes[n].align_log2;
    return GIN_OK;
}

static int can_resize(const struct gi_alloc *a, uint64_t off, uint64_t bytes)
{
    uint32_t n = live_block(a, off), next;
    uint64_t room;

    if (!n)
        return not_live(a, off);
    if (bytes == 0)
        return bad_request(bytes, 1);
    next = a->nodes[n].next;
    room = a->nodes[n].size + (next && !a->nodes[next].live ? a->nodes[next].size : 0);
    if (bytes > GI_ALLOC_MAX_BYTES || size_for(a, bytes) > room)
        return GIN_EAGAIN;
    return GIN_OK;
}

int gi_alloc_resize_prepare(struct gi_alloc *a, uint64_t off, uint64_t bytes)
{
    int st = can_resize(a, off, bytes);

    return st == GIN_OK ? gi_alloc_reserve(a, 1) : st;
}

int gi_alloc_resize(struct gi_alloc *a, uint64_t off, uint64_t bytes)
{
    int st = can_resize(a, off, bytes);
    uint32_t n, next;
    struct gi_alloc_node *b;
    uint64_t size;

    if (st != GIN_OK)
        return st;
    n = live_block(a, off);
    b = &a->nodes[n];
    size = size_for(a, bytes);
    next = b->next;
    a->used += size - b->size;
    if (size != b->size) {
        if (next && !a->nodes[next].live) {
            list_del(a, next);
            join(a, n, next);
        }
        if (b->size != size)
            list_add(a, cut(a, n, b->off + size), 0);
    }
    b->asked = bytes;
    a->fingerprint = mix(a->fingerprint, RESIZE, off, bytes);
    return GIN_OK;
}

void gi_alloc_get_stats(const struct gi_alloc *a, struct gi_alloc_stats *stats)
{
    struct gi_alloc_stats s = {
        .total = a->size, .used = a->used, .blocks = a->blocks, .chunks = a->n_chunks};

    for (unsigned c = class_from(a, 1); c; c = class_from(a, c + 1))
        for (uint32_t n = a->head[c]; n; n = a->nodes[n].list_next) {
            s.free_blocks++;
            if (a->nodes[n].size > s.largest_free)
                s.largest_free = a->nodes[n].size;
        }
    *stats = s;
}
