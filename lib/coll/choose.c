/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way a call goes: the one that the environment names for it, else the one that costs least
 * by a model of few numbers. All that goes into it is the same on all members: what a team's groups
 * look like, the bytes of a call, numbers that ranks compare when they make a device communicator.
 *
 * A rank that exchanges k messages with others of its group waits once and handles each, by load
 * and store; with ranks elsewhere likewise, and what all ranks of a group send there shares its
 * rails. The numbers are of tests/perf/coll (see RESULTS.md there).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coll/agree.h"
#include "coll/choose.h"
#include "coll/two.h"
#include "net_up.h"

static const char *const ways[GI_COLL_WAYS] = {
    [GI_COLL_AUTO] = "auto",   [GI_COLL_FLAT] = "flat",   [GI_COLL_TREE] = "tree",
    [GI_COLL_CHAIN] = "chain", [GI_COLL_HOSTS] = "hosts",
};

const char *gi_coll_way_name(enum gi_coll_way way)
{
    return ways[way];
}

/* ---- what it costs ---- */

/* A call, for all its members. */
struct shape {
    const struct gi_coll_cost *c;
    const struct gi_coll_plan *p;
    uint64_t n, bytes; /* of what a rank has for each, or for all */
    uint64_t slot, rails;
    uint64_t near, far; /* other ranks in one's group, and elsewhere: at most */
    uint64_t hosts;     /* other groups */
    uint64_t most;      /* ranks in a group, at most */
    bool rank_order;
};
typedef uint64_t (*cost_fn)(const struct shape *s);

static uint64_t kib(uint64_t bytes, uint64_t ns)
{
    return bytes / 1024 * ns + bytes % 1024 * ns / 1024;
}

/* k ranks each, with so many bytes in all. */
static uint64_t near(const struct shape *s, uint64_t k, uint64_t bytes)
{
    const struct gi_coll_cost *c = s->c;
    return k == 0 ? 0 : c->near_wait + k * c->near_each + kib(bytes, c->near_kib);
}

/* ... of all ranks of a group, in messages of a slot at most. */
static uint64_t far(const struct shape *s, uint64_t k, uint64_t bytes)
{
    const struct gi_coll_cost *c = s->c;
    uint64_t messages = bytes / s->slot / s->most;
    return k == 0 ? 0
                  : c->far_wait + (messages > k ? messages : k) * c->far_each +
                        kib(bytes / s->rails, c->far_kib);
}

static uint64_t fold(const struct shape *s, uint64_t bytes)
{
    return kib(bytes, s->c->fold_kib);
}

/* Between all members: `out` bytes to each. */
static uint64_t all_to_all(const struct shape *s, uint64_t out)
{
    return near(s, s->near, s->near * out) + far(s, s->far, s->far * s->most * out);
}

static uint64_t flat_one(const struct shape *s)
{
    return near(s, s->near, s->near * s->bytes) + far(s, s->far, s->far * s->bytes);
}

static uint64_t flat_all(const struct shape *s)
{
    return all_to_all(s, s->bytes);
}

static uint64_t flat_fold(const struct shape *s)
{
    return flat_all(s) + fold(s, s->n * s->bytes);
}

static uint64_t flat_reduce(const struct shape *s)
{
    return flat_one(s) + fold(s, s->n * s->bytes);
}

static uint64_t flat_allreduce(const struct shape *s)
{
    if (s->bytes <= GI_COLL_DIRECT)
        return flat_fold(s);
    return 2 * all_to_all(s, s->bytes / s->n) + fold(s, s->bytes);
}

/* Rounds of a message to one other rank, to all of them in the end. */
static uint64_t rounds(const struct shape *s, uint64_t bytes)
{
    uint64_t k = 0, sum = 0;
    for (uint64_t d = 1; d < s->n; d *= 2, k++)
        sum += s->hosts == 0 ? near(s, 1, bytes) : far(s, 1, s->most * bytes);
    return sum;
}

static uint64_t tree(const struct shape *s)
{
    return rounds(s, s->bytes);
}

static uint64_t tree_fold(const struct shape *s)
{
    uint64_t sum = rounds(s, s->bytes);
    for (uint64_t d = 1; d < s->n; d *= 2)
        sum += fold(s, s->bytes);
    return sum;
}

/* All wait in a row, each while the next steps are on their way to it. */
static uint64_t chain_fold(const struct shape *s)
{
    uint64_t sum = fold(s, s->bytes);
    for (int r = 1; r < s->p->n; r++)
        sum += s->p->group[r] == s->p->group[r - 1] ? near(s, 1, 0) : far(s, 1, 0);
    return sum + (s->hosts == 0 ? near(s, 1, s->bytes) : far(s, 1, s->bytes));
}

