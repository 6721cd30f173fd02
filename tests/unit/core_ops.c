/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's operations one by one: what arrives, counters, notices, atomics, bounds.
 */
#include "core_bed.h"

#include <string.h>
#include "transport/core_int.h"

#define SRC (128u << 10)

static void open_plain(struct bed *b, const char *mask, int n)
{
    *b = (struct bed){.seed = 1};
    bed_open(b, bed_mask(mask), n);
}

/* Signals while something is under way: the strong one waits for it, the weak one does not. */
TEST(strong_waits_weak_does_not)
{
    struct bed b = {.seed = 3};
    if (!bed_open(&b, bed_mask("C64"), 2))
        return;
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 1000), weak = p, alone = {.bytes = 0};
    gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
    EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
    gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_WELL);
    alone.action = bed_slot(0, 1, true);
    weak.action = bed_slot(1, 1, false);
    EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &alone), GIN_OK);
    EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_MSG], 0);
    EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &weak), GIN_OK);
    EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_WRITE_IMM], 1);
    gi_core_poll(b.rank[1].core);
    EXPECT_EQ_U64(bed_signal(&b, 1, 0), 0);
    EXPECT_EQ_U64(bed_signal(&b, 1, 1), 1);
    bed_idle(&b);
    EXPECT_EQ_U64(bed_signal(&b, 1, 0), 1);
    bed_close(&b);
}

/* ---- put and get of all sizes, everywhere, among several ranks ---- */

struct told {
    struct gi_core_notice notice; /* first */
    int calls, status;
};

static void on_notice(struct gi_core_notice *n, int status)
{
    struct told *t = (struct told *)n;
    t->calls++;
    t->status = status;
}

