/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting with a time limit; taking tokens. */
#include "frame.h"

/* begin consume */
enum { TOKEN = 2 }; /* a slot signal */

/* Take one token, waiting at most `ms` milliseconds. Tokens that come
 * meanwhile stay. */
static int take(const gin_t *g, uint64_t ms)
{
    gin_wait_opt_t opt = {.timeout_ns = ms * 1000000};
    int st = gin_wait_signal_x(g, gin_thread(), TOKEN, 1, &opt);

    return st == GIN_OK ? gin_consume_signal(g, TOKEN, 1) : st;
}
/* end consume */

int example(gin_comm_t *comm, const gin_t *g)
{
    int right = (gin_rank(comm) + 1) % gin_size(comm), st = GIN_OK;
    if (take(g, 1) != GIN_ETIMEDOUT) /* nobody has sent one yet */
        return GIN_ERANGE;
    st = gin_comm_barrier(comm);
    for (int i = 0; st == GIN_OK && i < 5; i++)
        st = gin_signal(g, gin_thread(), gin_world(g), right,
                        gin_weak_inc(TOKEN));
    for (int i = 0; st == GIN_OK && i < 5; i++)
        st = take(g, 60000);
    if (st == GIN_OK && gin_read_signal(g, TOKEN) != 0)
        st = GIN_ERANGE;
    return st;
}
