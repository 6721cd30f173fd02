/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: which memory becomes one, how peers reach it, what is shared, what is refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/os.h"
#include "tests/mp.h"

#define BYTES 4096u

static gin_window_info_t query(struct mp *mp, gin_window_t win)
{
    gin_window_info_t i = {.size_of = sizeof(i)};
    EXPECT_OK(gin_window_query(mp->comm, win, &i));
    return i;
}

static int right(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static int left(const struct mp *mp)
{
    return (mp->rank + mp->size - 1) % mp->size;
}

/* Memory of mine outside the heap; at another offset of its page on every rank. */
static char *user_memory(const struct mp *mp, size_t bytes, void **whole)
{
    *whole = calloc(1, bytes + 4096 + 64);
    return (char *)*whole + 64 * (size_t)(mp->rank % 8 + 1);
}

MP_TEST(heap_window)
{
    char *p = gin_malloc(mp->comm, 1000);
    gin_window_t heap = gin_heap_window(mp->comm, GIN_KIND_HOST), win;
    uint64_t off;
    if (!EXPECT(p != NULL))
        return;
    gin_window_info_t i = query(mp, heap);
    EXPECT_EQ_INT(i.is_heap, 1);
    EXPECT_EQ_INT(i.shared, 1);
    EXPECT_EQ_INT(i.kind, GIN_KIND_HOST);
    EXPECT_OK(gin_window_of(mp->comm, p + 999, &win, &off));
    EXPECT(gin_window_equal(win, heap));
    EXPECT_EQ_PTR((char *)i.base + off, p + 999);
    EXPECT(off < i.size);
    EXPECT_FAILS(gin_window_of(mp->comm, &win, &win, &off), GIN_ERANGE, "no window");
    EXPECT_FAILS(gin_window_of(mp->comm, p, NULL, &off), GIN_EINVAL, "NULL");
    EXPECT_FAILS(gin_window_deregister(mp->comm, heap), GIN_EINVAL, "heap");
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_INT(gin_window_path(mp->comm, heap, r), r == mp->rank      ? GIN_PATH_SELF
                                                          : mp->host[0] != 0 ? GIN_PATH_NET
                                                                             : GIN_PATH_LSA);
    EXPECT(gin_window_equal(gin_heap_window(mp->comm, GIN_KIND_CUDA), gin_window_none()));
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST_N(before_the_heap_is_up, "1 2")
{
    gin_window_t win;
    uint64_t off;
    EXPECT(gin_window_equal(gin_heap_window(mp->comm, GIN_KIND_HOST), gin_window_none()));
    EXPECT_FAILS(gin_window_of(mp->comm, &win, &win, &off), GIN_ERANGE, "no window");
    EXPECT_EQ_INT(gin_window_path(mp->comm, gin_window_none(), 0), GIN_PATH_NONE);
    EXPECT_EQ_INT(gin_last_status(), GIN_ESTATE);
    gin_window_info_t i = {.size_of = sizeof(i)};
    EXPECT_FAILS(gin_window_query(mp->comm, gin_window_none(), &i), GIN_ESTATE, "not live");
    EXPECT_FAILS(gin_window_register(NULL, &off, 8, 0, &win), GIN_ESTATE, "gin_init");
}

/* One place translates (window, offset): A's bytes stay, B's change, right behind B's start. */
MP_TEST_N(sub_windows_of_the_heap, "1 2 3")
{
    enum { BLOCK = 65536, A = 16384, B = 16384 + 40 };
    char *p = gin_malloc(mp->comm, BLOCK), want[24];
    gin_window_t a, b, win;
    uint64_t off;
    if (!EXPECT(p != NULL) || !mp_dev(mp, NULL))
        return;
    memset(p, 0x5a, BLOCK);
    EXPECT_OK(gin_window_register(mp->comm, p, A, 0, &a));
    EXPECT_OK(gin_window_register(mp->comm, p + B, BLOCK - B, 0, &b));
    EXPECT_EQ_INT(query(mp, a).shared, 3);
    EXPECT_EQ_INT(query(mp, a).is_heap, 0);
    EXPECT_EQ_U64(query(mp, b).size, BLOCK - B);
    EXPECT_EQ_PTR(query(mp, b).base, p + B);
    EXPECT_OK(gin_window_of(mp->comm, p + B + 8, &win, &off));
    EXPECT(gin_window_equal(win, b));
    EXPECT_EQ_U64(off, 8);
    EXPECT_OK(gin_window_of(mp->comm, p + A, &win, &off)); /* between the two */
    EXPECT(gin_window_equal(win, gin_heap_window(mp->comm, GIN_KIND_HOST)));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    memset(want, 0x11 + left(mp), sizeof(want));
    char mine[24];
    memset(mine, 0x11 + mp->rank, sizeof(mine));
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), right(mp), gin_at(b, 8),
                      gin_at_local(mine), sizeof(mine), gin_no_action()));
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(p, B + 8, 0x5a);
    EXPECT(memcmp(p + B + 8, want, sizeof(want)) == 0);
    EXPECT_FILLED(p + B + 8 + 24, BLOCK - B - 8 - 24, 0x5a);
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), right(mp),
                         gin_at(a, A - 8), gin_at_local(mine), 24, gin_no_action()),
                 GIN_ERANGE, "outside");
    EXPECT_OK(gin_window_deregister(mp->comm, a));
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), right(mp), gin_at(a, 0),
                         gin_at_local(mine), 24, gin_no_action()),
                 GIN_ESTATE, "");
    EXPECT_OK(gin_window_deregister(mp->comm, b));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* Put to the right, get from the left, in memory outside the heap. */
