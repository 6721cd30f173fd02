/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations for one operation (net_lend.c). */
#ifndef GI_NET_LEND_H
#define GI_NET_LEND_H

#include "devcomm.h"
#include "net_up.h"

struct gi_net_lent {
    struct gi_core_region *region; /* to be passed on; NULL: none is needed */
    bool mine;                     /* it was made for this operation: wait for completion */
};

int gi_net_lend(gin_comm_t *comm, void *addr, uint64_t bytes, struct gi_net_lent *l);
/* complete: the network has done with it; or nothing was posted. */
void gi_net_lend_end(struct gi_devcomm *d, struct gi_net_lent *l, bool complete);
void gi_net_lend_close(struct gi_devcomm *d); /* its contexts are closed */

#endif
