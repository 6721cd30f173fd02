/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests against the driver without GPU: include it once, in the program's one file. */
#ifndef GINSHMEM_TESTS_CUDA_CUDA_TEST_H
#define GINSHMEM_TESTS_CUDA_CUDA_TEST_H

#include <dlfcn.h>
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

#endif
