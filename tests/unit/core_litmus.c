/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's promises on every class of network that the fault wrapper can imitate: what a signal,
 * a fence and quiet cover, looked at after every single step. Then the same with the core broken on
 * purpose, which must be noticed.
 */
#include "core_bed.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS 24
#define PUTS   6
#define LONG   1000000u     /* steps, after which it is not coming */
#define SRC    (128u << 10) /* sources are in the upper half, targets in the lower */

static void stamp(struct bed *b, int from, uint64_t src, uint64_t bytes, unsigned char with)
{
    memset(b->rank[from].memory + src, with, bytes);
}

static bool filled(const struct bed *b, int at, uint64_t off, uint64_t bytes, unsigned char with)
{
    const unsigned char *p = b->rank[at].memory + off;
    for (uint64_t i = 0; i < bytes; i++)
        if (p[i] != with)
            return false;
    return true;
}

/* ---- n puts, then a strong signal ---- */

struct strong {
    uint64_t off[ROUNDS][PUTS], bytes[ROUNDS][PUTS];
    unsigned violations;
};

static void look_strong(struct bed *b, struct strong *s)
{
    uint64_t seen = bed_signal(b, 1, 0);
    for (uint64_t i = 0; i < seen && i < ROUNDS; i++)
        for (int k = 0; k < PUTS; k++)
            s->violations += !filled(b, 1, s->off[i][k], s->bytes[i][k], (unsigned char)(i + 1));
}

static unsigned run_strong(struct bed *b)
{
    struct strong s = {.violations = 0};
    uint64_t at = 0;
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < PUTS; k++) {
            uint64_t bytes = 1 + pt_below(&b->random, k == 2 ? 2500 : 200);
            bool own = k == PUTS - 1 && (i & 1) != 0;
            s.off[i][k] = at;
            s.bytes[i][k] = bytes;
            stamp(b, 0, SRC + at, bytes, (unsigned char)(i + 1));
            struct gi_core_put p = bed_make_put(b, 0, at, SRC + at, bytes);
            if (own)
                p.action = bed_slot(0, 1, true);
            EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
            at += bytes;
            bed_step(b);
            look_strong(b, &s);
        }
        if ((i & 1) == 0) {
            struct gi_core_put p = {.action = bed_slot(0, 1, true)};
            EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        }
        look_strong(b, &s);
    }
    for (unsigned n = 0; bed_signal(b, 1, 0) < ROUNDS && n < LONG; n++) {
        bed_step(b);
        look_strong(b, &s);
    }
    return s.violations + (bed_signal(b, 1, 0) != ROUNDS);
}

/* ---- a put in many pieces with a weak signal of its own ---- */

static unsigned run_weak(struct bed *b)
{
    unsigned violations = 0;
    uint64_t bytes[BED_SLOTS], at[BED_SLOTS], off = 0;
    for (uint32_t i = 0; i < BED_SLOTS; i++) {
        bytes[i] = 1 + pt_below(&b->random, i == 3 ? 14000 : 6000);
        at[i] = off;
        off += bytes[i];
        stamp(b, 0, SRC + at[i], bytes[i], (unsigned char)(i + 100));
        struct gi_core_put p = bed_make_put(b, 0, at[i], SRC + at[i], bytes[i]);
        p.action = bed_slot(i, i % 3 == 0 ? ~(uint64_t)i : 1, false);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
    }
    uint32_t seen = 0;
    for (unsigned n = 0; seen < BED_SLOTS && n < LONG; n++) {
        bed_step(b);
        seen = 0;
        for (uint32_t i = 0; i < BED_SLOTS; i++) {
            if (bed_signal(b, 1, i) == 0)
                continue;
            seen++;
            violations += !filled(b, 1, at[i], bytes[i], (unsigned char)(i + 100));
        }
    }
    violations += seen != BED_SLOTS;
    for (uint32_t i = 0; i < BED_SLOTS; i++)
        violations += bed_signal(b, 1, i) != (i % 3 == 0 ? ~(uint64_t)i : 1);
    return violations;
}

/* ---- strong signals cover earlier signals, of words, too ---- */

