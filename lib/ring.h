/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of descriptors as its consumer sees it (impl/desc.h): taking them out in the order of
 * their tickets, and telling the producers how far that and their completion have come. One thread
 * at a time.
 */
#ifndef GI_RING_H
#define GI_RING_H

#include <stdbool.h>
#include <ginshmem/impl/desc.h>

#define GI_RING_DEPTH   1024u /* slots, unless asked for otherwise */
#define GI_RING_DEEPEST 65536u
#define GI_RING_REPLIES 64u

struct gi_request; /* engine_ops.c: a descriptor under way */
struct gi_far;     /* engine_far.c: a kernels' ring's way to the network */

struct gi_ring {
    struct gin_i_desc *slots;
    struct gin_i_ring_host *host;
    struct gin_i_reply *replies;
    uint64_t *counters;
    uint32_t depth, n_counters, n_signals;
    uint32_t context;
    uint64_t taken;                  /* tickets taken out of their slots */
    uint64_t done;                   /* of which so many, the first ones, are complete, */
    uint64_t settled;                /* and so many at their targets, too */
    struct gi_request *first, *last; /* tickets done .. taken - 1, where there are any */
    uint32_t held;                   /* how many those are */
    bool fenced;                     /* nothing is taken before all of them are complete */
    bool dead;                /* nothing is taken any more, for ticket `failed` has failed: */
    uint64_t failed;          /* it and what is behind it never count as done */
    uint64_t mark_from, mark; /* engine_ring.c: of a wait for what was posted before */
    bool marked;
    struct gi_far *far; /* NULL: none */
};

/* Where the parts of a ring lie in its piece of pinned memory; `bytes` is the size of the piece. */
struct gi_ring_plan {
    uint64_t host, replies, counters, slots, bytes;
};
struct gi_ring_plan gi_ring_plan(uint32_t depth, uint32_t n_counters);
void gi_ring_init(struct gi_ring *r, char *memory, uint32_t depth, uint32_t n_counters);
uint32_t gi_ring_depth(uint32_t wish); /* a power of two that serves it; 0: the default */

bool gi_ring_has_next(const struct gi_ring *r); /* or a part of it */
/* Take the next descriptor, if it is there whole; the slot is free after the next tell. */
bool gi_ring_next(struct gi_ring *r, struct gin_i_op *op);
/* Show the producers what was taken and completed. */
void gi_ring_tell(struct gi_ring *r);
/* The context is dead from a ticket on: whoever waits for it or a later one learns it from the
 * error, of which the first one stays. */
void gi_ring_kill(struct gi_ring *r, uint64_t ticket, int status, int rank);
/* A producer that could not publish its ticket has left an error: nothing more is taken. */
void gi_ring_look(struct gi_ring *r);

static inline uint64_t gi_error_word(int status, int rank)
{
    return (uint64_t)(uint32_t)status | (uint64_t)(uint32_t)rank << 32;
}

/* Unless there is one: the first one stays, whoever else comes meanwhile. */
static inline void gi_error_set(uint64_t *word, int status, int rank)
{
    uint64_t none = 0;
    __atomic_compare_exchange_n(word, &none, gi_error_word(status, rank), false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

#endif
