/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without CUDA: there is no GPU, so nothing but that is ever asked. */
#include "cuda/gpu.h"

#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/rdma.h"

#if !GI_HAVE_CUDA

static const char none[] = "this library was built without CUDA (configure found no nvcc)";

static int refused(void)
{
    return gi_fail(GIN_ENOTSUP, "%s", none);
}

bool gi_gpu_driver(const char *driver, char *why, size_t n)
{
    (void)driver;
    snprintf(why, n, "%s", none);
    return false;
}

int gi_gpu_open(const char *driver, int local_rank, struct gi_gpu **gpu, char *why, size_t n)
{
    (void)local_rank;
    *gpu = NULL;
    gi_gpu_driver(driver, why, n);
    return GIN_OK;
}

bool gi_gpu_fabric_can(struct gi_gpu *g, char *why, size_t n)
{
    (void)g;
    snprintf(why, n, "%s", none);
    return false;
}

void gi_gpu_look(const char *driver, uint64_t addr, struct gi_gpu_range *range)
{
    (void)driver;
    (void)addr;
    memset(range, 0, sizeof(*range));
}

bool gi_gpu_has_context(const char *driver)
{
    (void)driver;
    return false;
}

enum gi_gpu_order gi_gpu_rdma_order(const struct gi_gpu *g)
{
    (void)g;
    return GI_GPU_ORDER_NONE;
}

/* Every other entry: a result, and arguments that go unused. */
#define NONE_INT(name, ...) \
    int name(__VA_ARGS__)   \
    {                       \
        return refused();   \
    }
#define NONE_VOID(name, ...) \
    void name(__VA_ARGS__)   \
    {                        \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
NONE_VOID(gi_gpu_close, struct gi_gpu *g)
NONE_INT(gi_gpu_health, struct gi_gpu *g)
NONE_INT(gi_gpu_object_create, const struct gi_gpu *g, uint64_t bytes, uint64_t *object)
NONE_INT(gi_gpu_object_export, uint64_t object, int *fd)
NONE_INT(gi_gpu_object_import, int fd, uint64_t *object)
NONE_INT(gi_gpu_fabric_export, uint64_t object, struct gi_gpu_fabric *handle)
NONE_INT(gi_gpu_fabric_import, const struct gi_gpu_fabric *handle, uint64_t *object)
NONE_VOID(gi_gpu_object_release, uint64_t object)
NONE_INT(gi_gpu_reserve, uint64_t bytes, uint64_t align, uint64_t *addr)
NONE_VOID(gi_gpu_unreserve, uint64_t addr, uint64_t bytes)
NONE_INT(gi_gpu_map, uint64_t addr, uint64_t bytes, uint64_t object)
NONE_INT(gi_gpu_allow, uint64_t addr, uint64_t bytes, int device)
NONE_VOID(gi_gpu_unmap, uint64_t addr, uint64_t bytes)
NONE_INT(gi_gpu_alloc, struct gi_gpu *g, uint64_t bytes, uint64_t *addr)
NONE_VOID(gi_gpu_free, struct gi_gpu *g, uint64_t addr)
NONE_INT(gi_gpu_host_alloc, struct gi_gpu *g, uint64_t bytes, void **host, uint64_t *addr)
NONE_VOID(gi_gpu_host_free, struct gi_gpu *g, void *host)
NONE_INT(gi_gpu_host_register, struct gi_gpu *g, void *host, uint64_t bytes, bool *taken)
NONE_VOID(gi_gpu_host_unregister, struct gi_gpu *g, void *host)
NONE_INT(gi_gpu_zero, struct gi_gpu *g, uint64_t addr, uint64_t bytes)
NONE_INT(gi_gpu_write, struct gi_gpu *g, uint64_t addr, const void *from, uint64_t bytes)
NONE_INT(gi_gpu_read, struct gi_gpu *g, void *to, uint64_t addr, uint64_t bytes)
NONE_INT(gi_gpu_copy, struct gi_gpu *g, uint64_t to, uint64_t from, uint64_t bytes)
NONE_INT(gi_gpu_adopt, struct gi_gpu *g)
NONE_INT(gi_gpu_stream_open, struct gi_gpu *g, void **stream)
NONE_VOID(gi_gpu_stream_close, struct gi_gpu *g, void *stream)
NONE_INT(gi_gpu_copy_start, void *stream, uint64_t to, uint64_t from, uint64_t bytes)
NONE_INT(gi_gpu_copy_begin, struct gi_gpu *g, void *stream, uint64_t to, uint64_t from,
         uint64_t bytes, uint64_t stamp_addr, uint64_t stamp)
NONE_INT(gi_gpu_stamp, void *stream, uint64_t addr, uint64_t value)
NONE_INT(gi_kernels_open, struct gi_gpu *g, const char *const *names, unsigned n)
NONE_VOID(gi_kernels_close, struct gi_gpu *g)
NONE_INT(gi_stream_usable, const struct gi_gpu *g, void *stream)
NONE_INT(gi_stream_launch, const struct gi_gpu *g, unsigned kernel, void *stream, unsigned threads,
         void *arg)
NONE_INT(gi_stream_copy, const struct gi_gpu *g, void *stream, uint64_t to, uint64_t from,
         uint64_t bytes)
NONE_INT(gi_gpu_allocation, struct gi_gpu *g, uint64_t addr, uint64_t *start, uint64_t *bytes)
NONE_INT(gi_gpu_ipc_get, struct gi_gpu *g, uint64_t addr, struct gi_gpu_ipc *handle)
NONE_INT(gi_gpu_ipc_open, struct gi_gpu *g, const struct gi_gpu_ipc *handle, uint64_t *addr)
NONE_VOID(gi_gpu_ipc_close, struct gi_gpu *g, uint64_t addr)
NONE_INT(gi_gpu_befriend, struct gi_gpu *g, void *context)
NONE_INT(gi_gpu_pieces, struct gi_gpu *g, uint64_t addr, uint64_t bytes, bool share,
         struct gi_gpu_piece **pieces, uint32_t *n)
NONE_INT(gi_gpu_dmabuf, struct gi_gpu *g, uint64_t addr, uint64_t bytes, int *fd, uint64_t *off)
NONE_VOID(gi_gpu_sync_memops, struct gi_gpu *g, uint64_t addr)
NONE_INT(gi_gpu_rdma_flush, struct gi_gpu *g)
NONE_VOID(gi_gpu_pieces_free, struct gi_gpu_piece *pieces, uint32_t n)
#pragma GCC diagnostic pop

#endif
