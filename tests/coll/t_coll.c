/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective against what one rank alone computes: random calls, type, operation, count,
 * root, team, place of both buffers, in place or not, one behind the other without a barrier, on
 * made-up hosts, without load/store, with little scratch. Destinations are poisoned and lie between
 * canaries. -L: for as long as it takes.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/coll/oracle.h"

#define CAP  (1u << 19) /* bytes of a side */
#define EACH (CAP + 2 * MP_CANARY + 64)

struct bed {
    struct mp *mp;
    char *heap[2], *local[2], *want;
    gin_team_t teams[5];
    int n_teams;
    uint64_t rng; /* the same on all ranks */
    bool bits, lags;
};

/* All ranks make the same teams, and know which of them they are in. */
static void make_teams(struct bed *b)
{
    struct mp *mp = b->mp;
    gin_team_t world = gin_team_world(mp->comm), *t = b->teams;
    int list[64], n = 0, half = (mp->size + 1) / 2;
    b->n_teams = 0;
    t[b->n_teams++] = world;
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, half, &t[b->n_teams++]));
    EXPECT_OK(
        gin_team_split_strided(mp->comm, world, mp->size - 1, -1, mp->size, &t[b->n_teams++]));
    EXPECT_OK(gin_team_split_strided(mp->comm, world, mp->size - half, 1, half, &t[b->n_teams++]));
    for (int r = mp->size - 1; r >= 0; r--)
        if (r % 3 != 1)
            list[n++] = r;
    t[b->n_teams] = gin_team_invalid();
    if (mp->rank % 3 != 1)
        EXPECT_OK(gin_team_create(mp->comm, list, n, &t[b->n_teams]));
    b->n_teams++;
}

static bool bed_up(struct bed *b, struct mp *mp, bool bits)
{
    *b = (struct bed){.mp = mp, .rng = mp->common, .bits = bits};
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 2;
    if (mp->config.host_id != NULL ? !mp_net(mp, &reqs) : !mp_dev(mp, &reqs))
        return false;
    for (int i = 0; i < 2; i++) {
        b->heap[i] = gin_malloc(mp->comm, EACH);
        b->local[i] = malloc(EACH);
        if (!EXPECT(b->heap[i] != NULL && b->local[i] != NULL))
            return false;
    }
    b->want = malloc(CAP);
    make_teams(b);
    return EXPECT(b->want != NULL);
}

static void bed_down(struct bed *b)
{
    EXPECT_OK(gin_comm_barrier(b->mp->comm));
    for (int i = 0; i < 2 && b->heap[i] != NULL; i++) {
        EXPECT_OK(gin_free(b->mp->comm, b->heap[i]));
        free(b->local[i]);
    }
    free(b->want);
}

static int call(const struct job *j, const gin_t *g, gin_team_t team, uint32_t index, void *to,
                const void *from)
{
    gin_group_t me = gin_thread();
    gin_at_t dst = gin_at_ptr(g, to), src = gin_at_ptr(g, from);
    size_t n = j->count, dc[64], sc[64], firsts[64], sum = 0;
    gin_clear_error();
    if (dst.win.w == 0)
        dst = gin_at_local(to);
    if (src.win.w == 0)
        src = gin_at_local(from);
    for (int r = 0; r < j->n; r++) {
        dc[r] = job_count_v(j, r, j->me);
        sc[r] = job_count_v(j, j->me, r);
        firsts[r] = sum;
        sum += dc[r];
    }
    switch (j->kind) {
    case BROADCAST: return gin_broadcast(g, me, team, index, dst, src, n, j->type, j->root);
    case ALLGATHER: return gin_allgather(g, me, team, index, dst, src, n, j->type);
    case GATHER: return gin_gather(g, me, team, index, dst, src, n, j->type, j->root);
    case ALLTOALL: return gin_alltoall(g, me, team, index, dst, src, n, j->type);
    case ALLTOALLV:
        return gin_alltoallv(g, me, team, index, dst, dc, j->in_place ? NULL : firsts, src, sc,
                             NULL, j->type);
    case ALLREDUCE: return gin_allreduce(g, me, team, index, dst, src, n, j->type, j->op);
    case REDUCE: return gin_reduce(g, me, team, index, dst, src, n, j->type, j->op, j->root);
    case REDUCE_SCATTER: return gin_reduce_scatter(g, me, team, index, dst, src, n, j->type, j->op);
    case SCAN: return gin_scan(g, me, team, index, dst, src, n, j->type, j->op);
    default: return gin_scan_exclusive(g, me, team, index, dst, src, n, j->type, j->op);
    }
}

