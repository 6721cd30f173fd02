/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words of GPU memory. Where their owner's engine is the one applier (gi_words_by_engine()), it
 * fetches a word with the copy engine, which works while kernels occupy the whole GPU, changes it
 * and puts it back; the engines of other ranks, and host threads, ask it to. Elsewhere GPUs apply
 * updates by themselves, and an engine can only set words, beside them, or look.
 */
#include <inttypes.h>
#include <string.h>

#include "base/amo.h"
#include "engine_int.h"
#include "net_up.h"

#define PATIENCE 100000u /* polls of a stamp between two looks at the GPU */

/* ---- the applier ---- */

static struct gi_cell *my_cell(const struct gi_engine *e)
{
    return &e->cells[GI_ENGINE_REQUESTS];
}

/* Copy between GPU memory and host memory, and wait until it has arrived. */
static int copy_now(struct gi_engine *e, uint64_t to, uint64_t from, uint64_t bytes)
{
    const uint64_t stamp = ++e->stamps;
    uint64_t *at = &my_cell(e)->stamp;
    int st = gi_gpu_copy_start(e->word_stream, to, from, bytes);
    if (st == GIN_OK)
        st = gi_gpu_stamp(e->word_stream,
                          e->cells_addr + GI_ENGINE_REQUESTS * sizeof(struct gi_cell) +
                              offsetof(struct gi_cell, stamp),
                          stamp);
    for (uint32_t n = 1; st == GIN_OK && GIN_LOAD_ACQUIRE(at) != stamp; n++) {
        if (n % PATIENCE == 0)
            st = gi_gpu_health(e->gpu);
        else if (e->crowded && n % 64 == 0)
            gi_os_yield();
        else
            GIN_PAUSE();
    }
    return st;
}

/*
 * An update by the network may have the right to update words, and is over when its context has
 * been driven: by this thread, which is the one that does, and lets go of its own first.
 */
static void take_words(struct gi_engine *e, struct gi_ring *r)
{
    struct gi_net *n = gi_net_of(e->comm);
    if (gi_words_try(e->comm->cuda))
        return;
    if (r != NULL)
        gi_far_rest(r);
    while (!gi_words_try(e->comm->cuda)) {
        if (n != NULL)
            gi_core_poll_some(n->core);
        gi_os_yield();
    }
}

/* r: the ring that it is for, or NULL */
static int apply(struct gi_engine *e, struct gi_ring *r, uint64_t word, enum gin_i_amo_op op,
                 uint32_t bytes, uint64_t value, uint64_t expected, uint64_t *was)
{
    struct gi_cell *c = my_cell(e);
    uint64_t cell = (uint64_t)(uintptr_t)&c->value, before;
    int st = GIN_OK;
    e->slow = true;
    c->value = 0;
    take_words(e, r);
    if (op != GIN_I_AMO_SET)
        st = copy_now(e, cell, word, bytes);
    before = c->value;
    *was = gi_amo_apply(&c->value, op, bytes, value, expected);
    if (st == GIN_OK && (op == GIN_I_AMO_SET || c->value != before))
        st = copy_now(e, word, cell, bytes);
    gi_words_give(e->comm->cuda);
    return st;
}

/* ---- words of descriptors ---- */

