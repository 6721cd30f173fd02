/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core does when the network fails, or a peer: every wait ends with a status that names
 * the peer, nothing untrue is shown, and the other peers go on.
 */
#include "core_bed.h"

#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "transport/core_int.h"

#define SRC      (128u << 10)
#define SHORT_NS 200000000u
#define PATIENCE 30000000000ull

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

/* Something of each kind to a peer; the statuses of those that end with a notice. */
struct traffic {
    struct told put, get, amo;
    uint64_t old;
};

static void start(struct bed *b, int to, struct traffic *t)
{
    struct bed_rank *r = &b->rank[0];
    *t = (struct traffic){
        .put.notice.fn = on_notice, .get.notice.fn = on_notice, .amo.notice.fn = on_notice};
    struct gi_core_put p = bed_make_put(b, 0, 64, SRC, 10000);
    p.action = bed_slot(0, 1, true);
    p.notice = &t->put.notice;
    gi_core_put(r->ctx, to, &p);
    struct gi_core_get g = {.window = BED_WINDOW,
                            .off = 64,
                            .dst = r->memory + SRC + 20000,
                            .bytes = 5000,
                            .region = r->region,
                            .notice = &t->get.notice};
    gi_core_get(r->ctx, to, &g);
    struct gi_core_amo a = bed_fetch_inc(8, &t->old);
    a.notice = &t->amo.notice;
    gi_core_amo(r->ctx, to, &a);
    gi_core_fence(r->ctx, to);
    p.action = bed_slot(1, 1, false);
    p.notice = NULL;
    gi_core_put(r->ctx, to, &p);
}

/* Poll until settled at a peer says something. */
static int wait_settled(struct bed *b, int to)
{
    uint64_t end = gi_deadline_in(PATIENCE);
    struct gi_core_ctx *ctx = b->rank[0].ctx;
    int st;
    while ((st = gi_core_settled(ctx, to, gi_core_mark(ctx))) == 0) {
        bed_step(b);
        if (gi_now_ns() > end)
            return 0;
    }
    return st;
}

static int wait_flushed(struct bed *b)
{
    uint64_t end = gi_deadline_in(PATIENCE);
    struct gi_core_ctx *ctx = b->rank[0].ctx;
    int st;
    while ((st = gi_core_flushed(ctx, gi_core_mark(ctx))) == 0) {
        bed_step(b);
        if (gi_now_ns() > end)
            return 0;
    }
    return st;
}

/* Rank 1 is lost for rank 0, rank 2 is not. */
static void expect_lost(struct bed *b, const struct traffic *t, int status)
{
    const char *text;
    int rank;
    EXPECT_EQ_INT(wait_settled(b, 1), status);
    EXPECT_EQ_INT(wait_flushed(b), status);
    EXPECT_EQ_INT(gi_core_ctx_status(b->rank[0].ctx, &rank, &text), status);
    EXPECT_EQ_INT(rank, 1);
    EXPECT_HAS(text, "rank 1");
    if (t != NULL) {
        EXPECT(t->put.calls <= 1 && t->get.calls <= 1 && t->amo.calls <= 1);
        EXPECT(t->put.calls + t->get.calls + t->amo.calls != 0);
    }
    struct gi_core_put p = bed_make_put(b, 0, 64, SRC, 100);
    p.action = bed_slot(3, 1, true);
    EXPECT_EQ_INT(gi_core_put(b->rank[0].ctx, 1, &p), status);
    if (b->n < 3)
        return;
    uint64_t before = bed_signal(b, 2, 3);
    EXPECT_EQ_INT(bed_put(b, 0, 2, &p), GIN_OK);
    EXPECT_EQ_INT(wait_settled(b, 2), 1);
    EXPECT_EQ_U64(bed_signal(b, 2, 3), before + 1);
    EXPECT_EQ_INT(wait_flushed(b), status); /* nothing is left, and the status stays */
}

static const char *const some_masks[] = {"A", "B64", "B0", "C64", "C-no-dc", "D"};
#define N_SOME (sizeof(some_masks) / sizeof(some_masks[0]))

/* ---- the n-th call fails ---- */

