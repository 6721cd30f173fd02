/* SPDX-License-Identifier: BSD-3-Clause */
/* Where answers to atomics come to, one place per thread and freed with it; and waits for them. */
#include <pthread.h>
#include <stdlib.h>

#include "engine_net.h"
#include "net_answer.h"
#include "net_int.h"
#include "net_wait.h"

static _Thread_local struct gi_net_answer *answer;
static pthread_key_t key; /* frees it with its thread */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;
static _Atomic(struct gi_net_answer *) left; /* the core may write to them yet */

static void make_key(void)
{
    has_key = pthread_key_create(&key, free) == 0;
}

static void answered(struct gi_core_notice *n, int status)
{
    struct gi_net_answer *a = (struct gi_net_answer *)(void *)n;
    atomic_store_explicit(&a->status, status, memory_order_release);
}

struct gi_net_answer *gi_net_answer_take(void)
{
    if (answer == NULL) {
        pthread_once(&once, make_key);
        answer = calloc(1, sizeof(*answer));
        if (answer == NULL)
            return NULL;
        if (has_key)
            pthread_setspecific(key, answer);
    }
    answer->notice.fn = answered;
    atomic_store_explicit(&answer->status, 1, memory_order_relaxed);
    return answer;
}

/* This thread takes another one next time. */
static void leave(void)
{
    answer->next = atomic_load_explicit(&left, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&left, &answer->next, answer,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    answer = NULL;
    if (has_key)
        pthread_setspecific(key, NULL);
}

/* An atomic that a dead ring still holds is not answered; others may be lost with it. */
static int ring_lives(void *arg)
{
    const gin_t *g = arg;
    const struct gi_net_ring *x = gi_net_ring_of(g);
    int st = gi_comm_whole(gi_comm_of(g));
    return st == GIN_OK && x != NULL ? gi_net_ring_status(x, "engine") : st;
}

int gi_net_answer_await(const gin_t *g, int world, struct gi_net_answer *a, const char *call)
{
    gin_comm_t *comm = gi_comm_of(g);
    struct gi_core_ctx *ctx = gi_net_ctx(g);
    struct gi_net_wait w;
    uint64_t ns = gi_devcomm_of(g)->wait_timeout_ns;
    int st = GIN_OK;
    for (uint32_t i = 0; i < gi_net_spin(comm) && !gi_net_is_answered(a); i++)
        gi_net_drive(comm, ctx);
    gi_net_wait_for(&w, comm, ns, "an atomic of context # at rank #", g->ctx->index,
                    (uint64_t)world);
    w.health = ring_lives;
    w.health_arg = (void *)(uintptr_t)g;
    while (!gi_net_is_answered(a) && st == GIN_OK) {
        gi_net_drive(comm, ctx);
        if (!gi_net_is_answered(a))
            st = gi_net_wait_step(&w);
    }
    gi_net_wait_end(&w);
    int got = atomic_load_explicit(&a->status, memory_order_acquire);
    if (got == GIN_OK)
        return GIN_OK;
    if (got != 1)
        return gi_net_failure(g, ctx, world, got, call);
    leave(); /* it may come yet */
    if (st == GIN_ETIMEDOUT)
        return gi_fail(st, "%s: rank %d has not answered after %.3f s", call, world,
                       (double)ns * 1e-9);
    return gi_fail_context("%s", call);
}
