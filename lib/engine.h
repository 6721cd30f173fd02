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
 * Its kernels have ended: complete what they left in its rings and serve it no longer. The last one
 * ends the thread. Nothing to do for one that is not served.
 */
void gi_engine_remove(struct gi_devcomm *d);

#endif
