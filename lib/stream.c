/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data and completion on streams. Which way a put or get takes: the copy engine where this GPU
 * reaches both ends, else a kernel, whose device code finds the way, the network's included. A put
 * with an action is one kernel up to GINSHMEM_STREAM_FUSE bytes, beyond it a copy and a kernel.
 */
#include "stream.h"

#include <inttypes.h>

#define FEW_BYTES 512u /* that a warp copies as fast as a block */
#define WARP      32u
#define BLOCK     512u

/* Both ends known, and worth a copy engine: between two places of host memory that would be this
 * thread's work. */
static bool is_copy(const struct gi_on_stream *o, const struct gi_stream_spot *to,
                    const struct gi_stream_spot *from, uint64_t bytes)
{
    return to->addr != 0 && from->addr != 0 && (to->gpu || from->gpu) &&
           bytes >= o->d->comm->env.stream_copy;
}

static int copy(const struct gi_on_stream *o, const struct gi_stream_spot *to,
                const struct gi_stream_spot *from, uint64_t bytes)
{
    int st = gi_stream_copy(o->d->kernel->gpu, o->stream, to->addr, from->addr, bytes);
    if (st != GIN_OK)
        gi_fail_context("%s", o->call);
    return st;
}

/* By a kernel. Where it stores itself, nothing is left to be flushed. */
static int run_data(struct gi_on_stream *o, const struct gi_stream_spot *to,
                    const struct gi_stream_spot *from, uint64_t bytes)
{
    o->job.bytes = bytes;
    o->job.flush = to->addr == 0 || from->addr == 0;
    return gi_stream_run(o, bytes <= FEW_BYTES ? WARP : BLOCK);
}

/* A word with a slot signal, all of it at addresses that this GPU writes. */
static bool is_word(struct gi_on_stream *o, const struct gi_stream_spot *to,
                    const struct gi_stream_spot *from, uint64_t bytes, int world)
{
    const gin_action_t *a = &o->job.remote;
    if (bytes != 8 || a->kind != GIN_ACTION_ADD || a->strong || to->addr == 0 || from->addr == 0 ||
        ((to->addr | from->addr) & 7) != 0)
        return false;
    o->job.expected = gi_stream_slot(o, world, a->id);
    return o->job.expected != 0;
}

static int word(struct gi_on_stream *o, const struct gi_stream_spot *to,
                const struct gi_stream_spot *from)
{
    o->job.kernel = GI_STREAM_WORD;
    o->job.dst.off = to->addr;
    o->job.src.off = from->addr;
    o->job.value = o->job.remote.value;
    return gi_stream_run(o, 1);
}

int gin_put_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                      gin_at_t dst, gin_at_t src, size_t bytes, gin_action_t remote,
                      gin_stream_t stream)
{
    struct gi_on_stream o;
    struct gi_stream_spot to, from;
    int world;
    int st = gi_stream_enter(&o, "gin_put_on_stream", GI_STREAM_PUT, dev, context, false, stream);
    if (st == GIN_OK)
        st = gi_stream_peer(&o, team, peer, &world);
    if (st == GIN_OK)
        st = gi_stream_action(&o, world, remote);
    if (st == GIN_OK)
        st = gi_stream_near(&o, src, bytes, &from);
    if (st == GIN_OK)
        st = gi_stream_far(&o, world, dst, bytes, true, &to);
    if (st != GIN_OK || (bytes == 0 && remote.kind == GIN_ACTION_NONE))
        return st;
    bool fused = remote.kind != GIN_ACTION_NONE && bytes < o.d->comm->env.stream_fuse;
    o.job.dst = dst;
    o.job.src = src;
    if (fused && is_word(&o, &to, &from, bytes, world))
        return word(&o, &to, &from);
    if (bytes == 0 || fused || !is_copy(&o, &to, &from, bytes))
        return run_data(&o, &to, &from, bytes);
    st = copy(&o, &to, &from, bytes);
    if (st != GIN_OK || remote.kind == GIN_ACTION_NONE)
        return st;
    o.job.kernel = GI_STREAM_SIGNAL;
    return gi_stream_run(&o, 1);
}

int gin_put_value_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                            gin_at_t dst, uint64_t value, size_t bytes, gin_action_t remote,
                            gin_stream_t stream)
{
    struct gi_on_stream o;
    struct gi_stream_spot to;
    int world;
    int st = gi_stream_enter(&o, "gin_put_value_on_stream", GI_STREAM_VALUE, dev, context, false,
                             stream);
    if (st == GIN_OK && (bytes < 1 || bytes > 8))
        st = gi_fail(GIN_EINVAL, "%s: %zu bytes of a value, which has 1 .. 8", o.call, bytes);
    if (st == GIN_OK)
        st = gi_stream_peer(&o, team, peer, &world);
    if (st == GIN_OK)
        st = gi_stream_action(&o, world, remote);
    if (st == GIN_OK)
        st = gi_stream_far(&o, world, dst, bytes, true, &to);
    if (st != GIN_OK)
        return st;
    o.job.dst = dst;
    o.job.value = value;
    o.job.bytes = bytes;
    return gi_stream_run(&o, 1);
}

