/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a GPU. Whether memory is a GPU's, the driver without GPU says that the tests use
 * (GINSHMEM_TEST_LIBCUDA), if this process has opened it; a DMA-BUF is a file that says where its
 * memory is (tests/cuda/fake_dmabuf.h).
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/cuda/fake_dmabuf.h"
#include "tests/providers/contract/contract.h"
#include "transport/ofi/ofi_dmabuf.h"

#define PAGE 4096u

bool gc_gpu_is(const void *addr, size_t len)
{
    static int (*_Atomic is)(unsigned long long at, size_t bytes);
    int (*ask)(unsigned long long at, size_t bytes) = is;
    if (ask == NULL) {
        const char *path = getenv("GINSHMEM_TEST_LIBCUDA");
        void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
        if (library == NULL)
            return false;
        *(void **)&ask = dlsym(library, "fake_cuda_is_gpu");
        is = ask;
    }
    return ask != NULL && ask((unsigned long long)(uintptr_t)addr, len) != 0;
}

/* What is in the buffer from its offset on. */
static int buffer_range(const struct fi_mr_dmabuf *b, struct gc_mr *mr)
{
    struct fake_dmabuf f;
    if (pread(b->fd, &f, sizeof(f), 0) != sizeof(f) || f.magic != FAKE_DMABUF_MAGIC)
        return gc_broken(-FI_EINVAL, "descriptor %d is closed, or no DMA-BUF", b->fd);
    if (b->len == 0 || b->offset > f.bytes || b->len > f.bytes - b->offset)
        return gc_broken(-FI_EINVAL, "%zu bytes at %#llx are not in a DMA-BUF of %llu", b->len,
                         (unsigned long long)b->offset, (unsigned long long)f.bytes);
    if ((uintptr_t)b->base_addr % PAGE != 0 || (uintptr_t)b->base_addr != f.base)
        return gc_broken(-FI_EINVAL, "base_addr %p is not where the DMA-BUF begins", b->base_addr);
    mr->addr = (char *)(uintptr_t)(f.base + b->offset);
    mr->len = b->len;
    return 0;
}

int gc_gpu_range(const struct gc_domain *d, const struct fi_mr_attr *attr, uint64_t flags,
                 struct gc_mr *mr)
{
    bool buffer = (flags & FI_MR_DMABUF) != 0;
    int rc = 0;
    mr->gpu = attr->iface == FI_HMEM_CUDA;
    if (attr->iface != FI_HMEM_SYSTEM && attr->iface != FI_HMEM_CUDA)
        return gc_broken(-FI_EINVAL, "memory of an unknown kind, %d", (int)attr->iface);
    if ((mr->gpu || buffer) && !d->hmem)
        return gc_broken(-FI_EINVAL, "GPU memory, but FI_HMEM was not asked for");
    if (buffer && !mr->gpu)
        return gc_broken(-FI_EINVAL, "a DMA-BUF without the interface of its memory");
    if (buffer ? !d->p->dmabuf : mr->gpu && !d->p->hmem)
        return -FI_EOPNOTSUPP; /* only trying tells */
    if (buffer) {
        rc = buffer_range((const void *)attr->mr_iov, mr);
    } else {
        mr->addr = attr->mr_iov->iov_base;
        mr->len = attr->mr_iov->iov_len;
    }
    if (rc == 0 && mr->gpu != gc_gpu_is(mr->addr, mr->len))
        rc = gc_broken(-FI_EINVAL, mr->gpu ? "host memory is registered as a GPU's"
                                           : "GPU memory is registered without its interface");
    if (rc == 0 && mr->gpu && attr->device.cuda < 0)
        rc = gc_broken(-FI_EINVAL, "GPU memory without its device");
    return rc;
}
