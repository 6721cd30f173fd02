/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: peers that are slow, far away, or so busy that they refuse most of what comes are
 * not lost; one that says nothing is found, whatever completes on this side. A silent peer is one
 * that nobody polls: on the bed, its memory still takes writes.
 *
 * The time allowed is longer than any test: it passes by hand, in looks of rank 0's watchdog, so
 * that nothing depends on how fast the machine is.
 */
#include "core_bed.h"

#include <string.h>
#include "transport/core_int.h"

#define SRC      (128u << 10)
#define LIMIT_NS (32ull * 1000 * 1000000000u)
#define LIMIT    32u /* looks in it */
#define PATIENCE (100 * LIMIT)

/* A look's worth of time passes for rank 0, which polls. */
static void tick(struct bed *b)
{
    struct gi_core_ctx *ctx = b->rank[0].ctx;
    ctx->last_watch -= LIMIT_NS / LIMIT;
    ctx->busy = 1u << 20; /* it looks at the clock now */
    gi_core_poll(b->rank[0].core);
}

/* Only rank 0 polls, for so many looks. */
static void alone_for(struct bed *b, unsigned looks)
{
    while (looks-- != 0)
        tick(b);
}

static struct gi_core_put small_put(struct bed *b, uint32_t slot)
{
    struct gi_core_put p = bed_make_put(b, 0, 64, SRC, 100);
    p.action = bed_slot(slot, 1, true);
    return p;
}

static int status_of(const struct bed *b)
{
    return gi_core_ctx_status(b->rank[0].ctx, NULL, NULL);
}

/* A peer that only computes for a while is not lost: it answers in the end. */
TEST(slow_peer_is_not_lost)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS};
    if (!bed_open(&b, bed_mask("B0"), 2))
        return;
    struct gi_core_put p = small_put(&b, 0);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    for (int i = 0; i < 4; i++) {
        alone_for(&b, LIMIT / 4);
        bed_round(&b);
        bed_round(&b);
    }
    EXPECT_EQ_INT(status_of(&b), GIN_OK);
    /* The watchdog asked, and knows now: an idle peer is left alone. */
    uint64_t echoes = gi_core_counts(b.rank[0].ctx)[GI_CORE_N_ECHO];
    EXPECT(echoes >= 1);
    EXPECT(gi_core_is_clean(b.rank[0].ctx, 1));
    for (unsigned i = 0; i < 3 * LIMIT / 4; i++) {
        tick(&b);
        bed_round(&b);
    }
    EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_ECHO], echoes);
    bed_close(&b);
}

/* At every look something was refused, and something was taken since the one before. */
TEST(busy_peer_is_not_lost)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS, .plan.again = 700};
    uint64_t puts = 0;
    if (!bed_open(&b, bed_mask("B0"), 2))
        return;
    struct gi_core_put p = small_put(&b, 0);
    for (unsigned i = 0; i < 20 * 4 * LIMIT; i++) {
        while (puts < 1000000000 && gi_core_put(b.rank[0].ctx, 1, &p) == GIN_OK)
            puts++;
        bed_round(&b);
        if (i % 20 == 0)
            tick(&b);
    }
    EXPECT_EQ_INT(status_of(&b), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT_EQ_U64(bed_signal(&b, 1, 0), puts);
    bed_close(&b);
}

/* Writes go on to complete while the peer owes an answer. */
static void silent(const char *mask, bool amo)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS, .plan.early = true};
    uint64_t old;
    const char *text;
    pt_step("%s%s", mask, amo ? ", an atomic" : "");
    if (!bed_open(&b, bed_mask(mask), 3))
        return;
    struct gi_core_ctx *ctx = b.rank[0].ctx;
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 3000), alone = {.bytes = 0};
    struct gi_core_amo a = {
        .window = BED_WINDOW, .off = 8, .op = GIN_I_AMO_FETCH_ADD, .bytes = 8, .old = &old};
    alone.action =
        (struct gi_core_action){.kind = GI_CORE_WORD_ADD, .id = BED_WINDOW, .off = 16, .value = 1};
    EXPECT_EQ_INT(amo ? gi_core_amo(ctx, 1, &a) : gi_core_put(ctx, 1, &alone), GIN_OK);
    for (unsigned n = 0; status_of(&b) == GIN_OK && n < PATIENCE; n++) {
        gi_core_put(ctx, 1, &p);
        for (int i = 0; i < 5; i++) {
            gi_core_poll(b.rank[0].core);
            gi_core_poll(b.rank[2].core);
        }
        tick(&b);
    }
    EXPECT_EQ_INT(gi_core_peer_status(ctx, 1, &text), GIN_EPEER);
    EXPECT_HAS(text, "no answer");
    EXPECT_EQ_INT(b.rank[0].lost, 1);
    EXPECT_EQ_INT(gi_core_peer_status(ctx, 2, NULL), GIN_OK);
    bed_close(&b);
}

