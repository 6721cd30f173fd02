/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barrier memory of a device communicator. Every rank owns one slot per barrier index in a
 * symmetric block of its heap; peers store into it, nobody but its owner polls what lies there
 * (barrier_plan.c lays it out, barrier.c runs on it). The private side, epochs above all, lives in
 * struct gi_barriers; code reaches it only after it saw the device communicator's magic, so a
 * fork()ed child never does.
 */
#ifndef GI_BARRIER_H
#define GI_BARRIER_H

#include <stdbool.h>
#include <ginshmem.h>

struct gi_barriers;

/*
 * Bytes of symmetric memory that the barriers of `reqs` take in every rank's heap; 0: none. A
 * function of the communicator's size and the requirements' numbers, so the same on all ranks.
 * flat: none is a tree, since kernels take part, which do not count in host memory.
 */
uint64_t gi_barriers_bytes(const gin_comm_t *comm, const gin_devcomm_reqs_t *reqs, bool flat);

/*
 * Make the private side over a block at heap offset `off` (16-byte aligned or better; 64 is
 * fastest), zeroed on every rank before any rank goes on. Local. Fills the handles of
 * reqs->team_barriers. GIN_EINVAL names a team that is no team of mine, GIN_ENOMEM.
 */
int gi_barriers_open(gin_comm_t *comm, gin_devcomm_reqs_t *reqs, uint64_t off, bool flat,
                     struct gi_barriers **barriers);
void gi_barriers_close(struct gi_barriers *barriers); /* NULL is fine */

/* Tests only, before any device communicator is made and alike on all ranks: teams above `size`
 * ranks use the tree. 0 gives the default back. */
void gi_barriers_set_flat_max(uint32_t size);

#endif
