/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast addresses against the driver without GPU: made by all ranks or by none, undone whatever
 * fails, refused with the reason where they are not wanted or cannot be had.
 */
#include <string.h>
#include "tests/cuda/cuda_test.h"

#define M ((size_t)1 << 20)

/* One GPU per rank. */
#define GPUS "FAKE_CUDA_DEVICES=8"

/* The driver is the fake one, whatever the machine's owner has switched off. */
__attribute__((constructor)) static void allow(void)
{
    unsetenv("GINSHMEM_DISABLE_MULTIMEM");
    unsetenv("NCCL_NVLS_ENABLE");
    unsetenv("NVSHMEM_DISABLE_NVLS");
}

static gin_devcomm_reqs_t asking(uint32_t how)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    r.backend = GIN_BACKEND_DIRECT;
    r.multimem = how;
    return r;
}

static void refused(struct mp *mp, const char *why)
{
    gin_devcomm_reqs_t r = asking(GIN_MULTIMEM_NEEDED);
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &mp->dev), GIN_ENOTSUP, why);
    r.multimem = GIN_MULTIMEM_WISHED;
    if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
        return;
    EXPECT_EQ_U64(cuda_dc(mp)->multimem, 0);
    EXPECT_EQ_U64(cuda_dc(mp)->barriers->fixed[GIN_BARRIER_WORLD].multimem, 0);
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT(caps.cap[GIN_CAP_MULTIMEM].have <= 0);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
}

MP_TEST_OPT(addresses_for_all, .ranks = "2 3 5", .env = GPUS)
{
    gin_devcomm_reqs_t r = asking(GIN_MULTIMEM_NEEDED);
    gin_caps_t caps = {.size = sizeof(caps)};
    char *p = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 6 * M); /* the heap has grown */
    EXPECT(p != NULL);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    long live = fake_live();
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    for (int i = 0; i < 3; i++) {
        if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
            return;
        const struct gin_i_dc *dc = cuda_dc(mp);
        const struct gin_i_pool *world = &dc->barriers->fixed[GIN_BARRIER_WORLD];
        const struct gin_i_pool *rail = &dc->barriers->fixed[GIN_BARRIER_RAIL];
        EXPECT(dc->multimem != 0 && dc->multimem != dc->reach.lsa_base);
        EXPECT_EQ_U64(world->multimem - dc->multimem,
                      world->peers[world->me] - dc->reach.lsa_base -
                          (uint64_t)dc->reach.lsa_rank * dc->reach.lsa_stride);
        EXPECT_EQ_U64(rail->multimem, 0); /* a team of its own */
        EXPECT_OK(gin_query(mp->comm, &caps));
        EXPECT_EQ_INT(caps.cap[GIN_CAP_MULTIMEM].have, 1);
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    gin_devcomm_reqs_t plain = asking(GIN_MULTIMEM_NONE); /* what comes up with the first one */
    EXPECT_OK(gin_devcomm_create(mp->comm, &plain, &mp->dev));
    EXPECT_EQ_U64(cuda_dc(mp)->multimem, 0);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT(fake_live() >= live);
    EXPECT_OK(gin_free(mp->comm, p));
}

/* Two may live at once, and finalize takes what was forgotten. */
MP_TEST_OPT(two_at_once, .ranks = "2 3", .env = GPUS, .bare = true)
{
    gin_devcomm_reqs_t r = asking(GIN_MULTIMEM_WISHED);
    gin_devcomm_t a, b;
    if (!mp_up(mp))
        return;
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &a));
    EXPECT(gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 9 * M) != NULL);
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &b));
    EXPECT(((const struct gin_i_dc *)(uintptr_t)a.state)->multimem !=
           ((const struct gin_i_dc *)(uintptr_t)b.state)->multimem);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &a));
    if (!mp_down(mp))
        return;
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_EQ_INT(fake_live(), 0);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
}

