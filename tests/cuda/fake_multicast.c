/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver's multicast objects: who was added and what is bound, checked as the driver's
 * manual says; what is stored there goes nowhere. An object is a memory object with a page behind
 * its bytes, in which processes count the GPUs that were added.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/cuda/fake_int.h"

#define NAME "fake-multicast"

struct header {
    uint32_t gpus, added;
};

static struct header *header_of(const struct thing *o)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, (off_t)o->bytes);
    if (p == MAP_FAILED)
        abort();
    return p;
}

static struct thing *find(CUmemGenericAllocationHandle handle)
{
    struct thing *o = fake_find(OBJECT, (uintptr_t)handle);
    return o != NULL && o->multicast ? o : NULL;
}

/* An imported descriptor is one of these. */
bool fake_is_multicast(int fd)
{
    char path[64], name[128];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, name, sizeof(name) - 1);
    if (n <= 0)
        return false;
    name[n] = 0;
    return strstr(name, NAME) != NULL;
}

API CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *prop,
                                       CUmulticastGranularity_flags option)
{
    (void)option;
    ENTER();
    const char *own = getenv("FAKE_CUDA_MULTICAST_GRANULE");
    *granularity = own != NULL ? (size_t)atol(own) : GRANULE;
    LEAVE(prop->numDevices != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
                               const CUmulticastObjectProp *prop)
{
    ENTER();
    if (prop->numDevices < 2 || prop->size == 0 || prop->size % GRANULE != 0 || prop->flags != 0)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct thing *o = fake_make(OBJECT, 0, prop->size);
    o->multicast = true;
    o->types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    o->fd = memfd_create(NAME, MFD_CLOEXEC);
    if (o->fd < 0 || ftruncate(o->fd, (off_t)prop->size + 4096) != 0)
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    struct header *h = header_of(o);
    h->gpus = prop->numDevices;
    munmap(h, 4096);
    *handle = (CUmemGenericAllocationHandle)o->at;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    ENTER();
    struct thing *o = find(handle);
    if (o == NULL || device >= fake_device_count())
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct header *h = header_of(o);
    uint32_t n = __atomic_add_fetch(&h->added, 1, __ATOMIC_SEQ_CST);
    bool room = n <= h->gpus;
    munmap(h, 4096);
    LEAVE(room ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static bool is_complete(const struct thing *o)
{
    struct header *h = header_of(o);
    bool all = __atomic_load_n(&h->added, __ATOMIC_SEQ_CST) == h->gpus;
    munmap(h, 4096);
    return all;
}

static struct thing *bound_at(const struct thing *o, int device, size_t off, size_t bytes)
{
    struct thing *t = fake_things;
    while (t != NULL && (t->kind != BOUND || t->object != o || t->device != device ||
                         t->off >= off + bytes || off >= t->off + t->bytes))
        t = t->next;
    return t;
}

/* The driver would wait until all GPUs are there; that is a mistake of ours. */
API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t off, CUdeviceptr at,
                                 size_t bytes, unsigned long long flags)
{
    ENTER();
    struct thing *o = find(handle), *m = fake_around(MAPPED, at, bytes);
    if (o == NULL || m == NULL || flags != 0 || bytes == 0 || (off | bytes | at) % GRANULE != 0 ||
        bytes > o->bytes || off > o->bytes - bytes || !is_complete(o) || m->object->multicast ||
        bound_at(o, m->device, off, bytes) != NULL)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct thing *b = fake_make(BOUND, 0, bytes);
    b->object = o;
    b->off = off;
    b->device = m->device;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t off,
                               size_t bytes)
{
    ENTER();
    struct thing *o = find(handle), *b = o != NULL ? bound_at(o, device, off, bytes) : NULL;
    if (b == NULL || b->off != off || b->bytes != bytes)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    fake_drop(b);
    LEAVE(CUDA_SUCCESS);
}
