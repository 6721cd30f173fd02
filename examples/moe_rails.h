/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What 21_moe_throughput moves along rails and inside a host: tokens as parcels between hosts, in
 * chunks; from there into the batches of experts; and the sums of what became of them back.
 */
#ifndef MOE_RAILS_H
#define MOE_RAILS_H

#include "moe_layer.h"

#define CHUNK 32 /* tokens */

enum { THERE = 0, BACK = 1 }; /* signals: 2 * host + one of these */

struct parcel {                     /* a token on its way to a host */
    int32_t expert[TOP], slot[TOP]; /* in the batch of its rank, -1: on another host */
    float weight[TOP];
    moe_row_t x;
};

struct work {           /* a token in a batch */
    int32_t near, part; /* whose part the result is */
    moe_row_t x;
};

struct box {
    size_t *n, *come;        /* of each host: tokens to there, from there */
    int32_t *home;           /* [host][most]: which of mine they are */
    struct parcel *out, *in; /* [host][most]: to there, from there */
    moe_row_t *part;         /* [host][most][TOP]: what experts made of these */
    moe_row_t *sum, *back;   /* [host][most]: their sums, those of mine */
    struct work *batch;
};

static inline size_t throughput_bytes(const struct moe *m)
{
    size_t tokens = (size_t)m->rail.size * (size_t)m->most;
    return tokens * (2 * sizeof(struct parcel) + (TOP + 2) * sizeof(moe_row_t)) +
           (size_t)m->size * (size_t)m->most * TOP * sizeof(struct work);
}

static inline struct box boxes(const struct moe *m, void *memory)
{
    size_t tokens = (size_t)m->rail.size * (size_t)m->most;
    struct box b = {.out = memory};
    b.in = b.out + tokens;
    b.part = (void *)(b.in + tokens);
    b.sum = b.part + tokens * TOP;
    b.back = b.sum + tokens;
    b.batch = (void *)(b.back + tokens);
    return b;
}

static inline int host_of(const struct moe *m, int expert)
{
    return m->spots[expert / LOCAL].host;
}

/* Is the k-th expert of a token the first one on its host? */
static inline int is_first(const struct moe *m, int t, int k)
{
    for (int i = 0; i < k; i++)
        if (host_of(m, m->to[t][i]) == host_of(m, m->to[t][k]))
            return 0;
    return 1;
}

/* The things of a host, of [host][most] of them. */
#define of_host(m, things, host) ((things) + (size_t)(host) * (size_t)(m)->most)

/* Things of a host, of `bytes` bytes each, to the place for mine at the rank of my rail there. */
static inline void send_chunk(const struct moe *m, int host, const void *there, const void *mine,
                              size_t bytes, size_t from, size_t n, uint32_t what)
{
    const char *to = (const char *)there + ((size_t)(m->rail.rank * m->most) + from) * bytes;
    const char *at = (const char *)mine + ((size_t)(host * m->most) + from) * bytes;
    CHECK(gin_put(&m->g, gin_thread(), m->rail, host, gin_at_ptr(&m->g, to), gin_at_local(at),
                  n * bytes, gin_strong_inc(2 * (uint32_t)m->rail.rank + what)));
}

static inline void await_chunk(const struct moe *m, int host, uint32_t what)
{
    uint32_t id = 2 * (uint32_t)host + what;
    CHECK(gin_increase_shadow(&m->g, id, 1));
    CHECK(gin_wait_signal_meet_shadow(&m->g, gin_thread(), id, NULL));
}

static inline size_t chunk_of(size_t from, size_t n)
{
    return n - from < CHUNK ? n - from : CHUNK;
}

/* All stores of neighbours that came here are done. */
static inline void meet(const struct moe *m)
{
    CHECK(
        gin_barrier(&m->g, gin_thread(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
}

/* My neighbour's address of what I have at p. */
static inline void *near_ptr(const struct moe *m, int near, const void *p)
{
    return gin_lsa_ptr(&m->g, near, gin_at_ptr(&m->g, p));
}

/* Store tokens of a host into the batches of their experts. */
static inline void hand_on(const struct moe *m, const struct box *b, const struct parcel *in,
                           int host, size_t from, size_t n)
{
    const struct parcel *p = of_host(m, in, host) + from;
    for (size_t i = from; i < from + n; i++, p++)
        for (int k = 0; k < TOP; k++) {
            if (p->slot[k] < 0)
                continue;
            int near = m->spots[p->expert[k] / LOCAL].near;
            struct work *w = near_ptr(m, near, b->batch + p->slot[k]);
            w->near = m->lsa.rank;
            w->part = (host * m->most + (int)i) * TOP + k;
            memcpy(w->x, p->x, sizeof(moe_row_t));
        }
}

/* Of tokens of a host, what the experts made of them here. */
static inline void sum_up(const struct moe *m, const struct box *b, const struct parcel *in,
                          int host, size_t from, size_t n)
{
    const struct parcel *p = of_host(m, in, host) + from;
    moe_row_t *sum = of_host(m, b->sum, host) + from;
    const moe_row_t *part = b->part + (of_host(m, b->sum, host) + from - b->sum) * TOP;
    memset(sum, 0, n * sizeof(moe_row_t));
    for (; n > 0; n--, p++, sum++, part += TOP)
        for (int k = 0; k < TOP; k++)
            if (p->slot[k] >= 0)
                moe_add_row(*sum, p->weight[k], part[k]);
}

#endif
