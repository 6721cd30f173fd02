/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heaps of several ranks, each a thread with its own memory object: all calls, agreement, growth,
 * failures of one rank undone on all, checked mode.
 */
#include <errno.h>
#include <ginshmem/status.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "heap/heap.h"
#include "tests/pt.h"

#define CONTROL ((uint64_t)65536)
#define KiB     ((uint64_t)1 << 10)
#define MiB     ((uint64_t)1 << 20)
#define SLOT    ((uint64_t)64 << 20)
#define RANKS   4

struct rank {
    int rank, size;
    struct crew *crew;
    struct gi_heap *h;
    struct gi_segment *segment;
    char *slot;
    uint64_t calls;
    pthread_t thread;
};

/* The ranks of one test and what it wants of them. */
struct crew {
    void (*body)(struct rank *);
    uint64_t bytes, max, chunk;
    bool check;
    bool deaf; /* exchanges fail */
    pthread_barrier_t barrier;
    struct gi_agree_record records[2][RANKS];
    struct rank ranks[RANKS];
};

static int exchange(void *arg, const struct gi_agree_record *mine,
                    const struct gi_agree_record **all)
{
    struct rank *me = arg;
    struct gi_agree_record *place = me->crew->records[me->calls & 1];

    if (me->crew->deaf)
        return gi_fail(GIN_ETIMEDOUT, "nobody came");
    place[me->rank] = *mine;
    pthread_barrier_wait(&me->crew->barrier);
    *all = place;
    return GIN_OK;
}

static bool up(struct rank *me)
{
    struct crew *c = me->crew;
    void *slot = NULL;

    if (!EXPECT_EQ_INT(gi_segment_create(CONTROL, c->bytes, GI_HUGEPAGES_NO, &me->segment),
                       GIN_OK) ||
        !EXPECT_EQ_INT(gi_os_reserve(SLOT, &slot), 0) ||
        !EXPECT_EQ_INT(gi_os_map_shared(slot, me->segment->fd, 0, SLOT), 0))
        return false;
    me->slot = slot;
    struct gi_heap_config config = {.segment = me->segment,
                                    .slot = me->slot,
                                    .max = c->max,
                                    .chunk = c->chunk,
                                    .check = c->check,
                                    .size = me->size,
                                    .calls = &me->calls,
                                    .exchange = exchange,
                                    .arg = me};
    return EXPECT_EQ_INT(gi_heap_create(&config, &me->h), GIN_OK);
}

static void *run_rank(void *arg)
{
    struct rank *me = arg;

    if (up(me))
        me->crew->body(me);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    return NULL;
}

/* Run body on so many ranks; at the end the heaps must be equal. */
static void crew(void (*body)(struct rank *), int size, uint64_t bytes, uint64_t max, bool check)
{
    static struct crew c;

    memset(&c, 0, sizeof(c));
    c.body = body;
    c.bytes = bytes;
    c.max = max;
    c.chunk = MiB;
    c.check = check;
    pthread_barrier_init(&c.barrier, NULL, (unsigned)size);
    for (int r = 0; r < size; r++) {
        c.ranks[r] = (struct rank){.rank = r, .size = size, .crew = &c};
        if (!EXPECT_EQ_INT(pthread_create(&c.ranks[r].thread, NULL, run_rank, &c.ranks[r]), 0))
            exit(1);
    }
    for (int r = 0; r < size; r++)
        pthread_join(c.ranks[r].thread, NULL);
    for (int r = 0; r < size; r++) {
        struct rank *k = &c.ranks[r];

        EXPECT_EQ_U64(gi_heap_fingerprint(k->h), gi_heap_fingerprint(c.ranks[0].h));
        EXPECT_EQ_U64(gi_heap_size(k->h), gi_heap_size(c.ranks[0].h));
        EXPECT_EQ_U64(k->segment->bytes, gi_heap_size(k->h));
    }
    for (int r = 0; r < size; r++) {
        gi_heap_destroy(c.ranks[r].h);
        gi_os_unreserve(c.ranks[r].slot, SLOT);
        gi_segment_close(c.ranks[r].segment);
    }
    gi_heap_destroy(NULL);
    pthread_barrier_destroy(&c.barrier);
}

