/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's insides, shared by core*.c. Who does what:
 *
 *   core.c         opening, polling, ownership      core_plan.c    capabilities -> strategy
 *   core_agree.c   the least of all ranks' capabilities
 *   core_ctx.c     contexts and their pools         core_region.c  registrations, peers' keys
 *   core_window.c  names of windows -> addresses    core_op.c      life of an operation, flush
 *   core_put.c     put, get                         core_push.c    posting what waits, per peer
 *   core_signal.c  how an action travels            core_amo.c     atomics, both sides
 *   core_msg.c     messages out, credits, acks      core_am.c      messages in, validation
 *   core_wire.h    what messages look like
 *   core_bundle.c  many small puts in one message   core_prompt.c  puts with word of delivery
 *   core_watch.c   peers that fall silent           core_error.c   lost peers, refusals
 *   core_settle.c  fence, quiet                     core_stage*.c  what goes by way of slabs
 *   core_stripe.c  puts over several rails          core_epoch.c   strong signals by counting
 *
 * Life of an operation. It gets the context's next number and stands in two queues, of the context
 * and of its peer, until it and all before it there are complete; what follows in the peer's queue
 * from `unposted` on has pieces that the network has not taken. Pieces are posted in order; an
 * action that goes by message follows its put's last piece (ordered), or its pieces' completion
 * (weak, unordered), or the moment when the operation is the oldest of its peer (strong,
 * unordered: strategy S; at once where the target counts: core_epoch.c).
 *
 * What a peer's queue no longer holds is complete here. It is settled, too, unless it is `loose`:
 * messages and writes that only an echo proves to have been handled. One echo is under way per
 * peer; `cover` says what its answer proves.
 */
#ifndef GI_TRANSPORT_CORE_INT_H
#define GI_TRANSPORT_CORE_INT_H

#include "transport/core.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "transport/core_memory.h"
#include "transport/core_wire.h"

/*
 * Bytes of one read or write, whatever the network allows: each that completes shows the watchdog
 * that something moves. Where the CPUs move them, messages share a stream with them and stand
 * behind what is under way, which is therefore bounded.
 */
#define GI_CORE_PIECE_MAX (64u << 20)
#define GI_CORE_PIECE_CPU (4u << 20)
#define GI_CORE_MOST_CPU  (32u << 20)
#define GI_CORE_CREDITS   64u   /* messages to a peer that it has not acknowledged */
#define GI_CORE_OPS       512u  /* operations under way per context */
#define GI_CORE_PIECES    256u  /* of these with the network, where it takes so many */
#define GI_CORE_CTXS      4096u /* contexts of one communicator */
#define GI_CORE_TEXT      200u

/* ---- strategy of a rail, from its record ---- */

struct gi_core_plan {
    bool ordered;         /* writes stay in order, messages behind them */
    bool delivered;       /* ask writes for GI_NET_DELIVERED */
    bool by_msg;          /* unordered and nothing tells of delivery: data travels in messages */
    bool remote_complete; /* a write's completion means the target */
    bool native;          /* slot signals may be NIC atomics */
    bool native_fence;    /* ... with a fence */
    unsigned imm_bits;    /* immediates that may be used without thought for credits */
    bool imm_after_msg;   /* ... even behind messages not yet acknowledged */
    bool prompt;          /* an ordered write may ask for word of its delivery */
    bool fence_reads;     /* a read may pass earlier writes: a fence must settle them */
    uint64_t piece;       /* most bytes of one read or write */
    uint64_t most;        /* bytes under way to a peer that leave no room for another piece */
    uint64_t inject;      /* most bytes of a write that is complete at once; 0: none */
    uint32_t credits;
    uint32_t bundle;  /* most bytes of a bundle; 0: none */
    uint32_t payload; /* most bytes of data in a message */
    char text[160];
};
void gi_core_plan(struct gi_core_plan *plan, const struct gi_net_caps *caps);

/* ---- answers and operations ---- */

/* A reply that the network did not take yet. */
struct gi_core_reply {
    uint32_t reply, turn;
    int32_t status;
    uint64_t value;
};

enum gi_core_op_kind { GI_CORE_PUT, GI_CORE_GET, GI_CORE_AMO, GI_CORE_FENCE };

