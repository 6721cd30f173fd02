/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of 1 to 8 bytes: at every offset, with nothing touched around; aligned ones seen whole. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tests/mp.h"

MP_TEST(every_size_and_offset)
{
    enum { OFFSETS = 17, CELL = 32 };
    if (!mp_dev(mp, NULL))
        return;
    unsigned char *block = gin_malloc(mp->comm, (size_t)mp->size * OFFSETS * CELL);
    if (!EXPECT(block != NULL))
        return;
    for (size_t n = 1; n <= 8; n++) {
        mp_step(mp, "%zu bytes", n);
        memset(block, 0xa5, (size_t)mp->size * OFFSETS * CELL);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        for (int to = 0; to < mp->size; to++)
            for (size_t off = 0; off < OFFSETS; off++) {
                unsigned char *p = block + ((size_t)mp->rank * OFFSETS + off) * CELL + off;
                uint64_t v = 0x8877665544332211u + (uint64_t)mp->rank * 0x0101010101010101u;
                EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), to,
                                        gin_at_ptr(&mp->g, p), v, n, gin_weak_inc(0)));
            }
        /* Enough signals: all values are here. */
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, (uint64_t)mp->size * OFFSETS * n));
        for (int from = 0; from < mp->size; from++)
            for (size_t off = 0; off < OFFSETS; off++) {
                unsigned char want[CELL];
                uint64_t v = 0x8877665544332211u + (uint64_t)from * 0x0101010101010101u;
                memset(want, 0xa5, CELL);
                for (size_t i = 0; i < n; i++) /* low bytes, in this machine's order */
                    want[off + i] =
                        (unsigned char)(v >>
                                        (8 *
                                         (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? n - 1 - i : i)));
                if (!EXPECT(memcmp(want, block + ((size_t)from * OFFSETS + off) * CELL, CELL) == 0))
                    FAIL("%zu bytes at offset %zu from rank %d", n, off, from);
            }
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), (uint64_t)mp->size * OFFSETS * 8);
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST_N(other_sizes_are_refused, "1 2")
{
    static const size_t bad[] = {0, 9, 16, (size_t)1 << 32, SIZE_MAX};
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *word = gin_calloc(mp->comm, 4, 8);
    if (!EXPECT(word != NULL))
        return;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_FAILS(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), 0,
                                   gin_at_ptr(&mp->g, word), 1, bad[i], gin_weak_inc(0)),
                     GIN_ERANGE, "put_value");
    gin_op_opt_t opt = {.flags = 0};
    EXPECT_FAILS(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), mp->size,
                               gin_at_ptr(&mp->g, word), 1, 8, gin_weak_inc(0)),
                 GIN_ERANGE, "gin_put_value: ");
    EXPECT_FAILS(gin_put_value_x(&mp->g, gin_thread(), gin_world(&mp->g), mp->size,
                                 gin_at_ptr(&mp->g, word), 1, 8, gin_weak_inc(0), &opt),
                 GIN_ERANGE, "gin_put_value_x: ");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 0);
    EXPECT_FILLED(word, 32, 0);
    EXPECT_OK(gin_free(mp->comm, word));
}

static uint64_t load(const void *p, size_t n)
{
    if (n == 8)
        return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
    if (n == 4)
        return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
    return __atomic_load_n((const uint16_t *)p, __ATOMIC_RELAXED);
}

/* Rank 0 flips all bits of a word of the last rank, which must never see a mixture. */
MP_TEST_N(aligned_words_are_seen_whole, "2 3")
{
    const int ROUNDS = mp_rounds(mp, 10000);
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *word = gin_calloc(mp->comm, 2, 8), *stop = word + 1;
    if (!EXPECT(word != NULL))
        return;
    int reader = mp->size - 1;
    gin_team_t world = gin_world(&mp->g);
    gin_at_t at = gin_at_ptr(&mp->g, word), stop_at = gin_at_ptr(&mp->g, stop);
    uint64_t stops = 0;
    const char *whole = getenv("MP_WHOLE"); /* the bed's device writes smaller ones by the byte */
    size_t least = whole != NULL ? (size_t)atoi(whole) : 2;
    for (size_t n = 8; n >= least; n /= 2) {
        uint64_t ones = ~(uint64_t)0 >> (64 - 8 * n);
        stops++;
        EXPECT_OK(gin_comm_barrier(mp->comm));
        for (int i = 0; mp->rank == 0 && i < ROUNDS; i++) {
            EXPECT_OK(gin_put_value(&mp->g, gin_thread(), world, reader, at,
                                    i % 2 ? ~(uint64_t)0 : 0, n, gin_no_action()));
            EXPECT_OK(gin_fence(&mp->g, gin_thread(), world, reader));
        }
        if (mp->rank == 0)
            EXPECT_OK(gin_signal(&mp->g, gin_thread(), world, reader, gin_set_at(stop_at, stops)));
        while (mp->rank == reader && gin_read_signal_at(&mp->g, stop_at) != stops) {
            uint64_t v = load(word, n);
            if (v != 0 && v != ones) {
                FAIL("%zu bytes, in mid-change: %#" PRIx64, n, v);
                break;
            }
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, word));
}