static char *at(struct rank *me, uint64_t off)
{
    return me->slot + CONTROL + off;
}

/* Without a verdict a peer may have gone on: what was grown stays there to be stored into. */
TEST(growth_without_a_verdict_stays)
{
    static struct crew c = {.bytes = MiB, .max = 16 * MiB, .chunk = MiB, .deaf = true};
    struct rank *me = &c.ranks[0];
    uint64_t off = 77, size;

    *me = (struct rank){.size = 2, .crew = &c};
    if (!up(me))
        return;
    size = me->segment->bytes;
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 4 * MiB, 64, 0, &off), GIN_ETIMEDOUT);
    EXPECT_EQ_U64(off, 77);
    EXPECT_EQ_U64(gi_heap_size(me->h), size);
    EXPECT(me->segment->bytes >= size + 4 * MiB);
    memset(at(me, size), 1, 4 * MiB);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 4 * MiB, 64, 0, &off), GIN_ETIMEDOUT);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, 64, 0, &off), GIN_ETIMEDOUT);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    gi_heap_destroy(me->h);
    gi_os_unreserve(me->slot, SLOT);
    gi_segment_close(me->segment);
}

static void body_full(struct rank *me)
{
    uint64_t off[17], x = 0;
    struct gi_heap_state s;
    int n = 0;

    while (n < 17 && gi_heap_malloc(me->h, 64 * KiB, 64, 0, &off[n]) == GIN_OK)
        n++;
    EXPECT_EQ_INT(n, 16);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "GINSHMEM_HEAP_MAX");
    EXPECT_HAS(gin_last_error(), "limit of 1048576");
    EXPECT_HAS(gin_last_error(), "65536 short");
    gi_heap_get_state(me->h, &s);
    EXPECT_EQ_U64(s.used, MiB);
    EXPECT_EQ_U64(s.blocks, 16);
    EXPECT_EQ_U64(s.largest_free, 0);
    EXPECT_EQ_INT(gi_heap_free(me->h, off[3]), GIN_OK);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64 * KiB, 64, 0, &x), GIN_OK);
    EXPECT_EQ_U64(x, off[3]);
    for (int i = 0; i < 16; i += 2)
        EXPECT_EQ_INT(gi_heap_free(me->h, off[i]), GIN_OK);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 128 * KiB, 64, 0, &x), GIN_ENOMEM);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64 * KiB, 64, 0, &x), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, x), GIN_OK);
    for (int i = 1; i < 16; i += 2)
        EXPECT_EQ_INT(gi_heap_free(me->h, off[i]), GIN_OK);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 128 * KiB, 64, 0, &x), GIN_OK);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, UINT64_MAX, 64, 0, &x), GIN_ENOMEM);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, UINT64_MAX - 63, 4096, 0, &x), GIN_ENOMEM);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, 48, 0, &x), GIN_EINVAL);
    gi_heap_get_state(me->h, &s);
    EXPECT_EQ_U64(s.peak, MiB);
    EXPECT_EQ_U64(s.used, 128 * KiB);
    EXPECT_EQ_U64(s.size, MiB);
    EXPECT_EQ_U64(s.max, MiB);
    EXPECT_HAS(s.backing, "pages");
}

TEST(full_heap_is_refused_on_all)
{
    crew(body_full, 1, MiB, MiB, false);
    crew(body_full, RANKS, MiB, MiB, false);
}

/* Zero sizes and NULL are local: only rank 0 calls; a barrier would never end. */
static void body_local(struct rank *me)
{
    uint64_t off = 5;

    if (me->rank != 0)
        return;
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 0, 64, 0, &off), GIN_OK);
    EXPECT_EQ_U64(off, GI_HEAP_NONE);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, GI_HEAP_NONE, 0, &off), GIN_OK);
    EXPECT_EQ_U64(off, GI_HEAP_NONE);
    EXPECT_EQ_INT(gi_heap_free(me->h, GI_HEAP_NONE), GIN_OK);
    EXPECT_EQ_U64(me->calls, 0);
}

