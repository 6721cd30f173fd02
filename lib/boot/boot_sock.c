/* SPDX-License-Identifier: BSD-3-Clause */
/* How a text becomes an address, which addresses a root tells others, how its socket listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_sock.h"

/* A vanished host: first probe after 10 s of silence, then every 5 s, dead after 4 without answer.
 */
#define KEEP_IDLE_S     10
#define KEEP_INTERVAL_S 5
#define KEEP_COUNT      4
#define BACKLOG         4096

const char *gi_addr_text(const struct gi_addr *a, char *buf)
{
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];

    if (getnameinfo((const struct sockaddr *)&a->sa, a->len, host, sizeof(host), NULL, 0,
                    NI_NUMERICHOST) != 0)
        snprintf(host, sizeof(host), "?");
    snprintf(buf, GI_ADDR_TEXT, a->sa.ss_family == AF_INET6 ? "[%.60s]:%u" : "%.60s:%u", host,
             gi_addr_port(a));
    return buf;
}

void gi_addr_set_port(struct gi_addr *a, uint16_t port)
{
    if (a->sa.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&a->sa)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&a->sa)->sin_port = htons(port);
}

uint16_t gi_addr_port(const struct gi_addr *a)
{
    return ntohs(a->sa.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&a->sa)->sin6_port
                                             : ((const struct sockaddr_in *)&a->sa)->sin_port);
}

bool gi_addr_loopback(const struct gi_addr *a)
{
    if (a->sa.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&a->sa)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)&a->sa)->sin_addr.s_addr) >> 24 == 127;
}

void gi_addr_pack(const struct gi_addr *a, struct gi_addr_packed *p)
{
    memset(p, 0, sizeof(*p));
    p->family = a->sa.ss_family;
    p->port = gi_addr_port(a);
    if (p->family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->sa;
        memcpy(p->bytes, &in6->sin6_addr, 16);
        p->scope = in6->sin6_scope_id;
    } else {
        memcpy(p->bytes, &((const struct sockaddr_in *)&a->sa)->sin_addr, 4);
    }
}

bool gi_addr_unpack(const struct gi_addr_packed *p, struct gi_addr *a)
{
    memset(a, 0, sizeof(*a));
    a->sa.ss_family = p->family;
    if (p->family == AF_INET6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a->sa;
        memcpy(&in6->sin6_addr, p->bytes, 16);
        in6->sin6_scope_id = p->scope;
        a->len = sizeof(*in6);
    } else if (p->family == AF_INET) {
        memcpy(&((struct sockaddr_in *)&a->sa)->sin_addr, p->bytes, 4);
        a->len = sizeof(struct sockaddr_in);
    } else {
        return false;
    }
    gi_addr_set_port(a, p->port);
    return true;
}

bool gi_addr_split(const char *text, char *host, size_t size, uint16_t *port)
{
    const char *colon = strrchr(text, ':'), *begin = text, *end = colon;
    unsigned long v = 0;

    if (colon == NULL || colon[1] == '\0' || strlen(colon + 1) > 5)
        return false;
    if (text[0] == '[') {
        if (colon == text || colon[-1] != ']')
            return false;
        begin++;
        end--;
    } else if (memchr(text, ':', (size_t)(colon - text)) != NULL) {
        return false; /* an IPv6 address without brackets: its end would be a guess */
    }
    for (const char *p = colon + 1; *p != '\0'; p++) {
        if (*p < '0' || *p > '9')
            return false;
        v = v * 10 + (unsigned long)(*p - '0');
    }
    if (v == 0 || v > 65535 || end <= begin || (size_t)(end - begin) >= size)
        return false;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *port = (uint16_t)v;
    return true;
}

static int take_infos(const struct addrinfo *list, struct gi_addr *addr, int max)
{
    int n = 0;

    for (; list != NULL && n < max; list = list->ai_next) {
        if (list->ai_addrlen > sizeof(addr[n].sa))
            continue;
        memset(&addr[n], 0, sizeof(addr[n]));
        memcpy(&addr[n].sa, list->ai_addr, list->ai_addrlen);
        addr[n++].len = (uint32_t)list->ai_addrlen;
    }
    return n;
}

static int ask_resolver(const char *host, uint16_t port, int flags, struct gi_addr *addr, int max)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV},
                    *list = NULL;
    char service[8];
    int e, n;

    snprintf(service, sizeof(service), "%u", port);
    e = getaddrinfo(host, service, &hints, &list);
    if (e != 0)
        return e < 0 ? e : -e;
    n = take_infos(list, addr, max);
    freeaddrinfo(list);
    return n > 0 ? n : EAI_NONAME;
}

int gi_addr_number(const char *host, uint16_t port, struct gi_addr *addr, int max)
{
    int n, more = 0;

    if (strcmp(host, "localhost") != 0) {
        n = ask_resolver(host, port, AI_NUMERICHOST, addr, max);
        return n > 0 ? n : 0;
    }
    n = ask_resolver("127.0.0.1", port, AI_NUMERICHOST, addr, max);
    if (n > 0 && n < max)
        more = ask_resolver("::1", port, AI_NUMERICHOST, addr + n, max - n);
    return n > 0 ? n + (more > 0 ? more : 0) : 0;
}

