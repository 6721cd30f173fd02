/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor that a kernel or a host thread hands to the engine: 64 bytes, eight words, each
 * with one phase bit (bit 63), so that the words need no order among themselves. Whatever an
 * operation carries must fit into the other 8 x 63 bits; the proof is the packing itself, of the
 * largest descriptor there is: a put with a signal on a window word and a counter.
 *
 *   word   bits 0-56 (offsets, sizes) or as said           bits 57-62
 *   0      op 0-7, flags 8-15, peer 16-46, counter 47-62 (low 16)
 *   1      dst window 0-31, counter 32-47 (high 16), value bit 63 at 48, spare 49-62
 *   2      dst offset                                      sig window 0-5
 *   3      src window 0-31, sig window 6-31 at 32-57       spare
 *   4      src offset or address; with VALUE: bits 0-62 of the value
 *   5      size                                            flags of the value: bit 63 at 57
 *   6      sig offset, or slot id                          spare
 *   7      signal value, bits 0-62
 *
 * Windows travel as id (20 bits) and the low 12 bits of the generation: the engine checks both, and
 * the bounds, against its own table. Pointers appear only for gin_at_local(), with LOCAL, and in
 * the atomics of host threads.
 *
 * dst and src are where bytes go to and come from: of a PUT, dst is the peer's place and src mine,
 * of a GET the other way round. An AMO's word is dst, its operand the immediate, the value that CAS
 * expects the signal value; sig offset says in which reply the old value is wanted. Host threads
 * leave addresses of their process there: of the notice, and in size that of the old value.
 * Not API.
 */
#ifndef GINSHMEM_IMPL_DESC_H
#define GINSHMEM_IMPL_DESC_H

#include <ginshmem/gin.h>

#define GIN_I_DESC_WORDS    8
#define GIN_I_DESC_PHASE    ((uint64_t)1 << 63)
#define GIN_I_DESC_OFF_BITS 57
#define GIN_I_DESC_OFF_MAX  (((uint64_t)1 << GIN_I_DESC_OFF_BITS) - 1)
#define GIN_I_DESC_ALL      0x7fffffffu /* as the peer of a FENCE: every rank */
#define GIN_I_DESC_LOW63    (~(uint64_t)0 >> 1)

enum gin_i_desc_op {
    GIN_I_DESC_NOP = 0,
    GIN_I_DESC_PUT = 1,
    GIN_I_DESC_PUT_VALUE = 2,
    GIN_I_DESC_GET = 3,
    GIN_I_DESC_SIGNAL = 4,
    GIN_I_DESC_FLUSH = 5,
    GIN_I_DESC_FENCE = 6,
    GIN_I_DESC_QUIET = 7,
    GIN_I_DESC_AMO = 16 /* + enum gin_i_amo_op */
};

enum gin_i_desc_flags {
    GIN_I_DESC_STRONG = 1,
    GIN_I_DESC_SLOT = 2,   /* add to slot signal */
    GIN_I_DESC_ADD_AT = 4, /* add to a window word */
    GIN_I_DESC_SET_AT = 8, /* set a window word */
    GIN_I_DESC_COUNTER = 16,
    GIN_I_DESC_MORE = 32,  /* a hint: what the engine posts may wait for the next one */
    GIN_I_DESC_LOCAL = 64, /* source or destination is an address, not a window */
    GIN_I_DESC_WORD32 = 128
};

/* A ring slot. */
struct gin_i_desc {
    uint64_t w[GIN_I_DESC_WORDS];
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_desc) == 64, "a descriptor is one cache line");

/* Its contents, unpacked. */
struct gin_i_op {
    uint8_t op, flags;
    uint32_t peer; /* world rank, < 2^31 */
    uint32_t counter;
    uint32_t dst_win, src_win, sig_win;       /* id | generation << 20 */
    uint64_t dst_off, src_off, size, sig_off; /* < 2^57; slot id in sig_off */
    uint64_t value;                           /* signal's */
    uint64_t immediate;                       /* PUT_VALUE, AMO */
};

GIN_STATIC_ASSERT(8 + 8 + 31 + 16 == 63, "word 0: op, flags, peer, half the counter");
GIN_STATIC_ASSERT(32 + 16 + 1 <= 63, "word 1: dst window, half the counter, top value bit");
GIN_STATIC_ASSERT(GIN_I_DESC_OFF_BITS + 6 == 63, "word 2: dst offset, 6 bits of the sig window");
GIN_STATIC_ASSERT(32 + 26 <= 63, "word 3: src window, 26 bits of the sig window");
GIN_STATIC_ASSERT(GIN_I_DESC_OFF_BITS + 1 <= 63, "word 5: size, top bit of the immediate");

/*
 * The ring of one context: kernels produce, the owner's engine consumes. A producer takes a ticket
 * t, waits until t - consumed < depth, and stores its descriptor into slot t & mask, all eight
 * words with the phase of the lap: gin_i_desc_phase(). Slots start zeroed. A ticket taken is
 * published, or the context is dead. The engine takes descriptors in the order of tickets,
 * completes them in any, and writes nothing into the slots.
 */

/*
 * The engine's words, in pinned host memory; a line. Counts of tickets from 0, they only grow.
 * Where an operation fails its context is dead: done and settled stop at its ticket for good, and
 * error says why. Producers write one thing here: error, when they have to leave a ticket
 * unpublished.
 */
struct gin_i_ring_host {
    uint64_t consumed; /* taken out of their slots */
    uint64_t done;     /* sources reusable, got bytes here, counters raised: this and all before */
    uint64_t settled;  /* also complete and visible at their targets: this and all before */
    uint64_t error;    /* sticky: 0, or (uint32_t)status | (uint64_t)rank << 32 */
    uint64_t unused[4];
};

