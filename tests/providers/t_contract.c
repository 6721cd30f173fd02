/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of t_contract.h: what all of them need, and the processes that they run in. */
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/providers/t_contract.h"

static struct rule *rules;
static int failures, said_fd = -1;

void w_register(struct rule *r)
{
    r->next = rules;
    rules = r;
}

bool w_check(bool ok, const char *file, int line, const char *what)
{
    if (!ok)
        printf("%s:%d: %s\n", file, line, what);
    failures += !ok;
    return ok;
}

bool w_said(const char *text, const char *file, int line)
{
    char buf[2000];
    ssize_t n = pread(said_fd, buf, sizeof(buf) - 1, 0);
    buf[n > 0 ? n : 0] = 0;
    if (ftruncate(said_fd, 0) != 0 || lseek(said_fd, 0, SEEK_SET) != 0)
        abort();
    if (strstr(buf, text) != NULL)
        return true;
    printf("%s:%d: not said: \"%s\", but \"%s\"\n", file, line, text, buf);
    failures++;
    return false;
}

uint64_t w_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- objects ---- */

/* No provider of libfabric's has such a contract's name for its device, so none else answers. */
static const char *provider_of(const char *profile)
{
    return strncmp(profile, "efa", 3) == 0         ? "efa"
           : strncmp(profile, "cxi", 3) == 0       ? "cxi"
           : strncmp(profile, "verbs-msg", 9) == 0 ? "verbs"
                                                   : "gincontract";
}

static bool is_connected(void)
{
    return strncmp(getenv("GINCONTRACT"), "verbs-msg", 9) == 0;
}

struct fi_info *w_hints(void)
{
    const char *profile = getenv("GINCONTRACT");
    bool ordered = strcmp(profile, "cxi") == 0 || strcmp(profile, "stream") == 0 || is_connected();
    struct fi_info *h = fi_allocinfo();
    h->fabric_attr->prov_name = strdup(provider_of(profile));
    h->caps = FI_MSG | FI_RMA;
    h->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    if (strcmp(profile, "efa-direct") == 0)
        h->mode &= ~FI_RX_CQ_DATA;
    h->ep_attr->type = is_connected() ? FI_EP_MSG : FI_EP_RDM;
    h->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    if (strcmp(profile, "cxi") == 0 || strcmp(profile, "cxi-relaxed") == 0 || is_connected())
        h->caps |= FI_ATOMIC;
    if (getenv("W_HMEM") != NULL) {
        h->caps |= FI_HMEM;
        h->domain_attr->mr_mode |= FI_MR_HMEM;
    }
    h->tx_attr->msg_order = h->rx_attr->msg_order = ordered ? FI_ORDER_WAW : 0;
    return h;
}

int w_endpoint(struct world *w, struct fid_ep **ep, struct fid_av **av)
{
    struct fi_av_attr attr = {.type = FI_AV_TABLE};
    if (*av == NULL && !CHECK(fi_av_open(w->domain, &attr, av, NULL) == 0))
        return -1;
    if (!CHECK(fi_endpoint(w->domain, w->info, ep, NULL) == 0))
        return -1;
    int rc = fi_ep_bind(*ep, &(*av)->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->cq->fid, FI_RECV);
    return rc == 0 ? fi_enable(*ep) : rc;
}

int w_regattr(struct world *w, void *at, size_t len, uint64_t key, struct fid_mr **mr)
{
    struct iovec iov = {.iov_base = at, .iov_len = len};
    struct fi_mr_attr attr = {.mr_iov = &iov,
                              .iov_count = 1,
                              .requested_key = key,
                              .access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                                        FI_REMOTE_WRITE};
    return fi_mr_regattr(w->domain, &attr, 0, mr);
}

struct fid_mr *w_register_memory(struct world *w, void *at, size_t len)
{
    static uint64_t key = 100;
    struct fid_mr *mr = NULL;
    if (!CHECK(w_regattr(w, at, len, key++, &mr) == 0))
        return NULL;
    if (w->info->domain_attr->mr_mode & FI_MR_ENDPOINT)
        CHECK(fi_mr_bind(mr, &w->in->fid, 0) == 0 && fi_mr_enable(mr) == 0);
    return mr;
}

static int half(struct world *w, struct fi_info *info, struct fid_ep **ep)
{
    int rc = fi_endpoint(w->domain, info, ep, NULL);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->eq->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->cq->fid, FI_RECV);
    return rc == 0 ? fi_enable(*ep) : rc;
}

