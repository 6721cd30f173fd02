/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU by the driver's calls. Each call pushes the context that it needs and lets this thread's
 * calls pass while somebody captures a stream; both are undone before it returns. Copies go through
 * a non-blocking stream of ours: the default stream would wait for the program's kernels, and a
 * kernel may be waiting for what the copy brings.
 */
#include "cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cuda/gpu_int.h"
#include "cuda/launch.h"

#if GI_HAVE_CUDA

typedef unsigned long long ull;

#define ZEROS      (64u << 10)
#define COPY_ZEROS (1u << 20)

bool gi_gpu_driver(const char *driver, char *why, size_t n)
{
    return gi_cu_load(driver, why, n) != NULL;
}

/* ---- contexts ---- */

int gi_gpu_enter(const struct gi_gpu *g, CUstreamCaptureMode *mode)
{
    CUresult r = gi_cu()->cuCtxPushCurrent(g->context);
    if (r != CUDA_SUCCESS)
        return gi_cu_fail(r, "cannot use the context of GPU %d", g->device);
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gi_cu()->cuThreadExchangeStreamCaptureMode(mode);
    return GIN_OK;
}

void gi_gpu_leave(CUstreamCaptureMode mode)
{
    CUcontext was;
    gi_cu()->cuThreadExchangeStreamCaptureMode(&mode);
    gi_cu()->cuCtxPopCurrent(&was);
}

static int attribute(int device, CUdevice_attribute what)
{
    int value = 0;
    return gi_cu()->cuDeviceGetAttribute(&value, what, device) == CUDA_SUCCESS ? value : 0;
}

CUmemAllocationProp gi_gpu_properties(const struct gi_gpu *g)
{
    CUmemAllocationProp p;
    memset(&p, 0, sizeof(p));
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
#if GI_HAVE_FABRIC
    if (g->fabric)
        p.requestedHandleTypes |= CU_MEM_HANDLE_TYPE_FABRIC;
#endif
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = g->device;
    p.allocFlags.gpuDirectRDMACapable =
        attribute(g->device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
    return p;
}

/* The current context, or the primary one of a device. Primary ones are retained. */
static int take_context(struct gi_gpu *g, int local_rank, int devices)
{
    const struct gi_cu *cu = gi_cu();
    CUcontext current = NULL, primary = NULL;
    CUdevice device = 0;
    CUresult r = cu->cuCtxGetCurrent(&current);
    if (r == CUDA_SUCCESS && current != NULL)
        r = cu->cuCtxGetDevice(&device);
    else if (r == CUDA_SUCCESS)
        r = cu->cuDeviceGet(&device, local_rank % devices);
    if (r == CUDA_SUCCESS)
        r = cu->cuDevicePrimaryCtxRetain(&primary, device);
    if (r != CUDA_SUCCESS)
        return gi_cu_fail(r, "cannot get a CUDA context for local rank %d of %d devices",
                          local_rank, devices);
    g->device = device;
    g->context = primary;
    g->retained = true;
    if (current != NULL && current != primary) { /* the program's own; it keeps it alive */
        cu->cuDevicePrimaryCtxRelease(device);
        g->context = current;
        g->retained = false;
    }
    return GIN_OK;
}

static int need(const struct gi_gpu *g, CUdevice_attribute what, const char *text)
{
    return attribute(g->device, what) != 0
               ? GIN_OK
               : gi_fail(GIN_ENOTSUP, "GPU %d (%s) has no %s", g->device, g->name, text);
}

static int look(struct gi_gpu *g)
{
    const struct gi_cu *cu = gi_cu();
    size_t granule = 0;
    CUuuid uuid;
    CUmemAllocationProp p = gi_gpu_properties(g);
    CUresult r = cu->cuDeviceGetName(g->name, (int)sizeof(g->name), g->device);
    if (r == CUDA_SUCCESS)
        r = cu->cuDeviceGetUuid(&uuid, g->device);
    if (r == CUDA_SUCCESS)
        r = cu->cuDeviceGetPCIBusId(g->pci, (int)sizeof(g->pci), g->device);
    if (r != CUDA_SUCCESS)
        return gi_cu_fail(r, "cannot identify GPU %d", g->device);
    for (char *c = g->pci; *c != 0; c++)
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c + 32 : *c); /* as the system's files say it */
    memcpy(g->uuid, &uuid, sizeof(g->uuid));
    g->host_atomics = attribute(g->device, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED) != 0;
    g->same_address =
        attribute(g->device, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) != 0;
    int st = need(g, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                  "virtual memory management");
    if (st == GIN_OK)
        st = need(g, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                  "memory that can be shared by file descriptors");
    if (st != GIN_OK)
        return st;
    r = cu->cuMemGetAllocationGranularity(&granule, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    g->granule = granule;
    return gi_cu_fail(r, "cuMemGetAllocationGranularity of GPU %d", g->device);
}

int gi_gpu_stream_open(struct gi_gpu *g, void **stream)
{
    CUstreamCaptureMode mode;
    CUstream made = NULL;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    st = gi_cu_fail(gi_cu()->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING),
                    "cuStreamCreate on GPU %d", g->device);
    *stream = made;
    gi_gpu_leave(mode);
    return st;
}