enum gi_core_way { /* how an action travels */
                   GI_CORE_WAY_NONE,
                   GI_CORE_WAY_IMM,    /* with the last piece */
                   GI_CORE_WAY_NATIVE, /* NIC atomic behind the last piece */
                   GI_CORE_WAY_MSG,    /* message behind the last piece */
                   GI_CORE_WAY_WEAK,   /* message once the operation's own pieces are delivered */
                   GI_CORE_WAY_STRONG, /* message once it is the oldest */
                   GI_CORE_WAY_WHOLE   /* data and action in messages */
};

struct gi_core_op {
    struct gi_core_op *next_ctx, *next_peer; /* next_ctx: in the pool, too */
    struct gi_core_op *next_ready;
    struct gi_core_peer *peer;
    uint64_t seq;
    uint32_t turn;   /* of this slot of the pool; names it in replies */
    uint32_t pieces; /* with the network */
    uint8_t kind, way;
    bool posted;  /* the network has all pieces */
    bool sent;    /* the action, too, or there is none */
    bool replied; /* AMO: the old value is here, or not wanted */
    bool told;    /* counter and notice */
    bool done;    /* complete; leaves the queues when it is first */
    bool queued_ctx, queued_peer, ready;
    bool msg;            /* it is a message, or ends with one */
    bool slow;           /* ... that the engine there may not handle at once */
    bool lost;           /* it failed, and the network has pieces of it */
    bool striped;        /* its pieces go by all rails */
    bool apart;          /* striped, or a signal that waits for such: counted in peer->apart */
    bool staged, device; /* it goes by slabs; its memory here is out of the CPU's reach */
    int status;
    uint32_t window;
    uint64_t off, bytes, offset; /* offset: bytes posted */
    uint64_t begun;              /* staged put: bytes on their way to a slab */
    char *local;
    struct gi_core_region *region;
    struct gi_core_action action;
    uint64_t *counter, *old;
    struct gi_core_notice *notice;
    uint64_t value, expected; /* AMO */
    uint8_t amo, amo_bytes;
    char inlined[GI_CORE_COPY]; /* last: it is not wiped */
};

/* One read, write or NIC atomic with the network. */
struct gi_core_chunk {
    struct gi_net_request req; /* first */
    struct gi_core_chunk *next;
    struct gi_core_op *op; /* NULL: a put that left no operation behind (core_prompt.c) ... */
    struct gi_core_peer *peer;
    uint64_t seq; /* ... to that peer, with that number */
    uint64_t bytes;
    bool action;                /* it carries the operation's action */
    struct gi_stage_pull *pull; /* ... or it is staging's (core_stage_in.c) */
};

/* ---- peers ---- */

/* What the watchdog saw of a peer at its last look; times are of ctx->clock, 0: not watched. */
struct gi_core_watched {
    uint32_t heard, moved, taken;
    uint64_t silent_since;  /* no sign of life */
    uint64_t refused_since; /* the network takes nothing for it */
    uint64_t asked_since;   /* it owes an answer that it knows of; 0: it does not */
    uint64_t oldest, part;  /* what is longest under way, and how much of it */
    uint64_t held;          /* time for which that stood still while there was life */
    uint64_t echo, echo_since;
    uint64_t rtt, rtt_var; /* of echoes, smoothed, ns; 0: none was answered yet */
};

/* Operations that only an echo, or word of delivery, proves to be at the peer. */
struct gi_core_loose {
    uint64_t lo, hi; /* lowest and highest number; 0: none */
};

/* Puts that ask for word of their delivery (core_prompt.c). */
struct gi_core_prompts {
    uint64_t hi;    /* word that is under way proves so much; 0: none */
    uint64_t lone;  /* number of a put that went out by itself, the last one; 0: none */
    uint32_t n;     /* whose delivery will be told */
    uint32_t habit; /* lone puts in a row that a quiet followed at once */
};

/* The echo, one at a time (core_settle.c). */
struct gi_core_echo {
    uint64_t msgs, cover; /* handled messages that prove numbers up to cover; 0: none */
    uint64_t want;        /* settle up to here; 0: nobody asks */
    uint32_t ahead;       /* pieces that were under way when it left */
};

/* Numbered messages and immediates to a peer ... */
struct gi_core_out {
    uint64_t sent, acked;
    uint64_t slow; /* up to the last one that the engine there may not handle at once */
    uint32_t imms;
};

