/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes through the ring: windows out of reach, large puts of few lanes, ranks without a GPU.
 */
#ifndef GINSHMEM_TESTS_GPU_DEVICE_ENGINE_H
#define GINSHMEM_TESTS_GPU_DEVICE_ENGINE_H

#include "tests/gpu/device/data.h"

#ifdef __CUDA_ARCH__

DEVICE void test_far(struct env *e)
{
    gin_t *g = &e->g;
    gin_window_t far = fake_window(FAKE_FAR);
    gin_op_opt_t opt = {{1, 3}, 0, 0, 0, 0};
    uint8_t *mine = (uint8_t *)gin_local_ptr(g, gin_at(far, 0));
    uint8_t *heap = (uint8_t *)gin_local_ptr(g, heap_at(0));
    uint64_t seen = gin_read_signal(g, 12), count = gin_read_counter(g, 3);
    gin_request_t req;
    for (uint64_t r = 0; r < 5; r++) {
        uint64_t n = 8 + r * 333;
        fill(e, mine, n + 64, -1, 0);
        fill(e, heap, n, e->rank, r);
        meet(e);
        CHECK_OK(gin_put_x(g, e->grp, e->world, e->right, gin_at(far, 32), heap_at(0), n,
                           gin_strong_inc(12), &opt));
        CHECK_OK(gin_wait_signal(g, e->grp, 12, seen + r + 1));
        expect_bytes(e, mine + 32, n, e->left, r);
        CHECK_OK(gin_wait_counter(g, e->grp, 3, count + r + 1));
        meet(e);
        fill(e, heap + 4096, n + 64, -1, 0);
        gin_i_group_sync(&e->q);
        CHECK_OK(gin_get(g, e->grp, e->world, e->right, gin_at(far, 32),
                         gin_at_local(heap + 4096 + 32), n));
        CHECK_OK(gin_flush_async(g, e->grp, e->world, e->right, &req));
        CHECK_OK(gin_wait(g, e->grp, &req));
        CHECK_OK(gin_test(g, e->grp, &req));
        expect_bytes(e, heap + 4096 + 32, n, e->rank, r); /* what I put there */
        meet(e);
    }
    CHECK_OK(gin_put_value(g, e->grp, e->world, e->right, gin_at(far, 8), ~(uint64_t)5, 8,
                           gin_no_action()));
    CHECK_OK(gin_quiet(g, e->grp));
    meet(e);
    CHECK(*(volatile uint64_t *)(mine + 8), ~(uint64_t)5);
    meet(e);
}

/* An addition to a word of GPU memory behind data that go by descriptor: no engine may add it. */
DEVICE void test_behind(struct env *e)
{
    gin_t *g = &e->g;
    gin_at_t far = gin_at(fake_window(FAKE_FAR), 64), word = heap_at(FAKE_USER - 128);
    volatile uint64_t *sum = (volatile uint64_t *)gin_local_ptr(g, word);
    const uint64_t n = 600;
    uint8_t *mine = (uint8_t *)gin_local_ptr(g, far);
    uint8_t *heap = (uint8_t *)gin_local_ptr(g, heap_at(0));
    if (e->q.lane == 0)
        *sum = 0;
    for (uint64_t r = 0; r < 3; r++) {
        fill(e, mine - 32, n + 64, -1, 0);
        fill(e, heap, n, e->rank, r);
        meet(e);
        CHECK_OK(gin_put(g, e->grp, e->world, e->right, far, heap_at(0), n,
                         r == 1 ? gin_strong_add_at(word, 5) : gin_weak_add_at(word, 5)));
        CHECK_OK(gin_wait_signal_until_at(g, e->grp, word, GIN_CMP_EQ, 8 * r + 5, NULL));
        expect_bytes(e, mine, n, e->left, r);
        meet(e);
        CHECK_OK(
            gin_put_value(g, e->grp, e->world, e->right, far, 77 + r, 8, gin_weak_add_at(word, 3)));
        CHECK_OK(gin_wait_signal_until_at(g, e->grp, word, GIN_CMP_EQ, 8 * r + 8, NULL));
        CHECK(*(volatile uint64_t *)mine, 77 + r);
        meet(e);
    }
}

