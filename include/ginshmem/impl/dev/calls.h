/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of gin.h in kernels: binding, data, completion, addresses, teams. Not API. */
#ifndef GINSHMEM_IMPL_DEV_CALLS_H
#define GINSHMEM_IMPL_DEV_CALLS_H

#include <ginshmem/impl/dev/ops.h>

/* ---- binding ---- */

GIN_DEV int gin_i_bind_dead(gin_t *g, int status)
{
    gin_t dead = {};
    *g = dead;
    g->heap_handle = GIN_I_WINDOW_DEAD;
    g->flags = GIN_I_DC_DEAD;
    g->status = status;
    return status;
}

GIN_DEV void gin_i_bind_heap(gin_t *g, const struct gin_i_heap *heap)
{
    struct gin_i_16 a = gin_i_nc_128(&heap->lsa_base), b = gin_i_nc_128(&heap->handle);
    struct gin_i_16 c = gin_i_nc_128(&heap->lsa_rank);
    g->lsa_base = a.a;
    g->lsa_stride = a.b;
    g->heap_handle = b.a;
    g->heap_size = b.b;
    g->lsa_rank = (int32_t)(uint32_t)c.a;
    g->lsa_first = (int32_t)(c.a >> 32);
    g->lsa_count = (int32_t)(uint32_t)c.b;
    g->flags |= (uint32_t)(c.b >> 32) << GIN_I_DC_APPLY_SHIFT;
}

GIN_OP int gin_open(const gin_devcomm_t *dev, uint32_t index, gin_t *g)
{
    struct gin_i_dc *dc = (struct gin_i_dc *)dev->state;
    int all = index == GIN_ALL_CONTEXTS;
    if (dev->magic != GIN_DEVCOMM_MAGIC || dev->abi != GIN_DEVCOMM_ABI ||
        dev->device != GIN_DEVICE_CUDA)
        return gin_i_bind_dead(g, GIN_ESTATE);
    /* destroyed, or what took its memory */
    if (((gin_i_nc_u32(&dc->magic) ^ GIN_DEVCOMM_MAGIC) |
         (gin_i_nc_u64(&dc->serial) ^ dev->serial)) != 0)
        return gin_i_bind_dead(g, GIN_ESTATE);
    if (!all && index >= dev->n_contexts)
        return gin_i_bind_dead(g, GIN_ERANGE);
    g->dc = dc;
    g->ctx = all ? &dc->all : (struct gin_i_ctx *)gin_i_nc_u64(&dc->ctx) + index;
    g->windows = (const struct gin_i_window *const *)dev->windows;
    g->lsa_of = (const int32_t *)dev->lsa_of;
    g->rank = dev->rank;
    g->size = dev->size;
    g->n_signals = all ? 0 : dev->n_signals;
    g->flags = gin_i_nc_u32(&dc->flags) | (all ? (uint32_t)GIN_I_DC_ALL : 0u);
    gin_i_bind_heap(g, &dc->reach);
    g->signals_off = gin_i_nc_u64(&g->ctx->signals_off);
    g->bases = (struct gin_i_base *)gin_i_nc_u64(&g->ctx->bases);
    g->host_signals = (const struct gin_i_cells *)gin_i_nc_u64(&g->ctx->host_signals);
    g->ring =
        GIN_KERNEL_PATHS & GIN_PATH_NET ? (struct gin_i_ring *)gin_i_nc_u64(&g->ctx->ring) : NULL;
    g->status = GIN_OK;
    return GIN_OK;
}

GIN_OP int gin_status(const gin_t *g)
{
    if (g->flags & GIN_I_DC_DEAD)
        return GIN_ESTATE;
    const uint64_t *error = gin_i_error_word(g);
    int st = error != NULL ? gin_i_error_of(gin_i_ld_relaxed_sys(error)) : GIN_OK;
    if (st == GIN_OK && g->ring != NULL)
        st = gin_i_error_of(gin_i_ld_relaxed_sys(&g->ring->host->error));
    return st != GIN_OK ? st : g->status;
}

/* ---- data ---- */

GIN_OP int gin_put(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                   gin_at_t src, size_t bytes, gin_action_t remote)
{
    return gin_i_dev_put(g, grp, team, peer, dst, src, bytes, &remote, NULL);
}

