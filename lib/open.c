/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding a context to a thread, the checks at the entrance of every slow call, and places as
 * addresses. A binding that failed is bound to a dead context, on which everything is GIN_ESTATE.
 */
#include <inttypes.h>
#include <string.h>

#include "net_wait.h"

static struct gin_i_dc dead_dc;
static struct gin_i_ctx dead_ctx = {.dc = &dead_dc};

static void bind_dead(gin_t *g)
{
    memset(g, 0, sizeof(*g));
    g->dc = &dead_dc;
    g->ctx = &dead_ctx;
    g->windows = gi_windows_empty();
    g->heap_handle = GIN_I_WINDOW_DEAD;
}

int gin_i_open(const gin_devcomm_t *dev, uint32_t index, gin_t *g)
{
    if (g == NULL)
        return gi_fail(GIN_EINVAL, "gin_open: g is NULL");
    bind_dead(g);
    if (dev == NULL || dev->magic != GIN_DEVCOMM_MAGIC || dev->abi != GIN_DEVCOMM_ABI)
        return gi_fail(GIN_ESTATE, "gin_open: not a device communicator (destroyed, or made by "
                                   "another version?)");
    if (dev->device == GIN_DEVICE_CUDA)
        return gi_fail(GIN_ENOTSUP, "gin_open: this device communicator was made for kernels "
                                    "(device CUDA); host threads need one with device HOST");
    struct gin_i_dc *dc = (struct gin_i_dc *)(uintptr_t)dev->state;
    if (dc->magic != GIN_DEVCOMM_MAGIC || dc->serial != dev->serial)
        return gi_fail(GIN_ESTATE, "gin_open: the device communicator has been destroyed, or "
                                   "belongs to the parent of this fork()ed process");
    if (index != GIN_ALL_CONTEXTS && index >= dc->n_contexts)
        return gi_fail(GIN_ERANGE,
                       "gin_open: context %" PRIu32 " is out of range, there are %" PRIu32
                       "; ask gin_devcomm_create() for more",
                       index, dc->n_contexts);
    g->dc = dc;
    g->ctx = index == GIN_ALL_CONTEXTS ? &dc->all : &dc->ctx[index];
    /* data goes through the library on all contexts (refused) and in checked mode (checked) */
    if (index != GIN_ALL_CONTEXTS && !(dc->flags & GIN_I_DC_CHECK))
        g->windows = (const struct gin_i_window *const *)(uintptr_t)dev->windows;
    g->lsa_of = (const int32_t *)(uintptr_t)dev->lsa_of;
    g->lsa_base = dc->reach.lsa_base;
    g->lsa_stride = dc->reach.lsa_stride;
    g->heap_handle = dc->reach.handle;
    g->heap_size = dc->reach.size;
    g->lsa_rank = dc->reach.lsa_rank;
    g->lsa_first = dc->reach.lsa_first;
    g->lsa_count = dc->reach.lsa_count;
    g->signals_off = g->ctx->signals_off;
    g->bases = g->ctx->bases;
    g->n_signals = g->ctx->n_signals;
    g->flags = dc->flags;
    g->rank = dev->rank;
    g->size = dev->size;
    return GIN_OK;
}

int gin_i_status(const gin_t *g)
{
    if (g->dc->magic != GIN_DEVCOMM_MAGIC)
        return GIN_ESTATE;
    int sticky = GIN_LOAD_RELAXED(&g->ctx->error);
    if (sticky == GIN_OK)
        sticky = gi_net_status(g);
    if (sticky == GIN_OK)
        sticky = gi_comm_status_quiet(gi_comm_of(g));
    return sticky != GIN_OK ? sticky : gin_last_status();
}

int gi_op_enter(const gin_t *g, gin_group_t grp, int all, const char *call)
{
    if (GIN_UNLIKELY(g->dc->magic != GIN_DEVCOMM_MAGIC))
        return gi_fail(GIN_ESTATE,
                       "%s: the context is bound to no live device communicator (destroyed, never "
                       "opened, or this is a fork()ed child)",
                       call);
    if (GIN_UNLIKELY(grp.kind != GIN_GROUP_THREAD))
        return gi_fail(GIN_EINVAL, "%s: group kind %" PRIu32 ": a host caller is a gin_thread()",
                       call, grp.kind);
    if (GIN_UNLIKELY(!all && g->ctx->index == GIN_ALL_CONTEXTS))
        return gi_fail(GIN_EINVAL,
                       "%s: bound to GIN_ALL_CONTEXTS, which serves barriers, fences, flush and "
                       "quiet only",
                       call);
    return GIN_OK;
}

