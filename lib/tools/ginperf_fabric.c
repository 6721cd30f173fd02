/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare network, measured beside the operations: what libfabric's own calls take between the
 * same two processes, in loops of the same shape. ginperf_bare.c opens it.
 */
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "ginperf_bare.h"

#define LIMIT_NS 20e9 /* a partner that is silent for so long is lost */

/* ---- the queue ---- */

static bool post_receive(struct bare_recv *r)
{
    void *desc = fi_mr_desc(bare.mr);
    struct iovec iov = {.iov_base = r->bytes, .iov_len = BARE_MESSAGE};
    struct fi_msg m = {
        .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = r};
    ssize_t rc = fi_recvmsg(bare.ep, &m, FI_COMPLETION);
    if (rc != 0)
        bare_lost("a receive", rc);
    return rc == 0;
}

bool bare_post_receives(void)
{
    bool all = true;
    for (size_t i = 0; i < BARE_RECVS && all; i++)
        all = post_receive(&bare.recv[i]);
    return all;
}

/* Some providers report what nobody asked for: only contexts of posts that asked are counted. */
static void take(const struct fi_cq_data_entry *e)
{
    struct fi_context2 *c = e->op_context;
    struct bare_recv *r = e->op_context;
    if (c >= bare.context && c < bare.context + BARE_WINDOW) {
        bare.spare[--bare.used] = c;
    } else if (r >= bare.recv && r < bare.recv + BARE_RECVS) {
        bare.arrived++;
        post_receive(r);
    } else if ((e->flags & FI_REMOTE_CQ_DATA) != 0 && c != &bare.quiet) {
        bare.arrived++;
    }
}

static void poll_queue(void)
{
    struct fi_cq_data_entry e[16];
    struct fi_cq_err_entry error = {0};
    ssize_t n = fi_cq_read(bare.cq, e, 16);
    for (ssize_t i = 0; i < n; i++)
        take(&e[i]);
    if (n == -FI_EAVAIL && fi_cq_readerr(bare.cq, &error, 0) > 0)
        n = error.err;
    if (n < 0 ? n != -FI_EAGAIN : error.err != 0)
        bare_lost("an operation", n);
}

/* A partner that shares this core answers only if it gets it: without the yield a wait would take
 * a whole time slice of the scheduler, and no figure of that round would mean anything. */
void bare_poll(unsigned i)
{
    poll_queue();
    if (i % 1024 == 0)
        sched_yield();
}

/* A step of a wait; its end where the partner is silent for too long. */
static void step(unsigned i, double *end)
{
    bare_poll(i);
    if (i % 4096 != 0)
        return;
    double now = perf_now_ns();
    if (*end == 0)
        *end = now + LIMIT_NS;
    else if (now > *end)
        bare_lost("a wait", -FI_ETIMEDOUT);
}

static void drain(void)
{
    double end = 0;
    for (unsigned i = 1; bare.used != 0 && bare.usable; i++)
        step(i, &end);
}

/* ---- posts ---- */

enum kind { WRITE, READ, ADD, MESSAGE };

struct op {
    enum kind kind;
    char *local;
    size_t bytes;
    uint64_t at; /* within the partner's memory */
    uint64_t flags, data;
};

static ssize_t try_rma(const struct op *o, uint64_t flags, void *context)
{
    void *desc = fi_mr_desc(bare.mr);
    struct iovec iov = {.iov_base = o->local, .iov_len = o->bytes};
    struct fi_rma_iov there = {.addr = bare.base + o->at, .len = o->bytes, .key = bare.key};
    struct fi_msg_rma m = {.msg_iov = &iov,
                           .desc = &desc,
                           .iov_count = 1,
                           .addr = bare.peer,
                           .rma_iov = &there,
                           .rma_iov_count = 1,
                           .context = context,
                           .data = o->data};
    return o->kind == READ ? fi_readmsg(bare.ep, &m, flags) : fi_writemsg(bare.ep, &m, flags);
}

