/* SPDX-License-Identifier: BSD-3-Clause */
/* The net ops over libfabric. */
#ifndef GI_OFI_H
#define GI_OFI_H

#include "transport/net.h"

/* gi_net_config.more, or NULL. For tests. */
struct gi_ofi_more {
    const char *const *names; /* instead of the library's own list; NULL behind the last */
    const char *refuse;       /* this one fails as if its self-test had */
    bool dmabuf;              /* as if libfabric were one that has FI_MR_DMABUF */
};

extern const struct gi_net_ops gi_ofi_ops;

/* The devices of the first provider that is had, each once, in no order; their number, at most
 * `most`, or a status. Opens nothing. */
int gi_ofi_nics(const struct gi_net_config *config, struct gi_net_nic *nics, uint32_t most);

#endif