static uint64_t hosts_sync(const struct shape *s)
{
    return 2 * near(s, s->near, 0) + far(s, s->hosts, 0);
}

static uint64_t hosts_broadcast(const struct shape *s)
{
    return far(s, s->hosts, s->hosts * s->bytes) + near(s, s->near, s->near * s->bytes);
}

static uint64_t hosts_allgather(const struct shape *s)
{
    return near(s, s->near, s->near * s->bytes) + far(s, s->hosts, s->hosts * s->most * s->bytes) +
           near(s, s->near, s->far * s->bytes);
}

static uint64_t hosts_gather(const struct shape *s)
{
    return near(s, s->near, s->near * s->bytes) + far(s, s->hosts, s->far * s->bytes) +
           near(s, 1, s->far * s->bytes);
}

static uint64_t hosts_alltoall(const struct shape *s)
{
    return near(s, s->near, s->near * s->bytes) + 2 * near(s, s->near, s->far * s->bytes) +
           far(s, s->hosts, s->far * s->most * s->bytes);
}

static uint64_t hosts_reduce(const struct shape *s)
{
    return near(s, s->near, s->bytes) + fold(s, s->bytes) + far(s, s->hosts, s->hosts * s->bytes) +
           fold(s, s->hosts * s->bytes / s->most) + near(s, s->near, s->bytes);
}

static uint64_t hosts_scatter(const struct shape *s)
{
    return 2 * near(s, s->near, (s->n - 1) * s->bytes) +
           far(s, s->hosts, s->hosts * s->most * s->bytes) + fold(s, s->n * s->bytes);
}

/* As they are, step by step, and combined by everybody. */
static uint64_t hosts_in_order(const struct shape *s)
{
    uint64_t more = s->n * s->bytes / (2 * s->slot);
    return hosts_allgather(s) + more * hosts_sync(s) + fold(s, s->n * s->bytes);
}

static uint64_t hosts_allreduce(const struct shape *s)
{
    return s->rank_order ? hosts_in_order(s) : hosts_reduce(s);
}

/* No function: it has not that way. */
static const cost_fn costs[GI_COLL_KINDS][GI_COLL_WAYS] = {
    [GI_COLL_SYNC] =
        {[GI_COLL_FLAT] = flat_one, [GI_COLL_TREE] = tree, [GI_COLL_HOSTS] = hosts_sync},
    [GI_COLL_BROADCAST] =
        {[GI_COLL_FLAT] = flat_one, [GI_COLL_TREE] = tree, [GI_COLL_HOSTS] = hosts_broadcast},
    [GI_COLL_ALLGATHER] = {[GI_COLL_FLAT] = flat_all, [GI_COLL_HOSTS] = hosts_allgather},
    [GI_COLL_GATHER] = {[GI_COLL_FLAT] = flat_one, [GI_COLL_HOSTS] = hosts_gather},
    [GI_COLL_ALLTOALL] = {[GI_COLL_FLAT] = flat_all, [GI_COLL_HOSTS] = hosts_alltoall},
    [GI_COLL_ALLTOALLV] = {[GI_COLL_FLAT] = flat_all, [GI_COLL_HOSTS] = hosts_alltoall},
    [GI_COLL_ALLREDUCE] = {[GI_COLL_FLAT] = flat_allreduce,
                           [GI_COLL_TREE] = tree_fold,
                           [GI_COLL_HOSTS] = hosts_allreduce},
    [GI_COLL_REDUCE] = {[GI_COLL_FLAT] = flat_reduce,
                        [GI_COLL_TREE] = tree_fold,
                        [GI_COLL_HOSTS] = hosts_allreduce},
    [GI_COLL_REDUCE_SCATTER] = {[GI_COLL_FLAT] = flat_fold, [GI_COLL_HOSTS] = hosts_scatter},
    [GI_COLL_SCAN] = {[GI_COLL_FLAT] = flat_fold,
                      [GI_COLL_CHAIN] = chain_fold,
                      [GI_COLL_HOSTS] = hosts_in_order},
    [GI_COLL_SCAN_EXCLUSIVE] = {[GI_COLL_FLAT] = flat_fold,
                                [GI_COLL_CHAIN] = chain_fold,
                                [GI_COLL_HOSTS] = hosts_in_order},
};

/* ---- what the environment says ---- */

static const struct gi_coll_cost built_in = {
    .near_wait = 400,
    .near_each = 100,
    .near_kib = 60,
    .far_wait = 15000,
    .far_each = 5000,
    .far_kib = 400,
    .fold_kib = 150,
};

