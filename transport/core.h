/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider-neutral core of the network: what lib/ sees. It turns puts, gets, signals and
 * atomics into reads, writes and messages of net.h, in the way that the network's record of
 * capabilities asks for, and knows when they are complete here and at the target.
 *
 * One gi_core per communicator, one gi_core_ctx per context of a device communicator (and for
 * whatever else needs an order of its own). A context has a lane on every rail; the peers' lane of
 * the same context is where its operations arrive, so contexts are opened collectively.
 *
 * Threads. Whoever calls a function marked (owner) owns the context: between gi_core_enter(), or
 * a gi_core_try() that said yes, and gi_core_leave(). gi_core_poll() owns what is free in turn,
 * and never waits; so somebody must poll always, for the peers' sake (tcp and shm move nothing
 * otherwise). No function here blocks, but for gi_core_enter() and what is collective.
 *
 * Names of windows are gin_i_desc_window()'s: id | low 12 bits of the generation << 20. Peers are
 * ranks of the communicator, mine included. Statuses: GIN_EAGAIN is "nothing happened: poll, then
 * the same call again".
 */
#ifndef GI_TRANSPORT_CORE_H
#define GI_TRANSPORT_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ginshmem/impl/slow.h>
#include "transport/net.h"

#define GI_CORE_RAILS   8u /* most rails */
#define GI_CORE_ALL     (-1)
#define GI_CORE_COPY    256u /* most bytes of a put that the core can keep a copy of */
#define GI_CORE_DRIVERS 64u  /* most threads that stand in for others */

struct gi_core;
struct gi_core_ctx;
struct gi_core_region;

/* ---- the communicator's part ---- */

/* An update of a word that the CPU cannot reach, for gi_core_hooks.apply. */
struct gi_core_update {
    uint32_t window;
    uint64_t off;
    enum gin_i_amo_op op; /* WORD_ADD and WORD_SET come as ADD and SET */
    uint32_t bytes;       /* 4 or 8 */
    uint64_t value, expected;
};

/* Called by whoever polls, while it owns the context. They must not block. */
struct gi_core_hooks {
    void *arg;
    /* Where bytes off .. off + bytes - 1 of my part of a live window are: GIN_OK and *at, which
     * the CPU can read and, if `write`, write. GIN_ESTATE: no such window or generation;
     * GIN_ERANGE: outside; GIN_EINVAL: peers may not write there; GIN_ENOTSUP: the CPU cannot
     * reach them, the mover (gi_core_stage_open()) at *at, otherwise all is well. No gi_fail(): the
     * mistake is the peer's. */
    int (*resolve)(void *arg, uint32_t window, uint64_t off, uint64_t bytes, bool write, void **at);
    /* Apply to a word that resolve answered with GIN_ENOTSUP; may be NULL (then refused). */
    int (*apply)(void *arg, const struct gi_core_update *u, uint64_t *old);
    /* The core found out by itself that a peer is lost; once per peer. May be NULL. */
    void (*peer_lost)(void *arg, int rank, const char *why);
    /* The network takes a peer for lost: operations of one context to it have failed, others go on
     * until they find out, or gi_core_peer_dead() is called. NULL: believe it, as if found out. */
    void (*peer_suspect)(void *arg, int rank, const char *why);
    /* Somebody leaves a context with something to post after gi_core_sleep(), before the next poll:
     * end that sleep, or nap, of the driver that has the context. Once, by any thread. NULL: what
     * waits for a poll waits that long. */
    void (*wake)(void *arg, uint32_t driver);
    /* What the network has written by now into regions with `land` is to be seen by their device:
     * called before whatever tells of it. A failure is recorded. NULL: such writes are seen. */
    int (*landed)(void *arg);
};

struct gi_core_config {
    int rank, size;
    /* One per rail, in the same order on every rank; the caller's, longer-lived than the core. */
    struct gi_net_domain *const *domains;
    uint32_t n_domains;
    /* Collective: `bytes` of everybody, by rank, into all. Returns a status. */
    int (*allgather)(void *arg, const void *mine, void *all, size_t bytes);
    void *allgather_arg;
    struct gi_core_hooks hooks;
    /* Threads that stand in for others and sleep; each has its share of the contexts. 0: one */
    uint32_t drivers;
    /* A peer that owes an answer and shows no sign of life for so long is lost; it is asked at a
     * quarter of it. More where echoes are seen to take long. 0: never */
    uint64_t peer_timeout_ns;
    /* Puts of so many bytes are split over the rails; 0: none are, on any rank. */
    uint64_t stripe_from;
};

