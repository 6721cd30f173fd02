/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge of collective calls: one verdict on all ranks, with both values in the text. */
#include <ginshmem/status.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "heap/agree.h"
#include "tests/pt.h"

#define RANKS 5

static struct gi_agree_record all[RANKS];

static void fill(void)
{
    for (int r = 0; r < RANKS; r++)
        all[r] = (struct gi_agree_record){.seq = 7,
                                          .op = GI_AGREE_MALLOC,
                                          .size = 64,
                                          .align = 4096,
                                          .offset = 128,
                                          .fingerprint = 99};
}

/* Every rank's verdict; all must have the same, and the text must have both pieces. */
static void verdict(int expected, const char *has, const char *and)
{
    for (int r = 0; r < RANKS; r++) {
        struct gi_agree_record mine = all[r]; /* a copy, as when the others' are read in place */

        gi_fail(GIN_EINVAL, "old text");
        if (mine.status != GIN_OK)
            gi_fail(mine.status, "my own reason");
        EXPECT_EQ_INT(gi_agree_judge(&mine, RANKS, all), expected);
        if (mine.status == GIN_OK || expected == GIN_EMISMATCH) {
            EXPECT_HAS(gin_last_error(), has);
            EXPECT_HAS(gin_last_error(), and);
        }
    }
}

TEST(equal_records_are_fine)
{
    fill();
    verdict(GIN_OK, "old text", "old");
}

TEST(arguments_differ)
{
    fill();
    all[3].size = 128;
    verdict(GIN_EMISMATCH, "gin_malloc (collective call 7)", "size: 64 on rank 0, 128 on rank 3");
    fill();
    all[0].align = 64;
    verdict(GIN_EMISMATCH, "alignment", "64 on rank 0, 4096 on rank 1");
    fill();
    all[4].extra = 1;
    verdict(GIN_EMISMATCH, "flags", "0 on rank 0, 1 on rank 4");
    fill();
    all[2].kind = 1;
    verdict(GIN_EMISMATCH, "kind of memory", "1 on rank 2");
    fill();
    all[2].op = GI_AGREE_FREE;
    verdict(GIN_EMISMATCH, "rank 0 in gin_malloc (its call 7)", "rank 2 in gin_free (its call 7)");
    fill();
    all[1].seq = 8;
    verdict(GIN_EMISMATCH, "rank 0 in gin_malloc (its call 7)",
            "rank 1 in gin_malloc (its call 8)");
    fill();
    all[1].op = 12345;
    verdict(GIN_EMISMATCH, "gin_malloc", "rank 1 in a collective call");
}

TEST(failures_are_named)
{
    fill();
    all[2].status = GIN_ENOMEM;
    all[2].offset = UINT64_MAX;
    all[3].status = GIN_EINVAL;
    verdict(GIN_ENOMEM, "failed on rank 2: GIN_ENOMEM", "gin_malloc (collective call 7)");
    fill();
    for (int r = 0; r < RANKS; r++)
        all[r].status = GIN_ENOMEM;
    verdict(GIN_ENOMEM, "my own reason", "");
    EXPECT_HAS(gin_last_error(), "my own reason");
    /* a mismatch comes first: the failure may be its consequence */
    all[1].size = 1;
    verdict(GIN_EMISMATCH, "64 on rank 0, 1 on rank 1", "size");
}

TEST(outcomes_differ)
{
    fill();
    all[4].offset = 192;
    verdict(GIN_EMISMATCH, "offset", "128 on rank 0, 192 on rank 4");
    fill();
    all[4].fingerprint = 1;
    verdict(GIN_EMISMATCH, "fingerprint", "99 on rank 0, 1 on rank 4");
}

static int none(void *arg, const struct gi_agree_record *mine, const struct gi_agree_record **out)
{
    (void)mine;
    *out = arg;
    return arg ? GIN_OK : gi_fail(GIN_EPEER, "rank 3 died");
}

TEST(exchange)
{
    struct gi_agree_record one = {.seq = 1, .status = GIN_ESTATE};

    fill();
    EXPECT_EQ_INT(gi_agree(&one, 1, none, NULL), GIN_ESTATE); /* alone: nobody to ask */
    EXPECT_EQ_INT(gi_agree(&all[1], RANKS, none, NULL), GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "gin_malloc: rank 3 died");
    EXPECT_EQ_INT(gi_agree(&all[1], RANKS, none, all), GIN_OK);
}

/* Whatever single bit of a record differs, no rank goes on. */
TEST(any_bit_counts)
{
    for (unsigned bit = 0; bit < 8 * (sizeof(all[0]) - 4); bit++) {
        fill();
        ((unsigned char *)&all[2])[bit / 8] ^= (unsigned char)(1u << bit % 8);
        int first = gi_agree_judge(&all[0], RANKS, all);

        EXPECT(first != GIN_OK);
        for (int r = 1; r < RANKS; r++)
            EXPECT_EQ_INT(gi_agree_judge(&all[r], RANKS, all), first);
    }
}

TEST(cost)
{
    const int rounds = 1000000;
    uint64_t began;
    int bad = 0;

    fill();
    began = gi_now_ns();
    for (int i = 0; i < rounds; i++) {
        struct gi_agree_record *volatile mine = &all[1];

        bad += gi_agree_judge(mine, 4, all) != GIN_OK;
    }
    EXPECT_EQ_INT(bad, 0);
    printf("judging 4 records: %.1f ns\n", (double)(gi_now_ns() - began) / rounds);
}
