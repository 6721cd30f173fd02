/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allocation in three steps: do it here, agree, keep it or undo it. All that can fail on one rank
 * alone (memory of the machine, metadata, a bad pointer, a damaged red zone) fails before the
 * agreement; what follows it cannot fail. Bytes of a new block are written before the agreement
 * too: as soon as that is over, a peer may put into the block.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "heap/alloc.h"
#include "heap/heap.h"
#include "heap/zone.h"

#define DEFAULT_ALIGN 64u

typedef unsigned long long ull;

struct gi_heap {
    struct gi_heap_config c;
    struct gi_zone zone;
    uint64_t limit; /* c.max down to where a chunk can end */
    uint64_t max_align;
    _Atomic uint64_t peak, size; /* as agreed on */
    bool adrift; /* an agreement did not come about: peers may have gone on where I undid */
    pthread_mutex_t lock; /* around changes of alloc and around its readers on other threads */
    struct gi_alloc alloc;
};

/* A take that is not agreed on yet. */
struct tentative {
    uint64_t off, bytes;
    uint64_t grown; /* bytes of the chunk added for it, or 0 */
};

static uint64_t slot_align(const struct gi_heap_config *c)
{
    uint64_t slot = c->slot ? (uint64_t)(uintptr_t)c->slot : c->align, low = slot & -slot;

    return !slot || low > GI_ALLOC_MAX_ALIGN ? GI_ALLOC_MAX_ALIGN : low;
}

int gi_heap_create(const struct gi_heap_config *c, struct gi_heap **heap)
{
    struct gi_segment *s = c->segment;
    struct gi_heap *h = aligned_alloc(64, (sizeof(*h) + 63) & ~(size_t)63);
    uint64_t end = s->control + c->max;
    int st;

    if (!h)
        return gi_fail(GIN_ENOMEM, "no memory for a heap's state");
    memset(h, 0, sizeof(*h));
    h->c = *c;
    h->zone = (struct gi_zone){c->slot ? c->slot + s->control : NULL, c->check};
    h->limit = end - end % s->granule - s->control;
    if (c->max < s->bytes) /* the first chunk was rounded up */
        h->limit = s->bytes;
    h->max_align = slot_align(c);
    st = gi_alloc_init(&h->alloc, s->control, c->check ? GI_ZONE_RED : 0);
    if (st == GIN_OK)
        st = gi_alloc_add_chunk(&h->alloc, s->bytes);
    if (st != GIN_OK)
        goto free_heap;
    pthread_mutex_init(&h->lock, NULL);
    atomic_init(&h->size, s->bytes);
    gi_zone_close(&h->zone, 0, s->bytes);
    *heap = h;
    return GIN_OK;
free_heap:
    gi_alloc_fini(&h->alloc);
    free(h);
    return st;
}

void gi_heap_destroy(struct gi_heap *h)
{
    if (!h)
        return;
    gi_zone_open(&h->zone, 0, h->alloc.size);
    pthread_mutex_destroy(&h->lock);
    gi_alloc_fini(&h->alloc);
    free(h);
}

static int exchange(void *arg, const struct gi_agree_record *mine,
                    const struct gi_agree_record **all)
{
    struct gi_heap *h = arg;
    int st = h->c.exchange(h->c.arg, mine, all);

    if (GIN_UNLIKELY(st != GIN_OK))
        h->adrift = true;
    return st;
}

/* Agree on a call; rec lacks its number, kind and fingerprint. */
static int agree(struct gi_heap *h, struct gi_agree_record *rec)
{
    rec->seq = ++*h->c.calls;
    rec->kind = h->c.kind;
    rec->fingerprint = h->alloc.fingerprint;
    return gi_agree(rec, h->c.size, exchange, h);
}

