/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a GPU, which the driver without GPU makes: how it is registered, and how it is not. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/providers/t_contract.h"
#include "transport/ofi/ofi_dmabuf.h"

#define PAGE  4096u
#define BYTES (64u << 10)

static void *driver;

static void *entry(const char *name)
{
    void *at = dlsym(driver, name);
    if (at == NULL)
        abort();
    return at;
}

/* Memory of a GPU, or NULL: this build has no such driver. */
static unsigned char *gpu_memory(void)
{
    char exe[PATH_MAX], lib[PATH_MAX + 64];
    unsigned long long at = 0;
    void *context = NULL;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    snprintf(lib, sizeof(lib), "%s/../cuda/.libs/fake_cuda.so", dirname(exe));
    driver = access(lib, R_OK) == 0 ? dlopen(lib, RTLD_NOW) : NULL;
    if (driver == NULL)
        return NULL;
    setenv("GINSHMEM_TEST_LIBCUDA", lib, 1);
    ((int (*)(void **, int))entry("cuDevicePrimaryCtxRetain"))(&context, 0);
    ((int (*)(void *))entry("cuCtxSetCurrent"))(context);
    CHECK(((int (*)(unsigned long long *, size_t))entry("cuMemAlloc_v2"))(&at, BYTES) == 0);
    return (unsigned char *)(uintptr_t)at;
}

/* Of the GPU's [at, at + bytes), which are whole pages. */
static int dmabuf_of(const unsigned char *at, size_t bytes)
{
    int fd = -1;
    int (*get)(void *fd, unsigned long long at, size_t bytes, int type, unsigned long long flags) =
        (int (*)(void *, unsigned long long, size_t, int, unsigned long long))entry(
            "cuMemGetHandleForAddressRange");
    CHECK(get(&fd, (uintptr_t)at, bytes, 1, 0) == 0);
    return fd;
}

static int reg(struct world *w, const void *range, enum fi_hmem_iface iface, uint64_t flags,
               struct fid_mr **mr)
{
    static uint64_t key = 5000;
    struct fi_mr_attr attr = {.mr_iov = range,
                              .iov_count = 1,
                              .requested_key = key++,
                              .iface = iface,
                              .access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                                        FI_REMOTE_WRITE};
    return fi_mr_regattr(w->domain, &attr, flags, mr);
}

static int reg_pointer(struct world *w, void *at, enum fi_hmem_iface iface, struct fid_mr **mr)
{
    struct iovec iov = {at, BYTES};
    return reg(w, &iov, iface, 0, mr);
}

/* Opened as by somebody who has GPU memory. */
static unsigned char *open_with_gpu(struct world *w)
{
    unsigned char *at = gpu_memory();
    setenv("W_HMEM", "1", 1);
    w_open(w);
    return at;
}

/* A write of from[0..7] to the 8 bytes at `at`, of this registration. */
static void write_there(struct world *w, struct fid_mr *mr, const unsigned char *start,
                        const unsigned char *at)
{
    struct post p = w_post(w);
    bool virt = (w->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    p.key = fi_mr_key(mr);
    p.addr = virt ? (uintptr_t)at : (uint64_t)(at - start);
    CHECK(W_WRITE(w, &p) == 0 && w_wait(w, 5000) == 1);
    for (int i = 0; i < 5000 && at[7] != 0x5a; i++)
        w_drive(w);
    CHECK(memcmp(at, w->from, 8) == 0);
}

RULE_WITH(gpu_memory_without_the_hint, "verbs", "hmem")
{
    unsigned char *at = gpu_memory();
    struct fid_mr *mr;
    w_open(w);
    if (at == NULL)
        return;
    CHECK(reg_pointer(w, at, FI_HMEM_CUDA, &mr) == -FI_EINVAL);
    SAID("FI_HMEM was not asked for");
}

RULE_WITH(gpu_memory_without_the_mode, "verbs", "hmem")
{
    struct fi_info *info = NULL, *h = w_hints();
    h->caps |= FI_HMEM;
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info) == -FI_ENODATA);
    h->domain_attr->mr_mode |= FI_MR_HMEM;
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info) == 0);
}

