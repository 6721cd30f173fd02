/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap alone under whatever launcher started it: opens, exchanges records of several sizes
 * and checks them, opens a second one inside the first, closes both, comes back and does it again
 * and again, which must not take descriptors. Prints one line on rank 0. Arguments: the number of
 * ranks that there must be; seconds that an exchange may take.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ginshmem/status.h>
#include "base/clock.h"
#include "base/env.h"
#include "boot/boot.h"

#define TIMED_BYTES 256
#define AGAIN       10

static uint64_t patience = 30000000000u;

static int die(const char *what)
{
    fprintf(stderr, "boot_try: %s: %s\n", what, gin_last_error());
    return 1;
}

static unsigned char byte_of(int rank, size_t i, unsigned salt)
{
    return (unsigned char)((unsigned)rank * 131u + (unsigned)i * 7u + salt);
}

/* 0 when every rank's record of that many bytes arrives whole. */
static int exchange(struct gi_boot *b, size_t bytes, unsigned salt)
{
    unsigned char *in = malloc(bytes + 1), *out = malloc((size_t)b->size * bytes + 1);
    int bad = in == NULL || out == NULL;

    for (size_t i = 0; i < bytes && !bad; i++)
        in[i] = byte_of(b->rank, i, salt);
    if (!bad && gi_boot_allgather(b, in, out, bytes, gi_deadline_in(patience)) != GIN_OK)
        bad = die("allgather");
    for (int r = 0; r < b->size && !bad; r++)
        for (size_t i = 0; i < bytes; i++)
            if (out[(size_t)r * bytes + i] != byte_of(r, i, salt)) {
                fprintf(stderr, "boot_try: rank %d: byte %zu of rank %d is wrong\n", b->rank, i, r);
                bad = 1;
                break;
            }
    free(out);
    free(in);
    return bad;
}

static int check(struct gi_boot *b, unsigned salt)
{
    static const size_t sizes[] = {1, 8, 255, 765, 1000, 4097, 20000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (exchange(b, sizes[i], salt + (unsigned)i) != 0)
            return 1;
    return gi_boot_barrier(b, gi_deadline_in(patience)) != GIN_OK ? die("barrier") : 0;
}

static int descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

int main(int argc, char **argv)
{
    struct gi_env env;
    struct gi_boot *b, *inner, *again;
    uint64_t t0, t1;
    int before = 0;

    if (argc > 2)
        patience = (uint64_t)atoi(argv[2]) * 1000000000u;
    if (gi_env_load(&env) != GIN_OK)
        return die("environment");
    t0 = gi_now_ns();
    if (gi_boot_open(&env, NULL, &b) != GIN_OK)
        return die("open");
    if (exchange(b, TIMED_BYTES, 1) != 0 || exchange(b, TIMED_BYTES, 2) != 0)
        return 1;
    t1 = gi_now_ns();
    if (argc > 1 && b->size != atoi(argv[1])) {
        fprintf(stderr, "boot_try: %d ranks, not %s\n", b->size, argv[1]);
        return 1;
    }
    if (check(b, 3) != 0)
        return 1;
    if (gi_boot_open(&env, NULL, &inner) != GIN_OK)
        return die("second open");
    if (check(inner, 30) != 0 || check(b, 40) != 0)
        return 1;
    gi_boot_close(inner);
    if (b->rank == 0)
        printf("boot_try: %d ranks by %s, local %d of %d, up in %.2f ms\n", b->size, b->origin,
               b->local_rank, b->local_size, (double)(t1 - t0) / 1e6);
    gi_boot_close(b);
    for (int i = 0; i < AGAIN; i++) {
        if (gi_boot_open(&env, NULL, &again) != GIN_OK)
            return die("open again");
        if (exchange(again, 100, 50 + (unsigned)i) != 0)
            return 1;
        gi_boot_close(again);
        if (i == 0)
            before = descriptors();
    }
    if (descriptors() != before) {
        fprintf(stderr, "boot_try: %d descriptors are open, before %d\n", descriptors(), before);
        return 1;
    }
    gi_env_release(&env);
    return 0;
}
