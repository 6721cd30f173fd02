/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of signal.h in kernels on words of windows. Who updates a word is its one applier: this
 * GPU, or the owner's engine by descriptor. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_WORD_H
#define GINSHMEM_IMPL_DEV_WORD_H

#include <ginshmem/impl/dev/watch.h>

/* An atomic operation by descriptor, by one lane. */
GIN_DEV_CALL int gin_i_amo_engine(struct gin_i_ring *ring, const uint64_t *error, int world,
                                  gin_at_t at, int op, uint32_t bytes, uint64_t value,
                                  uint64_t expected, uint64_t timeout_ns, uint64_t *old)
{
    struct gin_i_op o;
    gin_i_op_begin(&o, GIN_I_DESC_AMO + op, world);
    o.flags = bytes == 4 ? (uint8_t)GIN_I_DESC_WORD32 : (uint8_t)0;
    o.dst_win = gin_i_desc_window(at.win);
    o.dst_off = at.off;
    o.size = bytes;
    o.immediate = value;
    o.value = expected;
    if (op < GIN_I_AMO_FETCH)
        return gin_i_ring_post(ring, error, &o, 0, NULL);
    return gin_i_ring_fetch(ring, error, &o, timeout_ns, old);
}

/* My 8-byte word at a place. *mine: I may update it, and need not ask its one applier. */
GIN_DEV int gin_i_dev_word(const gin_t *g, gin_at_t at, uint64_t **word, int *mine)
{
    if (GIN_UNLIKELY(g->flags & GIN_I_DC_DEAD))
        return GIN_ESTATE;
    struct gin_i_place p = gin_i_dev_local(g, at, 8);
    if (GIN_UNLIKELY(p.status != GIN_OK))
        return p.status < 0 ? p.status : (int)GIN_ENOTSUP;
    if (GIN_UNLIKELY((p.addr & 7) != 0))
        return GIN_EINVAL;
    *word = (uint64_t *)p.addr;
    *mine = (p.apply & GIN_I_APPLY_ATOMICS) != 0 || at.win.w == GIN_I_WINDOW_LOCAL;
    return GIN_OK;
}

/* Update my own word by its applier, with an operation that brings the value before. */
GIN_DEV int gin_i_dev_word_engine(const gin_t *g, gin_at_t at, int op, uint64_t value,
                                  uint64_t *old)
{
    if (g->ring == NULL)
        return GIN_ENOTSUP;
    return gin_i_amo_engine(g->ring, gin_i_error_word(g), g->rank, at, op, 8, value, 0,
                            gin_i_nc_u64(&g->dc->wait_timeout_ns), old);
}

GIN_OP uint64_t gin_read_signal_at(const gin_t *g, gin_at_t at)
{
    uint64_t *word;
    int mine, st = gin_i_dev_word(g, at, &word, &mine);
    gin_i_note(g, st);
    return st == GIN_OK ? gin_i_ld_acquire_sys(word) : 0;
}

GIN_DEV struct gin_i_watched gin_i_watch_word(const uint64_t *word)
{
    struct gin_i_watched w = {word, NULL, NULL, 0, 0};
    return w;
}

GIN_DEV int gin_i_wait_word(const gin_t *g, gin_group_t grp, gin_at_t at, uint32_t cmp,
                            uint64_t operand, const gin_wait_opt_t *opt)
{
    struct gin_i_group q;
    uint64_t *word;
    int mine, st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint32_t bits = gin_i_bits(opt);
    if (GIN_UNLIKELY(bits == 0))
        return GIN_EINVAL;
    st = gin_i_dev_word(g, at, &word, &mine);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gin_i_watched w = gin_i_watch_word(word);
    struct gin_i_cond c = gin_i_at_least(operand, bits);
    c.cmp = cmp;
    return gin_i_dev_wait(g, &q, &w, &c, opt);
}

GIN_OP int gin_wait_signal_at(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t least,
                              const gin_wait_opt_t *opt)
{
    return gin_i_wait_word(g, grp, at, GIN_I_ROLLING, least, opt);
}

GIN_OP int gin_wait_signal_until_at(const gin_t *g, gin_group_t grp, gin_at_t at, gin_cmp_t cmp,
                                    uint64_t operand, const gin_wait_opt_t *opt)
{
    return (uint32_t)cmp > GIN_CMP_LE ? (int)GIN_EINVAL
                                      : gin_i_wait_word(g, grp, at, (uint32_t)cmp, operand, opt);
}

/* Where an address of mine lies in a window, by that window, which says who updates the word. */
GIN_DEV gin_at_t gin_i_named(const gin_t *g, gin_at_t at)
{
    if (GIN_LIKELY(at.win.w != GIN_I_WINDOW_LOCAL) || (g->flags & GIN_I_DC_DEAD))
        return at;
    gin_at_t found = gin_i_dev_at(g, at.off);
    return found.win.w != 0 ? found : at;
}

GIN_OP int gin_consume_signal_at(const gin_t *g, gin_at_t at, uint64_t n)
{
    uint64_t *word, was;
    at = gin_i_named(g, at);
    int mine, st = gin_i_dev_word(g, at, &word, &mine);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_UNLIKELY(!mine))
        return gin_i_dev_word_engine(g, at, GIN_I_AMO_FETCH_ADD, 0 - n, &was);
    gin_i_red_add_relaxed_sys(word, 0 - n);
    return GIN_OK;
}

GIN_OP int gin_reset_signal_at(const gin_t *g, gin_at_t at, uint64_t *old)
{
    uint64_t *word;
    at = gin_i_named(g, at);
    int mine, st = gin_i_dev_word(g, at, &word, &mine);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint64_t was = 0;
    if (GIN_LIKELY(mine))
        was = gin_i_atom_exch_sys(word, 0);
    else
        st = gin_i_dev_word_engine(g, at, GIN_I_AMO_SWAP, 0, &was);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_fence_sys(); /* who raised it may be anybody */
    if (old != NULL)
        *old = was;
    return GIN_OK;
}

#endif
