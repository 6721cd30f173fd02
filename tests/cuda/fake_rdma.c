/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake driver for other devices: memory as a DMA-BUF, and the flush behind what they write.
 * FAKE_CUDA_RDMA takes words: "flush", the GPU has to be told of what arrives; "blind", it has to
 * be and cannot be; "nodmabuf", memory is not exported.
 */
#include "tests/cuda/fake_cuda.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/cuda/fake_dmabuf.h"
#include "tests/cuda/fake_int.h"

#define PAGE 4096u

static long flushes;

static bool has_word(const char *word)
{
    const char *words = getenv("FAKE_CUDA_RDMA");
    return words != NULL && strstr(words, word) != NULL;
}

bool fake_rdma_attribute(int what, int *value)
{
    bool waits = has_word("flush") || has_word("blind");
    switch (what) {
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
        *value = waits ? CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE
                       : CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
        return true;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
        *value = has_word("blind") ? 0 : CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
        return true;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: *value = !has_word("nodmabuf"); return true;
    default: return false;
    }
}

/* Memory of a GPU that holds all of it, in one allocation. */
static struct thing *memory_at(uintptr_t at, size_t bytes)
{
    static const enum kind kinds[] = {MAPPED, PLAIN, POOL};
    struct thing *t = NULL;
    for (size_t i = 0; t == NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        t = fake_around(kinds[i], at, bytes);
    return t;
}

API int fake_cuda_is_gpu(unsigned long long at, size_t bytes)
{
    pthread_mutex_lock(&fake_lock);
    bool is = memory_at(at, 1) != NULL && memory_at(at + bytes - 1, 1) != NULL;
    pthread_mutex_unlock(&fake_lock);
    return is;
}

API long fake_cuda_flushes(void)
{
    return __atomic_load_n(&flushes, __ATOMIC_RELAXED);
}

API CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr at, size_t bytes,
                                           CUmemRangeHandleType type, unsigned long long flags)
{
    struct fake_dmabuf b = {.magic = FAKE_DMABUF_MAGIC, .base = at, .bytes = bytes};
    ENTER();
    if (has_word("nodmabuf") || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
        LEAVE(CUDA_ERROR_NOT_SUPPORTED);
    struct thing *t = memory_at(at, 1);
    /* Whole pages, of one allocation. */
    if (flags != 0 || at % PAGE != 0 || bytes % PAGE != 0 || bytes == 0 || t == NULL ||
        at + bytes > t->at + (t->bytes + PAGE - 1) / PAGE * PAGE)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    int fd = memfd_create("fake-dmabuf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &b, sizeof(b)) != sizeof(b))
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    *(int *)handle = fd;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                        CUflushGPUDirectRDMAWritesScope scope)
{
    ENTER();
    CUresult r = fake_usable();
    if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
        scope < CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER || has_word("blind"))
        r = CUDA_ERROR_INVALID_VALUE;
    __atomic_add_fetch(&flushes, r == CUDA_SUCCESS, __ATOMIC_RELAXED);
    LEAVE(r);
}

API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute what, CUdeviceptr at)
{
    ENTER();
    if (what != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || *(const unsigned *)value != 1)
        LEAVE(CUDA_ERROR_INVALID_VALUE);
    LEAVE(fake_around(PLAIN, at, 1) != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
}
