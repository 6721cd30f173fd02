/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare network, measured beside the operations: libfabric's own calls between the same two
 * processes, with nothing of the library but the exchange of addresses. GINSHMEM_PROVIDER names the
 * provider; otherwise tcp, net and tcp;ofi_rxm are tried in this order.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/tools/ginperf.h"

#define LIMIT_NS 20e9 /* a partner that is silent for so long is lost */
#define WINDOW   64   /* writes under way whose completion is asked for */

struct card {
    uint64_t key, base, ok;
    char name[232];
};

static struct {
    bool tried, usable;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    fi_addr_t peer;
    struct card other;
    char *in, *out, *last; /* max_bytes each: written by the partner, sources */
    uint64_t seq;          /* last number sent or awaited */
    unsigned under_way;
    struct fi_context2 context, quiet; /* of posts with and without a completion */
} net;

static struct fi_info *find(const char *provider)
{
    struct fi_info *h = fi_allocinfo(), *list = NULL, *found = NULL;
    if (h == NULL)
        return NULL;
    h->fabric_attr->prov_name = strdup(provider);
    h->caps = FI_MSG | FI_RMA;
    h->mode = FI_CONTEXT | FI_CONTEXT2;
    h->ep_attr->type = FI_EP_RDM;
    h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    h->domain_attr->threading = FI_THREAD_SAFE;
    h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_WAW | FI_ORDER_SAW;
    if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &list) != 0)
        list = NULL;
    for (struct fi_info *i = list; i != NULL && found == NULL; i = i->next)
        if (strcmp(i->fabric_attr->prov_name, provider) == 0)
            found = fi_dupinfo(i);
    fi_freeinfo(list);
    fi_freeinfo(h);
    return found;
}

static int open_objects(size_t bytes)
{
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE, .size = 4096};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    size_t all = 3 * bytes;
    net.in = aligned_alloc(4096, (all + 4095) & ~(size_t)4095);
    if (net.in == NULL || fi_fabric(net.info->fabric_attr, &net.fabric, NULL) != 0)
        return -1;
    memset(net.in, 0, all);
    net.out = net.in + bytes;
    net.last = net.out + bytes;
    if (fi_domain(net.fabric, net.info, &net.domain, NULL) != 0 ||
        fi_cq_open(net.domain, &cq, &net.cq, NULL) != 0 ||
        fi_av_open(net.domain, &av, &net.av, NULL) != 0 ||
        fi_endpoint(net.domain, net.info, &net.ep, NULL) != 0)
        return -1;
    if (fi_ep_bind(net.ep, &net.av->fid, 0) != 0 ||
        fi_ep_bind(net.ep, &net.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION) != 0 ||
        fi_ep_bind(net.ep, &net.cq->fid, FI_RECV) != 0 || fi_enable(net.ep) != 0)
        return -1;
    return fi_mr_reg(net.domain, net.in, all, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
                     0, 4711, 0, &net.mr, NULL);
}

/* The shm provider would leave a file behind. Not at exit(): some providers call that from a
 * signal's handler, in the middle of a call that holds their locks. */
void perf_fabric_close(void)
{
    struct fid *all[] = {
        net.ep != NULL ? &net.ep->fid : NULL,         net.mr != NULL ? &net.mr->fid : NULL,
        net.cq != NULL ? &net.cq->fid : NULL,         net.av != NULL ? &net.av->fid : NULL,
        net.domain != NULL ? &net.domain->fid : NULL, net.fabric != NULL ? &net.fabric->fid : NULL};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] != NULL)
            fi_close(all[i]);
    fi_freeinfo(net.info);
    free(net.in);
}

static bool open_net(size_t bytes)
{
    static const char *const names[] = {"tcp", "net", "tcp;ofi_rxm"};
    const char *mine = getenv("GINSHMEM_PROVIDER");
    if (mine != NULL && *mine != 0)
        net.info = find(mine);
    else
        for (size_t i = 0; i < 3 && net.info == NULL; i++)
            net.info = find(names[i]);
    return net.info != NULL && open_objects(bytes) == 0;
}