static unsigned run_signals(struct bed *b)
{
    uint64_t *words = (uint64_t *)(void *)b->rank[1].memory;
    unsigned violations = 0;
    uint64_t seen = 0;
    int i = 0;
    for (unsigned n = 0; seen < ROUNDS && n < LONG; n++) {
        if (i < ROUNDS) {
            struct gi_core_put weak = bed_make_put(b, 0, 4096 + 8u * (unsigned)i, SRC, 8);
            weak.action = bed_slot(1, 1, false);
            EXPECT_EQ_INT(bed_put(b, 0, 1, &weak), GIN_OK);
            struct gi_core_put add = {
                .action = {.kind = GI_CORE_WORD_ADD, .id = BED_WINDOW, .off = 8, .value = 3}};
            EXPECT_EQ_INT(bed_put(b, 0, 1, &add), GIN_OK);
            struct gi_core_put set = {.action = {.kind = GI_CORE_WORD_SET,
                                                 .strong = true,
                                                 .id = BED_WINDOW,
                                                 .off = 0,
                                                 .value = (uint64_t)++i}};
            EXPECT_EQ_INT(bed_put(b, 0, 1, &set), GIN_OK);
        }
        bed_step(b);
        uint64_t now = GIN_LOAD_ACQUIRE(&words[0]);
        violations += now < seen || now > ROUNDS;
        seen = now;
        violations += bed_signal(b, 1, 1) < seen || words[1] < 3 * seen;
    }
    bed_idle(b);
    violations += seen != ROUNDS || bed_signal(b, 1, 1) != ROUNDS || words[1] != 3 * ROUNDS;
    return violations;
}

/* ---- fence ---- */

static unsigned run_fence(struct bed *b)
{
    uint64_t *words = (uint64_t *)(void *)b->rank[1].memory;
    uint64_t *src = (uint64_t *)(void *)(b->rank[0].memory + SRC);
    unsigned violations = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        for (uint64_t k = 0; k < 3; k++) { /* far apart, one of them by message */
            src[16 * i + k] = i;
            struct gi_core_put p = bed_make_put(b, 0, 4096 * k, SRC + 8 * (16 * i + k), 8);
            p.copy = k == 1;
            EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
            EXPECT_EQ_INT(bed_fence(b, 0, k == 0 ? 1 : GI_CORE_ALL), GIN_OK);
        }
        for (int n = 0; n < 3; n++) {
            bed_step(b);
            violations += words[512] < words[1024] || words[0] < words[512];
        }
        violations += words[0] > i;
    }
    for (unsigned n = 0; words[1024] != ROUNDS && n < LONG; n++) {
        bed_step(b);
        violations += words[512] < words[1024] || words[0] < words[512];
    }
    return violations + (words[1024] != ROUNDS);
}

/* ---- quiet: seen complete is in the target's memory ---- */

static unsigned run_quiet(struct bed *b)
{
    unsigned violations = 0;
    uint64_t word = 0;
    for (int i = 1; i <= ROUNDS; i++) {
        uint64_t bytes = 1 + pt_below(&b->random, 3000);
        stamp(b, 0, SRC, bytes, (unsigned char)i);
        struct gi_core_put p = bed_make_put(b, 0, 16, SRC, bytes);
        p.action = bed_slot(2, 1, false);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        word = (uint64_t)i;
        struct gi_core_put value = {
            .window = BED_WINDOW, .off = 8, .src = &word, .bytes = 8, .copy = true};
        EXPECT_EQ_INT(bed_put(b, 0, 1, &value), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(b, 0, i & 1 ? GI_CORE_ALL : 1), GIN_OK);
        violations += !filled(b, 1, 16, bytes, (unsigned char)i);
        violations += bed_signal(b, 1, 2) != (uint64_t)i;
        violations += *(uint64_t *)(void *)(b->rank[1].memory + 8) != (uint64_t)i;
        struct gi_core_put alone = {.action = bed_slot(3, 1, (i & 2) != 0)};
        EXPECT_EQ_INT(bed_put(b, 0, 1, &alone), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(b, 0, 1), GIN_OK);
        violations += bed_signal(b, 1, 3) != (uint64_t)i;
        if (b->mutate == 0)
            violations += !gi_core_is_clean(b->rank[0].ctx, 1);
    }
    return violations;
}