static void move(struct mp *mp, gin_window_t win, char *p)
{
    gin_team_t world = gin_team_world(mp->comm);
    char out[64], in[64];
    memset(out, 'a' + mp->rank, sizeof(out));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_put(&mp->g, gin_thread(), world, right(mp), gin_at(win, 100), gin_at_local(out),
                      sizeof(out), gin_no_action()));
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(p, 100, 0);
    EXPECT_FILLED(p + 100, sizeof(out), (unsigned char)('a' + left(mp)));
    EXPECT_FILLED(p + 100 + sizeof(out), BYTES - 100 - sizeof(out), 0);
    EXPECT_OK(gin_get(&mp->g, gin_thread(), world, right(mp), gin_at(win, 100), gin_at_local(in),
                      sizeof(in)));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    EXPECT_FILLED(in, sizeof(in), (unsigned char)('a' + mp->rank));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    memset(p, 0, BYTES);
}

MP_TEST(user_memory_window)
{
    void *whole;
    char *p = user_memory(mp, BYTES, &whole);
    gin_window_t win, sub, found;
    uint64_t off;
    if (!mp_dev(mp, NULL))
        return;
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_OK(gin_query(mp->comm, &caps));
    bool far = mp->host[0] != 0;
    if (!far && !mp->threads && mp->size > 1 && !caps.cap[GIN_CAP_CMA].have) {
        free(whole);
        MP_SKIP("no process_vm_readv/writev: %s", caps.cap[GIN_CAP_CMA].reason);
    }
    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &win));
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_INT(gin_window_path(mp->comm, win, r), r == mp->rank ? GIN_PATH_SELF
                                                         : far         ? GIN_PATH_NET
                                                         : mp->threads ? GIN_PATH_LSA
                                                                       : GIN_PATH_CMA);
    move(mp, win, p);
    EXPECT_OK(gin_window_register(mp->comm, p + 512, 1024, 0, &sub));
    EXPECT_EQ_INT(query(mp, win).shared, 2);
    EXPECT_OK(gin_window_of(mp->comm, p + 600, &found, &off));
    EXPECT(gin_window_equal(found, sub));
    EXPECT_EQ_U64(off, 88);
    EXPECT_OK(gin_window_deregister(mp->comm, win)); /* the registration lives on in sub */
    EXPECT_EQ_INT(query(mp, sub).shared, 1);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), right(mp), gin_at(sub, 1),
                      gin_at_local("x"), 1, gin_no_action()));
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_INT(p[513], 'x');
    EXPECT_OK(gin_window_deregister(mp->comm, sub));
    EXPECT_FAILS(gin_window_of(mp->comm, p + 600, &found, &off), GIN_ERANGE, "no window");
    free(whole);
}

