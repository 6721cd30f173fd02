/* SPDX-License-Identifier: BSD-3-Clause */
/* Between engine.c, which runs the thread, and engine_ops.c, which knows what descriptors mean. */
#ifndef GI_ENGINE_INT_H
#define GI_ENGINE_INT_H

#include "devcomm_cuda.h"
#include "engine.h"

#define GI_ENGINE_STREAMS  4u
#define GI_ENGINE_REQUESTS 1024u

enum gi_request_state {
    GI_REQUEST_COPYING, /* its stamp has not come */
    GI_REQUEST_BEHIND,  /* done what it can before those in front of it are complete */
    GI_REQUEST_DONE
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
    uint64_t *word;    /* of the action in host memory, or NULL */
    uint64_t gpu_word; /* of SET_AT in GPU memory, or 0 */
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
    struct gi_request *pool, *requests;
    struct gi_cell *cells;
    uint64_t stamps; /* handed out */
    uint32_t turns;
    uint64_t next_look;
};

int gi_requests_open(struct gi_engine *e);
void gi_requests_close(struct gi_engine *e);
/* Forget what is under way: the communicator has failed. */
void gi_requests_drop(struct gi_engine *e, struct gi_ring *r);
/* Take and complete what can be; true when something was. */
bool gi_engine_serve(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r);

#endif
