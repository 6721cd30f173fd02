/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric offers on this machine, provider by provider. For gininfo; opens nothing. */
#ifndef GI_OFI_INFO_H
#define GI_OFI_INFO_H

#include <stddef.h>
#include <stdint.h>

struct gi_ofi_found {
    const char *provider; /* as one would ask for it */
    int have;             /* 1: it can carry messages and RMA here */
    char text[240];       /* endpoints, domains and version; or why not */
};

/* Ask for each provider by its name; up to `n` answers, returns their number. */
size_t gi_ofi_probe(struct gi_ofi_found *found, size_t n);

/* Versions of the library that runs and of the headers it was built with: major << 16 | minor. */
uint32_t gi_ofi_version(void);
uint32_t gi_ofi_built_version(void);

#endif