static void nth(const char *mask, enum gi_fault_call call, uint32_t n, int status)
{
    struct bed b = {.seed = PT_SEED, .plan = {.early = true}, .peer_timeout_ns = SHORT_NS};
    struct traffic t;
    if (!bed_open(&b, bed_mask(mask), 3))
        return;
    struct gi_fault_plan plan = {.early = true, .provider_error = -107};
    plan.first[call] = n;
    plan.count[call] = 1;
    plan.status[call] = status;
    gi_fault_set(b.rank[0].domain, &plan);
    start(&b, 1, &t);
    int st = wait_settled(&b, 1);
    if (st == 1)
        EXPECT_EQ_INT(gi_core_ctx_status(b.rank[0].ctx, NULL, NULL), GIN_OK);
    else
        expect_lost(&b, &t, status);
    if (st == 1) /* there was no such call */
        EXPECT_EQ_INT(t.put.status | t.get.status | t.amo.status, GIN_OK);
    /* A strong signal is never seen without its put. */
    if (bed_signal(&b, 1, 0) != 0)
        EXPECT_EQ_INT(memcmp(b.rank[1].memory + 64, b.rank[0].memory + SRC, 10000), 0);
    bed_close(&b);
}

TEST(nth_call_fails)
{
    static const enum gi_fault_call calls[] = {GI_FAULT_WRITE, GI_FAULT_READ, GI_FAULT_AMO,
                                               GI_FAULT_MSG};
    for (size_t m = 0; m < N_SOME; m++)
        for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
            for (uint32_t n = 1; n <= 4; n++) {
                pt_step("%s, call %d, the %u.", some_masks[m], (int)calls[c], n);
                nth(some_masks[m], calls[c], n, n & 1 ? GIN_EPEER : GIN_ENET);
            }
}

/* What a network says of a peer is a hint: it costs the context and the peer, nobody else. */
TEST(suspected_peer)
{
    struct bed b = {.seed = 1, .suspect = true};
    struct traffic t;
    if (!bed_open(&b, bed_mask("B64"), 3))
        return;
    struct gi_fault_plan plan = {.provider_error = 104};
    plan.first[GI_FAULT_WRITE] = plan.count[GI_FAULT_WRITE] = 1;
    plan.status[GI_FAULT_WRITE] = GIN_EPEER;
    gi_fault_set(b.rank[0].domain, &plan);
    start(&b, 1, &t);
    expect_lost(&b, &t, GIN_EPEER);
    EXPECT_EQ_INT(b.rank[0].suspect, 1);
    EXPECT_EQ_INT(b.rank[0].lost, -1);
    EXPECT(!gi_core_peer_is_dead(b.rank[0].core, 1));
    EXPECT_EQ_INT(gi_core_peer_status(b.rank[0].ctx, 2, NULL), GIN_OK);
    bed_close(&b);
}

/* A message of the peer's is lost, its answer perhaps: whoever waits for it is told. */
static void lost_message(const char *mask, uint32_t n, uint32_t count, bool heard)
{
    struct bed b = {.seed = PT_SEED, .peer_timeout_ns = heard ? 0 : SHORT_NS};
    struct traffic t;
    const char *text;
    pt_step("%s, message %u and %u more", mask, n, count - 1);
    if (!bed_open(&b, bed_mask(mask), 3))
        return;
    struct gi_fault_plan plan = {.provider_error = -5};
    plan.first[GI_FAULT_MSG] = n;
    plan.count[GI_FAULT_MSG] = count;
    plan.status[GI_FAULT_MSG] = GIN_ENET;
    gi_fault_set(b.rank[1].domain, &plan);
    start(&b, 1, &t);
    int st = wait_settled(&b, 1);
    EXPECT_EQ_INT(st, heard ? GIN_ENET : GIN_EPEER);
    EXPECT_EQ_INT(gi_core_peer_status(b.rank[0].ctx, 1, &text), st);
    EXPECT_HAS(text, heard ? "lost" : "no answer");
    expect_lost(&b, &t, st);
    bed_close(&b);
}

TEST(lost_messages_are_told)
{
    lost_message("C-no-dc", 1, 1, true);
    lost_message("B64", 1, 1, false); /* order lets nothing pass that failed */
    lost_message("B64", 1, 1000000, false);
}

static int refuse(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    (void)lane;
    return gi_fail(GIN_ENET, "rank %d is refused", io->peer);
}

