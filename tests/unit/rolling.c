/* SPDX-License-Identifier: BSD-3-Clause */
/* The rolling comparison against its definition, by walking the wheel. */
#include <ginshmem/impl/rolling.h>
#include "tests/pt.h"

/* By definition: stepping forward from a, b is met within half a turn (less one step). */
static bool walk_le(uint64_t a, uint64_t b, unsigned bits)
{
    uint64_t turn = UINT64_C(1) << bits;
    for (uint64_t step = 0; step < turn / 2; step++)
        if ((a + step) % turn == b % turn)
            return true;
    return false;
}

TEST(every_pair_of_narrow_wheels)
{
    for (unsigned bits = 1; bits <= 8; bits++)
        for (uint64_t a = 0; a < UINT64_C(1) << bits; a++)
            for (uint64_t b = 0; b < UINT64_C(1) << bits; b++)
                if (gin_i_rolling_le(a, b, bits) != walk_le(a, b, bits))
                    FAIL("%u bits: %u <= %u", bits, (unsigned)a, (unsigned)b);
}

/* Distance forward in full width, no wheel arithmetic shared with the code under test. */
static bool far_le(uint64_t a, uint64_t b, unsigned bits)
{
    unsigned __int128 turn = (unsigned __int128)1 << bits;
    unsigned __int128 forward = (b % turn + turn - a % turn) % turn;
    return forward < (turn + 1) / 2;
}

TEST(edges_of_every_width)
{
    static const int64_t near[] = {-2, -1, 0, 1, 2};
    for (unsigned bits = 1; bits <= 64; bits++) {
        uint64_t quarter = (bits == 64 ? UINT64_C(1) << 62 : (UINT64_C(1) << bits) / 4);
        for (uint64_t i = 0; i < 5; i++)
            for (uint64_t j = 0; j < 5; j++)
                for (int k = 0; k < 25; k++) {
                    uint64_t a = i * quarter + (uint64_t)near[k / 5];
                    uint64_t b = j * quarter + (uint64_t)near[k % 5];
                    if (gin_i_rolling_le(a, b, bits) != far_le(a, b, bits))
                        FAIL("%u bits: 0x%" PRIx64 " <= 0x%" PRIx64, bits, a, b);
                }
    }
}

TEST(random_pairs_of_every_width)
{
    uint64_t state = PT_SEED;
    for (int i = 0; i < 200000; i++) {
        unsigned bits = 1 + (unsigned)pt_below(&state, 64);
        uint64_t a = pt_random(&state), b = pt_random(&state);
        if (i % 2 == 0)
            b = a + pt_below(&state, 1000) - 500;
        if (gin_i_rolling_le(a, b, bits) != far_le(a, b, bits))
            FAIL("%u bits: 0x%" PRIx64 " <= 0x%" PRIx64, bits, a, b);
    }
}

/* A counter that goes on for ever is seen by a waiter that is at most half a turn behind. */
TEST(counting_over_the_wrap)
{
    for (unsigned bits = 8; bits <= 64; bits += 8) {
        uint64_t start = (~UINT64_C(0) >> (64 - bits)) - 3;
        for (uint64_t n = 0; n < 8; n++) {
            uint64_t least = start + 4;
            EXPECT_EQ_INT(gin_i_rolling_le(least, start + n, bits), n >= 4);
        }
    }
}
