/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare net ops over each libfabric provider that is here: bytes of all sizes and places,
 * immediates, messages, order as the record promises it, posts that are refused, wrong keys, peers
 * that die, and nothing left behind.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/providers/bed.h"
#include "transport/ofi/ofi_int.h"

static bool up(struct bed *b, struct mp *mp, const char *provider)
{
#if PT_RACE_DETECTOR
    mp_skip(mp, "libfabric is not built for the thread sanitizer");
    memset(b, 0, sizeof(*b));
    (void)provider;
    return false;
#else
    if (provider == NULL) {
        memset(b, 0, sizeof(*b));
        mp_skip(mp, "GINCONTRACT names no contract; tests/providers/contract.sh does");
        return false;
    }
    if (strcmp(provider, "sockets") == 0 && !mp->long_mode) {
        memset(b, 0, sizeof(*b));
        mp_skip(mp, "sockets crashes now and then by itself; -L runs it");
        return false;
    }
    return bed_open(b, mp, &gi_ofi_ops, provider);
#endif
}

/* What contract/ stands in for, where it is loaded: its profiles' names begin with that. */
static const char *contract(void)
{
    static const char *const known[] = {"efa-direct", "efa", "cxi", "verbs-msg"};
    const char *p = getenv("GINCONTRACT");
    for (size_t i = 0; p != NULL && i < sizeof(known) / sizeof(known[0]); i++)
        if (strncmp(known[i], p, strlen(known[i])) == 0)
            return known[i];
    return p != NULL ? "gincontract" : NULL;
}

