/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged memory where something fails: copies, at each end and at each step of what they are for;
 * ranks that die with slabs under way; contexts that are closed over copies. All who wait hear of
 * it, with a reason; no signal tells of what is not there; no slab is lost (bed_close() counts).
 */
#include "core_bed.h"
#include "transport/core_stage.h"

#include <string.h>

#define SRC    (128u << 10)
#define CHUNK  4096u /* what one slab takes here */
#define MANY   (12u * CHUNK)
#define ROUNDS 100000u
#define WHY    "a copy that was made to fail"

static const char *const masks[] = {"B64", "B0", "C64", "E64", "C-no-dc", "B-tiny", "C-local"};
#define MASKS (sizeof(masks) / sizeof(masks[0]))

static int failed(const struct bed *b, int rank, int peer)
{
    return gi_core_peer_status(b->rank[rank].ctx, peer, NULL);
}

static void expect_text(const struct bed *b, int rank, int peer, const char *has)
{
    const char *text;
    gi_core_peer_status(b->rank[rank].ctx, peer, &text);
    EXPECT_HAS(text, has);
}

/* Until the one knows that the other one has failed. */
static int hears(struct bed *b, int rank, int peer)
{
    for (uint32_t i = 0; i < ROUNDS && failed(b, rank, peer) == GIN_OK; i++)
        bed_round(b);
    return failed(b, rank, peer);
}

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

static int quiet(struct bed *b, int rank, int peer)
{
    uint64_t mark = gi_core_mark(b->rank[rank].ctx);
    int st = 0;
    for (uint32_t i = 0; i < ROUNDS && st == 0; i++) {
        bed_round(b);
        st = gi_core_settled(b->rank[rank].ctx, peer, mark);
    }
    return st;
}

/* All slabs are back without anybody closing anything. */
static void expect_slabs(struct bed *b)
{
    for (uint32_t i = 0; i < 1000; i++)
        bed_round(b);
    for (int r = 0; r < b->n; r++) {
        const struct gi_core_stage *s = b->rank[r].core->stage;
        EXPECT_EQ_U64(s->pool[GI_STAGE_OUT].n_free, GI_STAGE_SLABS);
        EXPECT_EQ_U64(s->pool[GI_STAGE_IN].n_free, GI_STAGE_SLABS);
        EXPECT_EQ_U64(s->pool[GI_STAGE_OUT_CELL].n_free, GI_STAGE_CELLS);
        EXPECT_EQ_U64(s->pool[GI_STAGE_IN_CELL].n_free, GI_STAGE_CELLS);
        EXPECT(!b->rank[r].mover.taken);
    }
}

static bool open_failing(struct bed *b, const char *mask, unsigned staged, int who, uint32_t fail,
                         uint64_t from)
{
    *b = (struct bed){.staged = staged};
    pt_step("%s, staged %u, rank %d fails %s copy %u", mask, staged, who,
            fail == 1 ? "to begin" : "to end", (unsigned)from);
    if (!bed_open(b, bed_mask(mask), 2))
        return false;
    b->rank[who].mover.fail = fail;
    b->rank[who].mover.from = from;
    return true;
}

typedef void (*case_fn)(struct bed *b, uint64_t bytes);

/* On each network, of one chunk, several, and what fits a message; early and late. */
static void each(unsigned staged, int who, case_fn fn)
{
    static const uint64_t bytes[] = {16, CHUNK, MANY}, from[] = {0, 3, 11};
    struct bed b;
    for (size_t m = 0; m < MASKS; m++)
        for (uint32_t fail = 1; fail <= 2; fail++)
            for (int i = 0; i < 5; i++) {
                if (!open_failing(&b, masks[m], staged, who, fail, i < 3 ? 0 : from[i - 2]))
                    return;
                fn(&b, bytes[i < 3 ? i : 2]);
                bed_close(&b);
            }
}

/* ---- puts ---- */

static void put_two(struct bed *b, uint64_t bytes)
{
    struct gi_core_put p = bed_make_put(b, 0, 0, SRC, bytes);
    struct gi_core_put last = {.action = bed_slot(1, 1, true)};
    p.action = bed_slot(0, 1, false);
    EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
    int st = bed_put(b, 0, 1, &last); /* it may know already */
    EXPECT(st == GIN_OK || st == GIN_ESYS);
}

