/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that are split over two or three rails, each of which reorders and delivers late for itself:
 * the put's own signal covers all pieces, strong signals, fences and quiet cover earlier striped
 * puts, small puts stay at home. Then with the rule broken that makes it so.
 */
#include "core_bed.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS 8
#define FROM   1024u          /* bytes that are split */
#define SRC    (128u << 10)   /* sources are in the upper half, targets in the lower */
#define LONG   1000000u       /* steps, after which it is not coming */
#define PART   (SRC / ROUNDS) /* a round's */

static bool filled(const struct bed *b, uint64_t off, uint64_t bytes, unsigned char with)
{
    const unsigned char *p = b->rank[1].memory + off;
    for (uint64_t i = 0; i < bytes; i++)
        if (p[i] != with)
            return false;
    return true;
}

static uint64_t sides(const struct bed *b)
{
    return gi_core_counts(b->rank[0].ctx)[GI_CORE_N_SIDE];
}

/* A large put of a round's byte; its size. */
static uint64_t large(struct bed *b, uint64_t round, struct gi_core_action action)
{
    uint64_t bytes = FROM + pt_below(&b->random, PART - FROM - 8), at = round * PART;
    memset(b->rank[0].memory + SRC + at, (int)round + 1, bytes);
    struct gi_core_put p = bed_make_put(b, 0, at, SRC + at, bytes);
    p.action = action;
    EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
    return bytes;
}

/* A word behind it, small, at the end of the round's part. */
static void small(struct bed *b, uint64_t round, struct gi_core_action action)
{
    uint64_t at = (round + 1) * PART - 8, value = round + 1;
    struct gi_core_put p = {
        .window = BED_WINDOW, .off = at, .src = &value, .bytes = 8, .copy = true, .action = action};
    EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
}

/* ---- strong signals behind striped puts, alone, with small ones, with large ones ---- */

static unsigned run_strong(struct bed *b)
{
    uint64_t bytes[ROUNDS];
    unsigned violations = 0;
    for (unsigned i = 0, n = 0; n < LONG && bed_signal(b, 1, 0) < ROUNDS; n++) {
        if (i < ROUNDS) {
            struct gi_core_put alone = {.action = bed_slot(0, 1, true)};
            bytes[i] = large(b, i, i % 3 == 2 ? alone.action : bed_slot(1, 1, false));
            if (i % 3 == 0)
                EXPECT_EQ_INT(bed_put(b, 0, 1, &alone), GIN_OK);
            else if (i % 3 == 1)
                small(b, i, alone.action);
            i++;
        }
        bed_step(b);
        uint64_t seen = bed_signal(b, 1, 0);
        for (uint64_t k = 0; k < seen && k < ROUNDS; k++)
            violations += !filled(b, k * PART, bytes[k], (unsigned char)(k + 1));
        /* those of earlier puts, too: of each but every third */
        violations += bed_signal(b, 1, 1) < seen - seen / 3;
    }
    return violations + (bed_signal(b, 1, 0) != ROUNDS);
}

/* ---- a put's own weak signal covers all its pieces ---- */

static unsigned run_weak(struct bed *b)
{
    uint64_t bytes[ROUNDS];
    unsigned violations = 0;
    for (uint32_t i = 0; i < ROUNDS; i++)
        bytes[i] = large(b, i, bed_slot(i, 5, false));
    uint32_t seen = 0;
    for (unsigned n = 0; seen < ROUNDS && n < LONG; n++) {
        bed_step(b);
        seen = 0;
        for (uint32_t i = 0; i < ROUNDS; i++) {
            if (bed_signal(b, 1, i) == 0)
                continue;
            seen++;
            violations += !filled(b, i * PART, bytes[i], (unsigned char)(i + 1));
        }
    }
    return violations + (seen != ROUNDS);
}

/* ---- what is behind a fence is seen after a striped put ---- */

static unsigned run_fence(struct bed *b)
{
    unsigned violations = 0;
    uint64_t bytes[ROUNDS];
    const uint64_t *last = (const uint64_t *)(const void *)(b->rank[1].memory + SRC - 8);
    for (uint64_t i = 0, n = 0; *last != ROUNDS && n < LONG; n++) {
        if (i < ROUNDS) {
            bytes[i] = large(b, i, bed_slot(0, 1, false));
            EXPECT_EQ_INT(bed_fence(b, 0, i % 2 ? 1 : GI_CORE_ALL), GIN_OK);
            small(b, i, (struct gi_core_action){.kind = GI_CORE_NONE});
            i++;
        }
        bed_step(b);
        for (uint64_t k = 0; k < i; k++) {
            uint64_t word = *(uint64_t *)(void *)(b->rank[1].memory + (k + 1) * PART - 8);
            violations += word == k + 1 && !filled(b, k * PART, bytes[k], (unsigned char)(k + 1));
        }
    }
    return violations + (*last != ROUNDS);
}

