/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time in nanoseconds and deadlines. UINT64_MAX is "never". */
#ifndef GI_BASE_CLOCK_H
#define GI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define GI_NEVER UINT64_MAX

static inline uint64_t gi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Deadline that lies `ns` ahead; GI_NEVER stays never and a far one saturates. */
static inline uint64_t gi_deadline_in(uint64_t ns)
{
    uint64_t now = gi_now_ns();
    return ns > GI_NEVER - now ? GI_NEVER : now + ns;
}

#endif
