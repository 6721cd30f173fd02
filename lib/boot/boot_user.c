/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's own allgather. It has no deadline: a call that does not return is the caller's. */
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"
#include "boot/boot_impl.h"

struct user_boot {
    struct gi_boot b;
    gin_allgather_fn fn;
    void *arg;
    char *spare; /* size bytes: programs need not take an allgather of nothing */
};

static int user_allgather(struct gi_boot *b, const void *in, void *out, size_t bytes,
                          uint64_t deadline)
{
    struct user_boot *u = (struct user_boot *)b;
    int rc;

    (void)deadline;
    rc = bytes == 0 ? u->fn(u->arg, "", u->spare, 1) : u->fn(u->arg, in, out, bytes);
    if (rc != 0)
        return gi_fail(GIN_ESYS, "the program's allgather returned %d for %zu bytes", rc, bytes);
    return GIN_OK;
}

static void user_close(struct gi_boot *b)
{
    struct user_boot *u = (struct user_boot *)b;
    free(u->spare);
    free(u);
}

static const struct gi_boot_ops user_ops = {
    .size = sizeof(user_ops),
    .name = "user",
    .allgather = user_allgather,
    .close = user_close,
};

int gi_boot_user_open(const struct gin_config *config, int rank, int size, struct gi_boot **boot)
{
    struct user_boot *u = calloc(1, sizeof(*u));

    if (u == NULL || (u->spare = malloc((size_t)size)) == NULL) {
        free(u);
        return gi_fail(GIN_ENOMEM, "no memory for the bootstrap of %d ranks", size);
    }
    u->b.ops = &user_ops;
    u->b.rank = rank;
    u->b.size = size;
    u->b.local_rank = u->b.local_size = -1;
    snprintf(u->b.origin, sizeof(u->b.origin), "user (gin_config.allgather)");
    u->fn = config->allgather;
    u->arg = config->allgather_arg;
    *boot = &u->b;
    return GIN_OK;
}
