/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault wrapper costs nothing where it only takes capabilities away: posts reach the network
 * below as they are, with the caller's request and source. Where it does something they do not, a
 * fence that the network lacks waits for what passed, and what is forbidden is refused.
 */
#include <ginshmem/status.h>
#include <string.h>
#include "tests/pt.h"
#include "transport/fault/fault.h"

#define MOST 8

/* The network below: takes all, completes what it is told to. */
static struct below {
    struct gi_net_domain domain;
    struct gi_net_lane lane;
    struct gi_net_caps caps;
    struct gi_net_handler handler;
    struct gi_net_io posted[MOST];
    unsigned n, messages;
} below;

static int post_below(struct gi_net_lane *l, const struct gi_net_io *io)
{
    (void)l;
    below.posted[below.n++ % MOST] = *io;
    return GIN_OK;
}

static int message_below(struct gi_net_lane *l, int peer, const void *bytes, uint32_t len)
{
    (void)l, (void)peer, (void)bytes, (void)len;
    below.messages++;
    return GIN_OK;
}

static int progress_below(struct gi_net_lane *l, unsigned budget)
{
    (void)l, (void)budget;
    return 0;
}

static int open_below(struct gi_net_domain *d, const struct gi_net_lane_config *config,
                      struct gi_net_lane **lane)
{
    (void)d;
    below.handler = config->handler;
    *lane = &below.lane;
    return GIN_OK;
}

static void close_below(struct gi_net_lane *l)
{
    (void)l;
}

static void close_domain(struct gi_net_domain *d)
{
    (void)d;
}

static const struct gi_net_caps *caps_below(struct gi_net_domain *d)
{
    (void)d;
    return &below.caps;
}

static const struct gi_net_ops ops_below = {.kind = "below",
                                            .close = close_domain,
                                            .caps = caps_below,
                                            .lane_open = open_below,
                                            .lane_close = close_below,
                                            .write = post_below,
                                            .read = post_below,
                                            .amo_add = post_below,
                                            .msg = message_below,
                                            .progress = progress_below};

/* What the wrapper told. */
static struct gi_net_request *told;
static unsigned dones, failures;

static void done(void *arg, struct gi_net_request *req)
{
    (void)arg;
    told = req;
    dones++;
}

static void failed(void *arg, struct gi_net_request *req, int peer, int status, int error,
                   const char *text)
{
    (void)arg, (void)peer, (void)status, (void)error, (void)text;
    told = req;
    failures++;
}

static struct gi_net_domain *outer;

/* A lane of a network with atomics in order, spoilt so. */
static struct gi_net_lane *up(const char *text)
{
    struct gi_net_lane_config config = {.handler = {.done = done, .failed = failed}};
    struct gi_net_lane *lane = NULL;
    below = (struct below){.domain = {.ops = &ops_below},
                           .lane = {.ops = &ops_below},
                           .caps = {.waw_bytes = GI_NET_UNLIMITED,
                                    .saw = true,
                                    .was = true,
                                    .raw = true,
                                    .sas = true,
                                    .amo_ordered = true,
                                    .amo = GI_NET_AMO_EMULATED,
                                    .dc = GI_NET_DC_YES,
                                    .imm_bits = 64,
                                    .inject = 64,
                                    .max_msg = 4096,
                                    .msg_max = 256,
                                    .depth = 16,
                                    .name = "below"}};
    dones = failures = 0;
    told = NULL;
    outer = &below.domain;
    pt_step("%s", text);
    if (EXPECT_EQ_INT(gi_fault_wrap(text, 0, 2, &outer), GIN_OK))
        EXPECT_EQ_INT(outer->ops->lane_open(outer, &config, &lane), GIN_OK);
    return lane;
}

static void down(struct gi_net_lane *lane)
{
    outer->ops->lane_close(lane);
    outer->ops->close(outer);
}

static struct gi_net_request req[3];
static char source[64];

static struct gi_net_io io_of(struct gi_net_request *r, unsigned flags)
{
    return (struct gi_net_io){
        .peer = 1, .local = source, .len = 8, .req = r, .flags = flags, .imm = 5};
}

static int post(struct gi_net_lane *l, unsigned flags, struct gi_net_request *r)
{
    struct gi_net_io io = io_of(r, flags);
    return outer->ops->write(l, &io);
}

/* The last one below is the caller's own. */
static bool passed(const struct gi_net_request *r, unsigned flags)
{
    const struct gi_net_io *io = &below.posted[(below.n - 1) % MOST];
    return io->req == r && io->local == source && io->flags == flags;
}

TEST(what_only_lacks_something_passes)
{
    static const char *const texts[] = {
        "class=A", "class=B",      "class=C", "class=C,imm=32", "class=C,dc=0,imm=0",
        "class=D", "saw=0,seed=7", "local=1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct gi_net_lane *l = up(texts[i]);
        bool atomics = outer->ops->caps(outer)->amo == GI_NET_AMO_NATIVE;
        struct gi_net_mr mr = {.key = 1};
        struct gi_net_io io = io_of(&req[0], 0);
        io.mr = &mr;
        EXPECT_EQ_INT(outer->ops->write(l, &io), GIN_OK);
        EXPECT(passed(&req[0], 0));
        EXPECT_EQ_INT(outer->ops->read(l, &io), GIN_OK);
        EXPECT(passed(&req[0], 0));
        EXPECT_EQ_INT(post(l, GI_NET_INLINE, &req[1]), GIN_OK);
        EXPECT(passed(&req[1], GI_NET_INLINE));
        if (atomics)
            EXPECT_EQ_INT(outer->ops->amo_add(l, &io), GIN_OK);
        EXPECT_EQ_INT(outer->ops->msg(l, 1, source, 64), GIN_OK);
        EXPECT_EQ_INT((int)below.messages, 1);
        below.handler.done(below.handler.arg, &req[0]);
        EXPECT(dones == 1 && told == &req[0]);
        below.handler.failed(below.handler.arg, &req[1], 1, GIN_ENET, 5, "");
        EXPECT(failures == 1 && told == &req[1]);
        down(l);
    }
}