/* ---- quiet, flush and counters ---- */

static unsigned run_quiet(struct bed *b)
{
    unsigned violations = 0;
    uint64_t counter = 0, signals = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t bytes = FROM + pt_below(&b->random, PART - FROM), at = i * PART;
        memset(b->rank[0].memory + SRC + at, (int)i + 1, bytes);
        struct gi_core_put p = bed_make_put(b, 0, at, SRC + at, bytes);
        p.counter = &counter;
        if (i % 4 != 0)
            p.action = bed_slot(0, 1, i % 4 == 3);
        signals += i % 4 != 0;
        EXPECT_EQ_INT(bed_put(b, 0, 1, &p), GIN_OK);
        if (i % 2 != 0) {
            EXPECT_EQ_INT(bed_flush(b, 0), GIN_OK);
            violations += counter != i + 1;
        }
        EXPECT_EQ_INT(bed_quiet(b, 0, i % 3 ? 1 : GI_CORE_ALL), GIN_OK);
        violations += counter != i + 1 || !filled(b, at, bytes, (unsigned char)(i + 1));
        violations += !gi_core_is_clean(b->rank[0].ctx, 1) || bed_signal(b, 1, 0) != signals;
    }
    return violations;
}

typedef unsigned (*litmus_fn)(struct bed *b);
static const struct {
    const char *name;
    litmus_fn run;
} litmus[] = {
    {"strong", run_strong}, {"weak", run_weak}, {"fence", run_fence}, {"quiet", run_quiet}};

/* Classes that tell of delivery: the others are not split. */
static const char *const masks[] = {"A",   "A-no-cells", "B-told",  "C64",    "C32",
                                    "C0",  "C-eats",     "C-local", "C-psm3", "D",
                                    "E64", "E32",        "E-few",   "E-local"};
#define N_MASKS (sizeof(masks) / sizeof(masks[0]))

static unsigned one(const char *mask, litmus_fn run, unsigned mutate, uint64_t seed, uint32_t rails,
                    uint32_t again)
{
    struct bed b = {.seed = seed,
                    .mutate = mutate,
                    .rails = rails,
                    .stripe = FROM,
                    .plan = {.hold = 12, .early = true, .again = again}};
    unsigned violations = 0;
    if (bed_open(&b, bed_mask(mask), 2)) {
        violations = run(&b) + b.stuck;
        EXPECT(sides(&b) != 0);
        EXPECT_EQ_INT(gi_core_ctx_status(b.rank[0].ctx, NULL, NULL), GIN_OK);
        EXPECT_EQ_U64(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_REFUSED], 0);
    }
    bed_close(&b);
    return violations;
}

static void everywhere(size_t which)
{
    uint64_t state = PT_SEED;
    for (size_t m = 0; m < N_MASKS; m++)
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t seed = pt_random(&state) | 1;
            pt_step("%s on %s, seed %" PRIu64, litmus[which].name, masks[m], seed);
            if (!EXPECT_EQ_U64(one(masks[m], litmus[which].run, 0, seed, 2 + i / 2, i % 2 * 300),
                               0))
                FAIL("%s on %s, seed %" PRIu64, litmus[which].name, masks[m], seed);
        }
}

TEST(strong_covers_other_rails)
{
    everywhere(0);
}

TEST(weak_covers_all_pieces)
{
    everywhere(1);
}

TEST(fence_covers_other_rails)
{
    everywhere(2);
}

TEST(quiet_covers_other_rails)
{
    everywhere(3);
}

/* A core broken in one way fails the litmus for it, at least now and then. */
TEST(broken_core_is_noticed)
{
    static const struct {
        const char *mask;
        litmus_fn run;
        unsigned mutation;
    } broken[] = {
        {"A", run_strong, GI_CORE_MUTATE_APART},
        {"A-no-cells", run_strong, GI_CORE_MUTATE_APART},
        {"B-told", run_strong, GI_CORE_MUTATE_APART},
        {"B-told", run_fence, GI_CORE_MUTATE_APART},
        {"A", run_fence, GI_CORE_MUTATE_APART},
        {"B-told", run_weak, GI_CORE_MUTATE_DELIVERED},
    };
    for (size_t k = 0; k < sizeof(broken) / sizeof(broken[0]); k++) {
        uint64_t state = PT_SEED;
        unsigned violations = 0;
        pt_step("mutation %u on %s", broken[k].mutation, broken[k].mask);
        for (int i = 0; i < 150 && violations == 0; i++)
            violations =
                one(broken[k].mask, broken[k].run, broken[k].mutation, pt_random(&state) | 1, 2, 0);
        if (!EXPECT(violations != 0))
            FAIL("mutation %u on %s goes unnoticed", broken[k].mutation, broken[k].mask);
    }
}

