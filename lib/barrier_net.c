/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of teams that reach beyond load/store access (barrier_impl.h says how). Words count the
 * arrivals of one rank, so that messages may overtake each other; a rank is never more than one
 * epoch ahead of another, and a count of more than my epoch is as good as my epoch.
 */
#include "barrier_impl.h"
#include "net_ops.h"

static uint64_t *word_at(char *slot, uint64_t off, uint32_t step)
{
    return (uint64_t *)(void *)(slot + off) + step;
}

/* Step `sent` to the rank 2^sent further on. */
static int tell(struct gi_devcomm *d, const struct gi_barrier_pool *p, uint64_t off, uint32_t step)
{
    uint32_t to = (uint32_t)((p->me + ((uint64_t)1 << step)) % p->n);
    if (p->peers[to] == NULL)
        return gi_net_tick(d, p->world_of[to], p->home + off + 8 * (uint64_t)step);
    /* acquires, too: what I have heard of goes along */
    __atomic_fetch_add(word_at(p->peers[to], off, step), 1, __ATOMIC_ACQ_REL);
    return GIN_OK;
}

int gi_barrier_net_step(struct gi_devcomm *d, const struct gi_barrier_pool *p,
                        struct gi_barrier_round *r, uint64_t off)
{
    for (; r->step < p->steps; r->step++) {
        if (r->sent <= r->step) {
            int st = tell(d, p, off, r->step);
            if (st != GIN_OK)
                return st == GIN_EAGAIN ? 0 : st;
            r->sent = r->step + 1;
        }
        if (GIN_LOAD_ACQUIRE(word_at(p->mine, off, r->step)) < r->epoch)
            return 0;
    }
    return 1;
}

uint32_t gi_barrier_net_awaited(const struct gi_barrier_pool *p, const struct gi_barrier_round *r)
{
    uint64_t back = r->step < p->steps ? (uint64_t)1 << r->step : 0;
    return (uint32_t)((p->me + p->n - back % p->n) % p->n);
}
