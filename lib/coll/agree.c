/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two rounds of short messages between all members. In the first each shows its arguments, of
 * gin_alltoallv() to each what it will get; in the second what it found, since a count that one
 * pair disagrees about nobody else sees. Where they disagree about who the members are there is no
 * second one: somebody waits for a rank that does not know of it, so all give the index up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coll/agree.h"

/* One rank's call; travels inline. */
struct record {
    uint64_t count, members; /* members: a hash of the team, in its order */
    int32_t status, root;
    uint16_t kind, type, op, unused;
    uint32_t size, set; /* of the team; set: a hash of its members in any order */
};
_Static_assert(sizeof(struct record) <= GI_COLL_INLINE, "in one line");

struct verdict {
    int32_t status, rank; /* team rank of who found it */
};

static uint64_t hash_members(const struct gi_coll_plan *p)
{
    uint64_t h = GI_COLL_HASH;
    for (int i = 0; i < p->n; i++)
        h = gi_coll_hash(h, (uint32_t)p->world[i]);
    return h;
}

static uint32_t hash_set(const struct gi_coll_plan *p)
{
    uint32_t sum = 0;
    for (int i = 0; i < p->n; i++) {
        uint32_t h = ((uint32_t)p->world[i] + 1) * 2654435761u;
        sum += (h ^ h >> 15) * 2246822519u;
    }
    return sum;
}

static struct record record_for(const struct gi_coll_call *o, int r, int status)
{
    struct record m = {.count = o->count,
                       .members = hash_members(o->p),
                       .status = status,
                       .root = o->root,
                       .kind = (uint16_t)o->kind,
                       .type = (uint16_t)o->type,
                       .op = (uint16_t)o->op,
                       .size = (uint32_t)o->p->n,
                       .set = hash_set(o->p)};
    if (o->kind == GI_COLL_ALLTOALLV)
        m.count = o->src_counts != NULL ? o->src_counts[r] : 0;
    return m;
}

static int differs(const struct gi_coll_call *o, int r, const char *what, int64_t theirs,
                   int64_t mine)
{
    return gi_fail(GIN_EMISMATCH,
                   "%s: %s differs: rank %d passed %" PRId64 ", rank %d passed %" PRId64, o->name,
                   what, o->p->world[r], theirs, o->p->world[o->p->me], mine);
}

static int compare(const struct gi_coll_call *o, int r, const struct record *it, int status)
{
    struct record mine = record_for(o, r, status);
    if (it->kind != mine.kind)
        return gi_fail(GIN_EMISMATCH, "%s: rank %d calls %s at index %" PRIu32, o->name,
                       o->p->world[r], gi_coll_name(it->kind), o->index);
    if (it->size != mine.size)
        return differs(o, r, "the team's size", it->size, mine.size);
    if (it->members != mine.members)
        return gi_fail(GIN_EMISMATCH, "%s: the team's members or their order differ at rank %d",
                       o->name, o->p->world[r]);
    if (it->type != mine.type)
        return differs(o, r, "type", it->type, mine.type);
    if (it->op != mine.op)
        return differs(o, r, "operation", it->op, mine.op);
    if (it->root != mine.root)
        return differs(o, r, "root", it->root, mine.root);
    if (o->kind == GI_COLL_ALLTOALLV)
        mine.count = o->dst_counts != NULL ? o->dst_counts[r] : 0;
    if (it->count != mine.count && it->status == GIN_OK)
        return differs(o, r, "count", (int64_t)it->count, (int64_t)mine.count);
    return GIN_OK;
}

static int show_arguments(struct gi_coll_call *o, int status)
{
    int n = o->p->n, me = o->p->me, st = GIN_OK;
    for (int i = 1; i < n && st == GIN_OK; i++) {
        int r = (me + i) % n;
        struct record m = record_for(o, r, status);
        st = gi_coll_send(o, r, &m, sizeof(m));
    }
    return st;
}

/* *found: the first thing wrong by rank, my own refusal before all. */
static int look_at_others(struct gi_coll_call *o, int status, int *found)
{
    const void *bytes;
    struct record it;
    uint32_t set = hash_set(o->p);
    bool whole;
    *found = status;
    for (int r = 0; r < o->p->n; r++) {
        if (r == o->p->me)
            continue;
        int st = gi_coll_recv(o, r, sizeof(it), &bytes, &whole);
        if (st != GIN_OK)
            return st;
        memcpy(&it, bytes, sizeof(it));
        st = gi_coll_took(o, r, whole);
        if (st != GIN_OK)
            return st;
        if (it.set != set) /* the end of the index, whatever else is wrong */
            return compare(o, r, &it, status);
        if (*found == GIN_OK)
            *found = compare(o, r, &it, status);
    }
    return GIN_OK;
}

/* A mismatch before what one rank was refused, then the lowest rank's word. */
static bool is_graver(const struct verdict *v, const struct verdict *worst)
{
    if (worst->status == GIN_OK || v->status == GIN_OK)
        return v->status != GIN_OK;
    return v->status == GIN_EMISMATCH && worst->status != GIN_EMISMATCH;
}

static int exchange_verdicts(struct gi_coll_call *o, int found, struct verdict *worst)
{
    struct verdict mine = {found, o->p->me}, v;
    int n = o->p->n, st = GIN_OK;
    const void *bytes;
    bool whole;
    *worst = (struct verdict){GIN_OK, 0};
    for (int i = 1; i < n && st == GIN_OK; i++)
        st = gi_coll_send(o, (o->p->me + i) % n, &mine, sizeof(mine));
    for (int r = 0; r < n && st == GIN_OK; r++) {
        v = mine;
        if (r != o->p->me) {
            st = gi_coll_recv(o, r, sizeof(v), &bytes, &whole);
            if (st != GIN_OK)
                return st;
            memcpy(&v, bytes, sizeof(v));
            st = gi_coll_took(o, r, whole);
        }
        if (is_graver(&v, worst))
            *worst = v;
    }
    return st;
}

int gi_coll_agree(struct gi_coll_call *o, int *status)
{
    struct verdict worst;
    int found, st = show_arguments(o, *status);
    if (st == GIN_OK)
        st = look_at_others(o, *status, &found);
    if (st == GIN_OK)
        st = exchange_verdicts(o, found, &worst);
    if (st != GIN_OK)
        return st;
    *status = worst.status;
    if (found != worst.status) /* else there is a text of my own */
        gi_fail(worst.status, "%s: rank %d found: %s", o->name, o->p->world[worst.rank],
                gin_strerror(worst.status));
    return GIN_OK;
}
