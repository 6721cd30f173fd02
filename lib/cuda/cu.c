/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the CUDA driver, once per process, and its errors as ours. */
#include "cuda/cu.h"

#if GI_HAVE_CUDA

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/log.h"

#define LIBRARY     "libcuda.so.1"
#define TEXT(name)  TEXT_(name) /* after expansion: the name with its version */
#define TEXT_(name) #name

static struct {
    pthread_mutex_t lock;
    int state;                /* 0: not tried, 1: there, -1: not */
    _Atomic uint64_t without; /* when so many were opened it was none of them; 0: nobody looked */
    char why[160];
    struct gi_cu table;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const char *name;
    size_t place;
    bool optional;
} entries[] = {
#define GI_CU_ENTRY(name) {TEXT(name), offsetof(struct gi_cu, name), false},
#define GI_CU_MAYBE(name) {TEXT(name), offsetof(struct gi_cu, name), true},
    GI_CU_ENTRIES(GI_CU_ENTRY) GI_CU_OPTIONAL(GI_CU_MAYBE)
#undef GI_CU_ENTRY
#undef GI_CU_MAYBE
};

static int find_entries(void *library, const char *path)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *entry = dlsym(library, entries[i].name);
        if (entry == NULL && !entries[i].optional) {
            snprintf(driver.why, sizeof(driver.why), "%s lacks %s: the driver is too old", path,
                     entries[i].name);
            return -1;
        }
        *(void **)((char *)&driver.table + entries[i].place) = entry;
    }
    return 1;
}

static int open_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(driver.why, sizeof(driver.why), "no CUDA driver: %s", dlerror());
        return -1;
    }
    if (find_entries(library, path) < 0)
        return -1;
    CUresult r = driver.table.cuInit(0);
    if (r != CUDA_SUCCESS) {
        const char *text = NULL;
        driver.table.cuGetErrorString(r, &text);
        snprintf(driver.why, sizeof(driver.why), "cuInit: error %d: %s", (int)r,
                 text != NULL ? text : "unknown");
        return -1;
    }
    return 1; /* never closed: the driver has threads of its own */
}

const struct gi_cu *gi_cu_load(const char *path, char *why, size_t n)
{
    pthread_mutex_lock(&driver.lock);
    if (driver.state == 0)
        driver.state = open_driver(path[0] != 0 ? path : LIBRARY);
    int state = driver.state;
    pthread_mutex_unlock(&driver.lock);
    if (state > 0)
        return &driver.table;
    snprintf(why, n, "%s", driver.why);
    return NULL;
}

static int count_opened(struct dl_phdr_info *info, size_t n, void *count)
{
    (void)n;
    *(uint64_t *)count = info->dlpi_adds;
    return 1;
}

/* How often a library was opened so far. */
static uint64_t opened(void)
{
    uint64_t n = 0;
    dl_iterate_phdr(count_opened, &n);
    return n;
}

/* Looking for what somebody else has opened takes microseconds, so that it is done once for each
 * time that any library was opened. */
const struct gi_cu *gi_cu_if_there(const char *path)
{
    char why[8];
    uint64_t now = opened();
    if (now == atomic_load_explicit(&driver.without, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&driver.lock);
    int state = driver.state;
    pthread_mutex_unlock(&driver.lock);
    if (state == 0) {
        void *library = dlopen(path[0] != 0 ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (library == NULL) {
            atomic_store_explicit(&driver.without, now, memory_order_relaxed);
            return NULL;
        }
        gi_cu_load(path, why, sizeof(why));
        dlclose(library);
    }
    return state >= 0 ? gi_cu_load(path, why, sizeof(why)) : NULL;
}

const struct gi_cu *gi_cu(void)
{
    return &driver.table;
}

static int status_of(CUresult r)
{
    switch (r) {
    case CUDA_SUCCESS: return GIN_OK;
    case CUDA_ERROR_OUT_OF_MEMORY: return GIN_ENOMEM;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: return GIN_ENOTSUP;
    default: return GIN_ESYS;
    }
}

int gi_cu_fail(CUresult r, const char *fmt, ...)
{
    const char *name = NULL, *text = NULL;
    char what[200];
    va_list ap;
    if (r == CUDA_SUCCESS)
        return GIN_OK;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    driver.table.cuGetErrorName(r, &name);
    driver.table.cuGetErrorString(r, &text);
    return gi_fail(status_of(r), "%s: %s (%s)", what, name != NULL ? name : "unknown error",
                   text != NULL ? text : "no text");
}

#else
typedef int gi_cuda_not_built; /* an empty file is no C */
#endif