static void pattern(unsigned char *p, uint64_t bytes, unsigned salt)
{
    for (uint64_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(i * 7 + salt);
}

static void there_and_back(struct bed *b, int from, int to, uint64_t bytes)
{
    static unsigned char back[40000];
    struct bed_rank *r = &b->rank[from];
    struct told put_told = {.notice.fn = on_notice}, get_told = {.notice.fn = on_notice};
    uint64_t counter = 0, off = pt_below(&b->random, 3000);
    pattern(r->memory + SRC, bytes, (unsigned)bytes);
    memset(b->rank[to].memory, 0xee, bytes + 6000);
    struct gi_core_put p = bed_make_put(b, from, off, SRC, bytes);
    p.counter = &counter;
    p.notice = &put_told.notice;
    EXPECT_EQ_INT(bed_put(b, from, to, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(b, from, GI_CORE_ALL), GIN_OK);
    EXPECT_EQ_INT(put_told.calls, 1);
    EXPECT_EQ_INT(put_told.status, GIN_OK);
    EXPECT_EQ_U64(counter, 1);
    EXPECT_FILLED(b->rank[to].memory, off, 0xee);
    EXPECT_EQ_INT(memcmp(b->rank[to].memory + off, r->memory + SRC, bytes), 0);
    EXPECT_FILLED(b->rank[to].memory + off + bytes, 3000, 0xee);
    memset(r->memory + SRC + 40000, 0xcc, bytes + 16);
    struct gi_core_get g = {.window = BED_WINDOW,
                            .off = off,
                            .dst = r->memory + SRC + 40000,
                            .bytes = bytes,
                            .region = r->region,
                            .counter = &counter,
                            .notice = &get_told.notice};
    EXPECT_EQ_INT(bed_get(b, from, to, &g), GIN_OK);
    EXPECT_EQ_INT(bed_flush(b, from), GIN_OK);
    memcpy(back, r->memory + SRC + 40000, bytes);
    EXPECT_EQ_INT(memcmp(back, r->memory + SRC, bytes), 0);
    EXPECT_FILLED(r->memory + SRC + 40000 + bytes, 16, 0xcc);
    EXPECT_EQ_INT(get_told.calls, 1);
    EXPECT_EQ_U64(counter, 2);
}

TEST(put_and_get)
{
    static const uint64_t sizes[] = {0, 1, 7, 8, 16, 80, 81, 95, 96, 97, 4095, 4096, 4097, 12289};
    for (size_t m = 0; m < bed_n_masks; m++) {
        struct bed b = {.seed = PT_SEED, .plan = {.hold = 6, .early = true, .again = 100}};
        pt_step("%s", bed_masks[m].name);
        if (bed_open(&b, &bed_masks[m], 3))
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                for (int to = 0; to < 3; to++) /* myself, too */
                    there_and_back(&b, 0, to, sizes[i]);
        bed_close(&b);
    }
}

/* Small puts between two polls share messages, signals by one with them; each is a put of its own
 * for whoever waits. */
TEST(bundles)
{
    enum { N = 1000 };
    static const char *const masks[] = {"B64", "B32", "B-tiny", "A", "C64"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        struct bed b;
        uint64_t counter = 0, value;
        struct told t = {.notice.fn = on_notice};
        pt_step("%s", masks[m]);
        open_plain(&b, masks[m], 2);
        for (unsigned i = 0; i < N; i++) {
            value = i + 1;
            struct gi_core_put p = {.window = BED_WINDOW,
                                    .off = 8 * i,
                                    .src = &value,
                                    .bytes = 8,
                                    .copy = true,
                                    .action = bed_slot(i % 4, i % 4 != 0, true),
                                    .counter = &counter,
                                    .notice = &t.notice};
            p.action.kind = i % 4 != 0 ? GI_CORE_SLOT_ADD : GI_CORE_NONE;
            EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        }
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
        for (unsigned i = 0; i < N; i++)
            EXPECT_EQ_U64(((uint64_t *)(void *)b.rank[1].memory)[i], i + 1);
        for (uint32_t s = 1; s < 4; s++)
            EXPECT_EQ_U64(bed_signal(&b, 1, s), N / 4);
        EXPECT_EQ_U64(counter, N);
        EXPECT_EQ_INT(t.calls, N);
        const uint64_t *c = gi_core_counts(b.rank[0].ctx);
        if (m < 2)
            EXPECT(c[GI_CORE_N_BUNDLED] > N - 50 && c[GI_CORE_N_MSG] < N / 30);
        else if (m > 2)
            EXPECT_EQ_U64(c[GI_CORE_N_BUNDLED], 0);
        bed_close(&b);
    }
}

/* Quiet behind a burst asks with the burst's last message, behind immediates, too. */
TEST(bundle_asks)
{
    struct bed b;
    uint64_t value = 0;
    open_plain(&b, "B64", 2);
    const uint64_t *c = gi_core_counts(b.rank[0].ctx), *words = (void *)b.rank[1].memory;
    for (uint64_t round = 1; round <= 3; round++) {
        struct gi_core_put p = {
            .window = BED_WINDOW, .src = &value, .bytes = 8, .copy = true, .action.strong = true};
        if (round != 2)
            p.action = bed_slot(1, 1, true);
        for (p.off = 0; p.off < 80; p.off += 8) {
            value++;
            EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        }
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
        for (int i = 0; i < 10; i++)
            EXPECT_EQ_U64(words[i], value - 9 + (uint64_t)i);
        EXPECT_EQ_U64(bed_signal(&b, 1, 1), round == 3 ? 20 : 10);
        EXPECT_EQ_U64(c[GI_CORE_N_WRITE] + c[GI_CORE_N_WRITE_IMM], round);
        EXPECT_EQ_U64(c[GI_CORE_N_MSG], round);
        EXPECT_EQ_U64(c[GI_CORE_N_ECHO], 0);
    }
    bed_close(&b);
}

/* While nobody polls no bundle is begun, or whoever sleeps is woken for it. */
static void burst_asleep(bool wake)
{
    struct bed b = {.seed = 1, .wake = wake};
    int fds[4];
    uint64_t ns, value = 7;
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_core_put p = {
        .window = BED_WINDOW, .off = 8, .src = &value, .bytes = 8, .copy = true};
    gi_core_sleep(b.rank[0].core, 0, fds, 4, &ns);
    for (int i = 0; i < 10; i++) {
        gi_core_enter(b.rank[0].ctx);
        EXPECT_EQ_INT(gi_core_put(b.rank[0].ctx, 1, &p), GIN_OK);
        gi_core_leave(b.rank[0].ctx);
    }
    EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_BUNDLED], wake ? 9 : 0);
    EXPECT_EQ_INT(b.wakes, wake);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT_EQ_U64(*(uint64_t *)(void *)(b.rank[1].memory + 8), 7);
    bed_close(&b);
}

