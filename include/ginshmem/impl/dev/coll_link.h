/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of pairs (struct gin_i_colls). A group's lanes share the peers out: a lane alone keeps
 * the links of its peers, waits for them and tells them, while the whole group moves the bytes. So
 * what a call waits for is waited for at once, and between two meetings of the group everything is
 * either a lane's or everybody's. A failure is taken down in the index and found by all at the next
 * meeting. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_COLL_LINK_H
#define GINSHMEM_IMPL_DEV_COLL_LINK_H

#include <ginshmem/impl/dev/barrier.h>

#define GIN_I_COLL_REF 1024u /* bytes from which heap memory is read where it lies */

/* What a program asks for; kernels of the library, too. */
struct gin_i_coll_args {
    gin_team_t team;
    gin_at_t dst, src;
    uint64_t count;
    const size_t *dst_counts, *dst_firsts, *src_counts, *src_firsts;
    uint32_t kind, index;
    int32_t type, op, root;
};

/* A call as one lane sees it. */
struct gin_i_coll_call {
    gin_t g;
    struct gin_i_group q;
    struct gin_i_coll_args a;
    const struct gin_i_colls *all; /* constant */
    struct gin_i_coll *c;
    struct gin_i_coll_link *links;
    uint64_t *from, *whole; /* struct gin_i_coll.from */
    struct gin_i_ring *ring;
    uint64_t slot, mine; /* bytes; address of my workspace */
    uint64_t dst, src;   /* addresses */
    uint32_t size, n, me, heap;
    int in_place, refer;  /* sources stay as they are: they may be read where they lie */
    int posted, referred; /* by this lane */
};

/* ---- peers ---- */

/* The peer that is `i` places to the right of me. */
GIN_DEV uint32_t gin_i_coll_peer(const struct gin_i_coll_call *o, uint32_t i)
{
    uint32_t r = o->me + i;
    return r < o->n ? r : r - o->n;
}

GIN_DEV int gin_i_coll_world(const struct gin_i_coll_call *o, uint32_t r)
{
    return gin_i_dev_world(&o->g, o->a.team, (int)r);
}

/* Its workspace, 0: through the engine. */
GIN_DEV uint64_t gin_i_coll_near(const struct gin_i_coll_call *o, int world)
{
    int lsa = gin_i_dev_lsa(&o->g, world);
    return gin_i_in_reach(lsa)
               ? o->g.lsa_base + (uint64_t)(uint32_t)lsa * o->g.lsa_stride +
                     gin_i_nc_u64(&o->all->off) + o->a.index * gin_i_nc_u64(&o->all->each)
               : 0;
}

/* GIN_OK: messages reach it. */
GIN_DEV int gin_i_coll_reaches(const struct gin_i_coll_call *o, int world)
{
    const uint32_t *kernels = (const uint32_t *)gin_i_nc_u64(&o->all->kernels);
    int lsa = gin_i_dev_lsa(&o->g, world);
    if (gin_i_nc_u32(&kernels[world]) == 0 || lsa == GIN_I_NOT_LSA ||
        (lsa >= 0 && (lsa & GIN_I_LSA_NO_GPU)))
        return GIN_ENOTSUP;
    return gin_i_in_reach(lsa) || (o->ring != NULL && gin_i_nc_u64(&o->all->words) != 0)
               ? GIN_OK
               : (int)GIN_ENOTSUP;
}

GIN_DEV struct gin_i_coll_line *gin_i_coll_line_of(uint64_t workspace, int sender, uint64_t k)
{
    return (struct gin_i_coll_line *)workspace + (uint32_t)sender * GIN_I_COLL_SLOTS + k;
}

GIN_DEV uint64_t gin_i_coll_slot_of(const struct gin_i_coll_call *o, uint64_t workspace, int sender,
                                    uint64_t k)
{
    return workspace + gin_i_nc_u64(&o->all->slots_at) +
           ((uint32_t)sender * GIN_I_COLL_SLOTS + k) * o->slot;
}

GIN_DEV uint64_t *gin_i_coll_taken_of(const struct gin_i_coll_call *o, uint64_t workspace,
                                      int taker)
{
    return (uint64_t *)(workspace + gin_i_nc_u64(&o->all->taken_at)) + taker;
}

/* A pair's word in host memory: its number among those of an index's owner. */
GIN_DEV uint64_t gin_i_coll_word(const struct gin_i_coll_call *o, int other, uint64_t k)
{
    return ((uint64_t)o->a.index * gin_i_nc_u32(&o->all->n) + (uint32_t)other) * GIN_I_COLL_WORDS +
           k;
}

