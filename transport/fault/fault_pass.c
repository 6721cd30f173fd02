/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fault wrapper passes straight on: posts of a plan that takes capabilities away and does
 * nothing else, where the inner network's own post serves. They keep the caller's request and
 * source, and cost a few comparisons: figures of such a network are those of the inner one. The
 * record's rules are looked at all the same.
 */
#include "base/log.h"
#include "transport/fault/fault_int.h"

/* What the record forbids. */
static const char *forbidden(const struct gi_net_caps *c, enum gi_fault_kind kind,
                             const struct gi_net_io *io, uint32_t len)
{
    if (kind == K_MSG)
        return len > c->msg_max ? "a message too long" : NULL;
    if ((io->flags & GI_NET_DELIVERED) != 0 && c->dc == GI_NET_DC_NO)
        return "word of delivery, of which there is none";
    if (kind == K_AMO)
        return c->amo != GI_NET_AMO_NATIVE ? "an atomic, of which there are none"
               : (io->flags & GI_NET_FENCE) != 0 && !c->amo_fence
                   ? "a fence, of which there are none"
                   : NULL;
    if (io->len == 0 || io->len > c->max_msg)
        return "a length out of bounds";
    if ((io->flags & GI_NET_INLINE) != 0 && io->len > c->inject)
        return "too much to be inline";
    if ((io->flags & GI_NET_INLINE) == 0 && io->req == NULL)
        return "no request";
    if (c->mr_local && io->mr == NULL && (io->flags & GI_NET_INLINE) == 0)
        return "memory that is not registered";
    if ((io->flags & GI_NET_IMM) != 0 &&
        (c->imm_bits == 0 || (c->imm_bits == 32 && io->imm >> 32 != 0)))
        return "an immediate too wide";
    return NULL;
}

const char *gi_fault_mistake(struct fault_lane *l, enum gi_fault_kind kind,
                             const struct gi_net_io *io, uint32_t len)
{
    bool other = l->more >= 0 && l->more != io->peer;
    l->more = -1;
    return other ? "for one peer where another post for another one was promised"
                 : forbidden(&l->d->caps, kind, io, len);
}

/* The inner network has no fence: the wrapper's waits for all that is under way, and so all has to
 * have a request. */
static bool imitates_fence(const struct fault_domain *d)
{
    return d->caps.amo_fence && !d->own->amo_fence;
}

/* The record promises nothing that the inner network's own posts would not keep. Whether atomics
 * are the NIC's or the target's processor's, the post is the same. */
static bool is_less(const struct gi_net_caps *c, const struct gi_net_caps *own)
{
    return c->inject <= own->inject && c->dc <= own->dc &&
           (c->amo == GI_NET_AMO_NONE || own->amo != GI_NET_AMO_NONE) &&
           c->imm_bits <= own->imm_bits && c->max_msg <= own->max_msg &&
           c->msg_max <= own->msg_max && c->depth == own->depth && c->waw_bytes <= own->waw_bytes &&
           c->saw <= own->saw && c->was <= own->was && c->raw <= own->raw && c->sas <= own->sas &&
           c->amo_ordered <= own->amo_ordered && c->mr_local >= own->mr_local;
}

void gi_fault_see_plain(struct fault_domain *d)
{
    const struct gi_fault_plan *p = &d->plan;
    bool plain = p->hold == 0 && !p->early && p->delay == 0 && p->again == 0 && p->silent == 0 &&
                 is_less(&d->caps, d->own);
    for (int i = 0; i < GI_FAULT_CALLS; i++)
        plain = plain && p->first[i] == 0;
    __atomic_store_n(&d->plain, plain, __ATOMIC_RELEASE);
}

bool gi_fault_passes(const struct fault_lane *l, enum gi_fault_kind kind,
                     const struct gi_net_io *io)
{
    const struct fault_domain *d = l->d;
    bool tracked = kind == K_MSG || (io->req != NULL && (io->flags & GI_NET_FENCE) == 0);
    return gi_fault_is_plain(d) && l->n_held == 0 && l->broken[io->peer].kinds == 0 &&
           __atomic_load_n(&d->peer[io->peer], __ATOMIC_RELAXED) == GI_FAULT_PEER_WELL &&
           (tracked || !imitates_fence(d));
}

int gi_fault_pass(struct fault_lane *l, enum gi_fault_kind kind, const struct gi_net_io *io)
{
    const char *why = gi_fault_mistake(l, kind, io, 0);
    struct gi_net_io alone;
    if (why != NULL)
        return gi_fail(GIN_EINVAL, "the core posted %s", why);
    bool more = (io->flags & GI_NET_MORE) != 0;
    int peer = io->peer;
    if (more && imitates_fence(l->d)) { /* which might be what follows, and stay here */
        alone = *io;
        alone.flags &= ~(unsigned)GI_NET_MORE;
        io = &alone;
    }
    l->passed += io->req != NULL;
    int st = kind == K_WRITE  ? l->ops->write(l->inner, io)
             : kind == K_READ ? l->ops->read(l->inner, io)
                              : l->ops->amo_add(l->inner, io);
    if (st != GIN_OK)
        l->passed -= io->req != NULL;
    else if (more)
        l->more = peer;
    return st;
}

int gi_fault_pass_msg(struct fault_lane *l, int peer, const void *bytes, uint32_t len)
{
    struct gi_net_io io = {.peer = peer};
    const char *why = gi_fault_mistake(l, K_MSG, &io, len);
    return why == NULL ? l->ops->msg(l->inner, peer, bytes, len)
                       : gi_fail(GIN_EINVAL, "the core posted %s", why);
}
