/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration of memory. Keys that the client chooses are the core's, which peers cannot guess,
 * cut to what the provider's keys hold; one that is taken is replaced by a random one, since peers
 * are told the key that came out.
 */
#include <stdlib.h>
#include <sys/uio.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/ofi/ofi_dmabuf.h"
#include "transport/ofi/ofi_int.h"

#define KEY_TRIES 8

/* Where the buffer begins in the address space, and how far behind that the memory does. */
static void describe_dmabuf(const struct gi_net_memory_desc *m, struct fi_mr_attr *attr,
                            struct fi_mr_dmabuf *buf, uint64_t *flags)
{
    buf->fd = m->fd;
    buf->offset = m->fd_off;
    buf->len = m->bytes;
    buf->base_addr = (char *)m->addr - m->fd_off;
    attr->mr_iov = (const void *)buf; /* of the same union where the header has one */
    *flags |= FI_MR_DMABUF;
}

static int check_kind(const struct gi_ofi_domain *d, const struct gi_net_memory_desc *m)
{
    if (m->kind != GI_NET_HOST && !d->pick.rung.hmem)
        return gi_fail(GIN_ENOTSUP, "provider %s has no FI_HMEM here", d->caps.name);
    if (m->kind == GI_NET_DMABUF && !d->caps.mr_dmabuf)
        return gi_fail(
            GIN_ENOTSUP, "libfabric %u.%u, by headers of %u.%u, lacks FI_MR_DMABUF (1.20)",
            FI_MAJOR(fi_version()), FI_MINOR(fi_version()), FI_MAJOR_VERSION, FI_MINOR_VERSION);
    return GIN_OK;
}

/* One attempt with one key; 0 or -errno of libfabric. */
static int reg_with_key(struct gi_ofi_domain *d, const struct gi_net_memory_desc *m, uint64_t key,
                        struct fid_mr **mr)
{
    struct iovec iov = {.iov_base = m->addr, .iov_len = m->bytes};
    struct fi_mr_attr attr = {.mr_iov = &iov, .iov_count = 1, .requested_key = key};
    uint64_t flags = 0;
    attr.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
    if (m->remote)
        attr.access |= FI_REMOTE_READ | FI_REMOTE_WRITE;
    if (m->kind != GI_NET_HOST) {
        attr.iface = FI_HMEM_CUDA;
        attr.device.cuda = m->device;
    }
    struct fi_mr_dmabuf buf;
    if (m->kind == GI_NET_DMABUF)
        describe_dmabuf(m, &attr, &buf, &flags);
    int rc = fi_mr_regattr(d->domain, &attr, flags, mr);
    if (rc == 0 && (rc = gi_ofi_target_bind(d, *mr)) != 0)
        fi_close(&(*mr)->fid);
    return rc;
}

static int reg_with_keys(struct gi_ofi_domain *d, const struct gi_net_memory_desc *m,
                         struct fid_mr **mr)
{
    uint64_t key = m->want_key & d->key_mask;
    int rc = -FI_ENOKEY;
    for (int i = 0; i < KEY_TRIES && rc == -FI_ENOKEY; i++) {
        if (d->client_keys && (key == 0 || i > 0) && gi_os_random(&key, sizeof(key)) == 0)
            key &= d->key_mask;
        rc = reg_with_key(d, m, d->client_keys ? key : 0, mr);
    }
    return rc;
}

static int reg_failed(const struct gi_ofi_domain *d, const struct gi_net_memory_desc *m, int rc)
{
    int st = rc == -FI_ENOMEM ? GIN_ENOMEM : GIN_ENET;
    if (m->kind != GI_NET_HOST) /* one of several reasons that are told together */
        return gi_fail(st, "%s: registering %s: %s", d->caps.name,
                       m->kind == GI_NET_DMABUF ? "a DMA-BUF" : "by FI_HMEM_CUDA",
                       fi_strerror(-rc));
    return gi_fail(st, "%s: registering %llu bytes at %p: %s", d->caps.name,
                   (unsigned long long)m->bytes, m->addr, fi_strerror(-rc));
}

int gi_ofi_reg(struct gi_net_domain *head, const struct gi_net_memory_desc *m,
               struct gi_net_mr **out)
{
    struct gi_ofi_domain *d = gi_ofi_domain(head);
    int st = check_kind(d, m);
    if (st != GIN_OK)
        return st;
    struct gi_ofi_mr *mr = calloc(1, sizeof(*mr));
    if (mr == NULL)
        return gi_fail(GIN_ENOMEM, "no memory to register memory");
    if (m->remote || d->caps.mr_local || m->kind != GI_NET_HOST) {
        int rc = reg_with_keys(d, m, &mr->mr);
        if (rc != 0) {
            free(mr);
            return reg_failed(d, m, rc);
        }
        mr->desc = fi_mr_desc(mr->mr);
        mr->head.key = fi_mr_key(mr->mr);
    }
    mr->head.base = d->virt_addr ? (uint64_t)(uintptr_t)m->addr : 0;
    *out = &mr->head;
    return GIN_OK;
}

void gi_ofi_dereg(struct gi_net_domain *head, struct gi_net_mr *m)
{
    struct gi_ofi_mr *mr = (struct gi_ofi_mr *)m;
    int rc = mr->mr != NULL ? fi_close(&mr->mr->fid) : 0;
    if (rc != 0)
        gi_warn("ofi", "%s: giving back registered memory: %s", gi_ofi_domain(head)->caps.name,
                fi_strerror(-rc));
    free(mr);
}
