/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a multicast object step by step, all ranks together: the first rank of each LSA team makes
 * it and passes it on, every rank adds its GPU, then binds its memory, then maps the object at an
 * address of its own. Between two steps the ranks tell each other how they fared, so that one
 * rank's failure undoes all of it everywhere. It has run against a driver without GPU only.
 */
#include "transport/cuda/multimem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "cuda/multicast.h"
#include "transport/cuda/report.h"
#include "transport/cuda/team.h"

typedef unsigned long long ull;

/* The object of a process; its ranks leave one by one. */
struct gi_cuda_multimem_share {
    atomic_int refs;
    uint64_t object; /* 0: none yet */
};

/* What a rank says at the end of a step. */
struct word {
    struct gi_cuda_report report;
    unsigned char uuid[16];
    uint64_t share;
};

/* Everybody's words in *all (the caller frees it); the first failure is everyone's. */
static int meet(const struct gi_shm_config *c, struct word *mine, int status, struct word **all)
{
    void *words = NULL;
    gi_cuda_say(&mine->report, status, true);
    int st = gi_cuda_hear(c, mine, sizeof(*mine), &words);
    *all = words;
    return st;
}

static int agree(const struct gi_cuda_multimem *m, int status)
{
    struct word mine, *all = NULL;
    memset(&mine, 0, sizeof(mine));
    int st = meet(&m->map->c.shm, &mine, status, &all);
    free(all);
    return st;
}

/* ---- whether ---- */

static int refuse(const char *why)
{
    return gi_fail(GIN_ENOTSUP, "multimem: %s", why);
}

static int may_have(const struct gi_cuda_map *map, const char *off)
{
    char why[160];
    if (off != NULL)
        return refuse(off);
    if (map->c.gpu == NULL)
        return refuse("this rank has no GPU");
    if (map->c.team->lsa_size < 2)
        return refuse("no other rank is load/store accessible");
    if (!map->complete)
        return refuse("not every GPU of the LSA team reaches all others");
    if (!gi_gpu_multicast_can(map->c.gpu, why, sizeof(why)))
        return refuse(why);
    return GIN_OK;
}

/* A GPU can be in a team once. All ranks look at all teams, and so see the same. */
static int each_its_own(const struct gi_cuda_map *map, const struct word *all)
{
    for (int a = 0; a < map->c.shm.size; a++)
        for (int b = 0; b < a; b++)
            if (map->c.team->team_of[a] == map->c.team->team_of[b] &&
                memcmp(all[a].uuid, all[b].uuid, sizeof(all[a].uuid)) == 0)
                return gi_fail(GIN_ENOTSUP, "multimem: ranks %d and %d share a GPU", b, a);
    return GIN_OK;
}

static int look(const struct gi_cuda_map *map, const char *off)
{
    struct word mine, *all = NULL;
    memset(&mine, 0, sizeof(mine));
    if (map->c.gpu != NULL)
        memcpy(mine.uuid, map->c.gpu->uuid, sizeof(mine.uuid));
    int st = meet(&map->c.shm, &mine, may_have(map, off), &all);
    if (st == GIN_OK)
        st = each_its_own(map, all);
    free(all);
    return st;
}

/* ---- the object ---- */

static bool in_my_process(const struct gi_cuda_map *map, int slot)
{
    return gi_cuda_in_process(&map->c.shm, map->c.team, slot);
}

static int leader(const struct gi_cuda_map *map)
{
    return gi_cuda_leader(&map->c.shm, map->c.team);
}

static struct gi_cuda_multimem_share *new_share(const struct gi_cuda_map *map)
{
    struct gi_cuda_multimem_share *s = calloc(1, sizeof(*s));
    for (int i = 0; s != NULL && i < map->c.team->lsa_size; i++)
        if (in_my_process(map, i))
            atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

static void drop_share(struct gi_cuda_multimem_share *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->object != 0)
        gi_gpu_object_release(s->object);
    free(s);
}

/* gi_shm_keep_fn: the object of another process came. */
static int keep(void *arg, int slot, int fd)
{
    struct gi_cuda_multimem *m = arg;
    return in_my_process(m->map, slot) ? GIN_OK : gi_gpu_object_import(fd, &m->share->object);
}

