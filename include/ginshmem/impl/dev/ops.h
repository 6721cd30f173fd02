/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * put, get and signal in kernels. A copy is resolved first, by all lanes from the same arguments,
 * so that a refused group leaves at once with one verdict. Then: the group meets, its lanes copy,
 * it meets, and the leader signals with a release that covers what all of them wrote. A word or a
 * signal is all the leader's, between two meetings. What is not mapped, and what is better left to
 * the copy engine, becomes a descriptor. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_OPS_H
#define GINSHMEM_IMPL_DEV_OPS_H

#include <ginshmem/impl/dev/quick.h>
#include <ginshmem/impl/dev/ring.h>

/* ---- options and actions ---- */

GIN_DEV int gin_i_dev_opt(const gin_t *g, const gin_op_opt_t *opt)
{
    if (opt == NULL)
        return GIN_OK;
    if (GIN_UNLIKELY(gin_i_opt_is_odd(opt)))
        return GIN_EINVAL;
    if (GIN_UNLIKELY(opt->flags & GIN_NIC_ONLY))
        return GIN_ENOTSUP;
    if (GIN_UNLIKELY(opt->local.kind == 1 && opt->local.id >= gin_i_nc_u32(&g->ctx->n_counters)))
        return GIN_ERANGE;
    return GIN_OK;
}

/* The word that an action raises. Status GIN_I_ENGINE: by descriptor. */
GIN_DEV struct gin_i_place gin_i_dev_action(const gin_t *g, int world, int lsa,
                                            const gin_action_t *a)
{
    if (a->kind == GIN_ACTION_NONE)
        return gin_i_placed(0, GIN_OK, 0);
    if (GIN_UNLIKELY(a->kind > GIN_ACTION_SET_AT))
        return gin_i_placed(0, GIN_EINVAL, 0);
    if (GIN_UNLIKELY(a->strong && !(g->flags & GIN_I_DC_STRONG)))
        return gin_i_placed(0, GIN_ENOTSUP, 0);
    if (a->kind == GIN_ACTION_ADD) {
        if (GIN_UNLIKELY(a->id >= g->n_signals))
            return gin_i_placed(0, GIN_ERANGE, 0);
        return GIN_LIKELY(gin_i_in_reach(lsa))
                   ? gin_i_placed((uint64_t)gin_i_dev_cell(g, lsa, a->id), GIN_OK, 0)
                   : gin_i_placed(0, lsa == GIN_I_NOT_LSA ? (int)GIN_ENOTSUP : GIN_I_ENGINE, 0);
    }
    if (GIN_UNLIKELY(!(g->flags & GIN_I_DC_VA)))
        return gin_i_placed(0, GIN_ENOTSUP, 0);
    struct gin_i_place p = gin_i_dev_place(g, lsa, a->at, 8, world != g->rank);
    uint32_t need = a->kind == GIN_ACTION_SET_AT ? GIN_I_APPLY_STORES : GIN_I_APPLY_ATOMICS;
    if (GIN_UNLIKELY(p.status < 0))
        return p;
    if (GIN_UNLIKELY(((p.addr | a->at.off) & 7) != 0))
        return gin_i_placed(0, GIN_EINVAL, 0);
    return GIN_LIKELY(p.apply & need) ? p : gin_i_placed(0, GIN_I_ENGINE, 0);
}

/* Which scope the release of a raise has: GIN_SCOPE_THREAD: none is needed. */
GIN_DEV void gin_i_dev_raise(uint64_t addr, const gin_action_t *a, uint32_t scope)
{
    uint64_t *word = (uint64_t *)addr;
    int add = a->kind != GIN_ACTION_SET_AT;
    if (scope == GIN_SCOPE_THREAD || scope == GIN_SCOPE_BLOCK) {
        if (add)
            gin_i_red_add_relaxed_sys(word, a->value);
        else
            gin_i_st_relaxed_sys(word, a->value);
    } else if (scope == GIN_SCOPE_DEVICE) {
        gin_i_fence_gpu();
        if (add)
            gin_i_red_add_relaxed_sys(word, a->value);
        else
            gin_i_st_relaxed_sys(word, a->value);
    } else if (add) {
        gin_i_red_add_release_sys(word, a->value);
    } else {
        gin_i_st_release_sys(word, a->value);
    }
}