int gi_addr_lookup(const char *host, uint16_t port, struct gi_addr *addr, int max)
{
    struct utsname self;
    bool mine = uname(&self) == 0 && strcmp(host, self.nodename) == 0;
    int n = gi_addr_number(mine ? "localhost" : host, port, addr, max);

    if (n > 0)
        return n;
    n = ask_resolver(host, port, 0, addr, max);
    if (n > 0)
        return n;
    return gi_fail(GIN_EINVAL,
                   "\"%s\" is neither an address nor a name that resolves (%s); give the address "
                   "as a number",
                   host, gai_strerror(n));
}

int gi_addr_resolve(const char *text, struct gi_addr *addr, int max)
{
    char host[256];
    uint16_t port;

    if (!gi_addr_split(text, host, sizeof(host), &port))
        return gi_fail(GIN_EINVAL, "\"%s\" is not address:port or [IPv6 address]:port", text);
    return gi_addr_lookup(host, port, addr, max);
}

/* Whether others can be told this address: link-local ones mean nothing without an interface. */
static bool usable(const struct ifaddrs *i, const char *iface)
{
    if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP))
        return false;
    if (iface != NULL && strcmp(iface, i->ifa_name) != 0)
        return false;
    if (i->ifa_addr->sa_family == AF_INET)
        return true;
    if (i->ifa_addr->sa_family != AF_INET6)
        return false;
    return !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
}

static int add_addrs(const struct ifaddrs *list, const char *iface, bool loopback, int family,
                     uint16_t port, struct gi_addr *addr, int max)
{
    int n = 0;

    for (const struct ifaddrs *i = list; i != NULL && n < max; i = i->ifa_next) {
        if (!usable(i, iface) || i->ifa_addr->sa_family != family)
            continue;
        memset(&addr[n], 0, sizeof(addr[n]));
        addr[n].len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        memcpy(&addr[n].sa, i->ifa_addr, addr[n].len);
        if (gi_addr_loopback(&addr[n]) != loopback)
            continue;
        gi_addr_set_port(&addr[n], port);
        n++;
    }
    return n;
}

int gi_addr_local(const char *iface, uint16_t port, struct gi_addr *addr, int max)
{
    struct ifaddrs *list;
    int n = 0;

    if (getifaddrs(&list) != 0)
        return gi_fail(GIN_ESYS, "list of network interfaces: %s", gi_os_strerror(errno));
    /* One place is kept for the loopback: it always works for the ranks of this host. */
    for (int loopback = 0; loopback <= 1; loopback++)
        for (int v6 = 0; v6 <= 1; v6++)
            n += add_addrs(list, iface, loopback, v6 ? AF_INET6 : AF_INET, port, addr + n,
                           max - n - (loopback ? 0 : 1));
    freeifaddrs(list);
    if (n > 0)
        return n;
    if (iface != NULL)
        return gi_fail(GIN_EINVAL,
                       "GINSHMEM_IFACE=%s: no such interface that is up and has an "
                       "address",
                       iface);
    return gi_fail(GIN_ESYS, "no network interface is up, not even the loopback");
}

static int listen_at(const struct sockaddr *sa, uint32_t len)
{
    int fd = gi_os_socket(sa->sa_family, SOCK_STREAM, 0), e;

    if (fd < 0)
        return fd;
    gi_os_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (sa->sa_family == AF_INET6) {
        bool any = IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
        gi_os_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !any);
    }
    e = gi_os_bind(fd, sa, len);
    if (e == 0)
        e = gi_os_listen(fd, BACKLOG);
    if (e == 0)
        return fd;
    gi_os_close(fd);
    return e;
}

int gi_sock_listen(const struct gi_addr *a, uint16_t port)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd;

    if (a != NULL)
        return listen_at((const struct sockaddr *)&a->sa, a->len);
    fd = listen_at((struct sockaddr *)&any6, sizeof(any6));
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
        fd = listen_at((struct sockaddr *)&any4, sizeof(any4));
    return fd;
}

uint16_t gi_sock_port(int fd)
{
    struct gi_addr a = {.len = sizeof(a.sa)};
    return gi_os_sockname(fd, (struct sockaddr *)&a.sa, &a.len) == 0 ? gi_addr_port(&a) : 0;
}

/* None of these can fail in a way that matters: the connection works without them. */
void gi_sock_tune(int fd)
{
    gi_os_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    gi_os_set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    gi_os_set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    gi_os_set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
    gi_os_set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
}

bool gi_sock_self_connected(int fd)
{
    struct gi_addr me = {.len = sizeof(me.sa)}, peer = {.len = sizeof(peer.sa)};

    return gi_os_sockname(fd, (struct sockaddr *)&me.sa, &me.len) == 0 &&
           gi_os_peername(fd, (struct sockaddr *)&peer.sa, &peer.len) == 0 && me.len == peer.len &&
           memcmp(&me.sa, &peer.sa, me.len) == 0;
}

ssize_t gi_sock_recv(int fd, void *buf, size_t n)
{
    struct iovec iov = {.iov_base = buf, .iov_len = n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t got = gi_os_recvmsg(fd, &msg, MSG_DONTWAIT);

    return got == 0 && n > 0 ? -ECONNRESET : got;
}

ssize_t gi_sock_send(int fd, const void *head, size_t head_n, const void *body, size_t body_n)
{
    struct iovec iov[2] = {{.iov_base = (void *)(uintptr_t)head, .iov_len = head_n},
                           {.iov_base = (void *)(uintptr_t)body, .iov_len = body_n}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

    return gi_os_sendmsg(fd, &msg, MSG_DONTWAIT);
}
