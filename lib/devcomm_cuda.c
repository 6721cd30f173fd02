/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filling GPU memory for kernels. Everything is laid out in an image of the block and written in
 * one copy; the parts' addresses are known from the start.
 */
#include "devcomm_cuda.h"

#include <stdlib.h>
#include <string.h>
#include "barrier_impl.h"
#include "engine_int.h"
#include "mirror.h"
#include "multimem.h"
#include "net_ops.h"

#define ROOM(n) GI_KERNEL_ROOM(n)
#define KIB(n)  ((uint64_t)(n) << 10)

/* From so many bytes on the copy engine is faster than a thread, a warp. */
#define ENGINE_THREAD KIB(8)
#define ENGINE_WARP   KIB(64)

/* ---- symmetric GPU memory ---- */

/* An inbox has a word per rank: members and strangers of a team agree on its size. */
static uint64_t inbox_bytes(const gin_comm_t *comm)
{
    return ((uint64_t)comm->size * sizeof(uint64_t) + 63) & ~(uint64_t)63;
}

static uint64_t indices(const gin_devcomm_reqs_t *r)
{
    uint64_t n =
        (uint64_t)r->world_barriers + r->lsa_barriers + r->rail_barriers + r->hybrid_barriers;
    for (uint32_t i = 0; i < r->n_team_barriers; i++)
        n += r->team_barriers[i].count;
    return n;
}

uint64_t gi_devcomm_cuda_plan(struct gi_devcomm *d)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    d->cuda_barriers = gi_cells_bytes(r);
    d->cuda_scratch = d->cuda_barriers + indices(r) * inbox_bytes(d->comm);
    d->cuda_colls = d->cuda_scratch + ((r->scratch + 63) & ~(uint64_t)63);
    return d->cuda_colls + gi_kernel_colls_bytes(d) + 64;
}

/* ---- the block ---- */

void *gi_kernel_take(struct gi_kernel_side *k, uint64_t bytes, uint64_t *addr)
{
    char *at = k->image + k->used;
    *addr = k->block + k->used;
    k->used += ROOM(bytes);
    return at;
}

static uint64_t pool_bytes(const struct gi_barrier_pool *p)
{
    return p->n == 0 ? 0
                     : ROOM(p->n * sizeof(uint64_t)) + ROOM(p->count * sizeof(struct gin_i_round)) +
                           ROOM(p->n * sizeof(int32_t));
}

static uint64_t block_bytes(const struct gi_devcomm *d, uint32_t rings)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    const struct gi_barriers *b = d->barriers;
    uint64_t n = ROOM(sizeof(struct gin_i_dc)) + ROOM(r->contexts * sizeof(struct gin_i_ctx)) +
                 ROOM((uint64_t)r->contexts * r->signals * sizeof(struct gin_i_base)) +
                 ROOM((uint64_t)r->contexts * r->counters * sizeof(struct gin_i_counter)) +
                 ROOM((uint64_t)d->comm->size * sizeof(int32_t)) +
                 ROOM(sizeof(struct gin_i_barriers)) +
                 ROOM(b->n_teams * sizeof(struct gin_i_pool)) +
                 rings * (ROOM(sizeof(struct gin_i_ring)) + ROOM(GI_RING_REPLIES * 4)) +
                 gi_kernel_colls_room(d);
    for (uint32_t i = 0; i < GIN_BARRIER_TEAM; i++)
        n += pool_bytes(&b->fixed[i]);
    for (uint32_t i = 0; i < b->n_teams; i++)
        n += pool_bytes(&b->teams[i]);
    return n;
}

/* ---- barriers ---- */

static bool is_kernel(const struct gi_devcomm *d, int world)
{
    return d->device_of[world] == GIN_DEVICE_CUDA;
}

/* Kernels on all members, which reach each other's GPU memory: a thing that all members know. */
static bool meets_on_gpus(const struct gi_devcomm *d, const struct gi_barrier_pool *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (!is_kernel(d, p->world_of[i]) || d->comm->shm->lsa_of[p->world_of[i]] < 0)
            return false;
    return d->comm->cuda->map->complete;
}