GIN_OP int gin_put_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                     gin_at_t src, size_t bytes, gin_action_t remote, const gin_op_opt_t *opt)
{
    return gin_i_dev_put(g, grp, team, peer, dst, src, bytes, &remote, opt);
}

GIN_OP int gin_put_value(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                         uint64_t value, size_t bytes, gin_action_t remote)
{
    return gin_i_dev_put_value(g, grp, team, peer, dst, value, bytes, &remote, NULL);
}

GIN_OP int gin_put_value_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                           uint64_t value, size_t bytes, gin_action_t remote,
                           const gin_op_opt_t *opt)
{
    return gin_i_dev_put_value(g, grp, team, peer, dst, value, bytes, &remote, opt);
}

GIN_OP int gin_get(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                   gin_at_t dst, size_t bytes)
{
    return gin_i_dev_get(g, grp, team, peer, src, dst, bytes, NULL);
}

GIN_OP int gin_get_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                     gin_at_t dst, size_t bytes, const gin_op_opt_t *opt)
{
    return gin_i_dev_get(g, grp, team, peer, src, dst, bytes, opt);
}

GIN_OP int gin_signal(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                      gin_action_t remote)
{
    return gin_i_dev_signal(g, grp, team, peer, &remote, NULL);
}

GIN_OP int gin_signal_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                        gin_action_t remote, const gin_op_opt_t *opt)
{
    return gin_i_dev_signal(g, grp, team, peer, &remote, opt);
}

/* ---- completion ---- */

GIN_DEV uint64_t gin_i_dev_timeout(const gin_t *g, const gin_wait_opt_t *opt)
{
    return opt != NULL && opt->timeout_ns != 0 ? opt->timeout_ns
                                               : gin_i_nc_u64(&g->dc->wait_timeout_ns);
}

GIN_DEV int gin_i_dev_poll(const gin_wait_opt_t *opt)
{
    return opt != NULL && opt->poll != 0;
}

/* Flush, fence or quiet of one ring. A fence waits too: what follows may take another path. */
GIN_DEV int gin_i_complete_ring(struct gin_i_ring *r, const uint64_t *error, int flush,
                                uint64_t timeout_ns, int poll)
{
    if (r == NULL)
        return GIN_OK;
    if (flush)
        return gin_i_ring_flush(r, error, timeout_ns, poll);
    if (poll)
        return gin_i_ring_poll_quiet(r, error);
    return gin_i_ring_quiet(r, error, timeout_ns);
}

/* That of context i, or NULL. */
GIN_DEV const struct gin_i_ring *gin_i_nth_ring(const struct gin_i_dc *dc, uint32_t i)
{
    const struct gin_i_ctx *ctx = (const struct gin_i_ctx *)gin_i_nc_u64(&dc->ctx);
    return i < gin_i_nc_u32(&dc->n_contexts) ? (const struct gin_i_ring *)gin_i_nc_u64(&ctx[i].ring)
                                             : NULL;
}

/* 0: nothing is outstanding in contexts `from`, from + step .., as was seen before. No branch, so
 * that several loads are on their way. */
GIN_DEV uint64_t gin_i_rings_busy(const struct gin_i_dc *dc, uint32_t from, uint32_t step)
{
    const uint32_t n = gin_i_nc_u32(&dc->n_contexts);
    uint64_t busy = 0;
#pragma unroll 4
    for (uint32_t i = from; i < n; i += step) {
        const struct gin_i_ring *r = gin_i_nth_ring(dc, i);
        struct gin_i_16 v = {0, 0};
        if (r != NULL)
            v = gin_i_ld128_relaxed_gpu(&r->ticket);
        busy |= v.a ^ v.b;
    }
    return busy;
}

