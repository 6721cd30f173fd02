/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing descriptors as a kernel would: for tests of the engine; include it once. */
#ifndef GINSHMEM_TESTS_CUDA_ENGINE_TEST_H
#define GINSHMEM_TESTS_CUDA_ENGINE_TEST_H

#include <string.h>
#include <unistd.h>
#include "tests/cuda/cuda_test.h"

#define K 1024u
#define M (1024u * K)

/* A kernel's thread. */
struct producer {
    struct mp *mp;
    struct gin_i_ctx *ctx;
    struct gin_i_ring *ring;
};

static inline struct producer producer(struct mp *mp, uint32_t context)
{
    struct gin_i_ctx *c = (struct gin_i_ctx *)&cuda_dc(mp)->ctx[context];
    return (struct producer){mp, c, c->ring};
}

static inline bool wait_word(const uint64_t *word, uint64_t least)
{
    for (int i = 0; i < 20000 * MP_FACTOR && __atomic_load_n(word, __ATOMIC_ACQUIRE) < least; i++)
        usleep(500);
    return EXPECT(__atomic_load_n(word, __ATOMIC_ACQUIRE) >= least);
}

/* Words in a scrambled order. Returns the ticket. */
static inline uint64_t post(struct producer *p, const struct gin_i_op *op)
{
    struct gin_i_ring *r = p->ring;
    struct gin_i_desc d;
    uint64_t t = r->ticket++;
    if (t >= r->depth)
        wait_word(&r->host->consumed, t - r->depth + 1);
    gin_i_desc_pack(&d, op, gin_i_desc_phase(t, r->depth));
    struct gin_i_desc *slot = &r->slots[t & (r->depth - 1)];
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (unsigned i = 0; i < 8; i++)
        __atomic_store_n(&slot->w[(i * 3 + t) % 8], d.w[(i * 3 + t) % 8], __ATOMIC_RELAXED);
    return t;
}

static inline void finish(struct producer *p)
{
    wait_word(&p->ring->host->done, p->ring->ticket);
    EXPECT_EQ_U64(p->ring->host->settled, p->ring->ticket);
    EXPECT_EQ_U64(p->ring->host->consumed, p->ring->ticket);
}

/* The context is dead, and `done` operations are complete for ever. */
static inline void expect_dead(struct producer *p, int status, int rank, uint64_t done)
{
    wait_word(&p->ring->host->error, 1);
    EXPECT_EQ_INT((int32_t)p->ring->host->error, status);
    EXPECT_EQ_U64(p->ring->host->error >> 32, (uint64_t)rank);
    usleep(2000);
    EXPECT_EQ_U64(p->ring->host->done, done);
    EXPECT_EQ_U64(p->ring->host->settled, done);
}

/* A window's place in a descriptor. */
static inline void at(struct mp *mp, const void *ptr, uint32_t *win, uint64_t *off)
{
    gin_window_t w = gin_window_none();
    EXPECT_OK(gin_window_of(mp->comm, ptr, &w, off));
    *win = gin_i_desc_window(w);
}

static inline struct gin_i_op put_op(struct mp *mp, int peer, const void *dst, const void *src,
                                     uint64_t bytes)
{
    struct gin_i_op o = {.op = GIN_I_DESC_PUT, .peer = (uint32_t)peer, .size = bytes};
    at(mp, dst, &o.dst_win, &o.dst_off);
    at(mp, src, &o.src_win, &o.src_off);
    return o;
}

static inline void with_signal(struct gin_i_op *o, uint32_t id, uint64_t value, bool strong)
{
    o->flags |= (uint8_t)(GIN_I_DESC_SLOT | (strong ? GIN_I_DESC_STRONG : 0));
    o->sig_off = id;
    o->value = value;
}

#endif
