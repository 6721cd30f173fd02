/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides how a record becomes keys and values of a launcher's store, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "boot/boot_kvs.h"
#include "boot/pmi_wire.h"

/* In front of the first part stands the record's length, so that a disagreement is seen. */
#define LENGTH_DIGITS 8

struct kvs_boot {
    struct gi_boot b;
    struct gi_kvs *k;
    unsigned comm;
    uint64_t round;
};

/* Size of a record as the store sees it, and the number of values it takes. */
static size_t encoded_size(const struct gi_kvs *k, size_t bytes)
{
    return LENGTH_DIGITS + (k->binary ? bytes : GI_PMI_ENCODED(bytes));
}

static size_t parts_of(const struct gi_kvs *k, size_t bytes)
{
    return (encoded_size(k, bytes) + k->value_max - 1) / k->value_max;
}

static void make_key(const struct kvs_boot *kb, int rank, size_t part, char key[GI_KVS_KEY])
{
    snprintf(key, GI_KVS_KEY, "gin%x-%llx-%x-%zx", kb->comm, (unsigned long long)kb->round,
             (unsigned)rank, part);
}

static int put_record(struct kvs_boot *kb, const void *in, size_t bytes, char *work,
                      uint64_t deadline)
{
    struct gi_kvs *k = kb->k;
    size_t n = encoded_size(k, bytes), parts = parts_of(k, bytes);
    char key[GI_KVS_KEY], digits[LENGTH_DIGITS + 1];

    snprintf(digits, sizeof(digits), "%0*x", LENGTH_DIGITS, (unsigned)bytes);
    memcpy(work, digits, LENGTH_DIGITS);
    if (k->binary)
        memcpy(work + LENGTH_DIGITS, in, bytes);
    else
        gi_pmi_encode(in, bytes, work + LENGTH_DIGITS);
    for (size_t part = 0; part < parts; part++) {
        size_t off = part * k->value_max, len = n - off < k->value_max ? n - off : k->value_max;
        make_key(kb, k->rank, part, key);
        int st = k->ops->put(k, key, work + off, len, deadline);
        if (st != GIN_OK)
            return st;
    }
    return GIN_OK;
}

/* Take rank's record, now in work, apart. */
static int take_record(const struct gi_kvs *k, int rank, const char *work, size_t n, void *out,
                       size_t bytes)
{
    unsigned long theirs;
    char digits[LENGTH_DIGITS + 1], *end;

    if (n >= LENGTH_DIGITS) {
        memcpy(digits, work, LENGTH_DIGITS);
        digits[LENGTH_DIGITS] = '\0';
        theirs = strtoul(digits, &end, 16);
        if (end == digits + LENGTH_DIGITS && theirs != bytes)
            return gi_fail(GIN_EMISMATCH, "rank %d gave %lu bytes, rank %d %zu", rank, theirs,
                           k->rank, bytes);
    }
    if (n != encoded_size(k, bytes))
        return gi_fail(GIN_ESYS, "record of rank %d has %zu bytes instead of %zu", rank, n,
                       encoded_size(k, bytes));
    if (k->binary)
        memcpy(out, work + LENGTH_DIGITS, bytes);
    else if (gi_pmi_decode(work + LENGTH_DIGITS, n - LENGTH_DIGITS, out, bytes) != (int)bytes)
        return gi_fail(GIN_ESYS, "record of rank %d is damaged", rank);
    return GIN_OK;
}

/*
 * The records of ranks[0..n-1], which together take at most k->window values or are one. work has
 * room for encoded_size() of each.
 */
static int get_records(struct kvs_boot *kb, int first, int n, void *out, size_t bytes, char *work,
                       struct gi_kvs_item *items, uint64_t deadline)
{
    struct gi_kvs *k = kb->k;
    size_t parts = parts_of(k, bytes), whole = encoded_size(k, bytes);
    int st;

    for (size_t i = 0; i < (size_t)n * parts; i++) {
        size_t part = i % parts, off = part * k->value_max;
        items[i].rank = first + (int)(i / parts);
        items[i].value = work + i / parts * whole + off;
        items[i].cap = whole - off < k->value_max ? whole - off : k->value_max;
        make_key(kb, items[i].rank, part, items[i].key);
    }
    for (size_t i = 0; i < (size_t)n * parts; i += k->window) {
        size_t left = (size_t)n * parts - i;
        st = k->ops->get(k, items + i, left < k->window ? (unsigned)left : k->window, deadline);
        if (st != GIN_OK)
            return st;
    }
    for (int r = first; r < first + n; r++) {
        size_t got = 0;
        for (size_t part = 0; part < parts; part++)
            got += items[(size_t)(r - first) * parts + part].len;
        st = take_record(k, r, work + (size_t)(r - first) * whole, got,
                         (char *)out + (size_t)r * bytes, bytes);
        if (st != GIN_OK)
            return st;
    }
    return GIN_OK;
}

static int get_all(struct kvs_boot *kb, void *out, size_t bytes, char *work,
                   struct gi_kvs_item *items, int batch, uint64_t deadline)
{
    struct gi_kvs *k = kb->k;

    /* Begin behind the own rank, so that not everybody asks for the same record at once. */
    for (int done = 1; done < k->size;) {
        int first = (k->rank + done) % k->size, n = batch;
        n = n < k->size - done ? n : k->size - done;
        n = n < k->size - first ? n : k->size - first;
        int st = get_records(kb, first, n, out, bytes, work, items, deadline);
        if (st != GIN_OK)
            return st;
        done += n;
    }
    return GIN_OK;
}

