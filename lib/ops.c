/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole of put, get and signal: every check with its text, every path. Inlined code comes here
 * when its short cut does not hold; checked mode comes here always. An operation is first resolved
 * completely (peer, both places, action, counter), then done: a refused one has done nothing.
 */
#include <inttypes.h>

#include "net_ops.h"
#include "ops.h"

/* An operation on the way from arguments to addresses. */
struct op {
    const gin_t *g;
    gin_comm_t *comm;
    const char *call;
    int world;       /* peer */
    gin_path_t path; /* to the data */
    pid_t pid;       /* of a CMA path */
    void *remote;    /* this process's address, or that in process pid */
    void *local;
    uint64_t bytes;
    uint64_t *word; /* of the action; NULL: none, or by the network */
    gin_action_t action;
    bool net_action; /* the action takes the network */
    bool nic_only, more;
    uint64_t *counter;
    gin_at_t at; /* the peer's place */
    /* in GPU memory instead; w NULL: they are not */
    struct gi_gpu_spot gpu_remote, gpu_local, gpu_word;
};

static int op_peer(struct op *o, gin_team_t team, int peer)
{
    o->comm = gi_comm_of(o->g);
    o->world = gi_team_world(o->comm, team, peer);
    return o->world >= 0 ? GIN_OK : gi_fail_context("%s", o->call);
}

static int bad_id(const struct op *o, const char *what, uint32_t id, uint32_t limit)
{
    gin_i_bad_id(o->g, what, id, limit);
    return gi_fail_context("%s", o->call);
}

static int op_opt(struct op *o, const gin_op_opt_t *opt)
{
    if (opt == NULL)
        return GIN_OK;
    if (gin_i_opt_is_odd(opt))
        return gi_fail(GIN_EINVAL,
                       "%s: options without meaning: local action of kind %" PRIu32
                       ", flags 0x%" PRIx32 ", given_release %u, required_release %u, reserved %u; "
                       "zero the struct first",
                       o->call, opt->local.kind, opt->flags, opt->given_release,
                       opt->required_release, opt->reserved);
    o->nic_only = (opt->flags & GIN_NIC_ONLY) != 0;
    o->more = (opt->flags & GIN_MORE) != 0;
    if (o->nic_only && o->comm->net == NULL)
        return gi_fail(GIN_ENOTSUP, "%s: GIN_NIC_ONLY: there is no network: %s", o->call,
                       gi_net_why(o->comm));
    if (opt->local.kind == 0)
        return GIN_OK;
    if (opt->local.id >= o->g->ctx->n_counters)
        return bad_id(o, "counter", opt->local.id, o->g->ctx->n_counters);
    o->counter = &o->g->ctx->counters[opt->local.id].cell;
    return GIN_OK;
}

/* A place whose window is none: which mistake it was. */
static int refuse_window(const char *call, const char *place, gin_at_t at)
{
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        return gi_fail(
            GIN_EINVAL,
            "%s: %s is gin_at_local(), which is this rank's own memory and no place at a "
            "peer; name heap or window memory by gin_at_ptr() or gin_at()",
            call, place);
    if (at.win.w == 0)
        return gi_fail(GIN_ESTATE,
                       "%s: %s lies in no window: gin_at_ptr() of an address outside the heap and "
                       "all windows (gin_malloc() or gin_window_register() it), or gin_scratch() "
                       "without scratch",
                       call, place);
    return gi_fail(GIN_ESTATE,
                   "%s: %s: window %#" PRIx64 " is none of this communicator (deregistered?)", call,
                   place, at.win.w);
}

int gi_op_window_any(gin_comm_t *comm, const char *call, const char *place, gin_at_t at,
                     uint64_t bytes, int update, const struct gin_i_window **win)
{
    const struct gin_i_window *w = gi_window_find(comm, at.win);
    if (w == NULL)
        return refuse_window(call, place, at);
    uint64_t size = gi_window_size(comm, w);
    if (at.off > size || bytes > size - at.off)
        return gi_fail(GIN_ERANGE,
                       "%s: %s: %" PRIu64 " bytes at offset %" PRIu64
                       " are outside window %#" PRIx64 " of %" PRIu64 " bytes",
                       call, place, bytes, at.off, at.win.w, size);
    if (update && (w->flags & GIN_WIN_READ_ONLY))
        return gi_fail(GIN_ENOTSUP,
                       "%s: %s: window %#" PRIx64 " is read-only for peers (GIN_WIN_READ_ONLY)",
                       call, place, at.win.w);
    *win = w;
    return GIN_OK;
}

