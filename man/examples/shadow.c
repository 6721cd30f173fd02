/* SPDX-License-Identifier: BSD-3-Clause */
/* A signal that is never reset. */
#include "frame.h"

enum { STEPS = 10 };

/* begin steps */
enum { STEP = 4 }; /* a slot signal */

/* One step of many: signal both neighbours, wait for both. The shadow
 * counts what is expected, so the signal runs on and no reset can
 * race with the next step. */
static int step(const gin_t *g, int left, int right)
{
    gin_team_t world = gin_world(g);
    int st = gin_signal(g, gin_thread(), world, left,
                        gin_strong_inc(STEP));

    if (st == GIN_OK)
        st = gin_signal(g, gin_thread(), world, right,
                        gin_strong_inc(STEP));
    if (st == GIN_OK)
        st = gin_increase_shadow(g, STEP, 2);
    if (st == GIN_OK)
        st = gin_wait_signal_meet_shadow(g, gin_thread(), STEP, NULL);
    return st;
}
/* end steps */

int example(gin_comm_t *comm, const gin_t *g)
{
    int n = gin_size(comm), me = gin_rank(comm), st = GIN_OK;
    for (int i = 0; st == GIN_OK && i < STEPS; i++)
        st = step(g, (me + n - 1) % n, (me + 1) % n);
    if (st == GIN_OK)
        st = gin_comm_barrier(comm);
    if (st == GIN_OK && gin_read_signal(g, STEP) != 2 * STEPS)
        st = GIN_ERANGE;
    return st != GIN_OK ? st : gin_reset_signal(g, STEP, NULL);
}
