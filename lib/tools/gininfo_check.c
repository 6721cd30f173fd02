/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requirements, a line for each feature, tried rather than read about: what the library cannot do
 * without fails the check; what only makes it faster or larger is missing and says what is lost
 * and what to do. ginshmem_requirements(7) has the same features in the same order.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/env.h"
#include "base/os.h"
#include "lib/tools/gininfo.h"
#include "transport/ofi/ofi_info.h"

static struct gi_env env;
static bool have_env;
static char env_error[512];

enum info_state info_said(bool ok, char *why, size_t n, const char *yes, const char *no)
{
    snprintf(why, n, "%s", ok ? yes : no);
    return ok ? INFO_PASS : INFO_MISSING;
}

bool info_kernel(int major, int minor)
{
    char text[64] = "";
    int a = 0, b = 0;
    gi_os_read_file("/proc/sys/kernel/osrelease", text, sizeof(text));
    return sscanf(text, "%d.%d", &a, &b) == 2 && (a > major || (a == major && b >= minor));
}

/* ---- the host ---- */

static enum info_state host_id(char *why, size_t n)
{
    int err = gi_os_host_id(why, n);
    return err == 0 ? INFO_PASS
                    : info_said(false, why, n, "", "/proc does not tell boot id and namespaces");
}

static enum info_state kernel(char *why, size_t n)
{
    char text[64] = "?";
    gi_os_read_file("/proc/sys/kernel/osrelease", text, sizeof(text));
    snprintf(why, n, "%.*s, at least 4.14", (int)strcspn(text, "\n"), text);
    return info_kernel(4, 14) ? INFO_PASS : INFO_MISSING;
}

/* A memory object that can be grown and mapped: the heap. */
static enum info_state memory_objects(char *why, size_t n)
{
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
    if (fd >= 0)
        gi_os_close(fd);
    if (err == 0)
        return info_said(true, why, n, "memfd_create, fallocate and a shared mapping work", "");
    snprintf(why, n, "the heap cannot be made: %s; a sandbox must allow memfd_create",
             gi_os_strerror(err));
    return INFO_MISSING;
}

static enum info_state fork_safety(char *why, size_t n)
{
    void *p = gi_os_map_private(gi_os_page_size());
    if (p != NULL)
        gi_os_unmap(p, gi_os_page_size());
    return info_said(p != NULL, why, n, "fork()ed children are kept from the library's state",
                     "MADV_WIPEONFORK is refused: the kernel is older than 4.14");
}

static enum info_state open_files(char *why, size_t n)
{
    uint64_t limit = 0;
    bool known = info_limit("Max open files", &limit);
    if (known && limit != UINT64_MAX)
        snprintf(why, n, "%llu allowed; a job takes one or two for each process of the host%s",
                 (unsigned long long)limit, limit < 1024 ? "; raise it by ulimit -n" : "");
    else
        snprintf(why, n, "%s", known ? "unlimited" : "the limit is not told");
    return !known || limit >= 64 ? INFO_PASS : INFO_MISSING;
}

static enum info_state hwloc(char *why, size_t n)
{
    hwloc_topology_t topo;
    unsigned v = hwloc_get_api_version();
    bool ok = hwloc_topology_init(&topo) == 0;
    if (ok) {
        ok = hwloc_topology_load(topo) == 0;
        hwloc_topology_destroy(topo);
    }
    snprintf(why, n, "API %u.%u, at least 2.0; the topology %s", v >> 16, v >> 8 & 0xff,
             ok ? "loads" : "does not load: look at HWLOC_ variables and at /sys");
    return ok ? INFO_PASS : INFO_MISSING;
}

static enum info_state libfabric(char *why, size_t n)
{
    uint32_t v = gi_ofi_version();
    snprintf(why, n, "version %u.%u, at least 1.17", v >> 16, v & 0xffff);
    return v >= (1u << 16 | 17) ? INFO_PASS : INFO_MISSING;
}

static enum info_state variables(char *why, size_t n)
{
    return info_said(have_env, why, n, "all GINSHMEM_ values are understood", env_error);
}

static enum info_state address_space(char *why, size_t n)
{
    uint64_t limit;
    char a[32], b[32];
    if (!have_env || !info_limit("Max address space", &limit) || limit >= env.heap_max)
        return info_said(true, why, n, "room for GINSHMEM_HEAP_MAX", "");
    snprintf(why, n,
             "%s, and GINSHMEM_HEAP_MAX is %s for every rank of the host: heaps will be limited; "
             "ulimit -v unlimited",
             info_bytes(limit, a, sizeof(a)), info_bytes(env.heap_max, b, sizeof(b)));
    return INFO_MISSING;
}

