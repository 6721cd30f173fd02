/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends poll their queues all the time, which is what providers without progress of their own
 * need. Words are numbers that grow; whoever waits for one polls the memory it is written to.
 */
#include "tests/gpu/bench/raw.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_NS 20e9 /* an end that is silent for so long is lost */

struct end {
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    fi_addr_t peer;
    uint64_t base;   /* of the other's memory, and */
    uint64_t key;    /* its key */
    char *in, *out;  /* bytes each */
    uint64_t number; /* last one sent or awaited */
    unsigned under_way;
    struct fi_context2 asked, quiet; /* of posts with and without a completion */
};

struct raw {
    struct fi_info *info;
    size_t bytes;
    struct end end[2];
    bool broken; /* written by either thread, looked at by both */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool is_broken(const struct raw *r)
{
    return __atomic_load_n(&r->broken, __ATOMIC_RELAXED);
}

static void break_it(struct raw *r, const char *what, long rc)
{
    if (!is_broken(r))
        fprintf(stderr, "raw: %s: %s\n", what, rc < 0 ? fi_strerror((int)-rc) : "no answer");
    __atomic_store_n(&r->broken, true, __ATOMIC_RELAXED);
}

/* ---- coming and going ---- */

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
    h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_WAW;
    if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &list) != 0)
        list = NULL;
    for (struct fi_info *i = list; i != NULL && found == NULL; i = i->next)
        if (strcmp(i->fabric_attr->prov_name, provider) == 0)
            found = fi_dupinfo(i);
    fi_freeinfo(list);
    fi_freeinfo(h);
    return found;
}

static bool end_open(struct raw *r, struct end *e, uint64_t key)
{
    const uint64_t all = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE, .size = 4096};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    e->in = aligned_alloc(4096, (2 * r->bytes + 4095) & ~(size_t)4095);
    if (e->in == NULL)
        return false;
    memset(e->in, 0, 2 * r->bytes);
    e->out = e->in + r->bytes;
    return fi_fabric(r->info->fabric_attr, &e->fabric, NULL) == 0 &&
           fi_domain(e->fabric, r->info, &e->domain, NULL) == 0 &&
           fi_cq_open(e->domain, &cq, &e->cq, NULL) == 0 &&
           fi_av_open(e->domain, &av, &e->av, NULL) == 0 &&
           fi_endpoint(e->domain, r->info, &e->ep, NULL) == 0 &&
           fi_ep_bind(e->ep, &e->av->fid, 0) == 0 &&
           fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION) == 0 &&
           fi_ep_bind(e->ep, &e->cq->fid, FI_RECV) == 0 && fi_enable(e->ep) == 0 &&
           fi_mr_reg(e->domain, e->in, 2 * r->bytes, all, 0, key, 0, &e->mr, NULL) == 0;
}

static bool meet(struct raw *r, struct end *e, struct end *other)
{
    char name[256];
    size_t room = sizeof(name);
    e->key = fi_mr_key(other->mr);
    if (r->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        e->base = (uint64_t)(uintptr_t)other->in;
    return fi_getname(&other->ep->fid, name, &room) == 0 &&
           fi_av_insert(e->av, name, 1, &e->peer, 0, NULL) == 1;
}

static void end_close(struct end *e)
{
    struct fid *all[] = {
        e->ep != NULL ? &e->ep->fid : NULL,         e->mr != NULL ? &e->mr->fid : NULL,
        e->cq != NULL ? &e->cq->fid : NULL,         e->av != NULL ? &e->av->fid : NULL,
        e->domain != NULL ? &e->domain->fid : NULL, e->fabric != NULL ? &e->fabric->fid : NULL};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] != NULL)
            fi_close(all[i]);
    free(e->in);
}

void raw_close(struct raw *r)
{
    if (r == NULL)
        return;
    end_close(&r->end[0]);
    end_close(&r->end[1]);
    fi_freeinfo(r->info);
    free(r);
}