static int next(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static size_t some_len(struct mp *mp, int i)
{
    static const size_t lens[] = {1,   2,   3,   7,    8,    9,    63,    64,    65,    127,
                                  128, 129, 255, 4095, 4096, 4097, 16385, 65537, 300001};
    size_t n = sizeof(lens) / sizeof(lens[0]);
    return (size_t)i < n ? lens[i] : 1 + pt_below(&mp->rng, i % 8 == 0 ? 1u << 20 : 9000);
}

/* What goes into one operation. */
static size_t fitting(const struct bed *b, size_t len)
{
    return len <= b->caps->max_msg ? len : b->caps->max_msg;
}

/* ---- bytes ---- */

/* Written to the neighbour, read back into another place, neighbours' bytes left alone. */
static void bytes(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request req;
    int to = next(mp), rounds = 40 / MP_FACTOR;
    if (!up(&b, mp, provider))
        goto out;
    for (int i = 0; i < rounds; i++) {
        size_t len = fitting(&b, some_len(mp, i)), at = 64 + pt_below(&mp->rng, 200), from = i % 13;
        unsigned flags = i % 3 == 0 && len <= b.caps->inject ? GI_NET_INLINE : 0;
        unsigned char *back = b.local + (2u << 20) + pt_below(&mp->rng, 9) + MP_CANARY;
        flags |= i % 4 == 1 && b.caps->dc != GI_NET_DC_NO ? GI_NET_DELIVERED : 0;
        mp_step(mp, "%zu bytes from %zu to %zu, flags %u", len, from, at, flags);
        mp_poison(b.local + from, len, mp->rng);
        struct gi_net_io io = bed_io(&b, to, from, at, len, &req);
        io.flags = flags;
        EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
        if (!BED_UNTIL(&b, req.done + req.failed != 0) || !EXPECT_EQ_INT(req.failed, 0))
            break;
        mp_canaries(back, len);
        io = bed_io(&b, to, (uint64_t)(back - b.local), at, len, &req);
        /* A read may overtake the write where order is not promised. */
        do {
            req.done = 0;
            EXPECT_OK(bed_post(&b, b.ops->read, &io, NULL));
            if (!BED_UNTIL(&b, req.done + req.failed != 0) || !EXPECT_EQ_INT(req.failed, 0))
                goto out;
        } while (!b.caps->raw && memcmp(back, b.local + from, len) != 0);
        EXPECT(memcmp(back, b.local + from, len) == 0);
        MP_CHECK_CANARIES(back, len);
    }
    bed_sync(&b);
    EXPECT_FILLED(b.memory, 64, 0xa5);
    EXPECT_FILLED(b.memory + (2u << 20), 4096, 0xa5);
    EXPECT_EQ_INT(b.failures, 0);
out:
    bed_close(&b);
}

/* ---- many at once, and their order ---- */

struct flood {
    unsigned next_imm[BED_RANKS], next_msg[BED_RANKS]; /* what must come next from this source */
    unsigned disorder, overtaken;
};

/* imm: source << 24 | number. Its write brought the number as bytes. */
static void flood_imm(struct bed *b, int peer, uint64_t imm)
{
    struct flood *f = b->arg;
    unsigned from = (unsigned)(imm >> 24) & 7, k = (unsigned)imm & 0xffffff;
    uint64_t seen;
    EXPECT(peer == (int)from || peer == GI_NET_UNKNOWN);
    memcpy(&seen, b->memory + from * 65536 + 8 * (k % 4096), 8);
    EXPECT_EQ_U64(seen, imm);
    if (k != f->next_imm[from]++ && b->caps->waw_bytes != 0)
        f->disorder++;
}

static void flood_msg(struct bed *b, int peer, const void *bytes, uint32_t len)
{
    struct flood *f = b->arg;
    uint64_t words[GI_NET_MSG_MAX / 8];
    memcpy(words, bytes, len);
    unsigned from = (unsigned)words[0] & 7, k = (unsigned)words[1];
    EXPECT(peer == (int)from || peer == GI_NET_UNKNOWN);
    EXPECT_EQ_INT(len, 16 + k % (b->caps->msg_max - 15));
    for (uint32_t i = 16; i < len; i++)
        if (((const unsigned char *)bytes)[i] != (unsigned char)(k + i)) {
            EXPECT_EQ_INT(((const unsigned char *)bytes)[i], (unsigned char)(k + i));
            break;
        }
    if (k != f->next_msg[from]++ && b->caps->sas)
        f->disorder++;
    if (words[2 - 1] >> 32 > f->next_imm[from] && b->caps->saw) /* immediates sent before it */
        f->overtaken++;
}

static void send_numbered(struct bed *b, int to, unsigned k, unsigned imms)
{
    unsigned char m[GI_NET_MSG_MAX];
    uint64_t head[2] = {(uint64_t)b->mp->rank, (uint64_t)imms << 32 | k};
    uint32_t len = 16 + k % (b->caps->msg_max - 15);
    memcpy(m, head, sizeof(head));
    for (uint32_t i = 16; i < len; i++)
        m[i] = (unsigned char)(k + i);
    EXPECT_OK(bed_msg(b, to, m, len));
}

/* No pause between posts: they are refused now and then, and none is lost or done twice. */
static void flood(struct mp *mp, const char *provider)
{
    enum { MOST = 4096 };
    struct bed b;
    struct flood f = {0};
    static _Thread_local struct bed_request reqs[MOST];
    int to = next(mp), from = (mp->rank + mp->size - 1) % mp->size, n = 4000 / MP_FACTOR;
    unsigned sent_imms = 0, sent_msgs = 0;
    uint64_t again = 0;
    if (!up(&b, mp, provider))
        goto out;
    bool bounded = b.caps->imm_eats_recv || b.caps->cq_overrun;
    b.arg = &f;
    b.on_imm = flood_imm;
    b.on_msg = flood_msg;
    bed_sync(&b);
    for (int i = 0; i < n; i++) {
        if (b.caps->imm_bits != 0 && i % 3 != 0) {
            if (bounded && sent_imms % 8 == 0)
                bed_sync(&b); /* nobody but the senders sees to it that they find room */
            uint64_t imm = (uint64_t)mp->rank << 24 | sent_imms, at = 8 * (sent_imms % 4096);
            memcpy(b.local + at, &imm, 8);
            struct gi_net_io io =
                bed_io(&b, to, at, (uint64_t)mp->rank * 65536 + at, 8, &reqs[sent_imms++]);
            io.flags = GI_NET_IMM | (i % 2 && b.caps->inject >= 8 ? GI_NET_INLINE : 0);
            io.imm = imm;
            if (!EXPECT_OK(bed_post(&b, b.ops->write, &io, &again)))
                goto out;
        } else {
            if (b.caps->recvs != 0 && sent_msgs % b.caps->recvs == 0)
                bed_sync(&b); /* no more than that may be under way */
            send_numbered(&b, to, sent_msgs++, sent_imms);
        }
        if (i % 64 == 0)
            mp_step(mp, "post %d, %u immediates and %u messages are here", i, b.imms, b.msgs);
    }
    for (unsigned k = 0; k < sent_imms; k++)
        if (!BED_UNTIL(&b, reqs[k].done + reqs[k].failed == 1) || !EXPECT_EQ_INT(reqs[k].done, 1))
            goto out;
    mp_step(mp, "waiting for the neighbour's");
    BED_UNTIL(&b, b.imms >= sent_imms && b.msgs >= sent_msgs);
    bed_sync(&b);
    EXPECT_EQ_INT(b.imms, sent_imms);
    EXPECT_EQ_INT(b.msgs, sent_msgs);
    EXPECT_EQ_INT(f.next_imm[from], sent_imms);
    EXPECT_EQ_INT(f.disorder, 0);
    EXPECT_EQ_INT(f.overtaken, 0);
out:
    bed_close(&b);
}

/* A long write, then a short one with an immediate: who has the immediate has the long one. */
static void order_imm(struct bed *b, int peer, uint64_t imm)
{
    (void)peer;
    MP_CHECK_PATTERN(b->memory, *(size_t *)b->arg, imm & 0xffff);
}

static void order(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request req[2];
    int rounds = 30 / MP_FACTOR;
    if (!up(&b, mp, provider))
        goto out;
    size_t len = fitting(&b, 1u << 20);
    if (b.caps->waw_bytes < len || b.caps->imm_bits == 0) {
        mp_skip(mp, "%s promises no order of writes", provider);
        goto out;
    }
    b.arg = &len;
    b.on_imm = order_imm;
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        mp_poison(b.local, len, (uint64_t)i);
        if (!bed_sync(&b))
            break;
        struct gi_net_io io = bed_io(&b, next(mp), 0, 0, len, &req[0]);
        io.flags = GI_NET_MORE;
        EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
        io = bed_io(&b, next(mp), len, len, 1, &req[1]);
        io.flags = GI_NET_IMM;
        io.imm = (uint64_t)i;
        EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
        if (!BED_UNTIL(&b, req[0].done && req[1].done && b.imms == (unsigned)i + 1))
            break;
    }
    bed_sync(&b);
out:
    bed_close(&b);
}

