/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1: the client's side of the wire protocol, over the descriptor PMI_FD or a connection to
 * PMI_PORT. No library: hydra, Slurm's pmi2 plugin and ginrun all speak it. ginrun adds to it
 * (says launcher=ginrun): requests may be sent without awaiting the answers before, so that a whole
 * allgather is one write and its answers; a barrier ends when it cannot succeed any more; the ranks
 * that are missing in it are listed.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_kvs.h"
#include "boot/boot_sock.h"
#include "boot/pmi_wire.h"

#define BUF_BYTES   65536
#define GOODBYE_NS  1000000000u /* for the server's answer to finalize */
#define QUESTION_NS 2000000000u /* for the list of missing ranks */
/* Whatever a server says of values, some (Slurm) take no request of more than 1024 bytes. */
#define PUT_MAX    1000
#define PUT_WORDS  (sizeof("cmd=put kvsname= key= value=\n") + GI_KVS_KEY)
#define GETS_BYTES (GI_PMI_WINDOW * (GI_PMI_KVSNAME_MAX + GI_PMI_KEY_MAX + 32))
/* The queue keeps room for a batch of gets; ginrun holds that much behind a barrier. */
#define QUEUE_BYTES (GETS_BYTES + 4096)

static struct pmi1 {
    struct gi_kvs k;
    int fd;
    bool ginrun; /* the launcher is ours and knows the additions */
    char kvsname[GI_PMI_KVSNAME_MAX];
    /* ginrun only: requests not yet sent, and what will be answered */
    char queue[QUEUE_BYTES];
    size_t queued;
    unsigned puts;
    bool barrier;
    char buf[BUF_BYTES]; /* received: [at, have) is not yet looked at */
    size_t at, have;
} pmi1 = {.k = {.lock = PTHREAD_MUTEX_INITIALIZER}, .fd = -1};

static int closed(const struct pmi1 *p)
{
    return gi_fail(
        GIN_EPEER,
        "the launcher closed the PMI connection (%s): it ends the job, or MPI_Finalize() "
        "took leave of it for this process",
        p->k.origin);
}

static int send_text(struct pmi1 *p, const char *text, size_t n, uint64_t deadline)
{
    int e = gi_os_write_full(p->fd, text, n, deadline);
    if (e == -ETIMEDOUT)
        return gi_fail(GIN_ETIMEDOUT, "the launcher takes no PMI request");
    if (e == -EPIPE || e == -ECONNRESET)
        return closed(p);
    if (e != 0)
        return gi_fail(GIN_ESYS, "connection to the launcher (%s): %s", p->k.origin,
                       gi_os_strerror(e));
    return GIN_OK;
}

/* Next line of the server, taken apart; msg is good until the next call. */
static int next_line(struct pmi1 *p, struct gi_pmi_msg *msg, uint64_t deadline)
{
    for (;;) {
        int n = gi_pmi_line(p->buf + p->at, p->have - p->at);
        if (n > 0) {
            const char *line = p->buf + p->at;
            p->at += (size_t)n;
            if (gi_pmi_parse(line, (size_t)n, msg))
                return GIN_OK;
            return gi_fail(GIN_ESYS, "the launcher sent what is no PMI-1 line: \"%.*s\"",
                           n - 1 < 80 ? n - 1 : 80, line);
        }
        if (n < 0)
            return gi_fail(GIN_ESYS, "the launcher sent a PMI line of more than %d bytes",
                           GI_PMI_LINE_MAX);
        memmove(p->buf, p->buf + p->at, p->have - p->at);
        p->have -= p->at;
        p->at = 0;
        struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
        int e = gi_boot_poll(p->k.now, &pfd, 1, deadline);
        if (e == -ECANCELED)
            return p->k.now->stopped;
        if (e == 0)
            return gi_fail(GIN_ETIMEDOUT, "no answer of the launcher (%s)", p->k.origin);
        ssize_t got = e < 0 ? e : gi_os_read(p->fd, p->buf + p->have, sizeof(p->buf) - p->have);
        if (got == 0 || got == -ECONNRESET)
            return closed(p);
        if (got < 0 && got != -EAGAIN)
            return gi_fail(GIN_ESYS, "connection to the launcher (%s): %s", p->k.origin,
                           gi_os_strerror((int)got));
        if (got > 0)
            p->have += (size_t)got;
    }
}