static int32_t first_stranger(const struct gi_devcomm *d, const struct gi_barrier_pool *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (!is_kernel(d, p->world_of[i]) || d->comm->shm->lsa_of[p->world_of[i]] < 0)
            return p->world_of[i];
    return p->world_of[p->me == 0 && p->n > 1 ? 1 : 0];
}

/* *off: of the pool's inboxes in the symmetric GPU block; moves on behind them. */
static void fill_pool(const struct gi_devcomm *d, struct gi_kernel_side *k,
                      const struct gi_barrier_pool *from, struct gin_i_pool *to, uint64_t *off)
{
    const struct gi_cuda_map *map = d->comm->cuda->map;
    uint64_t addr, slot = inbox_bytes(d->comm), at = *off;
    *off += from->count * slot;
    to->count = from->count;
    to->n = from->n;
    to->me = from->me;
    to->beyond = -1;
    if (from->n == 0)
        return;
    bool gpus = meets_on_gpus(d, from);
    uint64_t *peers = gi_kernel_take(k, from->n * sizeof(*peers), &addr);
    to->peers = (const uint64_t *)(uintptr_t)addr;
    gi_kernel_take(k, from->count * sizeof(struct gin_i_round), &addr);
    to->rounds = (struct gin_i_round *)(uintptr_t)addr;
    int32_t *world_of = gi_kernel_take(k, from->n * sizeof(*world_of), &addr);
    to->world_of = (const int32_t *)(uintptr_t)addr;
    to->slot = gpus ? slot : from->slot;
    if (gpus && d->multimem != NULL && (int)from->n == d->comm->shm->lsa_size)
        to->multimem = d->multimem->base + GI_CONTROL_CUDA + d->cuda_off + at;
    for (uint32_t i = 0; i < from->n; i++) {
        int lsa = d->comm->shm->lsa_of[from->world_of[i]];
        world_of[i] = from->world_of[i];
        if (gpus)
            peers[i] = gi_cuda_slot(map, lsa) + GI_CONTROL_CUDA + d->cuda_off + at;
        else if (from->beyond < 0)
            peers[i] = (uint64_t)(uintptr_t)from->peers[i];
    }
    /* host threads meet in trees where there are many; kernels only meet flat */
    if (!gpus && (from->beyond >= 0 || from->levels != 0 || d->host_reach == 0))
        to->beyond = first_stranger(d, from);
    if (from->steps == 0 || d->host_reach == 0 || k->n_rings == 0 || !gi_far_is_open(d))
        return;
    for (uint32_t i = 0; i < from->n; i++)
        peers[i] = (uint64_t)(uintptr_t)from->peers[i];
    to->multimem = from->home;
    to->net =
        (uint64_t)from->steps << 32 | gin_i_desc_window(gin_heap_window(d->comm, GIN_KIND_HOST));
}

static uint64_t fill_barriers(const struct gi_devcomm *d, struct gi_kernel_side *k)
{
    const struct gi_barriers *from = d->barriers;
    uint64_t addr, teams, off = d->cuda_barriers;
    struct gin_i_barriers *b = gi_kernel_take(k, sizeof(*b), &addr);
    struct gin_i_pool *pool = gi_kernel_take(k, from->n_teams * sizeof(*pool), &teams);
    for (uint32_t i = 0; i < GIN_BARRIER_TEAM; i++)
        fill_pool(d, k, &from->fixed[i], &b->fixed[i], &off);
    for (uint32_t i = 0; i < from->n_teams; i++)
        fill_pool(d, k, &from->teams[i], &pool[i], &off);
    b->teams = (const struct gin_i_pool *)(uintptr_t)teams;
    b->n_teams = from->n_teams;
    return addr;
}

/* ---- contexts ---- */