/* What the network refuses for good is not tried for ever, neither at once nor when held back. */
TEST(refusals_are_handed_on)
{
    struct gi_net_ops ops = gi_self_ops;
    ops.write = refuse;
    for (uint32_t hold = 0; hold <= 4; hold += 4) {
        struct bed b = {.seed = 1, .inner = &ops, .plan.hold = hold};
        struct traffic t;
        const char *text;
        if (!bed_open(&b, bed_mask("B64"), 2))
            return;
        start(&b, 1, &t);
        EXPECT_EQ_INT(wait_settled(&b, 1), GIN_ENET);
        EXPECT_EQ_INT(gi_core_peer_status(b.rank[0].ctx, 1, &text), GIN_ENET);
        EXPECT_HAS(text, "rank 1 is refused");
        bed_close(&b);
    }
}

TEST(lane_dies)
{
    struct bed b = {.seed = 1};
    struct traffic t;
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_fault_plan plan = {.hold = 0};
    plan.first[GI_FAULT_PROGRESS] = 2;
    plan.count[GI_FAULT_PROGRESS] = 1;
    plan.status[GI_FAULT_PROGRESS] = GIN_ENET;
    start(&b, 1, &t);
    gi_fault_set(b.rank[0].domain, &plan);
    EXPECT_EQ_INT(wait_settled(&b, GI_CORE_ALL), GIN_ENET);
    EXPECT_EQ_INT(gi_core_progress(b.rank[0].ctx), GIN_ENET);
    EXPECT_EQ_INT(t.amo.calls, 1);
    bed_close(&b);
}

/* ---- bring-up: one rank's failure is everybody's ---- */

static void bring_up(enum gi_fault_call call, uint32_t n, int which)
{
    struct bed b = {.seed = 1, .fault_rank = which};
    b.plan.first[call] = n;
    b.plan.count[call] = 1;
    b.plan.status[call] = GIN_ENOMEM;
    b.expect_failure = true;
    pt_step("call %d, the %u., of rank %d", (int)call, n, which);
    bed_open(&b, bed_mask("B64"), 3);
    for (int r = 0; r < 3; r++)
        EXPECT_EQ_INT(b.rank[r].status, GIN_ENOMEM);
    bed_close(&b);
}

TEST(bring_up_fails_everywhere)
{
    for (int r = 0; r < 3; r++) {
        bring_up(GI_FAULT_REG, 1, r);
        bring_up(GI_FAULT_REG, 2, r);
        bring_up(GI_FAULT_LANE_OPEN, 1, r);
        bring_up(GI_FAULT_CONNECT, 1, r);
        bring_up(GI_FAULT_CONNECT, 3, r);
    }
}

/* ---- a peer that is gone, in all its ways ---- */

enum way { KILLED, TOLD, AGAIN, SILENT, WAYS };

static void lose(struct bed *b, enum way way)
{
    switch (way) {
    case KILLED: gi_self_kill(b->hub[0], 1); break;
    case TOLD: gi_core_peer_dead(b->rank[0].core, 1, "the test says so"); break;
    case AGAIN: gi_fault_peer(b->rank[0].domain, 1, GI_FAULT_PEER_AGAIN); break;
    default: gi_fault_peer(b->rank[0].domain, 1, GI_FAULT_PEER_SILENT); break;
    }
}

static void one_loss(const char *mask, enum way way, unsigned steps)
{
    struct bed b = {
        .seed = PT_SEED, .plan = {.hold = 4, .early = true}, .peer_timeout_ns = SHORT_NS};
    struct traffic t;
    if (!bed_open(&b, bed_mask(mask), 3))
        return;
    if (steps == 0)
        lose(&b, way);
    start(&b, 1, &t);
    for (unsigned i = 1; i <= steps; i++)
        bed_step(&b);
    if (steps != 0) {
        lose(&b, way);
        /* Whatever had arrived by then, this has not. */
        struct gi_core_amo a = bed_fetch_inc(8, &t.old);
        a.notice = &t.amo.notice;
        t.amo = (struct told){.notice.fn = on_notice};
        for (int st = GIN_EAGAIN; st == GIN_EAGAIN;)
            st = gi_core_amo(b.rank[0].ctx, 1, &a);
        t.amo.calls = 0;
    }
    expect_lost(&b, NULL, GIN_EPEER);
    if (way != TOLD)
        EXPECT_EQ_INT(b.rank[0].lost, 1);
    EXPECT(gi_core_peer_is_dead(b.rank[0].core, 1));
    EXPECT(!gi_core_peer_is_dead(b.rank[0].core, 2));
    bed_close(&b);
}

