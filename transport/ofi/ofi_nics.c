/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices of a provider: name, place on the PCI bus where libfabric tells it, link. Those over
 * IP appear once for each of their addresses; one that is not the loopback's makes them lead
 * elsewhere.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "transport/ofi/ofi.h"
#include "transport/ofi/ofi_int.h"

static bool is_local(const struct fi_info *i)
{
    const struct sockaddr_in6 *in6 = i->src_addr;
    return gi_ofi_is_loopback(i) || (in6 != NULL && i->addr_format == FI_SOCKADDR_IN6 &&
                                     IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr));
}

static struct gi_net_nic nic_of(const struct fi_info *i)
{
    struct gi_net_nic n = {.local = is_local(i)};
    const struct fid_nic *nic = i->nic;
    snprintf(n.name, sizeof(n.name), "%.63s", i->domain_attr->name);
    if (nic != NULL && nic->bus_attr != NULL && nic->bus_attr->bus_type == FI_BUS_PCI) {
        const struct fi_pci_attr *p = &nic->bus_attr->attr.pci;
        snprintf(n.bus, sizeof(n.bus), "%04x:%02x:%02x.%x", p->domain_id, p->bus_id, p->device_id,
                 p->function_id & 7u);
    }
    if (nic != NULL && nic->link_attr != NULL) {
        n.speed = nic->link_attr->speed;
        n.down = nic->link_attr->state == FI_LINK_DOWN;
    }
    return n;
}

static uint32_t place_of(const struct gi_net_nic *nics, uint32_t n, const char *name)
{
    uint32_t i = 0;
    while (i < n && strcmp(nics[i].name, name) != 0)
        i++;
    return i;
}

int gi_ofi_nics(const struct gi_net_config *config, struct gi_net_nic *nics, uint32_t most)
{
    const struct gi_ofi_more *more = config->more;
    struct gi_ofi_want want = {.provider = config->provider,
                               .ranks = config->size,
                               .hmem = config->gpu,
                               .atomics = config->any_atomics,
                               .names = more != NULL ? more->names : NULL};
    struct gi_ofi_tried tried = {.text = ""};
    struct gi_ofi_pick pick;
    size_t at = 0;
    uint32_t n = 0;
    int st = gi_ofi_pick(&want, &at, &tried, &pick);
    if (st != GIN_OK)
        return st;
    struct fi_info *list = gi_ofi_like(&pick);
    for (const struct fi_info *i = list; i != NULL; i = i->next) {
        if (!gi_ofi_is_like(&pick, i) || i->domain_attr->name == NULL)
            continue;
        struct gi_net_nic one = nic_of(i);
        uint32_t k = place_of(nics, n, one.name);
        if (k < n)
            nics[k].local = nics[k].local && one.local;
        else if (n < most)
            nics[n++] = one;
    }
    if (list != NULL)
        fi_freeinfo(list);
    gi_ofi_unpick(&pick);
    return (int)n;
}
