/* SPDX-License-Identifier: BSD-3-Clause */
/* Between engine.c, which runs the thread, and engine_ops.c, which knows what descriptors mean. */
#ifndef GI_ENGINE_INT_H
#define GI_ENGINE_INT_H

#include "devcomm_cuda.h"
#include "engine.h"

#define GI_ENGINE_STREAMS  4u
#define GI_ENGINE_REQUESTS 1024u

enum gi_request_state {
    GI_REQUEST_COPYING, /* its event has not passed */
    GI_REQUEST_BEHIND,  /* done what it can before those in front of it are complete */
    GI_REQUEST_DONE
};

/* A descriptor that was not complete at once. */
struct gi_request {
    struct gi_request *next; /* in its ring, by ticket; or in the pool */
    enum gi_request_state state;
    struct gin_i_op op;
    uint64_t ticket;
    uint64_t *word;    /* of the action in host memory, or NULL */
    uint64_t gpu_word; /* of SET_AT in GPU memory, or 0 */
    uint64_t value;    /* what is copied by PUT_VALUE and to gpu_word */
    void *event;
};

struct gi_engine {
    gin_comm_t *comm;
    struct gi_gpu *gpu;
    pthread_t thread;
    pthread_mutex_t lock; /* around everything; the thread lets go of it when it is wanted */
    atomic_int wanted;
    bool stop;
    struct gi_devcomm *served; /* by d->kernel->next */
    void *stream[GI_ENGINE_STREAMS];
    uint32_t next_stream;
    struct gi_request *pool, *requests;
    uint64_t next_look;
};

int gi_requests_open(struct gi_engine *e);
void gi_requests_close(struct gi_engine *e);
/* Forget what is under way: the communicator has failed. */
void gi_requests_drop(struct gi_engine *e, struct gi_ring *r);
/* Take and complete what can be; true when something was. */
bool gi_engine_serve(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r);

#endif
