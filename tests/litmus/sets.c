/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-61 and around it: all, any and some of several signals. No call on nothing may block. */
#include <string.h>
#include <time.h>
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

static const gin_wait_opt_t once = {.poll = 1};

MP_TEST_N(nothing_to_wait_for, "1 2")
{
    static const uint32_t ids[3] = {0, 1, 2};
    static const uint64_t least[3] = {5, 5, 5};
    static const int masked[3] = {1, -1, 7};
    size_t which[3] = {9, 9, 9}, count = 9;
    const gin_wait_opt_t *opts[2] = {NULL, &once};
    if (!mp_dev(mp, NULL))
        return;
    for (int o = 0; o < 2; o++) {
        EXPECT_OK(gin_wait_signal_all(&mp->g, me(), NULL, NULL, 0, NULL, opts[o]));
        EXPECT_OK(gin_wait_signal_all(&mp->g, me(), ids, least, 3, masked, opts[o]));
        which[0] = 9;
        EXPECT_OK(gin_wait_signal_any(&mp->g, me(), NULL, NULL, 0, NULL, which, opts[o]));
        EXPECT_EQ_U64(which[0], 0);
        EXPECT_OK(gin_wait_signal_any(&mp->g, me(), ids, least, 3, masked, which, opts[o]));
        EXPECT_EQ_U64(which[0], 3);
        count = 9;
        EXPECT_OK(gin_wait_signal_some(&mp->g, me(), NULL, NULL, 0, NULL, NULL, &count, opts[o]));
        EXPECT_EQ_U64(count, 0);
        count = 9;
        EXPECT_OK(
            gin_wait_signal_some(&mp->g, me(), ids, least, 3, masked, which, &count, opts[o]));
        EXPECT_EQ_U64(count, 0);
    }
}

/* One entry is not masked, ids of masked ones may be rubbish, entries may repeat. */
MP_TEST_N(masked_entries_do_not_count, "1")
{
    static const uint32_t ids[5] = {4000000000u, 1, 2, 2, 64};
    static const uint64_t least[5] = {0, 5, 1, 2, 0};
    int skip[5] = {1, 0, 1, 1, 1};
    size_t which[5] = {9, 9, 9, 9, 9}, count = 9;
    if (!mp_dev(mp, NULL))
        return;
    gin_team_t world = gin_world(&mp->g);
    EXPECT_EQ_INT(gin_wait_signal_all(&mp->g, me(), ids, least, 5, skip, &once), GIN_EAGAIN);
    EXPECT_EQ_INT(gin_wait_signal_any(&mp->g, me(), ids, least, 5, skip, which, &once), GIN_EAGAIN);
    EXPECT_EQ_INT(gin_wait_signal_some(&mp->g, me(), ids, least, 5, skip, which, &count, &once),
                  GIN_EAGAIN);
    EXPECT_EQ_U64(count, 9); /* outputs are written on success only */
    EXPECT_EQ_U64(which[0], 9);
    EXPECT_OK(gin_signal(&mp->g, me(), world, 0, gin_weak_add(1, 5)));
    EXPECT_OK(gin_wait_signal_all(&mp->g, me(), ids, least, 5, skip, NULL));
    EXPECT_OK(gin_wait_signal_any(&mp->g, me(), ids, least, 5, skip, which, NULL));
    EXPECT_EQ_U64(which[0], 1);
    EXPECT_OK(gin_wait_signal_some(&mp->g, me(), ids, least, 5, skip, which, &count, NULL));
    EXPECT_EQ_U64(count, 1);
    EXPECT_EQ_U64(which[0], 1);

    skip[2] = skip[3] = 0; /* the same signal twice, with different demands */
    EXPECT_OK(gin_signal(&mp->g, me(), world, 0, gin_weak_inc(2)));
    EXPECT_EQ_INT(gin_wait_signal_all(&mp->g, me(), ids, least, 5, skip, &once), GIN_EAGAIN);
    EXPECT_OK(gin_wait_signal_some(&mp->g, me(), ids, least, 5, skip, which, &count, NULL));
    EXPECT_EQ_U64(count, 2);
    EXPECT_EQ_U64(which[0], 1);
    EXPECT_EQ_U64(which[1], 2);
    EXPECT_OK(gin_signal(&mp->g, me(), world, 0, gin_weak_inc(2)));
    EXPECT_OK(gin_wait_signal_all(&mp->g, me(), ids, least, 5, skip, NULL));
    EXPECT_FAILS(gin_wait_signal_all(&mp->g, me(), ids, least, 5, NULL, NULL), GIN_ERANGE,
                 "4000000000");
    skip[4] = 0;
    EXPECT_FAILS(gin_wait_signal_any(&mp->g, me(), ids, least, 5, skip, which, NULL), GIN_ERANGE,
                 "entry 4");
}