/* ... and from it. */
struct gi_core_in {
    uint64_t got;  /* handled */
    uint64_t told; /* ... of which it knows */
    bool lacks;    /* something is missing of what came: no signal behind that is given any more */
    uint32_t imms;
    struct gi_core_msg *early; /* GI_CORE_CREDITS slots; made when one comes out of order */
    uint64_t early_mask;
};

/* Small puts that travel together (core_bundle.c). */
struct gi_core_bundling {
    struct gi_core_bundle *slot; /* made with the first */
    uint32_t bytes;              /* in it, 0: none is open */
    uint32_t burst;              /* ctx->pauses when a small put went out by itself */
    uint64_t upto;               /* messages to it up to and with the last bundle */
};

/* Answers that wait for room (core_msg.c). */
struct gi_core_replies {
    struct gi_core_reply *slot; /* GI_CORE_CREDITS; made with the first */
    uint32_t head, count;
};

/* What it is to be told that was refused (core_error.c). */
struct gi_core_nack {
    int32_t status; /* 0: nothing */
    uint32_t window, kind;
    uint64_t off;
};

/* Counts of what the watchdog looks at (core_watch.c). */
struct gi_core_signs {
    uint32_t heard; /* signs of life of its process */
    uint32_t moved; /* completions that its NIC may have made alone */
    uint32_t taken; /* posts that the network took */
    uint32_t again; /* posts refused since one was taken */
};

/* Of a lost peer: what the network keeps, and what has replaced it (core_op.c). */
struct gi_core_kept {
    uint32_t stuck; /* operations that have not come back from the network */
    uint32_t ops, pieces;
};

struct gi_core_peer {
    struct gi_core_op *first, *last, *unposted;
    struct gi_core_op *ready_first, *ready_last; /* weak actions whose pieces are delivered */
    struct gi_core_peer *next_active, *next_dirty;
    uint64_t issued; /* number of the last operation */
    struct gi_core_loose loose;
    uint64_t imm_hi; /* number of the last put whose signal is an immediate */
    struct gi_core_out out;
    struct gi_core_bundling bundle;
    struct gi_core_prompts prompt;
    uint32_t ops;    /* in its queue */
    uint32_t msgs;   /* ... of which so many are messages, or end with one, */
    uint32_t slows;  /* and so many of these are slow */
    uint32_t pieces; /* with the network */
    uint32_t gets;   /* GET operations posted and not done */
    uint32_t amos;   /* replies owed */
    uint32_t apart;  /* operations in its queue that the home rail's order does not cover */
    int32_t status;  /* GIN_OK, or why no operation goes to it any more; stored after why */
    uint64_t bytes;  /* with the network */
    struct gi_core_signs signs;
    bool active, dirty, pushing;
    bool gone;    /* nothing goes to it: its own operations get no answers either */
    bool ack_now; /* it wants to know at once */
    bool probe;   /* the watchdog wants an echo */
    bool refused; /* it was told so, or will be: no acknowledgement but that */
    char *why;    /* text for status, or NULL */
    struct gi_core_echo echo;
    struct gi_core_in in;
    struct gi_core_replies replies;
    struct gi_core_nack nack;
    struct gi_core_kept kept;
    struct gi_core_watched watched;
    struct gi_stage_peer *stage; /* made with the first use */
};

/* ---- contexts ---- */