/* Send a request, await the line cmd=answer, and insist on rc=0 where it has an rc. */
static int ask(struct pmi1 *p, const char *request, size_t n, const char *answer,
               struct gi_pmi_msg *msg, uint64_t deadline)
{
    int rc = 0, st = send_text(p, request, n, deadline);

    if (st == GIN_OK)
        st = next_line(p, msg, deadline);
    if (st != GIN_OK)
        return st;
    if (!gi_pmi_is(msg, answer))
        return gi_fail(GIN_ESYS, "the launcher answered cmd=%.*s to \"%.*s\"",
                       (int)msg->word[0].value_len, msg->word[0].value, (int)n - 1, request);
    if (gi_pmi_int(msg, "rc", INT_MIN, INT_MAX, &rc) && rc != 0) {
        char why[64] = "no reason given";
        gi_pmi_copy(msg, "msg", why, sizeof(why));
        return gi_fail(GIN_ESYS, "the launcher refused \"%.*s\": rc=%d, %s",
                       (int)n - 1 < 60 ? (int)n - 1 : 60, request, rc, why);
    }
    return GIN_OK;
}

#define ASK(p, text, answer, msg, deadline) ask(p, text, sizeof(text) - 1, answer, msg, deadline)

/* Send what is queued. */
static int send_queue(struct pmi1 *p, uint64_t deadline)
{
    size_t n = p->queued;

    p->queued = 0;
    return n > 0 ? send_text(p, p->queue, n, deadline) : GIN_OK;
}

static int check_put(const struct gi_pmi_msg *msg)
{
    int rc = 0;

    if (gi_pmi_is(msg, "put_result") && (!gi_pmi_int(msg, "rc", INT_MIN, INT_MAX, &rc) || rc == 0))
        return GIN_OK;
    return gi_fail(GIN_ESYS, "the launcher does not store a record: cmd=%.*s, rc=%d",
                   (int)msg->word[0].value_len, msg->word[0].value, rc);
}

/* The barrier did not end in time. Ask who is missing, where the launcher can say. */
static int who_is_missing(struct pmi1 *p)
{
    static const char question[] = "cmd=barrier_missing\n";
    uint64_t deadline = gi_deadline_in(QUESTION_NS);
    struct gi_pmi_msg msg;
    char ranks[200];

    if (p->ginrun && send_text(p, question, sizeof(question) - 1, deadline) == GIN_OK)
        while (next_line(p, &msg, deadline) == GIN_OK)
            if (gi_pmi_is(&msg, "barrier_missing_result") &&
                gi_pmi_copy(&msg, "ranks", ranks, sizeof(ranks)))
                return gi_fail(GIN_ETIMEDOUT, "missing in the barrier of %d ranks: rank %s",
                               p->k.size, ranks);
    return gi_fail(GIN_ETIMEDOUT,
                   "the barrier of %d ranks did not end; this launcher cannot say who is missing",
                   p->k.size);
}

/* The answer to barrier_in. */
static int leave_barrier(struct pmi1 *p, uint64_t deadline)
{
    struct gi_pmi_msg msg;
    int rc = 0, rank, st = next_line(p, &msg, deadline);

    if (st == GIN_ETIMEDOUT)
        return who_is_missing(p);
    if (st != GIN_OK)
        return st;
    if (!gi_pmi_is(&msg, "barrier_out"))
        return gi_fail(GIN_ESYS, "the launcher answered cmd=%.*s to a barrier",
                       (int)msg.word[0].value_len, msg.word[0].value);
    if (!gi_pmi_int(&msg, "rc", INT_MIN, INT_MAX, &rc) || rc == 0)
        return GIN_OK;
    if (!gi_pmi_int(&msg, "rank", 0, p->k.size - 1, &rank))
        return gi_fail(GIN_ESYS, "the launcher's barrier failed: rc=%d", rc);
    if (p->k.now != NULL)
        p->k.now->lost = rank;
    return gi_fail(GIN_EPEER, "rank %d has ended: the ranks cannot meet any more", rank);
}