/* On a narrow wheel a part of a signal's cells says nothing about the sum. */
DEVICE void test_narrow(struct env *e)
{
    gin_t *g = &e->g;
    gin_wait_opt_t opt = {};
    gin_at_t far = gin_at(fake_window(FAKE_FAR), 0);
    opt.bits = 8;
    opt.timeout_ns = 200000;
    uint64_t seen = gin_read_signal(g, 15);
    meet(e);
    CHECK_OK(gin_put(g, e->grp, e->world, e->right, far, heap_at(0), 64, gin_weak_add(15, 150)));
    CHECK_OK(gin_wait_signal(g, e->grp, 15, seen + 150));
    meet(e);
    if (e->q.lane == 0)
        CHECK_OK(gin_consume_signal(g, 15, 150));
    meet(e);
    CHECK(gin_wait_signal_x(g, e->grp, 15, seen + 1, &opt), GIN_ETIMEDOUT);
    CHECK_OK(gin_wait_signal_x(g, e->grp, 15, seen, &opt));
    meet(e);
}

/* Strong signals over load and store keep behind large puts that the engine copies. */
DEVICE void test_large(struct env *e)
{
    gin_t *g = &e->g;
    const uint64_t n = e->q.lanes == 1 ? 8192 + 40 : 32768;
    uint8_t *heap = (uint8_t *)gin_local_ptr(g, heap_at(0));
    gin_at_t word = heap_at(FAKE_USER - 64);
    volatile uint64_t *flag = (volatile uint64_t *)gin_local_ptr(g, word);
    uint64_t seen = gin_read_signal(g, 13);
    for (uint64_t r = 0; r < 3; r++) {
        fill(e, heap + REACH - 32, n + 64, -1, 0);
        fill(e, heap, n, e->rank, r);
        meet(e);
        CHECK_OK(gin_put(g, e->grp, e->world, e->right, heap_at(REACH), heap_at(0), n,
                         r == 0 ? gin_weak_inc(13) : gin_no_action()));
        if (r == 1)
            CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_strong_inc(13)));
        if (r == 2)
            CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_set_at(word, 77)));
        if (r < 2)
            CHECK_OK(gin_wait_signal(g, e->grp, 13, seen + r + 1));
        else
            CHECK_OK(gin_wait_signal_until_at(g, e->grp, word, GIN_CMP_EQ, 77, NULL));
        expect_bytes(e, heap + REACH, n, e->left, r);
        meet(e);
    }
    if (e->q.lane == 0)
        *flag = 0;
    meet(e);
}

/* A CPU rank: its host windows are in reach, its signals by the engine; its words by descriptors.
 */
DEVICE void test_cpu_rank(struct env *e)
{
    gin_t *g = &e->g;
    gin_at_t host = gin_at(fake_window(FAKE_HOST), 1024 + 8 * (uint64_t)e->rank);
    uint64_t got = 0;
    uint32_t got4 = 0;
    meet(e);
    CHECK_OK(gin_put_value(g, e->grp, e->world, e->n, host, 41, 8, gin_weak_inc(14)));
    CHECK_OK(gin_quiet(g, e->grp));
    CHECK_OK(gin_amo_add(g, e->grp, e->world, e->n, host, 1));
    CHECK_OK(gin_amo_fetch_add(g, e->grp, e->world, e->n, host, 8, &got));
    CHECK(got, 42);
    CHECK_OK(gin_amo_fetch(g, e->grp, e->world, e->n, host, &got));
    CHECK(got, 50);
    CHECK_OK(gin_amo_cas(g, e->grp, e->world, e->n, host, 50, ~(uint64_t)0, &got));
    CHECK(got, 50);
    CHECK_OK(gin_amo_swap(g, e->grp, e->world, e->n, host, 3, &got));
    CHECK(got, ~(uint64_t)0);
    CHECK_OK(gin_amo_fetch_or32(g, e->grp, e->world, e->n, host, 4, &got4));
    CHECK(got4, 3);
    CHECK_OK(gin_signal(g, e->grp, e->world, e->n, gin_weak_add_at(host, 100)));
    CHECK_OK(gin_quiet(g, e->grp));
    CHECK_OK(gin_amo_fetch(g, e->grp, e->world, e->n, host, &got));
    CHECK(got, 107);
    meet(e);
}

