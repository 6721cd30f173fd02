/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast objects by the driver's calls, which older drivers do not have. */
#include "cuda/multicast.h"

#include <stdio.h>
#include <string.h>
#include <ginshmem/status.h>
#include "base/log.h"
#include "cuda/cu.h"

#if GI_HAVE_MULTICAST

typedef unsigned long long ull;

bool gi_gpu_multicast_can(const struct gi_gpu *g, char *why, size_t n)
{
    int value = 0;
    const struct gi_cu *cu = gi_cu();
    if (cu->cuMulticastAddDevice == NULL || cu->cuMulticastBindAddr == NULL ||
        cu->cuMulticastCreate == NULL || cu->cuMulticastGetGranularity == NULL ||
        cu->cuMulticastUnbind == NULL) {
        snprintf(why, n, "the driver knows no multicast: it is too old");
        return false;
    }
    if (cu->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, g->device) !=
            CUDA_SUCCESS ||
        value == 0) {
        snprintf(why, n, "GPU %d (%s) has no multicast", g->device, g->name);
        return false;
    }
    return true;
}

static CUmulticastObjectProp properties(int gpus, uint64_t bytes)
{
    CUmulticastObjectProp p;
    memset(&p, 0, sizeof(p));
    p.numDevices = (unsigned)gpus;
    p.size = bytes;
    p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return p;
}

int gi_gpu_multicast_granule(int gpus, uint64_t bytes, uint64_t *granule)
{
    size_t got = 0;
    CUmulticastObjectProp p = properties(gpus, bytes);
    CUresult r = gi_cu()->cuMulticastGetGranularity(&got, &p, CU_MULTICAST_GRANULARITY_MINIMUM);
    if (r == CUDA_SUCCESS)
        *granule = got;
    return gi_cu_fail(r, "cuMulticastGetGranularity for %d GPUs", gpus);
}

int gi_gpu_multicast_create(int gpus, uint64_t bytes, uint64_t *object)
{
    CUmemGenericAllocationHandle h;
    CUmulticastObjectProp p = properties(gpus, bytes);
    CUresult r = gi_cu()->cuMulticastCreate(&h, &p);
    if (r == CUDA_SUCCESS)
        *object = h;
    return gi_cu_fail(r, "cuMulticastCreate of %llu bytes for %d GPUs", (ull)bytes, gpus);
}

int gi_gpu_multicast_add(uint64_t object, const struct gi_gpu *g)
{
    return gi_cu_fail(gi_cu()->cuMulticastAddDevice(object, g->device),
                      "cuMulticastAddDevice of GPU %d", g->device);
}

int gi_gpu_multicast_bind(uint64_t object, const struct gi_gpu *g, uint64_t off, uint64_t addr,
                          uint64_t bytes)
{
    return gi_cu_fail(gi_cu()->cuMulticastBindAddr(object, off, addr, bytes, 0),
                      "cuMulticastBindAddr of %llu bytes of GPU %d", (ull)bytes, g->device);
}

void gi_gpu_multicast_unbind(uint64_t object, const struct gi_gpu *g, uint64_t off, uint64_t bytes)
{
    gi_cu()->cuMulticastUnbind(object, g->device, off, bytes);
}

#else

bool gi_gpu_multicast_can(const struct gi_gpu *g, char *why, size_t n)
{
    (void)g;
    snprintf(why, n, "the library was built without CUDA, or with one that knows no multicast");
    return false;
}

static int none(void)
{
    return gi_fail(GIN_ENOTSUP, "multicast is not in this build");
}

int gi_gpu_multicast_granule(int gpus, uint64_t bytes, uint64_t *granule)
{
    (void)gpus, (void)bytes, (void)granule;
    return none();
}

int gi_gpu_multicast_create(int gpus, uint64_t bytes, uint64_t *object)
{
    (void)gpus, (void)bytes, (void)object;
    return none();
}

int gi_gpu_multicast_add(uint64_t object, const struct gi_gpu *g)
{
    (void)object, (void)g;
    return none();
}

int gi_gpu_multicast_bind(uint64_t object, const struct gi_gpu *g, uint64_t off, uint64_t addr,
                          uint64_t bytes)
{
    (void)object, (void)g, (void)off, (void)addr, (void)bytes;
    return none();
}

void gi_gpu_multicast_unbind(uint64_t object, const struct gi_gpu *g, uint64_t off, uint64_t bytes)
{
    (void)object, (void)g, (void)off, (void)bytes;
}

#endif
