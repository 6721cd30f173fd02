/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symmetric heap through the public calls: limits, no-ops, bad pointers, mismatches, growth,
 * and random operations that leave the same offsets on all ranks (-L: ten million of them).
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/mp.h"

#define KIB (1u << 10)
#define MIB (1u << 20)

static uint64_t offset(struct mp *mp, const void *p)
{
    gin_window_t win;
    uint64_t off = ~(uint64_t)0;
    if (p != NULL)
        EXPECT_OK(gin_window_of(mp->comm, p, &win, &off));
    return off;
}

/* All ranks have the same value. */
static bool same(struct mp *mp, uint64_t value)
{
    uint64_t all[mp->size];
    bool ok = true;
    EXPECT_EQ_INT(mp_allgather(mp, &value, all, sizeof(value)), 0);
    for (int r = 0; r < mp->size; r++)
        ok = EXPECT_EQ_U64(all[r], all[0]) && ok;
    return ok;
}

/* BL-01 */
MP_TEST_OPT(runs_out_everywhere_at_once, .ranks = "1 2 3", .heap_size = MIB, .heap_max = MIB)
{
    enum { MAX = 64 };
    void *p[MAX];
    int n = 0;
    while (n < MAX && (p[n] = gin_malloc(mp->comm, 64 * KIB)) != NULL)
        n++;
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "GINSHMEM_HEAP_MAX");
    EXPECT_HAS(gin_last_error(), "65536");
    EXPECT_HAS(gin_last_error(), "1048576");
    EXPECT(n >= 8 && n <= 16);
    same(mp, (uint64_t)n);
    for (int i = 0; i < n; i++) /* earlier blocks stay usable */
        memset(p[i], i, 64 * KIB);
    EXPECT_OK(gin_free(mp->comm, p[n / 2]));
    p[n / 2] = gin_malloc(mp->comm, 64 * KIB);
    EXPECT(p[n / 2] != NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    for (int i = 0; i < n; i += 2)
        EXPECT_OK(gin_free(mp->comm, p[i]));
    EXPECT(gin_malloc(mp->comm, 128 * KIB) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    p[0] = gin_malloc(mp->comm, 64 * KIB);
    EXPECT(p[0] != NULL);
    EXPECT_OK(gin_free(mp->comm, p[0]));
    for (int i = 1; i < n; i += 2) {
        EXPECT_FILLED(p[i], 64 * KIB, (unsigned char)(i == n / 2 ? ((char *)p[i])[0] : i));
        EXPECT_OK(gin_free(mp->comm, p[i]));
    }
    p[0] = gin_malloc(mp->comm, 128 * KIB);
    EXPECT(p[0] != NULL);
    EXPECT_OK(gin_free(mp->comm, p[0]));
    EXPECT(gin_malloc(mp->comm, SIZE_MAX) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT(gin_malloc(mp->comm, (size_t)1 << 62) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_OK(gin_heap_check(mp->comm));
}

/* BL-02, BL-05: only rank 0 calls, the others are outside the library. */
MP_TEST_N(zero_and_null_are_local, "1 2 3")
{
    char *p = gin_malloc(mp->comm, 100);
    EXPECT(p != NULL);
    if (mp->rank == 0) {
        EXPECT_FAILS(gin_devcomm_destroy(mp->comm, NULL), GIN_ESTATE, ""); /* leaves a status */
        EXPECT(gin_malloc(mp->comm, 0) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
        EXPECT(gin_calloc(mp->comm, 0, 8) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
        EXPECT(gin_calloc(mp->comm, 8, 0) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
        EXPECT(gin_aligned_alloc(mp->comm, 64, 0) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
        EXPECT(gin_realloc(mp->comm, NULL, 0) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
        EXPECT_OK(gin_free(mp->comm, NULL));
        EXPECT_OK(gin_heap_check(mp->comm));
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    same(mp, offset(mp, p));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* BL-04 */
MP_TEST_N(realloc_keeps_contents_and_alignment, "1 2 3")
{
    static const size_t sizes[] = {100, MIB, 10, 4096, 4097, 1, 300000};
    char *p = gin_aligned_alloc(mp->comm, 4096, sizes[0]);
    if (!EXPECT(p != NULL))
        return;
    mp_poison(p, sizes[0], 1);
    for (size_t i = 1; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t kept = sizes[i] < sizes[i - 1] ? sizes[i] : sizes[i - 1];
        p = gin_realloc(mp->comm, p, sizes[i]);
        if (!EXPECT(p != NULL))
            return;
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
        EXPECT_EQ_U64((uintptr_t)p % 4096, 0);
        MP_CHECK_PATTERN(p, kept, i);
        EXPECT_OK(gin_heap_check(mp->comm));
        same(mp, offset(mp, p));
        mp_poison(p, sizes[i], i + 1);
    }
    EXPECT(gin_realloc(mp->comm, p, 0) == NULL); /* frees */
    EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    EXPECT_FAILS(gin_free(mp->comm, p), GIN_EINVAL, "gin_free");
    p = gin_realloc(mp->comm, NULL, 77); /* allocates */
    EXPECT(p != NULL);
    EXPECT_OK(gin_free(mp->comm, p));
}

/* A failed realloc leaves the block as it was. */
MP_TEST_OPT(failed_realloc_keeps_the_block, .ranks = "1 2", .heap_size = MIB, .heap_max = MIB)
{
    char *p = gin_malloc(mp->comm, 1000);
    if (!EXPECT(p != NULL))
        return;
    mp_poison(p, 1000, 5);
    EXPECT(gin_realloc(mp->comm, p, 64 * MIB) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    MP_CHECK_PATTERN(p, 1000, 5);
    EXPECT_OK(gin_free(mp->comm, p));
}

/* BL-05 */
MP_TEST_N(bad_pointers_are_refused, "1 2 3")
{
    char local[64], *p = gin_malloc(mp->comm, 1000), *q = gin_malloc(mp->comm, 1000);
    if (!EXPECT(p != NULL && q != NULL))
        return;
    mp_poison(q, 1000, 3);
    EXPECT_FAILS(gin_free(mp->comm, p + 8), GIN_EINVAL, "gin_free");
    EXPECT_FAILS(gin_free(mp->comm, p + 64), GIN_EINVAL, "gin_free");
    EXPECT_FAILS(gin_free(mp->comm, local), GIN_EINVAL, "gin_free");
    EXPECT_FAILS(gin_free(mp->comm, (void *)(uintptr_t)8), GIN_EINVAL, "gin_free");
    EXPECT(gin_realloc(mp->comm, p + 8, 100) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EINVAL);
    EXPECT(gin_realloc(mp->comm, local, 100) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EINVAL);
    EXPECT_OK(gin_heap_check(mp->comm));
    EXPECT_OK(gin_free(mp->comm, p));
    EXPECT_FAILS(gin_free(mp->comm, p), GIN_EINVAL, "gin_free");
    EXPECT_OK(gin_heap_check(mp->comm));
    p = gin_malloc(mp->comm, 1000);
    EXPECT(p != NULL);
    same(mp, offset(mp, p));
    MP_CHECK_PATTERN(q, 1000, 3);
    EXPECT_OK(gin_free(mp->comm, p));
    EXPECT_OK(gin_free(mp->comm, q));
}

MP_TEST_N(bad_arguments_are_refused, "1 2")
{
    static const size_t bad[] = {0, 3, 48, (size_t)1 << 31, SIZE_MAX};
    gin_heap_usage_t u = {.size_of = 0};
    EXPECT(gin_calloc(mp->comm, SIZE_MAX / 2, 3) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT(gin_aligned_alloc(mp->comm, bad[i], 100) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_EINVAL);
        EXPECT_HAS(gin_last_error(), "alignment");
    }
    void *gpu = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 8); /* where there is a GPU, memory */
    EXPECT_EQ_INT(gin_last_status(), gpu != NULL ? GIN_OK : GIN_ENOTSUP);
    EXPECT_OK(gin_free(mp->comm, gpu));
    EXPECT(gin_malloc_kind(mp->comm, (gin_kind_t)7, 8) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EINVAL);
    EXPECT_FAILS(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u), GIN_EINVAL, "size_of");
    EXPECT_FAILS(gin_heap_usage(mp->comm, GIN_KIND_HOST, NULL), GIN_EINVAL, "gin_heap_usage");
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* What one rank alone may not ask for is no long wait for the others. */
MP_TEST_N(one_is_refused, "2 3")
{
    size_t count = mp->rank == 1 ? SIZE_MAX / 2 : 1;
    EXPECT(gin_calloc(mp->comm, count, 3) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "disagree on the size");
    EXPECT(gin_malloc_kind(mp->comm, mp->rank == 1 ? (gin_kind_t)7 : GIN_KIND_HOST, 8) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), mp->rank == 1 ? "kind 7" : "rank 1");
    same(mp, offset(mp, gin_malloc(mp->comm, 64)));
}

MP_TEST_N(mismatches_on_all_ranks, "2 3 5")
{
    char *keep = gin_malloc(mp->comm, 64);
    size_t mine = mp->rank == mp->size - 1 ? 4242 : 1717;
    uint64_t before = offset(mp, keep);
    EXPECT(gin_malloc(mp->comm, mine) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "4242");
    EXPECT_HAS(gin_last_error(), "1717");
    EXPECT_OK(gin_heap_check(mp->comm));
    EXPECT(gin_aligned_alloc(mp->comm, mp->rank == 0 ? 128 : 256, 64) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "128");
    EXPECT_HAS(gin_last_error(), "256");
    char *p = gin_malloc(mp->comm, 64), *q = gin_malloc(mp->comm, 64);
    same(mp, offset(mp, p));
    same(mp, offset(mp, q));
    EXPECT_FAILS(gin_free(mp->comm, mp->rank == 0 ? p : q), GIN_EMISMATCH, "gin_free");
    /* another call altogether */
    if (mp->rank == 0) {
        EXPECT(gin_malloc(mp->comm, 64) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    } else {
        EXPECT_FAILS(gin_free(mp->comm, p), GIN_EMISMATCH, "gin_malloc");
    }
    EXPECT_OK(gin_free(mp->comm, p)); /* both live and equal still */
    EXPECT_OK(gin_free(mp->comm, q));
    EXPECT_OK(gin_free(mp->comm, keep));
    p = gin_malloc(mp->comm, 64);
    EXPECT_EQ_U64(offset(mp, p), before);
    same(mp, offset(mp, p));
    EXPECT_OK(gin_heap_check(mp->comm));
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST_OPT(heap_sizes_must_agree, .ranks = "2 3", .bare = true)
{
    mp->config.heap_size = mp->rank == 0 ? 3 * MIB : 5 * MIB;
    gin_comm_t *comm = (gin_comm_t *)(void *)mp;
    EXPECT_FAILS(gin_init(&mp->config, &comm), GIN_EMISMATCH, "heap");
    EXPECT_HAS(gin_last_error(), "3145728");
    EXPECT_HAS(gin_last_error(), "5242880");
    EXPECT(comm == NULL);
}

MP_TEST_OPT(grows_by_chunks, .ranks = "1 2 3", .heap_size = MIB,
            .env = "GINSHMEM_HEAP_CHUNK=1M GINSHMEM_HEAP_MAX=64M")
{
    enum { BLOCKS = 12 };
    char *p[BLOCKS];
    size_t n[BLOCKS];
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    if (!mp_dev(mp, NULL))
        return;
    int to = (mp->rank + 1) % mp->size, from = (mp->rank + mp->size - 1) % mp->size;
    for (int i = 0; i < BLOCKS; i++) {
        char *src = NULL;
        n[i] = (size_t)(i % 4 + 1) * 700 * KIB;
        mp_step(mp, "block %d", i);
        p[i] = gin_malloc(mp->comm, n[i]);
        if (!EXPECT(p[i] != NULL && (src = malloc(n[i])) != NULL))
            return;
        same(mp, offset(mp, p[i]));
        mp_poison(src, n[i], (uint64_t)(i * 100 + mp->rank));
        EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at_ptr(&mp->g, p[i]),
                          gin_at_local(src), n[i], gin_weak_inc(0)));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, (uint64_t)i + 1));
        EXPECT_OK(gin_flush(&mp->g, gin_thread())); /* the signal was the left one's, src is mine */
        free(src);
        for (int k = 0; k <= i; k += 3) /* older blocks are where they were */
            MP_CHECK_PATTERN(p[k], n[k], (uint64_t)(k * 100 + from));
    }
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
    EXPECT(u.size > 8 * MIB && u.size <= u.max);
    EXPECT_EQ_U64(u.max, 64 * MIB);
    EXPECT(u.peak >= u.used && u.used > 8 * MIB);
    for (int i = 0; i < BLOCKS; i++)
        EXPECT_OK(gin_free(mp->comm, p[i]));
    EXPECT(gin_malloc(mp->comm, 65 * MIB) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_OK(gin_heap_check(mp->comm));
}

MP_TEST_N(calloc_zeroes_what_was_used, "1 3")
{
    for (int i = 0; i < 20; i++) {
        size_t n = 1 + pt_below(&mp->common, 100000);
        char *p = gin_malloc(mp->comm, n);
        memset(p, 0xff, n);
        EXPECT_OK(gin_free(mp->comm, p));
        p = gin_calloc(mp->comm, 1, n);
        EXPECT_FILLED(p, n, 0);
        memset(p, 0xee, n);
        EXPECT_OK(gin_free(mp->comm, p));
    }
}

MP_TEST_N(usage_and_addresses, "1 2 3")
{
    gin_heap_usage_t u = {.size_of = sizeof(u)}, v = u;
    for (size_t a = 1; a <= 2 * MIB; a *= 2) {
        char *p = gin_aligned_alloc(mp->comm, a, 10);
        EXPECT_EQ_U64((uintptr_t)p % a, 0);
        same(mp, offset(mp, p));
        EXPECT_OK(gin_free(mp->comm, p));
    }
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
    int *p = gin_malloc(mp->comm, 1000);
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &v));
    EXPECT_EQ_U64(v.blocks, u.blocks + 1);
    EXPECT(v.used >= u.used + 1000 && v.used <= u.used + 1200);
    EXPECT(v.largest_free <= v.size - v.used && v.backing[0] != 0);
    EXPECT_FAILS(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &v), GIN_ENOTSUP, "CUDA");
    *p = 100 + mp->rank;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int r = 0; r < mp->size; r++) {
        int *there = gin_ptr(mp->comm, p, r);
        if (there == NULL) /* of another host */
            EXPECT(r != mp->rank && mp->host[0] != 0);
        else
            EXPECT_EQ_INT(*there, 100 + r);
    }
    EXPECT_EQ_PTR(gin_ptr(mp->comm, p, mp->rank), p);
    EXPECT(gin_ptr(mp->comm, p, mp->size) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    EXPECT(gin_ptr(mp->comm, &u, 0) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* BL-11: places beyond 4 GiB, in a window of memory that is never touched but at its end. */
MP_TEST_N(offsets_beyond_four_gib, "1 2")
{
    uint64_t bytes = (uint64_t)6 << 30, off = ((uint64_t)5 << 30) + 8;
    gin_window_t win;
    if (!mp_dev(mp, NULL))
        return;
    char *big = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    /* Some devices pin what is registered, and that is all of it then. */
    uint64_t room = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    int have = big != MAP_FAILED && (mp_near(mp) || room > bytes * (uint64_t)mp->size);
    int all[mp->size];
    EXPECT_EQ_INT(mp_allgather(mp, &have, all, sizeof(have)), 0);
    for (int r = 0; r < mp->size; r++)
        if (!all[r])
            MP_SKIP("no 6 GiB of memory for each rank, or of addresses");
    int to = (mp->rank + 1) % mp->size;
    char out[4096], in[4096];
    EXPECT_OK(gin_window_register(mp->comm, big, bytes, 0, &win));
    if (gin_window_path(mp->comm, win, to) == GIN_PATH_NONE) {
        EXPECT_OK(gin_window_deregister(mp->comm, win));
        munmap(big, bytes);
        MP_SKIP("no path to user memory of other processes");
    }
    mp_poison(out, sizeof(out), (uint64_t)mp->rank);
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(win, off),
                      gin_at_local(out), sizeof(out), gin_strong_inc(0)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, 1));
    MP_CHECK_PATTERN(big + off, 4096, (uint64_t)((mp->rank + mp->size - 1) % mp->size));
    EXPECT_FILLED(big + (off & 0xffffffffu), 4096, 0);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread())); /* a get may overtake a put to the same place */
    EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(win, off),
                      gin_at_local(in), sizeof(in)));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    MP_CHECK_PATTERN(in, 4096, (uint64_t)mp->rank);
    uint64_t old = 1;
    EXPECT_OK(gin_amo_fetch_add(&mp->g, gin_thread(), gin_world(&mp->g), mp->rank,
                                gin_at(win, ((uint64_t)5 << 30) + 8192), 7, &old));
    EXPECT_EQ_U64(old, 0);
    EXPECT_EQ_U64(*(uint64_t *)(void *)(big + ((uint64_t)5 << 30) + 8192), 7);
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, gin_at(win, bytes - 8),
                         gin_at_local(out), 9, gin_no_action()),
                 GIN_ERANGE, "gin_put");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    munmap(big, bytes);
}