TEST(bundles_and_sleep)
{
    burst_asleep(false);
    burst_asleep(true);
}

/* A put that quiet follows at once asks for word of its delivery itself, once that is the habit:
 * then quiet asks nobody, waits for it all the same, and has it cover what was put before. */
TEST(told_of_delivery)
{
    struct bed b = {.seed = PT_SEED, .plan = {.hold = 9, .early = true}};
    uint64_t value;
    if (!bed_open(&b, bed_mask("B-told"), 2))
        return;
    const uint64_t *c = gi_core_counts(b.rank[0].ctx), *word = (void *)(b.rank[1].memory + 800);
    struct gi_core_put p = {
        .window = BED_WINDOW, .off = 800, .src = &value, .bytes = 8, .copy = true};
    struct gi_core_put large = bed_make_put(&b, 0, 4096, SRC, 6000);
    for (value = 1; value <= 200; value++) {
        uint64_t echoes = c[GI_CORE_N_ECHO];
        bool before = value > 20 && value % 3 == 0;
        if (before) {
            pattern(b.rank[0].memory + SRC, 6000, (unsigned)value);
            EXPECT_EQ_INT(bed_put(&b, 0, 1, &large), GIN_OK);
            EXPECT_EQ_INT(bed_flush(&b, 0), GIN_OK);
        }
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        if (value > 100 && value % 10 == 0) { /* no quiet between them: no habit any more */
            bed_round(&b);
            EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        }
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
        EXPECT_EQ_U64(*word, value);
        if (before)
            EXPECT_EQ_INT(memcmp(b.rank[1].memory + 4096, b.rank[0].memory + SRC, 6000), 0);
        if (value > 3 && value <= 100)
            EXPECT_EQ_U64(c[GI_CORE_N_ECHO], echoes);
    }
    EXPECT(c[GI_CORE_N_ECHO] >= 10);
    bed_close(&b);
}

/* Small puts of memory that is neither registered nor left alone after the call, also where sources
 * must be registered. */
TEST(copies)
{
    for (size_t m = 0; m < bed_n_masks; m++) {
        struct bed b = {.seed = PT_SEED, .plan = {.hold = 6, .early = true, .again = 100}};
        unsigned char src[GI_CORE_COPY], want[GI_CORE_COPY];
        pt_step("%s", bed_masks[m].name);
        if (bed_open(&b, &bed_masks[m], 2)) {
            for (uint64_t i = 1; i <= GI_CORE_COPY; i += 15) {
                struct gi_core_put p = {
                    .window = BED_WINDOW, .off = 512 * i, .src = src, .bytes = i, .copy = true};
                pattern(src, i, (unsigned)i);
                EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
                memset(src, 0xdd, sizeof(src));
            }
            EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
            for (uint64_t i = 1; i <= GI_CORE_COPY; i += 15) {
                pattern(want, i, (unsigned)i);
                EXPECT_EQ_INT(memcmp(b.rank[1].memory + 512 * i, want, i), 0);
            }
        }
        bed_close(&b);
    }
}

/* A put over the seam of a window that grew. */
TEST(across_pieces)
{
    struct bed b;
    open_plain(&b, "B64", 2);
    memset(b.rank[0].memory, 0x42, 300);
    struct gi_core_put p = bed_make_put(&b, 0, BED_BYTES / 2 - 100, 0, 300);
    p.action = bed_slot(5, 1, true);
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
    EXPECT_FILLED(b.rank[1].memory + BED_BYTES / 2 - 100, 300, 0x42);
    EXPECT_EQ_U64(bed_signal(&b, 1, 5), 1);
    EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_WRITE], 1);
    EXPECT_EQ_U64(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_WRITE_IMM], 1);
    bed_close(&b);
}

