/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Teams: which value names which ranks, and who may be freed.
 *
 * A progression is its own description and owns nothing. Any other order of ranks is a list in a
 * table of this rank; the team's `first` then holds place and generation, so that a freed list is
 * told from its successor. Lists are copies: a team outlives the one it was made from. The table
 * never moves and readers take no lock; making and freeing do. Nothing here communicates.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "comm.h"
#include "mirror.h"
#include "team_math.h"

#define ID_BITS         12
#define LISTS           (1 << ID_BITS)
#define GENERATION_MASK ((1u << (31 - ID_BITS)) - 1)

struct list {
    _Atomic int32_t name; /* `first` of the team that owns it, 0: free */
    uint32_t generation;
    int32_t size;
    int32_t *ranks; /* world ranks in team order */
    int32_t *order; /* team ranks by ascending world rank; in the same block of memory */
    int32_t next;   /* free list */
    bool fixed;     /* predefined: lives as long as the communicator */
};

struct gi_teams {
    pthread_mutex_t lock;
    int32_t made, free, live;
    uint32_t generation; /* where the generations of this table start */
    struct list lists[LISTS];
};

/* A team looked up: a list when ranks is set, else a progression. */
struct view {
    struct gi_ap ap; /* of a list only the size counts */
    const int32_t *ranks, *order;
};

int gi_teams_open(gin_comm_t *comm)
{
    static _Atomic uint32_t tables;
    struct gi_teams *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return gi_fail(GIN_ENOMEM, "teams: no memory for the table of %d lists", LISTS);
    pthread_mutex_init(&t->lock, NULL);
    t->free = -1;
    /* tables start apart, so that a team of another communicator is most likely stale here */
    t->generation = atomic_fetch_add(&tables, 1) * 40503u;
    comm->teams = t;
    return GIN_OK;
}

void gi_teams_close(gin_comm_t *comm)
{
    struct gi_teams *t = comm->teams;
    if (t == NULL)
        return;
    for (int32_t i = 0; i < t->made; i++)
        free(t->lists[i].ranks);
    pthread_mutex_destroy(&t->lock);
    free(t);
    comm->teams = NULL;
}

uint64_t gi_teams_live(const gin_comm_t *comm)
{
    struct gi_teams *t = comm->teams;
    if (t == NULL)
        return 0;
    pthread_mutex_lock(&t->lock);
    uint64_t n = (uint64_t)t->live;
    pthread_mutex_unlock(&t->lock);
    return n;
}

