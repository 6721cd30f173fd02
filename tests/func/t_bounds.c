/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BL-10: ranges whose end wraps, in every operation that takes a place; nothing may change by a
 * refused one. The same numbers against a window of user memory, a sub-window and the heap.
 */
#include <string.h>
#include "tests/mp.h"

#define SIZE 4096u

/* Places and lengths, and whether they lie inside a window of SIZE bytes. */
static const struct range {
    uint64_t off, bytes;
    bool inside;
} ranges[] = {
    {0, 0, true},
    {0, SIZE, true},
    {16, SIZE - 16, true},
    {SIZE, 0, true},
    {SIZE - 1, 1, true},
    {16, UINT64_MAX - 8, false},
    {UINT64_MAX - 7, 16, false},
    {UINT64_MAX - 7, 8, false},
    {UINT64_MAX, 1, false},
    {UINT64_MAX, UINT64_MAX, false},
    {1, UINT64_MAX, false},
    {0, UINT64_MAX, false},
    {(uint64_t)1 << 63, (uint64_t)1 << 63, false},
    {(uint64_t)1 << 32, 8, false},
    {8, (uint64_t)1 << 32, false},
    {SIZE, 1, false},
    {SIZE + 1, 0, false},
    {SIZE - 1, 2, false},
    {0, SIZE + 1, false},
};
#define RANGES (sizeof(ranges) / sizeof(ranges[0]))

static void expect(const char *what, int st, const struct range *r, bool inside)
{
    if (inside ? st != GIN_OK : st != GIN_ERANGE || strstr(gin_last_error(), "gin_") == NULL)
        FAIL("%s of [%" PRIu64 ", +%" PRIu64 "): %s, \"%s\"", what, r->off, r->bytes,
             gin_status_name(st), st == GIN_OK ? "" : gin_last_error());
}

/* All operations on one window at one peer. */
static void operations(struct mp *mp, gin_window_t win, int peer)
{
    const gin_t *g = &mp->g;
    gin_group_t me = gin_thread();
    gin_team_t w = gin_world(g);
    static char local[SIZE];
    uint64_t old;
    uint32_t old32;
    for (size_t i = 0; i < RANGES; i++) {
        const struct range *r = &ranges[i];
        gin_at_t at = gin_at(win, r->off);
        mp_step(mp, "range %zu at rank %d", i, peer);
        expect("put", gin_put(g, me, w, peer, at, gin_at_local(local), r->bytes, gin_no_action()),
               r, r->inside);
        expect("put with signal",
               gin_put(g, me, w, peer, at, gin_at_local(local), r->bytes, gin_weak_add(5, 0)), r,
               r->inside);
        expect("get", gin_get(g, me, w, peer, at, gin_at_local(local), r->bytes), r, r->inside);
        /* my own window as local place */
        if (!r->inside) /* else source and destination overlap */
            expect("put from",
                   gin_put(g, me, w, peer, gin_at(win, 0), at, r->bytes, gin_no_action()), r,
                   false);
        if (r->bytes != 8 && r->bytes != 16 && r->bytes != 1)
            continue;
        /* Words are aligned in memory; the window's own start may be odd by 8 only. */
        uint64_t off = r->off & ~(uint64_t)7;
        bool word = off <= SIZE - 8;
        at = gin_at(win, off);
        expect("signal_at", gin_signal(g, me, w, peer, gin_weak_add_at(at, 0)), r, word);
        expect("put signal_at",
               gin_put(g, me, w, peer, gin_at(win, 0), gin_at_local(local), 0,
                       gin_strong_add_at(at, 0)),
               r, word);
        expect("add", gin_amo_add(g, me, w, peer, at, 0), r, word);
        expect("fetch_add", gin_amo_fetch_add(g, me, w, peer, at, 0, &old), r, word);
        expect("fetch", gin_amo_fetch(g, me, w, peer, at, &old), r, word);
        expect("cas", gin_amo_cas(g, me, w, peer, at, 1, 1, &old), r, word);
        expect("add32", gin_amo_add32(g, me, w, peer, at, 0), r, word);
        expect("fetch_or32", gin_amo_fetch_or32(g, me, w, peer, at, 0, &old32), r, word);
    }
    /* The last word of 4 bytes is one, the last 4 bytes are no word of 8. */
    EXPECT_OK(gin_amo_add32(g, me, w, peer, gin_at(win, SIZE - 4), 0));
    EXPECT_FAILS(gin_amo_add(g, me, w, peer, gin_at(win, SIZE), 0), GIN_ERANGE, "gin_amo");
    EXPECT(gin_amo_add(g, me, w, peer, gin_at(win, SIZE - 4), 0) < 0);
}

