/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-2, through the launcher's own libpmi2.so, opened at run time: Slurm's and Cray's wires
 * differ. Its fence and get block without a deadline, so a thread of ours waits in them; one that
 * comes back too late finds nobody, and the bootstrap is not used again.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_kvs.h"
#include "boot/boot_latch.h"

/* The interface's own numbers. */
#define PMI2_OK    0
#define PMI2_NOMEM 2
#define VALUE_MAX  1024
#define JOBID_MAX  256
#define ANY_SOURCE (-1) /* PMI2_ID_NULL: no hint who put a key */

static struct pmi2 {
    struct gi_kvs k;
    void *lib;
    int (*Init)(int *spawned, int *size, int *rank, int *appnum);
    int (*Finalize)(void);
    int (*Job_GetId)(char *id, int size);
    int (*KVS_Fence)(void);
    int (*KVS_Get)(const char *job, int source, const char *key, char *value, int size, int *len);
    int (*KVS_Put)(const char *key, const char *value);
    char job[JOBID_MAX];
} pmi2 = {.k = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static int failed(const char *call, int rc)
{
    return gi_fail(GIN_ESYS, "%s of the launcher's libpmi2 returned %d", call, rc);
}

static int nobody(const char *call, int rc)
{
    return gi_fail(GIN_ESYS,
                   "%s of the launcher's libpmi2 returned %d: no launcher's PMI-2 server answers; "
                   "start the program under srun --mpi=pmi2, or leave GINSHMEM_BOOT alone",
                   call, rc);
}

static int pmi2_put(struct gi_kvs *k, const char *key, const char *value, size_t n,
                    uint64_t deadline)
{
    struct pmi2 *p = (struct pmi2 *)k;
    char text[VALUE_MAX];
    int rc;

    (void)deadline;
    memcpy(text, value, n);
    text[n] = '\0';
    rc = p->KVS_Put(key, text);
    return rc == PMI2_OK ? GIN_OK : failed("PMI2_KVS_Put", rc);
}

/* A call that may block. */
struct call {
    struct gi_latch *latch;
    bool get; /* else a fence */
    char key[GI_KVS_KEY];
};

static void *call_thread(void *arg)
{
    struct call *c = arg;
    char *text = c->get ? calloc(1, VALUE_MAX + 1) : NULL;
    int len = 0, rc;

    if (!c->get)
        rc = pmi2.KVS_Fence();
    else
        rc = text != NULL ? pmi2.KVS_Get(pmi2.job, ANY_SOURCE, c->key, text, VALUE_MAX, &len)
                          : PMI2_NOMEM;
    gi_latch_deliver(c->latch, rc, text);
    free(c);
    return NULL;
}

/* Make it: GIN_OK and what the library returned, GIN_EAGAIN at the deadline, or a failure. */
static int call(const char *key, uint64_t deadline, int *rc, void **text)
{
    struct call *c = calloc(1, sizeof(*c));
    struct gi_latch *latch = c != NULL ? gi_latch_new() : NULL;
    pthread_t thread;
    int e;

    if (latch == NULL) {
        free(c);
        return gi_fail(GIN_ENOMEM, "no memory for a call of PMI-2");
    }
    c->latch = latch;
    c->get = key != NULL;
    snprintf(c->key, sizeof(c->key), "%s", key != NULL ? key : "");
    e = gi_os_thread(&thread, call_thread, c, "gin-pmi2");
    if (e != 0) {
        gi_latch_cancel(latch);
        free(c);
        return gi_fail(GIN_ESYS, "no thread for a call of PMI-2: %s", gi_os_strerror(e));
    }
    pthread_detach(thread);
    return gi_latch_await(latch, pmi2.k.now, deadline, rc, text) ? GIN_OK : GIN_EAGAIN;
}

static int get_one(const struct gi_kvs *k, struct gi_kvs_item *item, uint64_t deadline)
{
    void *text = NULL;
    int rc = 0, st = call(item->key, deadline, &rc, &text);

    if (st == GIN_EAGAIN)
        return gi_fail(GIN_ETIMEDOUT, "the launcher does not answer what rank %d gave", item->rank);
    if (st == GIN_OK && rc == PMI2_NOMEM && text == NULL)
        st = gi_fail(GIN_ENOMEM, "no memory for the record of rank %d", item->rank);
    else if (st == GIN_OK && rc != PMI2_OK)
        st = gi_kvs_no_record(item->rank, "PMI2_KVS_Get", NULL, rc);
    if (st == GIN_OK) {
        item->len = strlen(text);
        if (item->len <= item->cap)
            memcpy(item->value, text, item->len);
        else
            st =
                gi_fail(GIN_EMISMATCH, "rank %d gave more bytes than rank %d", item->rank, k->rank);
    }
    free(text);
    return st;
}

static int pmi2_get(struct gi_kvs *k, struct gi_kvs_item *items, unsigned n, uint64_t deadline)
{
    int st = GIN_OK;

    for (unsigned i = 0; i < n && st == GIN_OK; i++)
        st = get_one(k, &items[i], deadline);
    return st;
}

static int pmi2_fence(struct gi_kvs *k, bool data, uint64_t deadline)
{
    int rc = 0, st = call(NULL, deadline, &rc, NULL);

    (void)data;
    if (st == GIN_EAGAIN)
        return gi_fail(GIN_ETIMEDOUT,
                       "the fence of %d ranks did not end; PMI-2 cannot say who is missing",
                       k->size);
    if (st != GIN_OK)
        return st;
    return rc == PMI2_OK ? GIN_OK : failed("PMI2_KVS_Fence", rc);
}

static const struct gi_kvs_ops pmi2_ops = {
    .name = "pmi2",
    .fence = pmi2_fence,
    .get = pmi2_get,
    .put = pmi2_put,
};

/* A rank that is out of step is still in a fence, and finalize would wait behind it. */
static void say_goodbye(void)
{
    if (pmi2.k.pid != getpid() || pmi2.k.broken != GIN_OK ||
        pthread_mutex_trylock(&pmi2.k.lock) != 0)
        return;
    pmi2.Finalize();
    pmi2.k.broken = GIN_ESTATE;
    snprintf(pmi2.k.why, sizeof(pmi2.k.why), "the process is at its end");
    pthread_mutex_unlock(&pmi2.k.lock);
}

static int load(struct pmi2 *p)
{
    /* ISO C has no cast from an object to a function pointer; POSIX has this one. */
    const struct {
        const char *name;
        void **slot;
    } calls[] = {
        {"PMI2_Init", (void **)&p->Init},           {"PMI2_Finalize", (void **)&p->Finalize},
        {"PMI2_Job_GetId", (void **)&p->Job_GetId}, {"PMI2_KVS_Fence", (void **)&p->KVS_Fence},
        {"PMI2_KVS_Get", (void **)&p->KVS_Get},     {"PMI2_KVS_Put", (void **)&p->KVS_Put},
    };

    if (p->lib == NULL)
        p->lib = dlopen("libpmi2.so.0", RTLD_NOW | RTLD_LOCAL);
    if (p->lib == NULL)
        p->lib = dlopen("libpmi2.so", RTLD_NOW | RTLD_LOCAL);
    if (p->lib == NULL)
        return gi_fail(GIN_ESYS, "PMI-2 needs the launcher's libpmi2.so.0: %s", dlerror());
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        *calls[i].slot = dlsym(p->lib, calls[i].name);
        if (*calls[i].slot == NULL)
            return gi_fail(GIN_ESYS, "libpmi2 has no %s", calls[i].name);
    }
    return GIN_OK;
}

