/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every call on a stream looks at before anything is enqueued: the device communicator, the
 * stream, peer, places, actions. What only kernels can know, they report.
 */
#include <inttypes.h>
#include <string.h>

#include "mirror.h"
#include "stream.h"
#include "window_impl.h"

/* ---- entering ---- */

static int no_kernels(const struct gi_on_stream *o)
{
    return gi_fail(GIN_ENOTSUP, "%s: no operations on streams: %s", o->call, o->s->why);
}

static int find(struct gi_on_stream *o, const gin_devcomm_t *dev)
{
    if (dev == NULL || dev->magic != GIN_DEVCOMM_MAGIC || dev->abi != GIN_DEVCOMM_ABI)
        return gi_fail(GIN_ESTATE,
                       "%s: not a device communicator (destroyed, or made by another "
                       "version?)",
                       o->call);
    if (dev->device != GIN_DEVICE_CUDA)
        return gi_fail(GIN_ENOTSUP,
                       "%s: this device communicator is for host threads (device HOST); streams "
                       "need one with device CUDA",
                       o->call);
    o->d = gi_streams_find(dev);
    if (o->d != NULL)
        return GIN_OK;
    return gi_fail(GIN_ESTATE,
                   "%s: the device communicator has been destroyed, is of another process, or one "
                   "of too many (GINSHMEM_LOG=info says so)",
                   o->call);
}

int gi_stream_enter(struct gi_on_stream *o, const char *call, enum gi_stream_kernel kernel,
                    const gin_devcomm_t *dev, uint32_t context, bool all, gin_stream_t stream)
{
    memset(&o->job, 0, sizeof(o->job));
    o->call = call;
    o->stream = stream;
    int st = find(o, dev);
    if (st != GIN_OK)
        return st;
    o->s = o->d->stream;
    if (o->s->why[0] != 0)
        return no_kernels(o);
    if (context == GIN_ALL_CONTEXTS && !all)
        return gi_fail(GIN_EINVAL,
                       "%s: GIN_ALL_CONTEXTS serves barriers, fences, flush and quiet only", call);
    if (context != GIN_ALL_CONTEXTS && context >= o->d->reqs.contexts)
        return gi_fail(GIN_ERANGE,
                       "%s: context %" PRIu32 " is out of range, there are %" PRIu32
                       "; ask gin_devcomm_create() for more",
                       call, context, o->d->reqs.contexts);
    if (gi_comm_status_quiet(o->d->comm) != GIN_OK)
        return gi_comm_fail_status(o->d->comm);
    st = gi_stream_usable(o->d->kernel->gpu, stream);
    if (st != GIN_OK) {
        gi_fail_context("%s", call);
        return st;
    }
    o->job.dev = *dev;
    o->job.report = (uint64_t *)(uintptr_t)o->s->report_addr;
    o->job.context = context;
    o->job.kernel = (uint32_t)kernel;
    return GIN_OK;
}

int gi_stream_run(struct gi_on_stream *o, unsigned threads)
{
    int st = gi_stream_launch(o->d->kernel->gpu, o->job.kernel, o->stream, threads, &o->job);
    if (st != GIN_OK)
        gi_fail_context("%s", o->call);
    return st;
}

/* ---- peers and places ---- */

int gi_stream_peer(struct gi_on_stream *o, gin_team_t team, int peer, int *world)
{
    *world = gi_team_world(o->d->comm, team, peer);
    if (*world < 0) {
        gi_fail_context("%s", o->call);
        return *world;
    }
    o->job.team = team;
    o->job.peer = peer;
    return GIN_OK;
}

static int out_of_reach(const struct gi_on_stream *o, int world)
{
    return gi_fail(GIN_ENOTSUP,
                   "%s: rank %d is not reached by kernels of this rank: not by load and store, and "
                   "not through the engine",
                   o->call, world);
}

/* By the engine, which is there. */
static int by_engine(const struct gi_on_stream *o, int world, struct gi_stream_spot *p)
{
    p->engine = true;
    return o->d->kernel->n_rings != 0 ? GIN_OK : out_of_reach(o, world);
}