/* ---- the same where the network takes nothing for a while ---- */

/* Small puts that could not leave yet, and a long one queued behind them when quiet begins. */
static unsigned run_behind(struct bed *b)
{
    unsigned violations = 0;
    for (int i = 1; i <= 2 * ROUNDS; i++) {
        uint64_t bytes = 500 + pt_below(&b->random, 2500), value = (uint64_t)i;
        stamp(b, 0, SRC, bytes, (unsigned char)i);
        gi_fault_peer(b->rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
        struct gi_core_put small = {
            .window = BED_WINDOW, .off = 8, .src = &value, .bytes = 8, .copy = true};
        small.more = true; /* where there are bundles, it waits in one */
        EXPECT_EQ_INT(bed_put(b, 0, 1, &small), GIN_OK);
        struct gi_core_put p = bed_make_put(b, 0, 16, SRC, bytes);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        violations += gi_core_settled(b->rank[0].ctx, 1, gi_core_mark(b->rank[0].ctx)) != 0;
        gi_fault_peer(b->rank[0].domain, 1, GI_FAULT_PEER_WELL);
        EXPECT_EQ_INT(bed_quiet(b, 0, 1), GIN_OK);
        violations += !filled(b, 1, 16, bytes, (unsigned char)i);
        violations += *(uint64_t *)(void *)(b->rank[1].memory + 8) != value;
    }
    return violations;
}

/* ---- bursts: small puts that may share messages, between signals of all kinds ---- */

static unsigned run_burst(struct bed *b)
{
    uint64_t *words = (uint64_t *)(void *)b->rank[1].memory;
    uint64_t *src = (uint64_t *)(void *)(b->rank[0].memory + SRC);
    unsigned violations = 0, puts = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        unsigned n = 1 + (unsigned)pt_below(&b->random, 90);
        for (unsigned k = 0; k < n; k++, puts++) {
            src[puts] = puts + 1;
            struct gi_core_put p = bed_make_put(b, 0, 8 * puts, SRC + 8 * puts, 8);
            p.copy = true;
            if (k % 3 == 1)
                p.action = bed_slot(1, 1, true);
            EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        }
        src[ROUNDS * 90 + i] = puts; /* how many there were, with a strong signal */
        struct gi_core_put last =
            bed_make_put(b, 0, 8 * (ROUNDS * 90 + i), SRC + 8 * (ROUNDS * 90 + i), 8);
        last.action = bed_slot(0, i % 2 != 0 ? 1 : 1000, true);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &last), GIN_OK);
        for (unsigned s = 0; s < pt_below(&b->random, 6); s++) {
            bed_step(b);
            uint64_t seen = bed_signal(b, 1, 0) / 1000 + bed_signal(b, 1, 0) % 1000;
            uint64_t all = seen != 0 ? words[ROUNDS * 90 + seen] : 0;
            violations += seen != 0 && all == 0;
            for (uint64_t k = 0; k < all; k++)
                violations += words[k] != k + 1;
        }
    }
    violations += bed_quiet(b, 0, 1) != GIN_OK;
    for (unsigned k = 0; k < puts; k++)
        violations += words[k] != k + 1;
    violations += bed_signal(b, 1, 0) != ROUNDS / 2 * 1001;
    return violations;
}

/* ---- strong slot signals, with a put or alone, behind what goes by message ---- */

