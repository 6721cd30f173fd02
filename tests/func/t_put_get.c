/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put and get: all small sizes and alignments, sizes around pages and powers of two, every kind of
 * local memory, every peer, every kind of team. Whole ranges are compared, with canaries around.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/mp.h"

#define MIB   (1u << 20)
#define SLOTS 8 /* per sender, at most */

static const size_t big_sizes[] = {127,  128,  129,   255,   256,   257, 4095,
                                   4096, 4097, 65535, 65536, 65537, MIB};

/* Size number i: 0 .. 64, then the big ones; false at the end. Slow builds take every third. */
static bool size_of(unsigned i, size_t *n)
{
    i *= MP_FACTOR > 1 ? 3 : 1;
    if (i <= 64)
        *n = i;
    else if (i - 65 < sizeof(big_sizes) / sizeof(big_sizes[0]))
        *n = big_sizes[i - 65];
    else
        return false;
    return true;
}

/* Every sender has its slots in every rank's block; slot s is s bytes off alignment. */
struct field {
    char *block;
    size_t n, slot;
    unsigned slots;
};

static struct field field_of(char *block, size_t n)
{
    struct field f = {block, n, (n + 2 * MP_CANARY + SLOTS + 63) & ~(size_t)63,
                      n > 8192 ? 2 : SLOTS};
    return f;
}

static char *place(const struct field *f, int sender, unsigned slot)
{
    return f->block + ((size_t)sender * f->slots + slot) * f->slot + MP_CANARY + slot;
}

static uint64_t seed_of(size_t n, int from, int to, unsigned slot)
{
    return n * 1000003 + (uint64_t)from * 8191 + (uint64_t)to * 127 + slot;
}

static size_t block_bytes(int size)
{
    return (size_t)size * 2 * (MIB + 256);
}

/* Local memory of all kinds, of at least n bytes at this misalignment. */
struct locals {
    char *heap, *malloced;
};
static char static_memory[16][MIB + 64];

static char *local_memory(struct mp *mp, struct locals *l, unsigned kind, unsigned off)
{
    switch (kind % 3) {
    case 0: return l->heap + off;
    case 1: return l->malloced + off;
    default: /* one per rank, while they last */
        return mp->threads && mp->rank >= 16 ? l->malloced + off
                                             : static_memory[mp->threads ? mp->rank : 0] + off;
    }
}

static gin_at_t local_at(struct mp *mp, unsigned kind, const char *p)
{
    return kind % 3 == 0 && kind % 2 == 0 ? gin_at_ptr(&mp->g, p) : gin_at_local(p);
}

