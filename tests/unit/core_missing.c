/* SPDX-License-Identifier: BSD-3-Clause */
/* What a target does with what follows something that it refused. */
#include "core_bed.h"
#include "transport/core_int.h"

/* A signal, a word or an atomic must not tell of what is not there. */
TEST(no_signal_behind_what_is_missing)
{
    static const char *const networks[] = {"B64", "B0", "C-no-dc"};
    for (size_t i = 0; i < 3; i++) {
        struct bed b = {.seed = 1};
        uint64_t old = 9;
        pt_step("%s", networks[i]);
        if (!bed_open(&b, bed_mask(networks[i]), 3))
            return;
        struct gi_core_amo bad = {
            .window = BED_FIXED, .off = 8, .op = GIN_I_AMO_ADD, .bytes = 8, .value = 1};
        struct gi_core_put good = bed_make_put(&b, 0, 64, 4096, 100);
        struct gi_core_put alone = {.action = bed_slot(1, 7, true)};
        struct gi_core_amo a = bed_fetch_inc(8, &old);
        good.action = bed_slot(2, 1, true);
        EXPECT_EQ_INT(bed_amo(&b, 0, 1, &bad), GIN_OK);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &good), GIN_OK);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &alone), GIN_OK);
        EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_EINVAL);
        for (int k = 0; k < 1000; k++)
            bed_round(&b);
        EXPECT_EQ_U64(bed_signal(&b, 1, 1) + bed_signal(&b, 1, 2), 0);
        EXPECT_EQ_U64(*(uint64_t *)(void *)(b.rank[1].memory + 8), 0);
        EXPECT_EQ_U64(old, 9);
        /* another one's are given, and so are my own */
        EXPECT_EQ_INT(bed_put(&b, 2, 1, &alone), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 2, 1), GIN_OK);
        EXPECT_EQ_U64(bed_signal(&b, 1, 1), 7);
        EXPECT_EQ_INT(bed_put(&b, 1, 0, &alone), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 1, 0), GIN_OK);
        EXPECT_EQ_U64(bed_signal(&b, 0, 1), 7);
        bed_close(&b);
    }
}

/* What was refused meanwhile does not stop an update half-way: it has the rank's one right to do
 * so.
 */
TEST(updates_under_way_come_to_their_end)
{
    for (int put = 0; put < 2; put++) {
        struct bed b = {.staged = 2, .seed = 1};
        uint64_t old = 9;
        pt_step("%s", put ? "a put's word" : "an atomic");
        if (!bed_open(&b, bed_mask("E64"), 3))
            return;
        struct gi_core_amo a = bed_fetch_inc(8, &old);
        struct gi_core_put p = {
            .action = {
                .kind = GI_CORE_WORD_ADD, .strong = true, .id = BED_WINDOW, .off = 8, .value = 1}};
        b.rank[1].mover.stuck = 1;
        EXPECT_EQ_INT(put ? bed_put(&b, 0, 1, &p) : bed_amo(&b, 0, 1, &a), GIN_OK);
        for (int k = 0; k < 1000 && !b.rank[1].mover.taken; k++)
            bed_round(&b);
        EXPECT(b.rank[1].mover.taken);
        gi_core_enter(b.rank[1].ctx);
        /* of the open epoch, so what waits for that is looked at; of no slot */
        gi_core_arrived_imm(b.rank[1].ctx, 0, (uint64_t)b.rank[1].ctx->tag << 56 | 0xffffff0001);
        gi_core_leave(b.rank[1].ctx);
        b.rank[1].mover.stuck = 0;
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_ERANGE);
        for (int k = 0; k < 1000; k++)
            bed_round(&b);
        EXPECT(!b.rank[1].mover.taken);
        EXPECT_EQ_U64(*(uint64_t *)(void *)(b.rank[1].memory + 8), 1);
        EXPECT_EQ_INT(bed_amo(&b, 2, 1, &a), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 2, 1), GIN_OK);
        EXPECT_EQ_U64(old, 1);
        bed_close(&b);
    }
}
