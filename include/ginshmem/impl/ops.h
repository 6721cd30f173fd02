/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of gin.h: put, get, signal, completion, addresses. Not API. */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_OPS_H
#define GINSHMEM_IMPL_OPS_H

#include <ginshmem/impl/path.h>

GIN_OP int gin_open(const gin_devcomm_t *dev, uint32_t index, gin_t *g)
{
    return gin_i_open(dev, index, g);
}

GIN_OP int gin_status(const gin_t *g)
{
    return gin_i_status(g);
}

/*
 * Address of the word that `remote` raises at an LSA peer; NULL for the library to look, which also
 * refuses what the requirements left out.
 */
GIN_OP uint64_t *gin_i_action_word(const gin_t *g, int lsa, const gin_action_t *remote)
{
    if (GIN_UNLIKELY(remote->strong && (!(g->dc->flags & GIN_I_DC_STRONG) ||
                                        GIN_LOAD_RELAXED(&g->ctx->near_net) != 0)))
        return NULL;
    if (GIN_LIKELY(remote->kind == GIN_ACTION_ADD))
        return GIN_LIKELY(remote->id < g->ctx->n_signals && lsa >= 0)
                   ? gin_i_cell(g, lsa, remote->id)
                   : NULL;
    if (GIN_UNLIKELY(remote->kind > GIN_ACTION_SET_AT || !(g->dc->flags & GIN_I_DC_VA)))
        return NULL;
    uint64_t *word = (uint64_t *)gin_i_remote(g, lsa, remote->at, 8);
    return GIN_LIKELY(((uintptr_t)word & 7) == 0) ? word : NULL;
}

/* The release that makes the calling thread's earlier stores visible before the signal. Over load
 * and store weak and strong are the same: a peer's copies are in program order. */
GIN_OP void gin_i_raise(uint64_t *word, const gin_action_t *remote)
{
    if (GIN_LIKELY(remote->kind != GIN_ACTION_SET_AT))
        GIN_ADD_RELEASE(word, remote->value);
    else
        GIN_STORE_RELEASE(word, remote->value);
}

GIN_OP int gin_put(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                   gin_at_t src, size_t bytes, gin_action_t remote)
{
    int lsa = gin_i_lsa(g, team, peer);
    void *to = gin_i_remote(g, lsa, dst, bytes);
    const void *from = gin_i_local(g, src, bytes);
    if (GIN_UNLIKELY(to == NULL || from == NULL || grp.kind != GIN_GROUP_THREAD))
        return gin_i_put(g, grp, team, peer, dst, src, bytes, &remote, NULL);
    if (remote.kind == GIN_ACTION_NONE) {
        gin_i_copy(to, from, bytes);
        return GIN_OK;
    }
    uint64_t *word = gin_i_action_word(g, lsa, &remote);
    if (GIN_UNLIKELY(word == NULL))
        return gin_i_put(g, grp, team, peer, dst, src, bytes, &remote, NULL);
    /* no prefetch of the word: a read prefetch shares its line and costs half a trip more */
    gin_i_copy(to, from, bytes);
    gin_i_raise(word, &remote);
    return GIN_OK;
}

/* An option that inlined code leaves to the library; a counter, too, where the operation may still
 * be under way when its call returns. */
GIN_OP int gin_i_opt_slow(const gin_t *g, const gin_op_opt_t *opt)
{
    return opt != NULL && ((opt->flags & GIN_NIC_ONLY) || gin_i_opt_is_odd(opt) ||
                           (opt->local.kind == 1 &&
                            (opt->local.id >= g->ctx->n_counters || (g->flags & GIN_I_DC_NET))));
}

GIN_OP void gin_i_count(const gin_t *g, const gin_op_opt_t *opt)
{
    if (opt != NULL && opt->local.kind == 1)
        GIN_ADD_RELEASE(&g->ctx->counters[opt->local.id].cell, 1);
}

GIN_OP int gin_put_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                     gin_at_t src, size_t bytes, gin_action_t remote, const gin_op_opt_t *opt)
{
    int more = opt != NULL && (opt->flags & GIN_MORE) != 0; /* of use to the network alone */
    if (GIN_UNLIKELY(gin_i_opt_slow(g, opt) || (more && gin_i_lsa(g, team, peer) < 0)))
        return gin_i_put(g, grp, team, peer, dst, src, bytes, &remote, opt);
    int st = gin_put(g, grp, team, peer, dst, src, bytes, remote);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_count(g, opt);
    return st;
}

