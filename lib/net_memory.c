/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of this rank's memory the network reaches: the heap, chunk by chunk as it grows, and the
 * registrations of other windows; and which window names lead there. A registration that fails on
 * one rank is undone on all: the window lives without the network, and operations say so.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cuda_up.h"
#include "net_up.h"
#include "window_impl.h"

/* Same on all ranks: the region, or NULL. gpu: it is GPU memory, to be staged. */
static struct gi_core_region *open_region(gin_comm_t *comm, void *addr, uint64_t bytes, bool gpu)
{
    const struct gi_core_region_config c = {.memory = {.kind = gpu ? GI_NET_DEVICE : GI_NET_HOST,
                                                       .addr = addr,
                                                       .bytes = bytes,
                                                       .fd = -1},
                                            .stage = gpu};
    struct gi_core_region *region = NULL;
    int st = gi_core_region_open(comm->net->core, &c, &region);
    int all = gi_agree_on(comm, GI_AGREE_REGION, 0, 0, 0, st);
    if (all == GIN_OK)
        return region;
    gi_warn("net", "%llu bytes are not reached by the network: %s", (unsigned long long)bytes,
            gin_last_error());
    if (st == GIN_OK)
        gi_core_region_close(comm->net->core, region);
    return NULL;
}

/* Pieces of [off, off + bytes) of the heap, as a window of its own; their number. */
static uint32_t heap_pieces(const struct gi_net *n, uint64_t off, uint64_t bytes,
                            struct gi_core_piece *pieces)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n->n_chunks; i++) {
        const struct gi_net_chunk *c = &n->chunks[i];
        uint64_t from = off > c->off ? off : c->off, to = off + bytes;
        to = to < c->off + c->bytes ? to : c->off + c->bytes;
        if (from < to)
            pieces[k++] = (struct gi_core_piece){.off = from - off,
                                                 .bytes = to - from,
                                                 .region = c->region,
                                                 .region_off = from - c->off};
    }
    return k;
}

static uint32_t name_of(uint64_t handle)
{
    gin_window_t w = {handle};
    return gin_i_desc_window(w);
}

void gi_net_window_set(gin_comm_t *comm, uint64_t handle, const struct gi_window *p, uint64_t bytes)
{
    const struct gi_net *n = comm->net;
    if (n == NULL || bytes == 0 || !gi_net_has(comm, p))
        return;
    struct gi_core_piece *pieces = calloc(n->n_chunks + 1, sizeof(*pieces));
    uint32_t k = 1;
    int st = pieces != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for a window's pieces");
    if (st == GIN_OK && p->reg->heap == GI_CUDA_HEAP)
        pieces[0] = (struct gi_core_piece){.bytes = bytes, .region = n->cuda, .region_off = p->off};
    else if (st == GIN_OK && p->reg->heap)
        k = heap_pieces(n, p->off, bytes, pieces);
    else if (st == GIN_OK)
        pieces[0] = (struct gi_core_piece){
            .off = 0, .bytes = bytes, .region = p->reg->net, .region_off = p->off};
    if (st == GIN_OK && k != 0)
        st = gi_core_window_set(n->core, name_of(handle), pieces, k);
    if (st != GIN_OK)
        gi_warn("net", "window %#llx is not reached by the network: %s", (unsigned long long)handle,
                gin_last_error());
    free(pieces);
}

void gi_net_window_drop(gin_comm_t *comm, uint64_t handle)
{
    if (comm->net != NULL)
        gi_core_window_drop(comm->net->core, name_of(handle));
}

bool gi_net_has(const gin_comm_t *comm, const struct gi_window *p)
{
    if (comm->net == NULL || p->reg == NULL)
        return false;
    if (p->reg->heap == GI_CUDA_HEAP)
        return comm->net->cuda != NULL;
    return p->reg->heap == GI_HOST_HEAP ? comm->net->n_chunks != 0
                                        : p->reg->net != NULL || p->reg->bytes == 0;
}

void gi_net_heap_grown(gin_comm_t *comm, uint64_t size)
{
    struct gi_net *n = comm->net;
    if (n == NULL || size <= n->covered)
        return;
    char *base = (char *)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL;
    struct gi_core_region *region = NULL;
    if (n->n_chunks == GI_NET_CHUNKS) /* on all ranks */
        gi_warn("net", "the heap beyond %llu bytes is not reached by the network: it grew %u times",
                (unsigned long long)n->covered, GI_NET_CHUNKS);
    else
        region = open_region(comm, base + n->covered, size - n->covered, false);
    if (region == NULL)
        return;
    n->chunks[n->n_chunks] =
        (struct gi_net_chunk){.off = n->covered, .bytes = size - n->covered, .region = region};
    GIN_STORE_RELEASE(&n->n_chunks, n->n_chunks + 1); /* operations look at them meanwhile */
    n->covered = size;
}

/* A window of the GPU heap that has a registration of its own: GIN_WIN_NO_LSA. */
static bool is_cuda(const gin_comm_t *comm, const struct gi_registration *reg)
{
    return comm->cuda != NULL && gi_cuda_owns(comm, reg->addr[comm->rank]);
}

