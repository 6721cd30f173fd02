/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-14: copies between processes that stop short are gone on with; the signal comes last. */
#include <stdlib.h>
#include <string.h>
#include "base/os.h"
#include "tests/mp.h"

#define BYTES (100000u + 1)

MP_TEST_OPT(bl_14, .ranks = "2 3", .only = MP_PROCS)
{
    static const int most[] = {-1000000, -4096, -1000, -37};
    gin_window_t win;
    if (!mp_dev(mp, NULL))
        return;
    char *user = malloc(BYTES), *out = malloc(BYTES);
    int to = (mp->rank + 1) % mp->size, from = (mp->rank + mp->size - 1) % mp->size;
    EXPECT_OK(gin_window_register(mp->comm, user, BYTES, 0, &win));
    if (gin_window_path(mp->comm, win, to) != GIN_PATH_CMA)
        MP_SKIP("no calls that copy between processes: %s", gin_last_error());
    for (uint64_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
        mp_step(mp, "at most %d bytes a call", -most[i]);
        memset(user, 0, BYTES);
        mp_poison(out, BYTES, i * 100 + (uint64_t)mp->rank);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        gi_os_inject(GI_OS_CMA, 1, 1u << 30, most[i]);
        EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(win, 0),
                          gin_at_local(out), BYTES, gin_weak_inc(0)));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, i + 1));
        MP_CHECK_PATTERN(user, BYTES, i * 100 + (uint64_t)from);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        memset(out, 0, BYTES);
        EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(win, 0),
                          gin_at_local(out), BYTES));
        gi_os_inject(GI_OS_CMA, 0, 0, 0);
        EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        MP_CHECK_PATTERN(out, BYTES, i * 100 + (uint64_t)mp->rank);
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    free(user);
    free(out);
}