/* The low `bytes` bytes of a value, as memory has them on this machine. */
GIN_OP const void *gin_i_value_bytes(const uint64_t *value, size_t bytes)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (const char *)value + (8 - bytes);
#else
    (void)bytes;
    return value;
#endif
}

GIN_OP int gin_put_value_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                           uint64_t value, size_t bytes, gin_action_t remote,
                           const gin_op_opt_t *opt)
{
    if (GIN_UNLIKELY(bytes - 1 > 7))
        return gin_i_bad_id(g, "gin_put_value: bytes must be 1 to 8, not", bytes, ~(uint64_t)0);
    int st = gin_put_x(g, grp, team, peer, dst, gin_at_local(gin_i_value_bytes(&value, bytes)),
                       bytes, remote, opt);
    return GIN_LIKELY(st == GIN_OK) ? st : gin_i_put_value_failed(st, opt != NULL);
}

GIN_OP int gin_put_value(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                         uint64_t value, size_t bytes, gin_action_t remote)
{
    return gin_put_value_x(g, grp, team, peer, dst, value, bytes, remote, NULL);
}

GIN_OP int gin_get(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                   gin_at_t dst, size_t bytes)
{
    int lsa = gin_i_lsa(g, team, peer);
    const void *from = gin_i_remote(g, lsa, src, bytes);
    void *to = gin_i_local(g, dst, bytes);
    if (GIN_UNLIKELY(to == NULL || from == NULL || grp.kind != GIN_GROUP_THREAD))
        return gin_i_get(g, grp, team, peer, src, dst, bytes, NULL);
    gin_i_copy(to, from, bytes);
    return GIN_OK;
}

GIN_OP int gin_get_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                     gin_at_t dst, size_t bytes, const gin_op_opt_t *opt)
{
    if (GIN_UNLIKELY(gin_i_opt_slow(g, opt)))
        return gin_i_get(g, grp, team, peer, src, dst, bytes, opt);
    int st = gin_get(g, grp, team, peer, src, dst, bytes);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_count(g, opt);
    return st;
}

GIN_OP int gin_signal(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                      gin_action_t remote)
{
    int lsa = gin_i_lsa(g, team, peer);
    uint64_t *word =
        remote.kind != GIN_ACTION_NONE ? gin_i_action_word(g, lsa, &remote) : (uint64_t *)NULL;
    if (GIN_UNLIKELY(word == NULL || grp.kind != GIN_GROUP_THREAD))
        return gin_i_signal(g, grp, team, peer, &remote, NULL);
    gin_i_raise(word, &remote);
    return GIN_OK;
}

GIN_OP int gin_signal_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                        gin_action_t remote, const gin_op_opt_t *opt)
{
    if (GIN_UNLIKELY(opt != NULL &&
                     (opt->flags & GIN_NIC_ONLY || opt->local.kind != 0 || gin_i_opt_is_odd(opt))))
        return gin_i_signal(g, grp, team, peer, &remote, opt);
    return gin_signal(g, grp, team, peer, remote);
}

/*
 * Completion. Over load and store an operation is done when its call returns, so flush only keeps
 * the compiler and the processor from moving later accesses up, and quiet makes the stores globally
 * visible. With a network it is the library's business.
 */
GIN_OP int gin_flush_x(const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt)
{
    if (GIN_UNLIKELY(g->dc->magic != GIN_DEVCOMM_MAGIC || grp.kind != GIN_GROUP_THREAD ||
                     (g->flags & GIN_I_DC_NET)))
        return gin_i_complete(g, grp, gin_team_invalid(), -1, GIN_I_FLUSH, opt);
    GIN_FENCE_ACQUIRE();
    return GIN_OK;
}

GIN_OP int gin_flush(const gin_t *g, gin_group_t grp)
{
    return gin_flush_x(g, grp, NULL);
}

GIN_OP int gin_flush_peer(const gin_t *g, gin_group_t grp, gin_team_t team, int peer)
{
    return gin_i_complete(g, grp, team, peer, GIN_I_FLUSH, NULL);
}

GIN_OP int gin_flush_async(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                           gin_request_t *req)
{
    return gin_i_request(g, grp, team, peer, req);
}

GIN_OP int gin_wait_x(const gin_t *g, gin_group_t grp, const gin_request_t *req,
                      const gin_wait_opt_t *opt)
{
    return gin_i_wait_request(g, grp, req, opt);
}

GIN_OP int gin_wait(const gin_t *g, gin_group_t grp, const gin_request_t *req)
{
    return gin_i_wait_request(g, grp, req, NULL);
}