/* ---- random operations ---- */

#define LIVE 200

struct block {
    char *p;
    size_t n;
    uint64_t seed;
};

/* The ends of a block carry a pattern of its own. */
static void mark(struct block *b)
{
    size_t k = b->n < 32 ? b->n : 32;
    mp_poison(b->p, k, b->seed);
    mp_poison(b->p + b->n - k, k, b->seed + (b->n < 64 ? 0 : 1));
}

static bool marked(const struct block *b, size_t n)
{
    size_t k = n < 32 ? n : 32;
    if (b->n < 64)
        return n < b->n || MP_CHECK_PATTERN(b->p + b->n - (b->n < 32 ? b->n : 32), k, b->seed);
    return MP_CHECK_PATTERN(b->p, k, b->seed) &&
           (n < b->n || MP_CHECK_PATTERN(b->p + b->n - 32, 32, b->seed + 1));
}

static size_t random_size(uint64_t *rng)
{
    switch (pt_below(rng, 10)) {
    case 0: return 1 + pt_below(rng, 300 * KIB);
    case 1:
    case 2: return 1 + pt_below(rng, 8192);
    default: return 1 + pt_below(rng, 200);
    }
}

static bool random_step(struct mp *mp, struct block *b, uint64_t *hash)
{
    uint64_t *rng = &mp->common, what = pt_below(rng, 100);
    size_t n = random_size(rng), align = (size_t)1 << pt_below(rng, 13);
    char *p;
    if (b->p == NULL) {
        p = what < 60   ? gin_malloc(mp->comm, n)
            : what < 80 ? gin_aligned_alloc(mp->comm, align, n)
                        : gin_calloc(mp->comm, 1, n);
        if (p == NULL)
            return EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
        if (what >= 80 && n < 4096)
            EXPECT_FILLED(p, n, 0);
    } else if (what < 70) {
        if (!marked(b, b->n) || !EXPECT_OK(gin_free(mp->comm, b->p)))
            return false;
        b->p = NULL;
        return true;
    } else {
        if (!marked(b, b->n))
            return false;
        p = gin_realloc(mp->comm, b->p, n);
        if (p == NULL)
            return EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
        size_t kept = (n < b->n ? n : b->n) < 32 ? (n < b->n ? n : b->n) : 32;
        if (b->n >= 64 && !MP_CHECK_PATTERN(p, kept, b->seed))
            return false;
    }
    *b = (struct block){p, n, pt_random(rng)};
    *hash = (*hash ^ offset(mp, p)) * 0x100000001b3u;
    mark(b);
    return true;
}

