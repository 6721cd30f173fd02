/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joining: a round of allgathers, each of which carries every rank's state so far, so that a
 * failure of one is the failure of all, with its rank and reason, before anybody waits for it.
 *
 *     1 hello      who wants what; secrets; from it follow the groups of candidates
 *     2 reserved   leaders hold a range of addresses, roots listen; the least stride is agreed
 *     3 connected  leaders have said to their root who they are (left out where no group spans
 *                  processes)
 *     4 mapped     memory objects passed and mapped, tokens written
 *     5 proven     who read whose token; from it follow the teams
 *
 * Where a team is smaller than its group the slots lie wrong: another round is run with the teams
 * as groups. Groups only shrink, so this ends.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/shm/shm_int.h"

bool (*gi_shm_test_blind)(int reader, int owner);

#define TOKEN_MAGIC 0x47494e544f4b454eull /* "GINTOKEN" */
#define TOKEN_WORDS 8

struct state { /* what allgathers 2 to 4 carry */
    struct gi_shm_note note;
    uint64_t stride;
};

struct join {
    const struct gi_shm_config *c;
    struct gi_shm *s;
    struct gi_shm_hello *hello; /* by world rank */
    struct state *states;       /* by world rank */
    struct gi_shm_pair *pairs;
    int *group, *index, *scratch; /* by world rank; scratch has 5 * size */
    int n_groups;
    uint64_t *seen; /* allgather 5: words per rank, the first ones are the note */
    int words, most_words;
    int *members, *lead; /* of my group */
    int n, me;
    bool spans; /* some group has ranks of several processes */
    struct gi_shm_note note;
    struct gi_shm_region *region;
    struct gi_shm_post post;
};
#define NOTE_WORDS ((int)(sizeof(struct gi_shm_note) / sizeof(uint64_t)))
_Static_assert(sizeof(struct gi_shm_note) % sizeof(uint64_t) == 0, "notes are made of words");

static int status_of(int err)
{
    switch (err) {
    case ENOMEM: return GIN_ENOMEM;
    case ETIMEDOUT: return GIN_ETIMEDOUT;
    case EINVAL: return GIN_EINVAL;
    case EPIPE:
    case ECONNRESET:
    case ESRCH: return GIN_EPEER;
    default: return GIN_ESYS;
    }
}

int gi_shm_failed(struct gi_shm_note *note, enum gi_shm_step step, int err, int about,
                  const char *fmt, ...)
{
    char text[400];
    va_list ap;
    if (note->status != GIN_OK)
        return note->status;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err = err < 0 ? -err : err;
    *note = (struct gi_shm_note){status_of(err), err, (int16_t)step,
                                 err == EPIPE || err == ECONNRESET, about};
    return gi_fail(note->status, "%s", text);
}

static const char *step_text(int step)
{
    switch (step) {
    case GI_SHM_STEP_PREPARE: return "preparing";
    case GI_SHM_STEP_RESERVE: return "reserving addresses";
    case GI_SHM_STEP_LISTEN: return "opening a Unix socket";
    case GI_SHM_STEP_CONNECT: return "connecting to its peers' Unix socket";
    case GI_SHM_STEP_PASS: return "passing memory objects";
    case GI_SHM_STEP_MAP: return "mapping memory objects";
    case GI_SHM_STEP_WATCH: return "watching processes";
    case GI_SHM_STEP_SHARE: return "finding its process' range";
    case GI_SHM_STEP_OBJECT: return "making a memory object";
    default: return "?";
    }
}

int gi_shm_verdict(const void *notes, size_t stride, int size, int me)
{
    const struct gi_shm_note *worst = NULL;
    int rank = -1;
    for (int r = 0; r < size; r++) {
        const struct gi_shm_note *n = (const void *)((const char *)notes + (size_t)r * stride);
        if (n->status == GIN_OK || (worst != NULL && (n->echo || !worst->echo)))
            continue;
        worst = n;
        rank = r;
    }
    if (worst == NULL)
        return GIN_OK;
    if (rank == me) /* its text is already the thread's last error */
        return worst->status;
    char about[32] = "";
    if (worst->about >= 0)
        snprintf(about, sizeof(about), " (about rank %d)", (int)worst->about);
    return gi_fail(worst->status, "rank %d could not share its memory: %s%s: %s", rank,
                   step_text(worst->step), about, gi_os_strerror(worst->err));
}

