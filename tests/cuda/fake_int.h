/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the fake driver share. One lock around everything. */
#ifndef GINSHMEM_TESTS_CUDA_FAKE_INT_H
#define GINSHMEM_TESTS_CUDA_FAKE_INT_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define API     __attribute__((visibility("default")))
#define GRANULE ((size_t)2 << 20)
#define GARBAGE 0xa5 /* what fresh memory holds */

enum kind {
    OBJECT,
    RESERVED,
    MAPPED,
    PLAIN,
    POOL,
    MANAGED,
    IPC,
    PINNED,
    REGISTERED,
    STREAM,
    BOUND,
    MODULE,
    GRAPH
};

/* A copy, a fill (from 0), a word to be written, or a call. */
struct work {
    struct work *next;
    CUdeviceptr to, from;
    size_t bytes;
    unsigned char fill;
    char *kept; /* what pageable memory held when the copy was issued */
    bool stamps;
    uint64_t stamp;
    void (*run)(void *arg); /* without the lock; arg is kept here */
    void *arg;
    size_t arg_bytes;
};

/* Everything that can be made and must be undone. */
struct thing {
    struct thing *next;
    enum kind kind;
    uintptr_t at; /* address; OBJECT, STREAM: that of the thing itself */
    size_t bytes;
    int refs;          /* OBJECT: handles and maps; IPC: opens */
    int fd;            /* OBJECT, PLAIN, IPC */
    int types;         /* OBJECT: kinds of handles that it may be exported as */
    const void *owner; /* PLAIN, IPC: the context */
    int device;        /* where it lies */
    unsigned access;   /* MAPPED: devices that may */
    struct thing *object;
    size_t off;     /* BOUND: in its object */
    bool multicast; /* OBJECT: fake_multicast.c */
    /* STREAM, GRAPH */
    struct work *work;  /* to be done, in order; GRAPH: what was captured */
    bool running;       /* STREAM: a call is under way */
    bool driven;        /* STREAM: a thread does what is there */
    int capturing;      /* STREAM: CUstreamCaptureStatus */
    struct thing *into; /* STREAM: the graph that is captured */
};

struct CUctx_st {
    int device, retained;
    bool faulted;
    unsigned friends; /* devices whose plain memory it may reach */
};

extern pthread_mutex_t fake_lock;
extern struct thing *fake_things;

CUresult fake_enter(const char *entry); /* counts, locks unless a failure is injected */
#define ENTER()                             \
    do {                                    \
        CUresult r_ = fake_enter(__func__); \
        if (r_ != CUDA_SUCCESS)             \
            return r_;                      \
    } while (0)
#define LEAVE(result)                     \
    do {                                  \
        CUresult r_ = (result);           \
        pthread_mutex_unlock(&fake_lock); \
        return r_;                        \
    } while (0)

CUcontext fake_current(void);
CUcontext fake_context(int device); /* its primary one */
CUresult fake_usable(void);         /* the current context is there, and well */
int fake_device_count(void);
bool fake_is_multicast(int fd);                                      /* descriptor of an object */
struct thing *fake_make(enum kind kind, uintptr_t at, size_t bytes); /* at 0: itself */
void fake_drop(struct thing *t);
struct thing *fake_find(enum kind kind, uintptr_t at);
/* The thing of a kind whose bytes hold [at, at + bytes). */
struct thing *fake_around(enum kind kind, uintptr_t at, size_t bytes);

/* ---- fake_rdma.c ---- */
bool fake_rdma_attribute(int what, int *value); /* one of these, and its value */

/* ---- fake_stream.c ---- */
/* The stream of a handle, if the current context may use it; NULL is each context's default. */
CUresult fake_stream(CUstream stream, struct thing **t);
/* At the end of its queue, or into the graph that is captured. With the lock. */
void fake_append(struct thing *stream, struct work work);
void fake_work_free(struct work *w);

#endif