/* Of a context, or with ctx NULL of all. timeout_ns 0: the device communicator's. */
GIN_DEV_CALL int gin_i_complete_rings(const struct gin_i_dc *dc, const struct gin_i_ctx *ctx,
                                      int flush, uint64_t timeout_ns, int poll)
{
    const uint64_t *error = (const uint64_t *)gin_i_nc_u64(&dc->error);
    uint32_t n = ctx != NULL ? 1 : gin_i_nc_u32(&dc->n_contexts);
    int st = GIN_OK;
    if (ctx == NULL) {
        ctx = (const struct gin_i_ctx *)gin_i_nc_u64(&dc->ctx);
        n = gin_i_rings_busy(dc, 0, 1) != 0 ? n : 0; /* then only the fence is left */
        flush = n != 0 && flush;
    }
    if (timeout_ns == 0)
        timeout_ns = gin_i_nc_u64(&dc->wait_timeout_ns);
    for (uint32_t i = 0; st == GIN_OK && i < n; i++)
        st = gin_i_complete_ring((struct gin_i_ring *)gin_i_nc_u64(&ctx[i].ring), error, flush,
                                 timeout_ns, poll);
    if (!flush)
        gin_i_fence_gpu(); /* other threads may have seen some of it */
    return st;
}

/* Something may be under way beside load and store. */
GIN_DEV int gin_i_has_rings(const gin_t *g)
{
    return g->ring != NULL || ((GIN_KERNEL_PATHS & GIN_PATH_NET) && (g->flags & GIN_I_DC_ALL) != 0);
}

/*
 * By the leader, after the group has met. Where all that was posted is known to be done, the look
 * at the ring takes place while the fence lasts.
 */
GIN_DEV int gin_i_complete_now(const gin_t *g, int what, const gin_wait_opt_t *opt)
{
    struct gin_i_16 posted = {0, 0};
    if (g->ring != NULL)
        posted = gin_i_ld128_relaxed_gpu(&g->ring->ticket);
    if (what == GIN_I_QUIET)
        gin_i_fence_sc_sys(); /* nor does a later load come before it */
    else if (what != GIN_I_FLUSH)
        gin_i_fence_sys();
    if (GIN_LIKELY(!gin_i_has_rings(g)))
        return GIN_OK;
    posted.a |= gin_i_zero_from_here();
    if (GIN_LIKELY(g->ring != NULL && posted.a == posted.b)) {
        if (what == GIN_I_FLUSH && posted.a != 0)
            gin_i_fence_gpu(); /* another thread has seen it done */
        return GIN_OK;
    }
    return gin_i_complete_rings(g->dc, g->flags & GIN_I_DC_ALL ? NULL : g->ctx, what == GIN_I_FLUSH,
                                opt != NULL ? opt->timeout_ns : 0, gin_i_dev_poll(opt));
}

/* Over load and store an operation is done when its call returns. */
GIN_DEV int gin_i_dev_complete(const gin_t *g, gin_group_t grp, int what, const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 1, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(&q);
    if (what == GIN_I_FLUSH && !gin_i_has_rings(g))
        return GIN_OK;
    if (q.lane == 0)
        st = gin_i_complete_now(g, what, opt);
    return gin_i_group_status(&q, st);
}

GIN_DEV int gin_i_dev_complete_peer(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                                    int what)
{
    int world = gin_i_dev_world(g, team, peer);
    return GIN_UNLIKELY(world < 0) ? world : gin_i_dev_complete(g, grp, what, NULL);
}

GIN_OP int gin_flush(const gin_t *g, gin_group_t grp)
{
    return gin_i_dev_complete(g, grp, GIN_I_FLUSH, NULL);
}

GIN_OP int gin_flush_x(const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt)
{
    return gin_i_dev_complete(g, grp, GIN_I_FLUSH, opt);
}

GIN_OP int gin_flush_peer(const gin_t *g, gin_group_t grp, gin_team_t team, int peer)
{
    return gin_i_dev_complete_peer(g, grp, team, peer, GIN_I_FLUSH);
}

GIN_OP int gin_fence(const gin_t *g, gin_group_t grp, gin_team_t team, int peer)
{
    return gin_i_dev_complete_peer(g, grp, team, peer, GIN_I_FENCE);
}

GIN_OP int gin_fence_all(const gin_t *g, gin_group_t grp)
{
    return gin_i_dev_complete(g, grp, GIN_I_FENCE, NULL);
}

GIN_OP int gin_quiet(const gin_t *g, gin_group_t grp)
{
    return gin_i_dev_complete(g, grp, GIN_I_QUIET, NULL);
}