TEST(silent_peer_is_lost)
{
    static const char *const masks[] = {"A", "B64", "B0", "C64", "C-no-dc", "D"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++)
        for (int amo = 0; amo < 2; amo++)
            silent(masks[m], amo != 0);
}

/* Answers take ever longer, in the end longer than the time allowed: the watchdog learns that. */
TEST(distance_is_learnt)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS};
    if (!bed_open(&b, bed_mask("B0"), 2))
        return;
    struct gi_core_put p = small_put(&b, 0);
    for (unsigned looks = 3 * LIMIT / 8; looks <= 3 * LIMIT / 2; looks += 1 + looks / 10) {
        for (int i = 0; i < 10; i++)
            EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
        alone_for(&b, looks);
        gi_core_poll(b.rank[1].core);
        gi_core_poll(b.rank[0].core);
        if (!EXPECT_EQ_INT(status_of(&b), GIN_OK)) {
            FAIL("given up when an answer took %u/%u of the time", looks, LIMIT);
            break;
        }
    }
    gi_core_put(b.rank[0].ctx, 1, &p);
    for (unsigned n = 0; status_of(&b) == GIN_OK && n < PATIENCE; n++)
        tick(&b);
    EXPECT_EQ_INT(status_of(&b), GIN_EPEER);
    bed_close(&b);
}

/* A process that was stopped does not take its own silence for its peers'. */
TEST(own_pause_is_no_silence)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS};
    if (!bed_open(&b, bed_mask("B0"), 2))
        return;
    struct gi_core_put p = small_put(&b, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
        alone_for(&b, LIMIT / 2);
        b.rank[0].ctx->last_watch -= 2 * LIMIT_NS; /* stopped */
        for (int k = 0; k < 40; k++)
            gi_core_poll(b.rank[0].core);
        EXPECT_EQ_INT(status_of(&b), GIN_OK);
        bed_round(&b);
        bed_round(&b);
    }
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    bed_close(&b);
}

/* Time in which nothing was owed does not count once something is owed again. */
TEST(idle_time_does_not_count)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_core_put p = small_put(&b, 0);
    p.bytes = 8;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
        for (unsigned k = 0; k < LIMIT / 4; k++) {
            tick(&b);
            bed_round(&b);
        }
        EXPECT_EQ_INT(bed_quiet(&b, 0, GI_CORE_ALL), GIN_OK);
        EXPECT_EQ_INT(gi_core_settled(b.rank[0].ctx, GI_CORE_ALL, gi_core_mark(b.rank[0].ctx)), 1);
        alone_for(&b, 2 * LIMIT);
        EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
        for (int k = 0; k < 40; k++)
            gi_core_poll(b.rank[0].core);
        EXPECT_EQ_INT(status_of(&b), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 0, GI_CORE_ALL), GIN_OK);
    }
    bed_close(&b);
}

/* ---- a network that loses operations ---- */

/* Rank 1 lives, and says so at every look of rank 0's. */
static void lively_for(struct bed *b, unsigned looks)
{
    struct gi_core_put back = bed_make_put(b, 0, 64, SRC, 8);
    back.action = bed_slot(1, 1, true);
    for (unsigned n = 0; n < looks && status_of(b) == GIN_OK; n++) {
        gi_core_put(b->rank[1].ctx, 0, &back);
        bed_round(b);
        bed_round(b);
        tick(b);
    }
}

