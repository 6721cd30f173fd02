/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entries of the CUDA driver that this room calls, found by name in the library that is opened
 * at run time. Types come from the toolkit's header, which also says which version of an entry a
 * name stands for. Nothing outside lib/cuda includes this.
 */
#ifndef GI_CUDA_CU_H
#define GI_CUDA_CU_H

#if GI_HAVE_CUDA

#include <cuda.h>
#include <stddef.h>
#include "base/log.h"

#define GI_CU_ENTRIES(X)                      \
    X(cuCtxEnablePeerAccess)                  \
    X(cuCtxGetCurrent)                        \
    X(cuCtxGetDevice)                         \
    X(cuCtxPopCurrent)                        \
    X(cuCtxPushCurrent)                       \
    X(cuCtxSetCurrent)                        \
    X(cuDeviceGet)                            \
    X(cuDeviceGetAttribute)                   \
    X(cuDeviceGetCount)                       \
    X(cuDeviceGetName)                        \
    X(cuDeviceGetPCIBusId)                    \
    X(cuDeviceGetUuid)                        \
    X(cuDevicePrimaryCtxRelease)              \
    X(cuDevicePrimaryCtxRetain)               \
    X(cuDriverGetVersion)                     \
    X(cuFuncGetAttribute)                     \
    X(cuGetErrorName)                         \
    X(cuGetErrorString)                       \
    X(cuInit)                                 \
    X(cuIpcCloseMemHandle)                    \
    X(cuIpcGetMemHandle)                      \
    X(cuIpcOpenMemHandle)                     \
    X(cuLaunchKernel)                         \
    X(cuMemAddressFree)                       \
    X(cuMemAddressReserve)                    \
    X(cuMemAlloc)                             \
    X(cuMemCreate)                            \
    X(cuMemExportToShareableHandle)           \
    X(cuMemFree)                              \
    X(cuMemFreeHost)                          \
    X(cuMemGetAddressRange)                   \
    X(cuMemGetAllocationGranularity)          \
    X(cuMemGetAllocationPropertiesFromHandle) \
    X(cuMemHostAlloc)                         \
    X(cuMemHostGetDevicePointer)              \
    X(cuMemHostRegister)                      \
    X(cuMemHostUnregister)                    \
    X(cuMemImportFromShareableHandle)         \
    X(cuMemMap)                               \
    X(cuMemRelease)                           \
    X(cuMemRetainAllocationHandle)            \
    X(cuMemSetAccess)                         \
    X(cuMemUnmap)                             \
    X(cuMemcpyAsync)                          \
    X(cuMemcpyDtoHAsync)                      \
    X(cuMemcpyHtoDAsync)                      \
    X(cuMemsetD8Async)                        \
    X(cuModuleGetFunction)                    \
    X(cuModuleLoadData)                       \
    X(cuModuleUnload)                         \
    X(cuPointerGetAttributes)                 \
    X(cuStreamCreate)                         \
    X(cuStreamDestroy)                        \
    X(cuStreamGetCtx)                         \
    X(cuStreamIsCapturing)                    \
    X(cuStreamQuery)                          \
    X(cuStreamSynchronize)                    \
    X(cuStreamWriteValue64)                   \
    X(cuThreadExchangeStreamCaptureMode)

/* What an older driver may lack; NULL in the table then. */
#if CUDA_VERSION >= 12010
#define GI_HAVE_MULTICAST 1
#define GI_CU_MULTICAST(X)       \
    X(cuMulticastAddDevice)      \
    X(cuMulticastBindAddr)       \
    X(cuMulticastCreate)         \
    X(cuMulticastGetGranularity) \
    X(cuMulticastUnbind)
#else
#define GI_HAVE_MULTICAST 0
#define GI_CU_MULTICAST(X)
#endif
#define GI_CU_OPTIONAL(X)            \
    GI_CU_MULTICAST(X)               \
    X(cuFlushGPUDirectRDMAWrites)    \
    X(cuMemGetHandleForAddressRange) \
    X(cuPointerSetAttribute)

struct gi_cu {
#define GI_CU_FIELD(name) __typeof__(name) *name;
    GI_CU_ENTRIES(GI_CU_FIELD)
    GI_CU_OPTIONAL(GI_CU_FIELD)
#undef GI_CU_FIELD
};

/*
 * The driver, initialised; opened once per process, by the first caller's path ("": libcuda.so.1).
 * NULL: why says what is missing.
 */
const struct gi_cu *gi_cu_load(const char *path, char *why, size_t n);
/* The same once it was loaded. */
const struct gi_cu *gi_cu(void);
/* The driver where this process has opened its library already, by whomever; else NULL. Cheap. */
const struct gi_cu *gi_cu_if_there(const char *path);

/* Record a driver's error with what was done: "cuMemCreate of 8 bytes: CUDA_ERROR_...: text". */
int gi_cu_fail(CUresult r, const char *fmt, ...) GIN_PRINTF(2, 3);

#else
#define GI_HAVE_MULTICAST 0
#endif
#endif
