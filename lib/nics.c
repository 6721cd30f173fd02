/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Near and far network devices. The distance between two devices is the kind of the lowest thing
 * that both hang on: a PCI switch, a bridge of the host, then the NUMA node or package next to
 * both. A device is found in hwloc's tree by its place on the bus, or else by its name. What cannot
 * be found is taken last.
 */
#include "nics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/log.h"

#define OWN_MOST 4u /* rails of a rank that does not say how many it wants */

const char *gi_near_text(enum gi_near near)
{
    switch (near) {
    case GI_NEAR_SWITCH: return "same PCI switch";
    case GI_NEAR_BRIDGE: return "same host bridge";
    case GI_NEAR_NODE: return "same NUMA node";
    case GI_NEAR_PACKAGE: return "same package";
    case GI_NEAR_FAR: return "elsewhere in the machine";
    default: return "place not known";
    }
}

/* ---- the order of all ranks of a host ---- */

static int compare(const void *a, const void *b)
{
    const struct gi_net_nic *x = a, *y = b;
    if ((x->bus[0] == 0) != (y->bus[0] == 0))
        return x->bus[0] == 0 ? 1 : -1; /* those without a place are last */
    int by_bus = strcmp(x->bus, y->bus);
    return by_bus != 0 ? by_bus : strcmp(x->name, y->name);
}

void gi_nics_sort(struct gi_net_nic *nics, uint32_t n)
{
    qsort(nics, n, sizeof(*nics), compare);
}

/* ---- distance ---- */

static hwloc_obj_t at_bus(hwloc_topology_t topo, const char *bus)
{
    unsigned domain, b, device, function;
    if (sscanf(bus, "%x:%x:%x.%x", &domain, &b, &device, &function) != 4)
        return NULL;
    return hwloc_get_pcidev_by_busid(topo, domain, b, device, function);
}

static hwloc_obj_t find(hwloc_topology_t topo, const struct gi_net_nic *nic)
{
    hwloc_obj_t o = nic->bus[0] != 0 ? at_bus(topo, nic->bus) : NULL;
    for (hwloc_obj_t d = NULL; o == NULL && (d = hwloc_get_next_osdev(topo, d)) != NULL;)
        if (d->name != NULL && strcmp(d->name, nic->name) == 0)
            o = d;
    return o;
}

static bool is_above(hwloc_obj_t above, hwloc_obj_t o)
{
    while (o != NULL && o != above)
        o = o->parent;
    return o != NULL;
}

/* The bridge that both hang on, or NULL. */
static hwloc_obj_t common_bridge(hwloc_obj_t a, hwloc_obj_t b)
{
    while (a != NULL && (a->type != HWLOC_OBJ_BRIDGE || !is_above(a, b)))
        a = a->parent;
    return a;
}

/* Does one thing of that type hold both sets? */
static bool share(hwloc_topology_t topo, hwloc_obj_type_t type, hwloc_const_cpuset_t a,
                  hwloc_const_cpuset_t b)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topo, type, o)) != NULL;)
        if (o->cpuset != NULL && hwloc_bitmap_isincluded(a, o->cpuset) &&
            hwloc_bitmap_isincluded(b, o->cpuset))
            return true;
    return false;
}

static enum gi_near between(hwloc_topology_t topo, hwloc_const_cpuset_t me,
                            hwloc_const_cpuset_t nic)
{
    hwloc_const_cpuset_t all = hwloc_get_root_obj(topo)->cpuset;
    if (share(topo, HWLOC_OBJ_NUMANODE, me, nic))
        return GI_NEAR_NODE;
    if (share(topo, HWLOC_OBJ_PACKAGE, me, nic))
        return GI_NEAR_PACKAGE;
    /* Who may run anywhere is as far from all of them. */
    return hwloc_bitmap_isequal(me, all) ? GI_NEAR_PACKAGE : GI_NEAR_FAR;
}

static enum gi_near distance(hwloc_topology_t topo, hwloc_obj_t gpu, hwloc_const_cpuset_t cpus,
                             hwloc_obj_t nic)
{
    hwloc_obj_t bridge = gpu != NULL ? common_bridge(gpu, nic) : NULL;
    if (bridge != NULL)
        return bridge->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? GI_NEAR_SWITCH
                                                                          : GI_NEAR_BRIDGE;
    hwloc_obj_t at = hwloc_get_non_io_ancestor_obj(topo, nic);
    hwloc_obj_t from = gpu != NULL ? hwloc_get_non_io_ancestor_obj(topo, gpu) : NULL;
    if (at == NULL || at->cpuset == NULL)
        return GI_NEAR_UNKNOWN;
    return between(topo, from != NULL && from->cpuset != NULL ? from->cpuset : cpus, at->cpuset);
}

void gi_nics_measure(hwloc_topology_t topo, const char *gpu, hwloc_const_cpuset_t cpus,
                     const struct gi_net_nic *nics, uint32_t n, enum gi_near *near)
{
    hwloc_obj_t at = gpu[0] != 0 ? at_bus(topo, gpu) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        hwloc_obj_t nic = find(topo, &nics[i]);
        near[i] = nic != NULL ? distance(topo, at, cpus, nic) : GI_NEAR_UNKNOWN;
    }
}

