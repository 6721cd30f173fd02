/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory over the network, against a driver without GPU: host threads put, get, signal and
 * update words in windows of GPU memory of ranks that are not load/store accessible, over the
 * provider that there is and over what the wrapper makes of it. The CPU looks at that memory, where
 * a real one would not: what a signal or quiet tells of must be there.
 */
#include <pthread.h>
#include "tests/cuda/net_test.h"

MP_TEST_OPT(moves, .ranks = "2 3 5", .hosts = "ABCDE")
{
    all_kinds(mp, NULL);
}

MP_TEST_OPT(moves_over_shm, .ranks = "2", .only = MP_PROCS, .hosts = "AB",
            .env = "GINSHMEM_PROVIDER=shm")
{
    all_kinds(mp, NULL);
}

MP_TEST_OPT(moves_by_the_network_alone, .ranks = "2", .only = MP_THREADS)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_NET;
    all_kinds(mp, &reqs);
}

MP_TEST_OPT(moves_by_engines, .ranks = "2", .only = MP_THREADS, .hosts = "AB")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = GIN_BACKEND_ENGINE;
    all_kinds(mp, &reqs);
}

/* What the wrapper makes of a network: no order, few at a time, not now, small pieces. */
MP_TEST_OPT(moves_out_of_order, .ranks = "2", .only = MP_PROCS, .hosts = "AB",
            .env = "GINSHMEM_TEST_NET=class=C,hold=4,early=1,again=100,seed=5")
{
    all_kinds(mp, NULL);
}

MP_TEST_OPT(moves_in_small_pieces, .ranks = "2", .only = MP_PROCS, .hosts = "AB",
            .env = "GINSHMEM_TEST_NET=class=B,imm=0,max_msg=60000,depth=2,msg_max=128,local=1")
{
    all_kinds(mp, NULL);
}

/* ---- words ---- */

static uint64_t at_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Everybody adds to rank 0's words, by atomics and by signals. */
static void update_words(struct mp *mp, gin_at_t at, const uint64_t *word)
{
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    int rounds = mp_rounds(mp, 20);
    uint64_t old, seen = 0, all = (uint64_t)rounds * (uint64_t)mp->size;
    gin_at_t second = {at.win, at.off + 8}, third = {at.win, at.off + 16};
    for (int i = 0; i < rounds; i++) {
        EXPECT_OK(gin_amo_fetch_add(g, gin_thread(), w, 0, at, 1, &old));
        EXPECT(old < all && (i == 0 || old > seen));
        seen = old;
        EXPECT_OK(gin_amo_add(g, gin_thread(), w, 0, second, 3));
        EXPECT_OK(gin_signal(g, gin_thread(), w, 0, gin_strong_add_at(third, 5)));
    }
    EXPECT_OK(gin_quiet(g, gin_thread()));
    meet(mp);
    if (mp->rank == 0) {
        EXPECT_EQ_U64(at_word(&word[0]), all);
        EXPECT_EQ_U64(at_word(&word[1]), 3 * all);
        EXPECT_EQ_U64(at_word(&word[2]), 5 * all);
    }
    meet(mp);
    EXPECT_OK(gin_amo_cas(g, gin_thread(), w, mp->rank, at, mp->rank == 0 ? all : 0, 77, &old));
    EXPECT_OK(gin_amo_fetch(g, gin_thread(), w, mp->rank, at, &old));
    EXPECT_EQ_U64(old, 77);
    meet(mp);
}

static gin_at_t word_at(gin_at_t first, int i)
{
    return (gin_at_t){first.win, first.off + 8 * (uint64_t)i};
}