int gi_stream_meets(const struct gi_on_stream *o, int world)
{
    int lsa = o->s->lsa_of[world];
    if (o->d->device_of[world] != GIN_DEVICE_CUDA)
        return gi_fail(GIN_ENOTSUP,
                       "%s: the device of rank %d is the host; collectives on streams are among "
                       "kernels",
                       o->call, world);
    if (lsa == -1 || (lsa >= 0 && (lsa & GIN_I_LSA_NO_GPU)))
        return out_of_reach(o, world);
    bool near = (unsigned)lsa < GIN_I_LSA_HOST_ONLY;
    return near || world == o->d->comm->rank || o->d->kernel->n_rings != 0 ? GIN_OK
                                                                           : out_of_reach(o, world);
}

static const struct gin_i_window *window_of(const struct gi_on_stream *o, gin_at_t at,
                                            uint64_t bytes, int *st)
{
    const struct gin_i_window *w = gi_window_find(o->d->comm, at.win);
    *st = GIN_OK;
    if (w == NULL) {
        *st = gi_fail(GIN_ESTATE,
                      "%s: window %#" PRIx64 " is none of this communicator (deregistered?)",
                      o->call, at.win.w);
        return NULL;
    }
    uint64_t size = gi_window_bytes(o->d->comm, w, gi_window_id(w->handle));
    if (at.off <= size && bytes <= size - at.off)
        return w;
    *st = gi_fail(GIN_ERANGE,
                  "%s: [%" PRIu64 ", +%" PRIu64 ") is outside window %#" PRIx64 " of %" PRIu64
                  " bytes",
                  o->call, at.off, bytes, at.win.w, size);
    return NULL;
}

/* The host heap, as far as it is pinned; of other host windows only the mirror knows. */
static uint64_t host_addr(const struct gi_on_stream *o, const struct gin_i_window *w, int lsa,
                          uint64_t off, uint64_t bytes)
{
    const gin_comm_t *comm = o->d->comm;
    const char *why;
    uint64_t pinned = gi_mirror_pinned(comm, &why);
    if (gi_window_id(w->handle) != GI_THE_HEAP || pinned < GI_CONTROL + off + bytes)
        return 0;
    return (uint64_t)(uintptr_t)comm->slots + (uint64_t)lsa * comm->stride + GI_CONTROL + off;
}

int gi_stream_far(const struct gi_on_stream *o, int world, gin_at_t at, uint64_t bytes, bool update,
                  struct gi_stream_spot *p)
{
    const gin_comm_t *comm = o->d->comm;
    int st, lsa = o->s->lsa_of[world];
    memset(p, 0, sizeof(*p));
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        return gi_fail(GIN_EINVAL, "%s: gin_at_local() names my own memory, not rank %d's", o->call,
                       world);
    const struct gin_i_window *w = window_of(o, at, bytes, &st);
    if (w == NULL)
        return st;
    if (update && world != comm->rank && (w->flags & GIN_WIN_READ_ONLY))
        return gi_fail(GIN_ENOTSUP, "%s: window %#" PRIx64 " is read-only for peers", o->call,
                       at.win.w);
    if (lsa == -1)
        return out_of_reach(o, world);
    if (lsa < 0)
        return by_engine(o, world, p);
    if (w->kind != GIN_KIND_CUDA) {
        p->addr =
            w->flags & GIN_WIN_NO_LSA ? 0 : host_addr(o, w, lsa & GIN_I_LSA_RANK, at.off, bytes);
        return GIN_OK;
    }
    if (lsa & GIN_I_LSA_NO_GPU)
        return gi_fail(GIN_ENOTSUP, "%s: rank %d has no GPU, so there is no such memory", o->call,
                       world);
    uint64_t base = world == comm->rank         ? w->local
                    : lsa < GIN_I_LSA_HOST_ONLY ? gi_window_on_gpu(comm, w, lsa)
                                                : 0;
    if (base == 0)
        return by_engine(o, world, p);
    p->addr = base + at.off;
    p->gpu = true;
    return GIN_OK;
}