/* Send the queue and take the answers to all but gets. */
static int settle(struct pmi1 *p, uint64_t deadline)
{
    struct gi_pmi_msg msg;
    bool barrier = p->barrier;
    int st = send_queue(p, deadline);

    for (; p->puts > 0 && st == GIN_OK; p->puts--) {
        st = next_line(p, &msg, deadline);
        if (st == GIN_OK)
            st = check_put(&msg);
    }
    p->puts = 0;
    p->barrier = false;
    return st == GIN_OK && barrier ? leave_barrier(p, deadline) : st;
}

static int pmi1_put(struct gi_kvs *k, const char *key, const char *value, size_t n,
                    uint64_t deadline)
{
    struct pmi1 *p = (struct pmi1 *)k;
    struct gi_pmi_msg msg;
    char line[GI_PMI_LINE_MAX + 1];
    int st, len = snprintf(line, sizeof(line), "cmd=put kvsname=%s key=%s value=%.*s\n", p->kvsname,
                           key, (int)n, value);

    if (!p->ginrun) {
        st = send_text(p, line, (size_t)len, deadline);
        if (st == GIN_OK)
            st = next_line(p, &msg, deadline);
        return st == GIN_OK ? check_put(&msg) : st;
    }
    if (p->queued + (size_t)len > QUEUE_BYTES - GETS_BYTES) {
        st = settle(p, deadline);
        if (st != GIN_OK)
            return st;
    }
    memcpy(p->queue + p->queued, line, (size_t)len);
    p->queued += (size_t)len;
    p->puts++;
    return GIN_OK;
}

static int take_value(struct pmi1 *p, struct gi_kvs_item *item, uint64_t deadline)
{
    struct gi_pmi_msg msg;
    const struct gi_pmi_word *w;
    int rc = 0, st = next_line(p, &msg, deadline);

    if (st != GIN_OK)
        return st;
    w = gi_pmi_find(&msg, "value");
    if (!gi_pmi_is(&msg, "get_result"))
        return gi_fail(GIN_ESYS, "the launcher answered cmd=%.*s to a get",
                       (int)msg.word[0].value_len, msg.word[0].value);
    if ((gi_pmi_int(&msg, "rc", INT_MIN, INT_MAX, &rc) && rc != 0) || w == NULL)
        return gi_kvs_no_record(item->rank, "get", NULL, rc);
    if (w->value_len > item->cap)
        return gi_fail(GIN_EMISMATCH, "rank %d gave more bytes than rank %d", item->rank,
                       p->k.rank);
    memcpy(item->value, w->value, w->value_len);
    item->len = w->value_len;
    return GIN_OK;
}

static int pmi1_get(struct gi_kvs *k, struct gi_kvs_item *items, unsigned n, uint64_t deadline)
{
    struct pmi1 *p = (struct pmi1 *)k;
    int st;

    for (unsigned i = 0; i < n; i++)
        p->queued += (size_t)snprintf(p->queue + p->queued, sizeof(p->queue) - p->queued,
                                      "cmd=get kvsname=%s key=%s\n", p->kvsname, items[i].key);
    st = settle(p, deadline);
    for (unsigned i = 0; i < n && st == GIN_OK; i++)
        st = take_value(p, &items[i], deadline);
    return st;
}

/* With data, gets follow and take the barrier along. */
static int pmi1_fence(struct gi_kvs *k, bool data, uint64_t deadline)
{
    static const char line[] = "cmd=barrier_in\n";
    struct pmi1 *p = (struct pmi1 *)k;

    memcpy(p->queue + p->queued, line, sizeof(line) - 1);
    p->queued += sizeof(line) - 1;
    p->barrier = true;
    return p->ginrun && data && p->k.size > 1 ? GIN_OK : settle(p, deadline);
}

