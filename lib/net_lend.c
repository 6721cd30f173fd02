/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local memory that no registration covers, for networks that want one: registered for one
 * operation, which the call therefore waits for. Where that wait ends early (a timeout, a failure)
 * the network may still be reading or writing it; then the registration lives as long as the device
 * communicator's contexts.
 */
#include <stdlib.h>

#include "net_lend.h"

struct gi_net_left {
    struct gi_core_region *region;
    struct gi_net_left *next;
};

int gi_net_lend(gin_comm_t *comm, void *addr, uint64_t bytes, struct gi_net_lent *l)
{
    *l = (struct gi_net_lent){.region = NULL};
    if (bytes == 0 || !comm->net->needs_region)
        return GIN_OK;
    l->region = gi_net_region_of(comm, addr, bytes);
    if (l->region != NULL)
        return GIN_OK;
    const struct gi_core_region_config c = {
        .memory = {.kind = GI_NET_HOST, .addr = addr, .bytes = bytes, .fd = -1}};
    int st = gi_core_local_open(comm->net->core, &c, &l->region);
    l->mine = st == GIN_OK;
    return st;
}

void gi_net_lend_end(struct gi_devcomm *d, struct gi_net_lent *l, bool complete)
{
    if (!l->mine)
        return;
    struct gi_net_left *left = complete ? NULL : malloc(sizeof(*left));
    if (complete) {
        gi_core_region_close(d->comm->net->core, l->region);
    } else if (left != NULL) { /* else it is lost, which is better than taken away */
        left->region = l->region;
        left->next = __atomic_load_n(&d->net_left, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&d->net_left, &left->next, left, true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
            continue;
    }
    l->mine = false;
}

void gi_net_lend_close(struct gi_devcomm *d)
{
    while (d->net_left != NULL) {
        struct gi_net_left *left = d->net_left;
        d->net_left = left->next;
        gi_core_region_close(d->comm->net->core, left->region);
        free(left);
    }
}
