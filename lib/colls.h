/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What device communicators hold for collectives: declared here, for those who make them; the room
 * is lib/coll. Every rank owns a workspace per index in a symmetric block of its heap.
 */
#ifndef GI_COLLS_H
#define GI_COLLS_H

#include <stdbool.h>

#include <ginshmem.h>
#include <ginshmem/impl/state.h>

struct gi_colls;
struct gi_devcomm;

/* Bytes of symmetric memory that they take in every rank's heap; 0: none were asked for. The same
 * on all ranks that were asked for the same, with the network up where there will be one. */
uint64_t gi_colls_bytes(const gin_comm_t *comm, const gin_devcomm_reqs_t *reqs);
/* GIN_ERANGE, recorded: more than the network has names for among so many ranks. */
int gi_colls_fit(const gin_comm_t *comm, const gin_devcomm_reqs_t *reqs);
/* Ask for the least scratch; false: it was no more. */
bool gi_colls_shrink(const gin_comm_t *comm, gin_devcomm_reqs_t *reqs);
/* Bytes of a message, in whole lines. */
uint64_t gi_colls_slot(const gin_comm_t *comm, const gin_devcomm_reqs_t *reqs);
/* What the environment asks for; ranks that differ would not understand each other. */
bool gi_colls_in_rank_order(const gin_comm_t *comm);
uint64_t gi_colls_choice(const gin_comm_t *comm); /* a hash */
/* Whether it can be. */
int gi_colls_check(const gin_comm_t *comm);
/* The private side over a block at heap offset `off` (64-byte aligned), zeroed on every rank before
 * any rank goes on. Local. */
int gi_colls_open(struct gi_devcomm *d, uint64_t off, struct gi_colls **colls);
void gi_colls_close(struct gi_colls *colls); /* NULL is fine */

/* Cells of the context that carries them over the network, from the start of the block: each is a
 * struct gin_i_cells; 0: none. */
uint32_t gi_colls_cells(const gin_comm_t *comm, const gin_devcomm_reqs_t *reqs);

/* How a call of so many bytes goes on this team, in words, and its name; "none" where it is
 * refused; NULL behind the last kind, and where there are no collectives. While no call is under
 * way. */
const char *gi_colls_way(const gin_t *g, gin_team_t team, unsigned kind, uint64_t bytes,
                         const char **call);

/* Add what was done so far to *s. */
void gi_colls_count(const struct gi_colls *colls, gin_stats_t *s);

#endif
