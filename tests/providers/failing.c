/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the network that fail: at bring-up every rank hears of it and a second attempt works;
 * later what needs them fails with a status, and nothing hangs. The provider's error code may be
 * negative, as some versions have it. With -L: more of them.
 */
#include <malloc.h>
#include <string.h>
#include "tests/mp.h"

#define LONG_NS (100ull * 1000000000u)
#define POISON  0xa5

/* All ranks alike: GIN_OK, or each has a status of its own. */
static bool alike(struct mp *mp, int st, const char *what)
{
    int all[8], failed = 0;
    if (!EXPECT_EQ_INT(mp_allgather(mp, &st, all, sizeof(st)), 0))
        return false;
    for (int r = 0; r < mp->size; r++)
        failed += all[r] != GIN_OK;
    if (failed != 0 && failed != mp->size)
        FAIL("%s: failed on %d of %d ranks; here: %d, %s", what, failed, mp->size, st,
             st != GIN_OK ? gin_last_error() : "");
    return failed == 0;
}

static bool up(struct mp *mp, gin_comm_t **comm, gin_devcomm_t *dev)
{
    if (PT_RACE_DETECTOR) {
        mp_skip(mp, "libfabric is not built for the thread sanitizer");
        return false;
    }
    mallopt(M_PERTURB, POISON); /* what libfabric reads after it has freed it is no luck */
    if (!EXPECT_OK(gin_init(&mp->config, comm)))
        return false;
    for (int i = 0; i < 3; i++) {
        mp_step(mp, "attempt %d", i);
        if (alike(mp, gin_devcomm_create(*comm, NULL, dev), "gin_devcomm_create"))
            return true;
    }
    return false;
}

static bool no_network(struct mp *mp, gin_comm_t *comm)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_OK(gin_query(comm, &caps));
    if (caps.cap[GIN_CAP_NET].have == 1)
        return false;
    mp_skip(mp, "no network: %s", caps.cap[GIN_CAP_NET].reason);
    return true;
}

/* Where one rank holds another one for lost, the harness's allgather would wait for both. */
static void down(struct mp *mp, gin_comm_t *comm, gin_devcomm_t *dev, int status)
{
    int all[8];
    bool lost = mp_allgather(mp, &status, all, sizeof(status)) != 0;
    for (int r = 0; r < mp->size && !lost; r++)
        lost = all[r] == GIN_EPEER;
    if (comm == NULL)
        return;
    if (lost)
        gin_comm_abort(comm, "a rank was lost");
    if (dev != NULL)
        gin_devcomm_destroy(comm, dev); /* says what has failed before */
    gin_finalize(comm);
}

/* One of a few lanes, or connections, cannot be had at first. */
static void bring_up(struct mp *mp)
{
    gin_comm_t *comm = NULL;
    gin_devcomm_t dev;
    gin_t g;
    bool is_up = up(mp, &comm, &dev);
    if (!PT_RACE_DETECTOR && EXPECT(is_up) && !no_network(mp, comm) &&
        EXPECT_OK(gin_open(&dev, 0, &g))) {
        EXPECT_OK(gin_signal(&g, gin_thread(), gin_world(&g), (mp->rank + 1) % mp->size,
                             gin_strong_inc(0)));
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, 1));
    }
    down(mp, comm, is_up ? &dev : NULL, GIN_OK);
}

static bool told(int st)
{
    return st == GIN_OK || st == GIN_ENET || st == GIN_EPEER;
}

