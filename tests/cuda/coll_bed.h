/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random collectives of kernels or streams, and what they are to bring: cases whose buffers lie in
 * the heap or not, aligned or not, between canaries, of teams of all kinds. Include it once, in the
 * program's one file.
 */
#ifndef GINSHMEM_TESTS_CUDA_COLL_BED_H
#define GINSHMEM_TESTS_CUDA_COLL_BED_H

#include <cuda.h>
#include <stdlib.h>
#include "tests/coll/oracle.h"
#include "tests/cuda/cuda_test.h"
#include "tests/cuda/coll_kernels.h"

#define CAP   (96u << 10) /* bytes of a side */
#define EACH  (CAP + 2 * MP_CANARY + 64)
#define BATCH 12
#define RANKS 8

#define NAME(f)  NAME_(f)
#define NAME_(f) #f
#define DRV(f)   ((__typeof__(f) *)fake(NAME(f)))

struct side {
    char *heap, *local;
};

struct bed {
    struct mp *mp;
    struct side side[2]; /* BATCH buffers each */
    char *want, *poison;
    gin_team_t teams[5];
    int n_teams;
    uint64_t rng; /* the same on all ranks */
    struct coll_case cases[BATCH];
    struct job jobs[BATCH];
    char *dst[BATCH];
    size_t most[BATCH];
    size_t counts[BATCH][3][RANKS];
};

/* All ranks make the same teams, and know which of them they are in. */
static inline void make_teams(struct bed *b)
{
    struct mp *mp = b->mp;
    gin_team_t world = gin_team_world(mp->comm), *t = b->teams;
    int list[RANKS], n = 0, half = (mp->size + 1) / 2;
    t[b->n_teams++] = world;
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, half, &t[b->n_teams++]));
    EXPECT_OK(
        gin_team_split_strided(mp->comm, world, mp->size - 1, -1, mp->size, &t[b->n_teams++]));
    for (int r = mp->size - 1; r >= 0; r--)
        if (r % 3 != 1)
            list[n++] = r;
    t[b->n_teams] = gin_team_invalid();
    if (mp->rank % 3 != 1)
        EXPECT_OK(gin_team_create(mp->comm, list, n, &t[b->n_teams]));
    b->n_teams++;
}

static inline bool bed_up(struct bed *b, struct mp *mp, gin_devcomm_reqs_t *r)
{
    CUdeviceptr gpu;
    *b = (struct bed){.mp = mp, .rng = mp->common};
    r->collectives = COLL_BLOCKS;
    if (!cuda_dev(mp, r))
        return false;
    make_teams(b); /* the device code finds lists that come later, too */
    fake_use(gin_team_node(mp->comm).rank % 2);
    for (int i = 0; i < 2; i++) {
        b->side[i].heap = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, (size_t)BATCH * EACH);
        if (!EXPECT(b->side[i].heap != NULL) ||
            !EXPECT_EQ_INT(DRV(cuMemAlloc)(&gpu, (size_t)BATCH * EACH), 0))
            return false;
        b->side[i].local = (char *)(uintptr_t)gpu;
    }
    b->want = malloc(CAP);
    return EXPECT(b->want != NULL);
}

static inline void bed_down(struct bed *b)
{
    EXPECT_OK(gin_comm_barrier(b->mp->comm));
    for (int i = 0; i < 2 && b->side[i].local != NULL; i++) {
        EXPECT_OK(gin_free(b->mp->comm, b->side[i].heap));
        EXPECT_EQ_INT(DRV(cuMemFree)((CUdeviceptr)(uintptr_t)b->side[i].local), 0);
    }
    free(b->want);
    fake_use(-1);
    EXPECT_OK(gin_devcomm_destroy(b->mp->comm, &b->mp->dev));
}

/* Where a buffer lies: heap or not, aligned or not; a rank's own business. */
static inline char *buffer(struct bed *b, int side, int i, gin_at_t *at)
{
    uint64_t w = pt_random(&b->mp->rng);
    char *base = (w & 1) ? b->side[side].heap : b->side[side].local;
    char *p = base + (size_t)i * EACH + MP_CANARY +
              ((w & 6) == 2   ? (w >> 8) % 64
               : (w & 6) == 4 ? (w >> 8) % 8 * 8
                              : 0);
    if (!(w & 1))
        *at = gin_at_local(p);
    else
        EXPECT_OK(gin_window_of(b->mp->comm, p, &at->win, &at->off));
    if ((w & 8) && (w & 1))
        *at = gin_at_local(p); /* of the heap all the same */
    return p;
}

