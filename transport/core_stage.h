/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staging: what is shared by core_stage*.c. Memory that neither the CPU nor the network reaches is
 * moved by way of slabs, host memory that the network can read and the mover can copy from and to.
 *
 *   put   source -> my slab; a numbered message says where it is; the target reads it into a slab
 *         of its own, or into its final place, and has handled the message when it is there. The
 *         message's acknowledgement frees my slab.
 *   get   a message asks for it; the answer is such a message the other way.
 *
 * What fits into one message goes in it. Nobody writes into another one's slabs, so there are no
 * credits to be had but room of one's own. Messages are handled in their order, so signals, echoes
 * and atomics behind a put wait for its copy; copies that are under way at a time are not ordered,
 * and need not be.
 *
 * Slabs for what is read from peers become free by copies alone, and are never waited for by what
 * they wait for: so everything ends. Where an operation has failed, a slab stays taken as long as
 * network, mover or a live peer may still use it.
 */
#ifndef GI_TRANSPORT_CORE_STAGE_H
#define GI_TRANSPORT_CORE_STAGE_H

#include "transport/core_int.h"

#define GI_STAGE_SLAB  ((uint32_t)256 << 10)
#define GI_STAGE_CELL  256u /* of words, and of what fits a message */
#define GI_STAGE_SLABS 31u  /* of each kind */
#define GI_STAGE_CELLS 256u
#define GI_STAGE_DEEP  8u /* chunks under way per (context, peer), each way */

enum gi_stage_room {
    GI_STAGE_OUT, /* for peers to read */
    GI_STAGE_IN,  /* for what is read from them */
    GI_STAGE_OUT_CELL,
    GI_STAGE_IN_CELL,
    GI_STAGE_ROOMS
};

struct gi_stage_pool {
    char *base;
    uint32_t size, n_free;
    uint16_t free[GI_STAGE_CELLS];
};

struct gi_core_stage {
    struct gi_core_mover mover;
    struct gi_core_region *region; /* of all slabs, at all ranks */
    struct gi_core_region gpu;     /* gi_core_gpu() */
    char *memory;
    atomic_flag lock; /* of the pools and why: contexts have different owners */
    char why[140];    /* a copy failed for the first time; those after it fail of the same */
    struct gi_stage_pool pool[GI_STAGE_ROOMS];
};

enum gi_stage_state {
    GI_STAGE_IDLE,
    GI_STAGE_ROOM, /* lacks a slab, or the network's or mover's consent */
    GI_STAGE_READ, /* with the network */
    GI_STAGE_LAND, /* in the slab */
    GI_STAGE_COPY, /* with the mover */
    GI_STAGE_TAKE, /* a word, not yet mine to update */
    GI_STAGE_FROM, /* ... that it is */
    GI_STAGE_GET,  /* ... on its way to the cell */
    GI_STAGE_APPLY,
    GI_STAGE_PUT, /* ... and back */
    GI_STAGE_OVER
};

/* Bytes or an update on their way to memory of mine. */
struct gi_stage_pull {
    uint8_t state, room;
    bool device; /* `to` is out of the CPU's reach */
    bool stored; /* of a message: its bytes are there, its action is left */
    bool word;   /* an update */
    bool ours;   /* it failed for a copy that did */
    int status;
    uint32_t len;
    struct gi_core_peer *peer;
    struct gi_stage_get *get; /* it is a piece of a get, else of a put */
    uint64_t key, remote;     /* at the peer */
    const void *payload;      /* instead: in a message that is kept */
    char *to, *slab;          /* slab NULL: read straight to `to` */
    struct gi_net_mr *mr;
    uint64_t ticket, old;
    struct gi_core_update update;
};

/* A piece of a get under way. */
struct gi_stage_get {
    struct gi_core_op *op; /* NULL: unused */
    uint64_t offset;
    uint32_t len, turn;
    bool asked, answered;      /* by message */
    struct gi_stage_pull pull; /* where it is not */
};

/* A chunk of a put, or of an answer. */
struct gi_stage_out {
    uint8_t state, room; /* COPY: on its way to the slab; OVER: there, or sent */
    bool counted;        /* among its operation's pieces */
    bool answers;        /* it is an answer */
    char *slab;
    uint64_t ticket;
    struct gi_core_op *op; /* NULL: an answer */
    uint32_t window, len, fetch, turn;
    uint64_t off;
    uint64_t msg; /* that told of it */
};

/* Of (context, peer). */
struct gi_stage_peer {
    struct gi_core_peer *peer;
    struct gi_stage_peer *next;
    bool listed;
    uint32_t acked, sent, begun;            /* of out[]: free below, sent below, in use below */
    struct gi_stage_out out[GI_STAGE_DEEP]; /* modulo that */
    uint32_t asks_head, asks;               /* what it asked for */
    struct gi_core_msg ask[GI_STAGE_DEEP];
    struct gi_stage_get get[GI_STAGE_DEEP];
    uint64_t busy;                            /* of in[] */
    struct gi_stage_pull in[GI_CORE_CREDITS]; /* by number of the message */
};