/* What a signal without data has to release: what was asked for, unless the caller did it. */
GIN_DEV uint32_t gin_i_dev_scope(const gin_op_opt_t *opt)
{
    if (opt == NULL)
        return GIN_SCOPE_SYSTEM;
    uint32_t need = opt->required_release == 0 ? (uint32_t)GIN_SCOPE_SYSTEM : opt->required_release;
    return opt->given_release >= need ? (uint32_t)GIN_SCOPE_THREAD : need;
}

GIN_DEV void gin_i_dev_count(const gin_t *g, const gin_op_opt_t *opt)
{
    if (opt != NULL && opt->local.kind == 1) {
        struct gin_i_counter *c = (struct gin_i_counter *)gin_i_nc_u64(&g->ctx->counters);
        gin_i_red_add_release_gpu(&c[opt->local.id].cell, 1);
    }
}

/* ---- descriptors ---- */

GIN_DEV const uint64_t *gin_i_error_word(const gin_t *g)
{
    return (const uint64_t *)gin_i_nc_u64(&g->dc->error);
}

GIN_DEV void gin_i_op_begin(struct gin_i_op *o, int op, int world)
{
    struct gin_i_op zero = {};
    *o = zero;
    o->op = (uint8_t)op;
    o->peer = (uint32_t)world;
}

GIN_DEV void gin_i_op_mine(struct gin_i_op *o, gin_at_t at, uint32_t *win, uint64_t *off)
{
    *off = at.off;
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        o->flags |= GIN_I_DESC_LOCAL;
    else
        *win = gin_i_desc_window(at.win);
}

GIN_DEV void gin_i_op_options(struct gin_i_op *o, const gin_op_opt_t *opt)
{
    if (opt == NULL)
        return;
    if (opt->local.kind == 1) {
        o->flags |= GIN_I_DESC_COUNTER;
        o->counter = opt->local.id;
    }
    if (opt->flags & GIN_MORE)
        o->flags |= GIN_I_DESC_MORE;
}

GIN_DEV void gin_i_op_action(struct gin_i_op *o, const gin_action_t *a)
{
    if (a->kind == GIN_ACTION_NONE)
        return;
    o->value = a->value;
    if (a->strong)
        o->flags |= GIN_I_DESC_STRONG;
    if (a->kind == GIN_ACTION_ADD) {
        o->flags |= GIN_I_DESC_SLOT;
        o->sig_off = a->id;
        return;
    }
    o->flags |= a->kind == GIN_ACTION_SET_AT ? GIN_I_DESC_SET_AT : GIN_I_DESC_ADD_AT;
    o->sig_win = gin_i_desc_window(a->at.win);
    o->sig_off = a->at.off;
}

/* A whole operation by descriptor. */
GIN_DEV int gin_i_dev_engine(const gin_t *g, const struct gin_i_group *q, const struct gin_i_op *o,
                             int release)
{
    if (g->ring == NULL)
        return GIN_ENOTSUP;
    gin_i_group_sync(q);
    int st =
        q->lane == 0 ? gin_i_ring_post(g->ring, gin_i_error_word(g), o, release, NULL) : GIN_OK;
    return gin_i_group_status(q, st);
}

/* Local memory that the engine can reach; a block's shared memory is none. */
GIN_DEV int gin_i_engine_can(gin_at_t mine)
{
    return mine.win.w != GIN_I_WINDOW_LOCAL || gin_i_is_global(mine.off);
}

/*
 * The copy engine is faster than so few lanes. Not before an addition to a window's word, which the
 * engine cannot do in GPU memory.
 */
