/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernels are refused: with the right status, the same for all threads of the group, and with
 * nothing done.
 */
#include "tests/gpu/gpu.h"

#define SIZE 4096ull /* of the window in the heap */

/* Places and teams by number, so that the cases are a table. */
enum place {
    IN,      /* a window of SIZE bytes in the heap */
    NOWHERE, /* no window */
    STALE,   /* a window that is gone */
    READ_ONLY,
    UNKNOWN, /* an id that was never given out */
    OWN,     /* gin_at_local() */
    OWN_NULL,
    PLACES
};
enum team { WORLD, INVALID, NO_LIST, WRONG, TEAMS };

struct places {
    gin_at_t at[PLACES];
    gin_team_t team[TEAMS];
};

enum what {
    PUT,
    GET,
    SIGNAL,
    SIGNAL_AT,
    STRONG,
    SET,
    ODD_ACTION,
    NO_ACTION,
    VALUE,
    ADD,
    FETCH,
    CAS32,
    COUNTER,
    NIC
};

struct refusal {
    unsigned char what, team, place;
    signed char peer;              /* from the last rank: 0 is that, 1 one too many; -128: -1 */
    unsigned long long off, bytes; /* VALUE: size */
    int st;
};

#define LAST 0

__device__ static const struct refusal cases[] = {
    /* peers and teams */
    {PUT, WORLD, IN, 1, 0, 8, GIN_ERANGE},
    {PUT, WORLD, IN, -128, 0, 8, GIN_ERANGE},
    {PUT, INVALID, IN, LAST, 0, 8, GIN_EINVAL},
    {GET, WORLD, IN, 1, 0, 8, GIN_ERANGE},
    {GET, INVALID, IN, LAST, 0, 8, GIN_EINVAL},
    {SIGNAL, WORLD, IN, 1, 0, 0, GIN_ERANGE},
    {SIGNAL, INVALID, IN, LAST, 0, 0, GIN_EINVAL},
    {ADD, WORLD, IN, 1, 0, 0, GIN_ERANGE},
    {ADD, INVALID, IN, LAST, 0, 0, GIN_EINVAL},
    {VALUE, WORLD, IN, 1, 0, 8, GIN_ERANGE},
    {PUT, NO_LIST, IN, LAST, 0, 8, 1}, /* 1: any error */
    {PUT, WRONG, IN, LAST, 0, 8, 1},
    {GET, NO_LIST, IN, LAST, 0, 8, 1},
    {SIGNAL, WRONG, IN, LAST, 0, 8, 1},
    /* places */
    {PUT, WORLD, IN, LAST, SIZE, 1, GIN_ERANGE},
    {PUT, WORLD, IN, LAST, SIZE - 7, 8, GIN_ERANGE},
    {PUT, WORLD, IN, LAST, SIZE + 1, 0, GIN_ERANGE},
    {PUT, WORLD, IN, LAST, ~0ull - 6, 8, GIN_ERANGE},
    {PUT, WORLD, IN, LAST, 8, ~0ull - 3, GIN_ERANGE},
    {PUT, WORLD, IN, LAST, 1ull << 40, 16, GIN_ERANGE},
    {GET, WORLD, IN, LAST, SIZE - 15, 16, GIN_ERANGE},
    {GET, WORLD, IN, LAST, ~0ull, 1, GIN_ERANGE},
    {VALUE, WORLD, IN, LAST, SIZE - 3, 4, GIN_ERANGE},
    {SIGNAL_AT, WORLD, IN, LAST, SIZE, 0, GIN_ERANGE},
    {SET, WORLD, IN, LAST, SIZE, 0, GIN_ERANGE},
    {ADD, WORLD, IN, LAST, SIZE, 0, GIN_ERANGE},
    {FETCH, WORLD, IN, LAST, ~0ull - 7, 0, GIN_ERANGE},
    {PUT, WORLD, NOWHERE, LAST, 0, 8, GIN_ESTATE},
    {PUT, WORLD, STALE, LAST, 0, 8, GIN_ESTATE},
    {PUT, WORLD, UNKNOWN, LAST, 0, 8, GIN_ESTATE},
    {PUT, WORLD, OWN, LAST, 0, 8, GIN_EINVAL}, /* own memory is no target */
    {GET, WORLD, STALE, LAST, 0, 8, GIN_ESTATE},
    {GET, WORLD, NOWHERE, LAST, 0, 8, GIN_ESTATE},
    {VALUE, WORLD, STALE, LAST, 0, 8, GIN_ESTATE},
    {SIGNAL_AT, WORLD, STALE, LAST, 0, 0, GIN_ESTATE},
    {ADD, WORLD, STALE, LAST, 0, 0, GIN_ESTATE},
    {CAS32, WORLD, NOWHERE, LAST, 0, 0, GIN_ESTATE},
    {PUT, WORLD, READ_ONLY, LAST, 0, 8, GIN_ENOTSUP},
    {VALUE, WORLD, READ_ONLY, LAST, 0, 8, GIN_ENOTSUP},
    {SIGNAL_AT, WORLD, READ_ONLY, LAST, 0, 0, GIN_ENOTSUP},
    {ADD, WORLD, READ_ONLY, LAST, 0, 0, GIN_ENOTSUP},
    /* words */
    {SIGNAL_AT, WORLD, IN, LAST, 4, 0, GIN_EINVAL},
    {SIGNAL_AT, WORLD, IN, LAST, 1, 0, GIN_EINVAL},
    {SET, WORLD, IN, LAST, 9, 0, GIN_EINVAL},
    {ADD, WORLD, IN, LAST, 12, 0, GIN_EINVAL},
    {FETCH, WORLD, IN, LAST, 2, 0, GIN_EINVAL},
    {CAS32, WORLD, IN, LAST, 2, 0, GIN_EINVAL},
    /* values, actions, ids, options */
    {VALUE, WORLD, IN, LAST, 0, 0, GIN_ERANGE},
    {VALUE, WORLD, IN, LAST, 0, 9, GIN_ERANGE},
    {ODD_ACTION, WORLD, IN, LAST, 0, 8, GIN_EINVAL},
    {NO_ACTION, WORLD, IN, LAST, 0, 0, GIN_EINVAL},
    {SIGNAL, WORLD, IN, LAST, 64, 0, GIN_ERANGE}, /* off: the slot */
    {SIGNAL, WORLD, IN, LAST, 0xffffffffull, 0, GIN_ERANGE},
    {COUNTER, WORLD, IN, LAST, 64, 8, GIN_ERANGE},
    {NIC, WORLD, IN, LAST, 0, 8, GIN_ENOTSUP},
};
#define CASES ((int)(sizeof(cases) / sizeof(cases[0])))

