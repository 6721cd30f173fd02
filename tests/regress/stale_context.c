/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A context outlives its communicator in the program's hands: every kind of operation on it is
 * GIN_ESTATE, none of them touches unmapped memory.
 */
#include "tests/mp.h"

MP_TEST_OPT(a_context_after_finalize_is_refused, .ranks = "1 2", .bare = true)
{
    gin_devcomm_t dev;
    gin_t g;
    uint64_t v = 7, old = 0;
    if (!mp_up(mp))
        return;
    uint64_t *word = gin_calloc(mp->comm, 1, 64);
    EXPECT_EQ_INT(gin_devcomm_create(mp->comm, NULL, &dev), GIN_OK);
    EXPECT_EQ_INT(gin_open(&dev, 0, &g), GIN_OK);
    gin_at_t at = gin_at_ptr(&g, word);
    gin_team_t world = gin_world(&g);
    int peer = (mp->rank + 1) % mp->size;
    EXPECT(mp_down(mp));
    EXPECT_EQ_INT(gin_put(&g, gin_thread(), world, peer, at, gin_at_local(&v), 8, gin_weak_inc(0)),
                  GIN_ESTATE);
    EXPECT_EQ_INT(gin_get(&g, gin_thread(), world, peer, at, gin_at_local(&v), 8), GIN_ESTATE);
    EXPECT_EQ_INT(gin_signal(&g, gin_thread(), world, peer, gin_strong_inc(0)), GIN_ESTATE);
    EXPECT_EQ_INT(gin_amo_fetch_add(&g, gin_thread(), world, peer, at, 1, &old), GIN_ESTATE);
    EXPECT_EQ_INT(gin_wait_signal(&g, gin_thread(), 0, 1), GIN_ESTATE);
    EXPECT_EQ_INT(gin_quiet(&g, gin_thread()), GIN_ESTATE);
    EXPECT_EQ_INT(gin_barrier(&g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0),
                  GIN_ESTATE);
    EXPECT_EQ_INT(gin_open(&dev, 0, &g), GIN_ESTATE);
}
