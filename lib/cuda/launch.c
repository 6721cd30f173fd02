/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading kernels, and giving work to streams. What the program's thread has current is left as it
 * is: where that is the GPU's context, as nearly always, nothing is pushed.
 */
#include "cuda/launch.h"

#include <pthread.h>
#include <stdlib.h>
#include "base/log.h"
#include "cuda/gpu_int.h"

#if GI_HAVE_CUDA

struct gi_kernels {
    struct gi_kernels *next;
    CUcontext context;
    CUmodule module;
    unsigned users, n;
    CUfunction f[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gi_kernels *loaded; /* one per context */

/* ---- loading ---- */

static int load(struct gi_kernels *k, const char *const *names)
{
    const struct gi_cu *cu = gi_cu();
    int registers;
    CUresult r = cu->cuModuleLoadData(&k->module, gi_kernels_image);
    if (r != CUDA_SUCCESS)
        return gi_cu_fail(r, "cannot load the library's kernels");
    for (unsigned i = 0; r == CUDA_SUCCESS && i < k->n; i++) {
        r = cu->cuModuleGetFunction(&k->f[i], k->module, names[i]);
        if (r == CUDA_SUCCESS) /* which makes a lazy driver load it now */
            r = cu->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, k->f[i]);
        if (r != CUDA_SUCCESS)
            gi_cu_fail(r, "cannot load the library's kernel %s", names[i]);
    }
    if (r == CUDA_SUCCESS)
        return GIN_OK;
    cu->cuModuleUnload(k->module);
    return gin_last_status();
}

/* With the lock, and the context current. */
static int take(struct gi_gpu *g, const char *const *names, unsigned n)
{
    struct gi_kernels *k = loaded;
    while (k != NULL && k->context != g->context)
        k = k->next;
    if (k != NULL) {
        k->users++;
        g->kernels = k;
        return GIN_OK;
    }
    k = calloc(1, sizeof(*k) + n * sizeof(k->f[0]));
    if (k == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for %u kernels", n);
    k->context = g->context;
    k->users = 1;
    k->n = n;
    int st = load(k, names);
    if (st != GIN_OK) {
        free(k);
        return st;
    }
    k->next = loaded;
    loaded = k;
    g->kernels = k;
    return GIN_OK;
}

int gi_kernels_open(struct gi_gpu *g, const char *const *names, unsigned n)
{
    CUstreamCaptureMode mode;
    if (g->kernels != NULL)
        return GIN_OK;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    pthread_mutex_lock(&lock);
    st = take(g, names, n);
    pthread_mutex_unlock(&lock);
    gi_gpu_leave(mode);
    return st;
}

void gi_kernels_close(struct gi_gpu *g)
{
    CUstreamCaptureMode mode;
    struct gi_kernels *k = g->kernels;
    g->kernels = NULL;
    if (k == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (--k->users == 0) {
        struct gi_kernels **at = &loaded;
        while (*at != k)
            at = &(*at)->next;
        *at = k->next;
        if (gi_gpu_enter(g, &mode) == GIN_OK) {
            gi_cu()->cuModuleUnload(k->module);
            gi_gpu_leave(mode);
        }
        free(k);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- work for streams ---- */

/* 1: pushed. Unlike gi_gpu_enter() it leaves the mode of captures alone: what is captured here is
 * meant to be. */
static int enter(const struct gi_gpu *g, int *pushed)
{
    CUcontext current = NULL;
    CUresult r = gi_cu()->cuCtxGetCurrent(&current);
    *pushed = r != CUDA_SUCCESS || current != g->context;
    if (!*pushed)
        return GIN_OK;
    r = gi_cu()->cuCtxPushCurrent(g->context);
    return gi_cu_fail(r, "cannot use the context of GPU %d", g->device);
}

static int leave(int pushed, int st)
{
    CUcontext was;
    if (pushed)
        gi_cu()->cuCtxPopCurrent(&was);
    return st;
}

static bool is_default(void *stream)
{
    return stream == NULL || stream == (void *)CU_STREAM_LEGACY ||
           stream == (void *)CU_STREAM_PER_THREAD;
}

static int capture_failed(void *stream)
{
    return gi_fail(GIN_EINVAL, "the capture of stream %p has failed; end it first", stream);
}

/* Of the default streams each context has its own: the program's current one is meant. */
static int in_context(const struct gi_gpu *g, void *stream)
{
    CUcontext mine = NULL;
    CUresult r = is_default(stream) ? gi_cu()->cuCtxGetCurrent(&mine)
                                    : gi_cu()->cuStreamGetCtx(stream, &mine);
    if (r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) /* the driver says nothing else of it then */
        return capture_failed(stream);
    if (r != CUDA_SUCCESS) {
        const char *name = NULL;
        gi_cu()->cuGetErrorName(r, &name);
        return gi_fail(GIN_EINVAL, "%p is no stream of a live CUDA context: %s", stream,
                       name != NULL ? name : "unknown error");
    }
    if (mine == g->context || (mine == NULL && is_default(stream)))
        return GIN_OK;
    return gi_fail(GIN_EINVAL,
                   "stream %p belongs to another CUDA context than this communicator, which came "
                   "up with GPU %d (%s)",
                   stream, g->device, g->name);
}

int gi_stream_usable(const struct gi_gpu *g, void *stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    int pushed, st = in_context(g, stream);
    if (st == GIN_OK)
        st = enter(g, &pushed);
    if (st != GIN_OK)
        return st;
    CUresult r = gi_cu()->cuStreamIsCapturing(stream, &capture);
    leave(pushed, GIN_OK);
    if (r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return gi_fail(GIN_EINVAL, "the default stream cannot be used while a stream that it waits "
                                   "for is captured");
    if (r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    else if (r != CUDA_SUCCESS)
        return gi_cu_fail(r, "cuStreamIsCapturing of stream %p", stream);
    if (capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return capture_failed(stream);
    return GIN_OK;
}

int gi_stream_launch(const struct gi_gpu *g, unsigned kernel, void *stream, unsigned threads,
                     void *arg)
{
    void *args[] = {arg};
    int pushed, st = enter(g, &pushed);
    if (st != GIN_OK)
        return st;
    CUresult r = gi_cu()->cuLaunchKernel(g->kernels->f[kernel], 1, 1, 1, threads, 1, 1, 0, stream,
                                         args, NULL);
    return leave(pushed, gi_cu_fail(r, "cuLaunchKernel on stream %p", stream));
}

int gi_stream_copy(const struct gi_gpu *g, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
    int pushed, st = enter(g, &pushed);
    if (st != GIN_OK)
        return st;
    CUresult r = gi_cu()->cuMemcpyAsync(to, from, bytes, stream);
    return leave(pushed, gi_cu_fail(r, "cuMemcpyAsync of %llu bytes on stream %p",
                                    (unsigned long long)bytes, stream));
}

#endif
