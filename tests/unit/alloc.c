/* SPDX-License-Identifier: BSD-3-Clause */
/* The offset allocator: placement, refusals, exact undo, far offsets, failures of metadata. */
#include <ginshmem/status.h>
#include "heap/alloc.h"
#include "tests/pt.h"

#define KiB ((uint64_t)1 << 10)
#define MiB ((uint64_t)1 << 20)
#define GiB ((uint64_t)1 << 30)

static bool make(struct gi_alloc *a, uint64_t bias, uint64_t bytes)
{
    return EXPECT_EQ_INT(gi_alloc_init(a, bias, 0), GIN_OK) &&
           EXPECT_EQ_INT(gi_alloc_add_chunk(a, bytes), GIN_OK);
}

static void finish(struct gi_alloc *a)
{
    EXPECT_EQ_INT(gi_alloc_check(a), GIN_OK);
    gi_alloc_fini(a);
}

/* Refusal at the same index, then holes serve exactly what fits into them. */
TEST(full_space_and_holes)
{
    struct gi_alloc a;
    uint64_t off[17] = {0}, x;
    unsigned n = 0;

    if (!make(&a, 0, MiB))
        return;
    while (n < 17 && gi_alloc_take(&a, 64 * KiB, 64, &off[n]) == GIN_OK)
        n++;
    EXPECT_EQ_INT(n, 16);
    EXPECT_EQ_U64(a.used, MiB);
    EXPECT_EQ_INT(gi_alloc_take(&a, 1, 1, &x), GIN_EAGAIN);
    EXPECT_EQ_INT(gi_alloc_give(&a, off[7], NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 64 * KiB, 64, &x), GIN_OK);
    EXPECT_EQ_U64(x, off[7]);
    for (unsigned i = 0; i < 16; i += 2)
        EXPECT_EQ_INT(gi_alloc_give(&a, off[i], NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 128 * KiB, 64, &x), GIN_EAGAIN);
    EXPECT_EQ_INT(gi_alloc_take(&a, 64 * KiB, 64, &x), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, x, NULL), GIN_OK);
    for (unsigned i = 1; i < 16; i += 2)
        EXPECT_EQ_INT(gi_alloc_give(&a, off[i], NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 128 * KiB, 64, &x), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_check(&a), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, x, NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, MiB, 64, &x), GIN_OK);
    finish(&a);
}