TEST(nothing_is_local)
{
    crew(body_local, 2, MiB, MiB, false);
}

static void body_free(struct rank *me)
{
    uint64_t p = 0, q = 0;

    EXPECT_EQ_INT(gi_heap_malloc(me->h, 1000, 64, 0, &p), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, p + 8), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "8 bytes inside a heap block of 1000 bytes");
    EXPECT_EQ_INT(gi_heap_free(me->h, GI_HEAP_FOREIGN), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "not into the heap");
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, p), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, p), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "freed already?");
    EXPECT_EQ_INT(gi_heap_realloc(me->h, p, 10, &q), GIN_EINVAL);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 1000, 64, 0, &q), GIN_OK);
    EXPECT_EQ_U64(q, p);
    /* one rank's bad pointer is refused on all */
    EXPECT_EQ_INT(gi_heap_free(me->h, me->rank == 1 ? q + 8 : q), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), me->rank == 1 ? "inside a heap block" : "failed on rank 1");
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 1000, 64, 0, &p), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, me->rank == 1 ? p : q), GIN_EMISMATCH);
    EXPECT_EQ_INT(gi_heap_free(me->h, p), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, q), GIN_OK);
}

TEST(bad_pointers_are_refused)
{
    crew(body_free, 3, MiB, MiB, false);
    crew(body_free, 3, MiB, MiB, true);
}

static void body_realloc(struct rank *me)
{
    uint64_t p = 0, q = 0, wall = 0;

    EXPECT_EQ_INT(gi_heap_malloc(me->h, 100, 4096, 0, &p), GIN_OK);
    EXPECT_EQ_U64((uintptr_t)at(me, p) % 4096, 0);
    memset(at(me, p), 10 + me->rank, 100);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, 64, 0, &wall), GIN_OK); /* so that it moves */
    EXPECT_EQ_INT(gi_heap_realloc(me->h, p, MiB, &q), GIN_OK);
    EXPECT(q != p);
    EXPECT_EQ_U64((uintptr_t)at(me, q) % 4096, 0);
    EXPECT_FILLED(at(me, q), 100, (unsigned char)(10 + me->rank));
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    memset(at(me, q), 20 + me->rank, MiB);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, q, 10, &p), GIN_OK);
    EXPECT_EQ_U64(p, q);
    EXPECT_FILLED(at(me, p), 10, (unsigned char)(20 + me->rank));
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, p, 5000, &q), GIN_OK); /* grows where it is */
    EXPECT_EQ_U64(p, q);
    EXPECT_FILLED(at(me, p), 10, (unsigned char)(20 + me->rank));
    memset(at(me, p), 30 + me->rank, 5000);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    /* too much, and different sizes: the block is as it was */
    EXPECT_EQ_INT(gi_heap_realloc(me->h, p, 64 * MiB, &q), GIN_ENOMEM);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, p, me->rank ? 6000 : 7000, &q), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "gin_realloc");
    EXPECT_EQ_INT(gi_heap_realloc(me->h, p, me->rank ? 600 : 700, &q), GIN_EMISMATCH);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, wall, me->rank ? 3 * MiB : 3 * MiB + 1, &q),
                  GIN_EMISMATCH);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    EXPECT_FILLED(at(me, p), 5000, (unsigned char)(30 + me->rank));
    EXPECT_EQ_INT(gi_heap_realloc(me->h, GI_HEAP_NONE, 500, &wall), GIN_OK);
    EXPECT_EQ_U64(wall % 64, 0);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, wall, 0, &wall), GIN_OK);
    EXPECT_EQ_U64(wall, GI_HEAP_NONE);
    EXPECT_EQ_INT(gi_heap_free(me->h, p), GIN_OK);
}

TEST(realloc_keeps_alignment_and_contents)
{
    crew(body_realloc, 3, 256 * KiB, 8 * MiB, false);
    crew(body_realloc, 3, 256 * KiB, 8 * MiB, true);
}

