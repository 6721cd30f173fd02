/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU memory as other devices use it. */
#include "cuda/rdma.h"

#include "base/log.h"
#include "base/os.h"
#include "cuda/gpu_int.h"

#if GI_HAVE_CUDA

typedef unsigned long long ull;

static int attribute(const struct gi_gpu *g, CUdevice_attribute what)
{
    int value = 0;
    return gi_cu()->cuDeviceGetAttribute(&value, what, g->device) == CUDA_SUCCESS ? value : 0;
}

bool gi_gpu_has_context(const char *driver)
{
    const struct gi_cu *cu = gi_cu_if_there(driver);
    CUcontext c = NULL;
    return cu != NULL && cu->cuCtxGetCurrent(&c) == CUDA_SUCCESS && c != NULL;
}

int gi_gpu_dmabuf(struct gi_gpu *g, uint64_t addr, uint64_t bytes, int *fd, uint64_t *off)
{
    const struct gi_cu *cu = gi_cu();
    uint64_t page = gi_os_page_size(), from = addr & ~(page - 1);
    uint64_t to = (addr + bytes + page - 1) & ~(page - 1);
    CUstreamCaptureMode mode;
    int got = -1;
    if (cu->cuMemGetHandleForAddressRange == NULL)
        return gi_fail(GIN_ENOTSUP, "the driver is too old for DMA-BUF");
    if (attribute(g, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0)
        return gi_fail(GIN_ENOTSUP,
                       "GPU %d (%s) does not export DMA-BUF: it takes NVIDIA's open kernel modules",
                       g->device, g->name);
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    CUresult r = cu->cuMemGetHandleForAddressRange(&got, from, to - from,
                                                   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    gi_gpu_leave(mode);
    if (r != CUDA_SUCCESS)
        return gi_cu_fail(r, "cuMemGetHandleForAddressRange of %llu bytes at %#llx",
                          (ull)(to - from), (ull)from);
    *fd = got;
    *off = addr - from;
    return GIN_OK;
}

void gi_gpu_sync_memops(struct gi_gpu *g, uint64_t addr)
{
    const struct gi_cu *cu = gi_cu();
    CUstreamCaptureMode mode;
    unsigned on = 1;
    if (cu->cuPointerSetAttribute == NULL || gi_gpu_enter(g, &mode) != GIN_OK)
        return;
    CUresult r = cu->cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, addr);
    gi_gpu_leave(mode);
    if (r != CUDA_SUCCESS) /* mapped memory does not have it */
        gi_debug("cuda", "SYNC_MEMOPS of memory at %#llx is not set: error %d", (ull)addr, (int)r);
}

enum gi_gpu_order gi_gpu_rdma_order(const struct gi_gpu *g)
{
    int order = attribute(g, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
    int options = attribute(g, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    if (order >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER)
        return GI_GPU_ORDER_KEPT;
    return (options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0 &&
                   gi_cu()->cuFlushGPUDirectRDMAWrites != NULL
               ? GI_GPU_ORDER_FLUSH
               : GI_GPU_ORDER_NONE;
}

int gi_gpu_rdma_flush(struct gi_gpu *g)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    CUresult r =
        gi_cu()->cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                            CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
    gi_gpu_leave(mode);
    return gi_cu_fail(r, "cuFlushGPUDirectRDMAWrites of GPU %d", g->device);
}

#endif
