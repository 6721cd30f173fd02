/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contexts of a device communicator on the network: which signals each has and who adds to
 * them, and how all ranks get them or none does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "colls.h"
#include "engine_net.h"
#include "net_lend.h"
#include "net_ops.h"

bool gi_net_is_beside(const struct gi_devcomm *d, int world)
{
    const gin_comm_t *comm = d->comm;
    const int32_t *lsa_of = d->lsa_of != NULL ? d->lsa_of : comm->lsa_of;
    return world != comm->rank && comm->shm->cma[world] && !gi_is_elsewhere(comm, world) &&
           lsa_of[world] < 0;
}

/* n signals at a heap offset. */
static void fill_cells(const struct gi_devcomm *d, struct gi_core_ctx_config *config, uint64_t off,
                       uint32_t n)
{
    char *heap = (char *)gi_control(d->comm, d->comm->shm->lsa_rank) + GI_CONTROL;
    struct gin_i_cells *cells = (struct gin_i_cells *)(void *)(heap + off);
    if (n == 0)
        return;
    /* LSA peers raise the same cell, so whoever adds for the network adds atomically, too */
    config->cells = (struct gi_core_cells){
        .first = &cells->cpu, .stride = sizeof(*cells), .n = n, .shared = true};
    if (off + n * sizeof(*cells) > d->comm->net->heap.covered)
        return; /* on all ranks */
    config->native_window = gin_i_desc_window(gin_heap_window(d->comm, GIN_KIND_HOST));
    config->native_off = off + offsetof(struct gin_i_cells, net);
    config->native_stride = sizeof(*cells);
}

static void fill_config(struct gi_devcomm *d, uint32_t c, struct gi_core_ctx_config *config)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    *config = (struct gi_core_ctx_config){
        .home = c, .shared = true, .traffic = (uint32_t)(r->traffic_class + 1)};
    if (c == r->contexts) { /* the barriers' has the collectives' signals alone */
        fill_cells(d, config, d->colls_off, gi_colls_cells(d->comm, r));
        return;
    }
    config->epochs = r->strategy == GIN_STRATEGY_EPOCH && r->strong ? UINT32_MAX : 0;
    if (d->rings != NULL)
        config->intake = gi_net_ring_intake(&d->rings[c]);
    fill_cells(d, config, d->off + (uint64_t)c * r->signals * sizeof(struct gin_i_cells),
               r->signals);
}

/* A rank without descriptors cannot take peers' connections, and nobody tells it: libfabric does
 * not, and the peers only see that it does not answer. */
static void look_at_files(const struct gi_devcomm *d, uint32_t contexts)
{
    const gin_comm_t *comm = d->comm;
    uint64_t limit, left, far = 0;
    if (!gi_core_caps(comm->net->core, 0)->fd_each)
        return;
    left = gi_os_files_left(&limit);
    for (int r = 0; r < comm->size; r++)
        far += r != comm->rank && (d->lsa_of != NULL || comm->lsa_of[r] < 0);
    contexts *= gi_core_lanes_each(comm->net->core);
    if (left < far * contexts)
        gi_warn("net",
                "%llu of %llu descriptors are left, and %u lanes with %llu ranks may take %llu: "
                "whoever cannot connect takes this rank for lost; raise ulimit -n",
                (unsigned long long)left, (unsigned long long)limit, contexts,
                (unsigned long long)far, (unsigned long long)(far * contexts));
}

/* All ranks have the same provider, and get the same answer. */
static int check_traffic(const struct gi_devcomm *d)
{
    static const char *const names[] = {"BEST_EFFORT", "LOW_LATENCY", "DEDICATED_ACCESS",
                                        "BULK_DATA",   "SCAVENGER",   "NETWORK_CTRL"};
    const struct gi_net_caps *caps = gi_core_caps(d->comm->net->core, 0);
    int tc = d->reqs.traffic_class, dscp = tc >= GIN_TC_DSCP;
    char had[128] = "";
    if (tc < 0 || (caps->classes & (dscp ? GI_NET_TC_DSCP : 1u << tc)) != 0)
        return GIN_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((caps->classes & 1u << i) != 0)
            snprintf(had + strlen(had), sizeof(had) - strlen(had), " GIN_TC_%s", names[i]);
    return gi_fail(GIN_ENOTSUP,
                   "gin_devcomm_create: traffic_class %s%s: provider %s takes%s; GIN_TC_DEFAULT "
                   "leaves it to the provider",
                   dscp ? "by code point (DSCP)" : "GIN_TC_", dscp ? "" : names[tc], caps->name,
                   had[0] != 0 ? had : " none");
}

/* Those of the rail team alone, or none: what cannot be used is not connected. The barriers'
 * context has all. */
static int choose_peers(const struct gi_devcomm *d, uint8_t **peers)
{
    *peers = calloc((size_t)d->comm->size, 1);
    if (*peers == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %d peers", d->comm->size);
    for (int r = 0; r < d->comm->size; r++)
        (*peers)[r] = r == d->comm->rank || gi_net_concerns(d, r);
    return GIN_OK;
}

int gi_net_contexts_open(struct gi_devcomm *d)
{
    struct gi_net *net = d->comm->net;
    uint32_t n = d->reqs.contexts + 1;
    if (net == NULL)
        return GIN_OK;
    int st = check_traffic(d);
    if (st != GIN_OK)
        return st;
    struct gi_core_ctx_config *config = calloc(n, sizeof(*config));
    d->net = calloc(n, sizeof(*d->net));
    if (config == NULL || d->net == NULL)
        st = gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u contexts", n);
    uint8_t *peers = NULL;
    if (st == GIN_OK && d->reqs.connection != GIN_CONNECT_FULL)
        st = choose_peers(d, &peers);
    if (st == GIN_OK)
        st = gi_net_rings_open(d);
    st = gi_agree_on(d->comm, GI_AGREE_DEVCOMM, n, 0, 0, st);
    for (uint32_t c = 0; st == GIN_OK && c < n; c++) {
        fill_config(d, c, &config[c]);
        config[c].peers = c < d->reqs.contexts ? peers : NULL;
    }
    if (st == GIN_OK) {
        st = gi_core_ctx_open(net->core, n, config, d->net);
        int all = gi_agree_on(d->comm, GI_AGREE_DEVCOMM, n, 0, 0, st);
        if (st == GIN_OK && all != GIN_OK)
            gi_net_contexts_close(d);
        st = all;
    }
    free(peers);
    free(config);
    if (st == GIN_OK) {
        look_at_files(d, n);
        for (int r = 0; r < d->comm->size; r++)
            d->net_beside = d->net_beside || gi_net_is_beside(d, r);
        gi_net_rings_bind(d);
        return GIN_OK;
    }
    free(d->net);
    d->net = NULL;
    gi_net_rings_close(d);
    return st;
}

void gi_net_contexts_close(struct gi_devcomm *d)
{
    for (uint32_t c = 0; d->net != NULL && c <= d->reqs.contexts; c++)
        gi_core_ctx_close(d->net[c]);
    gi_net_lend_close(d);
    free(d->net);
    d->net = NULL;
    gi_net_rings_close(d);
}
