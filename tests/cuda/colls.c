/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of kernels against the oracle: random calls, type, operation, count, root, team,
 * place of both buffers, in place or not, of two indices at once and one behind the other without a
 * barrier, by every kind of group, near and far. Elements are of any bits, since kernels fold in
 * the order of ranks. The driver is the fake one, kernels are threads (coll_kernels.cc), all else
 * is what runs with GPUs. tests/cuda/colls.sh builds it.
 */
#include <unistd.h>
#include "tests/cuda/coll_bed.h"

/* The team of me alone. */
static gin_team_t alone(struct mp *mp)
{
    gin_team_t t = gin_team_invalid();
    EXPECT_OK(gin_team_split_strided(mp->comm, gin_team_world(mp->comm), mp->rank, 1, 1, &t));
    return t;
}

/* Where I am no member I make a sync with myself. */
static bool batch(struct bed *b, gin_group_t group, unsigned threads)
{
    struct coll_run run = {.dev = b->mp->dev, .cases = b->cases, .n = BATCH, .group = group};
    bool mine[BATCH], good = true;
    run.threads = threads;
    draw(b, mine);
    for (int i = 0; i < BATCH; i++)
        if (!mine[i])
            b->cases[i] = (struct coll_case){
                .index = (unsigned)i % COLL_BLOCKS, .call = -1, .team = alone(b->mp)};
    coll_kernel(&run);
    for (int i = 0; i < BATCH && good; i++)
        if (mine[i])
            good = judge(b, i);
    return good;
}

static void many(struct mp *mp, int n, bool all_far)
{
    static const struct {
        gin_group_t group;
        unsigned threads;
    } groups[] = {{{GIN_GROUP_BLOCK, 0}, 6},
                  {{GIN_GROUP_THREAD, 0}, 2},
                  {{GIN_GROUP_WARP, 0}, 35},
                  {{GIN_GROUP_TILE, 4}, 8},
                  {{GIN_GROUP_WARP_SPAN, 0x10101}, 37},
                  {{GIN_GROUP_BLOCK, 0}, 40}};
    struct bed *b = malloc(sizeof(*b));
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    if (all_far)
        r.paths = GIN_PATH_SELF | GIN_PATH_NET;
    bool good = bed_up(b, mp, &r);
    for (int i = 0; good && i < mp_rounds(mp, mp->long_mode ? 50 * n : n); i++) {
        mp_step(mp, "batch %d", i);
        good = batch(b, groups[i % 6].group, groups[i % 6].threads);
    }
    bed_down(b);
    free(b);
}

MP_TEST_OPT(near, .ranks = "1 2 3 5", .deadline = 240)
{
    many(mp, 12, false);
}

MP_TEST_OPT(near_with_little_scratch, .ranks = "2 4", .env = "GINSHMEM_COLL_SCRATCH=4096",
            .deadline = 240)
{
    many(mp, 12, false);
}

MP_TEST_OPT(far, .ranks = "2 3", .hosts = "ABC", .only = MP_THREADS, .deadline = 240)
{
    many(mp, 8, false);
}

MP_TEST_OPT(near_and_far, .ranks = "3 5", .hosts = "AABBA", .only = MP_THREADS,
            .env = "GINSHMEM_COLL_SCRATCH=65536", .deadline = 240)
{
    many(mp, 8, false);
}

MP_TEST_OPT(network_alone, .ranks = "2", .only = MP_PROCS, .deadline = 240)
{
    many(mp, 6, true);
}

/* ---- what is refused, and what ends otherwise ---- */

static int one(struct mp *mp, struct coll_case *c, gin_group_t group)
{
    struct coll_run run = {.dev = mp->dev, .cases = c, .n = 1, .group = group, .threads = 3};
    coll_kernel(&run);
    return c->status;
}

#define REFUSED(want, ...)                        \
    do {                                          \
        struct coll_case c_ = {.call = ALLREDUCE, \
                               .team = world,     \
                               .type = GIN_INT32, \
                               .count = 16,       \
                               .dst = dst,        \
                               .src = src,        \
                               __VA_ARGS__};      \
        EXPECT_EQ_INT(one(mp, &c_, block), want); \
    } while (0)

