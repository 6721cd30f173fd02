/* SPDX-License-Identifier: BSD-3-Clause */
/* Every public call, made where each must be refused with GIN_ESTATE or give a neutral value. */
#ifndef GINSHMEM_TESTS_REFUSED_CALLS_H
#define GINSHMEM_TESTS_REFUSED_CALLS_H

#include "tests/mp.h"

/* Each that takes a communicator, which is NULL, finalized, or the parent's. */
void refused_calls(gin_comm_t *comm);
/* Each operation on a context that is bound to nothing, or to the parent's memory. `at` names a
 * word, which stays as it is. */
void refused_operations(const gin_t *g, gin_at_t at);
/* The call is refused so. */
#define STATE(call)                                                                \
    do {                                                                           \
        gin_clear_error();                                                         \
        int st_ = (call);                                                          \
        if (st_ != GIN_ESTATE || gin_last_error()[0] == 0)                         \
            FAIL("%s: %s, \"%s\"", #call, gin_status_name(st_), gin_last_error()); \
    } while (0)

#define VALUE(call, neutral)                                                                \
    do {                                                                                    \
        gin_clear_error();                                                                  \
        if ((call) != (neutral) || gin_last_status() != GIN_ESTATE)                         \
            FAIL("%s: not %s, or %s", #call, #neutral, gin_status_name(gin_last_status())); \
    } while (0)

#endif