MP_TEST_OPT(user_memory_without_cma, .ranks = "2 3", .env = "GINSHMEM_DISABLE_CMA=1",
            .only = MP_PROCS)
{
    if (mp->host[0] != 0)
        MP_SKIP("other hosts are reached by the network");
    void *whole;
    char *p = user_memory(mp, BYTES, &whole);
    gin_window_t win;
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &win));
    EXPECT_EQ_INT(gin_window_path(mp->comm, win, mp->rank), GIN_PATH_SELF);
    EXPECT_EQ_INT(gin_window_path(mp->comm, win, right(mp)), GIN_PATH_NONE);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOTSUP);
    EXPECT_HAS(gin_last_error(), "GINSHMEM_DISABLE_CMA=1");
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), right(mp), gin_at(win, 0),
                         gin_at_local("x"), 1, gin_no_action()),
                 GIN_ENOTSUP, "GINSHMEM_DISABLE_CMA=1");
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    free(whole);
}

MP_TEST_OPT(other_hosts, .ranks = "2 3", .hosts = "AB", .env = "GINSHMEM_DISABLE_NET=1")
{
    void *whole;
    char *p = user_memory(mp, BYTES, &whole);
    gin_window_t win, heap;
    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &win));
    heap = gin_heap_window(mp->comm, GIN_KIND_HOST);
    int other = mp->rank == 1 ? 0 : 1;
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ_INT(gin_window_path(mp->comm, i ? win : heap, other), GIN_PATH_NONE);
        EXPECT_EQ_INT(gin_last_status(), GIN_ENOTSUP);
        EXPECT_HAS(gin_last_error(), "another host");
        EXPECT_HAS(gin_last_error(),
                   other == 1 ? "rank 1 on host host-B" : "rank 0 on host host-A");
        EXPECT_HAS(gin_last_error(), "GINSHMEM_DISABLE_NET=1");
    }
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    free(whole);
}

/* A device communicator that allows loads and stores only copies by nothing else. */
static void only_by_lsa(struct mp *mp, gin_window_t win, gin_path_t path)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t dev;
    gin_t g;
    char in[8];
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_LSA;
    if (!EXPECT_OK(gin_devcomm_create(mp->comm, &reqs, &dev)) || !EXPECT_OK(gin_open(&dev, 0, &g)))
        return;
    if (path == GIN_PATH_CMA)
        EXPECT_FAILS(gin_get(&g, gin_thread(), gin_world(&g), right(mp), gin_at(win, 0),
                             gin_at_local(in), 8),
                     GIN_ENOTSUP, "GIN_PATH_CMA");
    if (mp->host[0] == 0)
        EXPECT_OK(gin_get(&g, gin_thread(), gin_world(&g), right(mp),
                          gin_at(gin_heap_window(mp->comm, GIN_KIND_HOST), 0), gin_at_local(in),
                          8));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &dev));
}

MP_TEST_N(flags, "2 3")
{
    char *p = gin_calloc(mp->comm, 1, BYTES);
    gin_window_t ro, far;
    gin_team_t world = gin_team_world(mp->comm);
    char in[8] = "";
    if (!EXPECT(p != NULL) || !mp_dev(mp, NULL))
        return;
    memset(p, 'A' + mp->rank, BYTES);
    EXPECT_FAILS(gin_window_register(mp->comm, p, BYTES, 64, &ro), GIN_EINVAL, "0x40");
    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, GIN_WIN_READ_ONLY, &ro));
    EXPECT_EQ_INT(query(mp, ro).flags, GIN_WIN_READ_ONLY);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_get(&mp->g, gin_thread(), world, right(mp), gin_at(ro, 8), gin_at_local(in), 8));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    EXPECT_FILLED(in, 8, (unsigned char)('A' + right(mp)));
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), world, right(mp), gin_at(ro, 8), gin_at_local(in), 8,
                         gin_no_action()),
                 GIN_ENOTSUP, "read-only");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(p, BYTES, (unsigned char)('A' + mp->rank));
    EXPECT_OK(gin_window_deregister(mp->comm, ro));

    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, GIN_WIN_NO_LSA, &far));
    gin_path_t path = gin_window_path(mp->comm, far, right(mp));
    only_by_lsa(mp, far, path);
    if (path == GIN_PATH_NONE)
        EXPECT_HAS(gin_last_error(), "GIN_WIN_NO_LSA");
    else
        EXPECT_EQ_INT(path, mp->host[0] != 0 ? GIN_PATH_NET : GIN_PATH_CMA);
    EXPECT(gin_ptr(mp->comm, p, right(mp)) == NULL);
    memset(p, 0, BYTES);
    if (path != GIN_PATH_NONE)
        move(mp, far, p);
    EXPECT_OK(gin_window_deregister(mp->comm, far));
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST(zero_size)
{
    gin_window_t a, b;
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_OK(gin_window_register(mp->comm, NULL, 0, 0, &a));
    EXPECT_OK(gin_window_register(mp->comm, mp->rank % 2 ? &a : NULL, 0, 0, &b));
    EXPECT(!gin_window_equal(a, b));
    EXPECT_EQ_U64(query(mp, a).size, 0);
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), mp->rank, gin_at(a, 0),
                      gin_at_local(&a), 0, gin_no_action()));
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_team_world(mp->comm), mp->rank, gin_at(a, 0),
                         gin_at_local(&b), 1, gin_no_action()),
                 GIN_ERANGE, "outside");
    EXPECT_OK(gin_window_deregister(mp->comm, a));
    EXPECT_OK(gin_window_deregister(mp->comm, b));
}

