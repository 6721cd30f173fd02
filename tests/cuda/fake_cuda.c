/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake driver's state, its devices and contexts. */
#include "tests/cuda/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/cuda/fake_int.h"

#define DEVICES 8

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct thing *fake_things;
static struct CUctx_st primary[DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2},
                                           {.device = 3}, {.device = 4}, {.device = 5},
                                           {.device = 6}, {.device = 7}};
static __thread CUcontext stack[16];
static __thread int depth;
static __thread CUstreamCaptureMode capture;
static struct {
    char entry[64];
    unsigned nth;
    int error;
} inject;
static long calls;

API void fake_cuda_fail(const char *entry, unsigned nth, int error)
{
    pthread_mutex_lock(&fake_lock);
    snprintf(inject.entry, sizeof(inject.entry), "%s", entry);
    inject.nth = nth;
    inject.error = error;
    pthread_mutex_unlock(&fake_lock);
}

API long fake_cuda_live(void)
{
    long n = 0;
    pthread_mutex_lock(&fake_lock);
    for (struct thing *t = fake_things; t != NULL; t = t->next)
        n++;
    for (int d = 0; d < DEVICES; d++)
        n += primary[d].retained;
    pthread_mutex_unlock(&fake_lock);
    return n;
}

API long fake_cuda_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

API void fake_cuda_fault(int device)
{
    primary[device].faulted = true;
}

/* Entries bear versions ("_v2") that tests do not name. */
static CUresult injected(const char *entry)
{
    size_t n = strlen(inject.entry);
    bool same = strncmp(entry, inject.entry, n) == 0 && (entry[n] == 0 || entry[n] == '_');
    if (inject.nth != 0 && same && --inject.nth == 0)
        return inject.error;
    return CUDA_SUCCESS;
}

CUresult fake_enter(const char *entry)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&fake_lock);
    CUresult r = injected(entry);
    if (r != CUDA_SUCCESS)
        pthread_mutex_unlock(&fake_lock);
    return r;
}

CUcontext fake_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUcontext fake_context(int device)
{
    return &primary[device];
}

/* The current context is needed, and well. */
CUresult fake_usable(void)
{
    CUcontext c = fake_current();
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->retained == 0)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return c->faulted ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

int fake_device_count(void)
{
    const char *n = getenv("FAKE_CUDA_DEVICES");
    return n != NULL ? atoi(n) : 2;
}

struct thing *fake_make(enum kind kind, uintptr_t at, size_t bytes)
{
    struct thing *t = calloc(1, sizeof(*t));
    t->kind = kind;
    t->at = at != 0 ? at : (uintptr_t)t;
    t->bytes = bytes;
    t->refs = 1;
    t->fd = -1;
    t->next = fake_things;
    fake_things = t;
    return t;
}

void fake_drop(struct thing *t)
{
    struct thing **p = &fake_things;
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
    if (t->fd >= 0)
        close(t->fd);
    free(t);
}

struct thing *fake_find(enum kind kind, uintptr_t at)
{
    struct thing *t = fake_things;
    while (t != NULL && (t->kind != kind || t->at != at))
        t = t->next;
    return t;
}

/* The thing of a kind whose bytes hold [at, at + bytes). */
struct thing *fake_around(enum kind kind, uintptr_t at, size_t bytes)
{
    struct thing *t = fake_things;
    while (t != NULL && (t->kind != kind || at < t->at || at - t->at >= t->bytes ||
                         bytes > t->bytes - (at - t->at)))
        t = t->next;
    return t;
}

/* ---- driver, devices, contexts ---- */

API CUresult cuInit(unsigned int flags)
{
    (void)flags;
    ENTER();
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDriverGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

API CUresult cuGetErrorName(CUresult r, const char **text)
{
    *text = r == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : r == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
            : r == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                              : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

API CUresult cuGetErrorString(CUresult r, const char **text)
{
    (void)r;
    *text = "said by the fake driver";
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *n)
{
    ENTER();
    *n = fake_device_count();
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER();
    *device = ordinal;
    LEAVE(ordinal < fake_device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice device)
{
    (void)device;
    *value = what != CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED; /* as over PCIe */
    if (what == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED && getenv("FAKE_CUDA_NO_MULTICAST") != NULL)
        *value = 0;
    (void)fake_rdma_attribute((int)what, value);
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetPCIBusId(char *id, int n, CUdevice device)
{
    snprintf(id, (size_t)n, "FFFF:%02X:00.0", (unsigned)device);
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int n, CUdevice device)
{
    snprintf(name, (size_t)n, "Fake %d", device);
    return CUDA_SUCCESS;
}

API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    memset(uuid, 0x40 + device, sizeof(*uuid));
    return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER();
    primary[device].retained++;
    *context = &primary[device];
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER();
    if (primary[device].retained == 0)
        LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    primary[device].retained--;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = fake_current();
    return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
    if (fake_current() == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = fake_current()->device;
    return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent(CUcontext context)
{
    if (context == NULL || depth == 16)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

API CUresult cuCtxPopCurrent(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
    return CUDA_SUCCESS;
}

API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode was = capture;
    capture = *mode;
    *mode = was;
    return CUDA_SUCCESS;
}
