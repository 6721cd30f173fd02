/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIN operations: put, get, signal and their completion.
 *
 * Rules that hold for all of them. `g` is a context bound by gin_open(); any thread may use any
 * context. `grp` says who calls together; a host caller is a thread. Every operation returns a
 * status, the same for the whole group; a refused operation has done nothing. Nothing orders two
 * operations except strong signals, fences, quiet and barriers; ginshmem_memory_model(7) has the
 * whole story.
 */
#ifndef GINSHMEM_GIN_H
#define GINSHMEM_GIN_H

#include <ginshmem/devcomm.h>
#include <ginshmem/impl/state.h>

/* ---- groups ---- */

enum gin_group_kind {
    GIN_GROUP_THREAD = 0,
    GIN_GROUP_WARP = 1,
    GIN_GROUP_BLOCK = 2,
    GIN_GROUP_TILE = 3,     /* aligned part of a warp; arg: its size */
    GIN_GROUP_LANES = 4,    /* any lanes of one warp; arg: mask */
    GIN_GROUP_WARP_SPAN = 5 /* warps first .. first+count-1; arg: first | count << 8 | id << 16 */
};

/* Who calls an operation together: same arguments, all of them. */
typedef struct gin_group {
    uint32_t kind;
    uint32_t arg;
} gin_group_t;

GIN_VALUE gin_group_t gin_group_of(enum gin_group_kind kind, uint32_t arg)
{
    gin_group_t g;
    g.kind = (uint32_t)kind;
    g.arg = arg;
    return g;
}

GIN_VALUE gin_group_t gin_thread(void)
{
    return gin_group_of(GIN_GROUP_THREAD, 0);
}

GIN_VALUE gin_group_t gin_warp(void)
{
    return gin_group_of(GIN_GROUP_WARP, 0);
}

GIN_VALUE gin_group_t gin_block(void)
{
    return gin_group_of(GIN_GROUP_BLOCK, 0);
}

GIN_VALUE gin_group_t gin_tile(uint32_t size)
{
    return gin_group_of(GIN_GROUP_TILE, size);
}

GIN_VALUE gin_group_t gin_lanes(uint32_t mask)
{
    return gin_group_of(GIN_GROUP_LANES, mask);
}

GIN_VALUE gin_group_t gin_warp_span(uint32_t first, uint32_t count, uint32_t id)
{
    return gin_group_of(GIN_GROUP_WARP_SPAN, first | count << 8 | id << 16);
}

/* ---- remote and local actions ---- */

enum gin_action_kind {
    GIN_ACTION_NONE = 0,
    GIN_ACTION_ADD = 1,    /* slot signal += value */
    GIN_ACTION_ADD_AT = 2, /* 8-byte word of a window += value */
    GIN_ACTION_SET_AT = 3  /* 8-byte word of a window = value */
};

/*
 * What happens at the peer once a put's bytes (weak) or all earlier operations of the context to
 * that peer (strong) are visible there.
 */
typedef struct gin_action {
    uint16_t kind;   /* enum gin_action_kind */
    uint16_t strong; /* 1: covers all earlier puts and signals of this context to that peer */
    uint32_t id;     /* slot signal */
    uint64_t value;
    gin_at_t at; /* the word, for the _AT kinds */
} gin_action_t;

GIN_VALUE gin_action_t gin_i_action(unsigned kind, unsigned strong, uint32_t id, uint64_t value,
                                    gin_at_t at)
{
    gin_action_t a;
    a.kind = (uint16_t)kind;
    a.strong = (uint16_t)strong;
    a.id = id;
    a.value = value;
    a.at = at;
    return a;
}

GIN_VALUE gin_action_t gin_no_action(void)
{
    return gin_i_action(GIN_ACTION_NONE, 0, 0, 0, gin_at(gin_window_none(), 0));
}

/* Slot signal `id` of the same context at the peer: += v. */
GIN_VALUE gin_action_t gin_weak_add(uint32_t id, uint64_t v)
{
    return gin_i_action(GIN_ACTION_ADD, 0, id, v, gin_at(gin_window_none(), 0));
}

GIN_VALUE gin_action_t gin_weak_inc(uint32_t id)
{
    return gin_weak_add(id, 1);
}

GIN_VALUE gin_action_t gin_strong_add(uint32_t id, uint64_t v)
{
    return gin_i_action(GIN_ACTION_ADD, 1, id, v, gin_at(gin_window_none(), 0));
}

GIN_VALUE gin_action_t gin_strong_inc(uint32_t id)
{
    return gin_strong_add(id, 1);
}

/* An ordinary 8-byte word of a window at the peer, 8-byte aligned: += v, = v. */
GIN_VALUE gin_action_t gin_weak_add_at(gin_at_t at, uint64_t v)
{
    return gin_i_action(GIN_ACTION_ADD_AT, 0, 0, v, at);
}

