/* SPDX-License-Identifier: BSD-3-Clause */
/* What is refused when it is posted, and what an operation's context and memory must be. */
#include <string.h>
#include "tests/providers/t_contract.h"

/* ---- contexts and descriptors ---- */

RULE(contexts_are_needed, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    p.context = NULL;
    CHECK(W_WRITE(w, &p) == -FI_EINVAL);
    SAID("has no context");
}

RULE(contexts_are_written, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(W_WRITE(w, &p) == 0);
    CHECK(W_WRITE(w, &p) == -FI_EINVAL);
    SAID("for two operations at once");
    /* the last word: who has too small a one there has something else of its own */
    w->context[63].internal[7] = NULL;
    CHECK(w_wait(w, 2000) == 1);
    SAID("written while it was in use");
}

RULE(descriptors_are_needed, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    p.desc = NULL;
    CHECK(w_write_once(w, &p) == -FI_EINVAL);
    SAID("no descriptor");
    CHECK(w_send_once(w, &p) == -FI_EINVAL);
    SAID("no descriptor");
    p.desc = fi_mr_desc(w->to_mr);
    CHECK(w_read_once(w, &p) == -FI_EINVAL);
    SAID("of other memory");
    p.desc = w;
    CHECK(w_write_once(w, &p) == -FI_EINVAL);
    SAID("of no registration");
}

RULE(fetched_words_have_descriptors, "verbs-msg")
{
    uint64_t old;
    w_open(w);
    struct post p = w_post(w);
    CHECK(w_fetch_once(w, &p, &old, NULL) == -FI_EINVAL);
    SAID("a fetched word");
    p.flags |= FI_INJECT;
    CHECK(w_fetch_once(w, &p, (uint64_t *)(void *)w->from, p.desc) == -FI_EINVAL);
    SAID("with FI_INJECT");
}

/* ---- limits ---- */

static void limits(struct world *w, size_t write, size_t message, size_t inject)
{
    w_open(w);
    struct post p = w_post(w);
    p.len = write + 1;
    if (p.len <= W_BYTES) {
        CHECK(w_write_once(w, &p) == -FI_EMSGSIZE);
        SAID("bytes, more than");
    }
    p.len = message + 1;
    if (p.len <= W_BYTES) {
        CHECK(w_send_once(w, &p) == -FI_EMSGSIZE);
        SAID("a message of more than");
    }
    p.len = inject + 1;
    p.flags |= FI_INJECT;
    CHECK(w_send_once(w, &p) == -FI_EINVAL);
    SAID("with FI_INJECT, more than");
    CHECK(w->info->tx_attr->inject_size == inject);
}

RULE(limits_of_efa, "efa")
{
    limits(w, 1u << 17, 8192, 120);
}

RULE(limits_of_efa_direct, "efa-direct")
{
    limits(w, 65536, 8192, 32);
}

RULE(limits_of_cxi, "cxi")
{
    limits(w, 0xfffffffe, 1u << 20, 192);
}

RULE(limits_of_verbs, "verbs-msg")
{
    limits(w, 1u << 16, 1u << 20, 256);
}

RULE(writes_are_not_inline, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags |= FI_INJECT;
    CHECK(w_write_once(w, &p) == -FI_EOPNOTSUPP);
}

RULE(keys_are_short, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    p.key |= 1ull << 40;
    CHECK(w_write_once(w, &p) == -FI_EKEYREJECTED);
    SAID("wider than 4");
}

RULE(unknown_addresses, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    p.to = 5;
    CHECK(w_write_once(w, &p) == -FI_EINVAL);
    SAID("was not inserted");
}

/* ---- what there is not, or only by name ---- */

RULE(no_atomic_at_all, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(w_add_once(w, &p) == -FI_EOPNOTSUPP);
    SAID("which is not offered");
}

RULE(no_fence, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags |= FI_FENCE;
    CHECK(w_write_once(w, &p) == -FI_EOPNOTSUPP);
    SAID("FI_FENCE is not offered");
}

RULE(no_word_of_delivery, "verbs-msg")
{
    w_open(w);
    struct post p = w_post(w);
    p.flags |= FI_DELIVERY_COMPLETE;
    CHECK(w_write_once(w, &p) == -FI_EOPNOTSUPP);
}

RULE(immediates_by_name_only, "cxi")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(w->info->domain_attr->cq_data_size == 8);
    p.flags |= FI_REMOTE_CQ_DATA;
    CHECK(w_write_once(w, &p) == -FI_EINVAL);
    CHECK(fi_writedata(w->ep, p.from, 8, p.desc, 1, p.to, p.addr, p.key, p.context) == -FI_ENOSYS);
}

RULE(plain_adds_by_name_only, "verbs-msg")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(w_add_once(w, &p) == -FI_EOPNOTSUPP);
}

/* ---- refused now ---- */

/* Where it never will be taken, too. */
RULE(refused_for_ever, "verbs-msg")
{
    w_open(w);
    struct post p = w_post(w);
    p.addr++;
    for (int i = 0; i < 200; i++)
        CHECK(w_fetch_once(w, &p, (uint64_t *)(void *)w->from, p.desc) == -FI_EAGAIN);
}

static void refused_now_and_then(struct world *w)
{
    unsigned again = 0;
    w_open(w);
    for (int i = 0; i < 600; i++) {
        struct post p = w_post(w);
        ssize_t rc = w_write_once(w, &p);
        again += rc == -FI_EAGAIN;
        if (rc == 0 && !CHECK(w_wait(w, 5000) == 1))
            return;
    }
    CHECK(again != 0 && again < 200);
}

RULE(refused_at_random, "cxi")
{
    refused_now_and_then(w);
}

RULE(refused_at_random_where_connected, "verbs-msg")
{
    refused_now_and_then(w);
}

RULE(no_more_than_its_queue, "verbs-msg")
{
    w_open(w);
    struct post p = w_post(w);
    unsigned n = 0;
    p.flags = 0;
    p.len = 1u << 17;
    for (int i = 0; i < 5000; i++)
        n += w_write_once(w, &p) == 0;
    CHECK(n < 1000);
}

RULE(first_contact, "efa")
{
    w_open(w);
    struct post p = w_post(w);
    for (int i = 0; i < 100; i++) /* the peer's answer needs progress */
        CHECK(w_write_once(w, &p) == -FI_EAGAIN);
    CHECK(W_WRITE(w, &p) == 0);
}
