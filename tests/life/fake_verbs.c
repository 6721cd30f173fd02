/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine with RDMA devices that there are none of, for gininfo: preloaded, it answers for
 * libibverbs. "good" has a port of RoCE with two addresses; "bad" one port that is down, one
 * without an address and one that waits for a subnet manager; "shut" has no device file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define API __attribute__((visibility("default")))

enum { GOOD, BAD, SHUT, N };

static struct ibv_device device[N];
static struct ibv_context context[N];

/* Libraries would go further with the devices than these do. */
static bool is_program(void *caller)
{
    Dl_info by;
    return dladdr(caller, &by) != 0 && strstr(by.dli_fname, ".so") == NULL;
}

API struct ibv_device **ibv_get_device_list(int *n)
{
    static const char *const names[N] = {"good", "bad", "shut"};
    struct ibv_device **list = calloc(N + 1, sizeof(struct ibv_device *));
    int shown = is_program(__builtin_return_address(0)) ? N : 0;
    for (int i = 0; list != NULL && i < shown; i++) {
        strcpy(device[i].name, names[i]);
        strcpy(device[i].dev_name, "uverbs_nowhere");
        list[i] = &device[i];
    }
    if (n != NULL) /* some ask for the list alone */
        *n = shown;
    return list;
}

API void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

API const char *ibv_get_device_name(struct ibv_device *d)
{
    return d->name;
}

API struct ibv_context *ibv_open_device(struct ibv_device *d)
{
    long i = d - device;
    errno = ENOENT;
    if (i == SHUT)
        return NULL;
    context[i].device = d;
    return &context[i];
}

API int ibv_close_device(struct ibv_context *c)
{
    (void)c;
    return 0;
}

API int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
    memset(a, 0, sizeof(*a));
    strcpy(a->fw_ver, "16.35.1");
    a->max_mr = 1000;
    a->max_qp = 500;
    a->atomic_cap = c == &context[GOOD] ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
    a->phys_port_cnt = c == &context[GOOD] ? 1 : 3;
    return 0;
}

#undef ibv_query_port
API int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    struct ibv_port_attr a = {.state = IBV_PORT_ACTIVE,
                              .max_mtu = IBV_MTU_4096,
                              .active_mtu = IBV_MTU_1024,
                              .gid_tbl_len = 3,
                              .link_layer = IBV_LINK_LAYER_ETHERNET};
    if (c == &context[BAD] && port == 1)
        a.state = IBV_PORT_DOWN;
    if (c == &context[BAD] && port == 2)
        a.gid_tbl_len = 0;
    if (c == &context[BAD] && port == 3) {
        a.state = IBV_PORT_INIT;
        a.link_layer = IBV_LINK_LAYER_INFINIBAND;
    }
    memcpy(attr, &a, offsetof(struct ibv_port_attr, port_cap_flags2));
    return 0;
}

API const char *ibv_port_state_str(enum ibv_port_state s)
{
    return s == IBV_PORT_ACTIVE ? "PORT_ACTIVE" : s == IBV_PORT_DOWN ? "PORT_DOWN" : "PORT_INIT";
}

API int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
                          struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
    (void)c, (void)port, (void)flags, (void)size;
    if (index == 1)
        return ENODATA;
    memset(e, 0, sizeof(*e));
    e->gid.raw[0] = 0xfe;
    e->gid.raw[1] = 0x80;
    e->gid.raw[15] = (uint8_t)(index + 1);
    e->gid_index = index;
    e->gid_type = index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    return 0;
}
