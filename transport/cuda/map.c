/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose memory is mapped where. Everything that another rank of the process needs of the leader
 * goes through struct gi_cuda_region, and is ordered by the allgathers between the steps.
 */
#include "transport/cuda/map.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/cuda/report.h"
#include "transport/cuda/team.h"

#define PAGE        ((uint64_t)2 << 20)
#define ROOMY       ((uint64_t)1 << 30)
#define MOST        ((uint64_t)1 << 46) /* addresses of one range */
#define TOKEN_WORDS 8

typedef unsigned long long ull;

struct extent {                /* one mapping */
    uint64_t addr, bytes, off; /* off: in its slot */
    int slot;
};

/* One per process and team. */
struct gi_cuda_region {
    atomic_int refs;
    bool driver; /* addresses are the driver's; else they are the kernel's, and empty */
    uint64_t base, bytes;
    int n_devices;
    int *devices;      /* of my process' ranks, each once */
    uint8_t *allowed;  /* slots * n_devices: that device may use that slot */
    uint64_t *pending; /* by slot: objects of my process' ranks, not mapped yet; 0: none */
    struct extent *extents;
    size_t n_extents;
    char memory[];
};

/* What a rank says at the end of a step. */
struct report {
    struct gi_cuda_report head;
    uint64_t stride, region;
};

static void say(struct report *r, int status, bool own)
{
    memset(r, 0, sizeof(*r));
    gi_cuda_say(&r->head, status, own);
}

static int hear(const struct gi_cuda_map_config *c, const struct report *mine, struct report **all)
{
    void *got;
    int st = gi_cuda_hear(&c->shm, mine, sizeof(*mine), &got);
    *all = got;
    return st;
}

/* ---- opening ---- */

static bool in_process(const struct gi_cuda_map_config *c, int slot)
{
    return gi_cuda_in_process(&c->shm, c->team, slot);
}

/* Room for everything that is fixed, in one block. */
static struct gi_cuda_region *new_region(const struct gi_cuda_map_config *c)
{
    size_t n = (size_t)c->team->lsa_size;
    struct gi_cuda_region *r = calloc(1, sizeof(*r) + n * (sizeof(uint64_t) + sizeof(int)) + n * n);
    if (r == NULL)
        return NULL;
    r->pending = (uint64_t *)(void *)r->memory;
    r->devices = (int *)(void *)(r->pending + n);
    r->allowed = (uint8_t *)(r->devices + n);
    for (int i = 0; i < c->team->lsa_size; i++) {
        int k = 0, device = c->devices[c->team->world_of[i]];
        if (!in_process(c, i))
            continue;
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
        while (k < r->n_devices && r->devices[k] != device)
            k++;
        if (device >= 0 && k == r->n_devices)
            r->devices[r->n_devices++] = device;
    }
    r->driver = r->n_devices > 0;
    return r;
}

static int reserve_once(struct gi_cuda_region *r, uint64_t bytes)
{
    void *addr = NULL;
    int e = 0;
    r->bytes = bytes;
    if (r->driver)
        return gi_gpu_reserve(bytes, 0, &r->base);
    e = gi_os_reserve(bytes, &addr);
    r->base = (uint64_t)(uintptr_t)addr;
    return e == 0 ? GIN_OK
                  : gi_fail(e == -ENOMEM ? GIN_ENOMEM : GIN_ESYS,
                            "cannot reserve %llu bytes of addresses: %s", (ull)bytes,
                            gi_os_strerror(e));
}

/* The stride is halved while addresses are refused. */
static int reserve(const struct gi_cuda_map_config *c, struct gi_cuda_region *r, uint64_t *stride)
{
    uint64_t n = (uint64_t)c->team->lsa_size, unit = c->granule < PAGE ? PAGE : c->granule;
    *stride = c->stride >= ROOMY ? (c->stride + ROOMY - 1) / ROOMY * ROOMY : c->stride;
    for (;;) {
        *stride = (*stride + unit - 1) / unit * unit;
        int st = *stride > MOST / n ? GIN_ENOMEM : reserve_once(r, n * *stride);
        if (st == GIN_OK)
            return GIN_OK;
        r->base = 0;
        if (*stride / 2 < c->min_stride)
            return gi_fail(GIN_ENOMEM,
                           "cannot reserve %d times %llu MiB of GPU addresses for the GPU heap",
                           c->team->lsa_size, (ull)(*stride >> 20));
        *stride /= 2;
    }
}