/* Connected endpoints of old libfabric take the addend from the field of the address. */
static ssize_t try_add(const struct op *o, uint64_t flags, void *context)
{
    void *desc = fi_mr_desc(bare.mr);
    struct fi_ioc ioc = {.addr = o->local, .count = 1}, old = {.addr = bare.old, .count = 1};
    struct fi_rma_ioc there = {.addr = bare.base + o->at, .count = 1, .key = bare.key};
    struct fi_msg_atomic m = {.msg_iov = &ioc,
                              .desc = &desc,
                              .iov_count = 1,
                              .addr = bare.connected ? 1 : bare.peer,
                              .rma_iov = &there,
                              .rma_iov_count = 1,
                              .datatype = FI_UINT64,
                              .op = FI_SUM,
                              .context = context};
    ssize_t rc = bare.fetches ? -FI_EOPNOTSUPP : fi_atomicmsg(bare.ep, &m, flags);
    if (rc != -FI_EOPNOTSUPP && rc != -FI_ENOSYS)
        return rc;
    bare.fetches = true;
    return fi_fetch_atomicmsg(bare.ep, &m, &old, &desc, 1, flags & ~FI_INJECT);
}

static ssize_t try_once(const struct op *o, uint64_t flags, void *context)
{
    void *desc = fi_mr_desc(bare.mr);
    struct iovec iov = {.iov_base = o->local, .iov_len = o->bytes};
    struct fi_msg m = {
        .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = bare.peer, .context = context};
    switch (o->kind) {
    case ADD: return try_add(o, flags, context);
    case MESSAGE: return fi_sendmsg(bare.ep, &m, flags);
    default: return try_rma(o, flags, context);
    }
}

/* What is refused with these flags for good goes without them from now on. */
static bool without(const struct op *o, uint64_t *flags)
{
    if (o->kind == WRITE && (*flags & FI_INJECT) != 0) {
        bare.no_inject = true;
        *flags = (*flags & ~FI_INJECT) | FI_COMPLETION;
        return true;
    }
    if ((*flags & FI_DELIVERY_COMPLETE) != 0) {
        bare.no_delivery = true;
        *flags &= ~FI_DELIVERY_COMPLETE;
        return true;
    }
    return false;
}

/* Injected where that is to be had: then it completes only if it is asked to, or if the provider
 * keeps its own in contexts, each of which is one post's until that. */
static void post(const struct op *o)
{
    bool can = o->kind != READ && o->bytes <= bare.info->tx_attr->inject_size && !bare.contexts &&
               !(o->kind == WRITE && bare.no_inject);
    uint64_t flags = o->flags | (can ? FI_INJECT : FI_COMPLETION);
    double end = 0;
    if (bare.no_delivery)
        flags &= ~FI_DELIVERY_COMPLETE;
    for (unsigned i = 1; bare.usable; i++) {
        bool asks = (flags & FI_COMPLETION) != 0;
        ssize_t rc = -FI_EAGAIN;
        if (!asks || bare.used < BARE_WINDOW)
            rc = try_once(o, flags, asks ? bare.spare[bare.used] : &bare.quiet);
        if (rc == 0) {
            bare.used += asks;
            return;
        }
        if (rc == -FI_EAGAIN)
            step(i, &end);
        else if (!without(o, &flags))
            bare_lost("a post", rc);
    }
}

/* In pieces, of which the last follows the others wherever writes have an order or not. */
static void write_all(char *from, const char *to, size_t bytes, uint64_t flags)
{
    size_t most = bare.info->ep_attr->max_msg_size, at = 0;
    uint64_t early = bare.ordered ? 0 : FI_DELIVERY_COMPLETE | FI_COMPLETION;
    struct op o = {.kind = WRITE, .flags = early};
    while (bytes - at > most) {
        o.local = from + at;
        o.at = (uint64_t)(to - bare.memory) + at;
        o.bytes = most;
        post(&o);
        at += most;
    }
    if (at != 0 && !bare.ordered)
        drain();
    o = (struct op){.kind = WRITE,
                    .local = from + at,
                    .bytes = bytes - at,
                    .at = (uint64_t)(to - bare.memory) + at,
                    .flags = flags};
    post(&o);
}