/* Operations fail on rank 1: each ends, with a status that says so or as it should. */
static void operations(struct mp *mp)
{
    gin_wait_opt_t patient = {.timeout_ns = LONG_NS};
    gin_comm_t *comm = NULL;
    gin_devcomm_t dev;
    gin_t g;
    uint64_t *block = NULL, old = 0;
    int bad = GIN_OK, to = (mp->rank + 1) % mp->size;
    int rounds = mp->rank == 1 ? 40000 : 40; /* a call in thousands comes when it likes */
    static char src[20000];
    bool is_up = up(mp, &comm, &dev);
    if (!is_up || no_network(mp, comm) || !EXPECT_OK(gin_open(&dev, 0, &g)) ||
        !EXPECT((block = gin_calloc(comm, 1, sizeof(src))) != NULL))
        goto out;
    gin_team_t w = gin_world(&g);
    gin_group_t me = gin_thread();
    gin_at_t at = gin_at_ptr(&g, block);
    mp_barrier(mp);
    for (int i = 0; i < rounds && bad == GIN_OK; i++) {
        int st[] = {gin_put(&g, me, w, to, at, gin_at_local(src), sizeof(src), gin_strong_inc(1)),
                    gin_amo_fetch_add(&g, me, w, to, at, 1, &old),
                    gin_get(&g, me, w, to, at, gin_at_local(src), sizeof(src)), gin_flush(&g, me),
                    gin_quiet_x(&g, me, &patient)};
        mp_step(mp, "round %d", i);
        for (size_t k = 0; k < sizeof(st) / sizeof(st[0]); k++) {
            if (!told(st[k]))
                FAIL("call %zu of round %d: %d, %s", k, i, st[k], gin_last_error());
            bad = st[k] != GIN_OK ? st[k] : bad;
        }
    }
    EXPECT(mp->rank != 1 || bad != GIN_OK);
out:
    down(mp, comm, is_up ? &dev : NULL, bad);
}

#define FAILS_IF(id, body, long_only, what)                                                   \
    MP_TEST_OPT(id, .ranks = "2", .hosts = "AB", .env = what, .only = MP_PROCS, .bare = true, \
                .deadline = 120)                                                              \
    {                                                                                         \
        if (long_only && !mp->long_mode)                                                      \
            MP_SKIP("with -L");                                                               \
        body(mp);                                                                             \
    }
/* Who is not answered any more finds that out by itself. */
#define LATER(what) "GINSHMEM_PEER_TIMEOUT=5s GINSHMEM_TEST_NET=rank=1," what
#define FIRST(what) "GINSHMEM_TEST_NET=" what

#define FAILS(id, body, what)      FAILS_IF(id, body, false, what)
#define ALSO_FAILS(id, body, what) FAILS_IF(id, body, true, what)

FAILS(a_lane, bring_up, FIRST("lane=2,rank=1"))
FAILS(a_connection, bring_up, FIRST("connect=3,rank=0"))
ALSO_FAILS(the_first_lane, bring_up, FIRST("lane=1"))
ALSO_FAILS(the_last_lane, bring_up, FIRST("lane=5,rank=1,status=-21"))
ALSO_FAILS(the_first_connection, bring_up, FIRST("connect=1,rank=1,status=-41"))

/* the numbers of statuses: -40 GIN_EPEER, -41 GIN_ENET */
FAILS(writes, operations, LATER("write=30,count=1000000,status=-41,error=5"))
FAILS(one_write, operations, LATER("write=30,count=1,status=-41,error=-5"))
ALSO_FAILS(writes_to_a_lost_peer, operations, LATER("write=30,count=1000000,status=-40,error=-104"))
ALSO_FAILS(one_write_to_a_lost_peer, operations, LATER("write=9,count=1,status=-40,error=104"))
FAILS(reads, operations, LATER("read=20,count=1000000,status=-41,error=-104"))
ALSO_FAILS(one_read, operations, LATER("read=3,count=1,status=-41,error=22"))
ALSO_FAILS(one_read_of_a_lost_peer, operations, LATER("read=20,count=1,status=-40,error=-104"))
FAILS(one_message, operations, LATER("msg=60,count=1,status=-41,error=-5"))
ALSO_FAILS(another_message, operations, LATER("msg=61,count=1,status=-41,error=5"))
ALSO_FAILS(two_messages, operations, LATER("msg=77,count=2,status=-41"))
ALSO_FAILS(one_message_to_a_lost_peer, operations, LATER("msg=60,count=1,status=-40,error=-107"))
FAILS(messages, operations, LATER("msg=25,count=1000000,status=-41"))
/* While ranks connect, so that others' connections stay half made */
FAILS(progress_at_first, operations, LATER("progress=3000,count=1000000,status=-41"))
FAILS(progress, operations, LATER("progress=100000,count=1000000,status=-41"))
