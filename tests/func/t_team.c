/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: predefined ones on any placement of ranks, splits, conversions, refusals, limits. */
#include <stdio.h>
#include <string.h>
#include "tests/mp.h"

#define MAX 16

struct list {
    int n, r[MAX];
};

static int place(const struct list *l, int rank)
{
    for (int i = 0; i < l->n; i++)
        if (l->r[i] == rank)
            return i;
    return -1;
}

static void print(char *buf, size_t n, const struct list *l)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < l->n && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%d ", l->r[i]);
}

/* The team is this list, in this order; for ranks outside the list it is the invalid one. */
static bool same(struct mp *mp, gin_team_t team, const struct list *want)
{
    struct list got = {0};
    char a[80], b[80];
    int me = place(want, mp->rank);
    if (me < 0)
        return EXPECT_EQ_INT(team.size, 0) && EXPECT_EQ_INT(team.rank, -1);
    if (!EXPECT_EQ_INT(team.size, want->n) || !EXPECT_EQ_INT(team.rank, me))
        return false;
    for (int i = 0; i < team.size; i++)
        got.r[got.n++] = gin_team_rank_to_world(mp->comm, team, i);
    print(a, sizeof(a), &got);
    print(b, sizeof(b), want);
    return EXPECT_EQ_STR(a, b);
}

static struct list everyone(const struct mp *mp)
{
    struct list l = {0};
    for (int r = 0; r < mp->size; r++)
        l.r[l.n++] = r;
    return l;
}

/* Ranks by host: hosts[r] is the dense number of r's host name. */
static bool hosts_of(struct mp *mp, int *hosts)
{
    char names[MAX][sizeof(mp->host)];
    if (mp_allgather(mp, mp->host, names, sizeof(mp->host)) != 0)
        return false;
    for (int r = 0; r < mp->size; r++) {
        hosts[r] = 0;
        while (strcmp(names[hosts[r]], names[r]) != 0)
            hosts[r]++;
    }
    return true;
}

static void conversions(struct mp *mp, gin_team_t a, const struct list *la, gin_team_t b,
                        const struct list *lb)
{
    for (int i = 0; i < la->n; i++) {
        EXPECT_EQ_INT(gin_team_translate(mp->comm, a, i, b), place(lb, la->r[i]));
        EXPECT_EQ_INT(gin_team_is_member(mp->comm, b, a, i), place(lb, la->r[i]) >= 0);
    }
    int nth = 0;
    for (int i = 0; i < la->n; i++)
        if (place(lb, la->r[i]) < 0)
            EXPECT_EQ_INT(gin_team_rank_in_difference(mp->comm, a, b, nth++), i);
    EXPECT_EQ_INT(gin_team_rank_in_difference(mp->comm, a, b, nth), -1);
    EXPECT_EQ_INT(gin_team_rank_in_difference(mp->comm, a, b, -1), -1);
}

static void predefined(struct mp *mp)
{
    struct list world = everyone(mp), node = {0}, lsa = {0}, rail = {0};
    int hosts[MAX], index[MAX], mine = 0;
    if (!hosts_of(mp, hosts))
        return;
    for (int r = 0; r < mp->size; r++) {
        index[r] = 0;
        for (int q = 0; q < r; q++)
            index[r] += hosts[q] == hosts[r];
        if (hosts[r] == hosts[mp->rank])
            node.r[node.n++] = r;
    }
    lsa = node;
    mine = index[mp->rank];
    for (int h = 0; h < mp->size; h++)
        for (int r = 0; r < mp->size; r++)
            if (hosts[r] == h && index[r] == mine)
                rail.r[rail.n++] = r;
    gin_team_t w = gin_team_world(mp->comm), n = gin_team_node(mp->comm),
               l = gin_team_lsa(mp->comm), x = gin_team_rail(mp->comm);
    EXPECT_OK(gin_team_free(mp->comm, w));
    EXPECT_OK(gin_team_free(mp->comm, n));
    EXPECT_OK(gin_team_free(mp->comm, l));
    EXPECT_OK(gin_team_free(mp->comm, x)); /* they stay */
    same(mp, w, &world);
    same(mp, n, &node);
    same(mp, l, &lsa);
    same(mp, x, &rail);
    conversions(mp, w, &world, n, &node);
    conversions(mp, n, &node, w, &world);
    conversions(mp, w, &world, x, &rail);
    conversions(mp, x, &rail, l, &lsa);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_INT(gin_team_rank_to_lsa(mp->comm, w, r), place(&lsa, r));
}