static void window_of_heap(struct mp *mp, bool shift)
{
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_aligned_alloc(mp->comm, 64, 3 * SIZE);
    gin_window_t win;
    if (!EXPECT(block != NULL))
        return;
    char *p = block + SIZE + (shift ? 40 : 0);
    memset(block, 0, 3 * SIZE);
    EXPECT_OK(gin_window_register(mp->comm, p, SIZE, 0, &win));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int turn = 0; turn < mp->size; turn++) { /* all write to the same places */
        for (int peer = 0; turn == mp->rank && peer < mp->size; peer++)
            operations(mp, win, peer);
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
        EXPECT_EQ_INT(mp_barrier(mp), 0);
    }
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_ALL));
    EXPECT_FILLED(block, 3 * SIZE, 0);
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 5), 0);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST_N(window_in_the_heap, "1 2 3")
{
    window_of_heap(mp, false);
}

MP_TEST_N(window_with_an_odd_start, "1 2")
{
    window_of_heap(mp, true);
}

MP_TEST_OPT(window_in_the_heap_checked, .ranks = "1 2", .env = "GINSHMEM_CHECK=1")
{
    window_of_heap(mp, true);
}

/* In checked mode heap bytes that no live block holds are refused, whatever window they are in. */
MP_TEST_OPT(dead_blocks_checked, .ranks = "1 2", .env = "GINSHMEM_CHECK=1")
{
    char local[512] = {0};
    uint64_t old;
    if (!mp_dev(mp, NULL))
        return;
    char *a = gin_malloc(mp->comm, 256), *b = gin_malloc(mp->comm, 256);
    if (!EXPECT(a != NULL && b != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    gin_group_t me = gin_thread();
    gin_at_t at = gin_at_ptr(&mp->g, a), from = gin_at_local(local);
    int peer = (mp->rank + 1) % mp->size;
    EXPECT_OK(gin_put(&mp->g, me, w, peer, at, from, 256, gin_no_action()));
    EXPECT_FAILS(gin_put(&mp->g, me, w, peer, at, from, 257, gin_no_action()), GIN_ERANGE,
                 "live block");
    EXPECT_FAILS(gin_get(&mp->g, me, w, peer, at, from, 257), GIN_ERANGE, "live block");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, a));
    EXPECT_FAILS(gin_put(&mp->g, me, w, peer, at, from, 8, gin_no_action()), GIN_ERANGE,
                 "live block");
    EXPECT_FAILS(gin_get(&mp->g, me, w, peer, at, from, 8), GIN_ERANGE, "live block");
    EXPECT_FAILS(gin_amo_fetch_add(&mp->g, me, w, peer, at, 1, &old), GIN_ERANGE, "live block");
    EXPECT_FAILS(gin_signal(&mp->g, me, w, peer, gin_weak_inc_at(at)), GIN_ERANGE, "live block");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, b));
}

