/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on their way in. Numbered ones are handled in the order of their numbers; what comes
 * early waits in a slot of its own. Nothing a message says is believed before it was compared with
 * what this rank knows: one that makes no sense touches no memory, is counted, and its sender is
 * told, which makes that an error of its context.
 */
#include "transport/core_epoch.h"
#include "transport/core_land.h"
#include "transport/core_stage.h"

#include <stdlib.h>

/* Whole words are stored whole, for readers that poll them. */
void gi_core_store(void *at, const void *from, uint32_t n)
{
    if (n == 8 && (uintptr_t)at % 8 == 0) {
        uint64_t v;
        memcpy(&v, from, 8);
        GIN_STORE_RELAXED((uint64_t *)at, v);
    } else if (n == 4 && (uintptr_t)at % 4 == 0) {
        uint32_t v;
        memcpy(&v, from, 4);
        GIN_STORE_RELAXED((uint32_t *)at, v);
    } else {
        memcpy(at, from, n);
    }
}

static int word_action(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                       bool dry)
{
    struct gi_core_update u = {.window = m->put.id,
                               .off = m->put.word_off,
                               .op =
                                   m->h.action == GI_CORE_WORD_SET ? GIN_I_AMO_SET : GIN_I_AMO_ADD,
                               .bytes = 8,
                               .value = m->put.value};
    uint64_t old;
    if (dry) {
        void *at;
        int st = gi_core_word(ctx, &u, &at);
        bool can = ctx->core->config.hooks.apply != NULL || gi_core_gpu(ctx->core) != NULL;
        return st == GIN_ENOTSUP && can ? GIN_OK : st;
    }
    return gi_core_apply(ctx, p, m, &u, &old);
}

/* dry: whether it can be done. GIN_EAGAIN: not yet, call it again. */
static int put_action(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                      bool dry)
{
    switch (m->h.action) {
    case GI_CORE_NONE: return GIN_OK;
    case GI_CORE_SLOT_ADD:
        if (dry)
            return m->put.id < ctx->cells.n ? GIN_OK : GIN_ERANGE;
        return gi_core_signal_slot(ctx, p, m->put.id, m->put.value);
    case GI_CORE_WORD_ADD:
    case GI_CORE_WORD_SET: return word_action(ctx, p, m, dry);
    default: return GIN_EINVAL;
    }
}

static int put_bytes(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    uint32_t n = m->h.len;
    void *at = NULL;
    int st = n != 0 ? h->resolve(h->arg, m->put.window, m->put.off, n, true, &at) : GIN_OK;
    bool staged = st == GIN_ENOTSUP && gi_core_gpu(ctx->core) != NULL;
    if (st == GIN_OK || staged) {
        st = put_action(ctx, p, m, true);
        if (st == GIN_OK && staged)
            st = gi_core_stage_store(ctx, p, m, at);
        else if (st == GIN_OK && n != 0)
            gi_core_store(at, m->put.data, n);
    }
    return st;
}

/* False: not yet, call it again. */
static bool put_arrived(struct gi_core_ctx *ctx, struct gi_core_peer *p,
                        const struct gi_core_msg *m)
{
    int begun = gi_core_stage_look(p, m);
    int st = begun == 0   ? put_bytes(ctx, p, m)
             : begun == 1 ? GIN_OK
                          : gi_core_stage_store(ctx, p, m, NULL);
    bool action = st == GIN_OK;
    if (action && (!p->in.lacks || gi_core_stage_updates(p, m)))
        st = put_action(ctx, p, m, false);
    if (st == GIN_EAGAIN)
        return false;
    if (st != GIN_OK && m->h.len != 0 && !action)
        gi_core_refuse(ctx, p, st, m, m->put.window, m->put.off);
    else if (st != GIN_OK)
        gi_core_refuse(ctx, p, st, m, m->put.id, m->put.word_off);
    return true;
}

/*
 * Where order says that the immediates before it are here, and nothing else tells the source that
 * they are, those that are missing are lost: a connection broke and was made anew in silence.
 */
