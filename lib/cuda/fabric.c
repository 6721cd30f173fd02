/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabric handles: memory objects shown without passing a descriptor, within an NVLink domain. The
 * device says that it has them, but whether this process may use them only trying tells.
 */
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "cuda/gpu_int.h"

#if GI_HAVE_CUDA

#if GI_HAVE_FABRIC

_Static_assert(sizeof(CUmemFabricHandle) == sizeof(struct gi_gpu_fabric), "a handle is a handle");

bool gi_gpu_fabric_can(struct gi_gpu *g, char *why, size_t n)
{
    int has = 0;
    uint64_t object;
    struct gi_gpu_fabric handle;
    CUresult r = gi_cu()->cuDeviceGetAttribute(
        &has, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, g->device);
    if (r != CUDA_SUCCESS || has == 0) {
        snprintf(why, n, "GPU %d has no fabric handles", g->device);
        return false;
    }
    g->fabric = true;
    int st = gi_gpu_object_create(g, g->granule, &object);
    if (st == GIN_OK) {
        st = gi_gpu_fabric_export(object, &handle);
        gi_gpu_object_release(object);
    }
    g->fabric = st == GIN_OK;
    if (st != GIN_OK)
        snprintf(why, n, "%s", gin_last_error());
    return g->fabric;
}

int gi_gpu_fabric_export(uint64_t object, struct gi_gpu_fabric *handle)
{
    CUmemFabricHandle h;
    memset(&h, 0, sizeof(h));
    CUresult r = gi_cu()->cuMemExportToShareableHandle(&h, object, CU_MEM_HANDLE_TYPE_FABRIC, 0);
    memcpy(handle, &h, sizeof(*handle));
    return gi_cu_fail(r, "cuMemExportToShareableHandle for a fabric handle");
}

int gi_gpu_fabric_import(const struct gi_gpu_fabric *handle, uint64_t *object)
{
    CUmemGenericAllocationHandle got;
    CUmemFabricHandle h;
    memcpy(&h, handle, sizeof(h));
    CUresult r = gi_cu()->cuMemImportFromShareableHandle(&got, &h, CU_MEM_HANDLE_TYPE_FABRIC);
    if (r == CUDA_SUCCESS)
        *object = got;
    return gi_cu_fail(r, "cuMemImportFromShareableHandle of a fabric handle");
}

#else

static const char old[] = "this library was built with a CUDA that has no fabric handles";

bool gi_gpu_fabric_can(struct gi_gpu *g, char *why, size_t n)
{
    (void)g;
    snprintf(why, n, "%s", old);
    return false;
}

int gi_gpu_fabric_export(uint64_t object, struct gi_gpu_fabric *handle)
{
    (void)object;
    (void)handle;
    return gi_fail(GIN_ENOTSUP, "%s", old);
}

int gi_gpu_fabric_import(const struct gi_gpu_fabric *handle, uint64_t *object)
{
    (void)handle;
    (void)object;
    return gi_fail(GIN_ENOTSUP, "%s", old);
}

#endif
#endif