void gi_gpu_stream_close(struct gi_gpu *g, void *stream)
{
    CUstreamCaptureMode mode;
    if (stream == NULL || gi_gpu_enter(g, &mode) != GIN_OK)
        return;
    gi_cu()->cuStreamSynchronize(stream);
    gi_cu()->cuStreamDestroy(stream);
    gi_gpu_leave(mode);
}

int gi_gpu_open(const char *driver, int local_rank, struct gi_gpu **gpu, char *why, size_t n)
{
    int devices = 0;
    *gpu = NULL;
    if (gi_cu_load(driver, why, n) == NULL)
        return GIN_OK;
    CUresult r = gi_cu()->cuDeviceGetCount(&devices);
    if (r != CUDA_SUCCESS || devices == 0) {
        snprintf(why, n, "the CUDA driver finds no GPU");
        return GIN_OK;
    }
    struct gi_gpu *g = calloc(1, sizeof(*g));
    if (g == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a GPU's state");
    int st = take_context(g, local_rank, devices);
    if (st == GIN_OK)
        st = look(g);
    if (st == GIN_OK)
        st = gi_gpu_stream_open(g, &g->stream);
    if (st == GIN_OK)
        st = gi_gpu_store_open(g);
    if (st != GIN_OK) {
        gi_gpu_close(g);
        return st;
    }
    *gpu = g;
    return GIN_OK;
}

void gi_gpu_close(struct gi_gpu *g)
{
    if (g == NULL)
        return;
    gi_kernels_close(g);
    gi_gpu_store_close(g);
    gi_gpu_stream_close(g, g->stream);
    if (g->retained)
        gi_cu()->cuDevicePrimaryCtxRelease(g->device);
    free(g);
}

int gi_gpu_health(struct gi_gpu *g)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    CUresult r = gi_cu()->cuStreamQuery(g->stream);
    gi_gpu_leave(mode);
    return r == CUDA_ERROR_NOT_READY ? GIN_OK : gi_cu_fail(r, "GPU %d (%s)", g->device, g->name);
}

/* ---- memory objects and addresses ---- */

int gi_gpu_object_create(const struct gi_gpu *g, uint64_t bytes, uint64_t *object)
{
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp p = gi_gpu_properties(g);
    CUresult r = gi_cu()->cuMemCreate(&h, bytes, &p, 0);
    if (r == CUDA_SUCCESS)
        *object = h;
    return gi_cu_fail(r, "cuMemCreate of %llu bytes on GPU %d (%s)", (ull)bytes, g->device,
                      g->name);
}