/* Adds of all ranks to one word of rank 0, where the network itself applies them. */
static void adds(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request req;
    int n = 300 / MP_FACTOR;
    if (!up(&b, mp, provider))
        goto out;
    if (b.caps->amo != GI_NET_AMO_NATIVE) {
        mp_skip(mp, "%s has no atomics of its own", provider);
        goto out;
    }
    memset(b.memory, 0, 8);
    bed_sync(&b);
    for (int i = 0; i < n; i++) {
        struct gi_net_io io = bed_io(&b, 0, 0, 0, 8, &req);
        io.imm = (uint64_t)mp->rank + 1;
        EXPECT_OK(bed_post(&b, b.ops->amo_add, &io, NULL));
        if (!BED_UNTIL(&b, req.done))
            break;
    }
    bed_sync(&b);
    uint64_t sum = (uint64_t)n * (uint64_t)(mp->size * (mp->size + 1) / 2);
    if (mp->rank == 0)
        BED_UNTIL(&b, __atomic_load_n((uint64_t *)(void *)b.memory, __ATOMIC_ACQUIRE) == sum);
    bed_sync(&b);
out:
    bed_close(&b);
}

/* ---- which provider, and its record ---- */

static bool opens(const struct gi_ofi_more *more, const char *provider, int size, bool self_test,
                  struct gi_net_domain **d)
{
    struct gi_net_config c = {
        .provider = provider, .size = size, .self_test = self_test, .more = more};
    return gi_ofi_ops.open(&c, d) == GIN_OK;
}