int gi_teams_each(const gin_comm_t *comm,
                  int (*fn)(void *arg, uint32_t id, int32_t name, const int32_t *ranks, int32_t n),
                  void *arg)
{
    struct gi_teams *t = comm->teams;
    int st = GIN_OK;
    pthread_mutex_lock(&t->lock);
    for (int32_t i = 0; st == GIN_OK && i < t->made; i++) {
        const struct list *l = &t->lists[i];
        int32_t name = atomic_load_explicit(&l->name, memory_order_relaxed);
        if (name != 0)
            st = fn(arg, (uint32_t)i, name, l->ranks, l->size);
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

/* ---- looking up ---- */

static const struct list *find_list(const gin_comm_t *comm, gin_team_t team)
{
    if (team.first <= 0)
        return NULL;
    const struct list *l = &comm->teams->lists[team.first & (LISTS - 1)];
    bool live = atomic_load_explicit(&l->name, memory_order_acquire) == team.first;
    return live && l->size == team.size ? l : NULL;
}

static int look_up(const gin_comm_t *comm, const char *call, gin_team_t team, struct view *v)
{
    if (team.size <= 0)
        return gi_fail(GIN_EINVAL,
                       "%s: the team is the invalid one (I am no member, or it was "
                       "never made)",
                       call);
    v->ap = (struct gi_ap){.first = team.first, .stride = team.stride, .size = team.size};
    v->ranks = v->order = NULL;
    if (team.stride != 0) {
        if (!gi_ap_valid(v->ap, comm->size))
            return gi_fail(GIN_EINVAL, "%s: a team of %d ranks from %d by %d does not fit %d ranks",
                           call, team.size, team.first, team.stride, comm->size);
        return GIN_OK;
    }
    const struct list *l = find_list(comm, team);
    if (l == NULL)
        return gi_fail(GIN_ESTATE,
                       "%s: the team (list %d, %d ranks) was freed, or belongs to "
                       "another communicator",
                       call, team.first & (LISTS - 1), team.size);
    v->ranks = l->ranks;
    v->order = l->order;
    return GIN_OK;
}

static int32_t rank_at(const struct view *v, int32_t index)
{
    return v->ranks != NULL ? v->ranks[index] : gi_ap_at(v->ap, index);
}

static int32_t index_of(const struct view *v, int32_t world)
{
    if (v->ranks == NULL)
        return gi_ap_index(v->ap, world);
    int32_t lo = 0, hi = v->ap.size;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (v->ranks[v->order[mid]] < world)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < v->ap.size && v->ranks[v->order[lo]] == world ? v->order[lo] : -1;
}

int gi_team_world(const gin_comm_t *comm, gin_team_t team, int rank)
{
    struct view v;
    int st = look_up(comm, "team", team, &v);
    if (st != GIN_OK)
        return st;
    if (rank < 0 || rank >= team.size)
        return gi_fail(GIN_ERANGE, "rank %d is not in a team of %d ranks", rank, team.size);
    return rank_at(&v, rank);
}

/* ---- making ---- */

struct place {
    int32_t world, index;
};

static int by_world(const void *a, const void *b)
{
    int32_t x = ((const struct place *)a)->world, y = ((const struct place *)b)->world;
    return (x > y) - (x < y);
}

/* order[] of ranks[]; GIN_EINVAL for a rank that occurs twice. */
static int sort_ranks(const char *call, const int32_t *ranks, int32_t n, int32_t *order)
{
    int st = GIN_OK;
    struct place *p = malloc(sizeof(*p) * (size_t)n);
    if (p == NULL)
        return gi_fail(GIN_ENOMEM, "%s: no memory to sort %d ranks", call, n);
    for (int32_t i = 0; i < n; i++)
        p[i] = (struct place){.world = ranks[i], .index = i};
    qsort(p, (size_t)n, sizeof(*p), by_world);
    for (int32_t i = 0; i < n && st == GIN_OK; i++) {
        order[i] = p[i].index;
        if (i > 0 && p[i].world == p[i - 1].world)
            st = gi_fail(GIN_EINVAL, "%s: rank %d stands in the list twice", call, p[i].world);
    }
    free(p);
    return st;
}

/* Give a list (ranks and order in one block, which it takes) a place in the table. */
static int commit_list(gin_comm_t *comm, const char *call, int32_t *ranks, int32_t n, bool fixed,
                       gin_team_t *team)
{
    struct gi_teams *t = comm->teams;
    pthread_mutex_lock(&t->lock);
    int32_t id = t->free;
    if (id < 0 && t->made == LISTS) {
        pthread_mutex_unlock(&t->lock);
        return gi_fail(GIN_ENOMEM,
                       "%s: %d teams that are lists of ranks are live, which is the "
                       "limit; free some with gin_team_free()",
                       call, LISTS);
    }
    if (id >= 0) {
        t->free = t->lists[id].next;
    } else {
        id = t->made++;
        t->lists[id].generation = t->generation;
    }
    struct list *l = &t->lists[id];
    l->generation = (l->generation + 1) & GENERATION_MASK;
    l->generation += l->generation == 0;
    int32_t name = (int32_t)(l->generation << ID_BITS | (uint32_t)id);
    int st = gi_mirror_list(comm, (uint32_t)id, name, ranks, n);
    if (st != GIN_OK) {
        l->next = t->free;
        t->free = id;
        pthread_mutex_unlock(&t->lock);
        return gi_fail_context("%s", call);
    }
    l->ranks = ranks;
    l->order = ranks + n;
    l->size = n;
    l->fixed = fixed;
    team->first = name;
    atomic_store_explicit(&l->name, name, memory_order_release);
    t->live++;
    pthread_mutex_unlock(&t->lock);
    team->stride = 0;
    team->size = n;
    return GIN_OK;
}

static void name_progression(struct gi_ap ap, gin_team_t *team)
{
    team->first = ap.first;
    team->stride = ap.stride;
    team->size = ap.size;
}

/* The team of n distinct ranks, me among them; *team on success only. */
static int make(gin_comm_t *comm, const char *call, const int32_t *list, int32_t n, bool fixed,
                gin_team_t *team)
{
    struct gi_ap ap;
    gin_team_t t = gin_team_invalid();
    int32_t *ranks, me = 0;
    int st;

    while (me < n && list[me] != comm->rank)
        me++;
    t.rank = me < n ? me : -1;
    if (gi_ap_from_list(list, n, &ap)) {
        name_progression(ap, &t);
        *team = t;
        return GIN_OK;
    }
    ranks = malloc(sizeof(*ranks) * 2 * (size_t)n);
    if (ranks == NULL)
        return gi_fail(GIN_ENOMEM, "%s: no memory for a list of %d ranks", call, n);
    memcpy(ranks, list, sizeof(*ranks) * (size_t)n);
    st = sort_ranks(call, ranks, n, ranks + n);
    if (st != GIN_OK)
        goto free_ranks;
    if (t.rank < 0 && !fixed)
        goto free_ranks; /* all is well, but it is the others' team */
    st = commit_list(comm, call, ranks, n, fixed, &t);
    if (st != GIN_OK)
        goto free_ranks;
    *team = t;
    return GIN_OK;
free_ranks:
    free(ranks);
    return st;
}

int gi_team_make(gin_comm_t *comm, const int *world_ranks, int count, int fixed, gin_team_t *team)
{
    *team = gin_team_invalid();
    return count <= 0 ? GIN_OK : make(comm, "team", world_ranks, count, fixed != 0, team);
}

/* The members of a looked-up parent whose indices form `sub`, or the invalid team for others. */
static int make_sub(gin_comm_t *comm, const char *call, const struct view *parent, struct gi_ap sub,
                    gin_team_t *team)
{
    int32_t mine = gi_ap_index(sub, index_of(parent, comm->rank));
    if (mine < 0)
        return GIN_OK;
    if (parent->ranks == NULL) {
        team->rank = mine;
        name_progression(gi_ap_of(parent->ap, sub), team);
        return GIN_OK;
    }
    int32_t *list = malloc(sizeof(*list) * (size_t)sub.size);
    if (list == NULL)
        return gi_fail(GIN_ENOMEM, "%s: no memory for a list of %d ranks", call, sub.size);
    for (int32_t i = 0; i < sub.size; i++)
        list[i] = parent->ranks[gi_ap_at(sub, i)];
    int st = make(comm, call, list, sub.size, false, team);
    free(list);
    return st;
}

/* What every maker begins with: comm, place for the result, parent. */
static int begin(gin_comm_t *comm, const char *call, gin_team_t parent, gin_team_t *team,
                 struct view *v)
{
    if (team != NULL)
        *team = gin_team_invalid();
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK)
        return st;
    if (team == NULL)
        return gi_fail(GIN_EINVAL, "%s: no place for the team (NULL)", call);
    return look_up(comm, call, parent, v);
}

int gin_team_split_strided(gin_comm_t *comm, gin_team_t parent, int start, int stride, int size,
                           gin_team_t *team)
{
    static const char call[] = "gin_team_split_strided";
    struct gi_ap sub = {.first = start, .stride = stride, .size = size};
    struct view v;
    int st = begin(comm, call, parent, team, &v);
    if (st != GIN_OK)
        return st;
    if (size <= 0)
        return gi_fail(GIN_EINVAL, "%s: size %d; a team has at least one member", call, size);
    if (stride == 0 && size > 1)
        return gi_fail(GIN_EINVAL, "%s: stride 0 names one rank %d times", call, size);
    if (!gi_ap_valid(sub, v.ap.size))
        return gi_fail(GIN_ERANGE, "%s: %d ranks from %d by %d leave the parent's 0 .. %d", call,
                       size, start, stride, v.ap.size - 1);
    return make_sub(comm, call, &v, sub, team);
}

/* My block of `inner` parent ranks, or those with my place in the blocks. */
static int make_factor(gin_comm_t *comm, const char *call, const struct view *parent, int inner,
                       bool outer, gin_team_t *team)
{
    int32_t me = index_of(parent, comm->rank), n = parent->ap.size;
    if (inner <= 0)
        return gi_fail(GIN_EINVAL, "%s: blocks of %d ranks; at least 1", call, inner);
    if (me < 0)
        return GIN_OK;
    struct gi_ap sub = outer ? gi_ap_outer(n, inner, me) : gi_ap_inner(n, inner, me);
    return make_sub(comm, call, parent, sub, team);
}

int gin_team_inner_factor(gin_comm_t *comm, gin_team_t parent, int inner, gin_team_t *team)
{
    struct view v;
    int st = begin(comm, "gin_team_inner_factor", parent, team, &v);
    return st != GIN_OK ? st : make_factor(comm, "gin_team_inner_factor", &v, inner, false, team);
}

int gin_team_outer_factor(gin_comm_t *comm, gin_team_t parent, int inner, gin_team_t *team)
{
    struct view v;
    int st = begin(comm, "gin_team_outer_factor", parent, team, &v);
    return st != GIN_OK ? st : make_factor(comm, "gin_team_outer_factor", &v, inner, true, team);
}

/* Nothing for a progression: by value a team of the program may equal a predefined one. */
static int release(gin_comm_t *comm, gin_team_t team)
{
    struct gi_teams *t = comm->teams;
    struct list *l = &t->lists[team.first & (LISTS - 1)];
    int st = GIN_OK;
    if (team.stride != 0)
        return GIN_OK;
    pthread_mutex_lock(&t->lock);
    if (atomic_load(&l->name) != team.first) {
        st = GIN_ESTATE; /* another thread was faster */
    } else if (!l->fixed) {
        atomic_store(&l->name, 0);
        gi_mirror_list(comm, (uint32_t)(team.first & (LISTS - 1)), 0, NULL, 0);
        free(l->ranks);
        l->ranks = l->order = NULL;
        l->next = t->free;
        t->free = team.first & (LISTS - 1);
        t->live--;
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

int gin_team_split_2d(gin_comm_t *comm, gin_team_t parent, int xrange, gin_team_t *x, gin_team_t *y)
{
    static const char call[] = "gin_team_split_2d";
    struct view v;
    if (y != NULL)
        *y = gin_team_invalid();
    int st = begin(comm, call, parent, x, &v);
    if (st != GIN_OK)
        return st;
    if (y == NULL)
        return gi_fail(GIN_EINVAL, "%s: no place for the column (NULL)", call);
    st = make_factor(comm, call, &v, xrange, false, x);
    if (st != GIN_OK)
        return st;
    st = make_factor(comm, call, &v, xrange, true, y);
    if (st != GIN_OK) {
        release(comm, *x);
        *x = gin_team_invalid();
    }
    return st;
}

int gin_team_create(gin_comm_t *comm, const int *world_ranks, int count, gin_team_t *team)
{
    static const char call[] = "gin_team_create";
    if (team != NULL)
        *team = gin_team_invalid();
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK)
        return st;
    if (team == NULL || world_ranks == NULL)
        return gi_fail(GIN_EINVAL, "%s: %s is NULL", call, team == NULL ? "team" : "world_ranks");
    if (count <= 0)
        return gi_fail(GIN_EINVAL, "%s: %d ranks; a team has at least one", call, count);
    for (int i = 0; i < count; i++)
        if (world_ranks[i] < 0 || world_ranks[i] >= comm->size)
            return gi_fail(GIN_ERANGE, "%s: rank %d at place %d; the ranks are 0 .. %d", call,
                           world_ranks[i], i, comm->size - 1);
    st = make(comm, call, world_ranks, count, false, team);
    if (st == GIN_OK && team->rank < 0)
        *team = gin_team_invalid();
    return st;
}

/* ---- freeing ---- */

int gin_team_free(gin_comm_t *comm, gin_team_t team)
{
    static const char call[] = "gin_team_free";
    struct view v;
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK || team.size == 0)
        return st; /* the invalid team is what ranks outside got */
    st = look_up(comm, call, team, &v);
    if (st != GIN_OK)
        return st;
    st = release(comm, team);
    return st == GIN_OK ? st : gi_fail(st, "%s: the team was freed by another thread", call);
}

/* ---- predefined teams and conversions ---- */

gin_team_t gin_team_world(gin_comm_t *comm)
{
    return gi_comm_enter(comm, "gin_team_world") == GIN_OK ? comm->world : gin_team_invalid();
}

gin_team_t gin_team_node(gin_comm_t *comm)
{
    return gi_comm_enter(comm, "gin_team_node") == GIN_OK ? comm->node : gin_team_invalid();
}

gin_team_t gin_team_lsa(gin_comm_t *comm)
{
    return gi_comm_enter_up(comm, "gin_team_lsa") == GIN_OK ? comm->lsa : gin_team_invalid();
}

gin_team_t gin_team_rail(gin_comm_t *comm)
{
    return gi_comm_enter_up(comm, "gin_team_rail") == GIN_OK ? comm->rail : gin_team_invalid();
}

/* World rank of a team's rank, or -1 with the error recorded. */
static int32_t to_world(gin_comm_t *comm, const char *call, gin_team_t team, int rank)
{
    struct view v;
    if (gi_comm_enter(comm, call) != GIN_OK || look_up(comm, call, team, &v) != GIN_OK)
        return -1;
    if (rank >= 0 && rank < team.size)
        return rank_at(&v, rank);
    gi_fail(GIN_ERANGE, "%s: rank %d is not in a team of %d ranks", call, rank, team.size);
    return -1;
}

int gin_team_rank_to_world(gin_comm_t *comm, gin_team_t team, int rank)
{
    return to_world(comm, "gin_team_rank_to_world", team, rank);
}

int gin_team_translate(gin_comm_t *comm, gin_team_t from, int rank, gin_team_t to)
{
    static const char call[] = "gin_team_translate";
    struct view v;
    int32_t world = to_world(comm, call, from, rank);
    return world < 0 || look_up(comm, call, to, &v) != GIN_OK ? -1 : index_of(&v, world);
}

int gin_team_rank_to_lsa(gin_comm_t *comm, gin_team_t team, int rank)
{
    static const char call[] = "gin_team_rank_to_lsa";
    int32_t world = to_world(comm, call, team, rank);
    if (world < 0)
        return -1;
    if (comm->up)
        return comm->shm->lsa_of[world];
    gi_fail(GIN_ESTATE, "%s: not known before the heap is up; call gin_team_lsa() on all ranks",
            call);
    return -1;
}

int gin_team_is_member(gin_comm_t *comm, gin_team_t a, gin_team_t b, int rank)
{
    static const char call[] = "gin_team_is_member";
    struct view v;
    int32_t world = to_world(comm, call, b, rank);
    return world >= 0 && look_up(comm, call, a, &v) == GIN_OK && index_of(&v, world) >= 0;
}

int gin_team_rank_in_difference(gin_comm_t *comm, gin_team_t parent, gin_team_t subset, int index)
{
    static const char call[] = "gin_team_rank_in_difference";
    struct view p, s;
    int32_t found = -1;
    if (gi_comm_enter(comm, call) != GIN_OK || look_up(comm, call, parent, &p) != GIN_OK ||
        look_up(comm, call, subset, &s) != GIN_OK)
        return -1;
    if (p.ranks == NULL && s.ranks == NULL) {
        found = gi_ap_difference(p.ap, s.ap, index);
    } else {
        int32_t left = index;
        for (int32_t i = 0; i < p.ap.size && found < 0 && left >= 0; i++)
            if (index_of(&s, rank_at(&p, i)) < 0 && left-- == 0)
                found = i;
    }
    if (found < 0)
        gi_fail(GIN_ERANGE, "%s: no member %d of a team of %d ranks without one of %d", call, index,
                p.ap.size, s.ap.size);
    return found;
}