MP_TEST(predefined_one_host)
{
    predefined(mp);
}

MP_TEST_OPT(predefined_abab, .ranks = "2 4 5 8", .hosts = "AB")
{
    predefined(mp);
}

MP_TEST_OPT(predefined_aabab, .ranks = "5", .hosts = "AABAB")
{
    predefined(mp);
}

MP_TEST_OPT(predefined_abbcab, .ranks = "6 8", .hosts = "ABBCAB")
{
    predefined(mp);
}

MP_TEST_OPT(predefined_without_lsa, .ranks = "3", .env = "GINSHMEM_DISABLE_LSA=1")
{
    struct list world = everyone(mp), me = {1, {mp->rank}};
    same(mp, gin_team_node(mp->comm), mp->host[0] != 0 ? &me : &world);
    same(mp, gin_team_lsa(mp->comm), &me);
    same(mp, gin_team_rail(mp->comm), &world);
}

/* Start, stride and size count in the parent. */
MP_TEST_N(split_of_a_split, "6")
{
    gin_team_t world = gin_team_world(mp->comm), even, ends, back, odd;
    struct list l024 = {3, {0, 2, 4}}, l04 = {2, {0, 4}}, l543210 = {6, {5, 4, 3, 2, 1, 0}},
                l531 = {3, {5, 3, 1}};
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, 3, &even));
    same(mp, even, &l024);
    if (even.size > 0) {
        EXPECT_OK(gin_team_split_strided(mp->comm, even, 0, 2, 2, &ends));
        same(mp, ends, &l04);
    } else {
        EXPECT_FAILS(gin_team_split_strided(mp->comm, even, 0, 2, 2, &ends), GIN_EINVAL, "invalid");
        EXPECT_EQ_INT(ends.size, 0);
    }
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 5, -1, 6, &back));
    same(mp, back, &l543210);
    EXPECT_OK(gin_team_split_strided(mp->comm, back, 0, 2, 3, &odd));
    same(mp, odd, &l531);
    if (odd.size > 0)
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ_INT(gin_team_translate(mp->comm, odd, i, back), 2 * i);
            EXPECT_EQ_INT(gin_team_translate(mp->comm, back, 2 * i, odd), i);
            EXPECT_EQ_INT(gin_team_translate(mp->comm, odd, i, world), 5 - 2 * i);
        }
}

MP_TEST_N(split_2d_and_factors, "1 5 8")
{
    gin_team_t world = gin_team_world(mp->comm), x, y, in, out;
    for (int k = 1; k <= mp->size + 1; k++) {
        struct list row = {0}, column = {0};
        for (int r = 0; r < mp->size; r++) {
            if (r / k == mp->rank / k)
                row.r[row.n++] = r;
            if (r % k == mp->rank % k)
                column.r[column.n++] = r;
        }
        EXPECT_OK(gin_team_split_2d(mp->comm, world, k, &x, &y));
        same(mp, x, &row);
        same(mp, y, &column);
        EXPECT_OK(gin_team_inner_factor(mp->comm, world, k, &in));
        EXPECT_OK(gin_team_outer_factor(mp->comm, world, k, &out));
        same(mp, in, &row);
        same(mp, out, &column);
        EXPECT_OK(gin_team_free(mp->comm, x));
        EXPECT_OK(gin_team_free(mp->comm, y));
        EXPECT_OK(gin_team_free(mp->comm, in));
        EXPECT_OK(gin_team_free(mp->comm, out));
    }
}

