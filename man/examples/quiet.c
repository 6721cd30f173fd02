/* SPDX-License-Identifier: BSD-3-Clause */
/* Data to one rank, the word that it is there to another. */
#include "frame.h"

/* begin third */
enum { TELL = 6 }; /* a slot signal */

/* Store *value at `holder` and tell `reader` once it can be fetched
 * from there. A strong signal would not do: it covers operations to
 * `reader` only. */
static int publish(const gin_t *g, int holder, int reader, int *place,
                   int value)
{
    gin_team_t world = gin_world(g);
    int st = gin_put_value(g, gin_thread(), world, holder,
                           gin_at_ptr(g, place), (uint32_t)value,
                           sizeof(value), gin_no_action());

    if (st == GIN_OK)
        st = gin_quiet(g, gin_thread());
    if (st == GIN_OK)
        st = gin_signal(g, gin_thread(), world, reader,
                        gin_weak_inc(TELL));
    return st;
}
/* end third */

int example(gin_comm_t *comm, const gin_t *g)
{
    gin_team_t world = gin_world(g);
    int n = world.size, me = world.rank, got = 0;
    int *place = gin_calloc(comm, 1, sizeof(*place));
    if (place == NULL)
        return gin_last_status();
    /* rank r stores at r + 1 and tells r + 2 */
    int st = publish(g, (me + 1) % n, (me + 2) % n, place, me);
    if (st == GIN_OK)
        st = gin_wait_signal(g, gin_thread(), TELL, 1);
    if (st == GIN_OK)
        st = gin_get(g, gin_thread(), world, (me + n - 1) % n,
                     gin_at_ptr(g, place), gin_at_local(&got),
                     sizeof(got));
    if (st == GIN_OK)
        st = gin_flush(g, gin_thread());
    if (st == GIN_OK && got != (me + 2 * n - 2) % n)
        st = GIN_ERANGE;
    if (st == GIN_OK)
        st = gin_reset_signal(g, TELL, NULL);
    int freed = gin_free(comm, place);
    return st != GIN_OK ? st : freed;
}
