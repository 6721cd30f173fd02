/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx: the launcher's own libpmix.so.2, opened at run time, so that a library built with its
 * header runs where it is absent. Fences and gets are the non-blocking kind, since the blocking
 * ones have no deadline that every server keeps.
 *
 * Servers differ in what a rank's death does to a fence: it fails, or does not end, or succeeds
 * without the dead. Then a get that waits for the rank's record waits for ever (Open MPI 4.1); so
 * gets do not wait, since a fence leaves behind all records there will be.
 */
#include <stdio.h>
#include "base/log.h"
#include "boot/boot_kvs.h"

bool gi_boot_pmix_offered(const char **why)
{
    bool there = gi_env_foreign("PMIX_NAMESPACE") != NULL && gi_env_foreign("PMIX_RANK") != NULL;

#if GI_HAVE_PMIX
    *why =
        there ? "PMIX_NAMESPACE and PMIX_RANK are set" : "PMIX_NAMESPACE and PMIX_RANK are not set";
#else
    *why = there ? "PMIX_NAMESPACE and PMIX_RANK are set, but this library was built without PMIx"
                 : "this library was built without PMIx";
#endif
    return there && GI_HAVE_PMIX;
}

#if GI_HAVE_PMIX

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <pmix.h>
#include "base/clock.h"
#include "boot/boot_latch.h"

#define VALUE_MAX (1u << 20)
#define LAZY_NS   1000000000u /* for a server that fetches a record only when asked */

