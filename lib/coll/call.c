/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective call: its arguments as addresses, what ranks compare in checked mode, and by which
 * way it goes. Nothing is sent before a call is resolved, and in checked mode nothing but what
 * tells the others that one is not.
 */
#include <inttypes.h>
#include <string.h>

#include "coll/agree.h"
#include "coll/choose.h"
#include "ops.h"
#include "window_impl.h"

/* Arguments, as they come. */
struct asked {
    gin_group_t grp;
    gin_team_t team;
    gin_at_t dst, src;
};

static const char *const names[GI_COLL_KINDS] = {
    [GI_COLL_SYNC] = "gin_sync",
    [GI_COLL_BROADCAST] = "gin_broadcast",
    [GI_COLL_ALLGATHER] = "gin_allgather",
    [GI_COLL_GATHER] = "gin_gather",
    [GI_COLL_ALLTOALL] = "gin_alltoall",
    [GI_COLL_ALLTOALLV] = "gin_alltoallv",
    [GI_COLL_ALLREDUCE] = "gin_allreduce",
    [GI_COLL_REDUCE] = "gin_reduce",
    [GI_COLL_REDUCE_SCATTER] = "gin_reduce_scatter",
    [GI_COLL_SCAN] = "gin_scan",
    [GI_COLL_SCAN_EXCLUSIVE] = "gin_scan_exclusive",
};

const char *gi_coll_name(unsigned kind)
{
    return kind < GI_COLL_KINDS ? names[kind] : "?";
}

static bool folds(enum gi_coll_kind k)
{
    return k >= GI_COLL_ALLREDUCE;
}

static bool has_root(enum gi_coll_kind k)
{
    return k == GI_COLL_BROADCAST || k == GI_COLL_GATHER || k == GI_COLL_REDUCE;
}

/* ---- arguments ---- */

static int refuse_gpu(const struct gi_coll_call *o, const char *what)
{
    return gi_fail(GIN_ENOTSUP,
                   "%s: %s is GPU memory; collectives of host threads take host memory", o->name,
                   what);
}

static int place_local(const struct gi_coll_call *o, const char *what, uint64_t addr, size_t bytes)
{
    bool gpu;
    if (addr == 0)
        return gi_fail(GIN_EINVAL, "%s: %s is gin_at_local(NULL)", o->name, what);
    if (addr + (bytes - 1) < addr)
        return gi_fail(GIN_ERANGE, "%s: %s: %zu bytes at %#" PRIx64 " wrap around", o->name, what,
                       bytes, addr);
    if (gi_operand_is_gpu(o->all->d->comm, addr, bytes, &gpu) != GIN_OK)
        return gi_fail_context("%s: %s", o->name, what);
    return gpu ? refuse_gpu(o, what) : GIN_OK;
}

static int place(const struct gi_coll_call *o, const char *what, gin_at_t at, size_t bytes,
                 void **addr)
{
    const struct gin_i_window *w;
    *addr = NULL;
    if (bytes == 0)
        return GIN_OK;
    *addr = (void *)(uintptr_t)at.off;
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        return place_local(o, what, at.off, bytes);
    int st = gi_op_window_any(o->all->d->comm, o->name, what, at, bytes, 0, &w);
    if (st == GIN_OK)
        st = gi_op_live(o->g, o->name, w, at.off, bytes);
    if (st == GIN_OK && w->kind == GIN_KIND_CUDA)
        st = refuse_gpu(o, what);
    if (st == GIN_OK)
        *addr = (void *)(uintptr_t)(w->local + at.off);
    return st;
}

/* Elements up to the last one of a side of gin_alltoallv(). */
static int extent(const struct gi_coll_call *o, const char *what, const size_t *counts,
                  const size_t *firsts, size_t *elements)
{
    size_t end, sum = 0;
    *elements = 0;
    if (counts == NULL)
        return gi_fail(GIN_EINVAL, "%s: %s_counts is NULL", o->name, what);
    for (int r = 0; r < o->p->n; r++) {
        size_t first = firsts != NULL ? firsts[r] : sum;
        if (__builtin_add_overflow(first, counts[r], &end) || end > SIZE_MAX / 16)
            return gi_fail(GIN_ERANGE, "%s: %s: %zu elements from %zu on for rank %d", o->name,
                           what, counts[r], first, r);
        sum += counts[r];
        if (counts[r] != 0 && end > *elements)
            *elements = end;
    }
    return GIN_OK;
}

