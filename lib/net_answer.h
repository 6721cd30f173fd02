/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The old value of an atomic, which a thread waits for. The thread's own, to be used again; one
 * that the thread gave up on stays with the core for good.
 */
#ifndef GI_NET_ANSWER_H
#define GI_NET_ANSWER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "devcomm.h"
#include "transport/core.h"

struct gi_net_answer {
    struct gi_core_notice notice; /* sets the status */
    atomic_int status;            /* 1: not yet */
    uint64_t old;
    struct gi_net_answer *next; /* of those that were given up */
};

/* This thread's, as not yet answered. NULL: no memory for it. */
struct gi_net_answer *gi_net_answer_take(void);

/* Until it is answered; else recorded why it is not, and the thread takes another one. */
int gi_net_answer_await(const gin_t *g, int world, struct gi_net_answer *a, const char *call);

static inline bool gi_net_is_answered(const struct gi_net_answer *a)
{
    return atomic_load_explicit(&a->status, memory_order_acquire) != 1;
}

#endif