static int no_room(const struct gi_heap *h, uint64_t bytes, uint64_t need)
{
    const char *which = h->c.segment->ops ? "CUDA_" : "";
    struct gi_alloc_stats s;

    gi_alloc_get_stats(&h->alloc, &s);
    return gi_fail(
        GIN_ENOMEM,
        "no room in the heap for %llu bytes: of %llu bytes %llu are used by %llu blocks, "
        "largest free block %llu; it can grow by %llu more to its limit of %llu, %llu "
        "short of what is needed; raise GINSHMEM_%sHEAP_MAX (and GINSHMEM_%sHEAP_SIZE)",
        (ull)bytes, (ull)s.total, (ull)s.used, (ull)s.blocks, (ull)s.largest_free,
        (ull)(h->limit - s.total), (ull)h->limit, (ull)(need - (h->limit - s.total)), which, which);
}

/* Add a chunk that serves the request. */
static int grow(struct gi_heap *h, uint64_t bytes, uint64_t align, uint64_t *grown)
{
    struct gi_segment *s = h->c.segment;
    struct gi_alloc *a = &h->alloc;
    uint64_t left = h->limit - a->size, need = bytes, chunk;
    int st;

    if (bytes <= left)
        need = gi_alloc_chunk_for(a, bytes, align);
    if (need > left)
        return no_room(h, bytes, need);
    chunk = need > h->c.chunk ? need : h->c.chunk;
    chunk = chunk < left ? chunk + (s->granule - chunk % s->granule) % s->granule : left;
    if (chunk > left)
        chunk = left;
    st = gi_segment_grow(s, a->size + chunk);
    if (st != GIN_OK)
        return st;
    st = gi_alloc_add_chunk(a, chunk);
    if (st != GIN_OK)
        goto shrink_segment;
    gi_zone_close(&h->zone, a->size - chunk, chunk);
    *grown = chunk;
    return GIN_OK;
shrink_segment:
    gi_segment_shrink(s, a->size);
    return st;
}

static void shrink(struct gi_heap *h)
{
    uint64_t size = h->alloc.size;

    gi_alloc_drop_chunk(&h->alloc);
    gi_zone_open(&h->zone, h->alloc.size, size - h->alloc.size);
    if (!h->adrift) /* else a peer that went on may store there, which must not be a bus error */
        gi_segment_shrink(h->c.segment, h->alloc.size);
}

/* Take a block and, where there is none, grow. On failure nothing has changed. */
static int take(struct gi_heap *h, uint64_t bytes, uint64_t align, struct tentative *t)
{
    int st;

    *t = (struct tentative){.off = GI_HEAP_NONE, .bytes = bytes};
    if (align > h->max_align && align <= GI_ALLOC_MAX_ALIGN)
        return gi_fail(GIN_ENOTSUP, "alignment %llu: this heap lies at a multiple of %llu only",
                       (ull)align, (ull)h->max_align);
    st = gi_alloc_take(&h->alloc, bytes, align, &t->off);
    if (st != GIN_EAGAIN)
        return st;
    st = grow(h, bytes, align, &t->grown);
    if (st != GIN_OK)
        return st;
    st = gi_alloc_take(&h->alloc, bytes, align, &t->off);
    if (st != GIN_OK)
        shrink(h);
    return st;
}

static void give(struct gi_heap *h, uint64_t off, uint64_t bytes)
{
    gi_zone_drop(&h->zone, off, bytes);
    pthread_mutex_lock(&h->lock);
    gi_alloc_give(&h->alloc, off, NULL);
    pthread_mutex_unlock(&h->lock);
}

static void untake(struct gi_heap *h, const struct tentative *t)
{
    give(h, t->off, t->bytes);
    if (t->grown) {
        pthread_mutex_lock(&h->lock);
        shrink(h);
        pthread_mutex_unlock(&h->lock);
    }
}

/* What has been agreed counts. */
static void commit(struct gi_heap *h)
{
    if (h->alloc.used > atomic_load_explicit(&h->peak, memory_order_relaxed))
        atomic_store_explicit(&h->peak, h->alloc.used, memory_order_relaxed);
    if (h->alloc.size != atomic_load_explicit(&h->size, memory_order_relaxed))
        atomic_store_explicit(&h->size, h->alloc.size, memory_order_release);
}

/*
 * Bytes of a new block, before a peer may put into it. Memory that was added for it is not there
 * yet where peers have to map it; then finish() does this.
 */