static int verdict(const struct join *j, const void *notes, size_t stride)
{
    return gi_shm_verdict(notes, stride, j->c->size, j->c->rank);
}

static int agree(struct join *j, uint64_t stride, uint64_t *least)
{
    struct state mine = {j->note, stride};
    int st = j->c->allgather(j->c->arg, &mine, j->states, sizeof(mine));
    if (st != GIN_OK)
        return st;
    for (int r = 0; r < j->c->size && least != NULL; r++)
        if (j->states[r].stride < *least)
            *least = j->states[r].stride;
    return verdict(j, j->states, sizeof(mine));
}

/* ---- allgather 1 ---- */

static int fill_hello(struct join *j, struct gi_shm_hello *h)
{
    uint64_t size = 0;
    memset(h, 0, sizeof(*h));
    h->stride = j->c->stride;
    h->min_stride = j->c->min_stride;
    h->lsa = j->c->lsa;
    h->fd = j->c->fd;
    h->space[0] = gi_os_namespace("net");
    h->space[1] = gi_os_namespace("user");
    int e = gi_os_random(&h->name, sizeof(h->name) + sizeof(h->secret) + sizeof(h->token));
    if (e != 0)
        return gi_shm_failed(&j->note, GI_SHM_STEP_PREPARE, e, -1, "no random numbers: %s",
                             gi_os_strerror(e));
    e = gi_os_file_id(j->c->fd, h->file, &size);
    if (e == 0 && size < TOKEN_WORDS * sizeof(uint64_t))
        e = -EINVAL;
    if (e != 0)
        return gi_shm_failed(&j->note, GI_SHM_STEP_PREPARE, e, -1,
                             "descriptor %d of %llu bytes is no memory object that I can share: %s",
                             j->c->fd, (unsigned long long)size, gi_os_strerror(e));
    return GIN_OK;
}
_Static_assert(offsetof(struct gi_shm_hello, fd) - offsetof(struct gi_shm_hello, name) ==
                   sizeof(uint64_t) * 7,
               "name, secret and token are filled in one go");

/* From everybody's group: my members, their leaders, the width of bitmaps. */
static void settle_groups(struct join *j)
{
    const struct gi_shm_rank *ranks = j->c->ranks;
    int *count = j->scratch, *first = j->scratch + j->c->size, widest = 0;
    memset(count, 0, (size_t)j->c->size * sizeof(*count));
    j->n = 0;
    j->spans = false;
    for (int r = 0; r < j->c->size; r++) {
        int g = j->group[r];
        if (count[g]++ == 0)
            first[g] = r;
        widest = count[g] > widest ? count[g] : widest;
        j->spans = j->spans || ranks[r].process != ranks[first[g]].process;
        if (g != j->group[j->c->rank])
            continue;
        if (r == j->c->rank)
            j->me = j->n;
        j->members[j->n] = r;
        int k = 0;
        while (ranks[j->members[k]].process != ranks[r].process)
            k++;
        j->lead[j->n++] = k;
    }
    j->words = NOTE_WORDS + (widest + 63) / 64;
}

static int greet(struct join *j, bool first_round)
{
    struct gi_shm_hello mine;
    fill_hello(j, &mine);
    mine.note = j->note;
    int st = j->c->allgather(j->c->arg, &mine, j->hello, sizeof(mine));
    if (st == GIN_OK)
        st = verdict(j, j->hello, sizeof(mine));
    if (st != GIN_OK)
        return st;
    if (first_round)
        j->n_groups = gi_shm_propose(j->c->ranks, j->hello, j->c->size, j->pairs, j->group);
    settle_groups(j);
    return GIN_OK;
}