GIN_OP int gin_quiet_x(const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt)
{
    return gin_i_dev_complete(g, grp, GIN_I_QUIET, opt);
}

#define GIN_I_REQUEST_MAGIC 0x47494e52u /* "GINR" */

/* A request is the number of tickets taken; each lane gets it, whether they share *req or not. */
GIN_OP int gin_flush_async(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                           gin_request_t *req)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK && req == NULL)
        st = GIN_EINVAL;
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0))
        return world;
    gin_i_group_sync(&q);
    req->opaque[1] = g->ring != NULL ? gin_i_ring_tickets(g->ring) : 0;
    req->opaque[0] = (uint64_t)GIN_I_REQUEST_MAGIC << 32 | (uint32_t)world;
    gin_i_group_sync(&q); /* nobody's next operation is counted */
    return GIN_OK;
}

GIN_OP int gin_wait_x(const gin_t *g, gin_group_t grp, const gin_request_t *req,
                      const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_UNLIKELY(req == NULL || req->opaque[0] >> 32 != GIN_I_REQUEST_MAGIC))
        return GIN_EINVAL;
    if (q.lane == 0 && g->ring != NULL && req->opaque[1] != 0)
        st = gin_i_ring_done(g->ring, req->opaque[1], gin_i_error_word(g),
                             gin_i_dev_timeout(g, opt), gin_i_dev_poll(opt));
    return gin_i_group_status(&q, st);
}

GIN_OP int gin_wait(const gin_t *g, gin_group_t grp, const gin_request_t *req)
{
    return gin_wait_x(g, grp, req, NULL);
}

GIN_OP int gin_test(const gin_t *g, gin_group_t grp, const gin_request_t *req)
{
    gin_wait_opt_t once = {0, 0, 1};
    return gin_wait_x(g, grp, req, &once);
}

/* ---- addresses ---- */

/* Notes the status; NULL unless the place is mapped. */
GIN_DEV void *gin_i_dev_pointer(const gin_t *g, struct gin_i_place p)
{
    int st = p.status == GIN_I_ENGINE ? (int)GIN_ENOTSUP : p.status;
    gin_i_note(g, st);
    return st == GIN_OK ? (void *)p.addr : NULL;
}

GIN_OP void *gin_local_ptr(const gin_t *g, gin_at_t at)
{
    if (GIN_UNLIKELY(g->flags & GIN_I_DC_DEAD))
        return NULL;
    return gin_i_dev_pointer(g, gin_i_dev_local(g, at, 0));
}

GIN_OP void *gin_peer_ptr(const gin_t *g, gin_team_t team, int peer, gin_at_t at)
{
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0)) {
        gin_i_note(g, world);
        return NULL;
    }
    if (GIN_UNLIKELY(at.win.w == GIN_I_WINDOW_LOCAL)) {
        gin_i_note(g, world == g->rank ? GIN_OK : GIN_EINVAL);
        return world == g->rank ? (void *)at.off : NULL;
    }
    return gin_i_dev_pointer(g, gin_i_dev_place(g, gin_i_dev_lsa(g, world), at, 0, 0));
}

GIN_DEV gin_team_t gin_i_nc_team(const gin_team_t *t)
{
    gin_team_t v;
    v.size = (int32_t)gin_i_nc_u32(&t->size);
    v.rank = (int32_t)gin_i_nc_u32(&t->rank);
    v.first = (int32_t)gin_i_nc_u32(&t->first);
    v.stride = (int32_t)gin_i_nc_u32(&t->stride);
    return v;
}

GIN_OP gin_team_t gin_world(const gin_t *g)
{
    gin_team_t t = {g->size, g->rank, 0, 1};
    return t;
}

GIN_OP gin_team_t gin_lsa(const gin_t *g)
{
    return g->flags & GIN_I_DC_DEAD ? gin_team_invalid() : gin_i_nc_team(&g->dc->lsa);
}

GIN_OP gin_team_t gin_rail(const gin_t *g)
{
    return g->flags & GIN_I_DC_DEAD ? gin_team_invalid() : gin_i_nc_team(&g->dc->rail);
}

