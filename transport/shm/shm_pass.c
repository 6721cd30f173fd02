/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passing descriptors among ranks that have joined already: memory that came later (a GPU's). The
 * same star of sockets as in a join, without its map; who is with whom is known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/shm/shm_int.h"

struct round {
    struct gi_shm_post post;
    struct gi_shm_hello *hello; /* by world rank */
    struct gi_shm_note note;
    int *lead; /* by LSA rank */
    bool spans, post_me;
    gi_shm_keep_fn keep;
    void *arg;
};

static void keep_one(struct gi_shm_post *p, int place, int fd)
{
    struct round *r = p->arg;
    int st = r->keep(r->arg, place, fd);
    if (st != GIN_OK)
        gi_shm_failed(p->note, GI_SHM_STEP_MAP, st == GIN_ENOMEM ? ENOMEM : EIO, p->members[place],
                      "%s", gin_last_error());
}

/* Leaders in my team; whether any team has several processes, which all ranks must see alike. */
static void look(struct round *r, const struct gi_shm_config *c, const struct gi_shm *s)
{
    for (int i = 0; i < s->lsa_size; i++) {
        int k = 0;
        while (c->ranks[s->world_of[k]].process != c->ranks[s->world_of[i]].process)
            k++;
        r->lead[i] = k;
        r->post_me |= k != 0;
    }
    r->post_me &= r->lead[s->lsa_rank] == s->lsa_rank;
    for (int a = 0; a < c->size && !r->spans; a++)
        for (int b = 0; b < a && !r->spans; b++)
            r->spans = s->team_of[a] == s->team_of[b] && c->ranks[a].process != c->ranks[b].process;
}

static int prepare(struct round *r, const struct gi_shm_config *c, const struct gi_shm *s)
{
    size_t n = (size_t)s->lsa_size;
    r->hello = malloc((size_t)c->size * sizeof(*r->hello));
    r->lead = malloc(3 * n * sizeof(*r->lead));
    if (r->hello == NULL || r->lead == NULL)
        return gi_fail(GIN_ENOMEM, "no memory to pass descriptors among %d ranks", c->size);
    r->post = (struct gi_shm_post){.config = c,
                                   .hello = r->hello,
                                   .members = s->world_of,
                                   .lead = r->lead,
                                   .n = s->lsa_size,
                                   .me = s->lsa_rank,
                                   .listener = -1,
                                   .conn = r->lead + n,
                                   .fds = r->lead + 2 * n,
                                   .note = &r->note,
                                   .keep = keep_one,
                                   .arg = r};
    memset(r->post.conn, -1, 2 * n * sizeof(*r->post.conn));
    look(r, c, s);
    return GIN_OK;
}

static int greet(struct round *r, const struct gi_shm_config *c, int fd)
{
    struct gi_shm_hello mine;
    memset(&mine, 0, sizeof(mine));
    mine.fd = fd;
    int e = gi_os_random(&mine.name, sizeof(mine.name));
    if (e == 0)
        e = gi_os_random(mine.secret, sizeof(mine.secret));
    if (e != 0)
        gi_shm_failed(&r->note, GI_SHM_STEP_PREPARE, e, -1, "no random numbers: %s",
                      gi_os_strerror(e));
    r->hello[c->rank] = mine; /* the socket's name comes from here */
    if (r->post_me && r->post.me == 0 && r->note.status == GIN_OK)
        gi_shm_post_listen(&r->post);
    mine.note = r->note;
    int st = c->allgather(c->arg, &mine, r->hello, sizeof(mine));
    return st == GIN_OK ? gi_shm_verdict(r->hello, sizeof(mine), c->size, c->rank) : st;
}

static int connected(struct round *r, const struct gi_shm_config *c)
{
    struct gi_shm_note *notes = malloc((size_t)c->size * sizeof(*notes));
    if (notes == NULL)
        return gi_fail(GIN_ENOMEM, "no memory to pass descriptors among %d ranks", c->size);
    if (r->post_me && r->post.me != 0)
        gi_shm_post_connect(&r->post);
    int st = c->allgather(c->arg, &r->note, notes, sizeof(r->note));
    if (st == GIN_OK)
        st = gi_shm_verdict(notes, sizeof(r->note), c->size, c->rank);
    free(notes);
    return st;
}

int gi_shm_pass(const struct gi_shm_config *c, const struct gi_shm *s, int fd, int status,
                gi_shm_keep_fn keep, void *arg)
{
    struct round r = {.keep = keep, .arg = arg};
    int st = prepare(&r, c, s);
    if (st != GIN_OK) /* so short of memory that the others time out */
        goto free_round;
    if (status != GIN_OK) {
        r.note = (struct gi_shm_note){.status = status, .step = GI_SHM_STEP_OBJECT, .about = -1};
        r.note.err = status == GIN_ENOMEM ? ENOMEM : EIO;
    }
    st = greet(&r, c, fd);
    if (st == GIN_OK && r.spans)
        st = connected(&r, c);
    if (st == GIN_OK && r.lead[s->lsa_rank] == s->lsa_rank) {
        gi_shm_post_pass(&r.post);
        st = r.note.status;
    }
    gi_shm_post_close(&r.post);
free_round:
    free(r.hello);
    free(r.lead);
    return st;
}
