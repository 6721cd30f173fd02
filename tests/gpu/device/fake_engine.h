/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of the rings of a made-up communicator: one host thread that takes descriptors,
 * checks them against the windows it knows, and does what they say. As a model, not for speed: one
 * at a time, in order, so done and settled are one. A ring with an error rests.
 */
#ifndef GINSHMEM_TESTS_GPU_FAKE_ENGINE_H
#define GINSHMEM_TESTS_GPU_FAKE_ENGINE_H

#include "tests/gpu/device/fake.h"

/* Where a rank's part of a window lies, NULL for what the test does not have. */
static inline char *engine_place(struct fake *f, int rank, uint32_t name, uint64_t off,
                                 uint64_t bytes)
{
    uint32_t id = name & 0xfffff;
    uint64_t size = id == FAKE_HEAP ? FAKE_USER : FAKE_WINDOW;
    if (rank > f->n || name != gin_i_desc_window(fake_window(id)) || off > size ||
        bytes > size - off)
        return NULL;
    switch (id) {
    case FAKE_HEAP: return rank < f->n ? fake_heap(f, rank) + off : NULL;
    case FAKE_TABLE: return f->rank[rank].table + off;
    case FAKE_HOST: return f->rank[rank].host + off;
    case FAKE_FAR: return f->rank[rank].far + off;
    default: return NULL;
    }
}

/* Words of host memory, by the CPU's atomics; the test asks for no others. */
static inline uint64_t engine_amo(void *word, int op, int narrow, uint64_t v, uint64_t expected)
{
    uint64_t was = 0, now;
    bed_copy(&was, word, narrow ? 4 : 8);
    switch (op) {
    case GIN_I_AMO_SET:
    case GIN_I_AMO_SWAP: now = v; break;
    case GIN_I_AMO_ADD:
    case GIN_I_AMO_FETCH_ADD: now = was + v; break;
    case GIN_I_AMO_AND:
    case GIN_I_AMO_FETCH_AND: now = was & v; break;
    case GIN_I_AMO_OR:
    case GIN_I_AMO_FETCH_OR: now = was | v; break;
    case GIN_I_AMO_XOR:
    case GIN_I_AMO_FETCH_XOR: now = was ^ v; break;
    case GIN_I_AMO_CAS: now = was == expected ? v : was; break;
    default: now = was;
    }
    bed_copy(word, &now, narrow ? 4 : 8);
    return was;
}

static inline int engine_signal(struct fake *f, int c, const struct gin_i_op *o)
{
    if (o->flags & GIN_I_DESC_SLOT) {
        struct gin_i_cells *cell = &f->rank[o->peer].host_cells[c * FAKE_SIGNALS + (int)o->sig_off];
        __atomic_fetch_add(&cell->cpu, o->value, __ATOMIC_RELEASE);
        return 1;
    }
    if (!(o->flags & (GIN_I_DESC_ADD_AT | GIN_I_DESC_SET_AT)))
        return 1;
    char *word = engine_place(f, (int)o->peer, o->sig_win, o->sig_off, 8);
    if (word == NULL || ((o->flags & GIN_I_DESC_ADD_AT) && (o->sig_win & 0xfffff) == FAKE_HEAP))
        return 0; /* kernels add to words of GPU memory */
    engine_amo(word, o->flags & GIN_I_DESC_SET_AT ? GIN_I_AMO_SET : GIN_I_AMO_ADD, 0, o->value, 0);
    return 1;
}

