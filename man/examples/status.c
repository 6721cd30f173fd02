/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading errors. */
#include "frame.h"

/* begin report */
/* 1 and a line on standard error when a call failed. */
static int failed(const char *what, int st)
{
    if (st == GIN_OK)
        return 0;
    fprintf(stderr, "%s: %s: %s\n", what, gin_status_name(st),
            gin_last_error()[0] != 0 ? gin_last_error()
                                     : gin_strerror(st));
    return 1;
}
/* end report */

int example(gin_comm_t *comm, const gin_t *g)
{
    (void)g;
    if (failed("barrier", gin_comm_barrier(comm)))
        return gin_last_status();
    /* a refused call leaves its status and its text */
    gin_clear_error();
    if (gin_comm_barrier(NULL) == GIN_OK ||
        gin_last_status() == GIN_OK || gin_last_error()[0] == 0)
        return GIN_EINVAL;
    gin_clear_error();
    return gin_last_status();
}
