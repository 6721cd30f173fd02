/* SPDX-License-Identifier: BSD-3-Clause */
/* What is there, and why not. */
#include "frame.h"

/* begin caps */
static int report(gin_comm_t *comm, FILE *out)
{
    gin_caps_t caps;
    caps.size = sizeof(caps);
    int st = gin_query(comm, &caps);

    if (st != GIN_OK)
        return st;
    for (int c = 0; c < GIN_CAPS; c++)
        fprintf(out, "%-12s %-3s %s\n", gin_cap_name((gin_cap_t)c),
                caps.cap[c].have == 1   ? "yes"
                : caps.cap[c].have == 0 ? "no"
                                        : "?",
                caps.cap[c].reason);
    return GIN_OK;
}
/* end caps */

int example(gin_comm_t *comm, const gin_t *g)
{
    gin_stats_t stats;
    (void)g;
    stats.size_of = sizeof(stats);
    int st = gin_stats(comm, &stats);
    if (st == GIN_OK && stats.devcomms == 0)
        st = GIN_ERANGE;
    return st == GIN_OK
               ? report(comm, gin_rank(comm) == 0 ? stdout : stderr)
               : st;
}