static uint64_t fill_ring(const struct gi_devcomm *d, struct gi_kernel_side *k, uint32_t c)
{
    uint32_t depth = gi_ring_depth(d->reqs.queue_depth);
    struct gi_ring_plan p = gi_ring_plan(depth, d->reqs.counters);
    uint64_t addr, busy, host = k->host_addr + 64 + c * p.bytes;
    struct gin_i_ring *r = gi_kernel_take(k, sizeof(*r), &addr);
    gi_kernel_take(k, GI_RING_REPLIES * sizeof(uint32_t), &busy);
    r->slots = (struct gin_i_desc *)(uintptr_t)(host + p.slots);
    r->host = (const struct gin_i_ring_host *)(uintptr_t)(host + p.host);
    r->replies = (const struct gin_i_reply *)(uintptr_t)(host + p.replies);
    r->reply_busy = (uint32_t *)(uintptr_t)busy;
    r->depth = depth;
    r->n_replies = GI_RING_REPLIES;
    r->timeout_ns = d->reqs.wait_timeout_ns;
    r->asks = gi_far_is_open(d);
    gi_ring_init(&k->rings[c], k->host + 64 + c * p.bytes, depth, d->reqs.counters);
    k->rings[c].context = c;
    k->rings[c].n_signals = d->reqs.signals;
    return addr;
}

static void fill_contexts(const struct gi_devcomm *d, struct gi_kernel_side *k, struct gin_i_dc *dc,
                          uint64_t self)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    const gin_comm_t *comm = d->comm;
    uint64_t ctx, bases, counters, cells = r->signals * sizeof(struct gin_i_cells);
    struct gi_ring_plan p = gi_ring_plan(gi_ring_depth(r->queue_depth), r->counters);
    struct gin_i_ctx *x = gi_kernel_take(k, r->contexts * sizeof(*x), &ctx);
    gi_kernel_take(k, (uint64_t)r->contexts * r->signals * sizeof(struct gin_i_base), &bases);
    gi_kernel_take(k, (uint64_t)r->contexts * r->counters * sizeof(struct gin_i_counter),
                   &counters);
    char *host = (char *)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL + d->off;
    dc->ctx = (struct gin_i_ctx *)(uintptr_t)ctx;
    for (uint32_t c = 0; c < r->contexts; c++, x++) {
        x->dc = (struct gin_i_dc *)(uintptr_t)self;
        x->signals_off = d->cuda_off + c * cells;
        x->signals =
            (struct gin_i_cells *)(uintptr_t)(gi_cuda_heap_base(comm->cuda) + x->signals_off);
        x->bases = (struct gin_i_base *)(uintptr_t)bases + (uint64_t)c * r->signals;
        x->counters = (struct gin_i_counter *)(uintptr_t)counters + (uint64_t)c * r->counters;
        x->n_signals = r->signals;
        x->n_counters = r->counters;
        x->index = c;
        if (d->host_signals)
            x->host_signals = (const struct gin_i_cells *)(host + c * cells);
        if (k->n_rings == 0)
            continue;
        x->ring = (struct gin_i_ring *)(uintptr_t)fill_ring(d, k, c);
        x->host_counters =
            (const uint64_t *)(uintptr_t)(k->host_addr + 64 + c * p.bytes + p.counters);
    }
    dc->all.dc = (struct gin_i_dc *)(uintptr_t)self;
    dc->all.index = GIN_ALL_CONTEXTS;
}

/* ---- who is reached ---- */

/* LSA rank of a world rank, as kernels shall use it. */
static int32_t lsa_for_kernels(const struct gi_devcomm *d, int world)
{
    const gin_comm_t *comm = d->comm;
    int32_t lsa = gi_lsa_on(d, world);
    if (lsa < 0 && gi_far_is_open(d) && d->reqs.backend != GIN_BACKEND_DIRECT &&
        gi_net_reaches(d, world))
        return GIN_I_LSA_BY_ENGINE;
    if (lsa < 0 || (is_kernel(d, world) && comm->cuda->map->reach[lsa]))
        return lsa;
    if (d->host_reach == 0)
        return GIN_I_LSA_BY_ENGINE;
    return lsa | GIN_I_LSA_HOST_ONLY | (comm->cuda->devices[world] < 0 ? GIN_I_LSA_NO_GPU : 0);
}

