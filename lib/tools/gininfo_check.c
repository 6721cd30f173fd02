/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requirements, tried rather than read about: what the library cannot do without fails the check;
 * what only makes it faster or larger is missing and says what is lost.
 */
#include <errno.h>
#include <hwloc.h>
#include <string.h>
#include <unistd.h>
#include "base/env.h"
#include "base/os.h"
#include "lib/tools/gininfo.h"
#include "transport/ofi/ofi_info.h"

static int failed;

static void required(const char *name, bool ok, const char *why)
{
    info_add("requirements", name, ok ? INFO_PASS : INFO_FAIL, NULL, "%s", why);
    failed += !ok;
}

static void wished(const char *name, bool ok, const char *why)
{
    info_add("requirements", name, ok ? INFO_PASS : INFO_MISSING, NULL, "%s", why);
}

/* A memory object that can be grown and mapped: the heap. */
static void memory_object(void)
{
    char text[128] = "memfd_create, fallocate and a shared mapping work";
    size_t page = gi_os_page_size();
    void *at = NULL;
    int fd = gi_os_memfd("gininfo", false), err = fd < 0 ? fd : 0;
    if (err == 0)
        err = gi_os_grow(fd, 0, page);
    if (err == 0)
        err = gi_os_reserve(page, &at);
    if (err == 0) {
        err = gi_os_map_shared(at, fd, 0, page);
        if (err == 0)
            *(volatile char *)at = 1;
        gi_os_unreserve(at, page);
    }
    if (err != 0)
        snprintf(text, sizeof(text), "the heap's memory object cannot be made: %s",
                 gi_os_strerror(err));
    if (fd >= 0)
        gi_os_close(fd);
    required("memory objects", err == 0, text);
}

static void fork_safety(void)
{
    void *p = gi_os_map_private(gi_os_page_size());
    required("MADV_WIPEONFORK", p != NULL,
             p != NULL ? "fork()ed children are kept from the state of the library"
                       : "the kernel is older than 4.14");
    if (p != NULL)
        gi_os_unmap(p, gi_os_page_size());
}

static void variables(void)
{
    struct gi_env env;
    bool ok = gi_env_load(&env) == GIN_OK;
    required("variables", ok, ok ? "all GINSHMEM_ values are understood" : gin_last_error());
    if (!ok)
        return;
    uint64_t limit, need = env.heap_max;
    char text[160], a[32], b[32];
    if (info_limit("Max address space", &limit) && limit < need) {
        snprintf(text, sizeof(text),
                 "%s of address space, GINSHMEM_HEAP_MAX is %s for every rank of the host; heaps "
                 "will be limited",
                 info_bytes(limit, a, sizeof(a)), info_bytes(need, b, sizeof(b)));
        wished("address space", false, text);
    } else {
        wished("address space", true, "room for GINSHMEM_HEAP_MAX");
    }
    gi_env_release(&env);
}

static void libraries(void)
{
    char text[96];
    uint32_t v = gi_ofi_version();
    snprintf(text, sizeof(text), "version %u.%u, at least 1.17", v >> 16, v & 0xffff);
    required("libfabric", v >= (1u << 16 | 17), text);
    hwloc_topology_t topo;
    bool ok = hwloc_topology_init(&topo) == 0;
    if (ok) {
        ok = hwloc_topology_load(topo) == 0;
        hwloc_topology_destroy(topo);
    }
    required("hwloc", ok, ok ? "the topology loads" : "the topology does not load");
}

static void descriptors(void)
{
    uint64_t limit = 0;
    char text[96];
    bool known = info_limit("Max open files", &limit);
    bool ok = !known || limit >= 64;
    if (known && limit != UINT64_MAX)
        snprintf(text, sizeof(text), "%llu allowed; every other process of the host takes one",
                 (unsigned long long)limit);
    else
        snprintf(text, sizeof(text), "%s", known ? "unlimited" : "the limit is not told");
    required("open files", ok, text);
}

static void peers(void)
{
    char text[256];
    int fd = gi_os_pidfd_open(getpid());
    if (fd >= 0)
        gi_os_close(fd);
    snprintf(text, sizeof(text), "%s%s", fd >= 0 ? "deaths of peers are noticed at once" : "",
             fd >= 0 ? "" : gi_os_strerror(fd));
    wished("pidfd_open", fd >= 0, text);
    enum info_state cma = info_cma(text, sizeof(text));
    wished("CMA", cma != INFO_NO, text);
}

static void network(void)
{
    struct gi_ofi_found found[16];
    char text[256] = "";
    size_t n = gi_ofi_probe(found, sizeof(found) / sizeof(found[0]));
    for (size_t i = 0; i < n; i++)
        if (found[i].have && strlen(text) + 24 < sizeof(text))
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                     text[0] != 0 ? " " : "", found[i].provider);
    wished("providers", text[0] != 0, text[0] != 0 ? text : "libfabric offers none of the known");
    char opened[600];
    bool asked;
    int st = info_try_network(opened, sizeof(opened), &asked);
    if (asked) /* whoever names a provider or a device gets that or nothing */
        required("network", st == GIN_OK, opened);
    else
        wished("network", st == GIN_OK, opened);
    uint64_t locked;
    char a[32];
    if (info_limit("Max locked memory", &locked) && locked != UINT64_MAX) {
        snprintf(text, sizeof(text), "%s; RDMA devices want to pin the heap, TCP does not",
                 info_bytes(locked, a, sizeof(a)));
        wished("locked memory", false, text);
    } else {
        wished("locked memory", true, "unlimited");
    }
    uint64_t size, free_bytes;
    bool huge = gi_os_huge_pages(&size, &free_bytes) && free_bytes != 0;
    wished("huge pages", huge,
           huge ? "some are free"
                : "none is free; GINSHMEM_HUGEPAGES=yes "
                  "would fail");
}

int info_check(void)
{
    char id[512];
    int err = gi_os_host_id(id, sizeof(id));
    failed = 0;
    required("host id", err == 0, err == 0 ? id : gi_os_strerror(err));
    memory_object();
    fork_safety();
    descriptors();
    libraries();
    variables();
    peers();
    network();
    return failed;
}
