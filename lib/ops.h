/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that operations on windows share. */
#ifndef GI_OPS_H
#define GI_OPS_H

#include "comm.h"

/*
 * The live window of a place, of GPU memory too, whose `bytes` bytes lie inside it; update: peers
 * shall be allowed to change it. A negative status with a text that begins with `call` and `place`,
 * such as "dst".
 */
int gi_op_window_any(gin_comm_t *comm, const char *call, const char *place, gin_at_t at,
                     uint64_t bytes, int update, const struct gin_i_window **win);

/* GPU memory of a rank for host threads (ops_gpu.c). */
struct gi_gpu_spot {
    const struct gin_i_window *w; /* NULL: no such place */
    int world;
    bool ask; /* its owner's engine, else my GPU reaches it at addr */
    bool net; /* ... the network is to carry it */
    uint64_t off, addr;
};
/* nic_only: by nothing but the network. */
int gi_op_gpu_find(const gin_t *g, const struct gin_i_window *w, int world, uint64_t off,
                   bool nic_only, struct gi_gpu_spot *p);
/* Copy between a place at a peer and mine, of which one at least is GPU memory; the other one is
 * NULL, and its address given. */
int gi_op_gpu_move(gin_comm_t *comm, const struct gi_gpu_spot *remote, void *remote_host,
                   const struct gi_gpu_spot *mine, void *local, uint64_t bytes, bool put);
/* A word, and whether `op` can be applied to it. */
int gi_op_gpu_word_find(const gin_t *g, const struct gin_i_window *w, int world, uint64_t off,
                        uint32_t bytes, enum gin_i_amo_op op, bool nic_only, struct gi_gpu_spot *p);
int gi_op_gpu_word(gin_comm_t *comm, const struct gi_gpu_spot *p, enum gin_i_amo_op op,
                   uint32_t bytes, uint64_t value, uint64_t expected, uint64_t *was);

/* With GINSHMEM_CHECK=1 a place in the heap must lie in one live block, else GIN_ERANGE. */
int gi_op_live(const gin_t *g, const char *call, const struct gin_i_window *w, uint64_t off,
               uint64_t bytes);

#endif