static unsigned run_mixed(struct bed *b)
{
    const uint64_t *words = (uint64_t *)(void *)b->rank[1].memory;
    unsigned violations = 0;
    uint64_t i = 0;
    for (unsigned n = 0; bed_signal(b, 1, 0) < 2 * ROUNDS && n < LONG; n++) {
        if (i < ROUNDS) {
            struct gi_core_put add = {
                .action = {.kind = GI_CORE_WORD_ADD, .id = BED_WINDOW, .off = 8, .value = 1}};
            struct gi_core_put put = bed_make_put(b, 0, 4096 + 8 * i, SRC, 8);
            struct gi_core_put alone = {.action = bed_slot(0, 1, true)};
            put.action = alone.action;
            EXPECT_EQ_INT(bed_put(b, 0, 1, &add), GIN_OK);
            EXPECT_EQ_INT(bed_put(b, 0, 1, i % 2 != 0 ? &put : &alone), GIN_OK);
            EXPECT_EQ_INT(bed_put(b, 0, 1, &add), GIN_OK);
            EXPECT_EQ_INT(bed_put(b, 0, 1, i % 2 != 0 ? &alone : &put), GIN_OK);
            i++;
        }
        bed_step(b);
        uint64_t seen = bed_signal(b, 1, 0);
        violations += GIN_LOAD_ACQUIRE(&words[1]) < seen;
    }
    return violations + (bed_signal(b, 1, 0) != 2 * ROUNDS);
}

/* A put of the source's first word, and a get of where it goes. */
static void there_and_back(struct bed *b, uint64_t *back, bool copy, struct gi_core_put *p,
                           struct gi_core_get *g)
{
    *p = bed_make_put(b, 0, 64, SRC, 8);
    p->copy = copy;
    *g = (struct gi_core_get){
        .window = BED_WINDOW, .off = 64, .dst = back, .bytes = 8, .region = b->rank[0].region};
}

/* ---- a get behind a fence reads what was put before it ---- */

static unsigned run_get(struct bed *b)
{
    uint64_t *src = (uint64_t *)(void *)(b->rank[0].memory + SRC), *back = src + 4096;
    unsigned violations = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct gi_core_put p;
        struct gi_core_get g;
        src[0] = i;
        there_and_back(b, back, i % 2 != 0, &p, &g);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_fence(b, 0, 1), GIN_OK);
        EXPECT_EQ_INT(bed_get(b, 0, 1, &g), GIN_OK);
        EXPECT_EQ_INT(bed_flush(b, 0), GIN_OK);
        violations += *back != i;
    }
    return violations;
}

/* ---- ... and one before a fence what a put behind it replaces ---- */

static unsigned run_replaced(struct bed *b)
{
    uint64_t *src = (uint64_t *)(void *)(b->rank[0].memory + SRC), *back = src + 4096;
    unsigned violations = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct gi_core_put p;
        struct gi_core_get g;
        src[0] = i;
        there_and_back(b, back, i % 2 != 0, &p, &g);
        EXPECT_EQ_INT(bed_get(b, 0, 1, &g), GIN_OK);
        EXPECT_EQ_INT(bed_fence(b, 0, 1), GIN_OK);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(b, 0, 1), GIN_OK);
        violations += *back != i - 1;
    }
    return violations;
}

/* ---- small puts to one word, on ordered networks: the last one stays ---- */

static unsigned run_same_word(struct bed *b)
{
    uint64_t *word = (uint64_t *)(void *)b->rank[1].memory, seen = 0;
    unsigned violations = 0;
    for (uint64_t i = 1; i <= 10 * ROUNDS; i++) {
        struct gi_core_put p = {
            .window = BED_WINDOW, .src = &i, .bytes = 8, .copy = true, .action.strong = true};
        if (i % 3 != 0)
            p.action = bed_slot(0, 1, true);
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        for (uint64_t s = pt_below(&b->random, 4); s != 0; s--) {
            bed_step(b);
            violations += *word < seen;
            seen = *word;
        }
    }
    violations += bed_quiet(b, 0, 1) != GIN_OK;
    return violations + (*word != 10 * ROUNDS);
}

/* ---- failures ---- */