static void drop_region(struct gi_cuda_region *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < r->n_extents; i++)
        gi_gpu_unmap(r->extents[i].addr, r->extents[i].bytes);
    if (r->base != 0 && r->driver)
        gi_gpu_unreserve(r->base, r->bytes);
    else if (r->base != 0)
        gi_os_unreserve((void *)(uintptr_t)r->base, r->bytes);
    free(r->extents);
    free(r);
}

static struct gi_cuda_map *new_map(const struct gi_cuda_map_config *c)
{
    struct gi_cuda_map *m = calloc(1, sizeof(*m) + (size_t)c->team->lsa_size);
    if (m == NULL)
        return NULL;
    m->c = *c;
    m->reach = (uint8_t *)(m + 1);
    m->leader = gi_cuda_leader(&c->shm, c->team) == c->team->lsa_rank;
    for (int i = 0; i < c->team->lsa_size; i++)
        m->passes = m->passes || !in_process(c, i);
    return m;
}

/* With everyone's reports: the stride and, from the leader, the range. */
static void settle(struct gi_cuda_map *m, const struct report *all)
{
    const struct gi_cuda_map_config *c = &m->c;
    int lead = gi_cuda_leader(&c->shm, c->team);
    m->region =
        (struct gi_cuda_region *)(uintptr_t)all[c->team->world_of[lead]].region; /* my process' */
    m->stride = UINT64_MAX;
    for (int r = 0; r < c->shm.size; r++)
        m->stride = all[r].stride != 0 && all[r].stride < m->stride ? all[r].stride : m->stride;
    m->base = m->region->base;
    m->align = (m->base | m->stride) & -(m->base | m->stride);
}

int gi_cuda_map_open(const struct gi_cuda_map_config *c, struct gi_cuda_map **map)
{
    struct gi_cuda_region *region = NULL;
    struct report mine, *all = NULL;
    uint64_t stride = 0;
    int st = GIN_OK;
    struct gi_cuda_map *m = new_map(c);
    if (m != NULL && m->leader) {
        region = new_region(c);
        if (region != NULL)
            st = reserve(c, region, &stride);
    }
    if (m == NULL || (m->leader && region == NULL))
        st = gi_fail(GIN_ENOMEM, "no memory for the map of %d GPUs", c->team->lsa_size);
    say(&mine, st, true);
    mine.stride = stride;
    mine.region = (uint64_t)(uintptr_t)region;
    st = hear(c, &mine, &all);
    if (st == GIN_OK) {
        settle(m, all);
        *map = m;
    } else {
        if (region != NULL)
            atomic_store_explicit(&region->refs, 1, memory_order_relaxed); /* nobody came */
        drop_region(region);
        free(m);
    }
    free(all);
    return st;
}

void gi_cuda_map_close(struct gi_cuda_map *m)
{
    if (m == NULL)
        return;
    drop_region(m->region);
    free(m);
}

/* ---- growing ---- */

void gi_cuda_map_grow(struct gi_cuda_map *m, uint64_t to)
{
    m->more = to - m->mapped;
}

/* The leader gives its process' devices access to a mapping. Who was refused at first stays out. */
static int allow(struct gi_cuda_map *m, const struct extent *e)
{
    struct gi_cuda_region *r = m->region;
    const int *world_of = m->c.team->world_of;
    bool own = in_process(&m->c, e->slot);
    for (int d = 0; d < r->n_devices; d++) {
        uint8_t *allowed = &r->allowed[e->slot * r->n_devices + d];
        if (e->off != 0 && !*allowed)
            continue;
        int st = gi_gpu_allow(e->addr, e->bytes, r->devices[d]);
        if (st == GIN_OK)
            *allowed = 1;
        else if (e->off != 0 || (own && r->devices[d] == m->c.devices[world_of[e->slot]]))
            return st;
        else
            gi_info("cuda", "GPU %d may not use the memory of rank %d: %s", r->devices[d],
                    world_of[e->slot], gin_last_error());
    }
    return GIN_OK;
}

