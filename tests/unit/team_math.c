/* SPDX-License-Identifier: BSD-3-Clause */
/* Progressions against lists: every result is also computed by counting. */
#include <stdlib.h>
#include <string.h>
#include "team_math.h"
#include "tests/pt.h"

#define RANKS 24

/* All valid progressions of up to RANKS ranks. */
static struct gi_ap *all_of(int32_t ranks, size_t *n)
{
    struct gi_ap *list = malloc(sizeof(*list) * 100000);
    *n = 0;
    for (int32_t first = -1; first <= ranks; first++)
        for (int32_t stride = -ranks; stride <= ranks; stride++)
            for (int32_t size = -1; size <= ranks + 1; size++) {
                struct gi_ap ap = {first, stride, size};
                bool ok = size > 0 && (stride != 0 || size == 1);
                for (int32_t i = 0; ok && i < size; i++)
                    ok = first + i * stride >= 0 && first + i * stride < ranks;
                if (ok != gi_ap_valid(ap, ranks))
                    FAIL("valid(%d, %d, %d) of %d", first, stride, size, ranks);
                if (ok)
                    list[(*n)++] = ap;
            }
    return list;
}

static void expand(struct gi_ap ap, int32_t *list)
{
    for (int32_t i = 0; i < ap.size; i++)
        list[i] = ap.first + i * ap.stride;
}

static int32_t position(const int32_t *list, int32_t n, int32_t value)
{
    for (int32_t i = 0; i < n; i++)
        if (list[i] == value)
            return i;
    return -1;
}

TEST(index_and_from_list)
{
    size_t n;
    struct gi_ap *all = all_of(RANKS, &n), back;
    for (size_t k = 0; k < n; k++) {
        int32_t list[RANKS];
        expand(all[k], list);
        for (int32_t r = -RANKS; r <= 2 * RANKS; r++)
            if (gi_ap_index(all[k], r) != position(list, all[k].size, r))
                FAIL("index of %d in (%d, %d, %d)", r, all[k].first, all[k].stride, all[k].size);
        if (!EXPECT(gi_ap_from_list(list, all[k].size, &back)))
            break;
        if (back.first != list[0] || back.size != all[k].size ||
            (back.size > 1 ? back.stride != all[k].stride : back.stride != 1))
            FAIL("list of (%d, %d, %d)", all[k].first, all[k].stride, all[k].size);
    }
    free(all);
}

TEST(lists_that_are_none)
{
    struct gi_ap ap;
    const int32_t a[] = {0, 1, 3}, b[] = {0, 2, 1, 3}, c[] = {5, 5}, d[] = {4, 2, 0, 1};
    EXPECT(!gi_ap_from_list(a, 3, &ap));
    EXPECT(!gi_ap_from_list(b, 4, &ap));
    EXPECT(!gi_ap_from_list(c, 2, &ap));
    EXPECT(!gi_ap_from_list(d, 4, &ap));
    EXPECT(!gi_ap_from_list(a, 0, &ap));
    EXPECT(gi_ap_from_list(d, 3, &ap));
    EXPECT_EQ_INT(ap.stride, -2);
}

TEST(huge_strides_do_not_wrap)
{
    struct gi_ap ap = {0, INT32_MAX, 3}, b = {INT32_MAX - 1, INT32_MIN, 2}, c = {0, INT32_MAX, 2};
    EXPECT(!gi_ap_valid(ap, INT32_MAX));
    EXPECT(!gi_ap_valid(b, INT32_MAX));
    EXPECT(!gi_ap_valid(c, INT32_MAX));
    EXPECT(gi_ap_valid((struct gi_ap){INT32_MAX - 1, -(INT32_MAX - 1), 2}, INT32_MAX));
    EXPECT_EQ_INT(gi_ap_index(ap, -(int64_t)INT32_MAX), -1);
    EXPECT_EQ_INT(gi_ap_index((struct gi_ap){0, 1, INT32_MAX}, INT32_MAX - 1), INT32_MAX - 1);
}

