/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors: wrong keys, peers that are gone, and what they look like. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/providers/t_contract.h"

/* ---- wrong keys ---- */

/* The first error is one, all that follow are cancelled, receives of the other side too. */
RULE(one_error_ends_a_connection, "verbs-msg")
{
    unsigned cancelled = 0, broken = 0;
    w_open(w);
    CHECK(w_recv(w, 0) == 0);
    struct post p = w_post(w);
    p.key ^= 0x1234;
    CHECK(W_WRITE(w, &p) == 0);
    p.key ^= 0x1234;
    for (int i = 0; i < 3; i++) /* right ones, behind it and later */
        w_write_once(w, &p);
    while ((broken == 0 || cancelled == 0) && w_wait(w, 5000) == -1) {
        broken += w->error == FI_EIO;
        cancelled += w->error == FI_ECANCELED && w->entry.op_context == &w->context[0];
    }
    CHECK(broken == 1 && cancelled == 1);
    while (w_wait(w, 100) == -1)
        CHECK(w->error == FI_ECANCELED);
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_ECANCELED);
    CHECK(w->to[0] == 0);
}

RULE(wrong_keys_do_not_end_it, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    p.key ^= 0x1234;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_EACCES);
    p.key ^= 0x1234;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == 1 && w->to[0] == 0x5a);
}

/* A wrong key, then right ones: all complete, nothing arrives; only word of delivery tells. */
RULE(losses_in_silence, "stream")
{
    w_open(w);
    struct post p = w_post(w);
    p.key ^= 0x1234;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == 1);
    for (int i = 0; i < 2000; i++)
        w_drive(w);
    p.key ^= 0x1234;
    for (int i = 0; i < 20; i++) {
        CHECK(W_WRITE(w, &p) == 0);
        CHECK(w_wait(w, 5000) == 1);
    }
    CHECK(w->to[0] == 0);
    p.flags |= FI_DELIVERY_COMPLETE;
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && abs(w->error) == FI_ENOTCONN);
}

RULE(some_errors_are_negative, "efa")
{
    unsigned below = 0, above = 0;
    w_open(w);
    for (int i = 0; i < 60; i++) {
        struct post p = w_post(w);
        p.key ^= 0x1234;
        p.flags |= FI_DELIVERY_COMPLETE;
        if (!CHECK(W_WRITE(w, &p) == 0) || !CHECK(w_wait(w, 5000) == -1))
            return;
        below += w->error == -FI_EACCES;
        above += w->error == FI_EACCES;
    }
    CHECK(below != 0 && above != 0 && below + above == 60);
}

/* ---- peers that are gone ---- */

/* Another endpoint, that one write was made to. */
static struct post gone(struct world *w)
{
    struct fid_ep *ep = NULL;
    struct fid_av *av = NULL;
    struct fid_mr *mr;
    char name[64];
    size_t len = sizeof(name);
    w_open(w);
    struct post p = w_post(w);
    CHECK(w_endpoint(w, &ep, &av) == 0);
    CHECK(fi_getname(&ep->fid, name, &len) == 0);
    CHECK(fi_av_insert(w->av, name, 1, &p.to, 0, NULL) == 1);
    CHECK(fi_getname(&w->ep->fid, name, &len) == 0);
    fi_addr_t back;
    CHECK(fi_av_insert(av, name, 1, &back, 0, NULL) == 1);
    struct fid_ep *in = w->in;
    w->in = ep;
    mr = w_register_memory(w, w->to, 64);
    w->in = in;
    p.key = fi_mr_key(mr);
    p.flags |= FI_DELIVERY_COMPLETE & (w->info->domain_attr->mr_mode & FI_MR_LOCAL ? 0 : ~0ull);
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == 1 && w->to[0] == 0x5a);
    fi_close(&mr->fid);
    fi_close(&ep->fid);
    p.flags &= ~FI_DELIVERY_COMPLETE;
    return p;
}