/* Where a buffer lies: heap or not, aligned or not; a rank's own business. */
static char *buffer(struct bed *b, int side)
{
    uint64_t w = pt_random(&b->mp->rng);
    char *base = (w & 1) ? b->heap[side] : b->local[side];
    return base + MP_CANARY + ((w & 2) ? (w >> 8) % 64 : 0);
}

/* Does this rank pass one place for both? Of rooted calls it matters at the root alone. */
static bool passes_one(const struct job *j)
{
    bool at_root = j->me == j->root;
    switch (j->kind) {
    case BROADCAST: return j->in_place && at_root;
    case GATHER:
    case REDUCE: return j->in_place && at_root;
    default: return j->in_place;
    }
}

/* Up to 1 ms, on some ranks. */
static void lag(struct bed *b)
{
    struct timespec t = {0, (long)(pt_random(&b->mp->rng) % 1000000)};
    if (b->lags && pt_random(&b->mp->rng) % 3 == 0)
        nanosleep(&t, NULL);
}

/* Bytes of a dst that this rank passes in vain: what the root's has, 64 at least. */
static size_t spared(const struct job *j)
{
    struct job r = *j;
    r.me = r.root;
    size_t bytes = job_dst(&r) * type_size(j->type);
    return bytes > 64 ? bytes : 64;
}

/* *most: bytes of dst up to its canaries. */
static void lay_out(struct bed *b, const struct job *j, char **dst, char **src, size_t *most)
{
    size_t size = type_size(j->type), bytes = job_src(j) * size, room = job_dst(j) * size;
    *dst = buffer(b, 0);
    *src = passes_one(j) ? *dst : buffer(b, 1);
    *most = *dst == *src && bytes > room ? bytes : room != 0 ? room : spared(j);
    mp_canaries(*dst, *most);
    mp_poison(*dst, *most, ~j->seed);
    if (*dst == *src && (j->kind == ALLGATHER || j->kind == GATHER))
        job_fill(j, j->me, *dst + (size_t)j->me * j->count * size);
    else
        job_fill(j, j->me, *src);
}

static bool run_job(struct bed *b, const struct job *j, gin_team_t team, uint32_t index)
{
    struct mp *mp = b->mp;
    char *dst, *src;
    size_t at, most;
    lay_out(b, j, &dst, &src, &most);
    mp_step(mp, "%s, type %d, op %d, count %zu, team of %d, root %d%s, seed %llu",
            kind_names[j->kind], (int)j->type, (int)j->op, j->count, j->n, j->root,
            j->in_place ? ", in place" : "", (unsigned long long)j->seed);
    lag(b);
    if (!EXPECT_OK(call(j, &mp->g, team, index, dst, src)))
        return false;
    size_t bytes = job_want(j, b->want);
    if (!job_equal(j, dst, b->want, bytes, &at)) {
        pt_fail(
            __FILE__, __LINE__,
            "%s, type %d, op %d, count %zu, rank %d of %d, root %d%s, heap %d %d: number %zu is "
            "not what it should be",
            kind_names[j->kind], (int)j->type, (int)j->op, j->count, j->me, j->n, j->root,
            j->in_place ? ", in place" : "", (int)(dst >= b->heap[0] && dst < b->heap[0] + EACH),
            (int)(src >= b->heap[1] && src < b->heap[1] + EACH), at);
        return false;
    }
    if (bytes == 0 && dst != src && !MP_CHECK_PATTERN(dst, most, ~j->seed))
        return false;
    return MP_CHECK_CANARIES(dst, most);
}

