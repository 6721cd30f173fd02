/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Staged memory beside other things: answers behind bundles.
 */
#include "core_bed.h"

#include <string.h>

#define SRC    (128u << 10)
#define CHUNK  4096u /* what one slab takes here */
#define ROUNDS 20000u
#define BYTES  64u /* of a small put */

/* Rank `from` asks for bytes of another one's staged memory, into host memory of its own. */
static struct gi_core_get get_of(struct bed *b, int from, uint64_t bytes)
{
    return (struct gi_core_get){.window = BED_WINDOW,
                                .dst = b->rank[from].memory + SRC,
                                .bytes = bytes,
                                .region = b->rank[from].region};
}

static int failed(const struct bed *b, int rank, int peer)
{
    return gi_core_peer_status(b->rank[rank].ctx, peer, NULL);
}

/* ---- answers and bundles ---- */

/* What waits for a read must not be in front of a bundle, which is not kept. */
TEST(answers_are_behind_bundles)
{
    struct bed b = {.staged = 1};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    memset(b.rank[0].memory, 9, CHUNK);
    struct gi_core_put small = bed_make_put(&b, 0, SRC / 2, 0, BYTES);
    unsigned char source[BYTES] = {3};
    small.src = source;
    small.region = NULL;
    for (int k = 0; k < 20; k++) {
        struct gi_core_get get = get_of(&b, 1, CHUNK);
        EXPECT_EQ_INT(bed_get(&b, 1, 0, &get), GIN_OK);
        uint64_t mark = gi_core_mark(b.rank[1].ctx);
        for (uint32_t i = 0; i < ROUNDS && gi_core_flushed(b.rank[1].ctx, mark) == 0; i++) {
            for (int n = 0; n < 6; n++)
                EXPECT(gi_core_put(b.rank[0].ctx, 1, &small) <= 0);
            bed_round(&b);
        }
        EXPECT_EQ_INT(gi_core_flushed(b.rank[1].ctx, mark), 1);
        EXPECT_EQ_INT(b.rank[1].memory[SRC + CHUNK - 1], 9);
    }
    EXPECT(gi_core_counts(b.rank[0].ctx)[GI_CORE_N_BUNDLED] != 0);
    EXPECT_EQ_INT(failed(&b, 0, 1), GIN_OK);
    EXPECT_EQ_INT(failed(&b, 1, 0), GIN_OK);
    bed_close(&b);
}
