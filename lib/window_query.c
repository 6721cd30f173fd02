/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking about windows. Any thread. */
#include <string.h>
#include "cuda_up.h"
#include "window_impl.h"

int gi_window_check_live(const gin_comm_t *comm, const char *call, gin_window_t win)
{
    if (gi_window_find(comm, win) == NULL)
        return gi_fail(GIN_ESTATE,
                       "%s: window %#llx is not live in this communicator (deregistered before?)",
                       call, (unsigned long long)win.w);
    return GIN_OK;
}

const char *gin_path_name(gin_path_t path)
{
    switch (path) {
    case GIN_PATH_NONE: return "none";
    case GIN_PATH_SELF: return "self";
    case GIN_PATH_LSA: return "lsa";
    case GIN_PATH_CMA: return "cma";
    case GIN_PATH_NET: return "net";
    }
    return "?";
}

gin_window_t gin_heap_window(gin_comm_t *comm, gin_kind_t kind)
{
    gin_window_t w = gin_window_none();
    if (gi_comm_enter(comm, "gin_heap_window") != GIN_OK || !comm->up)
        return w;
    if (kind == GIN_KIND_HOST)
        w.w = gi_heap_window(comm)->handle;
    else if (kind == GIN_KIND_CUDA)
        w.w = gi_cuda_window(comm)->handle;
    return w;
}

int gin_window_of(gin_comm_t *comm, const void *ptr, gin_window_t *win, uint64_t *off)
{
    static const char call[] = "gin_window_of";
    uint64_t addr = (uint64_t)(uintptr_t)ptr, id;
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK)
        return st;
    if (win == NULL || off == NULL)
        return gi_fail(GIN_EINVAL, "%s: %s is NULL", call, win == NULL ? "win" : "off");
    if (!gi_window_index_find(&comm->windows->index, addr, &id))
        id = gi_cuda_owns(comm, addr) ? GI_CUDA_HEAP_ID : GI_THE_HEAP;
    const struct gin_i_window *w = gi_window_at(&comm->windows->table, (uint32_t)id);
    uint64_t handle = GIN_LOAD_ACQUIRE(&w->handle);
    if (handle == 0 || addr < w->local || addr - w->local >= gi_window_bytes(comm, w, (uint32_t)id))
        return gi_fail(GIN_ERANGE, "%s: no window holds %p", call, ptr);
    win->w = handle;
    *off = addr - w->local;
    return GIN_OK;
}

int gin_window_query(gin_comm_t *comm, gin_window_t win, gin_window_info_t *info)
{
    static const char call[] = "gin_window_query";
    int st = gi_comm_enter(comm, call);
    if (st == GIN_OK)
        st = gi_window_check_live(comm, call, win);
    if (st != GIN_OK)
        return st;
    if (info == NULL || info->size_of < offsetof(gin_window_info_t, kind))
        return gi_fail(GIN_EINVAL, "%s: info is NULL, or info->size_of is not its size", call);
    const struct gin_i_window *w = gi_window_find(comm, win);
    const struct gi_window *p = gi_window_private(&comm->windows->table, gi_window_id(win.w));
    gin_window_info_t i = {
        .size_of = info->size_of < sizeof(i) ? info->size_of : sizeof(i),
        .base = (void *)(uintptr_t)w->local,
        .size = gi_window_bytes(comm, w, gi_window_id(win.w)),
        .flags = w->flags,
        .kind = w->kind == GIN_KIND_CUDA ? GIN_KIND_CUDA : GIN_KIND_HOST,
        .is_heap = gi_window_id(win.w) <= GI_CUDA_HEAP_ID,
        .shared = p->reg->windows,
    };
    memcpy(info, &i, i.size_of);
    return GIN_OK;
}
