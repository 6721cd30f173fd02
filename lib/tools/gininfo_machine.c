/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine as hwloc sees it, and what its operating system allows. */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/os.h"
#include "lib/tools/gininfo.h"

const char *info_bytes(uint64_t bytes, char *buf, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;
    for (; u < 4 && v >= 1024; u++)
        v /= 1024;
    snprintf(buf, n, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
    return buf;
}

bool info_limit(const char *name, uint64_t *value)
{
    char text[4096];
    if (gi_os_read_file("/proc/self/limits", text, sizeof(text)) < 0)
        return false;
    char *line = strstr(text, name);
    if (line == NULL)
        return false;
    line += strlen(name);
    line += strspn(line, " ");
    *value = strncmp(line, "unlimited", 9) == 0 ? UINT64_MAX : strtoull(line, NULL, 10);
    return true;
}

/* ---- hwloc ---- */

static void count(hwloc_topology_t topo, hwloc_obj_type_t type, const char *name)
{
    char text[32];
    snprintf(text, sizeof(text), "%d", hwloc_get_nbobjs_by_type(topo, type));
    info_add("machine", name, INFO_PLAIN, text, "%s", "");
}

/* NUMA node next to a device, or -1. */
static int node_of(hwloc_topology_t topo, hwloc_obj_t device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topo, device);
    if (near == NULL || near->nodeset == NULL)
        return -1;
    return hwloc_bitmap_weight(near->nodeset) == 1 ? hwloc_bitmap_first(near->nodeset) : -1;
}

static const char *attribute(hwloc_obj_t device, const char *name)
{
    const char *v = hwloc_obj_get_info_by_name(device, name);
    return v != NULL ? v : "";
}

static int devices(hwloc_topology_t topo, hwloc_obj_osdev_type_t type, const char *what)
{
    int n = 0;
    for (hwloc_obj_t d = hwloc_get_next_osdev(topo, NULL); d != NULL;
         d = hwloc_get_next_osdev(topo, d)) {
        if (d->attr->osdev.type != type || strcmp(d->name, "lo") == 0)
            continue;
        char name[96], place[32] = "any NUMA node";
        int node = node_of(topo, d);
        if (node >= 0)
            snprintf(place, sizeof(place), "NUMA node %d", node);
        snprintf(name, sizeof(name), "%s %s", what, d->name);
        const char *address = attribute(d, "Address");
        info_add("machine", name, INFO_PLAIN, place, "%s",
                 address[0] != 0 ? address : attribute(d, "GPUModel"));
        n++;
    }
    return n;
}

/* GPUs by their PCI class: no vendor's library is needed to see them. */
static int pci_gpus(hwloc_topology_t topo)
{
    int n = 0;
    for (hwloc_obj_t d = hwloc_get_next_pcidev(topo, NULL); d != NULL;
         d = hwloc_get_next_pcidev(topo, d)) {
        const struct hwloc_pcidev_attr_s *p = &d->attr->pcidev;
        if (p->class_id >> 8 != 0x03)
            continue;
        char name[64];
        snprintf(name, sizeof(name), "GPU %04x:%02x:%02x.%x", p->domain, p->bus, p->dev, p->func);
        info_add("machine", name, INFO_PLAIN, NULL, "vendor %04x device %04x, NUMA node %d",
                 p->vendor_id, p->device_id, node_of(topo, d));
        n++;
    }
    return n;
}

static void topology(void)
{
    hwloc_topology_t topo;
    char text[64];
    if (hwloc_topology_init(&topo) != 0) {
        info_add("machine", "hwloc", INFO_NO, NULL, "no topology: %s", gi_os_strerror(errno));
        return;
    }
    hwloc_topology_set_io_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topo) != 0) {
        info_add("machine", "hwloc", INFO_NO, NULL, "no topology: %s", gi_os_strerror(errno));
        hwloc_topology_destroy(topo);
        return;
    }
    count(topo, HWLOC_OBJ_PACKAGE, "packages");
    count(topo, HWLOC_OBJ_CORE, "cores");
    count(topo, HWLOC_OBJ_PU, "threads");
    count(topo, HWLOC_OBJ_NUMANODE, "NUMA nodes");
    snprintf(text, sizeof(text), "%d", gi_os_cores());
    info_add("machine", "usable", INFO_PLAIN, text, "threads this process may run on");
    if (pci_gpus(topo) == 0)
        info_add("machine", "GPUs", INFO_NO, NULL, "hwloc sees no PCI device of class 03");
    if (devices(topo, HWLOC_OBJ_OSDEV_NETWORK, "network") == 0)
        info_add("machine", "network", INFO_NO, NULL, "hwloc sees no network device but lo");
    if (devices(topo, HWLOC_OBJ_OSDEV_OPENFABRICS, "RDMA") == 0)
        info_add("machine", "RDMA", INFO_NO, NULL, "hwloc sees no OpenFabrics device");
    hwloc_topology_destroy(topo);
}