static enum info_state memory(char *why, size_t n)
{
    uint64_t left = gi_os_memory_free(), need = have_env ? env.heap_size : 0;
    char a[32], b[32];
    snprintf(why, n, "%s to be had, and GINSHMEM_HEAP_SIZE takes %s for each rank%s",
             info_bytes(left, a, sizeof(a)), info_bytes(need, b, sizeof(b)),
             left >= need ? "" : ": lower it, or raise the container's limit");
    return left >= need ? INFO_PASS : INFO_MISSING;
}

static enum info_state pidfd(char *why, size_t n)
{
    int fd = gi_os_pidfd_open(getpid());
    if (fd >= 0)
        gi_os_close(fd);
    return info_said(fd >= 0, why, n, "deaths of peers of this host are noticed at once",
                     "deaths of peers of this host are noticed later, by looking into /proc; it "
                     "takes Linux 5.3 and a sandbox that allows it");
}

static enum info_state process_vm(char *why, size_t n)
{
    return info_said(info_cma(why, n) != INFO_NO || strstr(why, "fails") == NULL, why, n,
                     "process_vm_readv works on this process",
                     "process_vm_readv is refused: windows over user memory have no path within "
                     "the host; a sandbox must allow it");
}

/* Others of the same user may be read; CAP_SYS_PTRACE is bit 19. */
static enum info_state ptrace_scope(char *why, size_t n)
{
    char scope[16] = "", status[4096] = "";
    int level = gi_os_read_file("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) < 0
                    ? 0
                    : atoi(scope);
    gi_os_read_file("/proc/self/status", status, sizeof(status));
    const char *caps = strstr(status, "CapEff:");
    bool may = caps != NULL && (strtoull(caps + 7, NULL, 16) >> 19 & 1) != 0;
    snprintf(why, n, "kernel.yama.ptrace_scope=%d%s%s", level,
             level != 0 && may ? ", and this process has CAP_SYS_PTRACE" : "",
             level == 0 || (may && level < 3)
                 ? ""
                 : ": processes of a host may not read each other; sysctl "
                   "kernel.yama.ptrace_scope=0");
    return level == 0 || (may && level < 3) ? INFO_PASS : INFO_MISSING;
}

static enum info_state huge_pages(char *why, size_t n)
{
    uint64_t size, free_bytes;
    bool huge = gi_os_huge_pages(&size, &free_bytes) && free_bytes != 0;
    return info_said(huge, why, n, "some are free",
                     "none is free, GINSHMEM_HUGEPAGES=yes would fail; set vm.nr_hugepages");
}

static enum info_state locked_memory(char *why, size_t n)
{
    uint64_t locked;
    char a[32];
    if (!info_limit("Max locked memory", &locked) || locked == UINT64_MAX)
        return info_said(true, why, n, "unlimited", "");
    snprintf(why, n, "%s; RDMA devices pin the heap, TCP does not; ulimit -l unlimited",
             info_bytes(locked, a, sizeof(a)));
    return INFO_MISSING;
}

/* ---- all of them ---- */

/* Without a required one nothing works. tests/lint compares the names with the page. */
static const struct feature {
    const char *name;
    bool required;
    enum info_state (*check)(char *why, size_t n);
} features[] = {
    {"host id", true, host_id},
    {"kernel", true, kernel},
    {"memory objects", true, memory_objects},
    {"fork safety", true, fork_safety},
    {"open files", true, open_files},
    {"hwloc", true, hwloc},
    {"libfabric", true, libfabric},
    {"variables", true, variables},
    {"address space", false, address_space},
    {"memory", false, memory},
    {"pidfd_open", false, pidfd},
    {"process_vm", false, process_vm},
    {"ptrace scope", false, ptrace_scope},
    {"huge pages", false, huge_pages},
    {"locked memory", false, locked_memory},
    {"providers", false, info_check_providers},
    {"network", false, info_check_network},
    {"RDMA devices", false, info_check_rdma},
    {"CUDA driver", false, info_check_driver},
    {"CUDA kernels", false, info_check_kernels},
    {"GPU memory", false, info_check_gpu_memory},
    {"multimem", false, info_check_multimem},
    {"DMA-BUF", false, info_check_dmabuf},
    {"nvidia-peermem", false, info_check_peermem},
    {"GDRCopy", false, info_check_gdrcopy},
    {"PMIx", false, info_check_pmix},
    {"PMI-2", false, info_check_pmi2},
    {"namespaces", false, info_check_namespaces},
    {"JSON", false, info_check_json},
};

int info_check(void)
{
    int failed = 0;
    have_env = gi_env_load(&env) == GIN_OK;
    snprintf(env_error, sizeof(env_error), "%s", have_env ? "" : gin_last_error());
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        char why[600] = "";
        enum info_state st = features[i].check(why, sizeof(why));
        if (st == INFO_MISSING && features[i].required)
            st = INFO_FAIL;
        info_add("requirements", features[i].name, st, NULL, "%s", why);
        failed += st == INFO_FAIL;
    }
    if (have_env)
        gi_env_release(&env);
    return failed;
}