MP_TEST_N(sets_refuse_what_has_no_meaning, "1")
{
    static const uint32_t ids[1] = {0};
    static const uint64_t least[1] = {0};
    gin_wait_opt_t wide = {.bits = 65}, soon = {.timeout_ns = 5000000};
    size_t which = 0, count = 0;
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_FAILS(gin_wait_signal_all(&mp->g, me(), NULL, least, 1, NULL, NULL), GIN_EINVAL, "ids");
    EXPECT_FAILS(gin_wait_signal_all(&mp->g, me(), ids, NULL, 1, NULL, NULL), GIN_EINVAL, "least");
    EXPECT_FAILS(gin_wait_signal_any(&mp->g, me(), ids, least, 1, NULL, NULL, NULL), GIN_EINVAL,
                 "which");
    EXPECT_FAILS(gin_wait_signal_some(&mp->g, me(), ids, least, 1, NULL, &which, NULL, NULL),
                 GIN_EINVAL, "count");
    EXPECT_FAILS(gin_wait_signal_some(&mp->g, me(), ids, least, 1, NULL, NULL, &count, NULL),
                 GIN_EINVAL, "which");
    EXPECT_FAILS(gin_wait_signal_all(&mp->g, gin_warp(), ids, least, 1, NULL, NULL), GIN_EINVAL,
                 "gin_thread");
    EXPECT_FAILS(gin_wait_signal_all(&mp->g, me(), ids, least, 1, NULL, &wide), GIN_EINVAL, "65");
    static const uint64_t never[1] = {1};
    EXPECT_FAILS(gin_wait_signal_all(&mp->g, me(), ids, never, 1, NULL, &soon), GIN_ETIMEDOUT,
                 "wanted 1");
    EXPECT_FAILS(gin_wait_signal_any(&mp->g, me(), ids, never, 1, NULL, &which, &soon),
                 GIN_ETIMEDOUT, "none of 1");
}

/* Entries come true one after the other; only with the last one is it over. */
MP_TEST_N(all_means_every_one, "2")
{
    static const uint32_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint64_t least[8];
    if (!mp_dev(mp, NULL))
        return;
    for (uint64_t round = 1; round <= 10; round++) {
        for (int i = 0; i < 8; i++)
            least[i] = round;
        EXPECT_OK(gin_comm_barrier(mp->comm));
        for (uint32_t i = 0; i < 8 && mp->rank == 1; i++) {
            struct timespec wait = {0, 2000000};
            nanosleep(&wait, NULL);
            EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_inc(i)));
        }
        if (mp->rank == 0)
            EXPECT_OK(gin_wait_signal_all(&mp->g, me(), ids, least, 8, NULL, NULL));
        for (uint32_t i = 0; i < 8 && mp->rank == 0; i++)
            EXPECT_EQ_U64(gin_read_signal(&mp->g, i), round);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Everyone serves a work list of the others' signals: any and some find each of them, all ends. */
MP_TEST_N(any_some_and_all_of_many, "2 3 5 8")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 20000 : 500);
    uint32_t ids[8];
    uint64_t least[8];
    size_t n = (size_t)mp->size;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.signals = 9;
    if (!mp_dev(mp, &reqs))
        return;
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    for (uint64_t round = 1; round <= (uint64_t)rounds; round++) {
        int done[8] = {0};
        mp_step(mp, "round %d", (int)round);
        for (int k = 0; k < mp->size; k++) /* signal r at a peer belongs to rank r */
            EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), (mp->rank + k) % mp->size,
                                 gin_weak_inc((uint32_t)mp->rank)));
        for (size_t i = 0; i < n; i++)
            least[i] = round;
        for (size_t left = n; left > 0;) {
            size_t which[8], count = 0;
            if (round % 3 == 0) {
                EXPECT_OK(gin_wait_signal_all(&mp->g, me(), ids, least, n, done, NULL));
                break;
            }
            if (round % 3 == 1) {
                EXPECT_OK(gin_wait_signal_any(&mp->g, me(), ids, least, n, done, which, NULL));
                count = 1;
            } else {
                EXPECT_OK(
                    gin_wait_signal_some(&mp->g, me(), ids, least, n, done, which, &count, NULL));
            }
            if (!EXPECT(count >= 1 && count <= left))
                return;
            for (size_t i = 0; i < count; i++) {
                if (!EXPECT(which[i] < n) || !EXPECT_EQ_INT(done[which[i]], 0))
                    return;
                EXPECT(gin_read_signal(&mp->g, ids[which[i]]) >= round);
                done[which[i]] = 1;
            }
            left -= count;
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint32_t i = 0; i < n; i++)
        EXPECT_EQ_U64(gin_read_signal(&mp->g, i), (uint64_t)rounds);
}