/* All ranks get the same status; texts carry both values; afterwards all goes on. */
MP_TEST_N(mismatches, "2 3")
{
    char *p = gin_malloc(mp->comm, BYTES), stack[64];
    gin_window_t win = gin_window_none(), good;
    int odd = mp->rank == mp->size - 1;
    void *unmapped = (void *)(uintptr_t)4096;
    EXPECT_FAILS(gin_window_register(mp->comm, p, odd ? 100 : 200, 0, &win), GIN_EMISMATCH, "100");
    EXPECT_HAS(gin_last_error(), "200");
    EXPECT_FAILS(gin_window_register(mp->comm, p, 64, odd ? GIN_WIN_READ_ONLY : 0, &win),
                 GIN_EMISMATCH, "flags");
    EXPECT_FAILS(gin_window_register(mp->comm, p + (odd ? 64 : 0), 64, 0, &win), GIN_EMISMATCH,
                 "offset");
    EXPECT_FAILS(gin_window_register(mp->comm, odd ? stack : p, 64, 0, &win), GIN_EMISMATCH,
                 "outside the heap");
    if (odd)
        EXPECT_FAILS(gin_window_register(mp->comm, unmapped, 64, 0, &win), GIN_EINVAL,
                     "not memory");
    else
        EXPECT_FAILS(gin_window_register(mp->comm, p, 64, 0, &win), GIN_EINVAL, "rank");
    EXPECT_FAILS(gin_window_register(mp->comm, odd ? NULL : p, 64, 0, &win), GIN_EINVAL, "");
    EXPECT_FAILS(gin_window_register(mp->comm, stack, UINT64_MAX - 4, 0, &win), GIN_ERANGE, "wrap");
    EXPECT_FAILS(gin_window_register(mp->comm, p, 64, 0, NULL), GIN_EINVAL, "NULL");
    EXPECT(gin_window_equal(win, gin_window_none()));
    EXPECT_OK(gin_window_register(mp->comm, p, 64, 0, &good));
    EXPECT_FAILS(gin_window_deregister(mp->comm, odd ? gin_window_none() : good),
                 odd ? GIN_EMISMATCH : GIN_EMISMATCH, "window");
    EXPECT_EQ_U64(query(mp, good).size, 64);
    EXPECT_OK(gin_window_deregister(mp->comm, good));
    gin_stats_t stats = {.size_of = sizeof(stats)};
    EXPECT_OK(gin_stats(mp->comm, &stats));
    EXPECT_EQ_U64(stats.windows, 1);
    EXPECT_EQ_U64(stats.registrations, 1);
    EXPECT_OK(gin_free(mp->comm, p));
}

