/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of windows: pages, ids, handles. Writers are serial; readers take no lock. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "window_table.h"

#define PAGE_BYTES     (GIN_I_WINDOW_PAGE * sizeof(struct gin_i_window))
#define GENERATION_MAX 0x7fffffffu

_Static_assert(GIN_I_WINDOW_PAGE *GIN_I_WINDOW_PAGES == GI_WINDOW_IDS, "every id has its place");

/* What unused entries of level 1 point to; nobody writes it. */
static _Alignas(64) struct gin_i_window zeros[GIN_I_WINDOW_PAGE];

static const struct gin_i_window *empty[GIN_I_WINDOW_PAGES];
static pthread_once_t empty_once = PTHREAD_ONCE_INIT;

static void make_empty(void)
{
    for (uint32_t i = 0; i < GIN_I_WINDOW_PAGES; i++)
        empty[i] = zeros;
}

const struct gin_i_window *const *gi_window_table_empty(void)
{
    pthread_once(&empty_once, make_empty);
    return empty;
}

static int add_page(struct gi_window_table *t)
{
    if (t->n_pages == GIN_I_WINDOW_PAGES)
        return gi_fail(GIN_ENOMEM, "windows: all %u are live, which is the limit; deregister some",
                       GI_WINDOW_IDS);
    struct gin_i_window *page = gi_os_map_private(PAGE_BYTES);
    struct gi_window *pages = calloc(GIN_I_WINDOW_PAGE, sizeof(*pages));
    if (page == NULL || pages == NULL) {
        if (page != NULL)
            gi_os_unmap(page, PAGE_BYTES);
        free(pages);
        return gi_fail(GIN_ENOMEM, "windows: no memory for windows %u .. %u",
                       t->n_pages * GIN_I_WINDOW_PAGE, (t->n_pages + 1) * GIN_I_WINDOW_PAGE - 1);
    }
    t->pages[t->n_pages] = pages;
    __atomic_store_n(&t->level1[t->n_pages++], page, __ATOMIC_RELEASE);
    return GIN_OK;
}

int gi_window_table_open(struct gi_window_table *t, uint64_t seed)
{
    memset(t, 0, sizeof(*t));
    t->free = GI_WINDOW_NO_ID;
    t->generation = (uint32_t)(seed % GENERATION_MAX) + 1;
    t->level1 = malloc(GIN_I_WINDOW_PAGES * sizeof(struct gin_i_window *));
    if (t->level1 == NULL)
        return gi_fail(GIN_ENOMEM, "windows: no memory for their table");
    for (uint32_t i = 0; i < GIN_I_WINDOW_PAGES; i++)
        t->level1[i] = zeros;
    return GIN_OK;
}

void *gi_window_table_close(struct gi_window_table *t)
{
    struct gin_i_window **level1 = t->level1;
    for (uint32_t i = 0; i < t->n_pages; i++) {
        struct gin_i_window *page = level1[i];
        level1[i] = (struct gin_i_window *)(uintptr_t)gi_window_table_empty()[0];
        gi_os_unmap(page, PAGE_BYTES);
        free(t->pages[i]);
    }
    t->level1 = NULL;
    t->n_pages = 0;
    return level1;
}

int gi_window_table_take(struct gi_window_table *t, uint32_t *id)
{
    if (t->free != GI_WINDOW_NO_ID) {
        *id = t->free;
        t->free = gi_window_private(t, *id)->next;
    } else {
        if (t->made == t->n_pages * GIN_I_WINDOW_PAGE) {
            int st = add_page(t);
            if (st != GIN_OK)
                return st;
        }
        *id = t->made++;
    }
    t->live++;
    memset(gi_window_private(t, *id), 0, sizeof(struct gi_window));
    return GIN_OK;
}

void gi_window_table_give(struct gi_window_table *t, uint32_t id)
{
    gi_window_private(t, id)->next = t->free;
    t->free = id;
    t->live--;
}

uint64_t gi_window_table_publish(struct gi_window_table *t, uint32_t id,
                                 const struct gin_i_window *w)
{
    struct gin_i_window *place = gi_window_at(t, id);
    t->generation = t->generation % GENERATION_MAX + 1;
    uint64_t handle = (uint64_t)t->generation << 32 | id;
    place->local = w->local;
    place->lsa_base = w->lsa_base;
    place->lsa_stride = w->lsa_stride;
    place->peers = w->peers;
    place->mode = w->mode;
    place->kind = w->kind;
    place->apply = w->apply;
    place->flags = w->flags;
    place->twin = handle;
    GIN_STORE_RELAXED(&place->size, w->size);
    GIN_STORE_RELEASE(&place->handle, handle);
    return handle;
}

void gi_window_table_retract(struct gi_window_table *t, uint32_t id)
{
    struct gin_i_window *place = gi_window_at(t, id);
    GIN_STORE_RELEASE(&place->handle, 0);
    GIN_STORE_RELAXED(&place->size, 0);
    place->twin = 0;
    place->mode = GIN_I_WINDOW_SLOW;
    place->kind = place->apply = 0;
    place->local = place->lsa_base = place->lsa_stride = 0;
    place->peers = NULL;
    place->flags = 0;
}

const struct gin_i_window *gi_window_table_find(const struct gi_window_table *t, uint64_t handle)
{
    uint32_t id = gi_window_id(handle);
    const struct gin_i_window *page =
        __atomic_load_n(&t->level1[id / GIN_I_WINDOW_PAGE], __ATOMIC_ACQUIRE);
    const struct gin_i_window *w = &page[id % GIN_I_WINDOW_PAGE];
    return handle != 0 && GIN_LOAD_ACQUIRE(&w->handle) == handle ? w : NULL;
}
