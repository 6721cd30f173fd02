/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin_alltoallv() by way of groups. Short blocks for another group's members are bundled, with
 * their lengths in front; long ones go to their members directly. Which are short, both their ends
 * know; so one message is enough for each pair of groups, and nothing is agreed on before.
 *
 * A bundle of one rank, or of a group: lengths of all blocks, then what is in them, by sender and
 * by taker.
 */
#include <string.h>

#include "coll/two.h"

/* Bytes up to which blocks are short, such that the longest bundle fits. */
static size_t most_of(const struct gi_coll_call *o)
{
    size_t most = (size_t)o->p->most, each = o->all->slot / (most * most);
    return each > sizeof(uint16_t) ? each - sizeof(uint16_t) : 0;
}

bool gi_coll_counts_fit(const struct gi_coll_call *o)
{
    return most_of(o) != 0;
}

/* Bytes of a block in a bundle: none of a long one. */
static uint16_t in_bundle(const struct gi_coll_call *o, size_t count)
{
    size_t bytes = count * o->size;
    return bytes <= most_of(o) ? (uint16_t)bytes : 0;
}

/* Its taker does not know its length, so it never lies beside its number. */
static int send_bundle(struct gi_coll_call *o, int to, const char *bundle, size_t bytes)
{
    return gi_coll_send(o, to, bundle, bytes > GI_COLL_INLINE ? bytes : GI_COLL_INLINE + 1);
}

static int recv_bundle(struct gi_coll_call *o, int from, const char **bundle, bool *whole)
{
    const void *bytes;
    int st = gi_coll_recv(o, from, GI_COLL_INLINE + 1, &bytes, whole);
    *bundle = bytes;
    return st;
}

static uint16_t length(const char *bundle, int i)
{
    uint16_t n;
    memcpy(&n, bundle + (size_t)i * sizeof(n), sizeof(n));
    return n;
}

/* Mine for group h, with lengths; its bytes. */
static size_t pack(const struct gi_coll_call *o, int h, char *to)
{
    int n = gi_coll_members(o->p, h);
    size_t at = (size_t)n * sizeof(uint16_t);
    for (int j = 0; j < n; j++) {
        int r = gi_coll_member(o->p, h, j);
        uint16_t k = in_bundle(o, o->src_counts[r]);
        memcpy(to + (size_t)j * sizeof(k), &k, sizeof(k));
        if (k != 0)
            memcpy(to + at, gi_coll_counted_src(o, r).at, k);
        at += k;
    }
    return at;
}

/* Append a rank's bundle for n takers to that of its group. */
static void append(char *all, int place, int n, const char *bundle, size_t *end)
{
    size_t lengths = (size_t)n * sizeof(uint16_t), sum = 0;
    for (int j = 0; j < n; j++)
        sum += length(bundle, j);
    memcpy(all + (size_t)place * lengths, bundle, lengths);
    memcpy(all + *end, bundle + lengths, sum);
    *end += sum;
}

/* What mine have for group h: to its gateway, and from there in one. */
static int leave(struct gi_coll_call *o, int h)
{
    const struct gi_coll_plan *p = o->p;
    int by = gi_coll_gateway(p, p->mine, h), n = gi_coll_members(p, p->mine);
    int theirs = gi_coll_members(p, h), st = GIN_OK;
    char *mine = o->c->tmp[1], *all = o->c->tmp[0];
    const char *bundle = mine;
    bool whole;
    size_t bytes = pack(o, h, mine), end = (size_t)(n * theirs) * sizeof(uint16_t);
    if (by != p->me)
        return send_bundle(o, by, mine, bytes);
    for (int i = 0; i < n && st == GIN_OK; i++) {
        int r = gi_coll_in_group(o, i);
        bundle = mine;
        if (i != p->place)
            st = recv_bundle(o, r, &bundle, &whole);
        if (st != GIN_OK)
            return st;
        append(all, i, theirs, bundle, &end);
        if (i != p->place)
            st = gi_coll_took(o, r, whole);
    }
    return st == GIN_OK ? send_bundle(o, gi_coll_gateway(p, h, p->mine), all, end) : st;
}

