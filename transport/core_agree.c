/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all ranks can keep. Each has filled and tested its records alone, and one may have found
 * less than another: how operations travel is decided from the least of all, since both ends must
 * read an immediate, an order or a message the same way. What concerns a source alone (inline
 * writes, depth, registration) stays its own.
 */
#include "transport/core_stripe.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAW = 1,
    WAS = 2,
    RAW = 4,
    SAS = 8,
    AMO_ORDERED = 16,
    AMO_FENCE = 32,
    PASSIVE = 64,
    SOURCE = 128
};
enum { EATS = 1, OVERRUN = 2 }; /* worse where set */

struct promise {
    uint64_t waw, max_msg;
    uint32_t msg_max, recvs;
    uint8_t imm_bits, dc, amo, keeps;
    uint8_t trouble, unused[3];
};

struct ballot {
    uint32_t rails, stripes;
    struct promise rail[GI_CORE_RAILS];
};

static struct promise promise_of(const struct gi_net_caps *c)
{
    return (struct promise){
        .waw = c->waw_bytes,
        .max_msg = c->max_msg,
        .msg_max = c->msg_max,
        .recvs = c->recvs,
        .imm_bits = (uint8_t)c->imm_bits,
        .dc = (uint8_t)c->dc,
        .amo = (uint8_t)c->amo,
        .keeps = (uint8_t)((c->saw ? SAW : 0) | (c->was ? WAS : 0) | (c->raw ? RAW : 0) |
                           (c->sas ? SAS : 0) | (c->amo_ordered ? AMO_ORDERED : 0) |
                           (c->amo_fence ? AMO_FENCE : 0) | (c->target_passive ? PASSIVE : 0) |
                           (c->imm_source ? SOURCE : 0)),
        .trouble = (uint8_t)((c->imm_eats_recv ? EATS : 0) | (c->cq_overrun ? OVERRUN : 0)),
    };
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))

/* recvs 0 is no bound. */
static void lower(struct promise *p, const struct promise *q)
{
    p->waw = LEAST(p->waw, q->waw);
    p->max_msg = LEAST(p->max_msg, q->max_msg);
    p->msg_max = LEAST(p->msg_max, q->msg_max);
    p->recvs = p->recvs == 0 ? q->recvs : q->recvs == 0 ? p->recvs : LEAST(p->recvs, q->recvs);
    p->imm_bits = LEAST(p->imm_bits, q->imm_bits);
    p->dc = LEAST(p->dc, q->dc);
    p->amo = LEAST(p->amo, q->amo);
    p->keeps &= q->keeps;
    p->trouble |= q->trouble;
}

static void apply(struct gi_net_caps *c, const struct promise *p)
{
    c->waw_bytes = p->waw;
    c->max_msg = p->max_msg;
    c->msg_max = p->msg_max;
    c->recvs = p->recvs;
    c->imm_bits = p->imm_bits;
    c->dc = (enum gi_net_dc)p->dc;
    c->amo = (enum gi_net_amo)p->amo;
    c->saw = (p->keeps & SAW) != 0;
    c->was = (p->keeps & WAS) != 0;
    c->raw = (p->keeps & RAW) != 0;
    c->sas = (p->keeps & SAS) != 0;
    c->amo_ordered = (p->keeps & AMO_ORDERED) != 0;
    c->amo_fence = (p->keeps & AMO_FENCE) != 0;
    c->target_passive = (p->keeps & PASSIVE) != 0;
    c->imm_source = (p->keeps & SOURCE) != 0;
    c->imm_eats_recv = (p->trouble & EATS) != 0;
    c->cq_overrun = (p->trouble & OVERRUN) != 0;
}

/* All ranks must have as many rails, too: a context's home is the same everywhere. */
static int judge(struct gi_core *core, const struct ballot *all)
{
    const struct gi_core_config *c = &core->config;
    bool stripes = true;
    for (int r = 0; r < c->size; r++) {
        if (all[r].rails != c->n_domains)
            return gi_fail(GIN_EMISMATCH,
                           "rank %d has a network of %u rails, rank %d one of %u: name as many "
                           "devices by GINSHMEM_NICS on all ranks, or set GINSHMEM_RAILS alike",
                           c->rank, c->n_domains, r, all[r].rails);
        stripes = stripes && all[r].stripes != 0;
    }
    for (uint32_t i = 0; i < c->n_domains; i++) {
        struct promise least = all[0].rail[i], mine = promise_of(&core->agreed[i]);
        for (int r = 1; r < c->size; r++)
            lower(&least, &all[r].rail[i]);
        if (memcmp(&least, &mine, sizeof(mine)) != 0)
            gi_info("net", "rail %u: another rank's network promises less than mine", i);
        apply(&core->agreed[i], &least);
    }
    gi_core_stripe_plan(core, stripes);
    return GIN_OK;
}

void *gi_core_agree_room(int ranks)
{
    return calloc((size_t)ranks, sizeof(struct ballot));
}

int gi_core_agree(struct gi_core *core, void *room)
{
    const struct gi_core_config *c = &core->config;
    struct ballot mine = {.rails = c->n_domains, .stripes = c->stripe_from != 0}, *all = room;
    for (uint32_t i = 0; i < c->n_domains; i++)
        mine.rail[i] = promise_of(&core->agreed[i]);
    int st = c->allgather(c->allgather_arg, &mine, all, sizeof(mine));
    return st == GIN_OK ? judge(core, all) : st;
}
