/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hello: join, allocate symmetric memory, put, meet in a barrier, leave.
 *
 * Every rank puts a line of text into its row of a table on rank 0. Run it under ginrun, mpirun or
 * srun, or alone.
 */
#include <string.h>
#include "example.h"

#define LINE 64

int main(void)
{
    char line[LINE], expected[LINE], text[2 * LINE];
    int ok = 1;
    /* begin hello */
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    CHECK(gin_init(NULL, &comm)); /* rank and size from the launcher */
    int rank = gin_rank(comm), size = gin_size(comm);
    char *table = CHECK_PTR(gin_calloc(comm, (size_t)size, LINE)); /* on every rank */
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));

    snprintf(line, sizeof(line), "hello from rank %d of %d", rank, size);
    CHECK(gin_put(&g, gin_thread(), gin_world(&g), 0, gin_at_ptr(&g, table + rank * LINE),
                  gin_at_local(line), sizeof(line), gin_no_action()));
    /* The barrier completes the puts: their bytes are visible on rank 0 behind it. */
    CHECK(gin_barrier(&g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    /* end hello */

    for (int r = 0; rank == 0 && r < size; r++) {
        snprintf(expected, sizeof(expected), "hello from rank %d of %d", r, size);
        ok = ok && strcmp(table + r * LINE, expected) == 0;
    }
    snprintf(text, sizeof(text), "hello: %d of them on this host", gin_team_node(comm).size);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, table));
    return finish(comm, ok, text);
}
