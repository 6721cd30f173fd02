/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of host threads that take the network: the calling thread posts them itself, waits
 * for room if there is none, and drives the network while it waits for completion.
 */
#ifndef GI_NET_OPS_H
#define GI_NET_OPS_H

#include "devcomm.h"
#include "net_up.h"

/* The contexts of a device communicator on the network, one more than it has: the last one is the
 * barriers'. Collective; all ranks or none. Nothing to do without a network. */
int gi_net_contexts_open(struct gi_devcomm *d);
/* net_meet.c: have all pairs connected, where that must not wait. Collective. */
int gi_net_meet(struct gi_devcomm *d);
/* May this rank and another have to do with each other by the network? */
bool gi_net_concerns(const struct gi_devcomm *d, int world);
void gi_net_contexts_close(struct gi_devcomm *d); /* behind a barrier */

/* Fill in what this rank has sent, by the net_ fields. */
void gi_net_count(gin_comm_t *comm, gin_stats_t *s);

/* Is a rank reached by process_vm calls, too, which nothing on a context orders? */
bool gi_net_is_beside(const struct gi_devcomm *d, int world);

/* Does reqs.connection reach that far? */
bool gi_net_reaches(const struct gi_devcomm *d, int world);
/* May operations of this device communicator to a rank take the network? Else recorded why not. */
int gi_net_allowed(const struct gi_devcomm *d, int world, const char *call);

/* Each does the whole operation, or records why not. Of put and get the caller has asked
 * gi_net_allowed(). */
int gi_net_put(const gin_t *g, int world, struct gi_core_put *p, const char *call);
int gi_net_get(const gin_t *g, int world, struct gi_core_get *p, const char *call);
int gi_net_amo(const gin_t *g, int world, struct gi_core_amo *a, const char *call);

/* Flush, fence or quiet of g's context, or of all; of one rank, or of all with world -1. */
int gi_net_complete(const gin_t *g, int world, enum gin_i_flush_what what,
                    const gin_wait_opt_t *opt, const char *call);
/* What g's context has on its way by the network to an LSA rank (-1: to each) is at its target, so
 * that loads and stores may follow: before strong signals and fences. */
int gi_net_settle_near(const gin_t *g, int world, const char *call);
/* A point in the stream to one rank, and whether everything before it is complete here. */
uint64_t gi_net_mark(const gin_t *g, int world);
int gi_net_wait_mark(const gin_t *g, int world, uint64_t mark, const gin_wait_opt_t *opt,
                     const char *call);
/* Everything on all device communicators is complete at its targets. */
int gi_net_quiet_all(gin_comm_t *comm, const char *call);
/* The same, but a rank that refused an operation has nothing under way any more and is no failure:
 * the context tells of it. */
int gi_net_still(gin_comm_t *comm, const char *call);

/* Of a barrier: raise a word of the heap at a rank by one. GIN_EAGAIN: not now. */
int gi_net_tick(struct gi_devcomm *d, int world, uint64_t heap_off);

#endif
