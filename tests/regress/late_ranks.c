/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank comes to a collective call after the others have given up. Whatever it is told, the heaps
 * may not drift apart in silence, and nobody may store into memory that another has given back.
 */
#include <string.h>
#include "comm.h"
#include "tests/mp.h"

#define MIB 1048576u

enum call { MALLOC, BARRIER, WINDOW, ALLGATHER };

static int do_call(struct mp *mp, enum call call, char **p)
{
    gin_window_t win;
    int32_t in = mp->rank, out[16];
    switch (call) {
    case MALLOC: *p = gin_malloc(mp->comm, 8 * MIB); return gin_last_status();
    case BARRIER: return gin_comm_barrier(mp->comm);
    case WINDOW: return gin_window_register(mp->comm, mp->share, 64, 0, &win);
    default: return gin_comm_allgather(mp->comm, &in, out, sizeof(in));
    }
}

/* The last rank comes when the deadline of the others is over. */
static void be_late(struct mp *mp, enum call call)
{
    int late = mp->size - 1, all[8];
    char *p = NULL;
    if (!mp_up(mp) || !EXPECT(gin_malloc(mp->comm, 64) != NULL))
        return;
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (mp->rank == late)
        EXPECT_EQ_INT(mp_barrier(mp), 0); /* all others have given up */
    else
        mp->comm->env.coll_timeout = 300000000; /* from here on */
    int st = do_call(mp, call, &p);
    if (mp->rank != late) { /* by its own clock, or told by who gave up before it */
        EXPECT(p == NULL && (st == GIN_ETIMEDOUT || st == GIN_EPEER));
        EXPECT_HAS(gin_last_error(), "collective call");
        EXPECT_HAS(gin_last_error(), mp->size == 2 ? " 1 after" : " 2 after");
        EXPECT_EQ_INT(mp_barrier(mp), 0);
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    for (int r = 0; r < mp->size && p != NULL; r++) { /* whoever went on stores to the others */
        char *there = gin_ptr(mp->comm, p, r);
        if (there != NULL)
            memset(there, 1, 8 * MIB);
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT(gin_malloc(mp->comm, 64) == NULL); /* the ranks are not alike any more: all say so */
    st = gin_last_status();
    EXPECT_EQ_INT(mp_allgather(mp, &st, all, sizeof(st)), 0);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_INT(all[r], GIN_EPEER);
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "collective call");
    mp->comm = NULL;
}

#define LATE(test, call)                                               \
    MP_TEST_OPT(test, .ranks = "2 3", .heap_size = MIB, .bare = true,  \
                .env = "GINSHMEM_HEAP_CHUNK=1M GINSHMEM_HEAP_MAX=64M") \
    {                                                                  \
        be_late(mp, call);                                             \
    }

LATE(in_malloc_that_grows, MALLOC)
LATE(in_a_barrier, BARRIER)
LATE(in_window_register, WINDOW)
LATE(in_allgather, ALLGATHER)