__device__ static gin_at_t place_of(const struct places *p, const struct refusal *c)
{
    gin_at_t at = p->at[c->place];
    at.off += c->off;
    return at;
}

__device__ static int refused_data(const gin_t *g, gin_group_t grp, const struct places *p,
                                   const struct refusal *c, int peer)
{
    gin_op_opt_t opt = {};
    gin_action_t odd = gin_no_action();
    gin_team_t t = p->team[c->team];
    switch (c->what) {
    case PUT:
        return gin_put(g, grp, t, peer, place_of(p, c), p->at[OWN], c->bytes, gin_weak_inc(0));
    case GET: return gin_get(g, grp, t, peer, place_of(p, c), p->at[OWN], c->bytes);
    case VALUE:
        return gin_put_value(g, grp, t, peer, place_of(p, c), 77, c->bytes, gin_weak_inc(0));
    case ODD_ACTION:
        odd.kind = 99;
        return gin_put(g, grp, t, peer, place_of(p, c), p->at[OWN], 8, odd);
    case COUNTER:
        opt.local = gin_counter_inc((uint32_t)c->off);
        return gin_put_x(g, grp, t, peer, p->at[IN], p->at[OWN], 8, gin_weak_inc(0), &opt);
    default:
        opt.flags = GIN_NIC_ONLY;
        return gin_put_x(g, grp, t, peer, p->at[IN], p->at[OWN], 8, gin_weak_inc(0), &opt);
    }
}

__device__ static int refused_word(const gin_t *g, gin_group_t grp, const struct places *p,
                                   const struct refusal *c, int peer)
{
    uint64_t old = 0;
    uint32_t old32 = 0;
    gin_team_t t = p->team[c->team];
    switch (c->what) {
    case SIGNAL: return gin_signal(g, grp, t, peer, gin_weak_inc((uint32_t)c->off));
    case SIGNAL_AT: return gin_signal(g, grp, t, peer, gin_strong_add_at(place_of(p, c), 5));
    case SET: return gin_signal(g, grp, t, peer, gin_set_at(place_of(p, c), 5));
    case NO_ACTION: return gin_signal(g, grp, t, peer, gin_no_action());
    case ADD: return gin_amo_add(g, grp, t, peer, place_of(p, c), 5);
    case FETCH: return gin_amo_fetch_add(g, grp, t, peer, place_of(p, c), 5, &old);
    default: return gin_amo_cas32(g, grp, t, peer, place_of(p, c), 0, 5, &old32);
    }
}