/* The other kinds, with data and without, of both widths; the far, the near and the owner mixed. */
static void update_all_kinds(struct mp *mp, gin_at_t at, const uint64_t *word)
{
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_group_t me = gin_thread();
    const uint64_t bit = (uint64_t)1 << mp->rank, all = ((uint64_t)1 << mp->size) - 1;
    const uint64_t value = 100 + (uint64_t)mp->rank;
    uint64_t old = 0;
    uint32_t old32 = 0;
    EXPECT_OK(gin_put_value(g, me, w, 0, word_at(at, 16 + mp->rank), value, 8,
                            gin_weak_add_at(word_at(at, 3), 7)));
    EXPECT_OK(gin_amo_or(g, me, w, 0, word_at(at, 4), bit));
    EXPECT_OK(gin_amo_xor(g, me, w, 0, word_at(at, 5), bit));
    EXPECT_OK(gin_amo_add32(g, me, w, 0, word_at(at, 6), 3));
    EXPECT_OK(gin_amo_fetch_add32(g, me, w, 0, (gin_at_t){at.win, at.off + 8 * 6 + 4}, 2, &old32));
    EXPECT(old32 < 2 * (uint32_t)mp->size && old32 % 2 == 0);
    EXPECT_OK(gin_signal(g, me, w, 0, gin_set_at(word_at(at, 8 + mp->rank), value)));
    EXPECT_OK(gin_amo_swap(g, me, w, 0, word_at(at, 24 + mp->rank), value, &old));
    EXPECT_EQ_U64(old, 0);
    EXPECT_OK(gin_quiet(g, me));
    meet(mp);
    for (int r = 0; mp->rank == 0 && r < mp->size; r++) {
        EXPECT_EQ_U64(at_word(&word[8 + r]), 100 + (uint64_t)r);
        EXPECT_EQ_U64(at_word(&word[16 + r]), 100 + (uint64_t)r);
        EXPECT_EQ_U64(at_word(&word[24 + r]), 100 + (uint64_t)r);
    }
    if (mp->rank == 0) {
        EXPECT_EQ_U64(at_word(&word[3]), 7 * (uint64_t)mp->size);
        EXPECT_EQ_U64(at_word(&word[4]), all);
        EXPECT_EQ_U64(at_word(&word[5]), all);
        EXPECT_EQ_U64(at_word(&word[6]), ((uint64_t)mp->size * 2 << 32) + 3 * (uint64_t)mp->size);
    }
    meet(mp);
}

#define WORDS (32 * sizeof(uint64_t))

static void words(struct mp *mp, unsigned flags, gin_devcomm_reqs_t *reqs)
{
    gin_window_t win;
    if (!mp_net(mp, reqs))
        return;
    uint64_t *word = (uint64_t *)(void *)block(mp, GIN_KIND_CUDA, WORDS);
    if (word == NULL)
        return;
    memset(word, 0, WORDS);
    EXPECT_OK(gin_window_register(mp->comm, word, WORDS, flags, &win));
    meet(mp);
    update_words(mp, gin_at(win, 0), word);
    update_all_kinds(mp, gin_at(win, 0), word);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_free(mp->comm, word));
}

MP_TEST_OPT(words_far, .ranks = "2 3", .hosts = "ABC")
{
    words(mp, 0, NULL);
}

MP_TEST_OPT(words_near_and_far, .ranks = "4", .only = MP_THREADS, .hosts = "AABB")
{
    words(mp, 0, NULL);
}

/* The network is there for the asking; the words are their owner's all the same. */
MP_TEST_OPT(words_of_windows_without_lsa, .ranks = "2", .only = MP_THREADS)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_NET;
    words(mp, GIN_WIN_NO_LSA, &reqs);
}

/* Where GPUs' own atomics update words, nobody else does. */
MP_TEST_OPT(words_of_gpus, .ranks = "2", .only = MP_THREADS)
{
    gin_devcomm_reqs_t reqs;
    uint64_t old = 0;
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_NET;
    if (!mp_net(mp, &reqs))
        return;
    uint64_t *word = (uint64_t *)(void *)block(mp, GIN_KIND_CUDA, 64);
    gin_team_t w = gin_world(&mp->g);
    if (word == NULL)
        return;
    memset(word, 0, 64);
    meet(mp);
    gin_at_t at = gin_at_ptr(&mp->g, word);
    EXPECT_FAILS(gin_amo_add(&mp->g, gin_thread(), w, right(mp), at, 1), GIN_ENOTSUP, "atomics");
    EXPECT_OK(gin_amo_set(&mp->g, gin_thread(), w, right(mp), at, 9));
    EXPECT_OK(gin_amo_fetch(&mp->g, gin_thread(), w, right(mp), at, &old));
    EXPECT_EQ_U64(old, 9);
    meet(mp);
    EXPECT_OK(gin_free(mp->comm, word));
}

/* ---- order ---- */

MP_TEST_OPT(order_far, .ranks = "2 3", .only = MP_THREADS, .hosts = "ABC")
{
    order(mp);
}

MP_TEST_OPT(order_unordered, .ranks = "2", .only = MP_PROCS, .hosts = "AB",
            .env = "GINSHMEM_TEST_NET=class=C,hold=4,early=1,seed=9")
{
    order(mp);
}

/* ---- a few bytes by GDRCopy ---- */

#define GDR "GINSHMEM_TEST_LIBGDR=" FAKE_GDR

