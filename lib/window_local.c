/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local memory that is announced to be used often. Nothing on this host gains by it; the ranges are
 * kept, counted, for the transports that register memory.
 */
#include <stdlib.h>
#include <string.h>
#include "window_impl.h"

#define LOOKS 8u /* at ranges that begin before an address and may be nested */

int gi_window_check_range(const char *call, const void *ptr, uint64_t bytes)
{
    uint64_t start = (uint64_t)(uintptr_t)ptr;
    if (bytes == 0)
        return GIN_OK;
    if (ptr == NULL)
        return gi_fail(GIN_EINVAL, "%s: %llu bytes at NULL", call, (unsigned long long)bytes);
    if (bytes - 1 > UINT64_MAX - start)
        return gi_fail(GIN_ERANGE, "%s: %p and %llu bytes wrap around the address space", call, ptr,
                       (unsigned long long)bytes);
    if (!gi_os_is_mapped(start) || !gi_os_is_mapped(start + bytes - 1))
        return gi_fail(GIN_EINVAL, "%s: [%p, +%llu) is not memory of this process", call, ptr,
                       (unsigned long long)bytes);
    return GIN_OK;
}

/* How many ranges start at or before `start`. */
static uint64_t upto(const struct gi_windows *ws, uint64_t start)
{
    uint64_t lo = 0, hi = ws->n_local;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (ws->local[mid].start <= start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool gi_local_place(gin_comm_t *comm, uint64_t addr, uint64_t bytes, enum gi_gpu_memory *place)
{
    struct gi_windows *ws = comm->windows;
    bool found = false;
    if (GIN_LOAD_RELAXED(&ws->n_local) == 0 || pthread_mutex_trylock(&ws->local_lock) != 0)
        return false;
    for (uint64_t i = upto(ws, addr), looks = 0; i > 0 && !found && looks < LOOKS; i--, looks++) {
        const struct gi_local_range *r = &ws->local[i - 1];
        uint64_t off = addr - r->start;
        found = off <= r->bytes && bytes <= r->bytes - off;
        if (found)
            *place = r->place;
    }
    pthread_mutex_unlock(&ws->local_lock);
    return found;
}

static int insert(struct gi_windows *ws, uint64_t start, uint64_t bytes, enum gi_gpu_memory place)
{
    uint64_t at = upto(ws, start);
    for (uint64_t i = at; i > 0 && ws->local[i - 1].start == start; i--)
        if (ws->local[i - 1].bytes == bytes) {
            ws->local[i - 1].count++;
            return GIN_OK;
        }
    if (ws->n_local == ws->local_capacity) {
        uint64_t capacity = ws->local_capacity != 0 ? 2 * ws->local_capacity : 16;
        struct gi_local_range *r = realloc(ws->local, capacity * sizeof(*r));
        if (r == NULL)
            return gi_fail(GIN_ENOMEM, "gin_local_register: no memory for %llu ranges",
                           (unsigned long long)capacity);
        ws->local = r;
        ws->local_capacity = capacity;
    }
    memmove(&ws->local[at + 1], &ws->local[at], (ws->n_local - at) * sizeof(*ws->local));
    ws->local[at] =
        (struct gi_local_range){.start = start, .bytes = bytes, .count = 1, .place = place};
    GIN_STORE_RELAXED(&ws->n_local, ws->n_local + 1);
    return GIN_OK;
}

int gin_local_register(gin_comm_t *comm, void *ptr, size_t bytes)
{
    enum gi_gpu_memory place = GI_GPU_UNKNOWN;
    int st = gi_comm_enter(comm, "gin_local_register");
    if (st == GIN_OK)
        st = gi_window_check_range("gin_local_register", ptr, bytes);
    if (st != GIN_OK)
        return st;
    if (bytes != 0)
        st = gi_operand_look(comm, (uint64_t)(uintptr_t)ptr, bytes, &place);
    if (st != GIN_OK)
        return gi_fail_context("gin_local_register");
    pthread_mutex_lock(&comm->windows->local_lock);
    st = insert(comm->windows, (uint64_t)(uintptr_t)ptr, bytes, place);
    pthread_mutex_unlock(&comm->windows->local_lock);
    return st;
}

int gin_local_deregister(gin_comm_t *comm, void *ptr)
{
    int st = gi_comm_enter(comm, "gin_local_deregister");
    if (st != GIN_OK)
        return st;
    struct gi_windows *ws = comm->windows;
    uint64_t start = (uint64_t)(uintptr_t)ptr;
    pthread_mutex_lock(&ws->local_lock);
    uint64_t at = upto(ws, start);
    if (at == 0 || ws->local[at - 1].start != start) {
        st = gi_fail(GIN_EINVAL, "gin_local_deregister: no registered range starts at %p", ptr);
    } else if (--ws->local[at - 1].count == 0) {
        memmove(&ws->local[at - 1], &ws->local[at], (ws->n_local - at) * sizeof(*ws->local));
        GIN_STORE_RELAXED(&ws->n_local, ws->n_local - 1);
    }
    pthread_mutex_unlock(&ws->local_lock);
    return st;
}