/* ---- allgathers 2 to 4 ---- */

static void reserve(struct join *j)
{
    uint64_t stride = UINT64_MAX, least = 0;
    for (int r = 0; r < j->c->size; r++) {
        stride = j->hello[r].stride < stride ? j->hello[r].stride : stride;
        least = j->hello[r].min_stride > least ? j->hello[r].min_stride : least;
    }
    int e = gi_shm_region_open(j->c->job, j->members, j->n, stride, least, &j->region);
    if (e == 0)
        return;
    char limit[64] = "";
    if (gi_os_address_limit() != UINT64_MAX)
        snprintf(limit, sizeof(limit), "; the limit of address space (ulimit -v) is %llu MiB",
                 (unsigned long long)(gi_os_address_limit() >> 20));
    gi_shm_failed(&j->note, GI_SHM_STEP_RESERVE, e == -EAGAIN ? ENOMEM : e, -1,
                  "cannot reserve %d times %llu MiB of addresses for the peers' memory: %s%s", j->n,
                  (unsigned long long)(least >> 20), gi_os_strerror(e), limit);
}

/* Map one object into its slot after a look whether it is the one that its owner announced. */
static void map_one(struct gi_shm_post *p, int place, int fd)
{
    struct gi_shm_region *region = p->arg;
    const struct gi_shm_hello *h = &p->hello[p->members[place]];
    uint64_t id[2] = {0, 0}, size = 0;
    int e = gi_os_file_id(fd, id, &size);
    if (e == 0 && (id[0] != h->file[0] || id[1] != h->file[1]))
        e = -EBADF;
    if (e == 0)
        e = gi_shm_region_map(region, place, fd);
    if (e != 0)
        gi_shm_failed(p->note, GI_SHM_STEP_MAP, e, p->members[place],
                      "cannot map %llu MiB of addresses to the memory of rank %d: %s",
                      (unsigned long long)(region->stride >> 20), p->members[place],
                      gi_os_strerror(e));
}

static int prepare_post(struct join *j)
{
    struct gi_shm_post *p = &j->post;
    *p = (struct gi_shm_post){.config = j->c,
                              .hello = j->hello,
                              .members = j->members,
                              .lead = j->lead,
                              .n = j->n,
                              .me = j->me,
                              .listener = -1,
                              .keep = map_one,
                              .arg = j->region,
                              .note = &j->note};
    p->conn = malloc(2 * (size_t)j->n * sizeof(*p->conn));
    if (p->conn == NULL)
        return gi_shm_failed(&j->note, GI_SHM_STEP_PREPARE, ENOMEM, -1,
                             "no memory for %d candidates", j->n);
    p->fds = p->conn + j->n;
    memset(p->conn, -1, 2 * (size_t)j->n * sizeof(*p->conn));
    return GIN_OK;
}

static bool several_processes(const struct join *j)
{
    for (int i = 1; i < j->n; i++)
        if (j->lead[i] != 0)
            return true;
    return false;
}

static void token_of(const struct join *j, int rank, uint64_t token[TOKEN_WORDS])
{
    token[0] = TOKEN_MAGIC;
    token[1] = j->c->job[0];
    token[2] = j->c->job[1];
    token[3] = (uint64_t)rank;
    memcpy(token + 4, j->hello[rank].token, sizeof(j->hello[rank].token));
}

