/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA devices as their kernel driver and libibverbs show them: each port with state, link, MTU
 * and addresses, and what forbids its use. libfabric only leaves out what it cannot open and does
 * not say why; this does.
 */
#include "lib/tools/gininfo.h"

#define SECTION "rdma"

#if GI_HAVE_IBVERBS

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#define MOST_GIDS 16 /* shown, of a port */

static const char *link_of(const struct ibv_port_attr *a)
{
    switch (a->link_layer) {
    case IBV_LINK_LAYER_INFINIBAND: return "InfiniBand";
    case IBV_LINK_LAYER_ETHERNET: return "Ethernet";
    default: return "a link of unknown kind";
    }
}

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static const char *gid_kind(uint32_t type)
{
    switch (type) {
    case IBV_GID_TYPE_IB: return "IB";
    case IBV_GID_TYPE_ROCE_V1: return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2: return "RoCE v2";
    default: return "of unknown type";
    }
}

static void gid_text(const union ibv_gid *gid, char *text, size_t n)
{
    size_t used = 0;
    for (int i = 0; i < 16 && used < n; i += 2)
        used += (size_t)snprintf(text + used, n - used, "%s%x", i != 0 ? ":" : "",
                                 gid->raw[i] << 8 | gid->raw[i + 1]);
}

/* Addresses of the port, a fact each; their number. */
static int gids(struct ibv_context *ctx, const char *port_name, uint32_t port,
                const struct ibv_port_attr *a)
{
    static const union ibv_gid none;
    int found = 0;
    for (uint32_t i = 0; i < (uint32_t)a->gid_tbl_len; i++) {
        struct ibv_gid_entry e;
        char name[96], text[48];
        if (ibv_query_gid_ex(ctx, port, i, &e, 0) != 0 ||
            memcmp(&e.gid, &none, sizeof(none)) == 0 || ++found > MOST_GIDS)
            continue;
        snprintf(name, sizeof(name), "%s gid %u", port_name, i);
        gid_text(&e.gid, text, sizeof(text));
        info_add(SECTION, name, INFO_PLAIN, text, "%s", gid_kind(e.gid_type));
    }
    if (found > MOST_GIDS)
        info_add(SECTION, port_name, INFO_PLAIN, NULL, "%d addresses more", found - MOST_GIDS);
    return found;
}

/* What keeps ranks from using it, or NULL. */
static const char *forbids(const struct ibv_port_attr *a, int n_gids)
{
    if (a->state == IBV_PORT_DOWN)
        return "the port is down: a cable, or \"ip link set up\" of its network interface";
    if (a->state == IBV_PORT_INIT || a->state == IBV_PORT_ARMED)
        return a->link_layer == IBV_LINK_LAYER_INFINIBAND ? "it waits for a subnet manager"
                                                          : "it is not ready yet";
    if (a->state != IBV_PORT_ACTIVE && a->state != IBV_PORT_ACTIVE_DEFER)
        return "its state is unknown";
    if (n_gids == 0)
        return "it has no address (GID): its network interface needs one";
    if (a->link_layer == IBV_LINK_LAYER_INFINIBAND && a->lid == 0)
        return "the subnet manager gave it no LID";
    return NULL;
}

static void show_port(struct ibv_context *ctx, const char *device, uint32_t port)
{
    struct ibv_port_attr a;
    char name[80], value[96];
    snprintf(name, sizeof(name), "%s port %u", device, port);
    memset(&a, 0, sizeof(a));
    int err = ibv_query_port(ctx, (uint8_t)port, &a);
    if (err != 0) {
        info_add(SECTION, name, INFO_NO, NULL, "asking for its state: %s",
                 strerror(err > 0 ? err : errno));
        return;
    }
    const char *why = forbids(&a, gids(ctx, name, port, &a));
    snprintf(value, sizeof(value), "%s, %s, MTU %u of at most %u", ibv_port_state_str(a.state),
             link_of(&a), mtu_bytes(a.active_mtu), mtu_bytes(a.max_mtu));
    info_add(SECTION, name, why != NULL ? INFO_NO : INFO_YES, NULL, "%s%s%s",
             why != NULL ? why : value, why != NULL ? " - " : "", why != NULL ? value : "");
}

/* A device that cannot be opened: mostly a matter of rights, and of containers. */
static void show_closed(struct ibv_device *device, const char *name, int err)
{
    char path[64];
    snprintf(path, sizeof(path), "/dev/infiniband/%.32s", device->dev_name);
    if (access(path, F_OK) != 0)
        info_add(SECTION, name, INFO_NO, NULL,
                 "%s is not there: load ib_uverbs, or give the container that device", path);
    else if (access(path, R_OK | W_OK) != 0)
        info_add(SECTION, name, INFO_NO, NULL, "%s may not be read and written: %s", path,
                 strerror(errno));
    else
        info_add(SECTION, name, INFO_NO, NULL, "it does not open: %s", strerror(err));
}

static void show_device(struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_device_attr a;
    errno = 0;
    struct ibv_context *ctx = ibv_open_device(device);
    if (ctx == NULL) {
        show_closed(device, name, errno);
        return;
    }
    int err = ibv_query_device(ctx, &a);
    if (err != 0) {
        info_add(SECTION, name, INFO_NO, NULL, "asking for its limits: %s", strerror(err));
    } else {
        info_add(SECTION, name, INFO_PLAIN, a.fw_ver[0] != 0 ? a.fw_ver : "no firmware",
                 "%d regions of memory, %d queue pairs, atomics %s", a.max_mr, a.max_qp,
                 a.atomic_cap == IBV_ATOMIC_NONE  ? "none"
                 : a.atomic_cap == IBV_ATOMIC_HCA ? "of this device only"
                                                  : "of devices and processors");
        for (uint32_t port = 1; port <= a.phys_port_cnt; port++)
            show_port(ctx, name, port);
    }
    ibv_close_device(ctx);
}

void info_rdma(void)
{
    int n = 0;
    errno = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (list == NULL && errno != ENOSYS)
        info_add(SECTION, "devices", INFO_UNKNOWN, NULL, "libibverbs: %s", strerror(errno));
    else if (list == NULL || n == 0)
        info_add(SECTION, "devices", INFO_NO, NULL, "%s",
                 list != NULL ? "the kernel shows none" : "the kernel has no RDMA (ib_core)");
    for (int i = 0; list != NULL && i < n; i++)
        show_device(list[i]);
    if (list != NULL)
        ibv_free_device_list(list);
}

#else

void info_rdma(void)
{
    info_add(SECTION, "devices", INFO_UNKNOWN, NULL, "%s",
             "gininfo was built without libibverbs, which would tell (rdma-core)");
}

#endif