/* One write is swallowed while its target lives: that is found, and is nobody's death. */
TEST(lost_operation_is_found)
{
    static const char *const masks[] = {"A", "B64", "B0", "C64", "C-no-dc", "D"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS};
        const char *text;
        pt_step("%s", masks[m]);
        if (!bed_open(&b, bed_mask(masks[m]), 3))
            return;
        struct gi_core_ctx *ctx = b.rank[0].ctx;
        struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 10000);
        gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_SILENT);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        gi_core_poll(b.rank[0].core);
        gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_WELL);
        lively_for(&b, LIMIT);
        EXPECT_EQ_INT(status_of(&b), GIN_OK);
        lively_for(&b, 3 * LIMIT);
        EXPECT_EQ_INT(gi_core_peer_status(ctx, 1, &text), GIN_ENET);
        EXPECT_HAS(text, "lost an operation");
        EXPECT_EQ_INT(b.rank[0].lost, -1);
        EXPECT_EQ_INT(gi_core_peer_status(ctx, 2, NULL), GIN_OK);
        bed_close(&b);
    }
}

/* Puts that nobody asks about are loose for as long as that may be. */
TEST(loose_puts_are_not_lost)
{
    struct bed b = {.seed = 1, .peer_timeout_ns = LIMIT_NS};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_core_put p = small_put(&b, 0);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    lively_for(&b, 5 * LIMIT);
    EXPECT_EQ_INT(status_of(&b), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    bed_close(&b);
}

/* ---- a death concerns the contexts on which something was under way ---- */

TEST(dead_peer_owed_nothing)
{
    static const char *const masks[] = {"A", "B64", "B0", "C64", "D"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        struct bed b = {.seed = PT_SEED};
        pt_step("%s", masks[m]);
        if (!bed_open(&b, bed_mask(masks[m]), 3))
            return;
        struct gi_core_ctx *ctx = b.rank[0].ctx;
        struct gi_core_put p = bed_make_put(&b, 0, 64, 128u << 10, 100);
        p.action = bed_slot(3, 1, true);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        bed_quiet(&b, 0, 1);
        gi_core_peer_dead(b.rank[0].core, 1, "the test says so");
        while (gi_core_peer_status(ctx, 1, NULL) == GIN_OK)
            bed_step(&b);
        EXPECT_EQ_INT(bed_put(&b, 0, 2, &p), GIN_OK);
        EXPECT_EQ_INT(bed_fence(&b, 0, GI_CORE_ALL), GIN_OK);
        bed_quiet(&b, 0, GI_CORE_ALL);
        EXPECT_EQ_INT(gi_core_settled(ctx, GI_CORE_ALL, gi_core_mark(ctx)), 1);
        EXPECT_EQ_INT(gi_core_flushed(ctx, gi_core_mark(ctx)), 1);
        EXPECT_EQ_U64(bed_signal(&b, 2, 3), 1);
        EXPECT_EQ_INT(gi_core_put(ctx, 1, &p), GIN_EPEER);
        EXPECT_EQ_INT(gi_core_ctx_status(ctx, NULL, NULL), GIN_OK);
        bed_close(&b);
    }
}

/*
 * Where a dead peer's answers are in front of all others', nothing that is asked for on a context
 * that waits for one comes any more: it says so, and who it was. It still serves the others.
 */
static void dies(bool under_way)
{
    struct bed_mask mask = *bed_mask("B64");
    struct bed b = {.seed = 1};
    const char *text;
    uint64_t old = 1;
    mask.caps.one_queue = true;
    pt_step("with %s under way to it", under_way ? "a put" : "nothing");
    if (!bed_open(&b, &mask, 3))
        return;
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 10000);
    gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_SILENT);
    if (under_way)
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_put(&b, 0, 2, &p), GIN_OK);
    bed_round(&b);
    gi_core_peer_dead(b.rank[0].core, 1, "rank 1 is dead: so the test");
    EXPECT_EQ_INT(bed_flush(&b, 0), under_way ? GIN_EPEER : GIN_OK);
    int st = under_way ? GIN_ENET : GIN_OK;
    EXPECT_EQ_INT(bed_put(&b, 0, 2, &p), st);
    EXPECT_EQ_INT(gi_core_peer_status(b.rank[0].ctx, 2, &text), st);
    EXPECT_HAS(text, under_way ? "rank 1 is dead: so the test" : "");
    EXPECT(!gi_core_peer_is_dead(b.rank[0].core, 2));
    struct gi_core_amo a = bed_fetch_inc(8, &old);
    EXPECT_EQ_INT(bed_amo(&b, 2, 0, &a), GIN_OK);
    EXPECT_EQ_INT(bed_flush(&b, 2), GIN_OK);
    EXPECT_EQ_U64(old, 0);
    bed_close(&b);
}

TEST(dead_peers_answers_hold_up_others)
{
    dies(true);
    dies(false);
}
