/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this folder tell each other. A join runs in rounds (shm_join.c); in a round
 * every rank belongs to a group of candidates, and of each process in a group the lowest rank, its
 * leader, reserves, receives, maps and writes tokens for all of them.
 */
#ifndef GI_TRANSPORT_SHM_INT_H
#define GI_TRANSPORT_SHM_INT_H

#include <ginshmem/status.h>
#include "transport/shm/shm.h"

/* Where a rank failed; the others learn it in the next allgather. */
enum gi_shm_step {
    GI_SHM_STEP_PREPARE,
    GI_SHM_STEP_RESERVE,
    GI_SHM_STEP_LISTEN,
    GI_SHM_STEP_CONNECT,
    GI_SHM_STEP_PASS,
    GI_SHM_STEP_MAP,
    GI_SHM_STEP_WATCH,
    GI_SHM_STEP_SHARE,
    GI_SHM_STEP_OBJECT
};

/* A rank's state as it travels. All zero: well. */
struct gi_shm_note {
    int32_t status; /* enum gin_status */
    int32_t err;    /* errno, or 0 */
    int16_t step;   /* enum gi_shm_step */
    int16_t echo;   /* 1: only because another rank failed */
    int32_t about;  /* the rank it is about, or -1 */
};

/* Put a failure into a note and its text into the thread's last error. The status follows from err
 * (positive or negative errno). Returns the status; the first failure of a rank stays. */
int gi_shm_failed(struct gi_shm_note *note, enum gi_shm_step step, int err, int about,
                  const char *fmt, ...) GIN_PRINTF(5, 6);

/* Everybody's notes, `stride` bytes apart: the lowest rank that failed by itself speaks for all;
 * its own text stays. */
int gi_shm_verdict(const void *notes, size_t stride, int size, int me);

/* What every rank tells all at the start of a round. The random parts are fresh in each. */
struct gi_shm_hello {
    struct gi_shm_note note;
    uint64_t stride, min_stride;
    uint64_t space[2];  /* network and user namespace: abstract sockets and uids mean the same */
    uint64_t file[2];   /* device and inode of the memory object */
    uint64_t name;      /* of the socket, should this rank be the root of its group */
    uint64_t secret[2]; /* proves to a socket who speaks */
    uint64_t token[4];  /* written into the slot, read back by the candidates */
    int32_t fd;         /* means something in the rank's own process; -1: nothing to pass */
    int32_t lsa;
};

/* ---- shm_groups.c: who is with whom; arithmetic, and the same on every rank ---- */

struct gi_shm_pair {
    uint64_t key[4];
    int rank;
};
/* By key, then rank. */
void gi_shm_sort_pairs(struct gi_shm_pair *pairs, int n);

/* Candidates: equal host and namespaces, access switched on; group[r] counts by first appearance.
 * Returns the number of groups. pairs is scratch of `size`. */
int gi_shm_propose(const struct gi_shm_rank *ranks, const struct gi_shm_hello *hello, int size,
                   struct gi_shm_pair *pairs, int *group);
/*
 * Split groups into teams in which everybody reads everybody. The bitmap of rank r, `words` words
 * at seen + r * words, has bit i when r read the token of the i-th member of its group. In rank
 * order each joins the first team that it fits. team and index are by world rank; scratch holds
 * 5 * size. Returns the number of teams, which count by first appearance.
 */
int gi_shm_partition(const int *group, int n_groups, int size, const uint64_t *seen, int words,
                     int *team, int *index, int *scratch);

/* ---- shm_region.c ---- */

struct gi_shm_region {
    struct gi_shm_region *next;
    uint64_t job[2];
    int n;
    unsigned refs;
    uint64_t stride;
    char *base;
    int members[]; /* world ranks, ascending; slot i belongs to members[i] */
};

/* Reserve; the stride is halved while addresses are refused. One reference. 0 or -errno. */
int gi_shm_region_open(const uint64_t job[2], const int *members, int n, uint64_t stride,
                       uint64_t min_stride, struct gi_shm_region **region);
/* Give back what lies beyond n slots of a smaller stride. Before any slot is mapped. */
void gi_shm_region_trim(struct gi_shm_region *region, uint64_t stride);
int gi_shm_region_map(struct gi_shm_region *region, int slot, int fd); /* 0 or -errno */
/* The newest region of this job and these members, one more reference; NULL: none. */
struct gi_shm_region *gi_shm_region_get(const uint64_t job[2], const int *members, int n);
void gi_shm_region_put(struct gi_shm_region *region); /* NULL is fine */

static inline char *gi_shm_slot(const struct gi_shm_region *region, int slot)
{
    return region->base + (uint64_t)slot * region->stride;
}

/* ---- shm_fd.c: descriptors travel over a star whose centre is the group's lowest rank ---- */

struct gi_shm_post {
    const struct gi_shm_config *config;
    const struct gi_shm_hello *hello; /* by world rank */
    const int *members;               /* of my group; members[0] is the root */
    const int *lead;                  /* by place in members: place of its process' leader */
    int n, me;                        /* me: my place; I am a leader */
    int listener;                     /* root's, or -1 */
    int *conn; /* n places: root's connection to each other leader; mine to root in conn[0] */
    int *fds;  /* n places: what I received, -1 where nothing has come */
    struct gi_shm_note *note;
    /* Called for each object, those of my own process first; says in the note what failed. */
    void (*keep)(struct gi_shm_post *post, int place, int fd);
    void *arg;
};

void gi_shm_post_listen(struct gi_shm_post *post);  /* root, before an allgather */
void gi_shm_post_connect(struct gi_shm_post *post); /* others, before the next one */
void gi_shm_post_pass(struct gi_shm_post *post);    /* after that */
void gi_shm_post_close(struct gi_shm_post *post);
/* Calls above say in post->note whether they worked. */

/* ---- shm_procs.c ---- */

int gi_shm_procs_open(const struct gi_shm_config *config, struct gi_shm_procs **procs,
                      struct gi_shm_note *note);
void gi_shm_procs_close(struct gi_shm_procs *procs); /* NULL is fine */
int gi_shm_procs_dead(struct gi_shm_procs *procs, int after);
bool gi_shm_procs_ended(struct gi_shm_procs *procs, int rank);

/* ---- cma.c ---- */

/* Fill shm->cma and shm->cma_reason ("" when every process of this pid space can be reached). */
void gi_cma_probe(const struct gi_shm_config *config, struct gi_shm *shm,
                  struct gi_shm_pair *pairs);

/* Tests: true makes reader unable to see owner's token. */
extern bool (*gi_shm_test_blind)(int reader, int owner);

#endif