TEST(bounds)
{
    struct bed b;
    open_plain(&b, "B64", 2);
    struct gi_core_ctx *ctx = b.rank[0].ctx;
    struct gi_core_put p = bed_make_put(&b, 0, 0, 0, 16);
    static const struct {
        uint64_t off, bytes;
        int status;
    } rows[] = {{16, UINT64_MAX - 8, GIN_ERANGE}, {UINT64_MAX - 7, 16, GIN_ERANGE},
                {BED_BYTES, 1, GIN_ERANGE},       {BED_BYTES + 1, 1, GIN_ERANGE},
                {BED_BYTES - 16, 16, GIN_OK},     {BED_BYTES - 15, 16, GIN_ERANGE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        p.off = rows[i].off;
        p.bytes = rows[i].bytes;
        EXPECT_EQ_INT(gi_core_put(ctx, 1, &p), rows[i].status);
    }
    p.off = 0;
    p.bytes = 16;
    p.window = BED_WINDOW ^ 1u << 20; /* another generation */
    EXPECT_EQ_INT(gi_core_put(ctx, 1, &p), GIN_ESTATE);
    p.window = 12345;
    EXPECT_EQ_INT(gi_core_put(ctx, 1, &p), GIN_ESTATE);
    p.window = BED_WINDOW;
    p.bytes = GI_CORE_COPY + 1;
    p.copy = true;
    EXPECT_EQ_INT(gi_core_put(ctx, 1, &p), GIN_EINVAL);
    EXPECT_EQ_INT(gi_core_ctx_status(ctx, NULL, NULL), GIN_OK);
    bed_close(&b);
}

/* ---- atomics ---- */

static uint64_t fetch(struct bed *b, int from, enum gin_i_amo_op op, uint32_t bytes, uint64_t value,
                      uint64_t expected)
{
    uint64_t old = 0xdead;
    struct told t = {.notice.fn = on_notice};
    struct gi_core_amo a = {.window = BED_WINDOW,
                            .off = bytes == 8 ? 64 : 128,
                            .op = op,
                            .bytes = bytes,
                            .value = value,
                            .expected = expected,
                            .old = &old,
                            .notice = &t.notice};
    EXPECT_EQ_INT(bed_amo(b, from, 1, &a), GIN_OK);
    for (int n = 0; t.calls == 0 && n < 1000000; n++)
        bed_step(b);
    EXPECT_EQ_INT(t.calls, 1);
    EXPECT_EQ_INT(t.status, GIN_OK);
    return old;
}

static void all_atomics(struct bed *b, uint32_t bytes)
{
    uint64_t top = bytes == 8 ? (uint64_t)1 << 63 : (uint64_t)1 << 31;
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_SWAP, bytes, top + 5, 0), 0);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_FETCH_ADD, bytes, top + 1, 0), top + 5);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_FETCH_OR, bytes, 0xf0, 0), 6);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_FETCH_AND, bytes, 0xf2, 0), 0xf6);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_FETCH_XOR, bytes, 1, 0), 0xf2);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_CAS, bytes, 9, 0xf2), 0xf3);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_CAS, bytes, 9, 0xf3), 0xf3);
    EXPECT_EQ_U64(fetch(b, 0, GIN_I_AMO_FETCH, bytes, 0, 0), 9);
    struct gi_core_amo a = {.window = BED_WINDOW,
                            .off = bytes == 8 ? 64 : 128,
                            .op = GIN_I_AMO_ADD,
                            .bytes = bytes,
                            .value = 1};
    for (int i = 0; i < 500; i++)
        for (int r = 0; r < b->n; r++)
            EXPECT_EQ_INT(bed_amo(b, r, 1, &a), GIN_OK);
    for (int r = 0; r < b->n; r++)
        EXPECT_EQ_INT(bed_quiet(b, r, 1), GIN_OK);
    EXPECT_EQ_U64(fetch(b, 2, GIN_I_AMO_FETCH, bytes, 0, 0), 9 + 500 * (uint64_t)b->n);
}

TEST(atomics)
{
    static const char *const masks[] = {"A", "B64", "B-tiny", "C32", "C-no-dc"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        struct bed b = {.seed = PT_SEED, .plan = {.hold = 5, .early = true, .again = 100}};
        pt_step("%s", masks[m]);
        if (bed_open(&b, bed_mask(masks[m]), 3)) {
            all_atomics(&b, 8);
            all_atomics(&b, 4);
        }
        bed_close(&b);
    }
}

