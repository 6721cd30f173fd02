/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the core, as they travel. Numbered ones carry operations and are handled in their
 * order; what a message says is believed only after it was compared with what the target knows.
 */
#ifndef GI_TRANSPORT_CORE_WIRE_H
#define GI_TRANSPORT_CORE_WIRE_H

#include <stdint.h>
#include "transport/net.h"

enum gi_core_msg_kind {
    GI_CORE_MSG_SLOT = 1, /* add to a slot signal: 32 bytes */
    GI_CORE_MSG_PUT,      /* store the payload, then do the action */
    GI_CORE_MSG_AMO,
    GI_CORE_MSG_BUNDLE, /* small puts of one window */
    GI_CORE_MSG_ECHO,   /* answer when all before it are handled, immediates, too */
    GI_CORE_MSG_STAGED, /* read it from my slab */
    GI_CORE_MSG_FETCH,  /* stage it for me */
    GI_CORE_MSG_CLOSE,  /* nothing but the end of an epoch */
    /* from here on without number and credit, in no order */
    GI_CORE_MSG_REPLY,
    GI_CORE_MSG_ACK,
    GI_CORE_MSG_NACK
};

/* For a NACK's kind, where nothing was refused: a message failed on its way, or a copy from GPU
 * memory did, of what was put or asked for. */
#define GI_CORE_NACK_LOST 64u
#define GI_CORE_NACK_COPY 65u
#define GI_CORE_ASKS      1u   /* flag of a bundle: answer at once, as to an echo behind it */
#define GI_CORE_ANSWERS   2u   /* flag of STAGED: to a FETCH, else it is a put */
#define GI_CORE_CLOSES    4u   /* flag: it is handled when the epoch's immediates are here */
#define GI_CORE_LATE      8u   /* flag of ACK: behind a refusal, for slabs alone */
#define GI_CORE_MSG_BYTES 128u /* of the longest message that is no bundle */

struct gi_core_header {
    uint8_t kind;
    uint8_t action; /* PUT: enum gi_core_action_kind. AMO: gin_i_amo_op */
    uint16_t ctx;
    uint32_t source;
    uint16_t seq; /* number of this message */
    uint16_t ack; /* messages of yours handled so far, low bits */
    uint8_t len;  /* PUT: bytes of payload. AMO: of the word */
    uint8_t flags;
    uint16_t imms; /* of a bundle that asks: immediates before it, low bits; CLOSES: of the epoch */
};

struct gi_core_msg {
    struct gi_core_header h;
    union {
        struct {
            uint32_t id, unused;
            uint64_t value;
        } slot;
        struct {
            uint32_t window, id;
            uint64_t off;
            uint64_t word_off, value;
            uint8_t data[GI_CORE_MSG_BYTES - 16 - 32];
        } put;
        struct {
            uint32_t window, reply;
            uint64_t off;
            uint64_t value, expected;
            uint32_t reply_turn, wanted;
        } amo;
        struct {
            uint32_t reply, reply_turn;
            uint64_t value;
            int32_t status;
            uint32_t unused;
        } reply;
        struct {
            uint32_t imms, unused; /* immediates before it, low bits */
        } echo;
        struct {
            int32_t status;
            uint32_t window;
            uint64_t off;
            uint32_t kind, unused;
        } nack;
        struct {
            uint32_t window, fetch; /* fetch, turn: which one it answers */
            uint64_t off;
            uint32_t slab, len; /* slab: from the start of all */
            uint32_t turn, unused;
        } staged;
        struct {
            uint32_t window, fetch;
            uint64_t off;
            uint32_t len, turn;
        } fetch;
    };
};
_Static_assert(sizeof(struct gi_core_header) == 16, "a header is 16 bytes");
_Static_assert(sizeof(struct gi_core_msg) == GI_CORE_MSG_BYTES, "bundles apart");
_Static_assert(GI_CORE_MSG_BYTES <= GI_NET_MSG_MAX, "a message fits one slot");
#define GI_CORE_BYTES_SLOT   32u
#define GI_CORE_BYTES_PUT    48u /* and payload */
#define GI_CORE_BYTES_AMO    56u
#define GI_CORE_BYTES_REPLY  40u
#define GI_CORE_BYTES_NACK   40u
#define GI_CORE_BYTES_ECHO   24u
#define GI_CORE_BYTES_STAGED 48u
#define GI_CORE_BYTES_FETCH  40u

/* Entries follow, each 8 bytes of what and its data, padded to 8. */
struct gi_core_bundle {
    struct gi_core_header h;
    uint32_t window, n;
    uint64_t entry[(GI_NET_MSG_MAX - 24) / 8];
};
_Static_assert(sizeof(struct gi_core_bundle) == GI_NET_MSG_MAX, "a bundle fits one slot");

#endif