RULE(gone_with_an_error, "efa-direct")
{
    struct post p = gone(w);
    for (int i = 0; i < 4; i++) {
        CHECK(W_WRITE(w, &p) == 0);
        CHECK(w_wait(w, 5000) == -1 && w->error == FI_EHOSTUNREACH);
    }
}

RULE_WITH(gone_with_an_error_once, "stream", "dead-once")
{
    struct post p = gone(w);
    unsigned errors = 0, again = 0;
    for (int i = 0; i < 400; i++) {
        again += w_write_once(w, &p) == -FI_EAGAIN;
        if (w_wait(w, 1) == -1) {
            CHECK(abs(w->error) == FI_ENOTCONN);
            errors++;
            again = 0;
        }
    }
    /* the write that found it out may have been complete before */
    CHECK(errors <= 1 && again > 100);
}

RULE_WITH(refused_for_ever_when_gone, "efa", "dead-again")
{
    struct post p = gone(w);
    unsigned again = 0;
    for (int i = 0; i < 600; i++) {
        again = w_write_once(w, &p) == -FI_EAGAIN ? again + 1 : 0;
        CHECK(w_wait(w, 0) >= 0);
        w_drive(w);
    }
    CHECK(again > 100);
}

/* Writes complete, reads never do. */
RULE_WITH(gone_in_silence, "cxi", "dead-silent")
{
    struct post p = gone(w);
    unsigned taken = 0, done = 0;
    for (int i = 0; i < 60; i++) {
        taken += w_write_once(w, &p) == 0;
        done += w_wait(w, 2) == 1;
    }
    CHECK(taken > 30);
    while (done < taken && w_wait(w, 1000) == 1)
        done++;
    CHECK(done == taken);
    CHECK(W_TRY(w, w_read_once(w, &p)) == 0);
    CHECK(w_wait(w, 300) == 0);
}

/* The other side ends it: an event, and what is posted from then on is cancelled. */
RULE(connections_end, "verbs-msg")
{
    struct fi_eq_cm_entry e;
    uint32_t event = 0;
    w_open(w);
    struct post p = w_post(w);
    CHECK(W_WRITE(w, &p) == 0 && w_wait(w, 5000) == 1);
    CHECK(fi_shutdown(w->in, 0) == 0);
    uint64_t end = w_now() + 5000000000u;
    while (fi_eq_read(w->eq, &event, &e, sizeof(e), 0) == -FI_EAGAIN && w_now() < end)
        usleep(500);
    CHECK(event == FI_SHUTDOWN && e.fid == &w->ep->fid);
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(w_wait(w, 5000) == -1 && w->error == FI_ECANCELED);
}

RULE(requests_are_refused, "verbs-msg")
{
    struct fi_eq_err_entry err = {0};
    char buf[sizeof(struct fi_eq_cm_entry) + 64];
    struct fi_eq_cm_entry e;
    char name[64];
    size_t len = sizeof(name);
    uint32_t event = 0;
    struct fid_ep *ep;
    w_open(w);
    CHECK(fi_getname(&w->pep->fid, name, &len) == 0);
    CHECK(fi_endpoint(w->domain, w->info, &ep, NULL) == 0);
    CHECK(fi_ep_bind(ep, &w->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    CHECK(fi_ep_bind(ep, &w->eq->fid, 0) == 0 && fi_enable(ep) == 0);
    CHECK(fi_connect(ep, name, NULL, 0) == 0);
    uint64_t end = w_now() + 5000000000u;
    while (fi_eq_read(w->eq, &event, buf, sizeof(buf), 0) == -FI_EAGAIN && w_now() < end)
        usleep(500);
    memcpy(&e, buf, sizeof(e));
    CHECK(event == FI_CONNREQ && fi_reject(w->pep, e.info->handle, NULL, 0) == 0);
    fi_freeinfo(e.info);
    while (fi_eq_read(w->eq, &event, buf, sizeof(buf), 0) == -FI_EAGAIN && w_now() < end)
        usleep(500);
    CHECK(fi_eq_readerr(w->eq, &err, 0) > 0 && err.err == FI_ECONNREFUSED && err.fid == &ep->fid);
}
