/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One query for each provider that could carry the network, by its name: "the best of all" would
 * hide what is missing. A provider counts as had when it offers messages and RMA; nothing is asked
 * beyond that, since what it lacks can be worked around.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "transport/ofi/ofi_find.h"
#include "transport/ofi/ofi_info.h"

/* All that the library may choose, or that its texts offer to those who name one. */
static const char *const providers[] = {
    "cxi",         "efa", "opx",     "verbs",       "verbs;ofi_rxm", "tcp", "net",
    "tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd", "psm3",          "psm2"};

uint32_t gi_ofi_version(void)
{
    return fi_version();
}

uint32_t gi_ofi_built_version(void)
{
    return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

/* The library contains this provider, whether or not there is a device for it. */
static bool contained(const char *provider)
{
    char first[32];
    struct fi_info *list = NULL;
    bool found = false;
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(provider, ";"), provider);
    if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list) != 0)
        return false;
    for (struct fi_info *i = list; i != NULL && !found; i = i->next)
        found = i->fabric_attr != NULL && i->fabric_attr->prov_name != NULL &&
                strcmp(i->fabric_attr->prov_name, first) == 0;
    fi_freeinfo(list);
    return found;
}

/* Not on the list that is tried by itself. */
static bool only_named(const char *provider)
{
    const char *name;
    for (size_t i = 0; (name = gi_ofi_own(i, 0)) != NULL; i++)
        if (strncmp(name, provider, strlen(provider)) == 0)
            return false;
    return true;
}

static void append(char *text, size_t n, const char *word)
{
    size_t len = strlen(text);
    if (strstr(text, word) == NULL && len + strlen(word) + 3 < n)
        snprintf(text + len, n - len, "%s%s", len != 0 ? " " : "", word);
}

static void describe(const struct fi_info *list, struct gi_ofi_found *f)
{
    char types[64] = "", domains[120] = "";
    uint32_t version = list->fabric_attr->prov_version;
    for (const struct fi_info *i = list; i != NULL; i = i->next) {
        enum fi_ep_type type = i->ep_attr->type;
        if (!gi_ofi_same_name(i->fabric_attr->prov_name, f->provider))
            continue; /* a layer over it, which has a line of its own */
        append(types, sizeof(types),
               type == FI_EP_MSG   ? "MSG"
               : type == FI_EP_RDM ? "RDM"
                                   : "DGRAM");
        if (i->domain_attr->name != NULL)
            append(domains, sizeof(domains), i->domain_attr->name);
    }
    snprintf(f->text, sizeof(f->text), "version %u.%u, endpoints %s%s, domains %s%s",
             FI_MAJOR(version), FI_MINOR(version), types,
             strcmp(types, "MSG") == 0 ? " only: taken as ...-msg or with a layer over them" : "",
             domains,
             only_named(f->provider) ? "; used only where GINSHMEM_PROVIDER names it" : "");
}

static void ask(const char *provider, struct gi_ofi_found *f)
{
    struct fi_info *list = NULL, *hints = fi_allocinfo();
    f->provider = provider;
    f->have = 0;
    if (hints == NULL) {
        snprintf(f->text, sizeof(f->text), "no memory to ask");
        return;
    }
    hints->fabric_attr->prov_name = strdup(provider); /* freed by fi_freeinfo() */
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = ~0ull;
    hints->domain_attr->mode = ~0ull;
    hints->domain_attr->mr_mode = ~(FI_MR_BASIC | FI_MR_SCALABLE);
    int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list);
    if (rc == 0 && list != NULL) {
        f->have = 1;
        describe(list, f);
    } else if (!contained(provider)) {
        snprintf(f->text, sizeof(f->text),
                 "this libfabric does not contain it, or it gave up for want of a device");
    } else {
        snprintf(f->text, sizeof(f->text),
                 "this libfabric contains it, but finds no device that does messages and RMA (%s)",
                 fi_strerror(-rc));
    }
    fi_freeinfo(list);
    fi_freeinfo(hints);
}

size_t gi_ofi_probe(struct gi_ofi_found *found, size_t n)
{
    size_t all = sizeof(providers) / sizeof(providers[0]);
    n = n < all ? n : all;
    gi_ofi_environment(1); /* it is read when libfabric is first asked */
    for (size_t i = 0; i < n; i++)
        ask(providers[i], &found[i]);
    return n;
}
