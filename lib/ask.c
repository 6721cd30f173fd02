/* SPDX-License-Identifier: BSD-3-Clause */
/* The asker's side. A slot of a rank that died stays taken: the communicator has failed with it. */
#include "ask.h"

#include <string.h>
#include "comm.h"
#include "net_up.h"

static struct gi_ask_box *box_of(const gin_comm_t *comm, int world)
{
    return &gi_control(comm, comm->shm->lsa_of[world])->asks;
}

bool gi_ask_is_open(gin_comm_t *comm, int world)
{
    return comm->shm->lsa_of[world] >= 0 &&
           atomic_load_explicit(&box_of(comm, world)->open, memory_order_acquire) != 0;
}

int gi_ask_can(gin_comm_t *comm, int world)
{
    if (comm->shm->lsa_of[world] < 0)
        return gi_fail(GIN_ENOTSUP,
                       "rank %d is not load/store accessible, and its GPU memory is not reached "
                       "by the network: %s",
                       world, comm->net != NULL ? "staging failed" : gi_net_why(comm));
    if (gi_ask_is_open(comm, world))
        return GIN_OK;
    return gi_fail(GIN_ENOTSUP,
                   "rank %d's GPU memory needs that rank's engine, which runs while that rank has "
                   "a device communicator for kernels",
                   world);
}

struct gi_ask *gi_ask_take(gin_comm_t *comm, int world)
{
    struct gi_ask_box *box = box_of(comm, world);
    for (uint32_t i = 0; i < GI_ASKS; i++) {
        struct gi_ask *a = &box->ask[((uint32_t)comm->rank + i) % GI_ASKS];
        uint32_t state = GI_ASK_FREE;
        if (atomic_load_explicit(&a->state, memory_order_relaxed) == GI_ASK_FREE &&
            atomic_compare_exchange_strong_explicit(&a->state, &state, GI_ASK_TAKEN,
                                                    memory_order_acquire, memory_order_relaxed))
            return a;
    }
    return NULL;
}

void gi_ask_post(gin_comm_t *comm, int world, struct gi_ask *a)
{
    a->asker = comm->rank;
    atomic_store_explicit(&a->state, GI_ASK_POSTED, memory_order_release);
    atomic_fetch_add_explicit(&box_of(comm, world)->bell, 1, memory_order_release);
}

int gi_ask_look(gin_comm_t *comm, int world, struct gi_ask *a)
{
    uint32_t state = GI_ASK_POSTED;
    if (atomic_load_explicit(&a->state, memory_order_acquire) == GI_ASK_ANSWERED)
        return 1;
    if (atomic_load_explicit(&box_of(comm, world)->open, memory_order_acquire) != 0)
        return 0;
    /* nobody looks any more; or did before it stopped */
    if (!atomic_compare_exchange_strong_explicit(&a->state, &state, GI_ASK_FREE,
                                                 memory_order_acq_rel, memory_order_acquire))
        return state == GI_ASK_ANSWERED;
    return gi_ask_can(comm, world) == GIN_OK ? GIN_EAGAIN : GIN_ENOTSUP;
}

void gi_ask_give(struct gi_ask *a)
{
    atomic_store_explicit(&a->state, GI_ASK_FREE, memory_order_release);
}

static void fill(struct gi_ask *a, const struct gi_ask *what, const void *in)
{
    a->op = what->op;
    a->bytes = what->bytes;
    a->win = what->win;
    a->off = what->off;
    a->value = what->value;
    a->expected = what->expected;
    if (in != NULL)
        memcpy(a->data, in, what->bytes);
}

/* Once. GIN_EAGAIN: that engine has gone with the question, and another one is there. */
static int ask_once(gin_comm_t *comm, int world, const struct gi_ask *what, const void *in,
                    struct gi_wait *w, struct gi_ask **answer)
{
    struct gi_ask *a = NULL;
    int st = gi_ask_can(comm, world), there = 0;
    while (st == GIN_OK && (a = gi_ask_take(comm, world)) == NULL)
        st = gi_wait_step(w);
    if (st != GIN_OK)
        return st;
    fill(a, what, in);
    gi_ask_post(comm, world, a);
    while (st == GIN_OK && (there = gi_ask_look(comm, world, a)) == 0)
        st = gi_wait_step(w);
    *answer = a;
    return there < 0 ? there : there == 0 ? st : GIN_OK;
}

int gi_ask_and_wait(gin_comm_t *comm, int world, const struct gi_ask *what, const void *in,
                    void *out, uint64_t *was)
{
    struct gi_ask *a = NULL;
    struct gi_wait w;
    int st;
    gi_wait_begin(&w, comm->spin, GI_NEVER, gi_comm_health, comm, "GPU memory of rank #");
    w.detail[0] = (uint64_t)world;
    do
        st = ask_once(comm, world, what, in, &w, &a);
    while (st == GIN_EAGAIN);
    gi_wait_end(&w);
    if (st != GIN_OK)
        return st;
    st = a->status;
    if (st == GIN_OK && was != NULL)
        *was = a->was;
    if (st == GIN_OK && out != NULL)
        memcpy(out, a->data, what->bytes);
    if (st != GIN_OK)
        gi_fail(st, "rank %d: %.120s", world, a->data);
    gi_ask_give(a);
    return st;
}
