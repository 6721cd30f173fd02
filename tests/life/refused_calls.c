/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of all public calls, each in a place where it must be refused. */
#include <string.h>
#include "tests/life/refused_calls.h"

/* Every call that takes a communicator. */
void refused_calls(gin_comm_t *c)
{
    char out[64], in[64];
    int list[] = {0};
    gin_team_t w = {1, 0, 0, 1}, t = {9, 9, 9, 9}, t2 = t, kept = t;
    gin_window_t win = {7}, heap = {0};
    gin_devcomm_t dev, dev_kept;
    gin_devcomm_reqs_t reqs;
    gin_window_info_t info = {.size_of = sizeof(info)};
    gin_heap_usage_t usage = {.size_of = sizeof(usage)};
    gin_caps_t caps = {.size = sizeof(caps)};
    gin_stats_t stats = {.size_of = sizeof(stats)};
    gin_comm_t *survivors = NULL;
    uint64_t off = 7;
    memset(&dev, 0x3c, sizeof(dev));
    memset(out, 0x3c, sizeof(out));
    dev_kept = dev;
    gin_devcomm_reqs_init(&reqs);

    VALUE(gin_rank(c), -1);
    VALUE(gin_size(c), -1);
    STATE(gin_comm_barrier(c));
    STATE(gin_comm_allgather(c, in, out, sizeof(in)));
    STATE(gin_comm_abort(c, "why"));
    STATE(gin_comm_status(c));
    STATE(gin_comm_shrink(c, &survivors));
    STATE(gin_finalize(c));

    VALUE(gin_malloc(c, 8), NULL);
    VALUE(gin_malloc(c, 0), NULL);
    VALUE(gin_calloc(c, 8, 8), NULL);
    VALUE(gin_aligned_alloc(c, 64, 8), NULL);
    VALUE(gin_realloc(c, in, 8), NULL);
    VALUE(gin_realloc(c, NULL, 8), NULL);
    VALUE(gin_malloc_kind(c, GIN_KIND_HOST, 8), NULL);
    VALUE(gin_calloc_kind(c, GIN_KIND_HOST, 8, 8), NULL);
    VALUE(gin_aligned_alloc_kind(c, GIN_KIND_HOST, 64, 8), NULL);
    STATE(gin_free(c, in));
    STATE(gin_free(c, NULL));
    STATE(gin_heap_usage(c, GIN_KIND_HOST, &usage));
    STATE(gin_heap_check(c));
    VALUE(gin_ptr(c, in, 0), NULL);

    STATE(gin_window_register(c, in, sizeof(in), 0, &win));
    STATE(gin_window_deregister(c, win));
    heap = gin_heap_window(c, GIN_KIND_HOST);
    EXPECT_EQ_U64(heap.w, 0);
    STATE(gin_window_of(c, in, &win, &off));
    STATE(gin_window_query(c, win, &info));
    VALUE(gin_window_path(c, win, 0), GIN_PATH_NONE);
    STATE(gin_local_register(c, in, sizeof(in)));
    STATE(gin_local_deregister(c, in));

    VALUE(gin_team_world(c).size, 0);
    VALUE(gin_team_node(c).size, 0);
    VALUE(gin_team_lsa(c).size, 0);
    VALUE(gin_team_rail(c).size, 0);
    STATE(gin_team_split_strided(c, w, 0, 1, 1, &t));
    STATE(gin_team_split_2d(c, w, 1, &t, &t2));
    STATE(gin_team_create(c, list, 1, &t));
    STATE(gin_team_inner_factor(c, w, 1, &t));
    STATE(gin_team_outer_factor(c, w, 1, &t));
    STATE(gin_team_free(c, w));
    VALUE(gin_team_rank_to_world(c, w, 0), -1);
    VALUE(gin_team_translate(c, w, 0, w), -1);
    VALUE(gin_team_rank_to_lsa(c, w, 0), -1);
    VALUE(gin_team_is_member(c, w, w, 0), 0);
    VALUE(gin_team_rank_in_difference(c, w, w, 0), -1);

    STATE(gin_devcomm_create(c, &reqs, &dev));
    STATE(gin_devcomm_create(c, NULL, &dev));
    STATE(gin_devcomm_destroy(c, &dev));
    STATE(gin_query(c, &caps));
    STATE(gin_stats(c, &stats));

    /* nothing was touched */
    EXPECT(memcmp(&t, &kept, sizeof(t)) == 0 || t.size == 0); /* or the invalid team */
    EXPECT(memcmp(&t2, &kept, sizeof(t)) == 0 || t2.size == 0);
    EXPECT(memcmp(&dev, &dev_kept, sizeof(dev)) == 0);
    EXPECT_FILLED(out, sizeof(out), 0x3c);
    EXPECT_EQ_U64(off, 7);
    EXPECT_EQ_U64(win.w, 7);
}