/* ---- choice ---- */

static bool is_of_use(const struct gi_net_nic *nic)
{
    return !nic->down && !nic->local;
}

/* Nearer, or as near and faster. */
static bool is_better(const struct gi_net_nic *nics, const enum gi_near *near, uint32_t a,
                      uint32_t b)
{
    return near[a] != near[b] ? near[a] < near[b] : nics[a].speed > nics[b].speed;
}

static uint32_t best_of(const struct gi_net_nic *nics, const enum gi_near *near, uint32_t n,
                        uint32_t taken)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if ((taken >> i & 1) == 0 && is_of_use(&nics[i]) &&
            (best == n || is_better(nics, near, i, best)))
            best = i;
    return best;
}

bool gi_nics_matter(const struct gi_net_nic *nics, uint32_t n, uint32_t rails)
{
    uint32_t placed = 0;
    for (uint32_t i = 0; i < n; i++)
        placed += nics[i].bus[0] != 0;
    return rails >= 2 || (placed == n && n >= 2);
}

uint32_t gi_nics_nearest(const struct gi_net_nic *nics, const enum gi_near *near, uint32_t n)
{
    uint32_t best = best_of(nics, near, n, 0), mask = 0;
    for (uint32_t i = 0; best < n && i < n; i++)
        if (is_of_use(&nics[i]) && near[i] == near[best] && nics[i].speed == nics[best].speed)
            mask |= 1u << i;
    return mask;
}

uint32_t gi_nics_pick(const struct gi_net_nic *nics, const enum gi_near *near, uint32_t n,
                      uint32_t index, uint32_t sharers, uint32_t rails, uint32_t *pick)
{
    uint32_t mask = gi_nics_nearest(nics, near, n), one[GI_NET_NICS], m = 0, k = 0, taken = 0, i;
    for (i = 0; i < n; i++)
        if ((mask >> i & 1) != 0)
            one[m++] = i;
    for (; k < rails && k < m; k++) {
        pick[k] = one[(index * m / sharers + k) % m];
        taken |= 1u << pick[k];
    }
    for (; k < rails && (i = best_of(nics, near, n, taken)) < n; k++) {
        pick[k] = i;
        taken |= 1u << i;
    }
    return k;
}

uint32_t gi_nics_share(uint32_t nearest, uint32_t sharers)
{
    uint32_t each = nearest / sharers;
    return each < 1 ? 1 : each < OWN_MOST ? each : OWN_MOST;
}

/* ---- this machine ---- */

hwloc_topology_t gi_nics_topology(void)
{
    hwloc_topology_t topo;
    if (hwloc_topology_init(&topo) != 0)
        return NULL;
    hwloc_topology_set_io_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topo) == 0)
        return topo;
    hwloc_topology_destroy(topo);
    return NULL;
}

void gi_nics_look(const char *gpu, const struct gi_net_nic *nics, uint32_t n, enum gi_near *near)
{
    hwloc_topology_t topo = gi_nics_topology();
    hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
    if (topo == NULL || cpus == NULL) {
        for (uint32_t i = 0; i < n; i++)
            near[i] = GI_NEAR_UNKNOWN;
    } else {
        if (hwloc_get_cpubind(topo, cpus, HWLOC_CPUBIND_PROCESS) != 0)
            hwloc_bitmap_copy(cpus, hwloc_get_root_obj(topo)->cpuset);
        gi_nics_measure(topo, gpu, cpus, nics, n, near);
    }
    hwloc_bitmap_free(cpus);
    if (topo != NULL)
        hwloc_topology_destroy(topo);
}

int gi_nics_named(const struct gi_env *env, char name[][GI_NIC_NAME])
{
    const char *at = env->nics;
    int n = 0;
    if (env->nic[0] != 0)
        return gi_fail(GIN_EINVAL, "GINSHMEM_NIC=%s and GINSHMEM_NICS=%s: set one of them",
                       env->nic, env->nics);
    for (;; at++) {
        size_t len = strcspn(at, ",");
        if (len == 0 || len >= GI_NIC_NAME)
            return gi_fail(GIN_EINVAL, "GINSHMEM_NICS=%s: names of devices, commas between them",
                           env->nics);
        if (n == (int)GI_CORE_RAILS)
            return gi_fail(GIN_EINVAL, "GINSHMEM_NICS=%s: at most %u devices", env->nics,
                           GI_CORE_RAILS);
        snprintf(name[n], GI_NIC_NAME, "%.*s", (int)len, at);
        for (int i = 0; i < n; i++)
            if (strcmp(name[i], name[n]) == 0)
                return gi_fail(GIN_EINVAL, "GINSHMEM_NICS=%s: %s is there twice", env->nics,
                               name[n]);
        n++;
        at += len;
        if (*at == 0)
            break;
    }
    if (env->rails > (uint64_t)n)
        return gi_fail(GIN_EINVAL, "GINSHMEM_RAILS=%u, but GINSHMEM_NICS=%s names %d devices",
                       (unsigned)env->rails, env->nics, n);
    return env->rails != 0 ? (int)env->rails : n;
}
