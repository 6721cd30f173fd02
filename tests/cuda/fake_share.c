/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fake driver knows of memory, and how it shows it to other processes. As strict as any
 * driver is: a handle is opened once per context and not by the process that made it; contexts
 * reach each other's memory after they have been told to.
 */
#include "tests/cuda/fake_cuda.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/cuda/fake_int.h"

struct ipc {
    uint64_t magic, at;
    size_t bytes;
    int pid, fd, device;
};
#define MAGIC 0x46414b45495043ull
_Static_assert(sizeof(struct ipc) <= sizeof(CUipcMemHandle), "it fits");

static long asked;

API long fake_cuda_asked(void)
{
    return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}

API unsigned long long fake_cuda_mixed(size_t bytes)
{
    pthread_mutex_lock(&fake_lock);
    void *p = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct thing *t = fake_make(PLAIN, (uintptr_t)p, bytes);
    t->owner = fake_context(t->device);
    pthread_mutex_unlock(&fake_lock);
    return t->at;
}

API unsigned long long fake_cuda_other(int managed, size_t bytes)
{
    pthread_mutex_lock(&fake_lock);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct thing *t = fake_make(managed ? MANAGED : POOL, (uintptr_t)p, bytes);
    t->device = fake_current()->device;
    pthread_mutex_unlock(&fake_lock);
    return t->at;
}

/* ---- asking ---- */

static struct thing *thing_at(CUdeviceptr at)
{
    static const enum kind kinds[] = {MAPPED, PLAIN, POOL, MANAGED, IPC, PINNED, REGISTERED};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct thing *t = fake_around(kinds[i], at, 1);
        if (t != NULL)
            return t;
    }
    return NULL;
}

static void answer(CUpointer_attribute what, void *to, const struct thing *t, CUdeviceptr at)
{
    bool host = t != NULL && (t->kind == PINNED || t->kind == REGISTERED);
    switch (what) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)to = t == NULL ? 0 : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned char *)to = t != NULL && t->kind == MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned char *)to = t != NULL && t->kind == PLAIN;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)to = t != NULL ? t->device : -2; break;
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(const void **)to = t != NULL ? t->owner : NULL; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(uint64_t *)to = t != NULL ? t->at : 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)to = t != NULL ? t->bytes : 0; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(const void **)to = t != NULL && t->kind == POOL ? t : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(uint64_t *)to = t != NULL ? at : 0; break;
    default: break;
    }
}

API CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *what, void **to,
                                    CUdeviceptr at)
{
    ENTER();
    const struct thing *t = thing_at(at);
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < n; i++)
        answer(what[i], to[i], t, at);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes, CUdeviceptr at)
{
    ENTER();
    const struct thing *t = thing_at(at);
    if (t == NULL || t->kind == PINNED || t->kind == REGISTERED)
        LEAVE(CUDA_ERROR_NOT_FOUND);
    *start = t->at;
    *bytes = t->bytes;
    LEAVE(fake_current() != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}

API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at)
{
    ENTER();
    struct thing *m = fake_around(MAPPED, (uintptr_t)at, 1);
    if (m == NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    m->object->refs++;
    *handle = (CUmemGenericAllocationHandle)m->object->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
    ENTER();
    struct thing *t = fake_find(OBJECT, (uintptr_t)handle);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    memset(prop, 0, sizeof(*prop));
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop->location.id = t->device;
    prop->requestedHandleTypes = (CUmemAllocationHandleType)t->types;
    LEAVE(CUDA_SUCCESS);
}

/* ---- showing ---- */

API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    ENTER();
    struct thing *t = fake_find(PLAIN, at);
    struct ipc h = {.magic = MAGIC, .at = at, .pid = getpid()};
    CUresult r = fake_usable();
    if (t == NULL)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    h.bytes = t->bytes;
    h.fd = t->fd;
    h.device = t->device;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &h, sizeof(h));
    LEAVE(CUDA_SUCCESS);
}

/* Opened by the current context before? */
static bool is_open(const struct ipc *h)
{
    struct ipc o;
    for (const struct thing *t = fake_things; t != NULL; t = t->next) {
        if (t->kind != IPC || t->owner != fake_current())
            continue;
        memcpy(&o, (const void *)t->object, sizeof(o));
        if (o.pid == h->pid && o.at == h->at)
            return true;
    }
    return false;
}

API CUresult cuIpcOpenMemHandle(CUdeviceptr *at, CUipcMemHandle handle, unsigned int flags)
{
    struct ipc h;
    char path[64];
    ENTER();
    CUresult r = fake_usable();
    memcpy(&h, &handle, sizeof(h));
    if (h.magic != MAGIC || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (h.pid == getpid())
        r = CUDA_ERROR_INVALID_CONTEXT;
    if (r == CUDA_SUCCESS && is_open(&h))
        r = CUDA_ERROR_ALREADY_MAPPED;
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", h.pid, h.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    void *p = mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct thing *t = fake_make(IPC, (uintptr_t)p, h.bytes);
    t->fd = fd;
    t->device = fake_current()->device;
    t->owner = fake_current();
    t->object = malloc(sizeof(h));
    memcpy((void *)t->object, &h, sizeof(h));
    *at = t->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    ENTER();
    struct thing *t = fake_find(IPC, at);
    if (t == NULL || t->owner != fake_current())
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    munmap((void *)t->at, t->bytes);
    free(t->object);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    ENTER();
    CUcontext me = fake_current();
    if (me == NULL || peer == NULL || flags != 0 || peer->device == me->device)
        LEAVE(CUDA_ERROR_INVALID_CONTEXT);
    if (me->friends & 1u << peer->device)
        LEAVE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    me->friends |= 1u << peer->device;
    LEAVE(CUDA_SUCCESS);
}