TEST(bad_offsets_are_told_apart)
{
    struct gi_alloc a;
    uint64_t x = 0, y, bytes = 0;

    EXPECT_EQ_INT(gi_alloc_init(&a, 0, 0), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, 0, NULL), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_take(&a, 1, 1, &x), GIN_EAGAIN);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, MiB), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 1000, 1, &x), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 64, 1, &y), GIN_OK);
    uint64_t fingerprint = a.fingerprint;

    EXPECT_EQ_INT(gi_alloc_give(&a, x + 8, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "8 bytes inside a heap block of 1000 bytes");
    EXPECT_EQ_INT(gi_alloc_give(&a, x + 64, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "64 bytes inside a heap block of 1000 bytes");
    EXPECT_EQ_INT(gi_alloc_give(&a, 2 * MiB, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "outside the heap of 1048576 bytes");
    EXPECT_EQ_INT(gi_alloc_give(&a, UINT64_MAX, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "outside the heap");
    EXPECT_EQ_INT(gi_alloc_give(&a, 512 * KiB, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "no heap block is allocated at offset 524288");
    EXPECT_EQ_U64(a.fingerprint, fingerprint);

    EXPECT_EQ_INT(gi_alloc_size_of(&a, x, &bytes, NULL), GIN_OK);
    EXPECT_EQ_U64(bytes, 1000);
    EXPECT_EQ_INT(gi_alloc_give(&a, x, &bytes), GIN_OK);
    EXPECT_EQ_U64(bytes, 1000);
    EXPECT_EQ_INT(gi_alloc_give(&a, x, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "freed already?");
    EXPECT_EQ_INT(gi_alloc_size_of(&a, x, NULL, NULL), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_resize_prepare(&a, x, 1), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_take(&a, 0, 1, &x), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_take(&a, 1, 0, &x), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_take(&a, 1, 48, &x), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_take(&a, 1, 2 * GiB, &x), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "alignment 2147483648");
    EXPECT_EQ_INT(gi_alloc_take(&a, UINT64_MAX, 1, &x), GIN_EAGAIN);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, 0), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, 100), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, GI_ALLOC_MAX_BYTES), GIN_EINVAL);
    finish(&a);
    EXPECT_EQ_INT(gi_alloc_init(&a, 8, 0), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_init(&a, 0, 8), GIN_EINVAL);
}

TEST(alignment_with_bias)
{
    const uint64_t biases[] = {0, 64, 4096, 4096 + 64, 2 * MiB + 128};

    for (size_t i = 0; i < sizeof(biases) / sizeof(biases[0]); i++) {
        struct gi_alloc a;

        if (!make(&a, biases[i], 8 * GiB))
            return;
        for (uint64_t align = 1; align <= GiB; align *= 2)
            for (int k = 0; k < 2; k++) {
                uint64_t off = 0, pad = 0;

                EXPECT_EQ_INT(gi_alloc_take(&a, 100, align, &off), GIN_OK);
                EXPECT_EQ_U64((off + a.bias) % (align < 64 ? 64 : align), 0);
                EXPECT_EQ_INT(gi_alloc_take(&a, 24, 1, &pad), GIN_OK);
            }
        finish(&a);
    }
}

/* A hole that fits only because of where it lies serves an aligned request before a refusal. */
TEST(last_fitting_hole_is_found)
{
    struct gi_alloc a;
    uint64_t off[8], x = 0;

    if (!make(&a, 0, 8 * 4096))
        return;
    for (int i = 0; i < 8; i++)
        EXPECT_EQ_INT(gi_alloc_take(&a, 4096, 4096, &off[i]), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, off[5], NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, off[2], NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 4096, 4096, &x), GIN_OK);
    EXPECT_EQ_U64(x, off[2]);
    EXPECT_EQ_INT(gi_alloc_take(&a, 4000, 4096, &x), GIN_OK);
    EXPECT_EQ_U64(x, off[5]);
    EXPECT_EQ_INT(gi_alloc_take(&a, 64, 64, &x), GIN_OK); /* what 4000 left */
    EXPECT_EQ_INT(gi_alloc_take(&a, 64, 64, &x), GIN_EAGAIN);
    finish(&a);
}

TEST(chunks_do_not_merge)
{
    struct gi_alloc a;
    struct gi_alloc_stats s;
    uint64_t x = 0, fingerprint;

    if (!make(&a, 0, MiB))
        return;
    EXPECT_EQ_INT(gi_alloc_take(&a, 2 * MiB, 64, &x), GIN_EAGAIN);
    EXPECT_EQ_U64(gi_alloc_chunk_for(&a, 2 * MiB, 64), 2 * MiB);
    EXPECT_EQ_U64(gi_alloc_chunk_for(&a, 100, 4 * MiB), 3 * MiB + 128);
    fingerprint = a.fingerprint;
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, 2 * MiB), GIN_OK);
    EXPECT(a.fingerprint != fingerprint);
    EXPECT_EQ_INT(gi_alloc_take(&a, 2 * MiB + 64, 64, &x), GIN_EAGAIN);
    EXPECT_EQ_INT(gi_alloc_take(&a, 2 * MiB, 64, &x), GIN_OK);
    EXPECT_EQ_U64(x, MiB);
    EXPECT_EQ_INT(gi_alloc_drop_chunk(&a), GIN_ESTATE);
    EXPECT_EQ_INT(gi_alloc_give(&a, x, NULL), GIN_OK);
    gi_alloc_get_stats(&a, &s);
    EXPECT_EQ_U64(s.total, 3 * MiB);
    EXPECT_EQ_U64(s.largest_free, 2 * MiB);
    EXPECT_EQ_U64(s.free_blocks, 2);
    EXPECT_EQ_INT(gi_alloc_drop_chunk(&a), GIN_OK);
    EXPECT_EQ_U64(a.fingerprint, fingerprint);
    EXPECT_EQ_U64(a.size, MiB);
    EXPECT_EQ_INT(gi_alloc_drop_chunk(&a), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_drop_chunk(&a), GIN_ESTATE);
    finish(&a);
}

static int resize(struct gi_alloc *a, uint64_t off, uint64_t bytes)
{
    int st = gi_alloc_resize_prepare(a, off, bytes);

    return st == GIN_OK ? gi_alloc_resize(a, off, bytes) : st;
}