GIN_DEV int gin_i_engine_is_better(const gin_t *g, const struct gin_i_group *q, gin_at_t mine,
                                   uint64_t bytes, uint32_t action)
{
    if (g->ring == NULL || q->lanes > 32 || bytes < 4096 || action == GIN_ACTION_ADD_AT)
        return 0;
    const uint64_t *limit = q->lanes == 1 ? &g->dc->engine_thread : &g->dc->engine_warp;
    return bytes >= gin_i_nc_u64(limit) && gin_i_engine_can(mine);
}

/* ---- signalling ---- */

/*
 * By the leader, once the group's copies are done. A strong signal keeps behind what the engine
 * still has under way: a slot's goes there too, a word's waits for it.
 */
GIN_DEV int gin_i_dev_signal_now(const gin_t *g, int world, struct gin_i_place word,
                                 const gin_action_t *a, uint32_t scope)
{
    if (a->kind == GIN_ACTION_NONE)
        return GIN_OK;
    int here = word.status == GIN_OK;
    if (GIN_UNLIKELY(here && g->ring != NULL && a->strong && !gin_i_ring_is_settled(g->ring))) {
        here = a->kind != GIN_ACTION_ADD;
        int st = here ? gin_i_ring_quiet(g->ring, gin_i_error_word(g), 0) : GIN_OK;
        if (st != GIN_OK)
            return st;
    }
    if (GIN_LIKELY(here)) {
        gin_i_dev_raise(word.addr, a, scope);
        return GIN_OK;
    }
    if (g->ring == NULL)
        return GIN_ENOTSUP;
    struct gin_i_op o;
    gin_i_op_begin(&o, GIN_I_DESC_SIGNAL, world);
    gin_i_op_action(&o, a);
    return gin_i_ring_post(g->ring, gin_i_error_word(g), &o, scope != GIN_SCOPE_THREAD, NULL);
}

/* An action's word that needs a ring, where there is none. */
GIN_DEV int gin_i_cannot(const gin_t *g, struct gin_i_place p)
{
    return p.status < 0                                  ? p.status
           : p.status == GIN_I_ENGINE && g->ring == NULL ? (int)GIN_ENOTSUP
                                                         : (int)GIN_OK;
}

/* By the leader: signal and counter behind a copy. */
GIN_DEV int gin_i_word_done(const gin_t *g, int world, struct gin_i_place word,
                            const gin_action_t *a, const gin_op_opt_t *opt)
{
    int st = gin_i_dev_signal_now(g, world, word, a, GIN_SCOPE_SYSTEM);
    gin_i_dev_count(g, opt);
    return st;
}

/* ---- the calls ---- */

/* By the leader: a put by descriptor, out of the way of those that need none. from: where a value
 * of up to 8 bytes is read, or 0. */
GIN_DEV_CALL int gin_i_put_post(struct gin_i_ring *ring, const uint64_t *error, int world,
                                gin_at_t dst, gin_at_t src, uint64_t from, uint64_t bytes,
                                gin_action_t remote, const gin_op_opt_t *opt)
{
    struct gin_i_op o;
    gin_i_op_begin(&o, from != 0 ? GIN_I_DESC_PUT_VALUE : GIN_I_DESC_PUT, world);
    o.dst_win = gin_i_desc_window(dst.win);
    o.dst_off = dst.off;
    o.size = bytes;
    if (from != 0) /* a value needs no source later, which may be a register's */
        o.immediate = gin_i_word_load(from, bytes);
    else
        gin_i_op_mine(&o, src, &o.src_win, &o.src_off);
    gin_i_op_action(&o, &remote);
    gin_i_op_options(&o, opt);
    return gin_i_ring_post(ring, error, &o, opt == NULL || opt->given_release != GIN_SCOPE_SYSTEM,
                           NULL);
}

/*
 * By the leader, behind data that went by descriptor: an addition to a word whose applier this GPU
 * is. No descriptor may bring it, so it waits until the data are there.
 */
