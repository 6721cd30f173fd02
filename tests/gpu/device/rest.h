/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, barriers, refusals, addresses and ranks, by every kind of group. */
#ifndef GINSHMEM_TESTS_GPU_DEVICE_REST_H
#define GINSHMEM_TESTS_GPU_DEVICE_REST_H

#include "tests/gpu/device/device.h"

#ifdef __CUDA_ARCH__

/* One word at my right-hand neighbour, whose only user is this group. */
DEVICE void test_amos(struct env *e)
{
    gin_t *g = &e->g;
    const gin_group_t grp = e->grp;
    const gin_team_t t = e->world;
    const int p = e->right;
    gin_at_t at = heap_at(REACH - 128), at4 = heap_at(REACH - 116);
    uint64_t o = 0;
    uint32_t o4 = 0;
    meet(e);
    CHECK_OK(gin_amo_set(g, grp, t, p, at, 0xff00));
    CHECK_OK(gin_amo_add(g, grp, t, p, at, 0x11));
    CHECK_OK(gin_amo_or(g, grp, t, p, at, 0xf0000));
    CHECK_OK(gin_amo_and(g, grp, t, p, at, 0xfff1f));
    CHECK_OK(gin_amo_xor(g, grp, t, p, at, 1));
    CHECK_OK(gin_quiet(g, grp));
    CHECK_OK(gin_amo_fetch(g, grp, t, p, at, &o));
    CHECK(o, 0xfff10);
    CHECK_OK(gin_amo_fetch_add(g, grp, t, p, at, 0x10, &o));
    CHECK(o, 0xfff10);
    CHECK_OK(gin_amo_fetch_or(g, grp, t, p, at, 0x1, &o));
    CHECK(o, 0xfff20);
    CHECK_OK(gin_amo_fetch_and(g, grp, t, p, at, 0xff, &o));
    CHECK(o, 0xfff21);
    CHECK_OK(gin_amo_fetch_xor(g, grp, t, p, at, 0xff, &o));
    CHECK(o, 0x21);
    CHECK_OK(gin_amo_swap(g, grp, t, p, at, 5, &o));
    CHECK(o, 0xde);
    CHECK_OK(gin_amo_cas(g, grp, t, p, at, 6, 7, &o));
    CHECK(o, 5);
    CHECK_OK(gin_amo_cas(g, grp, t, p, at, 5, 1ull << 63, &o));
    CHECK(o, 5);
    CHECK_OK(gin_amo_fetch(g, grp, t, p, at, &o));
    CHECK(o, 1ull << 63);
    CHECK_OK(gin_amo_set32(g, grp, t, p, at4, 0xff00));
    CHECK_OK(gin_amo_add32(g, grp, t, p, at4, 0x11));
    CHECK_OK(gin_amo_or32(g, grp, t, p, at4, 0xf0000));
    CHECK_OK(gin_amo_and32(g, grp, t, p, at4, 0xfff1f));
    CHECK_OK(gin_amo_xor32(g, grp, t, p, at4, 1));
    CHECK_OK(gin_quiet(g, grp));
    CHECK_OK(gin_amo_fetch32(g, grp, t, p, at4, &o4));
    CHECK(o4, 0xfff10);
    CHECK_OK(gin_amo_fetch_add32(g, grp, t, p, at4, 0x10, &o4));
    CHECK(o4, 0xfff10);
    CHECK_OK(gin_amo_fetch_or32(g, grp, t, p, at4, 0x1, &o4));
    CHECK(o4, 0xfff20);
    CHECK_OK(gin_amo_fetch_and32(g, grp, t, p, at4, 0xff, &o4));
    CHECK(o4, 0xfff21);
    CHECK_OK(gin_amo_fetch_xor32(g, grp, t, p, at4, 0xff, &o4));
    CHECK(o4, 0x21);
    CHECK_OK(gin_amo_swap32(g, grp, t, p, at4, 5, &o4));
    CHECK(o4, 0xde);
    CHECK_OK(gin_amo_cas32(g, grp, t, p, at4, 5, 1u << 31, &o4));
    CHECK(o4, 5);
    CHECK_OK(gin_amo_fetch32(g, grp, t, p, at4, &o4));
    CHECK(o4, 1u << 31);
    CHECK(gin_amo_add(g, grp, t, p, at4, 1), GIN_EINVAL);
    CHECK(gin_amo_fetch(g, grp, t, p, at, NULL), GIN_EINVAL);
    CHECK(gin_amo_add(g, grp, t, p, gin_at_local(e), 1), GIN_EINVAL);
    CHECK(gin_amo_add(g, grp, t, p, gin_at(fake_window(FAKE_READ_ONLY), 0), 0),
          e->n > 1 ? GIN_ENOTSUP : GIN_OK); /* mine to update */
    if (!e->rings)
        CHECK(gin_amo_add(g, grp, t, p, gin_at(fake_window(FAKE_HOST), 0), 1), GIN_ENOTSUP);
    meet(e);
}

