/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap over TCP: every rank keeps one connection to rank 0, the root. What goes over it:
 *
 *   rank -> root   hello: magic, version, rank, size, job, nonce, the ranks' half of the secret
 *   root -> rank   ACK with the root's half at once, or REFUSE with the reason
 *   root -> rank   CALL, which the rank answers with HERE: to all when the last has joined, and to
 *                  a rank whose number another process claims; what has died while joining does
 *                  not answer, and its number is free again
 *   root -> rank   WELCOME when all have answered
 *   collective     DATA of each rank -> root; DATA of all -> each rank, or ERROR with the reason
 *   end            BYE, either way
 *
 * The magic is the first eight bytes of all; a connection that shows another one, or nothing for a
 * while, belongs to a stranger and is closed without disturbing anything. Ranks of one job run on
 * machines of one kind, so words travel in the machine's order.
 *
 * The secret is shown in two halves, of which a rank and the root each show one: who only listens
 * where a root should be learns the ranks' half, and cannot answer with the other. That is no
 * cryptography: who reads along, or passes the words on between a rank and the true root, has both.
 */
#ifndef GI_BOOT_BOOT_TCP_H
#define GI_BOOT_BOOT_TCP_H

#include "boot/boot_impl.h"
#include "boot/boot_sock.h"

#define GI_TCP_MAGIC   0x474e49424f4f5431u
#define GI_TCP_VERSION 3u
#define GI_TCP_SECRET  64
/* Addresses and ports at which a root may be found. */
#define GI_TCP_PLACES 16

struct gi_tcp_hello {
    uint64_t magic;
    uint32_t version, rank, size, zero;
    uint64_t job;   /* which of several jobs that might meet at a port */
    uint64_t nonce; /* this attempt of this rank: its other connections are not rivals */
    unsigned char half[GI_TCP_SECRET];
};

enum gi_tcp_kind {
    GI_TCP_ACK = 1,
    GI_TCP_REFUSE,
    GI_TCP_WELCOME,
    GI_TCP_DATA,
    GI_TCP_ERROR,
    GI_TCP_BYE,
    GI_TCP_CALL,
    GI_TCP_HERE
};

struct gi_tcp_frame {
    uint64_t magic;
    uint32_t kind;
    int32_t status;
    uint64_t seq;   /* of a collective; of a call and its answer */
    uint64_t bytes; /* behind the frame; a text in REFUSE and ERROR, a half in ACK */
};

/* What a rank must know to join. */
struct gi_tcp_job {
    int rank, size;
    uint64_t id;
    unsigned char secret[GI_TCP_SECRET];
    bool alone; /* nobody else uses these ports: another job there is an error, not bad luck */
    int n_places;
    struct gi_addr place[GI_TCP_PLACES];
    char where[GI_ADDR_TEXT]; /* the places, for messages */
};

struct gi_tcp_boot {
    struct gi_boot b;
    uint64_t seq;
    int broken; /* status of the failure that ended this bootstrap */
    char why[GI_BOOT_WHY];
    bool told;            /* the root has passed it on */
    int fd;               /* to the root; -1 at the root */
    int *fds;             /* the root's, by rank; own one -1. NULL elsewhere */
    struct gi_tcp_rx *rx; /* the root's state per rank in a collective */
};

/* boot_root.c: gather all ranks at a listening socket, which stays the caller's. */
int gi_tcp_gather(struct gi_tcp_boot *t, const struct gi_tcp_job *job, int listener,
                  uint64_t deadline);
/* boot_join.c: find the root and await its welcome. */
int gi_tcp_join(struct gi_tcp_boot *t, const struct gi_tcp_job *job, uint64_t deadline);

/* Send a frame of no or a short body, never waiting; failures show at the next use. */
void gi_tcp_send_note(int fd, enum gi_tcp_kind kind, int status, const char *text);
/* Send a CALL or HERE in the same way. */
void gi_tcp_send_call(int fd, enum gi_tcp_kind kind, uint64_t seq);
/*
 * Receive a frame. The body of all but DATA goes to text, which holds GI_BOOT_WHY. 0,
 * -ETIMEDOUT, -ECONNRESET, another -errno; -EPROTO when it is no frame.
 */
int gi_tcp_recv_frame(int fd, struct gi_tcp_frame *f, char *text, uint64_t deadline);

/* The half of a secret that the root shows, or that the ranks show: every other byte. */
void gi_tcp_half(const unsigned char *secret, bool root, unsigned char *half);
/* Constant-time comparison of what was shown with that half. */
bool gi_tcp_is_half(const unsigned char *secret, bool root, const unsigned char *shown);
/* Send an ACK in the way of a note. */
void gi_tcp_send_ack(int fd, const unsigned char *secret);
/* A fold of a text, to tell jobs apart; not a secret. */
uint64_t gi_tcp_fold(const char *text);

/* boot_tcp.c: bring t up from job; listener >= 0 at rank 0, and closed in any case. */
int gi_tcp_open(const struct gi_tcp_job *job, int listener, const char *origin, uint64_t deadline,
                struct gi_boot **boot);

#endif
