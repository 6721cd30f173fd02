/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on streams: one block each. What can be refused from here is; what only members
 * together know is the kernel's to find out. */
#include "stream.h"

#include <inttypes.h>

#define FEW_BYTES 512u
#define WARP      32u
#define BLOCK     512u
#define TYPES     (GIN_COMPLEX_DOUBLE + 1)

/* A call, as it comes. */
struct asked {
    enum gin_i_coll_kind kind;
    gin_team_t team;
    uint32_t index;
    gin_at_t dst, src;
    size_t count;
    gin_type_t type;
    gin_reduction_t op;
    int root;
    const size_t *dst_counts, *dst_firsts, *src_counts, *src_firsts;
};

static const char *const names[GIN_I_COLL_KINDS] = {
    [GIN_I_COLL_SYNC] = "gin_sync_on_stream",
    [GIN_I_COLL_BROADCAST] = "gin_broadcast_on_stream",
    [GIN_I_COLL_ALLGATHER] = "gin_allgather_on_stream",
    [GIN_I_COLL_GATHER] = "gin_gather_on_stream",
    [GIN_I_COLL_ALLTOALL] = "gin_alltoall_on_stream",
    [GIN_I_COLL_ALLTOALLV] = "gin_alltoallv_on_stream",
    [GIN_I_COLL_ALLREDUCE] = "gin_allreduce_on_stream",
    [GIN_I_COLL_REDUCE] = "gin_reduce_on_stream",
    [GIN_I_COLL_REDUCE_SCATTER] = "gin_reduce_scatter_on_stream",
    [GIN_I_COLL_SCAN] = "gin_scan_on_stream",
    [GIN_I_COLL_SCAN_EXCLUSIVE] = "gin_scan_exclusive_on_stream",
};

static const uint8_t sizes[TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};

static bool is_of(const struct asked *a, enum gin_i_coll_kind first, enum gin_i_coll_kind last)
{
    return a->kind >= first && a->kind <= last;
}

/* ---- what is refused ---- */

static int check_team(struct gi_on_stream *o, const struct asked *a)
{
    int st = GIN_OK, world;
    if (a->team.size <= 0)
        return gi_fail(GIN_EINVAL, "%s: the team is none", o->call);
    if (a->team.rank < 0 || a->team.rank >= a->team.size)
        return gi_fail(GIN_ESTATE, "%s: this rank is no member of the team", o->call);
    for (int r = 0; r < a->team.size && st == GIN_OK; r++) {
        st = gi_stream_peer(o, a->team, r, &world);
        if (st == GIN_OK && r != a->team.rank)
            st = gi_stream_meets(o, world);
        if (st == GIN_OK && r == a->team.rank && world != o->d->comm->rank)
            st = gi_fail(GIN_EINVAL, "%s: the team calls rank %d me", o->call, world);
    }
    return st;
}

static int check_numbers(const struct gi_on_stream *o, const struct asked *a)
{
    bool folds = is_of(a, GIN_I_COLL_ALLREDUCE, GIN_I_COLL_SCAN_EXCLUSIVE);
    bool rooted = a->kind == GIN_I_COLL_BROADCAST || a->kind == GIN_I_COLL_GATHER ||
                  a->kind == GIN_I_COLL_REDUCE;
    if (a->index >= o->d->reqs.collectives)
        return gi_fail(GIN_ERANGE,
                       "%s: index %" PRIu32 " is out of range, there are %" PRIu32
                       "; ask gin_devcomm_create() for more (collectives)",
                       o->call, a->index, o->d->reqs.collectives);
    if ((unsigned)a->type >= TYPES || (folds && (unsigned)a->op > GIN_XOR))
        return gi_fail(GIN_EINVAL, "%s: type %d or operation %d is none", o->call, (int)a->type,
                       (int)a->op);
    gin_reduction_t last = a->type < GIN_HALF            ? GIN_XOR
                           : a->type < GIN_COMPLEX_FLOAT ? GIN_MAX
                                                         : GIN_PROD;
    if (folds && a->op > last)
        return gi_fail(GIN_ENOTSUP,
                       "%s: operation %d on type %d: real numbers have sum, product, minimum and "
                       "maximum, complex ones sum and product",
                       o->call, (int)a->op, (int)a->type);
    if (rooted && (a->root < 0 || a->root >= a->team.size))
        return gi_fail(GIN_ERANGE, "%s: root %d of a team of %d ranks", o->call, a->root,
                       a->team.size);
    if (a->count > ((uint64_t)1 << 56) / (uint64_t)a->team.size)
        return gi_fail(GIN_ERANGE, "%s: %zu elements for each of %d ranks", o->call, a->count,
                       a->team.size);
    return GIN_OK;
}

/* Elements of either side; 0: it is not looked at. */
static void extents(const struct asked *a, uint64_t *dst, uint64_t *src)
{
    uint64_t all = a->count * (uint64_t)a->team.size;
    bool at_root = a->team.rank == a->root;
    *dst = *src = a->count;
    switch (a->kind) {
    case GIN_I_COLL_BROADCAST: *src = at_root ? a->count : 0; break;
    case GIN_I_COLL_ALLGATHER: *dst = all; break;
    case GIN_I_COLL_GATHER: *dst = at_root ? all : 0; break;
    case GIN_I_COLL_ALLTOALL: *dst = *src = all; break;
    case GIN_I_COLL_REDUCE: *dst = at_root ? a->count : 0; break;
    case GIN_I_COLL_REDUCE_SCATTER: *src = all; break;
    default: break;
    }
}