GIN_VALUE gin_action_t gin_weak_inc_at(gin_at_t at)
{
    return gin_weak_add_at(at, 1);
}

GIN_VALUE gin_action_t gin_strong_add_at(gin_at_t at, uint64_t v)
{
    return gin_i_action(GIN_ACTION_ADD_AT, 1, 0, v, at);
}

GIN_VALUE gin_action_t gin_strong_inc_at(gin_at_t at)
{
    return gin_strong_add_at(at, 1);
}

GIN_VALUE gin_action_t gin_weak_set_at(gin_at_t at, uint64_t v)
{
    return gin_i_action(GIN_ACTION_SET_AT, 0, 0, v, at);
}

/* SET is strong unless said otherwise: it is used as a flag. */
GIN_VALUE gin_action_t gin_set_at(gin_at_t at, uint64_t v)
{
    return gin_i_action(GIN_ACTION_SET_AT, 1, 0, v, at);
}

/* What happens here once a put's source is reusable or a get's bytes are visible. */
typedef struct gin_local {
    uint32_t kind; /* 0: nothing, 1: counter `id` += 1 */
    uint32_t id;
} gin_local_t;

GIN_VALUE gin_local_t gin_no_local(void)
{
    gin_local_t l = {0, 0};
    return l;
}

GIN_VALUE gin_local_t gin_counter_inc(uint32_t id)
{
    gin_local_t l;
    l.kind = 1;
    l.id = id;
    return l;
}

enum gin_scope { /* which threads' writes an operation releases */
                 GIN_SCOPE_THREAD = 0,
                 GIN_SCOPE_BLOCK = 1,
                 GIN_SCOPE_DEVICE = 2,
                 GIN_SCOPE_SYSTEM = 3
};

enum gin_op_flags {
    GIN_MORE = 1,           /* more operations follow at once: posting may wait for the last */
    GIN_NIC_ONLY = 2,       /* take the network even where load/store would reach the peer */
    GIN_NO_CREDIT_CHECK = 4 /* the caller knows that the queue has room */
};

/* Options of gin_put_x(), gin_put_value_x(), gin_get_x() and gin_signal_x(); zeroed: the defaults.
 */
typedef struct gin_op_opt {
    gin_local_t local;        /* counter */
    uint8_t given_release;    /* enum gin_scope: what the caller has released already */
    uint8_t required_release; /* scope that shall be released; 0: system */
    uint16_t reserved;
    uint32_t flags; /* enum gin_op_flags */
} gin_op_opt_t;

/* An option without meaning: GIN_EINVAL. */
GIN_VALUE int gin_i_opt_is_odd(const gin_op_opt_t *o)
{
    const uint32_t flags = GIN_MORE | GIN_NIC_ONLY | GIN_NO_CREDIT_CHECK;
    return o->local.kind > 1 || (o->flags & ~flags) != 0 || o->reserved != 0 ||
           o->given_release > GIN_SCOPE_SYSTEM || o->required_release > GIN_SCOPE_SYSTEM;
}

/* ---- contexts ---- */

#define GIN_ALL_CONTEXTS \
    0xffffffffu /* index for gin_open(): barriers, fences, flush and quiet over all */

/*
 * Bind context `index` of a device communicator to registers; costs nothing, needs no close. Any
 * number of bindings may exist. GIN_ERANGE for an index beyond reqs.contexts, GIN_ESTATE when *dev
 * is none. g is then bound to nothing and every operation on it is GIN_ESTATE.
 */
GIN_OP int gin_open(const gin_devcomm_t *dev, uint32_t index, gin_t *g);

/*
 * Sticky error of the context or its communicator, else this thread's gin_last_status(): where
 * reads and pointer calls, which return values, leave their errors. Kernels: the status of the last
 * such call on this binding.
 */
GIN_OP int gin_status(const gin_t *g);

/* ---- data ---- */

/*
 * Copy `bytes` bytes from `src` (mine) to `dst` at `peer` of `team`, then deliver `remote` there.
 * The source may be reused after flush, a counter, or a wait for a request; over load/store at
 * once. bytes 0 delivers the action alone, exactly once. Aligned puts of 1, 2, 4 and 8 bytes are
 * seen whole. peer may be myself. Source and destination must not overlap.
 *
 * GIN_ERANGE: place outside its window, peer outside the team, signal id; GIN_EINVAL: team, group
 * or action without meaning, misaligned word; GIN_ESTATE: stale window or context; GIN_ENOTSUP: no
 * path to the peer, read-only window, strong or `_at` signal not asked for in the requirements;
 * GIN_EPEER, GIN_ENET: the peer is gone, the network failed.
 */
GIN_OP int gin_put(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                   gin_at_t src, size_t bytes, gin_action_t remote);
GIN_OP int gin_put_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                     gin_at_t src, size_t bytes, gin_action_t remote, const gin_op_opt_t *opt);

