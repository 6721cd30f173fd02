/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How was this process started? The caller's word comes first, then GINSHMEM_BOOT, then what was
 * set on purpose, then what the launcher offers. A process that a launcher started beside others
 * and gave no bootstrap we know is refused: going on alone would be n jobs of one rank.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_impl.h"

/* What a refusal lists. */
struct looked_for {
    const char *pmix, *pmi1, *pmi2, *root, *torch;
};

static int refuse(const struct looked_for *l, const char *why)
{
    return gi_fail(
        GIN_EINVAL,
        "%s. Looked for: PMIx (%s); PMI-1 (%s); PMI-2 (%s); GINSHMEM_ROOT (%s); torchrun "
        "(%s). GINSHMEM_BOOT=self makes this process a job of one rank",
        why, l->pmix, l->pmi1, l->pmi2, l->root, l->torch);
}

/* Launchers that started several of us without a bootstrap. NULL if none did. */
static const char *crowd(char *text, size_t size)
{
    int n;

    if (gi_boot_env_int("OMPI_COMM_WORLD_SIZE", 2, INT_MAX, &n)) {
        snprintf(text, size, "mpirun started %d processes, and PMIx is the only way to join them",
                 n);
        return text;
    }
    if (gi_env_foreign("SLURM_STEP_ID") != NULL &&
        gi_boot_env_int("SLURM_STEP_NUM_TASKS", 2, INT_MAX, &n)) {
        snprintf(text, size,
                 "srun started %d tasks without a way to join them; use srun --mpi=pmix or "
                 "--mpi=pmi2",
                 n);
        return text;
    }
    if (gi_boot_env_int("PMI_SIZE", 2, INT_MAX, &n)) {
        snprintf(text, size, "a launcher started %d processes without a PMI connection", n);
        return text;
    }
    return NULL;
}

static int open_auto(const struct gi_env *env, uint64_t deadline, struct gi_boot **boot)
{
    struct looked_for l;
    char text[160];
    const char *why;

    if (gi_boot_root_offered(env, &l.root))
        return gi_boot_root_open(env, deadline, boot);
    if (env->set.root)
        return gi_fail(GIN_EINVAL, "GINSHMEM_ROOT is set, but GINSHMEM_%s is not",
                       env->set.rank ? "SIZE" : "RANK");
    if (gi_boot_pmix_offered(&l.pmix))
        return gi_boot_pmix_open(deadline, boot);
    if (gi_boot_pmi1_offered(&l.pmi1))
        return gi_boot_pmi1_open(deadline, boot);
    if (gi_boot_pmi2_offered(&l.pmi2))
        return gi_boot_pmi2_open(deadline, boot);
    if (env->set.rank || env->set.size)
        return gi_fail(GIN_EINVAL, "GINSHMEM_%s is set, but GINSHMEM_ROOT is not",
                       env->set.rank ? "RANK" : "SIZE");
    if (gi_boot_torch_offered(&l.torch))
        return gi_boot_torch_open(env, deadline, boot);
    why = crowd(text, sizeof(text));
    return why != NULL ? refuse(&l, why) : gi_boot_self_open(boot);
}

static int open_named(const struct gi_env *env, uint64_t deadline, struct gi_boot **boot)
{
    const char *name = env->boot, *root, *torch;

    if (strcmp(name, "self") == 0)
        return gi_boot_self_open(boot);
    if (strcmp(name, "pmix") == 0)
        return gi_boot_pmix_open(deadline, boot);
    if (strcmp(name, "pmi1") == 0)
        return gi_boot_pmi1_open(deadline, boot);
    if (strcmp(name, "pmi2") == 0)
        return gi_boot_pmi2_open(deadline, boot);
    if (strcmp(name, "tcp") != 0)
        return open_auto(env, deadline, boot);
    if (gi_boot_root_offered(env, &root))
        return gi_boot_root_open(env, deadline, boot);
    if (gi_boot_torch_offered(&torch))
        return gi_boot_torch_open(env, deadline, boot);
    return gi_fail(GIN_EINVAL, "GINSHMEM_BOOT=tcp, but %s and %s", root, torch);
}

