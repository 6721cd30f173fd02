/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows that are not the same everywhere, over the network: a word that is aligned here and not
 * there is refused before anything is done, for a target's refusal would cost the context; and a
 * window of no bytes carries actions.
 */
#include <string.h>
#include "engine_net.h"
#include "tests/mp.h"

static char room[8][64] __attribute__((aligned(64)));

static void misaligned_there(struct mp *mp, uint32_t backend)
{
    gin_devcomm_reqs_t reqs;
    gin_window_t win;
    uint64_t old = 5;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = backend;
    memset(room[mp->rank], 0, sizeof(room[0]));
    EXPECT_OK(gin_window_register(mp->comm, room[mp->rank] + (mp->rank == 1 ? 4 : 0), 32, 0, &win));
    if (!mp_net(mp, &reqs))
        return;
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_group_t me = gin_thread();
    if (mp->rank != 1) {
        EXPECT_FAILS(gin_signal(g, me, w, 1, gin_weak_inc_at(gin_at(win, 8))), GIN_EINVAL,
                     "not 8-byte aligned");
        EXPECT_FAILS(gin_amo_add(g, me, w, 1, gin_at(win, 8), 1), GIN_EINVAL, "aligned");
        EXPECT_FAILS(gin_amo_fetch_add(g, me, w, 1, gin_at(win, 8), 1, &old), GIN_EINVAL,
                     "aligned");
        EXPECT_EQ_U64(old, 5);
        EXPECT_FAILS(gin_signal(g, me, w, 1, gin_weak_inc_at(gin_at(win, 4))), GIN_EINVAL,
                     "aligned"); /* nor the other way round */
        EXPECT_OK(gin_put_value(g, me, w, 1, gin_at(win, 8), 7, 8, gin_weak_inc(0)));
        EXPECT_OK(gin_quiet(g, me));
    }
    if (mp->rank == 1)
        EXPECT_OK(gin_wait_signal(g, me, 0, (uint64_t)mp->size - 1));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
}

MP_TEST_OPT(word_misaligned_there, .ranks = "2 3", .hosts = "ABC")
{
    misaligned_there(mp, GIN_BACKEND_DIRECT);
    misaligned_there(mp, GIN_BACKEND_ENGINE);
}

/* What nothing but the target can refuse costs that peer. */
MP_TEST_OPT(refusal_costs_one_peer, .ranks = "3", .hosts = "ABC")
{
    gin_devcomm_reqs_t reqs;
    gin_window_t win;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = GIN_BACKEND_ENGINE;
    EXPECT_OK(gin_window_register(mp->comm, room[mp->rank] + (mp->rank == 1 ? 4 : 0), 32, 0, &win));
    if (!mp_net(mp, &reqs))
        return;
    const gin_t *g = &mp->g;
    gin_group_t me = gin_thread();
    if (mp->rank == 0) {
        struct gi_net_ring *x = &gi_devcomm_of(g)->rings[0];
        const struct gin_i_op bad = {.op = GIN_I_DESC_SIGNAL,
                                     .flags = GIN_I_DESC_ADD_AT,
                                     .peer = 1,
                                     .sig_win = gin_i_desc_window(win),
                                     .sig_off = 8,
                                     .value = 1};
        EXPECT_OK(gi_net_ring_post(x, &bad, "test"));
        EXPECT_FAILS(gin_quiet(g, me), GIN_EINVAL, "rank 1");
        EXPECT_OK(gi_net_ring_post(x, &bad, "test")); /* the core knows the peer's status now */
        EXPECT_OK(gin_put_value(g, me, gin_world(g), 2, gin_at(win, 0), 7, 8, gin_weak_inc(0)));
        EXPECT_OK(gin_flush_peer(g, me, gin_world(g), 2));
    }
    if (mp->rank == 2)
        EXPECT_OK(gin_wait_signal(g, me, 0, 1));
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
}

MP_TEST_OPT(window_of_no_bytes, .ranks = "2 3", .hosts = "ABC")
{
    gin_window_t win;
    EXPECT_OK(gin_window_register(mp->comm, NULL, 0, 0, &win));
    if (!mp_net(mp, NULL))
        return;
    const gin_t *g = &mp->g;
    int right = (mp->rank + 1) % mp->size;
    EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right, gin_at(win, 0), gin_at(win, 0), 0,
                      gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 0, 1));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
}
