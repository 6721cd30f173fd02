/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Classes of traffic: those that the provider heeds are taken, the others refused with its name,
 * and endpoints are made with them. No provider that runs anywhere heeds one, so the last is seen
 * between the library and a provider that is said to.
 */
#include <stdio.h>
#include "comm.h"
#include "net_up.h"
#include "tests/mp.h"
#include "transport/ofi/ofi_int.h"

static gin_devcomm_reqs_t of_class(int traffic)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.contexts = 1;
    r.traffic_class = traffic;
    return r;
}

/* A signal to every rank and from it. */
static void meet(struct mp *mp, gin_devcomm_t *d)
{
    gin_t g;
    EXPECT_OK(gin_open(d, 0, &g));
    for (int to = 0; to < mp->size; to++)
        EXPECT_OK(gin_signal(&g, gin_thread(), gin_world(&g), to, gin_strong_inc(0)));
    EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, (uint64_t)mp->size));
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

static void taken(struct mp *mp, int traffic)
{
    gin_devcomm_reqs_t r = of_class(traffic);
    gin_devcomm_t d;
    mp_step(mp, "class %d", traffic);
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &d));
    meet(mp, &d);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &d));
}

MP_TEST_N(nothing_changes_between_near_ranks, "1 2")
{
    mp_dev(mp, NULL);
    if (gi_net_of(mp->comm) != NULL)
        return; /* they are not near */
    for (int c = GIN_TC_DEFAULT; c <= GIN_TC_NETWORK_CTRL; c++)
        taken(mp, c);
    taken(mp, gin_tc_dscp(46));
    if (mp->size == 1)
        return;
    gin_devcomm_reqs_t r = of_class(mp->rank == 0 ? -1 : GIN_TC_LOW_LATENCY);
    gin_devcomm_t d;
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &d), GIN_EMISMATCH,
                 "traffic_class differs: rank 0 passed -1, rank 1 passed 1");
}

static void taken_or_refused(struct mp *mp, int traffic, bool heeded)
{
    const struct gi_net_caps *caps = gi_core_caps(gi_net_of(mp->comm)->core, 0);
    gin_devcomm_reqs_t r = of_class(traffic);
    gin_devcomm_t d;
    char who[80];
    if (heeded) {
        taken(mp, traffic);
        return;
    }
    mp_step(mp, "class %d, refused", traffic);
    snprintf(who, sizeof(who), "provider %.40s takes", caps->name);
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &d), GIN_ENOTSUP, who);
}

MP_TEST_OPT(a_provider_takes_what_it_heeds, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    if (!mp_net(mp, NULL))
        return;
    uint32_t classes = gi_core_caps(gi_net_of(mp->comm)->core, 0)->classes;
    for (int c = GIN_TC_BEST_EFFORT; c <= GIN_TC_NETWORK_CTRL; c++)
        taken_or_refused(mp, c, (classes & 1u << c) != 0);
    taken_or_refused(mp, gin_tc_dscp(0), (classes & GI_NET_TC_DSCP) != 0);
    taken_or_refused(mp, gin_tc_dscp(63), (classes & GI_NET_TC_DSCP) != 0);
    meet(mp, &mp->dev);
}

/* ---- what the provider is told ---- */

static struct fi_ops_domain seeing;
static const struct fi_ops_domain *blind;
static uint32_t wanted;
static int endpoints; /* of that class: a provider may make others inside */

static int see(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
    endpoints += info->tx_attr->tclass == wanted;
    return blind->endpoint(domain, info, ep, context);
}

static void told(struct mp *mp, int traffic, uint32_t class)
{
    endpoints = 0;
    wanted = class;
    taken(mp, traffic);
    EXPECT(endpoints >= 2); /* of the context, and of barriers */
}

MP_TEST_OPT(endpoints_are_of_the_class, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    if (!mp_net(mp, NULL))
        return;
    struct gi_net_domain *domain = gi_net_of(mp->comm)->domains[0];
    if (domain->ops != &gi_ofi_ops || gi_ofi_domain(domain)->connected) {
        mp_skip(mp, "no endpoint of libfabric's for all peers");
        return;
    }
    struct gi_ofi_domain *d = gi_ofi_domain(domain);
    blind = d->domain->ops;
    seeing = *blind;
    seeing.endpoint = see;
    d->domain->ops = &seeing;
    ((struct gi_net_caps *)(uintptr_t)gi_core_caps(gi_net_of(mp->comm)->core, 0))->classes = ~0u;
    told(mp, GIN_TC_DEFAULT, d->pick.info->tx_attr->tclass);
    told(mp, GIN_TC_BEST_EFFORT, FI_TC_BEST_EFFORT);
    told(mp, GIN_TC_LOW_LATENCY, FI_TC_LOW_LATENCY);
    told(mp, GIN_TC_BULK_DATA, FI_TC_BULK_DATA);
    told(mp, GIN_TC_NETWORK_CTRL, FI_TC_NETWORK_CTRL);
    told(mp, gin_tc_dscp(0), fi_tc_dscp_set(0));
    told(mp, gin_tc_dscp(46), fi_tc_dscp_set(46));
    EXPECT_EQ_U64(d->pick.info->tx_attr->tclass, 0);
    d->domain->ops = (struct fi_ops_domain *)(uintptr_t)blind;
}
