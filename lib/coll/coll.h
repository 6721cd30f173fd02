/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The room of collectives. Ranks meet by messages of pairs (link.c) that flow through a workspace
 * per index, of fixed size: a message is in its receiver's memory when it is seen there, and a pair
 * counts its messages at both ends. So nothing is agreed on beforehand, teams may change from one
 * call to the next, and consecutive calls need no barrier.
 *
 * Above it: plan.c says who is whose neighbour in a team; exchange.c moves and folds elements
 * between all members directly; two.c and its like by way of hosts, tree.c in few rounds, order.c
 * in the order of ranks; choose.c says which way a call goes; call.c checks and does one.
 */
#ifndef GI_COLL_H
#define GI_COLL_H

#include "colls.h"
#include "devcomm.h"
#include "transport/core.h"

#define GI_COLL_SLOTS  4u  /* messages of a pair under way, in either direction */
#define GI_COLL_INLINE 40u /* bytes of a message that lie beside its number */
#define GI_COLL_OUT    8u  /* messages on their way into the network */
#define GI_COLL_PLANS  4u
#define GI_COLL_REF    2048u /* bytes from which heap memory is read where it lies */
#define GI_COLL_LANE   8192u /* bytes from which another lane between hosts pays */
#define GI_COLL_DIRECT 2048u /* bytes up to which everybody folds everything himself */

/* Who sends to whom. */
enum gi_coll_way {
    GI_COLL_AUTO,  /* the cheapest one */
    GI_COLL_FLAT,  /* all to each other directly */
    GI_COLL_TREE,  /* as many rounds as the number of members has bits */
    GI_COLL_CHAIN, /* each to the next one */
    GI_COLL_HOSTS, /* by way of groups */
    GI_COLL_WAYS
};

enum gi_coll_kind {
    GI_COLL_SYNC,
    GI_COLL_BROADCAST,
    GI_COLL_ALLGATHER,
    GI_COLL_GATHER,
    GI_COLL_ALLTOALL,
    GI_COLL_ALLTOALLV,
    GI_COLL_ALLREDUCE,
    GI_COLL_REDUCE,
    GI_COLL_REDUCE_SCATTER,
    GI_COLL_SCAN,
    GI_COLL_SCAN_EXCLUSIVE,
    GI_COLL_KINDS
};

/* A message's place at its receiver, by load and store. Over the network it is a gin_i_cells. */
struct gi_coll_line {
    uint64_t seq;   /* of the message, from 1; stored last */
    uint64_t taken; /* so many of the receiver's messages has the sender taken */
    uint64_t ref;   /* 0, or 1 + the offset in the sender's heap where the bytes lie */
    unsigned char data[GI_COLL_INLINE];
};
_Static_assert(sizeof(struct gi_coll_line) == 64, "one transfer");

/* My private side of a pair. */
struct gi_coll_link {
    uint64_t sent, got; /* messages */
    uint64_t taken;     /* of those sent; as far as I know */
    uint64_t told;      /* so many of those got were told */
    uint64_t referred;  /* the last one sent by reference; its taker tells at once */
    char *peer;         /* its block; NULL: over the network */
    const char *heap;   /* its heap, likewise */
};

/* A team, as seen from this rank. Groups are its members that load and store to each other. */
struct gi_coll_plan {
    gin_team_t team; /* size 0: unused */
    int n, me;
    int groups, mine; /* their number; which is mine */
    int place;        /* mine in my group */
    int least, most;  /* members of the smallest group, and of the largest */
    int apart[2];     /* world ranks of two members that do not reach each other; -1: none */
    int *world;       /* by team rank */
    int *group;       /* by team rank */
    int *order;       /* team ranks by group, in each by rank */
    int *first;       /* by group: where it begins in order; one more */
    struct {
        uint64_t bytes; /* + 1; 0: not chosen yet */
        enum gi_coll_way way;
    } chosen[GI_COLL_KINDS]; /* the last time */
};

/* A message on its way into the network: from when it is posted until it has left or failed. */
struct gi_coll_out {
    struct gi_core_notice notice; /* first */
    uint32_t under_way;
    int to; /* world rank */
};

/* An index. */
struct gi_coll {
    _Alignas(64) uint32_t busy; /* a thread is inside */
    int broken;                 /* status of the call after which members are out of step */
    char *mine;                 /* the block of mine: all workspaces */
    uint64_t rest;              /* in it, what of the workspace is behind the lines */
    uint32_t cells;             /* number of the first line, and cell of the network's context */
    uint32_t next_plan, next_out;
    struct gi_coll_link *links; /* by world rank */
    struct gi_coll_plan plans[GI_COLL_PLANS];
    struct gi_coll_out out[GI_COLL_OUT];
    const char **refs; /* by team rank: bytes read where they lie */
    char *tmp[3];      /* of slot bytes each */
    int *ints;         /* of the plans */
    uint64_t calls, by[GI_COLL_WAYS];
};