int gi_op_live(const gin_t *g, const char *call, const struct gin_i_window *w, uint64_t off,
               uint64_t bytes)
{
    if (!(g->dc->flags & GIN_I_DC_CHECK) || bytes == 0 || w->kind != GIN_KIND_HOST)
        return GIN_OK;
    uint64_t at = w->local + off - g->dc->heap->local; /* sub-windows of the heap too */
    if (at >= GIN_LOAD_RELAXED(&g->dc->heap->size) || gi_memory_live(gi_comm_of(g), at, bytes))
        return GIN_OK;
    return gi_fail(GIN_ERANGE,
                   "%s: %" PRIu64 " bytes at offset %" PRIu64
                   " of the heap are not inside one live block (freed, or beyond its end?)",
                   call, bytes, at);
}

/* The path to a window: near ones may be left out by the requirements, or by this operation. */
static gin_path_t op_path(struct op *o, const struct gin_i_window *w, uint64_t off, void **addr)
{
    gin_path_t path = gi_window_reach(o->comm, w, o->world, off, addr, &o->pid);
    uint32_t paths = gi_devcomm_of(o->g)->reqs.paths;
    bool leave = o->nic_only || (path == GIN_PATH_LSA && o->g->lsa_of[o->world] < 0) ||
                 (path == GIN_PATH_CMA && (paths & (GIN_PATH_CMA | GIN_PATH_NET)) == GIN_PATH_NET);
    return leave && path != GIN_PATH_NONE ? gi_window_reach_net(o->comm, w, o->world) : path;
}

static int op_remote(struct op *o, gin_at_t at, int update)
{
    const struct gin_i_window *w;
    int st = gi_op_window_any(o->comm, o->call, update ? "dst" : "src", at, o->bytes,
                              update && o->world != o->comm->rank, &w);
    if (st == GIN_OK)
        st = gi_op_live(o->g, o->call, w, at.off, o->bytes);
    if (st != GIN_OK)
        return st;
    if (w->kind == GIN_KIND_CUDA) {
        st = gi_op_gpu_find(o->g, w, o->world, at.off, o->nic_only, &o->gpu_remote);
        if (st != GIN_OK || !o->gpu_remote.net)
            return st == GIN_OK ? st : gi_fail_context("%s", o->call);
        o->at = at;
        o->path = GIN_PATH_NET;
        return gi_net_allowed(gi_devcomm_of(o->g), o->world, o->call);
    }
    o->at = at;
    o->path = op_path(o, w, at.off, &o->remote);
    if (o->path == GIN_PATH_NONE)
        return gi_fail_context("%s", o->call);
    if (o->path == GIN_PATH_NET)
        return gi_net_allowed(gi_devcomm_of(o->g), o->world, o->call);
    uint32_t paths = gi_devcomm_of(o->g)->reqs.paths;
    if (o->path == GIN_PATH_CMA && paths != 0 && !(paths & GIN_PATH_CMA))
        return gi_fail(GIN_ENOTSUP,
                       "%s: rank %d's part of window %#" PRIx64 " is reached by process_vm calls, "
                       "which reqs.paths 0x%x leave out (GIN_PATH_CMA)",
                       o->call, o->world, at.win.w, paths);
    return GIN_OK;
}

static int op_local(struct op *o, const char *place, gin_at_t at)
{
    if (at.win.w == GIN_I_WINDOW_LOCAL) {
        if (at.off == 0 && o->bytes != 0)
            return gi_fail(GIN_EINVAL, "%s: %s is gin_at_local(NULL) with %" PRIu64 " bytes",
                           o->call, place, o->bytes);
        o->local = (void *)(uintptr_t)at.off;
        return GIN_OK;
    }
    const struct gin_i_window *w;
    int st = gi_op_window_any(o->comm, o->call, place, at, o->bytes, 0, &w);
    if (st == GIN_OK)
        st = gi_op_live(o->g, o->call, w, at.off, o->bytes);
    if (st == GIN_OK && w->kind == GIN_KIND_CUDA)
        st = gi_op_gpu_find(o->g, w, o->comm->rank, at.off, false, &o->gpu_local);
    if (st == GIN_OK)
        o->local = (void *)(uintptr_t)(w->local + at.off);
    return st;
}

/* ---- actions ---- */

static int action_slot(struct op *o, const gin_action_t *a)
{
    if (a->id >= o->g->ctx->n_signals)
        return bad_id(o, "signal", a->id, o->g->ctx->n_signals);
    int lsa = o->g->lsa_of[o->world];
    o->net_action = o->nic_only || lsa < 0;
    if (o->net_action)
        return gi_net_allowed(gi_devcomm_of(o->g), o->world, o->call);
    o->word = gin_i_cell(o->g, lsa, a->id);
    return GIN_OK;
}