/* Elements of either side on this rank; 0: it is not looked at. */
static int extents(const struct gi_coll_call *o, size_t *dst, size_t *src)
{
    size_t n = (size_t)o->p->n, all;
    bool at_root = o->p->me == o->root;
    if (o->kind == GI_COLL_ALLTOALLV) {
        int st = extent(o, "dst", o->dst_counts, o->dst_firsts, dst);
        if (st == GIN_OK)
            st = extent(o, "src", o->src_counts, o->src_firsts, src);
        if (st == GIN_OK && o->dst_counts[o->p->me] != o->src_counts[o->p->me])
            st = gi_fail(GIN_EINVAL, "%s: %zu elements from myself, %zu to myself", o->name,
                         o->dst_counts[o->p->me], o->src_counts[o->p->me]);
        return st;
    }
    if (__builtin_mul_overflow(o->count, n, &all) || all > SIZE_MAX / 16)
        return gi_fail(GIN_ERANGE, "%s: %zu elements for each of %zu ranks", o->name, o->count, n);
    *dst = *src = o->count;
    switch (o->kind) {
    case GI_COLL_SYNC: *dst = *src = 0; break;
    case GI_COLL_BROADCAST: *src = at_root ? o->count : 0; break;
    case GI_COLL_ALLGATHER: *dst = all; break;
    case GI_COLL_GATHER: *dst = at_root ? all : 0; break;
    case GI_COLL_ALLTOALL: *dst = *src = all; break;
    case GI_COLL_REDUCE: *dst = at_root ? o->count : 0; break;
    case GI_COLL_REDUCE_SCATTER: *src = all; break;
    default: break;
    }
    return GIN_OK;
}

/* In place, or apart. */
static int judge_overlap(struct gi_coll_call *o, size_t dst, size_t src)
{
    o->in_place = dst != 0 && src != 0 && o->dst == o->src;
    if (dst == 0 || src == 0)
        return GIN_OK;
    if (!o->in_place)
        return o->dst + dst <= o->src || o->src + src <= o->dst
                   ? GIN_OK
                   : gi_fail(
                         GIN_EINVAL,
                         "%s: dst, %zu bytes at %p, and src, %zu bytes at %p, overlap; in place "
                         "they are the same",
                         o->name, dst, (const void *)o->dst, src, (const void *)o->src);
    for (int r = 0; o->kind == GI_COLL_ALLTOALLV && r < o->p->n; r++)
        if (o->dst_counts[r] != o->src_counts[r] ||
            (o->dst_firsts == NULL) != (o->src_firsts == NULL) ||
            (o->dst_firsts != NULL && o->dst_firsts[r] != o->src_firsts[r]))
            return gi_fail(
                GIN_EINVAL,
                "%s: in place, and what goes to rank %d and comes from it differ in count "
                "or place",
                o->name, r);
    return GIN_OK;
}

