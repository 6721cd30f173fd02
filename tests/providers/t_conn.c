/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of endpoints that have one peer each: what goes back goes by the connection that
 * came, so that a pair has one; whoever begins at the same moment comes to the same; and what ends
 * or breaks it ends both directions, with a status.
 */
#include <stdio.h>
#include <stdlib.h>
#include "tests/providers/bed.h"
#include "transport/ofi/ofi_conn.h"

/* The contract, where it is loaded, has no other name for such endpoints. */
static const char *contract(void)
{
    const char *p = getenv("GINCONTRACT");
    return p != NULL && strncmp(p, "verbs-msg", 9) == 0 ? "verbs-msg" : NULL;
}

static bool up(struct bed *b, struct mp *mp, const char *provider)
{
    if (PT_RACE_DETECTOR || provider == NULL) {
        memset(b, 0, sizeof(*b));
        mp_skip(mp, provider == NULL ? "GINCONTRACT names no contract with connections"
                                     : "libfabric is not built for the thread sanitizer");
        return false;
    }
    return bed_open(b, mp, &gi_ofi_ops, provider);
}

static const struct gi_ofi_conn *ours(const struct bed *b, int peer)
{
    return &gi_ofi_lane(b->lane)->listener->out[peer];
}

static const struct gi_ofi_conn *theirs(const struct bed *b, int peer)
{
    return &gi_ofi_lane(b->lane)->listener->in[peer];
}

/* Between this rank and a peer. */
static int count(const struct bed *b, int peer)
{
    return gi_ofi_conn_lives(ours(b, peer)) + gi_ofi_conn_lives(theirs(b, peer));
}

static void write_to(struct bed *b, int peer, unsigned char value)
{
    struct bed_request req;
    memset(b->local, value, 64);
    struct gi_net_io io = bed_io(b, peer, 0, 64 * (uint64_t)b->mp->rank, 64, &req);
    EXPECT_OK(bed_post(b, b->ops->write, &io, NULL));
    BED_UNTIL(b, req.done + req.failed != 0);
    EXPECT_EQ_INT(req.failed, 0);
}

static bool has_come(struct bed *b, int peer, unsigned char value)
{
    return BED_UNTIL(b, b->memory[64 * peer + 63] == value);
}

/* ---- numbered messages and immediates ---- */

struct numbers {
    unsigned msgs[BED_RANKS], imms; /* the next ones */
    unsigned wrong;
};

static void take_msg(struct bed *b, int peer, const void *bytes, uint32_t len)
{
    struct numbers *n = b->arg;
    uint64_t words[2];
    if (!EXPECT(len >= sizeof(words) && peer >= 0))
        return;
    memcpy(words, bytes, sizeof(words));
    EXPECT_EQ_INT(words[0], peer);
    n->wrong += words[1] != n->msgs[peer]++;
}

static void take_imm(struct bed *b, int peer, uint64_t imm)
{
    struct numbers *n = b->arg;
    (void)peer, (void)imm;
    n->imms++;
}

/* `n` to all others at a time, messages of all lengths and writes with immediates in turn. */
static void talk(struct bed *b, unsigned first, unsigned n)
{
    unsigned char m[GI_NET_MSG_MAX] = {0};
    struct bed_request req;
    for (unsigned k = first; k < first + n; k++)
        for (int r = 0; r < b->mp->size; r++) {
            uint64_t words[2] = {(uint64_t)b->mp->rank, k};
            if (r == b->mp->rank)
                continue;
            memcpy(m, words, sizeof(words));
            EXPECT_OK(bed_msg(b, r, m, 16 + 61 * k % (b->caps->msg_max - 15)));
            struct gi_net_io io = bed_io(b, r, 0, 4096 + 64 * (uint64_t)b->mp->rank, 64, &req);
            io.flags = b->caps->imm_bits != 0 ? GI_NET_IMM : 0;
            EXPECT_OK(bed_post(b, b->ops->write, &io, NULL));
            BED_UNTIL(b, req.done + req.failed != 0);
            EXPECT_EQ_INT(req.failed, 0);
        }
}