struct gi_core_ctx {
    /* These outlive what is open: threads that poll look at them without owning it. */
    atomic_int owned;
    bool taken;               /* not free for another context; by who opens and closes */
    atomic_int hot;           /* so many idle turns until it counts as quiet; by its owner, ... */
    _Atomic uint32_t polls;   /* ... times that it was driven */
    _Atomic uint64_t retired; /* ... all operations up to here are complete here */
    atomic_int fed;           /* it has an intake, which is to be looked at each time */
    uint32_t driver;          /* who stands in for its owner: never another */
    char pad[64 - 32];
    uint32_t polls_seen, left_out; /* by the driver, in gi_core_poll_left() */
    uint64_t retired_seen;
    char pad2[64 - 16];
    struct gi_core *core;
    struct gi_net_lane *lane;
    const struct gi_net_ops *ops;
    const struct gi_net_caps *caps;
    const struct gi_core_plan *plan;
    struct gi_core_peer *peers;
    uint64_t stripe_from;          /* puts of so many bytes are split; UINT64_MAX: none are */
    struct gi_core_stripe *stripe; /* lanes on the other rails, or NULL */
    struct gi_core_epochs *epochs; /* by rank; NULL: strong signals wait at the source */
    uint32_t epoch_most;           /* writes of one */
    uint64_t issued;
    struct gi_core_op *first, *last; /* in order of numbers */
    struct gi_core_op *free_ops, *spare_ops, *ops_memory;
    struct gi_core_chunk *free_chunks, *spare_chunks, *chunks_memory;
    struct gi_core_peer *active, *dirty;
    struct gi_stage_peer *staging; /* where something is under way */
    struct gi_net_mr *ops_mr;      /* of ops_memory, where sources must be registered */
    uint32_t n_ops, n_chunks;
    uint32_t all_ops, all_chunks;     /* with spare ones (gi_core_replace()) ... */
    uint32_t fresh_ops, fresh_chunks; /* ... of which those from here on were never used */
    uint32_t peer_ops, peer_pieces;   /* of these, the most for one peer */
    uint32_t credits;                 /* the least of all ranks */
    uint32_t pauses;                  /* those by threads that post and wait, and sleeps of all */
    uint32_t rail, idle, busy;        /* idle, busy: polls since the clock was read */
    uint16_t tag;                     /* of messages */
    bool open, polling, lane_dead;
    bool anonymous; /* an immediate came of whom nobody can tell */
    unsigned mutate;
    struct gi_core_cells cells;
    uint32_t native_window;
    uint64_t native_off, native_stride;
    struct gi_core_intake intake;
    uint32_t dead_seen;
    uint64_t last_watch; /* when the watchdog looked */
    uint64_t clock;      /* its time: stands still while nobody polls */
    _Atomic int status;  /* stored after rank and text */
    int status_rank;
    int first_failed; /* the first peer that failed, -1: none, whether or not the context did */
    char status_text[GI_CORE_TEXT];
    uint64_t counts[GI_CORE_COUNTS];
};

struct gi_core {
    struct gi_core_config config;
    struct gi_core_plan plan[GI_CORE_RAILS];
    struct gi_net_domain *domain[GI_CORE_RAILS];
    const struct gi_net_caps *caps[GI_CORE_RAILS];         /* agreed */
    struct gi_net_caps agreed[GI_CORE_RAILS];              /* what all ranks can keep */
    struct gi_core_window **windows[GI_CORE_WINDOW_PAGES]; /* pages, made when needed */
    struct gi_core_stage *stage;                           /* NULL: nothing is staged */
    /* Shells of contexts live as long as the core: whoever polls may look at one that is closed. */
    struct gi_core_ctx *_Atomic ctx[GI_CORE_CTXS];
    _Atomic uint32_t n_ctx;
    uint32_t next_tag;
    uint32_t sides;        /* lanes of a context beside its home: all other rails, or none */
    _Atomic uint8_t *dead; /* by rank */
    char *_Atomic *whys;   /* by rank: why it is dead; NULL: nobody said, or no memory */
    _Atomic uint32_t deaths;
    /* By driver: its thread, which was allowed to sleep and has not polled since; 0: it has */
    atomic_uintptr_t asleep[GI_CORE_DRIVERS];
    uint64_t watch_ns;      /* between looks at the clock's concerns; 0: no watchdog */
    _Atomic uint32_t lands; /* regions whose device does not see by itself what arrives */
};

/* How peers find a lane; of a context, with what it is opened with. */
struct gi_core_name {
    uint32_t len, credits;
    int32_t status;
    uint32_t tag;
    uint8_t bytes[GI_NET_NAME_MAX];
};

/* core_agree.c: collective; lowers core->agreed. room: made before, so that it cannot fail here */
void *gi_core_agree_room(int ranks);
int gi_core_agree(struct gi_core *core, void *room);

