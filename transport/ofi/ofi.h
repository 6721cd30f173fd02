/* SPDX-License-Identifier: BSD-3-Clause */
/* The net ops over libfabric. */
#ifndef GI_OFI_H
#define GI_OFI_H

#include "transport/net.h"

extern const struct gi_net_ops gi_ofi_ops;

#endif
