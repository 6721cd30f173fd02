/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory by libfabric itself, over a provider that keeps the contracts of those with such
 * memory (tests/providers/contract) and ends the program where one is broken: interface, hints,
 * buffers and their offsets, descriptors of local memory. The driver is the one without GPU, and
 * libfabric is taken for one that has FI_MR_DMABUF.
 */
#include "net_up.h"
#include "tests/cuda/net_test.h"
#include "transport/ofi/ofi.h"

#define CONTRACT(name, with, provider)                                     \
    "GINCONTRACT=" name " GINCONTRACT_WITH=" with " GINCONTRACT_STRICT=1 " \
    "FI_PROVIDER_PATH=" CONTRACTS " GINSHMEM_PROVIDER=" provider " GINSHMEM_LOG=error"

static const void *newer(int rank)
{
    static const struct gi_ofi_more more = {.dmabuf = true};
    (void)rank;
    return &more;
}

__attribute__((constructor)) static void use_newer(void)
{
    gi_net_use(&gi_ofi_ops, newer);
}

static bool up(struct mp *mp, const char *text)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    if (access(CONTRACTS "/libgincontract-fi.so", R_OK) != 0) {
        mp_skip(mp, "the provider was not built as a shared object");
        return false;
    }
    fake_use(mp->rank % 2);
    if (!mp_net(mp, NULL))
        return false;
    EXPECT_OK(gin_free(mp->comm, block(mp, GIN_KIND_CUDA, 64)));
    EXPECT_OK(gin_query(mp->comm, &caps));
    if (strstr(caps.cap[GIN_CAP_GPU_NET].reason, text) != NULL)
        return true;
    FAIL("gpu-net: \"%s\", without \"%s\"", caps.cap[GIN_CAP_GPU_NET].reason, text);
    return false;
}

/* Windows anywhere in an allocation, whole and to the byte. */
static void windows(struct mp *mp, uint64_t *signals)
{
    const gin_t *g = &mp->g;
    unsigned long long base = 0;
    EXPECT(((int (*)(void *, size_t))fake("cuMemAlloc_v2"))(&base, 100 * K) == 0);
    char *src = block(mp, GIN_KIND_CUDA, 70 * K);
    for (size_t off = 8; off < 9000; off += 4088) {
        gin_window_t win;
        char *p = (char *)(uintptr_t)(base + off);
        size_t n = 60000 + off;
        memset((char *)(uintptr_t)base, 0x7e, 100 * K);
        mp_poison(src, n, seed_of(off, mp->rank));
        EXPECT_OK(gin_window_register(mp->comm, p, n, 0, &win));
        meet(mp);
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), gin_at(win, 0),
                          gin_at_ptr(g, src), n, gin_strong_inc(1)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, ++*signals));
        MP_CHECK_PATTERN(p, n, seed_of(off, left(mp)));
        EXPECT_FILLED(p + n, 64, 0x7e);
        EXPECT_EQ_INT(p[-1], 0x7e);
        meet(mp);
        EXPECT_OK(gin_window_deregister(mp->comm, win));
    }
}

static void all(struct mp *mp, const char *text)
{
    uint64_t signals = 0;
    if (!up(mp, text))
        return;
    there_and_back(mp, GIN_KIND_HOST, GIN_KIND_CUDA, &signals);
    there_and_back(mp, GIN_KIND_CUDA, GIN_KIND_CUDA, &signals);
    windows(mp, &signals);
}

MP_TEST_OPT(connectionless_by_dmabuf, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = CONTRACT("verbs", "hmem,dmabuf", "gincontract"))
{
    all(mp, "registered as DMA-BUF");
}

MP_TEST_OPT(connectionless_by_pointer, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = CONTRACT("stream", "hmem", "gincontract"))
{
    all(mp, "registered by FI_HMEM");
}

MP_TEST_OPT(connected_by_dmabuf, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = CONTRACT("verbs-msg", "dmabuf", "verbs-msg"))
{
    all(mp, "registered as DMA-BUF");
}

MP_TEST_OPT(unordered_by_dmabuf, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = CONTRACT("efa-direct", "hmem,dmabuf", "efa-direct"))
{
    all(mp, "registered as DMA-BUF");
}

MP_TEST_OPT(bound_to_an_endpoint, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = CONTRACT("cxi-relaxed", "hmem,dmabuf", "cxi"))
{
    all(mp, "registered as DMA-BUF");
}

/* Neither is there: it is opened again as if nobody had GPU memory. */
MP_TEST_OPT(offered_and_refused, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = CONTRACT("stream", "hmem,calls", "gincontract"))
{
    all(mp, "may call CUDA");
}