TEST(resize_in_place)
{
    struct gi_alloc a;
    uint64_t x = 0, y = 0, z = 0, bytes = 0, align = 0;

    if (!make(&a, 0, MiB))
        return;
    EXPECT_EQ_INT(gi_alloc_take(&a, 100, 4096, &x), GIN_OK);
    EXPECT_EQ_INT(resize(&a, x, 128), GIN_OK); /* within its granules */
    EXPECT_EQ_INT(resize(&a, x, 64 * KiB), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_size_of(&a, x, &bytes, &align), GIN_OK);
    EXPECT_EQ_U64(bytes, 64 * KiB);
    EXPECT_EQ_U64(align, 4096);
    EXPECT_EQ_INT(gi_alloc_take(&a, 64, 64, &y), GIN_OK);
    EXPECT_EQ_U64(y, x + 64 * KiB);
    EXPECT_EQ_INT(resize(&a, x, 64 * KiB + 1), GIN_EAGAIN);
    EXPECT_EQ_INT(resize(&a, x, 10), GIN_OK);
    EXPECT_EQ_U64(a.used, 128);
    EXPECT_EQ_INT(gi_alloc_check(&a), GIN_OK);
    EXPECT_EQ_INT(resize(&a, x, 64 * KiB), GIN_OK); /* exactly up to y */
    EXPECT_EQ_INT(resize(&a, y, MiB - y), GIN_OK);  /* exactly to the end */
    EXPECT_EQ_INT(gi_alloc_take(&a, 1, 1, &z), GIN_EAGAIN);
    EXPECT_EQ_INT(resize(&a, y, MiB - y + 1), GIN_EAGAIN);
    EXPECT_EQ_INT(resize(&a, y, UINT64_MAX), GIN_EAGAIN);
    EXPECT_EQ_INT(resize(&a, y, 0), GIN_EINVAL);
    EXPECT_EQ_INT(gi_alloc_check(&a), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, x, NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&a, y, NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, MiB, 1, &z), GIN_OK);
    finish(&a);
}

TEST(far_offsets)
{
    struct gi_alloc a;
    uint64_t pad = 0, tail = 0, start = 0, bytes = 0;

    if (!make(&a, 4096, 6 * GiB))
        return;
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, 64 * GiB), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 5 * GiB, 64, &pad), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 4096, 4096, &tail), GIN_OK);
    EXPECT(tail >= 5 * GiB && tail < 6 * GiB);
    EXPECT(gi_alloc_find(&a, 5 * GiB - 1, &start, &bytes));
    EXPECT_EQ_U64(start, pad);
    EXPECT_EQ_U64(bytes, 5 * GiB);
    EXPECT(gi_alloc_find(&a, tail + 4095, &start, &bytes));
    EXPECT_EQ_U64(start, tail);
    EXPECT(!gi_alloc_find(&a, tail + 4096, &start, &bytes));
    EXPECT_EQ_INT(gi_alloc_take(&a, 64 * GiB, 64, &pad), GIN_OK);
    EXPECT_EQ_U64(pad, 6 * GiB);
    EXPECT(gi_alloc_find(&a, 70 * GiB - 1, &start, &bytes));
    EXPECT_EQ_U64(start, 6 * GiB);
    EXPECT(!gi_alloc_find(&a, 70 * GiB, &start, &bytes));
    gi_alloc_fini(&a); /* the walker would touch all the bits of 64 GiB */
}

#define BLOCKS 400

struct world {
    struct gi_alloc a;
    struct {
        uint64_t off, bytes;
    } live[BLOCKS];
    unsigned n;
};

/* One random call, the same for the same random state; keeps the list of live blocks. */
static void churn(struct world *w, uint64_t *rng)
{
    uint64_t r = pt_random(rng), bytes = 1 + (r >> 8) % ((uint64_t)1 << (r & 15));
    uint64_t align = (uint64_t)1 << (r >> 4 & 15);
    unsigned i = w->n ? (unsigned)((r >> 40) % w->n) : 0;

    switch (r >> 60) {
    case 0 ... 7:
        if (w->n < BLOCKS &&
            gi_alloc_take(&w->a, bytes, align & 1023 ? align : 1, &w->live[w->n].off) == GIN_OK)
            w->live[w->n++].bytes = bytes;
        break;
    case 8 ... 9:
        if (w->n && resize(&w->a, w->live[i].off, bytes) == GIN_OK)
            w->live[i].bytes = bytes;
        break;
    default:
        if (w->n && EXPECT_EQ_INT(gi_alloc_give(&w->a, w->live[i].off, NULL), GIN_OK))
            w->live[i] = w->live[--w->n];
    }
}