RULE(no_gpu_memory, "verbs")
{
    struct fi_info *info = NULL, *h = w_hints();
    h->caps |= FI_HMEM;
    h->domain_attr->mr_mode |= FI_MR_HMEM;
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info) == -FI_ENODATA);
}

RULE_WITH(gpu_memory_without_its_interface, "verbs", "hmem")
{
    unsigned char *at = open_with_gpu(w);
    struct fid_mr *mr;
    if (at == NULL)
        return;
    CHECK(reg_pointer(w, at, FI_HMEM_SYSTEM, &mr) == -FI_EINVAL);
    SAID("without its interface");
    CHECK(reg_pointer(w, w->from, FI_HMEM_CUDA, &mr) == -FI_EINVAL);
    SAID("host memory");
    CHECK(reg_pointer(w, at, FI_HMEM_CUDA, &mr) == 0);
    write_there(w, mr, at, at + 4000);
}

RULE_WITH(buffers_where_there_are_none, "verbs", "hmem")
{
    unsigned char *at = open_with_gpu(w);
    struct fid_mr *mr;
    if (at == NULL)
        return;
    struct fi_mr_dmabuf b = {.fd = dmabuf_of(at, BYTES), .len = BYTES, .base_addr = at};
    CHECK(reg(w, &b, FI_HMEM_CUDA, FI_MR_DMABUF, &mr) == -FI_EOPNOTSUPP);
}

RULE_WITH(buffers, "verbs", "dmabuf")
{
    unsigned char *at = open_with_gpu(w);
    struct fid_mr *mr;
    if (at == NULL)
        return;
    CHECK(reg_pointer(w, at, FI_HMEM_CUDA, &mr) == -FI_EOPNOTSUPP);
    struct fi_mr_dmabuf good = {
        .fd = dmabuf_of(at + PAGE, 2 * PAGE), .offset = 80, .len = PAGE, .base_addr = at + PAGE};
    struct fi_mr_dmabuf b = good;
    CHECK(reg(w, &b, FI_HMEM_SYSTEM, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    SAID("without the interface");
    b.offset = 2 * PAGE - 79;
    b.len = 80;
    CHECK(reg(w, &b, FI_HMEM_CUDA, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    SAID("not in a DMA-BUF");
    b = good;
    b.base_addr = at + PAGE + 80; /* where the memory begins, not the buffer */
    CHECK(reg(w, &b, FI_HMEM_CUDA, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    SAID("not where the DMA-BUF begins");
    b.base_addr = at;
    CHECK(reg(w, &b, FI_HMEM_CUDA, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    SAID("not where the DMA-BUF begins");
    CHECK(reg(w, &good, FI_HMEM_CUDA, FI_MR_DMABUF, &mr) == 0);
    close(good.fd); /* not needed any more */
    write_there(w, mr, at + PAGE + 80, at + PAGE + 88);
    CHECK(reg(w, &good, FI_HMEM_CUDA, FI_MR_DMABUF, &mr) == -FI_EINVAL);
    SAID("closed, or no DMA-BUF");
}

RULE_WITH(own_gpu_memory_needs_a_descriptor, "stream", "hmem")
{
    unsigned char *at = open_with_gpu(w);
    struct fid_mr *mr;
    if (at == NULL)
        return;
    struct post p = w_post(w);
    p.from = at;
    p.desc = NULL;
    CHECK(W_WRITE(w, &p) == -FI_EINVAL);
    SAID("no descriptor");
    CHECK(reg_pointer(w, at, FI_HMEM_CUDA, &mr) == 0);
    memset(at, 0x33, 8);
    p.desc = fi_mr_desc(mr);
    CHECK(W_WRITE(w, &p) == 0 && w_wait(w, 5000) == 1);
    for (int i = 0; i < 5000 && w->to[7] != 0x33; i++)
        w_drive(w);
    CHECK(w->to[0] == 0x33 && w->to[7] == 0x33);
}

RULE_WITH(calls_of_cuda_are_not_promised_away, "verbs", "hmem,calls")
{
    int p2p = FI_HMEM_P2P_REQUIRED;
    struct fid_ep *ep;
    setenv("W_HMEM", "1", 1);
    w_open(w);
    CHECK(fi_endpoint(w->domain, w->info, &ep, NULL) == 0);
    CHECK(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)) ==
          -FI_EOPNOTSUPP);
}
