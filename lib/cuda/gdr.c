/* SPDX-License-Identifier: BSD-3-Clause */
/* GDRCopy, opened at run time: its calls and types are declared here, for no header is needed. */
#include "cuda/gdr.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"

#define LIBRARY "libgdrapi.so.2"
#define PAGE    65536u                /* of the GPU: what is pinned consists of whole ones */
#define MAPS    64u                   /* ranges mapped at a time */
#define MOST    ((uint64_t)256 << 20) /* bytes of them: all GPUs have a window of that size */

struct handle {
    unsigned long h;
};

/* One is used by whatever lies in the same pages, so it is not unmapped under copies. */
struct range {
    uint64_t from, size; /* what was asked for */
    uint64_t whole;
    _Atomic uint64_t addr, bytes; /* 0 bytes: unused; others look at them meanwhile */
    _Atomic uint32_t users;       /* copies under way */
    struct handle handle;
    char *va;
};

struct gi_gdr {
    void *library, *connection;
    uint64_t mapped;
    struct range range[MAPS];
    void *(*open)(void);
    int (*close)(void *g);
    int (*pin)(void *g, unsigned long addr, size_t size, uint64_t token, uint32_t space,
               struct handle *handle);
    int (*unpin)(void *g, struct handle handle);
    int (*map)(void *g, struct handle handle, void **va, size_t size);
    int (*unmap)(void *g, struct handle handle, void *va, size_t size);
    int (*to)(struct handle handle, void *mapped, const void *host, size_t size);
    int (*from)(struct handle handle, void *host, const void *mapped, size_t size);
};

static bool find_entries(struct gi_gdr *g)
{
    static const struct {
        const char *name;
        size_t place;
    } entries[] = {{"gdr_open", offsetof(struct gi_gdr, open)},
                   {"gdr_close", offsetof(struct gi_gdr, close)},
                   {"gdr_pin_buffer", offsetof(struct gi_gdr, pin)},
                   {"gdr_unpin_buffer", offsetof(struct gi_gdr, unpin)},
                   {"gdr_map", offsetof(struct gi_gdr, map)},
                   {"gdr_unmap", offsetof(struct gi_gdr, unmap)},
                   {"gdr_copy_to_mapping", offsetof(struct gi_gdr, to)},
                   {"gdr_copy_from_mapping", offsetof(struct gi_gdr, from)}};
    bool all = true;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *entry = dlsym(g->library, entries[i].name);
        memcpy((char *)g + entries[i].place, &entry, sizeof(entry));
        all = all && entry != NULL;
    }
    return all;
}

struct gi_gdr *gi_gdr_open(const char *path, char *why, size_t n)
{
    struct gi_gdr *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        snprintf(why, n, "no memory for GDRCopy");
        return NULL;
    }
    g->library = dlopen(path[0] != 0 ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (g->library == NULL) {
        snprintf(why, n, "%s is not installed", LIBRARY);
        goto failed;
    }
    if (!find_entries(g)) {
        snprintf(why, n, "%s lacks calls of version 2", LIBRARY);
        goto close_library;
    }
    g->connection = g->open();
    if (g->connection != NULL)
        return g;
    snprintf(why, n, "%s is there, its kernel module gdrdrv is not", LIBRARY);
close_library:
    dlclose(g->library);
failed:
    free(g);
    return NULL;
}

static void drop(struct gi_gdr *g, struct range *r)
{
    atomic_store(&r->bytes, 0);
    while (atomic_load(&r->users) != 0)
        gi_os_yield();
    g->unmap(g->connection, r->handle, r->va, r->whole);
    g->unpin(g->connection, r->handle);
    g->mapped -= r->whole;
}

void gi_gdr_close(struct gi_gdr *g)
{
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < MAPS; i++)
        if (g->range[i].bytes != 0)
            drop(g, &g->range[i]);
    g->close(g->connection);
    dlclose(g->library);
    free(g);
}

bool gi_gdr_map(struct gi_gdr *g, uint64_t addr, uint64_t bytes)
{
    uint64_t from = addr & ~(uint64_t)(PAGE - 1);
    uint64_t whole = ((addr + bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - from;
    struct range *r = NULL;
    void *va = NULL;
    for (uint32_t i = 0; r == NULL && i < MAPS; i++)
        r = g->range[i].bytes == 0 ? &g->range[i] : NULL;
    if (r == NULL || bytes == 0 || whole > MOST - g->mapped)
        return false;
    int rc = g->pin(g->connection, from, whole, 0, 0, &r->handle);
    if (rc == 0 && (rc = g->map(g->connection, r->handle, &va, whole)) != 0)
        g->unpin(g->connection, r->handle);
    if (rc != 0) {
        gi_debug("cuda", "GDRCopy does not map %llu bytes at %#llx: error %d",
                 (unsigned long long)whole, (unsigned long long)from, rc);
        return false;
    }
    r->from = addr;
    r->size = bytes;
    r->whole = whole;
    atomic_store_explicit(&r->addr, from, memory_order_relaxed);
    r->va = va;
    g->mapped += whole;
    atomic_store_explicit(&r->bytes, whole, memory_order_release);
    return true;
}

void gi_gdr_unmap(struct gi_gdr *g, uint64_t addr, uint64_t bytes)
{
    for (uint32_t i = 0; i < MAPS; i++) {
        struct range *r = &g->range[i];
        if (r->bytes != 0 && r->from == addr && r->size == bytes) {
            drop(g, r);
            return;
        }
    }
}

static bool holds(const struct range *r, uint64_t addr, uint64_t bytes)
{
    uint64_t have = atomic_load(&r->bytes);
    uint64_t off = addr - atomic_load_explicit(&r->addr, memory_order_relaxed);
    return have != 0 && off < have && bytes <= have - off;
}

/* The one that holds it all, mapped until give(). NULL: there is none. */
static struct range *take(struct gi_gdr *g, uint64_t addr, uint64_t bytes)
{
    for (uint32_t i = 0; i < MAPS; i++) {
        struct range *r = &g->range[i];
        if (!holds(r, addr, bytes))
            continue;
        atomic_fetch_add(&r->users, 1);
        if (holds(r, addr, bytes))
            return r;
        atomic_fetch_sub(&r->users, 1);
    }
    return NULL;
}

static void give(struct range *r)
{
    atomic_fetch_sub_explicit(&r->users, 1, memory_order_release);
}

bool gi_gdr_write(struct gi_gdr *g, uint64_t to, const void *from, uint64_t bytes)
{
    struct range *r = take(g, to, bytes);
    if (r == NULL)
        return false;
    int rc = g->to(r->handle, r->va + (to - r->addr), from, bytes);
    give(r);
    return rc == 0;
}

bool gi_gdr_read(struct gi_gdr *g, void *to, uint64_t from, uint64_t bytes)
{
    struct range *r = take(g, from, bytes);
    if (r == NULL)
        return false;
    int rc = g->from(r->handle, to, r->va + (from - r->addr), bytes);
    give(r);
    return rc == 0;
}