static const struct {
    const char *name;
    size_t at;
} numbers[] = {
#define NUMBER(field)                                \
    {                                                \
#field, offsetof(struct gi_coll_cost, field) \
    }
    NUMBER(near_wait), NUMBER(near_each), NUMBER(near_kib), NUMBER(far_wait),
    NUMBER(far_each),  NUMBER(far_kib),   NUMBER(fold_kib),
#undef NUMBER
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))
#define MOST    1000000000u /* ns; sums of them stay numbers */

/* One "name=number" up to `end`. */
static bool read_number(struct gi_coll_cost *c, const char *text, const char *end)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        size_t n = strlen(numbers[i].name);
        char *rest;
        if ((size_t)(end - text) <= n + 1 || strncmp(text, numbers[i].name, n) != 0 ||
            text[n] != '=' || text[n + 1] < '0' || text[n + 1] > '9')
            continue;
        uint64_t v = strtoull(text + n + 1, &rest, 10);
        memcpy((char *)c + numbers[i].at, &v, sizeof(v));
        return rest == end && v <= MOST;
    }
    return false;
}

static int read_cost(const char *text, struct gi_coll_cost *c)
{
    *c = built_in;
    while (*text != 0) {
        const char *end = text + strcspn(text, ",");
        if (!read_number(c, text, end))
            return gi_fail(
                GIN_EINVAL,
                "GINSHMEM_COLL_COST: \"%.*s\" is none of near_wait, near_each, near_kib, "
                "far_wait, far_each, far_kib, fold_kib with = and ns up to %u",
                (int)(end - text), text, MOST);
        text = end + (*end == ',');
    }
    return GIN_OK;
}

static enum gi_coll_way way_of(const char *word)
{
    for (int w = 0; w < GI_COLL_WAYS; w++)
        if (strcmp(ways[w], word) == 0)
            return (enum gi_coll_way)w;
    return GI_COLL_AUTO;
}

/* Ways that combine in the order of ranks, or combine nothing. */
static bool keeps_order(enum gi_coll_kind kind, enum gi_coll_way way)
{
    if (kind < GI_COLL_ALLREDUCE || way == GI_COLL_FLAT || way == GI_COLL_CHAIN)
        return true;
    return way == GI_COLL_HOSTS && kind != GI_COLL_REDUCE_SCATTER;
}

static const struct {
    const char *name;
    size_t at;
} variables[GI_COLL_KINDS] = {
#define VARIABLE(field, name)                             \
    {                                                     \
        "GINSHMEM_" #name, offsetof(struct gi_env, field) \
    }
    [GI_COLL_SYNC] = VARIABLE(coll_sync, COLL_SYNC),
    [GI_COLL_BROADCAST] = VARIABLE(coll_broadcast, COLL_BROADCAST),
    [GI_COLL_ALLGATHER] = VARIABLE(coll_allgather, COLL_ALLGATHER),
    [GI_COLL_GATHER] = VARIABLE(coll_gather, COLL_GATHER),
    [GI_COLL_ALLTOALL] = VARIABLE(coll_alltoall, COLL_ALLTOALL),
    [GI_COLL_ALLTOALLV] = VARIABLE(coll_alltoallv, COLL_ALLTOALLV),
    [GI_COLL_ALLREDUCE] = VARIABLE(coll_allreduce, COLL_ALLREDUCE),
    [GI_COLL_REDUCE] = VARIABLE(coll_reduce, COLL_REDUCE),
    [GI_COLL_REDUCE_SCATTER] = VARIABLE(coll_reduce_scatter, COLL_REDUCE_SCATTER),
    [GI_COLL_SCAN] = VARIABLE(coll_scan, COLL_SCAN),
    [GI_COLL_SCAN_EXCLUSIVE] = VARIABLE(coll_scan, COLL_SCAN),
#undef VARIABLE
};

int gi_coll_choice_read(const gin_comm_t *comm, struct gi_coll_choice *choice)
{
    const char *word;
    bool rank_order = gi_colls_in_rank_order(comm);
    enum gi_coll_way all = way_of(comm->env.coll_algo);
    for (int k = 0; k < GI_COLL_KINDS; k++) {
        memcpy(&word, (const char *)&comm->env + variables[k].at, sizeof(word));
        enum gi_coll_way way = way_of(word);
        if (way != GI_COLL_AUTO && rank_order && !keeps_order((enum gi_coll_kind)k, way))
            return gi_fail(GIN_EINVAL,
                           "gin_devcomm_create: %s=%s does not combine in the order of ranks, "
                           "which GINSHMEM_COLL_ORDER=rank asks for",
                           variables[k].name, word);
        /* the general one is a wish */
        if (way == GI_COLL_AUTO && costs[k][all] != NULL &&
            (!rank_order || keeps_order((enum gi_coll_kind)k, all)))
            way = all;
        choice->forced[k] = way;
    }
    return read_cost(comm->env.coll_cost, &choice->cost);
}