/* All lanes post at once, more than the ring holds: each arrives once. */
DEVICE void test_flood(struct env *e)
{
    gin_t *g = &e->g;
    gin_at_t far = gin_at(fake_window(FAKE_FAR), 0);
    uint64_t seen = gin_read_signal(g, 15), old;
    meet(e);
    for (int i = 0; i < 10; i++)
        CHECK_OK(
            gin_put(g, gin_thread(), e->world, e->right, far, heap_at(0), 64, gin_weak_inc(15)));
    for (int i = 0; i < 3; i++)
        CHECK_OK(gin_amo_fetch_add(g, gin_thread(), e->world, e->n,
                                   gin_at(fake_window(FAKE_HOST), 4096 + 8 * (uint64_t)e->rank), 1,
                                   &old));
    CHECK_OK(gin_wait_signal(g, gin_thread(), 15, seen + 10 * e->q.lanes));
    meet(e);
    CHECK(gin_read_signal(g, 15), seen + 10 * e->q.lanes);
    CHECK_OK(gin_amo_fetch(g, e->grp, e->world, e->n,
                           gin_at(fake_window(FAKE_HOST), 4096 + 8 * (uint64_t)e->rank), &old));
    CHECK(old % (3 * e->q.lanes), 0);
    meet(e);
    if (e->q.lane == 0)
        CHECK_OK(gin_amo_set(g, gin_thread(), e->world, e->n,
                             gin_at(fake_window(FAKE_HOST), 4096 + 8 * (uint64_t)e->rank), 0));
    meet(e);
}

/* Once the ring is idle, and rests because of an error: as if all of it were done. */
DEVICE void ring_revive(struct gin_i_ring *r)
{
    struct gin_i_ring_host *h = (struct gin_i_ring_host *)r->host;
    uint64_t t = gin_i_ring_tickets(r);
    gin_i_st_release_sys(&h->consumed, t);
    gin_i_st_release_sys(&h->done, t);
    gin_i_st_release_sys(&h->settled, t);
    gin_i_st_release_sys(&h->error, 0);
}

/* Whatever waits for a failed descriptor, or for what comes behind it, says so. */
DEVICE void test_failure(struct env *e)
{
    gin_t g;
    gin_wait_opt_t once = {0, 0, 1};
    gin_request_t req;
    struct gin_i_op bad = {};
    gin_at_t far = gin_at(fake_window(FAKE_FAR), 512);
    volatile uint64_t *word = (volatile uint64_t *)gin_local_ptr(&e->g, far);
    if (e->q.lane == 0)
        *word = 5;
    meet(e);
    CHECK_OK(gin_open(&e->l->dev, 1, &g));
    bad.op = 12;
    if (e->q.lane == 0)
        CHECK_OK(gin_i_ring_post(g.ring, gin_i_error_word(&g), &bad, 1, NULL));
    CHECK_OK(gin_put_value(&g, e->grp, e->world, e->right, far, 6, 8, gin_no_action()));
    CHECK_OK(gin_flush_async(&g, e->grp, e->world, e->right, &req));
    CHECK(gin_flush(&g, e->grp), GIN_EINVAL);
    CHECK(gin_quiet(&g, e->grp), GIN_EINVAL);
    CHECK(gin_wait(&g, e->grp, &req), GIN_EINVAL);
    CHECK(gin_test(&g, e->grp, &req), GIN_EINVAL);
    CHECK(gin_flush_x(&g, e->grp, &once), GIN_EINVAL);
    CHECK(gin_quiet_x(&g, e->grp, &once), GIN_EINVAL);
    meet(e);
    CHECK(*word, 5);
    meet(e);
    if (e->q.lane == 0)
        ring_revive(g.ring);
    gin_i_group_sync(&e->q);
    CHECK_OK(gin_put_value(&g, e->grp, e->world, e->right, far, 7, 8, gin_no_action()));
    CHECK_OK(gin_quiet(&g, e->grp));
    meet(e);
    CHECK(*word, 7);
    meet(e);
}

