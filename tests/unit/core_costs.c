/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What operations cost on each class of network: reads, writes, immediates, NIC atomics, messages,
 * and echoes until they are complete. The tables are the design's.
 */
#include "core_bed.h"

#include <string.h>

#define SRC (128u << 10)

static void open_plain(struct bed *b, const char *mask, int n)
{
    *b = (struct bed){.seed = 1};
    bed_open(b, bed_mask(mask), n);
}

/* ---- puts ---- */

struct want {
    unsigned writes, imms, natives, msgs, echoes;
};

static struct want counted(const uint64_t *before, const uint64_t *after)
{
    return (struct want){.writes = (unsigned)(after[GI_CORE_N_WRITE] - before[GI_CORE_N_WRITE]),
                         .imms =
                             (unsigned)(after[GI_CORE_N_WRITE_IMM] - before[GI_CORE_N_WRITE_IMM]),
                         .natives = (unsigned)(after[GI_CORE_N_NATIVE] - before[GI_CORE_N_NATIVE]),
                         .msgs = (unsigned)(after[GI_CORE_N_MSG] - before[GI_CORE_N_MSG]),
                         .echoes = (unsigned)(after[GI_CORE_N_ECHO] - before[GI_CORE_N_ECHO])};
}

/* The operation, then quiet for what came before the next. */
static void expect_put(struct bed *b, const struct gi_core_put *p, struct want w, const char *what)
{
    uint64_t before[GI_CORE_COUNTS];
    const uint64_t *now = gi_core_counts(b->rank[0].ctx);
    memcpy(before, now, sizeof(before));
    EXPECT_EQ_INT(bed_put(b, 0, 1, p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(b, 0, 1), GIN_OK);
    struct want got = counted(before, now);
    if (memcmp(&got, &w, sizeof(w)) != 0)
        FAIL("%s, %s: writes %u %u, immediates %u %u, natives %u %u, messages %u %u, echoes %u %u",
             b->mask->name, what, got.writes, w.writes, got.imms, w.imms, got.natives, w.natives,
             got.msgs, w.msgs, got.echoes, w.echoes);
    /* Nothing left that the peer does not know of: each starts from a clean peer. */
    bed_idle(b);
}

struct row {
    const char *mask;
    struct want put, weak, strong, add, large_weak, large_strong, alone, word, large_word, value;
};

/* writes, with immediate, NIC atomics, messages, echoes until settled */
static const struct row table[] = {
    {"A",
     {1, 0, 0, 0, 0},
     {1, 0, 1, 0, 0},
     {1, 0, 1, 0, 0},
     {1, 0, 1, 0, 0},
     {3, 0, 1, 0, 0},
     {3, 0, 1, 0, 0},
     {0, 0, 1, 0, 0},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {1, 0, 0, 0, 0}},
    {"A-early",
     {1, 0, 0, 0, 1},
     {1, 0, 1, 0, 1},
     {1, 0, 1, 0, 1},
     {1, 0, 1, 0, 1},
     {3, 0, 1, 0, 1},
     {3, 0, 1, 0, 1},
     {0, 0, 1, 0, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {1, 0, 0, 0, 1}},
    {"B64",
     {1, 0, 0, 0, 1},
     {0, 1, 0, 0, 1},
     {0, 1, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {2, 1, 0, 0, 1},
     {2, 1, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {1, 0, 0, 0, 1}},
    {"B32",
     {1, 0, 0, 0, 1},
     {0, 1, 0, 0, 1},
     {0, 1, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {2, 1, 0, 0, 1},
     {2, 1, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {1, 0, 0, 0, 1}},
    {"B0",
     {1, 0, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {1, 0, 0, 0, 1}},
    {"C64",
     {1, 0, 0, 0, 0},
     {0, 1, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {0, 0, 0, 1, 1}},
    {"C0",
     {1, 0, 0, 0, 0},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {0, 0, 0, 1, 1}},
    {"E64",
     {0, 1, 0, 0, 0},
     {0, 1, 0, 0, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 3, 0, 1, 1},
     {0, 3, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 0, 0, 1, 1},
     {0, 3, 0, 1, 1},
     {0, 0, 0, 1, 1}},
    {"D",
     {1, 0, 0, 0, 0},
     {1, 0, 1, 0, 0},
     {1, 0, 1, 0, 0},
     {1, 0, 1, 0, 0},
     {3, 0, 1, 0, 0},
     {3, 0, 1, 0, 0},
     {0, 0, 1, 0, 0},
     {0, 0, 0, 1, 1},
     {3, 0, 0, 1, 1},
     {0, 0, 0, 1, 1}},
};

TEST(messages_per_operation)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct row *t = &table[i];
        struct bed b;
        open_plain(&b, t->mask, 2);
        uint64_t value = 7;
        struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 40);
        struct gi_core_put large = bed_make_put(&b, 0, 64, SRC, 3 * 4096 - 5);
        struct gi_core_action word = {
            .kind = GI_CORE_WORD_ADD, .id = BED_WINDOW, .off = 8, .value = 1};
        pt_step("%s", t->mask);
        expect_put(&b, &p, t->put, "put");
        p.action = bed_slot(0, 1, false);
        expect_put(&b, &p, t->weak, "weak increment");
        p.action = bed_slot(0, 1, true);
        expect_put(&b, &p, t->strong, "strong increment");
        p.action = bed_slot(0, ~(uint64_t)0, true);
        expect_put(&b, &p, t->add, "large addend");
        large.action = bed_slot(0, 1, false);
        expect_put(&b, &large, t->large_weak, "large put, weak");
        large.action = bed_slot(0, 1, true);
        expect_put(&b, &large, t->large_strong, "large put, strong");
        struct gi_core_put alone = {.action = bed_slot(0, 1, true)};
        expect_put(&b, &alone, t->alone, "signal alone");
        p.action = word;
        expect_put(&b, &p, t->word, "word");
        large.action = word;
        expect_put(&b, &large, t->large_word, "large put, word");
        struct gi_core_put v = {
            .window = BED_WINDOW, .off = 16, .src = &value, .bytes = 8, .copy = true};
        expect_put(&b, &v, t->value, "value");
        EXPECT_EQ_U64(bed_signal(&b, 1, 0), 4);
        EXPECT_EQ_U64(*(uint64_t *)(void *)(b.rank[1].memory + 16), 7);
        bed_close(&b);
    }
}

/* ---- and of what is no put ---- */

/* Reads and messages here, replies there, and what it takes until it is complete here (flush), and
 * at the target (quiet): echoes. */
struct cost {
    unsigned reads, msgs, replies, flush, quiet;
};

static struct cost spent(const struct bed *b, const uint64_t *here, const uint64_t *there)
{
    const uint64_t *a = gi_core_counts(b->rank[0].ctx), *c = gi_core_counts(b->rank[1].ctx);
    return (struct cost){
        .reads = (unsigned)(a[GI_CORE_N_READ] - here[GI_CORE_N_READ]),
        .msgs = (unsigned)(a[GI_CORE_N_MSG] - here[GI_CORE_N_MSG]),
        .replies = (unsigned)(c[GI_CORE_N_REPLY] - there[GI_CORE_N_REPLY]),
        .quiet = (unsigned)(a[GI_CORE_N_ECHO] - here[GI_CORE_N_ECHO]),
    };
}

enum what { GET, ADD, FETCH, NOTHING };

static void expect_cost(struct bed *b, enum what what, struct cost want)
{
    uint64_t here[GI_CORE_COUNTS], there[GI_CORE_COUNTS], old = 0;
    memcpy(here, gi_core_counts(b->rank[0].ctx), sizeof(here));
    memcpy(there, gi_core_counts(b->rank[1].ctx), sizeof(there));
    struct gi_core_get g = {.window = BED_WINDOW,
                            .dst = b->rank[0].memory + SRC,
                            .bytes = 8,
                            .region = b->rank[0].region};
    struct gi_core_amo a = {.window = BED_WINDOW,
                            .off = 8,
                            .op = what == ADD ? GIN_I_AMO_ADD : GIN_I_AMO_FETCH_ADD,
                            .bytes = 8,
                            .value = 1,
                            .old = what == FETCH ? &old : NULL};
    if (what == GET)
        EXPECT_EQ_INT(bed_get(b, 0, 1, &g), GIN_OK);
    else if (what != NOTHING)
        EXPECT_EQ_INT(bed_amo(b, 0, 1, &a), GIN_OK);
    EXPECT_EQ_INT(bed_flush(b, 0), GIN_OK);
    struct cost flushed = spent(b, here, there);
    EXPECT_EQ_INT(bed_quiet(b, 0, 1), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(b, 0, GI_CORE_ALL), GIN_OK); /* costs nothing more */
    struct cost got = spent(b, here, there);
    got.flush = flushed.quiet;
    if (memcmp(&got, &want, sizeof(want)) != 0)
        FAIL("%s, %d: reads %u %u, messages %u %u, replies %u %u, flush %u %u, quiet %u %u",
             b->mask->name, (int)what, got.reads, want.reads, got.msgs, want.msgs, got.replies,
             want.replies, got.flush, want.flush, got.quiet, want.quiet);
    bed_idle(b);
}

TEST(messages_per_completion)
{
    /* get, an atomic, a fetching one: alike on all networks */
    static const struct cost get = {1, 0, 0, 0, 0}, add = {0, 1, 0, 0, 1}, fetch = {0, 1, 1, 0, 1},
                             nothing = {0, 0, 0, 0, 0};
    for (size_t m = 0; m < bed_n_masks; m++) {
        struct bed b;
        pt_step("%s", bed_masks[m].name);
        open_plain(&b, bed_masks[m].name, 2);
        expect_cost(&b, NOTHING, nothing);
        expect_cost(&b, GET, get);
        expect_cost(&b, ADD, add);
        expect_cost(&b, FETCH, fetch);
        expect_cost(&b, NOTHING, nothing);
        bed_close(&b);
    }
}

/* Small puts with a signal: one message where the network has no better. */
TEST(messages_per_value)
{
    static const struct {
        const char *mask;
        struct want weak, strong;
    } rows[] = {
        {"A", {1, 0, 1, 0, 0}, {1, 0, 1, 0, 0}},
        {"A-no-cells", {0, 1, 0, 0, 1}, {0, 1, 0, 0, 1}},
        {"B64", {0, 1, 0, 0, 1}, {0, 1, 0, 0, 1}},
        {"B0", {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}},
        {"C64", {0, 1, 0, 0, 1}, {0, 0, 0, 1, 1}},
        {"C32", {0, 1, 0, 0, 1}, {0, 0, 0, 1, 1}},
        {"C0", {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}},
        {"C-eats", {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}},
        {"C-no-dc", {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}},
        {"E32", {0, 1, 0, 0, 1}, {0, 0, 0, 1, 1}},
        {"D", {1, 0, 1, 0, 0}, {1, 0, 1, 0, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bed b;
        uint64_t value = 7;
        open_plain(&b, rows[i].mask, 2);
        struct gi_core_put p = {
            .window = BED_WINDOW, .off = 16, .src = &value, .bytes = 8, .copy = true};
        p.action = bed_slot(0, 1, false);
        expect_put(&b, &p, rows[i].weak, "value, weak");
        p.action = bed_slot(0, 1, true);
        expect_put(&b, &p, rows[i].strong, "value, strong");
        EXPECT_EQ_U64(bed_signal(&b, 1, 0), 2);
        bed_close(&b);
    }
}

/* One that quiet follows each time goes by a write, where that tells of its delivery, and needs no
 * echo; not any more once something else came between. */
TEST(messages_of_lone_values)
{
    static const struct {
        const char *mask;
        struct want first, then;
    } rows[] = {
        {"A", {1, 0, 0, 0, 0}, {1, 0, 0, 0, 0}},       {"C64", {0, 0, 0, 1, 1}, {1, 0, 0, 0, 0}},
        {"C32", {0, 0, 0, 1, 1}, {1, 0, 0, 0, 0}},     {"C0", {0, 0, 0, 1, 1}, {1, 0, 0, 0, 0}},
        {"C-eats", {0, 0, 0, 1, 1}, {1, 0, 0, 0, 0}},  {"E32", {0, 0, 0, 1, 1}, {0, 1, 0, 0, 0}},
        {"C-no-dc", {0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}}, {"D", {0, 0, 0, 1, 1}, {1, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bed b;
        uint64_t value = 7;
        open_plain(&b, rows[i].mask, 2);
        struct gi_core_put p = {
            .window = BED_WINDOW, .off = 16, .src = &value, .bytes = 8, .copy = true};
        pt_step("%s", rows[i].mask);
        for (int k = 0; k < 3; k++, value++)
            expect_put(&b, &p, rows[i].first, "value");
        for (int k = 0; k < 5; k++, value++)
            expect_put(&b, &p, rows[i].then, "value, as always");
        EXPECT_EQ_U64(*(uint64_t *)(void *)(b.rank[1].memory + 16), 14);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
        bed_idle(&b);
        expect_put(&b, &p, rows[i].first, "value, after two at once");
        bed_close(&b);
    }
}
