/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides where the words of barriers lie and who counts where. Slots of all pools are one after
 * another in the symmetric block: world, LSA, rail, hybrid, then the custom teams. A slot's size
 * follows from the communicator's size alone, since members and strangers of a team must agree on
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "barrier_impl.h"

static uint32_t flat_max = GI_BARRIER_GROUP;

void gi_barriers_set_flat_max(uint32_t size)
{
    GIN_STORE_RELAXED(&flat_max, size == 0 || size > GI_BARRIER_GROUP ? GI_BARRIER_GROUP : size);
}

/* Levels of counters that a team of n ranks climbs; 0: it is flat. */
static uint32_t levels_of(uint64_t n)
{
    uint32_t levels = 0;
    if (n <= GIN_LOAD_RELAXED(&flat_max))
        return 0;
    for (; n > 1; n = (n + GI_BARRIER_GROUP - 1) / GI_BARRIER_GROUP)
        levels++;
    return levels;
}

static uint64_t slot_bytes(const gin_comm_t *comm, bool flat)
{
    if (flat)
        return ((uint64_t)comm->size * sizeof(uint64_t) + GI_BARRIER_LINE - 1) &
               ~(uint64_t)(GI_BARRIER_LINE - 1);
    uint32_t levels = levels_of((uint64_t)comm->size);
    return GI_BARRIER_LINE * (levels == 0 ? 1 : GI_LINE_COUNTERS + levels);
}

uint64_t gi_barriers_bytes(const gin_comm_t *comm, const gin_devcomm_reqs_t *r, bool flat)
{
    uint64_t indices =
        (uint64_t)r->world_barriers + r->lsa_barriers + r->rail_barriers + r->hybrid_barriers;
    for (uint32_t i = 0; i < r->n_team_barriers; i++)
        indices += r->team_barriers[i].count;
    /* one line more, to start on one */
    return indices == 0 ? 0 : indices * slot_bytes(comm, flat) + GI_BARRIER_LINE;
}

/* World ranks of the team, and the first one that I cannot store to: all members have one, or none,
 * since load/store access is mutual. */
static int list_members(gin_comm_t *comm, struct gi_barrier_pool *p, gin_team_t team)
{
    p->beyond = -1;
    for (uint32_t i = 0; i < p->n; i++) {
        int w = gi_team_world(comm, team, (int)i);
        if (w < 0)
            return gi_fail_context("gin_devcomm_create: %s barrier", p->name);
        p->world_of[i] = w;
        if (p->beyond < 0 && comm->shm->lsa_of[w] < 0)
            p->beyond = w;
    }
    if (p->world_of[p->me] != comm->rank)
        return gi_fail(GIN_EINVAL,
                       "gin_devcomm_create: %s barrier: the team says that I, rank %d, am its rank "
                       "%u, which is rank %d",
                       p->name, comm->rank, p->me, p->world_of[p->me]);
    return GIN_OK;
}

/* On each level the group's first rank holds its counter. */
static void plan_tree(struct gi_barrier_pool *p, bool flat)
{
    uint64_t place = p->me, n = p->n, first = 1; /* first: team ranks per place of this level */
    p->levels = flat ? 0 : levels_of(n);
    p->release = p->peers[p->me - p->me % GI_BARRIER_GROUP] + GI_LINE_RELEASE * GI_BARRIER_LINE;
    for (uint32_t l = 0; l < p->levels; l++) {
        uint64_t group = place / GI_BARRIER_GROUP, from = group * GI_BARRIER_GROUP;
        p->step[l].counter = p->peers[from * first] + (GI_LINE_COUNTERS + l) * GI_BARRIER_LINE;
        p->step[l].full = n - from < GI_BARRIER_GROUP ? n - from : GI_BARRIER_GROUP;
        place = group;
        n = (n + GI_BARRIER_GROUP - 1) / GI_BARRIER_GROUP;
        first *= GI_BARRIER_GROUP;
    }
}

static const struct {
    const char *name, *what;
} texts[] = {
    [GIN_BARRIER_WORLD] = {"world", "world barrier #, round #, where rank # has not arrived"},
    [GIN_BARRIER_LSA] = {"LSA", "LSA barrier #, round #, where rank # has not arrived"},
    [GIN_BARRIER_RAIL] = {"rail", "rail barrier #, round #, where rank # has not arrived"},
    [GIN_BARRIER_HYBRID] = {"hybrid", "hybrid barrier #, round #, where rank # has not arrived"},
    [GIN_BARRIER_TEAM] = {"team", "team barrier #, round #, where rank # has not arrived"},
};