static void asked(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                  int32_t imms_missing)
{
    bool counts = ctx->plan->ordered && !ctx->plan->remote_complete && !ctx->anonymous;
    p->ack_now = true;
    if (counts && imms_missing > 0)
        gi_core_refuse(ctx, p, GIN_ENET, m, p->in.imms + (uint32_t)imms_missing, p->in.imms);
}

/* False: it is not handled yet, and to be kept. */
static bool handle(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m)
{
    int st = GIN_OK;
    if (!gi_core_epoch_whole(ctx, p, m))
        return false;
    switch (m->h.kind) {
    case GI_CORE_MSG_SLOT:
        st = gi_core_signal_slot(ctx, p, m->slot.id, m->slot.value);
        if (st != GIN_OK)
            gi_core_refuse(ctx, p, st, m, m->slot.id, 0);
        break;
    case GI_CORE_MSG_PUT:
        if (!put_arrived(ctx, p, m))
            return false;
        break;
    case GI_CORE_MSG_AMO:
        if (!gi_core_amo_arrived(ctx, p, m))
            return false;
        break;
    case GI_CORE_MSG_CLOSE: break;
    case GI_CORE_MSG_BUNDLE:
        gi_core_bundle_arrived(ctx, p, (const void *)m);
        if (m->h.flags & GI_CORE_ASKS)
            asked(ctx, p, m, (int16_t)(m->h.imms - (uint16_t)p->in.imms));
        break;
    case GI_CORE_MSG_STAGED:
        st = gi_core_stage_staged(ctx, p, m);
        if (st == GIN_EAGAIN)
            return false;
        if (st != GIN_OK)
            gi_core_refuse(ctx, p, st, m, m->staged.window, m->staged.off);
        p->ack_now = true; /* its slab is free */
        break;
    case GI_CORE_MSG_FETCH:
        st = gi_core_stage_asked(ctx, p, m);
        if (st != GIN_OK)
            gi_core_refuse(ctx, p, st, m, m->fetch.window, m->fetch.off);
        break;
    default: asked(ctx, p, m, (int32_t)(m->echo.imms - p->in.imms)); break;
    }
    gi_core_stage_forget(p, m);
    gi_core_epoch_over(ctx, p, m);
    p->in.got++;
    return true;
}

static bool keep_early(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                       uint32_t len)
{
    unsigned slot = m->h.seq % GI_CORE_CREDITS;
    if (len > sizeof(*m)) { /* bundles are sent where messages stay in order, and none is kept */
        gi_core_peer_fail(ctx, p, GIN_ENET, "its messages lost their order");
        return false;
    }
    if (p->in.early == NULL)
        p->in.early = malloc(GI_CORE_CREDITS * sizeof(*p->in.early));
    if (p->in.early == NULL) {
        gi_core_lane_dead(ctx, "no memory for messages that came early");
        return false;
    }
    memcpy(&p->in.early[slot], m, len);
    p->in.early_mask |= (uint64_t)1 << slot;
    if (m->h.kind == GI_CORE_MSG_STAGED)
        gi_core_stage_begin(ctx, p, &p->in.early[slot]);
    return true;
}

static bool is_kept(const struct gi_core_peer *p, unsigned slot)
{
    return p->in.early_mask >> slot & 1;
}

void gi_core_go_on(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    for (unsigned slot = p->in.got % GI_CORE_CREDITS; is_kept(p, slot);
         slot = p->in.got % GI_CORE_CREDITS) {
        if (!handle(ctx, p, &p->in.early[slot]))
            break;
        p->in.early_mask &= ~((uint64_t)1 << slot);
    }
    if (p->ack_now || p->in.got - p->in.told >= (ctx->credits > 1 ? ctx->credits / 2 : 1))
        gi_core_kick(ctx, p);
}