/* A put fails, and behind it comes, before that is known, one whose strong signal tells of both. */
static void signal_behind(const char *mask, enum gi_fault_call call, uint64_t bytes, uint32_t hold)
{
    struct bed b = {.seed = PT_SEED, .peer_timeout_ns = 200000000u};
    pt_step("%s, call %d, %u bytes, %u held", mask, (int)call, (unsigned)bytes, hold);
    if (!bed_open(&b, bed_mask(mask), 2))
        return;
    struct gi_fault_plan plan = {.provider_error = 5, .hold = hold};
    plan.first[call] = plan.count[call] = 1;
    plan.status[call] = GIN_ENET;
    gi_fault_set(b.rank[0].domain, &plan);
    memset(b.rank[0].memory + SRC, 0x5a, bytes);
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, bytes);
    gi_core_put(b.rank[0].ctx, 1, &p);
    p = bed_make_put(&b, 0, 65536, SRC, bytes);
    p.action = bed_slot(0, 1, true);
    gi_core_put(b.rank[0].ctx, 1, &p);
    int st = bed_quiet(&b, 0, 1);
    bed_idle(&b);
    EXPECT(st == GIN_OK || st == GIN_ENET);
    if (bed_signal(&b, 1, 0) != 0) {
        EXPECT_FILLED(b.rank[1].memory + 64, bytes, 0x5a);
        EXPECT_FILLED(b.rank[1].memory + 65536, bytes, 0x5a);
    } else {
        EXPECT(st != GIN_OK); /* what did not come is told */
    }
    bed_close(&b);
}

TEST(no_signal_passes_a_put_that_failed)
{
    static const char *const masks[] = {"A", "B64", "B0", "C64", "C-no-dc", "D"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++)
        for (uint32_t hold = 0; hold <= 4; hold += 4) {
            signal_behind(masks[m], GI_FAULT_WRITE, 5000, hold);
            signal_behind(masks[m], GI_FAULT_WRITE, 30, hold);
            signal_behind(masks[m], GI_FAULT_MSG, 30, hold);
        }
}

/* ---- all of it on all classes ---- */

typedef unsigned (*litmus_fn)(struct bed *b);
static const struct {
    const char *name;
    litmus_fn run;
} litmus[] = {{"strong", run_strong}, {"weak", run_weak},   {"signals", run_signals},
              {"fence", run_fence},   {"quiet", run_quiet}, {"burst", run_burst},
              {"mixed", run_mixed},   {"get", run_get},     {"replaced", run_replaced},
              {"behind", run_behind}};

/* staged: ranks whose memory is a GPU's. */
static unsigned one(const struct bed_mask *mask, litmus_fn run, unsigned mutate, uint64_t seed,
                    uint32_t again, unsigned staged)
{
    struct bed b = {.seed = seed,
                    .mutate = mutate,
                    .staged = staged,
                    .plan = {.hold = 12, .early = true, .again = again}};
    unsigned violations = 0;
    if (bed_open(&b, mask, 2)) {
        violations = run(&b) + b.stuck;
        EXPECT_EQ_INT(gi_core_ctx_status(b.rank[0].ctx, NULL, NULL), GIN_OK);
        EXPECT_EQ_U64(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_REFUSED], 0);
    }
    bed_close(&b);
    return violations;
}

static void everywhere(size_t which)
{
    uint64_t state = PT_SEED;
    for (size_t m = 0; m < bed_n_masks; m++)
        for (unsigned i = 0; i < 9; i++) {
            uint64_t seed = pt_random(&state) | 1;
            unsigned staged = i < 6 ? 0 : i - 5;
            pt_step("%s on %s, staged %u, seed %" PRIu64, litmus[which].name, bed_masks[m].name,
                    staged, seed);
            if (!EXPECT_EQ_U64(one(&bed_masks[m], litmus[which].run, 0, seed,
                                   i % 6 < 3 && i != 7 ? 0 : 400, staged),
                               0))
                FAIL("%s on %s, staged %u, seed %" PRIu64, litmus[which].name, bed_masks[m].name,
                     staged, seed);
        }
}

TEST(strong_covers_all_before)
{
    everywhere(0);
}

TEST(weak_covers_its_put)
{
    everywhere(1);
}

TEST(strong_covers_signals)
{
    everywhere(2);
}

TEST(fence_orders)
{
    everywhere(3);
}

TEST(quiet_is_honest)
{
    everywhere(4);
}

TEST(bursts)
{
    everywhere(5);
}

TEST(strong_covers_messages)
{
    everywhere(6);
}

