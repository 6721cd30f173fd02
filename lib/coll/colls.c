/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workspaces of a device communicator's collectives: how large they are, where what lies in
 * them, and what this rank keeps beside them. A workspace, by world rank of the sender:
 *
 *     lines: GI_COLL_SLOTS of each | words: messages of mine that it took
 *     | slots: as many as lines | what is on its way into the network
 *
 * All workspaces' lines lie together at the block's start, since they are the network's cells.
 */
#include <stdlib.h>
#include <string.h>

#include "coll/choose.h"
#include "net_up.h"

#define MAX_SLOT 32768u
#define FEW_SLOT 1024u      /* at least so much ... */
#define FEW      (4u << 20) /* while all are no more than this; and one line in any case */

static uint64_t round_up(uint64_t n)
{
    return (n + 63) & ~(uint64_t)63;
}

/* What the scratch allows, and more of it where that is little, as long as it is so for all ranks.
 */
uint64_t gi_colls_slot(const gin_comm_t *comm, const gin_devcomm_reqs_t *r)
{
    uint64_t slots = (uint64_t)comm->size * GI_COLL_SLOTS;
    uint64_t slot = r->collective_scratch / slots & ~(uint64_t)63;
    uint64_t few = FEW / slots & ~(uint64_t)63;
    few = few > FEW_SLOT ? FEW_SLOT : few < 64 ? 64 : few;
    slot = slot < few ? few : slot;
    return slot < MAX_SLOT ? slot : MAX_SLOT;
}

static void lay_out(struct gi_colls *a, const gin_comm_t *comm, const gin_devcomm_reqs_t *r)
{
    uint64_t n = (uint64_t)comm->size;
    a->count = r->collectives;
    a->slot = gi_colls_slot(comm, r);
    a->slots_at = round_up(n * sizeof(uint64_t));
    a->out_at = a->slots_at + n * GI_COLL_SLOTS * a->slot;
    a->each = a->out_at + (comm->net != NULL ? GI_COLL_OUT * a->slot : 0);
}

uint32_t gi_colls_cells(const gin_comm_t *comm, const gin_devcomm_reqs_t *r)
{
    return comm->size > 1 ? r->collectives * (uint32_t)comm->size * GI_COLL_SLOTS : 0;
}

uint64_t gi_colls_bytes(const gin_comm_t *comm, const gin_devcomm_reqs_t *r)
{
    struct gi_colls a;
    if (r->collectives == 0 || comm->size == 1)
        return 0;
    lay_out(&a, comm, r);
    return gi_colls_cells(comm, r) * sizeof(struct gi_coll_line) + a.count * a.each;
}

int gi_colls_fit(const gin_comm_t *comm, const gin_devcomm_reqs_t *r)
{
    uint64_t each = (uint64_t)comm->size * GI_COLL_SLOTS, most = UINT32_MAX / each;
    if (r->collectives <= most)
        return GIN_OK;
    return gi_fail(GIN_ERANGE,
                   "gin_devcomm_create: collectives is %u, it must lie in 0 .. %llu with %d ranks",
                   r->collectives, (unsigned long long)most, comm->size);
}

bool gi_colls_shrink(const gin_comm_t *comm, gin_devcomm_reqs_t *r)
{
    uint64_t before = gi_colls_bytes(comm, r);
    r->collective_scratch = 1;
    return gi_colls_bytes(comm, r) < before;
}

bool gi_colls_in_rank_order(const gin_comm_t *comm)
{
    return strcmp(comm->env.coll_order, "rank") == 0;
}

static int no_memory(const struct gi_colls *a)
{
    return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u collectives", a->count);
}

