/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between barrier_plan.c, which lays pools of barriers out, and barrier.c, which runs them.
 *
 * A barrier's epoch counts its rounds, from 1. Arriving never waits, and whether all have arrived
 * is one look at memory of mine or of my group's first rank: so arrive and wait can be pulled apart
 * with anything between them, a wait that timed out can be taken up again, and a rank that is not
 * running (more ranks than cores) holds up the others once, not once per round as in a
 * dissemination barrier.
 *
 * Flat, for up to GI_BARRIER_GROUP ranks: everyone stores the epoch into its place of everyone
 * else's inbox, one line per inbox, and waits until its own is full.
 *
 * Over the network, where a member is not load/store accessible: in step k everyone adds 1 to word
 * k of the rank 2^k further on, by a store or a message, and goes on to step k + 1 once its own
 * word k counts the epoch. log2(n) steps, and as many messages per rank; waiting drives the steps.
 *
 * Tree, above: ranks in groups count themselves in a counter of the group; who completes a group
 * counts for it in the next level; who completes the last stores the epoch into the release word
 * of every lowest group, on which its members wait.
 */
#ifndef GI_BARRIER_IMPL_H
#define GI_BARRIER_IMPL_H

#include "barrier.h"
#include "comm.h"

struct gi_devcomm;

#define GI_BARRIER_GROUP  8u  /* words in a line */
#define GI_BARRIER_LEVELS 11u /* 8^11 > 2^31 ranks */
#define GI_BARRIER_LINE   64u

/* A slot's lines. Of a tree: 0 release, 1 mine, 2 + level the group counters that I hold. */
enum { GI_LINE_INBOX = 0, GI_LINE_RELEASE = 0, GI_LINE_ARRIVED = 1, GI_LINE_COUNTERS = 2 };

/* My private side of one barrier index; a line, since indices belong to different threads. */
struct gi_barrier_round {
    _Alignas(GI_BARRIER_LINE) uint64_t epoch; /* of my last arrival */
    uint64_t done;                            /* of my last finished wait */
    uint32_t busy;                            /* 1: a thread is inside */
    uint32_t step, sent;                      /* network: steps passed, steps told to others */
};

/* A counter on my way up a tree. */
struct gi_barrier_step {
    char *counter; /* of index 0 */
    uint64_t full; /* who counts here */
};

/* The barriers of one team. */
struct gi_barrier_pool {
    uint32_t count;          /* indices; 0: none was asked for */
    uint32_t n, me;          /* team's size, my rank in it; n 0: I am no member */
    uint32_t levels;         /* 0: flat */
    int beyond;              /* world rank of a member that is not LSA, or -1 */
    uint32_t steps;          /* over the network: log2(n) rounded up; 0: all by load and store */
    uint64_t home;           /* heap offset of index 0's slot, the same at all ranks */
    const char *name, *what; /* in error texts; while waiting, with index, round and a rank */
    uint64_t slot;           /* bytes from one index to the next */
    char *mine;              /* my slot of index 0 */
    char *release;           /* tree: word of index 0 that I wait on */
    char **peers;            /* slots of index 0, by team rank */
    struct gi_barrier_step step[GI_BARRIER_LEVELS];
    struct gi_barrier_round *rounds;
    int *world_of; /* by team rank */
};

struct gi_barriers {
    gin_comm_t *comm;
    bool flat;                                      /* all of them */
    struct gi_barrier_pool fixed[GIN_BARRIER_TEAM]; /* by kind */
    uint32_t n_teams;
    struct gi_barrier_pool *teams;
};

/* ---- barrier_net.c ---- */
/* Over the network: tell and look as far as that goes. 1: all have arrived, 0: not yet, or a
 * recorded failure. */
int gi_barrier_net_step(struct gi_devcomm *d, const struct gi_barrier_pool *p,
                        struct gi_barrier_round *r, uint64_t off);
/* Team rank of whom the current step waits for. */
uint32_t gi_barrier_net_awaited(const struct gi_barrier_pool *p, const struct gi_barrier_round *r);

#endif