static int check_places(const struct gi_on_stream *o, const struct asked *a)
{
    struct gi_stream_spot to = {0}, from = {0};
    uint64_t dst, src;
    int st = GIN_OK;
    extents(a, &dst, &src);
    dst *= sizes[a->type];
    src *= sizes[a->type];
    if (dst != 0)
        st = gi_stream_near(o, a->dst, dst, &to);
    if (st == GIN_OK && src != 0)
        st = gi_stream_near(o, a->src, src, &from);
    if (st != GIN_OK || to.addr == 0 || from.addr == 0 || to.addr == from.addr ||
        to.addr + dst <= from.addr || from.addr + src <= to.addr)
        return st;
    return gi_fail(GIN_EINVAL,
                   "%s: dst, %" PRIu64 " bytes, and src, %" PRIu64
                   " bytes, overlap; in place they are the same",
                   o->call, dst, src);
}

/* Arrays of a number for each member; `may`: NULL will do. */
static int check_array(const struct gi_on_stream *o, const struct asked *a, const char *what,
                       const size_t *array, bool may)
{
    bool gpu;
    if (array == NULL)
        return may ? GIN_OK : gi_fail(GIN_EINVAL, "%s: %s is NULL", o->call, what);
    return gi_stream_memory(o, array, (uint64_t)a->team.size * sizeof(*array), &gpu);
}

static int check_arrays(const struct gi_on_stream *o, const struct asked *a)
{
    int st = check_array(o, a, "dst_counts", a->dst_counts, false);
    if (st == GIN_OK)
        st = check_array(o, a, "dst_firsts", a->dst_firsts, true);
    if (st == GIN_OK)
        st = check_array(o, a, "src_counts", a->src_counts, false);
    return st == GIN_OK ? check_array(o, a, "src_firsts", a->src_firsts, true) : st;
}

/* ---- going ---- */

static int enqueue(const gin_devcomm_t *dev, uint32_t context, const struct asked *a,
                   gin_stream_t stream)
{
    struct gi_on_stream o;
    bool counted = a->kind == GIN_I_COLL_ALLTOALLV;
    int st = gi_stream_enter(&o, names[a->kind], GI_STREAM_COLL, dev, context, true, stream);
    if (st == GIN_OK)
        st = check_team(&o, a);
    if (st == GIN_OK)
        st = check_numbers(&o, a);
    if (st == GIN_OK)
        st = counted ? check_arrays(&o, a) : check_places(&o, a);
    if (st != GIN_OK)
        return st;
    o.job.team = a->team;
    o.job.peer = a->root;
    o.job.how = (uint32_t)a->op;
    o.job.dst = a->dst;
    o.job.src = a->src;
    o.job.bytes = a->count;
    o.job.id = a->index;
    o.job.call = (uint32_t)a->kind;
    o.job.type = (int32_t)a->type;
    o.job.dst_counts = a->dst_counts;
    o.job.dst_firsts = a->dst_firsts;
    o.job.src_counts = a->src_counts;
    o.job.src_firsts = a->src_firsts;
    return gi_stream_run(&o, !counted && a->count * sizes[a->type] <= FEW_BYTES ? WARP : BLOCK);
}

int gin_sync_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, uint32_t index,
                       gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_SYNC, .team = team, .index = index};
    return enqueue(dev, context, &a, stream);
}

int gin_broadcast_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                            uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                            gin_type_t type, int root, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_BROADCAST,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .root = root};
    return enqueue(dev, context, &a, stream);
}

int gin_allgather_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                            uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                            gin_type_t type, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_ALLGATHER,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type};
    return enqueue(dev, context, &a, stream);
}

int gin_gather_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                         uint32_t index, gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                         int root, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_GATHER,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .root = root};
    return enqueue(dev, context, &a, stream);
}

int gin_alltoall_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                           uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                           gin_type_t type, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_ALLTOALL,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type};
    return enqueue(dev, context, &a, stream);
}

int gin_alltoallv_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                            uint32_t index, gin_at_t dst, const size_t *dst_counts,
                            const size_t *dst_firsts, gin_at_t src, const size_t *src_counts,
                            const size_t *src_firsts, gin_type_t type, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_ALLTOALLV,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .type = type,
                            .dst_counts = dst_counts,
                            .dst_firsts = dst_firsts,
                            .src_counts = src_counts,
                            .src_firsts = src_firsts};
    return enqueue(dev, context, &a, stream);
}

int gin_allreduce_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                            uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                            gin_type_t type, gin_reduction_t op, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_ALLREDUCE,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .op = op};
    return enqueue(dev, context, &a, stream);
}

int gin_reduce_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                         uint32_t index, gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                         gin_reduction_t op, int root, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_REDUCE,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .op = op,
                            .root = root};
    return enqueue(dev, context, &a, stream);
}

int gin_reduce_scatter_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                 uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                 gin_type_t type, gin_reduction_t op, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_REDUCE_SCATTER,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .op = op};
    return enqueue(dev, context, &a, stream);
}

int gin_scan_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, uint32_t index,
                       gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                       gin_reduction_t op, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_SCAN,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .op = op};
    return enqueue(dev, context, &a, stream);
}

int gin_scan_exclusive_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                 uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                 gin_type_t type, gin_reduction_t op, gin_stream_t stream)
{
    const struct asked a = {.kind = GIN_I_COLL_SCAN_EXCLUSIVE,
                            .team = team,
                            .index = index,
                            .dst = dst,
                            .src = src,
                            .count = count,
                            .type = type,
                            .op = op};
    return enqueue(dev, context, &a, stream);
}