int gi_word_find(const struct gi_job *j, struct gi_request *q, const struct gin_i_window *w,
                 uint64_t off, uint32_t bytes, enum gin_i_amo_op op)
{
    gin_comm_t *comm = j->e->comm;
    int world = (int)j->op->peer;
    void *addr;
    pid_t pid;
    q->word_op = op;
    if (gi_words_by_engine(comm, w) && world != comm->rank) {
        q->ask = true;
        return gi_ask_can(comm, world);
    }
    switch (gi_window_reach(comm, w, world, off, &addr, &pid)) {
    case GIN_PATH_SELF:
    case GIN_PATH_LSA: break;
    default: return gin_last_status();
    }
    q->gpu_word = (uint64_t)(uintptr_t)addr;
    if ((q->gpu_word & (bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "a word of %" PRIu32 " bytes is not aligned", bytes);
    if (gi_words_by_engine(comm, w) || op == GIN_I_AMO_FETCH)
        return GIN_OK;
    q->sets = op == GIN_I_AMO_SET;
    if (q->sets)
        return GIN_OK;
    return gi_fail(GIN_ENOTSUP, "atomic %u: words of GPU memory are updated by kernels here",
                   (unsigned)op);
}

static bool is_amo(const struct gi_request *q)
{
    return q->op.op >= GIN_I_DESC_AMO;
}

static uint32_t bytes_of(const struct gi_request *q)
{
    return is_amo(q) && (q->op.flags & GIN_I_DESC_WORD32) ? 4 : 8;
}

/* Post it, when there is a slot. */
static void ask(const struct gi_job *j, struct gi_request *q)
{
    gin_comm_t *comm = j->e->comm;
    struct gi_ask *a = gi_ask_take(comm, (int)q->op.peer);
    q->state = GI_REQUEST_ASKING;
    if (a == NULL)
        return;
    a->op = (uint32_t)q->word_op;
    a->bytes = bytes_of(q);
    a->win = is_amo(q) ? q->op.dst_win : q->op.sig_win;
    a->off = is_amo(q) ? q->op.dst_off : q->op.sig_off;
    a->value = is_amo(q) ? q->op.immediate : q->op.value;
    a->expected = q->op.value;
    gi_ask_post(comm, (int)q->op.peer, a);
    q->asked = a;
    q->state = GI_REQUEST_ASKED;
}

int gi_word_act(const struct gi_job *j, struct gi_request *q)
{
    uint64_t value = is_amo(q) ? q->op.immediate : q->op.value, was = 0, to = q->gpu_word;
    if (q->ask) {
        ask(j, q);
        return GIN_OK;
    }
    if (q->sets) { /* beside GPUs' atomics: needs no turn of its own */
        q->cell->value = value;
        q->gpu_word = 0;
        return gi_engine_copy(j, q, to, (uint64_t)(uintptr_t)&q->cell->value, bytes_of(q));
    }
    int st = apply(j->e, j->r, q->gpu_word, q->word_op, bytes_of(q), value, q->op.value, &was);
    if (st == GIN_OK)
        gi_engine_done(j, q, was);
    return st;
}

int gi_word_go_on(const struct gi_job *j, struct gi_request *q)
{
    gin_comm_t *comm = j->e->comm;
    int world = (int)q->op.peer;
    if (q->state == GI_REQUEST_ASKING) {
        ask(j, q);
        return q->state == GI_REQUEST_ASKED ? GIN_OK : gi_ask_can(comm, world);
    }
    int there = gi_ask_look(comm, world, q->asked);
    if (there == GIN_EAGAIN) { /* that engine went and another one came */
        q->state = GI_REQUEST_ASKING;
        return GIN_OK;
    }
    if (there <= 0)
        return there;
    int st = q->asked->status;
    if (st == GIN_OK)
        gi_engine_done(j, q, q->asked->was);
    else
        gi_fail(st, "rank %d: %.120s", world, q->asked->data);
    gi_ask_give(q->asked);
    return st;
}

bool gi_word_is_over(const struct gi_engine *e, struct gi_request *q)
{
    int there = gi_ask_look(e->comm, (int)q->op.peer, q->asked);
    if (there > 0)
        gi_ask_give(q->asked);
    return there != 0;
}

/* ---- being asked ---- */

static int answer(struct gi_engine *e, struct gi_ask *a)
{
    gin_comm_t *comm = e->comm;
    const struct gin_i_window *w = gi_engine_window(comm, a->win);
    bool update = a->op != GIN_I_AMO_FETCH && a->op != GI_ASK_GET;
    if (w == NULL)
        return GIN_ESTATE;
    if (w->kind != GIN_KIND_CUDA || a->bytes > GI_ASK_BYTES)
        return gi_fail(GIN_EINVAL, "%" PRIu32 " bytes of a window of kind %d", a->bytes, w->kind);
    int st = gi_engine_inside(comm, w, a->off, a->bytes, update && a->asker != comm->rank);
    uint64_t at = w->local + a->off, data = (uint64_t)(uintptr_t)a->data;
    if (st != GIN_OK)
        return st;
    if (a->op == GI_ASK_PUT)
        return copy_now(e, at, data, a->bytes);
    if (a->op == GI_ASK_GET)
        return copy_now(e, data, at, a->bytes);
    if (a->op > GIN_I_AMO_CAS || (a->bytes != 4 && a->bytes != 8) || (at & (a->bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "atomic %" PRIu32 " on %" PRIu32 " bytes", a->op, a->bytes);
    if (!gi_words_by_engine(comm, w) && a->op != GIN_I_AMO_SET && a->op != GIN_I_AMO_FETCH)
        return gi_fail(GIN_ENOTSUP, "words of GPU memory are updated by kernels here");
    return apply(e, NULL, at, (enum gin_i_amo_op)a->op, a->bytes, a->value, a->expected, &a->was);
}

/* One at a time, as each costs a copy or two: rings have their turns between them. */
bool gi_asks_serve(struct gi_engine *e)
{
    struct gi_ask_box *box = &gi_control(e->comm, e->comm->shm->lsa_rank)->asks;
    uint32_t bell = atomic_load_explicit(&box->bell, memory_order_acquire);
    if (bell == e->bell)
        return false;
    for (uint32_t i = 0; i < GI_ASKS; i++) {
        struct gi_ask *a = &box->ask[e->next_ask++ % GI_ASKS];
        if (atomic_load_explicit(&a->state, memory_order_acquire) != GI_ASK_POSTED)
            continue;
        a->status = answer(e, a);
        if (a->status != GIN_OK)
            snprintf(a->data, sizeof(a->data), "%s", gin_last_error());
        atomic_store_explicit(&a->state, GI_ASK_ANSWERED, memory_order_release);
        return true;
    }
    e->bell = bell; /* nothing was there after that many had rung */
    return true;
}
