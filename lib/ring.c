/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer's side of the ring. */
#include "ring.h"

#define LINE      64u
#define UP(bytes) (((bytes) + LINE - 1) & ~(uint64_t)(LINE - 1))

uint32_t gi_ring_depth(uint32_t wish)
{
    uint32_t depth = 2;
    if (wish == 0)
        wish = GI_RING_DEPTH;
    while (depth < wish && depth < GI_RING_DEEPEST)
        depth *= 2;
    return depth;
}

struct gi_ring_plan gi_ring_plan(uint32_t depth, uint32_t n_counters)
{
    struct gi_ring_plan p = {.host = 0};
    p.replies = p.host + UP(sizeof(struct gin_i_ring_host));
    p.counters = p.replies + UP(GI_RING_REPLIES * sizeof(struct gin_i_reply));
    p.slots = p.counters + UP(n_counters * sizeof(uint64_t));
    p.bytes = p.slots + depth * sizeof(struct gin_i_desc);
    return p;
}

void gi_ring_init(struct gi_ring *r, char *memory, uint32_t depth, uint32_t n_counters)
{
    struct gi_ring_plan p = gi_ring_plan(depth, n_counters);
    r->host = (void *)(memory + p.host);
    r->replies = (void *)(memory + p.replies);
    r->counters = (void *)(memory + p.counters);
    r->slots = (void *)(memory + p.slots);
    r->depth = depth;
    r->n_counters = n_counters;
}

bool gi_ring_has_next(const struct gi_ring *r)
{
    const struct gin_i_desc *slot = &r->slots[r->taken & (r->depth - 1)];
    uint64_t phase = (uint64_t)gin_i_desc_phase(r->taken, r->depth) << 63;
    for (int i = 0; i < GIN_I_DESC_WORDS; i++)
        if (((GIN_LOAD_RELAXED(&slot->w[i]) ^ phase) & GIN_I_DESC_PHASE) == 0)
            return true;
    return false;
}

bool gi_ring_next(struct gi_ring *r, struct gin_i_op *op)
{
    const struct gin_i_desc *slot = &r->slots[r->taken & (r->depth - 1)];
    struct gin_i_desc d;
    uint64_t phase = (uint64_t)gin_i_desc_phase(r->taken, r->depth) << 63, wrong = 0;
    d.w[0] = GIN_LOAD_ACQUIRE(&slot->w[0]); /* threads publish it last; kernels in any order */
    if ((d.w[0] ^ phase) & GIN_I_DESC_PHASE)
        return false;
    for (int i = 1; i < GIN_I_DESC_WORDS; i++)
        wrong |= (d.w[i] = GIN_LOAD_RELAXED(&slot->w[i])) ^ phase;
    if (wrong & GIN_I_DESC_PHASE)
        return false;
    GIN_FENCE_ACQUIRE(); /* what the producer released before it published */
    gin_i_desc_unpack(&d, op);
    r->taken++;
    return true;
}

void gi_ring_tell(struct gi_ring *r)
{
    if (r->host->done != r->done)
        GIN_STORE_RELEASE(&r->host->done, r->done);
    if (r->host->settled != r->settled)
        GIN_STORE_RELEASE(&r->host->settled, r->settled);
    if (r->host->consumed != r->taken)
        GIN_STORE_RELEASE(&r->host->consumed, r->taken);
}

void gi_ring_kill(struct gi_ring *r, uint64_t ticket, int status, int rank)
{
    r->failed = r->dead && r->failed < ticket ? r->failed : ticket;
    r->dead = true;
    gi_error_set(&r->host->error, status, rank);
}

void gi_ring_look(struct gi_ring *r)
{
    if (GIN_LIKELY(r->dead || GIN_LOAD_RELAXED(&r->host->error) == 0))
        return;
    r->dead = true;
    r->failed = r->taken;
}