static bool event(struct world *w, uint32_t want, struct fi_eq_cm_entry *e)
{
    uint64_t end = w_now() + 5000000000u;
    uint32_t got = 0;
    char buf[sizeof(*e) + 64];
    ssize_t n;
    while ((n = fi_eq_read(w->eq, &got, buf, sizeof(buf), 0)) == -FI_EAGAIN && w_now() < end)
        usleep(200);
    memcpy(e, buf, sizeof(*e));
    return n > 0 && got == want;
}

static void connect_pair(struct world *w)
{
    struct fi_eq_attr attr = {.size = 16};
    struct fi_eq_cm_entry e;
    char name[64];
    size_t len = sizeof(name);
    bool ok = CHECK(fi_eq_open(w->fabric, &attr, &w->eq, NULL) == 0) &&
              CHECK(fi_passive_ep(w->fabric, w->info, &w->pep, NULL) == 0) &&
              CHECK(fi_pep_bind(w->pep, &w->eq->fid, 0) == 0) && CHECK(fi_listen(w->pep) == 0) &&
              CHECK(fi_getname(&w->pep->fid, name, &len) == 0) &&
              CHECK(half(w, w->info, &w->ep) == 0) &&
              CHECK(fi_connect(w->ep, name, "hello", 5) == 0) && CHECK(event(w, FI_CONNREQ, &e)) &&
              CHECK(half(w, e.info, &w->in) == 0) && CHECK(fi_accept(w->in, NULL, 0) == 0) &&
              CHECK(event(w, FI_CONNECTED, &e)) && CHECK(event(w, FI_CONNECTED, &e));
    if (!ok)
        exit(1);
    w->self = 0;
}

void w_open_with(struct world *w, size_t queue)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .size = queue};
    struct fi_info *h = w_hints();
    char name[64];
    size_t len = sizeof(name);
    int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &w->info);
    fi_freeinfo(h);
    if (!CHECK(rc == 0) || !CHECK(fi_fabric(w->info->fabric_attr, &w->fabric, NULL) == 0) ||
        !CHECK(fi_domain(w->fabric, w->info, &w->domain, NULL) == 0))
        exit(1);
    const char *p = getenv("GINCONTRACT");
    attr.wait_obj = p[0] == 'c' || p[0] == 'v' ? FI_WAIT_FD : FI_WAIT_NONE;
    if (!CHECK(fi_cq_open(w->domain, &attr, &w->cq, NULL) == 0))
        exit(1);
    if (is_connected()) {
        connect_pair(w);
    } else {
        if (!CHECK(w_endpoint(w, &w->ep, &w->av) == 0) ||
            !CHECK(fi_getname(&w->ep->fid, name, &len) == 0) ||
            !CHECK(fi_av_insert(w->av, name, 1, &w->self, 0, NULL) == 1))
            exit(1);
        w->in = w->ep;
    }
    w->from = aligned_alloc(4096, W_BYTES);
    w->to = aligned_alloc(4096, W_BYTES);
    memset(w->from, 0x5a, W_BYTES);
    memset(w->to, 0, W_BYTES);
    w->from_mr = w_register_memory(w, w->from, W_BYTES);
    w->to_mr = w_register_memory(w, w->to, W_BYTES);
    w->slot_mr = w_register_memory(w, w->slot, sizeof(w->slot));
    w->base = w->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)w->to : 0;
}

void w_open(struct world *w)
{
    w_open_with(w, 1024);
}

/* ---- posts ---- */

struct post w_post(struct world *w)
{
    return (struct post){.from = w->from,
                         .desc = fi_mr_desc(w->from_mr),
                         .context = &w->context[63],
                         .len = 8,
                         .to = w->self,
                         .addr = w->base,
                         .key = fi_mr_key(w->to_mr),
                         .flags = FI_COMPLETION};
}

ssize_t w_write_once(struct world *w, const struct post *p)
{
    struct iovec iov = {p->from, p->len};
    struct fi_rma_iov at = {p->addr, p->len, p->key};
    void *desc = p->desc;
    struct fi_msg_rma m = {&iov, &desc, 1, p->to, &at, 1, p->context, p->imm};
    return fi_writemsg(w->ep, &m, p->flags);
}

ssize_t w_read_once(struct world *w, const struct post *p)
{
    struct iovec iov = {p->from, p->len};
    struct fi_rma_iov at = {p->addr, p->len, p->key};
    void *desc = p->desc;
    struct fi_msg_rma m = {&iov, &desc, 1, p->to, &at, 1, p->context, 0};
    return fi_readmsg(w->ep, &m, p->flags);
}