/* ---- what is not split ---- */

TEST(small_puts_stay_at_home)
{
    struct bed b = {.rails = 2, .stripe = FROM};
    if (!bed_open(&b, bed_mask("B-told"), 2))
        return;
    EXPECT(gi_core_stripes(b.rank[0].core));
    struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, FROM - 1);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT_EQ_U64(sides(&b), 0);
    p.bytes = 3 * 64 << 10; /* three pieces: home, side, and one of them */
    p.src = b.rank[0].memory;
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT(sides(&b) != 0);
    EXPECT(sides(&b) < gi_core_counts(b.rank[0].ctx)[GI_CORE_N_WRITE]);
    bed_close(&b);
}

/* However little is to be split: other rails do not know the copies. */
TEST(copied_puts_stay_at_home)
{
    struct bed b = {.rails = 2, .stripe = 1};
    if (!bed_open(&b, bed_mask("C-local"), 2))
        return;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        char value[GI_CORE_COPY] = {(char)i};
        struct gi_core_put p = {
            .window = BED_WINDOW, .src = value, .bytes = sizeof(value), .copy = true};
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    }
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT_EQ_U64(sides(&b), 0);
    bed_close(&b);
}

static void not_split(struct bed b, const char *mask)
{
    pt_step("%s", mask);
    if (!bed_open(&b, bed_mask(mask), 2))
        return;
    EXPECT(!gi_core_stripes(b.rank[0].core));
    struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, 100000);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT_EQ_U64(sides(&b), 0);
    bed_close(&b);
}

TEST(without_word_of_delivery)
{
    not_split((struct bed){.rails = 2, .stripe = FROM}, "B64");
    not_split((struct bed){.rails = 2, .stripe = FROM}, "C-no-dc");
}

TEST(switched_off)
{
    not_split((struct bed){.rails = 2}, "B-told");
    not_split((struct bed){.rails = 1, .stripe = FROM}, "B-told");
}

/* ---- failures ---- */

/* A piece fails on the other rail: no signal tells of the put, and the context says why. */
TEST(a_rail_fails)
{
    for (uint32_t hold = 0; hold <= 4; hold += 4) {
        struct bed b = {.rails = 2, .stripe = FROM, .peer_timeout_ns = 200000000u};
        if (!bed_open(&b, bed_mask("B-told"), 2))
            return;
        struct gi_fault_plan plan = {.provider_error = 5, .hold = hold};
        plan.first[GI_FAULT_WRITE] = plan.count[GI_FAULT_WRITE] = 1;
        plan.status[GI_FAULT_WRITE] = GIN_ENET;
        gi_fault_set(b.rank[0].domains[1], &plan);
        struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, 100000);
        p.action = bed_slot(0, 1, false);
        EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
        struct gi_core_put strong = {.action = bed_slot(1, 1, true)};
        gi_core_put(b.rank[0].ctx, 1, &strong);
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_ENET);
        const char *why;
        EXPECT_EQ_INT(gi_core_peer_status(b.rank[0].ctx, 1, &why), GIN_ENET);
        EXPECT_HAS(why, "rail 1");
        EXPECT_EQ_U64(bed_signal(&b, 1, 0) + bed_signal(&b, 1, 1), 0);
        bed_close(&b);
    }
}

/* A rail that carries nothing does not hold a put back for ever: the others take what it refuses.
 */
TEST(a_rail_takes_nothing)
{
    struct bed b = {.rails = 2, .stripe = FROM};
    if (!bed_open(&b, bed_mask("B-told"), 2))
        return;
    gi_fault_peer(b.rank[0].domains[1], 1, GI_FAULT_PEER_AGAIN);
    memset(b.rank[0].memory + SRC, 7, 100000);
    struct gi_core_put p = bed_make_put(&b, 0, 0, SRC, 100000);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT(filled(&b, 0, 100000, 7));
    EXPECT_EQ_U64(sides(&b), 0);
    bed_close(&b);
}
