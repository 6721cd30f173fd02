/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives, when, in which order, and what it takes. */
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "tests/providers/t_contract.h"

static uint64_t word(const struct world *w, size_t i)
{
    return __atomic_load_n((uint64_t *)(void *)w->to + i, __ATOMIC_ACQUIRE);
}

/* What may happen is waited for until it has, n times; what must not is looked for this often. */
static bool go_on(uint64_t round, bool may, unsigned n)
{
    static uint64_t end;
    if (round == 1)
        end = w_now() + 20000000000u;
    return may ? n == 0 && (round < 200 || w_now() < end) : round <= 200;
}

/* ---- whole, and in order ---- */

/* Parts come in any order, the immediate behind all of them. */
static void parts(struct world *w, bool immediate)
{
    unsigned jumps = 0, imms = 0;
    enum { LEN = 64000 };
    w_open(w);
    for (unsigned round = 1; go_on(round, true, jumps) || round <= 20; round++) {
        struct post p = w_post(w);
        unsigned char with = (unsigned char)(round % 255 + 1);
        memset(w->from, with, LEN);
        p.len = LEN;
        p.imm = round;
        p.flags |= immediate ? FI_REMOTE_CQ_DATA : 0;
        if (!CHECK(W_WRITE(w, &p) == 0))
            return;
        bool done = false, seen = !immediate, jumped = false;
        while (!done || !seen) {
            jumped |= w->to[LEN - 1] == with && w->to[0] != with;
            if (w_wait(w, 0) != 1)
                continue;
            if (w->entry.flags & FI_REMOTE_WRITE) {
                CHECK(memcmp(w->from, w->to, LEN) == 0);
                seen = true;
                imms++;
            } else {
                done = true;
            }
        }
        jumps += jumped;
        while (memcmp(w->from, w->to, LEN) != 0)
            w_drive(w);
    }
    CHECK((imms != 0) == immediate);
    CHECK(jumps != 0);
}

RULE(parts_in_any_order, "efa")
{
    parts(w, true);
}

RULE(parts_in_any_order_direct, "efa-direct")
{
    parts(w, true);
}

RULE(parts_in_any_order_cxi, "cxi-relaxed")
{
    parts(w, false);
}

/* Word 0 is written, then word 1: how often the second is seen before the first. */
static unsigned overtaken(struct world *w, bool may)
{
    unsigned n = 0;
    for (uint64_t i = 1; go_on(i, may, n); i++) {
        struct post p = w_post(w), q = w_post(w);
        memcpy(w->from, &i, 8);
        q.addr += 8;
        q.context = &w->context[62];
        if (!CHECK(W_WRITE(w, &p) == 0) || !CHECK(W_WRITE(w, &q) == 0))
            return 0;
        for (int done = 0; done < 2 || word(w, 0) != i || word(w, 1) != i;) {
            n += word(w, 1) == i && word(w, 0) != i;
            done += w_wait(w, 0) == 1;
        }
    }
    return n;
}

#define ORDER(id, profile, kept)                       \
    RULE(id, profile)                                  \
    {                                                  \
        w_open(w);                                     \
        CHECK((overtaken(w, !(kept)) == 0) == (kept)); \
    }
ORDER(writes_overtake_efa, "efa", false)
ORDER(writes_overtake_efa_direct, "efa-direct", false)
ORDER(writes_overtake_cxi, "cxi-relaxed", false)
ORDER(writes_in_order_cxi, "cxi", true)
ORDER(writes_in_order_verbs, "verbs-msg", true)
ORDER(writes_in_order_stream, "stream", true)

/* One side alone asks: none. */
RULE(order_takes_both_sides, "cxi")
{
    struct fi_info *h = w_hints(), *info;
    h->rx_attr->msg_order = 0;
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info) == 0);
    CHECK(info->ep_attr->max_order_waw_size == 0);
    fi_freeinfo(info);
    fi_freeinfo(h);
}

