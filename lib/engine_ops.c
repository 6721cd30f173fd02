/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors: what they name, and doing it. Memory of GPUs is moved by the copy engine, on streams
 * of the engine's own; host memory by this thread. The action follows when the copy has arrived, a
 * strong one when everything in front of it has, too. A descriptor that cannot be done kills its
 * context with the reason, and counts as complete, so that its waiters look at the error.
 */
#include "engine_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "ops.h"
#include "window_impl.h"

#define TAKE_AT_ONCE 64 /* descriptors of a ring before the next one has its turn */
#define POLL_AT_ONCE 32 /* copies of a ring */

#define ACTIONS (GIN_I_DESC_SLOT | GIN_I_DESC_ADD_AT | GIN_I_DESC_SET_AT)

/* Memory: this process's address of it, or, with a pid, another one's. */
struct spot {
    uint64_t addr;
    bool gpu; /* or perhaps: the driver has to look */
    pid_t pid;
};

/* ---- names ---- */

const struct gin_i_window *gi_engine_window(const gin_comm_t *comm, uint32_t name)
{
    uint32_t id = name & (GI_WINDOW_IDS - 1);
    const struct gin_i_window *w = gi_window_at(&comm->windows->table, id);
    uint64_t handle = GIN_LOAD_ACQUIRE(&w->handle);
    bool live = handle != 0 && ((uint32_t)(handle >> 32) & 0xfff) == name >> 20;
    if (!live)
        gi_fail(GIN_ESTATE, "window %" PRIu32 " is not live in this communicator", id);
    return live ? w : NULL;
}

int gi_engine_inside(gin_comm_t *comm, const struct gin_i_window *w, uint64_t off, uint64_t bytes,
                     bool update)
{
    uint64_t size = gi_window_size(comm, w);
    if (off > size || bytes > size - off)
        return gi_fail(GIN_ERANGE,
                       "[%" PRIu64 ", +%" PRIu64 ") is outside a window of %" PRIu64 " bytes", off,
                       bytes, size);
    return update && (w->flags & GIN_WIN_READ_ONLY)
               ? gi_fail(GIN_ENOTSUP, "the window is read-only for peers")
               : GIN_OK;
}

/* [off, off + bytes) of a window at a rank, with the window. */
static int look_up(const struct gi_job *j, uint32_t name, int world, uint64_t off, uint64_t bytes,
                   bool update, const struct gin_i_window **w)
{
    gin_comm_t *comm = j->e->comm;
    *w = gi_engine_window(comm, name);
    return *w == NULL ? GIN_ESTATE
                      : gi_engine_inside(comm, *w, off, bytes, update && world != comm->rank);
}

/* This process's way to it. */
static int find_spot(const struct gi_job *j, const struct gin_i_window *w, int world, uint64_t off,
                     struct spot *s)
{
    void *addr;
    s->pid = 0;
    s->gpu = w->kind == GIN_KIND_CUDA;
    switch (gi_window_reach(j->e->comm, w, world, off, &addr, &s->pid)) {
    case GIN_PATH_SELF:
    case GIN_PATH_LSA: s->pid = 0; break;
    case GIN_PATH_CMA: break;
    case GIN_PATH_NET:
        return gi_fail(GIN_ENOTSUP, "kernels' operations do not reach rank %d by the network yet",
                       world);
    default: return gin_last_status();
    }
    s->addr = (uint64_t)(uintptr_t)addr;
    return GIN_OK;
}

static int find_bytes(const struct gi_job *j, uint32_t name, int world, uint64_t off, bool update,
                      struct spot *s)
{
    const struct gin_i_window *w;
    int st = look_up(j, name, world, off, j->op->size, update, &w);
    return st == GIN_OK ? find_spot(j, w, world, off, s) : st;
}

static int find_mine(const struct gi_job *j, uint32_t name, uint64_t off, struct spot *s)
{
    if (!(j->op->flags & GIN_I_DESC_LOCAL))
        return find_bytes(j, name, j->e->comm->rank, off, false, s);
    *s = (struct spot){.addr = off, .gpu = true};
    return GIN_OK;
}

