/* SPDX-License-Identifier: BSD-3-Clause */
/* Every refused call leaves a text that names the call and the value. */
#include <stdio.h>
#include <string.h>
#include "tests/mp.h"

/* Refused with `status`; the text has both words. */
#define REFUSED(call, status, name, value)                             \
    do {                                                               \
        gin_clear_error();                                             \
        EXPECT_EQ_INT((call), status);                                 \
        EXPECT_EQ_INT(gin_last_status(), status);                      \
        EXPECT_HAS(gin_last_error(), name);                            \
        EXPECT_HAS(gin_last_error(), value);                           \
        if (strlen(gin_last_error()) < 15)                             \
            FAIL("%s: a short text: \"%s\"", #call, gin_last_error()); \
    } while (0)

struct places {
    gin_group_t me, warp;
    gin_team_t w, none, odd;
    gin_at_t at, from, nowhere, stale;
    uint64_t *word;
};

static bool open_places(struct mp *mp, struct places *p, uint64_t *local)
{
    gin_window_t win;
    if (!mp_dev(mp, NULL) || !EXPECT((p->word = gin_calloc(mp->comm, 4, 8)) != NULL))
        return false;
    p->me = gin_thread();
    p->warp = gin_warp();
    p->w = gin_world(&mp->g);
    p->none = gin_team_invalid();
    p->odd = (gin_team_t){mp->size, 0, 7777, 0}; /* a list that nobody made */
    p->at = gin_at_ptr(&mp->g, p->word);
    p->from = gin_at_local(local);
    p->nowhere = gin_at(gin_window_none(), 0);
    EXPECT_OK(gin_window_register(mp->comm, p->word, 32, 0, &win));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    p->stale = gin_at(win, 0);
    return true;
}

MP_TEST_N(put_and_get, "1 3")
{
    struct places p;
    uint64_t v = 0;
    char size[16];
    gin_op_opt_t nic = {.flags = GIN_NIC_ONLY};
    if (!open_places(mp, &p, &v))
        return;
    const gin_t *g = &mp->g;
    gin_action_t none = gin_no_action(), odd = none;
    odd.kind = 9;
    snprintf(size, sizeof(size), "%d", mp->size);
    REFUSED(gin_put(g, p.me, p.w, mp->size, p.at, p.from, 8, none), GIN_ERANGE, "gin_put", size);
    REFUSED(gin_put(g, p.me, p.w, -1, p.at, p.from, 8, none), GIN_ERANGE, "gin_put", "-1");
    REFUSED(gin_put(g, p.me, p.none, 0, p.at, p.from, 8, none), GIN_EINVAL, "gin_put", "team");
    REFUSED(gin_put(g, p.warp, p.w, 0, p.at, p.from, 8, none), GIN_EINVAL, "gin_put", "1");
    REFUSED(gin_put(g, p.me, p.w, 0, p.at, p.from, 8, odd), GIN_EINVAL, "gin_put", "9");
    REFUSED(gin_put(g, p.me, p.w, 0, p.nowhere, p.from, 8, none), GIN_ESTATE, "gin_put", "window");
    REFUSED(gin_put(g, p.me, p.w, 0, p.stale, p.from, 8, none), GIN_ESTATE, "gin_put", "window");
    REFUSED(gin_put(g, p.me, p.w, 0, p.at, p.stale, 8, none), GIN_ESTATE, "gin_put", "window");
    REFUSED(gin_put(g, p.me, p.w, 0, p.at, gin_at_local(NULL), 8, none), GIN_EINVAL, "gin_put",
            "NULL");
    REFUSED(gin_put(g, p.me, p.w, 0, gin_at_local(&v), p.from, 8, none), GIN_EINVAL, "gin_put",
            "dst is gin_at_local()");
    if (mp_near(mp)) /* then there is no network */
        REFUSED(gin_put_x(g, p.me, p.w, 0, p.at, p.from, 8, none, &nic), GIN_ENOTSUP, "gin_put",
                "GIN_NIC_ONLY");
    REFUSED(gin_get(g, p.me, p.w, mp->size, p.at, p.from, 8), GIN_ERANGE, "gin_get", size);
    REFUSED(gin_get(g, p.me, p.none, 0, p.at, p.from, 8), GIN_EINVAL, "gin_get", "team");
    REFUSED(gin_get(g, p.me, p.w, 0, p.stale, p.from, 8), GIN_ESTATE, "gin_get", "window");
    REFUSED(gin_get(g, p.me, p.w, 0, p.at, gin_at_local(NULL), 8), GIN_EINVAL, "gin_get", "NULL");
    if (mp_near(mp))
        REFUSED(gin_get_x(g, p.me, p.w, 0, p.at, p.from, 8, &nic), GIN_ENOTSUP, "gin_get",
                "GIN_NIC_ONLY");
    EXPECT(gin_put(g, p.me, p.odd, 0, p.at, p.from, 8, none) < 0);
    EXPECT_HAS(gin_last_error(), "gin_put");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(p.word, 32, 0);
    EXPECT_OK(gin_free(mp->comm, p.word));
}

MP_TEST_N(signals_atomics_and_waits, "1 3")
{
    struct places p;
    uint64_t v = 0, old = 44, least = 0;
    uint32_t id = 64, old32 = 44;
    size_t which, count;
    gin_wait_opt_t soon = {.timeout_ns = 1000000}, wide = {.bits = 65}, once = {.poll = 1};
    if (!open_places(mp, &p, &v))
        return;
    const gin_t *g = &mp->g;
    REFUSED(gin_signal(g, p.me, p.w, 0, gin_weak_inc(64)), GIN_ERANGE, "signal", "64");
    REFUSED(gin_signal(g, p.me, p.w, 0, gin_weak_inc_at(p.stale)), GIN_ESTATE, "gin_signal",
            "window");
    REFUSED(gin_signal(g, p.me, p.w, mp->size, gin_weak_inc(0)), GIN_ERANGE, "gin_signal", "");
    REFUSED(gin_signal(g, p.warp, p.w, 0, gin_weak_inc(0)), GIN_EINVAL, "gin_signal", "group");
    REFUSED(gin_amo_add(g, p.me, p.w, 0, p.stale, 1), GIN_ESTATE, "gin_amo", "window");
    REFUSED(gin_amo_add(g, p.me, p.w, mp->size, p.at, 1), GIN_ERANGE, "gin_amo", "");
    REFUSED(gin_amo_add(g, p.me, p.none, 0, p.at, 1), GIN_EINVAL, "gin_amo", "team");
    REFUSED(gin_amo_fetch_add(g, p.me, p.w, 0, p.at, 1, NULL), GIN_EINVAL, "gin_amo", "NULL");
    REFUSED(gin_amo_cas32(g, p.me, p.w, 0, p.nowhere, 1, 1, &old32), GIN_ESTATE, "gin_amo",
            "window");
    REFUSED(gin_wait_signal(g, p.me, 64, 1), GIN_ERANGE, "signal", "64");
    REFUSED(gin_wait_signal(g, p.warp, 0, 1), GIN_EINVAL, "signal", "group");
    REFUSED(gin_wait_signal_x(g, p.me, 0, 1, &soon), GIN_ETIMEDOUT, "signal", "1");
    REFUSED(gin_wait_signal_x(g, p.me, 0, 1, &wide), GIN_EINVAL, "bits", "65");
    REFUSED(gin_wait_signal_until(g, p.me, 0, (gin_cmp_t)9, 1, &once), GIN_EINVAL, "", "9");
    REFUSED(gin_wait_signal_all(g, p.me, &id, &least, 1, NULL, NULL), GIN_ERANGE, "signal", "64");
    REFUSED(gin_wait_signal_any(g, p.me, &id, &least, 1, NULL, &which, NULL), GIN_ERANGE, "signal",
            "64");
    REFUSED(gin_wait_signal_some(g, p.me, &id, &least, 1, NULL, &which, &count, NULL), GIN_ERANGE,
            "signal", "64");
    REFUSED(gin_wait_signal_at(g, p.me, p.stale, 1, NULL), GIN_ESTATE, "window", "");
    REFUSED(gin_wait_signal_at(g, p.me, gin_at_local(NULL), 1, NULL), GIN_EINVAL, "NULL", "");
    REFUSED(gin_consume_signal_at(g, p.stale, 1), GIN_ESTATE, "window", "");
    REFUSED(gin_reset_signal_at(g, p.nowhere, &old), GIN_ESTATE, "window", "");
    REFUSED(gin_increase_shadow(g, 64, 1), GIN_ERANGE, "signal", "64");
    EXPECT(gin_signal_shadow(g, 64) == NULL);
    EXPECT_EQ_INT(gin_status(g), GIN_ERANGE);
    EXPECT_EQ_U64(gin_read_signal_at(g, p.stale), 0);
    EXPECT_EQ_INT(gin_status(g), GIN_ESTATE);
    EXPECT_EQ_U64(old, 44);
    EXPECT_EQ_INT(gin_test_signal(g, p.me, 0, 1), GIN_EAGAIN);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(p.word, 32, 0);
    EXPECT_OK(gin_free(mp->comm, p.word));
}

MP_TEST_N(barriers, "1 3")
{
    struct places p;
    uint64_t v = 0;
    if (!open_places(mp, &p, &v))
        return;
    const gin_t *g = &mp->g;
    gin_barrier_t odd = {99, 0}, team = {GIN_BARRIER_TEAM, 3};
    REFUSED(gin_barrier(g, p.me, gin_barrier_world(), 1, GIN_ORDER_ACQ_REL, 0), GIN_ERANGE,
            "barrier", "1");
    REFUSED(gin_barrier(g, p.me, odd, 0, GIN_ORDER_ACQ_REL, 0), GIN_EINVAL, "barrier", "99");
    REFUSED(gin_barrier(g, p.me, gin_barrier_world(), 0, (gin_order_t)17, 0), GIN_EINVAL, "barrier",
            "17");
    REFUSED(gin_barrier(g, p.me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 64), GIN_EINVAL,
            "barrier", "0x40");
    REFUSED(gin_barrier(g, p.warp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0), GIN_EINVAL,
            "barrier", "group");
    EXPECT(gin_barrier(g, p.me, team, 0, GIN_ORDER_ACQ_REL, 0) < 0);
    EXPECT_HAS(gin_last_error(), "barrier");
    REFUSED(gin_lsa_arrive(g, p.me, 5, GIN_ORDER_RELEASE), GIN_ERANGE, "gin_lsa_arrive", "5");
    REFUSED(gin_lsa_wait(g, p.me, 5, GIN_ORDER_ACQUIRE, NULL), GIN_ERANGE, "gin_lsa_wait", "5");
    /* the barrier is whole after all that */
    EXPECT_OK(gin_barrier(g, p.me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
    EXPECT_OK(gin_barrier(g, p.me, gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, 0));
    EXPECT_OK(gin_free(mp->comm, p.word));
}

MP_TEST_N(pointers_return_null_and_say_why, "1 3")
{
    struct places p;
    uint64_t v = 0;
    if (!open_places(mp, &p, &v))
        return;
    const gin_t *g = &mp->g;
    gin_clear_error();
    EXPECT(gin_local_ptr(g, p.stale) == NULL);
    EXPECT_EQ_INT(gin_status(g), GIN_ESTATE);
    EXPECT_EQ_PTR(gin_local_ptr(g, p.at), p.word);
    EXPECT_EQ_PTR(gin_local_ptr(g, gin_at_local(&v)), &v);
    EXPECT(gin_peer_ptr(g, p.w, mp->size, p.at) == NULL);
    EXPECT_EQ_INT(gin_status(g), GIN_ERANGE);
    EXPECT(gin_peer_ptr(g, p.none, 0, p.at) == NULL);
    EXPECT_EQ_INT(gin_status(g), GIN_EINVAL);
    EXPECT(gin_lsa_ptr(g, mp->size, p.at) == NULL);
    EXPECT_EQ_INT(gin_status(g), GIN_ERANGE);
    EXPECT(gin_multimem_ptr(g, p.at) == NULL);
    EXPECT_EQ_U64(gin_at_ptr(g, &v).win.w, 0);
    EXPECT_EQ_INT(gin_status(g), GIN_ERANGE);
    EXPECT_EQ_INT(gin_world_rank(g, p.w, -1), -1);
    EXPECT_EQ_INT(gin_lsa_rank(g, p.w, mp->size), -1);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, p.word));
}

MP_TEST_N(collective_calls, "1 3")
{
    gin_window_t win = {0};
    gin_window_info_t info = {.size_of = sizeof(info)};
    gin_team_t t = {5, 5, 5, 5}, x, y, w = gin_team_world(mp->comm);
    gin_caps_t caps = {.size = 3};
    gin_stats_t stats = {.size_of = 1};
    gin_comm_t *c = mp->comm, *other = (gin_comm_t *)(void *)&caps;
    int twice[] = {0, 0}, far[] = {mp->size}, mine = 1;
    uint64_t off = 31;
    REFUSED(gin_comm_allgather(c, NULL, &mine, 4), GIN_EINVAL, "gin_comm_allgather", "in");
    REFUSED(gin_comm_shrink(c, &other), GIN_ENOTSUP, "gin_comm_shrink", "");
    REFUSED(gin_window_register(c, NULL, 64, 0, &win), GIN_EINVAL, "gin_window_register", "NULL");
    REFUSED(gin_window_register(c, &mine, 4, 1u << 30, &win), GIN_EINVAL, "gin_window_register",
            "flags");
    REFUSED(gin_window_register(c, &mine, 4, 0, NULL), GIN_EINVAL, "gin_window_register", "NULL");
    EXPECT_EQ_U64(win.w, 0);
    REFUSED(gin_window_deregister(c, gin_window_none()), GIN_ESTATE, "gin_window_deregister", "");
    REFUSED(gin_window_query(c, gin_window_none(), &info), GIN_ESTATE, "gin_window_query", "");
    REFUSED(gin_window_of(c, &mine, &win, &off), GIN_ERANGE, "gin_window_of", "0x");
    EXPECT_EQ_U64(off, 31);
    REFUSED(gin_local_deregister(c, &mine), GIN_EINVAL, "gin_local_deregister", "0x");
    REFUSED(gin_team_split_strided(c, w, 0, 1, 0, &t), GIN_EINVAL, "gin_team_split_strided", "0");
    REFUSED(gin_team_split_strided(c, w, 0, 0, 2, &t), GIN_EINVAL, "gin_team_split_strided", "0");
    REFUSED(gin_team_split_strided(c, w, 1, 1, mp->size, &t), GIN_ERANGE, "gin_team_split_strided",
            "");
    REFUSED(gin_team_split_strided(c, gin_team_invalid(), 0, 1, 1, &t), GIN_EINVAL,
            "gin_team_split_strided", "");
    REFUSED(gin_team_split_2d(c, w, 0, &x, &y), GIN_EINVAL, "gin_team_split_2d", "0");
    REFUSED(gin_team_create(c, twice, 2, &t), GIN_EINVAL, "gin_team_create", "0");
    REFUSED(gin_team_create(c, far, 1, &t), GIN_ERANGE, "gin_team_create", "");
    REFUSED(gin_team_create(c, NULL, 1, &t), GIN_EINVAL, "gin_team_create", "NULL");
    EXPECT_EQ_INT(gin_team_rank_to_world(c, w, mp->size), -1);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    REFUSED(gin_query(c, &caps), GIN_EINVAL, "gin_query", "size");
    REFUSED(gin_query(c, NULL), GIN_EINVAL, "gin_query", "");
    REFUSED(gin_stats(c, &stats), GIN_EINVAL, "gin_stats", "size");
    EXPECT_OK(gin_comm_barrier(c));
}

MP_TEST_OPT(configs, .ranks = "1", .bare = true)
{
    gin_config_t config;
    gin_comm_t *comm = (gin_comm_t *)(void *)mp;
    REFUSED(gin_init(&mp->config, NULL), GIN_EINVAL, "gin_init", "NULL");
    gin_config_init(NULL);
    config = mp->config;
    config.size = 3;
    REFUSED(gin_init(&config, &comm), GIN_EINVAL, "gin_init", "3");
    EXPECT(comm == NULL);
    config = mp->config;
    config.rank = 5;
    REFUSED(gin_init(&config, &comm), GIN_EINVAL, "gin_init", "5");
    config = mp->config;
    config.n_ranks = 0;
    REFUSED(gin_init(&config, &comm), GIN_EINVAL, "gin_init", "0");
    config = mp->config;
    config.rank = -1; /* the launcher's word, beside the program's allgather */
    REFUSED(gin_init(&config, &comm), GIN_EINVAL, "gin_init", "no launcher");
    setenv("GINSHMEM_RANK", "0", 1);
    setenv("GINSHMEM_SIZE", "1", 1);
    config.n_ranks = -1;
    if (EXPECT_OK(gin_init(&config, &comm))) {
        EXPECT_EQ_INT(gin_size(comm), 1);
        EXPECT_OK(gin_finalize(comm));
    }
    unsetenv("GINSHMEM_RANK");
    unsetenv("GINSHMEM_SIZE");
    config = mp->config; /* a limit below the default size is kept, one below a size is none */
    config.heap_size = 0;
    config.heap_max = 1 << 20;
    if (EXPECT_OK(gin_init(&config, &comm))) {
        gin_heap_usage_t u = {.size_of = sizeof(u)};
        EXPECT(gin_malloc(comm, 64) != NULL);
        EXPECT_OK(gin_heap_usage(comm, GIN_KIND_HOST, &u));
        EXPECT_EQ_U64(u.max, 1 << 20);
        EXPECT_EQ_U64(u.size, 1 << 20);
        EXPECT_OK(gin_finalize(comm));
    }
    config.heap_size = 4 << 20;
    REFUSED(gin_init(&config, &comm), GIN_EINVAL, "GINSHMEM_HEAP_MAX", "4194304");
    setenv("GINSHMEM_HEAP_SIZE", "20Mabc", 1);
    REFUSED(gin_init(&mp->config, &comm), GIN_EINVAL, "GINSHMEM_HEAP_SIZE", "20Mabc");
    unsetenv("GINSHMEM_HEAP_SIZE");
    /* A newer program's struct is larger: what this library knows of it counts. */
    struct {
        gin_config_t config;
        char more[64];
    } larger = {.config = mp->config};
    larger.config.size = sizeof(larger);
    EXPECT_OK(gin_init(&larger.config, &comm));
    EXPECT_OK(gin_finalize(comm));
}
