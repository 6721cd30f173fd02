/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that needs its heap and says what came of it. */
#include <stdio.h>
#include <ginshmem.h>

int main(void)
{
    gin_comm_t *comm;
    if (gin_init(NULL, &comm) != GIN_OK)
        return 1;
    void *p = gin_malloc(comm, 64);
    fprintf(stderr, "%s %s\n", gin_status_name(gin_last_status()), gin_last_error());
    gin_finalize(comm);
    return p != NULL;
}
