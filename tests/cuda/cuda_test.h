/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests against the driver without GPU: include it once, in the program's one file. */
#ifndef GINSHMEM_TESTS_CUDA_CUDA_TEST_H
#define GINSHMEM_TESTS_CUDA_CUDA_TEST_H

#include <dlfcn.h>
#include <ginshmem/impl/desc.h>
#include "tests/mp.h"

__attribute__((constructor)) static void use_fake_driver(void)
{
    setenv("GINSHMEM_TEST_LIBCUDA", FAKE_CUDA, 1);
    setenv("GINSHMEM_CUDA_HEAP_SIZE", "4M", 1);
    setenv("GINSHMEM_CUDA_HEAP_MAX", "256M", 1);
    setenv("GINSHMEM_HEAP_CHUNK", "4M", 1);
}

static void *fake(const char *name)
{
    static void *library;
    if (library == NULL)
        library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    return library != NULL ? dlsym(library, name) : NULL;
}

static inline void fake_fail(const char *entry, unsigned nth, int error)
{
    ((void (*)(const char *, unsigned, int))fake("fake_cuda_fail"))(entry, nth, error);
}

static inline long fake_live(void)
{
    return ((long (*)(void))fake("fake_cuda_live"))();
}

static inline long fake_calls(void)
{
    return ((long (*)(void))fake("fake_cuda_calls"))();
}

static inline long fake_flushes(void)
{
    return ((long (*)(void))fake("fake_cuda_flushes"))();
}

/* This thread has a CUDA context from now on, or none. */
static inline void fake_use(int device)
{
    void *context = NULL;
    if (device >= 0)
        ((int (*)(void **, int))fake("cuDevicePrimaryCtxRetain"))(&context, device);
    ((int (*)(void *))fake("cuCtxSetCurrent"))(context);
}

static inline long fake_asked(void)
{
    return ((long (*)(void))fake("fake_cuda_asked"))();
}

static inline uint64_t fake_mixed(size_t bytes)
{
    return ((unsigned long long (*)(size_t))fake("fake_cuda_mixed"))(bytes);
}

static inline void fake_hold(int hold)
{
    ((void (*)(int))fake("fake_cuda_hold"))(hold);
}

static inline void fake_fault(int device)
{
    ((void (*)(int))fake("fake_cuda_fault"))(device);
}

/* A device communicator for kernels, whose memory the CPU can look at. */
static inline bool cuda_dev(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r = reqs != NULL ? *reqs : r;
    r.device = GIN_DEVICE_CUDA;
    return EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev));
}

/* What a kernel would find there. */
static inline const struct gin_i_dc *cuda_dc(const struct mp *mp)
{
    return (const struct gin_i_dc *)(uintptr_t)mp->dev.state;
}

static inline const struct gin_i_window *cuda_window(const struct mp *mp, gin_window_t win)
{
    const struct gin_i_window *const *pages =
        (const struct gin_i_window *const *)(uintptr_t)mp->dev.windows;
    uint32_t id = (uint32_t)win.w;
    return &pages[(id / GIN_I_WINDOW_PAGE) % GIN_I_WINDOW_PAGES][id % GIN_I_WINDOW_PAGE];
}

#endif
