/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which devices ranks take on machines of several makes: trees of PCI devices as hwloc would show
 * them, written here in its XML.
 */
#include "nics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tests/pt.h"

/* ---- trees ---- */

struct tree {
    char xml[16384];
    size_t len;
    unsigned id;
};

static void add(struct tree *t, const char *fmt, ...) GIN_PRINTF(2, 3);
static void add(struct tree *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    t->len += (size_t)vsnprintf(t->xml + t->len, sizeof(t->xml) - t->len, fmt, args);
    va_end(args);
}

static void begin(struct tree *t, unsigned packages)
{
    unsigned cpus = (1u << 2 * packages) - 1, nodes = (1u << packages) - 1;
    memset(t, 0, sizeof(*t));
    add(t,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
        "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" cpuset=\"0x%x\" "
        "complete_cpuset=\"0x%x\" allowed_cpuset=\"0x%x\" nodeset=\"0x%x\" "
        "complete_nodeset=\"0x%x\" allowed_nodeset=\"0x%x\" gp_index=\"%u\">\n",
        cpus, cpus, cpus, nodes, nodes, nodes, ++t->id);
}

static void sets(struct tree *t, const char *type, unsigned index, unsigned cpus, unsigned node)
{
    add(t,
        "<object type=\"%s\" os_index=\"%u\" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" "
        "nodeset=\"0x%x\" complete_nodeset=\"0x%x\" gp_index=\"%u\"",
        type, index, cpus, cpus, 1u << node, 1u << node, ++t->id);
}

/* A package with a NUMA node and two cores; devices may follow until close(). */
static void package(struct tree *t, unsigned p)
{
    sets(t, "Package", p, 3u << 2 * p, p);
    add(t, ">\n");
    sets(t, "NUMANode", p, 3u << 2 * p, p);
    add(t, " local_memory=\"1073741824\"/>\n");
    for (unsigned c = 2 * p; c < 2 * p + 2; c++) {
        sets(t, "Core", c, 1u << c, p);
        add(t, ">\n");
        sets(t, "PU", c, 1u << c, p);
        add(t, "/>\n</object>\n");
    }
}

static void host_bridge(struct tree *t, unsigned from, unsigned to)
{
    add(t,
        "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"0-1\" depth=\"0\" "
        "bridge_pci=\"0000:[%02x-%02x]\">\n",
        ++t->id, from, to);
}

static void pci_switch(struct tree *t, unsigned bus, unsigned from, unsigned to)
{
    add(t,
        "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"1-1\" depth=\"1\" "
        "bridge_pci=\"0000:[%02x-%02x]\" pci_busid=\"0000:%02x:00.0\" "
        "pci_type=\"0604 [1000:c010] [0000:0000] a0\" pci_link_speed=\"0.000000\">\n",
        ++t->id, from, to, bus);
}

/* os NULL: a GPU, else a network device of that name. */
static void device(struct tree *t, unsigned bus, const char *os)
{
    add(t,
        "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%02x:00.0\" "
        "pci_type=\"%s [15b3:1017] [0000:0000] 00\" pci_link_speed=\"0.000000\">\n",
        ++t->id, bus, os == NULL ? "0302" : "0207");
    if (os != NULL)
        add(t, "<object type=\"OSDev\" gp_index=\"%u\" name=\"%s\" osdev_type=\"3\"/>\n", ++t->id,
            os);
    add(t, "</object>\n");
}

static void close_object(struct tree *t)
{
    add(t, "</object>\n");
}

static hwloc_topology_t load(struct tree *t)
{
    hwloc_topology_t topo;
    add(t, "</object>\n</topology>\n");
    if (!EXPECT(t->len < sizeof(t->xml)) || !EXPECT_EQ_INT(hwloc_topology_init(&topo), 0))
        return NULL;
    hwloc_topology_set_io_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (!EXPECT_EQ_INT(hwloc_topology_set_xmlbuffer(topo, t->xml, (int)t->len + 1), 0) ||
        !EXPECT_EQ_INT(hwloc_topology_load(topo), 0)) {
        hwloc_topology_destroy(topo);
        return NULL;
    }
    return topo;
}

/*
 * Two packages, each with a host bridge: behind it a switch with two GPUs and a NIC, another with
 * the same, and a NIC alone. Buses of the second package are 0x80 higher.
 */
static hwloc_topology_t big(void)
{
    static struct tree t;
    char name[16];
    begin(&t, 2);
    for (unsigned p = 0; p < 2; p++) {
        unsigned b = 0x80 * p;
        package(&t, p);
        host_bridge(&t, b, b + 0x3f);
        for (unsigned s = 0; s < 2; s++) {
            unsigned at = b + 1 + 0x10 * s;
            pci_switch(&t, at, at + 1, at + 8);
            device(&t, at + 1, NULL);
            device(&t, at + 2, NULL);
            snprintf(name, sizeof(name), "mlx5_%u", 3 * p + s);
            device(&t, at + 3, name);
            close_object(&t);
        }
        snprintf(name, sizeof(name), "mlx5_%u", 3 * p + 2);
        device(&t, b + 0x30, name);
        close_object(&t);
        close_object(&t);
    }
    return load(&t);
}

