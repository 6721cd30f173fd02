/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of a host's network devices are near a rank, and which it takes (nics.c). */
#ifndef GI_NICS_H
#define GI_NICS_H

#include <hwloc.h>
#include "transport/core.h"

#define GI_NIC_NAME 64u

struct gi_env;

/* Nearest first. Of a rank with a GPU it is the way from that, else from where it may run. */
enum gi_near {
    GI_NEAR_SWITCH,  /* behind the same PCI switch */
    GI_NEAR_BRIDGE,  /* behind the same bridge of the host */
    GI_NEAR_NODE,    /* at the same NUMA node */
    GI_NEAR_PACKAGE, /* at the same package */
    GI_NEAR_FAR,     /* elsewhere */
    GI_NEAR_UNKNOWN  /* nobody knows where it is */
};
const char *gi_near_text(enum gi_near near);

/* The names between the commas of GINSHMEM_NICS, eight at most. How many of them are used, or a
 * status. */
int gi_nics_named(const struct gi_env *env, char name[][GI_NIC_NAME]);

/* Bring devices into the order in which all ranks of a host see them: by place, then by name. */
void gi_nics_sort(struct gi_net_nic *nics, uint32_t n);

/* How near they are to a GPU's place "0000:1b:00.0", or to `cpus` where gpu is "". */
void gi_nics_measure(hwloc_topology_t topo, const char *gpu, hwloc_const_cpuset_t cpus,
                     const struct gi_net_nic *nics, uint32_t n, enum gi_near *near);

/* Whether ranks choose by distance: somebody wants several rails, or all places are known and there
 * is a choice. rails: as GINSHMEM_RAILS, 0: not set. */
bool gi_nics_matter(const struct gi_net_nic *nics, uint32_t n, uint32_t rails);

/* Those that are as near, and as fast, as the nearest one that is of use: bit k for nics[k]. 0:
 * none is of use. */
uint32_t gi_nics_nearest(const struct gi_net_nic *nics, const enum gi_near *near, uint32_t n);

/*
 * The devices of the index-th of `sharers` ranks that have the same nearest ones: `rails` of them,
 * into pick. The ranks spread over the nearest; only who wants more than these gets farther ones,
 * in their order. How many there were.
 */
uint32_t gi_nics_pick(const struct gi_net_nic *nics, const enum gi_near *near, uint32_t n,
                      uint32_t index, uint32_t sharers, uint32_t rails, uint32_t *pick);

/* How many such a rank takes of its own accord. */
uint32_t gi_nics_share(uint32_t nearest, uint32_t sharers);

/* This machine's topology, with devices; NULL: it could not be had. */
hwloc_topology_t gi_nics_topology(void);
/* Measure on this machine, for the calling process. */
void gi_nics_look(const char *gpu, const struct gi_net_nic *nics, uint32_t n, enum gi_near *near);

#endif