static int map_one(struct gi_cuda_map *m, int slot, uint64_t object)
{
    struct gi_cuda_region *r = m->region;
    struct extent e = {.addr = gi_cuda_slot(m, slot) + m->mapped,
                       .bytes = m->more,
                       .off = m->mapped,
                       .slot = slot};
    struct extent *more = realloc(r->extents, (r->n_extents + 1) * sizeof(*more));
    if (more == NULL)
        return gi_fail(GIN_ENOMEM, "no memory to map GPU memory");
    r->extents = more;
    int st = gi_gpu_map(e.addr, e.bytes, object);
    if (st != GIN_OK)
        return st;
    r->extents[r->n_extents++] = e;
    return allow(m, &e);
}

/* gi_shm_keep_fn: another process' memory came. */
static int keep(void *arg, int slot, int fd)
{
    struct gi_cuda_map *m = arg;
    uint64_t object;
    if (in_process(&m->c, slot) || !m->region->driver)
        return GIN_OK;
    int st = gi_gpu_object_import(fd, &object);
    if (st == GIN_OK) {
        st = map_one(m, slot, object);
        gi_gpu_object_release(object);
    }
    m->failed = m->failed || st != GIN_OK;
    return st;
}

static int map_own(struct gi_cuda_map *m)
{
    int st = GIN_OK;
    for (int i = 0; st == GIN_OK && i < m->c.team->lsa_size; i++)
        if (in_process(&m->c, i) && m->region->pending[i] != 0)
            st = map_one(m, i, m->region->pending[i]);
    return st;
}

void gi_cuda_map_shrink(struct gi_cuda_map *m, uint64_t to)
{
    struct gi_cuda_region *r = m->region;
    m->more = 0;
    for (size_t i = r->n_extents; m->leader && i > 0; i--) {
        struct extent *e = &r->extents[i - 1];
        if (e->off < to)
            continue;
        gi_gpu_unmap(e->addr, e->bytes);
        *e = r->extents[--r->n_extents];
    }
    m->mapped = to < m->mapped ? to : m->mapped;
}

bool gi_cuda_map_piece(const struct gi_cuda_map *m, int slot, size_t i, uint64_t *off,
                       uint64_t *bytes)
{
    const struct gi_cuda_region *r = m->region;
    for (size_t k = 0; k < r->n_extents; k++) {
        if (r->extents[k].slot != slot || i-- != 0)
            continue;
        *off = r->extents[k].off;
        *bytes = r->extents[k].bytes;
        return true;
    }
    return false;
}

/* ---- proof ---- */

static void token_of(const struct gi_cuda_map *m, int world, const uint64_t *random,
                     uint64_t token[TOKEN_WORDS])
{
    token[0] = 0x47494e43554441ull; /* "GINCUDA" */
    token[1] = (uint64_t)world;
    for (int i = 2; i < TOKEN_WORDS; i++)
        token[i] = random[world] * (uint64_t)i + m->c.shm.ranks[world].process;
}

/* Which slots does my GPU really see? */
static void read_tokens(struct gi_cuda_map *m, const uint64_t *random)
{
    uint64_t want[TOKEN_WORDS], got[TOKEN_WORDS];
    for (int i = 0; i < m->c.team->lsa_size; i++) {
        int world = m->c.team->world_of[i];
        if (m->c.devices[world] < 0)
            continue;
        token_of(m, world, random, want);
        m->reach[i] = gi_gpu_read(m->c.gpu, got, gi_cuda_slot(m, i), sizeof(got)) == GIN_OK &&
                      memcmp(want, got, sizeof(got)) == 0;
        if (m->reach[i] || m->refused[0] != 0)
            continue;
        snprintf(m->refused, sizeof(m->refused), "the GPU memory of rank %d could not be read back",
                 world);
        gi_warn("cuda", "%s", m->refused);
    }
}

static int write_token(struct gi_cuda_map *m, uint64_t *random)
{
    uint64_t token[TOKEN_WORDS];
    int rank = m->c.shm.rank;
    if (m->c.gpu == NULL)
        return GIN_OK;
    if (gi_os_random(&random[rank], sizeof(*random)) != 0)
        return gi_fail(GIN_ESYS, "no random numbers");
    token_of(m, rank, random, token);
    return gi_gpu_write(m->c.gpu, gi_cuda_slot(m, m->c.team->lsa_rank), token, sizeof(token));
}