GIN_OP int gin_test(const gin_t *g, gin_group_t grp, const gin_request_t *req)
{
    gin_wait_opt_t once = {0, 0, 1};
    return gin_i_wait_request(g, grp, req, &once);
}

GIN_OP int gin_fence(const gin_t *g, gin_group_t grp, gin_team_t team, int peer)
{
    if (GIN_UNLIKELY(gin_i_lsa(g, team, peer) < 0 || grp.kind != GIN_GROUP_THREAD ||
                     g->dc->magic != GIN_DEVCOMM_MAGIC || GIN_LOAD_RELAXED(&g->ctx->near_net) != 0))
        return gin_i_complete(g, grp, team, peer, GIN_I_FENCE, NULL);
    GIN_FENCE_RELEASE();
    return GIN_OK;
}

GIN_OP int gin_fence_all(const gin_t *g, gin_group_t grp)
{
    if (GIN_UNLIKELY(g->dc->magic != GIN_DEVCOMM_MAGIC || grp.kind != GIN_GROUP_THREAD ||
                     (g->flags & GIN_I_DC_NET)))
        return gin_i_complete(g, grp, gin_team_invalid(), -1, GIN_I_FENCE, NULL);
    GIN_FENCE_RELEASE();
    return GIN_OK;
}

GIN_OP int gin_quiet_x(const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt)
{
    if (GIN_UNLIKELY(g->dc->magic != GIN_DEVCOMM_MAGIC || grp.kind != GIN_GROUP_THREAD ||
                     (g->flags & GIN_I_DC_NET)))
        return gin_i_complete(g, grp, gin_team_invalid(), -1, GIN_I_QUIET, opt);
    GIN_FENCE_SEQ_CST();
    return GIN_OK;
}

GIN_OP int gin_quiet(const gin_t *g, gin_group_t grp)
{
    return gin_quiet_x(g, grp, NULL);
}

GIN_OP gin_at_t gin_at_ptr(const gin_t *g, const void *ptr)
{
    const struct gin_i_window *heap = g->dc->heap;
    if (GIN_LIKELY(heap != NULL)) {
        uint64_t off = (uint64_t)(uintptr_t)ptr - heap->local;
        if (GIN_LIKELY(off < GIN_LOAD_RELAXED(&heap->size))) {
            gin_window_t w;
            w.w = heap->handle;
            return gin_at(w, off);
        }
    }
    return gin_i_at_ptr(g, ptr);
}

GIN_OP void *gin_local_ptr(const gin_t *g, gin_at_t at)
{
    void *p = gin_i_local(g, at, 0);
    return GIN_LIKELY(p != NULL) ? p : gin_i_ptr(g, g->rank, at, 0);
}

GIN_OP void *gin_peer_ptr(const gin_t *g, gin_team_t team, int peer, gin_at_t at)
{
    void *p = gin_i_remote(g, gin_i_lsa(g, team, peer), at, 0);
    return GIN_LIKELY(p != NULL) ? p : gin_i_ptr(g, gin_i_world_rank(g, team, peer), at, 0);
}

GIN_OP void *gin_lsa_ptr(const gin_t *g, int lsa_rank, gin_at_t at)
{
    return gin_peer_ptr(g, g->dc->lsa, lsa_rank, at);
}

GIN_OP void *gin_multimem_ptr(const gin_t *g, gin_at_t at)
{
    (void)g;
    (void)at;
    return NULL;
}

GIN_OP gin_at_t gin_scratch(const gin_t *g)
{
    return g->dc->scratch;
}

GIN_OP gin_team_t gin_world(const gin_t *g)
{
    return g->dc->world;
}

GIN_OP gin_team_t gin_lsa(const gin_t *g)
{
    return g->dc->lsa;
}

GIN_OP gin_team_t gin_rail(const gin_t *g)
{
    return g->dc->rail;
}

GIN_OP gin_team_t gin_node(const gin_t *g)
{
    return g->dc->node;
}

GIN_OP int gin_world_rank(const gin_t *g, gin_team_t team, int rank)
{
    int w = gin_i_world(g, team, rank);
    return GIN_LIKELY(w >= 0) ? w : gin_i_world_rank(g, team, rank);
}

GIN_OP int gin_lsa_rank(const gin_t *g, gin_team_t team, int rank)
{
    int w = gin_world_rank(g, team, rank);
    return w >= 0 ? g->lsa_of[w] : -1;
}

#endif