/* Where nothing else keeps it behind, a fence does. */
static unsigned adds_too_early(struct world *w, uint64_t flags)
{
    unsigned n = 0;
    for (uint64_t i = 1; go_on(i, flags == 0, n); i++) {
        struct post p = w_post(w), q = w_post(w);
        memcpy(w->from, &i, 8);
        memcpy(w->from + 8, &(uint64_t){1}, 8);
        q.from = w->from + 8;
        q.addr += 8;
        q.flags |= flags | FI_DELIVERY_COMPLETE;
        q.context = &w->context[62];
        if (!CHECK(W_WRITE(w, &p) == 0) || !CHECK(W_TRY(w, w_add_once(w, &q)) == 0))
            return 0;
        for (int done = 0; done < 2 || word(w, 0) != i || word(w, 1) != i;) {
            n += word(w, 1) == i && word(w, 0) != i;
            done += w_wait(w, 0) == 1;
        }
    }
    return n;
}

RULE(atomics_overtake, "cxi-relaxed")
{
    w_open(w);
    CHECK(adds_too_early(w, 0) != 0);
}

RULE(fences_hold_atomics_back, "cxi-relaxed")
{
    w_open(w);
    CHECK(adds_too_early(w, FI_FENCE) == 0);
}

/* ---- late ---- */

/* Complete here, and not there: now and then at least. */
static void early(struct world *w, uint64_t flags, bool may)
{
    unsigned n = 0;
    w_open(w);
    for (uint64_t i = 1; go_on(i, may, n); i++) {
        struct post p = w_post(w);
        memcpy(w->from, &i, 8);
        p.flags |= flags;
        if (!CHECK(W_WRITE(w, &p) == 0) || !CHECK(w_wait(w, 5000) == 1))
            return;
        n += word(w, 0) != i;
        while (word(w, 0) != i)
            w_drive(w);
    }
    CHECK((n != 0) == may);
}

RULE(complete_is_not_delivered, "cxi")
{
    early(w, 0, true);
}

RULE(complete_is_not_delivered_stream, "stream")
{
    early(w, 0, true);
}

RULE(delivered_is, "cxi-relaxed")
{
    early(w, FI_DELIVERY_COMPLETE, false);
}

RULE(complete_is_delivered, "efa-direct")
{
    early(w, 0, false);
}

RULE(nothing_moves_by_itself, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(W_WRITE(w, &p) == 0);
    usleep(50000);
    CHECK(word(w, 0) == 0);
    while (word(w, 0) == 0)
        w_drive(w);
}

RULE(moves_by_itself, "cxi")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(W_WRITE(w, &p) == 0);
    for (int i = 0; i < 3000 && word(w, 0) == 0; i++)
        usleep(1000);
    CHECK(word(w, 0) != 0);
}

/* ---- what it takes ---- */

RULE(half_of_the_immediate, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags |= FI_REMOTE_CQ_DATA;
    p.imm = 0x1122334455667788u;
    CHECK(W_WRITE(w, &p) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(w_wait(w, 5000) == 1);
        if (w->entry.flags & FI_REMOTE_WRITE)
            CHECK(w->entry.data == 0x55667788u && w->entry.op_context == NULL);
    }
}

RULE(every_operation_completes, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags = 0;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == 1);
}

RULE(only_asked_operations_complete, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags = 0;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 50) == 0);
}

RULE(messages_need_receives, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(W_TRY(w, w_send_once(w, &p)) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_ENORX);
    SAID("finds no receive");
}

/* Four receives: the fifth immediate waits for another one. */
RULE(immediates_take_receives, "verbs-msg")
{
    unsigned imms = 0;
    w_open(w);
    for (unsigned i = 0; i < 4; i++)
        CHECK(w_recv(w, i) == 0);
    for (unsigned i = 0; i < 5; i++) {
        struct post p = w_post(w);
        p.flags |= FI_REMOTE_CQ_DATA;
        CHECK(W_WRITE(w, &p) == 0);
    }
    while (w_wait(w, 200) == 1)
        imms += (w->entry.flags & FI_REMOTE_CQ_DATA) && w->entry.op_context != &w->context[63];
    CHECK(imms == 4);
    CHECK(w_recv(w, 4) == 0);
    while (imms < 5 && w_wait(w, 5000) == 1)
        imms += (w->entry.flags & FI_REMOTE_CQ_DATA) && w->entry.op_context != &w->context[63];
    CHECK(imms == 5);
}

