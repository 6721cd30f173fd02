/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric and a domain of libfabric: found, opened, its record filled and tested. */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

static void domain_close(struct gi_net_domain *head)
{
    struct gi_ofi_domain *d = gi_ofi_domain(head);
    gi_ofi_target_close(d);
    int rc = fi_close(&d->domain->fid);
    if (rc != 0) /* something of it is still open: a leak, but no harm */
        gi_warn("ofi", "%s: closing the domain: %s", d->caps.name, fi_strerror(-rc));
    fi_close(&d->fabric->fid);
    gi_ofi_unpick(&d->pick);
    free(d);
}

static int open_objects(struct gi_ofi_domain *d)
{
    struct fi_info *i = d->pick.info;
    int rc = fi_fabric(i->fabric_attr, &d->fabric, NULL);
    if (rc != 0)
        return gi_fail(GIN_ENET, "opening the fabric of %s: %s", d->pick.text, fi_strerror(-rc));
    rc = fi_domain(d->fabric, i, &d->domain, NULL);
    if (rc != 0) {
        fi_close(&d->fabric->fid);
        return gi_fail(GIN_ENET, "opening the domain of %s: %s", d->pick.text, fi_strerror(-rc));
    }
    return GIN_OK;
}

/* A queue that can be slept on; only opening one tells. */
static void probe_wait(struct gi_ofi_domain *d)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD, .size = 16};
    struct fid_cq *cq;
    int fd = -1;
    if (fi_cq_open(d->domain, &attr, &cq, NULL) != 0)
        return;
    d->caps.wait_fd = fi_control(&cq->fid, FI_GETWAIT, &fd) == 0 && fd >= 0;
    fi_close(&cq->fid);
}

/* What the lanes and registrations of this folder cannot do. */
static int check_supported(const struct gi_ofi_domain *d)
{
    const struct fi_info *i = d->pick.info;
    if (i->domain_attr->threading != FI_THREAD_SAFE)
        return gi_fail(GIN_ENOTSUP, "%s cannot be used by several threads at a time", d->pick.text);
    if (d->caps.msg_max < 64)
        return gi_fail(GIN_ENOTSUP, "messages of %s have at most %u bytes; 64 are needed",
                       d->pick.text, d->caps.msg_max);
    return GIN_OK;
}

/* Without atomics a layer over connected endpoints does better: its immediates take no receive. */
static int check_worth(const struct gi_ofi_domain *d)
{
    if (!d->connected || d->pick.named || d->caps.amo == GI_NET_AMO_NATIVE)
        return GIN_OK;
    return gi_fail(GIN_ENOTSUP, "%s has no atomics that work", d->pick.text);
}

/* With what was picked, which it takes over even if it fails. */
static int try_pick(const struct gi_net_config *config, const struct gi_ofi_pick *pick,
                    struct gi_net_domain **domain)
{
    const struct gi_ofi_more *more = config->more;
    struct gi_ofi_domain *d = calloc(1, sizeof(*d));
    int st = GIN_OK;
    if (d == NULL) {
        gi_ofi_unpick(&(struct gi_ofi_pick){.info = pick->info});
        return gi_fail(GIN_ENOMEM, "no memory for a network domain");
    }
    d->head.ops = &gi_ofi_ops;
    d->rank = config->rank;
    d->size = config->size;
    d->pick = *pick;
    d->dmabuf = more != NULL && more->dmabuf;
    gi_ofi_fill_caps(d);
    st = check_supported(d);
    if (st == GIN_OK)
        st = open_objects(d);
    if (st != GIN_OK) {
        gi_ofi_unpick(&d->pick);
        free(d);
        return st;
    }
    if (!d->connected) /* requests to connect come by another queue */
        probe_wait(d);
    gi_ofi_apply_quirks(d);
    gi_ofi_probe_calls(d);
    st = gi_ofi_target_open(d);
    if (st == GIN_OK)
        st = gi_ofi_share_receives(d);
    if (st == GIN_OK && config->self_test)
        st = gi_ofi_self_test(d);
    if (st == GIN_OK)
        st = check_worth(d);
    if (st == GIN_OK && more != NULL && more->refuse != NULL &&
        strcmp(more->refuse, pick->name) == 0)
        st = gi_fail(GIN_ENET, "%s was made to fail", d->pick.text);
    if (st != GIN_OK) {
        domain_close(&d->head);
        return st;
    }
    *domain = &d->head;
    return GIN_OK;
}

/* One that is there may still be of no use here: then the next of the list. */
static int domain_open(const struct gi_net_config *config, struct gi_net_domain **domain)
{
    const struct gi_ofi_more *more = config->more;
    struct gi_ofi_want want = {.provider = config->provider,
                               .nic = config->nic,
                               .ranks = config->size,
                               .hmem = config->gpu,
                               .atomics = config->any_atomics,
                               .names = more != NULL ? more->names : NULL};
    struct gi_ofi_tried absent = {.text = ""}, useless = {.text = ""};
    struct gi_ofi_pick pick;
    size_t at = 0;
    int st, first = GIN_OK;
    while ((st = gi_ofi_pick(&want, &at, &absent, &pick)) == GIN_OK) {
        st = try_pick(config, &pick, domain);
        if (st == GIN_OK)
            break;
        if (st == GIN_ENOMEM || pick.named)
            return st;
        first = first == GIN_OK ? st : first;
        gi_ofi_tried(&useless, pick.name, gin_last_error());
        gi_ofi_tried(&absent, pick.name, gin_last_error());
        gi_info("ofi", "passed over: %s", gin_last_error());
    }
    if (st != GIN_OK)
        return first == GIN_OK
                   ? st
                   : gi_fail(first, "no libfabric provider works here (%s)", absent.text);
    struct gi_ofi_domain *d = gi_ofi_domain(*domain);
    if (useless.text[0] != 0)
        gi_ofi_note(d, "passed over: %s", useless.text);
    gi_info("ofi", "network over %s", d->pick.text);
    return GIN_OK;
}

static const struct gi_net_caps *domain_caps(struct gi_net_domain *d)
{
    return &gi_ofi_domain(d)->caps;
}

const struct gi_net_ops gi_ofi_ops = {
    .kind = "ofi",
    .open = domain_open,
    .close = domain_close,
    .caps = domain_caps,
    .reg = gi_ofi_reg,
    .dereg = gi_ofi_dereg,
    .lane_open = gi_ofi_lane_open,
    .lane_close = gi_ofi_lane_close,
    .name = gi_ofi_name,
    .connect = gi_ofi_connect,
    .write = gi_ofi_write,
    .read = gi_ofi_read,
    .amo_add = gi_ofi_amo_add,
    .msg = gi_ofi_msg,
    .progress = gi_ofi_progress,
    .progress_fd = gi_ofi_progress_fd,
    .cancel_peer = gi_ofi_cancel_peer,
    .part = gi_ofi_part,
};
