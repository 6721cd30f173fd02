/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake driver's memory: objects and addresses, plain, pinned and registered. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/cuda/fake_int.h"

static void unref(struct thing *object)
{
    if (--object->refs == 0)
        fake_drop(object);
}

/* ---- memory objects ---- */

static int new_memory(size_t bytes)
{
    int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
    void *p;
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return -1;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(p, GARBAGE, bytes < 4 * GRANULE ? bytes : 4 * GRANULE);
    munmap(p, bytes);
    return fd;
}

API CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                           CUmemAllocationGranularity_flags option)
{
    (void)prop;
    (void)option;
    *granularity = GRANULE;
    return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    ENTER();
    if (bytes == 0 || bytes % GRANULE != 0 || flags != 0 ||
        prop->location.id >= fake_device_count())
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    if ((prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) && getenv("FAKE_CUDA_NO_FABRIC"))
        LEAVE(CUDA_ERROR_NOT_PERMITTED);
    struct thing *t = fake_make(OBJECT, 0, bytes);
    t->fd = new_memory(bytes);
    t->device = prop->location.id;
    t->types = (int)prop->requestedHandleTypes;
    *handle = (CUmemGenericAllocationHandle)t->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER();
    struct thing *t = fake_find(OBJECT, (uintptr_t)handle);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    unref(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    ENTER();
    struct thing *t = fake_find(OBJECT, (uintptr_t)handle);
    if (t == NULL || flags != 0 || !(t->types & (int)type))
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (type == CU_MEM_HANDLE_TYPE_FABRIC)
        snprintf(out, sizeof(CUmemFabricHandle), "/proc/%d/fd/%d", (int)getpid(), t->fd);
    else
        *(int *)out = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                            CUmemAllocationHandleType type)
{
    struct stat st;
    bool fabric = type == CU_MEM_HANDLE_TYPE_FABRIC;
    ENTER();
    int fd = fabric ? open(shared, O_RDWR | O_CLOEXEC)
                    : fcntl((int)(intptr_t)shared, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || fstat(fd, &st) != 0)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    bool multicast = fake_is_multicast(fd);
    struct thing *t = fake_make(OBJECT, 0, (size_t)st.st_size - (multicast ? 4096 : 0));
    t->multicast = multicast;
    t->fd = fd;
    *handle = (CUmemGenericAllocationHandle)t->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t align, CUdeviceptr wish,
                                 unsigned long long flags)
{
    ENTER();
    if (bytes == 0 || bytes % GRANULE != 0 || align > ((size_t)1 << 30) || wish != 0 || flags != 0)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (align < GRANULE)
        align = GRANULE;
    char *p =
        mmap(NULL, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    uintptr_t a = ((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1);
    if (a > (uintptr_t)p)
        munmap(p, a - (uintptr_t)p);
    munmap((void *)(a + bytes), align - (a - (uintptr_t)p));
    fake_make(RESERVED, a, bytes);
    *at = a;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    ENTER();
    struct thing *t = fake_find(RESERVED, at);
    if (t == NULL || t->bytes != bytes)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    for (struct thing *m = fake_things; m != NULL; m = m->next)
        if (m->kind == MAPPED && m->at >= at && m->at < at + bytes)
            LEAVE(CUDA_ERROR_INVALID_VALUE); /* still mapped */
    munmap((void *)(uintptr_t)at, bytes);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    ENTER();
    struct thing *o = fake_find(OBJECT, (uintptr_t)handle);
    if (o == NULL || offset != 0 || flags != 0 || bytes != o->bytes || at % GRANULE != 0 ||
        fake_around(RESERVED, at, bytes) == NULL || fake_around(MAPPED, at, 1) != NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, o->fd, 0) ==
        MAP_FAILED)
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    struct thing *m = fake_make(MAPPED, at, bytes);
    m->object = o;
    m->device = o->device;
    o->refs++;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    ENTER();
    struct thing *m = fake_find(MAPPED, at);
    if (m == NULL || m->bytes != bytes)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    unref(m->object);
    fake_drop(m);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *desc, size_t n)
{
    struct thing *m;
    CUdeviceptr end = at + bytes;
    ENTER();
    if (n != 1 || desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    for (; at < end; at = m->at + m->bytes) { /* whole maps, one after the other */
        m = fake_find(MAPPED, at);
        if (m == NULL || m->bytes > end - at)
            LEAVE(CUDA_ERROR_INVALID_VALUE);
        m->access |= 1u << desc->location.id;
        mprotect((void *)m->at, m->bytes, PROT_READ | PROT_WRITE);
    }
    LEAVE(CUDA_SUCCESS);
}

/* ---- plain, pinned and registered memory ---- */

API CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    ENTER();
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    int fd = new_memory(bytes);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct thing *t = fake_make(PLAIN, (uintptr_t)p, bytes);
    t->fd = fd;
    t->device = fake_current()->device;
    t->owner = fake_current();
    *at = t->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemFree(CUdeviceptr at)
{
    ENTER();
    struct thing *t = fake_find(PLAIN, at);
    t = t != NULL ? t : fake_find(POOL, at);
    t = t != NULL ? t : fake_find(MANAGED, at);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    munmap((void *)t->at, t->bytes);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    (void)flags;
    ENTER();
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    *host = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    memset(*host, GARBAGE, bytes);
    fake_make(PINNED, (uintptr_t)*host, bytes);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemFreeHost(void *host)
{
    ENTER();
    struct thing *t = fake_find(PINNED, (uintptr_t)host);
    if (t == NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    free(host);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemHostGetDevicePointer(CUdeviceptr *at, void *host, unsigned int flags)
{
    ENTER();
    *at = (CUdeviceptr)(uintptr_t)host;
    LEAVE(flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Pages must be there, whatever a sanitizer thinks of their bytes. */
__attribute__((no_sanitize("address"))) static void touch(uintptr_t at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4096)
        (void)*(volatile char *)(at + i);
}

API CUresult cuMemHostRegister(void *host, size_t bytes, unsigned int flags)
{
    (void)flags;
    ENTER();
    CUresult r = fake_usable();
    if (r != CUDA_SUCCESS)
        LEAVE(r);
    uintptr_t at = (uintptr_t)host;
    for (struct thing *t = fake_things; t != NULL; t = t->next)
        if (t->kind == REGISTERED && at < t->at + t->bytes && t->at < at + bytes)
            LEAVE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    touch(at, bytes);
    fake_make(REGISTERED, at, bytes);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemHostUnregister(void *host)
{
    ENTER();
    struct thing *t = fake_find(REGISTERED, (uintptr_t)host);
    if (t == NULL)
        LEAVE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    fake_drop(t);
    LEAVE(CUDA_SUCCESS);
}