static int action_word(struct op *o, const gin_action_t *a)
{
    const struct gin_i_window *w;
    void *addr;
    bool aligned;
    if (!(o->g->dc->flags & GIN_I_DC_VA))
        return gi_fail(GIN_ENOTSUP, "%s: signals on window words were not asked for (reqs.va = 0)",
                       o->call);
    int st = gi_op_window_any(o->comm, o->call, "the signal's word", a->at, 8,
                              o->world != o->comm->rank, &w);
    if (st == GIN_OK)
        st = gi_op_live(o->g, o->call, w, a->at.off, 8);
    if (st != GIN_OK)
        return st;
    if (w->kind == GIN_KIND_CUDA) {
        st = gi_op_gpu_word_find(o->g, w, o->world, a->at.off, 8,
                                 a->kind == GIN_ACTION_SET_AT ? GIN_I_AMO_SET : GIN_I_AMO_ADD,
                                 o->nic_only, &o->gpu_word);
        if (st != GIN_OK || !o->gpu_word.net)
            return st == GIN_OK ? st : gi_fail_context("%s", o->call);
        o->net_action = true;
        o->gpu_word.w = NULL;
        return gi_net_allowed(gi_devcomm_of(o->g), o->world, o->call);
    }
    if (((w->local + a->at.off) & 7) != 0)
        return gi_fail(GIN_EINVAL,
                       "%s: the signal word at offset %" PRIu64 " is not 8-byte aligned", o->call,
                       a->at.off);
    gin_path_t path = op_path(o, w, a->at.off, &addr);
    if (path == GIN_PATH_CMA && o->comm->net != NULL)
        path = gi_window_reach_net(o->comm, w, o->world);
    switch (path) {
    case GIN_PATH_SELF:
    case GIN_PATH_LSA:
        o->word = addr;
        aligned = ((uintptr_t)addr & 7) == 0;
        break;
    case GIN_PATH_NET:
        o->net_action = true;
        aligned = gi_window_aligned_at(o->comm, w, o->world, a->at.off, 8);
        break;
    case GIN_PATH_CMA:
        return gi_fail(GIN_ENOTSUP,
                       "%s: a signal on a word of rank %d's user memory needs load/store access or "
                       "a network (process_vm calls only copy); use a slot signal or a word of the "
                       "heap",
                       o->call, o->world);
    default: return gi_fail_context("%s", o->call);
    }
    if (!aligned)
        return gi_fail(GIN_EINVAL, "%s: rank %d's signal word is not 8-byte aligned", o->call,
                       o->world);
    return o->net_action ? gi_net_allowed(gi_devcomm_of(o->g), o->world, o->call) : GIN_OK;
}

static int op_action(struct op *o, const gin_action_t *a)
{
    o->action = *a;
    if (a->kind == GIN_ACTION_NONE)
        return GIN_OK;
    if (a->kind > GIN_ACTION_SET_AT)
        return gi_fail(GIN_EINVAL, "%s: remote action of kind %u", o->call, a->kind);
    if (a->strong && !(o->g->dc->flags & GIN_I_DC_STRONG))
        return gi_fail(GIN_ENOTSUP, "%s: strong signals were not asked for (reqs.strong = 0)",
                       o->call);
    return a->kind == GIN_ACTION_ADD ? action_slot(o, a) : action_word(o, a);
}

/* ---- doing ---- */

static int op_move_gpu(struct op *o, int put)
{
    struct gi_gpu_spot *far = o->gpu_remote.w != NULL ? &o->gpu_remote : NULL;
    struct gi_gpu_spot *near = o->gpu_local.w != NULL ? &o->gpu_local : NULL;
    if (far == NULL && o->path == GIN_PATH_CMA)
        return gi_fail(GIN_ENOTSUP,
                       "%s: rank %d's part is user memory of another process, which is not copied "
                       "to or from a GPU",
                       o->call, o->world);
    int st = gi_op_gpu_move(o->comm, far, o->remote, near, o->local, o->bytes, put);
    return st == GIN_OK ? st : gi_fail_context("%s", o->call);
}

/* The action as the network's core takes it. */
static struct gi_core_action net_action(const struct op *o)
{
    const gin_action_t *a = &o->action;
    struct gi_core_action c = {.strong = a->strong != 0, .value = a->value};
    switch (a->kind) {
    case GIN_ACTION_NONE: break;
    case GIN_ACTION_ADD:
        c.kind = GI_CORE_SLOT_ADD;
        c.id = a->id;
        break;
    default:
        c.kind = a->kind == GIN_ACTION_ADD_AT ? GI_CORE_WORD_ADD : GI_CORE_WORD_SET;
        c.id = gin_i_desc_window(a->at.win);
        c.off = a->at.off;
    }
    return c;
}

