/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking the engine of a rank for something in its GPU memory: a few slots in that rank's control
 * block, which all ranks of the LSA team reach, with or without GPU. Used for words of GPU memory
 * whose one applier is that engine, and for bytes where the asker has no GPU to copy with.
 */
#ifndef GI_ASK_H
#define GI_ASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GI_ASKS      8u
#define GI_ASK_BYTES 4096u /* of data in one */

enum gi_ask_state { GI_ASK_FREE, GI_ASK_TAKEN, GI_ASK_POSTED, GI_ASK_ANSWERED };

/* ops beside enum gin_i_amo_op */
#define GI_ASK_PUT 32u
#define GI_ASK_GET 33u

struct gi_ask {
    _Alignas(64) _Atomic uint32_t state; /* enum gi_ask_state */
    uint32_t op, bytes;
    uint32_t win; /* as descriptors name it: gin_i_desc_window() */
    uint64_t off, value, expected;
    uint64_t was; /* the answer */
    int32_t status;
    int32_t asker; /* world rank */
    _Alignas(64) char data[GI_ASK_BYTES];
};

struct gi_ask_box {
    _Alignas(64) _Atomic uint32_t bell; /* rung behind every post */
    _Alignas(64) _Atomic uint32_t open; /* an engine looks into it */
    struct gi_ask ask[GI_ASKS];
};

struct gin_comm;

/* A free slot of a rank of my LSA team, mine from here on; NULL: all are taken. */
struct gi_ask *gi_ask_take(struct gin_comm *comm, int world);
void gi_ask_post(struct gin_comm *comm, int world, struct gi_ask *ask);
/* 1: there is an answer, 0: not yet; a negative status: there will be none, and the slot is given
 * back. */
int gi_ask_look(struct gin_comm *comm, int world, struct gi_ask *ask);
void gi_ask_give(struct gi_ask *ask);
/* Is there somebody to ask? */
bool gi_ask_is_open(struct gin_comm *comm, int world);
/* GIN_OK where there is, else why not. */
int gi_ask_can(struct gin_comm *comm, int world);
/* Take, post and wait, for a thread of the program. in: bytes to be put; out: where got ones go. */
int gi_ask_and_wait(struct gin_comm *comm, int world, const struct gi_ask *what, const void *in,
                    void *out, uint64_t *was);

#endif