int gi_core_open(const struct gi_core_config *config, struct gi_core **core); /* collective */
/* Large puts are split over the rails. */
bool gi_core_stripes(const struct gi_core *core);
uint32_t gi_core_lanes_each(const struct gi_core *core); /* of a context */
void gi_core_close(struct gi_core *core);                /* contexts and regions are gone */
const struct gi_net_caps *gi_core_caps(const struct gi_core *core, uint32_t rail);

/*
 * Drive all contexts that nobody owns, targets' part included; what was found to do (0: idle).
 * Looks at the clock now and then for the watchdog. Any thread.
 */
int gi_core_poll(struct gi_core *core);
/* For a thread that waits and comes back at once: those where something happened lately, and the
 * others one by one. */
int gi_core_poll_some(struct gi_core *core);
/* For one that waits for something of one context: that one, and the others now and then. */
int gi_core_poll_for(struct gi_core *core, struct gi_core_ctx *ctx);
/* ... and has waited for long: that one, and behind it what gi_core_poll_some() does. NULL: none */
int gi_core_poll_first(struct gi_core *core, struct gi_core_ctx *ctx);
enum gi_core_others {
    GI_CORE_NOBODY,
    GI_CORE_POSTS, /* somebody posts, one operation after the other */
    GI_CORE_DRIVES /* somebody polls */
};
/* For a thread that stands in for others, one per driver, with its contexts: like
 * gi_core_poll_some(), but leaves out contexts that somebody else has driven since the last call,
 * by more than `few` polls, and for some calls those where somebody posts; *others: the most of
 * what they do. all: the quiet ones, too, before a sleep. */
int gi_core_poll_left(struct gi_core *core, uint32_t driver, bool all, uint32_t few,
                      enum gi_core_others *others);
/*
 * Before sleeping: descriptors to poll(2) for input. Returns their number when the driver's
 * contexts may be slept on now, GI_CORE_BUSY when there is something to do, or somebody does it,
 * and GI_CORE_BLIND for a network without such a descriptor, or more of them. Wake at the latest
 * after *timeout_ns, and when hooks.wake is called. By one thread per driver. Driver 0 gets those
 * of all contexts and drives all whose drivers sleep; the others get none: where lanes share
 * sockets, threads that sleep on them would wake each other for ever.
 */
enum { GI_CORE_BLIND = -1, GI_CORE_BUSY = -2 };
int gi_core_sleep(struct gi_core *core, uint32_t driver, int *fds, int max, uint64_t *timeout_ns);

/* What gi_core_intake.has() looks at has come: end the sleep of who has the context, if there is
 * one. Any thread. */
void gi_core_wake(struct gi_core_ctx *ctx);
/* Most descriptors that gi_core_sleep() may find. */
uint32_t gi_core_lanes(const struct gi_core *core);

/* It is known from elsewhere that a peer is dead: its operations fail, others go on. Any thread. */
void gi_core_peer_dead(struct gi_core *core, int rank, const char *why);
bool gi_core_peer_is_dead(const struct gi_core *core, int rank);

/* ---- memory ---- */

/*
 * Memory of a kind that a network cannot register there (GI_NET_DEVICE without mr_hmem) makes a
 * staged region: bytes go by way of slabs and are copied by the mover (gi_core_stage_open()), which
 * put, get and atomics see to by themselves. So the kind of memory behind an address of mine is
 * told by its region: with GPU memory as a source or destination p->region must be given, whatever
 * gi_core_needs_region() says, and be one of GPU memory; gi_core_gpu() is good for all of it.
 */
struct gi_core_region_config {
    struct gi_net_memory_desc memory; /* kind, addr, bytes ...; `remote` is set by the call */
    bool stage;                       /* a part that is no host memory is not registered */
    bool may_stage;                   /* ... or if that fails; gin_last_error() says why */
    int status; /* what has gone wrong with my part before, to be told to all */
    bool land;  /* what the network writes there needs hooks.landed to be seen */
};

/* Register for peers' and my own use, and learn the peers' keys. Collective; ranks may differ in
 * size and kind, bytes 0: this rank has no part. */
int gi_core_region_open(struct gi_core *core, const struct gi_core_region_config *config,
                        struct gi_core_region **region);
/* Only as a source or destination here. Not collective. */
int gi_core_local_open(struct gi_core *core, const struct gi_core_region_config *config,
                       struct gi_core_region **region);
/* My part goes by slabs. */
bool gi_core_region_is_staged(const struct gi_core_region *region);
/* With such a network signals, or word that a write has arrived, may pass the target's CPU by: then
 * hooks.landed cannot come between. */