/* What is there but does not work is passed over, and the record says so. */
MP_TEST_OPT(passed_over, .ranks = "1", .bare = true)
{
    static const char *const three[] = {"nonsense", "shm", "tcp;ofi_rxm", NULL};
    static const char *const two[] = {"nonsense", "shm", NULL};
    struct gi_ofi_more more = {.names = three, .refuse = "shm"};
    struct gi_net_domain *d;
    if (PT_RACE_DETECTOR || !opens(NULL, "tcp;ofi_rxm", 1, true, &d))
        MP_SKIP("tcp;ofi_rxm is not here");
    gi_ofi_ops.close(d);
    if (!EXPECT(opens(&more, NULL, 1, true, &d)))
        return;
    EXPECT(strcmp(gi_ofi_ops.caps(d)->name, "tcp;ofi_rxm") == 0);
    EXPECT(strstr(gi_ofi_ops.caps(d)->notes, "passed over: shm: ") != NULL);
    gi_ofi_ops.close(d);
    more.names = two;
    EXPECT(!opens(&more, NULL, 1, true, &d));
    EXPECT(strstr(gin_last_error(), "nonsense: ") != NULL);
    EXPECT(strstr(gin_last_error(), "shm: ") != NULL);
    /* named, nothing else will do */
    EXPECT(!opens(&more, "shm", 1, true, &d));
}

/* What finds no receive is lost, and peers share a lane's: their shares fit, or it is refused. */
MP_TEST_OPT(receives_are_shared, .ranks = "1", .bare = true)
{
    static const int sizes[] = {1, 2, 8, 16, 40, 3000};
    struct gi_net_domain *d;
    if (PT_RACE_DETECTOR || !opens(NULL, "sockets", 1, false, &d))
        MP_SKIP("sockets is not here");
    gi_ofi_ops.close(d);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (!opens(NULL, "sockets", sizes[i], false, &d)) {
            EXPECT(sizes[i] == 3000 && strstr(gin_last_error(), "3000 ranks") != NULL);
            continue;
        }
        uint32_t each = gi_ofi_ops.caps(d)->recvs, all = gi_ofi_domain(d)->receives;
        EXPECT(each != 0 && (uint64_t)each * (unsigned)sizes[i] <= all);
        gi_ofi_ops.close(d);
    }
}

/* On both sides of what is sent without a slot; the source is the caller's again at once. */
static void short_msg(struct bed *b, int peer, const void *bytes, uint32_t len)
{
    (void)peer;
    MP_CHECK_PATTERN(bytes, len, *(uint64_t *)b->arg);
}

static void messages(struct mp *mp, const char *provider)
{
    struct bed b;
    uint64_t seed = 0;
    unsigned char m[GI_NET_MSG_MAX];
    if (!up(&b, mp, provider))
        goto out;
    b.arg = &seed;
    b.on_msg = short_msg;
    uint32_t most = b.caps->msg_max, edge = (uint32_t)gi_ofi_domain(b.domain)->inject;
    EXPECT(edge <= gi_ofi_domain(b.domain)->pick.info->tx_attr->inject_size);
    uint32_t lens[] = {1, 64, edge - 1, edge, edge + 1, most - 1, most};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]) && bed_sync(&b); i++) {
        if (lens[i] == 0 || lens[i] > most)
            continue;
        unsigned before = b.msgs;
        seed = i;
        bed_sync(&b);
        mp_poison(m, lens[i], i);
        EXPECT_OK(bed_msg(&b, next(mp), m, lens[i]));
        memset(m, 0xdd, lens[i]);
        BED_UNTIL(&b, b.msgs == before + 1);
    }
    bed_sync(&b); /* what has left may still be lost with its lane */
out:
    bed_close(&b);
}

/* ---- what goes wrong ---- */