int gin_i_bad_id(const gin_t *g, const char *what, uint64_t id, uint64_t limit)
{
    if (g->dc->magic != GIN_DEVCOMM_MAGIC || g->ctx->index == GIN_ALL_CONTEXTS)
        return gi_op_enter(g, gin_thread(), 0, what);
    if (limit == 0)
        return gi_fail(GIN_ERANGE, "%s %" PRIu64 ": the device communicator was made without any",
                       what, id);
    if (limit == UINT64_MAX)
        return gi_fail(GIN_ERANGE, "%s %" PRIu64, what, id);
    return gi_fail(GIN_ERANGE,
                   "%s %" PRIu64 " is out of range, there are %" PRIu64
                   "; ask gin_devcomm_create() for more",
                   what, id, limit);
}

/* ---- places ---- */

/* In checked mode and on all contexts g's own table is empty: look at the communicator's. */
static const struct gin_i_window *window_of(const gin_t *g, gin_at_t at, uint64_t bytes)
{
    const struct gin_i_window *w = gi_window_find(gi_comm_of(g), at.win);
    if (w == NULL) {
        if (at.win.w == 0)
            gi_fail(GIN_ESTATE, "no window: gin_at_ptr() of an address outside the heap and all "
                                "windows, or gin_scratch() without scratch");
        else
            gi_fail(GIN_ESTATE, "window %#" PRIx64 " is none of this communicator (deregistered?)",
                    at.win.w);
        return NULL;
    }
    uint64_t size = gi_window_size(gi_comm_of(g), w);
    if (at.off > size || bytes > size - at.off) {
        gi_fail(GIN_ERANGE,
                "[%" PRIu64 ", +%" PRIu64 ") is outside window %#" PRIx64 " of %" PRIu64 " bytes",
                at.off, bytes, at.win.w, size);
        return NULL;
    }
    return w;
}

void *gin_i_ptr(const gin_t *g, int world, gin_at_t at, uint64_t bytes)
{
    void *addr;
    pid_t pid;
    if (g->dc->magic != GIN_DEVCOMM_MAGIC) {
        gi_op_enter(g, gin_thread(), 1, "pointer");
        return NULL;
    }
    if (world < 0)
        return NULL; /* recorded by the conversion */
    if (at.win.w == GIN_I_WINDOW_LOCAL) {
        if (world == g->rank)
            return (void *)(uintptr_t)at.off;
        gi_fail(GIN_EINVAL, "gin_at_local() names my own memory, not rank %d's", world);
        return NULL;
    }
    const struct gin_i_window *w = window_of(g, at, bytes);
    if (w == NULL)
        return NULL;
    gin_path_t path = gi_window_reach(gi_comm_of(g), w, world, at.off, &addr, &pid);
    if (path == GIN_PATH_SELF || path == GIN_PATH_LSA)
        return addr;
    if (path == GIN_PATH_CMA)
        gi_fail(GIN_ENOTSUP,
                "rank %d's part of window %#" PRIx64
                " is not mapped: it is reached by process_vm calls; put and get it, or take memory "
                "of the heap",
                world, at.win.w);
    if (path == GIN_PATH_NET)
        gi_fail(GIN_ENOTSUP,
                "rank %d's part of window %#" PRIx64
                " is not mapped: it is reached by the network; put and get it",
                world, at.win.w);
    return NULL;
}

gin_at_t gin_i_at_ptr(const gin_t *g, const void *ptr)
{
    gin_window_t win;
    uint64_t off;
    if (gi_op_enter(g, gin_thread(), 1, "gin_at_ptr") != GIN_OK ||
        gin_window_of(gi_comm_of(g), ptr, &win, &off) != GIN_OK)
        return gin_at(gin_window_none(), 0);
    return gin_at(win, off);
}

int gin_i_world_rank(const gin_t *g, gin_team_t team, int rank)
{
    if (g->dc->magic != GIN_DEVCOMM_MAGIC) {
        gi_op_enter(g, gin_thread(), 1, "rank conversion");
        return -1;
    }
    int w = gi_team_world(gi_comm_of(g), team, rank);
    return w >= 0 ? w : -1;
}

uint64_t *gin_i_word(const gin_t *g, gin_at_t at)
{
    if (g->dc->magic == GIN_DEVCOMM_MAGIC && at.win.w != GIN_I_WINDOW_LOCAL) {
        const struct gin_i_window *w = gi_window_find(gi_comm_of(g), at.win);
        if (w != NULL && w->kind == GIN_KIND_CUDA) {
            gi_fail(GIN_ENOTSUP,
                    "signal word: window %#" PRIx64
                    " is GPU memory, which host threads do not reach",
                    at.win.w);
            return NULL;
        }
    }
    uint64_t *word = gin_i_ptr(g, g->rank, at, 8);
    if (word == NULL) {
        if (at.win.w == GIN_I_WINDOW_LOCAL)
            gi_fail(GIN_EINVAL, "signal word: gin_at_local(NULL)");
        return NULL;
    }
    if (((uintptr_t)word & 7) != 0) {
        gi_fail(GIN_EINVAL, "signal word %p is not 8-byte aligned", (void *)word);
        return NULL;
    }
    return word;
}