int gi_stream_memory(const struct gi_on_stream *o, const void *ptr, uint64_t bytes, bool *gpu)
{
    enum gi_gpu_memory place;
    int st = gi_operand_look(o->d->comm, (uint64_t)(uintptr_t)ptr, bytes, &place);
    if (st != GIN_OK)
        return gi_fail_context("%s", o->call);
    *gpu = place == GI_GPU_DEVICE;
    if (place != GI_GPU_UNKNOWN)
        return GIN_OK;
    return gi_fail(GIN_EINVAL,
                   "%s: %p is ordinary host memory, which a stream does not reach; take memory of "
                   "cudaMalloc(), cudaMallocHost() or a heap",
                   o->call, ptr);
}

int gi_stream_near(const struct gi_on_stream *o, gin_at_t at, uint64_t bytes,
                   struct gi_stream_spot *p)
{
    const gin_comm_t *comm = o->d->comm;
    int st;
    memset(p, 0, sizeof(*p));
    if (at.win.w == GIN_I_WINDOW_LOCAL) {
        p->addr = at.off;
        if (bytes == 0)
            return GIN_OK;
        if (at.off == 0)
            return gi_fail(GIN_EINVAL, "%s: gin_at_local(NULL) with %" PRIu64 " bytes", o->call,
                           bytes);
        return gi_stream_memory(o, (const void *)(uintptr_t)at.off, bytes, &p->gpu);
    }
    const struct gin_i_window *w = window_of(o, at, bytes, &st);
    if (w == NULL)
        return st;
    p->gpu = w->kind == GIN_KIND_CUDA;
    p->addr = p->gpu ? w->local + at.off : host_addr(o, w, comm->shm->lsa_rank, at.off, bytes);
    return GIN_OK;
}

int gi_stream_aligned(const struct gi_on_stream *o, gin_at_t at, const struct gi_stream_spot *p,
                      uint32_t bytes)
{
    if (((p->addr | at.off) & (bytes - 1)) == 0)
        return GIN_OK;
    return gi_fail(GIN_EINVAL, "%s: the word at offset %" PRIu64 " is not %" PRIu32 "-byte aligned",
                   o->call, at.off, bytes);
}

/* ---- actions ---- */

static int not_asked_for(const struct gi_on_stream *o, const char *what)
{
    return gi_fail(GIN_ENOTSUP,
                   "%s: the device communicator was made without %s; ask for them in the "
                   "requirements",
                   o->call, what);
}

static int slot_signal(const struct gi_on_stream *o, int world, uint32_t id)
{
    struct gi_stream_spot p;
    int lsa = o->s->lsa_of[world];
    if (id >= o->d->reqs.signals)
        return gi_fail(GIN_ERANGE,
                       "%s: signal %" PRIu32 " is out of range, there are %" PRIu32
                       "; ask gin_devcomm_create() for more",
                       o->call, id, o->d->reqs.signals);
    if (lsa == -1)
        return out_of_reach(o, world);
    return lsa >= 0 && lsa < GIN_I_LSA_HOST_ONLY ? GIN_OK : by_engine(o, world, &p);
}

uint64_t gi_stream_slot(const struct gi_on_stream *o, int world, uint32_t id)
{
    const struct gi_devcomm *d = o->d;
    const int lsa = o->s->lsa_of[world];
    const uint64_t cell = (uint64_t)o->job.context * d->reqs.signals + id;
    if (lsa < 0 || lsa >= GIN_I_LSA_HOST_ONLY)
        return 0;
    return gi_cuda_slot(d->comm->cuda->map, lsa) + GI_CONTROL_CUDA + d->cuda_off +
           cell * sizeof(struct gin_i_cells) + offsetof(struct gin_i_cells, gpu);
}

int gi_stream_action(struct gi_on_stream *o, int world, gin_action_t a)
{
    struct gi_stream_spot p;
    o->job.remote = a;
    if (a.kind == GIN_ACTION_NONE)
        return GIN_OK;
    if (a.kind > GIN_ACTION_SET_AT)
        return gi_fail(GIN_EINVAL, "%s: action of kind %u", o->call, (unsigned)a.kind);
    if (a.strong && !o->d->reqs.strong)
        return not_asked_for(o, "strong signals");
    if (a.kind == GIN_ACTION_ADD)
        return slot_signal(o, world, a.id);
    if (!o->d->reqs.va)
        return not_asked_for(o, "signals on words (va)");
    int st = gi_stream_far(o, world, a.at, 8, true, &p);
    return st == GIN_OK ? gi_stream_aligned(o, a.at, &p, 8) : st;
}
