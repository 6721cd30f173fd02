/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a strong signal takes behind n small puts on a network without order, by both
 * strategies: two ranks of the bare core in one thread, over a network within the process whose
 * posts, and the word of their delivery, take their time. Prints medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "tests/unit/core_bed.h"

#define ROUNDS 300
#define EACH   64u

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Microseconds from before the first put until the target sees the signal. */
static double median(const char *mask, uint32_t delay, uint32_t puts)
{
    static uint64_t took[ROUNDS];
    struct bed b = {.plan = {.delay = delay}};
    if (!bed_open(&b, bed_mask(mask), 2))
        return 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t began = gi_now_ns();
        for (uint32_t k = 0; k < puts; k++) {
            struct gi_core_put p = bed_make_put(&b, 0, 65536 + EACH * k, EACH * k, EACH);
            bed_put(&b, 0, 1, &p);
        }
        struct gi_core_put alone = {.action = bed_slot(0, 1, true)};
        bed_put(&b, 0, 1, &alone);
        while (bed_signal(&b, 1, 0) <= i)
            bed_round(&b);
        took[i] = gi_now_ns() - began;
        bed_idle(&b);
    }
    bed_close(&b);
    qsort(took, ROUNDS, sizeof(took[0]), compare);
    return (double)took[ROUNDS / 2] / 1e3;
}

TEST(strong_behind_puts)
{
    static const uint32_t delays[] = {10, 5, 2, 0};
    printf("one way, puts: S, EPOCH, ratio\n");
    for (size_t d = 0; d < sizeof(delays) / sizeof(delays[0]); d++)
        for (uint32_t puts = 1; puts <= 64; puts *= 4) {
            double s = median("C32", delays[d], puts), epoch = median("E32", delays[d], puts);
            printf("%2u us, %2u puts: %5.1f %5.1f us, %.2f\n", delays[d], puts, s, epoch,
                   epoch > 0 ? s / epoch : 0);
        }
}
