/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole way of a kernel's operation to a rank that only the network reaches: device code, ring,
 * engine, core, provider. The driver is the fake one and kernels are threads (far_kernels.cc), all
 * else is what runs with GPUs. tests/cuda/far.sh builds it.
 */
#include <unistd.h>
#include "tests/cuda/cuda_test.h"
#include "tests/cuda/far_kernels.h"

static bool prepare(struct mp *mp, struct far_run *run, bool all_far)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.world_barriers = r.hybrid_barriers = FAR_BLOCKS;
    if (all_far)
        r.paths = GIN_PATH_SELF | GIN_PATH_NET;
    memset(run, 0, sizeof(*run));
    run->in_p = gin_calloc(mp->comm, FAR_BLOCKS, FAR_BYTES);
    run->out_p = gin_calloc(mp->comm, FAR_BLOCKS, FAR_BYTES);
    run->back_p = gin_calloc(mp->comm, FAR_BLOCKS, FAR_BYTES);
    void *words = gin_calloc(mp->comm, 1, 4096);
    EXPECT_OK(gin_window_of(mp->comm, run->in_p, &run->in.win, &run->in.off));
    EXPECT_OK(gin_window_of(mp->comm, run->out_p, &run->out.win, &run->out.off));
    EXPECT_OK(gin_window_of(mp->comm, run->back_p, &run->back.win, &run->back.off));
    EXPECT_OK(gin_window_of(mp->comm, words, &run->words.win, &run->words.off));
    if (!cuda_dev(mp, &r))
        return false;
    run->dev = mp->dev;
    run->rounds = 16;
    return EXPECT_OK(gin_comm_barrier(mp->comm));
}

static void judge(const struct far_run *run)
{
    if (run->failures != 0)
        FAIL("%d failures of kernels, the first in line %d: %lld, not %lld", run->failures,
             run->line, run->got, run->want);
}

static void all_groups(struct mp *mp, bool all_far)
{
    static const unsigned groups[] = {GIN_GROUP_THREAD, GIN_GROUP_WARP, GIN_GROUP_BLOCK};
    for (int i = 0; i < 3; i++) {
        struct far_run run;
        mp_step(mp, "group %u", groups[i]);
        if (!prepare(mp, &run, all_far))
            return;
        run.group = groups[i];
        run.rounds = i == 0 ? 16 : 8;
        far_exchange(&run);
        judge(&run);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    }
}

MP_TEST_OPT(far_hosts, .ranks = "2 3", .hosts = "ABC", .only = MP_THREADS, .deadline = 240)
{
    all_groups(mp, false);
}

MP_TEST_OPT(near_and_far, .ranks = "4", .hosts = "AABB", .only = MP_THREADS, .deadline = 240)
{
    all_groups(mp, false);
}

MP_TEST_OPT(network_alone, .ranks = "2", .only = MP_PROCS, .deadline = 240)
{
    all_groups(mp, true);
}

MP_TEST_OPT(nobody_leaves_early, .ranks = "3 5", .hosts = "ABBCA", .only = MP_THREADS,
            .deadline = 240)
{
    struct far_run run;
    if (!prepare(mp, &run, false))
        return;
    run.group = GIN_GROUP_THREAD;
    run.rounds = 30;
    far_barriers(&run);
    judge(&run);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* What waits is not kept by what others post meanwhile. */
MP_TEST_OPT(quiet_among_others, .ranks = "2", .hosts = "AB", .deadline = 240)
{
    struct far_run run;
    if (!prepare(mp, &run, false))
        return;
    far_quiet(&run);
    judge(&run);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Who cannot tell the others that it has come does not wait for them. */
MP_TEST_OPT(barriers_of_dead_contexts, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .deadline = 240)
{
    struct far_run run;
    if (!prepare(mp, &run, false))
        return;
    if (mp->rank == 0)
        far_dead(&run);
    judge(&run);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* A kernel that waits for ever is released. */
MP_TEST_OPT(abort_releases_kernels, .ranks = "2", .hosts = "AB", .bare = true, .deadline = 240)
{
    struct far_run run;
    if (!mp_up(mp) || !prepare(mp, &run, false))
        return;
    if (mp->rank == 0) {
        usleep(20000);
        gin_comm_abort(mp->comm, "enough");
    }
    far_stuck(&run);
    judge(&run);
    EXPECT(run.status < 0);
    gin_finalize(mp->comm);
    mp->comm = NULL;
}
