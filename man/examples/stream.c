/* SPDX-License-Identifier: BSD-3-Clause */
/* A round of an exchange, given to a stream: kernels of the program
 * stand before and after it. */
#include "frame.h"

/* begin round */
enum { HERE = 3 }; /* a slot signal */

/* What the stream has computed at `out` goes to my right neighbour's
 * `in`; what comes behind on the stream finds my left one's at `in`.
 * A captured graph may do this again and again: the signal is taken
 * off once it has come, and nobody puts before all have done so. */
static int round_on(const gin_devcomm_t *dev, gin_team_t team,
                    gin_at_t in, gin_at_t out, size_t bytes,
                    gin_stream_t stream)
{
    int right = (team.rank + 1) % team.size;
    int st = gin_put_on_stream(dev, 0, team, right, in, out, bytes,
                               gin_weak_inc(HERE), stream);

    if (st == GIN_OK)
        st = gin_wait_signal_on_stream(dev, 0, HERE, 1, stream);
    if (st == GIN_OK)
        st = gin_consume_signal_on_stream(dev, 0, HERE, 1, stream);
    return st;
}

static int next_round(const gin_devcomm_t *dev, gin_stream_t stream)
{
    return gin_barrier_on_stream(dev, gin_barrier_world(), 0,
                                 GIN_FENCE_ALL, stream);
}
/* end round */

/* Streams are CUDA's: here a device communicator for host threads is
 * refused, with the reason. */
int example(gin_comm_t *comm, const gin_t *g)
{
    gin_devcomm_t dev;
    gin_at_t none = gin_at(gin_window_none(), 0);
    int st = gin_devcomm_create(comm, NULL, &dev);
    if (st != GIN_OK)
        return st;
    if (round_on(&dev, gin_world(g), none, none, 64, NULL) !=
            GIN_ENOTSUP ||
        next_round(&dev, NULL) != GIN_ENOTSUP)
        st = GIN_ESTATE;
    int gone = gin_devcomm_destroy(comm, &dev);
    return st != GIN_OK ? st : gone;
}
