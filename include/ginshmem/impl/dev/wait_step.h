/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all of a kernel's waits do while they wait: look at the error words now and then, since
 * those lie across the bus, and at the clock when there is a deadline. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_WAIT_STEP_H
#define GINSHMEM_IMPL_DEV_WAIT_STEP_H

#include <ginshmem/impl/dev/path.h>

#define GIN_I_LOOK_EVERY 1024u /* polls between two looks at an error word */
#define GIN_I_TIME_EVERY 32u   /* and at the clock */

/* An error word: status in the low half, the rank it is about in the high half. */
GIN_DEV int gin_i_error_of(uint64_t word)
{
    return (int)(uint32_t)word;
}

struct gin_i_pause {
    const uint64_t *error, *also; /* words to look at, or NULL */
    uint64_t start, timeout_ns;   /* 0: none */
    uint32_t polls;
};

GIN_DEV struct gin_i_pause gin_i_pause_begin(const uint64_t *error, const uint64_t *also,
                                             uint64_t timeout_ns)
{
    struct gin_i_pause p = {error, also, timeout_ns != 0 ? gin_i_clock_ns() : 0, timeout_ns, 0};
    return p;
}

/* After `polls` (a power of two, up to 32) polls in vain. A failure ends the wait, unless what is
 * waited for has come meanwhile: the caller looks once more. */
GIN_DEV int gin_i_pause_step(struct gin_i_pause *p, uint32_t polls)
{
    p->polls += polls;
    if (p->timeout_ns != 0 && p->polls % GIN_I_TIME_EVERY == 0 &&
        gin_i_clock_ns() - p->start >= p->timeout_ns)
        return GIN_ETIMEDOUT;
    if (GIN_LIKELY(p->polls % GIN_I_LOOK_EVERY != 0))
        return GIN_OK;
    int st = p->error != NULL ? gin_i_error_of(gin_i_ld_relaxed_sys(p->error)) : GIN_OK;
    if (st == GIN_OK && p->also != NULL)
        st = gin_i_error_of(gin_i_ld_relaxed_sys(p->also));
    return st;
}

#endif
