/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's side of PMI-1: one store for the job, a barrier that counts. Every command costs the
 * same however many ranks there are; a barrier costs one line each. Beyond the protocol it takes
 * several requests at a time, also such as wait for a barrier before them, says in its first answer
 * what a client would ask next, tells who is missing in a barrier (cmd=barrier_missing), and ends
 * a barrier with rc=-1 and the rank once a rank has ended that can come to it no more.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tools/ginrun.h"

#define BACKLOG_MOST (16u << 20) /* answers that a rank asked for and does not take */

struct run_pair {
    char *key, *value;
};

static size_t hash(const char *s)
{
    uint64_t h = 1469598103934665603u;
    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The slot that holds key, or the free one where it belongs. */
static struct run_pair *slot_of(const struct run_kvs *kvs, const char *key)
{
    size_t i = hash(key) & (kvs->n_slots - 1);
    while (kvs->slots[i].key != NULL && strcmp(kvs->slots[i].key, key) != 0)
        i = (i + 1) & (kvs->n_slots - 1);
    return &kvs->slots[i];
}

static bool grow(struct run_kvs *kvs)
{
    struct run_kvs bigger = {.n_slots = kvs->n_slots * 2};

    bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return false;
    for (size_t i = 0; i < kvs->n_slots; i++)
        if (kvs->slots[i].key != NULL)
            *slot_of(&bigger, kvs->slots[i].key) = kvs->slots[i];
    free(kvs->slots);
    kvs->slots = bigger.slots;
    kvs->n_slots = bigger.n_slots;
    return true;
}

/* NULL, or why not. */
static const char *store(struct run_kvs *kvs, const char *key, const char *value)
{
    struct run_pair *s;

    if (kvs->n * 2 >= kvs->n_slots && !grow(kvs))
        return "no_memory";
    s = slot_of(kvs, key);
    if (s->key != NULL)
        return "duplicate_key";
    s->value = strdup(value);
    s->key = s->value != NULL ? strdup(key) : NULL;
    if (s->key == NULL) {
        free(s->value);
        return "no_memory";
    }
    kvs->n++;
    return NULL;
}

/* Hosts get equal blocks of ranks, the first ones one more: at most two runs of equal hosts. */
static void describe_mapping(struct run_job *job)
{
    int n = job->opt.ranks, h = job->opt.hosts > 0 ? job->opt.hosts : 1, more = n % h;
    char *text = job->kvs.mapping;
    size_t size = sizeof(job->kvs.mapping);

    if (more == 0)
        snprintf(text, size, "(vector,(0,%d,%d))", h, n / h);
    else
        snprintf(text, size, "(vector,(0,%d,%d),(%d,%d,%d))", more, n / h + 1, more, h - more,
                 n / h);
}

int run_pmi_init(struct run_job *job)
{
    struct run_kvs *kvs = &job->kvs;

    kvs->n_slots = 1024;
    kvs->slots = calloc(kvs->n_slots, sizeof(*kvs->slots));
    snprintf(kvs->name, sizeof(kvs->name), "ginrun_%d", (int)getpid());
    describe_mapping(job);
    if (kvs->slots == NULL || store(kvs, "PMI_process_mapping", kvs->mapping) != NULL) {
        run_say("no memory");
        return RUN_FAILED;
    }
    return 0;
}

void run_pmi_free(struct run_job *job)
{
    for (size_t i = 0; i < job->kvs.n_slots && job->kvs.slots != NULL; i++) {
        free(job->kvs.slots[i].key);
        free(job->kvs.slots[i].value);
    }
    free(job->kvs.slots);
}

/* Answers gather here and leave in one write at the end of an event. */
__attribute__((format(printf, 3, 4))) static void reply(struct run_job *job, int rank,
                                                        const char *fmt, ...)
{
    char line[GI_PMI_LINE_MAX + 2];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof(line) - 1)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    struct run_queue *out = &job->rank[rank].out;
    if (out->end - out->begin > BACKLOG_MOST || !run_queue_add(out, line, (size_t)n)) {
        run_say("rank %d asks and does not take the answers; ending the job", rank);
        run_end(job, RUN_FAILED);
    }
}