/* A slab or cell, NULL: all are in use. */
char *gi_stage_take(struct gi_core_stage *s, enum gi_stage_room room);
void gi_stage_give(struct gi_core_stage *s, enum gi_stage_room room, char *at);
/* NULL: no memory. */
struct gi_stage_peer *gi_stage_peer(struct gi_core_peer *p);
/* The mover refuses or fails, as recorded just now. */
void gi_stage_failed(struct gi_core_stage *s);
/* ... of which the context hears: what its waits are for may never come. */
void gi_stage_fail_ctx(struct gi_core_ctx *ctx, int status);
void gi_core_stage_close(struct gi_core *core);
void gi_core_stage_ctx_close(struct gi_core_ctx *ctx); /* its lane is closed */

/* core_stage_out.c */
enum gi_core_way gi_core_stage_way(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                                   const struct gi_core_put *put);
int gi_core_stage_put(struct gi_core_ctx *ctx, struct gi_core_op *op);
int gi_core_stage_get(struct gi_core_ctx *ctx, struct gi_core_op *op);
void gi_core_stage_acked(struct gi_core_ctx *ctx, struct gi_core_peer *p);
/* A FETCH, in its turn: GIN_OK, or to be refused. */
int gi_core_stage_asked(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m);
/* What can be done now; how much was. */
int gi_stage_out_run(struct gi_core_ctx *ctx, struct gi_stage_peer *s);
void gi_stage_out_close(struct gi_core_ctx *ctx, struct gi_stage_peer *s);

/* core_stage_in.c: of a message that is kept where they answer GIN_EAGAIN, and then called again */
void gi_core_stage_begin(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m); /* it came early */
int gi_core_stage_staged(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m);
/* A PUT whose place `at` the CPU does not reach. */
int gi_core_stage_store(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m, void *at);
/* gi_core_apply(), of a word `at` that the CPU does not reach; looked at by the first call alone.
 */
int gi_core_stage_apply(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m, const struct gi_core_update *u, void *at,
                        uint64_t *old);
int gi_stage_look(const struct gi_core_peer *p, const struct gi_core_msg *m);
void gi_stage_forget(struct gi_core_peer *p, const struct gi_core_msg *m);
/* The network's word on a read; status GIN_OK or why not. */
void gi_core_stage_read(struct gi_core_ctx *ctx, struct gi_core_chunk *c, int status);
int gi_stage_in_run(struct gi_core_ctx *ctx, struct gi_stage_peer *s);
void gi_stage_in_close(struct gi_core_ctx *ctx, struct gi_stage_peer *s);
/* Begin a piece of a get that is read straight from its window. */
void gi_stage_pull_begin(struct gi_core_ctx *ctx, struct gi_stage_pull *k);

/* core_stage_word.c */
void gi_stage_word_step(struct gi_core_ctx *ctx, struct gi_stage_pull *k);
/* It came to its end, well or not: give back what it holds. */
void gi_stage_over(struct gi_core_ctx *ctx, struct gi_stage_pull *k, int status);
void gi_stage_spoilt(struct gi_core_ctx *ctx, struct gi_stage_pull *k, int status); /* by a copy */

/* Something of the message has begun. */
static inline bool gi_core_stage_has(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    return GIN_UNLIKELY(p->stage != NULL) && p->stage->busy >> (m->h.seq % GI_CORE_CREDITS) & 1;
}

/* 0, nothing of it has begun; GIN_EAGAIN, it has; 1: its bytes are there. */
static inline int gi_core_stage_look(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    return gi_core_stage_has(p, m) ? gi_stage_look(p, m) : 0;
}

/* Its update of a word has. */
static inline bool gi_core_stage_updates(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    return gi_core_stage_has(p, m) && p->stage->in[m->h.seq % GI_CORE_CREDITS].word;
}

/* It is handled. */
static inline void gi_core_stage_forget(struct gi_core_peer *p, const struct gi_core_msg *m)
{
    if (gi_core_stage_has(p, m))
        gi_stage_forget(p, m);
}

/* Nothing can be done until something comes from the network, which is told by a kick. */
static inline bool gi_stage_is_idle(const struct gi_stage_peer *s)
{
    bool idle = s->sent == s->begun && s->asks == 0;
    for (uint64_t left = s->busy; left != 0 && idle; left &= left - 1)
        idle = s->in[__builtin_ctzll(left)].state == GI_STAGE_READ;
    for (uint32_t i = 0; i < GI_STAGE_DEEP && idle; i++)
        idle = s->get[i].op == NULL || (s->get[i].asked && !s->peer->gone) ||
               s->get[i].pull.state == GI_STAGE_READ;
    return idle;
}

#endif
