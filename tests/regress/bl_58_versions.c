/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-58: another ABI on one rank fails everywhere with both numbers; an older config is taken. */
#include <stdlib.h>
#include "comm.h"
#include "tests/mp.h"

#define TEXT_OF(x) #x
#define HAS(x)     "has " TEXT_OF(x)

MP_TEST_OPT(bl_58, .ranks = "2 3", .bare = true, .only = MP_PROCS)
{
    gin_comm_t *comm = (gin_comm_t *)(void *)mp;
    if (mp->rank == mp->size - 1)
        setenv("GINSHMEM_TEST_ABI", "4711", 1);
    EXPECT_FAILS(gin_init(&mp->config, &comm), GIN_EMISMATCH, "ABI");
    EXPECT_HAS(gin_last_error(), "4711");
    EXPECT_HAS(gin_last_error(), HAS(GI_ABI));
    EXPECT(comm == NULL);
    unsetenv("GINSHMEM_TEST_ABI");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    /* A program built when the struct ended behind allgather_arg. */
    mp->config.size = offsetof(gin_config_t, host_id);
    mp->config.host_id = (const char *)1; /* not looked at */
    mp->config.heap_size = ~(uint64_t)0;
    mp_up(mp);
}