static uint64_t fill_lsa_of(const struct gi_devcomm *d, struct gi_kernel_side *k)
{
    uint64_t addr;
    int32_t *lsa_of = gi_kernel_take(k, (uint64_t)d->comm->size * sizeof(*lsa_of), &addr);
    for (int r = 0; r < d->comm->size; r++)
        lsa_of[r] = lsa_for_kernels(d, r);
    return addr;
}

static void fill_reach(const struct gi_devcomm *d, struct gin_i_heap *h)
{
    gin_comm_t *comm = d->comm;
    const struct gi_cuda_map *map = comm->cuda->map;
    const struct gi_shm *shm = comm->shm;
    h->lsa_base = map->base + GI_CONTROL_CUDA;
    h->lsa_stride = map->stride;
    h->handle = gin_heap_window(comm, GIN_KIND_CUDA).w;
    h->size = gi_heap_size(comm->cuda->heap);
    h->lsa_rank = shm->lsa_rank;
    h->apply = gi_cuda_atomics(comm) ? GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES : 0;
    h->lsa_first = shm->world_of[0];
    h->lsa_count = shm->lsa_size;
    for (int l = 0; l < shm->lsa_size; l++) /* without load and store I am one at most */
        if (shm->world_of[l] != h->lsa_first + l ||
            lsa_for_kernels(d, shm->world_of[l]) != (int32_t)l)
            h->lsa_first = h->lsa_count = 0;
}

static bool all_kernels(const struct gi_devcomm *d)
{
    for (int r = 0; r < d->comm->size; r++)
        if (!is_kernel(d, r))
            return false;
    return true;
}

/* Some ranks reach me by the network alone. */
static bool has_far(const struct gi_devcomm *d)
{
    return gi_far_is_open(d) && (d->lsa_of != NULL || d->comm->shm->lsa_size < d->comm->size);
}

static void fill(const struct gi_devcomm *d, struct gi_kernel_side *k)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    gin_comm_t *comm = d->comm;
    uint64_t self;
    struct gin_i_dc *dc = gi_kernel_take(k, sizeof(*dc), &self);
    fill_contexts(d, k, dc, self);
    k->lsa_of = fill_lsa_of(d, k);
    dc->barriers = (const struct gin_i_barriers *)(uintptr_t)fill_barriers(d, k);
    dc->colls = (const struct gin_i_colls *)(uintptr_t)gi_kernel_colls_fill(d, k);
    dc->flags = (r->strong ? GIN_I_DC_STRONG : 0u) | (r->va ? GIN_I_DC_VA : 0u);
    if (all_kernels(d))
        dc->flags |= GIN_I_DC_KERNELS;
    if (has_far(d))
        dc->flags |= GIN_I_DC_FAR;
    dc->n_contexts = r->contexts;
    dc->spin = comm->spin;
    dc->heap = (const struct gin_i_window *)(uintptr_t)gi_mirror_entry(comm, 1);
    if (r->scratch != 0)
        dc->scratch = gin_at(gin_heap_window(comm, GIN_KIND_CUDA), d->cuda_off + d->cuda_scratch);
    dc->scratch_bytes = r->scratch;
    dc->world = comm->world;
    dc->node = comm->node;
    dc->lsa = comm->lsa;
    dc->rail = comm->rail;
    fill_reach(d, &dc->reach);
    dc->error = (const uint64_t *)(uintptr_t)k->host_addr;
    dc->wait_timeout_ns = r->wait_timeout_ns;
    dc->barrier_timeout_ns = r->barrier_timeout_ns;
    dc->lists = (const struct gin_i_list *)(uintptr_t)gi_mirror_lists(comm);
    dc->window_ids = (const uint32_t *)(uintptr_t)gi_mirror_window_ids(comm);
    if (d->multimem != NULL)
        dc->multimem = d->multimem->base + GI_CONTROL_CUDA;
    dc->engine_thread = ENGINE_THREAD;
    dc->engine_warp = ENGINE_WARP;
    dc->serial = d->dc->serial;
    dc->magic = GIN_DEVCOMM_MAGIC;
}