static void random_operations(struct mp *mp, uint64_t ops)
{
    struct block *b = calloc(LIVE, sizeof(*b));
    uint64_t hash = 1;
    for (uint64_t i = 0; i < ops; i++) {
        if (!random_step(mp, &b[pt_below(&mp->common, LIVE)], &hash)) {
            FAIL("at operation %" PRIu64, i);
            break;
        }
        if (i % 1000 == 0) {
            mp_step(mp, "operation %" PRIu64 " of %" PRIu64, i, ops);
            if (!same(mp, hash) || !EXPECT_OK(gin_heap_check(mp->comm)))
                break;
        }
    }
    for (int i = 0; i < LIVE; i++)
        EXPECT_OK(gin_free(mp->comm, b[i].p));
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
    EXPECT_EQ_U64(u.blocks, 0);
    EXPECT_EQ_U64(u.used, 0);
    EXPECT_OK(gin_heap_check(mp->comm));
    free(b);
}

MP_TEST_OPT(random_operations, .ranks = "4", .heap_size = MIB,
            .env = "GINSHMEM_HEAP_CHUNK=1M GINSHMEM_HEAP_MAX=16M")
{
    random_operations(mp, mp->long_mode ? 10000000 : 10000 / MP_FACTOR);
}

MP_TEST_OPT(random_operations_checked, .ranks = "2", .heap_size = MIB,
            .env = "GINSHMEM_HEAP_CHUNK=1M GINSHMEM_HEAP_MAX=16M GINSHMEM_CHECK=1")
{
    random_operations(mp, mp->long_mode ? 200000 : 3000 / MP_FACTOR);
}

/* What a checker of addresses would rightly refuse. */
__attribute__((no_sanitize("address"))) static void flip(volatile char *p)
{
    *p = (char)~*p;
}

MP_TEST_OPT(red_zones_show_damage, .ranks = "1 2", .env = "GINSHMEM_CHECK=1")
{
    char *p = gin_malloc(mp->comm, 100);
    if (!EXPECT(p != NULL))
        return;
    EXPECT_OK(gin_heap_check(mp->comm));
    flip(p + 100);
    EXPECT_FAILS(gin_heap_check(mp->comm), GIN_ESTATE, "100");
    flip(p + 100);
    EXPECT_OK(gin_heap_check(mp->comm));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, p));
}