DEVICE void test_barriers(struct env *e)
{
    gin_t *g = &e->g, all;
    gin_wait_opt_t once = {0, 0, 1}, soon = {1000000, 0, 0};
    gin_barrier_t team = {GIN_BARRIER_TEAM, 0}, foreign = {GIN_BARRIER_TEAM, 1};
    gin_barrier_t nowhere = {GIN_BARRIER_TEAM, 2}, unknown = {17, 0};
    volatile uint64_t *mine = (volatile uint64_t *)gin_local_ptr(g, heap_at(REACH - 1024));
    CHECK_OK(gin_open(&e->l->dev, GIN_ALL_CONTEXTS, &all));
    for (uint64_t i = 1; i <= 12; i++) {
        /* what was put before it is there after it */
        CHECK_OK(gin_put_value(g, e->grp, e->world, e->right, heap_at(REACH - 1024), i, 8,
                               gin_no_action()));
        if (e->rank == (int)i % e->n)
            gin_i_sleep_ns(20000);
        CHECK_OK(gin_barrier(i % 2 ? g : &all, e->grp, gin_barrier_world(), 0, GIN_ORDER_RELAXED,
                             i % 3 ? GIN_FENCE_PUT : GIN_FENCE_ALL));
        CHECK(*mine, i);
        CHECK_OK(gin_barrier(g, e->grp, team, 1, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        CHECK_OK(gin_barrier(g, e->grp, gin_barrier_rail(), 2, GIN_ORDER_ACQ_REL, GIN_FENCE_GET));
        CHECK_OK(gin_lsa_arrive(g, e->grp, 1, GIN_ORDER_RELEASE));
        CHECK_OK(gin_lsa_wait(g, e->grp, 1, GIN_ORDER_ACQUIRE, NULL));
    }
    CHECK(gin_lsa_wait(g, e->grp, 1, GIN_ORDER_ACQUIRE, NULL), GIN_ESTATE);
    CHECK(gin_barrier(g, e->grp, foreign, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL), GIN_ESTATE);
    CHECK(gin_barrier(g, e->grp, nowhere, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL), GIN_EINVAL);
    CHECK(gin_barrier(g, e->grp, unknown, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL), GIN_EINVAL);
    CHECK(gin_barrier(g, e->grp, team, FAKE_BARRIERS, GIN_ORDER_ACQ_REL, 0), GIN_ERANGE);
    CHECK(gin_barrier(g, e->grp, team, 0, GIN_ORDER_ACQ_REL, 9), GIN_EINVAL);
    CHECK(gin_barrier(g, e->grp, team, 0, (gin_order_t)4, 0), GIN_EINVAL);
    CHECK(gin_barrier(g, e->grp, gin_barrier_hybrid(), 0, GIN_ORDER_ACQ_REL, 0), GIN_ENOTSUP);
    meet(e);
    /* rank 0 stays away: the others' arrivals stand, and they take their waits up again */
    if (e->rank != 0 && e->n > 1) {
        CHECK_OK(gin_lsa_arrive(g, e->grp, 0, GIN_ORDER_ACQ_REL));
        CHECK(gin_lsa_arrive(g, e->grp, 0, GIN_ORDER_ACQ_REL), GIN_ESTATE);
        CHECK(gin_lsa_wait(g, e->grp, 0, GIN_ORDER_ACQ_REL, &once), GIN_EAGAIN);
        CHECK(gin_lsa_wait(g, e->grp, 0, GIN_ORDER_ACQ_REL, &soon), GIN_ETIMEDOUT);
        CHECK(gin_barrier_x(g, e->grp, gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, 0, &once),
              GIN_EAGAIN);
    }
    meet(e);
    CHECK_OK(gin_barrier(g, e->grp, gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    meet(e);
}

/* Bad input: the same status in every lane, and nothing done. */
DEVICE void test_refusals(struct env *e)
{
    gin_t *g = &e->g;
    const gin_group_t grp = e->grp;
    gin_team_t w = e->world;
    gin_at_t a = heap_at(0), b = heap_at(64);
    gin_action_t no = gin_no_action(), what = gin_weak_inc(0);
    gin_op_opt_t nic = {{0, 0}, 0, 0, 0, GIN_NIC_ONLY}, local = {{2, 0}, 0, 0, 0, 0};
    uint64_t seen = gin_read_signal(g, 0);
    CHECK(gin_put(g, grp, w, -1, a, b, 8, what), GIN_ERANGE);
    CHECK(gin_put(g, grp, w, w.size, a, b, 8, what), GIN_ERANGE);
    CHECK(gin_put(g, grp, gin_team_invalid(), 0, a, b, 8, what), GIN_EINVAL);
    CHECK(gin_put(g, grp, fake_team(4, 0, 1000, 1), 0, a, b, 8, what), GIN_EINVAL);
    CHECK(gin_put(g, grp, fake_team(e->n, 0, 77, 0), 0, a, b, 8, what), GIN_ESTATE);
    CHECK(gin_put(g, grp, w, e->right, gin_at(gin_window_none(), 0), b, 8, what), GIN_ESTATE);
    CHECK(gin_put(g, grp, w, e->right, gin_at(gin_window_none(), 0), b, 0, what), GIN_ESTATE);
    CHECK(gin_put(g, grp, w, e->right, a, gin_at(fake_window(9), 0), 8, what), GIN_ESTATE);
    CHECK(gin_put(g, grp, w, e->right, heap_at(FAKE_USER - 7), b, 8, what), GIN_ERANGE);
    CHECK(gin_put(g, grp, w, e->right, heap_at(8), b, ~(size_t)0, what), GIN_ERANGE);
    CHECK(gin_put(g, grp, w, e->right, heap_at(~(uint64_t)0), b, 8, what), GIN_ERANGE);
    CHECK(gin_put(g, grp, w, e->right, heap_at(~(uint64_t)0 >> 1),
                  gin_at_local(gin_local_ptr(g, b)), ~(size_t)0 >> 1, what),
          GIN_ERANGE);
    CHECK(gin_put(g, grp, w, e->right, a, heap_at(FAKE_USER), 1, what), GIN_ERANGE);
    CHECK(gin_put(g, grp, w, e->right, a, gin_at_local(NULL), 1, what), GIN_EINVAL);
    CHECK(gin_put(g, grp, w, e->right, gin_at_local(e), b, 8, what), GIN_EINVAL);
    CHECK(gin_put(g, grp, w, e->right, a, b, 8, gin_weak_inc(FAKE_SIGNALS)), GIN_ERANGE);
    what.kind = 9;
    CHECK(gin_put(g, grp, w, e->right, a, b, 8, what), GIN_EINVAL);
    CHECK(gin_put_x(g, grp, w, e->right, a, b, 8, no, &nic), GIN_ENOTSUP);
    CHECK(gin_put_x(g, grp, w, e->right, a, b, 8, no, &local), GIN_EINVAL);
    const gin_op_opt_t odd[] = {
        {{0, 0}, 4, 0, 0, 0}, {{0, 0}, 0, 4, 0, 0}, {{0, 0}, 0, 0, 1, 0}, {{0, 0}, 0, 0, 0, 8}};
    for (int i = 0; i < 4; i++) {
        CHECK(gin_put_x(g, grp, w, e->right, a, b, 8, what, &odd[i]), GIN_EINVAL);
        CHECK(gin_put_value_x(g, grp, w, e->right, a, 1, 8, no, &odd[i]), GIN_EINVAL);
        CHECK(gin_get_x(g, grp, w, e->right, a, b, 8, &odd[i]), GIN_EINVAL);
        CHECK(gin_signal_x(g, grp, w, e->right, gin_weak_inc(0), &odd[i]), GIN_EINVAL);
    }
    gin_at_t ro = gin_at(fake_window(FAKE_READ_ONLY), 0);
    CHECK(gin_put(g, grp, w, e->right, ro, b, 8, no), e->n > 1 ? GIN_ENOTSUP : GIN_OK);
    CHECK_OK(gin_get(g, grp, w, e->right, ro, b, 8));
    CHECK(gin_get(g, grp, w, e->right, a, gin_at(fake_window(9), 0), 8), GIN_ESTATE);
    CHECK(gin_signal(g, grp, w, e->right, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_group_of((enum gin_group_kind)6, 0), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_tile(3), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_tile(64), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_lanes(0), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_warp_span(0, 200, 3), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_warp_span(0, 1, 0), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_put(g, gin_warp_span(0, 1, 16), w, 0, a, b, 8, no), GIN_EINVAL);
    CHECK(gin_flush_async(g, grp, w, 0, NULL), GIN_EINVAL);
    gin_request_t none = {{0, 0}};
    CHECK(gin_wait(g, grp, &none), GIN_EINVAL);
    CHECK(gin_fence(g, grp, w, w.size), GIN_ERANGE);
    if (!e->rings) {
        CHECK(gin_put(g, grp, w, e->n, a, b, 8, no), GIN_ENOTSUP);
        CHECK(gin_put(g, grp, w, e->n + 1, a, b, 8, no), GIN_ENOTSUP);
        CHECK(gin_signal(g, grp, w, e->n, gin_weak_inc(0)), GIN_ENOTSUP);
        CHECK(gin_get(g, grp, w, e->right, gin_at(fake_window(FAKE_FAR), 0), b, 8), GIN_ENOTSUP);
    }
    CHECK(gin_read_signal(g, 0), seen);
    meet(e);
}

/* Bound to nothing, and to all contexts. */
DEVICE void test_bindings(struct env *e)
{
    gin_t dead, all;
    gin_devcomm_t other = e->l->dev;
    CHECK(gin_open(&e->l->dev, FAKE_CONTEXTS, &dead), GIN_ERANGE);
    other.magic = 0;
    CHECK(gin_open(&other, 0, &dead), GIN_ESTATE);
    other = e->l->dev;
    other.serial--; /* of one that lay here before */
    CHECK(gin_open(&other, 0, &dead), GIN_ESTATE);
    CHECK(gin_put(&dead, e->grp, e->world, 0, heap_at(0), heap_at(8), 8, gin_no_action()),
          GIN_ESTATE);
    CHECK(gin_quiet(&dead, e->grp), GIN_ESTATE);
    CHECK(gin_fence(&dead, e->grp, e->world, 0), GIN_ESTATE);
    CHECK(gin_wait_signal(&dead, e->grp, 0, 0), GIN_ESTATE);
    CHECK(gin_barrier(&dead, e->grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0), GIN_ESTATE);
    CHECK(gin_consume_signal(&dead, 0, 1), GIN_ESTATE);
    CHECK(gin_reset_counter(&dead, 0, NULL), GIN_ESTATE);
    CHECK(gin_read_signal_at(&dead, heap_at(0)), 0);
    CHECK(gin_local_ptr(&dead, heap_at(0)) == NULL, 1);
    CHECK(gin_peer_ptr(&dead, e->world, 0, heap_at(0)) == NULL, 1);
    CHECK(gin_lsa(&dead).size, 0);
    CHECK(gin_status(&dead), GIN_ESTATE);
    CHECK_OK(gin_open(&e->l->dev, GIN_ALL_CONTEXTS, &all));
    CHECK(gin_put(&all, e->grp, e->world, 0, heap_at(0), heap_at(8), 8, gin_no_action()),
          GIN_EINVAL);
    CHECK(gin_wait_signal(&all, e->grp, 0, 0), GIN_EINVAL);
    CHECK(gin_consume_signal(&all, 0, 1), GIN_EINVAL);
    CHECK_OK(gin_quiet(&all, e->grp));
    CHECK_OK(gin_flush(&all, e->grp));
    CHECK_OK(gin_fence_all(&all, e->grp));
    meet(e);
}

DEVICE void test_places(struct env *e)
{
    gin_t *g = &e->g;
    const gin_team_t list = fake_team(e->n, e->n - 1 - e->rank, e->l->list, 0);
    char *mine = (char *)gin_local_ptr(g, heap_at(0));
    CHECK(gin_status(g), GIN_OK);
    CHECK((char *)gin_peer_ptr(g, e->world, e->rank, heap_at(100)) - mine, 100);
    CHECK((char *)gin_lsa_ptr(g, e->right, heap_at(REACH + 8)) - mine,
          (uint64_t)((int64_t)(e->right - e->rank) * (int64_t)FAKE_STRIDE) + REACH + 8);
    CHECK(gin_peer_ptr(g, e->world, e->n, heap_at(0)) == NULL, 1);
    CHECK(gin_status(g), GIN_ENOTSUP);
    CHECK(gin_peer_ptr(g, e->world, e->n, gin_at(fake_window(FAKE_HOST), 0)) != NULL, 1);
    CHECK(gin_status(g), GIN_OK);
    CHECK(gin_peer_ptr(g, e->world, e->n + 1, heap_at(0)) == NULL, 1);
    CHECK(gin_local_ptr(g, heap_at(FAKE_USER + 1)) == NULL, 1);
    CHECK(gin_status(g), GIN_ERANGE);
    CHECK(gin_multimem_ptr(g, heap_at(8)), e->l->multicast != 0 ? e->l->multicast + 8 : 0);
    CHECK(gin_status(g), e->l->multicast != 0 ? GIN_OK : GIN_ENOTSUP);
    CHECK(gin_multimem_ptr(g, gin_at(fake_window(FAKE_TABLE), 0)) == NULL, 1);
    CHECK(gin_at_ptr(g, mine + 77).off, 77);
    CHECK(gin_at_ptr(g, mine + 77).win.w, fake_window(FAKE_HEAP).w);
    CHECK(gin_at_ptr(g, mine + FAKE_USER - 1).off, FAKE_USER - 1); /* beyond the binding's size */
    char *table = (char *)gin_local_ptr(g, gin_at(fake_window(FAKE_TABLE), 0));
    CHECK(gin_at_ptr(g, table + 5).win.w, fake_window(FAKE_TABLE).w);
    CHECK(gin_at_ptr(g, table + 5).off, 5);
    CHECK(gin_at_ptr(g, (void *)8).win.w, 0);
    CHECK(gin_status(g), GIN_ERANGE);
    CHECK(gin_scratch(g).win.w, fake_window(FAKE_TABLE).w);
    CHECK(gin_scratch(g).off, 64);
    CHECK(gin_world(g).size, e->n + 2);
    CHECK(gin_lsa(g).size, e->l->lsa);
    CHECK(gin_rail(g).first, e->rank);
    CHECK(gin_node(g).rank, e->rank);
    CHECK(gin_world_rank(g, list, 0), e->n - 1);
    CHECK(gin_world_rank(g, list, e->n), -1);
    CHECK(gin_status(g), GIN_ERANGE);
    CHECK(gin_world_rank(g, fake_team(e->n, 0, e->l->list + 4096, 0), 0), -1);
    CHECK(gin_status(g), GIN_ESTATE);
    CHECK(gin_world_rank(g, fake_team(2, 0, 1, -1), 1), 0);
    CHECK(gin_lsa_rank(g, e->world, e->n), e->n);
    CHECK(gin_lsa_rank(g, e->world, e->n + 1), -1);
    /* a put by a rank of a list */
    uint64_t seen = gin_read_signal(g, 11);
    meet(e);
    CHECK_OK(gin_signal(g, e->grp, list, e->n - 1 - e->right, gin_weak_inc(11)));
    CHECK_OK(gin_wait_signal(g, e->grp, 11, seen + 1));
    meet(e);
}

#endif
#endif
