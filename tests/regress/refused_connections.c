/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connected endpoints (NAME-msg) that lack something for a while, here or at the peer: the
 * connection is begun again, and nothing is lost or said twice; what was refused once comes again
 * for one direction, and the peer makes another one. What is lacked for ever ends, with a status. A
 * lane that closes refuses requests that nobody has read.
 */
#include <stdio.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "tests/providers/bed.h"
#include "transport/ofi/ofi_conn.h"

/* What the domain's endpoints lack, and how often; set before any connection is begun. */
static __thread struct {
    struct fi_ops_domain ops, *real;
    unsigned asked, answered; /* still to fail: endpoints to connect by, endpoints to accept with */
    bool late;                /* it is made, and cannot be enabled */
} lack;

static int not_enabled(struct fid *fid, int command, void *arg)
{
    (void)fid, (void)arg;
    return command == FI_ENABLE ? -FI_ENOMEM : -FI_ENOSYS;
}

static int endpoint(struct fid_domain *d, struct fi_info *info, struct fid_ep **ep, void *context)
{
    static __thread struct fi_ops ops;
    unsigned *left = info->handle != NULL ? &lack.answered : &lack.asked;
    bool fails = *left > 0;
    *left -= fails;
    if (fails && !lack.late)
        return -FI_EMFILE;
    int rc = lack.real->endpoint(d, info, ep, context);
    if (rc == 0 && fails) {
        ops = *(*ep)->fid.ops;
        ops.control = not_enabled;
        (*ep)->fid.ops = &ops;
    }
    return rc;
}

static void let_fail(struct bed *b, unsigned asked, unsigned answered, bool late)
{
    struct fid_domain *d = gi_ofi_domain(b->domain)->domain;
    lack.real = d->ops;
    lack.ops = *d->ops;
    lack.ops.endpoint = endpoint;
    lack.asked = asked;
    lack.answered = answered;
    lack.late = late;
    d->ops = &lack.ops;
}

static void stop_failing(struct bed *b)
{
    if (lack.real != NULL)
        gi_ofi_domain(b->domain)->domain->ops = lack.real;
}

static int connections(const struct bed *b, int peer)
{
    const struct gi_ofi_listener *c = gi_ofi_lane(b->lane)->listener;
    return gi_ofi_conn_lives(&c->out[peer]) + gi_ofi_conn_lives(&c->in[peer]);
}

/* A write from rank 0 arrives once, and another one back. */
static void passes(struct mp *mp, const char *provider, unsigned asked, unsigned answered,
                   bool late)
{
    struct bed b;
    struct bed_request req;
    uint64_t again = 0;
    if (!bed_open(&b, mp, &gi_ofi_ops, provider))
        goto out;
    let_fail(&b, mp->rank == 0 ? asked : 0, mp->rank == 1 ? answered : 0, late);
    for (int from = 0; from < 2; from++) {
        mp_step(mp, "from rank %d", from);
        bed_sync(&b);
        if (mp->rank == from) {
            struct gi_net_io io = bed_io(&b, 1 - from, 0, 64, 64, &req);
            EXPECT_OK(bed_post(&b, b.ops->write, &io, &again));
            BED_UNTIL(&b, req.done + req.failed);
            EXPECT_EQ_INT(req.done, 1);
            EXPECT_EQ_INT(req.failed, 0);
        }
        bed_sync(&b);
    }
    BED_UNTIL(&b, b.memory[64] == 0x5a);
    EXPECT_EQ_INT(b.failures, 0);
    EXPECT_EQ_INT(lack.asked + lack.answered, 0);
    EXPECT_EQ_INT(connections(&b, 1 - mp->rank), answered != 0 ? 2 : 1);
    bed_sync(&b); /* nobody closes before the other one has counted */
    stop_failing(&b);
out:
    bed_close(&b);
}

MP_TEST_OPT(lacked_here, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    passes(mp, "tcp-msg", 3, 0, false);
}

MP_TEST_OPT(lacked_there, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    passes(mp, "tcp-msg", 0, 3, false);
}

MP_TEST_OPT(not_enabled_there, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    passes(mp, "tcp-msg", 0, 3, true);
}