static void numbered(struct gi_core_ctx *ctx, struct gi_core_peer *p, const struct gi_core_msg *m,
                     uint32_t len)
{
    uint16_t ahead = (uint16_t)(m->h.seq - (uint16_t)p->in.got);
    unsigned first = p->in.got % GI_CORE_CREDITS;
    if (ctx->mutate & GI_CORE_MUTATE_SEQ)
        ahead = 0;
    if (ahead >= GI_CORE_CREDITS) {
        gi_core_refuse(ctx, p, GIN_ERANGE, m, m->h.seq, p->in.got);
        return;
    }
    if (is_kept(p, (first + ahead) % GI_CORE_CREDITS))
        return; /* a number that came twice: what is under way stays as it is */
    if (GIN_UNLIKELY(!gi_core_landed(ctx))) {
        gi_core_refuse(ctx, p, GIN_ENET, m, 0, 0);
        return;
    }
    /* What takes time is called again from where it is kept. */
    if (ahead != 0 || !handle(ctx, p, m))
        keep_early(ctx, p, m, len);
    if (ahead == 0)
        gi_core_go_on(ctx, p);
}

/* Bytes that a message of its kind has, 0: no such kind. */
static uint32_t expected_len(const struct gi_core_msg *m)
{
    switch (m->h.kind) {
    case GI_CORE_MSG_SLOT: return GI_CORE_BYTES_SLOT;
    case GI_CORE_MSG_PUT: return GI_CORE_BYTES_PUT + m->h.len;
    case GI_CORE_MSG_AMO: return GI_CORE_BYTES_AMO;
    case GI_CORE_MSG_ECHO: return GI_CORE_BYTES_ECHO;
    case GI_CORE_MSG_STAGED: return GI_CORE_BYTES_STAGED;
    case GI_CORE_MSG_FETCH: return GI_CORE_BYTES_FETCH;
    case GI_CORE_MSG_ACK:
    case GI_CORE_MSG_CLOSE: return sizeof(m->h);
    case GI_CORE_MSG_REPLY: return GI_CORE_BYTES_REPLY;
    case GI_CORE_MSG_NACK: return GI_CORE_BYTES_NACK;
    default: return 0;
    }
}

static bool has_its_length(const struct gi_core_msg *m, uint32_t len)
{
    if (m->h.kind == GI_CORE_MSG_BUNDLE)
        return gi_core_bundle_is_whole((const void *)m, len);
    return len <= sizeof(*m) && len == expected_len(m);
}

void gi_core_arrived_msg(void *arg, int peer, const void *bytes, uint32_t len)
{
    struct gi_core_ctx *ctx = arg;
    const struct gi_core_msg *m = bytes;
    struct gi_core_peer *p = NULL;
    bool claimed = peer == GI_NET_UNKNOWN && !ctx->caps->msg_source; /* nothing better to go by */
    ctx->counts[GI_CORE_N_GOT_MSG]++;
    if (len >= sizeof(m->h) && m->h.source < (uint32_t)ctx->core->config.size &&
        (claimed || (peer >= 0 && (uint32_t)peer == m->h.source)))
        p = &ctx->peers[m->h.source];
    if (p == NULL || m->h.ctx != ctx->tag || !has_its_length(m, len)) {
        /* Its number cannot be trusted either, so the sender will be refused, or miss an answer. */
        gi_core_refuse(ctx, p, GIN_EINVAL, NULL, len, 0);
        return;
    }
    if (p->gone)
        return; /* late words of one that was given up */
    p->signs.heard++;
    /* An acknowledgement that overtook the refusal before it would hide that. */
    if (m->h.kind != GI_CORE_MSG_ACK || (m->h.flags & GI_CORE_LATE) == 0 || p->status != GIN_OK)
        gi_core_acked(ctx, p, m->h.ack);
    switch (m->h.kind) {
    case GI_CORE_MSG_REPLY: gi_core_amo_replied(ctx, p, m); break;
    case GI_CORE_MSG_NACK: gi_core_nacked(ctx, p, m); break;
    case GI_CORE_MSG_ACK: break;
    default: numbered(ctx, p, m, len); break;
    }
}
