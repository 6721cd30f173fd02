/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges by address. Every word that readers see is loaded with acquire and stored with release:
 * then no load moves behind the second look at `seq`, and no store before the first odd one.
 */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "window_index.h"

#define LOAD(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define FIRST_CAPACITY 64

void gi_window_index_close(struct gi_window_index *x)
{
    while (x->arrays > 0)
        free(x->array[--x->arrays]);
    memset(x, 0, sizeof(*x));
}

int gi_window_index_reserve(struct gi_window_index *x)
{
    if (x->n < x->capacity)
        return GIN_OK;
    uint64_t capacity = x->capacity != 0 ? 2 * x->capacity : FIRST_CAPACITY;
    struct gi_window_range *ranges = calloc(capacity, sizeof(*ranges));
    if (ranges == NULL)
        return gi_fail(GIN_ENOMEM, "windows: no memory for an index of %llu",
                       (unsigned long long)capacity);
    if (x->n != 0)
        memcpy(ranges, x->ranges, x->n * sizeof(*ranges));
    x->array[x->arrays++] = ranges;
    x->capacity = capacity;
    STORE(&x->ranges, ranges);
    return GIN_OK;
}

static void put(struct gi_window_range *place, const struct gi_window_range *r)
{
    STORE(&place->start, r->start);
    STORE(&place->size, r->size);
    STORE(&place->reach, r->reach);
    STORE(&place->id, r->id);
}

/* `reach` of the ranges from i on. */
static void reach_from(struct gi_window_index *x, uint64_t i)
{
    uint64_t reach = i > 0 ? x->ranges[i - 1].reach : 0;
    for (; i < x->n; i++) {
        uint64_t end = x->ranges[i].start + x->ranges[i].size;
        reach = end > reach ? end : reach;
        STORE(&x->ranges[i].reach, reach);
    }
}

/* How many ranges stand before one of this start and size. */
static uint64_t place_of(const struct gi_window_index *x, uint64_t start, uint64_t size)
{
    uint64_t lo = 0, hi = x->n;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        const struct gi_window_range *r = &x->ranges[mid];
        if (r->start < start || (r->start == start && r->size >= size))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void gi_window_index_add(struct gi_window_index *x, uint64_t start, uint64_t size, uint64_t id)
{
    struct gi_window_range r = {.start = start, .size = size, .id = id};
    uint64_t at = place_of(x, start, size);
    STORE(&x->seq, x->seq + 1);
    for (uint64_t i = x->n; i > at; i--)
        put(&x->ranges[i], &x->ranges[i - 1]);
    put(&x->ranges[at], &r);
    STORE(&x->n, x->n + 1);
    reach_from(x, at);
    STORE(&x->seq, x->seq + 1);
}

void gi_window_index_remove(struct gi_window_index *x, uint64_t start, uint64_t size, uint64_t id)
{
    uint64_t at = place_of(x, start, size);
    while (at > 0 && x->ranges[at - 1].id != id)
        at--;
    if (at-- == 0)
        return;
    STORE(&x->seq, x->seq + 1);
    STORE(&x->n, x->n - 1);
    for (uint64_t i = at; i < x->n; i++)
        put(&x->ranges[i], &x->ranges[i + 1]);
    reach_from(x, at);
    STORE(&x->seq, x->seq + 1);
}

/* One look, which a writer may spoil. n is read before the array: the array is large enough. */
static bool look(const struct gi_window_index *x, uint64_t addr, uint64_t *id)
{
    uint64_t n = LOAD(&x->n), lo = 0, hi = n, best = 0;
    const struct gi_window_range *ranges = LOAD(&x->ranges);
    bool found = false;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (LOAD(&ranges[mid].start) <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* backwards: done where nothing before reaches addr, or all that does is larger */
    while (lo-- > 0 && LOAD(&ranges[lo].reach) > addr) {
        uint64_t before = addr - LOAD(&ranges[lo].start), size = LOAD(&ranges[lo].size);
        if (found && before >= best)
            break;
        if (before < size && (!found || size < best)) {
            found = true;
            best = size;
            *id = LOAD(&ranges[lo].id);
        }
    }
    return found;
}

bool gi_window_index_find(const struct gi_window_index *x, uint64_t addr, uint64_t *id)
{
    for (;;) {
        uint64_t seq = LOAD(&x->seq);
        bool found = look(x, addr, id);
        if ((seq & 1) == 0 && LOAD(&x->seq) == seq)
            return found;
    }
}
