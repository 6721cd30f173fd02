/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault injection and other things shared by the os_*.c files alone. */
#ifndef GI_BASE_OS_INJECT_H
#define GI_BASE_OS_INJECT_H

#include "base/os.h"

/* 0, or the errno that a test wants this call to fail with. */
int gi_os_injected(enum gi_os_call call);

/*
 * Hand the text of `file` in this process' control group and in all groups above it to `look`, with
 * the group's folder. controller "" is version 2. In a container the path may be the host's, where
 * only the top exists; missing files are passed over.
 */
void gi_os_cgroup_walk(const char *controller, const char *file,
                       void (*look)(const char *dir, const char *text, void *arg), void *arg);

#endif