/* Cards travel by a put into the partner's heap. All ranks. */
static void up(struct perf *p, size_t bytes)
{
    struct card mine = {0};
    size_t room = sizeof(mine.name);
    if (net.tried)
        return;
    net.tried = true;
    if (p->max_bytes >= sizeof(mine) && open_net(bytes) &&
        fi_getname(&net.ep->fid, mine.name, &room) == 0) {
        mine.ok = 1;
        mine.key = fi_mr_key(net.mr);
        if (net.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
            mine.base = (uint64_t)(uintptr_t)net.in;
    }
    perf_sync(p);
    if (p->peer >= 0 && p->max_bytes >= sizeof(mine)) {
        gin_at_t dst = gin_at(p->win, p->heap_off);
        gin_put(&p->g, gin_thread(), p->world, p->peer, dst, gin_at_local(&mine), sizeof(mine),
                gin_no_action());
        gin_quiet(&p->g, gin_thread());
    }
    perf_sync(p);
    if (p->peer < 0 || p->all || !mine.ok)
        return;
    memcpy(&net.other, p->heap, sizeof(net.other));
    net.usable =
        net.other.ok == 1 && fi_av_insert(net.av, net.other.name, 1, &net.peer, 0, NULL) == 1;
}

/* Some providers report what nobody asked for: only posts that asked are counted. */
static void poll_queue(void)
{
    struct fi_cq_data_entry e[16];
    ssize_t n = fi_cq_read(net.cq, e, 16);
    for (ssize_t i = 0; i < n; i++)
        net.under_way -= e[i].op_context == &net.context;
    if (n < 0 && n != -FI_EAGAIN)
        net.usable = false;
}

/* A partner that shares this core answers only if it gets it: without the yield a wait would take
 * a whole time slice of the scheduler, and no figure of that round would mean anything. */
static void poll_or_yield(unsigned i)
{
    poll_queue();
    if (i % 1024 == 0)
        sched_yield();
}

static void post(void *from, size_t bytes, uint64_t flags)
{
    void *desc = fi_mr_desc(net.mr);
    struct iovec iov = {.iov_base = from, .iov_len = bytes};
    struct fi_rma_iov to = {.addr = net.other.base, .len = bytes, .key = net.other.key};
    struct fi_msg_rma m = {.msg_iov = &iov,
                           .desc = &desc,
                           .iov_count = 1,
                           .addr = net.peer,
                           .rma_iov = &to,
                           .rma_iov_count = 1,
                           .context = flags & FI_COMPLETION ? &net.context : &net.quiet};
    double end = perf_now_ns() + LIMIT_NS;
    ssize_t rc;
    for (unsigned i = 1; (rc = fi_writemsg(net.ep, &m, flags)) == -FI_EAGAIN && net.usable; i++) {
        poll_or_yield(i);
        if (i % 4096 == 0 && perf_now_ns() > end)
            net.usable = false;
    }
    if (rc != 0)
        net.usable = false;
    else if (flags & FI_COMPLETION)
        net.under_way++;
}

static void drain(void)
{
    for (unsigned i = 1; net.under_way != 0 && net.usable; i++)
        poll_or_yield(i);
}

/* Write `bytes` that end in the number; short ones need no completion, unless this rank makes no
 * progress afterwards. */
static void send_number(uint64_t number, size_t bytes, bool last)
{
    bool small = bytes <= net.info->tx_attr->inject_size;
    drain();
    memcpy(net.last + bytes - 8, &number, 8);
    post(net.last, bytes, (small ? FI_INJECT : 0) | (!small || last ? FI_COMPLETION : 0));
    if (last)
        drain();
}

static void await_number(uint64_t number, size_t bytes)
{
    const uint64_t *word = (const uint64_t *)(const void *)(net.in + bytes - 8);
    double end = perf_now_ns() + LIMIT_NS;
    for (unsigned i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < number && net.usable; i++) {
        poll_or_yield(i);
        if (i % 4096 == 0 && perf_now_ns() > end)
            net.usable = false;
    }
}

static double pingpong(struct perf *p, size_t bytes, long iters)
{
    bytes = bytes < 8 ? 8 : bytes & ~(size_t)7;
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters && net.usable; i++) {
        net.seq++;
        if (!p->lead)
            await_number(net.seq, bytes);
        send_number(net.seq, bytes, i + 1 == iters);
        if (p->lead)
            await_number(net.seq, bytes);
    }
    t = perf_now_ns() - t;
    perf_sync(p);
    return net.usable ? t / (double)iters / 2 : 0;
}

