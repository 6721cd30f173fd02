/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-07: an offset in a sub-window that starts inside a block, on every path; guards around. */
#include <stdlib.h>
#include <string.h>
#include "tests/mp.h"

#define KIB 1024u

static void sub_window(struct mp *mp, char *block, const char *what)
{
    gin_window_t a, b;
    char out[24], in[24];
    mp_step(mp, "%s", what);
    memset(block, 0x6b, 64 * KIB);
    EXPECT_OK(gin_window_register(mp->comm, block, 16 * KIB, 0, &a));
    EXPECT_OK(gin_window_register(mp->comm, block + 16 * KIB + 40, 48 * KIB - 40, 0, &b));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int to = 0; to < mp->size; to++) {
        mp_poison(out, sizeof(out), (uint64_t)mp->rank);
        EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to,
                          gin_at(b, 8 + 100 * (uint64_t)mp->rank), gin_at_local(out), sizeof(out),
                          gin_strong_inc(0)));
        EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(a, 16 * KIB - 23),
                             gin_at_local(out), sizeof(out), gin_no_action()),
                     GIN_ERANGE, "gin_put");
    }
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, (uint64_t)mp->size));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    char *want = malloc(64 * KIB);
    memset(want, 0x6b, 64 * KIB);
    for (int r = 0; r < mp->size; r++) {
        mp_poison(want + 16 * KIB + 48 + 100 * r, sizeof(out), (uint64_t)r);
        EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), r,
                          gin_at(b, 8 + 100 * (uint64_t)mp->rank), gin_at_local(in), sizeof(in)));
        EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        MP_CHECK_PATTERN(in, sizeof(in), (uint64_t)mp->rank);
    }
    if (!EXPECT(memcmp(block, want, 64 * KIB) == 0))
        FAIL("%s: bytes beside the puts changed", what);
    free(want);
    EXPECT_OK(gin_reset_signal(&mp->g, 0, NULL));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, b));
    EXPECT_OK(gin_window_deregister(mp->comm, a));
}

MP_TEST_N(bl_07, "1 2 3")
{
    if (!mp_dev(mp, NULL))
        return;
    char *heap = gin_malloc(mp->comm, 64 * KIB), *user = malloc(64 * KIB);
    gin_window_t win;
    sub_window(mp, heap, "in the heap");
    /* Reached by calls that copy between processes, where there are such. */
    EXPECT_OK(gin_window_register(mp->comm, user, 64 * KIB, 0, &win));
    bool reached = true;
    for (int r = 0; r < mp->size; r++)
        reached = reached && gin_window_path(mp->comm, win, r) != GIN_PATH_NONE;
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    if (reached)
        sub_window(mp, user, "in user memory");
    free(user);
    EXPECT_OK(gin_free(mp->comm, heap));
}