static long gdr_copies(void)
{
    void *library = dlopen(FAKE_GDR, RTLD_NOW | RTLD_NOLOAD);
    long (*copies)(void) = NULL;
    if (library == NULL)
        return 0;
    *(void **)&copies = dlsym(library, "fake_gdr_copies");
    dlclose(library);
    return copies();
}

static bool says(struct mp *mp, const char *text)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_OK(gin_query(mp->comm, &caps));
    return strstr(caps.cap[GIN_CAP_GPU_NET].reason, text) != NULL;
}

MP_TEST_OPT(few_bytes_by_the_cpu, .ranks = "2 3", .hosts = "ABC", .env = GDR)
{
    all_kinds(mp, NULL);
    EXPECT(says(mp, "GDRCopy"));
    EXPECT(gdr_copies() >= 3);
}

MP_TEST_OPT(words_by_the_cpu, .ranks = "2", .hosts = "AB", .env = GDR)
{
    long before = gdr_copies();
    words(mp, 0, NULL);
    if (mp->rank == 0)
        EXPECT(gdr_copies() >= before + 2 * mp_rounds(mp, 20));
}

/* The heap grows, and windows come and go. */
MP_TEST_OPT(memory_that_is_mapped_later, .ranks = "2", .hosts = "AB", .only = MP_PROCS, .env = GDR)
{
    const gin_t *g = &mp->g;
    fake_use(mp->rank % 2);
    if (!mp_net(mp, NULL))
        return;
    char *src = block(mp, GIN_KIND_CUDA, 64), *more = block(mp, GIN_KIND_CUDA, 6000 * K);
    unsigned long long base = 0;
    for (uint64_t i = 1; i <= 80; i++) {
        gin_window_t win;
        if (i % 16 == 1)
            EXPECT(((int (*)(void *, size_t))fake("cuMemAlloc_v2"))(&base, 300 * K) == 0);
        char *p = (char *)(uintptr_t)(base + i * 1000);
        EXPECT_OK(gin_window_register(mp->comm, p, 100, 0, &win));
        mp_poison(src, 64, seed_of(i, mp->rank));
        meet(mp);
        long before = gdr_copies();
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), gin_at(win, 8),
                          gin_at_ptr(g, src), 64, gin_strong_inc(1)));
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), gin_at_ptr(g, more + 5900 * K),
                          gin_at_ptr(g, src), 64, gin_strong_inc(1)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, 2 * i));
        EXPECT(gdr_copies() >= before + 2);
        MP_CHECK_PATTERN(p + 8, 64, seed_of(i, left(mp)));
        MP_CHECK_PATTERN(more + 5900 * K, 64, seed_of(i, left(mp)));
        meet(mp);
        EXPECT_OK(gin_window_deregister(mp->comm, win));
    }
}

/* A thread that puts into a window, while others beside it come and go. */
struct putter {
    struct mp *mp;
    gin_at_t to, from;
    _Atomic int stop;
};

static void *put_on(void *arg)
{
    struct putter *p = arg;
    gin_t g;
    if (!EXPECT_OK(gin_open(&p->mp->dev, 1, &g)))
        return NULL;
    while (p->stop == 0) {
        EXPECT_OK(gin_put(&g, gin_thread(), gin_world(&g), right(p->mp), p->to, p->from, 64,
                          gin_no_action()));
        EXPECT_OK(gin_quiet(&g, gin_thread()));
    }
    return NULL;
}

static void come_and_go(struct mp *mp, void *memory, size_t n, uint32_t flags, int times)
{
    gin_window_t win;
    for (int i = 0; i < times; i++) {
        EXPECT_OK(gin_window_register(mp->comm, memory, n, flags, &win));
        EXPECT_OK(gin_window_deregister(mp->comm, win));
    }
}