MP_TEST_OPT(refusals, .ranks = "1 3")
{
    struct bed *b = malloc(sizeof(*b));
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    if (bed_up(b, mp, &r)) {
        gin_at_t dst, src = gin_at_local(b->side[1].local);
        gin_team_t world = gin_team_world(mp->comm), stranger = world, odd = world;
        const gin_group_t block = {GIN_GROUP_BLOCK, 0};
        size_t some[RANKS] = {0};
        EXPECT_OK(gin_window_of(mp->comm, b->side[0].heap, &dst.win, &dst.off));
        stranger.rank = -1;
        odd.rank = (mp->rank + 1) % mp->size;
        REFUSED(GIN_ERANGE, .index = COLL_BLOCKS);
        REFUSED(GIN_EINVAL, .type = (gin_type_t)99);
        REFUSED(GIN_EINVAL, .op = (gin_reduction_t)7);
        REFUSED(GIN_ENOTSUP, .type = GIN_FLOAT, .op = GIN_AND);
        REFUSED(GIN_ENOTSUP, .type = GIN_COMPLEX_DOUBLE, .op = GIN_MIN);
        REFUSED(GIN_ERANGE, .call = REDUCE, .root = mp->size);
        REFUSED(GIN_ERANGE, .call = BROADCAST, .root = -1);
        REFUSED(GIN_EINVAL, .src = gin_at(dst.win, dst.off + 4));
        REFUSED(GIN_ERANGE, .dst = gin_at(dst.win, (uint64_t)1 << 50));
        REFUSED(GIN_EINVAL, .src = gin_at_local(NULL));
        REFUSED(GIN_ERANGE, .count = (size_t)1 << 60);
        REFUSED(GIN_ESTATE, .src = gin_at((gin_window_t){12345}, 0));
        REFUSED(GIN_ESTATE, .team = stranger);
        REFUSED(GIN_EINVAL, .team = gin_team_invalid());
        if (mp->size > 1)
            REFUSED(GIN_EINVAL, .team = odd);
        REFUSED(GIN_EINVAL, .call = ALLTOALLV, .src_counts = some);
        some[mp->rank] = 1;
        REFUSED(GIN_EINVAL, .call = ALLTOALLV, .src_counts = some,
                .dst_counts = (size_t[RANKS]){0});
        REFUSED(GIN_OK); /* nobody has met, nothing is out of step */
        bed_down(b);
    }
    free(b);
}

/* Who does not come ends the wait of the others, and the index's use; other indices go on. */
MP_TEST_OPT(one_does_not_come, .ranks = "3")
{
    struct bed *b = malloc(sizeof(*b));
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.collective_timeout_ns = 300000000;
    if (bed_up(b, mp, &r)) {
        const gin_group_t groups[] = {{GIN_GROUP_BLOCK, 0}, {GIN_GROUP_THREAD, 0}};
        struct coll_case c = {.call = -1, .team = gin_team_world(mp->comm)};
        for (int i = 0; i < 2 && mp->rank != 1; i++)
            EXPECT_EQ_INT(one(mp, &c, groups[i]), GIN_ETIMEDOUT);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        c.index = 1;
        EXPECT_EQ_INT(one(mp, &c, groups[0]), GIN_OK);
        bed_down(b);
    }
    free(b);
}

/* A wait ends with the communicator. */
MP_TEST_OPT(abort_ends_it, .ranks = "2", .bare = true, .deadline = 60)
{
    struct coll_case c = {.call = -1};
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    if (!mp_up(mp) || !cuda_dev(mp, &r))
        return;
    c.team = gin_team_world(mp->comm);
    if (mp->rank == 0) {
        usleep(50000);
        gin_comm_abort(mp->comm, "enough");
    } else {
        EXPECT_EQ_INT(one(mp, &c, (gin_group_t){GIN_GROUP_BLOCK, 0}), GIN_EPEER);
    }
    gin_finalize(mp->comm);
    mp->comm = NULL;
}

/* A rank without kernels cannot be met, and nobody waits for it. */
MP_TEST_OPT(a_member_has_no_kernels, .ranks = "2 3")
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.device = mp->rank == 0 ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
        return;
    struct coll_case c = {.call = -1, .team = gin_team_world(mp->comm)};
    if (mp->rank != 0)
        EXPECT_EQ_INT(one(mp, &c, (gin_group_t){GIN_GROUP_BLOCK, 0}), GIN_ENOTSUP);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
