/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver's modules, launches and graphs. A module is that of the library's kernels alone;
 * a launch is taken down, and done by the device code on threads where FAKE_CUDA_KERNELS names a
 * library of it (tests/cuda/emulated.cc). A graph is a list of what was captured.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "cuda/kernels/stream.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_int.h"

static const char *const names[] = {
#define NAME(upper, lower) "gi_stream_" #lower,
    GI_STREAM_KERNELS(NAME)
#undef NAME
};
static struct gi_stream_job last;
static long launches;
static unsigned last_threads;

struct launch {
    struct gi_stream_job job;
    unsigned threads;
};

API long fake_cuda_launched(void *job, unsigned *threads)
{
    pthread_mutex_lock(&fake_lock);
    long n = launches;
    memcpy(job, &last, sizeof(last));
    *threads = last_threads;
    pthread_mutex_unlock(&fake_lock);
    return n;
}

/* ---- modules ---- */

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER();
    if (image == NULL || fake_usable() != CUDA_SUCCESS)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    *module = (CUmodule)fake_make(MODULE, 0, 0)->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuModuleUnload(CUmodule module)
{
    ENTER();
    struct thing *t = fake_find(MODULE, (uintptr_t)module);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name)
{
    ENTER();
    for (unsigned i = 0; i < GI_STREAM_N; i++)
        if (fake_find(MODULE, (uintptr_t)module) != NULL && strcmp(names[i], name) == 0) {
            *f = (CUfunction)(uintptr_t)&names[i];
            LEAVE(CUDA_SUCCESS);
        }
    LEAVE(CUDA_ERROR_NOT_FOUND);
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute what, CUfunction f)
{
    (void)what;
    (void)f;
    *value = 32;
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

static void run(void *arg)
{
    static void (*device)(const struct gi_stream_job *job, unsigned threads);
    const struct launch *l = arg;
    const char *path = getenv("FAKE_CUDA_KERNELS");
    pthread_mutex_lock(&fake_lock);
    if (device == NULL && path != NULL) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            fprintf(stderr, "FAKE_CUDA_KERNELS: %s\n", dlerror());
        else
            *(void **)&device = dlsym(library, "fake_kernel_run");
    }
    pthread_mutex_unlock(&fake_lock);
    if (device != NULL)
        device(&l->job, l->threads);
}

API CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream, void **args,
                            void **extra)
{
    struct thing *t;
    ENTER();
    CUresult r = fake_stream(stream, &t);
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    if (x != 1 || y != 1 || z != 1 || by != 1 || bz != 1 || bx - 1 > 1023 || shared != 0 ||
        extra != NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct launch *l = calloc(1, sizeof(*l));
    l->job = *(const struct gi_stream_job *)args[0];
    l->threads = bx;
    if ((uintptr_t)f != (uintptr_t)&names[l->job.kernel]) {
        free(l);
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    }
    last = l->job;
    last_threads = bx;
    launches++;
    fake_append(t, (struct work){.run = run, .arg = l, .arg_bytes = sizeof(*l)});
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    pthread_mutex_lock(&fake_lock);
    struct thing *t = fake_find(STREAM, (uintptr_t)stream);
    if (stream == NULL)
        *context = fake_current();
    else if (t != NULL)
        *context = fake_context(t->device);
    if (t != NULL && t->capturing == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        LEAVE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED); /* as drivers have it */
    LEAVE(stream == NULL || t != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* ---- graphs ---- */

API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    struct thing *t;
    pthread_mutex_lock(&fake_lock);
    CUresult r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS)
        *status = (CUstreamCaptureStatus)t->capturing;
    LEAVE(r);
}

API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    struct thing *t;
    (void)mode;
    ENTER();
    CUresult r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS && (stream == NULL || t->capturing))
        r = CUDA_ERROR_ILLEGAL_STATE;
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    t->capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    t->into = fake_make(GRAPH, 0, 0);
    LEAVE(CUDA_SUCCESS);
}

API void fake_cuda_spoil_capture(void *stream)
{
    pthread_mutex_lock(&fake_lock);
    struct thing *t = fake_find(STREAM, (uintptr_t)stream);
    if (t != NULL && t->capturing)
        t->capturing = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    pthread_mutex_unlock(&fake_lock);
}

API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    struct thing *t;
    ENTER();
    CUresult r = fake_stream(stream, &t);
    if (r == CUDA_SUCCESS && !t->capturing)
        r = CUDA_ERROR_ILLEGAL_STATE;
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    t->capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    *graph = (CUgraph)t->into->at;
    t->into = NULL;
    LEAVE(CUDA_SUCCESS);
}

/* In this driver a graph can be launched as it is. */
API CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    struct thing *t;
    ENTER();
    struct thing *g = fake_find(GRAPH, (uintptr_t)graph);
    CUresult r = fake_stream(stream, &t);
    if (r != CUDA_SUCCESS || g == NULL)
        LEAVE(g == NULL ? CUDA_ERROR_INVALID_HANDLE : r);
    for (struct work *w = g->work; w != NULL; w = w->next) {
        struct work copy = *w;
        if (w->run != NULL)
            copy.arg = memcpy(malloc(w->arg_bytes), w->arg, w->arg_bytes);
        fake_append(t, copy);
    }
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuGraphDestroy(CUgraph graph)
{
    ENTER();
    struct thing *g = fake_find(GRAPH, (uintptr_t)graph);
    if (g == NULL)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    while (g->work != NULL) {
        struct work *w = g->work;
        g->work = w->next;
        fake_work_free(w);
    }
    fake_drop(g);
    LEAVE(CUDA_SUCCESS);
}
