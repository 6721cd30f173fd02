/* SPDX-License-Identifier: BSD-3-Clause */
/* Unique ids; gin_unique_id() is this with an environment. */
#ifndef GI_BOOT_BOOT_ID_H
#define GI_BOOT_BOOT_ID_H

#include <ginshmem/init.h>
#include "base/env.h"

/* Make an id and listen for its job in this process, which must hold its rank 0. */
int gi_boot_unique_id(const struct gi_env *env, struct gin_unique_id *id);

#endif
