/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: every operation in both widths against a serial oracle, and against each other. */
#include <string.h>
#include "tests/func/amo_oracle.h"
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

struct target {
    const gin_t *g;
    gin_team_t team;
    int peer;
    gin_at_t at;
};

static int do64(const struct target *t, enum amo op, uint64_t v, uint64_t expected, uint64_t *old)
{
    switch (op) {
    case SET: return gin_amo_set(t->g, me(), t->team, t->peer, t->at, v);
    case ADD: return gin_amo_add(t->g, me(), t->team, t->peer, t->at, v);
    case AND: return gin_amo_and(t->g, me(), t->team, t->peer, t->at, v);
    case OR: return gin_amo_or(t->g, me(), t->team, t->peer, t->at, v);
    case XOR: return gin_amo_xor(t->g, me(), t->team, t->peer, t->at, v);
    case FETCH: return gin_amo_fetch(t->g, me(), t->team, t->peer, t->at, old);
    case FETCH_ADD: return gin_amo_fetch_add(t->g, me(), t->team, t->peer, t->at, v, old);
    case FETCH_AND: return gin_amo_fetch_and(t->g, me(), t->team, t->peer, t->at, v, old);
    case FETCH_OR: return gin_amo_fetch_or(t->g, me(), t->team, t->peer, t->at, v, old);
    case FETCH_XOR: return gin_amo_fetch_xor(t->g, me(), t->team, t->peer, t->at, v, old);
    case SWAP: return gin_amo_swap(t->g, me(), t->team, t->peer, t->at, v, old);
    case CAS: break;
    }
    return gin_amo_cas(t->g, me(), t->team, t->peer, t->at, expected, v, old);
}

static int do32(const struct target *t, enum amo op, uint32_t v, uint32_t expected, uint32_t *old)
{
    switch (op) {
    case SET: return gin_amo_set32(t->g, me(), t->team, t->peer, t->at, v);
    case ADD: return gin_amo_add32(t->g, me(), t->team, t->peer, t->at, v);
    case AND: return gin_amo_and32(t->g, me(), t->team, t->peer, t->at, v);
    case OR: return gin_amo_or32(t->g, me(), t->team, t->peer, t->at, v);
    case XOR: return gin_amo_xor32(t->g, me(), t->team, t->peer, t->at, v);
    case FETCH: return gin_amo_fetch32(t->g, me(), t->team, t->peer, t->at, old);
    case FETCH_ADD: return gin_amo_fetch_add32(t->g, me(), t->team, t->peer, t->at, v, old);
    case FETCH_AND: return gin_amo_fetch_and32(t->g, me(), t->team, t->peer, t->at, v, old);
    case FETCH_OR: return gin_amo_fetch_or32(t->g, me(), t->team, t->peer, t->at, v, old);
    case FETCH_XOR: return gin_amo_fetch_xor32(t->g, me(), t->team, t->peer, t->at, v, old);
    case SWAP: return gin_amo_swap32(t->g, me(), t->team, t->peer, t->at, v, old);
    case CAS: break;
    }
    return gin_amo_cas32(t->g, me(), t->team, t->peer, t->at, expected, v, old);
}

static uint64_t some_value(struct mp *mp)
{
    static const uint64_t edges[] = {0,           1,          ~(uint64_t)0, (uint64_t)1 << 63,
                                     0xffffffffu, 0x80000000u};
    return pt_below(&mp->rng, 3) == 0 ? edges[pt_below(&mp->rng, 6)] : pt_random(&mp->rng);
}

