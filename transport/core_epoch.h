/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes that the target counts, between core_epoch.c and the rest of the core. */
#ifndef GI_TRANSPORT_CORE_EPOCH_H
#define GI_TRANSPORT_CORE_EPOCH_H

#include "transport/core_int.h"

#define GI_CORE_EPOCHS 128u /* counters per peer; more than can be open */

/* Epochs to a peer and from it. */
struct gi_core_epochs {
    uint16_t posted; /* writes of the one that is open */
    uint8_t out, in; /* number of that; of the peer's first one that is not closed here */
    uint16_t arrived[GI_CORE_EPOCHS];
};

/* Where they are of use; *unread: immediates that the lane must have room for, beside others'. */
int gi_core_epochs_open(struct gi_core_ctx *ctx, uint32_t most, uint32_t *unread);

/* For contexts that have them. The immediate of a write, a: its signal, which fits, or NULL. */
bool gi_core_epoch_fits(const struct gi_core_ctx *ctx, const struct gi_core_action *a);
uint64_t gi_core_epoch_imm(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                           const struct gi_core_action *a);
int gi_core_epoch_room(struct gi_core_ctx *ctx, struct gi_core_peer *p); /* for another write */
bool gi_core_epoch_ends(const struct gi_core_ctx *ctx, const struct gi_core_peer *p); /* ... no */
void gi_core_epoch_posted(struct gi_core_ctx *ctx, struct gi_core_peer *p);
void gi_core_epoch_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p, uint64_t imm);

/* For all contexts. Send a message that is to be handled behind all writes before it. */
int gi_core_epoch_send(struct gi_core_ctx *ctx, struct gi_core_peer *p, struct gi_core_msg *m,
                       uint32_t len);
bool gi_core_epoch_is_whole(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                            const struct gi_core_msg *m);
void gi_core_epoch_close(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                         const struct gi_core_msg *m);

static inline bool gi_core_epoch_closes(const struct gi_core_ctx *ctx, const struct gi_core_msg *m)
{
    return GIN_UNLIKELY(ctx->epochs != NULL) && (m->h.flags & GI_CORE_CLOSES) != 0;
}

/* May the peer's next message be handled? */
static inline bool gi_core_epoch_whole(const struct gi_core_ctx *ctx, const struct gi_core_peer *p,
                                       const struct gi_core_msg *m)
{
    return !gi_core_epoch_closes(ctx, m) || gi_core_epoch_is_whole(ctx, p, m);
}

/* It is. */
static inline void gi_core_epoch_over(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                                      const struct gi_core_msg *m)
{
    if (gi_core_epoch_closes(ctx, m))
        gi_core_epoch_close(ctx, p, m);
}

#endif