/* Of my memory, where it is a GPU's; else net_ops.c finds it. *st: why not. */
static struct gi_core_region *my_gpu(const struct op *o, int *st)
{
    struct gi_core_region *r = NULL;
    *st =
        o->gpu_local.w != NULL ? gi_net_mine(o->comm, true, o->local, o->bytes, NULL, &r) : GIN_OK;
    if (*st != GIN_OK)
        gi_fail_context("%s", o->call);
    return r;
}

/* Data, action and counter by the network: the signal follows the bytes, whatever its own path. */
static int op_put_net(struct op *o)
{
    int st;
    struct gi_core_region *gpu = my_gpu(o, &st);
    if (st == GIN_OK && o->gpu_word.w != NULL)
        st = gi_fail(GIN_ENOTSUP,
                     "%s: the bytes go by the network, and the signal's word, in GPU memory of "
                     "rank %d, does not",
                     o->call, o->world);
    if (st != GIN_OK)
        return st;
    struct gi_core_put p = {
        .region = gpu,
        .window = gin_i_desc_window(o->at.win),
        .off = o->at.off,
        .src = o->local,
        .bytes = o->bytes,
        .more = o->more,
        .action = net_action(o),
        .counter = o->counter,
    };
    return gi_net_put(o->g, o->world, &p, o->call);
}

static int op_get_net(struct op *o)
{
    int st;
    struct gi_core_region *gpu = my_gpu(o, &st);
    if (st != GIN_OK)
        return st;
    struct gi_core_get p = {
        .region = gpu,
        .window = gin_i_desc_window(o->at.win),
        .off = o->at.off,
        .dst = o->local,
        .bytes = o->bytes,
        .counter = o->counter,
    };
    return gi_net_get(o->g, o->world, &p, o->call);
}

/* The action alone by the network; the bytes are there. */
static int op_signal_net(struct op *o)
{
    struct gi_core_put p = {.action = net_action(o), .counter = o->counter};
    return gi_net_put(o->g, o->world, &p, o->call);
}

static int op_move(struct op *o, int put)
{
    if (o->bytes == 0)
        return GIN_OK;
    if (o->gpu_remote.w != NULL || o->gpu_local.w != NULL)
        return op_move_gpu(o, put);
    if (o->path != GIN_PATH_CMA) {
        if (put)
            gin_i_copy(o->remote, o->local, o->bytes);
        else
            gin_i_copy(o->local, o->remote, o->bytes);
        return GIN_OK;
    }
    /* a dead rank's pid may be somebody else's by now */
    if (gi_shm_has_exited(o->comm->shm, o->world))
        return gi_fail(GIN_EPEER, "%s: rank %d: its process %ld has exited", o->call, o->world,
                       (long)o->pid);
    atomic_fetch_add_explicit(&o->comm->n_cma, 1, memory_order_relaxed);
    int st = put ? gi_cma_write(o->pid, o->remote, o->local, o->bytes)
                 : gi_cma_read(o->pid, o->local, o->remote, o->bytes);
    return st == GIN_OK ? st : gi_fail_context("%s: rank %d", o->call, o->world);
}

static int op_done(struct op *o)
{
    uint64_t was;
    int st = GIN_OK;
    if (o->net_action)
        return op_signal_net(o);
    if (o->action.strong && (o->word != NULL || o->gpu_word.w != NULL))
        st = gi_net_settle_near(o->g, o->world, o->call);
    if (st != GIN_OK)
        return st;
    if (o->word != NULL)
        gin_i_raise(o->word, &o->action);
    else if (o->gpu_word.w != NULL)
        st = gi_op_gpu_word(o->comm, &o->gpu_word,
                            o->action.kind == GIN_ACTION_SET_AT ? GIN_I_AMO_SET : GIN_I_AMO_ADD, 8,
                            o->action.value, 0, &was);
    if (st != GIN_OK)
        return gi_fail_context("%s", o->call);
    if (o->counter != NULL)
        GIN_ADD_RELEASE(o->counter, 1);
    return GIN_OK;
}