/* Operations on a context that was bound to nothing. */
void refused_operations(const gin_t *g, gin_at_t at)
{
    char local[64] = {0};
    gin_group_t me = gin_thread();
    gin_team_t w = {1, 0, 0, 1};
    gin_at_t from = gin_at_local(local);
    gin_wait_opt_t soon = {.timeout_ns = 1000000};
    gin_request_t req;
    uint64_t old = 5, least = 0;
    uint32_t old32, id = 0;
    size_t which, one = 1;
    EXPECT_EQ_INT(gin_status(g), GIN_ESTATE);
    STATE(gin_put(g, me, w, 0, at, from, 8, gin_weak_inc(0)));
    STATE(gin_put_value(g, me, w, 0, at, 1, 8, gin_no_action()));
    STATE(gin_get(g, me, w, 0, at, from, 8));
    STATE(gin_signal(g, me, w, 0, gin_weak_inc(0)));
    STATE(gin_flush(g, me));
    STATE(gin_flush_peer(g, me, w, 0));
    STATE(gin_flush_async(g, me, w, 0, &req));
    STATE(gin_fence(g, me, w, 0));
    STATE(gin_fence_all(g, me));
    STATE(gin_quiet(g, me));
    STATE(gin_amo_add(g, me, w, 0, at, 1));
    STATE(gin_amo_fetch_add(g, me, w, 0, at, 1, &old));
    STATE(gin_amo_cas32(g, me, w, 0, at, 1, 2, &old32));
    STATE(gin_wait_signal(g, me, 0, 1));
    STATE(gin_wait_signal_x(g, me, 0, 0, &soon));
    STATE(gin_test_signal(g, me, 0, 0));
    STATE(gin_wait_signal_until(g, me, 0, GIN_CMP_EQ, 0, NULL));
    STATE(gin_consume_signal(g, 0, 1));
    STATE(gin_reset_signal(g, 0, &old));
    STATE(gin_wait_signal_any(g, me, &id, &least, 1, NULL, &which, NULL));
    STATE(gin_increase_shadow(g, 0, 1));
    STATE(gin_wait_signal_meet_shadow(g, me, 0, NULL));
    STATE(gin_wait_signal_at(g, me, at, 1, NULL));
    STATE(gin_reset_signal_at(g, at, &old));
    STATE(gin_wait_counter(g, me, 0, 1));
    STATE(gin_reset_counter(g, 0, &old));
    STATE(gin_barrier(g, me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
    STATE(gin_lsa_arrive(g, me, 0, GIN_ORDER_RELEASE));
    STATE(gin_lsa_wait(g, me, 0, GIN_ORDER_ACQUIRE, NULL));
    STATE(gin_sync(g, me, w, 0));
    STATE(gin_broadcast(g, me, w, 0, at, from, 1, GIN_INT8, 0));
    STATE(gin_allgather(g, me, w, 0, at, from, 1, GIN_INT8));
    STATE(gin_gather(g, me, w, 0, at, from, 1, GIN_INT8, 0));
    STATE(gin_alltoall(g, me, w, 0, at, from, 1, GIN_INT8));
    STATE(gin_alltoallv(g, me, w, 0, at, &one, NULL, from, &one, NULL, GIN_INT8));
    STATE(gin_allreduce(g, me, w, 0, at, from, 1, GIN_INT8, GIN_SUM));
    STATE(gin_reduce(g, me, w, 0, at, from, 1, GIN_INT8, GIN_SUM, 0));
    STATE(gin_reduce_scatter(g, me, w, 0, at, from, 1, GIN_INT8, GIN_SUM));
    STATE(gin_scan(g, me, w, 0, at, from, 1, GIN_INT8, GIN_SUM));
    STATE(gin_scan_exclusive(g, me, w, 0, at, from, 1, GIN_INT8, GIN_SUM));
    VALUE(gin_read_signal(g, 0), 0);
    VALUE(gin_read_counter(g, 0), 0);
    VALUE(gin_read_signal_at(g, at), 0);
    VALUE(gin_signal_shadow(g, 0), NULL);
    VALUE(gin_peer_ptr(g, w, 0, at), NULL);
    VALUE(gin_local_ptr(g, at), NULL);
    VALUE(gin_lsa_ptr(g, 0, at), NULL);
    VALUE(gin_at_ptr(g, &old).win.w, 0);
    EXPECT_EQ_INT(gin_world(g).size, 0);
    EXPECT_EQ_U64(gin_scratch(g).win.w, 0);
    EXPECT_EQ_U64(old, 5);
}
