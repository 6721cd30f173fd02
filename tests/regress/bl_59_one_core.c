/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-59: 8 ranks on one core; the budget is processor time, so that a loaded machine may not fail.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include "tests/mp.h"

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static bool pin(void)
{
    cpu_set_t all, one;
    int c = 0;
    if (sched_getaffinity(0, sizeof(all), &all) != 0)
        return false;
    while (c < CPU_SETSIZE && !CPU_ISSET(c, &all))
        c++;
    CPU_ZERO(&one);
    CPU_SET(c, &one);
    return sched_setaffinity(0, sizeof(one), &one) == 0;
}

MP_TEST_OPT(bl_59, .ranks = "8", .bare = true)
{
    enum { BARRIERS = 1000 / MP_FACTOR, ROUNDS = 1000 / MP_FACTOR };
    double budget = 2.0 * MP_FACTOR, began;
    if (!pin())
        MP_SKIP("cannot choose a core");
    if (!mp_up(mp) || !mp_dev(mp, NULL))
        return;
    began = cpu_seconds();
    for (int i = 0; i < BARRIERS; i++)
        if (!EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                                   GIN_FENCE_ALL)))
            return;
    double barriers = cpu_seconds() - began;
    mp_step(mp, "ping-pong");
    began = cpu_seconds();
    int peer = mp->rank ^ 1;
    uint64_t *word = gin_calloc(mp->comm, 1, 8);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        if (mp->rank % 2 &&
            (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, i)) || !EXPECT_EQ_U64(*word, i)))
            return;
        EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), peer,
                                gin_at_ptr(&mp->g, word), i, 8, gin_weak_inc(0)));
        if (mp->rank % 2 == 0 &&
            (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, i)) || !EXPECT_EQ_U64(*word, i)))
            return;
    }
    double pings = cpu_seconds() - began;
    if (mp->rank == 0)
        printf("processor time of rank 0: %d barriers %.1f ms, %d ping-pongs %.1f ms\n", BARRIERS,
               barriers * 1e3, ROUNDS, pings * 1e3);
    EXPECT(barriers < budget);
    EXPECT(pings < budget);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