static int prepare(struct gi_heap *h, const struct tentative *t, bool zero)
{
    struct gi_segment *s = h->c.segment;

    gi_zone_make(&h->zone, t->off, t->bytes, 0, zero);
    return zero && s->ops && !t->grown ? s->ops->zero(s->arg, t->off, t->bytes) : GIN_OK;
}

/* After the agreement: peers map what was added, and where that had to wait, the block is zeroed.
 */
static int finish(struct gi_heap *h, struct gi_agree_record *rec, const struct tentative *t,
                  bool zero)
{
    struct gi_segment *s = h->c.segment;
    int st;

    if (!s->ops || !t->grown)
        return GIN_OK;
    st = s->ops->share(s->arg);
    if (st != GIN_OK || !zero)
        return st;
    rec->op = GI_AGREE_MALLOC_END;
    rec->status = s->ops->zero(s->arg, t->off, t->bytes);
    return agree(h, rec);
}

int gi_heap_malloc(struct gi_heap *h, uint64_t bytes, uint64_t align, unsigned flags, uint64_t *off)
{
    struct gi_agree_record rec = {
        .op = GI_AGREE_MALLOC, .size = bytes, .align = align, .extra = flags};
    struct tentative t;
    bool taken;
    int st;

    if (bytes == 0) {
        *off = GI_HEAP_NONE;
        return GIN_OK;
    }
    pthread_mutex_lock(&h->lock);
    rec.status = take(h, bytes, align, &t);
    pthread_mutex_unlock(&h->lock);
    taken = rec.status == GIN_OK;
    if (taken)
        rec.status = prepare(h, &t, flags & GI_HEAP_ZERO);
    rec.offset = t.off;
    st = agree(h, &rec);
    if (st == GIN_OK)
        st = finish(h, &rec, &t, flags & GI_HEAP_ZERO);
    if (st == GIN_OK) {
        commit(h);
        *off = t.off;
    } else if (taken) {
        untake(h, &t);
    }
    return st;
}

/* Is there a block at off, whole? */
static int look(struct gi_heap *h, uint64_t off, uint64_t *bytes, uint64_t *align)
{
    int st;

    if (off == GI_HEAP_FOREIGN)
        return gi_fail(GIN_EINVAL, "the pointer is not into the heap");
    st = gi_alloc_size_of(&h->alloc, off, bytes, align);
    return st == GIN_OK ? gi_zone_verify(&h->zone, off, *bytes) : st;
}

int gi_heap_free(struct gi_heap *h, uint64_t off)
{
    struct gi_agree_record rec = {.op = GI_AGREE_FREE, .offset = off};
    uint64_t bytes = 0;
    int st;

    if (off == GI_HEAP_NONE)
        return GIN_OK;
    rec.status = look(h, off, &bytes, NULL);
    st = agree(h, &rec);
    if (st == GIN_OK)
        give(h, off, bytes);
    return st;
}

/* The block stays where it is. */
static int resize(struct gi_heap *h, struct gi_agree_record *rec, uint64_t off, uint64_t old)
{
    uint64_t bytes = rec->size;
    int st;

    rec->offset = off;
    if (bytes > old)
        gi_zone_resize(&h->zone, off, old, bytes);
    st = agree(h, rec);
    if (st != GIN_OK) {
        if (bytes > old)
            gi_zone_resize(&h->zone, off, bytes, old);
        return st;
    }
    if (bytes < old)
        gi_zone_resize(&h->zone, off, old, bytes);
    pthread_mutex_lock(&h->lock);
    gi_alloc_resize(&h->alloc, off, bytes);
    pthread_mutex_unlock(&h->lock);
    commit(h);
    return GIN_OK;
}

/*
 * The block moves. Puts into the old one may arrive until all ranks are here, so the copy waits for
 * the agreement; and nobody may put into the new one before every copy is done, so a second one
 * follows.
 */