TEST(fence_covers_gets)
{
    everywhere(7);
}

TEST(fence_holds_back_what_replaces)
{
    everywhere(8);
}

TEST(quiet_covers_what_waits)
{
    everywhere(9);
}

/* Not promised, but relied upon: where writes are ordered, bundles do not undo that. */
TEST(same_word)
{
    uint64_t state = PT_SEED;
    for (int i = 0; i < 40; i++) {
        uint64_t seed = pt_random(&state) | 1;
        if (!EXPECT_EQ_U64(one(bed_mask(i & 1 ? "B64" : "B32"), run_same_word, 0, seed, 0, 0), 0))
            FAIL("seed %" PRIu64, seed);
    }
}

/* A core broken in one way fails the litmus for it, at least now and then. */
static const struct {
    const char *mask;
    litmus_fn run;
    unsigned mutation;
    uint32_t again;
} broken[] = {
    {"B64", run_weak, GI_CORE_MUTATE_LAST, 0},
    {"B64", run_quiet, GI_CORE_MUTATE_QUIET, 0},
    {"B0", run_quiet, GI_CORE_MUTATE_QUIET, 0},
    {"B64", run_quiet, GI_CORE_MUTATE_ECHO, 400},
    {"B64", run_behind, GI_CORE_MUTATE_RIDES, 0},
    {"B64", run_same_word, GI_CORE_MUTATE_BUNDLE, 0},
    {"B-weak-order", run_mixed, GI_CORE_MUTATE_IMM, 0},
    {"B-weak-order", run_get, GI_CORE_MUTATE_READS, 0},
    {"B-told", run_quiet, GI_CORE_MUTATE_PROMPT, 0},
    {"A", run_mixed, GI_CORE_MUTATE_NATIVE, 0},
    {"A-early", run_quiet, GI_CORE_MUTATE_QUIET, 0},
    {"C64", run_strong, GI_CORE_MUTATE_STRONG, 0},
    {"C0", run_strong, GI_CORE_MUTATE_STRONG, 0},
    {"C0", run_weak, GI_CORE_MUTATE_WEAK, 0},
    {"C64", run_weak, GI_CORE_MUTATE_WEAK, 0},
    {"C64", run_quiet, GI_CORE_MUTATE_DELIVERED, 0},
    {"C32", run_fence, GI_CORE_MUTATE_FENCE, 0},
    {"C-no-dc", run_fence, GI_CORE_MUTATE_FENCE | GI_CORE_MUTATE_SEQ, 0},
    {"C32", run_get, GI_CORE_MUTATE_FENCE, 0},
    {"C32", run_signals, GI_CORE_MUTATE_SEQ, 0},
    {"C-no-dc", run_strong, GI_CORE_MUTATE_SEQ, 0},
    {"E64", run_strong, GI_CORE_MUTATE_SHORT, 0},
    {"E32", run_strong, GI_CORE_MUTATE_REUSE, 0},
    {"E-few", run_weak, GI_CORE_MUTATE_SHORT, 0},
    {"E32", run_signals, GI_CORE_MUTATE_SEQ, 0},
    {"E32", run_fence, GI_CORE_MUTATE_FENCE, 0},
    {"D", run_strong, GI_CORE_MUTATE_UNFENCED, 0},
    {"D", run_weak, GI_CORE_MUTATE_UNFENCED, 0},
    {"D", run_mixed, GI_CORE_MUTATE_NATIVE, 0},
};

TEST(broken_core_is_noticed)
{
    for (size_t k = 0; k < sizeof(broken) / sizeof(broken[0]); k++) {
        uint64_t state = PT_SEED;
        unsigned violations = 0;
        pt_step("mutation %u on %s", broken[k].mutation, broken[k].mask);
        for (int i = 0; i < 150 && violations == 0; i++)
            violations = one(bed_mask(broken[k].mask), broken[k].run, broken[k].mutation,
                             pt_random(&state) | 1, broken[k].again, 0);
        if (!EXPECT(violations != 0))
            FAIL("mutation %u on %s goes unnoticed", broken[k].mutation, broken[k].mask);
    }
}