static int find_slot(const struct gi_job *j, uint64_t **word)
{
    const struct gin_i_op *o = j->op;
    gin_comm_t *comm = j->e->comm;
    int lsa = comm->shm->lsa_of[o->peer];
    if (lsa < 0 || o->sig_off >= j->r->n_signals)
        return gi_fail(lsa < 0 ? GIN_ENOTSUP : GIN_ERANGE,
                       "signal %" PRIu64 " of rank %" PRIu32 " cannot be raised", o->sig_off,
                       o->peer);
    struct gin_i_cells *cells = (void *)((char *)gi_control(comm, lsa) + GI_CONTROL + j->d->off);
    *word = &cells[(uint64_t)j->r->context * j->r->n_signals + o->sig_off].cpu;
    return GIN_OK;
}

/* The word of an action. */
static int find_word(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    const struct gin_i_window *w;
    struct spot s;
    if (o->flags & GIN_I_DESC_SLOT)
        return find_slot(j, &q->word);
    if (!(o->flags & ACTIONS))
        return GIN_OK;
    int st = look_up(j, o->sig_win, (int)o->peer, o->sig_off, 8, true, &w);
    if (st == GIN_OK && w->kind == GIN_KIND_CUDA)
        return gi_word_find(j, q, w, o->sig_off, 8,
                            o->flags & GIN_I_DESC_SET_AT ? GIN_I_AMO_SET : GIN_I_AMO_ADD);
    if (st == GIN_OK)
        st = find_spot(j, w, (int)o->peer, o->sig_off, &s);
    if (st != GIN_OK)
        return st;
    if ((s.addr & 7) != 0)
        return gi_fail(GIN_EINVAL, "the signal word is not 8-byte aligned");
    if (s.pid != 0)
        return gi_fail(GIN_ENOTSUP, "the engine cannot add to a word of another process' user "
                                    "memory");
    q->word = (uint64_t *)(uintptr_t)s.addr;
    return GIN_OK;
}

/* ---- requests ---- */

