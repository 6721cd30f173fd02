/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and stream sockets, as far as bring-up needs them. IPv4 and IPv6. */
#ifndef GI_BOOT_BOOT_SOCK_H
#define GI_BOOT_BOOT_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct gi_addr {
    struct sockaddr_storage sa;
    uint32_t len;
};

#define GI_ADDR_TEXT 80
/* "10.0.0.1:5000", "[fe80::1%eth0]:5000". buf holds GI_ADDR_TEXT. */
const char *gi_addr_text(const struct gi_addr *a, char *buf);
void gi_addr_set_port(struct gi_addr *a, uint16_t port);
uint16_t gi_addr_port(const struct gi_addr *a);
bool gi_addr_loopback(const struct gi_addr *a);

/* An address on its way to other ranks. */
struct gi_addr_packed {
    uint16_t family, port;
    uint32_t scope;
    unsigned char bytes[16];
};
void gi_addr_pack(const struct gi_addr *a, struct gi_addr_packed *p);
bool gi_addr_unpack(const struct gi_addr_packed *p, struct gi_addr *a); /* false: unknown family */

/* Split "host:port" or "[v6]:port"; false if it is neither or the port is not in 1..65535. Pure. */
bool gi_addr_split(const char *text, char *host, size_t size, uint16_t *port);

/*
 * Addresses of "host:port": a number, "localhost", this host's own name (needs no resolver), or a
 * name that resolves. Number of addresses, at least 1, or a status with its text.
 */
int gi_addr_resolve(const char *text, struct gi_addr *addr, int max);
/* The same for a host and a port apart. */
int gi_addr_lookup(const char *host, uint16_t port, struct gi_addr *addr, int max);
/* The same without names but "localhost": number of addresses, 0 if it is a name. No text. */
int gi_addr_number(const char *host, uint16_t port, struct gi_addr *addr, int max);

/*
 * Addresses of this host at which others can reach it, loopback last, of the interface alone where
 * one is named. Number of addresses or a status with its text.
 */
int gi_addr_local(const char *iface, uint16_t port, struct gi_addr *addr, int max);

/* Listening socket at a, or at every address where a is NULL; -errno. */
int gi_sock_listen(const struct gi_addr *a, uint16_t port);
/* The port a listening socket got. */
uint16_t gi_sock_port(int fd);
/* Small messages at once; a host that vanished is noticed. */
void gi_sock_tune(int fd);
/* True if a connection ended up at itself: a port of ours with nobody listening, met by chance. */
bool gi_sock_self_connected(int fd);

/* Never wait. Bytes moved, -EAGAIN, another -errno; receiving yields -ECONNRESET at the end. */
ssize_t gi_sock_recv(int fd, void *buf, size_t n);
ssize_t gi_sock_send(int fd, const void *head, size_t head_n, const void *body, size_t body_n);

#endif
