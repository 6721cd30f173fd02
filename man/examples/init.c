/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining a job and leaving it. */
/* begin hello */
#include <stdio.h>
#include <ginshmem.h>

int main(void)
{
    gin_comm_t *comm;

    if (gin_init(NULL, &comm) != GIN_OK) {
        fprintf(stderr, "%s\n", gin_last_error());
        return 1;
    }
    printf("rank %d of %d\n", gin_rank(comm), gin_size(comm));
    return gin_finalize(comm) != GIN_OK;
}
/* end hello */