RULE(immediates_take_receives_where_asked, "efa-direct-rx")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags |= FI_REMOTE_CQ_DATA;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_ENORX);
    SAID("an immediate finds no receive");
}

RULE(queues_are_overrun, "efa-direct")
{
    struct fi_cq_data_entry e;
    int rc = 0;
    w_open_with(w, 4);
    for (int i = 0; i < 8; i++) {
        struct post p = w_post(w);
        p.context = &w->context[i];
        p.flags |= FI_REMOTE_CQ_DATA;
        while (w_write_once(w, &p) == -FI_EAGAIN)
            usleep(50);
    }
    for (int i = 0; i < 1000 && rc != -FI_EOVERRUN; i++) {
        usleep(5000);
        rc = i < 10 ? 0 : (int)fi_cq_read(w->cq, &e, 1);
    }
    CHECK(rc == -FI_EOVERRUN);
    SAID("is overrun");
}

/* Its own vector holds the target; the target's does not hold it. */
RULE(strangers_are_refused, "efa-direct")
{
    struct fid_ep *ep = NULL;
    struct fid_av *av = NULL;
    char name[64];
    size_t len = sizeof(name);
    w_open(w);
    CHECK(w_endpoint(w, &ep, &av) == 0);
    CHECK(fi_getname(&w->ep->fid, name, &len) == 0);
    CHECK(fi_av_insert(av, name, 1, &w->self, 0, NULL) == 1);
    struct post p = w_post(w);
    w->ep = ep;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_EHOSTUNREACH);
    SAID("not in the target's address vector");
}

RULE(addresses_are_offsets, "cxi")
{
    w_open(w);
    struct post p = w_post(w);
    p.addr = (uintptr_t)w->to;
    p.flags |= FI_DELIVERY_COMPLETE;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_EACCES);
    SAID("offset");
}

RULE(addresses_are_addresses, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    p.addr = 0;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_EACCES);
    SAID("address");
}

/* ---- atomics ---- */

static void fetch_five(struct world *w, fi_addr_t to, uint64_t added)
{
    uint64_t five = 5, *old;
    w_open(w);
    old = (uint64_t *)(void *)(w->from + 64);
    memcpy(w->from, &five, 8);
    for (int i = 0; i < 2; i++) {
        struct post p = w_post(w);
        p.to = to;
        CHECK(W_TRY(w, w_fetch_once(w, &p, old, p.desc)) == 0);
        CHECK(w_wait(w, 5000) == 1);
        CHECK(*old == i * added);
    }
    CHECK(word(w, 0) == 2 * added);
}

RULE(atomics_fetch, "cxi")
{
    fetch_five(w, 0, 5);
}

RULE(atomics_fetch_where_connected, "verbs-msg")
{
    fetch_five(w, 77, 5);
}

/* libfabric before 2.2: it is not the buffer that is added. */
RULE(addends_are_taken_from_the_address, "verbs-msg-old")
{
    fetch_five(w, 77, 77);
}

RULE(misaligned_words, "cxi")
{
    w_open(w);
    struct post p = w_post(w);
    p.addr = 4;
    p.flags |= FI_DELIVERY_COMPLETE;
    CHECK(W_TRY(w, w_add_once(w, &p)) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_EINVAL);
    SAID("misaligned");
}

/* ---- sleeping ---- */

RULE(woken_for_nothing, "cxi")
{
    struct fid *fids[1];
    unsigned busy = 0, woken = 0;
    struct pollfd fd = {.events = POLLIN};
    w_open(w);
    fids[0] = &w->cq->fid;
    CHECK(fi_control(&w->cq->fid, FI_GETWAIT, &fd.fd) == 0);
    for (int i = 0; i < 4000 && (busy == 0 || woken == 0); i++) {
        bool idle = fi_trywait(w->fabric, fids, 1) == 0;
        busy += !idle;
        woken += idle && poll(&fd, 1, 5) == 1;
        CHECK(w_wait(w, 0) == 0);
    }
    CHECK(busy != 0 && woken != 0);
}
