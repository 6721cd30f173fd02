/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged memory beside other things: answers behind bundles, answers to a peer that has failed here
 * meanwhile, slabs that come back from a peer that refused something, sources that fall silent
 * while they are read from, lanes that end meanwhile.
 */
#include "core_bed.h"
#include "transport/core_stage.h"

#include <string.h>

#define SRC    (128u << 10)
#define CHUNK  4096u /* what one slab takes here */
#define ROUNDS 20000u
#define BYTES  64u /* of a small put */

static const struct gi_stage_pool *pool(const struct bed *b, int rank, enum gi_stage_room room)
{
    return &b->rank[rank].core->stage->pool[room];
}

/* Rank `from` asks for bytes of another one's staged memory, into host memory of its own. */
static struct gi_core_get get_of(struct bed *b, int from, uint64_t bytes)
{
    return (struct gi_core_get){.window = BED_WINDOW,
                                .dst = b->rank[from].memory + SRC,
                                .bytes = bytes,
                                .region = b->rank[from].region};
}

/* 0: it did not end. */
static int flushed(struct bed *b, int rank)
{
    uint64_t mark = gi_core_mark(b->rank[rank].ctx);
    int st = 0;
    for (uint32_t i = 0; i < ROUNDS && st == 0; i++) {
        bed_round(b);
        st = gi_core_flushed(b->rank[rank].ctx, mark);
    }
    return st;
}

static int failed(const struct bed *b, int rank, int peer)
{
    return gi_core_peer_status(b->rank[rank].ctx, peer, NULL);
}

/* ---- answers and bundles ---- */

/* What waits for a read must not be in front of a bundle, which is not kept. */
TEST(answers_are_behind_bundles)
{
    struct bed b = {.staged = 1};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    memset(b.rank[0].memory, 9, CHUNK);
    struct gi_core_put small = bed_make_put(&b, 0, SRC / 2, 0, BYTES);
    unsigned char source[BYTES] = {3};
    small.src = source;
    small.region = NULL;
    for (int k = 0; k < 20; k++) {
        struct gi_core_get get = get_of(&b, 1, CHUNK);
        EXPECT_EQ_INT(bed_get(&b, 1, 0, &get), GIN_OK);
        uint64_t mark = gi_core_mark(b.rank[1].ctx);
        for (uint32_t i = 0; i < ROUNDS && gi_core_flushed(b.rank[1].ctx, mark) == 0; i++) {
            for (int n = 0; n < 6; n++)
                EXPECT(gi_core_put(b.rank[0].ctx, 1, &small) <= 0);
            bed_round(&b);
        }
        EXPECT_EQ_INT(gi_core_flushed(b.rank[1].ctx, mark), 1);
        EXPECT_EQ_INT(b.rank[1].memory[SRC + CHUNK - 1], 9);
    }
    EXPECT(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_BUNDLED] != 0);
    EXPECT_EQ_INT(failed(&b, 0, 1), GIN_OK);
    EXPECT_EQ_INT(failed(&b, 1, 0), GIN_OK);
    bed_close(&b);
}

/* ---- what is not staged, beside it ---- */

/* Atomics and puts of host memory are handled where they arrive, and hold up no immediates. */
TEST(host_memory_pays_nothing)
{
    struct bed b = {.staged = 4};
    uint64_t old = 0;
    if (!bed_open(&b, bed_mask("B64"), 3))
        return;
    const uint64_t *counts = gi_core_counts(b.rank[0].ctx);
    for (int k = 0; k < 10; k++) {
        struct gi_core_amo a = bed_fetch_inc(0, &old);
        struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, BYTES);
        p.action = bed_slot(0, 1, true);
        EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK); /* the former is not acknowledged */
        p.bytes = 0;
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    }
    EXPECT_EQ_U64(counts[GI_CORE_N_WRITE_IMM], 10);
    EXPECT_EQ_U64(counts[GI_CORE_N_MSG], 20);
    EXPECT_EQ_U64(bed_signal(&b, 1, 0), 20);
    EXPECT(b.rank[1].ctx->peers[0].in.early == NULL); /* nothing was kept */
    EXPECT(b.rank[1].ctx->peers[0].stage == NULL);
    bed_close(&b);
}