static const struct gi_kvs_ops pmi1_ops = {
    .name = "pmi1",
    .fence = pmi1_fence,
    .get = pmi1_get,
    .put = pmi1_put,
};

/* hydra takes a connection that ends without this for a crash. */
static void say_goodbye(void)
{
    struct pmi1 *p = &pmi1;
    struct gi_pmi_msg msg;

    if (p->k.pid != getpid() || p->k.broken != GIN_OK || pthread_mutex_trylock(&p->k.lock) != 0)
        return;
    (void)ASK(p, "cmd=finalize\n", "finalize_ack", &msg, gi_deadline_in(GOODBYE_NS));
    gi_os_close(p->fd);
    p->fd = -1;
    p->k.broken = GIN_ESTATE;
    snprintf(p->k.why, sizeof(p->k.why), "the process is at its end");
    pthread_mutex_unlock(&p->k.lock);
}

/* PMI_PORT: rank and size come over the connection, in lines of cmd=set. */
static int enter_by_port(struct pmi1 *p, const char *id, uint64_t deadline)
{
    struct gi_pmi_msg msg;
    char line[96];
    int v, st, len = snprintf(line, sizeof(line), "cmd=initack pmiid=%.40s\n", id);

    p->k.rank = p->k.size = -1;
    st = ask(p, line, (size_t)len, "initack", &msg, deadline);
    for (int i = 0; i < 3 && st == GIN_OK; i++) {
        st = next_line(p, &msg, deadline);
        if (st == GIN_OK && gi_pmi_int(&msg, "size", 1, INT_MAX, &v))
            p->k.size = v;
        if (st == GIN_OK && gi_pmi_int(&msg, "rank", 0, INT_MAX, &v))
            p->k.rank = v;
    }
    if (st == GIN_OK && (p->k.rank < 0 || p->k.rank >= p->k.size))
        return gi_fail(GIN_ESYS, "the launcher at PMI_PORT gives no rank and size");
    return st;
}

static int open_fd(struct pmi1 *p)
{
    const char *text = gi_env_foreign("PMI_FD");
    int fd;

    if (!gi_boot_env_int("PMI_FD", 0, INT_MAX, &fd))
        return gi_fail(GIN_EINVAL, "PMI_FD=%s is no descriptor", text);
    if (!gi_boot_env_int("PMI_SIZE", 1, INT_MAX, &p->k.size) ||
        !gi_boot_env_int("PMI_RANK", 0, p->k.size - 1, &p->k.rank))
        return gi_fail(GIN_EINVAL, "PMI_FD is set, but PMI_RANK and PMI_SIZE are not a rank and "
                                   "a number of ranks");
    /* Our own copy: whatever else closes PMI_FD, the goodbye cannot go to a stranger. */
    p->fd = gi_os_dup(fd);
    if (p->fd < 0) {
        return gi_fail(GIN_EINVAL,
                       "PMI_FD=%d is not open (%s); a process that is not a rank of the launcher "
                       "sets GINSHMEM_BOOT=self",
                       fd, gi_os_strerror(p->fd));
    }
    snprintf(p->k.origin, sizeof(p->k.origin), "pmi1 (PMI_FD=%d)", fd);
    return GIN_OK;
}