/* One rank finds no memory for the next page of windows: all are refused, and can go on. */
MP_TEST_OPT(failure_of_one_rank, .ranks = "3", .only = MP_PROCS)
{
    enum { PAGE = 255 }; /* the heaps' windows are the first two of 256 */
    char *p = gin_malloc(mp->comm, BYTES);
    gin_window_t w[PAGE + 4];
    for (int i = 1; i < PAGE; i++)
        if (!EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &w[i])))
            return;
    if (mp->rank == 1)
        gi_os_inject(GI_OS_MMAP, 1, 1, ENOMEM);
    EXPECT_FAILS(gin_window_register(mp->comm, p, BYTES, 0, &w[PAGE]), GIN_ENOMEM,
                 mp->rank == 1 ? "windows 256 .. 511" : "rank 1");
    for (int i = PAGE; i < PAGE + 4; i++) /* the agreement compares the ids */
        EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &w[i]));
    for (int i = 1; i < PAGE + 4; i++)
        EXPECT_OK(gin_window_deregister(mp->comm, w[i]));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* Beyond the heap's end, in a peer's slot, in the library's part of mine. */
MP_TEST_N(memory_of_others, "2")
{
    char *p = gin_malloc(mp->comm, BYTES);
    gin_window_info_t heap = query(mp, gin_heap_window(mp->comm, GIN_KIND_HOST));
    gin_window_t win;
    EXPECT_FAILS(gin_window_register(mp->comm, p + 64, heap.size, 0, &win), GIN_EINVAL, "heap");
    EXPECT_FAILS(gin_window_register(mp->comm, (char *)heap.base - 8, 16, 0, &win), GIN_EINVAL,
                 "heap");
    char *there = gin_ptr(mp->comm, p, right(mp));
    if (there != NULL)
        EXPECT_FAILS(gin_window_register(mp->comm, there, 16, 0, &win), GIN_EINVAL, "peer");
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST_N(stale_handles, "1 2")
{
    char *p = gin_malloc(mp->comm, BYTES);
    gin_window_t old, new;
    gin_window_info_t i = {.size_of = sizeof(i)};
    EXPECT_OK(gin_window_register(mp->comm, p, 64, 0, &old));
    EXPECT_OK(gin_window_deregister(mp->comm, old));
    EXPECT_FAILS(gin_window_deregister(mp->comm, old), GIN_ESTATE, "not live");
    EXPECT_OK(gin_window_register(mp->comm, p, 64, 0, &new)); /* the same place */
    EXPECT(!gin_window_equal(old, new));
    EXPECT_FAILS(gin_window_query(mp->comm, old, &i), GIN_ESTATE, "not live");
    EXPECT_FAILS(gin_window_deregister(mp->comm, old), GIN_ESTATE, "not live");
    EXPECT_EQ_INT(gin_window_path(mp->comm, old, 0), GIN_PATH_NONE);
    EXPECT_EQ_INT(gin_last_status(), GIN_ESTATE);
    EXPECT_EQ_INT(gin_window_path(mp->comm, new, mp->size), GIN_PATH_NONE);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    i.size_of = 0;
    EXPECT_FAILS(gin_window_query(mp->comm, new, &i), GIN_EINVAL, "size_of");
    EXPECT_OK(gin_window_deregister(mp->comm, new));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* Nested and repeated: the smallest one, the youngest of equals. */
MP_TEST_N(innermost_window, "1 2")
{
    void *whole;
    char *p = user_memory(mp, BYTES, &whole);
    gin_window_t all, mid, inner, twin, found;
    uint64_t off;
    EXPECT_OK(gin_window_register(mp->comm, p + 1000, 16, 0, &inner));
    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &all));
    EXPECT_OK(gin_window_register(mp->comm, p + 500, 1000, 0, &mid));
    EXPECT_OK(gin_window_register(mp->comm, p + 500, 1000, 0, &twin));
    EXPECT_OK(gin_window_of(mp->comm, p + 1015, &found, &off));
    EXPECT(gin_window_equal(found, inner));
    EXPECT_EQ_U64(off, 15);
    EXPECT_OK(gin_window_of(mp->comm, p + 1016, &found, &off));
    EXPECT(gin_window_equal(found, twin));
    EXPECT_OK(gin_window_of(mp->comm, p + 1500, &found, &off));
    EXPECT(gin_window_equal(found, all));
    EXPECT_FAILS(gin_window_of(mp->comm, p + BYTES, &found, &off), GIN_ERANGE, "no window");
    EXPECT_OK(gin_window_deregister(mp->comm, twin));
    EXPECT_OK(gin_window_of(mp->comm, p + 1016, &found, &off));
    EXPECT(gin_window_equal(found, mid));
    EXPECT_OK(gin_window_deregister(mp->comm, inner));
    EXPECT_OK(gin_window_deregister(mp->comm, all));
    EXPECT_OK(gin_window_deregister(mp->comm, mid));
    free(whole);
}

