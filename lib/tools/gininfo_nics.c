/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices of the provider that would be used: how near each is to where this process may run
 * and to the GPUs, and which of them a rank that is alone on this host would take, and why.
 */
#include <string.h>
#include "base/env.h"
#include "nics.h"
#include "lib/tools/gininfo.h"
#include "transport/ofi/ofi.h"

#define SECTION "devices"
#define GPUS    16u

struct seen {
    struct gi_net_nic nic[GI_NET_NICS];
    enum gi_near near[GI_NET_NICS];
    uint32_t n, taken; /* taken: a bit each */
    const char *how;   /* those were */
};

static bool is_named(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; *at != 0; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, name, len) == 0 && (at[len] == 0 || at[len] == ','))
            return true;
    return false;
}

static void take_named(struct seen *s, const char *names, const char *how)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (is_named(names, s->nic[i].name))
            s->taken |= 1u << i;
    s->how = how;
}

/* As net_nics.c does it for a rank without company. */
static void take(struct seen *s, const struct gi_env *env, const char *opened)
{
    uint32_t pick[GI_CORE_RAILS], rails = (uint32_t)env->rails, n;
    if (env->nics[0] != 0) {
        take_named(s, env->nics, "named by GINSHMEM_NICS");
    } else if (env->nic[0] != 0) {
        take_named(s, env->nic, "named by GINSHMEM_NIC");
    } else if (!gi_nics_matter(s->nic, s->n, rails)) {
        take_named(s, opened, "the provider's best");
    } else {
        n = (uint32_t)__builtin_popcount(gi_nics_nearest(s->nic, s->near, s->n));
        if (rails == 0)
            rails = gi_nics_share(n != 0 ? n : 1, 1);
        n = gi_nics_pick(s->nic, s->near, s->n, 0, 1, rails, pick);
        for (uint32_t i = 0; i < n; i++)
            s->taken |= 1u << pick[i];
        s->how = "the nearest, for a rank alone on this host";
    }
}

static const char *why(const struct seen *s, uint32_t i)
{
    if ((s->taken >> i & 1) != 0)
        return s->how;
    return strncmp(s->how, "named", 5) == 0 ? "not named"
           : s->nic[i].down                 ? "its link is down"
           : s->nic[i].local                ? "it leads to this machine alone"
                             : "not needed: GINSHMEM_RAILS or GINSHMEM_NICS ask for more";
}

/* ", GPU 0000:1b:00.0: same PCI switch" for each. */
static void from_gpus(hwloc_topology_t topo, const struct gi_net_nic *nic, char *text, size_t room)
{
    unsigned gpus = 0;
    text[0] = 0;
    for (hwloc_obj_t d = NULL; gpus < GPUS && (d = hwloc_get_next_pcidev(topo, d)) != NULL;) {
        const struct hwloc_pcidev_attr_s *p = &d->attr->pcidev;
        char bus[16];
        enum gi_near near;
        size_t len = strlen(text);
        if (p->class_id >> 8 != 0x03)
            continue;
        snprintf(bus, sizeof(bus), "%04x:%02x:%02x.%x", (unsigned)p->domain & 0xffff, p->bus,
                 p->dev, p->func & 7u);
        gi_nics_measure(topo, bus, hwloc_get_root_obj(topo)->cpuset, nic, 1, &near);
        snprintf(text + len, room - len, ", GPU %s: %s", bus, gi_near_text(near));
        gpus++;
    }
}

void info_nics(const struct gi_env *env, const char *opened)
{
    struct seen s = {.how = ""};
    struct gi_net_config config = {.provider = env->provider, .size = 1};
    int n = gi_ofi_nics(&config, s.nic, GI_NET_NICS);
    hwloc_topology_t topo = gi_nics_topology();
    if (n < 0 && opened == NULL) {
        ; /* why is told of the provider */
    } else if (n < 0 || topo == NULL) {
        info_add(SECTION, "devices", INFO_NO, NULL, "%s",
                 n < 0 ? gin_last_error() : "hwloc has no topology");
    } else {
        s.n = (uint32_t)n;
        gi_nics_sort(s.nic, s.n);
        gi_nics_look("", s.nic, s.n, s.near);
        take(&s, env, opened != NULL ? opened : "");
        for (uint32_t i = 0; i < s.n; i++) {
            char gpus[GPUS * 56];
            from_gpus(topo, &s.nic[i], gpus, sizeof(gpus));
            info_add(SECTION, s.nic[i].name, (s.taken >> i & 1) != 0 ? INFO_YES : INFO_NO,
                     s.nic[i].bus[0] != 0 ? s.nic[i].bus : NULL, "%s; cores: %s%s", why(&s, i),
                     gi_near_text(s.near[i]), gpus);
        }
    }
    if (topo != NULL)
        hwloc_topology_destroy(topo);
}
