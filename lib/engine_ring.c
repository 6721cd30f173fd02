/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring's turn: descriptors come out in the order of their tickets, are complete in any, and leave
 * in the order of their tickets. One that cannot be done kills its context with the reason.
 */
#include "engine_int.h"

#include <inttypes.h>
#include <stdlib.h>

#define TAKE_AT_ONCE 64 /* descriptors of a ring before the next one has its turn */
#define POLL_AT_ONCE 32 /* copies of a ring */

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

/* ---- failures ---- */

/* Its context is dead from this ticket on: nothing behind it acts any more, or counts as complete,
 * so that whoever waits for it looks at the error. */
void gi_request_dead(const struct gi_job *j, struct gi_request *q, int status)
{
    struct gi_ring *r = j->r;
    q->state = GI_REQUEST_FAILED;
    if (!r->dead)
        gi_warn("engine", "context %" PRIu32 " is dead: operation %u to rank %" PRIu32 ": %s",
                r->context, j->op->op, j->op->peer, gin_last_error());
    gi_ring_kill(r, q->ticket, status, j->e->comm->rank);
}

bool gi_request_is_late(const struct gi_ring *r, const struct gi_request *q)
{
    return r->dead && q->ticket >= r->failed;
}

static bool is_under_way(const struct gi_request *q)
{
    return q->state == GI_REQUEST_COPYING || q->state == GI_REQUEST_ASKED;
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
    r->held++;
}

static void give(struct gi_engine *e, struct gi_request *q)
{
    q->next = e->pool;
    e->pool = q;
}

/* Its stamp or answer may still come, and the copy engine reads its cell: until then it rests. */
void gi_requests_drop(struct gi_engine *e, struct gi_ring *r)
{
    while (r->first != NULL) {
        struct gi_request *q = r->first;
        r->first = q->next;
        gi_far_forget(q);
        if (!is_under_way(q)) {
            give(e, q);
            continue;
        }
        q->next = e->limbo;
        e->limbo = q;
    }
    r->held = 0;
}

void gi_requests_rest(struct gi_engine *e)
{
    for (struct gi_request **p = &e->limbo, *q; (q = *p) != NULL;) {
        bool over = q->state == GI_REQUEST_COPYING ? GIN_LOAD_ACQUIRE(&q->cell->stamp) == q->stamp
                                                   : gi_word_is_over(e, q);
        if (!over) {
            p = &q->next;
            continue;
        }
        *p = q->next;
        give(e, q);
    }
}

/* One descriptor. It is complete at once where nothing in front of it is under way either. */
static bool take_one(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_request *q = e->pool;
    if (q == NULL || r->fenced || r->dead || r->held >= e->share || !gi_ring_next(r, &q->op))
        return false;
    struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
    e->pool = q->next;
    q->state = GI_REQUEST_DONE;
    q->ticket = r->taken - 1;
    q->word = NULL;
    q->gpu_word = 0;
    q->ask = q->sets = q->settled = false;
    q->far = GI_FAR_NOTHING;
    q->far_op = NULL;
    append(r, q);
    e->n_taken++;
    if (q->op.op <= GIN_I_DESC_GET)
        e->n_bytes += q->op.size;
    int st = gi_engine_execute(&j, q);
    if (st != GIN_OK)
        gi_request_dead(&j, q, st);
    return true;
}

/* What to do with one that is not at the head. */
static int look_at(const struct gi_job *j, struct gi_request *q)
{
    bool late = gi_request_is_late(j->r, q);
    switch (q->state) {
    case GI_REQUEST_COPYING:
        if (GIN_LOAD_ACQUIRE(&q->cell->stamp) != q->stamp)
            return GIN_OK;
        if (!late)
            return gi_engine_step(j, q);
        break;
    case GI_REQUEST_ASKED: return gi_word_go_on(j, q);
    case GI_REQUEST_ASKING:
        if (!late)
            return gi_word_go_on(j, q);
        break;
    default: return GIN_OK;
    }
    q->state = GI_REQUEST_FAILED;
    return GIN_OK;
}

/* Look whether copies have arrived; those of one ring use several streams, so not in order. A GPU
 * that has faulted never stamps: the thread's look at its health ends that. */
static void poll(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    int left = POLL_AT_ONCE;
    for (struct gi_request *q = r->first; q != NULL && left > 0; q = q->next) {
        struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
        if (q->state != GI_REQUEST_COPYING && q->state != GI_REQUEST_ASKING &&
            q->state != GI_REQUEST_ASKED)
            continue;
        left--;
        int st = look_at(&j, q);
        if (st != GIN_OK)
            gi_request_dead(&j, q, st);
    }
}

/* It has waited until all in front of it is at its target; what others posted meanwhile, which may
 * never end, is not its matter. */
static bool is_settled(const struct gi_request *q)
{
    return q->op.op == GIN_I_DESC_FENCE || q->op.op == GIN_I_DESC_QUIET;
}

/* Complete ones at the head leave; what waited for the head acts when it is there. */
static bool retire(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    struct gi_request *q;
    bool any = false;
    while ((q = r->first) != NULL) {
        struct gi_job j = {.e = e, .d = d, .r = r, .op = &q->op};
        if (q->state == GI_REQUEST_BEHIND && gi_request_is_late(r, q))
            q->state = GI_REQUEST_FAILED;
        int st = q->state == GI_REQUEST_BEHIND ? gi_engine_act(&j, q) : GIN_OK;
        if (st != GIN_OK)
            gi_request_dead(&j, q, st);
        if (q->state != GI_REQUEST_DONE && q->state != GI_REQUEST_FAILED)
            break;
        r->fenced = r->fenced && q->op.op != GIN_I_DESC_FENCE;
        r->first = q->next;
        if (!gi_request_is_late(r, q)) {
            r->done++;
            r->settled = is_settled(q) ? r->done : r->settled;
        }
        r->held--;
        give(e, q);
        any = true;
    }
    return any;
}

bool gi_engine_serve(struct gi_engine *e, struct gi_devcomm *d, struct gi_ring *r)
{
    bool busy = false;
    gi_ring_look(r);
    poll(e, d, r);
    if (r->far != NULL)
        busy = gi_far_turn(e, d, r);
    e->slow = false;
    for (int i = 0; i < TAKE_AT_ONCE && !e->slow && take_one(e, d, r); i++) {
        busy = true;
        if (r->first->state == GI_REQUEST_DONE)
            retire(e, d, r);
    }
    busy |= retire(e, d, r);
    if (r->far != NULL)
        gi_far_rest(r);
    if (gi_far_is_settled(r))
        r->settled = r->done;
    gi_ring_tell(r);
    return busy || r->first != NULL;
}

/* ---- waiting for what was posted ---- */

void gi_engine_mark(struct gi_ring *r)
{
    r->mark_from = r->taken;
    r->marked = false;
}

bool gi_engine_reached(struct gi_ring *r)
{
    if (!r->marked && (r->dead || r->taken - r->mark_from >= r->depth || !gi_ring_has_next(r))) {
        r->marked = true;
        r->mark = r->taken;
    }
    return r->marked && (r->done >= r->mark || (r->dead && r->first == NULL));
}
