/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BL-46: every call before gin_init(), with NULL, and after gin_finalize(): GIN_ESTATE or a neutral
 * value, never a crash, a wait or a change of anything.
 */
#include <string.h>
#include "tests/life/refused_calls.h"

/* What needs no communicator works at any time. */
static void free_calls(void)
{
    gin_config_t config;
    gin_devcomm_reqs_t reqs;
    gin_clear_error();
    EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    EXPECT_EQ_STR(gin_last_error(), "");
    EXPECT_EQ_INT(gin_version(), GIN_VERSION);
    EXPECT_EQ_STR(gin_status_name(GIN_ESTATE), "GIN_ESTATE");
    EXPECT(gin_strerror(GIN_ESTATE)[0] != 0);
    EXPECT_EQ_STR(gin_cap_name(GIN_CAP_LSA), "lsa");
    EXPECT_EQ_STR(gin_cap_name(GIN_CAPS), "?");
    EXPECT_EQ_STR(gin_path_name(GIN_PATH_NET), "net");
    EXPECT_EQ_STR(gin_path_name(GIN_PATH_NONE), "none");
    EXPECT_EQ_STR(gin_path_name((gin_path_t)3), "?");
    gin_config_init(&config);
    EXPECT_EQ_INT(config.rank, -1);
    gin_devcomm_reqs_init(&reqs);
    EXPECT_EQ_INT(reqs.contexts, 4);
}

/* Operations on a context that was bound to nothing. */
static void dead_context(void)
{
    gin_devcomm_t none;
    gin_t g;
    memset(&none, 0, sizeof(none));
    STATE(gin_open(&none, 0, &g));
    STATE(gin_open(NULL, GIN_ALL_CONTEXTS, &g));
    refused_operations(&g, gin_at(gin_window_none(), 0));
    VALUE(gin_world_rank(&g, (gin_team_t){1, 0, 0, 1}, 0), -1);
}

MP_TEST_OPT(before_init, .ranks = "1", .bare = true)
{
    (void)mp;
    free_calls();
    refused_calls(NULL);
    dead_context();
    gin_dump(2);
}

MP_TEST_OPT(after_finalize, .ranks = "1 3", .bare = true)
{
    if (!mp_up(mp))
        return;
    gin_comm_t *stale = mp->comm;
    gin_devcomm_t dev, copy;
    gin_t g;
    EXPECT(gin_malloc(stale, 100) != NULL); /* left to finalize */
    EXPECT_OK(gin_devcomm_create(stale, NULL, &dev));
    copy = dev;
    EXPECT_OK(gin_devcomm_create(stale, NULL, &dev)); /* left to finalize, too */
    mp_down(mp);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    refused_calls(stale);
    STATE(gin_open(&dev, 0, &g));
    STATE(gin_open(&copy, 0, &g));
    STATE(gin_signal(&g, gin_thread(), gin_team_invalid(), 0, gin_weak_inc(0)));
    free_calls();
    dead_context();
}

/* A communicator's death does not touch another one, and calls on the dead stay refused. */
MP_TEST_OPT(one_dead_one_alive, .ranks = "1 2", .bare = true)
{
    gin_comm_t *first = NULL, *second = NULL;
    EXPECT_OK(gin_init(&mp->config, &first));
    EXPECT_OK(gin_init(&mp->config, &second));
    EXPECT_OK(gin_finalize(first));
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    refused_calls(first);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    char *p = gin_calloc(second, 1, 100);
    EXPECT_FILLED(p, 100, 0);
    EXPECT_EQ_INT(gin_size(second), mp->size);
    EXPECT_OK(gin_finalize(second));
}