static void write_tokens(struct join *j)
{
    for (int i = 0; i < j->n; i++) {
        uint64_t token[TOKEN_WORDS];
        _Atomic uint64_t *slot = (void *)gi_shm_slot(j->region, i);
        if (j->lead[i] != j->me)
            continue;
        token_of(j, j->members[i], token);
        for (int w = 0; w < TOKEN_WORDS; w++)
            atomic_store_explicit(&slot[w], token[w], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_release);
}

/* Allgathers 2 to 4; afterwards every leader has its group mapped. */
static int map_group(struct join *j, bool first_round)
{
    bool leader = j->lead[j->me] == j->me, post = leader && several_processes(j);
    uint64_t stride = UINT64_MAX;
    if (leader)
        reserve(j);
    if (leader && j->note.status == GIN_OK && prepare_post(j) == GIN_OK && post && j->me == 0)
        gi_shm_post_listen(&j->post);
    int st = agree(j, j->region != NULL ? j->region->stride : stride, &stride);
    if (st != GIN_OK)
        return st;
    if (leader)
        gi_shm_region_trim(j->region, stride);
    if (j->spans) {
        if (post && j->me != 0)
            gi_shm_post_connect(&j->post);
        st = agree(j, 0, NULL);
        if (st != GIN_OK)
            return st;
    }
    if (leader) {
        gi_shm_post_pass(&j->post);
        gi_shm_post_close(&j->post);
    }
    if (leader && j->note.status == GIN_OK)
        write_tokens(j);
    if (first_round && j->note.status == GIN_OK) {
        gi_shm_procs_open(j->c, &j->s->procs, &j->note);
        gi_cma_probe(j->c, j->s, j->pairs);
    }
    return agree(j, 0, NULL);
}

/* ---- allgather 5 ---- */

static bool can_read(const struct join *j, int place)
{
    uint64_t token[TOKEN_WORDS];
    const _Atomic uint64_t *slot = (const void *)gi_shm_slot(j->region, place);
    if (gi_shm_test_blind != NULL && gi_shm_test_blind(j->c->rank, j->members[place]))
        return false;
    token_of(j, j->members[place], token);
    atomic_thread_fence(memory_order_acquire);
    for (int w = 0; w < TOKEN_WORDS; w++)
        if (atomic_load_explicit(&slot[w], memory_order_relaxed) != token[w])
            return false;
    return true;
}

static int prove(struct join *j)
{
    size_t bytes = (size_t)j->words * sizeof(uint64_t);
    uint64_t *mine = j->seen + (size_t)j->c->size * (size_t)j->words;
    memset(mine, 0, bytes);
    if (j->region == NULL)
        j->region = gi_shm_region_get(j->c->job, j->members, j->n);
    if (j->region == NULL) /* the leader left after the last allgather: its own has failed */
        gi_shm_failed(&j->note, GI_SHM_STEP_SHARE, EPIPE, j->members[j->lead[j->me]],
                      "rank %d, which maps for this process, has given up",
                      j->members[j->lead[j->me]]);
    else
        for (int i = 0; i < j->n; i++)
            if (can_read(j, i))
                mine[NOTE_WORDS + i / 64] |= (uint64_t)1 << (i % 64);
    memcpy(mine, &j->note, sizeof(j->note));
    int st = j->c->allgather(j->c->arg, mine, j->seen, bytes);
    if (st != GIN_OK)
        return st;
    st = verdict(j, j->seen, bytes);
    if (st != GIN_OK)
        return st;
    j->s->n_teams = gi_shm_partition(j->group, j->n_groups, j->c->size, j->seen + NOTE_WORDS,
                                     j->words, j->s->team_of, j->index, j->scratch);
    return GIN_OK;
}

static void drop_round(struct join *j)
{
    if (j->post.conn != NULL)
        gi_shm_post_close(&j->post);
    free(j->post.conn);
    j->post.conn = NULL;
    gi_shm_region_put(j->region);
    j->region = NULL;
}

static int run_rounds(struct join *j)
{
    for (bool first = true;; first = false) {
        int st = greet(j, first);
        if (st == GIN_OK)
            st = map_group(j, first);
        if (st == GIN_OK)
            st = prove(j);
        if (st != GIN_OK || j->s->n_teams == j->n_groups)
            return st;
        if (j->c->rank == 0)
            gi_warn("shm",
                    "%d groups of ranks claim to share a host, but only %d teams can really read "
                    "each other's memory",
                    j->n_groups, j->s->n_teams);
        drop_round(j);
        memcpy(j->group, j->s->team_of, (size_t)j->c->size * sizeof(*j->group));
        j->n_groups = j->s->n_teams;
    }
}

/* ---- the result ---- */

static void fill_result(struct join *j)
{
    struct gi_shm *s = j->s;
    const struct gi_shm_rank *ranks = j->c->ranks, *me = &ranks[j->c->rank];
    s->region = j->region;
    s->base = j->region->base;
    s->stride = j->region->stride;
    s->mapped = (uint64_t)j->n * s->stride;
    s->lsa_size = j->n;
    s->lsa_rank = j->me;
    memcpy(s->world_of, j->members, (size_t)j->n * sizeof(*s->world_of));
    for (int r = 0; r < j->c->size; r++) {
        bool mine = s->team_of[r] == s->team_of[j->c->rank];
        s->index_of[r] = j->index[r];
        s->lsa_of[r] = mine ? j->index[r] : -1;
        s->why[r] = mine                                            ? GI_SHM_OK
                    : ranks[r].host != me->host                     ? GI_SHM_OTHER_HOST
                    : !j->hello[r].lsa || !j->hello[j->c->rank].lsa ? GI_SHM_DISABLED
                                                                    : GI_SHM_NOT_PROVEN;
    }
}

/* One block for the struct and its arrays. */
static struct gi_shm *new_result(int size)
{
    size_t n = (size_t)size;
    struct gi_shm *s = calloc(1, sizeof(*s) + n * (4 * sizeof(int) + 2));
    if (s == NULL)
        return NULL;
    s->world_of = (int *)(s + 1);
    s->lsa_of = s->world_of + n;
    s->team_of = s->lsa_of + n;
    s->index_of = s->team_of + n;
    s->why = (uint8_t *)(s->index_of + n);
    s->cma = s->why + n;
    return s;
}

static int allocate(struct join *j)
{
    size_t n = (size_t)j->c->size;
    j->s = new_result(j->c->size);
    j->hello = malloc(n * sizeof(*j->hello));
    j->states = malloc(n * sizeof(*j->states));
    j->pairs = malloc(n * sizeof(*j->pairs));
    j->group = malloc(9 * n * sizeof(*j->group));
    /* Bitmaps as wide as the world allow every round. */
    j->most_words = NOTE_WORDS + (j->c->size + 63) / 64;
    j->seen = malloc((n + 1) * (size_t)j->most_words * sizeof(*j->seen));
    if (j->s == NULL || j->hello == NULL || j->states == NULL || j->pairs == NULL ||
        j->group == NULL || j->seen == NULL)
        return gi_shm_failed(&j->note, GI_SHM_STEP_PREPARE, ENOMEM, -1,
                             "no memory to join %d ranks", j->c->size);
    j->index = j->group + n;
    j->members = j->group + 2 * n;
    j->lead = j->group + 3 * n;
    j->scratch = j->group + 4 * n;
    return GIN_OK;
}

int gi_shm_join(const struct gi_shm_config *config, struct gi_shm **shm)
{
    struct join j = {.c = config};
    int st = allocate(&j);
    if (st == GIN_OK)
        st = run_rounds(&j);
    else if (j.hello != NULL)
        (void)greet(&j, true); /* the others wait for it */
    if (st == GIN_OK) {
        fill_result(&j);
        *shm = j.s;
        j.s = NULL;
        j.region = NULL; /* the result's from now on */
    }
    drop_round(&j);
    if (j.s != NULL)
        gi_shm_procs_close(j.s->procs);
    free(j.s);
    free(j.hello);
    free(j.states);
    free(j.pairs);
    free(j.group);
    free(j.seen);
    return st;
}

void gi_shm_leave(struct gi_shm *shm)
{
    if (shm == NULL)
        return;
    gi_shm_region_put(shm->region);
    gi_shm_procs_close(shm->procs);
    free(shm);
}

int gi_shm_dead_after(struct gi_shm *shm, int after)
{
    return gi_shm_procs_dead(shm->procs, after);
}

bool gi_shm_has_exited(struct gi_shm *shm, int rank)
{
    return gi_shm_procs_ended(shm->procs, rank);
}
