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
    BOUND
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
CUresult fake_usable(void); /* the current context is there, and well */
int fake_device_count(void);
bool fake_is_multicast(int fd);                                      /* descriptor of an object */
struct thing *fake_make(enum kind kind, uintptr_t at, size_t bytes); /* at 0: itself */
void fake_drop(struct thing *t);
struct thing *fake_find(enum kind kind, uintptr_t at);
/* The thing of a kind whose bytes hold [at, at + bytes). */
struct thing *fake_around(enum kind kind, uintptr_t at, size_t bytes);

#endif
