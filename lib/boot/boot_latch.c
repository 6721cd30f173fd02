/* SPDX-License-Identifier: BSD-3-Clause */
/* A condition variable with two owners. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/clock.h"
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

bool gi_latch_await(struct gi_latch *l, uint64_t deadline, int *result, void **thing)
{
    struct timespec t = {.tv_sec = (time_t)(deadline / 1000000000u),
                         .tv_nsec = (long)(deadline % 1000000000u)};
    bool ok;
    int e = 0;

    pthread_mutex_lock(&l->lock);
    while (!l->delivered && e != ETIMEDOUT)
        e = deadline == GI_NEVER ? pthread_cond_wait(&l->cond, &l->lock)
                                 : pthread_cond_timedwait(&l->cond, &l->lock, &t);
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