struct raw *raw_open(const char *provider, size_t bytes)
{
    char layered[100];
    struct raw *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    snprintf(layered, sizeof(layered), "%s;ofi_rxm", provider);
    r->bytes = bytes;
    r->info = find(provider);
    if (r->info == NULL)
        r->info = find(layered);
    if (r->info != NULL && end_open(r, &r->end[0], 1) && end_open(r, &r->end[1], 2) &&
        meet(r, &r->end[0], &r->end[1]) && meet(r, &r->end[1], &r->end[0]))
        return r;
    fprintf(stderr, "raw: %s: %s\n", provider, r->info != NULL ? "does not come up" : "not here");
    raw_close(r);
    return NULL;
}

const char *raw_name(const struct raw *r)
{
    return r->info->fabric_attr->prov_name;
}

/* ---- writes ---- */

/* Some providers report what nobody asked for: only posts that asked are counted. */
static void look(struct raw *r, struct end *e)
{
    struct fi_cq_data_entry got[16];
    ssize_t n = fi_cq_read(e->cq, got, 16);
    for (ssize_t i = 0; i < n; i++)
        e->under_way -= got[i].op_context == &e->asked;
    if (n < 0 && n != -FI_EAGAIN)
        break_it(r, "completions", n);
}

static void post(struct raw *r, struct end *e, size_t bytes, bool ask)
{
    bool small = bytes <= r->info->tx_attr->inject_size;
    void *desc = fi_mr_desc(e->mr);
    struct iovec iov = {.iov_base = e->out, .iov_len = bytes};
    struct fi_rma_iov to = {.addr = e->base, .len = bytes, .key = e->key};
    struct fi_msg_rma m = {.msg_iov = &iov,
                           .desc = &desc,
                           .iov_count = 1,
                           .addr = e->peer,
                           .rma_iov = &to,
                           .rma_iov_count = 1,
                           .context = ask || !small ? &e->asked : &e->quiet};
    uint64_t flags = (small ? FI_INJECT : 0) | (ask || !small ? FI_COMPLETION : 0);
    double end = now_ns() + LIMIT_NS;
    ssize_t rc;
    for (unsigned i = 1; (rc = fi_writemsg(e->ep, &m, flags)) == -FI_EAGAIN && !is_broken(r); i++) {
        look(r, e);
        if (i % 4096 == 0 && now_ns() > end)
            break;
    }
    if (rc != 0)
        break_it(r, "a write", rc);
    else if (flags & FI_COMPLETION)
        e->under_way++;
}

static void drain(struct raw *r, struct end *e, unsigned most)
{
    while (e->under_way > most && !is_broken(r))
        look(r, e);
}

static void send_number(struct raw *r, struct end *e, size_t bytes, bool last)
{
    drain(r, e, 0); /* the source is free */
    memcpy(e->out + bytes - 8, &e->number, 8);
    post(r, e, bytes, last);
    if (last)
        drain(r, e, 0);
}

static void await(struct raw *r, struct end *e, size_t bytes)
{
    const uint64_t *word = (const uint64_t *)(const void *)(e->in + bytes - 8);
    double end = now_ns() + LIMIT_NS;
    for (unsigned i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < e->number && !is_broken(r);
         i++) {
        look(r, e);
        if (i % 4096 == 0 && now_ns() > end)
            break_it(r, "a number", 0);
    }
}

double raw_pingpong(struct raw *r, int end, size_t bytes, long iters)
{
    struct end *e = &r->end[end];
    double t = now_ns();
    for (long i = 0; i < iters && !is_broken(r); i++) {
        e->number++;
        if (end == 1)
            await(r, e, bytes);
        send_number(r, e, bytes, i + 1 == iters);
        if (end == 0)
            await(r, e, bytes);
    }
    t = now_ns() - t;
    return is_broken(r) ? 0 : t / (double)iters / 2;
}

double raw_stream(struct raw *r, int end, size_t bytes, long iters, unsigned window)
{
    struct end *e = &r->end[end];
    double t = now_ns();
    e->number++;
    for (long i = 1; end == 0 && i < iters && !is_broken(r); i++) {
        drain(r, e, window - 1);
        post(r, e, bytes, false);
    }
    if (end == 1) /* all of them are here, since the last one is */
        await(r, e, bytes);
    send_number(r, e, end == 0 ? bytes : 8, true);
    if (end == 0)
        await(r, e, 8);
    t = now_ns() - t;
    return is_broken(r) ? 0 : t / (double)iters;
}