/* A count of some class, such that all fits. */
static size_t choose_count(struct bed *b, const struct job *j)
{
    static const size_t classes[] = {0, 1, 2, 5, 13, 64, 257, 1000, 4100, 20000, 70000};
    uint64_t w = pt_random(&b->rng);
    size_t n = classes[w % (sizeof(classes) / sizeof(classes[0]))] + (w >> 32) % 3;
    size_t per = j->kind <= ALLTOALLV && j->kind != BROADCAST ? (size_t)j->n : 1;
    per = j->kind == REDUCE_SCATTER ? (size_t)j->n : per;
    size_t most = CAP / per / type_size(j->type);
    return n < most ? n : most;
}

/* The next call, the same on all ranks; false: I am no member of its team. */
static bool choose(struct bed *b, struct job *j, int *team)
{
    *j = (struct job){.bits = b->bits};
    j->kind = pt_random(&b->rng) % KINDS;
    do {
        j->type = (gin_type_t)(pt_random(&b->rng) % (GIN_COMPLEX_DOUBLE + 1));
        j->op = (gin_reduction_t)(pt_random(&b->rng) % (GIN_XOR + 1));
    } while (!has_op(j->type, j->op));
    *team = (int)(pt_random(&b->rng) % (uint64_t)b->n_teams);
    uint64_t root = pt_random(&b->rng), place = pt_random(&b->rng);
    j->seed = pt_random(&b->rng);
    gin_team_t t = b->teams[*team];
    j->n = t.size > 0 ? t.size : 1;
    j->me = t.rank;
    j->root = (int)(root % (uint64_t)j->n);
    j->in_place = place % 3 == 0;
    j->count = choose_count(b, j);
    return t.size > 0 && t.rank >= 0;
}

static void jobs(struct bed *b, int n)
{
    struct mp *mp = b->mp;
    struct job j;
    int team;
    for (int i = 0; i < mp_rounds(mp, mp->long_mode ? 100 * n : n); i++)
        if (choose(b, &j, &team) && !run_job(b, &j, b->teams[team], (uint32_t)i % 2))
            break;
}

static void many(struct mp *mp, int n, bool bits)
{
    struct bed b;
    if (bed_up(&b, mp, bits))
        jobs(&b, n);
    bed_down(&b);
}

/* Ranks come late to some calls, early to others. */
static void many_lagging(struct mp *mp, int n)
{
    struct bed b;
    if (bed_up(&b, mp, false)) {
        b.lags = true;
        jobs(&b, n);
    }
    bed_down(&b);
}

MP_TEST_OPT(on_one_host, .ranks = "1 2 3 5 6 7 8")
{
    many(mp, 60, false);
}

/* Any bits, and the same for any placement: what one rank computes in the order of ranks. */
MP_TEST_OPT(in_the_order_of_ranks, .ranks = "2 3 8", .env = "GINSHMEM_COLL_ORDER=rank")
{
    many(mp, 60, true);
}

MP_TEST_OPT(with_little_scratch, .ranks = "3 8", .env = "GINSHMEM_COLL_SCRATCH=4096")
{
    many(mp, 40, false);
}

MP_TEST_OPT(lagging, .ranks = "2 5 8", .env = "GINSHMEM_COLL_SCRATCH=4096")
{
    many_lagging(mp, 100);
}

MP_TEST_OPT(lagging_on_hosts, .ranks = "5", .hosts = "AABAB", .only = MP_PROCS)
{
    many_lagging(mp, 60);
}

MP_TEST_OPT(checked, .ranks = "1 3 6", .env = "GINSHMEM_CHECK=1")
{
    many(mp, 40, false);
}

