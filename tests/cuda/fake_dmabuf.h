/* SPDX-License-Identifier: BSD-3-Clause */
/* What the descriptor of a DMA-BUF leads to where there is no GPU: a file that says where its
 * memory is in this process. */
#ifndef GINSHMEM_TESTS_CUDA_FAKE_DMABUF_H
#define GINSHMEM_TESTS_CUDA_FAKE_DMABUF_H

#include <stdint.h>

#define FAKE_DMABUF_MAGIC 0x4655424d4144ull

struct fake_dmabuf {
    uint64_t magic, base, bytes;
};

#endif