int gi_gpu_object_export(uint64_t object, int *fd)
{
    int got = -1;
    CUresult r = gi_cu()->cuMemExportToShareableHandle(&got, object,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (r == CUDA_SUCCESS)
        *fd = got;
    return gi_cu_fail(r, "cuMemExportToShareableHandle");
}

int gi_gpu_object_import(int fd, uint64_t *object)
{
    CUmemGenericAllocationHandle h;
    CUresult r = gi_cu()->cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (r == CUDA_SUCCESS)
        *object = h;
    return gi_cu_fail(r, "cuMemImportFromShareableHandle");
}

void gi_gpu_object_release(uint64_t object)
{
    gi_cu()->cuMemRelease(object);
}

int gi_gpu_reserve(uint64_t bytes, uint64_t align, uint64_t *addr)
{
    CUdeviceptr got = 0;
    CUresult r = gi_cu()->cuMemAddressReserve(&got, bytes, align, 0, 0);
    if (r == CUDA_SUCCESS)
        *addr = got;
    return gi_cu_fail(r, "cuMemAddressReserve of %llu bytes", (ull)bytes);
}

void gi_gpu_unreserve(uint64_t addr, uint64_t bytes)
{
    gi_cu()->cuMemAddressFree(addr, bytes);
}

int gi_gpu_map(uint64_t addr, uint64_t bytes, uint64_t object)
{
    return gi_cu_fail(gi_cu()->cuMemMap(addr, bytes, 0, object, 0), "cuMemMap of %llu bytes",
                      (ull)bytes);
}

int gi_gpu_allow(uint64_t addr, uint64_t bytes, int device)
{
    CUmemAccessDesc d;
    memset(&d, 0, sizeof(d));
    d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    d.location.id = device;
    d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return gi_cu_fail(gi_cu()->cuMemSetAccess(addr, bytes, &d, 1),
                      "cuMemSetAccess of %llu bytes for GPU %d", (ull)bytes, device);
}

void gi_gpu_unmap(uint64_t addr, uint64_t bytes)
{
    gi_cu()->cuMemUnmap(addr, bytes);
}

/* ---- memory that exists ---- */

int gi_gpu_host_register(struct gi_gpu *g, void *host, uint64_t bytes, bool *taken)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    CUresult r = gi_cu()->cuMemHostRegister(
        host, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    gi_gpu_leave(mode);
    *taken = r == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return *taken
               ? GIN_OK
               : gi_cu_fail(r, "cuMemHostRegister of %llu bytes for GPU %d", (ull)bytes, g->device);
}

void gi_gpu_host_unregister(struct gi_gpu *g, void *host)
{
    CUstreamCaptureMode mode;
    if (gi_gpu_enter(g, &mode) != GIN_OK)
        return;
    gi_cu()->cuMemHostUnregister(host);
    gi_gpu_leave(mode);
}

/* ---- copies ---- */

/* After something was issued with result r: wait for it, and leave. */
static int finish(struct gi_gpu *g, CUstreamCaptureMode mode, CUresult r, const char *what,
                  uint64_t bytes)
{
    if (r == CUDA_SUCCESS)
        r = gi_cu()->cuStreamSynchronize(g->stream);
    gi_gpu_leave(mode);
    return gi_cu_fail(r, "%s of %llu bytes on GPU %d", what, (ull)bytes, g->device);
}

/*
 * A fill may be a kernel, which cannot begin while the program's kernels hold the whole GPU,
 * perhaps waiting for this rank. Zeros are copied instead, as far as that is not too slow.
 */
int gi_gpu_zero(struct gi_gpu *g, uint64_t addr, uint64_t bytes)
{
    static const char zeros[ZEROS];
    CUstreamCaptureMode mode;
    CUresult r = CUDA_SUCCESS;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    if (bytes > COPY_ZEROS)
        return finish(g, mode, gi_cu()->cuMemsetD8Async(addr, 0, bytes, g->stream),
                      "cuMemsetD8Async", bytes);
    for (uint64_t at = 0; r == CUDA_SUCCESS && at < bytes; at += ZEROS)
        r = gi_cu()->cuMemcpyHtoDAsync(addr + at, zeros, bytes - at < ZEROS ? bytes - at : ZEROS,
                                       g->stream);
    return finish(g, mode, r, "cuMemcpyHtoDAsync of zeros", bytes);
}

int gi_gpu_write(struct gi_gpu *g, uint64_t addr, const void *from, uint64_t bytes)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    return st != GIN_OK ? st
                        : finish(g, mode, gi_cu()->cuMemcpyHtoDAsync(addr, from, bytes, g->stream),
                                 "cuMemcpyHtoDAsync", bytes);
}

int gi_gpu_read(struct gi_gpu *g, void *to, uint64_t addr, uint64_t bytes)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    return st != GIN_OK ? st
                        : finish(g, mode, gi_cu()->cuMemcpyDtoHAsync(to, addr, bytes, g->stream),
                                 "cuMemcpyDtoHAsync", bytes);
}

/* Either side may be host memory, pageable too: the driver finds out. */
int gi_gpu_copy(struct gi_gpu *g, uint64_t to, uint64_t from, uint64_t bytes)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    return st != GIN_OK ? st
                        : finish(g, mode, gi_cu()->cuMemcpyAsync(to, from, bytes, g->stream),
                                 "cuMemcpyAsync", bytes);
}

#endif