/* Store the low `bytes` (1 .. 8) bytes of `value`, in host byte order, at `dst`; else as gin_put().
 */
GIN_OP int gin_put_value(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                         uint64_t value, size_t bytes, gin_action_t remote);
GIN_OP int gin_put_value_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                           uint64_t value, size_t bytes, gin_action_t remote,
                           const gin_op_opt_t *opt);

/* Copy `bytes` bytes from `src` at `peer` to `dst` (mine). Visible here after flush or a counter.
 */
GIN_OP int gin_get(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                   gin_at_t dst, size_t bytes);
GIN_OP int gin_get_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                     gin_at_t dst, size_t bytes, const gin_op_opt_t *opt);

/* Deliver an action without data. gin_no_action() is refused (GIN_EINVAL). */
GIN_OP int gin_signal(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                      gin_action_t remote);
GIN_OP int gin_signal_x(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                        gin_action_t remote, const gin_op_opt_t *opt);

/* ---- completion ---- */

/* A point in a context's stream of operations to one peer. */
typedef struct gin_request {
    uint64_t opaque[2];
} gin_request_t;

/* Options of waits; NULL or zeroed: the defaults. */
typedef struct gin_wait_opt {
    uint64_t timeout_ns; /* 0: the device communicator's, else GIN_ETIMEDOUT after that long */
    uint32_t bits;       /* width of the rolling comparison, 1 .. 64; 0: 64 */
    uint32_t poll;       /* 1: look once, GIN_EAGAIN when not yet */
} gin_wait_opt_t;

/* All operations of the context so far: sources reusable, got bytes visible here. Nothing about the
 * targets. */
GIN_OP int gin_flush(const gin_t *g, gin_group_t grp);
GIN_OP int gin_flush_x(const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt);
/* The same for one peer. */
GIN_OP int gin_flush_peer(const gin_t *g, gin_group_t grp, gin_team_t team, int peer);
/* The same, to be waited for later with gin_wait() or gin_test(). A request may be dropped. */
GIN_OP int gin_flush_async(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                           gin_request_t *req);
/* GIN_OK when done, GIN_EAGAIN when not yet. A request that is done stays done. */
GIN_OP int gin_test(const gin_t *g, gin_group_t grp, const gin_request_t *req);
GIN_OP int gin_wait(const gin_t *g, gin_group_t grp, const gin_request_t *req);
GIN_OP int gin_wait_x(const gin_t *g, gin_group_t grp, const gin_request_t *req,
                      const gin_wait_opt_t *opt);

/* Later operations of this context to `peer` become visible after earlier ones. */
GIN_OP int gin_fence(const gin_t *g, gin_group_t grp, gin_team_t team, int peer);
/* The same for every peer. */
GIN_OP int gin_fence_all(const gin_t *g, gin_group_t grp);
/* All operations of the context so far are complete and visible at the targets, to plain loads. */
GIN_OP int gin_quiet(const gin_t *g, gin_group_t grp);
GIN_OP int gin_quiet_x(const gin_t *g, gin_group_t grp, const gin_wait_opt_t *opt);

/* ---- addresses and teams from a context ---- */

/* `ptr` as (window, offset): the heap's when it lies there, else the window that holds it; no place
 * (and GIN_ERANGE in gin_status()) when none does. */
GIN_OP gin_at_t gin_at_ptr(const gin_t *g, const void *ptr);
/* My address of a place, or NULL. */
GIN_OP void *gin_local_ptr(const gin_t *g, gin_at_t at);
/* Address of a peer's place, for loads and stores of mine, or NULL where it is not mapped. */
GIN_OP void *gin_peer_ptr(const gin_t *g, gin_team_t team, int peer, gin_at_t at);
GIN_OP void *gin_lsa_ptr(const gin_t *g, int lsa_rank, gin_at_t at);
/* Multicast address of a place for the LSA team, or NULL. Host memory has none. */
GIN_OP void *gin_multimem_ptr(const gin_t *g, gin_at_t at);
/* The scratch of the device communicator (reqs.scratch bytes, zeroed at creation), or no place. */
GIN_OP gin_at_t gin_scratch(const gin_t *g);

GIN_OP gin_team_t gin_world(const gin_t *g);
GIN_OP gin_team_t gin_lsa(const gin_t *g);
GIN_OP gin_team_t gin_rail(const gin_t *g);
GIN_OP gin_team_t gin_node(const gin_t *g);
/* World rank of a team's rank, or -1. */
GIN_OP int gin_world_rank(const gin_t *g, gin_team_t team, int rank);
/* LSA rank of a team's rank, or -1. */
GIN_OP int gin_lsa_rank(const gin_t *g, gin_team_t team, int rank);

#define GIN_I_DECLARED_GIN
#include <ginshmem/impl/bodies.h>

#endif
