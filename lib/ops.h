/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that operations on windows share. */
#ifndef GI_OPS_H
#define GI_OPS_H

#include "comm.h"

/*
 * The live window of a place whose `bytes` bytes lie inside it; update: peers shall be allowed to
 * change it. A negative status with a text that begins with `call` and `place`, such as "dst".
 */
int gi_op_window(gin_comm_t *comm, const char *call, const char *place, gin_at_t at, uint64_t bytes,
                 int update, const struct gin_i_window **win);

/* With GINSHMEM_CHECK=1 a place in the heap must lie in one live block, else GIN_ERANGE. */
int gi_op_live(const gin_t *g, const char *call, const struct gin_i_window *w, uint64_t off,
               uint64_t bytes);

/* Apply an atomic operation to an aligned word of 4 or 8 bytes; the word before. */
uint64_t gi_amo_apply(void *word, enum gin_i_amo_op op, uint32_t bytes, uint64_t value,
                      uint64_t expected);

#endif
