/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault wrapper's domain: its plan and its dice, and the calls that are passed on, or fail
 * because the plan says so.
 */
#include "transport/fault/fault_int.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"

/* xorshift64* */
static uint64_t roll(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

uint64_t gi_fault_below(struct fault_domain *d, uint64_t below)
{
    pthread_mutex_lock(&d->lock);
    uint64_t n = roll(&d->random) >> 11;
    pthread_mutex_unlock(&d->lock);
    return n % below;
}

int gi_fault_call(struct fault_domain *d, enum gi_fault_call call)
{
    int st = GIN_OK;
    pthread_mutex_lock(&d->lock);
    uint32_t n = ++d->calls[call], first = d->plan.first[call];
    if (first != 0 && n >= first && n - first < d->plan.count[call])
        st = d->plan.status[call];
    pthread_mutex_unlock(&d->lock);
    return st;
}

void gi_fault_uncount(struct fault_domain *d, enum gi_fault_call call)
{
    pthread_mutex_lock(&d->lock);
    d->calls[call] -= d->calls[call] != 0;
    pthread_mutex_unlock(&d->lock);
}

void gi_fault_plan_now(struct fault_domain *d, struct gi_fault_plan *plan)
{
    pthread_mutex_lock(&d->lock);
    *plan = d->plan;
    pthread_mutex_unlock(&d->lock);
}

void gi_fault_set(struct gi_net_domain *domain, const struct gi_fault_plan *plan)
{
    struct fault_domain *d = (struct fault_domain *)domain;
    pthread_mutex_lock(&d->lock);
    d->plan = *plan;
    d->plan.inner = d->inner;
    memset(d->calls, 0, sizeof(d->calls));
    gi_fault_see_plain(d);
    pthread_mutex_unlock(&d->lock);
}

void gi_fault_peer(struct gi_net_domain *domain, int peer, enum gi_fault_peer how)
{
    struct fault_domain *d = (struct fault_domain *)domain;
    __atomic_store_n(&d->peer[peer], (uint8_t)how, __ATOMIC_RELAXED);
}

static int fault_open(const struct gi_net_config *config, struct gi_net_domain **domain)
{
    const struct gi_fault_plan *plan = config->more;
    struct fault_domain *d = calloc(1, sizeof(*d));
    uint8_t *peer = calloc((size_t)config->size, 1);
    if (d == NULL || peer == NULL) {
        free(d);
        free(peer);
        return gi_fail(GIN_ENOMEM, "no memory for the fault wrapper");
    }
    d->head.ops = &gi_fault_ops;
    d->inner = plan->inner;
    d->plan = *plan;
    d->size = config->size;
    d->peer = peer;
    d->own = d->inner->ops->caps(d->inner);
    d->caps = plan->caps != NULL ? *plan->caps : *d->own;
    gi_fault_see_plain(d);
    d->random = plan->seed * 0x9e3779b97f4a7c15ull + (uint64_t)config->rank + 1;
    pthread_mutex_init(&d->lock, NULL);
    *domain = &d->head;
    return GIN_OK;
}

static void fault_close(struct gi_net_domain *domain)
{
    struct fault_domain *d = (struct fault_domain *)domain;
    if (d->owner)
        d->inner->ops->close(d->inner);
    pthread_mutex_destroy(&d->lock);
    free(d->peer);
    free(d);
}

static const struct gi_net_caps *fault_caps(struct gi_net_domain *domain)
{
    return &((struct fault_domain *)domain)->caps;
}

/* Memory of a device that the inner network takes for the host's. */
static int check_device(struct fault_domain *d, struct gi_net_memory_desc *m)
{
    uint64_t page = gi_os_page_size(), start = (uint64_t)(uintptr_t)m->addr - m->fd_off;
    bool buffer = m->kind == GI_NET_DMABUF;
    if (buffer ? !d->caps.mr_dmabuf : !d->caps.mr_hmem)
        return gi_fail(GIN_ENOTSUP, "%s cannot register GPU memory %s", d->caps.name,
                       buffer ? "as DMA-BUF" : "by its pointer");
    if (buffer && (m->fd < 0 || m->fd_off >= page || start % page != 0))
        return gi_fail(GIN_EINVAL, "memory at %p is not %llu bytes into a DMA-BUF of whole pages",
                       m->addr, (unsigned long long)m->fd_off);
    m->kind = GI_NET_HOST;
    return GIN_OK;
}

static int fault_reg(struct gi_net_domain *domain, const struct gi_net_memory_desc *memory,
                     struct gi_net_mr **mr)
{
    struct fault_domain *d = (struct fault_domain *)domain;
    int st = gi_fault_call(d, GI_FAULT_REG);
    if (st != GIN_OK)
        return gi_fail(st, "a registration was made to fail");
    struct gi_net_memory_desc m = *memory;
    st = m.kind != GI_NET_HOST ? check_device(d, &m) : GIN_OK;
    return st == GIN_OK ? d->inner->ops->reg(d->inner, &m, mr) : st;
}

static void fault_dereg(struct gi_net_domain *domain, struct gi_net_mr *mr)
{
    struct fault_domain *d = (struct fault_domain *)domain;
    d->inner->ops->dereg(d->inner, mr);
}

const struct gi_net_ops gi_fault_ops = {.kind = "fault",
                                        .open = fault_open,
                                        .close = fault_close,
                                        .caps = fault_caps,
                                        .reg = fault_reg,
                                        .dereg = fault_dereg,
                                        .lane_open = gi_fault_lane_open,
                                        .lane_close = gi_fault_lane_close,
                                        .name = gi_fault_name,
                                        .connect = gi_fault_connect,
                                        .write = gi_fault_write,
                                        .read = gi_fault_read,
                                        .amo_add = gi_fault_amo_add,
                                        .msg = gi_fault_msg,
                                        .progress = gi_fault_progress,
                                        .progress_fd = gi_fault_progress_fd,
                                        .cancel_peer = gi_fault_cancel_peer,
                                        .part = gi_fault_part};