/* One rank fails in one call: all are told, nothing is left, and the next try succeeds. */
static void failing(struct mp *mp, int who, const char *entry, unsigned nth)
{
    gin_devcomm_reqs_t r = asking(GIN_MULTIMEM_NEEDED);
    mp_step(mp, "%s by rank %d", entry, who);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    long live = fake_live();
    if (mp->rank == who)
        fake_fail(entry, nth, 2);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    int st = gin_devcomm_create(mp->comm, &r, &mp->dev);
    EXPECT_EQ_INT(st, GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), entry);
    if (mp->rank != who)
        EXPECT_HAS(gin_last_error(), "rank");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_EQ_INT(fake_live(), live);
    fake_fail("", 0, 0);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
}

MP_TEST_OPT(failures_are_undone, .ranks = "2 3", .env = GPUS, .only = MP_PROCS)
{
    gin_devcomm_reqs_t r = asking(GIN_MULTIMEM_NEEDED);
    /* what comes up with the first device communicator is there already */
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    failing(mp, 0, "cuMulticastGetGranularity", 1);
    failing(mp, 0, "cuMulticastCreate", 1);
    failing(mp, 0, "cuMemExportToShareableHandle", 1);
    failing(mp, mp->size - 1, "cuMemImportFromShareableHandle", 1);
    for (int who = 0; who < mp->size; who += mp->size - 1) {
        failing(mp, who, "cuMulticastAddDevice", 1);
        failing(mp, who, "cuMulticastBindAddr", 1);
        failing(mp, who, "cuMemAddressReserve", 1);
        failing(mp, who, "cuMemMap", 1);
        failing(mp, who, "cuMemSetAccess", 1);
    }
    char *p = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 6 * M);
    EXPECT(p != NULL);
    failing(mp, mp->size - 1, "cuMulticastBindAddr", 2); /* the second piece */
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST_OPT(switched_off, .ranks = "2", .env = GPUS " GINSHMEM_DISABLE_MULTIMEM=1")
{
    refused(mp, "GINSHMEM_DISABLE_MULTIMEM=1");
}

MP_TEST_OPT(off_for_nccl, .ranks = "2", .env = GPUS " NCCL_NVLS_ENABLE=0")
{
    refused(mp, "NCCL_NVLS_ENABLE=0");
}

MP_TEST_OPT(off_for_nvshmem, .ranks = "2", .env = GPUS " NVSHMEM_DISABLE_NVLS=1")
{
    refused(mp, "NVSHMEM_DISABLE_NVLS=1");
}

MP_TEST_OPT(off_on_one_rank, .ranks = "3", .env = GPUS, .only = MP_PROCS, .bare = true)
{
    if (mp->rank == 1)
        setenv("GINSHMEM_DISABLE_MULTIMEM", "1", 1);
    if (!mp_up(mp))
        return;
    refused(mp, mp->rank == 1 ? "multimem" : "rank 1: multimem");
    mp_down(mp);
}

MP_TEST_OPT(shared_gpus, .ranks = "3", .env = "FAKE_CUDA_DEVICES=2")
{
    refused(mp, "ranks 0 and 2 share a GPU");
}

MP_TEST_OPT(alone, .ranks = "1", .env = GPUS)
{
    refused(mp, "no other rank");
}

MP_TEST_OPT(coarse_pieces, .ranks = "2", .env = GPUS " FAKE_CUDA_MULTICAST_GRANULE=536870912")
{
    refused(mp, "GINSHMEM_HEAP_CHUNK");
}

MP_TEST_OPT(old_hardware, .ranks = "2", .env = GPUS " FAKE_CUDA_NO_MULTICAST=1")
{
    refused(mp, "has no multicast");
}

MP_TEST_OPT(wishes_must_agree, .ranks = "2", .env = GPUS)
{
    gin_devcomm_reqs_t r = asking(mp->rank == 0 ? GIN_MULTIMEM_NEEDED : GIN_MULTIMEM_WISHED);
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &mp->dev), GIN_EMISMATCH, "multimem");
    r = asking(3);
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &mp->dev), GIN_ERANGE, "multimem");
}
