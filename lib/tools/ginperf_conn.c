/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare provider's endpoints of one peer each: the lead of the pair listens, its partner
 * connects, and both wait until the connection stands.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ginperf_bare.h"

#define LIMIT_NS 20e9

/* The next event; a negative status where there is none. info: of who asks. */
static int await(uint32_t wanted, struct fi_info **info)
{
    union {
        struct fi_eq_cm_entry e;
        char room[sizeof(struct fi_eq_cm_entry) + 64];
    } got;
    double end = perf_now_ns() + LIMIT_NS;
    for (;;) {
        uint32_t event;
        ssize_t n = fi_eq_read(bare.eq, &event, &got, sizeof(got), 0);
        if (n >= 0 && event == wanted) {
            if (info != NULL)
                *info = got.e.info;
            return 0;
        }
        if (n >= 0 || n != -FI_EAGAIN)
            return n >= 0 ? -FI_EOTHER : (int)n;
        if (perf_now_ns() > end)
            return -FI_ETIMEDOUT;
        bare_poll(1); /* some providers connect while the queue is read */
        sched_yield();
    }
}

int bare_listen(void *name, size_t *room)
{
    struct fi_eq_attr eq = {.size = 16, .wait_obj = FI_WAIT_NONE};
    int rc = fi_eq_open(bare.fabric, &eq, &bare.eq, NULL);
    if (rc == 0)
        rc = fi_passive_ep(bare.fabric, bare.info, &bare.pep, NULL);
    if (rc == 0)
        rc = fi_pep_bind(bare.pep, &bare.eq->fid, 0);
    if (rc == 0)
        rc = fi_listen(bare.pep);
    return rc == 0 ? fi_getname(&bare.pep->fid, name, room) : rc;
}

static int accept_one(void)
{
    struct fi_info *asks = NULL;
    int rc = await(FI_CONNREQ, &asks);
    if (rc == 0)
        rc = fi_endpoint(bare.domain, asks, &bare.ep, NULL);
    if (rc == 0)
        asks->handle = NULL; /* the endpoint's */
    fi_freeinfo(asks);
    if (rc == 0)
        rc = bare_bind(bare.ep);
    if (rc == 0 && !bare_post_receives())
        rc = -FI_EINVAL;
    return rc == 0 ? fi_accept(bare.ep, NULL, 0) : rc;
}

static int ask(const void *name, size_t len)
{
    struct fi_info *to = fi_dupinfo(bare.info);
    if (to == NULL)
        return -FI_ENOMEM;
    free(to->dest_addr);
    to->dest_addr = malloc(len);
    to->dest_addrlen = to->dest_addr != NULL ? len : 0;
    if (to->dest_addr != NULL)
        memcpy(to->dest_addr, name, len);
    int rc = to->dest_addr != NULL ? fi_endpoint(bare.domain, to, &bare.ep, NULL) : -FI_ENOMEM;
    fi_freeinfo(to);
    if (rc == 0)
        rc = bare_bind(bare.ep);
    if (rc == 0 && !bare_post_receives())
        rc = -FI_EINVAL;
    return rc == 0 ? fi_connect(bare.ep, name, NULL, 0) : rc;
}

int bare_connect(const struct perf *p, const void *name, size_t len)
{
    int rc = p->lead ? accept_one() : ask(name, len);
    return rc == 0 ? await(FI_CONNECTED, NULL) : rc;
}