struct gi_colls {
    struct gi_devcomm *d;
    uint32_t count;            /* indices */
    uint64_t slot;             /* bytes of a message at most */
    uint64_t each;             /* bytes of a workspace behind its lines */
    uint64_t off;              /* heap offset of the block */
    uint64_t slots_at, out_at; /* in a workspace, behind the words */
    uint64_t timeout_ns;
    bool rank_order; /* GINSHMEM_COLL_ORDER */
    struct gi_coll_choice *choice;
    struct gi_coll *index;
};

/* acc[i] = a[i] op b[i]; acc may be a or b, none need be aligned. */
typedef void (*gi_coll_fold_fn)(void *acc, const void *a, const void *b, size_t n);

/* One call on one rank. */
struct gi_coll_call {
    const gin_t *g;
    struct gi_colls *all;
    struct gi_coll *c;
    struct gi_coll_plan *p;
    enum gi_coll_kind kind;
    const char *name;
    uint32_t index;
    char *dst;
    const char *src;
    size_t count, size; /* elements, bytes of one */
    gin_type_t type;
    gin_reduction_t op;
    gi_coll_fold_fn fold;
    int root;
    const size_t *dst_counts, *dst_firsts, *src_counts, *src_firsts;
    bool in_place;
};

/* ---- fold.c ---- */
size_t gi_coll_size(gin_type_t type); /* 0: no type */
/* NULL: the type has no such operation. */
gi_coll_fold_fn gi_coll_fold(gin_type_t type, gin_reduction_t op);
/* n elements that change nothing. */
void gi_coll_neutral(void *dst, size_t n, gin_type_t type, gin_reduction_t op);

/* ---- plan.c ---- */
/* May two ranks that do not load and store to each other use the network? */
bool gi_coll_may_cross(const struct gi_devcomm *d, int a, int b);
/* The plan of a team that I am a member of, or NULL and recorded. */
struct gi_coll_plan *gi_coll_plan(struct gi_colls *all, struct gi_coll *c, gin_team_t team,
                                  const char *call);
static inline int gi_coll_members(const struct gi_coll_plan *p, int group)
{
    return p->first[group + 1] - p->first[group];
}
/* Team rank of a group's member. */
static inline int gi_coll_member(const struct gi_coll_plan *p, int group, int place)
{
    return p->order[p->first[group] + place];
}

/* ---- link.c: messages to and from team ranks other than me ---- */
/* Send up to slot bytes; the buffer may be used again. */
int gi_coll_send(struct gi_coll_call *o, int to, const void *bytes, size_t n);
/* May [p, p + n) be sent by reference? */
bool gi_coll_can_refer(const struct gi_coll_call *o, int to, const void *p, size_t n);
/* Send where n bytes lie; they stay until gi_coll_settle(). */
int gi_coll_refer(struct gi_coll_call *o, int to, const void *bytes);
int gi_coll_settle(struct gi_coll_call *o, int to);
/* Wait for the next message and see where its n bytes lie; until gi_coll_took(). *whole: by
 * reference. */
int gi_coll_recv(struct gi_coll_call *o, int from, size_t n, const void **bytes, bool *whole);
int gi_coll_took(struct gi_coll_call *o, int from, bool whole);
/* A call failed between its members: none of the index's can go on. */
void gi_coll_give_up(struct gi_coll_call *o, int status);

/* ---- hashes (FNV-1a, by words), from GI_COLL_HASH on ---- */
#define GI_COLL_HASH 14695981039346656037u
static inline uint64_t gi_coll_hash(uint64_t h, uint64_t v)
{
    return (h ^ v) * 1099511628211u;
}

/* ---- exchange.c ---- */
/* Bytes of a step of at most a slot, of so many in all. */
static inline size_t gi_coll_rest(size_t bytes, uint64_t at, uint64_t slot)
{
    size_t n = bytes > at ? bytes - at : 0;
    return n < slot ? n : slot;
}

/* What I send to, or get from, a team rank. */
struct gi_coll_part {
    char *at; /* of a source: not written */
    size_t bytes;
};
struct gi_coll_moves {
    struct gi_coll_part (*out)(const struct gi_coll_call *o, int r);
    struct gi_coll_part (*in)(const struct gi_coll_call *o, int r);
    bool fold;  /* all of `in` go to the same place, folded in rank order */
    bool refer; /* sources stay as they are until all is over */
};
/* gin_alltoallv()'s blocks. */
struct gi_coll_part gi_coll_counted_src(const struct gi_coll_call *o, int r);
struct gi_coll_part gi_coll_counted_dst(const struct gi_coll_call *o, int r);
int gi_coll_exchange(struct gi_coll_call *o, const struct gi_coll_moves *m);
int gi_coll_run_flat(struct gi_coll_call *o);
/* Bytes of elements that team rank r is in charge of where `count` are shared out among n; and
 * where they begin. */
size_t gi_coll_share(size_t count, size_t size, int n, int r, size_t *from);

/* ---- tree.c, order.c, two.c ---- */
int gi_coll_run_tree(struct gi_coll_call *o);
int gi_coll_run_chain(struct gi_coll_call *o);
int gi_coll_run_two(struct gi_coll_call *o);

#endif
