/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is whose neighbour in a team. Making a plan takes a look at each member; an index keeps the
 * last few, so that a loop over a few teams makes each once. Nothing is allocated.
 */
#include <stdio.h>
#include <string.h>

#include "coll/coll.h"
#include "net_up.h"

static bool is_of(const struct gi_coll_plan *p, gin_team_t t)
{
    return p->team.size == t.size && p->team.rank == t.rank && p->team.first == t.first &&
           p->team.stride == t.stride;
}

/* Do two ranks load and store to each other on this device communicator's paths? */
static bool are_near(const struct gi_devcomm *d, int a, int b)
{
    const int32_t *team_of = d->comm->shm->team_of;
    return a == b || (d->lsa_of == NULL && team_of[a] == team_of[b]);
}

bool gi_coll_may_cross(const struct gi_devcomm *d, int a, int b)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    if (d->net == NULL || (r->paths != 0 && !(r->paths & GIN_PATH_NET)))
        return false;
    return r->connection == GIN_CONNECT_FULL ||
           (r->connection == GIN_CONNECT_RAIL &&
            d->comm->shm->index_of[a] == d->comm->shm->index_of[b]);
}

static int list_members(struct gi_devcomm *d, struct gi_coll_plan *p, gin_team_t team,
                        const char *call)
{
    gin_comm_t *comm = d->comm;
    for (int i = 0; i < team.size; i++) {
        int w = gi_team_world(comm, team, i);
        if (w < 0)
            return gi_fail_context("%s", call);
        p->world[i] = w;
    }
    if (team.rank < 0 || team.rank >= team.size)
        return gi_fail(GIN_ESTATE, "%s: rank %d is no member of the team", call, comm->rank);
    if (p->world[team.rank] != comm->rank)
        return gi_fail(GIN_EINVAL,
                       "%s: the team says that I, rank %d, am its rank %d, which is rank %d", call,
                       comm->rank, team.rank, p->world[team.rank]);
    return GIN_OK;
}

/* The groups in the order of their first members. */
static void find_groups(const struct gi_devcomm *d, struct gi_coll_plan *p)
{
    int n = p->n, done = 0;
    for (int i = 0; i < n; i++)
        p->group[i] = -1;
    p->groups = 0;
    p->least = n;
    p->most = 0;
    for (int i = 0; i < n; i++) {
        if (p->group[i] >= 0)
            continue;
        int g = p->groups++;
        p->first[g] = done;
        for (int k = i; k < n; k++)
            if (p->group[k] < 0 && are_near(d, p->world[i], p->world[k])) {
                p->group[k] = g;
                if (k == p->me)
                    p->place = done - p->first[g];
                p->order[done++] = k;
            }
        if (done - p->first[g] < p->least)
            p->least = done - p->first[g];
        if (done - p->first[g] > p->most)
            p->most = done - p->first[g];
    }
    p->first[p->groups] = n;
    p->mine = p->group[p->me];
}

/*
 * Two members that do not reach each other, the same on all ranks: a team is refused on all or on
 * none. All pairs need not be looked at: ranks that cross to one of a rail are of that rail.
 */
static void find_apart(const struct gi_devcomm *d, struct gi_coll_plan *p)
{
    p->apart[0] = p->apart[1] = -1;
    for (int i = 0; i < p->n && p->groups > 1; i++) {
        int a = p->world[i], b = p->world[p->order[p->first[p->group[i] == 0]]];
        if (gi_coll_may_cross(d, a, b))
            continue;
        p->apart[0] = a;
        p->apart[1] = b;
        return;
    }
}

static int refuse(const struct gi_devcomm *d, const struct gi_coll_plan *p, const char *call)
{
    const gin_comm_t *comm = d->comm;
    const gin_devcomm_reqs_t *r = &d->reqs;
    char why[80] = "reqs.connection is GIN_CONNECT_NONE";
    if (d->net == NULL)
        return gi_fail(GIN_ENOTSUP,
                       "%s: ranks %d (host %s) and %d (host %s) are not load/store accessible to "
                       "each other, and %s%s",
                       call, p->apart[0], comm->cards[p->apart[0]].host_id, p->apart[1],
                       comm->cards[p->apart[1]].host_id,
                       comm->net != NULL
                           ? "the network came up after this device communicator was made"
                           : "there is no network: ",
                       comm->net != NULL ? "" : gi_net_why(comm));
    if (r->paths != 0 && !(r->paths & GIN_PATH_NET))
        snprintf(why, sizeof(why), "reqs.paths 0x%x leave out the network (GIN_PATH_NET)",
                 r->paths);
    else if (r->connection == GIN_CONNECT_RAIL)
        snprintf(why, sizeof(why), "not of one rail team, and reqs.connection is GIN_CONNECT_RAIL");
    return gi_fail(GIN_ENOTSUP,
                   "%s: ranks %d and %d are not load/store accessible to each other, and %s", call,
                   p->apart[0], p->apart[1], why);
}

static int make(struct gi_colls *all, struct gi_coll_plan *p, gin_team_t team, const char *call)
{
    struct gi_devcomm *d = all->d;
    p->team.size = 0;
    if (team.size > d->comm->size)
        return gi_fail(GIN_EINVAL, "%s: a team of %d ranks, of %d", call, team.size, d->comm->size);
    int st = team.size > 0 ? list_members(d, p, team, call)
                           : gi_fail(GIN_EINVAL, "%s: the team is the invalid one", call);
    for (int i = 0; st == GIN_OK && i < team.size; i++)
        if (d->device_of[p->world[i]] != GIN_DEVICE_HOST)
            st = gi_fail(GIN_ENOTSUP,
                         "%s: the device of rank %d is a GPU; collectives of host threads and "
                         "kernels together are not built",
                         call, p->world[i]);
    if (st != GIN_OK)
        return st;
    p->n = team.size;
    p->me = team.rank;
    memset(p->chosen, 0, sizeof(p->chosen));
    find_groups(d, p);
    find_apart(d, p);
    if (p->apart[0] >= 0)
        return refuse(d, p, call);
    p->team = team;
    return GIN_OK;
}

struct gi_coll_plan *gi_coll_plan(struct gi_colls *all, struct gi_coll *c, gin_team_t team,
                                  const char *call)
{
    for (uint32_t i = 0; i < GI_COLL_PLANS; i++) {
        /* a list that was freed has lost its name to nobody, but must be refused */
        if (GIN_LIKELY(is_of(&c->plans[i], team)) && team.size > 0 &&
            (team.stride != 0 || gi_team_world(all->d->comm, team, 0) >= 0))
            return &c->plans[i];
    }
    struct gi_coll_plan *p = &c->plans[c->next_plan++ % GI_COLL_PLANS];
    return make(all, p, team, call) == GIN_OK ? p : NULL;
}