static const struct gi_net_nic six[] = {
    {.name = "mlx5_0", .bus = "0000:04:00.0"}, {.name = "mlx5_1", .bus = "0000:14:00.0"},
    {.name = "mlx5_2", .bus = "0000:30:00.0"}, {.name = "mlx5_3", .bus = "0000:84:00.0"},
    {.name = "mlx5_4", .bus = "0000:94:00.0"}, {.name = "mlx5_5", .bus = "0000:b0:00.0"}};

static void measure(hwloc_topology_t topo, const char *gpu, unsigned long cpus,
                    const struct gi_net_nic *nics, uint32_t n, enum gi_near *near)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_from_ulong(set, cpus);
    gi_nics_measure(topo, gpu, set, nics, n, near);
    hwloc_bitmap_free(set);
}

/* What is measured for each, as letters: Switch Bridge Node Package Far Unknown. */
static const char *measured(hwloc_topology_t topo, const char *gpu, unsigned long cpus,
                            const struct gi_net_nic *nics, uint32_t n)
{
    static char text[GI_NET_NICS + 1];
    enum gi_near near[GI_NET_NICS];
    measure(topo, gpu, cpus, nics, n, near);
    for (uint32_t i = 0; i < n; i++)
        text[i] = "SBNPFU"[near[i]];
    text[n] = 0;
    return text;
}

TEST(distances_from_a_gpu)
{
    hwloc_topology_t topo = big();
    if (topo == NULL)
        return;
    EXPECT_EQ_STR(measured(topo, "0000:02:00.0", 0xf, six, 6), "SBBFFF");
    EXPECT_EQ_STR(measured(topo, "0000:12:00.0", 0xf, six, 6), "BSBFFF");
    EXPECT_EQ_STR(measured(topo, "0000:92:00.0", 0x3, six, 6), "FFFBSB");
    hwloc_topology_destroy(topo);
}

TEST(distances_from_cores)
{
    hwloc_topology_t topo = big();
    if (topo == NULL)
        return;
    EXPECT_EQ_STR(measured(topo, "", 0x1, six, 6), "NNNFFF");
    EXPECT_EQ_STR(measured(topo, "", 0xc, six, 6), "FFFNNN");
    EXPECT_EQ_STR(measured(topo, "", 0xf, six, 6), "PPPPPP"); /* it may run anywhere */
    EXPECT_EQ_STR(measured(topo, "", 0x6, six, 6), "FFFFFF"); /* ... or nearly */
    /* a GPU that is not in the tree counts as none */
    EXPECT_EQ_STR(measured(topo, "0000:ee:00.0", 0x3, six, 6), "NNNFFF");
    hwloc_topology_destroy(topo);
}

TEST(devices_by_name)
{
    static const struct gi_net_nic named[] = {
        {.name = "mlx5_4"}, {.name = "mlx5_0"}, {.name = "eth7"}};
    hwloc_topology_t topo = big();
    if (topo == NULL)
        return;
    EXPECT_EQ_STR(measured(topo, "0000:02:00.0", 0xf, named, 3), "FSU");
    EXPECT_EQ_STR(measured(topo, "", 0xc, named, 3), "NFU");
    hwloc_topology_destroy(topo);
}

/* No devices in the tree at all: all are alike, and the provider's order by name stands. */
TEST(a_tree_without_devices)
{
    hwloc_topology_t topo;
    enum gi_near near[6];
    uint32_t pick[2];
    EXPECT_EQ_INT(hwloc_topology_init(&topo), 0);
    EXPECT_EQ_INT(hwloc_topology_set_synthetic(topo, "pack:2 numa:1 core:4 pu:1"), 0);
    EXPECT_EQ_INT(hwloc_topology_load(topo), 0);
    measure(topo, "0000:02:00.0", 0xf, six, 6, near);
    EXPECT_EQ_U64(gi_nics_nearest(six, near, 6), 0x3f);
    EXPECT_EQ_U64(gi_nics_pick(six, near, 6, 0, 1, 2, pick), 2);
    EXPECT(pick[0] == 0 && pick[1] == 1);
    hwloc_topology_destroy(topo);
}

