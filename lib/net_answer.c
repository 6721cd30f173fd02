/* SPDX-License-Identifier: BSD-3-Clause */
/* Where answers to atomics come to: one place per thread, freed with it. */
#include <pthread.h>
#include <stdlib.h>

#include "net_answer.h"

static _Thread_local struct gi_net_answer *answer;
static pthread_key_t key; /* frees it with its thread */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;
static _Atomic(struct gi_net_answer *) left; /* the core may write to them yet */

static void make_key(void)
{
    has_key = pthread_key_create(&key, free) == 0;
}

static void answered(struct gi_core_notice *n, int status)
{
    struct gi_net_answer *a = (struct gi_net_answer *)(void *)n;
    atomic_store_explicit(&a->status, status, memory_order_release);
}

struct gi_net_answer *gi_net_answer_take(void)
{
    if (answer == NULL) {
        pthread_once(&once, make_key);
        answer = calloc(1, sizeof(*answer));
        if (answer == NULL)
            return NULL;
        if (has_key)
            pthread_setspecific(key, answer);
    }
    answer->notice.fn = answered;
    atomic_store_explicit(&answer->status, 1, memory_order_relaxed);
    return answer;
}

void gi_net_answer_leave(void)
{
    answer->next = atomic_load_explicit(&left, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&left, &answer->next, answer,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    answer = NULL;
    if (has_key)
        pthread_setspecific(key, NULL);
}
