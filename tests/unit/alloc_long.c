/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many random operations on the allocators of four ranks at once, with failures of one rank undone
 * on all, against a model that knows which bytes are whose.
 *
 *     alloc_long [operations [seed]]     200000 operations by default; 10000000 for the full run
 *
 * Also prints what a take and a give cost.
 */
#include <ginshmem/status.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/clock.h"
#include "heap/alloc.h"

#define RANKS      4
#define BLOCKS     3000
#define CHUNK      ((uint64_t)4 << 20)
#define MAX_CHUNKS 8

static struct gi_alloc rank[RANKS];
static struct {
    uint64_t off, bytes;
} live[BLOCKS];
static unsigned n_live;
static uint64_t operation, seed, rng, refused, grown, failed, moved;
/* The model: one number per granule, 0 where it is free. */
static unsigned owner[MAX_CHUNKS * CHUNK / GI_ALLOC_GRANULE];

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "operation %" PRIu64 " of seed %" PRIu64 ": %s: %s\n", operation, seed, what,
            gin_last_error());
    exit(1);
}

#define MUST(cond)       \
    do {                 \
        if (!(cond))     \
            fail(#cond); \
    } while (0)

static uint64_t next(void)
{
    uint64_t z = rng += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t granules(uint64_t bytes)
{
    return (bytes + GI_ALLOC_GRANULE - 1) / GI_ALLOC_GRANULE;
}

static void paint(uint64_t off, uint64_t bytes, unsigned from, unsigned to)
{
    for (uint64_t i = off / GI_ALLOC_GRANULE, n = granules(bytes); n > 0; i++, n--) {
        MUST(owner[i] == from);
        owner[i] = to;
    }
}

/* Does any run of free granules inside a chunk hold an aligned block? */
static bool model_fits(uint64_t bytes, uint64_t align)
{
    for (uint64_t start = 0; start < rank[0].size; start += CHUNK)
        for (uint64_t i = start / GI_ALLOC_GRANULE, end = i + CHUNK / GI_ALLOC_GRANULE, run = 0;
             i < end; i++) {
            uint64_t first;

            run = owner[i] ? 0 : run + 1;
            if (run < granules(bytes))
                continue;
            first = (i + 1 - run) * GI_ALLOC_GRANULE;
            first = (first + align - 1) & ~(align - 1);
            if (first / GI_ALLOC_GRANULE + granules(bytes) <= i + 1)
                return true;
        }
    return false;
}

/* What the heap does in one agreed step: everywhere or nowhere. Returns GIN_OK or GIN_EAGAIN. */
static int take_on_all(uint64_t bytes, uint64_t align, int bad, bool grow, uint64_t *off)
{
    uint64_t at[RANKS];
    int st[RANKS], verdict = GIN_OK;
    bool added[RANKS] = {false};

    for (int r = 0; r < RANKS; r++) {
        if (r == bad)
            rank[r].fail_in = 1;
        st[r] = GIN_OK;
        if (grow) {
            st[r] = gi_alloc_add_chunk(&rank[r], CHUNK);
            added[r] = st[r] == GIN_OK;
        }
        if (st[r] == GIN_OK)
            st[r] = gi_alloc_take(&rank[r], bytes, align, &at[r]);
        rank[r].fail_in = 0;
        if (st[r] != GIN_OK && (verdict == GIN_OK || st[r] == GIN_ENOMEM))
            verdict = st[r];
    }
    for (int r = 0; r < RANKS; r++) {
        MUST((st[r] == GIN_ENOMEM) == (r == bad));
        if (verdict == GIN_OK) {
            MUST(at[r] == at[0]);
            continue;
        }
        if (st[r] == GIN_OK)
            MUST(gi_alloc_give(&rank[r], at[r], NULL) == GIN_OK);
        if (added[r])
            MUST(gi_alloc_drop_chunk(&rank[r]) == GIN_OK);
    }
    *off = at[0];
    return verdict;
}

static void take(void)
{
    uint64_t r = next(), bytes = 1 + (r >> 8) % ((uint64_t)1 << (4 + (r & 15)));
    uint64_t align = (r >> 4 & 7) ? 64 : (uint64_t)64 << (r >> 24) % 12, off;
    int bad = (r >> 48) % 64 == 0 ? (int)(r >> 60) % RANKS : -1;
    int st = take_on_all(bytes, align, bad, false, &off);

    if (st == GIN_ENOMEM) {
        failed++;
        return;
    }
    if (st == GIN_EAGAIN) {
        if (refused++ % 16 == 0)
            MUST(!model_fits(bytes, align));
        if (rank[0].n_chunks == MAX_CHUNKS || bytes + align > CHUNK ||
            take_on_all(bytes, align, bad = (r >> 56) % 4 == 0 ? 2 : -1, true, &off) != GIN_OK)
            return;
        grown++;
    }
    MUST(off % align == 0 && off / CHUNK == (off + bytes - 1) / CHUNK);
    paint(off, bytes, 0, ++n_live);
    live[n_live - 1].off = off;
    live[n_live - 1].bytes = bytes;
}

static void give(unsigned i)
{
    uint64_t bytes;

    for (int r = 0; r < RANKS; r++)
        MUST(gi_alloc_give(&rank[r], live[i].off, &bytes) == GIN_OK && bytes == live[i].bytes);
    paint(live[i].off, bytes, i + 1, 0);
    if (i != --n_live) {
        paint(live[n_live].off, live[n_live].bytes, n_live + 1, i + 1);
        live[i] = live[n_live];
    }
}

static void resize(unsigned i)
{
    uint64_t bytes = 1 + next() % (2 * live[i].bytes);
    int st[RANKS];

    for (int r = 0; r < RANKS; r++) {
        st[r] = gi_alloc_resize_prepare(&rank[r], live[i].off, bytes);
        MUST(st[r] == st[0] && (st[r] == GIN_OK || st[r] == GIN_EAGAIN));
    }
    if (st[0] == GIN_EAGAIN) {
        moved++;
        return;
    }
    for (int r = 0; r < RANKS; r++)
        MUST(gi_alloc_resize(&rank[r], live[i].off, bytes) == GIN_OK);
    paint(live[i].off, live[i].bytes, i + 1, 0);
    paint(live[i].off, bytes, 0, i + 1);
    live[i].bytes = bytes;
}

static void shrink(void)
{
    struct gi_alloc *a = &rank[0];

    if (a->n_chunks > 1 && gi_alloc_drop_chunk(a) == GIN_OK)
        for (int r = 1; r < RANKS; r++)
            MUST(gi_alloc_drop_chunk(&rank[r]) == GIN_OK);
}

static void compare(bool deep)
{
    for (int r = 1; r < RANKS; r++)
        MUST(rank[r].fingerprint == rank[0].fingerprint);
    if (!deep)
        return;
    for (int r = 0; r < RANKS; r++) {
        MUST(gi_alloc_check(&rank[r]) == GIN_OK);
        MUST(gi_alloc_equal(&rank[r], &rank[0]));
    }
}

static void cost(const char *what, uint64_t bytes, unsigned depth)
{
    static uint64_t off[1024];
    const unsigned rounds = 2000000;
    uint64_t best = UINT64_MAX;

    for (int pass = 0; pass < 3; pass++) {
        uint64_t began = gi_now_ns(), took;

        for (unsigned i = 0; i < rounds / depth; i++) {
            for (unsigned k = 0; k < depth; k++)
                MUST(gi_alloc_take(&rank[0], bytes, 64, &off[k]) == GIN_OK);
            for (unsigned k = 0; k < depth; k++)
                MUST(gi_alloc_give(&rank[0], off[k], NULL) == GIN_OK);
        }
        took = gi_now_ns() - began;
        best = took < best ? took : best;
    }
    printf("%-40s %5.1f ns a pair\n", what, (double)best / (rounds / depth * depth));
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000, phase = 0;

    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : gi_now_ns();
    rng = seed;
    printf("seed %" PRIu64 ", %" PRIu64 " operations on %d ranks\n", seed, n, RANKS);
    fflush(stdout);
    alarm(n > 1000000 ? 3600 : 300);
    for (int r = 0; r < RANKS; r++)
        MUST(gi_alloc_init(&rank[r], 0, 0) == GIN_OK &&
             gi_alloc_add_chunk(&rank[r], CHUNK) == GIN_OK);
    for (operation = 0; operation < n; operation++) {
        uint64_t r = next();

        if (operation % 20000 == 0)
            phase = next() % 3; /* grow, keep, shrink */
        if (n_live == 0 || (n_live < BLOCKS && r % 16 < (phase == 0 ? 9 : phase == 1 ? 7 : 5)))
            take();
        else if (r % 16 < 14)
            give((unsigned)(r >> 32) % n_live);
        else
            resize((unsigned)(r >> 32) % n_live);
        if (r >> 54 == 0)
            shrink();
        compare(operation % 5000 == 0);
    }
    compare(true);
    printf("%u blocks live, %u chunks; %" PRIu64 " refused, %" PRIu64 " chunks added, %" PRIu64
           " failures undone, %" PRIu64 " resizes would move\n",
           n_live, rank[0].n_chunks, refused, grown, failed, moved);
    cost("take(64) + give, among live blocks", 64, 1);
    while (n_live > 0)
        give(n_live - 1);
    compare(true);
    MUST(rank[0].used == 0 && rank[0].blocks == 0);
    cost("take(64) + give, empty", 64, 1);
    cost("256 x take(64), 256 x give", 64, 256);
    cost("take(100000) + give, empty", 100000, 1);
    for (int r = 0; r < RANKS; r++)
        gi_alloc_fini(&rank[r]);
    return 0;
}