/* By the first rank of a team. */
static int make(struct gi_cuda_multimem *m, int *fd)
{
    const struct gi_cuda_map *map = m->map;
    uint64_t granule = 0, off, bytes;
    int gpus = map->c.team->lsa_size;
    int st = gi_gpu_multicast_granule(gpus, m->bytes, &granule);
    for (size_t i = 0; st == GIN_OK && gi_cuda_map_piece(map, 0, i, &off, &bytes); i++)
        if (granule == 0 || off % granule != 0 || bytes % granule != 0)
            return gi_fail(GIN_ENOTSUP,
                           "multimem: %llu bytes of the GPU heap at %llu are no multiple of the "
                           "%llu bytes that multicast needs; GINSHMEM_HEAP_CHUNK and "
                           "GINSHMEM_CUDA_HEAP_SIZE set them",
                           (ull)bytes, (ull)off, (ull)granule);
    if (st == GIN_OK)
        st = gi_gpu_multicast_create(gpus, m->bytes, &m->share->object);
    return st == GIN_OK && map->passes ? gi_gpu_object_export(m->share->object, fd) : st;
}

/* The first rank's object in every process. Each process' first rank holds it for the others. */
static int have_object(struct gi_cuda_multimem *m, uint64_t deadline)
{
    struct gi_shm_config c = m->map->c.shm;
    const struct gi_shm *team = m->map->c.team;
    struct word mine, *all = NULL;
    bool lead = leader(m->map) == team->lsa_rank;
    int fd = -1, st = GIN_OK;
    c.deadline = deadline;
    if (lead && (m->share = new_share(m->map)) == NULL)
        st = gi_fail(GIN_ENOMEM, "no memory for a multicast object");
    if (st == GIN_OK && team->lsa_rank == 0)
        st = make(m, &fd);
    memset(&mine, 0, sizeof(mine));
    int made = st;
    char text[sizeof(mine.report.text)];
    snprintf(text, sizeof(text), "%s", gin_last_error());
    st = gi_shm_pass(&c, team, fd, st, keep, m);
    if (fd >= 0)
        gi_os_close(fd);
    if (made != GIN_OK) /* the reason, not that passing was stopped */
        st = gi_fail(made, "%s", text);
    mine.share = (uint64_t)(uintptr_t)m->share;
    st = meet(&c, &mine, st, &all);
    if (st == GIN_OK) {
        m->share =
            (struct gi_cuda_multimem_share *)(uintptr_t)all[team->world_of[leader(m->map)]].share;
    } else if (m->share != NULL) {
        atomic_store_explicit(&m->share->refs, 1, memory_order_relaxed); /* nobody came */
        drop_share(m->share);
        m->share = NULL;
    }
    free(all);
    return st;
}

/* ---- my part of it ---- */

static int bind(struct gi_cuda_multimem *m)
{
    const struct gi_cuda_map *map = m->map;
    int st = GIN_OK, slot = map->c.team->lsa_rank;
    uint64_t off, bytes;
    for (; st == GIN_OK && gi_cuda_map_piece(map, slot, m->bound, &off, &bytes); m->bound++) {
        st = gi_gpu_multicast_bind(m->share->object, map->c.gpu, off, gi_cuda_slot(map, slot) + off,
                                   bytes);
        if (st != GIN_OK)
            break;
    }
    return st;
}

static int map_it(struct gi_cuda_multimem *m)
{
    int st = gi_gpu_reserve(m->bytes, 0, &m->base);
    if (st == GIN_OK)
        st = gi_gpu_map(m->base, m->bytes, m->share->object);
    if (st != GIN_OK)
        return st;
    m->mapped = true;
    return gi_gpu_allow(m->base, m->bytes, m->map->c.gpu->device);
}

void gi_cuda_multimem_close(struct gi_cuda_multimem *m)
{
    uint64_t off, bytes;
    if (m == NULL)
        return;
    if (m->mapped)
        gi_gpu_unmap(m->base, m->bytes);
    if (m->base != 0)
        gi_gpu_unreserve(m->base, m->bytes);
    while (m->bound-- > 0)
        if (gi_cuda_map_piece(m->map, m->map->c.team->lsa_rank, m->bound, &off, &bytes))
            gi_gpu_multicast_unbind(m->share->object, m->map->c.gpu, off, bytes);
    drop_share(m->share);
    free(m);
}

int gi_cuda_multimem_open(struct gi_cuda_map *map, const char *off, uint64_t deadline,
                          struct gi_cuda_multimem **mm)
{
    struct gi_cuda_multimem *m = calloc(1, sizeof(*m));
    int st = look(map, m != NULL ? off : "no memory");
    if (st != GIN_OK) {
        free(m);
        return st;
    }
    m->map = map;
    m->bytes = map->mapped;
    st = have_object(m, deadline);
    if (st == GIN_OK)
        st = agree(m, gi_gpu_multicast_add(m->share->object, map->c.gpu));
    if (st == GIN_OK)
        st = agree(m, bind(m));
    if (st == GIN_OK)
        st = agree(m, map_it(m));
    if (st == GIN_OK)
        *mm = m;
    else
        gi_cuda_multimem_close(m);
    return st;
}