/* Rank and size of a caller that brings an id or an allgather: its own word or the launcher's. */
static int place_of(const struct gi_env *env, const struct gin_config *config, int *rank, int *size)
{
    const char *from;
    int r = config->rank, n = config->n_ranks, env_rank, env_size;

    if (r == -1 || n == -1) {
        if (!gi_boot_env_rank(env, &env_rank, &env_size, &from))
            return gi_fail(GIN_EINVAL,
                           "gin_config has rank %d of %d, and no launcher says which "
                           "this is",
                           r, n);
        r = r == -1 ? env_rank : r;
        n = n == -1 ? env_size : n;
    }
    if (n < 1 || r < 0 || r >= n)
        return gi_fail(GIN_EINVAL, "gin_config has rank %d of %d ranks", r, n);
    *rank = r;
    *size = n;
    return GIN_OK;
}

static int open_config(const struct gi_env *env, const struct gin_config *config, uint64_t deadline,
                       struct gi_boot **boot)
{
    int rank = 0, size = 0, st;

    if (config->allgather != NULL && config->unique_id != NULL)
        return gi_fail(GIN_EINVAL, "gin_config has both a unique id and an allgather; give one");
    if (config->allgather != NULL || config->unique_id != NULL) {
        st = place_of(env, config, &rank, &size);
        if (st != GIN_OK)
            return st;
        return config->allgather != NULL
                   ? gi_boot_user_open(config, rank, size, boot)
                   : gi_boot_id_open(env, config->unique_id, rank, size, deadline, boot);
    }
    if (config->rank == 0 && config->n_ranks == 1)
        return gi_boot_self_open(boot);
    if (config->rank != -1 || config->n_ranks != -1)
        return gi_fail(GIN_EINVAL,
                       "gin_config has rank %d of %d, but neither a unique id nor an allgather by "
                       "which they could meet",
                       config->rank, config->n_ranks);
    return open_named(env, deadline, boot);
}

int gi_boot_open(const struct gi_env *env, const struct gin_config *config, struct gi_boot **boot)
{
    uint64_t deadline = gi_deadline_in(env->init_timeout);
    struct gi_boot *b = NULL;
    int st;

    st = config != NULL ? open_config(env, config, deadline, &b) : open_named(env, deadline, &b);
    if (st != GIN_OK)
        return gi_fail_context("gin_init");
    b->lost = -1;
    gi_debug("boot", "rank %d of %d by %s", b->rank, b->size, b->origin);
    *boot = b;
    return GIN_OK;
}

bool gi_boot_stopped(struct gi_boot *b)
{
    if (b == NULL || b->stop == NULL)
        return false;
    b->stopped = b->stop(b->stop_arg);
    return b->stopped != GIN_OK;
}

int gi_boot_poll(struct gi_boot *b, struct pollfd *fds, unsigned n, uint64_t deadline)
{
    for (;;) {
        uint64_t now = gi_now_ns(), slice = now + GI_BOOT_ASK_NS;
        int e = gi_os_poll(fds, n, slice < deadline ? slice : deadline);
        if (e != 0 || gi_now_ns() >= deadline)
            return e;
        if (gi_boot_stopped(b))
            return -ECANCELED;
    }
}

int gi_boot_allgather(struct gi_boot *b, const void *in, void *out, size_t bytes, uint64_t deadline)
{
    int st = b->ops->allgather(b, in, out, bytes, deadline);
    atomic_fetch_add_explicit(&b->rounds, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&b->bytes, bytes * (uint64_t)b->size, memory_order_relaxed);
    return st == GIN_OK ? GIN_OK : gi_fail_context("bootstrap by %s", b->ops->name);
}

/* An allgather of nothing: nobody leaves before all have come. */
int gi_boot_barrier(struct gi_boot *b, uint64_t deadline)
{
    char nothing = 0;
    return gi_boot_allgather(b, &nothing, &nothing, 0, deadline);
}

void gi_boot_close(struct gi_boot *b)
{
    if (b != NULL)
        b->ops->close(b);
}
