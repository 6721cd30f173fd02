/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record put to the test, on a lane to itself that is thrown away: a provider may claim what it
 * does not do, or do it wrong. What fails is taken out of the record, with a note; only writes,
 * reads and messages must work. The deadlines are far longer than anything that works takes, since
 * ranks should come to the same result under load.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "transport/ofi/ofi_int.h"

#define STEP_NS    (5ull * 1000000000u)
#define CONNECT_NS (60ull * 1000000000u)
#define HALF       4096u
#define IMM        0x1122334455667788u
#define ADDEND     0x0102030405060708u

struct test {
    struct gi_ofi_domain *d;
    struct gi_net_lane *lane;
    struct gi_net_mr *mr;
    uint64_t *memory; /* two halves: from, to */
    struct gi_net_request req[2];
    unsigned done, failed, imms, msgs;
    uint64_t imm, msg[GI_NET_MSG_MAX / 8];
    uint32_t msg_len;
    char text[120]; /* of the last failure */
};

static void on_done(void *arg, struct gi_net_request *req)
{
    (void)req;
    ((struct test *)arg)->done++;
}

static void on_failed(void *arg, struct gi_net_request *req, int peer, int status, int error,
                      const char *text)
{
    struct test *t = arg;
    (void)req, (void)peer, (void)status, (void)error;
    t->failed++;
    snprintf(t->text, sizeof(t->text), "%s", text);
}

static void on_imm(void *arg, int peer, uint64_t imm)
{
    struct test *t = arg;
    (void)peer;
    t->imms++;
    t->imm = imm;
}

static void on_msg(void *arg, int peer, const void *bytes, uint32_t len)
{
    struct test *t = arg;
    (void)peer;
    t->msgs++;
    t->msg_len = len;
    memcpy(t->msg, bytes, len < sizeof(t->msg) ? len : sizeof(t->msg));
}

static uint64_t *to(struct test *t)
{
    return t->memory + HALF / 8;
}

/* New bytes to send, none received, nothing counted. */
static void again(struct test *t, unsigned seed)
{
    memset(t->memory, (int)(0x11 * (1 + seed % 7)), HALF);
    memset(to(t), 0xee, HALF);
    t->done = t->failed = t->imms = t->msgs = 0;
    t->text[0] = 0;
}

/* Until *count is `n`: 1. 0: the deadline, or something failed. */
static int wait_for(struct test *t, const unsigned *count, unsigned n)
{
    uint64_t deadline = gi_deadline_in(STEP_NS);
    for (unsigned i = 1; *count < n; i++) {
        int st = gi_ofi_progress(t->lane, 16);
        if (t->failed != 0)
            return 0;
        if (st < 0 || (i % 64 == 0 && gi_now_ns() > deadline)) {
            snprintf(t->text, sizeof(t->text), "%s", st < 0 ? "the lane died" : "nothing came");
            return 0;
        }
        if (i % 16 == 0)
            gi_os_yield();
    }
    return 1;
}

static int wait_for_bytes(struct test *t, uint64_t len)
{
    uint64_t deadline = gi_deadline_in(STEP_NS);
    while (memcmp(t->memory, to(t), len) != 0) {
        if (gi_ofi_progress(t->lane, 16) < 0 || t->failed != 0)
            return 0;
        if (gi_now_ns() > deadline) {
            snprintf(t->text, sizeof(t->text), "the bytes do not arrive");
            return 0;
        }
        gi_os_yield();
    }
    return 1;
}

typedef int post_fn(struct gi_net_lane *l, const struct gi_net_io *io);

