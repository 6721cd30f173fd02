/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Quiet and flush that only look (poll), while another thread posts between two looks: what was
 * under way at the first look is all that they wait for, so they end; and what the looking thread
 * itself has posted since is covered, too. Once it has waited, the next look asks for all again.
 */
#include <pthread.h>
#include "engine_net.h"
#include "net_up.h"
#include "tests/mp.h"
#include "transport/fault/fault.h"

#define SPOILT "GINSHMEM_DISABLE_CMA=1 GINSHMEM_TEST_NET=hold=1,seed=3"

struct side {
    struct mp *mp;
    uint64_t *words;
};

static void *post(void *arg)
{
    const struct side *s = arg;
    gin_t g;
    if (EXPECT_OK(gin_open(&s->mp->dev, 0, &g)))
        EXPECT_OK(gin_put_value(&g, gin_thread(), gin_world(&g), 1, gin_at_ptr(&g, s->words), 1, 8,
                                gin_no_action()));
    return NULL;
}

static void another_posts(struct side *s)
{
    pthread_t thread;
    pthread_create(&thread, NULL, post, s);
    pthread_join(thread, NULL);
}

/* Does the network take anything for rank 1? */
static void takes(const struct mp *mp, bool well)
{
    gi_fault_peer(mp->comm->net->domains[0], 1, well ? GI_FAULT_PEER_WELL : GI_FAULT_PEER_AGAIN);
}

static int look(const gin_t *g, bool quiet)
{
    gin_wait_opt_t opt = {.poll = 1};
    return quiet ? gin_quiet_x(g, gin_thread(), &opt) : gin_flush_x(g, gin_thread(), &opt);
}

static void looks(struct side *s, const gin_t *g, bool quiet)
{
    struct mp *mp = s->mp;
    takes(mp, false);
    another_posts(s);
    EXPECT_EQ_INT(look(g, quiet), GIN_EAGAIN);
    takes(mp, true);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(look(g, quiet));

    /* looks that a wait took the place of are over */
    takes(mp, false);
    another_posts(s);
    EXPECT_EQ_INT(look(g, quiet), GIN_EAGAIN);
    takes(mp, true);
    EXPECT_OK(quiet ? gin_quiet(&mp->g, gin_thread()) : gin_flush(&mp->g, gin_thread()));
    takes(mp, false);
    another_posts(s);
    EXPECT_EQ_INT(look(g, quiet), GIN_EAGAIN);
    takes(mp, true);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));

    takes(mp, false);
    another_posts(s);
    EXPECT_EQ_INT(look(g, quiet), GIN_EAGAIN);
    takes(mp, true);
    /* by itself, which takes no call of this thread */
    struct gi_core_ctx *ctx = ((const struct gi_devcomm *)mp->g.dc->priv)->net[0];
    for (int st = 0; st == 0;) {
        gi_core_enter(ctx);
        gi_core_progress(ctx);
        st =
            gi_core_mark_peer(ctx, 1) != 0 ? gi_core_settled(ctx, 1, gi_core_mark_peer(ctx, 1)) : 0;
        gi_core_leave(ctx);
    }
    takes(mp, false);
    another_posts(s);
    EXPECT_OK(look(g, quiet)); /* the first one's are complete */
    EXPECT_EQ_INT(look(g, quiet), GIN_EAGAIN);
    EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(g), 1, gin_at_ptr(&mp->g, &s->words[1]),
                            2, 8, gin_no_action()));
    EXPECT_EQ_INT(look(g, quiet), GIN_EAGAIN);
    takes(mp, true);
    int st = GIN_EAGAIN;
    while (st == GIN_EAGAIN)
        st = look(g, quiet);
    EXPECT_OK(st);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
}

static void both(struct mp *mp, bool all)
{
    gin_devcomm_reqs_t reqs;
    gin_t g;
    gin_devcomm_reqs_init(&reqs);
    if (!mp_net(mp, &reqs) || !EXPECT_OK(gin_open(&mp->dev, all ? GIN_ALL_CONTEXTS : 0, &g)))
        return;
    struct side s = {.mp = mp, .words = gin_calloc(mp->comm, 2, 8)};
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int quiet = 0; mp->rank == 0 && quiet < 2; quiet++)
        looks(&s, &g, quiet);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 1)
        EXPECT_EQ_U64(s.words[1], 2);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(of_a_context, .ranks = "2", .hosts = "AB", .env = SPOILT)
{
    both(mp, false);
}

MP_TEST_OPT(of_all_contexts, .ranks = "2", .hosts = "AB", .env = SPOILT)
{
    both(mp, true);
}
