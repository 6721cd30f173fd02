/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver's streams: work waits in a queue until somebody waits for it, or, where a word is
 * to be written, for a while; so what must not happen before a copy has arrived can be caught.
 */
#include <stdlib.h>
#include <unistd.h>
#include "tests/cuda/fake_int.h"

#define PATIENCE_US 200 /* until work is done that nobody waits for */

/* A copy, a fill (from 0) or a word to be written. */
struct work {
    struct work *next;
    CUdeviceptr to, from;
    size_t bytes;
    unsigned char fill;
    char *kept; /* what pageable memory held when the copy was issued */
    bool stamps;
    uint64_t stamp;
};

static int n_stamps; /* in all queues */
static bool held;    /* nothing is done unless somebody waits for it */
static pthread_cond_t stamps = PTHREAD_COND_INITIALIZER;

/* Streams use `object` for their first piece of work. */
static struct work **queue_of(struct thing *stream)
{
    return (struct work **)(void *)&stream->object;
}

/* May the current context's GPU reach all of it? */
static bool reaches(CUdeviceptr at, size_t bytes)
{
    unsigned me = 1u << fake_current()->device;
    while (bytes > 0) {
        struct thing *t = fake_around(MAPPED, at, 1);
        bool may = t != NULL && (t->access & me);
        if (t == NULL) {
            t = fake_around(PLAIN, at, 1);
            may = t != NULL && (t->device == fake_current()->device ||
                                (fake_current()->friends & 1u << t->device));
        }
        if (t == NULL) {
            t = fake_around(IPC, at, 1);
            may = t != NULL && t->device == fake_current()->device;
        }
        if (t == NULL)
            t = fake_around(PINNED, at, 1), may = t != NULL;
        if (t == NULL)
            t = fake_around(REGISTERED, at, 1), may = t != NULL;
        if (!may)
            return false;
        size_t n = t->at + t->bytes - at;
        n = n < bytes ? n : bytes;
        at += n;
        bytes -= n;
    }
    return true;
}

static CUresult stream_state(CUstream stream, struct thing **t)
{
    CUresult r = fake_usable();
    *t = fake_find(STREAM, (uintptr_t)stream);
    if (r != CUDA_SUCCESS)
        return r;
    return *t != NULL && (*t)->device == fake_current()->device ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_HANDLE;
}

/* Do the oldest piece of work; false: there is none. */
static bool run_one(struct thing *stream)
{
    struct work *w = *queue_of(stream);
    if (w == NULL)
        return false;
    *queue_of(stream) = w->next;
    n_stamps -= w->stamps;
    if (w->stamps)
        __atomic_store_n((uint64_t *)(uintptr_t)w->to, w->stamp, __ATOMIC_RELEASE);
    else if (w->kept != NULL)
        memcpy((void *)(uintptr_t)w->to, w->kept, w->bytes);
    else if (w->from != 0)
        memcpy((void *)(uintptr_t)w->to, (void *)(uintptr_t)w->from, w->bytes);
    else
        memset((void *)(uintptr_t)w->to, w->fill, w->bytes);
    free(w->kept);
    free(w);
    return true;
}

static void append(struct thing *stream, struct work work)
{
    struct work **p = queue_of(stream), *w = malloc(sizeof(*w));
    while (*p != NULL)
        p = &(*p)->next;
    *w = work;
    w->next = NULL;
    *p = w;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    (void)flags;
    ENTER();
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    struct thing *t = fake_make(STREAM, 0, 0);
    t->device = fake_current()->device;
    *stream = (CUstream)t->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamDestroy(CUstream stream)
{
    ENTER();
    struct thing *t = fake_find(STREAM, (uintptr_t)stream);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    while (run_one(t))
        ;
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamSynchronize(CUstream stream)
{
    struct thing *t;
    ENTER();
    CUresult r = stream_state(stream, &t);
    while (r == CUDA_SUCCESS && run_one(t))
        ;
    LEAVE(r);
}

API CUresult cuStreamQuery(CUstream stream)
{
    struct thing *t;
    pthread_mutex_lock(&fake_lock);
    CUresult r = stream_state(stream, &t);
    LEAVE(r == CUDA_SUCCESS && *queue_of(t) != NULL ? CUDA_ERROR_NOT_READY : r);
}

/* ---- work ---- */

/* Memory that the driver does not know is the host's, and read at once. */
static bool pageable(CUdeviceptr at)
{
    static const enum kind kinds[] = {MAPPED, PLAIN, IPC, PINNED, REGISTERED};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (fake_around(kinds[i], at, 1) != NULL)
            return false;
    return true;
}

static CUresult copy(const char *entry, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                     CUstream stream)
{
    struct thing *t;
    CUresult r = fake_enter(entry);
    if (r != CUDA_SUCCESS)
        return r;
    struct work w = {.to = to, .from = from, .bytes = bytes};
    r = stream_state(stream, &t);
    if (r == CUDA_SUCCESS &&
        ((!pageable(to) && !reaches(to, bytes)) || (!pageable(from) && !reaches(from, bytes))))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && pageable(from)) {
        w.kept = malloc(bytes + 1);
        memcpy(w.kept, (void *)(uintptr_t)from, bytes);
    }
    if (r == CUDA_SUCCESS)
        append(t, w);
    LEAVE(r);
}

API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(__func__, to, from, bytes, stream);
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy(__func__, to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(__func__, (CUdeviceptr)(uintptr_t)to, from, bytes, stream);
}

API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)
{
    struct thing *t;
    ENTER();
    CUresult r = stream_state(stream, &t);
    if (r == CUDA_SUCCESS && !reaches(at, bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        append(t, (struct work){.to = at, .bytes = bytes, .fill = byte});
    LEAVE(r);
}

/* Does what was given to the streams while nobody waits. */
static void *mover(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&fake_lock);
    for (;;) {
        while (n_stamps == 0)
            pthread_cond_wait(&stamps, &fake_lock);
        pthread_mutex_unlock(&fake_lock);
        usleep(PATIENCE_US);
        pthread_mutex_lock(&fake_lock);
        for (struct thing *t = fake_things; t != NULL && !held; t = t->next)
            while (t->kind == STREAM && run_one(t))
                ;
    }
    return NULL;
}

API void fake_cuda_hold(int hold)
{
    pthread_mutex_lock(&fake_lock);
    held = hold != 0;
    pthread_mutex_unlock(&fake_lock);
}

/* One mover per process; called with the lock. */
static void need_mover(void)
{
    static pid_t process;
    pthread_t thread;
    if (process == getpid())
        return;
    process = getpid();
    if (pthread_create(&thread, NULL, mover, NULL) == 0)
        pthread_detach(thread);
}

API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value,
                                  unsigned int flags)
{
    struct thing *t;
    (void)flags;
    ENTER();
    CUresult r = stream_state(stream, &t);
    if (r == CUDA_SUCCESS && ((at & 7) != 0 || !reaches(at, 8)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        need_mover();
        append(t, (struct work){.to = at, .bytes = 8, .stamps = true, .stamp = value});
        n_stamps++;
        pthread_cond_signal(&stamps);
    }
    LEAVE(r);
}