/* Lists and progressions by the same random calls on all ranks, against lists of numbers. */
MP_TEST(random_splits_of_lists)
{
    uint64_t rng = mp->common;
    for (int round = 0; round < mp_rounds(mp, 300); round++) {
        struct list have = everyone(mp), next;
        gin_team_t team, sub;
        for (int i = have.n - 1; i > 0; i--) { /* shuffle */
            int j = (int)pt_below(&rng, (uint64_t)i + 1), t = have.r[i];
            have.r[i] = have.r[j];
            have.r[j] = t;
        }
        have.n = 1 + (int)pt_below(&rng, (uint64_t)have.n);
        EXPECT_OK(gin_team_create(mp->comm, have.r, have.n, &team));
        same(mp, team, &have);
        for (int depth = 0; depth < 3; depth++) {
            int start, stride, size, end;
            do {
                start = (int)pt_below(&rng, (uint64_t)have.n);
                stride = (int)pt_below(&rng, 7) - 3;
                size = 1 + (int)pt_below(&rng, (uint64_t)have.n);
                end = start + (size - 1) * stride;
            } while ((stride == 0 && size > 1) || end < 0 || end >= have.n);
            next.n = size;
            for (int i = 0; i < size; i++)
                next.r[i] = have.r[start + i * stride];
            if (team.size > 0) {
                EXPECT_OK(gin_team_split_strided(mp->comm, team, start, stride, size, &sub));
                same(mp, sub, &next);
                if (sub.size > 0) {
                    conversions(mp, team, &have, sub, &next);
                    conversions(mp, sub, &next, team, &have);
                }
                EXPECT_OK(gin_team_free(mp->comm, team)); /* the sub-team goes on without it */
                team = sub;
            }
            have = next;
        }
        if (team.size > 0)
            EXPECT_OK(gin_team_free(mp->comm, team));
        if (pt_failures() != 0)
            return;
    }
    gin_stats_t stats = {.size_of = sizeof(stats)};
    EXPECT_OK(gin_stats(mp->comm, &stats));
    EXPECT_EQ_U64(stats.teams, 0);
}

MP_TEST_N(refusals, "1 3")
{
    gin_team_t world = gin_team_world(mp->comm), none = gin_team_invalid(), t = world, u;
    gin_team_t broken = {mp->size, mp->rank, 1, 1};
    const int twice[] = {0, 0}, stranger[] = {mp->size}, below[] = {-1}, fine[] = {0};
    int n = mp->size;
    EXPECT_FAILS(gin_team_split_strided(mp->comm, world, 0, 1, 0, &t), GIN_EINVAL, "size 0");
    EXPECT_EQ_INT(t.size, 0);
    t = world;
    EXPECT_FAILS(gin_team_split_strided(mp->comm, none, 0, 1, 1, &t), GIN_EINVAL, "invalid");
    EXPECT_EQ_INT(t.size, 0);
    EXPECT_FAILS(gin_team_split_strided(mp->comm, broken, 0, 1, 1, &t), GIN_EINVAL, "fit");
    EXPECT_FAILS(gin_team_split_strided(mp->comm, world, 0, 1, n + 1, &t), GIN_ERANGE, "parent");
    EXPECT_FAILS(gin_team_split_strided(mp->comm, world, -1, 1, 1, &t), GIN_ERANGE, "parent");
    EXPECT_FAILS(gin_team_split_strided(mp->comm, world, 0, INT32_MAX, INT32_MAX, &t), GIN_ERANGE,
                 "parent");
    EXPECT_FAILS(gin_team_split_strided(mp->comm, world, 0, 0, 2, &t), GIN_EINVAL, "stride 0");
    EXPECT_FAILS(gin_team_split_strided(mp->comm, world, 0, 1, 1, NULL), GIN_EINVAL, "NULL");
    EXPECT_FAILS(gin_team_split_strided(NULL, world, 0, 1, 1, &t), GIN_ESTATE, "gin_init");
    EXPECT_FAILS(gin_team_split_2d(mp->comm, world, 0, &t, &u), GIN_EINVAL, "0");
    EXPECT_FAILS(gin_team_split_2d(mp->comm, world, 1, &t, NULL), GIN_EINVAL, "NULL");
    EXPECT_FAILS(gin_team_inner_factor(mp->comm, world, -3, &t), GIN_EINVAL, "-3");
    EXPECT_FAILS(gin_team_outer_factor(mp->comm, none, 1, &t), GIN_EINVAL, "invalid");
    if (mp->size > 1)
        EXPECT_FAILS(gin_team_create(mp->comm, twice, 2, &t), GIN_EINVAL, "twice");
    EXPECT_FAILS(gin_team_create(mp->comm, stranger, 1, &t), GIN_ERANGE, "place 0");
    EXPECT_FAILS(gin_team_create(mp->comm, below, 1, &t), GIN_ERANGE, "-1");
    EXPECT_FAILS(gin_team_create(mp->comm, fine, 0, &t), GIN_EINVAL, "at least one");
    EXPECT_FAILS(gin_team_create(mp->comm, NULL, 1, &t), GIN_EINVAL, "NULL");
    EXPECT_OK(gin_team_free(mp->comm, none));
    EXPECT_FAILS(gin_team_free(mp->comm, broken), GIN_EINVAL, "fit");
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, world, n), -1);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, world, -1), -1);
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, none, 0), -1);
    EXPECT_EQ_INT(gin_last_status(), GIN_EINVAL);
    EXPECT_EQ_INT(gin_team_translate(mp->comm, world, 0, none), -1);
    EXPECT_EQ_INT(gin_team_is_member(mp->comm, none, world, 0), 0);
    EXPECT_EQ_INT(gin_team_world(NULL).size, 0);
}