bool gi_core_bypasses(const struct gi_net_caps *caps);
/* Neither an operation nor a window uses it any more; peers' neither. Not collective. */
void gi_core_region_close(struct gi_core *core, struct gi_core_region *region);

/* Bytes off .. off + bytes - 1 of a window are those at region_off of a region. */
struct gi_core_piece {
    uint64_t off, bytes;
    struct gi_core_region *region;
    uint64_t region_off;
};

/*
 * Tell what a window's name leads to at the peers; pieces in ascending order without gaps, copied.
 * Calling it again with more pieces is how a window grows. Not collective, serial per communicator.
 */
int gi_core_window_set(struct gi_core *core, uint32_t name, const struct gi_core_piece *pieces,
                       uint32_t n);
void gi_core_window_drop(struct gi_core *core, uint32_t name);

/* ---- staging (core_stage.c) ---- */

/*
 * Copies between host memory and memory that the CPU cannot reach. Called by whoever drives a
 * context, several at a time; none of them blocks. Statuses other than those named are failures,
 * recorded.
 */
struct gi_core_mover {
    void *arg;
    /* Begin. *ticket names the copy. GIN_EAGAIN: not now. Host memory is that of gi_core_stage. */
    int (*copy)(void *arg, uint64_t to, uint64_t from, uint64_t bytes, uint64_t *ticket);
    /* 1: it has arrived, and what reads there sees it; 0: not yet. */
    int (*done)(void *arg, uint64_t ticket);
    /* For an update of a word of a window: the right to apply it, of which there is one in the
     * rank; until give(). GIN_EAGAIN: somebody else has it. GIN_ENOTSUP: not by this rank. */
    int (*take)(void *arg, uint32_t window, enum gin_i_amo_op op);
    void (*give)(void *arg);
};

struct gi_core_stage_config {
    /* copy NULL: this rank has no such memory, and reaches others' all the same. */
    struct gi_core_mover mover;
    /* gi_core_stage_bytes() of host memory that the mover copies from and to; it belongs to the
     * core until gi_core_close(). */
    void *memory;
};
uint64_t gi_core_stage_bytes(void);
/* From now on staged regions can be used. Collective, once; contexts may be open. */
int gi_core_stage_open(struct gi_core *core, const struct gi_core_stage_config *config);
bool gi_core_stages(const struct gi_core *core);
/* Any GPU memory of mine, as a source or destination; not at peers. */
struct gi_core_region *gi_core_gpu(struct gi_core *core);

/* ---- contexts ---- */

/* Where signals of a context arrive: slot s is the 8-byte word at first + s * stride. */
struct gi_core_cells {
    void *first;
    uint64_t stride;
    uint32_t n;
    bool shared; /* others add to them, too: add atomically */
};

/* Operations that wait outside, handed in by whoever owns the context, as often as it is driven. */
struct gi_core_intake {
    /* Post what there is, some at a time; how many. NULL: nothing ever waits. */
    int (*take)(void *arg);
    bool (*has)(const void *arg); /* something waits: no time to sleep */
    void *arg;
};

struct gi_core_ctx_config {
    struct gi_core_cells cells;
    uint32_t home;    /* rail of small operations, signals and messages; taken modulo the rails */
    uint32_t depth;   /* operations under way, 0: default */
    bool shared;      /* used by several threads in turn */
    uint32_t traffic; /* class + 1, one of every rail's; 0: the network's own */
    /* Where nothing else keeps order the target counts the writes before a strong signal, in epochs
     * of at most so many. 0: the signal waits at the source until they are delivered. */
    uint32_t epochs;
    /* Cells that a NIC may add to (and no CPU does): slot s is at native_off + s * native_stride
     * of this window at every peer; stride 0: none. */
    uint32_t native_window;
    uint64_t native_off, native_stride;
    struct gi_core_intake intake;
    /* By rank, those that it has to do with, alike at both ends, itself among them; NULL: all.
     * Operations to others are GIN_ENOTSUP. Looked at while contexts are opened. */
    const uint8_t *peers;
    /* Tests only: enum gi_core_mutation. */
    unsigned mutate;
};

