/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network that a test makes and breaks: ranks are threads of one process, the library's network
 * is the fault wrapper around the self transport, one plan per rank. Include it in one file of a
 * program; tests are .bare, .only = MP_THREADS, and call made_up() and made_down().
 */
#ifndef GINSHMEM_TESTS_MADE_NET_H
#define GINSHMEM_TESTS_MADE_NET_H

#include <pthread.h>
#include "net_up.h"
#include "tests/mp.h"
#include "transport/fault/fault.h"
#include "transport/self/self.h"

#define MADE_RANKS 8

static struct {
    pthread_once_t once;
    struct gi_net_ops ops;
    struct gi_self_hub *hub;
    struct made_rank {
        struct gi_net_domain *inner, *domain;
        struct gi_fault_plan plan;
        struct gi_net_caps caps;
        atomic_int deregs; /* of the library, so far */
        void (*on_lane_close)(int rank);
    } rank[MADE_RANKS];
} made = {.once = PTHREAD_ONCE_INIT};

static int made_rank_of(const struct gi_net_domain *d)
{
    int r = 0;
    while (r < MADE_RANKS - 1 && made.rank[r].domain != d)
        r++;
    return r;
}

static _Thread_local int made_me; /* of a rank's thread: the rank */

static int made_open(const struct gi_net_config *config, struct gi_net_domain **domain)
{
    struct made_rank *m = &made.rank[config->rank];
    struct gi_net_config inner = {.rank = config->rank, .size = config->size, .more = made.hub};
    int st = gi_self_ops.open(&inner, &m->inner);
    if (st != GIN_OK)
        return st;
    m->plan.inner = m->inner;
    m->plan.seed = (uint64_t)config->rank + 1;
    struct gi_net_config outer = {.rank = config->rank, .size = config->size, .more = &m->plan};
    st = gi_fault_ops.open(&outer, domain);
    if (st != GIN_OK)
        return st;
    (*domain)->ops = &made.ops;
    m->domain = *domain;
    return GIN_OK;
}

static void made_dereg(struct gi_net_domain *d, struct gi_net_mr *mr)
{
    atomic_fetch_add(&made.rank[made_rank_of(d)].deregs, 1);
    gi_fault_ops.dereg(d, mr);
}

static void made_lane_close(struct gi_net_lane *l)
{
    if (made.rank[made_me].on_lane_close != NULL)
        made.rank[made_me].on_lane_close(made_me);
    gi_fault_ops.lane_close(l);
}

static void made_once(void)
{
    gi_self_hub_open(&made.hub);
    made.ops = gi_fault_ops;
    made.ops.open = made_open;
    made.ops.dereg = made_dereg;
    made.ops.lane_close = made_lane_close;
    gi_net_use(&made.ops, NULL);
}

/* A communicator whose network is this one. caps: the record to impose, or NULL. */
static bool made_up(struct mp *mp, const struct gi_net_caps *caps)
{
    pthread_once(&made.once, made_once);
    made_me = mp->rank;
    if (caps != NULL) {
        made.rank[mp->rank].caps = *caps;
        made.rank[mp->rank].plan.caps = &made.rank[mp->rank].caps;
    }
    return mp_up(mp);
}

static bool made_down(struct mp *mp)
{
    bool ok = mp_down(mp);
    mp_barrier(mp);
    if (made.rank[mp->rank].inner != NULL)
        made.rank[mp->rank].inner->ops->close(made.rank[mp->rank].inner);
    made.rank[mp->rank].inner = NULL;
    mp_barrier(mp);
    if (mp->rank == 0)
        gi_self_hub_close(made.hub);
    return ok;
}

/* From now on a kind of call of mine fails with this status, each time. */
static inline void made_fail(const struct mp *mp, enum gi_fault_call call, int status)
{
    struct gi_fault_plan plan = made.rank[mp->rank].plan;
    plan.first[call] = 1;
    plan.count[call] = UINT32_MAX;
    plan.status[call] = status;
    gi_fault_set(made.rank[mp->rank].domain, &plan);
}

#endif
