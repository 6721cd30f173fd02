/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory beyond its registration. A provider that moves it by calls of CUDA may wait there for
 * kernels, which may wait for what that same thread would bring; so it is told not to, by whichever
 * option it knows, and the record says where it does not promise that.
 */
#include "base/log.h"
#include "transport/ofi/ofi_dmabuf.h"
#include "transport/ofi/ofi_int.h"

bool gi_ofi_has_dmabuf(void)
{
    return HAVE_DECL_FI_MR_DMABUF && FI_VERSION_GE(gi_ofi_api(), FI_VERSION(1, 20));
}

bool gi_ofi_forbid_calls(const struct gi_ofi_domain *d, struct fid_ep *ep)
{
    int p2p = FI_HMEM_P2P_REQUIRED; /* the device moves all of it */
    if (!d->pick.rung.hmem)
        return true;
#if HAVE_DECL_FI_OPT_CUDA_API_PERMITTED
    bool permitted = false;
    if (fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED, &permitted,
                  sizeof(permitted)) == 0)
        return true;
#endif
    return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)) == 0;
}

void gi_ofi_probe_calls(struct gi_ofi_domain *d)
{
    struct fid_ep *ep;
    if (!d->pick.rung.hmem)
        return;
    int rc = fi_endpoint(d->domain, d->pick.info, &ep, NULL);
    d->caps.mr_calls = rc != 0 || !gi_ofi_forbid_calls(d, ep);
    if (rc == 0)
        fi_close(&ep->fid);
    gi_ofi_note(d, "GPU memory: %s",
                d->caps.mr_calls ? "may be moved by calls of CUDA, which wait for kernels"
                                 : "without calls of CUDA");
}
