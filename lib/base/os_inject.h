/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault injection, for the os_*.c files alone. */
#ifndef GI_BASE_OS_INJECT_H
#define GI_BASE_OS_INJECT_H

#include "base/os.h"

/* 0, or the errno that a test wants this call to fail with. */
int gi_os_injected(enum gi_os_call call);

#endif
