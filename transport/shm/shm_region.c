/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of addresses in which the slots of a group lie side by side, one range per process
 * whatever the number of its ranks. The cache is the one process-level state of this room: a
 * leader opens a range, the other ranks of its process find it here, the last one unmaps it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/os.h"
#include "transport/shm/shm_int.h"

#define ALIGN ((uint64_t)2 << 20) /* of base and stride: slots may be of huge pages */

/* Addresses one range may take: half of what x86-64 has; less where a tool needs them itself. */
#define MOST ((uint64_t)1 << 46)
#if defined(__SANITIZE_THREAD__)
#undef MOST
#define MOST ((uint64_t)1 << 36)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef MOST
#define MOST ((uint64_t)1 << 36)
#endif
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gi_shm_region *regions; /* newest first */

static uint64_t round_up(uint64_t stride)
{
    return stride > MOST ? MOST : stride == 0 ? ALIGN : (stride + ALIGN - 1) / ALIGN * ALIGN;
}

/*
 * Once addresses turn out to be scarce (RLIMIT_AS, a small machine), as many are left to the
 * program as are taken: a smaller stride counts only if twice its range could be had.
 */
static int reserve(struct gi_shm_region *r, uint64_t min_stride)
{
    uint64_t n = (uint64_t)r->n;
    bool scarce = false;
    for (;;) {
        uint64_t bytes = n * r->stride;
        uint64_t want = scarce && r->stride > min_stride ? 2 * bytes : bytes;
        void *addr = NULL;
        int e = r->stride > MOST / n ? -ENOMEM : gi_os_reserve(want, &addr);
        if (e == 0) {
            r->base = addr;
            if (want > bytes)
                gi_os_unreserve(r->base + bytes, want - bytes);
            return 0;
        }
        /* EAGAIN: the program locks its future memory and RLIMIT_MEMLOCK is in the way. */
        if ((e != -ENOMEM && e != -EAGAIN) || r->stride <= min_stride)
            return e;
        scarce = scarce || r->stride <= MOST / n;
        r->stride = r->stride / 2 / ALIGN * ALIGN;
        if (r->stride < min_stride)
            r->stride = min_stride;
    }
}

int gi_shm_region_open(const uint64_t job[2], const int *members, int n, uint64_t stride,
                       uint64_t min_stride, struct gi_shm_region **region)
{
    size_t bytes = (size_t)n * sizeof(*members);
    struct gi_shm_region *r = malloc(sizeof(*r) + bytes);
    if (r == NULL)
        return -ENOMEM;
    r->job[0] = job[0];
    r->job[1] = job[1];
    r->n = n;
    r->refs = 1;
    r->stride = round_up(stride);
    memcpy(r->members, members, bytes);
    int e = reserve(r, round_up(min_stride));
    if (e != 0) {
        free(r);
        return e;
    }
    pthread_mutex_lock(&lock);
    r->next = regions;
    regions = r;
    pthread_mutex_unlock(&lock);
    *region = r;
    return 0;
}

void gi_shm_region_trim(struct gi_shm_region *r, uint64_t stride)
{
    uint64_t had = (uint64_t)r->n * r->stride, keep = (uint64_t)r->n * stride;
    if (keep < had)
        gi_os_unreserve(r->base + keep, had - keep);
    r->stride = stride;
}

int gi_shm_region_map(struct gi_shm_region *r, int slot, int fd)
{
    return gi_os_map_shared(gi_shm_slot(r, slot), fd, 0, r->stride);
}

struct gi_shm_region *gi_shm_region_get(const uint64_t job[2], const int *members, int n)
{
    struct gi_shm_region *r;
    pthread_mutex_lock(&lock);
    for (r = regions; r != NULL; r = r->next)
        if (r->n == n && r->job[0] == job[0] && r->job[1] == job[1] &&
            memcmp(r->members, members, (size_t)n * sizeof(*members)) == 0)
            break;
    if (r != NULL)
        r->refs++;
    pthread_mutex_unlock(&lock);
    return r;
}

void gi_shm_region_put(struct gi_shm_region *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&lock);
    unsigned left = --r->refs;
    if (left == 0) {
        struct gi_shm_region **p = &regions;
        while (*p != r)
            p = &(*p)->next;
        *p = r->next;
    }
    pthread_mutex_unlock(&lock);
    if (left != 0)
        return;
    gi_os_unreserve(r->base, (uint64_t)r->n * r->stride);
    free(r);
}
