/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contracts themselves: for each rule a client that breaks it, or counts on what is not
 * promised, and is refused, or finds out. Each runs in a process of its own, since a provider is
 * loaded once; what the provider says on stderr is read back there.
 */
#ifndef GINSHMEM_TESTS_T_CONTRACT_H
#define GINSHMEM_TESTS_T_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define W_BYTES (256u << 10) /* of each of the two blocks */

/* One endpoint that talks to itself, or a pair that is connected; two blocks of memory. */
struct world {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_pep *pep;
    struct fid_cq *cq;
    struct fid_av *av;
    struct fid_ep *ep, *in; /* whose posts, and where they arrive */
    struct fid_mr *from_mr, *to_mr;
    unsigned char *from, *to;
    fi_addr_t self;
    uint64_t base; /* what to[0] is called */
    unsigned recvs;
    /* what wait() last took */
    struct fi_cq_data_entry entry;
    int error;
    struct fi_context2 context[64];
    unsigned char slot[64][256];
    struct fid_mr *slot_mr;
};

struct rule {
    const char *profile, *name;
    void (*run)(struct world *w);
    const char *with; /* GINCONTRACT_WITH */
    struct rule *next;
};
void w_register(struct rule *r);

#define RULE_WITH(id, p, words)                                  \
    static void rule_##id(struct world *w);                      \
    __attribute__((constructor)) static void add_rule_##id(void) \
    {                                                            \
        static struct rule r = {p, #id, rule_##id, words, NULL}; \
        w_register(&r);                                          \
    }                                                            \
    static void rule_##id(__attribute__((unused)) struct world *w)
#define RULE(id, p) RULE_WITH(id, p, "")

#define CHECK(cond) w_check((cond), __FILE__, __LINE__, #cond)
bool w_check(bool ok, const char *file, int line, const char *what);
/* Since the last time, the provider has said that; it is forgotten. */
#define SAID(text) w_said(text, __FILE__, __LINE__)
bool w_said(const char *text, const char *file, int line);

/* What a client that keeps to all would ask for, with the variable W_HMEM for GPU memory, too; then
 * all that it needs, and the pair connected. */
struct fi_info *w_hints(void);
void w_open(struct world *w);
void w_open_with(struct world *w, size_t queue);
int w_endpoint(struct world *w, struct fid_ep **ep, struct fid_av **av);
struct fid_mr *w_register_memory(struct world *w, void *at, size_t len);
int w_regattr(struct world *w, void *at, size_t len, uint64_t key, struct fid_mr **mr);

/* A write of 8 bytes from from[0] to to[0] with a completion, and what to change of it. */
struct post {
    void *from, *desc, *context;
    size_t len;
    fi_addr_t to;
    uint64_t addr, key, flags, imm;
};
struct post w_post(struct world *w);
ssize_t w_write_once(struct world *w, const struct post *p);
ssize_t w_read_once(struct world *w, const struct post *p);
ssize_t w_send_once(struct world *w, const struct post *p);
ssize_t w_add_once(struct world *w, const struct post *p);
ssize_t w_fetch_once(struct world *w, const struct post *p, uint64_t *old, void *old_desc);
ssize_t w_recv(struct world *w, unsigned slot);

/* Again while it is refused for want of room, up to some seconds; reads the queue between. */
#define W_TRY(w, call)                                         \
    ({                                                         \
        ssize_t rc_;                                           \
        uint64_t end_ = w_now() + 5000000000u;                 \
        while ((rc_ = (call)) == -FI_EAGAIN && w_now() < end_) \
            w_drive(w);                                        \
        rc_;                                                   \
    })
#define W_WRITE(w, p) W_TRY(w, w_write_once(w, p))

uint64_t w_now(void);
void w_drive(struct world *w); /* lets things move, takes nothing */
/* The next completion: 1, -1 an error (w->error), 0 none within ms. */
int w_wait(struct world *w, unsigned ms);

#endif