__global__ void table(gin_devcomm_t dev, struct places p, int kind, bool net, struct gpu_report *r)
{
    gin_t g;
    struct gpu_place me = gpu_place_of((enum gpu_kind)kind);
    D_OK(r, gin_open(&dev, 0, &g));
    p.team[WORLD] = gin_world(&g);
    for (int i = 0; i < CASES; i++) {
        struct refusal c = cases[i];
        int peer = c.peer == -128 ? -1 : g.size - 1 + c.peer, st;
        D_STEP(r, i);
        if (c.place == READ_ONLY && peer == g.rank)
            continue; /* peers may not, I may */
        if (c.what == NIC && net)
            continue; /* there is one */
        if (c.what == PUT || c.what == GET || c.what == VALUE || c.what == ODD_ACTION ||
            c.what == COUNTER || c.what == NIC)
            st = refused_data(&g, me.grp, &p, &c, peer);
        else
            st = refused_word(&g, me.grp, &p, &c, peer);
        if (c.st < 0 ? st != c.st : st >= 0) {
            D_EQ(r, st, c.st);
            D_EQ(r, i, -1); /* the case */
        }
    }
    /* what is right goes on working */
    D_OK(r, gin_signal(&g, me.grp, gin_world(&g), g.rank, gin_weak_inc(1)));
    D_OK(r, gin_wait_signal(&g, me.grp, 1, 1));
    D_EQ(r, gin_read_signal(&g, 0), 0);
}

static bool make_places(struct gpu *gp, struct places *p, char **block, void **own)
{
    gin_window_t win;
    memset(p, 0, sizeof(*p));
    *block = (char *)gpu_symmetric(gp, GIN_KIND_CUDA, 2 * SIZE, NULL);
    CU(cudaMalloc(own, 65536));
    if (*block == NULL)
        return false;
    bool ok = EXPECT_OK(gin_window_register(gp->comm, *block, 64, 0, &win)) &&
              EXPECT_OK(gin_window_deregister(gp->comm, win));
    p->at[STALE] = gin_at(win, 0);
    ok = ok && EXPECT_OK(gin_window_register(gp->comm, *block, SIZE, 0, &win));
    p->at[IN] = gin_at(win, 0);
    ok = ok &&
         EXPECT_OK(gin_window_register(gp->comm, *block + SIZE, SIZE, GIN_WIN_READ_ONLY, &win));
    p->at[READ_ONLY] = gin_at(win, 0);
    p->at[UNKNOWN] = p->at[STALE];
    p->at[UNKNOWN].win.w ^= 0x7ff;
    p->at[OWN] = gin_at_local(*own);
    p->at[OWN_NULL] = gin_at_local(NULL);
    p->team[INVALID] = gin_team_invalid();
    p->team[NO_LIST] = gin_team_t{gp->size, 0, 7777, 0};
    p->team[WRONG] = gin_team_t{gp->size, 0, gp->size, 1};
    return ok;
}

static void drop_places(struct gpu *gp, struct places *p, char *block, void *own)
{
    unsigned char *host = (unsigned char *)malloc(2 * SIZE);
    EXPECT_OK(gin_comm_barrier(gp->comm));
    CU(cudaMemcpy(host, block, 2 * SIZE, cudaMemcpyDeviceToHost));
    EXPECT_FILLED(host, 2 * SIZE, 0);
    free(host);
    gpu_dev_end(gp);
    EXPECT_OK(gin_window_deregister(gp->comm, p->at[IN].win));
    EXPECT_OK(gin_window_deregister(gp->comm, p->at[READ_ONLY].win));
    EXPECT_OK(gin_free(gp->comm, block));
    CU(cudaFree(own));
}

GPU_TEST(operations_of_every_group, 1)
{
    struct places p;
    char *block;
    void *own;
    if (!make_places(gp, &p, &block, &own))
        return;
    for (int kind = 0; kind < K_KINDS && gpu_dev(gp, NULL); kind++) {
        gin_caps_t caps = {};
        caps.size = sizeof(caps);
        EXPECT_OK(gin_query(gp->comm, &caps));
        table<<<1, kind == K_THREAD ? 4 : 96, 0, gp->stream>>>(
            gp->dev, p, kind, caps.cap[GIN_CAP_NET].have == 1, gp->report);
        if (!GPU_DONE(gp))
            FAIL("kind of group %d", kind);
        gpu_dev_end(gp);
    }
    drop_places(gp, &p, block, own);
}