/* ---- coming and going ---- */

static int allocate(const struct gi_devcomm *d, struct gi_kernel_side *k)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    uint64_t bytes = block_bytes(d, k->n_rings);
    uint64_t ring = gi_ring_plan(gi_ring_depth(r->queue_depth), r->counters).bytes;
    k->image = calloc(1, bytes);
    k->rings = calloc(k->n_rings + 1, sizeof(*k->rings));
    if (k->image == NULL || k->rings == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u contexts", r->contexts);
    int st = gi_gpu_alloc(k->gpu, bytes, &k->block);
    if (st == GIN_OK)
        st = gi_gpu_host_alloc(k->gpu, 64 + k->n_rings * ring, (void **)&k->host, &k->host_addr);
    if (st != GIN_OK)
        return gi_fail_context("gin_devcomm_create");
    k->error = (uint64_t *)(void *)k->host;
    return GIN_OK;
}

static int open_far(const struct gi_devcomm *d, struct gi_kernel_side *k)
{
    int st = GIN_OK;
    for (uint32_t i = 0; i < k->n_rings && st == GIN_OK && gi_far_is_open(d); i++)
        st = gi_far_open(d, &k->rings[i], k->n_rings);
    return st;
}

/* What kernels need of host memory: signals and engines' words, if anybody raises them there. */
static int look_at_host(struct gi_devcomm *d)
{
    const char *why;
    d->host_reach = gi_mirror_pinned(d->comm, &why);
    if (!d->host_signals || d->host_reach >= GI_CONTROL + d->off + d->bytes)
        return GIN_OK;
    return gi_fail(GIN_ENOTSUP,
                   "gin_devcomm_create: kernels cannot see signals in host memory: %s; "
                   "GIN_BACKEND_DIRECT on all ranks, each with device CUDA, does without",
                   why);
}

int gi_devcomm_cuda_open(struct gi_devcomm *d)
{
    struct gi_cuda *c = d->comm->cuda;
    if (c->gpu == NULL)
        return gi_fail(GIN_ENOTSUP, "gin_devcomm_create: device CUDA: %s", d->comm->cuda_why);
    int st = gi_mirror_up(d->comm);
    if (st == GIN_OK)
        st = look_at_host(d);
    if (st != GIN_OK)
        return st;
    struct gi_kernel_side *k = d->kernel = calloc(1, sizeof(*k));
    if (k == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory");
    k->gpu = c->gpu;
    k->n_rings = d->reqs.backend == GIN_BACKEND_DIRECT ? 0 : d->reqs.contexts;
    st = allocate(d, k);
    if (st == GIN_OK) {
        fill(d, k);
        st = open_far(d, k);
    }
    if (st == GIN_OK) {
        st = gi_gpu_write(k->gpu, k->block, k->image, k->used);
    }
    free(k->image);
    k->image = NULL;
    return st;
}

/* The memory stays mapped until somebody else gets it; who still has the 64 bytes finds no magic.
 */
void gi_devcomm_cuda_close(struct gi_devcomm *d)
{
    struct gi_kernel_side *k = d->kernel;
    if (k == NULL)
        return;
    if (k->block != 0 && gi_comm_status_quiet(d->comm) == GIN_OK)
        gi_gpu_zero(k->gpu, k->block, sizeof(struct gin_i_dc));
    gi_gpu_host_free(k->gpu, k->host);
    gi_gpu_free(k->gpu, k->block);
    for (uint32_t i = 0; k->rings != NULL && i < k->n_rings; i++)
        gi_far_close(&k->rings[i]);
    free(k->rings);
    free(k);
    d->kernel = NULL;
}

void gi_devcomm_cuda_show(const struct gi_devcomm *d, gin_devcomm_t *dev)
{
    const struct gi_kernel_side *k = d->kernel;
    dev->state = k->block; /* struct gin_i_dc comes first */
    dev->windows = gi_mirror_windows(d->comm);
    dev->lsa_of = k->lsa_of;
}