MP_TEST_OPT(on_two_hosts, .ranks = "3 4 6", .hosts = "AABB", .only = MP_PROCS)
{
    many(mp, 25, false);
}

MP_TEST_OPT(on_mixed_hosts, .ranks = "5 7 8", .hosts = "ABACAAB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_SCRATCH=65536")
{
    many(mp, 25, false);
}

MP_TEST_OPT(in_the_order_of_ranks_on_hosts, .ranks = "5", .hosts = "ABA", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ORDER=rank GINSHMEM_CHECK=1")
{
    many(mp, 25, true);
}

MP_TEST_OPT(directly_on_hosts, .ranks = "6", .hosts = "ABB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=flat")
{
    many(mp, 25, false);
}

/* ---- by every way ---- */

/* Every collective with a type of every class, short, of some messages, of many steps; so that each
 * way that it has comes to each of them. */
static void sweep(struct mp *mp, bool bits)
{
    static const struct {
        gin_type_t type;
        gin_reduction_t op;
    } classes[] = {{GIN_INT32, GIN_SUM},   {GIN_UINT8, GIN_XOR},         {GIN_BFLOAT16, GIN_MAX},
                   {GIN_DOUBLE, GIN_PROD}, {GIN_COMPLEX_FLOAT, GIN_SUM}, {GIN_HALF, GIN_SUM}};
    static const size_t counts[] = {1, 9, 700, 6000};
    struct bed b;
    if (!bed_up(&b, mp, bits))
        return bed_down(&b);
    for (int i = 0, good = 1; good && i < KINDS * 4 * (mp->slow > 1 ? 1 : 3); i++) {
        struct job j = {.kind = (enum kind)(i % KINDS), .bits = bits, .n = mp->size};
        size_t c = (size_t)(pt_random(&b.rng) % 6);
        j.type = classes[c].type;
        j.op = classes[c].op;
        j.me = mp->rank;
        j.root = (int)(pt_random(&b.rng) % (uint64_t)mp->size);
        j.in_place = pt_random(&b.rng) % 3 == 0;
        j.seed = pt_random(&b.rng);
        j.count = counts[i / KINDS % 4];
        if (j.count * type_size(j.type) * (size_t)mp->size > CAP)
            j.count = CAP / type_size(j.type) / (size_t)mp->size;
        good = run_job(&b, &j, b.teams[0], 0);
    }
    bed_down(&b);
}

static void both(struct mp *mp, bool bits)
{
    sweep(mp, bits);
    many(mp, 20, bits);
}

MP_TEST_OPT(by_trees, .ranks = "1 2 3 5 6 7 8", .env = "GINSHMEM_COLL_ALGO=tree")
{
    both(mp, false);
}

MP_TEST_OPT(by_trees_on_hosts, .ranks = "5", .hosts = "ABACA", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=tree")
{
    both(mp, false);
}

/* Of any bits: a chain is in the order of ranks. */
MP_TEST_OPT(by_chains, .ranks = "1 2 5 8",
            .env = "GINSHMEM_COLL_ALGO=chain GINSHMEM_COLL_ORDER=rank")
{
    both(mp, true);
}

MP_TEST_OPT(by_hosts_one_by_one, .ranks = "1 2 3 5 6 7 8", .hosts = "AB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=hosts")
{
    both(mp, false);
}

MP_TEST_OPT(by_hosts_in_blocks, .ranks = "3 5 8", .hosts = "AAAABBBB", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=hosts")
{
    both(mp, false);
}

MP_TEST_OPT(by_hosts_of_any_size, .ranks = "2 6 7 8", .hosts = "ABACAABA", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=hosts GINSHMEM_COLL_SCRATCH=4096")
{
    both(mp, false);
}

MP_TEST_OPT(by_hosts_in_the_order_of_ranks, .ranks = "3 6 8", .hosts = "ABACAABA", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_ALGO=hosts GINSHMEM_COLL_ORDER=rank")
{
    both(mp, true);
}