MP_TEST(put_sizes_and_alignments)
{
    struct locals l;
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_malloc(mp->comm, block_bytes(mp->size));
    l.heap = gin_malloc(mp->comm, MIB + 64);
    l.malloced = malloc(MIB + 64);
    if (!EXPECT(block != NULL && l.heap != NULL))
        return;
    size_t n;
    for (unsigned i = 0; size_of(i, &n); i++) {
        struct field f = field_of(block, n);
        mp_step(mp, "put of %zu bytes", n);
        for (int r = 0; r < mp->size; r++)
            for (unsigned s = 0; s < f.slots; s++) {
                mp_poison(place(&f, r, s), n, ~(uint64_t)0);
                mp_canaries(place(&f, r, s), n);
            }
        if (!EXPECT_OK(gin_comm_barrier(mp->comm)))
            return;
        for (int k = 0; k < mp->size; k++)
            for (unsigned s = 0; s < f.slots; s++) {
                int to = (mp->rank + k) % mp->size;
                unsigned kind = i + s + (unsigned)k;
                char *src = local_memory(mp, &l, kind, (i + s * 3) % 8);
                mp_poison(src, n, seed_of(n, mp->rank, to, s));
                EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to,
                                  gin_at_ptr(&mp->g, place(&f, mp->rank, s)),
                                  local_at(mp, kind, src), n, gin_no_action()));
                EXPECT_OK(gin_flush(&mp->g, gin_thread())); /* the source is used again */
                MP_CHECK_PATTERN(src, n, seed_of(n, mp->rank, to, s));
            }
        EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
        for (int r = 0; r < mp->size; r++)
            for (unsigned s = 0; s < f.slots; s++) {
                MP_CHECK_PATTERN(place(&f, r, s), n, seed_of(n, r, mp->rank, s));
                MP_CHECK_CANARIES(place(&f, r, s), n);
            }
    }
    free(l.malloced);
    EXPECT_OK(gin_free(mp->comm, l.heap));
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST(get_sizes_and_alignments)
{
    struct locals l;
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_malloc(mp->comm, block_bytes(1));
    l.heap = gin_malloc(mp->comm, MIB + 256);
    l.malloced = malloc(MIB + 256);
    if (!EXPECT(block != NULL && l.heap != NULL))
        return;
    size_t n;
    for (unsigned i = 0; size_of(i, &n); i++) {
        struct field f = field_of(block, n);
        mp_step(mp, "get of %zu bytes", n);
        for (unsigned s = 0; s < f.slots; s++)
            mp_poison(place(&f, 0, s), n, seed_of(n, mp->rank, 0, s));
        if (!EXPECT_OK(gin_comm_barrier(mp->comm)))
            return;
        for (int k = 0; k < mp->size; k++)
            for (unsigned s = 0; s < f.slots; s++) {
                int from = (mp->rank + k) % mp->size;
                unsigned kind = (i + s + (unsigned)k) % 2; /* heap or malloc: canaries need room */
                char *dst = local_memory(mp, &l, kind, MP_CANARY + (i + s * 3) % 8);
                mp_poison(dst, n, ~(uint64_t)0);
                mp_canaries(dst, n);
                EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), from,
                                  gin_at_ptr(&mp->g, place(&f, 0, s)), local_at(mp, kind, dst), n));
                EXPECT_OK(gin_flush(&mp->g, gin_thread()));
                MP_CHECK_PATTERN(dst, n, seed_of(n, from, 0, s));
                MP_CHECK_CANARIES(dst, n);
            }
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    free(l.malloced);
    EXPECT_OK(gin_free(mp->comm, l.heap));
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST(unregistered_stack_and_constant_sources)
{
    static const char constant[] = "bytes that nobody may write to";
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_calloc(mp->comm, (size_t)mp->size, 64), stack[200], got[64];
    if (!EXPECT(block != NULL))
        return;
    for (int to = 0; to < mp->size; to++)
        EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to,
                          gin_at_ptr(&mp->g, block + mp->rank * 64), gin_at_local(constant),
                          sizeof(constant), gin_no_action()));
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_ALL));
    for (int r = 0; r < mp->size; r++) {
        EXPECT_EQ_STR(block + r * 64, constant);
        memset(stack, 0x55, sizeof(stack));
        EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), r,
                          gin_at_ptr(&mp->g, block + mp->rank * 64), gin_at_local(stack + 67),
                          sizeof(constant)));
        EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        EXPECT_EQ_STR(stack + 67, constant);
        EXPECT_FILLED(stack, 67, 0x55);
        EXPECT_FILLED(stack + 67 + sizeof(constant), 200 - 67 - sizeof(constant), 0x55);
    }
    /* Memory registered as local behaves the same. */
    EXPECT_OK(gin_local_register(mp->comm, got, sizeof(got)));
    EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), mp->size - 1,
                      gin_at_ptr(&mp->g, block), gin_at_local(got), 64));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    EXPECT_EQ_STR(got, constant);
    EXPECT_OK(gin_local_deregister(mp->comm, got));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
}