static void flush(struct run_job *job, int rank)
{
    struct run_rank *r = &job->rank[rank];

    while (r->pmi >= 0 && r->out.begin < r->out.end) {
        ssize_t n = send(r->pmi, r->out.data + r->out.begin, r->out.end - r->out.begin,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            run_queue_drop(&r->out, (size_t)n);
        else if (n < 0 && errno == EAGAIN) {
            run_rewatch(job, r->pmi, EV_PMI, rank, EPOLLIN | EPOLLOUT);
            return;
        } else if (n < 0 && errno != EINTR)
            return; /* the end of the connection is seen by reading */
    }
}

/* ---- barrier ---- */

static void release_all(struct run_job *job)
{
    job->in_barrier = 0;
    for (int i = 0; i < job->opt.ranks; i++) {
        if (!job->rank[i].in_barrier)
            continue;
        job->rank[i].in_barrier = false;
        if (job->barrier_broken >= 0)
            reply(job, i, "cmd=barrier_out rc=-1 rank=%d msg=rank_has_ended", job->barrier_broken);
        else
            reply(job, i, "cmd=barrier_out rc=0");
    }
    job->released = true;
}

static void enter_barrier(struct run_job *job, int rank)
{
    job->rank[rank].in_barrier = true;
    job->rank[rank].barriers++;
    job->in_barrier++;
    if (job->in_barrier == job->opt.ranks || job->barrier_broken >= 0)
        release_all(job);
}

/* The connection has ended. What that means is known when the process has, too. */
static void hang_up(struct run_job *job, int rank)
{
    struct run_rank *r = &job->rank[rank];

    close(r->pmi);
    r->pmi = -1;
    free(r->out.data);
    r->out = (struct run_queue){.data = NULL};
    if (r->in_barrier)
        job->in_barrier--;
    r->in_barrier = false;
}

static void answer_missing(struct run_job *job, int rank)
{
    char text[180];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < job->opt.ranks; i++) {
        int last = i;
        if (job->rank[i].in_barrier)
            continue;
        while (last + 1 < job->opt.ranks && !job->rank[last + 1].in_barrier)
            last++;
        if (used > sizeof(text) - 32) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, ",...");
            break;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, last > i ? "%s%d-%d" : "%s%d",
                                 used > 0 ? "," : "", i, last);
        i = last;
    }
    reply(job, rank, "cmd=barrier_missing_result rc=0 ranks=%s", used > 0 ? text : "none");
}

/* ---- commands ---- */

static void put(struct run_job *job, int rank, const struct gi_pmi_msg *m)
{
    char key[GI_PMI_KEY_MAX], value[GI_PMI_VALUE_MAX];
    const char *why = NULL;

    if (!gi_pmi_copy(m, "key", key, sizeof(key)))
        why = "bad_key";
    else if (!gi_pmi_copy(m, "value", value, sizeof(value)))
        why = "bad_value";
    else
        why = store(&job->kvs, key, value);
    reply(job, rank, "cmd=put_result rc=%d msg=%s", why != NULL ? -1 : 0,
          why != NULL ? why : "success");
}