/* One rank works on each peer's word at a time; neighbours of the word must not change. */
static void against_the_oracle(struct mp *mp)
{
    int rounds = mp_rounds(mp, mp->long_mode ? 200000 : 5000);
    if (!mp_dev(mp, NULL))
        return;
    bool far = !mp_near(mp);
    uint64_t *block = gin_calloc(mp->comm, (size_t)mp->size, 32), word = 0;
    if (!EXPECT(block != NULL))
        return;
    for (int r = 0; r < 4 * mp->size; r++)
        block[r] = 0x5555555555555555u;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    int peer = (mp->rank + 1) % mp->size;
    uint64_t *mine = block + 4 * mp->rank + 1;
    struct target t = {&mp->g, gin_world(&mp->g), peer, gin_at_ptr(&mp->g, mine)};
    EXPECT_OK(gin_amo_set(&mp->g, me(), t.team, peer, t.at, 0));
    for (int i = 0; i < rounds; i++) {
        enum amo op = (enum amo)pt_below(&mp->rng, AMOS);
        uint64_t v = some_value(mp), old = 7;
        uint64_t expected = pt_below(&mp->rng, 2) ? word : some_value(mp);
        uint64_t next = amo_after(op, word, v, expected);
        if (pt_below(&mp->rng, 2)) {
            EXPECT_OK(do64(&t, op, v, expected, &old));
            EXPECT_EQ_U64(old, op < FETCH ? 7 : word);
        } else { /* its first 4 bytes in memory order */
            uint32_t half, half_old = 7, half_next;
            memcpy(&half, &word, 4);
            EXPECT_OK(do32(&t, op, (uint32_t)v, (uint32_t)expected, &half_old));
            EXPECT_EQ_U64(half_old, op < FETCH ? 7 : half);
            half_next = (uint32_t)amo_after(op, half, (uint32_t)v, (uint32_t)expected);
            next = word;
            memcpy(&next, &half_next, 4);
        }
        word = next;
        if (far)
            EXPECT_OK(gin_quiet(&mp->g, me()));
        if (!EXPECT_EQ_U64(mp_see(&mp->g, t.team, peer, t.at), word)) {
            mp_step(mp, "operation %d, round %d", (int)op, i);
            return;
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int r = 0; r < 4 * mp->size; r++)
        if (r != 4 * ((mp->rank + mp->size - 1) % mp->size) + 1)
            EXPECT_EQ_U64(block[r], 0x5555555555555555u);
}

MP_TEST_OPT(every_operation, .ranks = "1 2 3")
{
    against_the_oracle(mp);
}

/* In checked mode everything takes the library's way. */
MP_TEST_OPT(every_operation_checked, .ranks = "1 2", .env = "GINSHMEM_CHECK=1")
{
    against_the_oracle(mp);
}

/* Everyone updates one word of rank 0 in every way that adds one, signals on it included. */
MP_TEST_OPT(contended_sums_are_exact, .ranks = "1 2 3 5 8")
{
    uint64_t n = (uint64_t)mp_rounds(mp, mp->long_mode ? 200000 : 20000);
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *w = gin_calloc(mp->comm, 3, 64);
    if (!EXPECT(w != NULL))
        return;
    gin_team_t world = gin_world(&mp->g);
    gin_at_t sum = gin_at_ptr(&mp->g, w), low = gin_at_ptr(&mp->g, w + 8);
    gin_at_t bits = gin_at_ptr(&mp->g, w + 16);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t old = 0, seen;
        uint32_t old32;
        switch (i % 5) {
        case 0: EXPECT_OK(gin_amo_add(&mp->g, me(), world, 0, sum, 1)); break;
        case 1: EXPECT_OK(gin_amo_fetch_add(&mp->g, me(), world, 0, sum, 1, &old)); break;
        case 2: EXPECT_OK(gin_signal(&mp->g, me(), world, 0, gin_weak_inc_at(sum))); break;
        case 3: /* the optimist's way */
            EXPECT_OK(gin_amo_fetch(&mp->g, me(), world, 0, sum, &seen));
            for (;;) {
                EXPECT_OK(gin_amo_cas(&mp->g, me(), world, 0, sum, seen, seen + 1, &old));
                if (old == seen)
                    break;
                seen = old;
            }
            break;
        default:
            EXPECT_OK(gin_amo_add(&mp->g, me(), world, 0, sum, 2));
            EXPECT_OK(gin_amo_add(&mp->g, me(), world, 0, sum, ~(uint64_t)0));
        }
        EXPECT_OK(gin_amo_fetch_add32(&mp->g, me(), world, 0, low, 0x10001u, &old32));
        /* a bit of mine, flipped: xor commutes with everybody else's */
        EXPECT_OK(gin_amo_xor(&mp->g, me(), world, 0, bits, (uint64_t)1 << mp->rank));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 0) {
        uint64_t all = n * (uint64_t)mp->size;
        EXPECT_EQ_U64(w[0], all);
        EXPECT_EQ_U64(*(uint32_t *)(void *)(w + 8), (uint32_t)(all * 0x10001u));
        EXPECT_EQ_U64(w[16], n % 2 ? ((uint64_t)1 << mp->size) - 1 : 0);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Each ticket is drawn once. */
MP_TEST_OPT(tickets_are_drawn_once, .ranks = "2 3 5")
{
    size_t n = (size_t)mp_rounds(mp, 3000), all = n * (size_t)mp->size;
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *counter = gin_calloc(mp->comm, 1, 64);
    uint32_t *taken = gin_calloc(mp->comm, all, 4);
    if (!EXPECT(counter != NULL && taken != NULL))
        return;
    gin_team_t world = gin_world(&mp->g);
    gin_at_t at = gin_at_ptr(&mp->g, counter), base = gin_at_ptr(&mp->g, taken);
    for (size_t i = 0; i < n; i++) {
        uint64_t ticket = ~(uint64_t)0;
        uint32_t old = 7;
        EXPECT_OK(gin_amo_fetch_add(&mp->g, me(), world, mp->size - 1, at, 1, &ticket));
        if (!EXPECT(ticket < all))
            return;
        gin_at_t mark = gin_at(base.win, base.off + 4 * ticket);
        EXPECT_OK(gin_amo_swap32(&mp->g, me(), world, 0, mark, (uint32_t)mp->rank + 1, &old));
        EXPECT_EQ_U64(old, 0);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (size_t i = 0; mp->rank == 0 && i < all; i++)
        EXPECT(taken[i] != 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* BL-41: misaligned words are refused here too, aligned ones of 4 bytes are not. */
static void misaligned(struct mp *mp)
{
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_calloc(mp->comm, 1, 64);
    if (!EXPECT(block != NULL))
        return;
    for (int off = 0; off < 8; off++) {
        for (int op = 0; op < AMOS; op++) {
            struct target t = {&mp->g, gin_world(&mp->g), (mp->rank + 1) % mp->size,
                               gin_at_ptr(&mp->g, block + off)};
            uint64_t old;
            uint32_t old32;
            if (off % 8 != 0)
                EXPECT_FAILS(do64(&t, (enum amo)op, 0, 1, &old), GIN_EINVAL, "8-byte aligned");
            else
                EXPECT_OK(do64(&t, (enum amo)op, 0, 1, &old));
            if (off % 4 != 0)
                EXPECT_FAILS(do32(&t, (enum amo)op, 0, 1, &old32), GIN_EINVAL, "4-byte aligned");
            else
                EXPECT_OK(do32(&t, (enum amo)op, 0, 1, &old32));
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(block, 64, 0);
}

MP_TEST_OPT(misaligned_words_are_refused, .ranks = "1 2")
{
    misaligned(mp);
}

MP_TEST_OPT(misaligned_words_are_refused_checked, .ranks = "1 2", .env = "GINSHMEM_CHECK=1")
{
    misaligned(mp);
}

MP_TEST_OPT(what_has_no_meaning_is_refused, .ranks = "1 2")
{
    if (!mp_dev(mp, NULL))
        return;
    gin_team_t world = gin_world(&mp->g);
    uint64_t *w = gin_calloc(mp->comm, 1, 64), old = 7;
    gin_t all, none;
    if (!EXPECT(w != NULL) || !EXPECT_OK(gin_open(&mp->dev, GIN_ALL_CONTEXTS, &all)))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, w);
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
    gin_at_t end = gin_at(at.win, u.size - 4), far = gin_at(at.win, ~(uint64_t)0 - 3);
    EXPECT_FAILS(gin_amo_add(&mp->g, me(), world, mp->size, at, 1), GIN_ERANGE, "gin_amo_add");
    EXPECT_FAILS(gin_amo_add(&mp->g, me(), world, -1, at, 1), GIN_ERANGE, "-1");
    EXPECT_FAILS(gin_amo_add(&mp->g, me(), gin_team_invalid(), 0, at, 1), GIN_EINVAL, "team");
    EXPECT_FAILS(gin_amo_set(&mp->g, me(), world, 0, end, 1), GIN_ERANGE, "outside");
    EXPECT_FAILS(gin_amo_xor(&mp->g, me(), world, 0, far, 1), GIN_ERANGE, "outside");
    EXPECT_FAILS(gin_amo_and(&mp->g, me(), world, 0, gin_at(gin_window_none(), 8), 1), GIN_ESTATE,
                 "window");
    EXPECT_FAILS(gin_amo_or(&mp->g, me(), world, 0, gin_at_local(w), 1), GIN_EINVAL,
                 "gin_at_local");
    EXPECT_FAILS(gin_amo_add(&mp->g, gin_warp(), world, 0, at, 1), GIN_EINVAL, "gin_thread");
    EXPECT_FAILS(gin_amo_add32(&all, me(), world, 0, at, 1), GIN_EINVAL, "ALL_CONTEXTS");
    EXPECT_FAILS(gin_amo_fetch(&mp->g, me(), world, 0, at, NULL), GIN_EINVAL, "old is NULL");
    EXPECT_FAILS(gin_amo_fetch_add(&mp->g, me(), world, 0, at, 1, NULL), GIN_EINVAL, "old is NULL");
    EXPECT_FAILS(gin_amo_fetch_xor32(&mp->g, me(), world, 0, at, 1, NULL), GIN_EINVAL,
                 "old is NULL");
    EXPECT_FAILS(gin_amo_swap(&mp->g, me(), world, 0, at, 1, NULL), GIN_EINVAL, "old is NULL");
    EXPECT_FAILS(gin_amo_cas32(&mp->g, me(), world, 0, at, 0, 1, NULL), GIN_EINVAL, "old is NULL");
    EXPECT_EQ_INT(gin_open(&mp->dev, 4, &none), GIN_ERANGE);
    EXPECT_FAILS(gin_amo_swap(&none, me(), world, 0, at, 1, &old), GIN_ESTATE, "gin_amo_swap");
    EXPECT_EQ_U64(old, 7);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(w, 64, 0);
}

/* Words of user memory: threads of one process share it, other processes are refused. */
MP_TEST_OPT(words_of_user_memory, .ranks = "2 3")
{
    if (!mp_dev(mp, NULL))
        return;
    gin_window_t win, fixed;
    uint64_t *mem = calloc(4, 8), old = 0;
    uint64_t *heap = gin_calloc(mp->comm, 4, 8);
    int peer = (mp->rank + 1) % mp->size;
    gin_team_t world = gin_world(&mp->g);
    if (!EXPECT(mem != NULL && heap != NULL) ||
        !EXPECT_OK(gin_window_register(mp->comm, mem, 32, 0, &win)) ||
        !EXPECT_OK(gin_window_register(mp->comm, heap, 32, GIN_WIN_READ_ONLY, &fixed)))
        return;
    bool reached = mp->threads || gin_window_path(mp->comm, win, peer) == GIN_PATH_NET;
    EXPECT_OK(gin_amo_add(&mp->g, me(), world, mp->rank, gin_at(win, 8), 5));
    if (reached) {
        EXPECT_OK(gin_comm_barrier(mp->comm));
        EXPECT_OK(gin_amo_fetch_add(&mp->g, me(), world, peer, gin_at(win, 8), 6, &old));
        EXPECT_EQ_U64(old, 5);
    } else {
        EXPECT_FAILS(gin_amo_add(&mp->g, me(), world, peer, gin_at(win, 8), 6), GIN_ENOTSUP,
                     "user memory");
    }
    EXPECT_FAILS(gin_amo_add(&mp->g, me(), world, peer, gin_at(win, 3), 6), GIN_EINVAL, "aligned");
    EXPECT_FAILS(gin_amo_add(&mp->g, me(), world, peer, gin_at(fixed, 8), 6), GIN_ENOTSUP,
                 "read-only");
    EXPECT_OK(gin_amo_fetch(&mp->g, me(), world, peer, gin_at(fixed, 8), &old));
    EXPECT_EQ_U64(old, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(mem[1], reached ? 11 : 5);
    EXPECT_OK(gin_window_deregister(mp->comm, fixed));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    free(mem);
}