/* Post, driving progress while it is refused; 1: posted. */
static int post(struct test *t, post_fn *fn, unsigned i, unsigned flags, uint64_t off, uint64_t len)
{
    struct gi_net_io io = {.peer = t->d->rank,
                           .flags = flags,
                           .mr = t->mr,
                           .key = t->mr->key,
                           .len = len,
                           .imm = fn == gi_ofi_amo_add ? ADDEND : IMM,
                           .req = &t->req[i]};
    uint64_t deadline = gi_deadline_in(STEP_NS);
    int st;
    io.local = (char *)t->memory + (fn == gi_ofi_read ? 0 : off);
    io.remote = t->mr->base + HALF + off;
    while ((st = fn(t->lane, &io)) == GIN_EAGAIN && gi_now_ns() < deadline) {
        if (gi_ofi_progress(t->lane, 16) < 0 || t->failed != 0)
            return 0;
        gi_os_yield();
    }
    if (st != GIN_OK)
        snprintf(t->text, sizeof(t->text), "%s",
                 st == GIN_EAGAIN ? "it is never taken" : gin_last_error());
    return st == GIN_OK;
}

static int test_write_read(struct test *t)
{
    again(t, 0);
    if (!post(t, gi_ofi_write, 0, 0, 0, HALF) || !wait_for(t, &t->done, 1) ||
        !wait_for_bytes(t, HALF))
        return 0;
    memset(t->memory, 0, HALF);
    if (!post(t, gi_ofi_read, 0, 0, 0, HALF) || !wait_for(t, &t->done, 2))
        return 0;
    return wait_for_bytes(t, HALF);
}

/* A message of that many bytes, whose source is spoilt once it is taken. */
static int pass_message(struct test *t, uint32_t len)
{
    uint64_t deadline = gi_deadline_in(STEP_NS), sent[GI_NET_MSG_MAX / 8];
    int st;
    again(t, 1 + len);
    memcpy(sent, t->memory, sizeof(sent));
    while ((st = gi_ofi_msg(t->lane, t->d->rank, t->memory, len)) == GIN_EAGAIN &&
           gi_now_ns() < deadline)
        if (gi_ofi_progress(t->lane, 16) < 0)
            break;
    memset(t->memory, 0xdd, len);
    if (st != GIN_OK)
        snprintf(t->text, sizeof(t->text), "%s",
                 st == GIN_EAGAIN ? "it is never taken" : gin_last_error());
    if (st != GIN_OK || !wait_for(t, &t->msgs, 1))
        return 0;
    if (t->msg_len == len && memcmp(t->msg, sent, len) == 0)
        return 1;
    snprintf(t->text, sizeof(t->text), "not what was sent");
    return 0;
}

static int test_message(struct test *t)
{
    return pass_message(t, t->d->caps.msg_max);
}

/* What is injected needs no slot; without it every message takes one. */
static void test_short_message(struct test *t)
{
    uint64_t claimed = t->d->inject, most = t->d->caps.msg_max;
    if (claimed == 0 || pass_message(t, (uint32_t)(claimed < most ? claimed : most)))
        return;
    t->d->inject = 0;
    gi_ofi_note(t->d, "short messages: %llu bytes claimed to be sent at once, but %s",
                (unsigned long long)claimed, t->text);
}

static void test_imm(struct test *t)
{
    struct gi_net_caps *c = &t->d->caps;
    unsigned claimed = c->imm_bits;
    if (claimed == 0)
        return;
    again(t, 2);
    c->imm_bits = 64; /* as it comes */
    int ok = post(t, gi_ofi_write, 0, GI_NET_IMM, 0, 8) && wait_for(t, &t->done, 1) &&
             wait_for(t, &t->imms, 1) && memcmp(t->memory, to(t), 8) == 0;
    c->imm_bits = !ok ? 0 : t->imm == IMM ? 64 : (uint32_t)t->imm == (uint32_t)IMM ? 32 : 0;
    if (c->imm_bits < claimed)
        gi_ofi_note(t->d, "immediates: %u bits claimed, %u found (%s)", claimed, c->imm_bits,
                    ok ? "the rest is lost" : t->text);
    else if (c->imm_bits > claimed)
        c->imm_bits = claimed;
}