int gi_requests_open(struct gi_engine *e)
{
    uint64_t addr;
    void *cells;
    e->requests = calloc(GI_ENGINE_REQUESTS, sizeof(*e->requests));
    if (e->requests == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the engine");
    int st = gi_gpu_host_alloc(e->gpu, (GI_ENGINE_REQUESTS + 1) * sizeof(*e->cells), &cells, &addr);
    if (st != GIN_OK)
        return st;
    e->cells = cells;
    e->cells_addr = addr;
    for (uint32_t i = 0; i < GI_ENGINE_REQUESTS; i++) {
        struct gi_request *q = &e->requests[i];
        q->cell = &e->cells[i];
        q->cell_addr = addr + i * sizeof(*e->cells);
        q->next = e->pool;
        e->pool = q;
    }
    return GIN_OK;
}

void gi_requests_close(struct gi_engine *e)
{
    gi_gpu_host_free(e->gpu, e->cells);
    free(e->requests);
}

static void dead(const struct gi_job *j, int status)
{
    gi_ring_fail(j->r, status, j->e->comm->rank);
    gi_warn("engine", "context %" PRIu32 " is dead: operation %u to rank %" PRIu32 ": %s",
            j->r->context, j->op->op, j->op->peer, gin_last_error());
}

int gi_engine_copy(const struct gi_job *j, struct gi_request *q, uint64_t to, uint64_t from,
                   uint64_t bytes)
{
    void *stream = j->e->stream[j->e->next_stream++ % GI_ENGINE_STREAMS];
    int st = gi_gpu_copy_start(stream, to, from, bytes);
    q->stamp = ++j->e->stamps;
    if (st == GIN_OK)
        st = gi_gpu_stamp(stream, q->cell_addr + offsetof(struct gi_cell, stamp), q->stamp);
    if (st == GIN_OK)
        q->state = GI_REQUEST_COPYING;
    return st;
}

void gi_engine_done(const struct gi_job *j, struct gi_request *q, uint64_t was)
{
    q->state = GI_REQUEST_DONE;
    if (q->op.op >= GIN_I_DESC_AMO + GIN_I_AMO_FETCH) {
        struct gin_i_reply *reply = &j->r->replies[q->op.sig_off % GI_RING_REPLIES];
        GIN_STORE_RELAXED(&reply->value, was);
        GIN_STORE_RELEASE(&reply->seq, q->ticket + 1);
    }
    if (q->op.flags & GIN_I_DESC_COUNTER) {
        uint64_t *c = &j->r->counters[q->op.counter];
        GIN_STORE_RELEASE(c, *c + 1);
    }
}

/* Data has arrived, and for a strong action everything before: act. */
static int act(const struct gi_job *j, struct gi_request *q)
{
    if (q->gpu_word != 0 || q->ask)
        return gi_word_act(j, q);
    if (q->word != NULL && (q->op.flags & GIN_I_DESC_SET_AT))
        GIN_STORE_RELEASE(q->word, q->op.value);
    else if (q->word != NULL)
        GIN_ADD_RELEASE(q->word, q->op.value);
    gi_engine_done(j, q, 0);
    return GIN_OK;
}

/* A request whose copy, if any, is over. */
static int step(const struct gi_job *j, struct gi_request *q)
{
    bool waits = q->op.op == GIN_I_DESC_FLUSH || q->op.op == GIN_I_DESC_FENCE ||
                 q->op.op == GIN_I_DESC_QUIET || (q->op.flags & GIN_I_DESC_STRONG);
    if (waits && q != j->r->first) {
        q->state = GI_REQUEST_BEHIND;
        return GIN_OK;
    }
    return act(j, q);
}

/* ---- data ---- */

static int move_host(const struct spot *to, const struct spot *from, uint64_t bytes)
{
    void *dst = (void *)(uintptr_t)to->addr, *src = (void *)(uintptr_t)from->addr;
    if (to->pid != 0)
        return gi_cma_write(to->pid, dst, src, bytes);
    if (from->pid != 0)
        return gi_cma_read(from->pid, dst, src, bytes);
    gin_i_copy(dst, src, bytes);
    return GIN_OK;
}

static int move(const struct gi_job *j, struct gi_request *q, const struct spot *to,
                const struct spot *from)
{
    uint64_t bytes = j->op->size;
    if (bytes == 0)
        return step(j, q);
    if (!to->gpu && !from->gpu) {
        int st = move_host(to, from, bytes);
        return st == GIN_OK ? step(j, q) : st;
    }
    if (to->pid != 0 || from->pid != 0)
        return gi_fail(GIN_ENOTSUP, "user memory of another process is not copied to or from a "
                                    "GPU");
    return gi_engine_copy(j, q, to->addr, from->addr, bytes);
}

static int put(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    struct spot to, from = {.addr = (uint64_t)(uintptr_t)&q->cell->value};
    int st = find_bytes(j, o->dst_win, (int)o->peer, o->dst_off, true, &to);
    q->cell->value = o->immediate;
    if (st == GIN_OK && o->op == GIN_I_DESC_PUT)
        st = find_mine(j, o->src_win, o->src_off, &from);
    else if (st == GIN_OK && o->size > sizeof(q->cell->value))
        st = gi_fail(GIN_ERANGE, "a value of %" PRIu64 " bytes", o->size);
    return st == GIN_OK ? move(j, q, &to, &from) : st;
}

static int get(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    struct spot to, from;
    int st = find_mine(j, o->dst_win, o->dst_off, &to);
    if (st == GIN_OK)
        st = find_bytes(j, o->src_win, (int)o->peer, o->src_off, false, &from);
    return st == GIN_OK ? move(j, q, &to, &from) : st;
}

static int amo(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    enum gin_i_amo_op op = (enum gin_i_amo_op)(o->op - GIN_I_DESC_AMO);
    uint32_t bytes = o->flags & GIN_I_DESC_WORD32 ? 4 : 8;
    const struct gin_i_window *w;
    struct spot s;
    int st = look_up(j, o->dst_win, (int)o->peer, o->dst_off, bytes, op != GIN_I_AMO_FETCH, &w);
    if (st == GIN_OK && op > GIN_I_AMO_CAS)
        st = gi_fail(GIN_EINVAL, "atomic %u is none", (unsigned)op);
    if (st == GIN_OK && w->kind == GIN_KIND_CUDA) {
        st = gi_word_find(j, q, w, o->dst_off, bytes, op);
        return st == GIN_OK ? gi_word_act(j, q) : st;
    }
    if (st == GIN_OK)
        st = find_spot(j, w, (int)o->peer, o->dst_off, &s);
    if (st != GIN_OK)
        return st;
    if ((s.addr & (bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "the word of an atomic is not %" PRIu32 "-byte aligned", bytes);
    if (s.pid != 0)
        return gi_fail(GIN_ENOTSUP, "atomic %u on user memory of another process", (unsigned)op);
    uint64_t was = gi_amo_apply((void *)(uintptr_t)s.addr, op, bytes, o->immediate, o->value);
    gi_engine_done(j, q, was);
    return GIN_OK;
}

static int execute(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    if (o->op == GIN_I_DESC_NOP)
        return GIN_OK;
    if (o->op == GIN_I_DESC_FLUSH || o->op == GIN_I_DESC_FENCE || o->op == GIN_I_DESC_QUIET) {
        j->r->fenced = o->op == GIN_I_DESC_FENCE;
        return step(j, q);
    }
    if (o->peer >= (uint32_t)j->e->comm->size ||
        ((o->flags & GIN_I_DESC_COUNTER) && o->counter >= j->r->n_counters))
        return gi_fail(GIN_ERANGE, "rank %" PRIu32 " or counter %" PRIu32 " is out of range",
                       o->peer, o->counter);
    if (o->op >= GIN_I_DESC_AMO)
        return amo(j, q);
    int st = find_word(j, q);
    if (st != GIN_OK)
        return st;
    switch (o->op) {
    case GIN_I_DESC_PUT:
    case GIN_I_DESC_PUT_VALUE: return put(j, q);
    case GIN_I_DESC_GET: return get(j, q);
    case GIN_I_DESC_SIGNAL: return step(j, q);
    default: return gi_fail(GIN_EINVAL, "operation %u is unknown", o->op);
    }
}

/* ---- a ring's turn ---- */

static void append(struct gi_ring *r, struct gi_request *q)
{
    q->next = NULL;
    if (r->first == NULL)
        r->first = q;
    else
        r->last->next = q;
    r->last = q;
}

static void give(struct gi_engine *e, struct gi_request *q)
{
    q->next = e->pool;
    e->pool = q;
}

void gi_requests_drop(struct gi_engine *e, struct gi_ring *r)
{
    while (r->first != NULL) {
        struct gi_request *q = r->first;
        r->first = q->next;
        give(e, q);
    }
}

/* One descriptor. It is complete at once where nothing in front of it is under way either. */
static bool take_one(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_request *q = e->pool;
    if (q == NULL || r->fenced || !gi_ring_next(r, &q->op))
        return false;
    struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
    e->pool = q->next;
    q->state = GI_REQUEST_DONE;
    q->ticket = r->taken - 1;
    q->word = NULL;
    q->gpu_word = 0;
    q->ask = q->sets = false;
    append(r, q);
    int st = execute(&j, q);
    if (st != GIN_OK) {
        q->state = GI_REQUEST_DONE;
        dead(&j, st);
    }
    return true;
}

/* Look whether copies have arrived; those of one ring use several streams, so not in order. A GPU
 * that has faulted never stamps: the thread's look at its health ends that. */
static void poll(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    int left = POLL_AT_ONCE;
    for (struct gi_request *q = r->first; q != NULL && left > 0; q = q->next) {
        struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
        int st = GIN_OK;
        if (q->state == GI_REQUEST_DONE || q->state == GI_REQUEST_BEHIND)
            continue;
        left--;
        if (q->state != GI_REQUEST_COPYING)
            st = gi_word_go_on(&j, q);
        else if (GIN_LOAD_ACQUIRE(&q->cell->stamp) == q->stamp)
            st = step(&j, q);
        if (st == GIN_OK)
            continue;
        q->state = GI_REQUEST_DONE;
        dead(&j, st);
    }
}

/* Complete ones at the head leave; what waited for the head acts when it is there. */
static bool retire(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    uint64_t was = r->done;
    while (r->first != NULL) {
        struct gi_request *q = r->first;
        struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
        int st = q->state == GI_REQUEST_BEHIND ? act(&j, q) : GIN_OK;
        if (st != GIN_OK) {
            q->state = GI_REQUEST_DONE;
            dead(&j, st);
        }
        if (q->state != GI_REQUEST_DONE)
            break;
        r->fenced = r->fenced && q->op.op != GIN_I_DESC_FENCE;
        r->first = q->next;
        r->done++;
        give(e, q);
    }
    return r->done != was;
}

bool gi_engine_serve(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    bool busy = false;
    poll(e, d, r);
    for (int i = 0; i < TAKE_AT_ONCE && take_one(e, d, r); i++) {
        busy = true;
        if (r->first->state == GI_REQUEST_DONE)
            retire(e, d, r);
    }
    busy |= retire(e, d, r);
    gi_ring_tell(r);
    return busy;
}
