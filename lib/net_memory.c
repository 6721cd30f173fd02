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

/* Same on all ranks: the region, or NULL. */
static struct gi_core_region *open_region(gin_comm_t *comm,
                                          const struct gi_core_region_config *config)
{
    unsigned long long bytes = config->memory.bytes;
    struct gi_core_region *region = NULL;
    int st = gi_core_region_open(comm->net->core, config, &region);
    int all = gi_agree_on(comm, GI_AGREE_REGION, 0, 0, 0, st);
    if (all == GIN_OK)
        return region;
    gi_warn("net", "%llu bytes are not reached by the network: %s", bytes, gin_last_error());
    if (st == GIN_OK)
        gi_core_region_close(comm->net->core, region);
    return NULL;
}

static struct gi_core_region *open_host(gin_comm_t *comm, void *addr, uint64_t bytes)
{
    const struct gi_core_region_config c = {
        .memory = {.kind = GI_NET_HOST, .addr = addr, .bytes = bytes, .fd = -1}};
    return open_region(comm, &c);
}

/* GPU memory: registered in this rank's way, or staged. bytes 0: this rank has none. */
static struct gi_core_region *open_gpu(gin_comm_t *comm, uint64_t addr, uint64_t bytes)
{
    const struct gi_net_gpu *g = &comm->net->gpu;
    struct gi_core_region_config c = {.memory = {.kind = GI_NET_DEVICE,
                                                 .addr = (void *)(uintptr_t)addr,
                                                 .bytes = bytes,
                                                 .fd = -1},
                                      .stage = g->way == GI_NET_GPU_STAGE,
                                      .may_stage = !g->forced,
                                      .land = g->land};
    if (!c.stage && bytes != 0) {
        int st = gi_net_gpu_describe(comm->net, comm->cuda->gpu, addr, bytes, &c.memory);
        c.stage = st != GIN_OK && !g->forced;
        c.status = g->forced ? st : GIN_OK;
        if (c.stage)
            gi_info("net", "%llu bytes of GPU memory are staged: %s", (unsigned long long)bytes,
                    gin_last_error());
    }
    struct gi_core_region *region = open_region(comm, &c);
    gi_net_gpu_described(&c.memory);
    return region;
}

/* Pieces of [off, off + bytes) of a heap, as a window of its own; their number. */
static uint32_t heap_pieces(const struct gi_net_heap *h, uint64_t off, uint64_t bytes,
                            struct gi_core_piece *pieces)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < h->n_chunks; i++) {
        const struct gi_net_chunk *c = &h->chunks[i];
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
    const struct gi_net_heap *h = p->reg->heap == GI_CUDA_HEAP ? &n->cuda_heap : &n->heap;
    struct gi_core_piece *pieces = calloc(h->n_chunks + 1, sizeof(*pieces));
    uint32_t k = 1;
    int st = pieces != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for a window's pieces");
    if (st == GIN_OK && p->reg->heap == GI_CUDA_HEAP && n->cuda != NULL)
        pieces[0] = (struct gi_core_piece){.bytes = bytes, .region = n->cuda, .region_off = p->off};
    else if (st == GIN_OK && p->reg->heap)
        k = heap_pieces(h, p->off, bytes, pieces);
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
        return comm->net->cuda != NULL || comm->net->cuda_heap.n_chunks != 0;
    return p->reg->heap == GI_HOST_HEAP ? comm->net->heap.n_chunks != 0
                                        : p->reg->net != NULL || p->reg->bytes == 0;
}

/* NULL: what is there is all that the network reaches. */
static struct gi_core_region *add_chunk(gin_comm_t *comm, struct gi_net_heap *h, uint64_t base,
                                        uint64_t size, bool gpu)
{
    struct gi_core_region *region = NULL;
    if (h->n_chunks == GI_NET_CHUNKS) /* on all ranks */
        gi_warn("net", "the heap beyond %llu bytes is not reached by the network: it grew %u times",
                (unsigned long long)h->covered, GI_NET_CHUNKS);
    else if (gpu)
        region = open_gpu(comm, base + h->covered,
                          comm->cuda->devices[comm->rank] < 0 ? 0 : size - h->covered);
    else
        region = open_host(comm, (void *)(uintptr_t)(base + h->covered), size - h->covered);
    if (region == NULL)
        return NULL;
    h->chunks[h->n_chunks] =
        (struct gi_net_chunk){.off = h->covered, .bytes = size - h->covered, .region = region};
    GIN_STORE_RELEASE(&h->n_chunks, h->n_chunks + 1); /* operations look at them meanwhile */
    h->covered = size;
    return region;
}

void gi_net_heap_grown(gin_comm_t *comm, uint64_t size)
{
    struct gi_net *n = comm->net;
    if (n == NULL || size <= n->heap.covered)
        return;
    char *base = (char *)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL;
    (void)add_chunk(comm, &n->heap, (uint64_t)(uintptr_t)base, size, false);
}

/* A window of the GPU heap that has a registration of its own: GIN_WIN_NO_LSA. */
static bool is_cuda(const gin_comm_t *comm, const struct gi_registration *reg)
{
    return comm->cuda != NULL && gi_cuda_owns(comm, reg->addr[comm->rank]);
}