static void test_inject(struct test *t)
{
    struct gi_net_caps *c = &t->d->caps;
    uint64_t claimed = c->inject < HALF ? c->inject : HALF;
    uint64_t seen[HALF / 8];
    if (claimed == 0)
        return;
    again(t, 3);
    memcpy(seen, t->memory, claimed);
    bool ok = post(t, gi_ofi_write, 0, GI_NET_INLINE, 0, claimed);
    memset(t->memory, 0, claimed); /* the source may be used again */
    ok = ok && wait_for(t, &t->done, 1);
    memcpy(t->memory, seen, claimed);
    ok = ok && wait_for_bytes(t, claimed);
    if (ok)
        return;
    gi_ofi_note(t->d, "inline writes: of %llu bytes claimed, but %s", (unsigned long long)c->inject,
                t->text);
    c->inject = 0;
}

/* Two at a time: a single one works where two never complete. */
static void test_delivered(struct test *t)
{
    if (t->d->caps.dc != GI_NET_DC_YES)
        return;
    again(t, 4);
    if (post(t, gi_ofi_write, 0, GI_NET_DELIVERED, 0, 64) &&
        post(t, gi_ofi_write, 1, GI_NET_DELIVERED, 64, 64) && wait_for(t, &t->done, 2) &&
        memcmp(t->memory, to(t), 128) == 0)
        return;
    t->d->caps.dc = GI_NET_DC_NO;
    gi_ofi_note(t->d, "delivery: completions do not say so (%s)",
                t->text[0] != 0 ? t->text : "they come before the bytes");
}

static int renew(struct test *t);

static const char *const add_names[GI_OFI_ADDS] = {"plain", "fetching",
                                                   "fetching, the addend in the address, too"};

/* Behind a write to the word, so that it is late if it must not be; two more at a time. */
static int add_thrice(struct test *t)
{
    unsigned fence = t->d->caps.amo_fence ? GI_NET_FENCE : 0;
    return post(t, gi_ofi_write, 0, 0, 0, 16) && wait_for(t, &t->done, 1) &&
           wait_for_bytes(t, 16) && post(t, gi_ofi_amo_add, 0, 0, 0, 8) &&
           post(t, gi_ofi_amo_add, 1, 0, 0, 8) && wait_for(t, &t->done, 3) &&
           post(t, gi_ofi_amo_add, 0, fence, 0, 8) && wait_for(t, &t->done, 4);
}

/* Some take the addend from the wrong place, and complete. Its neighbour stays as it is. */
static bool adds_right(struct test *t)
{
    again(t, 5 + t->d->add);
    uint64_t before = t->memory[0];
    int ok = add_thrice(t);
    t->memory[0] = before + 3 * ADDEND;
    /* What was fetched is final. */
    if (ok && (t->d->add == GI_OFI_ADD ? wait_for_bytes(t, 16) : !memcmp(t->memory, to(t), 16)))
        return true;
    gi_ofi_note(t->d, "atomics, %s: %#llx + 3 * %#llx gave %#llx%s%s", add_names[t->d->add],
                (unsigned long long)before, (unsigned long long)ADDEND, (unsigned long long)*to(t),
                t->text[0] != 0 ? ", " : "", t->text);
    return false;
}

/* Only connected endpoints have more than one way: the others need the address. */
static void test_amo(struct test *t)
{
    struct gi_net_caps *c = &t->d->caps;
    enum gi_ofi_add last = t->d->connected ? GI_OFI_ADD_BY_ADDR : GI_OFI_ADD;
    if (c->amo == GI_NET_AMO_NONE)
        return;
    for (t->d->add = GI_OFI_ADD; t->d->add <= last; t->d->add++) {
        if (adds_right(t)) {
            if (t->d->add != GI_OFI_ADD)
                gi_ofi_note(t->d, "atomics: used %s", add_names[t->d->add]);
            return;
        }
        if (renew(t) != GIN_OK)
            break;
    }
    t->d->add = GI_OFI_ADD;
    c->amo = GI_NET_AMO_NONE;
    c->amo_fence = c->amo_ordered = false;
}

