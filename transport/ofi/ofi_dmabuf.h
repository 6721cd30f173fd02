/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libfabric 1.20 declares for memory by DMA-BUF, for builds by older headers: so that code is
 * the same, and tried, everywhere. It is used where both header and library have it.
 */
#ifndef GI_OFI_DMABUF_H
#define GI_OFI_DMABUF_H

#include <rdma/fi_domain.h>

#if !HAVE_DECL_FI_MR_DMABUF
#define FI_MR_DMABUF (1ull << 40)

struct fi_mr_dmabuf {
    int fd;
    uint64_t offset;
    size_t len;
    void *base_addr;
};
#endif

#endif