static int resolve(struct gi_coll_call *o, const struct asked *a)
{
    size_t dst, src;
    void *to, *from;
    if (GIN_UNLIKELY(a->grp.kind != GIN_GROUP_THREAD))
        return gi_op_enter(o->g, a->grp, 1, o->name);
    o->size = gi_coll_size(o->type);
    if (o->size == 0 || (folds(o->kind) && (unsigned)o->op > GIN_XOR))
        return gi_fail(GIN_EINVAL, "%s: type %d or operation %d is none", o->name, (int)o->type,
                       (int)o->op);
    if (folds(o->kind) && (o->fold = gi_coll_fold(o->type, o->op)) == NULL)
        return gi_fail(GIN_ENOTSUP,
                       "%s: operation %d on type %d: real numbers have sum, product, minimum and "
                       "maximum, complex ones sum and product",
                       o->name, (int)o->op, (int)o->type);
    if (has_root(o->kind) && (o->root < 0 || o->root >= o->p->n))
        return gi_fail(GIN_ERANGE, "%s: root %d of a team of %d ranks", o->name, o->root, o->p->n);
    int st = extents(o, &dst, &src);
    if (st == GIN_OK)
        st = place(o, "dst", a->dst, dst * o->size, &to);
    if (st == GIN_OK)
        st = place(o, "src", a->src, src * o->size, &from);
    if (st != GIN_OK)
        return st;
    o->dst = to;
    o->src = from;
    return judge_overlap(o, dst * o->size, src * o->size);
}

/* ---- going ---- */

static void count_one(uint64_t *n)
{
    GIN_STORE_RELAXED(n, *n + 1); /* by whoever is inside alone */
}

/* A call has failed between its members, who are out of step: none of the index's can go on. */
static int lose(struct gi_coll_call *o, int status)
{
    o->c->broken = status;
    gi_coll_give_up(o, status);
    return status;
}

static int (*const runs[GI_COLL_WAYS])(struct gi_coll_call *o) = {
    [GI_COLL_FLAT] = gi_coll_run_flat,
    [GI_COLL_TREE] = gi_coll_run_tree,
    [GI_COLL_CHAIN] = gi_coll_run_chain,
    [GI_COLL_HOSTS] = gi_coll_run_two,
};

static int go(struct gi_coll_call *o, const struct asked *a)
{
    struct gi_coll *c = o->c;
    enum gi_coll_way way;
    int refused = resolve(o, a), st = GIN_OK;
    if (GIN_UNLIKELY((o->g->dc->flags & GIN_I_DC_CHECK) != 0))
        st = gi_coll_agree(o, &refused);
    if (GIN_UNLIKELY(st != GIN_OK))
        return lose(o, st);
    if (GIN_UNLIKELY(refused != GIN_OK))
        return refused;
    if (o->count == 0 && o->kind != GI_COLL_ALLTOALLV)
        o->kind = GI_COLL_SYNC;
    st = gi_coll_choose(o, &way);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    count_one(&c->calls);
    count_one(&c->by[way]);
    st = runs[way](o);
    return GIN_LIKELY(st == GIN_OK) ? st : lose(o, st);
}

static int refuse_index(const struct gi_coll_call *o)
{
    return gi_fail(GIN_ERANGE,
                   "%s: index %" PRIu32 " is out of range, there are %" PRIu32
                   "; ask gin_devcomm_create() for more (collectives)",
                   o->name, o->index, o->all->count);
}

/* Others may be members with me of the team that they passed. Which they are I do not know, so that
 * in checked mode all hear of it, and it is the index's end. What is not reached all members know.
 */
static int refuse_team(struct gi_coll_call *o)
{
    int st = gin_last_status();
    if ((o->g->dc->flags & GIN_I_DC_CHECK) != 0 && st != GIN_ENOTSUP) {
        o->c->broken = GIN_EMISMATCH;
        gi_coll_give_up(o, GIN_EMISMATCH);
    }
    return st;
}

static int call(struct gi_coll_call *o, const struct asked *a)
{
    o->name = names[o->kind];
    int st = gi_op_enter(o->g, gin_thread(), 1, o->name);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    o->all = gi_devcomm_of(o->g)->colls;
    if (GIN_UNLIKELY(o->index >= o->all->count))
        return refuse_index(o);
    o->c = &o->all->index[o->index];
    if (GIN_UNLIKELY(__atomic_exchange_n(&o->c->busy, 1, __ATOMIC_ACQUIRE) != 0))
        return gi_fail(GIN_ESTATE,
                       "%s: another thread is in collective %" PRIu32
                       "; give each thread an index of its own",
                       o->name, o->index);
    if (GIN_UNLIKELY(o->c->broken != GIN_OK))
        st = gi_fail(o->c->broken,
                     "%s: collective %" PRIu32 " cannot be used any more: an earlier call failed "
                     "between its members",
                     o->name, o->index);
    else if ((o->p = gi_coll_plan(o->all, o->c, a->team, o->name)) == NULL)
        st = refuse_team(o);
    else
        st = go(o, a);
    __atomic_store_n(&o->c->busy, 0, __ATOMIC_RELEASE);
    return st;
}