/* ---- the lane ---- */

/* Connections take far longer than posts; a slow one is no reason to do without. */
static int connect_self(struct test *t)
{
    struct gi_ofi_lane *l = gi_ofi_lane(t->lane);
    uint64_t deadline = gi_deadline_in(CONNECT_NS);
    int st = GIN_OK;
    while (l->peers[t->d->rank].ep == NULL && gi_now_ns() < deadline) {
        st = gi_ofi_reach(l, t->d->rank);
        if (st != GIN_OK && st != GIN_EAGAIN)
            return st;
        if (gi_ofi_progress(t->lane, 16) < 0)
            return GIN_ENET;
        gi_os_yield();
    }
    return GIN_OK; /* or the first post is never taken */
}

static int begin(struct test *t)
{
    struct gi_net_lane_config config = {.handler = {.arg = t,
                                                    .done = on_done,
                                                    .failed = on_failed,
                                                    .arrived_imm = on_imm,
                                                    .arrived_msg = on_msg}};
    int st = gi_ofi_lane_open(&t->d->head, &config, &t->lane);
    if (st != GIN_OK)
        return st;
    unsigned char blob[GI_NET_NAME_MAX];
    uint32_t len = sizeof(blob);
    st = gi_ofi_name(t->lane, blob, &len);
    if (st == GIN_OK)
        st = gi_ofi_connect(t->lane, t->d->rank, blob, len);
    return st == GIN_OK && t->d->connected ? connect_self(t) : st;
}

/* Tests that a failed one may have broken the lane for get a fresh one. */
static int renew(struct test *t)
{
    if (t->text[0] == 0)
        return GIN_OK;
    gi_ofi_lane_close(t->lane);
    t->lane = NULL;
    t->text[0] = 0;
    return begin(t);
}

static int run(struct test *t)
{
    static void (*const tests[])(struct test *) = {test_short_message, test_imm, test_inject,
                                                   test_delivered, test_amo};
    const char *name = t->d->caps.name;
    if (!test_write_read(t))
        return gi_fail(GIN_ENET, "%s does not work here: writing to and reading from this rank: %s",
                       t->d->pick.text, t->text);
    if (!test_message(t))
        return gi_fail(GIN_ENET, "%s does not work here: a message to this rank: %s",
                       t->d->pick.text, t->text);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        tests[i](t);
        int st = renew(t);
        if (st != GIN_OK)
            return st;
    }
    gi_debug("ofi", "%s: tested: %u bits of immediate, %llu bytes inline, delivery %d, atomics %d",
             name, t->d->caps.imm_bits, (unsigned long long)t->d->caps.inject, t->d->caps.dc,
             t->d->caps.amo);
    return GIN_OK;
}

int gi_ofi_self_test(struct gi_ofi_domain *d)
{
    struct test *t = calloc(1, sizeof(*t));
    int st = GIN_ENOMEM;
    if (t == NULL || posix_memalign((void **)&t->memory, 4096, 2 * HALF) != 0) {
        free(t);
        return gi_fail(st, "no memory to test the network");
    }
    t->d = d;
    struct gi_net_memory_desc m = {
        .kind = GI_NET_HOST, .addr = t->memory, .bytes = 2 * HALF, .remote = true};
    st = gi_ofi_reg(&d->head, &m, &t->mr);
    if (st != GIN_OK)
        goto free_memory;
    st = begin(t);
    if (st == GIN_OK)
        st = run(t);
    if (t->lane != NULL)
        gi_ofi_lane_close(t->lane);
    gi_ofi_dereg(&d->head, t->mr);
free_memory:
    free(t->memory);
    free(t);
    return st;
}