static void body_mismatch(struct rank *me)
{
    uint64_t before = gi_heap_fingerprint(me->h), off = 3, p = 0;

    EXPECT_EQ_INT(gi_heap_malloc(me->h, me->rank == 2 ? 128 : 64, 64, 0, &off), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "size: 64 on rank 0, 128 on rank 2");
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, me->rank == 1 ? 128 : 64, 0, &off), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "alignment: 64 on rank 0, 128 on rank 1");
    EXPECT_EQ_INT(gi_heap_malloc(me->h, me->rank == 2 ? 3 * MiB : 64, 64, 0, &off), GIN_EMISMATCH);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, me->rank == 2 ? 3 : 64, 0, &off), GIN_EMISMATCH);
    EXPECT_EQ_U64(off, 3);
    EXPECT_EQ_U64(gi_heap_fingerprint(me->h), before);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, 64, 0, &p), GIN_OK);
    if (me->rank == 0)
        EXPECT_EQ_INT(gi_heap_free(me->h, p), GIN_EMISMATCH);
    else
        EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, 64, 0, &off), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "rank 0 in gin_free");
    EXPECT_EQ_INT(gi_heap_free(me->h, p), GIN_OK);
}

TEST(mismatch_is_undone_on_all)
{
    crew(body_mismatch, RANKS, MiB, 4 * MiB, false);
    crew(body_mismatch, RANKS, MiB, 4 * MiB, true);
}

static void body_grow(struct rank *me)
{
    uint64_t off[8], x = 0;

    EXPECT_EQ_U64(gi_heap_size(me->h), MiB);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ_INT(gi_heap_malloc(me->h, 700 * KiB, 64, 0, &off[i]), GIN_OK);
        memset(at(me, off[i]), i, 700 * KiB);
    }
    EXPECT_EQ_U64(gi_heap_size(me->h), 4 * MiB);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 3 * MiB, 64, 0, &x), GIN_OK); /* a chunk of its own */
    EXPECT_EQ_U64(gi_heap_size(me->h), 7 * MiB);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 2 * MiB, 64, 0, &x), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "grow by 1048576 more to its limit of 8388608");
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 800 * KiB, 64, 0, &x), GIN_OK);
    EXPECT_EQ_U64(gi_heap_size(me->h), 8 * MiB);
    for (int i = 0; i < 4; i++)
        EXPECT_FILLED(at(me, off[i]), 700 * KiB, (unsigned char)i);
}

TEST(growth)
{
    crew(body_grow, 3, MiB, 8 * MiB, false);
}

static void body_align(struct rank *me)
{
    for (uint64_t align = 1; align <= 16 * MiB; align *= 2) {
        uint64_t off = 0;
        int st = gi_heap_malloc(me->h, 100, align, 0, &off);

        EXPECT_EQ_INT(st, GIN_OK);
        EXPECT_EQ_U64((uintptr_t)at(me, off) % align, 0);
        EXPECT_EQ_U64((uintptr_t)at(me, off) % 64, 0);
    }
}

TEST(alignment)
{
    crew(body_align, 2, MiB, SLOT - CONTROL, false);
    crew(body_align, 2, MiB, SLOT - CONTROL, true);
}

/* Failures that only rank 1 meets. The calls before the last barrier see to the order. */
static void body_failures(struct rank *me)
{
    uint64_t x = 0, y = 0, before = gi_heap_fingerprint(me->h);
    bool bad = me->rank == 1;

    if (bad)
        gi_heap_inject(me->h, 1);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 64, 64, 0, &x), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), bad ? "no memory for heap tables" : "failed on rank 1");
    if (bad)
        gi_heap_inject(me->h, 2); /* the chunk that the growth needs */
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 2 * MiB, 64, 0, &x), GIN_ENOMEM);
    if (bad)
        gi_heap_inject(me->h, 3); /* the take from that chunk */
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 2 * MiB, 64, 0, &x), GIN_ENOMEM);
    EXPECT_EQ_U64(gi_heap_size(me->h), MiB);
    EXPECT_EQ_U64(me->segment->bytes, MiB);
    EXPECT_EQ_U64(gi_heap_fingerprint(me->h), before);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 1000, 64, 0, &x), GIN_OK);
    memset(at(me, x), 7, 1000);
    if (bad)
        gi_heap_inject(me->h, 1);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, x, 2000, &y), GIN_ENOMEM);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    EXPECT_FILLED(at(me, x), 1000, 7);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 2 * MiB, 64, 0, &y), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, y), GIN_OK);
    EXPECT_EQ_INT(gi_heap_free(me->h, x), GIN_OK);
}

