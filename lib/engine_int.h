/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between engine.c, which runs the thread, engine_ring.c, which takes descriptors and lets them go
 * in order, and the rooms that know what they mean.
 */
#ifndef GI_ENGINE_INT_H
#define GI_ENGINE_INT_H

#include "devcomm_cuda.h"
#include "engine.h"

#define GI_ENGINE_STREAMS  4u
#define GI_ENGINE_REQUESTS 1024u

enum gi_request_state {
    GI_REQUEST_COPYING,  /* its stamp has not come */
    GI_REQUEST_BEHIND,   /* done what it can before those in front of it are complete */
    GI_REQUEST_ASKING,   /* waits for a slot to ask a word's owner */
    GI_REQUEST_ASKED,    /* waits for the answer */
    GI_REQUEST_POSTING,  /* the network cannot take it yet */
    GI_REQUEST_FAR,      /* with the network */
    GI_REQUEST_SETTLING, /* until what the network has is at its targets */
    GI_REQUEST_DONE,
    GI_REQUEST_FAILED /* or given up behind one that has */
};

enum gi_far_part {
    GI_FAR_NOTHING,
    GI_FAR_ALL,
    GI_FAR_ACTION /* its data took, or take, another path */
};

/* What the GPU reads and writes of a request, in pinned host memory. */
struct gi_cell {
    uint64_t stamp; /* of the last copy that has arrived */
    uint64_t value; /* what is copied by PUT_VALUE and to gpu_word */
    uint64_t unused[6];
};

/* A descriptor that was not complete at once. */
struct gi_request {
    struct gi_request *next; /* in its ring, by ticket; or in the pool */
    enum gi_request_state state;
    struct gin_i_op op;
    uint64_t ticket;
    uint64_t *word; /* of the action in host memory, or NULL */
    /* Of the action or an atomic, in GPU memory; 0: none, or its owner does it. */
    uint64_t gpu_word;
    enum gin_i_amo_op word_op;
    bool ask;  /* the word's owner is to do it */
    bool sets; /* by a copy that is under way or done */
    struct gi_ask *asked;
    enum gi_far_part far; /* what of it is the network's */
    bool settled;         /* has been waited for */
    uint64_t mark;        /* SETTLING: the core's, */
    uint64_t posted;      /* and how many operations that covers */
    struct gi_far_op *far_op;
    struct gi_cell *cell;
    uint64_t cell_addr; /* the GPU's address of it */
    uint64_t stamp;     /* that its copy leaves in the cell */
};

struct gi_engine {
    gin_comm_t *comm;
    struct gi_gpu *gpu;
    pthread_t thread;
    pthread_mutex_t lock; /* around everything; the thread lets go of it when it is wanted */
    atomic_int wanted;
    bool stop;
    bool crowded;              /* its core may be needed elsewhere */
    struct gi_devcomm *served; /* by d->kernel->next */
    void *stream[GI_ENGINE_STREAMS];
    uint32_t next_stream;
    void *word_stream; /* engine_words.c */
    struct gi_request *pool, *requests;
    struct gi_request *limbo; /* of rings that are gone, until their copies and answers have come */
    uint32_t share;           /* most that a ring may hold */
    bool slow;                /* something took long: the next ring's turn */
    uint32_t next_ask;
    struct gi_cell *cells;
    uint64_t stamps; /* handed out */
    uint64_t cells_addr;
    uint32_t bell; /* of my box of asks, when it was looked into */
    uint32_t turns;
    uint64_t next_look;
    /* for gin_stats() */
    uint64_t n_taken, n_bytes, n_spells, busy_ns;
    uint64_t from_ns, to_ns; /* of the last spell; to_ns 0: it lasts */
};

/* A descriptor on its way from names to addresses. */
struct gi_job {
    struct gi_engine *e;
    struct gi_devcomm *d;
    struct gi_ring *r;
    const struct gin_i_op *op;
};

/* Memory: this process's address of it, or, with a pid, another one's. */
struct gi_spot {
    uint64_t addr;
    bool gpu; /* or perhaps: the driver has to look */
    bool far; /* by the network: there is no address */
    pid_t pid;
};

/* engine_names.c */
/* The live window that descriptors call `name`, and whether [off, off + bytes) may be used. */
const struct gin_i_window *gi_engine_window(const gin_comm_t *comm, uint32_t name);
int gi_engine_inside(gin_comm_t *comm, const struct gin_i_window *w, uint64_t off, uint64_t bytes,
                     bool update);
