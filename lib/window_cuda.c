/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows over memory that the program got from CUDA. What it is, the driver says, where this
 * process has opened it; a rank without GPU takes part with NULL. Pinned host memory is host
 * memory; kernels reach it where all their LSA peers are threads of one process. GPU memory is
 * reached by kernels alone.
 */
#include <string.h>
#include "cuda_up.h"
#include "window_impl.h"

/* The whole range was pinned at once. */
static bool is_pinned(const struct gi_draft *d, const struct gi_gpu_range *r)
{
    uint64_t off = (uint64_t)(uintptr_t)d->ptr - r->start;
    return r->place == GI_GPU_PINNED && off <= r->bytes && d->bytes <= r->bytes - off;
}

void gi_draft_place(const gin_comm_t *comm, struct gi_draft *d)
{
    struct gi_gpu_range r;
    d->place = GI_GPU_UNKNOWN;
    if (d->bytes != 0 && d->ptr == NULL)
        d->place = GI_PLACE_NONE;
    if (d->bytes == 0 || d->ptr == NULL)
        return;
    gi_gpu_look(comm->env.test_libcuda, (uint64_t)(uintptr_t)d->ptr, &r);
    if (r.place == GI_GPU_DEVICE || r.place == GI_GPU_MANAGED)
        d->place = r.place;
    else if (is_pinned(d, &r))
        d->place = GI_GPU_PINNED;
}

static uint32_t place_of(const gin_comm_t *comm, int rank)
{
    return comm->records[rank].kind >> 8;
}

static bool in_process(const gin_comm_t *comm, int rank)
{
    return comm->cards[rank].process == comm->cards[comm->rank].process;
}

int gi_draft_judge(const gin_comm_t *comm, struct gi_draft *d)
{
    int gpu = -1, host = -1, none = -1;
    for (int r = comm->size - 1; r >= 0; r--) {
        uint32_t place = place_of(comm, r);
        if (place == GI_GPU_MANAGED)
            return gi_fail(
                GIN_ENOTSUP,
                "%s: rank %d passed managed memory, which moves between CPU and GPU; use "
                "memory of cudaMalloc(), cudaMallocHost() or gin_malloc_kind()",
                d->call, r);
        gpu = place == GI_GPU_DEVICE ? r : gpu;
        none = place == GI_PLACE_NONE ? r : none;
        host = place != GI_GPU_DEVICE && place != GI_PLACE_NONE ? r : host;
    }
    d->gpu = gpu >= 0 && host < 0;
    if (gpu >= 0 && host >= 0)
        return gi_fail(GIN_EMISMATCH,
                       "%s: rank %d passed GPU memory, rank %d host memory; a rank without GPU "
                       "passes NULL",
                       d->call, gpu, host);
    if (gpu < 0 && none >= 0)
        return none == comm->rank ? gi_fail(GIN_EINVAL, "%s: %llu bytes at NULL", d->call,
                                            (unsigned long long)d->bytes)
                                  : gi_fail(GIN_EINVAL, "%s: rank %d passed %llu bytes at NULL",
                                            d->call, none, (unsigned long long)d->bytes);
    d->pinned = !d->gpu;
    for (int l = 0; l < comm->shm->lsa_size; l++) {
        int r = comm->shm->world_of[l];
        d->pinned &= place_of(comm, r) == GI_GPU_PINNED && in_process(comm, r);
    }
    return GIN_OK;
}

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    return gi_comm_gather(arg, in, out, bytes);
}

int gi_draft_open(gin_comm_t *comm, struct gi_draft *d)
{
    uint64_t off;
    int st = gi_cuda_up(comm);
    if (st != GIN_OK)
        goto failed;
    if ((d->flags & GIN_WIN_NO_LSA) || gi_registration_find(comm, d, &off) != NULL)
        return GIN_OK;
    struct gi_cuda_parts_config c = {
        .shm = {.rank = comm->rank,
                .size = comm->size,
                .ranks = comm->shm_ranks,
                .allgather = gather,
                .arg = comm,
                .deadline = gi_deadline_in(comm->env.coll_timeout)},
        .team = comm->shm,
        .driver = comm->env.test_libcuda,
        .gpu = comm->cuda->gpu,
        .devices = comm->cuda->devices,
        .reach = comm->cuda->map->reach,
        .addr = (uint64_t)(uintptr_t)d->ptr,
        .bytes = d->bytes,
    };
    st = gi_cuda_parts_open(&c, &d->reg->parts);
    if (st != GIN_OK)
        goto failed;
    if (!d->reg->parts->complete)
        gi_info("window", "[%p, +%llu) is not for kernels' loads and stores: %s", d->ptr,
                (unsigned long long)d->bytes, d->reg->parts->why);
    return GIN_OK;
failed:
    gi_fail_context("%s", d->call);
    return st;
}

void gi_windows_forget_gpus(struct gi_windows *ws)
{
    for (struct gi_registration *g = ws->regs; g != NULL; g = g->next) {
        gi_cuda_parts_close(g->parts);
        g->parts = NULL;
    }
}

bool gi_words_by_engine(const gin_comm_t *comm, const struct gin_i_window *w)
{
    const struct gi_window *p = gi_window_private(&comm->windows->table, gi_window_id(w->handle));
    return (w->flags & GIN_WIN_NO_LSA) != 0 || !gi_cuda_atomics(comm) ||
           (p->reg->gpu && !p->direct);
}

const char *gi_windows_why_slow(const gin_comm_t *comm)
{
    for (const struct gi_registration *g = comm->windows->regs; g != NULL; g = g->next)
        if (g->parts != NULL && !g->parts->complete)
            return g->parts->why;
    return "";
}