/* Old value of a fetching AMO, in pinned host memory. The engine writes value, then seq. */
struct gin_i_reply {
    uint64_t seq; /* ticket + 1 of the descriptor that this answers */
    uint64_t value;
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_reply) == 16, "a reply is read in one load");

/* The producers' side, in GPU memory. Everything not said to be constant starts as 0. */
struct gin_i_ring {
    /* constant; device addresses */
    struct gin_i_desc *slots; /* pinned host memory */
    const struct gin_i_ring_host *host;
    const struct gin_i_reply *replies; /* n_replies of them */
    uint32_t *reply_busy;              /* n_replies words in GPU memory, zeroed */
    uint32_t depth;                    /* slots; a power of two, at least 2 */
    uint32_t n_replies;                /* a power of two */
    uint32_t asks;                     /* 1: settled follows done only where a QUIET was posted */
    uint32_t unused;
    uint64_t timeout_ns; /* of waits for a slot and for order among signals; 0: none */
    uint64_t unused0[9];
    /* one 16-byte word: what is outstanding is seen in one load */
    uint64_t ticket;  /* next ticket */
    uint64_t settled; /* the engine's word as last seen */
    uint64_t done;    /* likewise */
    uint64_t unused1[13];
    uint64_t credit; /* copy of consumed */
    uint64_t unused2[15];
    uint32_t lock; /* 1: somebody reads consumed */
    uint32_t unused3;
    uint64_t unused4[15];
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_ring) == 512, "four lines of a GPU's cache");

/* Phase of ticket t, 0 or 1: the parity of its lap, such that zeroed slots are not yet written. */
GIN_VALUE unsigned gin_i_desc_phase(uint64_t ticket, uint32_t depth)
{
    return (ticket & depth) == 0;
}

/* 32-bit name of a window in descriptors. */
GIN_VALUE uint32_t gin_i_desc_window(gin_window_t win)
{
    return (uint32_t)(win.w & 0xfffff) | (uint32_t)((win.w >> 32) & 0xfff) << 20;
}

/* The operation carries a value in the words of the source. */
GIN_VALUE int gin_i_desc_is_immediate(unsigned op)
{
    return op == GIN_I_DESC_PUT_VALUE || op >= GIN_I_DESC_AMO;
}

/* Word k, without phase. Word by word, so that a kernel need not hold eight at once. */
GIN_VALUE uint64_t gin_i_desc_word(const struct gin_i_op *o, unsigned k)
{
    int imm = gin_i_desc_is_immediate(o->op);
    switch (k) {
    case 0:
        return (uint64_t)o->op | (uint64_t)o->flags << 8 | (uint64_t)(o->peer & 0x7fffffffu) << 16 |
               (uint64_t)(o->counter & 0xffffu) << 47;
    case 1:
        return (uint64_t)o->dst_win | (uint64_t)(o->counter >> 16) << 32 | (o->value >> 63) << 48;
    case 2: return (o->dst_off & GIN_I_DESC_OFF_MAX) | (uint64_t)(o->sig_win & 0x3fu) << 57;
    case 3: return (uint64_t)o->src_win | (uint64_t)(o->sig_win >> 6) << 32;
    case 4: return imm ? o->immediate & GIN_I_DESC_LOW63 : o->src_off & GIN_I_DESC_OFF_MAX;
    case 5: return (o->size & GIN_I_DESC_OFF_MAX) | (imm ? o->immediate >> 63 << 57 : 0);
    case 6: return o->sig_off & GIN_I_DESC_OFF_MAX;
    default: return o->value & GIN_I_DESC_LOW63;
    }
}

/* phase: 0 or 1, gin_i_desc_phase(). */
GIN_VALUE void gin_i_desc_pack(struct gin_i_desc *d, const struct gin_i_op *o, unsigned phase)
{
    for (unsigned k = 0; k < GIN_I_DESC_WORDS; k++)
        d->w[k] = gin_i_desc_word(o, k) | (uint64_t)phase << 63;
}

GIN_VALUE void gin_i_desc_unpack(const struct gin_i_desc *d, struct gin_i_op *o)
{
    o->op = (uint8_t)d->w[0];
    o->flags = (uint8_t)(d->w[0] >> 8);
    o->peer = (uint32_t)(d->w[0] >> 16) & 0x7fffffffu;
    o->counter = (uint32_t)(d->w[0] >> 47) & 0xffffu;
    o->counter |= (uint32_t)(d->w[1] >> 32 & 0xffffu) << 16;
    o->dst_win = (uint32_t)d->w[1];
    o->dst_off = d->w[2] & GIN_I_DESC_OFF_MAX;
    o->src_win = (uint32_t)d->w[3];
    o->sig_win = (uint32_t)(d->w[2] >> 57 & 0x3fu) | (uint32_t)(d->w[3] >> 32 & 0x3ffffffu) << 6;
    o->size = d->w[5] & GIN_I_DESC_OFF_MAX;
    o->sig_off = d->w[6] & GIN_I_DESC_OFF_MAX;
    o->value = (d->w[7] & GIN_I_DESC_LOW63) | (d->w[1] >> 48 & 1) << 63;
    int imm = gin_i_desc_is_immediate(o->op);
    o->src_off = imm ? 0 : d->w[4] & GIN_I_DESC_OFF_MAX;
    o->immediate = imm ? (d->w[4] & GIN_I_DESC_LOW63) | (d->w[5] >> 57 & 1) << 63 : 0;
}

#endif