TEST(lost_peer)
{
    static const unsigned steps[] = {0, 7, 40};
    for (size_t m = 0; m < N_SOME; m += 2)
        for (int way = 0; way < WAYS; way++)
            for (size_t s = 0; s < 3; s++) {
                pt_step("%s, way %d after %u steps", some_masks[m], way, steps[s]);
                one_loss(some_masks[m], (enum way)way, steps[s]);
            }
}

/* ---- a stuck peer takes nobody else's room ---- */

/* All that a context may have under way is with a network that keeps it, of peers that die. */
static void lost_for_good(const char *mask, bool copy)
{
    struct bed b = {.seed = PT_SEED, .plan = {.hold = 4}};
    if (!bed_open(&b, bed_mask(mask), 5))
        return;
    struct bed_rank *r = &b.rank[0];
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, copy ? 200 : 500);
    p.copy = copy;
    for (int to = 1; to < 4; to++) {
        gi_fault_peer(r->domain, to, GI_FAULT_PEER_SILENT);
        for (int i = 0; i < 1000 && gi_core_put(r->ctx, to, &p) == GIN_OK; i++)
            continue;
        for (int i = 0; i < 100; i++)
            bed_step(&b);
        if (to > 1)
            gi_core_peer_dead(r->core, to - 1, "the test says so");
    }
    gi_core_peer_dead(r->core, 3, "the test says so");
    p.action = bed_slot(5, 1, true);
    for (int i = 0; i < 1500; i++)
        EXPECT_EQ_INT(bed_put(&b, 0, 4, &p), GIN_OK);
    EXPECT_EQ_INT(wait_settled(&b, 4), 1);
    EXPECT_EQ_U64(bed_signal(&b, 4, 5), 1500);
    bed_close(&b);
}

TEST(nothing_is_kept)
{
    for (int copy = 0; copy < 2; copy++) {
        pt_step("copies: %d", copy);
        lost_for_good("C-local", copy != 0);
        lost_for_good("C-psm3", copy != 0);
    }
}

TEST(no_head_of_line)
{
    struct bed b = {.seed = 1};
    if (!bed_open(&b, bed_mask("C64"), 3))
        return;
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 1000);
    p.action = bed_slot(0, 1, true);
    gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
    unsigned taken = 0;
    while (taken < 100000 && gi_core_put(b.rank[0].ctx, 1, &p) == GIN_OK)
        taken++;
    EXPECT(taken > 0 && taken < 100000);
    for (int i = 0; i < 300; i++)
        EXPECT_EQ_INT(bed_put(&b, 0, 2, &p), GIN_OK);
    EXPECT_EQ_INT(wait_settled(&b, 2), 1);
    EXPECT_EQ_U64(bed_signal(&b, 2, 0), 300);
    EXPECT_EQ_U64(bed_signal(&b, 1, 0), 0);
    gi_fault_peer(b.rank[0].domain, 1, GI_FAULT_PEER_WELL);
    EXPECT_EQ_INT(wait_settled(&b, 1), 1);
    EXPECT_EQ_U64(bed_signal(&b, 1, 0), taken);
    bed_close(&b);
}

/* ---- what a target refuses is its source's error ---- */

static void refused(const struct gi_core_action *action, uint64_t bytes, int status)
{
    struct bed b = {.seed = 1};
    const char *text;
    int rank;
    if (!bed_open(&b, bed_mask("B0"), 3))
        return;
    memset(b.rank[0].memory + SRC, 0x77, bytes + 1);
    struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, bytes);
    p.action = *action;
    EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
    uint64_t end = gi_deadline_in(PATIENCE);
    while (gi_core_ctx_status(b.rank[0].ctx, NULL, NULL) == GIN_OK && gi_now_ns() < end)
        bed_step(&b);
    EXPECT_EQ_INT(gi_core_ctx_status(b.rank[0].ctx, &rank, &text), status);
    EXPECT_EQ_INT(rank, 1);
    EXPECT_HAS(text, "refused");
    EXPECT_FILLED(b.rank[1].memory + 64, bytes, 0); /* data with a bad action is not stored */
    EXPECT_EQ_U64(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_REFUSED], 1);
    /* Whoever asks for that peer hears of it, always. */
    struct gi_core_ctx *ctx = b.rank[0].ctx;
    EXPECT_EQ_INT(gi_core_peer_status(ctx, 1, &text), status);
    EXPECT_HAS(text, "refused");
    EXPECT_EQ_INT(bed_quiet(&b, 0, 1), status);
    EXPECT_EQ_INT(gi_core_flushed_peer(ctx, 1, gi_core_mark_peer(ctx, 1)), status);
    EXPECT_EQ_INT(gi_core_put(ctx, 1, &p), status);
    /* The third rank is not concerned, and the one that refused goes on, with answers from here. */
    p.action = bed_slot(1, 1, true);
    EXPECT_EQ_INT(bed_put(&b, 0, 2, &p), GIN_OK);
    EXPECT_EQ_INT(bed_put(&b, 1, 0, &p), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 0, 2), GIN_OK);
    EXPECT_EQ_INT(bed_quiet(&b, 1, GI_CORE_ALL), GIN_OK);
    EXPECT_EQ_U64(bed_signal(&b, 2, 1), 1);
    EXPECT_EQ_U64(bed_signal(&b, 0, 1), 1);
    EXPECT_EQ_INT(gi_core_peer_status(ctx, 2, NULL), GIN_OK);
    EXPECT_EQ_INT(gi_core_peer_status(b.rank[1].ctx, 0, NULL), GIN_OK);
    EXPECT_EQ_INT(b.rank[0].lost, -1);
    bed_close(&b);
}