/* One package, two NUMA-less host bridges with a port each, as small servers have. */
TEST(one_package)
{
    static const struct gi_net_nic two[] = {{.name = "a", .bus = "0000:01:00.0"},
                                            {.name = "b", .bus = "0000:41:00.0"}};
    static struct tree t;
    begin(&t, 1);
    package(&t, 0);
    host_bridge(&t, 0, 0x1f);
    device(&t, 1, "a");
    device(&t, 2, NULL);
    close_object(&t);
    host_bridge(&t, 0x40, 0x5f);
    device(&t, 0x41, "b");
    close_object(&t);
    close_object(&t);
    hwloc_topology_t topo = load(&t);
    if (topo == NULL)
        return;
    EXPECT_EQ_STR(measured(topo, "", 0x3, two, 2), "NN");
    EXPECT_EQ_STR(measured(topo, "0000:02:00.0", 0x3, two, 2), "BN");
    hwloc_topology_destroy(topo);
}

/* ---- the choice ---- */

/* "0,2" for the picks of one of the sharers. */
static const char *picked(const struct gi_net_nic *nics, const char *distances, uint32_t index,
                          uint32_t sharers, uint32_t rails)
{
    static char text[64];
    enum gi_near near[GI_NET_NICS];
    uint32_t pick[GI_NET_NICS], n = (uint32_t)strlen(distances);
    for (uint32_t i = 0; i < n; i++)
        near[i] = (enum gi_near)(strchr("SBNPFU", distances[i]) - "SBNPFU");
    n = gi_nics_pick(nics, near, n, index, sharers, rails, pick);
    text[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i != 0 ? "," : "",
                 pick[i]);
    return text;
}

TEST(the_nearest_are_taken)
{
    EXPECT_EQ_STR(picked(six, "SBBFFF", 0, 1, 1), "0");
    EXPECT_EQ_STR(picked(six, "FFFBSB", 0, 1, 1), "4");
    EXPECT_EQ_STR(picked(six, "SBBFFF", 0, 1, 3), "0,1,2"); /* then farther ones */
    EXPECT_EQ_STR(picked(six, "FFFBSB", 0, 1, 4), "4,3,5,0");
    EXPECT_EQ_STR(picked(six, "SBBFFF", 0, 1, 8), "0,1,2,3,4,5"); /* there are no more */
}

TEST(ranks_spread_over_equals)
{
    static const char *const three[] = {"0", "1", "2"};
    static const char *const two[] = {"0,1,2", "1,2,0"};
    static const char *const six_of_three[] = {"0", "0", "1", "1", "2", "2"};
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_EQ_STR(picked(six, "NNNFFF", i, 3, 1), three[i]);
    for (uint32_t i = 0; i < 6; i++)
        EXPECT_EQ_STR(picked(six, "NNNFFF", i, 6, 1), six_of_three[i]);
    for (uint32_t i = 0; i < 2; i++)
        EXPECT_EQ_STR(picked(six, "NNNFFF", i, 2, 3), two[i]);
    EXPECT_EQ_STR(picked(six, "PPPPPP", 1, 2, 3), "3,4,5");
    EXPECT_EQ_STR(picked(six, "FFFNNN", 1, 3, 2), "4,5");
}

TEST(speed_and_state_count)
{
    struct gi_net_nic n[] = {{.name = "a", .speed = 10},
                             {.name = "b", .speed = 100},
                             {.name = "c", .speed = 100, .down = true},
                             {.name = "lo", .speed = 1000, .local = true},
                             {.name = "d", .speed = 100}};
    EXPECT_EQ_STR(picked(n, "NNNNN", 0, 1, 1), "1");
    EXPECT_EQ_STR(picked(n, "NNNNN", 1, 2, 1), "4");
    EXPECT_EQ_STR(picked(n, "NNNNN", 0, 1, 5), "1,4,0");
    EXPECT_EQ_STR(picked(n, "SNNNN", 0, 1, 2), "0,1"); /* nearer before faster */
    n[0].down = n[1].down = n[4].down = true;
    EXPECT_EQ_STR(picked(n, "NNNNN", 0, 1, 1), "");
}

TEST(a_fair_share)
{
    EXPECT_EQ_U64(gi_nics_share(1, 1), 1);
    EXPECT_EQ_U64(gi_nics_share(2, 1), 2);
    EXPECT_EQ_U64(gi_nics_share(8, 1), 4); /* the bound */
    EXPECT_EQ_U64(gi_nics_share(8, 4), 2);
    EXPECT_EQ_U64(gi_nics_share(2, 3), 1);
    EXPECT_EQ_U64(gi_nics_share(8, 3), 2);
}

TEST(all_ranks_of_a_host_see_one_order)
{
    struct gi_net_nic n[] = {{.name = "z"},
                             {.name = "y", .bus = "0000:81:00.0"},
                             {.name = "a"},
                             {.name = "x", .bus = "0000:01:00.0"}};
    gi_nics_sort(n, 4);
    EXPECT_EQ_STR(n[0].name, "x");
    EXPECT_EQ_STR(n[1].name, "y");
    EXPECT_EQ_STR(n[2].name, "a");
    EXPECT_EQ_STR(n[3].name, "z");
}
