/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-52: a signal every millisecond, without SA_RESTART, from before the join to after the end. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include "tests/mp.h"

static uint64_t ticks;

static void tick(int sig)
{
    (void)sig;
    __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
}

static void timer(int us)
{
    struct itimerval t = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static void whole_life(struct mp *mp)
{
    enum { BYTES = 300000 };
    gin_window_t win;
    if (!mp_up(mp) || !mp_dev(mp, NULL))
        return;
    char *heap = gin_malloc(mp->comm, BYTES), *user = malloc(BYTES), *out = malloc(BYTES);
    int to = (mp->rank + 1) % mp->size, from = (mp->rank + mp->size - 1) % mp->size;
    uint64_t expected = 0;
    EXPECT_OK(gin_window_register(mp->comm, user, BYTES, 0, &win));
    bool reached = gin_window_path(mp->comm, win, to) != GIN_PATH_NONE;
    for (int round = 0; round < 30; round++) {
        mp_step(mp, "round %d", round);
        mp_poison(out, BYTES, (uint64_t)(round * 100 + mp->rank));
        EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at_ptr(&mp->g, heap),
                          gin_at_local(out), BYTES, gin_weak_inc(0)));
        expected++;
        if (reached) {
            EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(win, 0),
                              gin_at_local(out), BYTES, gin_weak_inc(0)));
            expected++;
        }
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, expected));
        MP_CHECK_PATTERN(heap, BYTES, (uint64_t)(round * 100 + from));
        if (reached)
            MP_CHECK_PATTERN(user, BYTES, (uint64_t)(round * 100 + from));
        EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
        char *p = gin_malloc(mp->comm, (size_t)1 << (10 + round % 14)); /* grows */
        EXPECT(p != NULL);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        EXPECT_OK(gin_free(mp->comm, p));
    }
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    mp_down(mp);
    free(user);
    free(out);
}

MP_TEST_OPT(bl_52, .ranks = "1 2 3", .bare = true)
{
    struct sigaction act = {.sa_handler = tick};
    bool first = !mp->threads || mp->rank == 0; /* the timer is the process's */
    if (first) {
        EXPECT_EQ_INT(sigaction(SIGALRM, &act, NULL), 0);
        timer(1000);
    }
    whole_life(mp);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (first) {
        timer(0);
        EXPECT(__atomic_load_n(&ticks, __ATOMIC_RELAXED) > 0);
    }
}
