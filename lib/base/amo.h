/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processors of a host do for an atomic operation that is not inlined: for a peer that it
 * reached by load and store, for one whose message came by the network, and for a kernel.
 */
#ifndef GI_BASE_AMO_H
#define GI_BASE_AMO_H

#include <stdint.h>
#include <ginshmem/impl/slow.h>

/*
 * Apply `op` to an aligned word of 4 or 8 bytes; the word before. Sequentially consistent: whoever
 * asked for it elsewhere may have fenced, and what it does for a message follows what it stored for
 * the messages before.
 */
uint64_t gi_amo_apply(void *word, enum gin_i_amo_op op, uint32_t bytes, uint64_t value,
                      uint64_t expected);

#endif
