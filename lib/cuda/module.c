/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's entries for kernels, opened by the tool itself: it stands on the public library. */
#include "cuda/module.h"

#include <stdio.h>
#include <string.h>

#if GI_HAVE_CUDA

#include <cuda.h>
#include <dlfcn.h>

#define TEXT(name)  TEXT_(name)
#define TEXT_(name) #name
#define ENTRIES(X)              \
    X(cuInit)                   \
    X(cuDeviceGetCount)         \
    X(cuDevicePrimaryCtxRetain) \
    X(cuCtxSetCurrent)          \
    X(cuCtxSynchronize)         \
    X(cuGetErrorString)         \
    X(cuModuleLoadData)         \
    X(cuModuleGetFunction)      \
    X(cuLaunchKernel)           \
    X(cuMemHostAlloc)           \
    X(cuMemcpyDtoDAsync)        \
    X(cuStreamCreate)           \
    X(cuStreamSynchronize)

static struct {
#define FIELD(name) __typeof__(name) *name;
    ENTRIES(FIELD)
} cu;
static CUmodule module;
static CUstream stream;

static int check(CUresult r, const char *what, char *why, size_t n)
{
    const char *text = NULL;
    if (r == CUDA_SUCCESS)
        return 0;
    if (cu.cuGetErrorString != NULL)
        cu.cuGetErrorString(r, &text);
    snprintf(why, n, "%s: error %d: %s", what, (int)r, text != NULL ? text : "no text");
    return -1;
}
#define DO(call, ...) check(cu.call(__VA_ARGS__), #call, why, n)

static int find(char *why, size_t n)
{
    static const struct {
        const char *name;
        size_t place;
    } entries[] = {
#define ENTRY(name) {TEXT(name), offsetof(__typeof__(cu), name)},
        ENTRIES(ENTRY)};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        snprintf(why, n, "no CUDA driver: %s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *entry = dlsym(library, entries[i].name);
        if (entry == NULL) {
            snprintf(why, n, "the CUDA driver lacks %s", entries[i].name);
            return -1;
        }
        *(void **)((char *)&cu + entries[i].place) = entry;
    }
    return 0;
}

int gi_module_open(const void *image, int local_rank, char *why, size_t n)
{
    int devices = 0;
    CUcontext context;
    if (find(why, n) != 0 || DO(cuInit, 0) != 0 || DO(cuDeviceGetCount, &devices) != 0)
        return -1;
    if (devices == 0) {
        snprintf(why, n, "the CUDA driver finds no GPU");
        return -1;
    }
    return DO(cuDevicePrimaryCtxRetain, &context, local_rank % devices) != 0 ||
                   DO(cuCtxSetCurrent, context) != 0 ||
                   DO(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) != 0 ||
                   DO(cuModuleLoadData, &module, image) != 0
               ? -1
               : 0;
}

void *gi_module_host_alloc(size_t bytes)
{
    void *p = NULL;
    return cu.cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) ==
                   CUDA_SUCCESS
               ? memset(p, 0, bytes)
               : NULL;
}

int gi_module_run(const char *kernel, unsigned blocks, unsigned threads, void *arg, char *why,
                  size_t n)
{
    CUfunction f;
    void *args[] = {arg};
    return DO(cuModuleGetFunction, &f, module, kernel) != 0 ||
                   DO(cuLaunchKernel, f, blocks, 1, 1, threads, 1, 1, 0, stream, args, NULL) != 0 ||
                   DO(cuStreamSynchronize, stream) != 0
               ? -1
               : 0;
}

int gi_module_copy(uint64_t to, uint64_t from, size_t bytes, int times, char *why, size_t n)
{
    for (int i = 0; i < times; i++)
        if (DO(cuMemcpyDtoDAsync, to, from, bytes, stream) != 0)
            return -1;
    return DO(cuStreamSynchronize, stream);
}

#else

static int none(char *why, size_t n)
{
    snprintf(why, n, "this ginperf was built without CUDA (configure found no nvcc)");
    return -1;
}

int gi_module_open(const void *image, int local_rank, char *why, size_t n)
{
    (void)image, (void)local_rank;
    return none(why, n);
}

void *gi_module_host_alloc(size_t bytes)
{
    (void)bytes;
    return NULL;
}

int gi_module_run(const char *kernel, unsigned blocks, unsigned threads, void *arg, char *why,
                  size_t n)
{
    (void)kernel, (void)blocks, (void)threads, (void)arg;
    return none(why, n);
}

int gi_module_copy(uint64_t to, uint64_t from, size_t bytes, int times, char *why, size_t n)
{
    (void)to, (void)from, (void)bytes, (void)times;
    return none(why, n);
}

#endif