static int open_port(struct pmi1 *p, uint64_t deadline)
{
    const char *where = gi_env_foreign("PMI_PORT"), *id = gi_env_foreign("PMI_ID");
    struct gi_addr addr[4];
    int n, e = -EADDRNOTAVAIL;

    if (id == NULL)
        return gi_fail(GIN_EINVAL, "PMI_PORT=%s is set, but PMI_ID is not", where);
    n = gi_addr_resolve(where, addr, 4);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        p->fd = gi_os_socket(addr[i].sa.ss_family, SOCK_STREAM, 0);
        e = p->fd < 0 ? p->fd
                      : gi_os_connect(p->fd, (struct sockaddr *)&addr[i].sa, addr[i].len, deadline);
        if (e == 0)
            break;
        if (p->fd >= 0)
            gi_os_close(p->fd);
        p->fd = -1;
    }
    if (p->fd < 0)
        return gi_fail(GIN_ESYS, "no connection to the launcher at PMI_PORT=%s: %s", where,
                       gi_os_strerror(e));
    gi_sock_tune(p->fd);
    snprintf(p->k.origin, sizeof(p->k.origin), "pmi1 (PMI_PORT=%.60s)", where);
    return enter_by_port(p, id, deadline);
}

/* The server's limits, its additions, the name of the store. */
static int handshake(struct pmi1 *p, uint64_t deadline)
{
    struct gi_pmi_msg msg;
    char launcher[16] = "";
    int keylen, vallen, st;

    st = ASK(p, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", &msg, deadline);
    if (st != GIN_OK)
        return st;
    gi_pmi_copy(&msg, "launcher", launcher, sizeof(launcher));
    p->ginrun = strcmp(launcher, "ginrun") == 0;
    p->k.window = p->ginrun ? GI_PMI_WINDOW : 1;
    if (!p->ginrun)
        st = ASK(p, "cmd=get_maxes\n", "maxes", &msg, deadline);
    if (st != GIN_OK)
        return st;
    if (!gi_pmi_int(&msg, "keylen_max", 1, INT_MAX, &keylen) ||
        !gi_pmi_int(&msg, "vallen_max", 1, INT_MAX, &vallen) || keylen < GI_KVS_KEY || vallen < 32)
        return gi_fail(GIN_ESYS, "the launcher's limits on keys and values are too small");
    p->k.value_max = (size_t)(vallen < GI_PMI_VALUE_MAX ? vallen : GI_PMI_VALUE_MAX) - 1;
    if (!p->ginrun)
        st = ASK(p, "cmd=get_my_kvsname\n", "my_kvsname", &msg, deadline);
    if (st != GIN_OK)
        return st;
    if (!gi_pmi_copy(&msg, "kvsname", p->kvsname, sizeof(p->kvsname)))
        return gi_fail(GIN_ESYS, "the launcher gives no usable name of its key-value store");
    if (p->k.value_max > PUT_MAX - PUT_WORDS - strlen(p->kvsname))
        p->k.value_max = PUT_MAX - PUT_WORDS - strlen(p->kvsname);
    return GIN_OK;
}

static int pmi1_connect(struct gi_kvs *k, uint64_t deadline)
{
    struct pmi1 *p = (struct pmi1 *)k;
    int st = gi_env_foreign("PMI_FD") != NULL ? open_fd(p) : open_port(p, deadline);

    if (st == GIN_OK) {
        k->ops = &pmi1_ops;
        st = handshake(p, deadline);
    }
    if (st == GIN_OK && atexit(say_goodbye) != 0)
        st = gi_fail(GIN_ENOMEM, "no room for an exit handler");
    if (st == GIN_OK) {
        gi_boot_env_local(&k->local_rank, &k->local_size);
        return GIN_OK;
    }
    if (p->fd >= 0)
        gi_os_close(p->fd);
    p->fd = -1;
    p->at = p->have = 0;
    return st;
}

bool gi_boot_pmi1_offered(const char **why)
{
    if (gi_env_foreign("PMI_FD") != NULL || gi_env_foreign("PMI_PORT") != NULL) {
        *why = "PMI_FD or PMI_PORT is set";
        return true;
    }
    *why = "neither PMI_FD nor PMI_PORT is set";
    return false;
}

int gi_boot_pmi1_open(uint64_t deadline, struct gi_boot **boot)
{
    const char *why;

    if (!gi_boot_pmi1_offered(&why))
        return gi_fail(GIN_EINVAL, "PMI-1 was asked for, but %s", why);
    return gi_kvs_open(&pmi1.k, pmi1_connect, deadline, boot);
}
