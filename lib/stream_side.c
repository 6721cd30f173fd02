/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device communicator keeps for calls on streams, and finding it by the program's 64 bytes
 * without a lock: a table of the process by serial number, where a slot's serial is written last
 * and cleared first.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define SLOTS 4096u

static struct {
    _Atomic uint64_t serial; /* 0: free */
    struct gi_devcomm *_Atomic d;
} slots[SLOTS];

/* ---- finding ---- */

static bool table_add(struct gi_devcomm *d)
{
    uint64_t serial = d->dc->serial;
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t at = (uint32_t)(serial + i) % SLOTS;
        struct gi_devcomm *none = NULL;
        if (!atomic_compare_exchange_strong(&slots[at].d, &none, d))
            continue;
        atomic_store_explicit(&slots[at].serial, serial, memory_order_release);
        return true;
    }
    return false;
}

static void table_remove(const struct gi_devcomm *d)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t at = (uint32_t)(d->dc->serial + i) % SLOTS;
        if (atomic_load(&slots[at].d) != d)
            continue;
        atomic_store(&slots[at].serial, 0);
        atomic_store(&slots[at].d, NULL);
        return;
    }
}

struct gi_devcomm *gi_streams_find(const gin_devcomm_t *dev)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t at = (uint32_t)(dev->serial + i) % SLOTS;
        if (atomic_load_explicit(&slots[at].serial, memory_order_acquire) != dev->serial)
            continue;
        struct gi_devcomm *d = atomic_load(&slots[at].d);
        /* a fork()ed child finds dc zeroed */
        return d != NULL && d->dc->magic == GIN_DEVCOMM_MAGIC && d->kernel != NULL &&
                       d->kernel->block == dev->state
                   ? d
                   : NULL;
    }
    return NULL;
}

/* ---- coming and going ---- */

/* Without kernels the calls are refused with the reason, and all else works. */
static void load(struct gi_devcomm *d, struct gi_stream_side *s)
{
    static const char *const names[] = {
#define NAME(upper, lower) "gi_stream_" #lower,
        GI_STREAM_KERNELS(NAME)
#undef NAME
    };
    if (!table_add(d))
        snprintf(s->why, sizeof(s->why), "this process has more than %u device communicators",
                 SLOTS);
    else if (gi_kernels_image == NULL)
        snprintf(s->why, sizeof(s->why), "the library was built without nvcc");
    else if (gi_kernels_open(d->kernel->gpu, names, GI_STREAM_N) != GIN_OK)
        snprintf(s->why, sizeof(s->why), "%.190s", gin_last_error());
    else
        return;
    gi_info("stream", "no operations on streams: %s", s->why);
}

/* What kernels have been shown. */
static int read_back(const struct gi_devcomm *d, struct gi_stream_side *s)
{
    struct gi_gpu *gpu = d->kernel->gpu;
    const size_t ranks = (size_t)d->comm->size * sizeof(*s->lsa_of);
    struct gin_i_dc dc;
    s->lsa_of = malloc(ranks);
    if (s->lsa_of == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %d ranks", d->comm->size);
    int st = gi_gpu_read(gpu, s->lsa_of, d->kernel->lsa_of, ranks);
    if (st == GIN_OK)
        st = gi_gpu_read(gpu, &dc, d->kernel->block, sizeof(dc));
    if (st == GIN_OK)
        st = gi_gpu_read(gpu, &s->barriers, (uint64_t)(uintptr_t)dc.barriers, sizeof(s->barriers));
    if (st != GIN_OK || s->barriers.n_teams == 0)
        return st;
    const size_t teams = s->barriers.n_teams * sizeof(*s->teams);
    s->teams = malloc(teams);
    if (s->teams == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u teams",
                       s->barriers.n_teams);
    return gi_gpu_read(gpu, s->teams, (uint64_t)(uintptr_t)s->barriers.teams, teams);
}

int gi_streams_open(struct gi_devcomm *d)
{
    struct gi_stream_side *s = d->stream = calloc(1, sizeof(*s));
    if (s == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory");
    int st = read_back(d, s);
    if (st == GIN_OK)
        st = gi_gpu_host_alloc(d->kernel->gpu, 64, (void **)&s->report, &s->report_addr);
    if (st == GIN_OK)
        load(d, s);
    return st;
}

void gi_streams_close(struct gi_devcomm *d)
{
    struct gi_stream_side *s = d->stream;
    if (s == NULL)
        return;
    table_remove(d);
    if (d->kernel != NULL)
        gi_gpu_host_free(d->kernel->gpu, s->report);
    free(s->lsa_of);
    free(s->teams);
    free(s);
    d->stream = NULL;
}