/* Takes undone in reverse order, with a chunk added in between or not, leave no trace. */
static void tentative(struct world *w, uint64_t *rng)
{
    uint64_t off[8];
    unsigned n = 0, chunks = w->a.n_chunks;

    for (unsigned k = (unsigned)pt_below(rng, 8); k > 0; k--) {
        uint64_t r = pt_random(rng), bytes = 1 + (r >> 8) % ((uint64_t)1 << (r & 15));
        int st = gi_alloc_take(&w->a, bytes, (uint64_t)1 << (r >> 4 & 15), &off[n]);

        if (st == GIN_OK)
            n++;
        else
            EXPECT_EQ_INT(st, GIN_EAGAIN);
    }
    if (pt_below(rng, 4) == 0 && EXPECT_EQ_INT(gi_alloc_add_chunk(&w->a, 64 * KiB), GIN_OK)) {
        if (EXPECT_EQ_INT(gi_alloc_take(&w->a, 64 * KiB, 64, &off[n]), GIN_OK))
            EXPECT_EQ_INT(gi_alloc_give(&w->a, off[n], NULL), GIN_OK);
        EXPECT_EQ_INT(gi_alloc_drop_chunk(&w->a), GIN_OK);
    }
    while (n > 0)
        EXPECT_EQ_INT(gi_alloc_give(&w->a, off[--n], NULL), GIN_OK);
    EXPECT_EQ_INT(w->a.n_chunks, chunks);
}

/* One world also does tentative things all the time; both must answer everything alike. */
TEST(undo_leaves_no_trace)
{
    static struct world x, y;
    uint64_t seed = pt_seed(), extra = seed + 1, rx = seed, ry = seed;

    x.n = y.n = 0;
    if (!make(&x.a, 64, MiB) || !make(&y.a, 64, MiB))
        return;
    for (int i = 0; i < 20000; i++) {
        churn(&x, &rx);
        tentative(&x, &extra);
        churn(&y, &ry);
        if (!EXPECT_EQ_U64(x.a.fingerprint, y.a.fingerprint) || !EXPECT_EQ_INT(x.n, y.n))
            break;
        if (i % 64 == 0 &&
            !(EXPECT(gi_alloc_equal(&x.a, &y.a)) && EXPECT_EQ_INT(gi_alloc_check(&x.a), GIN_OK)))
            break;
    }
    EXPECT(gi_alloc_equal(&x.a, &y.a));
    finish(&x.a);
    finish(&y.a);
}

/* Against plain arithmetic over the list of live blocks. */
static void find_agrees(uint64_t red)
{
    static struct world w;
    uint64_t rng = pt_seed();

    w.n = 0;
    EXPECT_EQ_INT(gi_alloc_init(&w.a, 0, red), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&w.a, 512 * KiB), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&w.a, 64 * 3), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&w.a, 256 * KiB), GIN_OK);
    for (int i = 0; i < 20000; i++) {
        uint64_t at = pt_below(&rng, w.a.size + 100), start = 0, bytes = 0, next = UINT64_MAX;
        unsigned hit = BLOCKS;

        churn(&w, &rng);
        for (unsigned k = 0; k < w.n; k++) {
            if (at >= w.live[k].off && at - w.live[k].off < w.live[k].bytes)
                hit = k;
            if (w.live[k].off >= at && w.live[k].off < next)
                next = w.live[k].off;
        }
        if (!EXPECT_EQ_INT(gi_alloc_find(&w.a, at, &start, &bytes), hit != BLOCKS))
            break;
        if (hit != BLOCKS &&
            (!EXPECT_EQ_U64(start, w.live[hit].off) || !EXPECT_EQ_U64(bytes, w.live[hit].bytes)))
            break;
        if (!EXPECT_EQ_INT(gi_alloc_next(&w.a, at, &start, &bytes), next != UINT64_MAX) ||
            (next != UINT64_MAX && !EXPECT_EQ_U64(start, next)))
            break;
    }
    while (w.n > 0)
        EXPECT_EQ_INT(gi_alloc_give(&w.a, w.live[--w.n].off, NULL), GIN_OK);
    EXPECT_EQ_U64(w.a.used, 0);
    finish(&w.a);
}