/* ---- waits, reads, pointers, barriers, contexts ---- */

__global__ void waits(gin_devcomm_t dev, struct places p, struct gpu_report *r)
{
    gin_t g, bad;
    gin_group_t b = gin_block();
    gin_wait_opt_t wide = {}, once = {};
    __shared__ size_t which, count;
    const uint32_t ids[2] = {0, 64};
    const uint64_t least[2] = {0, 0};
    uint64_t old = 44;
    wide.bits = 65;
    once.poll = 1;
    D_OK(r, gin_open(&dev, 0, &g));
    D_EQ(r, gin_wait_signal(&g, b, 64, 1), GIN_ERANGE);
    D_EQ(r, gin_test_signal(&g, b, ~0u, 1), GIN_ERANGE);
    D_EQ(r, gin_wait_signal_x(&g, b, 0, 0, &wide), GIN_EINVAL);
    D_EQ(r, gin_wait_signal_until(&g, b, 0, (gin_cmp_t)9, 1, &once), GIN_EINVAL);
    D_EQ(r, gin_wait_signal_all(&g, b, ids, least, 2, NULL, NULL), GIN_ERANGE);
    D_EQ(r, gin_wait_signal_any(&g, b, ids + 1, least, 1, NULL, &which, NULL), GIN_ERANGE);
    D_EQ(r, gin_wait_signal_some(&g, b, ids + 1, least, 1, NULL, &which, &count, NULL), GIN_ERANGE);
    D_EQ(r, gin_wait_signal_at(&g, b, p.at[STALE], 1, NULL), GIN_ESTATE);
    D_EQ(r, gin_wait_signal_at(&g, b, p.at[OWN_NULL], 1, NULL), GIN_EINVAL);
    D_EQ(r, gin_wait_signal_at(&g, b, gin_at(p.at[IN].win, 4), 0, &once), GIN_EINVAL);
    D_EQ(r, gin_wait_counter(&g, b, 64, 1), GIN_ERANGE);
    D_EQ(r, gin_consume_signal(&g, 64, 1), GIN_ERANGE);
    D_EQ(r, gin_reset_signal(&g, 64, &old), GIN_ERANGE);
    D_EQ(r, gin_reset_counter(&g, 64, &old), GIN_ERANGE);
    D_EQ(r, gin_consume_signal_at(&g, p.at[STALE], 1), GIN_ESTATE);
    D_EQ(r, gin_increase_shadow(&g, 64, 1), GIN_ERANGE);
    D_EQ(r, old, 44);
    /* reads and pointers return values, gin_status() says why */
    D_EQ(r, gin_read_signal(&g, 64), 0);
    D_EQ(r, gin_status(&g), GIN_ERANGE);
    D_EQ(r, gin_read_counter(&g, 64), 0);
    D_EQ(r, gin_status(&g), GIN_ERANGE);
    D_EQ(r, gin_read_signal_at(&g, p.at[STALE]), 0);
    D_EQ(r, gin_status(&g), GIN_ESTATE);
    D_EXPECT(r, gin_signal_shadow(&g, 64) == NULL);
    D_EXPECT(r, gin_local_ptr(&g, p.at[STALE]) == NULL);
    D_EQ(r, gin_status(&g), GIN_ESTATE);
    D_EXPECT(r, gin_local_ptr(&g, p.at[IN]) != NULL);
    D_EXPECT(r, gin_peer_ptr(&g, gin_world(&g), g.size, p.at[IN]) == NULL);
    D_EQ(r, gin_status(&g), GIN_ERANGE);
    D_EXPECT(r, gin_peer_ptr(&g, gin_team_invalid(), 0, p.at[IN]) == NULL);
    D_EQ(r, gin_status(&g), GIN_EINVAL);
    D_EXPECT(r, gin_lsa_ptr(&g, gin_lsa(&g).size, p.at[IN]) == NULL);
    D_EQ(r, gin_at_ptr(&g, &once).win.w, 0);
    D_EQ(r, gin_status(&g), GIN_ERANGE);
    D_EQ(r, gin_world_rank(&g, gin_world(&g), -1), -1);
    D_EQ(r, gin_lsa_rank(&g, gin_world(&g), g.size), -1);
    /* barriers */
    gin_barrier_t odd = {99, 0}, team = {GIN_BARRIER_TEAM, 3};
    gin_barrier_t w = gin_barrier_world();
    D_EQ(r, gin_barrier(&g, b, w, 1, GIN_ORDER_ACQ_REL, 0), GIN_ERANGE);
    D_EQ(r, gin_barrier(&g, b, odd, 0, GIN_ORDER_ACQ_REL, 0), GIN_EINVAL);
    D_EQ(r, gin_barrier(&g, b, w, 0, (gin_order_t)17, 0), GIN_EINVAL);
    D_EQ(r, gin_barrier(&g, b, w, 0, GIN_ORDER_ACQ_REL, 64), GIN_EINVAL);
    D_EXPECT(r, gin_barrier(&g, b, team, 0, GIN_ORDER_ACQ_REL, 0) < 0);
    D_EQ(r, gin_lsa_arrive(&g, b, 5, GIN_ORDER_RELEASE), GIN_ERANGE);
    D_EQ(r, gin_lsa_wait(&g, b, 5, GIN_ORDER_ACQUIRE, NULL), GIN_ERANGE);
    D_OK(r, gin_barrier(&g, b, w, 0, GIN_ORDER_ACQ_REL, 0));
    /* contexts */
    D_EQ(r, gin_open(&dev, dev.n_contexts, &bad), GIN_ERANGE);
    D_EQ(r, gin_signal(&bad, b, gin_world(&g), 0, gin_weak_inc(0)), GIN_ESTATE);
    D_EQ(r, gin_put(&bad, b, gin_world(&g), 0, p.at[IN], p.at[OWN], 8, gin_no_action()),
         GIN_ESTATE);
    D_EQ(r, gin_wait_signal(&bad, b, 0, 1), GIN_ESTATE);
    D_EQ(r, gin_barrier(&bad, b, w, 0, GIN_ORDER_ACQ_REL, 0), GIN_ESTATE);
    gin_devcomm_t no_dev = dev;
    no_dev.magic = 0;
    D_EQ(r, gin_open(&no_dev, 0, &bad), GIN_ESTATE);
}

