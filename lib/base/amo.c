/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations by the host's processors, by name and width. */
#include "base/amo.h"

#define APPLY(type)                                                                               \
    static uint64_t apply_##type(type *at, enum gin_i_amo_op op, type value, type expected)       \
    {                                                                                             \
        switch (op) {                                                                             \
        case GIN_I_AMO_SET:                                                                       \
        case GIN_I_AMO_SWAP: return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);             \
        case GIN_I_AMO_ADD:                                                                       \
        case GIN_I_AMO_FETCH_ADD: return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);         \
        case GIN_I_AMO_AND:                                                                       \
        case GIN_I_AMO_FETCH_AND: return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);         \
        case GIN_I_AMO_OR:                                                                        \
        case GIN_I_AMO_FETCH_OR: return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);           \
        case GIN_I_AMO_XOR:                                                                       \
        case GIN_I_AMO_FETCH_XOR: return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST);         \
        case GIN_I_AMO_FETCH: return __atomic_load_n(at, __ATOMIC_SEQ_CST);                       \
        case GIN_I_AMO_CAS: break;                                                                \
        }                                                                                         \
        __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        return expected;                                                                          \
    }
APPLY(uint32_t)
APPLY(uint64_t)

uint64_t gi_amo_apply(void *word, enum gin_i_amo_op op, uint32_t bytes, uint64_t value,
                      uint64_t expected)
{
    return bytes == 8 ? apply_uint64_t(word, op, value, expected)
                      : apply_uint32_t(word, op, (uint32_t)value, (uint32_t)expected);
}
