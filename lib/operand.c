/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies behind an address that a program gave with gin_at_local(): a GPU's memory, or the
 * host's, and all of it of the same kind. What is a heap's, a window's or was announced is known;
 * of other memory the driver is asked, once for each allocation that the range touches.
 */
#include <inttypes.h>

#include "cuda_up.h"
#include "window_impl.h"

#define PAGE 4096u /* kinds of memory do not share one */

static const char *name_of(enum gi_gpu_memory place)
{
    static const char *const names[] = {"ordinary host memory", "pinned host memory", "GPU memory",
                                        "managed memory"};
    return names[place];
}

/* The first byte behind `at` that may be of another allocation. Of what the driver does not know
 * the last byte has to do. */
static uint64_t next_of(const struct gi_gpu_range *r, uint64_t at, uint64_t last)
{
    if (r->bytes != 0 && at - r->start < r->bytes)
        return r->start + r->bytes;
    return at / PAGE == last / PAGE ? last + 1 : last;
}

int gi_operand_look(const gin_comm_t *comm, uint64_t addr, uint64_t bytes,
                    enum gi_gpu_memory *place)
{
    struct gi_gpu_range first, r;
    uint64_t last = addr + (bytes - 1);
    if (last < addr)
        return gi_fail(GIN_EINVAL, "%#" PRIx64 " and %" PRIu64 " bytes wrap around", addr, bytes);
    gi_gpu_look(comm->env.test_libcuda, addr, &first);
    r = first;
    for (uint64_t at = next_of(&r, addr, last); at <= last && at != 0; at = next_of(&r, at, last)) {
        gi_gpu_look(comm->env.test_libcuda, at, &r);
        if (r.place != first.place)
            return gi_fail(GIN_EINVAL,
                           "[%#" PRIx64 ", +%" PRIu64
                           ") begins in %s and goes on in %s, at %#" PRIx64,
                           addr, bytes, name_of(first.place), name_of(r.place), at);
        if (at == last)
            break;
    }
    *place = first.place;
    return GIN_OK;
}

static bool is_in_host_heap(const gin_comm_t *comm, uint64_t addr, uint64_t bytes)
{
    if (comm->heap == NULL)
        return false;
    uint64_t base = (uint64_t)(uintptr_t)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL;
    uint64_t off = addr - base, size = gi_heap_size(comm->heap);
    return off <= size && bytes <= size - off;
}

/* A registration of mine holds it all. */
static bool is_registered(const gin_comm_t *comm, uint64_t addr, uint64_t bytes, bool *gpu)
{
    uint64_t id;
    if (!gi_window_index_find(&comm->windows->index, addr, &id))
        return false;
    const struct gi_registration *reg = gi_window_private(&comm->windows->table, (uint32_t)id)->reg;
    if (reg == NULL || reg->addr == NULL)
        return false;
    uint64_t off = addr - reg->addr[comm->rank];
    *gpu = reg->gpu;
    return off <= reg->bytes && bytes <= reg->bytes - off && !gi_cuda_touches(comm, addr, bytes);
}

int gi_operand_is_gpu(gin_comm_t *comm, uint64_t addr, uint64_t bytes, bool *gpu)
{
    enum gi_gpu_memory place = GI_GPU_UNKNOWN;
    *gpu = false;
    if (bytes == 0 || is_in_host_heap(comm, addr, bytes) || is_registered(comm, addr, bytes, gpu))
        return GIN_OK;
    if (gi_cuda_owns(comm, addr) && gi_cuda_owns(comm, addr + (bytes - 1)))
        place = GI_GPU_DEVICE;
    else if (!gi_local_place(comm, addr, bytes, &place)) {
        int st = gi_operand_look(comm, addr, bytes, &place);
        if (st != GIN_OK)
            return st;
    }
    *gpu = place == GI_GPU_DEVICE;
    return GIN_OK;
}
