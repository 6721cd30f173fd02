/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast addresses of a device communicator: whether they are wanted, and having them. */
#ifndef GI_MULTIMEM_H
#define GI_MULTIMEM_H

#include "devcomm.h"
#include "transport/cuda/multimem.h"

/* What switches multicast off here ("GINSHMEM_DISABLE_MULTIMEM=1"), or NULL. */
const char *gi_multimem_off(const gin_comm_t *comm);
/*
 * Collective, as d->reqs.multimem asks, with the symmetric blocks taken: fills d->multimem. Where
 * it is only wished for, d->multimem stays NULL if it cannot be had.
 */
int gi_multimem_open(struct gi_devcomm *d);
void gi_multimem_close(struct gi_devcomm *d);

#endif
