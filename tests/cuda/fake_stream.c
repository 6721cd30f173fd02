/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver's streams: work waits in a queue until somebody waits for it, or, where a word is
 * to be written, for a while; so what must not happen before a copy has arrived can be caught.
 */
#include <stdlib.h>
#include <unistd.h>
#include "tests/cuda/fake_int.h"

#define PATIENCE_US 200 /* until work is done that nobody waits for */

static int n_stamps; /* in all queues */
static bool held;    /* nothing is done unless somebody waits for it */
static pthread_cond_t stamps = PTHREAD_COND_INITIALIZER;

static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* a call has ended */

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

static struct thing *make_stream(int device)
{
    struct thing *t = fake_make(STREAM, 0, 0);
    t->device = device;
    return t;
}

CUresult fake_stream(CUstream stream, struct thing **t)
{
    static struct thing defaults[8]; /* never made, so never left behind */
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        return r;
    *t = stream == NULL ? &defaults[fake_current()->device] : fake_find(STREAM, (uintptr_t)stream);
    if (stream == NULL)
        (*t)->device = fake_current()->device;
    return *t != NULL && (*t)->device == fake_current()->device ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_HANDLE;
}

void fake_work_free(struct work *w)
{
    free(w->kept);
    free(w->arg);
    free(w);
}

/* A call takes its time, and others go on meanwhile. */
static void run_call(struct thing *stream, struct work *w)
{
    stream->running = true;
    pthread_mutex_unlock(&fake_lock);
    w->run(w->arg);
    pthread_mutex_lock(&fake_lock);
    stream->running = false;
    pthread_cond_broadcast(&progress);
}

/* Do the oldest piece of work, or wait for a call under way; false: there is none. */
static bool run_one(struct thing *stream)
{
    struct work *w = stream->work;
    if (stream->running) {
        pthread_cond_wait(&progress, &fake_lock);
        return true;
    }
    if (w == NULL)
        return false;
    stream->work = w->next;
    n_stamps -= w->stamps;
    if (w->run != NULL)
        run_call(stream, w);
    else if (w->stamps)
        __atomic_store_n((uint64_t *)(uintptr_t)w->to, w->stamp, __ATOMIC_RELEASE);
    else if (w->kept != NULL)
        memcpy((void *)(uintptr_t)w->to, w->kept, w->bytes);
    else if (w->from != 0)
        memcpy((void *)(uintptr_t)w->to, (void *)(uintptr_t)w->from, w->bytes);
    else
        memset((void *)(uintptr_t)w->to, w->fill, w->bytes);
    fake_work_free(w);
    return true;
}

/* Does what a stream has where calls are among it: one may wait for another stream's. */
static void *drive(void *arg)
{
    struct thing *t = arg;
    pthread_mutex_lock(&fake_lock);
    while (run_one(t))
        ;
    t->driven = false;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

void fake_append(struct thing *stream, struct work work)
{
    pthread_t thread;
    bool captured = stream->capturing != CU_STREAM_CAPTURE_STATUS_NONE;
    struct work **p = captured ? &stream->into->work : &stream->work, *w = malloc(sizeof(*w));
    while (*p != NULL)
        p = &(*p)->next;
    *w = work;
    w->next = NULL;
    *p = w;
    if (captured || work.run == NULL || stream->driven)
        return;
    stream->driven = pthread_create(&thread, NULL, drive, stream) == 0;
    if (stream->driven)
        pthread_detach(thread);
}

API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    (void)flags;
    ENTER();
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    *stream = (CUstream)make_stream(fake_current()->device)->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamDestroy(CUstream stream)
{
    ENTER();
    struct thing *t = fake_find(STREAM, (uintptr_t)stream);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    while (run_one(t) || t->driven)
        if (t->driven && t->work == NULL && !t->running)
            pthread_cond_wait(&progress, &fake_lock);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamSynchronize(CUstream stream)
{
    struct thing *t;
    ENTER();
    CUresult r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS && t->capturing)
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    while (r == CUDA_SUCCESS && run_one(t))
        ;
    LEAVE(r);
}

API CUresult cuStreamQuery(CUstream stream)
{
    struct thing *t;
    pthread_mutex_lock(&fake_lock);
    CUresult r = fake_stream(stream, &t);
    LEAVE(r == CUDA_SUCCESS && (t->work != NULL || t->running) ? CUDA_ERROR_NOT_READY : r);
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
    r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS &&
        ((!pageable(to) && !reaches(to, bytes)) || (!pageable(from) && !reaches(from, bytes))))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && pageable(from)) {
        w.kept = malloc(bytes + 1);
        memcpy(w.kept, (void *)(uintptr_t)from, bytes);
    }
    if (r == CUDA_SUCCESS)
        fake_append(t, w);
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
    CUresult r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS && !reaches(at, bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        fake_append(t, (struct work){.to = at, .bytes = bytes, .fill = byte});
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
            while (t->kind == STREAM && !t->driven && !t->running && run_one(t))
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
    CUresult r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS && ((at & 7) != 0 || !reaches(at, 8)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        need_mover();
        fake_append(t, (struct work){.to = at, .bytes = 8, .stamps = true, .stamp = value});
        n_stamps++;
        pthread_cond_signal(&stamps);
    }
    LEAVE(r);
}