/* Ways to break the core that a test must notice. */
enum gi_core_mutation {
    GI_CORE_MUTATE_STRONG = 1,      /* unordered: a strong signal does not wait for earlier puts */
    GI_CORE_MUTATE_WEAK = 2,        /* unordered: a put's signal does not wait for its own pieces */
    GI_CORE_MUTATE_LAST = 4,        /* ordered: the immediate rides in the first piece */
    GI_CORE_MUTATE_QUIET = 8,       /* quiet is flush */
    GI_CORE_MUTATE_FENCE = 16,      /* fence does nothing */
    GI_CORE_MUTATE_SEQ = 32,        /* messages are handled as they arrive */
    GI_CORE_MUTATE_NATIVE = 64,     /* a NIC atomic does not look for messages before it */
    GI_CORE_MUTATE_IMM = 128,       /* nor does an immediate that may overtake them */
    GI_CORE_MUTATE_UNFENCED = 256,  /* NIC atomics without the fence that they need */
    GI_CORE_MUTATE_DELIVERED = 512, /* unordered: writes do not ask for delivery */
    GI_CORE_MUTATE_READS = 1024,    /* a fence does not settle writes that reads may pass */
    GI_CORE_MUTATE_BUNDLE = 2048,   /* a small put does not look for bundles before it */
    GI_CORE_MUTATE_PROMPT = 4096,   /* word of delivery proves signals and messages, too */
    GI_CORE_MUTATE_ECHO = 8192,     /* an echo proves what is posted after it, too */
    GI_CORE_MUTATE_APART = 16384,   /* order on the home rail is taken for that of all rails */
    GI_CORE_MUTATE_RIDES = 32768,   /* an echo rides in a bundle before what is queued */
    GI_CORE_MUTATE_SHORT = 65536,   /* counted: the message that closes an epoch counts one less */
    GI_CORE_MUTATE_REUSE = 131072   /* counted: an epoch's number comes again before it is closed */
};

/* Open n contexts, into ctx[0..n-1]. Collective, the same n everywhere. */
int gi_core_ctx_open(struct gi_core *core, uint32_t n, const struct gi_core_ctx_config *config,
                     struct gi_core_ctx **ctx);
/* Of one that is to be closed, where its network asks for that (net.h: part); false: it does not.
 */
bool gi_core_ctx_part(struct gi_core_ctx *ctx);
/* Not collective; whoever needs this rank's progress has had it (a barrier came before). */
void gi_core_ctx_close(struct gi_core_ctx *ctx);

/* The first error: GIN_OK, or a sticky status; *rank is whose (-1: none in particular), *text lives
 * as long as the context. Operations to other peers still go on. Any thread. */
int gi_core_ctx_status(const struct gi_core_ctx *ctx, int *rank, const char **text);

/* Give the context that status, unless it has one. By its owner. */
void gi_core_ctx_fail(struct gi_core_ctx *ctx, int status, const char *why);

/* Of one peer: GIN_OK, or why operations to it fail; text as above. Any thread. */
int gi_core_peer_status(const struct gi_core_ctx *ctx, int peer, const char **text);

/* An operation to that peer was given up without a word to who asked for it: what the peer failed
 * of is the context's failure. By its owner. */
void gi_core_peer_cost(struct gi_core_ctx *ctx, int peer);

/* The peer that failed first, which may be why others did; -1: none. Any thread. */
int gi_core_first_failed(const struct gi_core_ctx *ctx);

bool gi_core_try(struct gi_core_ctx *ctx);   /* own it, if it is free */
void gi_core_enter(struct gi_core_ctx *ctx); /* own it; whoever owns it leaves soon */
void gi_core_leave(struct gi_core_ctx *ctx);
/* Drive one context. (owner) Number of events; GIN_ENET once a lane is dead. */
int gi_core_progress(struct gi_core_ctx *ctx);

/* ---- operations: all (owner) ---- */

/*
 * Told once, when the operation is complete here (the source may be used again, the bytes or the
 * old value are here) or has failed. Called by whoever polls, or from within the call itself. The
 * caller's memory; it must not block and may start operations.
 */
struct gi_core_notice {
    void (*fn)(struct gi_core_notice *n, int status);
};

enum gi_core_action_kind {
    GI_CORE_NONE,
    GI_CORE_SLOT_ADD, /* value to slot `id` of the context at the peer */
    GI_CORE_WORD_ADD, /* value to the 8-byte word at `off` of window `id` */
    GI_CORE_WORD_SET
};

struct gi_core_action {
    uint8_t kind;
    bool strong;
    uint32_t id;
    uint64_t off, value;
};

struct gi_core_put {
    uint32_t window; /* the peer's place */
    uint64_t off;
    const void *src; /* may be NULL with bytes 0 */
    uint64_t bytes;
    struct gi_core_region *region; /* of src, or NULL: not registered (see gi_core_needs_region) */
    struct gi_core_action action;
    uint64_t *counter;             /* 1 is added when complete here, or NULL */
    struct gi_core_notice *notice; /* or NULL */
    bool more;                     /* another small one follows at once: they may share a message */
    /* src may be used again after the call, and need not be registered; bytes <= GI_CORE_COPY */
    bool copy;
};