/* *base: my address of the pool's slots; moves on behind them. */
static int pool_open(const struct gi_barriers *b, struct gi_barrier_pool *p,
                     enum gin_barrier_kind kind, gin_team_t team, uint32_t count, char **base)
{
    gin_comm_t *comm = b->comm;
    char *slots = *base;
    p->slot = slot_bytes(comm, b->flat);
    *base += count * p->slot;
    p->count = count;
    p->name = texts[kind].name;
    p->what = texts[kind].what;
    p->beyond = -1;
    if (count == 0 || team.size <= 0 || team.rank < 0)
        return GIN_OK;
    if (team.size > comm->size || team.rank >= team.size)
        return gi_fail(GIN_EINVAL, "gin_devcomm_create: %s barrier: rank %d of %d is no team of %d",
                       p->name, team.rank, team.size, comm->size);
    p->n = (uint32_t)team.size;
    p->me = (uint32_t)team.rank;
    p->world_of = calloc(p->n, sizeof(*p->world_of));
    p->peers = calloc(p->n, sizeof(*p->peers));
    p->rounds = aligned_alloc(GI_BARRIER_LINE, count * sizeof(*p->rounds));
    if (p->world_of == NULL || p->peers == NULL || p->rounds == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u %s barriers", count,
                       p->name);
    memset(p->rounds, 0, count * sizeof(*p->rounds));
    int st = list_members(comm, p, team);
    if (st != GIN_OK || (p->beyond >= 0 && comm->net == NULL))
        return st;
    char *home = (char *)gi_control(comm, comm->shm->lsa_rank);
    for (uint32_t i = 0; i < p->n; i++) {
        int lsa = comm->shm->lsa_of[p->world_of[i]];
        p->peers[i] = lsa >= 0 ? (char *)gi_control(comm, lsa) + (slots - home) : NULL;
    }
    p->mine = slots;
    p->home = (uint64_t)(slots - home) - GI_CONTROL;
    if (p->beyond < 0)
        plan_tree(p, b->flat);
    else
        while ((uint64_t)1 << p->steps < p->n)
            p->steps++;
    return GIN_OK;
}

static void pool_close(struct gi_barrier_pool *p)
{
    free(p->rounds);
    free(p->peers);
    free(p->world_of);
}

/*
 * LSA inside, rails between, LSA to release: with one LSA team that is its LSA barrier, and with
 * several the rails leave this host's load/store reach; the world team says so.
 */
static gin_team_t hybrid_team(const gin_comm_t *comm)
{
    return comm->shm->n_teams == 1 ? comm->lsa : comm->world;
}

static int pools_open(struct gi_barriers *b, const gin_devcomm_reqs_t *r, char *base)
{
    gin_comm_t *comm = b->comm;
    struct gi_barrier_pool *f = b->fixed;
    int st = pool_open(b, &f[GIN_BARRIER_WORLD], GIN_BARRIER_WORLD, comm->world, r->world_barriers,
                       &base);
    if (st == GIN_OK)
        st = pool_open(b, &f[GIN_BARRIER_LSA], GIN_BARRIER_LSA, comm->lsa, r->lsa_barriers, &base);
    if (st == GIN_OK)
        st = pool_open(b, &f[GIN_BARRIER_RAIL], GIN_BARRIER_RAIL, comm->rail, r->rail_barriers,
                       &base);
    if (st == GIN_OK)
        st = pool_open(b, &f[GIN_BARRIER_HYBRID], GIN_BARRIER_HYBRID, hybrid_team(comm),
                       r->hybrid_barriers, &base);
    for (uint32_t i = 0; st == GIN_OK && i < r->n_team_barriers; i++) {
        gin_team_barrier_t *t = &r->team_barriers[i];
        st = pool_open(b, &b->teams[i], GIN_BARRIER_TEAM, t->team, t->count, &base);
        t->handle.kind = GIN_BARRIER_TEAM;
        t->handle.place = i;
    }
    return st;
}

int gi_barriers_open(gin_comm_t *comm, gin_devcomm_reqs_t *r, uint64_t off, bool flat,
                     struct gi_barriers **barriers)
{
    struct gi_barriers *b = calloc(1, sizeof(*b));
    if (b != NULL && r->n_team_barriers != 0)
        b->teams = calloc(r->n_team_barriers, sizeof(*b->teams));
    if (b == NULL || (r->n_team_barriers != 0 && b->teams == NULL)) {
        free(b);
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for barriers");
    }
    b->comm = comm;
    b->flat = flat;
    b->n_teams = r->n_team_barriers;
    uint64_t start = (GI_CONTROL + off + GI_BARRIER_LINE - 1) & ~(uint64_t)(GI_BARRIER_LINE - 1);
    int st = pools_open(b, r, (char *)gi_control(comm, comm->shm->lsa_rank) + start);
    if (st != GIN_OK) {
        gi_barriers_close(b);
        return st;
    }
    *barriers = b;
    return GIN_OK;
}

void gi_barriers_close(struct gi_barriers *b)
{
    if (b == NULL)
        return;
    for (uint32_t k = 0; k < GIN_BARRIER_TEAM; k++)
        pool_close(&b->fixed[k]);
    for (uint32_t i = 0; i < b->n_teams; i++)
        pool_close(&b->teams[i]);
    free(b->teams);
    free(b);
}
