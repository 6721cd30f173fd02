/* SPDX-License-Identifier: BSD-3-Clause */
/* Process-level facts of init.c that other rooms ask for. */
#ifndef GI_INIT_H
#define GI_INIT_H

#include <stdint.h>

struct gin_comm;

/* Call fn on every live communicator of the process, under the list's lock. */
void gi_comm_each(void (*fn)(struct gin_comm *comm, void *arg), void *arg);

#endif