/* Nobody takes anything: who has no room gives up after a while, and the context is dead. */
DEVICE void test_stuck(struct env *e)
{
    gin_t g;
    struct gin_i_op nop = {};
    int st = GIN_OK, posted = 0;
    CHECK_OK(gin_open(&e->l->dev, 1, &g));
    if (e->q.lane == 0) {
        CHECK_OK(gin_i_ring_quiet(g.ring, gin_i_error_word(&g), 0));
        gin_i_st_release_sys((uint64_t *)&g.ring->host->error, (uint64_t)1 << 32);
        g.ring->timeout_ns = 2000000;
        while (st == GIN_OK && posted < 100) {
            st = gin_i_ring_post(g.ring, gin_i_error_word(&g), &nop, 0, NULL);
            posted += st == GIN_OK;
        }
        CHECK(st, GIN_ETIMEDOUT);
        CHECK(posted, FAKE_DEPTH);
        CHECK(gin_i_ring_quiet(g.ring, gin_i_error_word(&g), 0), GIN_ETIMEDOUT);
        g.ring->timeout_ns = 0;
        CHECK(gin_i_ring_quiet(g.ring, gin_i_error_word(&g), 0), GIN_ETIMEDOUT);
        ring_revive(g.ring);
        CHECK_OK(gin_i_ring_quiet(g.ring, gin_i_error_word(&g), 0));
    }
    gin_i_group_sync(&e->q);
}

/* A rank that nobody reaches: refused before anything is posted. */
DEVICE void test_nobody(struct env *e)
{
    gin_t *g = &e->g;
    gin_at_t far = gin_at(fake_window(FAKE_FAR), 0);
    uint64_t old;
    CHECK(gin_put(g, e->grp, e->world, e->n + 1, heap_at(0), heap_at(0), 8, gin_no_action()),
          GIN_ENOTSUP);
    CHECK(gin_get(g, e->grp, e->world, e->n + 1, far, heap_at(0), 8), GIN_ENOTSUP);
    CHECK(gin_signal(g, e->grp, e->world, e->n + 1, gin_weak_inc(0)), GIN_ENOTSUP);
    CHECK(gin_signal(g, e->grp, e->world, e->n + 1, gin_set_at(far, 1)), GIN_ENOTSUP);
    CHECK(gin_amo_add(g, e->grp, e->world, e->n + 1, far, 1), GIN_ENOTSUP);
    CHECK(gin_amo_fetch(g, e->grp, e->world, e->n + 1, far, &old), GIN_ENOTSUP);
    CHECK_OK(gin_quiet(g, e->grp));
}

/* A signal moves from one of its cells to another while it is read: what is read was its value. */
DEVICE void test_moving(struct env *e)
{
    gin_t *g = &e->g;
    const gin_wait_opt_t once = {0, 0, 1};
    uint64_t *far = (uint64_t *)&g->host_signals[10].cpu;
    uint64_t start = gin_read_signal(g, 10), value;
    uint32_t reader = e->q.lanes - 1;
    meet(e);
    for (int i = 0; i < 300; i++) {
        if (e->q.lane == 0) {
            gin_i_atom_add_sys(far + i % 2, 1);
            gin_i_fence_sys();
            CHECK_OK(gin_signal(g, gin_thread(), e->world, e->rank, gin_weak_add(10, 0 - 1ull)));
            gin_i_fence_sys();
        }
        if (e->q.lane != reader)
            continue;
        value = gin_read_signal(g, 10);
        CHECK(value - start <= 1, 1);
        CHECK(gin_wait_signal_x(g, gin_thread(), 10, start + 2, &once), GIN_EAGAIN);
        CHECK_OK(gin_wait_signal_x(g, gin_thread(), 10, start, &once));
    }
    meet(e);
    CHECK(gin_read_signal(g, 10), start);
    meet(e);
}

/* While the engine stands still, whoever only looks or has little time is not kept; then all goes
 * on where it was. */