static struct pmix {
    struct gi_kvs k;
    void *lib;
    pmix_status_t (*Init)(pmix_proc_t *, pmix_info_t[], size_t);
    pmix_status_t (*Finalize)(const pmix_info_t[], size_t);
    pmix_status_t (*Put)(pmix_scope_t, const char[], pmix_value_t *);
    pmix_status_t (*Commit)(void);
    pmix_status_t (*Fence_nb)(const pmix_proc_t[], size_t, const pmix_info_t[], size_t,
                              pmix_op_cbfunc_t, void *);
    pmix_status_t (*Get)(const pmix_proc_t *, const char[], const pmix_info_t[], size_t,
                         pmix_value_t **);
    pmix_status_t (*Get_nb)(const pmix_proc_t *, const char[], const pmix_info_t[], size_t,
                            pmix_value_cbfunc_t, void *);
    const char *(*Error_string)(pmix_status_t);
    pmix_proc_t me;
} pmix = {.k = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static int failed(const char *call, pmix_status_t rc)
{
    return gi_fail(GIN_ESYS, "%s: %s (%d)", call, pmix.Error_string(rc), rc);
}

static int pmix_put(struct gi_kvs *k, const char *key, const char *value, size_t n,
                    uint64_t deadline)
{
    pmix_value_t v;
    pmix_status_t rc;

    (void)k;
    (void)deadline;
    memset(&v, 0, sizeof(v));
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.bytes = (char *)(uintptr_t)value;
    v.data.bo.size = n;
    rc = pmix.Put(PMIX_GLOBAL, key, &v);
    return rc == PMIX_SUCCESS ? GIN_OK : failed("PMIx_Put", rc);
}

/* A value, ours. */
struct copy {
    size_t n;
    pmix_data_type_t type;
    char bytes[];
};

static void got(pmix_status_t rc, pmix_value_t *v, void *latch)
{
    size_t n = v != NULL && v->type == PMIX_BYTE_OBJECT ? v->data.bo.size : 0;
    struct copy *copy = rc == PMIX_SUCCESS && v != NULL ? malloc(sizeof(*copy) + n) : NULL;

    if (copy != NULL) {
        copy->n = n;
        copy->type = v->type;
        if (n > 0)
            memcpy(copy->bytes, v->data.bo.bytes, n);
    }
    gi_latch_deliver(latch, rc, copy);
}

static void flag(pmix_info_t *info, const char *key, bool value)
{
    memset(info, 0, sizeof(*info));
    snprintf(info->key, sizeof(info->key), "%s", key);
    info->value.type = PMIX_BOOL;
    info->value.data.flag = value;
}

/* A value, to be freed, or a status of PMIx; PMIX_ERR_WOULD_BLOCK at the deadline. */
static pmix_status_t look_up(const struct gi_kvs_item *item, bool wait, uint64_t deadline,
                             struct copy **copy)
{
    struct gi_latch *latch = gi_latch_new();
    pmix_proc_t who = pmix.me;
    pmix_info_t immediate;
    void *thing = NULL;
    pmix_status_t rc;
    int result = PMIX_ERR_WOULD_BLOCK;

    if (latch == NULL)
        return PMIX_ERR_NOMEM;
    flag(&immediate, PMIX_IMMEDIATE, true);
    who.rank = (pmix_rank_t)item->rank;
    rc = pmix.Get_nb(&who, item->key, &immediate, wait ? 0 : 1, got, latch);
    if (rc != PMIX_SUCCESS) {
        gi_latch_cancel(latch);
        return rc;
    }
    (void)gi_latch_await(latch, pmix.k.now, deadline, &result, &thing);
    *copy = thing;
    return result == PMIX_SUCCESS && thing == NULL ? PMIX_ERR_NOMEM : result;
}

static int get_one(struct gi_kvs *k, struct gi_kvs_item *item, uint64_t deadline)
{
    uint64_t lazy = gi_deadline_in(LAZY_NS);
    struct copy *copy = NULL;
    pmix_status_t rc = look_up(item, false, deadline, &copy);
    int st = GIN_OK;

    if (rc != PMIX_SUCCESS && rc != PMIX_ERR_NOMEM && rc != PMIX_ERR_WOULD_BLOCK) {
        pmix_status_t second = look_up(item, true, lazy < deadline ? lazy : deadline, &copy);
        rc = second == PMIX_ERR_WOULD_BLOCK ? rc : second;
    }
    if (rc == PMIX_ERR_NOMEM)
        return gi_fail(GIN_ENOMEM, "no memory for the record of rank %d", item->rank);
    if (rc == PMIX_ERR_WOULD_BLOCK)
        return gi_fail(GIN_ETIMEDOUT, "the launcher does not answer what rank %d gave", item->rank);
    if (rc != PMIX_SUCCESS)
        return gi_kvs_no_record(item->rank, "PMIx_Get", pmix.Error_string(rc), rc);
    if (copy->type != PMIX_BYTE_OBJECT)
        st = gi_fail(GIN_ESYS, "the record of rank %d has type %u", item->rank, copy->type);
    else if (copy->n > item->cap)
        st = gi_fail(GIN_EMISMATCH, "rank %d gave more bytes than rank %d", item->rank, k->rank);
    if (st == GIN_OK) {
        memcpy(item->value, copy->bytes, copy->n);
        item->len = copy->n;
    }
    free(copy);
    return st;
}

static int pmix_get(struct gi_kvs *k, struct gi_kvs_item *items, unsigned n, uint64_t deadline)
{
    int st = GIN_OK;

    for (unsigned i = 0; i < n && st == GIN_OK; i++)
        st = get_one(k, &items[i], deadline);
    return st;
}

/* What a fence says when a rank of it has gone. */
static bool tells_of_death(int result)
{
    return result == PMIX_ERR_PARTIAL_SUCCESS || result == PMIX_ERR_LOST_CONNECTION ||
           result == PMIX_ERR_UNREACH;
}

static void fence_done(pmix_status_t rc, void *latch)
{
    gi_latch_deliver(latch, rc, NULL);
}

static int pmix_fence(struct gi_kvs *k, bool data, uint64_t deadline)
{
    struct gi_latch *latch = gi_latch_new();
    pmix_proc_t all = pmix.me;
    pmix_info_t collect;
    pmix_status_t rc = data ? pmix.Commit() : PMIX_SUCCESS;
    int result;

    if (latch == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a fence");
    if (rc != PMIX_SUCCESS) {
        gi_latch_cancel(latch);
        return failed("PMIx_Commit", rc);
    }
    all.rank = PMIX_RANK_WILDCARD;
    flag(&collect, PMIX_COLLECT_DATA, data);
    rc = pmix.Fence_nb(&all, 1, &collect, 1, fence_done, latch);
    if (rc == PMIX_OPERATION_SUCCEEDED) {
        gi_latch_cancel(latch);
        return GIN_OK;
    }
    if (rc != PMIX_SUCCESS) {
        gi_latch_cancel(latch);
        return failed("PMIx_Fence_nb", rc);
    }
    if (!gi_latch_await(latch, pmix.k.now, deadline, &result, NULL))
        return gi_fail(GIN_ETIMEDOUT,
                       "the fence of %d ranks did not end; PMIx cannot say who is missing",
                       k->size);
    if (tells_of_death(result))
        return gi_fail(GIN_EPEER,
                       "a rank has ended: the %d ranks cannot meet any more; PMIx does not say "
                       "which (PMIx_Fence: %s)",
                       k->size, pmix.Error_string(result));
    return result == PMIX_SUCCESS ? GIN_OK : failed("PMIx_Fence", result);
}

static const struct gi_kvs_ops pmix_ops = {
    .name = "pmix",
    .fence = pmix_fence,
    .get = pmix_get,
    .put = pmix_put,
};

/* mpirun takes an end without this for a crash. */
static void say_goodbye(void)
{
    if (pmix.k.pid != getpid() || pthread_mutex_trylock(&pmix.k.lock) != 0)
        return;
    pmix.Finalize(NULL, 0);
    pmix.k.broken = GIN_ESTATE;
    snprintf(pmix.k.why, sizeof(pmix.k.why), "the process is at its end");
    pthread_mutex_unlock(&pmix.k.lock);
}

static int load(struct pmix *p)
{
    const struct {
        const char *name;
        void **slot;
    } calls[] = {
        {"PMIx_Init", (void **)&p->Init},         {"PMIx_Finalize", (void **)&p->Finalize},
        {"PMIx_Put", (void **)&p->Put},           {"PMIx_Commit", (void **)&p->Commit},
        {"PMIx_Fence_nb", (void **)&p->Fence_nb}, {"PMIx_Get", (void **)&p->Get},
        {"PMIx_Get_nb", (void **)&p->Get_nb},     {"PMIx_Error_string", (void **)&p->Error_string},
    };

    /* Global: its plugins look for its symbols. */
    if (p->lib == NULL)
        p->lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (p->lib == NULL)
        return gi_fail(GIN_ESYS, "PMIx needs libpmix.so.2: %s", dlerror());
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        *calls[i].slot = dlsym(p->lib, calls[i].name);
        if (*calls[i].slot == NULL)
            return gi_fail(GIN_ESYS, "libpmix.so.2 has no %s", calls[i].name);
    }
    return GIN_OK;
}

/* The value is the caller's: its bytes and itself come from malloc(). */
static void release(pmix_value_t *v)
{
    if (v->type == PMIX_BYTE_OBJECT)
        free(v->data.bo.bytes);
    free(v);
}

/* A number that the launcher knows of rank; false if it does not. */
static bool number(pmix_rank_t rank, const char *key, int *out)
{
    pmix_proc_t who = pmix.me;
    pmix_value_t *v = NULL;
    bool ok = true;

    who.rank = rank;
    if (pmix.Get(&who, key, NULL, 0, &v) != PMIX_SUCCESS || v == NULL)
        return false;
    if (v->type == PMIX_UINT32 && v->data.uint32 <= INT_MAX)
        *out = (int)v->data.uint32;
    else if (v->type == PMIX_UINT16)
        *out = v->data.uint16;
    else
        ok = false;
    release(v);
    return ok;
}

static int pmix_connect(struct gi_kvs *k, uint64_t deadline)
{
    struct pmix *p = (struct pmix *)k;
    int st = load(p);
    pmix_status_t rc;

    (void)deadline;
    if (st != GIN_OK)
        return st;
    rc = p->Init(&p->me, NULL, 0);
    if (rc != PMIX_SUCCESS)
        return gi_fail(GIN_ESYS,
                       "PMIx_Init: %s (%d): no launcher's PMIx server answers; start the program "
                       "under mpirun or srun, or leave GINSHMEM_BOOT alone",
                       p->Error_string(rc), rc);
    if (p->me.rank > INT_MAX || !number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &k->size) ||
        (int)p->me.rank >= k->size) {
        p->Finalize(NULL, 0);
        return gi_fail(GIN_ESYS, "the launcher does not tell its PMIx clients the job's size");
    }
    if (atexit(say_goodbye) != 0) {
        p->Finalize(NULL, 0);
        return gi_fail(GIN_ENOMEM, "no room for an exit handler");
    }
    k->ops = &pmix_ops;
    k->rank = (int)p->me.rank;
    k->local_rank = k->local_size = -1;
    number(p->me.rank, PMIX_LOCAL_RANK, &k->local_rank);
    number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, &k->local_size);
    k->value_max = VALUE_MAX;
    k->binary = true;
    k->window = 1;
    snprintf(k->origin, sizeof(k->origin), "pmix (namespace %.60s)", p->me.nspace);
    return GIN_OK;
}

int gi_boot_pmix_open(uint64_t deadline, struct gi_boot **boot)
{
    return gi_kvs_open(&pmix.k, pmix_connect, deadline, boot);
}

#else

int gi_boot_pmix_open(uint64_t deadline, struct gi_boot **boot)
{
    (void)deadline;
    (void)boot;
    return gi_fail(GIN_ENOTSUP, "this library was built without PMIx; configure it --with-pmix");
}

#endif