static void hear(struct bed *b, struct numbers *n, unsigned upto)
{
    for (int r = 0; r < b->mp->size; r++)
        if (r != b->mp->rank)
            BED_UNTIL(b, n->msgs[r] == upto);
    if (b->caps->imm_bits != 0)
        BED_UNTIL(b, n->imms == upto * (unsigned)(b->mp->size - 1));
    EXPECT_EQ_INT(n->wrong, 0);
}

/* More than there are receives, in portions that find some. */
static void converse(struct bed *b)
{
    struct numbers n = {.wrong = 0};
    b->arg = &n;
    b->on_msg = take_msg;
    b->on_imm = take_imm;
    bed_sync(b);
    for (unsigned k = 0; k < 80; k += 8) {
        talk(b, k, 8);
        hear(b, &n, k + 8);
        bed_sync(b);
    }
    b->on_msg = NULL;
    b->on_imm = NULL;
    BED_UNTIL(b, gi_ofi_lane(b->lane)->listener->begun == 0); /* else events are read often */
}

/* ---- one for both ---- */

/* One rank speaks first to all; they answer, read, and are answered. */
static void answered(struct mp *mp, const char *provider)
{
    struct bed b;
    int first = mp->size - 1; /* not the lowest */
    if (!up(&b, mp, provider))
        goto out;
    if (mp->rank == first)
        for (int r = 0; r < first; r++)
            write_to(&b, r, 0x11);
    else
        has_come(&b, first, 0x11);
    bed_sync(&b);
    mp_step(mp, "answering");
    if (mp->rank != first) {
        struct bed_request req;
        write_to(&b, first, 0x22);
        EXPECT_EQ_INT(count(&b, first), 1);
        EXPECT(theirs(&b, first)->posts && !ours(&b, first)->posts);
        struct gi_net_io io =
            bed_io(&b, first, 512, 64 * (uint64_t)mp->rank, 64, &req); /* my own write */
        do {
            req.done = 0;
            EXPECT_OK(bed_post(&b, b.ops->read, &io, NULL));
            BED_UNTIL(&b, req.done + req.failed != 0);
        } while (req.failed == 0 && b.local[512 + 63] != 0x22);
        EXPECT_EQ_INT(req.failed, 0);
    } else {
        for (int r = 0; r < first; r++) {
            has_come(&b, r, 0x22);
            EXPECT_EQ_INT(count(&b, r), 1);
            EXPECT(ours(&b, r)->posts && !theirs(&b, r)->posts);
        }
    }
    converse(&b);
    for (int r = 0; r < first && mp->rank == first; r++)
        EXPECT_EQ_INT(count(&b, r), 1);
    EXPECT_EQ_INT(b.failures, 0);
    bed_sync(&b); /* nobody closes before all have counted */
out:
    bed_close(&b);
}

/* All speak at once, on fresh lanes: still one for each pair, and both post by it. */
static void at_once(struct mp *mp, const char *provider)
{
    struct bed b;
    int rounds = mp->long_mode ? 300 : 12;
    unsigned crossed = 0, *which = (unsigned *)(void *)mp->share + 3000;
    if (!up(&b, mp, provider))
        goto out;
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        if (i > 0 && !bed_reopen_lane(&b))
            break;
        bed_sync(&b);
        converse(&b);
        for (int r = 0; r < mp->size; r++) {
            if (r == mp->rank)
                continue;
            crossed += ours(&b, r)->state == GI_OFI_ENDED;
            BED_UNTIL(&b, count(&b, r) == 1); /* the one that was not needed is given up */
            EXPECT_EQ_INT(ours(&b, r)->posts + theirs(&b, r)->posts, 1);
            which[mp->rank * BED_RANKS + r] = ours(&b, r)->posts;
        }
        bed_sync(&b);
        for (int r = 0; r < mp->rank; r++) /* who does not post by its own posts by the other's */
            EXPECT_EQ_INT(which[mp->rank * BED_RANKS + r] + which[r * BED_RANKS + mp->rank], 1);
        EXPECT_EQ_INT(b.failures, 0);
    }
    printf("# rank %d: %u of its requests were not needed\n", mp->rank, crossed);