/* ---- numbers ---- */

static size_t whole(size_t bytes)
{
    return bytes < 8 ? 8 : bytes & ~(size_t)7;
}

/* At the end of the bytes. Without order they go first, and elsewhere, for a late part of them must
 * not come down on a later number; nor a number on the next one, which has another place: two may
 * be under way where both ranks send. */
static size_t place(uint64_t number, size_t bytes)
{
    return bare.ordered ? bytes - 8 : 64 * (number & 1);
}

/* Write `bytes` and the number; the last one is waited for. */
static void send_number(uint64_t number, size_t bytes, bool last)
{
    uint64_t flags = last ? FI_COMPLETION : 0;
    size_t at = place(number, bytes);
    drain();
    memcpy(bare.last + at, &number, 8);
    if (bare.ordered) {
        write_all(bare.last, bare.in, bytes, flags);
    } else {
        if (bytes > 8)
            write_all(bare.out, bare.room, bytes - 8, FI_DELIVERY_COMPLETE | FI_COMPLETION);
        drain();
        write_all(bare.last + at, bare.in + at, 8, flags);
    }
    if (last)
        drain();
}

static void await_word(const void *at, uint64_t number)
{
    const uint64_t *word = at;
    double end = 0;
    for (unsigned i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < number && bare.usable; i++)
        step(i, &end);
}

static void await_number(uint64_t number, size_t bytes)
{
    await_word(bare.in + place(number, bytes), number);
}

/* ---- what a put with a weak signal is made of ---- */

static void send_message(void)
{
    struct op o = {.kind = MESSAGE, .local = bare.last, .bytes = BARE_MESSAGE};
    post(&o);
}

static void send_add(uint64_t told)
{
    struct op o = {.kind = ADD,
                   .local = (char *)bare.one,
                   .bytes = 8,
                   .at = (uint64_t)((char *)bare.word - bare.memory),
                   .flags = told | (bare.fence ? FI_FENCE : 0)};
    post(&o);
}

static void send_signal(size_t bytes)
{
    uint64_t told = bare.told ? FI_DELIVERY_COMPLETE | FI_COMPLETION : 0;
    switch (bare.shape) {
    case BARE_WRITE_IMM: write_all(bare.out, bare.room, bytes, told | FI_REMOTE_CQ_DATA); break;
    case BARE_WRITE_ADD:
        write_all(bare.out, bare.room, bytes, told);
        send_add(told);
        break;
    case BARE_WRITE_MSG:
        write_all(bare.out, bare.room, bytes, told);
        if (bare.told)
            drain();
        send_message();
        break;
    default: send_message(); break;
    }
}

static void await_signal(void)
{
    double end = 0;
    bare.awaited++;
    if (bare.shape == BARE_WRITE_ADD)
        await_word(bare.word, bare.awaited);
    for (unsigned i = 1; bare.shape != BARE_WRITE_ADD && bare.arrived < bare.awaited && bare.usable;
         i++)
        step(i, &end);
}

/* ---- measurements ---- */

static double raw_net_signal(struct perf *p, size_t bytes, long iters)
{
    bare_up(p);
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters && bare.usable; i++) {
        if (!p->lead)
            await_signal();
        send_signal(bytes);
        if (p->lead)
            await_signal();
    }
    t = perf_now_ns() - t;
    bare_leave(p);
    return bare.usable ? t / (double)iters / 2 : 0;
}

static double raw_net_write(struct perf *p, size_t bytes, long iters)
{
    bytes = whole(bytes);
    bare_up(p);
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters && bare.usable; i++) {
        bare.seq++;
        if (!p->lead)
            await_number(bare.seq, bytes);
        send_number(bare.seq, bytes, i + 1 == iters);
        if (p->lead)
            await_number(bare.seq, bytes);
    }
    t = perf_now_ns() - t;
    bare_leave(p);
    return bare.usable ? t / (double)iters / 2 : 0;
}

static double raw_net_turn(struct perf *p, size_t bytes, long iters)
{
    return 2 * raw_net_write(p, bytes, iters);
}