/* A word of the GPU's, or bytes for it, go in a message; no signal behind it comes before them. */
TEST(signals_are_behind_copies)
{
    for (int word = 0; word < 2; word++) {
        struct bed b = {.staged = 2};
        uint64_t *at, value = 0x1234567890;
        pt_step("%s", word ? "word" : "bytes");
        if (!bed_open(&b, bed_mask("B64"), 2))
            return;
        at = (uint64_t *)(void *)b.rank[1].memory;
        b.rank[1].mover.stuck = 1;
        struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, 8);
        struct gi_core_amo a = bed_fetch_inc(0, NULL);
        memcpy(b.rank[0].memory + SRC, &value, 8);
        p.action = bed_slot(0, 1, false);
        a.value = value;
        EXPECT_EQ_INT(word ? bed_amo(&b, 0, 1, &a) : bed_put(&b, 0, 1, &p), GIN_OK);
        struct gi_core_put last = {.action = bed_slot(1, 1, true)};
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &last), GIN_OK);
        for (int i = 0; i < 1000; i++)
            bed_round(&b);
        EXPECT_EQ_U64(bed_signal(&b, 1, 0) + bed_signal(&b, 1, 1), 0);
        EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_MSG], 2);
        b.rank[1].mover.stuck = 0;
        for (uint32_t i = 0; i < ROUNDS && bed_signal(&b, 1, 1) == 0; i++)
            bed_round(&b);
        EXPECT_EQ_U64(*at, value);
        EXPECT_EQ_U64(bed_signal(&b, 1, 0), !word);
        EXPECT_EQ_U64(bed_signal(&b, 1, 1), 1);
        bed_close(&b);
    }
}

/* ---- answers that cannot be sent any more ---- */

/* Something of rank 0 is refused by rank 1, as a word that no CPU reaches. */
static void fail_here(struct bed *b)
{
    uint64_t value = 1;
    struct gi_core_put p = {.window = BED_WINDOW,
                            .off = BED_BYTES - 8,
                            .src = &value,
                            .bytes = 8,
                            .copy = true,
                            .action = bed_slot(0, 1, true)};
    EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
    for (uint32_t i = 0; i < ROUNDS && failed(b, 0, 1) == GIN_OK; i++)
        bed_round(b);
    EXPECT_EQ_INT(failed(b, 0, 1), GIN_ENOTSUP);
}

TEST(who_asks_a_failed_peer_is_told)
{
    uint64_t aside = 0;
    for (int before = 0; before < 2; before++) {
        struct bed b = {.staged = 1, .aside = &aside};
        pt_step("asked %s", before ? "before" : "after");
        if (!bed_open(&b, bed_mask("B0"), 2))
            return;
        struct gi_core_get get = get_of(&b, 1, CHUNK);
        b.rank[0].mover.stuck = 1;
        if (before) {
            EXPECT_EQ_INT(bed_get(&b, 1, 0, &get), GIN_OK);
            for (int i = 0; i < 100; i++)
                bed_round(&b);
        }
        fail_here(&b);
        if (!before)
            EXPECT_EQ_INT(bed_get(&b, 1, 0, &get), GIN_OK);
        b.rank[0].mover.stuck = 0;
        EXPECT_EQ_INT(flushed(&b, 1), GIN_ENOTSUP);
        EXPECT_EQ_U64(pool(&b, 0, GI_STAGE_OUT)->n_free, GI_STAGE_SLABS);
        bed_close(&b);
    }
}

/* ---- slabs ---- */

/* A peer that refused one of several puts has read them all: nothing of them stays taken. */
TEST(slabs_come_back_after_a_refusal)
{
    struct bed b = {.staged = 3};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    b.rank[1].mover.stuck = 1; /* the copies of those behind it last */
    struct gi_core_put bad = bed_make_put(&b, 0, 0, SRC, CHUNK);
    bad.window = BED_FIXED;
    struct gi_core_put good = bed_make_put(&b, 0, 0, SRC, 6 * CHUNK);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &bad), GIN_OK);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &good), GIN_OK);
    uint64_t mark = gi_core_mark(b.rank[0].ctx);
    for (uint32_t i = 0; i < ROUNDS && gi_core_flushed(b.rank[0].ctx, mark) == 0; i++)
        gi_core_poll(b.rank[0].core); /* rank 1 has all messages before it answers the first */
    for (uint32_t i = 0; i < ROUNDS && failed(&b, 0, 1) == GIN_OK; i++)
        bed_round(&b);
    EXPECT_EQ_INT(failed(&b, 0, 1), GIN_EINVAL);
    b.rank[1].mover.stuck = 0;
    const struct gi_stage_pool *out = pool(&b, 0, GI_STAGE_OUT);
    for (uint32_t i = 0; i < ROUNDS && out->n_free != GI_STAGE_SLABS; i++)
        bed_round(&b);
    EXPECT_EQ_U64(out->n_free, GI_STAGE_SLABS);
    EXPECT_EQ_U64(pool(&b, 1, GI_STAGE_IN)->n_free, GI_STAGE_SLABS);
    bed_close(&b);
}