static int pmi2_connect(struct gi_kvs *k, uint64_t deadline)
{
    struct pmi2 *p = (struct pmi2 *)k;
    int spawned, appnum, rc, st = load(p);

    (void)deadline;
    if (st != GIN_OK)
        return st;
    rc = p->Init(&spawned, &k->size, &k->rank, &appnum);
    if (rc != PMI2_OK)
        return nobody("PMI2_Init", rc);
    if (k->size < 1 || k->rank < 0 || k->rank >= k->size)
        return gi_fail(GIN_ESYS, "PMI2_Init says rank %d of %d", k->rank, k->size);
    rc = p->Job_GetId(p->job, sizeof(p->job));
    if (rc != PMI2_OK)
        return nobody("PMI2_Job_GetId", rc);
    if (atexit(say_goodbye) != 0)
        return gi_fail(GIN_ENOMEM, "no room for an exit handler");
    k->ops = &pmi2_ops;
    k->value_max = VALUE_MAX - 1;
    k->window = 1;
    gi_boot_env_local(&k->local_rank, &k->local_size);
    snprintf(k->origin, sizeof(k->origin), "pmi2 (job %.60s)", p->job);
    return GIN_OK;
}

/*
 * Where PMI_FD is set PMI-1 serves as well and is tried first; here are the launchers that speak to
 * their own library alone.
 */
bool gi_boot_pmi2_offered(const char **why)
{
    if (gi_env_foreign("PMI_CONTROL_PORT") != NULL || gi_env_foreign("PALS_RANKID") != NULL) {
        *why = "PMI_CONTROL_PORT or PALS_RANKID is set";
        return true;
    }
    *why = "neither PMI_CONTROL_PORT nor PALS_RANKID is set";
    return false;
}

int gi_boot_pmi2_open(uint64_t deadline, struct gi_boot **boot)
{
    return gi_kvs_open(&pmi2.k, pmi2_connect, deadline, boot);
}