/* Write, meet, read. */
static int prove(struct gi_cuda_map *m)
{
    const struct gi_shm_config *c = &m->c.shm;
    uint64_t *random = calloc((size_t)c->size, sizeof(*random));
    struct report mine, *all = NULL;
    int st = random != NULL ? write_token(m, random) : gi_fail(GIN_ENOMEM, "no memory for tokens");
    say(&mine, st, true);
    mine.stride = random != NULL ? random[c->rank] : 0;
    st = hear(&m->c, &mine, &all);
    if (st != GIN_OK)
        goto free_all;
    if (m->c.gpu != NULL) {
        for (int r = 0; r < c->size; r++)
            random[r] = all[r].stride;
        read_tokens(m, random);
        if (!m->reach[m->c.team->lsa_rank])
            st = gi_fail(GIN_ESYS, "my own GPU memory could not be read back");
    }
    say(&mine, st, true);
    mine.stride = m->refused[0] == 0;
    free(all);
    st = hear(&m->c, &mine, &all);
    m->complete = st == GIN_OK;
    for (int r = 0; r < c->size && m->complete; r++)
        m->complete = all[r].stride != 0;
free_all:
    free(all);
    free(random);
    return st;
}

/* My own part: a memory object and, where another process is to have it, a descriptor. */
static int make(struct gi_cuda_map *m, uint64_t *object, int *fd)
{
    if (m->c.gpu == NULL)
        return GIN_OK;
    int st = gi_gpu_object_create(m->c.gpu, m->more, object);
    return st == GIN_OK && m->passes && !m->c.fabric ? gi_gpu_object_export(*object, fd) : st;
}

/* What a rank shows of its object where no descriptor travels. */
struct shown {
    struct gi_cuda_report head;
    uint64_t has;
    struct gi_gpu_fabric handle;
};

static int map_shown(struct gi_cuda_map *m, const struct shown *all)
{
    int st = GIN_OK;
    for (int i = 0; st == GIN_OK && i < m->c.team->lsa_size && m->region->driver; i++) {
        const struct shown *s = &all[m->c.team->world_of[i]];
        uint64_t object;
        if (in_process(&m->c, i) || !s->has)
            continue;
        st = gi_gpu_fabric_import(&s->handle, &object);
        if (st == GIN_OK) {
            st = map_one(m, i, object);
            gi_gpu_object_release(object);
        }
    }
    m->failed = m->failed || st != GIN_OK;
    return st;
}

/* By fabric handles: one allgather, then leaders map what other processes have. */
static int show(struct gi_cuda_map *m, uint64_t object, int status)
{
    struct shown mine;
    void *all = NULL;
    memset(&mine, 0, sizeof(mine));
    mine.has = object != 0;
    if (status == GIN_OK && object != 0 && m->passes)
        status = gi_gpu_fabric_export(object, &mine.handle);
    m->failed = status != GIN_OK;
    gi_cuda_say(&mine.head, status, m->failed);
    int st = gi_cuda_hear(&m->c.shm, &mine, sizeof(mine), &all);
    if (st == GIN_OK && m->leader)
        st = map_shown(m, all);
    free(all);
    return st;
}

int gi_cuda_map_share(struct gi_cuda_map *m, uint64_t deadline)
{
    struct gi_shm_config c = m->c.shm;
    struct report mine, *all = NULL;
    uint64_t *object = &m->region->pending[m->c.team->lsa_rank];
    uint64_t mapped = m->mapped;
    int fd = -1, st = make(m, object, &fd);
    c.deadline = deadline;
    m->failed = st != GIN_OK;
    st = m->c.fabric ? show(m, *object, st) : gi_shm_pass(&c, m->c.team, fd, st, keep, m);
    if (fd >= 0)
        gi_os_close(fd);
    if (st == GIN_OK && m->leader) {
        st = map_own(m);
        m->failed = st != GIN_OK;
    }
    say(&mine, st, m->failed);
    st = hear(&m->c, &mine, &all);
    free(all);
    if (*object != 0) /* what is mapped stays */
        gi_gpu_object_release(*object);
    *object = 0;
    if (st == GIN_OK) {
        m->mapped += m->more;
        st = mapped == 0 ? prove(m) : GIN_OK;
    }
    if (st != GIN_OK)
        gi_cuda_map_shrink(m, mapped);
    return st;
}