TEST(bad_actions_are_refused)
{
    struct gi_core_action slot = bed_slot(BED_SLOTS, 1, false);
    struct gi_core_action word = {.kind = GI_CORE_WORD_ADD, .id = BED_WINDOW, .off = BED_BYTES};
    struct gi_core_action crooked = {.kind = GI_CORE_WORD_SET, .id = BED_WINDOW, .off = 3};
    struct gi_core_action stale = {.kind = GI_CORE_WORD_SET, .id = BED_WINDOW + 1};
    struct gi_core_action fixed = {.kind = GI_CORE_WORD_ADD, .id = BED_FIXED, .off = 8};
    struct gi_core_action unknown = {.kind = 77};
    refused(&slot, 0, GIN_ERANGE);
    refused(&slot, 40, GIN_ERANGE);
    refused(&word, 40, GIN_ERANGE);
    refused(&word, 0, GIN_ERANGE);
    refused(&crooked, 0, GIN_EINVAL);
    refused(&crooked, 40, GIN_EINVAL);
    refused(&fixed, 0, GIN_EINVAL);
    refused(&fixed, 40, GIN_EINVAL);
    refused(&stale, 40, GIN_ESTATE);
    refused(&unknown, 40, GIN_EINVAL);
}

TEST(bad_atomics_are_refused)
{
    struct bed b = {.seed = 1};
    uint64_t old = 5;
    struct told t = {.notice.fn = on_notice};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_core_amo a = {.window = BED_WINDOW,
                            .off = 4,
                            .op = GIN_I_AMO_SWAP,
                            .bytes = 8,
                            .value = 1,
                            .old = &old,
                            .notice = &t.notice};
    EXPECT_EQ_INT(bed_amo(&b, 0, 1, &a), GIN_OK);
    for (int i = 0; i < 1000000 && t.calls == 0; i++)
        bed_step(&b);
    EXPECT_EQ_INT(t.status, GIN_EINVAL);
    EXPECT_EQ_U64(old, 5);
    for (int i = 0; i < 100; i++)
        bed_step(&b);
    EXPECT_EQ_INT(gi_core_ctx_status(b.rank[0].ctx, NULL, NULL), GIN_EINVAL);
    bed_close(&b);
}

/* Random bytes, and good messages with one byte changed, never touch memory outside what they may,
 * and never stop the target. */
TEST(garbage_is_refused)
{
    struct bed b = {.seed = PT_SEED};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    struct gi_core_ctx *ctx = b.rank[0].ctx;
    uint64_t words[GI_NET_MSG_MAX / 8];
    for (int i = 0; i < 20000; i++) {
        uint32_t len = (uint32_t)pt_below(&b.random, i % 4 == 0 ? GI_NET_MSG_MAX + 1 : 129);
        for (size_t k = 0; k < GI_NET_MSG_MAX / 8; k++)
            words[k] = pt_random(&b.random);
        struct gi_core_header *h = (struct gi_core_header *)(void *)words;
        if (pt_below(&b.random, 4) != 0) {
            h->kind = (uint8_t)pt_below(&b.random, 9);
            h->ctx = ctx->tag;
            h->source = (uint32_t)pt_below(&b.random, 3);
            h->seq = (uint16_t)(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_GOT_MSG] & 63);
            h->len = (uint8_t)pt_below(&b.random, 90);
        }
        ctx->ops->msg(ctx->lane, 1, words, len);
        gi_core_poll(b.rank[1].core);
    }
    EXPECT(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_REFUSED] > 10000);
    EXPECT_EQ_U64(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_GOT_MSG], 20000);
    bed_close(&b);
}

