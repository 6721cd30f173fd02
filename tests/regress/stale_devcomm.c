/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy of a destroyed device communicator, whose memory a new one has taken, frees nothing. */
#include "tests/mp.h"

MP_TEST_N(copies_do_not_destroy_the_next_one, "1 2")
{
    gin_devcomm_t first, copy, second;
    gin_t g;
    EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &first));
    copy = first;
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &first));
    EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &second));
    EXPECT_FAILS(gin_open(&copy, 0, &g), GIN_ESTATE, "destroyed");
    EXPECT_FAILS(gin_devcomm_destroy(mp->comm, &copy), GIN_ESTATE, "destroyed already");
    EXPECT_OK(gin_open(&second, 0, &g));
    for (int r = 0; r < mp->size; r++)
        EXPECT_OK(gin_signal(&g, gin_thread(), gin_world(&g), r, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, (uint64_t)mp->size));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &second));
}