/* Splits of splits of splits, in both ways. */
TEST(random_splits_of_splits)
{
    uint64_t rng = PT_SEED;
    for (int round = 0; round < 200000; round++) {
        int32_t ranks = 1 + (int32_t)pt_below(&rng, 200);
        struct gi_ap ap = {0, 1, ranks};
        int32_t list[200], next[200];
        expand(ap, list);
        for (int depth = 0; depth < 4; depth++) {
            struct gi_ap sub;
            do {
                sub.first = (int32_t)pt_below(&rng, (uint64_t)ap.size);
                sub.stride = (int32_t)pt_below(&rng, 9) - 4;
                sub.size = 1 + (int32_t)pt_below(&rng, (uint64_t)ap.size);
            } while (!gi_ap_valid(sub, ap.size));
            for (int32_t i = 0; i < sub.size; i++)
                next[i] = list[sub.first + i * sub.stride];
            ap = gi_ap_of(ap, sub);
            memcpy(list, next, sizeof(list));
            if (!EXPECT_EQ_INT(ap.size, sub.size) || !EXPECT(gi_ap_valid(ap, ranks)))
                return;
            for (int32_t i = 0; i < ap.size; i++)
                if (gi_ap_at(ap, i) != list[i]) {
                    FAIL("round %d depth %d: %d is not %d", round, depth, gi_ap_at(ap, i), list[i]);
                    return;
                }
        }
    }
}

TEST(blocks)
{
    for (int32_t size = 1; size <= 40; size++)
        for (int32_t inner = 1; inner <= 45; inner++) {
            int32_t seen = 0;
            for (int32_t index = 0; index < size; index++) {
                struct gi_ap in = gi_ap_inner(size, inner, index);
                struct gi_ap out = gi_ap_outer(size, inner, index);
                bool ok = gi_ap_valid(in, size) && gi_ap_valid(out, size);
                for (int32_t i = 0; i < size && ok; i++) {
                    ok = (gi_ap_index(in, i) >= 0) == (i / inner == index / inner) &&
                         (gi_ap_index(out, i) >= 0) == (i % inner == index % inner);
                }
                ok = ok && gi_ap_index(in, index) == index % inner &&
                     gi_ap_index(out, index) == index / inner;
                if (!ok)
                    FAIL("size %d inner %d index %d", size, inner, index);
                seen += gi_ap_index(in, index) == 0 ? in.size : 0;
            }
            EXPECT_EQ_INT(seen, size);
        }
}

static int32_t count_difference(struct gi_ap a, struct gi_ap b, int32_t nth)
{
    for (int32_t i = 0; i < a.size; i++)
        if (gi_ap_index(b, gi_ap_at(a, i)) < 0 && nth-- == 0)
            return i;
    return -1;
}

TEST(difference_of_all_pairs)
{
    size_t n;
    struct gi_ap *all = all_of(11, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            for (int32_t nth = -1; nth <= all[i].size; nth++) {
                int32_t want = nth < 0 ? -1 : count_difference(all[i], all[j], nth);
                int32_t got = gi_ap_difference(all[i], all[j], nth);
                if (got != want) {
                    FAIL("(%d, %d, %d) without (%d, %d, %d): no. %d is %d, not %d", all[i].first,
                         all[i].stride, all[i].size, all[j].first, all[j].stride, all[j].size, nth,
                         got, want);
                    free(all);
                    return;
                }
            }
    free(all);
}

TEST(difference_of_large_ones)
{
    uint64_t rng = PT_SEED;
    for (int round = 0; round < 2000; round++) {
        struct gi_ap a, b;
        do {
            a = (struct gi_ap){(int32_t)pt_below(&rng, 5000), (int32_t)pt_below(&rng, 61) - 30,
                               1 + (int32_t)pt_below(&rng, 600)};
        } while (!gi_ap_valid(a, 5000));
        do {
            b = (struct gi_ap){(int32_t)pt_below(&rng, 5000), (int32_t)pt_below(&rng, 61) - 30,
                               1 + (int32_t)pt_below(&rng, 600)};
        } while (!gi_ap_valid(b, 5000));
        int32_t nth = (int32_t)pt_below(&rng, (uint64_t)a.size + 1);
        if (!EXPECT_EQ_INT(gi_ap_difference(a, b, nth), count_difference(a, b, nth)))
            return;
    }
    EXPECT_EQ_INT(gi_ap_difference((struct gi_ap){0, 1, INT32_MAX}, (struct gi_ap){0, 2, 1 << 30},
                                   1000000000),
                  2000000001);
    EXPECT_EQ_INT(gi_ap_difference((struct gi_ap){0, 1, 5}, (struct gi_ap){0, 1, 0}, 4), 4);
}
