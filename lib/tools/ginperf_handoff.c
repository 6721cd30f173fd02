/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Of ginperf --net: what it costs to have the engine do it. An 8-byte put raises a counter here as
 * soon as the network has its bytes, so a put until its counter is post, hand-off, the provider's
 * call and the way back. A thread that waits drives the network itself and takes the descriptor
 * out on its own; one that looks at the counter alone leaves that to the engine's thread.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "ginperf.h"

#define COUNTER   0u
#define MOST      4    /* threads that post */
#define LOOKS     200  /* at a counter, to one yield: threads may share a core */
#define TO_SLEEP  3000 /* us; the thread sleeps long before */
#define ONE_SLEEP 20   /* so many times less often, as each takes that long */

gin_t perf_engine;

static int post(const struct perf *p, const gin_t *g, const gin_op_opt_t *opt)
{
    return gin_put_x(g, gin_thread(), p->world, p->peer, gin_at(p->win, p->heap_off),
                     gin_at_local(p->src), 8, gin_no_action(), opt);
}

enum by { BY_WAITER, BY_ENGINE, ASLEEP };

/* One at a time. */
static double there_and_back(struct perf *p, const gin_t *g, long iters, enum by by)
{
    static const gin_op_opt_t count = {.local = {1, COUNTER}};
    double sum = 0;
    perf_net_check(gin_reset_counter(g, COUNTER, NULL));
    perf_sync(p);
    for (long i = 1; p->lead && i <= iters; i++) {
        if (by == ASLEEP)
            usleep(TO_SLEEP);
        double t = perf_now_ns();
        perf_net_check(post(p, g, &count));
        if (by == BY_WAITER)
            perf_net_check(gin_wait_counter(g, gin_thread(), COUNTER, (uint64_t)i));
        for (int k = 1; gin_read_counter(g, COUNTER) < (uint64_t)i; k++)
            if (k % LOOKS == 0)
                sched_yield();
        sum += perf_now_ns() - t;
    }
    perf_net_check(gin_quiet(g, gin_thread()));
    perf_sync(p);
    return sum / (double)iters;
}

double perf_no_handoff(struct perf *p, long iters)
{
    return there_and_back(p, &p->g, iters, BY_WAITER);
}

double perf_handoff_waiter(struct perf *p, long iters)
{
    return perf_engine.ctx != NULL ? there_and_back(p, &perf_engine, iters, BY_WAITER) : 0;
}

double perf_handoff_engine(struct perf *p, long iters)
{
    return perf_engine.ctx != NULL ? there_and_back(p, &perf_engine, iters, BY_ENGINE) : 0;
}

double perf_handoff_asleep(struct perf *p, long iters)
{
    return perf_engine.ctx != NULL ? there_and_back(p, &perf_engine, iters / ONE_SLEEP + 1, ASLEEP)
                                   : 0;
}

struct producer {
    struct perf *p;
    long n;
};

static void *produce(void *arg)
{
    const struct producer *a = arg;
    for (long i = 0; i < a->n; i++)
        perf_net_check(post(a->p, &perf_engine, NULL));
    return NULL;
}

static void *produce_anywhere(void *arg)
{
    perf_core_any();
    return produce(arg);
}

/* Descriptors of so many threads, and one quiet. */
static double rate(struct perf *p, long iters, int threads)
{
    pthread_t thread[MOST];
    struct producer a = {p, iters / threads + 1};
    if (perf_engine.ctx == NULL)
        return 0;
    perf_sync(p);
    double t = perf_now_ns();
    for (int i = 1; p->lead && i < threads; i++)
        if (pthread_create(&thread[i], NULL, produce_anywhere, &a) != 0)
            exit(1);
    if (p->lead)
        produce(&a);
    for (int i = 1; p->lead && i < threads; i++)
        pthread_join(thread[i], NULL);
    perf_net_check(gin_quiet(&perf_engine, gin_thread()));
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)(a.n * threads);
}

double perf_handoff_rate_1(struct perf *p, long iters)
{
    return rate(p, iters, 1);
}

double perf_handoff_rate_2(struct perf *p, long iters)
{
    return rate(p, iters, 2);
}

double perf_handoff_rate_4(struct perf *p, long iters)
{
    return rate(p, iters, MOST);
}