static double raw_net_write(struct perf *p, size_t bytes, long iters)
{
    up(p, p->max_bytes);
    return pingpong(p, bytes, iters);
}

/* The lead does `iters` of something; its partner makes progress until it hears of the end. */
static double alone(struct perf *p, long iters, void (*one)(size_t bytes), size_t bytes)
{
    up(p, p->max_bytes);
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; p->lead && i < iters && net.usable; i++)
        one(bytes);
    t = perf_now_ns() - t;
    net.seq++;
    if (net.usable && p->lead)
        send_number(net.seq, 8, true);
    if (net.usable && !p->lead)
        await_number(net.seq, 8);
    perf_sync(p);
    return net.usable ? t / (double)iters : 0;
}

/* What the provider calls delivered is in the partner's memory. */
static void put_one(size_t bytes)
{
    bool small = bytes <= net.info->tx_attr->inject_size;
    post(net.out, bytes, FI_COMPLETION | FI_DELIVERY_COMPLETE | (small ? FI_INJECT : 0));
    drain();
}

static void get_one(size_t bytes)
{
    void *desc = fi_mr_desc(net.mr);
    struct iovec iov = {.iov_base = net.out, .iov_len = bytes};
    struct fi_rma_iov from = {.addr = net.other.base, .len = bytes, .key = net.other.key};
    struct fi_msg_rma m = {.msg_iov = &iov,
                           .desc = &desc,
                           .iov_count = 1,
                           .addr = net.peer,
                           .rma_iov = &from,
                           .rma_iov_count = 1,
                           .context = &net.context};
    double end = perf_now_ns() + LIMIT_NS;
    ssize_t rc;
    for (unsigned i = 1;
         (rc = fi_readmsg(net.ep, &m, FI_COMPLETION)) == -FI_EAGAIN && perf_now_ns() < end; i++)
        poll_or_yield(i);
    if (rc != 0)
        net.usable = false;
    else
        net.under_way++;
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

static double raw_net_turn(struct perf *p, size_t bytes, long iters)
{
    up(p, p->max_bytes);
    return 2 * pingpong(p, bytes, iters);
}

/* Both write and await the other's: what a barrier of two ranks has to do. */
static double raw_net_meet(struct perf *p, size_t bytes, long iters)
{
    up(p, p->max_bytes);
    bytes = bytes < 8 ? 8 : bytes & ~(size_t)7;
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters && net.usable; i++) {
        net.seq++;
        send_number(net.seq, bytes, i + 1 == iters);
        await_number(net.seq, bytes);
    }
    t = perf_now_ns() - t;
    perf_sync(p);
    return net.usable ? t / (double)iters : 0;
}

/* Writes without a pause; the partner answers the last, so all of them have arrived. */
static double raw_net_stream(struct perf *p, size_t bytes, long iters)
{
    up(p, p->max_bytes);
    bytes = bytes < 8 ? 8 : bytes & ~(size_t)7;
    bool small = net.usable && bytes <= net.info->tx_attr->inject_size;
    perf_sync(p);
    double t = perf_now_ns();
    net.seq++;
    for (long i = 1; p->lead && i < iters && net.usable; i++) {
        for (unsigned k = 1; net.under_way >= WINDOW && net.usable; k++)
            poll_or_yield(k);
        post(net.out, bytes, small ? FI_INJECT : FI_COMPLETION);
    }
    if (net.usable && !p->lead)
        await_number(net.seq, bytes);
    if (net.usable)
        send_number(net.seq, p->lead ? bytes : 8, true);
    if (net.usable && p->lead)
        await_number(net.seq, 8);
    t = perf_now_ns() - t;
    drain();
    perf_sync(p);
    return net.usable ? t / (double)iters : 0;
}

const struct perf_op perf_fabric[] = {
    {"raw_net_write", "libfabric's write and the partner's, one way", PERF_NS, true, true,
     raw_net_write, 5000},
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
