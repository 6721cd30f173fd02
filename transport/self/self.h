/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Net ops among ranks of one process: a write is a copy, what arrives waits in the target's lane
 * for its progress. Ordered, complete at the target when complete here. For tests of the core, and
 * beneath the fault wrapper.
 *
 * Ranks that belong together open their domains with the same hub in gi_net_config.more.
 */
#ifndef GI_TRANSPORT_SELF_H
#define GI_TRANSPORT_SELF_H

#include "transport/net.h"

struct gi_self_hub;

extern const struct gi_net_ops gi_self_ops;

int gi_self_hub_open(struct gi_self_hub **hub);
void gi_self_hub_close(struct gi_self_hub *hub); /* its domains are closed */

/* What is done to this rank from now on never arrives, and what it does is lost: it was killed. */
void gi_self_kill(struct gi_self_hub *hub, int rank);

#endif