/* Many cycles, then many windows on one buffer: one registration, nothing else grows. */
static void many(struct mp *mp, char *p, uint64_t registrations)
{
    enum { LIVE = 1000 };
    const int CYCLES = mp_rounds(mp, 10000);
    gin_window_t *w = calloc(LIVE, sizeof(*w)), found;
    gin_stats_t stats = {.size_of = sizeof(stats)};
    uint64_t off;
    EXPECT_OK(gin_window_register(mp->comm, p, BYTES, 0, &w[0]));
    int fds = mp_count_fds(), maps = mp_count_maps();
    for (int i = 0; i < CYCLES; i++)
        if (gin_window_register(mp->comm, p, BYTES, 0, &w[1]) != GIN_OK ||
            gin_window_deregister(mp->comm, w[1]) != GIN_OK) {
            FAIL("cycle %d: %s", i, gin_last_error());
            return;
        }
    if (!mp->threads) {
        EXPECT_EQ_INT(mp_count_fds(), fds);
        EXPECT_EQ_INT(mp_count_maps(), maps);
    }
    for (int i = 1; i < LIVE; i++)
        if (!EXPECT_OK(gin_window_register(mp->comm, p + i, BYTES - (size_t)i, 0, &w[i])))
            return;
    EXPECT_OK(gin_stats(mp->comm, &stats));
    EXPECT_EQ_U64(stats.windows, LIVE + 1);
    EXPECT_EQ_U64(stats.registrations, registrations);
    EXPECT_OK(gin_window_of(mp->comm, p + LIVE, &found, &off));
    EXPECT(gin_window_equal(found, w[LIVE - 1]));
    EXPECT_EQ_U64(off, 1);
    if (!mp->threads) {
        EXPECT_EQ_INT(mp_count_fds(), fds);
        EXPECT_EQ_INT(mp_count_maps(), maps);
    }
    for (int i = 0; i < LIVE; i++)
        EXPECT_OK(gin_window_deregister(mp->comm, w[i]));
    EXPECT_OK(gin_stats(mp->comm, &stats));
    EXPECT_EQ_U64(stats.windows, 1);
    EXPECT_EQ_U64(stats.registrations, 1);
    free(w);
}

MP_TEST_N(many_on_user_memory, "2")
{
    void *whole;
    many(mp, user_memory(mp, BYTES, &whole), 2);
    free(whole);
}

MP_TEST_N(many_on_the_heap, "2")
{
    char *p = gin_malloc(mp->comm, BYTES);
    many(mp, p, 1);
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST_N(local_memory, "1 2")
{
    char buf[256];
    for (int i = 0; i < 10000; i++)
        EXPECT_OK(gin_local_register(mp->comm, buf, sizeof(buf)));
    EXPECT_OK(gin_local_register(mp->comm, buf + 8, 16));
    EXPECT_OK(gin_local_register(mp->comm, buf, 16));
    for (int i = 0; i < 10001; i++)
        EXPECT_OK(gin_local_deregister(mp->comm, buf));
    EXPECT_FAILS(gin_local_deregister(mp->comm, buf), GIN_EINVAL, "no registered range");
    EXPECT_FAILS(gin_local_deregister(mp->comm, buf + 9), GIN_EINVAL, "no registered range");
    EXPECT_OK(gin_local_deregister(mp->comm, buf + 8));
    EXPECT_FAILS(gin_local_register(mp->comm, NULL, 8), GIN_EINVAL, "NULL");
    EXPECT_FAILS(gin_local_register(mp->comm, buf, SIZE_MAX), GIN_ERANGE, "wrap");
    EXPECT_FAILS(gin_local_register(mp->comm, (void *)(uintptr_t)4096, 8), GIN_EINVAL, "memory");
    EXPECT_OK(gin_local_register(mp->comm, NULL, 0));
    EXPECT_OK(gin_local_deregister(mp->comm, NULL));
    EXPECT_FAILS(gin_local_register(NULL, buf, 8), GIN_ESTATE, "gin_init");
}