GIN_OP gin_team_t gin_node(const gin_t *g)
{
    return g->flags & GIN_I_DC_DEAD ? gin_team_invalid() : gin_i_nc_team(&g->dc->node);
}

GIN_OP void *gin_lsa_ptr(const gin_t *g, int lsa_rank, gin_at_t at)
{
    return gin_peer_ptr(g, gin_lsa(g), lsa_rank, at);
}

GIN_OP void *gin_multimem_ptr(const gin_t *g, gin_at_t at)
{
    if (g->flags & GIN_I_DC_DEAD)
        return NULL;
    uint64_t base = gin_i_nc_u64(&g->dc->multimem);
    int inside = at.win.w == g->heap_handle && gin_i_dev_inside(g->heap_size, at.off, 0);
    gin_i_note(g, base == 0 ? GIN_ENOTSUP : inside ? GIN_OK : GIN_ERANGE);
    return base != 0 && inside ? (void *)(base + at.off) : NULL;
}

GIN_OP gin_at_t gin_scratch(const gin_t *g)
{
    if (g->flags & GIN_I_DC_DEAD)
        return gin_at(gin_window_none(), 0);
    gin_window_t w;
    w.w = gin_i_nc_u64(&g->dc->scratch.win.w);
    return gin_at(w, gin_i_nc_u64(&g->dc->scratch.off));
}

/* The smallest live window that holds an address of mine. */
GIN_DEV_CALL gin_at_t gin_i_search(const struct gin_i_window *const *windows, uint32_t ids,
                                   uint64_t ptr)
{
    gin_at_t best = gin_at(gin_window_none(), 0);
    uint64_t smallest = ~(uint64_t)0;
    for (uint32_t id = 0; id < ids; id++) {
        struct gin_i_window w;
        const struct gin_i_window *page = (const struct gin_i_window *)gin_i_ld_relaxed_sys(
            (const uint64_t *)&windows[id / GIN_I_WINDOW_PAGE % GIN_I_WINDOW_PAGES]);
        uint64_t handle = gin_i_ld_relaxed_sys(&page[id % GIN_I_WINDOW_PAGE].handle);
        if (!gin_i_window_read(windows, handle, 0, &w) || w.local == 0 || ptr - w.local >= w.size ||
            w.size >= smallest)
            continue;
        smallest = w.size;
        best.win.w = handle;
        best.off = ptr - w.local;
    }
    return best;
}

/* The place of an address of mine in a window; win.w 0: in none. g is live. */
GIN_DEV gin_at_t gin_i_dev_at(const gin_t *g, uint64_t ptr)
{
    uint64_t mine = g->lsa_base + (uint64_t)(uint32_t)g->lsa_rank * g->lsa_stride;
    gin_window_t heap;
    heap.w = g->heap_handle;
    if (GIN_LIKELY(ptr - mine < g->heap_size))
        return gin_at(heap, ptr - mine);
    return gin_i_search(g->windows,
                        gin_i_ld32_relaxed_sys((const uint32_t *)gin_i_nc_u64(&g->dc->window_ids)),
                        ptr);
}

GIN_OP gin_at_t gin_at_ptr(const gin_t *g, const void *ptr)
{
    if (GIN_UNLIKELY(g->flags & GIN_I_DC_DEAD))
        return gin_at(gin_window_none(), 0);
    gin_at_t at = gin_i_dev_at(g, (uint64_t)ptr);
    gin_i_note(g, at.win.w != 0 ? GIN_OK : (int)GIN_ERANGE);
    return at;
}

/* ---- ranks ---- */

GIN_OP int gin_world_rank(const gin_t *g, gin_team_t team, int rank)
{
    int w = gin_i_dev_world(g, team, rank);
    gin_i_note(g, w < 0 ? w : GIN_OK);
    return w < 0 ? -1 : w;
}

GIN_OP int gin_lsa_rank(const gin_t *g, gin_team_t team, int rank)
{
    int w = gin_world_rank(g, team, rank);
    if (w < 0)
        return -1;
    int lsa = gin_i_dev_lsa(g, w);
    return lsa < 0 ? -1 : lsa & GIN_I_LSA_RANK;
}

#endif
