/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that serves this rank's kernels: it takes descriptors out of their rings, moves what
 * kernels cannot reach or the copy engine moves faster, and watches over the communicator on their
 * behalf. There from the first device communicator for kernels to the last.
 */
#ifndef GI_ENGINE_H
#define GI_ENGINE_H

#include "comm.h"

struct gi_devcomm;

/* Serve a device communicator whose kernel side is complete; the first one starts the thread. */
int gi_engine_add(struct gi_devcomm *d);
/*
 * What kernels left in its rings is complete, or their contexts dead; with NULL, of all that are
 * served here. Engines that this rank's words ask, and that ask for this rank's, must run
 * meanwhile. Nothing to do for one that is not served.
 */
void gi_engine_drain(gin_comm_t *comm, struct gi_devcomm *d);
/* Its kernels have ended, its rings are drained: serve it no longer. The last one ends the thread.
 * Nothing to do for one that is not served. */
void gi_engine_remove(struct gi_devcomm *d);
/* What it has done so far. Nothing to tell without an engine. */
void gi_engine_count(gin_comm_t *comm, gin_stats_t *s);
/* Between the two no descriptor is looked at. Nothing to do without an engine. */
void gi_engine_hold(gin_comm_t *comm);
void gi_engine_go_on(gin_comm_t *comm);

#endif