/* ---- the calls ---- */

int gin_sync(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index)
{
    const struct asked a = {.grp = grp, .team = team};
    struct gi_coll_call o = {.g = g, .kind = GI_COLL_SYNC, .index = index};
    return call(&o, &a);
}

int gin_broadcast(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                  gin_at_t src, size_t count, gin_type_t type, int root)
{
    const struct asked a = {grp, team, dst, src};
    struct gi_coll_call o = {.g = g,
                             .kind = GI_COLL_BROADCAST,
                             .index = index,
                             .count = count,
                             .type = type,
                             .root = root};
    return call(&o, &a);
}

int gin_allgather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                  gin_at_t src, size_t count, gin_type_t type)
{
    const struct asked a = {grp, team, dst, src};
    struct gi_coll_call o = {
        .g = g, .kind = GI_COLL_ALLGATHER, .index = index, .count = count, .type = type};
    return call(&o, &a);
}

int gin_gather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
               gin_at_t src, size_t count, gin_type_t type, int root)
{
    const struct asked a = {grp, team, dst, src};
    struct gi_coll_call o = {
        .g = g, .kind = GI_COLL_GATHER, .index = index, .count = count, .type = type, .root = root};
    return call(&o, &a);
}

int gin_alltoall(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                 gin_at_t src, size_t count, gin_type_t type)
{
    const struct asked a = {grp, team, dst, src};
    struct gi_coll_call o = {
        .g = g, .kind = GI_COLL_ALLTOALL, .index = index, .count = count, .type = type};
    return call(&o, &a);
}

int gin_alltoallv(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                  const size_t *dst_counts, const size_t *dst_firsts, gin_at_t src,
                  const size_t *src_counts, const size_t *src_firsts, gin_type_t type)
{
    const struct asked a = {grp, team, dst, src};
    struct gi_coll_call o = {.g = g,
                             .kind = GI_COLL_ALLTOALLV,
                             .index = index,
                             .type = type,
                             .dst_counts = dst_counts,
                             .dst_firsts = dst_firsts,
                             .src_counts = src_counts,
                             .src_firsts = src_firsts};
    return call(&o, &a);
}

static int reduction(const gin_t *g, const struct asked *a, enum gi_coll_kind kind, uint32_t index,
                     size_t count, gin_type_t type, gin_reduction_t op, int root)
{
    struct gi_coll_call o = {
        .g = g, .kind = kind, .index = index, .count = count, .type = type, .op = op, .root = root};
    return call(&o, a);
}

int gin_allreduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                  gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op)
{
    const struct asked a = {grp, team, dst, src};
    return reduction(g, &a, GI_COLL_ALLREDUCE, index, count, type, op, 0);
}

int gin_reduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
               gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op, int root)
{
    const struct asked a = {grp, team, dst, src};
    return reduction(g, &a, GI_COLL_REDUCE, index, count, type, op, root);
}

int gin_reduce_scatter(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                       gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                       gin_reduction_t op)
{
    const struct asked a = {grp, team, dst, src};
    return reduction(g, &a, GI_COLL_REDUCE_SCATTER, index, count, type, op, 0);
}

int gin_scan(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
             gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op)
{
    const struct asked a = {grp, team, dst, src};
    return reduction(g, &a, GI_COLL_SCAN, index, count, type, op, 0);
}

int gin_scan_exclusive(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                       gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                       gin_reduction_t op)
{
    const struct asked a = {grp, team, dst, src};
    return reduction(g, &a, GI_COLL_SCAN_EXCLUSIVE, index, count, type, op, 0);
}
