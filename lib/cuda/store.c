/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private memory of the library on a GPU, and pinned memory for it. Blocks have sizes of powers of
 * two, so that one that was given back suits another user; there are few of them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cuda/gpu_int.h"

#if GI_HAVE_CUDA

#define SMALLEST 4096u

typedef unsigned long long ull;

struct block {
    struct block *next;
    uint64_t addr, bytes;
    void *host; /* NULL: memory of the GPU */
    bool used;
};

struct gi_gpu_store {
    pthread_mutex_t lock;
    struct block *blocks;
};

int gi_gpu_store_open(struct gi_gpu *g)
{
    g->store = calloc(1, sizeof(*g->store));
    if (g->store == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a GPU's state");
    pthread_mutex_init(&g->store->lock, NULL);
    return GIN_OK;
}

static void give_back(struct gi_gpu *g, const struct block *b)
{
    CUstreamCaptureMode mode;
    if (gi_gpu_enter(g, &mode) != GIN_OK)
        return;
    if (b->host != NULL)
        gi_cu()->cuMemFreeHost(b->host);
    else
        gi_cu()->cuMemFree(b->addr);
    gi_gpu_leave(mode);
}

void gi_gpu_store_close(struct gi_gpu *g)
{
    struct gi_gpu_store *s = g->store;
    if (s == NULL)
        return;
    while (s->blocks != NULL) {
        struct block *b = s->blocks;
        s->blocks = b->next;
        give_back(g, b);
        free(b);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
    g->store = NULL;
}

static CUresult get_host(struct block *b)
{
    CUdeviceptr there = 0;
    CUresult r = gi_cu()->cuMemHostAlloc(&b->host, b->bytes,
                                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (r != CUDA_SUCCESS)
        return r;
    r = gi_cu()->cuMemHostGetDevicePointer(&there, b->host, 0);
    if (r != CUDA_SUCCESS)
        gi_cu()->cuMemFreeHost(b->host);
    b->addr = there;
    return r;
}

static CUresult get_device(struct block *b)
{
    CUdeviceptr got = 0;
    CUresult r = gi_cu()->cuMemAlloc(&got, b->bytes);
    b->addr = got;
    return r;
}

/* From the driver. */
static int get(struct gi_gpu *g, struct block *b, bool host)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    CUresult r = host ? get_host(b) : get_device(b);
    gi_gpu_leave(mode);
    return gi_cu_fail(r, "%s of %llu bytes for GPU %d", host ? "cuMemHostAlloc" : "cuMemAlloc",
                      (ull)b->bytes, g->device);
}

static int take(struct gi_gpu *g, uint64_t bytes, bool host, struct block **block)
{
    struct gi_gpu_store *s = g->store;
    struct block *b = s->blocks;
    uint64_t size = SMALLEST;
    while (size < bytes)
        size *= 2;
    while (b != NULL && (b->used || b->bytes != size || (b->host != NULL) != host))
        b = b->next;
    if (b == NULL) {
        b = calloc(1, sizeof(*b));
        if (b == NULL)
            return gi_fail(GIN_ENOMEM, "no memory for a block of GPU memory");
        b->bytes = size;
        int st = get(g, b, host);
        if (st != GIN_OK) {
            free(b);
            return st;
        }
        b->next = s->blocks;
        s->blocks = b;
    }
    b->used = true;
    *block = b;
    return GIN_OK;
}

static void drop(struct gi_gpu *g, uint64_t addr, const void *host)
{
    pthread_mutex_lock(&g->store->lock);
    for (struct block *b = g->store->blocks; b != NULL; b = b->next)
        if (b->used && b->host == host && (host != NULL || b->addr == addr))
            b->used = false;
    pthread_mutex_unlock(&g->store->lock);
}

int gi_gpu_alloc(struct gi_gpu *g, uint64_t bytes, uint64_t *addr)
{
    struct block *b = NULL;
    pthread_mutex_lock(&g->store->lock);
    int st = take(g, bytes, false, &b);
    pthread_mutex_unlock(&g->store->lock);
    if (st != GIN_OK)
        return st;
    st = gi_gpu_zero(g, b->addr, bytes);
    if (st != GIN_OK)
        drop(g, b->addr, NULL);
    else
        *addr = b->addr;
    return st;
}

void gi_gpu_free(struct gi_gpu *g, uint64_t addr)
{
    if (addr != 0)
        drop(g, addr, NULL);
}

int gi_gpu_host_alloc(struct gi_gpu *g, uint64_t bytes, void **host, uint64_t *addr)
{
    struct block *b = NULL;
    pthread_mutex_lock(&g->store->lock);
    int st = take(g, bytes, true, &b);
    pthread_mutex_unlock(&g->store->lock);
    if (st != GIN_OK)
        return st;
    memset(b->host, 0, bytes);
    *host = b->host;
    *addr = b->addr;
    return GIN_OK;
}

void gi_gpu_host_free(struct gi_gpu *g, void *host)
{
    if (host != NULL)
        drop(g, 0, host);
}

#endif
