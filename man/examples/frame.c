/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator, a device communicator and a context around one
 * example of the manual. */
#include "frame.h"

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int st = gin_init(NULL, &comm);
    if (st != GIN_OK) {
        fprintf(stderr, "%s\n", gin_last_error());
        return 1;
    }
    st = gin_devcomm_create(comm, NULL, &dev);
    if (st == GIN_OK && (st = gin_open(&dev, 0, &g)) == GIN_OK)
        st = example(comm, &g);
    if (st != GIN_OK) {
        /* the others may wait for this rank */
        fprintf(stderr, "%s: %s\n", gin_status_name(st),
                gin_last_error());
        gin_comm_abort(comm, "an example failed");
        return 1;
    }
    if ((st = gin_devcomm_destroy(comm, &dev)) == GIN_OK)
        st = gin_finalize(comm);
    if (st != GIN_OK)
        fprintf(stderr, "%s\n", gin_last_error());
    return st != GIN_OK;
}
