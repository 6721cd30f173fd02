/* SPDX-License-Identifier: BSD-3-Clause */
/* Pinning slots, piece by piece as the heap grows: what was pinned cannot be made longer. */
#include "pinned.h"

#include <pthread.h>
#include <stdio.h>
#include "base/log.h"

static void undo(struct gi_pinned *p, uint64_t from, int slots)
{
    while (slots-- > 0)
        gi_gpu_host_unregister(p->gpu, p->slots + (uint64_t)slots * p->stride + from);
}

static void stop(struct gi_pinned *p, const char *why)
{
    snprintf(p->why, sizeof(p->why), "%s", why);
    gi_info("cuda", "kernels do not reach the host heap beyond byte %llu of a slot: %s",
            (unsigned long long)p->bytes, p->why);
}

/* All slots or none: ranks of one process take turns, so that the second finds all or tries itself.
 */
static int pin(struct gi_pinned *p, uint64_t from, uint64_t to, bool *taken)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    int st = GIN_OK;
    pthread_mutex_lock(&turn);
    for (int s = 0; s < p->n && st == GIN_OK && !*taken; s++) {
        st = gi_gpu_host_register(p->gpu, p->slots + (uint64_t)s * p->stride + from, to - from,
                                  taken);
        if (*taken && s > 0)
            st = gi_fail(GIN_ESYS, "a part of the heap was pinned by the program itself");
        if (st != GIN_OK)
            undo(p, from, s);
    }
    pthread_mutex_unlock(&turn);
    return st;
}

void gi_pinned_grow(struct gi_pinned *p, uint64_t to)
{
    bool taken = false;
    if (to <= p->bytes || p->why[0] != 0)
        return;
    if (!p->gpu->same_address) {
        stop(p, "this GPU knows pinned memory at other addresses than the CPU");
        return;
    }
    if (p->pieces == sizeof(p->ends) / sizeof(p->ends[0])) {
        stop(p, "the heap grew too often; raise GINSHMEM_HEAP_SIZE");
        return;
    }
    if (pin(p, p->bytes, to, &taken) != GIN_OK) {
        stop(p, gin_last_error());
        return;
    }
    p->mine[p->pieces] = !taken;
    p->ends[p->pieces++] = to;
    p->bytes = to;
}

void gi_pinned_release(struct gi_pinned *p)
{
    while (p->pieces > 0) {
        uint64_t from = --p->pieces > 0 ? p->ends[p->pieces - 1] : 0;
        if (p->mine[p->pieces])
            undo(p, from, p->n);
    }
    p->bytes = 0;
}