DEVICE void test_stalled(struct env *e)
{
    gin_t *g = &e->g, all;
    gin_wait_opt_t once = {0, 0, 1}, soon = {1000000, 0, 0};
    gin_at_t far = gin_at(fake_window(FAKE_FAR), 128);
    volatile uint64_t *mine = (volatile uint64_t *)gin_local_ptr(g, far);
    gin_at_t host = gin_at(fake_window(FAKE_HOST), 1024 + 8 * (uint64_t)e->rank);
    gin_request_t req;
    uint64_t old;
    meet(e);
    if (e->q.lane == 0) {
        gin_i_atom_add_sys(&e->l->hold[0], 1);
        while (gin_i_ld_acquire_sys(&e->l->hold[1]) == 0)
            gin_i_sleep_ns(1000);
    }
    gin_i_group_sync(&e->q);
    CHECK_OK(gin_put_value(g, e->grp, e->world, e->right, far, 77, 8, gin_no_action()));
    CHECK_OK(gin_flush_async(g, e->grp, e->world, e->right, &req));
    CHECK(gin_test(g, e->grp, &req), GIN_EAGAIN);
    CHECK(gin_flush_x(g, e->grp, &once), GIN_EAGAIN);
    CHECK(gin_quiet_x(g, e->grp, &once), GIN_EAGAIN);
    CHECK(gin_quiet_x(g, e->grp, &soon), GIN_ETIMEDOUT);
    CHECK(gin_barrier_x(g, e->grp, gin_barrier_world(), 1, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL, &once),
          GIN_EAGAIN);
    CHECK_OK(gin_open(&e->l->dev, GIN_ALL_CONTEXTS, &all));
    CHECK(gin_flush_x(&all, e->grp, &once), GIN_EAGAIN);
    CHECK(gin_quiet_x(&all, e->grp, &once), GIN_EAGAIN);
    CHECK(gin_barrier_x(&all, e->grp, gin_barrier_world(), 1, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL,
                        &once),
          GIN_EAGAIN);
    CHECK(gin_barrier_x(g, e->grp, gin_barrier_world(), 1, GIN_ORDER_ACQ_REL, GIN_FENCE_GET, &soon),
          GIN_ETIMEDOUT);
    /* replies of fetches that gave up are free again once the engine has written them */
    for (uint32_t i = 0; e->q.lane == 0 && i < g->ring->n_replies; i++)
        CHECK(gin_i_amo_engine(g->ring, gin_i_error_word(g), e->n, host, GIN_I_AMO_FETCH, 8, 0, 0,
                               10000, &old),
              GIN_ETIMEDOUT);
    if (e->q.lane == 0)
        gin_i_atom_add_sys(&e->l->hold[0], ~(uint64_t)0);
    for (uint32_t i = 0; e->q.lane == 0 && i < 2 * g->ring->n_replies; i++)
        CHECK_OK(gin_amo_fetch(g, gin_thread(), e->world, e->n, host, &old));
    CHECK_OK(gin_barrier(g, e->grp, gin_barrier_world(), 1, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    CHECK(*mine, 77);
    CHECK_OK(gin_test(g, e->grp, &req)); /* seen by the barrier, and so without the engine's word */
    CHECK_OK(gin_flush_x(g, e->grp, &once));
    meet(e);
    if (e->q.lane == 0)
        *mine = 0;
    meet(e);
}

/* The host raises the error word once all wait: every kind of wait ends. */
DEVICE void test_error(struct env *e)
{
    gin_t *g = &e->g;
    const uint32_t ids[] = {0, 1};
    const uint64_t least[] = {1u << 20, 1u << 20};
    size_t which;
    meet(e);
    if (e->q.lane == 0)
        gin_i_atom_add_sys(e->l->error_seen, 1);
    CHECK(gin_wait_signal(g, e->grp, 0, 1u << 20), GIN_EPEER);
    CHECK(gin_wait_signal_until(g, e->grp, 0, GIN_CMP_EQ, 1u << 20, NULL), GIN_EPEER);
    CHECK(gin_wait_signal_any(g, e->grp, ids, least, 2, NULL, &which, NULL), GIN_EPEER);
    CHECK(gin_wait_counter(g, e->grp, 0, 1u << 20), GIN_EPEER);
    CHECK(gin_status(g), GIN_EPEER);
    if (e->n > 1 && e->rank == 0)
        CHECK(gin_barrier(g, e->grp, gin_barrier_lsa(), 2, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE),
              GIN_EPEER);
}

#endif
#endif