/* All members of a team put to all members; the others see nothing. */
static void exchange(struct mp *mp, gin_team_t team, char *block, const char *what)
{
    size_t n = 1000;
    mp_step(mp, "team %s", what);
    memset(block, 0xee, (size_t)mp->size * n);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int peer = 0; team.rank >= 0 && peer < team.size; peer++) {
        char src[1000];
        int world = gin_team_rank_to_world(mp->comm, team, peer);
        EXPECT_EQ_INT(world, gin_world_rank(&mp->g, team, peer));
        mp_poison(src, n, seed_of(n, mp->rank, world, 0));
        EXPECT_OK(gin_put(&mp->g, gin_thread(), team, peer,
                          gin_at_ptr(&mp->g, block + (size_t)mp->rank * n), gin_at_local(src), n,
                          gin_no_action()));
        EXPECT_OK(gin_flush_peer(&mp->g, gin_thread(), team, peer));
    }
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int r = 0; r < mp->size; r++)
        EXPECT_FILLED(block + (size_t)r * n, team.rank < 0 ? n : 0, 0xee);
    bool member[mp->size];
    memset(member, 0, sizeof(member));
    for (int i = 0; team.rank >= 0 && i < team.size; i++)
        member[gin_team_rank_to_world(mp->comm, team, i)] = true;
    for (int r = 0; team.rank >= 0 && r < mp->size; r++)
        if (member[r])
            MP_CHECK_PATTERN(block + (size_t)r * n, n, seed_of(n, r, mp->rank, 0));
        else
            EXPECT_FILLED(block + (size_t)r * n, n, 0xee);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST(teams)
{
    gin_team_t world, team;
    int list[mp->size];
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_malloc(mp->comm, (size_t)mp->size * 1000);
    world = gin_team_world(mp->comm);
    if (!EXPECT(block != NULL))
        return;
    exchange(mp, world, block, "world");
    exchange(mp, gin_world(&mp->g), block, "world of the context");
    exchange(mp, gin_team_node(mp->comm), block, "node");
    exchange(mp, gin_team_lsa(mp->comm), block, "lsa");
    exchange(mp, gin_rail(&mp->g), block, "rail");
    EXPECT_OK(gin_team_split_strided(mp->comm, world, mp->size - 1, -1, mp->size, &team));
    exchange(mp, team, block, "reversed");
    EXPECT_OK(gin_team_split_strided(mp->comm, world, 0, 2, (mp->size + 1) / 2, &team));
    exchange(mp, team, block, "even ranks");
    for (int i = 0; i < mp->size; i++)
        list[i] = i;
    for (int i = mp->size - 1; i > 0; i--) { /* the same shuffle on all ranks */
        int k = (int)pt_below(&mp->common, (uint64_t)i + 1), t = list[i];
        list[i] = list[k];
        list[k] = t;
    }
    EXPECT_OK(gin_team_create(mp->comm, list, mp->size, &team));
    exchange(mp, team, block, "list of all");
    EXPECT_OK(gin_team_free(mp->comm, team));
    int some = (mp->size + 2) / 2;
    some = some < mp->size ? some : mp->size;
    EXPECT_OK(gin_team_create(mp->comm, list, some, &team));
    exchange(mp, team, block, "list of some");
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST(random_pieces)
{
    enum { BYTES = 20000 };
    const int ROUNDS = mp_rounds(mp, 300);
    if (!mp_dev(mp, NULL))
        return;
    /* Rank r writes to stripe r of every rank; a model tells what all stripes hold. */
    char *block = gin_calloc(mp->comm, (size_t)mp->size, BYTES);
    char *model = calloc((size_t)mp->size, BYTES), *src = malloc(BYTES);
    if (!EXPECT(block != NULL))
        return;
    for (int round = 0; round < ROUNDS; round++) {
        /* All ranks draw the same numbers and follow all writers to their own memory. */
        for (int from = 0; from < mp->size; from++) {
            int to = (int)pt_below(&mp->common, (uint64_t)mp->size);
            size_t at = pt_below(&mp->common, BYTES), n = pt_below(&mp->common, BYTES - at + 1);
            uint64_t seed = pt_random(&mp->common);
            mp_step(mp, "round %d: rank %d puts [%zu, +%zu) to rank %d", round, from, at, n, to);
            if (to == mp->rank)
                mp_poison(model + (size_t)from * BYTES + at, n, seed);
            if (from != mp->rank)
                continue;
            mp_poison(src, n, seed);
            EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to,
                              gin_at_ptr(&mp->g, block + (size_t)from * BYTES + at),
                              gin_at_local(src), n, gin_no_action()));
        }
        if (round % 10 != 9 && pt_below(&mp->common, 3) != 0) {
            /* Puts of one context to one peer may overlap in this test: keep them in order. */
            EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
            continue;
        }
        EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
        if (!EXPECT(memcmp(block, model, (size_t)mp->size * BYTES) == 0))
            break;
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    free(model);
    free(src);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
}
