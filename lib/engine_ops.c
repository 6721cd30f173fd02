/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doing what a descriptor says. Memory of GPUs is moved by the copy engine, on streams of the
 * engine's own; host memory by this thread. The action follows when the copy has arrived, a strong
 * one when everything in front of it has, too.
 */
#include "engine_int.h"

#include <inttypes.h>
#include "base/amo.h"
#include "window_impl.h"

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
int gi_engine_act(const struct gi_job *j, struct gi_request *q)
{
    if (gi_far_settle(j, q))
        return GIN_OK;
    if (q->far != GI_FAR_NOTHING)
        return gi_far_post(j, q);
    if (q->gpu_word != 0 || q->ask)
        return gi_word_act(j, q);
    if (q->word != NULL && (q->op.flags & GIN_I_DESC_SET_AT))
        GIN_STORE_RELEASE(q->word, q->op.value);
    else if (q->word != NULL)
        GIN_ADD_RELEASE(q->word, q->op.value);
    gi_engine_done(j, q, 0);
    return GIN_OK;
}

/* The network keeps the order to a peer that is reached by nothing else. */
static bool is_far_alone(const struct gi_job *j, const struct gi_request *q)
{
    return q->far != GI_FAR_NOTHING && gi_lsa_on(j->d, (int)q->op.peer) < 0 &&
           !j->e->comm->shm->cma[q->op.peer];
}

/* A request whose copy, if any, is over. */
int gi_engine_step(const struct gi_job *j, struct gi_request *q)
{
    bool waits = q->op.op == GIN_I_DESC_FLUSH || q->op.op == GIN_I_DESC_FENCE ||
                 q->op.op == GIN_I_DESC_QUIET ||
                 ((q->op.flags & GIN_I_DESC_STRONG) && !is_far_alone(j, q));
    if (waits && q != j->r->first) {
        q->state = GI_REQUEST_BEHIND;
        return GIN_OK;
    }
    return gi_engine_act(j, q);
}

/* ---- data ---- */

static int move_host(const struct gi_spot *to, const struct gi_spot *from, uint64_t bytes)
{
    void *dst = (void *)(uintptr_t)to->addr, *src = (void *)(uintptr_t)from->addr;
    if (to->pid != 0)
        return gi_cma_write(to->pid, dst, src, bytes);
    if (from->pid != 0)
        return gi_cma_read(from->pid, dst, src, bytes);
    gin_i_copy(dst, src, bytes);
    return GIN_OK;
}

static int move(const struct gi_job *j, struct gi_request *q, const struct gi_spot *to,
                const struct gi_spot *from)
{
    uint64_t bytes = j->op->size;
    if (bytes == 0)
        return gi_engine_step(j, q);
    if (!to->gpu && !from->gpu) {
        int st = move_host(to, from, bytes);
        return st == GIN_OK ? gi_engine_step(j, q) : st;
    }
    if (to->pid != 0 || from->pid != 0)
        return gi_fail(GIN_ENOTSUP, "user memory of another process is not copied to or from a "
                                    "GPU");
    return gi_engine_copy(j, q, to->addr, from->addr, bytes);
}

static int put(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    struct gi_spot to, from = {.addr = (uint64_t)(uintptr_t)&q->cell->value};
    int st = gi_find_bytes(j, o->dst_win, (int)o->peer, o->dst_off, true, &to);
    if (st == GIN_OK && to.far) {
        q->far = GI_FAR_ALL;
        return gi_engine_step(j, q);
    }
    q->cell->value = o->immediate;
    if (st == GIN_OK && o->op == GIN_I_DESC_PUT)
        st = gi_find_mine(j, o->src_win, o->src_off, &from);
    else if (st == GIN_OK && o->size > sizeof(q->cell->value))
        st = gi_fail(GIN_ERANGE, "a value of %" PRIu64 " bytes", o->size);
    return st == GIN_OK ? move(j, q, &to, &from) : st;
}

static int get(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    struct gi_spot to, from = {.far = false};
    int st = gi_find_mine(j, o->dst_win, o->dst_off, &to);
    if (st == GIN_OK)
        st = gi_find_bytes(j, o->src_win, (int)o->peer, o->src_off, false, &from);
    if (st == GIN_OK && from.far) {
        q->far = GI_FAR_ALL;
        return gi_engine_step(j, q);
    }
    return st == GIN_OK ? move(j, q, &to, &from) : st;
}

static int amo(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    enum gin_i_amo_op op = (enum gin_i_amo_op)(o->op - GIN_I_DESC_AMO);
    uint32_t bytes = o->flags & GIN_I_DESC_WORD32 ? 4 : 8;
    const struct gin_i_window *w;
    struct gi_spot s;
    int st =
        gi_find_window(j, o->dst_win, (int)o->peer, o->dst_off, bytes, op != GIN_I_AMO_FETCH, &w);
    if (st == GIN_OK && op > GIN_I_AMO_CAS)
        st = gi_fail(GIN_EINVAL, "atomic %u is none", (unsigned)op);
    if (st == GIN_OK && gi_is_applied_near(j, w, (int)o->peer)) {
        st = gi_word_find(j, q, w, o->dst_off, bytes, op);
        return st == GIN_OK ? gi_word_act(j, q) : st;
    }
    if (st == GIN_OK)
        st = gi_find_spot(j, w, (int)o->peer, o->dst_off, &s);
    if (st != GIN_OK)
        return st;
    if (s.far) {
        q->far = GI_FAR_ALL;
        return gi_window_aligned_at(j->e->comm, w, (int)o->peer, o->dst_off, bytes)
                   ? gi_engine_step(j, q)
                   : gi_fail(GIN_EINVAL, "the word of an atomic is not %" PRIu32 "-byte aligned",
                             bytes);
    }
    if ((s.addr & (bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "the word of an atomic is not %" PRIu32 "-byte aligned", bytes);
    if (s.pid != 0)
        return gi_fail(GIN_ENOTSUP, "atomic %u on user memory of another process", (unsigned)op);
    uint64_t was = gi_amo_apply((void *)(uintptr_t)s.addr, op, bytes, o->immediate, o->value);
    gi_engine_done(j, q, was);
    return GIN_OK;
}

int gi_engine_execute(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    if (o->op == GIN_I_DESC_NOP)
        return GIN_OK;
    if (o->op == GIN_I_DESC_FLUSH || o->op == GIN_I_DESC_FENCE || o->op == GIN_I_DESC_QUIET) {
        j->r->fenced = o->op == GIN_I_DESC_FENCE;
        return gi_engine_step(j, q);
    }
    if (o->peer >= (uint32_t)j->e->comm->size ||
        ((o->flags & GIN_I_DESC_COUNTER) && o->counter >= j->r->n_counters))
        return gi_fail(GIN_ERANGE, "rank %" PRIu32 " or counter %" PRIu32 " is out of range",
                       o->peer, o->counter);
    if (o->op >= GIN_I_DESC_AMO)
        return amo(j, q);
    int st = gi_find_word(j, q);
    if (st != GIN_OK)
        return st;
    switch (o->op) {
    case GIN_I_DESC_PUT:
    case GIN_I_DESC_PUT_VALUE: return put(j, q);
    case GIN_I_DESC_GET: return get(j, q);
    case GIN_I_DESC_SIGNAL: return gi_engine_step(j, q);
    default: return gi_fail(GIN_EINVAL, "operation %u is unknown", o->op);
    }
}