/* ---- operating system ---- */

enum info_state info_cma(char *text, size_t n)
{
    uint64_t word = 0x67696e, copy = 0;
    struct iovec here = {&copy, sizeof(copy)}, there = {&word, sizeof(word)};
    char scope[16] = "";
    ssize_t r = gi_os_vm_read(getpid(), &here, &there);
    if (r != (ssize_t)sizeof(copy) || copy != word) {
        snprintf(text, n, "process_vm_readv of myself fails with %s",
                 gi_os_strerror(r < 0 ? (int)r : EIO));
        return INFO_NO;
    }
    if (gi_os_read_file("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) < 0) {
        snprintf(text, n, "process_vm_readv works, Yama is not there");
        return INFO_YES;
    }
    int level = atoi(scope);
    snprintf(text, n, "process_vm_readv works on myself; kernel.yama.ptrace_scope=%d: %s", level,
             level == 0   ? "any process of the same user"
             : level == 1 ? "processes that allow it, or children"
             : level == 2 ? "with CAP_SYS_PTRACE only"
                          : "nobody");
    return level == 0 ? INFO_YES : level == 1 ? INFO_UNKNOWN : INFO_NO;
}

static void limit(const char *name, const char *key, bool bytes)
{
    uint64_t v;
    char text[32] = "unlimited";
    if (!info_limit(key, &v)) {
        info_add("system", name, INFO_UNKNOWN, NULL, "/proc/self/limits does not tell");
        return;
    }
    if (v != UINT64_MAX && bytes)
        info_bytes(v, text, sizeof(text));
    else if (v != UINT64_MAX)
        snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    info_add("system", name, INFO_PLAIN, text, "%s", "");
}

/* "always [never]" becomes "never". */
static void chosen(char *text)
{
    char *word = strchr(text, '[');
    if (word != NULL)
        memmove(text, word + 1, strlen(word));
    text[strcspn(text, "]\n")] = 0;
}

static void huge_pages(void)
{
    uint64_t size, free_bytes;
    char a[32], b[32], text[128] = "not told";
    if (!gi_os_huge_pages(&size, &free_bytes))
        info_add("system", "huge pages", INFO_NO, NULL, "this kernel has none");
    else if (free_bytes == 0)
        info_add("system", "huge pages", INFO_NO, NULL,
                 "none of %s is free; reserve some by vm.nr_hugepages",
                 info_bytes(size, a, sizeof(a)));
    else
        info_add("system", "huge pages", INFO_YES, NULL, "%s free in pages of %s",
                 info_bytes(free_bytes, a, sizeof(a)), info_bytes(size, b, sizeof(b)));
    gi_os_read_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled", text, sizeof(text));
    chosen(text);
    info_add("system", "THP for shm", INFO_PLAIN, text, "%s", "");
}

static void host(void)
{
    char id[512], text[64] = "not told";
    int err = gi_os_host_id(id, sizeof(id));
    if (err == 0)
        info_add("system", "host id", INFO_PLAIN, id, "boot id and namespaces");
    else
        info_add("system", "host id", INFO_NO, NULL, "%s", gi_os_strerror(err));
    gi_os_read_file("/proc/sys/kernel/osrelease", text, sizeof(text));
    text[strcspn(text, "\n")] = 0;
    info_add("system", "kernel", INFO_PLAIN, text, "%s", "");
}

void info_machine(void)
{
    char a[32], b[32], text[256];
    topology();
    host();
    info_bytes(gi_os_memory_total(), a, sizeof(a));
    info_add("system", "memory", INFO_PLAIN, a, "%s free",
             info_bytes(gi_os_memory_free(), b, sizeof(b)));
    snprintf(a, sizeof(a), "%zu B", gi_os_page_size());
    info_add("system", "page", INFO_PLAIN, a, "%s", "");
    huge_pages();
    enum info_state cma = info_cma(text, sizeof(text));
    info_add("system", "CMA", cma, NULL, "%s", text);
    limit("open files", "Max open files", false);
    limit("locked memory", "Max locked memory", true);
    limit("address space", "Max address space", true);
    limit("file size", "Max file size", true);
    limit("processes", "Max processes", false);
}