/* Many fetching ones under way: each is answered once, with a value of its own. */
TEST(many_replies)
{
    enum { N = 300 };
    static uint64_t old[N];
    static bool seen[N];
    struct bed b = {.seed = PT_SEED, .plan = {.hold = 9, .early = true, .again = 300}};
    if (!bed_open(&b, bed_mask("C32"), 2))
        return;
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < N; i++) {
        struct gi_core_amo a = bed_fetch_inc(8, &old[i]);
        EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
    }
    EXPECT_EQ_INT(bed_flush(&b, 0), GIN_OK);
    for (int i = 0; i < N; i++)
        if (EXPECT(old[i] < N && !seen[old[i]]))
            seen[old[i]] = true;
    bed_close(&b);
}

/* An answer to what had its place in the pool before is nobody's. */
TEST(old_answers_are_nobodys)
{
    struct bed b;
    uint64_t old = 7;
    open_plain(&b, "B64", 2);
    struct gi_core_ctx *ctx = b.rank[0].ctx;
    struct gi_core_amo a = bed_fetch_inc(8, &old);
    EXPECT_EQ_INT(gi_core_amo(ctx, 1, &a), GIN_OK);
    const struct gi_core_op *op = ctx->peers[1].first;
    if (!EXPECT(op != NULL))
        return;
    struct gi_core_msg m = {
        .h = {.kind = GI_CORE_MSG_REPLY, .ctx = ctx->tag, .source = 1},
        .reply = {.reply = (uint32_t)(op - ctx->ops_memory), .reply_turn = op->turn - 1}};
    m.reply.value = 99;
    uint64_t refused = gi_core_counts(ctx)[GI_CORE_N_REFUSED];
    gi_core_arrived_msg(ctx, 1, &m, GI_CORE_BYTES_REPLY);
    EXPECT_EQ_U64(gi_core_counts(ctx)[GI_CORE_N_REFUSED], refused + 1);
    EXPECT_EQ_U64(old, 7);
    EXPECT_EQ_INT(bed_flush(&b, 0), GIN_OK);
    EXPECT_EQ_U64(old, 0);
    bed_close(&b);
}

/* Who is told of nothing sends no more than it has credit for. */
TEST(credits_are_kept)
{
    static const char *const masks[] = {"B64", "B-tiny", "C32"};
    for (size_t k = 0; k < sizeof(masks) / sizeof(masks[0]); k++) {
        struct bed b;
        open_plain(&b, masks[k], 2);
        struct gi_core_ctx *ctx = b.rank[0].ctx;
        const uint32_t credits = ctx->credits;
        struct gi_core_put p = {.action = bed_slot(0, 1, true)};
        gi_fault_peer(b.rank[1].domain, 0, GI_FAULT_PEER_SILENT);
        for (uint32_t i = 0; i < credits + 20; i++) {
            EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
            bed_round(&b);
        }
        for (int i = 0; i < 100; i++)
            bed_round(&b);
        EXPECT_EQ_U64(ctx->peers[1].out.sent, credits);
        EXPECT_EQ_U64(bed_signal(&b, 1, 0), credits);
        bed_close(&b);
    }
}

/* What the target refused is not acknowledged before that is said, by answers neither. */
TEST(refusals_come_before_acknowledgements)
{
    uint64_t state = PT_SEED;
    for (int i = 0; i < 60; i++) {
        struct bed b = {.seed = pt_random(&state) | 1, .plan.again = 800};
        uint64_t old = 5;
        struct gi_core_amo a = bed_fetch_inc(8, &old);
        a.window = BED_FIXED;
        if (!bed_open(&b, bed_mask("B64"), 2))
            return;
        EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
        if (!EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_EINVAL))
            FAIL("seed %" PRIu64, b.seed);
        EXPECT_EQ_U64(old, 5);
        bed_close(&b);
    }
}