TEST(one_rank_fails_all_undo)
{
    crew(body_failures, 3, MiB, 8 * MiB, false);
    crew(body_failures, 3, MiB, 8 * MiB, true);
}

/* Some rank's kernel has no pages left: whoever comes second in this process. */
static void body_no_pages(struct rank *me)
{
    uint64_t x = 0, before = gi_heap_fingerprint(me->h);

    pthread_barrier_wait(&me->crew->barrier);
    if (me->rank == 0)
        gi_os_inject(GI_OS_FALLOCATE, 2, 1, ENOSPC);
    pthread_barrier_wait(&me->crew->barrier);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 2 * MiB, 64, 0, &x), GIN_ENOMEM);
    EXPECT_EQ_U64(gi_heap_fingerprint(me->h), before);
    EXPECT_EQ_U64(me->segment->bytes, MiB);
    pthread_barrier_wait(&me->crew->barrier);
    if (me->rank == 0)
        gi_os_inject(GI_OS_FALLOCATE, 0, 0, 0);
    pthread_barrier_wait(&me->crew->barrier);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 2 * MiB, 64, 0, &x), GIN_OK);
    memset(at(me, x), 1, 2 * MiB);
}

TEST(no_pages_on_one_rank)
{
    crew(body_no_pages, 3, MiB, 8 * MiB, false);
}

/* AddressSanitizer would stop a test that damages red zones; the kernel's writes it does not see.
 */
static void poke(char *p, char c)
{
    __asm__ volatile("movb %1, (%0)" : : "r"(p), "r"(c) : "memory");
}

static char peek(const char *p)
{
    char c;

    __asm__ volatile("movb (%1), %0" : "=r"(c) : "r"(p) : "memory");
    return c;
}

static void body_checked(struct rank *me)
{
    uint64_t x = 0, y = 0, start = 0, bytes = 0;

    EXPECT_EQ_INT(gi_heap_malloc(me->h, 100, 64, 0, &x), GIN_OK);
    EXPECT_FILLED(at(me, x), 100, 0xcb);
    EXPECT_EQ_INT(gi_heap_malloc(me->h, 100, 64, GI_HEAP_ZERO, &y), GIN_OK);
    EXPECT_FILLED(at(me, y), 100, 0);
    memset(at(me, x), 1, 100);
    EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK);
    EXPECT(gi_heap_find(me->h, x + 99, &start, &bytes) && start == x && bytes == 100);
    EXPECT(!gi_heap_find(me->h, x + 100, &start, &bytes));
    EXPECT(!gi_heap_find(me->h, x - 1, &start, &bytes));

    char old = peek(at(me, x + 100));
    if (me->rank == 1) {
        poke(at(me, x + 100), 1);
        EXPECT_EQ_INT(gi_heap_check(me->h), GIN_ESTATE);
        EXPECT_HAS(gin_last_error(), "byte 1 behind its end was overwritten");
    }
    EXPECT_EQ_INT(gi_heap_free(me->h, x), GIN_ESTATE);
    EXPECT_HAS(gin_last_error(), me->rank == 1 ? "heap block of 100 bytes" : "failed on rank 1");
    poke(at(me, x + 100), old);
    if (me->rank == 2)
        poke(at(me, x - 64), 1);
    EXPECT_EQ_INT(gi_heap_realloc(me->h, x, 200, &y), GIN_ESTATE);
    EXPECT_HAS(gin_last_error(), me->rank == 2 ? "byte 64 in front of it" : "failed on rank 2");
    poke(at(me, x - 64), old);
    if (me->rank == 0) { /* the last byte in front of the next block */
        poke(at(me, x + 191), 1);
        EXPECT_EQ_INT(gi_heap_check(me->h), GIN_ESTATE);
        poke(at(me, x + 191), old);
    }
    EXPECT_EQ_INT(gi_heap_free(me->h, x), GIN_OK);
    EXPECT_EQ_INT((unsigned char)peek(at(me, x)), 0xdb);
    EXPECT_EQ_INT((unsigned char)peek(at(me, x + 99)), 0xdb);
}

