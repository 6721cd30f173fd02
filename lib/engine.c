/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's thread. It polls, since a kernel wakes nobody; the longer there was nothing to do,
 * the less. Every few milliseconds it looks at the communicator's and the GPU's health and shows a
 * failure to its kernels.
 */
#include "engine_int.h"

#include <stdlib.h>
#include "net_up.h"

#define LOOK_NS     5000000u /* between two looks at the communicator */
#define KEEN        2000u    /* idle rounds without a pause: a kernel's round trip waits for it */
#define EAGER       20000u   /* idle rounds before it yields */
#define LAZY        (EAGER + 2000u)
#define LAZY_NS     50000u /* its sleep, once that idle */
#define DRAIN_NS    20000u
#define LEAST_SHARE 16u      /* requests that a ring may hold, however many there are */
#define RINGLESS_NS 2000000u /* its sleep where there is nothing to serve */

static void show_error(struct gi_engine *e, int status, int rank)
{
    for (struct gi_devcomm *d = e->served; d != NULL; d = d->kernel->next)
        gi_error_set(d->kernel->error, status, rank);
}

static void look(struct gi_engine *e)
{
    gin_comm_t *comm = e->comm;
    char why[120];
    uint64_t now = gi_now_ns();
    if (now < e->next_look)
        return;
    e->next_look = now + LOOK_NS;
    if (gi_comm_status_quiet(comm) == GIN_OK && gi_gpu_health(e->gpu) != GIN_OK) {
        snprintf(why, sizeof(why), "rank %d: %.100s", comm->rank, gin_last_error());
        gi_comm_set_failed(comm, GIN_EPEER, comm->rank, why);
    }
    if (gi_comm_health(comm) != GIN_OK)
        show_error(e, gi_comm_status_quiet(comm), comm->status_rank);
}

/* Cores that are needed elsewhere are not polled away for long. */
static void rest(const struct gi_engine *e, uint32_t idle, bool rings)
{
    bool crowded = e->crowded;
    if (!rings)
        gi_os_sleep_ns(RINGLESS_NS);
    else if (!crowded && idle < KEEN)
        return;
    else if (idle < (crowded ? 200u : EAGER))
        GIN_PAUSE();
    else if (!crowded || idle < LAZY)
        gi_os_yield();
    else
        gi_os_sleep_ns(LAZY_NS);
}

/* Behind a turn, so that no kernel's answer has to wait for the clock. */
static void keep_time(struct gi_engine *e, bool serving)
{
    bool was = e->n_spells != 0 && e->to_ns == 0;
    if (GIN_LIKELY(serving == was))
        return;
    uint64_t now = gi_now_ns();
    if (serving) {
        e->n_spells++;
        e->from_ns = now;
        e->to_ns = 0;
    } else {
        e->to_ns = now;
        e->busy_ns += now - e->from_ns;
    }
}

static bool serve_all(struct gi_engine *e, bool *rings)
{
    bool busy = gi_asks_serve(e);
    bool far = false, serving = false;
    *rings = false;
    gi_requests_rest(e);
    for (struct gi_devcomm *d = e->served; d != NULL; d = d->kernel->next) {
        struct gi_kernel_side *k = d->kernel;
        for (uint32_t i = 0; i < k->n_rings; i++)
            serving |= gi_engine_serve(e, d, &k->rings[i]);
        *rings = *rings || k->n_rings != 0;
        far = far || (k->n_rings != 0 && k->rings[0].far != NULL);
    }
    keep_time(e, serving);
    /* kernels that wait drive nothing: their part of the network falls to this thread */
    if (far && gi_core_poll_some(gi_net_of(e->comm)->core) > 0)
        busy = true;
    return busy || serving;
}