GIN_DEV int gin_i_add_behind(const gin_t *g, struct gin_i_place word, const gin_action_t *a)
{
    int st = gin_i_ring_quiet(g->ring, gin_i_error_word(g), 0);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_dev_raise(word.addr, a, GIN_SCOPE_SYSTEM);
    return st;
}

GIN_DEV int gin_i_is_added_here(struct gin_i_place word, const gin_action_t *a)
{
    return a->kind == GIN_ACTION_ADD_AT && word.status == GIN_OK;
}

GIN_DEV int gin_i_put_resolved(const gin_t *g, const struct gin_i_group *q, gin_team_t team,
                               int peer, gin_at_t dst, gin_at_t src, uint64_t bytes,
                               const gin_action_t *remote, const gin_op_opt_t *opt)
{
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0))
        return world;
    int st = gin_i_dev_opt(g, opt);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int lsa = gin_i_dev_lsa(g, world);
    struct gin_i_place word = gin_i_dev_action(g, world, lsa, remote);
    struct gin_i_place from = gin_i_dev_local(g, src, bytes);
    struct gin_i_place to = gin_i_dev_place(g, lsa, dst, bytes, world != g->rank);
    if (GIN_UNLIKELY(gin_i_cannot(g, word) != GIN_OK))
        return gin_i_cannot(g, word);
    if (GIN_UNLIKELY(from.status < 0 || to.status < 0))
        return from.status < 0 ? from.status : to.status;
    int engine = from.status == GIN_I_ENGINE || to.status == GIN_I_ENGINE ||
                 gin_i_engine_is_better(g, q, src, bytes, remote->kind);
    uint64_t value = from.status == GIN_OK && bytes - 1 < 8 ? from.addr : 0;
    if (GIN_UNLIKELY(engine && value == 0 && !gin_i_engine_can(src)))
        return GIN_ENOTSUP;
    gin_i_group_sync(q);
    if (GIN_UNLIKELY(engine)) {
        if (q->lane != 0)
            return GIN_OK;
        int behind = gin_i_is_added_here(word, remote);
        st = gin_i_put_post(g->ring, gin_i_error_word(g), world, dst, src, value, bytes,
                            behind ? gin_no_action() : *remote, opt);
        return st == GIN_OK && behind ? gin_i_add_behind(g, word, remote) : st;
    }
    if (bytes > 8)
        gin_i_copy<GIN_I_OUT>(to.addr, from.addr, bytes, q->lane, q->lanes);
    else if (q->lane == 0)
        gin_i_value_out(to.addr, gin_i_word_load(from.addr, bytes), bytes);
    if (remote->kind != GIN_ACTION_NONE || opt != NULL)
        gin_i_group_sync(q);
    return q->lane == 0 ? gin_i_word_done(g, world, word, remote, opt) : (int)GIN_OK;
}

/*
 * By the leader, while the others wait for its verdict: they would only take turns with it. The
 * word's load goes out first, and the rest is found while it is under way. 0: not for here.
 */
GIN_DEV int gin_i_put_word(const gin_t *g, const struct gin_i_group *q, gin_team_t team, int peer,
                           gin_at_t dst, gin_at_t src, const gin_action_t *remote,
                           const gin_op_opt_t *opt)
{
    uint64_t value = 0;
    struct gin_i_proof p = {};
    uint64_t from = gin_i_quick_source(&p, g, src, 8);
    p.zero |= from & 7;
    if (GIN_LIKELY(gin_i_proof_holds(&p)))
        value = gin_i_ld_generic((const uint64_t *)from);
    struct gin_i_quick k = gin_i_quick_find(&p, g, team, peer, dst, 8, 8, remote, opt);
    if (GIN_UNLIKELY(!k.is))
        return 0;
    gin_i_quick_store(q, &k, value, remote);
    return 1;
}

/*
 * By the group: a copy into a peer's heap. 0: not for here, and nobody has met. Nothing of it can
 * fail, so the group needs no verdict of its leader. It does wait for the signal's way out: what a
 * lane does next in this context comes behind.
 */
