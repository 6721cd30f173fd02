/* SPDX-License-Identifier: BSD-3-Clause */
/* A condition variable with two owners. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/clock.h"
#include "boot/boot_impl.h"
#include "boot/boot_latch.h"

struct gi_latch {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int owners;
    bool delivered;
    int result;
    void *thing;
};

struct gi_latch *gi_latch_new(void)
{
    struct gi_latch *l = calloc(1, sizeof(*l));
    pthread_condattr_t attr;

    if (l == NULL)
        return NULL;
    l->owners = 2;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->cond, &attr);
    pthread_condattr_destroy(&attr);
    return l;
}

/* Called with the lock held, which it drops. */
static void leave(struct gi_latch *l, int owners)
{
    bool last = (l->owners -= owners) == 0;

    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    pthread_cond_destroy(&l->cond);
    pthread_mutex_destroy(&l->lock);
    free(l->thing);
    free(l);
}

void gi_latch_deliver(struct gi_latch *l, int result, void *thing)
{
    pthread_mutex_lock(&l->lock);
    l->thing = thing;
    l->result = result;
    l->delivered = true;
    pthread_cond_signal(&l->cond);
    leave(l, 1);
}

/* With the lock held: until it is delivered, or a while has passed. */
static void wait_a_while(struct gi_latch *l, uint64_t deadline)
{
    uint64_t slice = gi_deadline_in(GI_BOOT_ASK_NS), until = slice < deadline ? slice : deadline;
    struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
                         .tv_nsec = (long)(until % 1000000000u)};
    int e = 0;

    while (!l->delivered && e != ETIMEDOUT)
        e = pthread_cond_timedwait(&l->cond, &l->lock, &t);
}

bool gi_latch_await(struct gi_latch *l, struct gi_boot *boot, uint64_t deadline, int *result,
                    void **thing)
{
    bool ok, stopped = false;

    pthread_mutex_lock(&l->lock);
    while (!l->delivered && !stopped && gi_now_ns() < deadline) {
        wait_a_while(l, deadline);
        pthread_mutex_unlock(&l->lock);
        stopped = gi_boot_stopped(boot);
        pthread_mutex_lock(&l->lock);
    }
    ok = l->delivered;
    if (ok)
        *result = l->result;
    if (ok && thing != NULL) {
        *thing = l->thing;
        l->thing = NULL;
    }
    leave(l, 1);
    return ok;
}

void gi_latch_cancel(struct gi_latch *l)
{
    pthread_mutex_lock(&l->lock);
    leave(l, 2);
}
