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

static void dead(const struct gi_job *j, int status)
{
    gi_ring_fail(j->r, status, j->e->comm->rank);
    gi_warn("engine", "context %" PRIu32 " is dead: operation %u to rank %" PRIu32 ": %s",
            j->r->context, j->op->op, j->op->peer, gin_last_error());
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
    int st = gi_engine_execute(&j, q);
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
            st = gi_engine_step(&j, q);
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
        int st = q->state == GI_REQUEST_BEHIND ? gi_engine_act(&j, q) : GIN_OK;
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
