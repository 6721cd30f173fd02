/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BL-23: many barriers (-L: ten thousand at every count), ranks late at random; nobody leaves
 * before all have come.
 */
#include <sched.h>
#include "tests/mp.h"

MP_TEST_N(bl_23, "2 3 5 8")
{
    int barriers = (mp->long_mode ? 10000 : 10000 / mp->size / mp->size) / MP_FACTOR;
    uint64_t *came = (uint64_t *)(void *)mp->share; /* without the library */
    if (!mp_dev(mp, NULL))
        return;
    for (int i = 1; i <= barriers; i++) {
        for (uint64_t k = pt_below(&mp->rng, 64) == 0 ? pt_below(&mp->rng, 20) : 0; k > 0; k--)
            sched_yield();
        __atomic_store_n(&came[mp->rank], (uint64_t)i, __ATOMIC_RELAXED);
        if (!EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                                   GIN_FENCE_NONE)))
            return;
        for (int r = 0; r < mp->size; r++) {
            uint64_t n = __atomic_load_n(&came[r], __ATOMIC_RELAXED);
            if (!EXPECT(n == (uint64_t)i || n == (uint64_t)i + 1))
                return;
        }
        if (i % 100 == 0)
            mp_step(mp, "barrier %d", i);
    }
}