MP_TEST_OPT(of_net, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    passes(mp, "net-msg", 2, 2, false);
}

/* Both begin, and the higher rank cannot take the lower one's: then its own is taken, for both. */
static void crossed(struct mp *mp, const char *provider)
{
    struct bed b;
    struct bed_request req;
    if (!bed_open(&b, mp, &gi_ofi_ops, provider))
        goto out;
    let_fail(&b, 0, mp->rank == 1 ? 3 : 0, false);
    bed_sync(&b);
    struct gi_net_io io = bed_io(&b, 1 - mp->rank, 0, 64, 64, &req);
    EXPECT_EQ_INT(b.ops->write(b.lane, &io), GIN_EAGAIN); /* begun */
    bed_sync(&b);
    EXPECT_OK(bed_post(&b, b.ops->write, &io, NULL));
    BED_UNTIL(&b, req.done + req.failed);
    EXPECT_EQ_INT(req.done, 1);
    BED_UNTIL(&b, b.memory[64] == 0x5a);
    EXPECT_EQ_INT(b.failures, 0);
    bed_sync(&b);
    EXPECT_EQ_INT(connections(&b, 1 - mp->rank), 1);
    bed_sync(&b);
    stop_failing(&b);
out:
    bed_close(&b);
}

MP_TEST_OPT(lacked_by_one_of_two, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    crossed(mp, "tcp-msg");
}

/* Tries end. */
MP_TEST_OPT(lacked_for_ever, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    struct bed b;
    struct bed_request req;
    if (!bed_open(&b, mp, &gi_ofi_ops, "tcp-msg"))
        goto out;
    let_fail(&b, 0, mp->rank == 1 ? 1000 : 0, false);
    bed_sync(&b);
    if (mp->rank == 0) {
        struct gi_net_io io = bed_io(&b, 1, 0, 64, 64, &req);
        EXPECT_FAILS(bed_post(&b, b.ops->write, &io, NULL), GIN_EPEER, "rank 1");
    }
    bed_sync(&b);
    stop_failing(&b);
out:
    bed_close(&b);
}

/* Who does not know the name, or comes twice, is told so for good. */
MP_TEST_OPT(unwelcome, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    struct bed b;
    struct bed_request req;
    if (!bed_open(&b, mp, &gi_ofi_ops, "tcp-msg"))
        goto out;
    if (mp->rank == 1)
        b.ops->cancel_peer(b.lane, 0);
    bed_sync(&b);
    if (mp->rank == 0) {
        struct gi_net_io io = bed_io(&b, 1, 0, 64, 64, &req);
        uint64_t began = gi_now_ns();
        EXPECT_FAILS(bed_post(&b, b.ops->write, &io, NULL), GIN_EPEER, "rank 1");
        printf("# refused for good after %llu us\n",
               (unsigned long long)(gi_now_ns() - began) / 1000);
    }
    bed_sync(&b);
out:
    bed_close(&b);
}

/* Rank 1 reads no events before it closes its lane: leaks are the leak checker's to find. */
MP_TEST_OPT(unread, .ranks = "2 3", .bare = true, .only = MP_PROCS)
{
    struct bed b;
    struct bed_request req;
    unsigned *asked = (unsigned *)(void *)mp->share + 2000;
    if (!bed_open(&b, mp, &gi_ofi_ops, "tcp-msg"))
        goto out;
    bed_sync(&b);
    if (mp->rank != 1) {
        struct gi_net_io io = bed_io(&b, 1, 0, 64, 64, &req);
        EXPECT_EQ_INT(b.ops->write(b.lane, &io), GIN_EAGAIN);
        for (int i = 0; i < 1000; i++)
            bed_progress(&b);
        __atomic_add_fetch(asked, 1, __ATOMIC_ACQ_REL);
    }
    uint64_t end = gi_deadline_in(BED_NS);
    while (__atomic_load_n(asked, __ATOMIC_ACQUIRE) + 1 < (unsigned)mp->size && gi_now_ns() < end)
        gi_os_yield();
    if (mp->rank == 1) {
        b.ops->lane_close(b.lane);
        b.lane = NULL;
    }
    mp_allgather(mp, &mp->rank, &(int[8]){0}, sizeof(int));
out:
    bed_close(&b);
}
