/* SPDX-License-Identifier: BSD-3-Clause */
/* The harness for several ranks itself, without the library. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/mp.h"

MP_TEST_OPT(gathers_and_meets, .bare = true)
{
    enum { BIG = 10000 };
    static const size_t sizes[] = {0, 1, 8, 4095, 4096, 4097, BIG};
    char *in = malloc(BIG), *out = malloc((size_t)mp->size * BIG);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        mp_step(mp, "%zu bytes", sizes[i]);
        mp_poison(in, sizes[i], (uint64_t)mp->rank + i);
        EXPECT_EQ_INT(mp_allgather(mp, in, out, sizes[i]), 0);
        for (int r = 0; r < mp->size; r++)
            MP_CHECK_PATTERN(out + (size_t)r * sizes[i], sizes[i], (uint64_t)r + i);
    }
    __atomic_fetch_add((int *)(void *)mp->share, 1, __ATOMIC_RELAXED);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_EQ_INT(*(int *)(void *)mp->share, mp->size);
    free(in);
    free(out);
}

MP_TEST_OPT(groups_gather_apart, .bare = true, .hosts = "AB")
{
    struct mp_group group;
    gin_config_t config;
    int color = mp->rank % 2, n = (mp->size + 1 - color) / 2, all[mp->size];
    mp_group(mp, &group, &config, color, mp->rank / 2, n);
    EXPECT_EQ_STR(config.host_id, color ? "host-B" : "host-A");
    for (int round = 0; round < 100; round++) {
        int mine = mp->rank + round;
        EXPECT_EQ_INT(config.allgather(config.allgather_arg, &mine, all, sizeof(mine)), 0);
        for (int r = 0; r < n; r++)
            EXPECT_EQ_INT(all[r], 2 * r + color + round);
    }
}

MP_TEST_OPT(environment_and_seed, .bare = true, .ranks = "1 2", .env = "MP_A=1 MP_B=two MP_C=")
{
    uint64_t rng = mp->rng, common = mp->common, all[mp->size];
    EXPECT_EQ_STR(getenv("MP_A"), "1");
    EXPECT_EQ_STR(getenv("MP_B"), "two");
    EXPECT_EQ_STR(getenv("MP_C"), "");
    EXPECT_EQ_INT(mp_allgather(mp, &common, all, sizeof(common)), 0);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_U64(all[r], common);
    EXPECT_EQ_INT(mp_allgather(mp, &rng, all, sizeof(rng)), 0);
    for (int r = 0; r < mp->rank; r++)
        EXPECT(all[r] != rng);
}

MP_TEST_OPT(a_rank_may_die, .bare = true, .ranks = "3", .only = MP_PROCS)
{
    mp_expect_death(mp, 1);
    if (mp->rank == 1)
        raise(SIGKILL);
}

MP_TEST_OPT(skips, .bare = true, .ranks = "2")
{
    MP_SKIP("because rank %s says so", "any");
}

/* Shown to fail: MP_SHOW=hang, fail or die. */
MP_TEST_OPT(failures_are_seen, .bare = true, .ranks = "2")
{
    const char *what = getenv("MP_SHOW");
    if (what == NULL)
        MP_SKIP("MP_SHOW is not set to hang, fail or die");
    mp_step(mp, "about to %s", what);
    if (strcmp(what, "fail") == 0)
        EXPECT_EQ_INT(mp->rank, 0);
    if (strcmp(what, "die") == 0 && mp->rank == 1)
        raise(SIGSEGV);
    while (mp->rank == 0 && strcmp(what, "hang") == 0)
        pause();
}