/* core_op.c */
struct gi_core_op *gi_core_op_take(struct gi_core_ctx *ctx, int peer, enum gi_core_op_kind kind);
void gi_core_op_enqueue(struct gi_core_ctx *ctx, struct gi_core_op *op); /* gives it its number */
void gi_core_op_check(struct gi_core_ctx *ctx, struct gi_core_op *op);   /* complete? then go on */
void gi_core_op_fail(struct gi_core_ctx *ctx, struct gi_core_op *op, int status);
uint64_t gi_core_op_none(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* number, no queue */
void gi_core_retire(struct gi_core_ctx *ctx); /* complete ones leave the context's queue */
/* For another piece to the peer, once `more` bytes are with the network. */
bool gi_core_has_room(const struct gi_core_ctx *ctx, const struct gi_core_peer *p, uint64_t more);
struct gi_core_chunk *gi_core_chunk_take(struct gi_core_ctx *ctx, struct gi_core_peer *p);
void gi_core_chunk_give(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_core_chunk *c);
/* A piece completed; there: at the peer, as far as is known. */
void gi_core_sign(const struct gi_core_ctx *ctx, struct gi_core_peer *p, bool there);
/* A lost peer's, which the network may keep for good, no longer lack others. */
void gi_core_replace(struct gi_core_ctx *ctx, struct gi_core_peer *p);
void gi_core_loosen(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t seq);
void gi_core_dirty(struct gi_core_ctx *ctx, struct gi_core_peer *p);

/* core_push.c */
void gi_core_kick(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* push() it soon */
void gi_core_push(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* post what can be */
int gi_core_push_all(struct gi_core_ctx *ctx);
/* Where the next piece of an operation goes on a rail, and its bytes, `most` or less. */
int gi_core_next_piece(struct gi_core_ctx *ctx, uint32_t rail, const struct gi_core_op *op,
                       uint64_t most, struct gi_core_place *at, uint64_t *len);
/* Post it, by the home rail; a striped one's has at most `most` bytes. */
int gi_core_post_piece(struct gi_core_ctx *ctx, struct gi_core_op *op, bool read, uint64_t most);
int gi_core_posted(struct gi_core_ctx *ctx, struct gi_core_peer *p, int st); /* notes EAGAIN */

/* core_bundle.c */
bool gi_core_bundle_fits(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                         const struct gi_core_put *put, bool host);
int gi_core_bundle_add(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                       const struct gi_core_put *put);
bool gi_core_bundle_send(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* false: not yet */
bool gi_core_bundle_is_whole(const struct gi_core_bundle *b, uint32_t len);
void gi_core_bundle_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                            const struct gi_core_bundle *b);

/* core_prompt.c */
struct gi_core_chunk *gi_core_prompt_take(struct gi_core_ctx *ctx, struct gi_core_peer *p);
void gi_core_prompt_sent(struct gi_core_peer *p, struct gi_core_chunk *c, uint64_t seq);
bool gi_core_prompt_writes(const struct gi_core_ctx *ctx, const struct gi_core_peer *p);
void gi_core_prompt_lone(struct gi_core_peer *p, uint64_t seq); /* it may have been one */
void gi_core_prompt_quiet(struct gi_core_peer *p);              /* ... and this follows */
void gi_core_prompt_done(struct gi_core_ctx *ctx, struct gi_core_chunk *c);
void gi_core_prompt_failed(struct gi_core_ctx *ctx, struct gi_core_chunk *c);
void gi_core_proven(struct gi_core_peer *p, uint64_t to); /* nothing up to there is loose */

/* core_signal.c */
enum gi_core_way gi_core_choose(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                                const struct gi_core_put *put, bool single, bool host);
uint64_t gi_core_imm(const struct gi_core_ctx *ctx, const struct gi_core_action *a);
int gi_core_send_action(struct gi_core_ctx *ctx, struct gi_core_op *op);
int gi_core_send_native(struct gi_core_ctx *ctx, struct gi_core_op *op);
/* From that peer; NULL: nobody knows whose it is. */
int gi_core_signal_slot(struct gi_core_ctx *ctx, const struct gi_core_peer *p, uint32_t slot,
                        uint64_t value);
void gi_core_arrived_imm(void *arg, int peer, uint64_t imm);

/* core_msg.c: GIN_OK, GIN_EAGAIN (no credit, or the network is full) or what the network said */
void gi_core_msg_init(const struct gi_core_ctx *ctx, struct gi_core_msg *m, unsigned kind);
int gi_core_msg_send(struct gi_core_ctx *ctx, struct gi_core_peer *p, void *m, uint32_t len);
bool gi_core_control(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* false: some is left */
void gi_core_acked(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint16_t ack);
void gi_core_reply_queue(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_reply *r);

/* core_am.c */
void gi_core_store(void *at, const void *from, uint32_t n);
void gi_core_arrived_msg(void *arg, int peer, const void *bytes, uint32_t len);
/* The message lies where it stays until it is handled. */
static inline bool gi_core_is_kept(const struct gi_core_peer *p, const struct gi_core_msg *m)
{
    return p->in.early != NULL && m == &p->in.early[m->h.seq % GI_CORE_CREDITS];
}
/* Handle what came and may be handled now: the first one of those kept was waited for. */
void gi_core_go_on(struct gi_core_ctx *ctx, struct gi_core_peer *p);

/* core_amo.c */
int gi_core_word(const struct gi_core_ctx *ctx, const struct gi_core_update *u, void **at);
/* GIN_EAGAIN: not yet, call it again. */
int gi_core_apply(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                  const struct gi_core_update *u, uint64_t *old);
bool gi_core_amo_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m); /* false: not yet, call it again */
void gi_core_amo_replied(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m);
int gi_core_amo_send(struct gi_core_ctx *ctx, struct gi_core_op *op);

/* core_stage.c: see core_stage.h */
int gi_core_stage_run(struct gi_core_ctx *ctx);
void gi_core_stage_kick(struct gi_core_ctx *ctx, struct gi_core_peer *p);

/* core_settle.c */
bool gi_core_peer_settled(const struct gi_core_peer *p, uint64_t mark);
int gi_core_fence_pass(struct gi_core_ctx *ctx, struct gi_core_op *op);
bool gi_core_echo(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* false: wanted, not sent */
bool gi_core_echo_rides(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* ... with a bundle */
void gi_core_echo_sent(struct gi_core_peer *p, uint64_t cover);
bool gi_core_imms_unproven(const struct gi_core_peer *p); /* ... to be handled */

/* core_error.c */
void gi_core_peer_fail(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status,
                       const char *why);
void gi_core_ctx_error(struct gi_core_ctx *ctx, int status, int rank, const char *why);
void gi_core_lane_dead(struct gi_core_ctx *ctx, const char *why);
void gi_core_failed(void *arg, struct gi_net_request *req, int peer, int status, int provider_error,
                    const char *text);
void gi_core_refuse(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status,
                    const struct gi_core_msg *m, uint32_t window, uint64_t off);
void gi_core_nack(struct gi_core_ctx *ctx, struct gi_core_peer *p, int status, uint32_t kind,
                  uint32_t window, uint64_t off); /* ... once it is counted; kind: of the message */
void gi_core_nacked(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m);
void gi_core_gone(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* nothing goes to it */
void gi_core_lost(struct gi_core *core, int rank, const char *why); /* for all contexts */
void gi_core_see_deaths(struct gi_core_ctx *ctx);

/* core_watch.c */
bool gi_core_owes(const struct gi_core_peer *p); /* is something to it under way? */
void gi_core_watch(struct gi_core_ctx *ctx);     /* deaths told from outside; clock */

/* core_ctx.c */
/* What the lanes of a context have in common, whichever rail: all but `unread` and the handler. */
struct gi_net_lane_config gi_core_lane_config(const struct gi_core_ctx *ctx,
                                              const struct gi_core_ctx_config *config);
/* Collective: GIN_OK if st is that everywhere. Before every exchange that needs memory, for whoever
 * has none must not leave the others waiting in it. */
int gi_core_all_well(const struct gi_core_config *cfg, int st, const char *what);
void gi_core_done(void *arg, struct gi_net_request *req);

static inline uint32_t gi_core_turn(const struct gi_core_ctx *ctx)
{
    return atomic_load_explicit(&ctx->polls, memory_order_relaxed);
}

/* Messages to it may be kept there for a while: what is no message could overtake them. */
static inline bool gi_core_is_slow(const struct gi_core_peer *p)
{
    return GIN_UNLIKELY(p->out.slow > p->out.acked) || GIN_UNLIKELY(p->slows != 0);
}

/* The last message to it is one of these. */
static inline void gi_core_note_slow(struct gi_core_peer *p, bool slow)
{
    if (GIN_UNLIKELY(slow))
        p->out.slow = p->out.sent;
}

static inline int gi_core_rank_of(const struct gi_core_ctx *ctx, const struct gi_core_peer *p)
{
    return (int)(p - ctx->peers);
}

#endif