int gin_i_put(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
              gin_at_t src, size_t bytes, const gin_action_t *remote, const gin_op_opt_t *opt)
{
    struct op o = {.g = g, .call = opt != NULL ? "gin_put_x" : "gin_put", .bytes = bytes};
    int st = gi_op_enter(g, grp, 0, o.call);
    if (st == GIN_OK)
        st = op_peer(&o, team, peer);
    if (st == GIN_OK)
        st = op_opt(&o, opt);
    if (st == GIN_OK)
        st = op_action(&o, remote);
    if (st == GIN_OK)
        st = op_local(&o, "src", src);
    if (st == GIN_OK)
        st = op_remote(&o, dst, 1);
    if (st == GIN_OK && o.path == GIN_PATH_NET && bytes != 0)
        return op_put_net(&o);
    if (st == GIN_OK)
        st = op_move(&o, 1);
    return st == GIN_OK ? op_done(&o) : st;
}

int gin_i_put_value_failed(int st, int x)
{
    const char *call = x ? "gin_put_value_x" : "gin_put_value";
    gi_fail_instead("gin_put", call);
    gi_fail_instead("gin_put_x", call);
    return st;
}

int gin_i_get(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
              gin_at_t dst, size_t bytes, const gin_op_opt_t *opt)
{
    struct op o = {.g = g, .call = opt != NULL ? "gin_get_x" : "gin_get", .bytes = bytes};
    int st = gi_op_enter(g, grp, 0, o.call);
    if (st == GIN_OK)
        st = op_peer(&o, team, peer);
    if (st == GIN_OK)
        st = op_opt(&o, opt);
    if (st == GIN_OK)
        st = op_local(&o, "dst", dst);
    if (st == GIN_OK)
        st = op_remote(&o, src, 0);
    if (st == GIN_OK && o.path == GIN_PATH_NET && bytes != 0)
        return op_get_net(&o);
    if (st == GIN_OK)
        st = op_move(&o, 0);
    return st == GIN_OK ? op_done(&o) : st;
}

int gin_i_signal(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                 const gin_action_t *remote, const gin_op_opt_t *opt)
{
    struct op o = {.g = g, .call = "gin_signal"};
    int st = gi_op_enter(g, grp, 0, o.call);
    if (st == GIN_OK && remote->kind == GIN_ACTION_NONE)
        st = gi_fail(GIN_EINVAL, "gin_signal: gin_no_action() signals nothing");
    if (st == GIN_OK)
        st = op_peer(&o, team, peer);
    if (st == GIN_OK)
        st = op_opt(&o, opt);
    if (st == GIN_OK)
        st = op_action(&o, remote);
    return st == GIN_OK ? op_done(&o) : st;
}

/* ---- completion: load, store and process_vm calls are done when their call returns ---- */

int gin_i_complete(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                   enum gin_i_flush_what what, const gin_wait_opt_t *opt)
{
    static const char *const calls[] = {"gin_flush", "gin_fence", "gin_quiet"};
    struct op o = {.g = g, .call = calls[what]};
    int st = gi_op_enter(g, grp, 1, o.call);
    if (st == GIN_OK && peer != -1)
        st = op_peer(&o, team, peer);
    else if (st == GIN_OK && team.size > 0)
        st = gi_fail(GIN_ERANGE, "%s: peer -1 of a team of %d", o.call, team.size);
    if (st != GIN_OK)
        return st;
    GIN_FENCE_SEQ_CST();
    st = gi_net_complete(g, peer != -1 ? o.world : -1, what, opt, o.call);
    return st == GIN_OK && what == GIN_I_FENCE
               ? gi_net_settle_near(g, peer != -1 ? o.world : -1, o.call)
               : st;
}

#define REQUEST_MAGIC 0x47494e52u /* "GINR" */

int gin_i_request(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_request_t *req)
{
    struct op o = {.g = g, .call = "gin_flush_async"};
    int st = gi_op_enter(g, grp, 0, o.call);
    if (st == GIN_OK && req == NULL)
        st = gi_fail(GIN_EINVAL, "gin_flush_async: req is NULL");
    if (st == GIN_OK)
        st = op_peer(&o, team, peer);
    if (st != GIN_OK)
        return st;
    req->opaque[0] = (uint64_t)REQUEST_MAGIC << 32 | (uint32_t)o.world;
    req->opaque[1] = gi_net_mark(g, o.world);
    return GIN_OK;
}

int gin_i_wait_request(const gin_t *g, gin_group_t grp, const gin_request_t *req,
                       const gin_wait_opt_t *opt)
{
    int st = gi_op_enter(g, grp, 0, "gin_wait");
    if (st != GIN_OK)
        return st;
    if (req == NULL || req->opaque[0] >> 32 != REQUEST_MAGIC)
        return gi_fail(GIN_EINVAL, "gin_wait: not a request of gin_flush_async()");
    GIN_FENCE_ACQUIRE();
    return gi_net_wait_mark(g, (int)(uint32_t)req->opaque[0], req->opaque[1], opt, "gin_wait");
}