TEST(what_does_something_does_not)
{
    static const char *const texts[] = {"hold=3",  "delay=1", "again=1,seed=9", "silent=1",
                                        "early=1", "write=9", "progress=9",     "depth=2"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct gi_net_lane *l = up(texts[i]);
        while (post(l, GI_NET_INLINE, &req[0]) == GIN_EAGAIN)
            outer->ops->progress(l, 1);
        for (int k = 0; k < 10000 && below.n == 0; k++)
            outer->ops->progress(l, 1);
        EXPECT_EQ_INT((int)below.n, 1);
        EXPECT(!passed(&req[0], GI_NET_INLINE));
        down(l);
    }
}

TEST(forbidden_is_refused_all_the_same)
{
    struct gi_net_lane *l = up("class=C,imm=32,dc=0,inject=16,max_msg=512,msg_max=64");
    struct gi_net_io io = io_of(&req[0], GI_NET_IMM);
    io.imm = 1ull << 40;
    EXPECT_EQ_INT(outer->ops->write(l, &io), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "an immediate too wide");
    EXPECT_EQ_INT(post(l, GI_NET_DELIVERED, &req[0]), GIN_EINVAL);
    EXPECT_EQ_INT(post(l, 0, NULL), GIN_EINVAL);
    io = io_of(&req[0], 0);
    io.len = 513;
    EXPECT_EQ_INT(outer->ops->write(l, &io), GIN_EINVAL);
    EXPECT_EQ_INT(outer->ops->amo_add(l, &io), GIN_EINVAL);
    EXPECT_EQ_INT(outer->ops->msg(l, 1, source, 65), GIN_EINVAL);
    EXPECT_EQ_INT((int)(below.n + below.messages), 0);
    EXPECT_EQ_INT(post(l, GI_NET_MORE, &req[0]), GIN_OK);
    EXPECT(passed(&req[0], GI_NET_MORE));
    EXPECT_EQ_INT(outer->ops->progress(l, 1), GIN_EINVAL);
    EXPECT_EQ_INT(outer->ops->msg(l, 0, source, 8), GIN_EINVAL); /* 1's was to follow */
    down(l);
}

TEST(a_fence_waits_for_what_passed)
{
    struct gi_net_lane *l = up("class=D");
    struct gi_net_io fence = io_of(&req[2], GI_NET_FENCE);
    EXPECT_EQ_INT(post(l, GI_NET_MORE, &req[0]), GIN_OK);
    EXPECT(passed(&req[0], 0)); /* for what follows may stay here */
    EXPECT_EQ_INT(post(l, GI_NET_INLINE, NULL), GIN_OK);
    EXPECT(!passed(NULL, GI_NET_INLINE)); /* nothing would tell its end */
    struct gi_net_request *inlined = below.posted[1].req;
    EXPECT_EQ_INT(outer->ops->amo_add(l, &fence), GIN_OK);
    EXPECT_EQ_INT((int)below.n, 2);
    EXPECT_EQ_INT(post(l, 0, &req[1]), GIN_EAGAIN);
    below.handler.done(below.handler.arg, inlined);
    outer->ops->progress(l, 1);
    EXPECT_EQ_INT((int)below.n, 2);
    below.handler.done(below.handler.arg, &req[0]);
    outer->ops->progress(l, 1);
    EXPECT_EQ_INT((int)below.n, 3);
    EXPECT_EQ_INT((int)below.posted[2].flags, 0);
    below.handler.done(below.handler.arg, below.posted[2].req);
    EXPECT(dones == 2 && told == &req[2]);
    down(l);
}

TEST(a_new_plan_counts_at_once)
{
    struct gi_net_lane *l = up("class=B");
    struct gi_fault_plan bad = {.first[GI_FAULT_WRITE] = 1, .count[GI_FAULT_WRITE] = 1};
    bad.status[GI_FAULT_WRITE] = GIN_ENET;
    EXPECT_EQ_INT(post(l, 0, &req[0]), GIN_OK);
    gi_fault_set(outer, &bad);
    EXPECT_EQ_INT(post(l, 0, &req[1]), GIN_OK);
    EXPECT_EQ_INT((int)below.n, 1);
    outer->ops->progress(l, 1);
    EXPECT(failures == 1 && told == &req[1]);
    gi_fault_set(outer, &(struct gi_fault_plan){.seed = 1});
    EXPECT_EQ_INT(post(l, 0, &req[2]), GIN_OK); /* ordered behind what failed */
    EXPECT_EQ_INT((int)below.n, 1);
    outer->ops->progress(l, 1);
    EXPECT(failures == 2 && told == &req[2]);
    below.handler.done(below.handler.arg, &req[0]);
    EXPECT(dones == 1 && told == &req[0]);
    gi_fault_peer(outer, 0, GI_FAULT_PEER_AGAIN);
    struct gi_net_io io = io_of(&req[0], 0);
    io.peer = 0;
    EXPECT_EQ_INT(outer->ops->write(l, &io), GIN_EAGAIN);
    down(l);
}