/* The heap's own window: its end instead of SIZE. */
MP_TEST_N(heap_window, "1 2 3")
{
    if (!mp_dev(mp, NULL))
        return;
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    char *block = gin_malloc(mp->comm, 64), local[64];
    gin_window_t heap = gin_heap_window(mp->comm, GIN_KIND_HOST);
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
    if (!EXPECT(block != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    int peer = (mp->rank + 1) % mp->size;
    const uint64_t off[] = {u.size,     u.size - 8, UINT64_MAX - 7,
                            UINT64_MAX, u.size + 1, (uint64_t)1 << 63};
    const uint64_t len[] = {1, 9, 8, 16, 1, UINT64_MAX - 8};
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        for (size_t k = 0; k < sizeof(len) / sizeof(len[0]); k++) {
            bool inside = off[i] <= u.size && len[k] <= u.size - off[i];
            if (inside) /* would write behind the last block */
                continue;
            EXPECT_FAILS(gin_put(&mp->g, gin_thread(), w, peer, gin_at(heap, off[i]),
                                 gin_at_local(local), len[k], gin_no_action()),
                         GIN_ERANGE, "gin_put");
            EXPECT_FAILS(gin_get(&mp->g, gin_thread(), w, peer, gin_at(heap, off[i]),
                                 gin_at_local(local), len[k]),
                         GIN_ERANGE, "gin_get");
        }
    EXPECT_OK(gin_put(&mp->g, gin_thread(), w, peer, gin_at(heap, u.size), gin_at_local(local), 0,
                      gin_no_action()));
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), w, peer, gin_at(heap, u.size + 1),
                         gin_at_local(local), 0, gin_no_action()),
                 GIN_ERANGE, "gin_put");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
}

/* Words that are not aligned are refused on every machine (BL-41). */
MP_TEST_N(misaligned_words, "1 2")
{
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *word = gin_calloc(mp->comm, 4 + 2 * (size_t)mp->size, 8), old = 7;
    gin_team_t w = gin_world(&mp->g);
    gin_group_t me = gin_thread();
    uint32_t old32 = 7;
    if (!EXPECT(word != NULL))
        return;
    for (uint64_t off = 0; off < 8; off++) {
        gin_at_t at = gin_at_ptr(&mp->g, (char *)word + 8 + off);
        int ok8 = off == 0 ? GIN_OK : GIN_EINVAL, ok4 = off % 4 == 0 ? GIN_OK : GIN_EINVAL;
        for (int peer = 0; peer < mp->size; peer++) {
            EXPECT_EQ_INT(gin_amo_fetch_add(&mp->g, me, w, peer, at, 0, &old), ok8);
            EXPECT_EQ_INT(gin_amo_set(&mp->g, me, w, peer, at, 0), ok8);
            EXPECT_EQ_INT(gin_amo_cas(&mp->g, me, w, peer, at, 0, 0, &old), ok8);
            EXPECT_EQ_INT(gin_amo_fetch_add32(&mp->g, me, w, peer, at, 0, &old32), ok4);
            EXPECT_EQ_INT(gin_amo_xor32(&mp->g, me, w, peer, at, 0), ok4);
            EXPECT_EQ_INT(gin_signal(&mp->g, me, w, peer, gin_weak_add_at(at, 0)), ok8);
            EXPECT_EQ_INT(gin_signal(&mp->g, me, w, peer, gin_set_at(at, 0)), ok8);
            EXPECT_EQ_INT(
                gin_put(&mp->g, me, w, peer, at, gin_at_local(&old), 0, gin_strong_add_at(at, 0)),
                ok8);
            /* data may lie anywhere; each rank has two words of its own for it */
            gin_at_t any = gin_at_ptr(&mp->g, (char *)(word + 4 + 2 * mp->rank) + off);
            EXPECT_OK(gin_put_value(&mp->g, me, w, peer, any, 0, 4, gin_no_action()));
        }
        gin_wait_opt_t once = {.poll = 1};
        EXPECT_EQ_INT(gin_wait_signal_at(&mp->g, me, at, 0, &once), ok8);
        EXPECT_EQ_INT(gin_reset_signal_at(&mp->g, at, &old), ok8);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(word, 32, 0);
    EXPECT_OK(gin_free(mp->comm, word));
}