/* The lead does `iters` of something; its partner makes progress until it hears of the end. */
static double alone(struct perf *p, long iters, void (*one)(size_t bytes), size_t bytes)
{
    bare_up(p);
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; p->lead && i < iters && bare.usable; i++)
        one(bytes);
    t = perf_now_ns() - t;
    bare.seq++;
    if (bare.usable && p->lead)
        send_number(bare.seq, 8, true);
    if (bare.usable && !p->lead)
        await_number(bare.seq, 8);
    bare_leave(p);
    return bare.usable ? t / (double)iters : 0;
}

/* What the provider calls delivered is in the partner's memory. */
static void put_one(size_t bytes)
{
    write_all(bare.out, bare.room, bytes, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    drain();
}

static void get_one(size_t bytes)
{
    size_t most = bare.info->ep_attr->max_msg_size;
    for (size_t at = 0; at < bytes; at += most) {
        struct op o = {.kind = READ,
                       .local = bare.out + at,
                       .bytes = bytes - at < most ? bytes - at : most,
                       .at = (uint64_t)(bare.room - bare.memory) + at};
        post(&o);
    }
    drain();
}

static double raw_net_put(struct perf *p, size_t bytes, long iters)
{
    return alone(p, iters, put_one, bytes);
}

static double raw_net_get(struct perf *p, size_t bytes, long iters)
{
    return alone(p, iters, get_one, bytes);
}

/* Both write and await the other's: what a barrier of two ranks has to do. */
static double raw_net_meet(struct perf *p, size_t bytes, long iters)
{
    bytes = whole(bytes);
    bare_up(p);
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters && bare.usable; i++) {
        bare.seq++;
        send_number(bare.seq, bytes, i + 1 == iters);
        await_number(bare.seq, bytes);
    }
    t = perf_now_ns() - t;
    bare_leave(p);
    return bare.usable ? t / (double)iters : 0;
}

/* Writes without a pause; the partner answers the last, so all of them have arrived. */
static double raw_net_stream(struct perf *p, size_t bytes, long iters)
{
    bytes = whole(bytes);
    bare_up(p);
    uint64_t told = bare.ordered ? 0 : FI_DELIVERY_COMPLETE | FI_COMPLETION;
    perf_sync(p);
    double t = perf_now_ns();
    bare.seq++;
    for (long i = 1; p->lead && i < iters && bare.usable; i++)
        write_all(bare.out, bare.room, bytes, told);
    if (bare.usable && !p->lead)
        await_number(bare.seq, bytes);
    if (bare.usable)
        send_number(bare.seq, p->lead ? bytes : 8, true);
    if (bare.usable && p->lead)
        await_number(bare.seq, 8);
    t = perf_now_ns() - t;
    bare_leave(p);
    return bare.usable ? t / (double)iters : 0;
}

const struct perf_op perf_fabric[] = {
    {"raw_net_write", "libfabric's write and the partner's, one way", PERF_NS, true, true,
     raw_net_write, 5000},
    {"raw_net_signal", "what a put of 8 bytes and its weak signal are made of, one way", PERF_NS,
     false, true, raw_net_signal, 5000},
    {"raw_net_put", "libfabric's write until it is delivered", PERF_NS, true, true, raw_net_put,
     5000},
    {"raw_net_get", "libfabric's read", PERF_NS, true, true, raw_net_get, 5000},
    {"raw_net_turn", "libfabric's write and the partner's, there and back", PERF_NS, true, true,
     raw_net_turn, 5000},
    {"raw_net_meet", "libfabric's write and the partner's at once, until both are there", PERF_NS,
     true, true, raw_net_meet, 5000},
    {"raw_net_rate", "libfabric's writes of 8 bytes", PERF_MOPS, false, true, raw_net_stream,
     100000},
    {"raw_net_bw", "bandwidth of libfabric's writes", PERF_MBPS, true, true, raw_net_stream, 20000},
    {NULL, NULL, PERF_NS, false, true, NULL, 0},
};