static void get(struct run_job *job, int rank, const struct gi_pmi_msg *m)
{
    char key[GI_PMI_KEY_MAX];
    const struct run_pair *s = NULL;

    if (gi_pmi_copy(m, "key", key, sizeof(key)))
        s = slot_of(&job->kvs, key);
    if (s == NULL || s->key == NULL)
        reply(job, rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
    else
        reply(job, rank, "cmd=get_result rc=0 msg=success value=%s", s->value);
}

static void init(struct run_job *job, int rank, const struct gi_pmi_msg *m)
{
    int version;

    if (!gi_pmi_int(m, "pmi_version", 0, 1000, &version) || version != 1) {
        reply(job, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1");
        return;
    }
    job->rank[rank].initialized = true;
    reply(job, rank,
          "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 launcher=ginrun kvsname=%s "
          "keylen_max=%d vallen_max=%d",
          job->kvs.name, GI_PMI_KEY_MAX, GI_PMI_VALUE_MAX);
}

static void abort_job(struct run_job *job, int rank, const struct gi_pmi_msg *m)
{
    int code = 1;

    gi_pmi_int(m, "exitcode", 0, 255, &code);
    run_say("rank %d (process %d) aborts the job with status %d", rank, (int)job->rank[rank].pid,
            code);
    run_end(job, code != 0 ? code : 1);
}

/* Known requests that this launcher cannot serve. */
static bool refuse(struct run_job *job, int rank, const struct gi_pmi_msg *m)
{
    static const char *const names[] = {"publish_name", "unpublish_name", "lookup_name", "spawn",
                                        "getbyidx"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (gi_pmi_is(m, names[i])) {
            reply(job, rank, "cmd=%s_result rc=-1 msg=not_supported", names[i]);
            return true;
        }
    return false;
}

static void wild(struct run_job *job, int rank, const char *line, size_t n)
{
    char text[64];
    size_t len = 0;

    if (job->ending)
        return;
    for (; len < n && len < sizeof(text) - 1 && line[len] != '\n'; len++)
        text[len] = line[len] > 31 && line[len] < 127 ? line[len] : '?';
    text[len] = '\0';
    run_say("rank %d (process %d) sent what is no PMI-1 request: \"%s\"; ending the job", rank,
            (int)job->rank[rank].pid, text);
    run_end(job, RUN_FAILED);
}

static void serve(struct run_job *job, int rank, const char *line, size_t n)
{
    struct gi_pmi_msg m;

    if (!gi_pmi_parse(line, n, &m) || m.stray != 0)
        wild(job, rank, line, n);
    else if (gi_pmi_is(&m, "get"))
        get(job, rank, &m);
    else if (gi_pmi_is(&m, "put"))
        put(job, rank, &m);
    else if (gi_pmi_is(&m, "barrier_in"))
        enter_barrier(job, rank);
    else if (gi_pmi_is(&m, "barrier_missing"))
        answer_missing(job, rank);
    else if (gi_pmi_is(&m, "init"))
        init(job, rank, &m);
    else if (gi_pmi_is(&m, "get_maxes"))
        reply(job, rank, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", GI_PMI_KVSNAME_MAX,
              GI_PMI_KEY_MAX, GI_PMI_VALUE_MAX);
    else if (gi_pmi_is(&m, "get_my_kvsname"))
        reply(job, rank, "cmd=my_kvsname kvsname=%s", job->kvs.name);
    else if (gi_pmi_is(&m, "get_appnum"))
        reply(job, rank, "cmd=appnum appnum=0");
    else if (gi_pmi_is(&m, "get_universe_size"))
        reply(job, rank, "cmd=universe_size size=%d", job->opt.ranks);
    else if (gi_pmi_is(&m, "finalize"))
        reply(job, rank, "cmd=finalize_ack");
    else if (gi_pmi_is(&m, "abort"))
        abort_job(job, rank, &m);
    else if (!refuse(job, rank, &m))
        wild(job, rank, line, n);
}

static bool is_question(const char *line, size_t n)
{
    struct gi_pmi_msg m;
    return gi_pmi_parse(line, n, &m) && gi_pmi_is(&m, "barrier_missing");
}

/*
 * What a rank sends behind its barrier_in is for after the barrier and stays in the buffer, but for
 * the question who is missing.
 */
static void serve_lines(struct run_job *job, int rank)
{
    struct run_rank *r = &job->rank[rank];
    size_t at = 0, kept = 0;
    int n;

    while ((n = gi_pmi_line(r->in + at, r->in_n - at)) > 0) {
        if (r->in_barrier && !is_question(r->in + at, (size_t)n)) {
            memmove(r->in + kept, r->in + at, (size_t)n);
            kept += (size_t)n;
        } else {
            serve(job, rank, r->in + at, (size_t)n);
        }
        at += (size_t)n;
    }
    memmove(r->in + kept, r->in + at, r->in_n - at);
    r->in_n -= at - kept;
    if (n < 0 || r->in_n == sizeof(r->in)) {
        wild(job, rank, r->in + kept, r->in_n - kept);
        r->in_n = 0;
    }
}

/* Ranks that came out of a barrier go on with what they asked for behind it. */
static void serve_released(struct run_job *job)
{
    while (job->released) {
        job->released = false;
        for (int i = 0; i < job->opt.ranks; i++) {
            if (job->rank[i].in_n > 0 && !job->rank[i].in_barrier)
                serve_lines(job, i);
            flush(job, i);
        }
    }
}

/* Read once and answer; false at the end of the connection or when nothing is there. */
static bool read_some(struct run_job *job, int rank)
{
    struct run_rank *r = &job->rank[rank];
    ssize_t n = recv(r->pmi, r->in + r->in_n, sizeof(r->in) - r->in_n, MSG_DONTWAIT);

    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        hang_up(job, rank);
        return false;
    }
    r->in_n += (size_t)n;
    serve_lines(job, rank);
    flush(job, rank);
    return true;
}

void run_pmi_event(struct run_job *job, int rank, uint32_t events)
{
    struct run_rank *r = &job->rank[rank];

    if (r->pmi >= 0 && events & EPOLLOUT) {
        run_rewatch(job, r->pmi, EV_PMI, rank, EPOLLIN);
        flush(job, rank);
    }
    if (r->pmi >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_some(job, rank);
    serve_released(job);
}

/* A rank that is gone will come to no barrier; whoever waits there is told at once. */
void run_pmi_ended(struct run_job *job, int rank)
{
    while (job->rank[rank].pmi >= 0 && read_some(job, rank))
        ;
    if (job->rank[rank].pmi >= 0)
        hang_up(job, rank);
    if (job->barrier_broken < 0)
        job->barrier_broken = rank;
    if (job->in_barrier > 0)
        release_all(job);
    serve_released(job);
}