/* They share pages of the GPU, so each may be reached by the mapping of another. */
MP_TEST_OPT(windows_beside_each_other, .ranks = "2", .hosts = "AB", .only = MP_PROCS, .env = GDR)
{
    const gin_t *g = &mp->g;
    unsigned long long base = 0;
    gin_window_t first, win;
    pthread_t thread;
    fake_use(mp->rank % 2);
    if (!mp_net(mp, NULL))
        return;
    char *src = block(mp, GIN_KIND_CUDA, 64);
    mp_poison(src, 64, seed_of(1, mp->rank));
    come_and_go(mp, src, 64, GIN_WIN_NO_LSA, 80); /* more than can be mapped at a time */
    EXPECT(((int (*)(void *, size_t))fake("cuMemAlloc_v2"))(&base, 300 * K) == 0);
    char *memory = (char *)(uintptr_t)base;
    EXPECT_OK(gin_window_register(mp->comm, memory, 100, 0, &first));
    EXPECT_OK(gin_window_register(mp->comm, memory + 1000, 100, 0, &win));
    EXPECT_OK(gin_window_deregister(mp->comm, first)); /* its place is taken by others again */
    struct putter p = {.mp = mp, .to = gin_at(win, 8), .from = gin_at_ptr(g, src)};
    if (pthread_create(&thread, NULL, put_on, &p) != 0) {
        FAIL("no thread");
        return;
    }
    come_and_go(mp, memory + 2000, 100, 0, 60);
    p.stop = 1;
    pthread_join(thread, NULL);
    long before = gdr_copies();
    meet(mp);
    EXPECT_OK(
        gin_put(g, gin_thread(), gin_world(g), right(mp), p.to, p.from, 64, gin_strong_inc(1)));
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, 1));
    EXPECT(gdr_copies() >= before + 2);
    MP_CHECK_PATTERN(memory + 1008, 64, seed_of(1, left(mp)));
    meet(mp);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
}

static void by_the_gpu(struct mp *mp)
{
    all_kinds(mp, NULL);
    EXPECT(!says(mp, "GDRCopy"));
    EXPECT_EQ_INT(gdr_copies(), 0);
}

MP_TEST_OPT(gdrcopy_without_its_module, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = GDR " FAKE_GDR=unloaded")
{
    by_the_gpu(mp);
}

MP_TEST_OPT(gdrcopy_switched_off, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = GDR " GINSHMEM_DISABLE_GDRCOPY=1")
{
    by_the_gpu(mp);
}

/* What the CPU writes there may be seen behind the signal. */
MP_TEST_OPT(gdrcopy_without_order, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = GDR " FAKE_CUDA_RDMA=flush")
{
    by_the_gpu(mp);
}

/* ---- more than there are slabs ---- */

MP_TEST_OPT(many_at_a_time, .ranks = "3", .hosts = "ABC", .only = MP_PROCS)
{
    const gin_t *g = &mp->g;
    enum { N = 24 };
    const size_t each = 300 * K;
    if (!mp_net(mp, NULL))
        return;
    gin_team_t w = gin_world(g);
    char *src = block(mp, GIN_KIND_CUDA, each), *dst = block(mp, GIN_KIND_CUDA, N * each);
    if (src == NULL || dst == NULL)
        return;
    mp_poison(src, each, (uint64_t)mp->rank);
    meet(mp);
    if (mp->rank == 1)
        fake_hold(1); /* nothing arrives on this GPU, and nothing leaves it */
    for (int i = 0; i < N; i++)
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), gin_at_ptr(g, dst + (size_t)i * each),
                          gin_at_ptr(g, src), each, gin_weak_inc(3)));
    usleep(20000);
    if (mp->rank == 1)
        fake_hold(0);
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 3, N));
    for (int i = 0; i < N; i++)
        MP_CHECK_PATTERN(dst + (size_t)i * each, each, (uint64_t)left(mp));
    meet(mp);
    EXPECT_OK(gin_free(mp->comm, src));
    EXPECT_OK(gin_free(mp->comm, dst));
}

/* ---- a rank dies while its memory is being filled ---- */

MP_TEST_OPT(death, .ranks = "3", .hosts = "ABC", .only = MP_PROCS)
{
    const gin_t *g = &mp->g;
    const size_t n = 2048 * K;
    mp_expect_death(mp, 1);
    if (!mp_net(mp, NULL))
        return;
    gin_team_t w = gin_world(g);
    char *src = block(mp, GIN_KIND_CUDA, n), *dst = block(mp, GIN_KIND_CUDA, n);
    if (src == NULL || dst == NULL)
        return;
    memset(src, mp->rank + 1, n);
    meet(mp);
    if (mp->rank == 1) {
        usleep(2000);
        _exit(3);
    }
    int st = GIN_OK;
    for (int i = 0; i < 100000 && st == GIN_OK; i++) {
        st = gin_put(g, gin_thread(), w, 1, gin_at_ptr(g, dst), gin_at_ptr(g, src), n,
                     gin_weak_inc(0));
        if (st == GIN_OK)
            st = gin_quiet(g, gin_thread());
    }
    EXPECT(st == GIN_EPEER || st == GIN_ENET);
    mp->dev.magic = 0;
    EXPECT(gin_finalize(mp->comm) != GIN_OK);
    mp->comm = NULL;
}