/* [off, off + bytes) of a window at a rank, with the window. */
int gi_find_window(const struct gi_job *j, uint32_t name, int world, uint64_t off, uint64_t bytes,
                   bool update, const struct gin_i_window **w);
/* This process's way to it; to the bytes at a rank; and to the source or destination here. Where
 * that is the network there is none, but s->far. */
int gi_find_spot(const struct gi_job *j, const struct gin_i_window *w, int world, uint64_t off,
                 struct gi_spot *s);
int gi_find_bytes(const struct gi_job *j, uint32_t name, int world, uint64_t off, bool update,
                  struct gi_spot *s);
int gi_find_mine(const struct gi_job *j, uint32_t name, uint64_t off, struct gi_spot *s);
/* Its words lie in GPU memory that this host's engines or GPUs update. */
bool gi_is_applied_near(const struct gi_job *j, const struct gin_i_window *w, int world);
/* The action of a descriptor, for the network's core. */
struct gi_core_action gi_engine_action(const struct gin_i_op *o);
/* The word of an action, into q. */
int gi_find_word(const struct gi_job *j, struct gi_request *q);

/* engine_ops.c */
/* Start a copy whose end the request waits for. */
int gi_engine_copy(const struct gi_job *j, struct gi_request *q, uint64_t to, uint64_t from,
                   uint64_t bytes);
/* The request is complete: its counter, and its reply with what its word was. */
void gi_engine_done(const struct gi_job *j, struct gi_request *q, uint64_t was);
/* Do what a descriptor says, as far as can be done at once. */
int gi_engine_execute(const struct gi_job *j, struct gi_request *q);
/* A request whose copy, if any, is over; and one that stands at the head. */
int gi_engine_step(const struct gi_job *j, struct gi_request *q);
int gi_engine_act(const struct gi_job *j, struct gi_request *q);

/* engine_far.c */
/* May kernels of d use the network? */
bool gi_far_is_open(const struct gi_devcomm *d);
/* The network's side of a ring, before its engine serves it; and when its context is closed. */
int gi_far_open(const struct gi_devcomm *d, struct gi_ring *r, uint32_t rings);
void gi_far_close(struct gi_ring *r);
/* Hand over what of the request is the network's; or, if it cannot take it, later. */
int gi_far_post(const struct gi_job *j, struct gi_request *q);
/* A request at the head acts on what the network may still have under way: begin to wait until
 * that is at its targets. False: there is nothing. */
bool gi_far_settle(const struct gi_job *j, struct gi_request *q);
/* What is waiting, and what has come. True when something happened. */
bool gi_far_turn(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r);
void gi_far_rest(struct gi_ring *r); /* let others have the context */
/* Nobody waits for it any more. */
void gi_far_forget(struct gi_request *q);
/* Everything that the network got is at its targets. */
bool gi_far_is_settled(const struct gi_ring *r);

/* engine_ring.c */
/* It has failed, for a recorded reason. */
void gi_request_dead(const struct gi_job *j, struct gi_request *q, int status);
bool gi_request_is_late(const struct gi_ring *r, const struct gi_request *q);
int gi_requests_open(struct gi_engine *e);
void gi_requests_close(struct gi_engine *e);
/* A ring goes; with what is under way, if the communicator has failed. */
void gi_requests_drop(struct gi_engine *e, struct gi_ring *r);
void gi_requests_rest(struct gi_engine *e); /* look after what was dropped under way */
/* Take and complete what can be; true when something was, or is under way. */
bool gi_engine_serve(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r);
/* Begin to wait for all that was posted before; and whether it is complete, or the context dead. */
void gi_engine_mark(struct gi_ring *r);
bool gi_engine_reached(struct gi_ring *r);

/* engine_words.c */
/* The request's word lies in GPU memory, in a window at q->op.peer: find it and who applies. */
int gi_word_find(const struct gi_job *j, struct gi_request *q, const struct gin_i_window *w,
                 uint64_t off, uint32_t bytes, enum gin_i_amo_op op);
/* Begin the update; and go on with one whose owner has been asked. */
int gi_word_act(const struct gi_job *j, struct gi_request *q);
int gi_word_go_on(const struct gi_job *j, struct gi_request *q);
/* One that nobody waits for any more: its owner has answered, or never will. */
bool gi_word_is_over(const struct gi_engine *e, struct gi_request *q);
/* Ranks that have been asked: do what was posted to me. True when there was something. */
bool gi_asks_serve(struct gi_engine *e);

#endif
