/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for what: gin_dump() and SIGUSR1. */
#ifndef GI_DUMP_H
#define GI_DUMP_H

#include <stdbool.h>

struct gin_comm;

/* Show comm's rank and status in dumps; remove comes before anything of comm is freed. */
void gi_dump_add(const struct gin_comm *comm);
void gi_dump_remove(const struct gin_comm *comm);

/* Take SIGUSR1, if wanted and if it is at its default; and give it back, if it is still ours. */
void gi_dump_install(bool wanted);
void gi_dump_uninstall(void);

#endif