/* ---- watching ---- */

/* Who only reads what was put there notices, too, that it gets no answer. */
TEST(silent_source_is_noticed)
{
    struct bed b = {.staged = 2, .peer_timeout_ns = 200000000u};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    gi_fault_peer(b.rank[1].domain, 0, GI_FAULT_PEER_SILENT);
    struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, CHUNK);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    uint64_t end = gi_deadline_in(20000000000ull);
    while (b.rank[1].lost < 0 && gi_now_ns() < end)
        bed_round(&b);
    EXPECT_EQ_INT(b.rank[1].lost, 0);
    bed_close(&b);
}

/* ---- a lane that ends ---- */

/* The right to update words is the rank's: it does not go down with one context. */
TEST(a_dead_lane_gives_the_words_back)
{
    struct bed b = {.staged = 2};
    uint64_t old = 0;
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    b.rank[1].mover.stuck = 1;
    struct gi_core_amo a = bed_fetch_inc(0, &old);
    EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
    for (uint32_t i = 0; i < ROUNDS && !b.rank[1].mover.taken; i++)
        bed_round(&b);
    EXPECT(b.rank[1].mover.taken);
    struct gi_fault_plan plan = {.hold = 0};
    plan.first[GI_FAULT_PROGRESS] = plan.count[GI_FAULT_PROGRESS] = 1;
    plan.status[GI_FAULT_PROGRESS] = GIN_ENET;
    gi_fault_set(b.rank[1].domain, &plan);
    for (uint32_t i = 0; i < ROUNDS && failed(&b, 1, 0) == GIN_OK; i++)
        bed_round(&b);
    EXPECT_EQ_INT(failed(&b, 1, 0), GIN_ENET);
    b.rank[1].mover.stuck = 0;
    for (uint32_t i = 0; i < ROUNDS && b.rank[1].mover.taken; i++)
        bed_round(&b);
    EXPECT(!b.rank[1].mover.taken);
    EXPECT_EQ_U64(pool(&b, 1, GI_STAGE_IN_CELL)->n_free, GI_STAGE_CELLS);
    bed_close(&b);
}

/* A live peer may still read what it was told of before: nobody else writes there. */
TEST(a_dead_lane_keeps_slabs_of_the_living)
{
    for (int dies = 0; dies < 2; dies++) {
        struct bed b = {.staged = 1, .suspect = true};
        pt_step("%s", dies ? "dead" : "alive");
        if (!bed_open(&b, bed_mask("B64"), 2))
            return;
        struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, CHUNK);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        uint64_t mark = gi_core_mark(b.rank[0].ctx);
        for (uint32_t i = 0; i < ROUNDS && gi_core_flushed(b.rank[0].ctx, mark) == 0; i++)
            gi_core_poll(b.rank[0].core);
        if (dies) {
            gi_core_peer_dead(b.rank[0].core, 1, "a test");
        } else {
            struct gi_fault_plan plan = {.hold = 0};
            plan.first[GI_FAULT_PROGRESS] = plan.count[GI_FAULT_PROGRESS] = 1;
            plan.status[GI_FAULT_PROGRESS] = GIN_ENET;
            gi_fault_set(b.rank[0].domain, &plan);
        }
        for (int i = 0; i < 1000; i++)
            gi_core_poll(b.rank[0].core);
        EXPECT(failed(&b, 0, 1) != GIN_OK);
        EXPECT_EQ_U64(pool(&b, 0, GI_STAGE_OUT)->n_free,
                      dies ? GI_STAGE_SLABS : GI_STAGE_SLABS - 1);
        bed_close(&b);
    }
}
