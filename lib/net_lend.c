/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local memory that no registration covers, for networks that want one: registered for one
 * operation, until that is complete, and then given back by whoever polls. A registration that
 * lived longer would be a cache, and might outlive the memory: the program may unmap it once the
 * operation is complete, and map other memory there. Providers whose registrations are dear watch
 * the mappings and cache them below; they are the ones who can.
 *
 * Where an operation fails, the network may still be reading or writing: then the registration
 * lives as long as the device communicator's contexts. Loans are used again, and freed with it.
 */
#include <stdlib.h>

#include "net_lend.h"

struct gi_net_loan {
    struct gi_core_notice notice; /* first */
    gin_comm_t *comm;
    struct gi_core_region *region;
    struct gi_net_loan *next; /* of all of the device communicator */
    int taken;
};

static void end(struct gi_net_loan *loan)
{
    gi_core_region_close(loan->comm->net->core, loan->region);
    loan->region = NULL;
    __atomic_store_n(&loan->taken, 0, __ATOMIC_RELEASE);
}

static void complete(struct gi_core_notice *n, int status)
{
    if (status == GIN_OK)
        end((struct gi_net_loan *)(void *)n);
}

static struct gi_net_loan *take(struct gi_devcomm *d)
{
    struct gi_net_loan *l = __atomic_load_n(&d->net_loans, __ATOMIC_ACQUIRE);
    for (; l != NULL; l = l->next)
        if (__atomic_load_n(&l->taken, __ATOMIC_RELAXED) == 0 &&
            __atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE) == 0)
            return l;
    l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    *l = (struct gi_net_loan){.notice.fn = complete, .comm = d->comm, .taken = 1};
    l->next = __atomic_load_n(&d->net_loans, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&d->net_loans, &l->next, l, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        continue;
    return l;
}

int gi_net_lend(struct gi_devcomm *d, struct gi_net_mine *m)
{
    gin_comm_t *comm = d->comm;
    const struct gi_core_region_config c = {
        .memory = {.kind = GI_NET_HOST, .addr = m->addr, .bytes = m->bytes, .fd = -1}};
    m->copy = false;
    m->region = NULL;
    m->loan = NULL;
    if (m->bytes == 0 || !comm->net->needs_region)
        return GIN_OK;
    m->region = gi_net_region_of(comm, m->addr, m->bytes);
    m->copy = m->region == NULL && m->bytes <= m->most_copied;
    if (m->region != NULL || m->copy)
        return GIN_OK;
    struct gi_net_loan *l = take(d);
    if (l == NULL)
        return gi_fail(GIN_ENOMEM, "no memory to register local memory");
    int st = gi_core_local_open(comm->net->core, &c, &l->region);
    if (st != GIN_OK) {
        __atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE);
        return st;
    }
    m->region = l->region;
    m->loan = l;
    return GIN_OK;
}

struct gi_core_notice *gi_net_loan_notice(struct gi_net_loan *loan)
{
    return loan != NULL ? &loan->notice : NULL;
}

void gi_net_loan_undo(struct gi_net_loan *loan)
{
    if (loan != NULL)
        end(loan);
}

void gi_net_lend_close(struct gi_devcomm *d)
{
    while (d->net_loans != NULL) {
        struct gi_net_loan *l = d->net_loans;
        d->net_loans = l->next;
        if (l->region != NULL)
            gi_core_region_close(d->comm->net->core, l->region);
        free(l);
    }
}