TEST(checked_mode)
{
    crew(body_checked, 3, MiB, MiB, true);
}

#define BLOCKS 200

static void *look_around(void *arg)
{
    struct rank *me = arg;
    uint64_t start, bytes, rng = 1;
    struct gi_heap_state s;

    for (int i = 0; i < 2000; i++) {
        gi_heap_find(me->h, pt_random(&rng) % (8 * MiB), &start, &bytes);
        gi_heap_get_state(me->h, &s);
        gi_heap_size(me->h);
    }
    return NULL;
}

/* All calls in random order, contents watched, with failures, while another thread looks. */
static void body_random(struct rank *me)
{
    struct {
        uint64_t off, bytes;
        unsigned char fill;
    } live[BLOCKS];
    unsigned n = 0;
    uint64_t rng = pt_seed();
    pthread_t watcher;

    if (!EXPECT_EQ_INT(pthread_create(&watcher, NULL, look_around, me), 0))
        return;
    for (int i = 0; i < 3000; i++) {
        uint64_t r = pt_random(&rng), bytes = 1 + (r >> 8) % ((uint64_t)1 << (r % 18));
        unsigned k = n ? (unsigned)((r >> 32) % n) : 0;
        unsigned char fill = (unsigned char)(i * RANKS + me->rank);
        int st, bad = (r >> 50) % 16 == 0 ? (int)(r >> 60) % me->size : -1;

        if (me->rank == bad)
            gi_heap_inject(me->h, 1);
        switch (n == 0 ? 0 : n == BLOCKS ? 8 : r >> 40 & 15) {
        case 0 ... 7: {
            uint64_t off = GI_HEAP_NONE;

            st = gi_heap_malloc(me->h, bytes, (uint64_t)1 << (r >> 4 & 7), 0, &off);
            EXPECT(st == GIN_OK || st == GIN_ENOMEM);
            if (st == GIN_OK) {
                memset(at(me, off), fill, bytes);
                live[n].off = off;
                live[n].bytes = bytes;
                live[n++].fill = fill;
            }
            break;
        }
        case 8 ... 12:
            gi_heap_inject(me->h, 0);
            EXPECT_FILLED(at(me, live[k].off), live[k].bytes, live[k].fill);
            EXPECT_EQ_INT(gi_heap_free(me->h, live[k].off), GIN_OK);
            live[k] = live[--n];
            break;
        default:
            st = gi_heap_realloc(me->h, live[k].off, bytes, &live[k].off);
            EXPECT(st == GIN_OK || st == GIN_ENOMEM);
            if (st == GIN_OK && bytes > live[k].bytes) {
                EXPECT_FILLED(at(me, live[k].off), live[k].bytes, live[k].fill);
                memset(at(me, live[k].off), live[k].fill, bytes);
            }
            if (st == GIN_OK)
                live[k].bytes = bytes;
            EXPECT_FILLED(at(me, live[k].off), live[k].bytes, live[k].fill);
        }
        gi_heap_inject(me->h, 0);
        if (i % 256 == 0 && !EXPECT_EQ_INT(gi_heap_check(me->h), GIN_OK))
            break;
    }
    pthread_join(watcher, NULL);
}

TEST(random_calls)
{
    pt_seed(); /* printed before there are threads */
    crew(body_random, RANKS, 64 * KiB, 8 * MiB, false);
    crew(body_random, RANKS, 64 * KiB, 8 * MiB, true);
}

static void body_cost(struct rank *me)
{
    const int rounds = 500000;
    uint64_t began = gi_now_ns(), off = 0;

    for (int i = 0; i < rounds; i++) {
        gi_heap_malloc(me->h, 64, 64, 0, &off);
        gi_heap_free(me->h, off);
    }
    printf("malloc + free on one rank: %.1f ns\n", (double)(gi_now_ns() - began) / rounds);
}

TEST(cost)
{
    crew(body_cost, 1, MiB, MiB, false);
}