/* All of the GPU heap that there may ever be: nothing of it is registered. */
void gi_net_cuda_heap(gin_comm_t *comm)
{
    struct gi_net *n = comm->net;
    const struct gi_cuda *c = comm->cuda;
    uint64_t bytes = c->map->stride - GI_CONTROL_CUDA;
    if (n->cuda == NULL)
        n->cuda = open_region(comm, (void *)(uintptr_t)gi_cuda_heap_base(c),
                              c->devices[comm->rank] < 0 ? 0 : bytes, true);
    const struct gin_i_window *w = gi_cuda_window(comm);
    if (n->cuda != NULL && w->handle != 0)
        gi_net_window_set(comm, w->handle,
                          gi_window_private(&comm->windows->table, GI_CUDA_HEAP_ID), bytes);
}

void gi_net_reg_open(gin_comm_t *comm, struct gi_registration *reg)
{
    if (comm->net == NULL || reg->bytes == 0 || reg->heap)
        return;
    bool gpu = reg->gpu || is_cuda(comm, reg);
    uint64_t mine = reg->addr[comm->rank];
    bool none = gpu && (mine == 0 || comm->cuda->devices[comm->rank] < 0);
    if (gpu && !gi_core_stages(comm->net->core))
        return; /* on all ranks */
    reg->net = open_region(comm, (void *)(uintptr_t)mine, none ? 0 : reg->bytes, gpu);
}

void gi_net_reg_close(gin_comm_t *comm, struct gi_registration *reg)
{
    if (comm->net != NULL && reg->net != NULL)
        gi_core_region_close(comm->net->core, reg->net);
    reg->net = NULL;
}

/* Chunks lie one behind another from 0 on; NULL: beyond the last one. */
static const struct gi_net_chunk *chunk_of(const struct gi_net *n, uint64_t off)
{
    uint32_t lo = 0, hi = GIN_LOAD_ACQUIRE(&n->n_chunks);
    if (hi == 0 || off >= n->chunks[hi - 1].off + n->chunks[hi - 1].bytes)
        return NULL;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (off < n->chunks[mid].off)
            hi = mid;
        else
            lo = mid;
    }
    return &n->chunks[lo];
}

struct gi_core_region *gi_net_region_of(gin_comm_t *comm, const void *addr, uint64_t bytes)
{
    uint64_t at = (uint64_t)(uintptr_t)addr, id;
    uint64_t off = at - (uint64_t)(uintptr_t)gi_control(comm, comm->shm->lsa_rank) - GI_CONTROL;
    const struct gi_net_chunk *c = chunk_of(comm->net, off);
    if (c != NULL)
        return bytes <= c->bytes - (off - c->off) ? c->region : NULL;
    if (!gi_window_index_find(&comm->windows->index, at, &id))
        return NULL;
    const struct gi_registration *reg = gi_window_private(&comm->windows->table, (uint32_t)id)->reg;
    if (reg == NULL || reg->net == NULL)
        return NULL;
    uint64_t start = reg->addr[comm->rank];
    return at >= start && at - start <= reg->bytes && bytes <= reg->bytes - (at - start) ? reg->net
                                                                                         : NULL;
}

int gi_net_mine(gin_comm_t *comm, bool gpu, const void *addr, uint64_t bytes, bool *copied,
                struct gi_core_region **region)
{
    *region = gpu ? gi_core_gpu(comm->net->core) : NULL;
    if (gpu && copied != NULL)
        *copied = false;
    if (gpu)
        return *region != NULL ? GIN_OK : gi_fail(GIN_ENOTSUP, "GPU memory is not staged here");
    if (!comm->net->needs_region || bytes == 0 || (copied != NULL && *copied))
        return GIN_OK;
    *region = gi_net_region_of(comm, addr, bytes);
    if (*region == NULL && copied != NULL)
        *copied = bytes <= GI_CORE_COPY;
    return *region != NULL || (copied != NULL && *copied)
               ? GIN_OK
               : gi_fail(GIN_EINVAL,
                         "%" PRIu64 " bytes at %p are not registered; see gin_local_register()",
                         bytes, addr);
}

/* ---- all there is, when the network comes and goes ---- */

/* Live windows but the GPU heap's, in the order of ids. */
static void each_window(gin_comm_t *comm, void (*fn)(gin_comm_t *comm, uint64_t handle,
                                                     const struct gi_window *p, uint64_t bytes))
{
    const struct gi_window_table *t = &comm->windows->table;
    for (uint32_t id = 0; id < t->made; id++) {
        const struct gin_i_window *w = gi_window_at(t, id);
        if (w->handle != 0 && id != GI_CUDA_HEAP_ID)
            fn(comm, w->handle, gi_window_private(t, id), gi_window_bytes(comm, w, id));
    }
}

static void drop(gin_comm_t *comm, uint64_t handle, const struct gi_window *p, uint64_t bytes)
{
    (void)p;
    (void)bytes;
    gi_net_window_drop(comm, handle);
}

void gi_net_windows_up(gin_comm_t *comm)
{
    for (struct gi_registration *g = comm->windows->regs; g != NULL; g = g->next)
        gi_net_reg_open(comm, g); /* the list is the same everywhere */
    gi_net_heap_grown(comm, gi_heap_size(comm->heap));
    each_window(comm, gi_net_window_set);
}

void gi_net_windows_down(gin_comm_t *comm)
{
    each_window(comm, drop);
    if (comm->net->cuda != NULL)
        gi_net_window_drop(comm, gi_cuda_window(comm)->handle);
    for (struct gi_registration *g = comm->windows->regs; g != NULL; g = g->next)
        gi_net_reg_close(comm, g);
}
