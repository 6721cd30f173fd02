/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake driver's streams, which do at once what they are given, and copies. */
#include "tests/cuda/fake_int.h"

/* ---- streams and copies ---- */

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
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

static CUresult stream_state(CUstream stream)
{
    struct thing *t = fake_find(STREAM, (uintptr_t)stream);
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        return r;
    return t != NULL && t->device == fake_current()->device ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_HANDLE;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER();
    LEAVE(stream_state(stream));
}

API CUresult cuStreamQuery(CUstream stream)
{
    pthread_mutex_lock(&fake_lock);
    LEAVE(stream_state(stream));
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

API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)
{
    ENTER();
    CUresult r = stream_state(stream);
    if (r == CUDA_SUCCESS && !reaches(at, bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        memset((void *)(uintptr_t)at, byte, bytes);
    LEAVE(r);
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER();
    CUresult r = stream_state(stream);
    if (r == CUDA_SUCCESS && !reaches(to, bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        memcpy((void *)(uintptr_t)to, from, bytes);
    LEAVE(r);
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER();
    CUresult r = stream_state(stream);
    if (r == CUDA_SUCCESS && !reaches(from, bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        memcpy(to, (void *)(uintptr_t)from, bytes);
    LEAVE(r);
}

API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER();
    CUresult r = stream_state(stream);
    if (r == CUDA_SUCCESS && (!reaches(to, bytes) || !reaches(from, bytes)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    LEAVE(r);
}