/* 0: a descriptor without meaning. */
static inline int engine_do(struct fake *f, int r, int c, uint64_t ticket, const struct gin_i_op *o)
{
    int peer = (int)o->peer;
    char *dst = NULL, *src = NULL;
    switch (o->op) {
    case GIN_I_DESC_NOP: return 1;
    case GIN_I_DESC_PUT:
        dst = engine_place(f, peer, o->dst_win, o->dst_off, o->size);
        src = o->flags & GIN_I_DESC_LOCAL ? (char *)o->src_off
                                          : engine_place(f, r, o->src_win, o->src_off, o->size);
        break;
    case GIN_I_DESC_GET:
        src = engine_place(f, peer, o->src_win, o->src_off, o->size);
        dst = o->flags & GIN_I_DESC_LOCAL ? (char *)o->dst_off
                                          : engine_place(f, r, o->dst_win, o->dst_off, o->size);
        break;
    case GIN_I_DESC_PUT_VALUE:
        dst = engine_place(f, peer, o->dst_win, o->dst_off, o->size);
        src = (char *)&o->immediate;
        break;
    case GIN_I_DESC_SIGNAL:
    case GIN_I_DESC_QUIET: return engine_signal(f, c, o);
    default:
        if (o->op < GIN_I_DESC_AMO)
            return 0;
        dst = engine_place(f, peer, o->dst_win, o->dst_off, o->size);
        if (dst == NULL)
            return 0;
        uint64_t was = engine_amo(dst, o->op - GIN_I_DESC_AMO, o->flags & GIN_I_DESC_WORD32,
                                  o->immediate, o->value);
        if (o->op - GIN_I_DESC_AMO >= GIN_I_AMO_FETCH) {
            struct gin_i_reply *reply = &f->rank[r].replies[c][o->sig_off];
            __atomic_store_n(&reply->value, was, __ATOMIC_RELAXED);
            __atomic_store_n(&reply->seq, ticket + 1, __ATOMIC_RELEASE);
        }
        return 1;
    }
    if (dst == NULL || src == NULL)
        return 0;
    bed_copy(dst, src, o->size);
    return engine_signal(f, c, o);
}

/* One ring: takes a descriptor if all its words are there. */
static inline int engine_poll(struct fake *f, int r, int c)
{
    struct fake_rank *me = &f->rank[r];
    struct gin_i_ring_host *h = me->ring_host[c];
    struct gin_i_desc d;
    struct gin_i_op o;
    if (h == NULL || __atomic_load_n(&h->error, __ATOMIC_ACQUIRE) != 0)
        return 0;
    uint64_t t = h->consumed;
    for (int k = 0; k < GIN_I_DESC_WORDS; k++) {
        uint64_t *w = &me->slots[c][t & (FAKE_DEPTH - 1)].w[k];
        d.w[k] = __atomic_load_n(w, __ATOMIC_ACQUIRE);
        if (d.w[k] >> 63 != gin_i_desc_phase(t, FAKE_DEPTH))
            return 0;
    }
    gin_i_desc_unpack(&d, &o);
    __atomic_store_n(&h->consumed, t + 1, __ATOMIC_RELEASE);
    if (!engine_do(f, r, c, t, &o)) {
        __atomic_store_n(&h->error, (uint32_t)GIN_EINVAL | (uint64_t)r << 32, __ATOMIC_RELEASE);
        return 1;
    }
    if (o.flags & GIN_I_DESC_COUNTER)
        __atomic_fetch_add(&me->host_counters[c * FAKE_COUNTERS + (int)o.counter], 1,
                           __ATOMIC_RELEASE);
    __atomic_store_n(&h->done, t + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&h->settled, t + 1, __ATOMIC_RELEASE);
    return 1;
}

static inline void *engine_run(void *arg)
{
    struct fake *f = (struct fake *)arg;
    while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE)) {
        int busy = 0, held = __atomic_load_n(&f->hold[0], __ATOMIC_ACQUIRE) != 0;
        __atomic_store_n(&f->hold[1], (uint64_t)held, __ATOMIC_RELEASE);
        if (held) {
            sched_yield();
            continue;
        }
        for (int r = 0; r < f->n; r++)
            for (int c = 0; c < FAKE_CONTEXTS; c++)
                busy |= engine_poll(f, r, c);
        if (!busy)
            sched_yield();
    }
    return NULL;
}

#endif