static void *run(void *arg)
{
    struct gi_engine *e = arg;
    uint32_t idle = 0;
    bool rings;
    gi_log_set_rank(e->comm->rank);
    gi_gpu_adopt(e->gpu);
    gi_os_stay_near(e->gpu->pci);
    pthread_mutex_lock(&e->lock);
    while (!e->stop) {
        idle = serve_all(e, &rings) ? 0 : idle + 1;
        if ((e->turns++ & 63) == 0 || !rings)
            look(e);
        if (atomic_load_explicit(&e->wanted, memory_order_acquire) == 0 && idle != 0)
            rest(e, idle, rings);
        if (atomic_load_explicit(&e->wanted, memory_order_acquire) != 0) {
            pthread_mutex_unlock(&e->lock);
            while (atomic_load_explicit(&e->wanted, memory_order_acquire) != 0)
                gi_os_yield();
            pthread_mutex_lock(&e->lock);
        }
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* The thread holds its lock nearly always: ask for it. */
static void lock(struct gi_engine *e)
{
    atomic_fetch_add_explicit(&e->wanted, 1, memory_order_acq_rel);
    pthread_mutex_lock(&e->lock);
    atomic_fetch_sub_explicit(&e->wanted, 1, memory_order_acq_rel);
}

static struct gi_engine *engine_of(const gin_comm_t *comm)
{
    return comm->cuda != NULL ? comm->cuda->engine : NULL;
}

void gi_engine_hold(gin_comm_t *comm)
{
    if (engine_of(comm) != NULL)
        lock(engine_of(comm));
}

void gi_engine_go_on(gin_comm_t *comm)
{
    if (engine_of(comm) != NULL)
        pthread_mutex_unlock(&engine_of(comm)->lock);
}

void gi_engine_count(gin_comm_t *comm, gin_stats_t *s)
{
    struct gi_engine *e = engine_of(comm);
    if (e == NULL)
        return;
    lock(e);
    bool lasts = e->n_spells != 0 && e->to_ns == 0;
    s->engine_taken = e->n_taken;
    s->engine_bytes = e->n_bytes;
    s->engine_spells = e->n_spells;
    s->engine_busy_ns = e->busy_ns + (lasts ? gi_now_ns() - e->from_ns : 0);
    s->engine_from_ns = e->from_ns;
    s->engine_to_ns = e->to_ns;
    pthread_mutex_unlock(&e->lock);
}

/* ---- coming and going ---- */

static int open_streams(struct gi_engine *e)
{
    int st = GIN_OK;
    for (uint32_t i = 0; i < GI_ENGINE_STREAMS && st == GIN_OK; i++)
        st = gi_gpu_stream_open(e->gpu, &e->stream[i]);
    if (st == GIN_OK)
        st = gi_gpu_stream_open(e->gpu, &e->word_stream);
    return st == GIN_OK ? gi_requests_open(e) : st;
}

/* Whether others may ask this rank's engine. */
static void show_open(const struct gi_engine *e, uint32_t open)
{
    struct gi_ask_box *box = &gi_control(e->comm, e->comm->shm->lsa_rank)->asks;
    atomic_store_explicit(&box->open, open, memory_order_release);
}

static void free_engine(struct gi_engine *e)
{
    for (uint32_t i = 0; i < GI_ENGINE_STREAMS; i++)
        gi_gpu_stream_close(e->gpu, e->stream[i]);
    gi_gpu_stream_close(e->gpu, e->word_stream);
    gi_requests_close(e);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static int start(struct gi_cuda *c)
{
    struct gi_engine *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the engine");
    pthread_mutex_init(&e->lock, NULL);
    e->comm = c->comm;
    e->gpu = c->gpu;
    e->crowded = gi_is_crowded(e->comm, gi_os_cores(), 2);
    int st = open_streams(e);
    if (st == GIN_OK) {
        int err = gi_os_thread(&e->thread, run, e, "gin-engine");
        if (err != 0)
            st = gi_fail(GIN_ESYS, "cannot start the engine's thread: %s", gi_os_strerror(err));
    }
    if (st != GIN_OK) {
        free_engine(e);
        return st;
    }
    c->engine = e;
    show_open(e, 1);
    return GIN_OK;
}

/* Requests are for all rings: no ring keeps the others from theirs. */
static void share_out(struct gi_engine *e)
{
    uint32_t rings = 0;
    for (const struct gi_devcomm *d = e->served; d != NULL; d = d->kernel->next)
        rings += d->kernel->n_rings;
    e->share = GI_ENGINE_REQUESTS / (rings != 0 ? rings : 1);
    if (e->share < LEAST_SHARE)
        e->share = LEAST_SHARE;
}

int gi_engine_add(struct gi_devcomm *d)
{
    struct gi_cuda *c = d->comm->cuda;
    if (c->engine == NULL) {
        int st = start(c);
        if (st != GIN_OK)
            return st;
    }
    lock(c->engine);
    d->kernel->next = c->engine->served;
    c->engine->served = d;
    d->kernel->served = true;
    share_out(c->engine);
    pthread_mutex_unlock(&c->engine->lock);
    return GIN_OK;
}

/* All rings of d, or with NULL of everybody. */
static bool each_ring(struct gi_engine *e, struct gi_devcomm *only, bool begin)
{
    bool all = true;
    for (struct gi_devcomm *d = e->served; d != NULL; d = d->kernel->next)
        for (uint32_t i = 0; (only == NULL || d == only) && i < d->kernel->n_rings; i++)
            if (begin)
                gi_engine_mark(&d->kernel->rings[i]);
            else
                all &= gi_engine_reached(&d->kernel->rings[i]);
    return all;
}

void gi_engine_drain(gin_comm_t *comm, struct gi_devcomm *d)
{
    struct gi_engine *e = engine_of(comm);
    if (e == NULL || (d != NULL && (d->kernel == NULL || !d->kernel->served)))
        return;
    uint64_t deadline = gi_deadline_in(comm->env.coll_timeout);
    bool begin = true;
    for (;; begin = false) {
        lock(e);
        bool over = each_ring(e, d, begin) && !begin;
        pthread_mutex_unlock(&e->lock);
        if (over || gi_comm_status_quiet(comm) != GIN_OK || gi_now_ns() >= deadline)
            return;
        if (!begin)
            gi_os_sleep_ns(DRAIN_NS);
    }
}

void gi_engine_remove(struct gi_devcomm *d)
{
    struct gi_cuda *c = d->comm->cuda;
    struct gi_engine *e = c != NULL ? c->engine : NULL;
    if (e == NULL || d->kernel == NULL || !d->kernel->served)
        return;
    lock(e);
    /* kernels that still wait are told by nobody later */
    if (gi_comm_status_quiet(d->comm) != GIN_OK)
        show_error(e, gi_comm_status_quiet(d->comm), d->comm->status_rank);
    struct gi_devcomm **p = &e->served;
    while (*p != d)
        p = &(*p)->kernel->next;
    *p = d->kernel->next;
    for (uint32_t i = 0; i < d->kernel->n_rings; i++)
        gi_requests_drop(e, &d->kernel->rings[i]);
    d->kernel->served = false;
    share_out(e);
    e->stop = e->served == NULL;
    pthread_mutex_unlock(&e->lock);
    if (!e->stop)
        return;
    pthread_join(e->thread, NULL);
    show_open(e, 0); /* who asks sees that it got no answer, once none comes any more */
    c->engine = NULL;
    free_engine(e);
}