/* As much of the GPU heap as the network reaches is the heap's window there. */
static void set_cuda_window(gin_comm_t *comm, uint64_t bytes)
{
    const struct gin_i_window *w = gi_cuda_window(comm);
    if (w->handle != 0)
        gi_net_window_set(comm, w->handle,
                          gi_window_private(&comm->windows->table, GI_CUDA_HEAP_ID), bytes);
}

/* What could not be registered is tried again with what comes behind it. */
void gi_net_cuda_heap_grown(gin_comm_t *comm, uint64_t size)
{
    struct gi_net *n = comm->net;
    if (n != NULL && comm->cuda != NULL && comm->cuda->gpu != NULL)
        gi_net_stage_heap(n, size);
    if (n == NULL || !n->gpu.direct || n->cuda_heap.chunks == NULL || size <= n->cuda_heap.covered)
        return;
    if (add_chunk(comm, &n->cuda_heap, gi_cuda_heap_base(comm->cuda), size, true) != NULL)
        set_cuda_window(comm, size);
}

/* All of it that there may ever be, where nothing of it is registered. */
void gi_net_cuda_heap(gin_comm_t *comm)
{
    struct gi_net *n = comm->net;
    const struct gi_cuda *c = comm->cuda;
    uint64_t bytes = c->map->stride - GI_CONTROL_CUDA;
    gi_net_cuda_heap_grown(comm, gi_heap_size(c->heap));
    if (n->gpu.direct)
        return;
    if (n->cuda == NULL)
        n->cuda = open_gpu(comm, gi_cuda_heap_base(c), c->devices[comm->rank] < 0 ? 0 : bytes);
    if (n->cuda != NULL)
        set_cuda_window(comm, bytes);
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
    if (gpu && !none)
        gi_net_stage_map(comm->net, mine, reg->bytes);
    reg->net = gpu ? open_gpu(comm, mine, none ? 0 : reg->bytes)
                   : open_host(comm, (void *)(uintptr_t)mine, reg->bytes);
}

void gi_net_reg_close(gin_comm_t *comm, struct gi_registration *reg)
{
    if (comm->net != NULL && reg->net != NULL)
        gi_core_region_close(comm->net->core, reg->net);
    if (comm->net != NULL && reg->addr != NULL) /* where it was mapped */
        gi_net_stage_unmap(comm->net, reg->addr[comm->rank], reg->bytes);
    reg->net = NULL;
}

/* Chunks lie one behind another from 0 on; NULL: beyond the last one. */
static const struct gi_net_chunk *chunk_of(const struct gi_net_heap *h, uint64_t off)
{
    uint32_t lo = 0, hi = GIN_LOAD_ACQUIRE(&h->n_chunks);
    if (hi == 0 || off >= h->chunks[hi - 1].off + h->chunks[hi - 1].bytes)
        return NULL;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (off < h->chunks[mid].off)
            hi = mid;
        else
            lo = mid;
    }
    return &h->chunks[lo];
}

/* base: of the heap that it may be in. */
static struct gi_core_region *find_region(gin_comm_t *comm, const struct gi_net_heap *h,
                                          uint64_t base, uint64_t at, uint64_t bytes)
{
    uint64_t id, off = at - base;
    const struct gi_net_chunk *c = chunk_of(h, off);
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

struct gi_core_region *gi_net_region_of(gin_comm_t *comm, const void *addr, uint64_t bytes)
{
    uint64_t base = (uint64_t)(uintptr_t)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL;
    return find_region(comm, &comm->net->heap, base, (uint64_t)(uintptr_t)addr, bytes);
}

/* Registered, or good for all GPU memory. */
static int find_gpu_mine(gin_comm_t *comm, const void *addr, uint64_t bytes,
                         struct gi_core_region **region)
{
    const struct gi_net *n = comm->net;
    struct gi_core_region *r = NULL;
    if (n->gpu.way != GI_NET_GPU_STAGE && comm->cuda != NULL)
        r = find_region(comm, &n->cuda_heap, gi_cuda_heap_base(comm->cuda),
                        (uint64_t)(uintptr_t)addr, bytes);
    if (r == NULL || gi_core_region_is_staged(r))
        r = gi_core_gpu(n->core);
    *region = r;
    return r != NULL ? GIN_OK : gi_fail(GIN_ENOTSUP, "GPU memory is not staged here");
}

int gi_net_mine(gin_comm_t *comm, bool gpu, const void *addr, uint64_t bytes, bool *copied,
                struct gi_core_region **region)
{
    *region = NULL;
    if (gpu && copied != NULL)
        *copied = false;
    if (gpu)
        return find_gpu_mine(comm, addr, bytes, region);
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
    if (comm->net->cuda != NULL || comm->net->cuda_heap.n_chunks != 0)
        gi_net_window_drop(comm, gi_cuda_window(comm)->handle);
    for (struct gi_registration *g = comm->windows->regs; g != NULL; g = g->next)
        gi_net_reg_close(comm, g);
}