static int move(struct gi_heap *h, struct gi_agree_record *rec, uint64_t off, uint64_t old,
                const struct tentative *t)
{
    struct gi_segment *s = h->c.segment;
    uint64_t keep = old < t->bytes ? old : t->bytes;
    int st;

    gi_zone_make(&h->zone, t->off, t->bytes, 0, false);
    rec->offset = t->off;
    st = agree(h, rec);
    if (st == GIN_OK)
        st = finish(h, rec, t, false);
    if (st == GIN_OK) {
        if (h->zone.base)
            memcpy(h->zone.base + t->off, h->zone.base + off, keep);
        else if (s->ops)
            rec->status = s->ops->copy(s->arg, t->off, off, keep);
        rec->op = GI_AGREE_REALLOC_END;
        st = agree(h, rec);
    }
    if (st == GIN_OK) {
        commit(h);
        give(h, off, old);
    } else {
        untake(h, t);
    }
    return st;
}

int gi_heap_realloc(struct gi_heap *h, uint64_t off, uint64_t bytes, uint64_t *new_off)
{
    struct gi_agree_record rec = {.op = GI_AGREE_REALLOC, .size = bytes, .extra = off};
    struct tentative t = {.off = off};
    uint64_t old = 0;
    bool moves = false;
    int st;

    if (off == GI_HEAP_NONE)
        return gi_heap_malloc(h, bytes, DEFAULT_ALIGN, 0, new_off);
    if (bytes == 0) {
        st = gi_heap_free(h, off);
        if (st == GIN_OK)
            *new_off = GI_HEAP_NONE;
        return st;
    }
    rec.status = look(h, off, &old, &rec.align);
    pthread_mutex_lock(&h->lock);
    if (rec.status == GIN_OK) {
        rec.status = gi_alloc_resize_prepare(&h->alloc, off, bytes);
        moves = rec.status == GIN_EAGAIN;
        if (moves)
            rec.status = take(h, bytes, rec.align, &t);
    }
    pthread_mutex_unlock(&h->lock);
    if (rec.status != GIN_OK)
        st = agree(h, &rec);
    else if (moves)
        st = move(h, &rec, off, old, &t);
    else
        st = resize(h, &rec, off, old);
    if (st == GIN_OK)
        *new_off = t.off;
    return st;
}

uint64_t gi_heap_size(const struct gi_heap *h)
{
    return atomic_load_explicit(&h->size, memory_order_acquire);
}

bool gi_heap_find(struct gi_heap *h, uint64_t off, uint64_t *start, uint64_t *bytes)
{
    bool found;

    pthread_mutex_lock(&h->lock);
    found = gi_alloc_find(&h->alloc, off, start, bytes);
    pthread_mutex_unlock(&h->lock);
    return found;
}

int gi_heap_check(struct gi_heap *h)
{
    uint64_t off = 0, bytes = 0;
    int st;

    pthread_mutex_lock(&h->lock);
    st = gi_alloc_check(&h->alloc);
    while (st == GIN_OK && h->c.check && gi_alloc_next(&h->alloc, off, &off, &bytes)) {
        st = gi_zone_verify(&h->zone, off, bytes);
        off += bytes;
    }
    pthread_mutex_unlock(&h->lock);
    return st;
}

void gi_heap_get_state(struct gi_heap *h, struct gi_heap_state *state)
{
    struct gi_alloc_stats s;

    pthread_mutex_lock(&h->lock);
    gi_alloc_get_stats(&h->alloc, &s);
    *state = (struct gi_heap_state){.size = s.total,
                                    .max = h->limit,
                                    .used = s.used,
                                    .peak = atomic_load_explicit(&h->peak, memory_order_relaxed),
                                    .largest_free = s.largest_free,
                                    .blocks = s.blocks,
                                    .backing = h->c.segment->backing};
    pthread_mutex_unlock(&h->lock);
}

uint64_t gi_heap_fingerprint(struct gi_heap *h)
{
    uint64_t f;

    pthread_mutex_lock(&h->lock);
    f = h->alloc.fingerprint;
    pthread_mutex_unlock(&h->lock);
    return f;
}

void gi_heap_inject(struct gi_heap *h, unsigned n)
{
    h->alloc.fail_in = n;
}