GIN_DEV const uint64_t *gin_i_coll_word_of_mine(const struct gin_i_coll_call *o, int other,
                                                uint64_t k)
{
    return (const uint64_t *)gin_i_nc_u64(&o->all->words) + gin_i_coll_word(o, other, k);
}

/* The same word at a peer, of which I am the other one. */
GIN_DEV gin_action_t gin_i_coll_raise(const struct gin_i_coll_call *o, uint64_t k, uint64_t value)
{
    gin_action_t a = gin_no_action();
    a.kind = GIN_ACTION_ADD_AT;
    a.value = value;
    a.at.win.w = 0; /* by its name, see gin_i_coll_post() */
    a.at.off = gin_i_nc_u64(&o->all->words_off) + 8 * gin_i_coll_word(o, o->g.rank, k);
    return a;
}

/* ---- links, as this lane keeps them ---- */

GIN_DEV uint64_t gin_i_link_get(const uint64_t *field)
{
    return gin_i_ld_relaxed_gpu(field);
}

GIN_DEV void gin_i_link_set(uint64_t *field, uint64_t v)
{
    gin_i_st_relaxed_gpu(field, v);
}

/* ---- waiting ---- */

GIN_DEV_CALL int gin_i_coll_wait_long(const struct gin_i_coll_call *o, const uint64_t *word,
                                      uint64_t least)
{
    struct gin_i_pause p =
        gin_i_pause_begin(gin_i_error_word(&o->g), o->ring != NULL ? &o->ring->host->error : NULL,
                          gin_i_nc_u64(&o->all->timeout_ns));
    int st = GIN_OK;
    while ((int64_t)(gin_i_ld_relaxed_sys(word) - least) < 0) {
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        if (gin_i_ld_relaxed_gpu(&o->c->broken) != 0) /* another lane has failed */
            return GIN_OK;
        st = gin_i_pause_step(&p, 1);
    }
    return GIN_OK;
}

GIN_DEV int gin_i_coll_wait(const struct gin_i_coll_call *o, const uint64_t *word, uint64_t least)
{
    int st = GIN_OK;
    uint32_t polls = 0;
#pragma unroll 1
    while ((int64_t)(gin_i_ld_relaxed_sys(word) - least) < 0)
        if (++polls == GIN_I_BARRIER_POLLS) {
            st = gin_i_coll_wait_long(o, word, least);
            break;
        }
    gin_i_ld_acquire_sys(word);
    return st;
}

/* The group meets, and finds out whether a lane has failed. */
GIN_DEV int gin_i_coll_meet(const struct gin_i_coll_call *o, int st)
{
    if (GIN_UNLIKELY(st != GIN_OK))
        gin_i_atom_cas_gpu(&o->c->broken, 0, (uint32_t)st);
    int failed = gin_i_group_or(&o->q, st != GIN_OK);
    gin_i_group_order(&o->q);
    return GIN_LIKELY(!failed) ? GIN_OK : gin_i_error_of(gin_i_ld_relaxed_gpu(&o->c->broken));
}

/* ---- sending, by the peer's lane ---- */

/* Wait until `least` of my messages were taken. */
GIN_DEV int gin_i_coll_settle(const struct gin_i_coll_call *o, int world, uint64_t least)
{
    struct gin_i_coll_link *l = &o->links[world];
    if ((int64_t)(gin_i_link_get(&l->taken) - least) >= 0)
        return GIN_OK;
    const uint64_t *word = gin_i_coll_near(o, world) != 0
                               ? gin_i_coll_taken_of(o, o->mine, world)
                               : gin_i_coll_word_of_mine(o, world, GIN_I_COLL_SLOTS);
    int st = gin_i_coll_wait(o, word, least);
    gin_i_link_set(&l->taken, gin_i_ld_relaxed_sys(word));
    return st;
}

GIN_DEV int gin_i_coll_room(const struct gin_i_coll_call *o, int world)
{
    uint64_t sent = gin_i_link_get(&o->links[world].sent);
    return sent < GIN_I_COLL_SLOTS ? GIN_OK
                                   : gin_i_coll_settle(o, world, sent + 1 - GIN_I_COLL_SLOTS);
}

/* Near, with room: what the group has stored, or where it lies. */
GIN_DEV void gin_i_coll_tell(const struct gin_i_coll_call *o, int world, uint64_t ref)
{
    struct gin_i_coll_link *l = &o->links[world];
    uint64_t sent = gin_i_link_get(&l->sent);
    struct gin_i_coll_line *line =
        gin_i_coll_line_of(gin_i_coll_near(o, world), o->g.rank, sent % GIN_I_COLL_SLOTS);
    gin_i_st_relaxed_sys(&line->ref, ref);
    gin_i_st_release_sys(&line->seq, sent + 1);
    gin_i_link_set(&l->sent, sent + 1);
}