/* The private side of an index. */
static int index_open(struct gi_colls *a, uint32_t i)
{
    const gin_comm_t *comm = a->d->comm;
    struct gi_coll *c = &a->index[i];
    size_t n = (size_t)comm->size;
    c->links = calloc(n, sizeof(*c->links));
    c->refs = calloc(n, sizeof(*c->refs));
    c->ints = calloc(GI_COLL_PLANS, (4 * n + 1) * sizeof(*c->ints));
    c->tmp[0] = malloc(3 * a->slot);
    if (c->links == NULL || c->refs == NULL || c->ints == NULL || c->tmp[0] == NULL)
        return no_memory(a);
    c->tmp[1] = c->tmp[0] + a->slot;
    c->tmp[2] = c->tmp[1] + a->slot;
    int *at = c->ints;
    for (uint32_t p = 0; p < GI_COLL_PLANS; p++) {
        c->plans[p].world = at;
        c->plans[p].group = at += n;
        c->plans[p].order = at += n;
        c->plans[p].first = at += n;
        at += n + 1;
    }
    c->cells = i * (uint32_t)n * GI_COLL_SLOTS;
    c->rest = gi_colls_cells(comm, &a->d->reqs) * sizeof(struct gi_coll_line) + i * a->each;
    if (n == 1)
        return GIN_OK;
    uint64_t at_block = GI_CONTROL + a->off;
    c->mine = (char *)gi_control(comm, comm->shm->lsa_rank) + at_block;
    for (int r = 0; r < comm->size; r++) {
        int lsa = gi_lsa_on(a->d, r);
        if (lsa < 0)
            continue;
        c->links[r].heap = (char *)gi_control(comm, lsa) + GI_CONTROL;
        c->links[r].peer = (char *)gi_control(comm, lsa) + at_block;
    }
    return GIN_OK;
}

int gi_colls_open(struct gi_devcomm *d, uint64_t off, struct gi_colls **colls)
{
    struct gi_colls *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for collectives");
    const gin_comm_t *comm = d->comm;
    lay_out(a, comm, &d->reqs);
    a->d = d;
    a->off = off;
    a->timeout_ns =
        d->reqs.collective_timeout_ns != 0 ? d->reqs.collective_timeout_ns : comm->env.coll_timeout;
    a->rank_order = gi_colls_in_rank_order(comm);
    a->choice = malloc(sizeof(*a->choice));
    int st = a->choice != NULL ? gi_coll_choice_read(comm, a->choice) : no_memory(a);
    if (st == GIN_OK && a->count != 0) {
        a->index = aligned_alloc(64, a->count * sizeof(*a->index));
        st = a->index != NULL ? GIN_OK : no_memory(a);
    }
    if (a->index != NULL)
        memset(a->index, 0, a->count * sizeof(*a->index));
    for (uint32_t i = 0; st == GIN_OK && i < a->count; i++)
        st = index_open(a, i);
    if (st != GIN_OK) {
        gi_colls_close(a);
        return st;
    }
    gi_info("coll", "%u collective%s, messages of %llu bytes, %s", a->count,
            a->count == 1 ? "" : "s", (unsigned long long)a->slot,
            a->rank_order ? "in the order of ranks" : "in any order");
    *colls = a;
    return GIN_OK;
}

void gi_colls_close(struct gi_colls *a)
{
    if (a == NULL)
        return;
    for (uint32_t i = 0; a->index != NULL && i < a->count; i++) {
        free(a->index[i].links);
        free(a->index[i].refs);
        free(a->index[i].ints);
        free(a->index[i].tmp[0]);
    }
    free(a->index);
    free(a->choice);
    free(a);
}

void gi_colls_count(const struct gi_colls *a, gin_stats_t *s)
{
    for (uint32_t i = 0; a != NULL && i < a->count; i++) {
        s->collectives += GIN_LOAD_RELAXED(&a->index[i].calls);
        s->coll_flat += GIN_LOAD_RELAXED(&a->index[i].by[GI_COLL_FLAT]);
        s->coll_two += GIN_LOAD_RELAXED(&a->index[i].by[GI_COLL_HOSTS]);
        s->coll_tree += GIN_LOAD_RELAXED(&a->index[i].by[GI_COLL_TREE]);
        s->coll_chain += GIN_LOAD_RELAXED(&a->index[i].by[GI_COLL_CHAIN]);
    }
}