TEST(find_agrees_with_brute_force)
{
    find_agrees(0);
    find_agrees(64);
    find_agrees(192);
}

/* Red zones are paid for, kept apart and not counted in offsets and sizes. */
TEST(red_zones)
{
    struct gi_alloc a;
    uint64_t x = 0, y = 0, z = 0, bytes = 0;

    EXPECT_EQ_INT(gi_alloc_init(&a, 4096, 64), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_add_chunk(&a, MiB), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_take(&a, 10, 1, &x), GIN_OK);
    EXPECT_EQ_U64(x, 64);
    EXPECT_EQ_INT(gi_alloc_take(&a, 64, 4096, &y), GIN_OK);
    EXPECT_EQ_U64(y, 4096);
    EXPECT_EQ_U64(a.used, 2 * 192);
    EXPECT_EQ_INT(gi_alloc_give(&a, x - 64, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "no heap block");
    EXPECT_EQ_INT(gi_alloc_give(&a, x + 8, NULL), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "8 bytes inside a heap block of 10 bytes");
    EXPECT_EQ_INT(resize(&a, x, 3000), GIN_OK);
    EXPECT_EQ_INT(resize(&a, x, 4096 - 64 - 128), GIN_OK); /* up to y's red zone */
    EXPECT_EQ_INT(resize(&a, x, 4096 - 64 - 127), GIN_EAGAIN);
    EXPECT_EQ_INT(gi_alloc_size_of(&a, x, &bytes, NULL), GIN_OK);
    EXPECT_EQ_U64(bytes, 4096 - 64 - 128);
    EXPECT_EQ_U64(gi_alloc_chunk_for(&a, MiB, 4096), 4096 - 64 + MiB + 128);
    EXPECT_EQ_INT(gi_alloc_take(&a, MiB - 4096 - 256, 1, &z), GIN_OK); /* all the rest */
    EXPECT_EQ_U64(a.used, MiB);
    finish(&a);
}

/* A failure of the metadata changes nothing, whichever call it hits. */
TEST(metadata_failure_changes_nothing)
{
    static struct world x, y;
    uint64_t rng = pt_seed(), rx = rng, ry = rng, off;

    x.n = y.n = 0;
    if (!make(&x.a, 0, MiB) || !make(&y.a, 0, MiB))
        return;
    for (int i = 0; i < 5000; i++) {
        churn(&x, &rx);
        churn(&y, &ry);
        x.a.fail_in = 1;
        EXPECT_EQ_INT(gi_alloc_take(&x.a, 64, 64, &off), GIN_ENOMEM);
        x.a.fail_in = 1;
        EXPECT_EQ_INT(gi_alloc_add_chunk(&x.a, 4096), GIN_ENOMEM);
        x.a.fail_in = 1;
        if (x.n)
            EXPECT_EQ_INT(gi_alloc_resize_prepare(&x.a, x.live[0].off, 1), GIN_ENOMEM);
        x.a.fail_in = 0;
    }
    EXPECT(gi_alloc_equal(&x.a, &y.a));
    finish(&x.a);
    finish(&y.a);
}

/* The comparison itself can tell. */
TEST(different_histories_differ)
{
    struct gi_alloc a, b;
    uint64_t x = 0, y = 0;

    if (!make(&a, 0, MiB) || !make(&b, 0, MiB))
        return;
    EXPECT(gi_alloc_equal(&a, &b));
    EXPECT_EQ_INT(gi_alloc_take(&a, 64, 64, &x), GIN_OK);
    EXPECT(!gi_alloc_equal(&a, &b));
    EXPECT_EQ_INT(gi_alloc_take(&b, 63, 64, &y), GIN_OK);
    EXPECT(a.fingerprint != b.fingerprint);
    EXPECT(!gi_alloc_equal(&a, &b));
    EXPECT_EQ_INT(gi_alloc_give(&a, x, NULL), GIN_OK);
    EXPECT_EQ_INT(gi_alloc_give(&b, y, NULL), GIN_OK);
    EXPECT(gi_alloc_equal(&a, &b));
    finish(&a);
    finish(&b);
}