/* By descriptor: a put of up to a slot from a place of mine, or nothing but the action. */
GIN_DEV_CALL int gin_i_coll_post(struct gin_i_coll_call *o, int world, gin_at_t src, uint64_t slot,
                                 uint64_t bytes, const gin_action_t *a)
{
    struct gin_i_op op;
    gin_window_t heap;
    heap.w = o->g.heap_handle;
    gin_i_op_begin(&op, bytes != 0 ? GIN_I_DESC_PUT : GIN_I_DESC_SIGNAL, world);
    if (bytes != 0) {
        op.dst_win = gin_i_desc_window(heap);
        op.dst_off = slot;
        op.size = bytes;
        gin_i_op_mine(&op, src, &op.src_win, &op.src_off);
    }
    op.flags |= GIN_I_DESC_ADD_AT;
    op.value = a->value;
    op.sig_win = gin_i_nc_u32(&o->all->words_win);
    op.sig_off = a->at.off;
    o->posted = 1;
    return gin_i_ring_post(o->ring, gin_i_error_word(&o->g), &op, 1, NULL);
}

/* Far, with room. */
GIN_DEV int gin_i_coll_send_far(struct gin_i_coll_call *o, int world, gin_at_t src, uint64_t bytes)
{
    struct gin_i_coll_link *l = &o->links[world];
    uint64_t sent = gin_i_link_get(&l->sent), k = sent % GIN_I_COLL_SLOTS;
    uint64_t base = gin_i_nc_u64(&o->all->off) + o->a.index * gin_i_nc_u64(&o->all->each);
    gin_action_t a = gin_i_coll_raise(o, k, 1);
    int st = gin_i_coll_post(o, world, src, gin_i_coll_slot_of(o, base, o->g.rank, k), bytes, &a);
    if (st == GIN_OK)
        gin_i_link_set(&l->sent, sent + 1);
    return st;
}

/* What this lane has posted may be overwritten. */
GIN_DEV int gin_i_coll_flush(struct gin_i_coll_call *o)
{
    if (!o->posted)
        return GIN_OK;
    o->posted = 0;
    return gin_i_ring_flush(o->ring, gin_i_error_word(&o->g), gin_i_nc_u64(&o->all->timeout_ns), 0);
}

/* ---- receiving, by the peer's lane ---- */

/* Wait for the next message: where its bytes lie. *whole: by reference. */
GIN_DEV int gin_i_coll_recv(const struct gin_i_coll_call *o, int world, uint64_t *bytes, int *whole)
{
    uint64_t got = gin_i_link_get(&o->links[world].got), k = got % GIN_I_COLL_SLOTS, ref = 0;
    uint64_t near = gin_i_coll_near(o, world);
    int st;
    if (near != 0) {
        const struct gin_i_coll_line *line = gin_i_coll_line_of(o->mine, world, k);
        st = gin_i_coll_wait(o, &line->seq, got + 1);
        ref = gin_i_ld_relaxed_sys(&line->ref);
    } else {
        st = gin_i_coll_wait(o, gin_i_coll_word_of_mine(o, world, k), got / GIN_I_COLL_SLOTS + 1);
    }
    int lsa = gin_i_dev_lsa(&o->g, world);
    *whole = ref != 0;
    *bytes = ref != 0 ? o->g.lsa_base + (uint64_t)(uint32_t)lsa * o->g.lsa_stride + ref - 1
                      : gin_i_coll_slot_of(o, o->mine, world, k);
    return st;
}

/* Told at once where the sender waits for it, else for half of the places. */
GIN_DEV int gin_i_coll_took(struct gin_i_coll_call *o, int world, int whole)
{
    struct gin_i_coll_link *l = &o->links[world];
    uint64_t got = gin_i_link_get(&l->got) + 1, told = gin_i_link_get(&l->told);
    int st = GIN_OK;
    gin_i_link_set(&l->got, got);
    if (!whole && got - told < GIN_I_COLL_SLOTS / 2)
        return GIN_OK;
    uint64_t near = gin_i_coll_near(o, world);
    if (near != 0) {
        gin_i_st_release_sys(gin_i_coll_taken_of(o, near, o->g.rank), got);
    } else {
        gin_action_t a = gin_i_coll_raise(o, GIN_I_COLL_SLOTS, got - told);
        st = gin_i_coll_post(o, world, o->a.src, 0, 0, &a);
    }
    gin_i_link_set(&l->told, got);
    return st;
}

#endif