static int exchange(struct kvs_boot *kb, const void *in, void *out, size_t bytes, uint64_t deadline)
{
    struct gi_kvs *k = kb->k;
    size_t parts = parts_of(k, bytes);
    int batch = parts < k->window ? (int)(k->window / parts) : 1;
    char *work = malloc((size_t)batch * encoded_size(k, bytes) + 1);
    struct gi_kvs_item *items = calloc((size_t)batch * parts, sizeof(*items));
    int st;

    if (work == NULL || items == NULL) {
        st = gi_fail(GIN_ENOMEM, "no memory to exchange records of %zu bytes", bytes);
        goto free_work;
    }
    st = put_record(kb, in, bytes, work, deadline);
    if (st == GIN_OK)
        st = k->ops->fence(k, true, deadline);
    if (st == GIN_OK)
        st = get_all(kb, out, bytes, work, items, batch, deadline);
    if (st == GIN_OK && (const char *)in != (char *)out + (size_t)k->rank * bytes)
        memcpy((char *)out + (size_t)k->rank * bytes, in, bytes);
free_work:
    free(items);
    free(work);
    return st;
}

/* Every rank puts its record before the fence, so this one did not come to it. */
int gi_kvs_no_record(int rank, const char *call, const char *said, int number)
{
    return gi_fail(
        GIN_EPEER,
        "rank %d has ended, or calls collective functions in another order: the launcher "
        "has no record of it (%s: %s%s%d)",
        rank, call, said != NULL ? said : "", said != NULL ? ", " : "", number);
}

static int kvs_allgather(struct gi_boot *b, const void *in, void *out, size_t bytes,
                         uint64_t deadline)
{
    struct kvs_boot *kb = (struct kvs_boot *)b;
    struct gi_kvs *k = kb->k;
    int st;

    if (bytes > UINT32_MAX)
        return gi_fail(GIN_ERANGE, "records of %zu bytes are too large for %s", bytes,
                       k->ops->name);
    pthread_mutex_lock(&k->lock);
    k->now = b;
    if (k->broken != GIN_OK) {
        st = gi_fail(k->broken, "%s", k->why);
    } else if (k->pid != getpid()) {
        st = gi_fail(GIN_ESTATE, "a fork()ed child cannot use its parent's %s", k->ops->name);
    } else {
        st =
            bytes == 0 ? k->ops->fence(k, false, deadline) : exchange(kb, in, out, bytes, deadline);
        kb->round++;
        /* A length that differs leaves everybody in step; all else may not. */
        if (st != GIN_OK && st != GIN_EMISMATCH) {
            k->broken = st;
            snprintf(k->why, sizeof(k->why), "%s", gin_last_error());
        }
    }
    k->now = NULL;
    pthread_mutex_unlock(&k->lock);
    return st;
}

static void kvs_close(struct gi_boot *b)
{
    free(b);
}

static const struct gi_boot_ops kvs_pmi1_ops = {sizeof(kvs_pmi1_ops), "pmi1", kvs_allgather,
                                                kvs_close};
static const struct gi_boot_ops kvs_pmi2_ops = {sizeof(kvs_pmi2_ops), "pmi2", kvs_allgather,
                                                kvs_close};
static const struct gi_boot_ops kvs_pmix_ops = {sizeof(kvs_pmix_ops), "pmix", kvs_allgather,
                                                kvs_close};

static const struct gi_boot_ops *ops_named(const char *name)
{
    return strcmp(name, "pmi1") == 0   ? &kvs_pmi1_ops
           : strcmp(name, "pmi2") == 0 ? &kvs_pmi2_ops
                                       : &kvs_pmix_ops;
}

static int connect_once(struct gi_kvs *k, int (*connect)(struct gi_kvs *k, uint64_t deadline),
                        uint64_t deadline)
{
    if (k->pid == 0) {
        int st = connect(k, deadline);
        if (st == GIN_OK)
            k->pid = getpid();
        return st;
    }
    if (k->pid != getpid())
        return gi_fail(GIN_ESTATE,
                       "process %d is a fork()ed child of process %d and cannot use its %s; "
                       "initialise in one of them only",
                       (int)getpid(), (int)k->pid, k->origin);
    return k->broken != GIN_OK ? gi_fail(k->broken, "%s", k->why) : GIN_OK;
}

int gi_kvs_open(struct gi_kvs *k, int (*connect)(struct gi_kvs *k, uint64_t deadline),
                uint64_t deadline, struct gi_boot **boot)
{
    struct kvs_boot *kb = calloc(1, sizeof(*kb));
    int st;

    if (kb == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the bootstrap");
    pthread_mutex_lock(&k->lock);
    st = connect_once(k, connect, deadline);
    if (st == GIN_OK) {
        kb->b.ops = ops_named(k->ops->name);
        kb->b.rank = k->rank;
        kb->b.size = k->size;
        kb->b.local_rank = k->local_rank;
        kb->b.local_size = k->local_size;
        memcpy(kb->b.origin, k->origin, sizeof(kb->b.origin));
        kb->k = k;
        kb->comm = k->comms++;
    }
    pthread_mutex_unlock(&k->lock);
    if (st == GIN_OK)
        *boot = &kb->b;
    else
        free(kb);
    return st;
}