static inline bool passes_one(const struct job *j)
{
    bool rooted = j->kind == BROADCAST || j->kind == GATHER || j->kind == REDUCE;
    return j->in_place && (!rooted || j->me == j->root);
}

/* The next call, the same on all ranks; false: I am no member of its team. */
static inline bool choose(struct bed *b, struct job *j, int *team)
{
    static const size_t classes[] = {0, 1, 2, 5, 13, 64, 257, 1000, 4100, 20000};
    *j = (struct job){.bits = true};
    j->kind = (enum kind)(pt_random(&b->rng) % KINDS);
    do {
        j->type = (gin_type_t)(pt_random(&b->rng) % (GIN_COMPLEX_DOUBLE + 1));
        j->op = (gin_reduction_t)(pt_random(&b->rng) % (GIN_XOR + 1));
    } while (!has_op(j->type, j->op));
    *team = (int)(pt_random(&b->rng) % (uint64_t)b->n_teams);
    uint64_t root = pt_random(&b->rng), place = pt_random(&b->rng), w = pt_random(&b->rng);
    j->seed = pt_random(&b->rng);
    gin_team_t t = b->teams[*team];
    j->n = t.size > 0 ? t.size : 1;
    j->me = t.rank;
    j->root = (int)(root % (uint64_t)j->n);
    j->in_place = place % 3 == 0;
    size_t most = CAP / (size_t)b->mp->size / type_size(j->type);
    j->count = classes[w % (sizeof(classes) / sizeof(classes[0]))] + (w >> 32) % 3;
    j->count = j->count < most ? j->count : most;
    return t.size > 0 && t.rank >= 0;
}

static inline void lay_out(struct bed *b, int i, gin_team_t team)
{
    struct job *j = &b->jobs[i];
    struct coll_case *c = &b->cases[i];
    size_t size = type_size(j->type), bytes = job_src(j) * size, room = job_dst(j) * size, sum = 0;
    char *src, *dst = buffer(b, 0, i, &c->dst);
    src = dst;
    c->src = c->dst;
    if (!passes_one(j))
        src = buffer(b, 1, i, &c->src);
    b->dst[i] = dst;
    b->most[i] = dst == src && bytes > room ? bytes : room != 0 ? room : 64;
    mp_canaries(dst, b->most[i]);
    mp_poison(dst, b->most[i], ~j->seed);
    job_fill(j, j->me,
             dst == src && (j->kind == ALLGATHER || j->kind == GATHER)
                 ? dst + (size_t)j->me * j->count * size
                 : src);
    c->call = (int)j->kind;
    c->root = j->root;
    c->type = j->type;
    c->op = j->op;
    c->count = j->count;
    c->team = team;
    c->index = (unsigned)i % COLL_BLOCKS;
    for (int r = 0; r < j->n; r++) {
        b->counts[i][0][r] = job_count_v(j, r, j->me);
        b->counts[i][1][r] = job_count_v(j, j->me, r);
        b->counts[i][2][r] = sum;
        sum += b->counts[i][0][r];
    }
    c->dst_counts = b->counts[i][0];
    c->src_counts = b->counts[i][1];
    c->dst_firsts = j->in_place ? NULL : b->counts[i][2];
    c->src_firsts = NULL;
}

static inline bool judge(struct bed *b, int i)
{
    const struct job *j = &b->jobs[i];
    const struct coll_case *c = &b->cases[i];
    size_t at, bytes = job_want(j, b->want);
    bool good = EXPECT_EQ_INT(c->status, GIN_OK);
    if (good && !job_equal(j, b->dst[i], b->want, bytes, &at))
        good = EXPECT_EQ_INT(at, ~0);
    if (good && bytes == 0 && c->dst.off != c->src.off)
        good = MP_CHECK_PATTERN(b->dst[i], b->most[i], ~j->seed);
    good = good && MP_CHECK_CANARIES(b->dst[i], b->most[i]);
    if (!good)
        FAIL("%s, type %d, op %d, count %zu, rank %d of %d, root %d%s, dst %p, src %llx, seed "
             "%llu",
             kind_names[j->kind], (int)j->type, (int)j->op, j->count, j->me, j->n, j->root,
             j->in_place ? ", in place" : "", (void *)b->dst[i], (unsigned long long)c->src.off,
             (unsigned long long)j->seed);
    return good;
}

/* The next batch; mine[i]: I am a member of case i's team. */
static inline void draw(struct bed *b, bool *mine)
{
    int team;
    for (int i = 0; i < BATCH; i++) {
        mine[i] = choose(b, &b->jobs[i], &team);
        if (mine[i])
            lay_out(b, i, b->teams[team]);
    }
}

#endif
