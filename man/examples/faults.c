/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting although somebody is dead. */
#include "frame.h"

/* begin survive */
#include <time.h>

/* Wait for a signal; once a rank is dead, go on looking, for so many
 * seconds: who is to raise it may live. */
static int survive(const gin_t *g, uint32_t id, uint64_t least, int s)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int st = gin_wait_signal(g, gin_thread(), id, least);

    if (st != GIN_EPEER)
        return st;
    fprintf(stderr, "going on: %s\n", gin_last_error());
    for (time_t end = time(NULL) + s;
         st == GIN_EPEER && time(NULL) < end;) {
        nanosleep(&nap, NULL);
        st = gin_test_signal(g, gin_thread(), id, least);
    }
    return st;
}
/* end survive */

int example(gin_comm_t *comm, const gin_t *g)
{
    int right = (gin_rank(comm) + 1) % gin_size(comm);
    int st = gin_signal(g, gin_thread(), gin_world(g), right,
                        gin_weak_inc(6));
    return st == GIN_OK ? survive(g, 6, 1, 1) : st;
}