/* What a bundle of `theirs` ranks for n takers has for the one at place j, one behind another. */
static size_t extract(const char *bundle, int theirs, int n, int j, char *to)
{
    const char *from = bundle + (size_t)(theirs * n) * sizeof(uint16_t);
    size_t end = 0;
    for (int i = 0; i < theirs * n; i++) {
        uint16_t k = length(bundle, i);
        if (i % n == j) {
            memcpy(to + end, from, k);
            end += k;
        }
        from += k;
    }
    return end;
}

/* Short blocks of group g's members for me, into their places. */
static void unpack(const struct gi_coll_call *o, int g, const char *from)
{
    for (int i = 0; i < gi_coll_members(o->p, g); i++) {
        int r = gi_coll_member(o->p, g, i);
        uint16_t k = in_bundle(o, o->dst_counts[r]);
        if (k != 0)
            memcpy(gi_coll_counted_dst(o, r).at, from, k);
        from += k;
    }
}

static int hand_out(struct gi_coll_call *o, int g, const char *bundle)
{
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), theirs = gi_coll_members(p, g), st = GIN_OK;
    for (int j = 0; j < n && st == GIN_OK; j++) {
        size_t k = extract(bundle, theirs, n, j, o->c->tmp[1]);
        if (j == p->place)
            unpack(o, g, o->c->tmp[1]);
        else if (k != 0)
            st = gi_coll_send(o, gi_coll_in_group(o, j), o->c->tmp[1], k);
    }
    return st;
}

/* What group g has for mine, in short blocks. */
static int arrive(struct gi_coll_call *o, int g)
{
    const struct gi_coll_plan *p = o->p;
    int by = gi_coll_gateway(p, p->mine, g), from = gi_coll_gateway(p, g, p->mine), st;
    const char *bundle;
    const void *got;
    bool whole;
    if (by == p->me) {
        st = recv_bundle(o, from, &bundle, &whole);
        if (st == GIN_OK)
            st = hand_out(o, g, bundle);
        return st == GIN_OK ? gi_coll_took(o, from, whole) : st;
    }
    size_t k = 0;
    for (int i = 0; i < gi_coll_members(p, g); i++)
        k += in_bundle(o, o->dst_counts[gi_coll_member(p, g, i)]);
    st = k != 0 ? gi_coll_recv(o, by, k, &got, &whole) : GIN_OK;
    if (k == 0 || st != GIN_OK)
        return st;
    unpack(o, g, got);
    return gi_coll_took(o, by, whole);
}

static struct gi_coll_part part_if(struct gi_coll_part p, bool there)
{
    return there ? p : (struct gi_coll_part){NULL, 0};
}

static bool is_near(const struct gi_coll_call *o, int r)
{
    return o->p->group[r] == o->p->mine;
}

static struct gi_coll_part near_out(const struct gi_coll_call *o, int r)
{
    return part_if(gi_coll_counted_src(o, r), is_near(o, r));
}

static struct gi_coll_part near_in(const struct gi_coll_call *o, int r)
{
    return part_if(gi_coll_counted_dst(o, r), is_near(o, r));
}

static struct gi_coll_part long_out(const struct gi_coll_call *o, int r)
{
    struct gi_coll_part p = gi_coll_counted_src(o, r);
    return part_if(p, !is_near(o, r) && p.bytes > most_of(o));
}

static struct gi_coll_part long_in(const struct gi_coll_call *o, int r)
{
    struct gi_coll_part p = gi_coll_counted_dst(o, r);
    return part_if(p, !is_near(o, r) && p.bytes > most_of(o));
}

/* Short blocks have left before any arrives; in place, each of the others leaves before its place
 * is written. */
int gi_coll_alltoallv_two(struct gi_coll_call *o)
{
    const struct gi_coll_moves inside = {near_out, near_in, false, !o->in_place};
    const struct gi_coll_moves across = {long_out, long_in, false, false};
    int groups = o->p->groups, mine = o->p->mine, st = GIN_OK;
    for (int h = 0; h < groups && st == GIN_OK; h++)
        if (h != mine)
            st = leave(o, h);
    if (st == GIN_OK)
        st = gi_coll_exchange(o, &inside);
    for (int g = 0; g < groups && st == GIN_OK; g++)
        if (g != mine)
            st = arrive(o, g);
    return st == GIN_OK ? gi_coll_exchange(o, &across) : st;
}