/* Words that only the owner's hook can reach. */
TEST(words_of_a_gpu)
{
    uint64_t aside = 5, old = 0;
    struct bed b = {.seed = 1, .aside = &aside};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_core_put p = {
        .action = {.kind = GI_CORE_WORD_ADD, .id = BED_WINDOW, .off = BED_BYTES - 8, .value = 10}};
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    struct gi_core_amo a = bed_fetch_inc(BED_BYTES - 8, &old);
    EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
    EXPECT_EQ_INT(bed_flush(&b, 0), GIN_OK);
    EXPECT_EQ_U64(old, 15);
    EXPECT_EQ_U64(aside, 16);
    bed_close(&b);
}

/* ---- everybody to everybody ---- */

TEST(all_to_all)
{
    for (size_t m = 0; m < bed_n_masks; m++) {
        struct bed b = {.seed = PT_SEED, .plan = {.hold = 10, .early = true, .again = 200}};
        int n = 2 + (int)(m % (BED_RANKS - 1));
        pt_step("%s", bed_masks[m].name);
        if (!bed_open(&b, &bed_masks[m], n))
            return;
        for (int round = 0; round < 40; round++)
            for (int r = 0; r < n; r++)
                for (int to = 0; to < n; to++) {
                    uint64_t at = (uint64_t)(r * 40 + round) * 100;
                    memset(b.rank[r].memory + SRC + (uint64_t)round * 100, r * 40 + round + 1, 100);
                    struct gi_core_put p =
                        bed_make_put(&b, r, at, SRC + (uint64_t)round * 100, 100);
                    p.action = bed_slot((uint32_t)round % BED_SLOTS, 1, round % 3 == 0);
                    EXPECT_EQ_INT(bed_put(&b, r, to, &p), GIN_OK);
                }
        bed_idle(&b);
        for (int r = 0; r < n; r++) {
            for (uint32_t s = 0; s < BED_SLOTS; s++)
                EXPECT_EQ_U64(bed_signal(&b, r, s), 5u * (unsigned)n);
            for (int from = 0; from < n; from++)
                for (int round = 0; round < 40; round++)
                    EXPECT_FILLED(b.rank[r].memory + (uint64_t)(from * 40 + round) * 100, 100,
                                  (unsigned char)(from * 40 + round + 1));
            EXPECT_EQ_U64(gi_core_counts(b.rank[r].ctx)[GI_CORE_N_REFUSED], 0);
        }
        bed_close(&b);
    }
}

/* Ranks whose records differ do what the least of them can, and understand each other. */
TEST(records_differ)
{
    static const char *const pairs[][2] = {
        {"B64", "B32"}, {"B32", "B64"}, {"B64", "C32"}, {"C64", "B0"}, {"C64", "C-no-dc"}};
    static struct bed b;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const struct bed_mask *last = bed_mask(pairs[i][1]);
        unsigned bits = last->caps.imm_bits;
        pt_step("%s and %s", pairs[i][0], pairs[i][1]);
        b = (struct bed){.seed = i + 1, .last_mask = last};
        b.plan.hold = 4;
        if (!bed_open(&b, bed_mask(pairs[i][0]), 3)) {
            bed_close(&b);
            return;
        }
        if (b.mask->caps.imm_bits < bits)
            bits = b.mask->caps.imm_bits;
        for (int r = 0; r < 3; r++)
            EXPECT_EQ_INT(gi_core_caps(b.rank[r].core, 0)->imm_bits, bits);
        for (int from = 0; from < 3; from++)
            for (int to = 0; to < 3; to++)
                for (int k = 0; k < 4; k++) {
                    struct gi_core_put p =
                        bed_make_put(&b, from, SRC + 8192 * (uint64_t)from, 0, 5000);
                    p.action = bed_slot(1 + (uint32_t)from, 1, k % 2 != 0);
                    EXPECT_EQ_INT(bed_put(&b, from, to, &p), GIN_OK);
                }
        EXPECT(bed_idle(&b));
        for (int to = 0; to < 3; to++)
            for (int from = 0; from < 3; from++)
                EXPECT_EQ_U64(bed_signal(&b, to, 1 + (uint32_t)from), 4);
        bed_close(&b);
    }
}