static void put_fails_at_its_source(struct bed *b, uint64_t bytes)
{
    put_two(b, bytes);
    EXPECT_EQ_INT(quiet(b, 0, 1), GIN_ESYS);
    EXPECT_EQ_INT(flushed(b, 0), GIN_ESYS);
    expect_text(b, 0, 1, WHY);
    EXPECT_EQ_INT(hears(b, 1, 0), GIN_ESYS);
    expect_text(b, 1, 0, "its GPU memory could not be copied");
    expect_slabs(b);
    EXPECT_EQ_U64(bed_signal(b, 1, 0) + bed_signal(b, 1, 1), 0);
}

TEST(puts_fail_at_their_source)
{
    each(1, 0, put_fails_at_its_source);
}

static void put_fails_at_its_target(struct bed *b, uint64_t bytes)
{
    int rank;
    const char *text;
    put_two(b, bytes);
    EXPECT_EQ_INT(quiet(b, 0, 1), GIN_ESYS);
    expect_text(b, 0, 1, "it refused");
    EXPECT_EQ_INT(gi_core_ctx_status(b->rank[1].ctx, &rank, &text), GIN_ESYS);
    EXPECT_HAS(text, WHY); /* who waits there for the signal ends, too */
    expect_slabs(b);
    EXPECT_EQ_U64(bed_signal(b, 1, 0), 0);
}

TEST(puts_fail_at_their_target)
{
    each(2, 1, put_fails_at_its_target);
}

/* ---- gets ---- */

static struct gi_core_get get_of(struct bed *b, int from, uint64_t bytes)
{
    return (struct gi_core_get){.window = BED_WINDOW,
                                .dst = b->rank[from].memory + SRC,
                                .bytes = bytes,
                                .region = b->rank[from].region};
}

static void get_fails_at_its_source(struct bed *b, uint64_t bytes)
{
    struct gi_core_get g = get_of(b, 1, bytes);
    EXPECT_EQ_INT(bed_get(b, 1, 0, &g), GIN_OK);
    EXPECT_EQ_INT(flushed(b, 1), GIN_ESYS);
    expect_text(b, 1, 0, "its GPU memory could not be copied");
    EXPECT_EQ_INT(failed(b, 0, 1), GIN_OK); /* it asked for nothing */
    expect_slabs(b);
}

TEST(gets_fail_at_their_source)
{
    each(1, 0, get_fails_at_its_source);
}

static void get_fails_here(struct bed *b, uint64_t bytes)
{
    struct gi_core_get g = get_of(b, 1, bytes);
    EXPECT_EQ_INT(bed_get(b, 1, 0, &g), GIN_OK);
    EXPECT_EQ_INT(flushed(b, 1), GIN_ESYS);
    expect_text(b, 1, 0, "what was got from it could not be stored here: " WHY);
    expect_slabs(b);
}

TEST(gets_fail_where_they_go)
{
    each(2, 1, get_fails_here); /* read straight from there */
    each(3, 1, get_fails_here); /* asked for */
}

/* ---- words ---- */

/* The word is not written, its one applier goes on for others. */
static void word_fails(struct bed *b, uint64_t signal)
{
    uint64_t old = 7;
    struct gi_core_amo a = bed_fetch_inc(8, &old);
    struct gi_core_put s = {
        .action = {
            .kind = GI_CORE_WORD_ADD, .strong = true, .id = BED_WINDOW, .off = 8, .value = 1}};
    EXPECT_EQ_INT(signal ? bed_put(b, 0, 1, &s) : bed_amo(b, 0, 1, &a), GIN_OK);
    EXPECT_EQ_INT(quiet(b, 0, 1), GIN_ESYS);
    EXPECT_EQ_U64(old, 7);
    EXPECT_EQ_U64(*(uint64_t *)(void *)(b->rank[1].memory + 8), 0);
    b->rank[1].mover.fail = 0;
    EXPECT_EQ_INT(bed_amo(b, 2, 1, &a), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(b, 2, 1), GIN_OK);
    EXPECT_EQ_U64(old, 0);
    EXPECT_EQ_U64(*(uint64_t *)(void *)(b->rank[1].memory + 8), 1);
    expect_slabs(b);
}