out:
    bed_close(&b);
}

/* ---- the end ---- */

/* Posts until one fails: its status. The others make progress, or not. */
static int until_it_fails(struct bed *b, int peer)
{
    struct bed_request req = {.done = 1};
    uint64_t end = gi_deadline_in(BED_NS);
    int st = GIN_EAGAIN;
    while ((st == GIN_OK || st == GIN_EAGAIN) && gi_now_ns() < end) {
        if (req.done != 0 || st == GIN_EAGAIN) {
            struct gi_net_io io = bed_io(b, peer, 0, 8192, 64, &req);
            st = b->ops->write(b->lane, &io);
        }
        bed_progress(b);
        if (req.failed != 0)
            st = req.status;
    }
    return st;
}

/* One closes its lane, or gives the peer up, while the other one posts. */
static void ends(struct mp *mp, const char *provider, bool maker, bool closes)
{
    struct bed b;
    int who = maker ? 0 : 1;
    unsigned *done = (unsigned *)(void *)mp->share + 3000;
    if (!up(&b, mp, provider))
        goto out;
    if (mp->rank == 0)
        write_to(&b, 1, 0x11);
    else
        has_come(&b, 0, 0x11);
    bed_sync(&b);
    if (mp->rank == 1)
        write_to(&b, 0, 0x22);
    else
        has_come(&b, 1, 0x22);
    EXPECT_EQ_INT(count(&b, 1 - mp->rank), 1);
    bed_sync(&b);
    if (mp->rank != who) {
        mp_step(mp, "posting until it ends");
        EXPECT_EQ_INT(until_it_fails(&b, who), GIN_EPEER);
        EXPECT_EQ_INT(count(&b, who), 0);
        struct gi_net_io io = bed_io(&b, who, 0, 0, 8, NULL);
        io.flags = GI_NET_INLINE; /* not begun anew */
        EXPECT_FAILS(b.ops->write(b.lane, &io), GIN_EPEER, "");
        __atomic_store_n(done, 1, __ATOMIC_RELEASE);
        goto out;
    }
    if (closes) {
        b.ops->lane_close(b.lane);
        b.lane = NULL;
    } else {
        b.ops->cancel_peer(b.lane, 1 - who);
        EXPECT_FAILS(b.ops->msg(b.lane, 1 - who, "01234567", 8), GIN_EPEER, "dead");
    }
    for (uint64_t end = gi_deadline_in(BED_NS);
         __atomic_load_n(done, __ATOMIC_ACQUIRE) == 0 && gi_now_ns() < end;)
        closes ? gi_os_yield() : bed_progress(&b);
out:
    bed_close(&b);
}

#define PROVIDER(id, name)                                       \
    MP_TEST_OPT(id##_answered, .ranks = "2 3 5", .bare = true)   \
    {                                                            \
        answered(mp, name);                                      \
    }                                                            \
    MP_TEST_OPT(id##_at_once, .ranks = "2 3 5", .bare = true)    \
    {                                                            \
        at_once(mp, name);                                       \
    }                                                            \
    MP_TEST_OPT(id##_maker_closes, .ranks = "2", .bare = true)   \
    {                                                            \
        ends(mp, name, true, true);                              \
    }                                                            \
    MP_TEST_OPT(id##_other_closes, .ranks = "2", .bare = true)   \
    {                                                            \
        ends(mp, name, false, true);                             \
    }                                                            \
    MP_TEST_OPT(id##_maker_gives_up, .ranks = "2", .bare = true) \
    {                                                            \
        ends(mp, name, true, false);                             \
    }                                                            \
    MP_TEST_OPT(id##_other_gives_up, .ranks = "2", .bare = true) \
    {                                                            \
        ends(mp, name, false, false);                            \
    }

PROVIDER(net_msg, "net-msg")
PROVIDER(tcp_msg, "tcp-msg")
PROVIDER(contract, contract())
PROVIDER(verbs_msg, "verbs-msg") /* where there is a device */