GIN_DEV int gin_i_put_quick(const gin_t *g, const struct gin_i_group *q, gin_team_t team, int peer,
                            gin_at_t dst, gin_at_t src, uint64_t bytes, const gin_action_t *remote,
                            const gin_op_opt_t *opt)
{
    struct gin_i_proof p = {};
    uint64_t from = gin_i_quick_source(&p, g, src, bytes);
    struct gin_i_quick k = gin_i_quick_find(&p, g, team, peer, dst, bytes, 1, remote, opt);
    if (GIN_UNLIKELY(!k.is || bytes <= 8 || gin_i_engine_is_better(g, q, src, bytes, remote->kind)))
        return 0;
    gin_i_group_sync(q);
    gin_i_copy<GIN_I_OUT>(k.to, from, bytes, q->lane, q->lanes);
    gin_i_group_sync(q);
    if (remote->kind == GIN_ACTION_NONE)
        return 1;
    if (q->lane == 0)
        gin_i_quick_raise(q, &k, remote);
    gin_i_group_sync(q);
    return 1;
}

/* Whether the leader did it; also a barrier of the group. */
GIN_DEV int gin_i_group_did(const struct gin_i_group *q, int did)
{
    int left = gin_i_group_or(q, q->lane == 0 && !did);
    if (!gin_i_group_is_wide(q) && q->kind != GIN_GROUP_THREAD)
        __syncwarp(q->mask); /* a vote orders no memory */
    return !left;
}

GIN_DEV int gin_i_dev_put(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                          gin_at_t src, uint64_t bytes, const gin_action_t *remote,
                          const gin_op_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q), did = 0;
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (bytes == 8) {
        gin_i_group_sync(&q);
        if (q.lane == 0)
            did = gin_i_put_word(g, &q, team, peer, dst, src, remote, opt);
        if (GIN_LIKELY(gin_i_group_did(&q, did)))
            return GIN_OK;
    } else if (GIN_LIKELY(gin_i_put_quick(g, &q, team, peer, dst, src, bytes, remote, opt))) {
        return GIN_OK;
    }
    return gin_i_group_status(&q,
                              gin_i_put_resolved(g, &q, team, peer, dst, src, bytes, remote, opt));
}

/* Any value, by the leader. */
GIN_DEV int gin_i_value_resolved(const gin_t *g, gin_team_t team, int peer, gin_at_t dst,
                                 uint64_t value, uint64_t bytes, const gin_action_t *remote,
                                 const gin_op_opt_t *opt)
{
    if (GIN_UNLIKELY(bytes - 1 > 7))
        return GIN_ERANGE;
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0))
        return world;
    int st = gin_i_dev_opt(g, opt);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int lsa = gin_i_dev_lsa(g, world);
    struct gin_i_place word = gin_i_dev_action(g, world, lsa, remote);
    struct gin_i_place to = gin_i_dev_place(g, lsa, dst, bytes, world != g->rank);
    if (GIN_UNLIKELY(gin_i_cannot(g, word) != GIN_OK))
        return gin_i_cannot(g, word);
    if (GIN_UNLIKELY(to.status < 0))
        return to.status;
    if (GIN_UNLIKELY(to.status == GIN_I_ENGINE)) {
        struct gin_i_op o;
        gin_i_op_begin(&o, GIN_I_DESC_PUT_VALUE, world);
        o.dst_win = gin_i_desc_window(dst.win);
        o.dst_off = dst.off;
        o.size = bytes;
        o.immediate = value;
        int behind = gin_i_is_added_here(word, remote);
        if (!behind)
            gin_i_op_action(&o, remote);
        gin_i_op_options(&o, opt);
        st = gin_i_ring_post(g->ring, gin_i_error_word(g), &o, remote->kind != GIN_ACTION_NONE,
                             NULL);
        return st == GIN_OK && behind ? gin_i_add_behind(g, word, remote) : st;
    }
    gin_i_value_out(to.addr, value, bytes);
    return gin_i_word_done(g, world, word, remote, opt);
}

