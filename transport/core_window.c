/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a window's name and an offset to a peer's key and address. Names are looked up by whoever
 * owns a context while another thread registers windows: entries are made whole and shown with one
 * store; one that was replaced stays readable until its window is dropped, for windows are replaced
 * only as often as a heap grows.
 */
#include "transport/core_int.h"

#include <stdlib.h>

#define ID(name) ((name) & (GI_CORE_WINDOW_PAGE * GI_CORE_WINDOW_PAGES - 1))

static struct gi_core_window **slot_of(const struct gi_core *core, uint32_t name)
{
    uint32_t id = ID(name);
    struct gi_core_window **page =
        __atomic_load_n(&core->windows[id / GI_CORE_WINDOW_PAGE], __ATOMIC_ACQUIRE);
    return page != NULL ? &page[id % GI_CORE_WINDOW_PAGE] : NULL;
}

static const struct gi_core_piece *piece_at(const struct gi_core_window *w, uint64_t off)
{
    uint32_t low = 0, high = w->n;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (w->piece[mid].off <= off)
            low = mid;
        else
            high = mid;
    }
    return &w->piece[low];
}

int gi_core_locate(const struct gi_core *core, uint32_t rail, int peer, uint32_t name, uint64_t off,
                   uint64_t bytes, struct gi_core_place *place)
{
    struct gi_core_window **slot = slot_of(core, name);
    const struct gi_core_window *w = slot != NULL ? __atomic_load_n(slot, __ATOMIC_ACQUIRE) : NULL;
    if (GIN_UNLIKELY(w == NULL || w->name != name))
        return GIN_ESTATE;
    const struct gi_core_piece *last = &w->piece[w->n - 1], *q = piece_at(w, off);
    uint64_t end = last->off + last->bytes;
    if (GIN_UNLIKELY(off < w->piece[0].off || off > end || bytes > end - off))
        return GIN_ERANGE;
    const struct gi_core_region *r = q->region;
    uint64_t in = off - q->off, at = q->region_off + in;
    uint64_t run = q->bytes - in, have = r->part[peer].bytes;
    if (GIN_UNLIKELY(at >= have || (w->n == 1 && bytes > have - at)))
        return GIN_ERANGE;
    const struct gi_core_key *k = &r->key[(size_t)peer * core->config.n_domains + rail];
    place->key = k->key;
    place->remote = k->base + at;
    place->run = run < have - at ? run : have - at;
    place->host = r->part[peer].host != 0;
    place->staged = r->part[peer].staged != 0;
    place->mr = r->mr[rail];
    return GIN_OK;
}

bool gi_core_window_is_slow(const struct gi_core *core, uint32_t name)
{
    struct gi_core_window **slot = slot_of(core, name);
    const struct gi_core_window *w = slot != NULL ? __atomic_load_n(slot, __ATOMIC_ACQUIRE) : NULL;
    return w == NULL || w->name != name || w->slow;
}

static bool any_far(const struct gi_core *core, const struct gi_core_piece *pieces, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        for (int r = 0; r < core->config.size; r++)
            any |= pieces[i].region->part[r].host == 0;
    return any;
}

bool gi_core_any_staged(const struct gi_core *core, int peer, uint32_t name, uint64_t off,
                        uint64_t bytes)
{
    struct gi_core_place at;
    while (bytes != 0 && gi_core_locate(core, 0, peer, name, off, 1, &at) == GIN_OK) {
        if (at.staged)
            return true;
        uint64_t run = at.run < bytes ? at.run : bytes;
        off += run;
        bytes -= run;
    }
    return false;
}

int gi_core_window_set(struct gi_core *core, uint32_t name, const struct gi_core_piece *pieces,
                       uint32_t n)
{
    struct gi_core_window ***page = &core->windows[ID(name) / GI_CORE_WINDOW_PAGE];
    if (n == 0)
        return gi_fail(GIN_EINVAL, "window 0x%x has no memory to show to the network", name);
    if (*page == NULL) {
        struct gi_core_window **made = calloc(GI_CORE_WINDOW_PAGE, sizeof(*made));
        if (made == NULL)
            return gi_fail(GIN_ENOMEM, "no memory for the network's table of windows");
        __atomic_store_n(page, made, __ATOMIC_RELEASE);
    }
    struct gi_core_window *w = malloc(sizeof(*w) + n * sizeof(*pieces));
    if (w == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for window 0x%x in the network's table", name);
    struct gi_core_window **slot = slot_of(core, name);
    w->name = name;
    w->n = n;
    w->slow = any_far(core, pieces, n);
    w->older = *slot;
    memcpy(w->piece, pieces, n * sizeof(*pieces));
    __atomic_store_n(slot, w, __ATOMIC_RELEASE);
    return GIN_OK;
}

/* The caller made sure that nobody uses it any more, so what it was can go. */
void gi_core_window_drop(struct gi_core *core, uint32_t name)
{
    struct gi_core_window **slot = slot_of(core, name);
    struct gi_core_window *w = slot != NULL ? *slot : NULL;
    if (w == NULL || w->name != name)
        return;
    __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
    while (w != NULL) {
        struct gi_core_window *older = w->older;
        free(w);
        w = older;
    }
}
