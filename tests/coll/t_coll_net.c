/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives over a network that is made to be full: who is named, who is told. */
#include <time.h>
#include "colls.h"
#include "net_ops.h"
#include "tests/func/made_net.h"

#define N 1000 /* bytes, more than the core copies */

static gin_team_t pair(struct mp *mp, int other)
{
    gin_team_t t;
    EXPECT_OK(gin_team_split_strided(mp->comm, gin_team_world(mp->comm), 0, other, 2, &t));
    return t;
}

static int cast(struct mp *mp, gin_team_t team)
{
    static _Thread_local char bytes[N];
    gin_at_t at = gin_at_local(bytes);
    return gin_broadcast(&mp->g, gin_thread(), team, 0, at, at, N, GIN_INT8, 0);
}

/* All places for what is on its way are kept by messages to ranks 1 and 2, to whom nothing goes
 * out. That is not the fault of rank 3, whose message has none. */
MP_TEST_OPT(who_keeps_a_place_is_named, .ranks = "4", .hosts = "ABCD", .only = MP_THREADS,
            .bare = true)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collective_timeout_ns = 200000000;
    if (!made_up(mp, NULL) || !mp_dev(mp, &reqs))
        return;
    if (mp->rank == 0) {
        struct gi_net_domain *net = made.rank[0].domain;
        gi_fault_peer(net, 1, GI_FAULT_PEER_AGAIN);
        gi_fault_peer(net, 2, GI_FAULT_PEER_AGAIN);
        for (int i = 0; i < 8; i++)
            EXPECT_OK(cast(mp, pair(mp, i < 4 ? 1 : 2)));
        EXPECT_FAILS(cast(mp, pair(mp, 3)), GIN_ETIMEDOUT, "rank 1 has not come");
        gi_fault_peer(net, 1, GI_FAULT_PEER_WELL);
        gi_fault_peer(net, 2, GI_FAULT_PEER_WELL);
    }
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

static void *well_soon(void *arg)
{
    struct timespec t = {.tv_nsec = 100000000};
    nanosleep(&t, NULL);
    gi_fault_peer(arg, 1, GI_FAULT_PEER_WELL);
    return NULL;
}

/* The context has no room for a word more to rank 1 when rank 0 gives the index up; once there is,
 * rank 1 hears of it, long before its own time is up. */
MP_TEST_OPT(the_end_is_told_when_there_is_room, .ranks = "3", .hosts = "ABC", .only = MP_THREADS,
            .bare = true)
{
    pthread_t t;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collective_timeout_ns = mp->rank == 0 ? 50000000 : 20000000000;
    if (!made_up(mp, NULL) || !mp_dev(mp, &reqs))
        return;
    mp_barrier(mp);
    if (mp->rank == 0) {
        struct gi_net_domain *net = made.rank[0].domain;
        struct gi_devcomm *d = gi_devcomm_of(&mp->g);
        struct gi_core_ctx *ctx = d->net[d->reqs.contexts];
        struct gi_core_put nothing = {
            .action = {.kind = GI_CORE_SLOT_ADD, .id = 4, .value = 0, .strong = true}};
        gi_fault_peer(net, 1, GI_FAULT_PEER_AGAIN);
        gi_core_enter(ctx);
        while (gi_core_put(ctx, 1, &nothing) == GIN_OK)
            ;
        gi_core_leave(ctx);
        pthread_create(&t, NULL, well_soon, net);
        EXPECT_FAILS(gin_sync(&mp->g, gin_thread(), pair(mp, 2), 0), GIN_ETIMEDOUT, "rank 2");
        pthread_join(t, NULL);
    } else if (mp->rank == 1) {
        EXPECT_FAILS(gin_sync(&mp->g, gin_thread(), pair(mp, 1), 0), GIN_EPEER, "given it up");
    }
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

/* Each message's place has a name of 32 bits on the network. */
MP_TEST_OPT(names_do_not_run_out, .ranks = "1", .bare = true)
{
    gin_devcomm_reqs_t reqs;
    gin_comm_t *many = calloc(1, sizeof(*many));
    if (!EXPECT(many != NULL))
        return;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 4096;
    many->size = (1 << 18) - 1;
    EXPECT_OK(gi_colls_fit(many, &reqs));
    EXPECT_EQ_U64(gi_colls_cells(many, &reqs), 4096ull * 4 * (uint64_t)many->size);
    many->size = 1 << 18;
    EXPECT_FAILS(gi_colls_fit(many, &reqs), GIN_ERANGE, "0 .. 4095");
    reqs.collectives = 4095;
    EXPECT_OK(gi_colls_fit(many, &reqs));
    free(many);
    mp_barrier(mp);
}