int gin_get_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                      gin_at_t src, gin_at_t dst, size_t bytes, gin_stream_t stream)
{
    struct gi_on_stream o;
    struct gi_stream_spot to, from;
    int world;
    int st = gi_stream_enter(&o, "gin_get_on_stream", GI_STREAM_GET, dev, context, false, stream);
    if (st == GIN_OK)
        st = gi_stream_peer(&o, team, peer, &world);
    if (st == GIN_OK)
        st = gi_stream_near(&o, dst, bytes, &to);
    if (st == GIN_OK)
        st = gi_stream_far(&o, world, src, bytes, false, &from);
    if (st != GIN_OK || bytes == 0)
        return st;
    o.job.dst = dst;
    o.job.src = src;
    return is_copy(&o, &to, &from, bytes) ? copy(&o, &to, &from, bytes)
                                          : run_data(&o, &to, &from, bytes);
}

/* ---- completion ---- */

static int complete(const char *call, const gin_devcomm_t *dev, uint32_t context,
                    enum gi_stream_complete how, gin_stream_t stream)
{
    struct gi_on_stream o;
    int st = gi_stream_enter(&o, call, GI_STREAM_COMPLETE, dev, context, true, stream);
    if (st != GIN_OK)
        return st;
    o.job.how = (uint32_t)how;
    return gi_stream_run(&o, 1);
}

int gin_flush_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_stream_t stream)
{
    return complete("gin_flush_on_stream", dev, context, GI_STREAM_FLUSH, stream);
}

int gin_fence_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_stream_t stream)
{
    return complete("gin_fence_on_stream", dev, context, GI_STREAM_FENCE, stream);
}

int gin_quiet_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_stream_t stream)
{
    return complete("gin_quiet_on_stream", dev, context, GI_STREAM_QUIET, stream);
}

static int check_barrier(const struct gi_on_stream *o, gin_barrier_t which, uint32_t index,
                         unsigned fence)
{
    const struct gin_i_barriers *b = &o->s->barriers;
    if (fence > GIN_FENCE_NONE)
        return gi_fail(GIN_EINVAL, "%s: fence level %u", o->call, fence);
    if (which.kind > GIN_BARRIER_TEAM ||
        (which.kind == GIN_BARRIER_TEAM && which.place >= b->n_teams))
        return gi_fail(GIN_EINVAL,
                       "%s: barrier of kind %" PRIu32 ", place %" PRIu32
                       "; take one of gin_barrier_world() and its kin, or a handle of "
                       "team_barriers",
                       o->call, which.kind, which.place);
    const struct gin_i_pool *p =
        which.kind == GIN_BARRIER_TEAM ? &o->s->teams[which.place] : &b->fixed[which.kind];
    if (index >= p->count)
        return gi_fail(GIN_ERANGE,
                       "%s: barrier index %" PRIu32 " is out of range, there are %" PRIu32
                       "; ask gin_devcomm_create() for more",
                       o->call, index, p->count);
    if (p->n == 0)
        return gi_fail(GIN_ESTATE, "%s: this rank is no member of the barrier's team", o->call);
    if (p->beyond >= 0 && p->net == 0)
        return gi_fail(GIN_ENOTSUP, "%s: kernels of this rank cannot meet rank %" PRId32, o->call,
                       p->beyond);
    return GIN_OK;
}

int gin_barrier_on_stream(const gin_devcomm_t *dev, gin_barrier_t which, uint32_t index,
                          unsigned fence, gin_stream_t stream)
{
    struct gi_on_stream o;
    int st = gi_stream_enter(&o, "gin_barrier_on_stream", GI_STREAM_BARRIER, dev, GIN_ALL_CONTEXTS,
                             true, stream);
    if (st == GIN_OK)
        st = check_barrier(&o, which, index, fence);
    if (st != GIN_OK)
        return st;
    o.job.which = which;
    o.job.id = index;
    o.job.how = fence;
    return gi_stream_run(&o, WARP);
}

/* ---- how it went ---- */

static const char *name_of(uint32_t kernel)
{
    static const char *const names[] = {
        "a put",        "a put of a value",  "a get",         "a signal",
        "a wait",       "a wait for a word", "a consumption", "an atomic",
        "a completion", "a barrier",         "a put",         "a collective",
        "an operation"};
    return names[kernel < GI_STREAM_N ? kernel : GI_STREAM_N];
}

int gin_stream_status(const gin_devcomm_t *dev)
{
    struct gi_devcomm *d = NULL;
    if (dev != NULL && dev->magic == GIN_DEVCOMM_MAGIC && dev->abi == GIN_DEVCOMM_ABI &&
        dev->device == GIN_DEVICE_CUDA)
        d = gi_streams_find(dev);
    if (d == NULL)
        return gi_fail(GIN_ESTATE, "gin_stream_status: not a live device communicator for kernels");
    uint64_t first = __atomic_exchange_n(d->stream->report, 0, __ATOMIC_ACQUIRE);
    if (first == 0)
        return gi_comm_status_quiet(d->comm) == GIN_OK ? GIN_OK : gi_comm_fail_status(d->comm);
    int st = (int)(uint32_t)first;
    return gi_fail(st, "%s on a stream ended with %s", name_of((uint32_t)(first >> 32)),
                   gin_status_name(st));
}
