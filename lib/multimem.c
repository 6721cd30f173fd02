/* SPDX-License-Identifier: BSD-3-Clause */
/* Who switches multicast off, and what a device communicator's wish for it comes to. */
#include "multimem.h"

#include <string.h>
#include "cuda_up.h"

static bool says(const char *name, const char *value)
{
    const char *text = gi_env_foreign(name);
    return text != NULL && strcmp(text, value) == 0;
}

const char *gi_multimem_off(const gin_comm_t *comm)
{
    if (comm->env.disable_multimem)
        return "GINSHMEM_DISABLE_MULTIMEM=1";
    if (says("NCCL_NVLS_ENABLE", "0"))
        return "NCCL_NVLS_ENABLE=0";
    if (says("NVSHMEM_DISABLE_NVLS", "1"))
        return "NVSHMEM_DISABLE_NVLS=1";
    return NULL;
}

int gi_multimem_open(struct gi_devcomm *d)
{
    gin_comm_t *comm = d->comm;
    int st;
    if (d->reqs.multimem == GIN_MULTIMEM_NONE)
        return GIN_OK;
    if (!d->kernels)
        st = gi_fail(GIN_ENOTSUP, "multimem: no rank's device is CUDA");
    else
        st = gi_cuda_multimem_open(comm->cuda->map, gi_multimem_off(comm),
                                   gi_deadline_in(comm->env.coll_timeout), &d->multimem);
    if (st == GIN_OK || d->reqs.multimem == GIN_MULTIMEM_NEEDED)
        return st == GIN_OK ? st : gi_fail_context("gin_devcomm_create");
    gi_info("cuda", "a device communicator goes without multicast: %s", gin_last_error());
    return st == GIN_ENOTSUP ? GIN_OK : gi_fail_context("gin_devcomm_create");
}

void gi_multimem_close(struct gi_devcomm *d)
{
    gi_cuda_multimem_close(d->multimem);
    d->multimem = NULL;
}