/* What the user made can be freed, even where it equals a predefined team that nobody knew yet. */
MP_TEST_N(twins_of_predefined_teams, "1 2 4")
{
    gin_team_t world = gin_team_world(mp->comm), a, b, alone;
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 1, mp->size, &a));
    EXPECT_OK(gin_team_inner_factor(mp->comm, world, mp->size, &b));
    EXPECT_OK(gin_team_inner_factor(mp->comm, world, 1, &alone)); /* on one host, the rail team */
    EXPECT_EQ_INT(gin_team_rail(mp->comm).size, mp->host[0] != 0 ? mp->size : 1);
    EXPECT_OK(gin_team_free(mp->comm, a));
    EXPECT_OK(gin_team_free(mp->comm, b));
    EXPECT_OK(gin_team_free(mp->comm, alone));
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, world, mp->rank), mp->rank);
}

MP_TEST_N(stale_lists, "4")
{
    const int list[] = {0, 1, 3, 2};
    gin_team_t t, again;
    EXPECT_OK(gin_team_create(mp->comm, list, 4, &t));
    EXPECT_OK(gin_team_free(mp->comm, t));
    EXPECT_FAILS(gin_team_free(mp->comm, t), GIN_ESTATE, "freed");
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, t, 0), -1);
    EXPECT_EQ_INT(gin_last_status(), GIN_ESTATE);
    EXPECT_OK(gin_team_create(mp->comm, list, 4, &again)); /* the same place */
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, t, 0), -1);
    EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, again, 3), 2);
    EXPECT_FAILS(gin_team_split_strided(mp->comm, t, 0, 1, 1, &t), GIN_ESTATE, "freed");
    EXPECT_OK(gin_team_free(mp->comm, again));
}

/* Create until refused; every place can be had again; nothing grows. */
MP_TEST_N(limit_and_reuse, "4")
{
    static const int list[] = {2, 0, 1, 3};
    enum { TRIES = 5000 };
    gin_team_t *t = calloc(TRIES, sizeof(*t)), one;
    int n = 0, status = GIN_OK;
    while (n < TRIES && (status = gin_team_create(mp->comm, list, 4, &t[n])) == GIN_OK)
        n++;
    EXPECT_EQ_INT(status, GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "4096");
    EXPECT_EQ_INT(n, 4096);
    for (int i = 0; i < n; i += 2)
        EXPECT_OK(gin_team_free(mp->comm, t[i]));
    for (int i = 0; i < n; i += 2)
        EXPECT_OK(gin_team_create(mp->comm, list, 4, &t[i]));
    EXPECT_FAILS(gin_team_create(mp->comm, list, 4, &one), GIN_ENOMEM, "gin_team_free");
    for (int i = 0; i < n; i++) {
        EXPECT_EQ_INT(gin_team_rank_to_world(mp->comm, t[i], 0), 2);
        EXPECT_OK(gin_team_free(mp->comm, t[i]));
    }
    free(t);
    int fds = mp_count_fds(), maps = mp_count_maps();
    for (int i = 0; i < 10000; i++)
        if (gin_team_create(mp->comm, list, 4, &one) != GIN_OK ||
            gin_team_free(mp->comm, one) != GIN_OK) {
            FAIL("cycle %d: %s", i, gin_last_error());
            break;
        }
    if (!mp->threads) {
        EXPECT_EQ_INT(mp_count_fds(), fds);
        EXPECT_EQ_INT(mp_count_maps(), maps);
    }
}