uint64_t gi_colls_choice(const gin_comm_t *comm)
{
    struct gi_coll_choice c;
    uint64_t h = GI_COLL_HASH, v;
    if (gi_coll_choice_read(comm, &c) != GIN_OK)
        return 0;
    for (int k = 0; k < GI_COLL_KINDS; k++)
        h = gi_coll_hash(h, (uint64_t)c.forced[k]);
    for (size_t i = 0; i < NUMBERS; i++) {
        memcpy(&v, (const char *)&c.cost + numbers[i].at, sizeof(v));
        h = gi_coll_hash(h, v);
    }
    return h >> 1; /* a positive number for people */
}

int gi_colls_check(const gin_comm_t *comm)
{
    struct gi_coll_choice c;
    return gi_coll_choice_read(comm, &c);
}

/* ---- choosing ---- */

/* Why it cannot go that way; NULL: it can. */
static const char *obstacle(const struct gi_coll_call *o, enum gi_coll_way way)
{
    if (way != GI_COLL_HOSTS)
        return NULL;
    switch (o->kind) {
    case GI_COLL_ALLTOALL:
    case GI_COLL_GATHER:
        return gi_coll_blocks_fit(o) ? NULL : "a byte of each block does not fit into a message";
    case GI_COLL_ALLTOALLV:
        return gi_coll_counts_fit(o) ? NULL : "the blocks' lengths do not fit into a message";
    case GI_COLL_ALLREDUCE:
    case GI_COLL_REDUCE:
        if (!o->all->rank_order)
            return NULL; /* fall through */
    case GI_COLL_SCAN:
    case GI_COLL_SCAN_EXCLUSIVE:
        return gi_coll_order_fits(o) ? NULL : "an element of each rank does not fit into a message";
    default: return NULL;
    }
}

static enum gi_coll_way cheapest(const struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    const struct gi_net *net = o->all->d->comm->net;
    const struct shape s = {
        .c = &o->all->choice->cost,
        .p = p,
        .n = (uint64_t)p->n,
        .bytes = o->count * o->size,
        .slot = o->all->slot,
        .rails = net != NULL && net->n_domains != 0 ? net->n_domains : 1,
        .near = (uint64_t)p->most - 1,
        .far = (uint64_t)(p->n - p->least),
        .hosts = (uint64_t)p->groups - 1,
        .most = (uint64_t)p->most,
        .rank_order = o->all->rank_order,
    };
    enum gi_coll_way best = GI_COLL_FLAT;
    uint64_t least = UINT64_MAX;
    for (int w = GI_COLL_FLAT; w < GI_COLL_WAYS; w++) {
        enum gi_coll_way way = (enum gi_coll_way)w;
        if (costs[o->kind][w] == NULL || obstacle(o, way) != NULL ||
            (s.rank_order && !keeps_order(o->kind, way)) ||
            (way == GI_COLL_HOSTS && (p->groups == 1 || p->groups == p->n)))
            continue;
        uint64_t cost = costs[o->kind][w](&s);
        if (cost < least) {
            least = cost;
            best = way;
        }
    }
    return best;
}

int gi_coll_choose(const struct gi_coll_call *o, enum gi_coll_way *way)
{
    *way = o->all->choice->forced[o->kind];
    if (GIN_LIKELY(*way == GI_COLL_AUTO)) {
        uint64_t bytes = o->count * o->size;
        if (GIN_UNLIKELY(o->p->chosen[o->kind].bytes != bytes + 1)) {
            o->p->chosen[o->kind].way = cheapest(o);
            o->p->chosen[o->kind].bytes = bytes + 1;
        }
        *way = o->p->chosen[o->kind].way;
        return GIN_OK;
    }
    const char *why = obstacle(o, *way);
    if (why != NULL)
        return gi_fail(GIN_ENOTSUP, "%s: %s=%s: %s", o->name, variables[o->kind].name, ways[*way],
                       why);
    return GIN_OK;
}

const char *gi_colls_way(const gin_t *g, gin_team_t team, unsigned kind, uint64_t bytes,
                         const char **call)
{
    struct gi_colls *all = gi_devcomm_of(g)->colls;
    struct gi_coll_call o = {.g = g, .all = all, .kind = (enum gi_coll_kind)kind};
    enum gi_coll_way way;
    if (kind >= GI_COLL_KINDS || all->count == 0)
        return NULL;
    o.name = *call = gi_coll_name(kind);
    o.count = kind == GI_COLL_ALLTOALLV ? 0 : bytes; /* that is not the same on all ranks */
    o.size = 1;
    o.p = gi_coll_plan(all, &all->index[0], team, *call);
    return o.p != NULL && gi_coll_choose(&o, &way) == GIN_OK ? ways[way] : "none";
}