/* Peers may read a read-only window, by atomics, too; what stores by message is refused. */
static int fixed_window(const char *mask, bool put, enum gin_i_amo_op op)
{
    struct bed b = {.seed = 1};
    uint64_t old = 5, value = 9;
    int st = GIN_ESYS;
    if (!bed_open(&b, bed_mask(mask), 2))
        return st;
    memset(b.rank[1].memory, 0x11, 64);
    struct gi_core_put p = {.window = BED_FIXED, .off = 8, .src = &value, .bytes = 8, .copy = true};
    struct gi_core_amo a = {
        .window = BED_FIXED, .off = 8, .op = op, .bytes = 8, .value = 1, .old = &old};
    EXPECT_EQ_INT(put ? bed_put(&b, 0, 1, &p) : bed_amo(&b, 0, 1, &a), GIN_OK);
    st = bed_quiet(&b, 0, 1);
    EXPECT_EQ_U64(old, st == GIN_OK ? 0x1111111111111111u : 5);
    EXPECT_FILLED(b.rank[1].memory, 64, 0x11);
    bed_close(&b);
    return st;
}

TEST(read_only_windows)
{
    EXPECT_EQ_INT(fixed_window("C64", true, GIN_I_AMO_FETCH), GIN_EINVAL);
    EXPECT_EQ_INT(fixed_window("C-no-dc", true, GIN_I_AMO_FETCH), GIN_EINVAL);
    EXPECT_EQ_INT(fixed_window("B64", false, GIN_I_AMO_SWAP), GIN_EINVAL);
    EXPECT_EQ_INT(fixed_window("B64", false, GIN_I_AMO_CAS), GIN_EINVAL);
    EXPECT_EQ_INT(fixed_window("B64", false, GIN_I_AMO_FETCH), GIN_OK);
}

/* A message of nobody knows whom is believed only where no better is to be had. */
TEST(strangers_are_refused)
{
    for (int known = 0; known < 2; known++) {
        struct bed b = {.seed = 1};
        struct bed_mask mask = *bed_mask("B64");
        mask.caps.msg_source = known != 0;
        if (!bed_open(&b, &mask, 2))
            return;
        struct gi_core_msg m = {.h = {.kind = GI_CORE_MSG_SLOT, .ctx = b.rank[1].ctx->tag},
                                .slot = {.id = 2, .value = 1}};
        gi_core_arrived_msg(b.rank[1].ctx, GI_NET_UNKNOWN, &m, GI_CORE_BYTES_SLOT);
        gi_core_arrived_msg(b.rank[1].ctx, -7, &m, GI_CORE_BYTES_SLOT);
        EXPECT_EQ_U64(bed_signal(&b, 1, 2), known == 0);
        EXPECT_EQ_U64(gi_core_counts(b.rank[1].ctx)[GI_CORE_N_REFUSED], 1 + (uint64_t)known);
        bed_close(&b);
    }
}

/* A connection that breaks and is made anew in silence loses what was on its way: quiet says so. */
TEST(lost_signals_are_noticed)
{
    static const char *const masks[] = {"B64", "B32", "B-weak-order"};
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        struct bed b = {.seed = 1};
        const char *text;
        pt_step("%s", masks[i]);
        if (!bed_open(&b, bed_mask(masks[i]), 3))
            return;
        struct gi_core_put p = bed_make_put(&b, 0, 64, SRC, 100);
        p.action = bed_slot(0, 1, true);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_OK);
        struct gi_fault_plan bad = {.silent = 1000}, good = {.silent = 0};
        gi_fault_set(b.rank[0].domain, &bad);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        gi_fault_set(b.rank[0].domain, &good);
        EXPECT_EQ_INT(bed_put(&b, 0, 1, &p), GIN_OK);
        EXPECT_EQ_INT(bed_put(&b, 0, 2, &p), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(&b, 0, 1), GIN_ENET);
        gi_core_peer_status(b.rank[0].ctx, 1, &text);
        EXPECT_HAS(text, "lost");
        EXPECT_EQ_INT(bed_quiet(&b, 0, 2), GIN_OK);
        bed_close(&b);
    }
}