/* A wrong key harms nobody's memory; whether and when it is reported differs. */
static void bad_key(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request req;
    if (!up(&b, mp, provider))
        goto out;
    if (mp->rank == 0) {
        struct gi_net_io io = bed_io(&b, 1, 0, 0, 4096, &req);
        io.key ^= 0x123456;
        int st = bed_post(&b, b.ops->write, &io, NULL);
        EXPECT(st == GIN_OK || st == GIN_EPEER || st == GIN_ENET);
        uint64_t end = gi_deadline_in(1000000000u);
        while (st == GIN_OK && req.done + req.failed == 0 && gi_now_ns() < end)
            bed_progress(&b);
        EXPECT(req.done + req.failed <= 1);
    }
    bed_sync(&b);
    EXPECT_FILLED(b.memory, BED_BYTES, 0xa5);
    /* A fresh lane works. */
    if (!bed_reopen_lane(&b))
        goto out;
    struct gi_net_io io = bed_io(&b, next(mp), 0, 0, 64, &req);
    EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
    BED_UNTIL(&b, req.done && b.memory[63] == 0x5a);
    bed_sync(&b);
out:
    bed_close(&b);
}

/* The shm provider's regions of a process that was killed. */
static void sweep(long pid)
{
    DIR *dir = opendir("/dev/shm");
    char prefix[32], path[300];
    struct dirent *e;
    snprintf(prefix, sizeof(prefix), "%ld:", pid);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0) {
            snprintf(path, sizeof(path), "/dev/shm/%s", e->d_name);
            unlink(path);
        }
    if (dir != NULL)
        closedir(dir);
}

/* The others go on, posts to it are refused once it is given up, and closing does not hang. */
static void killed(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request reqs[8];
    long pid = getpid(), pids[BED_RANKS];
    mp_expect_death(mp, 2);
    if (!up(&b, mp, provider))
        goto out;
    mp_allgather(mp, &pid, pids, sizeof(pid));
    struct gi_net_io io;
    for (int r = 0; r < mp->size; r++) { /* so that they are connected */
        io = bed_io(&b, r, 0, 64, 64, &reqs[0]);
        EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
        BED_UNTIL(&b, reqs[0].done);
    }
    bed_sync(&b);
    bed_crowd(&b, 2);
    if (mp->rank == 2)
        _exit(0);
    uint64_t end = gi_deadline_in(700000000u);
    unsigned used = 0;
    int st = GIN_OK;
    while (gi_now_ns() < end && (st == GIN_OK || st == GIN_EAGAIN)) {
        if (used < 8) {
            io = bed_io(&b, 2, 0, 0, fitting(&b, 200000), &reqs[used]);
            st = b.ops->write(b.lane, &io);
            used += st == GIN_OK;
        }
        b.ops->progress(b.lane, 16);
        gi_os_yield();
    }
    EXPECT(st == GIN_OK || st == GIN_EAGAIN || st == GIN_EPEER || st == GIN_ENET);
    b.ops->cancel_peer(b.lane, 2);
    io = bed_io(&b, 2, 0, 0, 8, &reqs[7]);
    EXPECT_FAILS(b.ops->write(b.lane, &io), GIN_EPEER, "rank 2");
    EXPECT_FAILS(b.ops->msg(b.lane, 2, "01234567", 8), GIN_EPEER, "rank 2");
    mp_step(mp, "survivors write to each other");
    struct bed_request req;
    memset(b.memory, 0, 64);
    unsigned *arrived = (unsigned *)(void *)mp->share + 2000;
    __atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    BED_UNTIL(&b, __atomic_load_n(arrived, __ATOMIC_ACQUIRE) == 2);
    io = bed_io(&b, 1 - mp->rank, 0, 0, 64, &req);
    EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
    BED_UNTIL(&b, req.done && b.memory[63] == 0x5a);
    __atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    BED_UNTIL(&b, __atomic_load_n(arrived, __ATOMIC_ACQUIRE) == 4);
    if (mp->rank == 0)
        sweep(pids[2]);
out:
    bed_close(&b);
}

