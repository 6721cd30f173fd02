/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How GPU memory of this rank gets to the network: registered there, as a DMA-BUF or by its
 * pointer, or by way of host memory (net_stage.c). Found out when the network comes up.
 */
#ifndef GI_NET_GPU_H
#define GI_NET_GPU_H

#include <stdbool.h>
#include <stdint.h>
#include "transport/net.h"

struct gi_gpu;
struct gi_net;

enum gi_net_gpu_way { GI_NET_GPU_STAGE, GI_NET_GPU_DMABUF, GI_NET_GPU_HMEM };

struct gi_net_gpu {
    enum gi_net_gpu_way way;
    bool asked;    /* domains are, or were, opened for GPU memory */
    bool forced;   /* GINSHMEM_GPU_NET names a way to register: nothing else will do */
    bool land;     /* the GPU has to be told of what arrived */
    bool direct;   /* so it is with some rank: the GPU heap is registered as it grows */
    char why[160]; /* this way and no other one */
};

/* gi_net_rails_open(), asking for GPU memory where this rank has a GPU to try with. Not collective;
 * GIN_ENOTSUP where GINSHMEM_GPU_NET asks for what cannot be had. */
int gi_net_gpu_rails_open(struct gi_net *n);
/* Does anybody register GPU memory? Collective, once. */
int gi_net_gpu_meet(struct gi_net *n);
/* Memory of mine by my way, to be registered; ended behind that. */
int gi_net_gpu_describe(const struct gi_net *n, struct gi_gpu *gpu, uint64_t addr, uint64_t bytes,
                        struct gi_net_memory_desc *m);
void gi_net_gpu_described(struct gi_net_memory_desc *m);
/* gi_core_hooks.landed; arg: the network. */
int gi_net_gpu_landed(void *arg);

#endif