/* By the leader. */
GIN_DEV int gin_i_value_word(const gin_t *g, const struct gin_i_group *q, gin_team_t team, int peer,
                             gin_at_t dst, uint64_t value, uint64_t bytes,
                             const gin_action_t *remote, const gin_op_opt_t *opt)
{
    struct gin_i_proof p = {};
    struct gin_i_quick k = gin_i_quick_find(&p, g, team, peer, dst, 8, 8, remote, opt);
    if (GIN_LIKELY(bytes == 8 && k.is)) {
        gin_i_quick_store(q, &k, value, remote);
        return GIN_OK;
    }
    return gin_i_value_resolved(g, team, peer, dst, value, bytes, remote, opt);
}

GIN_DEV int gin_i_dev_put_value(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                                gin_at_t dst, uint64_t value, uint64_t bytes,
                                const gin_action_t *remote, const gin_op_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(&q);
    if (q.lane == 0)
        st = gin_i_value_word(g, &q, team, peer, dst, value, bytes, remote, opt);
    return gin_i_group_status(&q, st);
}

GIN_DEV int gin_i_dev_get(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                          gin_at_t dst, uint64_t bytes, const gin_op_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0))
        return world;
    st = gin_i_dev_opt(g, opt);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_place to = gin_i_dev_local(g, dst, bytes);
    struct gin_i_place from = gin_i_dev_place(g, gin_i_dev_lsa(g, world), src, bytes, 0);
    if (GIN_UNLIKELY(to.status < 0 || from.status < 0))
        return to.status < 0 ? to.status : from.status;
    if (GIN_UNLIKELY(from.status == GIN_I_ENGINE || to.status == GIN_I_ENGINE ||
                     gin_i_engine_is_better(g, &q, dst, bytes, GIN_ACTION_NONE))) {
        struct gin_i_op o;
        if (!gin_i_engine_can(dst))
            return GIN_ENOTSUP;
        gin_i_op_begin(&o, GIN_I_DESC_GET, world);
        o.src_win = gin_i_desc_window(src.win);
        o.src_off = src.off;
        o.size = bytes;
        gin_i_op_mine(&o, dst, &o.dst_win, &o.dst_off);
        gin_i_op_options(&o, opt);
        return gin_i_dev_engine(g, &q, &o, 1); /* what was read there must not be overtaken */
    }
    gin_i_group_sync(&q);
    if (bytes <= 8) {
        if (q.lane == 0)
            gin_i_word_in(to.addr, from.addr, bytes);
    } else {
        gin_i_copy<GIN_I_IN>(to.addr, from.addr, bytes, q.lane, q.lanes);
    }
    gin_i_group_sync(&q);
    if (q.lane == 0)
        gin_i_dev_count(g, opt);
    return GIN_OK;
}

/* By the leader. */
GIN_DEV int gin_i_signal_word(const gin_t *g, gin_team_t team, int peer, const gin_action_t *remote,
                              const gin_op_opt_t *opt)
{
    if (GIN_UNLIKELY(remote->kind == GIN_ACTION_NONE))
        return GIN_EINVAL;
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0))
        return world;
    int st = gin_i_dev_opt(g, opt);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_place word = gin_i_dev_action(g, world, gin_i_dev_lsa(g, world), remote);
    if (GIN_UNLIKELY(gin_i_cannot(g, word) != GIN_OK))
        return gin_i_cannot(g, word);
    st = gin_i_dev_signal_now(g, world, word, remote, gin_i_dev_scope(opt));
    gin_i_dev_count(g, opt);
    return st;
}

GIN_DEV int gin_i_dev_signal(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             const gin_action_t *remote, const gin_op_opt_t *opt)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(&q);
    if (q.lane == 0)
        st = gin_i_signal_word(g, team, peer, remote, opt);
    return gin_i_group_status(&q, st);
}

#endif
