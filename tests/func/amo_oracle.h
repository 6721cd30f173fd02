/* SPDX-License-Identifier: BSD-3-Clause */
/* Every atomic operation once more, one after another and in the plainest way. */
#ifndef GINSHMEM_TESTS_AMO_ORACLE_H
#define GINSHMEM_TESTS_AMO_ORACLE_H

#include <stdint.h>

enum amo { SET, ADD, AND, OR, XOR, FETCH, FETCH_ADD, FETCH_AND, FETCH_OR, FETCH_XOR, SWAP, CAS };
#define AMOS 12

static inline uint64_t amo_after(enum amo op, uint64_t word, uint64_t value, uint64_t expected)
{
    switch (op) {
    case SET:
    case SWAP: return value;
    case ADD:
    case FETCH_ADD: return word + value;
    case AND:
    case FETCH_AND: return word & value;
    case OR:
    case FETCH_OR: return word | value;
    case XOR:
    case FETCH_XOR: return word ^ value;
    case CAS: return word == expected ? value : word;
    case FETCH: break;
    }
    return word;
}

#endif