/* Opening and closing again leaves no descriptor, no mapping and no file. */
static int shm_files(void)
{
    DIR *dir = opendir("/dev/shm");
    struct dirent *e;
    char prefix[32];
    int n = 0;
    snprintf(prefix, sizeof(prefix), "%ld:", (long)getpid());
    while (dir != NULL && (e = readdir(dir)) != NULL)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static void leftovers(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request req;
    int fds = 0;
    for (int i = 0; i < 4; i++) {
        if (!up(&b, mp, provider))
            break;
        struct gi_net_io io = bed_io(&b, next(mp), 0, 0, 64, &req);
        EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
        BED_UNTIL(&b, req.done && b.memory[63] == 0x5a);
        bed_sync(&b);
        bed_close(&b);
        mp_barrier(mp);
        if (mp->rank == 0)
            memset(mp->share, 0, 4096); /* what bed_sync() counts */
        if (i == 1)
            fds = mp_count_fds();
        mp_barrier(mp);
    }
    if (fds != 0 && !mp->threads)
        EXPECT_EQ_INT(mp_count_fds(), fds);
    if (!mp->threads)
        EXPECT_EQ_INT(shm_files(), 0);
}

/* All write to all at the same moment, on lanes that never did: their connections cross. */
static void crossing(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request reqs[BED_RANKS];
    int rounds = mp->long_mode ? 1000 : 12 / MP_FACTOR + 3;
    if (!up(&b, mp, provider))
        goto out;
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        memset(b.local, i + 1, 8);
        if (!bed_sync(&b))
            break;
        for (int r = 0; r < mp->size; r++) {
            struct gi_net_io io = bed_io(&b, r, 0, 8 * (uint64_t)mp->rank, 8, &reqs[r]);
            EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
        }
        for (int r = 0; r < mp->size; r++) {
            BED_UNTIL(&b, reqs[r].done + reqs[r].failed != 0);
            EXPECT_EQ_INT(reqs[r].failed, 0);
            if (!BED_UNTIL(&b, b.memory[8 * r + 7] == (unsigned char)(i + 1)))
                goto out;
        }
        if (!bed_reopen_lane(&b))
            break;
    }
out:
    bed_close(&b);
}

#define PROVIDER(id, name)                                                 \
    MP_TEST_OPT(id##_bytes, .ranks = "1 2 3", .bare = true)                \
    {                                                                      \
        bytes(mp, name);                                                   \
    }                                                                      \
    MP_TEST_OPT(id##_crossing, .ranks = "2 4", .bare = true)               \
    {                                                                      \
        crossing(mp, name);                                                \
    }                                                                      \
    MP_TEST_OPT(id##_order, .ranks = "2", .bare = true)                    \
    {                                                                      \
        order(mp, name);                                                   \
    }                                                                      \
    MP_TEST_OPT(id##_adds, .ranks = "2", .bare = true)                     \
    {                                                                      \
        adds(mp, name);                                                    \
    }                                                                      \
    MP_TEST_OPT(id##_messages, .ranks = "2", .bare = true)                 \
    {                                                                      \
        messages(mp, name);                                                \
    }                                                                      \
    MP_TEST_OPT(id##_bad_key, .ranks = "2", .bare = true)                  \
    {                                                                      \
        bad_key(mp, name);                                                 \
    }                                                                      \
    MP_TEST_OPT(id##_killed, .ranks = "3", .only = MP_PROCS, .bare = true) \
    {                                                                      \
        killed(mp, name);                                                  \
    }                                                                      \
    MP_TEST_OPT(id##_leftovers, .ranks = "2", .bare = true)                \
    {                                                                      \
        leftovers(mp, name);                                               \
    }

/* Not sockets: it loses posts and crashes under such a load. */
#define FLOOD(id, name)                                   \
    MP_TEST_OPT(id##_flood, .ranks = "2 3", .bare = true) \
    {                                                     \
        flood(mp, name);                                  \
    }

PROVIDER(net, "net")
FLOOD(net, "net")
PROVIDER(tcp, "tcp")
FLOOD(tcp, "tcp")
PROVIDER(rxm, "tcp;ofi_rxm")
FLOOD(rxm, "tcp;ofi_rxm")
PROVIDER(shm, "shm")
FLOOD(shm, "shm")
PROVIDER(sockets, "sockets")
PROVIDER(contract, contract())
FLOOD(contract, contract())
PROVIDER(net_msg, "net-msg")
FLOOD(net_msg, "net-msg")
PROVIDER(tcp_msg, "tcp-msg")
FLOOD(tcp_msg, "tcp-msg")
PROVIDER(verbs_msg, "verbs-msg") /* where there is a device */
FLOOD(verbs_msg, "verbs-msg")