ssize_t w_send_once(struct world *w, const struct post *p)
{
    struct iovec iov = {p->from, p->len};
    void *desc = p->desc;
    struct fi_msg m = {&iov, &desc, 1, p->to, p->context, 0};
    return fi_sendmsg(w->ep, &m, p->flags);
}

ssize_t w_add_once(struct world *w, const struct post *p)
{
    struct fi_ioc ioc = {p->from, 1};
    struct fi_rma_ioc at = {p->addr, 1, p->key};
    void *desc = p->desc;
    struct fi_msg_atomic m = {&ioc, &desc, 1, p->to, &at, 1, FI_UINT64, FI_SUM, p->context, 0};
    return fi_atomicmsg(w->ep, &m, p->flags);
}

ssize_t w_fetch_once(struct world *w, const struct post *p, uint64_t *old, void *old_desc)
{
    struct fi_ioc ioc = {p->from, 1}, res = {old, 1};
    struct fi_rma_ioc at = {p->addr, 1, p->key};
    void *desc = p->desc;
    struct fi_msg_atomic m = {&ioc, &desc, 1, p->to, &at, 1, FI_UINT64, FI_SUM, p->context, 0};
    return fi_fetch_atomicmsg(w->ep, &m, &res, &old_desc, 1, p->flags);
}

ssize_t w_recv(struct world *w, unsigned slot)
{
    struct iovec iov = {w->slot[slot], sizeof(w->slot[slot])};
    void *desc = fi_mr_desc(w->slot_mr);
    struct fi_msg m = {&iov, &desc, 1, FI_ADDR_UNSPEC, &w->context[slot], 0};
    return fi_recvmsg(w->in, &m, FI_COMPLETION);
}

void w_drive(struct world *w)
{
    struct fi_cq_data_entry none;
    if (fi_cq_read(w->cq, &none, 0) == 0)
        usleep(50);
    usleep(50);
}

int w_wait(struct world *w, unsigned ms)
{
    uint64_t end = w_now() + ms * 1000000ull;
    do {
        ssize_t n = fi_cq_read(w->cq, &w->entry, 1);
        if (n == 1)
            return 1;
        if (n == -FI_EAVAIL) {
            struct fi_cq_err_entry e = {0};
            CHECK(fi_cq_readerr(w->cq, &e, 0) == 1);
            w->error = e.err;
            w->entry.op_context = e.op_context;
            return -1;
        }
        if (n != -FI_EAGAIN) {
            w->error = (int)n;
            return -1;
        }
        usleep(20);
    } while (w_now() < end);
    return 0;
}

/* ---- processes ---- */

static int run(const struct rule *r)
{
    static struct world w;
    said_fd = memfd_create("said", 0);
    if (said_fd < 0 || dup2(said_fd, 2) < 0)
        return 1;
    setenv("GINCONTRACT", r->profile, 1);
    setenv("GINCONTRACT_WITH", r->with, 1);
    setenv("FI_PROVIDER", provider_of(r->profile), 1);
    alarm(60);
    r->run(&w);
    fflush(stdout);
    return failures != 0;
}

static bool find_provider(void)
{
    char exe[PATH_MAX], dir[PATH_MAX + 32], lib[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n < 0)
        return false;
    exe[n] = 0;
    snprintf(dir, sizeof(dir), "%s/contract/.libs", dirname(exe));
    snprintf(lib, sizeof(lib), "%s/libgincontract-fi.so", dir);
    setenv("FI_PROVIDER_PATH", dir, 1);
    unsetenv("GINCONTRACT_STRICT");
    return access(lib, R_OK) == 0;
}

int main(int argc, char **argv)
{
    int failed = 0, ran = 0;
#if defined(__SANITIZE_THREAD__)
    printf("SKIP: libfabric is not built for the thread sanitizer\n");
    return 77;
#endif
    if (!find_provider()) {
        printf("SKIP: the provider was not built as a shared object\n");
        return 77;
    }
    for (const struct rule *r = rules; r != NULL; r = r->next) {
        if (argc > 1 && strstr(r->name, argv[1]) == NULL)
            continue;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            _exit(run(r));
        int status = -1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            printf("FAILED %s (%s): %s %d\n", r->name, r->profile,
                   WIFSIGNALED(status) ? "signal" : "status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            failed++;
        } else {
            printf("ok %s (%s)\n", r->name, r->profile);
        }
        ran++;
    }
    printf("%d rules, %d failed\n", ran, failed);
    return failed != 0 || ran == 0;
}
