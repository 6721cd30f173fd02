/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks over the bare net ops: bringing them up, and waiting. */
#include "tests/providers/bed.h"

static void on_done(void *arg, struct gi_net_request *req)
{
    (void)arg;
    ((struct bed_request *)req)->done++;
}

static void on_failed(void *arg, struct gi_net_request *req, int peer, int status, int error,
                      const char *text)
{
    struct bed *b = arg;
    EXPECT(error > 0 && text != NULL && status < 0);
    b->last_status = status;
    if (req != NULL) {
        ((struct bed_request *)req)->failed++;
        ((struct bed_request *)req)->status = status;
    } else {
        b->failures++;
        b->last_peer = peer;
    }
}

static void on_imm(void *arg, int peer, uint64_t imm)
{
    struct bed *b = arg;
    b->imms++;
    if (b->on_imm != NULL)
        b->on_imm(b, peer, imm);
}

static void on_msg(void *arg, int peer, const void *bytes, uint32_t len)
{
    struct bed *b = arg;
    b->msgs++;
    if (b->on_msg != NULL)
        b->on_msg(b, peer, bytes, len);
}

static bool open_lane(struct bed *b)
{
    struct gi_net_lane_config config = {.handler = {.arg = b,
                                                    .done = on_done,
                                                    .failed = on_failed,
                                                    .arrived_imm = on_imm,
                                                    .arrived_msg = on_msg}};
    struct bed_card mine = {.key = b->mr->key, .base = b->mr->base};
    mine.name_len = sizeof(mine.name);
    if (!EXPECT_OK(b->ops->lane_open(b->domain, &config, &b->lane)))
        return false;
    EXPECT_OK(b->ops->name(b->lane, mine.name, &mine.name_len));
    if (!EXPECT_EQ_INT(mp_allgather(b->mp, &mine, b->cards, sizeof(mine)), 0))
        return false;
    for (int r = 0; r < b->mp->size; r++) {
        EXPECT_EQ_INT(b->cards[r].name_len, mine.name_len);
        if (!EXPECT_OK(b->ops->connect(b->lane, r, b->cards[r].name, b->cards[r].name_len)))
            return false;
    }
    return true;
}

static bool open_memory(struct bed *b)
{
    struct gi_net_memory_desc m = {.kind = GI_NET_HOST,
                                   .bytes = BED_BYTES,
                                   .remote = true,
                                   .want_key = 0x5000000000000001u + (uint64_t)b->mp->rank};
    b->memory = aligned_alloc(4096, BED_BYTES);
    b->local = aligned_alloc(4096, BED_BYTES);
    if (!EXPECT(b->memory != NULL && b->local != NULL))
        return false;
    memset(b->memory, 0xa5, BED_BYTES);
    memset(b->local, 0x5a, BED_BYTES);
    m.addr = b->memory;
    if (!EXPECT_OK(b->ops->reg(b->domain, &m, &b->mr)))
        return false;
    m.addr = b->local;
    m.remote = false;
    return EXPECT_OK(b->ops->reg(b->domain, &m, &b->local_mr));
}

bool bed_open(struct bed *b, struct mp *mp, const struct gi_net_ops *ops, const char *provider)
{
    struct gi_net_config config = {
        .provider = provider, .rank = mp->rank, .size = mp->size, .self_test = true};
    memset(b, 0, sizeof(*b));
    b->mp = mp;
    b->ops = ops;
    mp_step(mp, "opening %s", provider);
    int st = ops->open(&config, &b->domain);
    if (st == GIN_ENOTSUP) {
        mp_skip(mp, "%s", gin_last_error());
        return false;
    }
    if (!EXPECT_OK(st))
        return false;
    b->caps = ops->caps(b->domain);
    return open_memory(b) && open_lane(b) && bed_sync(b);
}

bool bed_reopen_lane(struct bed *b)
{
    if (!bed_sync(b))
        return false;
    b->ops->lane_close(b->lane);
    b->lane = NULL;
    return open_lane(b) && bed_sync(b);
}

void bed_close(struct bed *b)
{
    if (b->lane != NULL)
        b->ops->lane_close(b->lane);
    if (b->mr != NULL)
        b->ops->dereg(b->domain, b->mr);
    if (b->local_mr != NULL)
        b->ops->dereg(b->domain, b->local_mr);
    if (b->domain != NULL)
        b->ops->close(b->domain);
    free(b->memory);
    free(b->local);
}

void bed_progress(struct bed *b)
{
    int n = b->ops->progress(b->lane, 32);
    EXPECT(n >= 0);
    if (n == 0)
        gi_os_yield();
}

/* By the harness's shared memory: the network under test must not be what the test stands on. */
bool bed_sync(struct bed *b)
{
    unsigned *arrived = (unsigned *)(void *)b->mp->share + b->syncs++ % 1024;
    unsigned lap = 1 + (b->syncs - 1) / 1024;
    __atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    return BED_UNTIL(b, __atomic_load_n(arrived, __ATOMIC_ACQUIRE) >= lap * (unsigned)b->mp->size);
}

int bed_post(struct bed *b, int (*fn)(struct gi_net_lane *, const struct gi_net_io *),
             const struct gi_net_io *io, uint64_t *again)
{
    uint64_t end = gi_deadline_in(BED_NS);
    int st;
    while ((st = fn(b->lane, io)) == GIN_EAGAIN && gi_now_ns() < end) {
        if (again != NULL)
            ++*again;
        bed_progress(b);
    }
    return st;
}

int bed_msg(struct bed *b, int peer, const void *bytes, uint32_t len)
{
    uint64_t end = gi_deadline_in(BED_NS);
    int st;
    while ((st = b->ops->msg(b->lane, peer, bytes, len)) == GIN_EAGAIN && gi_now_ns() < end)
        bed_progress(b);
    return st;
}

struct gi_net_io bed_io(struct bed *b, int peer, uint64_t local_off, uint64_t remote_off,
                        uint64_t len, struct bed_request *req)
{
    if (req != NULL)
        memset(req, 0, sizeof(*req));
    return (struct gi_net_io){.peer = peer,
                              .local = b->local + local_off,
                              .mr = b->local_mr,
                              .key = b->cards[peer].key,
                              .remote = b->cards[peer].base + remote_off,
                              .len = len,
                              .req = req != NULL ? &req->net : NULL};
}

void bed_crowd(struct bed *b, int peer)
{
    unsigned *crowds = (unsigned *)(void *)b->mp->share + 2001;
    struct gi_net_io io = bed_io(b, peer, 0, 0, 8, NULL);
    int st = GIN_OK;
    io.flags |= GI_NET_INLINE;
    if (b->mp->rank == peer) {
        while (__atomic_load_n(crowds, __ATOMIC_ACQUIRE) + 1 < (unsigned)b->mp->size)
            gi_os_yield();
        return;
    }
    for (unsigned i = 0; i < 200000 && st == GIN_OK && b->caps->inject >= 8; i++)
        st = b->ops->write(b->lane, &io);
    EXPECT(st == GIN_OK || st == GIN_EAGAIN);
    __atomic_add_fetch(crowds, 1, __ATOMIC_ACQ_REL);
}