struct gi_core_get {
    uint32_t window;
    uint64_t off;
    void *dst;
    uint64_t bytes;
    struct gi_core_region *region; /* of dst, or NULL */
    uint64_t *counter;
    struct gi_core_notice *notice;
};

struct gi_core_amo {
    uint32_t window;
    uint64_t off;
    enum gin_i_amo_op op;
    uint32_t bytes; /* 4 or 8 */
    uint64_t value, expected;
    uint64_t *old;                 /* the word before, or NULL: not wanted */
    struct gi_core_notice *notice; /* with old: once it is here; else once it is on its way */
};

/* Local memory must lie in a region before it can be a source or destination. */
bool gi_core_needs_region(const struct gi_core *core);

/* bytes 0: the action alone. Each takes the operation whole or, with GIN_EAGAIN, not at all. */
int gi_core_put(struct gi_core_ctx *ctx, int peer, const struct gi_core_put *p);
int gi_core_get(struct gi_core_ctx *ctx, int peer, const struct gi_core_get *g);
int gi_core_amo(struct gi_core_ctx *ctx, int peer, const struct gi_core_amo *a);
/* Later operations of this context to the peer (GI_CORE_ALL: to each) become visible after earlier
 * ones. */
int gi_core_fence(struct gi_core_ctx *ctx, int peer);

/*
 * Completion. A mark names everything issued so far, on the context or to a peer of it; it is a
 * number that grows. The tests return 1: reached, 0: not yet (poll), or the context's sticky
 * status. An operation that failed counts as complete, with the sticky status set.
 */
uint64_t gi_core_mark(const struct gi_core_ctx *ctx);
uint64_t gi_core_mark_peer(const struct gi_core_ctx *ctx, int peer);
/* flush: complete here. The first needs no owner. */
int gi_core_flushed(const struct gi_core_ctx *ctx, uint64_t mark);
int gi_core_flushed_peer(const struct gi_core_ctx *ctx, int peer, uint64_t mark);
/* quiet: complete and visible at the targets. Asks the peers for an echo where that is needed;
 * GI_CORE_ALL or one peer. */
int gi_core_settled(struct gi_core_ctx *ctx, int peer, uint64_t mark);
/*
 * First contact on the lanes beside the home, which carry nothing but parts of large puts: 1 once
 * the peer has answered on each, 0: not yet, or its failure. *rail: one without an answer.
 */
int gi_core_greet_sides(struct gi_core_ctx *ctx, int peer, uint32_t *rail);
uint32_t gi_core_home(const struct gi_core_ctx *ctx); /* its rail */
/* Nothing to this peer is unsettled: another path may overtake. */
bool gi_core_is_clean(const struct gi_core_ctx *ctx, int peer);

/* ---- what was sent and received ---- */

enum gi_core_count {
    GI_CORE_N_WRITE,     /* writes without immediate */
    GI_CORE_N_WRITE_IMM, /* writes with */
    GI_CORE_N_SIDE,      /* of the former: on another rail than the context's home */
    GI_CORE_N_READ,
    GI_CORE_N_NATIVE,  /* NIC atomics */
    GI_CORE_N_MSG,     /* messages that carry operations */
    GI_CORE_N_BUNDLED, /* small puts that shared a message */
    GI_CORE_N_REPLY,   /* old values sent back */
    GI_CORE_N_ECHO,    /* demands for an echo */
    GI_CORE_N_ACK,     /* answers to these, and credits */
    GI_CORE_N_NACK,    /* refusals sent */
    GI_CORE_N_AGAIN,   /* posts that the network could not take at once */
    GI_CORE_N_GOT_IMM, /* immediates that arrived */
    GI_CORE_N_GOT_MSG,
    GI_CORE_N_REFUSED, /* arrivals that made no sense */
    GI_CORE_COUNTS
};
const uint64_t *gi_core_counts(const struct gi_core_ctx *ctx); /* GI_CORE_COUNTS of them */

/* How signals travel on a rail, for people: "ordered, signals ride in immediates" ... */
const char *gi_core_strategy(const struct gi_core *core, uint32_t rail);
/* Why the target cannot count writes by their immediates; NULL: it can. */
const char *gi_core_uncounted(const struct gi_net_caps *caps);
/* One line per peer with work under way, for the dump of who waits for what. */
void gi_core_dump(struct gi_core *core, void (*line)(void *arg, const char *text), void *arg);

#endif