GPU_TEST(waits_reads_and_barriers, 1)
{
    struct places p;
    char *block;
    void *own;
    if (!make_places(gp, &p, &block, &own) || !gpu_dev(gp, NULL))
        return;
    waits<<<1, 64, 0, gp->stream>>>(gp->dev, p, gp->report);
    GPU_DONE(gp);
    drop_places(gp, &p, block, own);
}

/* What the requirements left out is refused, not undefined. */
__global__ void left_out(gin_devcomm_t dev, struct places p, int strong, int va,
                         struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t w = gin_world(&g);
    gin_group_t b = gin_block();
    int me = g.rank;
    D_EQ(r, gin_signal(&g, b, w, me, gin_strong_inc(0)), strong ? GIN_OK : GIN_ENOTSUP);
    D_EQ(r, gin_put(&g, b, w, me, p.at[IN], p.at[OWN], 8, gin_strong_add(0, 0)),
         strong ? GIN_OK : GIN_ENOTSUP);
    D_EQ(r, gin_signal(&g, b, w, me, gin_weak_add_at(p.at[IN], 0)), va ? GIN_OK : GIN_ENOTSUP);
    D_OK(r, gin_signal(&g, b, w, me, gin_weak_inc(0)));
    D_OK(r, gin_wait_signal(&g, b, 0, strong ? 2 : 1));
    D_EXPECT(r, gin_multimem_ptr(&g, p.at[IN]) == NULL);
    D_EQ(r, gin_scratch(&g).win.w, 0);
}

GPU_TEST(what_was_not_asked_for, 1)
{
    struct places p;
    char *block;
    void *own;
    if (!make_places(gp, &p, &block, &own))
        return;
    CU(cudaMemset(own, 0, 64));
    CU(cudaDeviceSynchronize());
    for (int i = 0; i < 4; i++) {
        gin_devcomm_reqs_t reqs;
        gpu_reqs(&reqs);
        reqs.strong = i & 1;
        reqs.va = i >> 1;
        if (!gpu_dev(gp, &reqs))
            break;
        left_out<<<1, 64, 0, gp->stream>>>(gp->dev, p, i & 1, i >> 1, gp->report);
        if (!GPU_DONE(gp))
            FAIL("strong %d, va %d", i & 1, i >> 1);
        gpu_dev_end(gp);
    }
    drop_places(gp, &p, block, own);
}