TEST(words_fail_where_they_are)
{
    for (uint32_t i = 0; i < 8; i++) {
        struct bed b = {.staged = 2};
        if (!bed_open(&b, bed_mask(i & 1 ? "B64" : "C64"), 3))
            return;
        b.rank[1].mover.fail = i & 2 ? 1 : 2;
        b.rank[1].mover.from = i & 4 ? 1 : 0; /* on the way back */
        word_fails(&b, i & 1);
        bed_close(&b);
    }
}

/* ---- deaths ---- */

/* One of two dies while the copies of one stand still; and then these end. */
static void death(const char *mask, int dies, int stands, bool get)
{
    struct bed b = {.staged = 7};
    struct gi_core_amo a = bed_fetch_inc(8, NULL);
    pt_step("%s: rank %d dies, rank %d's GPU stands still, a %s", mask, dies, stands,
            get ? "get" : "put");
    if (!bed_open(&b, bed_mask(mask), 3))
        return;
    b.rank[stands].mover.stuck = 1;
    struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, MANY);
    struct gi_core_get g = get_of(&b, 0, MANY);
    EXPECT_EQ_INT(get ? bed_get(&b, 0, 1, &g) : bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
    for (int i = 0; i < 300; i++)
        bed_round(&b);
    gi_self_kill(b.hub[0], dies);
    for (int r = 0; r < 3; r++)
        if (r != dies)
            gi_core_peer_dead(b.rank[r].core, dies, "it was killed");
    int survivor = 1 - dies;
    for (uint32_t i = 0; i < ROUNDS && failed(&b, survivor, dies) == GIN_OK; i++)
        gi_core_poll(b.rank[survivor].core);
    EXPECT_EQ_INT(failed(&b, survivor, dies), GIN_EPEER);
    uint64_t mark = gi_core_mark(b.rank[survivor].ctx);
    EXPECT(survivor != 0 || gi_core_flushed(b.rank[0].ctx, mark) == GIN_EPEER);
    b.rank[stands].mover.stuck = 0;
    for (uint32_t i = 0; i < 2000; i++)
        gi_core_poll(b.rank[survivor].core);
    const struct gi_core_stage *s = b.rank[survivor].core->stage;
    EXPECT_EQ_U64(s->pool[GI_STAGE_OUT].n_free, GI_STAGE_SLABS);
    EXPECT_EQ_U64(s->pool[GI_STAGE_OUT_CELL].n_free, GI_STAGE_CELLS);
    EXPECT_EQ_U64(s->pool[GI_STAGE_IN_CELL].n_free, GI_STAGE_CELLS);
    EXPECT(!b.rank[survivor].mover.taken);
    /* the others go on */
    uint64_t old;
    a = bed_fetch_inc(16, &old);
    EXPECT_EQ_INT(gi_core_amo(b.rank[2].ctx, survivor, &a), GIN_OK);
    for (uint32_t i = 0;
         i < ROUNDS && gi_core_flushed(b.rank[2].ctx, gi_core_mark(b.rank[2].ctx)) == 0; i++) {
        gi_core_poll(b.rank[2].core);
        gi_core_poll(b.rank[survivor].core);
    }
    EXPECT_EQ_U64(*(uint64_t *)(void *)(b.rank[survivor].memory + 16), 1);
    bed_close(&b);
}

TEST(deaths_with_slabs_under_way)
{
    for (int i = 0; i < 16; i++)
        death(i & 8 ? "C64" : "B64", i & 1, i >> 1 & 1, i >> 2 & 1);
}

/* ---- closing ---- */

/* As after an abort: whatever is under way, nothing is left behind. */
TEST(closed_over_copies)
{
    uint64_t seed = PT_SEED;
    for (int i = 0; i < 60; i++) {
        struct bed b = {.staged = 3, .seed = seed + (uint64_t)i};
        uint64_t old;
        if (!bed_open(&b, bed_mask(masks[(size_t)i % MASKS]), 2))
            return;
        struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, MANY);
        struct gi_core_get g = get_of(&b, 1, MANY);
        struct gi_core_amo a = bed_fetch_inc(8, &old);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_get(&b, 1, 0, &g), GIN_OK);
        EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
        for (uint64_t n = pt_below(&seed, 400); n > 0; n--)
            bed_step(&b);
        bed_close(&b);
    }
}
