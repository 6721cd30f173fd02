/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of host threads meet GPU memory: refused by name, whatever it is named by. */
#include <cuda.h>
#include <string.h>
#include "tests/cuda/cuda_test.h"

#define BYTES 65536

#define NAME(f)  NAME_(f)
#define NAME_(f) #f
#define DRV(f)   ((__typeof__(f) *)fake(NAME(f)))

static int cast(struct mp *mp, gin_at_t dst, gin_at_t src)
{
    return gin_allreduce(&mp->g, gin_thread(), gin_world(&mp->g), 0, dst, src, 100, GIN_INT32,
                         GIN_SUM);
}

static void meets_gpu_memory(struct mp *mp, bool alone)
{
    CUdeviceptr gpu = 0;
    void *pinned = NULL;
    static _Thread_local int32_t mine[100];
    if (!mp_dev(mp, NULL))
        return;
    fake_use(mp->rank % 2);
    EXPECT_EQ_INT(DRV(cuMemAlloc)(&gpu, BYTES), 0);
    EXPECT_EQ_INT(DRV(cuMemHostAlloc)(&pinned, BYTES, 0), 0);
    gin_at_t host = gin_at_local(mine), far = gin_at_local((void *)(uintptr_t)gpu),
             near = gin_at_local(pinned);
    far = alone && mp->rank != 0 ? host : far;
    EXPECT_FAILS(cast(mp, far, near), GIN_ENOTSUP, alone ? "" : "dst is GPU memory");
    EXPECT_FAILS(cast(mp, near, far), GIN_ENOTSUP, alone ? "" : "src is GPU memory");
    if (!alone)
        EXPECT_FAILS(cast(mp, host, gin_at_local((char *)(uintptr_t)fake_mixed(BYTES) + BYTES - 4)),
                     GIN_EINVAL, "begins in GPU memory");
    for (int i = 0; i < 100; i++)
        ((int32_t *)pinned)[i] = mp->rank + i;
    EXPECT_OK(cast(mp, host, near));
    for (int i = 0; i < 100; i++)
        if (!EXPECT(mine[i] == mp->size * i + mp->size * (mp->size - 1) / 2))
            break;
    EXPECT_EQ_INT(DRV(cuMemFreeHost)(pinned), 0);
    EXPECT_EQ_INT(DRV(cuMemFree)(gpu), 0);
    fake_use(-1);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(gpu_memory_is_refused, .ranks = "1 2")
{
    meets_gpu_memory(mp, false);
}

MP_TEST_OPT(gpu_memory_of_one_is_refused_to_all, .ranks = "2 3", .env = "GINSHMEM_CHECK=1")
{
    meets_gpu_memory(mp, true);
}
