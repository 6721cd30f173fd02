/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernels of this rank read of a communicator, in its GPU's memory: the table of windows with
 * addresses that the GPU knows, and the lists of ranks that teams name. It comes up with the first
 * device communicator for kernels; until then, and on ranks without GPU, the calls do nothing.
 *
 * Memory that a kernel may still look at, in a window or team that has just gone, is not freed
 * before the mirror goes.
 */
#ifndef GI_MIRROR_H
#define GI_MIRROR_H

#include "comm.h"

struct gi_mirror;

/* Local. Pins the host heap as far as it goes; where that fails host windows are not in reach. */
int gi_mirror_up(gin_comm_t *comm);
void gi_mirror_down(gin_comm_t *comm);

/* Before an id is used: what may fail for it. GIN_OK, or the recorded failure. */
int gi_mirror_reserve(gin_comm_t *comm, uint32_t id);
/* A window came, went or grew. A GPU that cannot be written fails the communicator. */
void gi_mirror_window(gin_comm_t *comm, uint32_t id);
/* The host heap has grown: pin what is new. */
void gi_mirror_host_grown(gin_comm_t *comm);
/* List `id` of teams is `name` from now on, 0: nobody's. Under the lock of teams. */
int gi_mirror_list(gin_comm_t *comm, uint32_t id, int32_t name, const int32_t *ranks, int32_t n);

uint64_t gi_mirror_windows(const gin_comm_t *comm); /* addresses for struct gin_i_dc */
uint64_t gi_mirror_window_ids(const gin_comm_t *comm);
uint64_t gi_mirror_lists(const gin_comm_t *comm);
uint64_t gi_mirror_entry(const gin_comm_t *comm, uint32_t id);
/* Bytes of every LSA slot, from its start, that kernels reach at its address here; 0: none, and
 * *why says so. */
uint64_t gi_mirror_pinned(const gin_comm_t *comm, const char **why);

#endif
