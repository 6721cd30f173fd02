/* SPDX-License-Identifier: BSD-3-Clause */
/* What the watch's two files share: its connections (boot_watch_edge.c) and its thread. */
#ifndef GI_BOOT_BOOT_WATCH_INT_H
#define GI_BOOT_BOOT_WATCH_INT_H

#include <poll.h>
#include <pthread.h>
#include "boot/boot_sock.h"
#include "boot/boot_watch.h"

#define GI_WATCH_PLACES  6
#define GI_WATCH_CALLERS 32u         /* connections that have not said who they are */
#define GI_WATCH_STEP_NS 1000000000u /* for each step of getting to know each other */
#define GI_WATCH_TRIES   3u          /* rounds through a neighbour's places that others wait for */
#define GI_WATCH_MAGIC   0x47495754u /* "GIWT" */
#define GI_WATCH_MOST    (1u << 20)  /* unsent bytes of one connection */

/* What every rank tells the others of itself. */
struct gi_watch_card {
    uint64_t key[2]; /* random: who knows it belongs to the job */
    uint32_t n, zero;
    struct gi_addr_packed place[GI_WATCH_PLACES];
};

enum gi_watch_frame_kind {
    GI_FRAME_HELLO = 1, /* with the key of whom it is for, either way */
    GI_FRAME_BEAT,
    GI_FRAME_NEWS,
    GI_FRAME_FAREWELL
};

/* Everything that travels; the ranks of a job run on machines of one kind. */
struct gi_watch_frame {
    uint32_t magic;
    uint16_t kind, news; /* enum gi_watch_kind */
    int32_t rank;        /* HELLO: the sender; NEWS: whom it is about */
    int32_t zero;
    union {
        uint64_t key[2];
        char why[GI_WATCH_WHY];
    };
};

enum gi_watch_step {
    GI_EDGE_RESTING,    /* no connection; mine: the next attempt comes */
    GI_EDGE_CONNECTING, /* mine */
    GI_EDGE_ASKED,      /* mine: said hello */
    GI_EDGE_ANSWERED,   /* theirs: said hello back, and it counts when they beat */
    GI_EDGE_UP,
    GI_EDGE_DEAD, /* what is sent yet is for one that was only stopped */
    GI_EDGE_OVER  /* farewell, or never came to be */
};

/* A neighbour. */
struct gi_watch_edge {
    int rank;
    struct gi_watch_card card;
    bool mine; /* I connect */
    enum gi_watch_step step;
    int fd;
    uint32_t place, tries; /* mine: the next place to try, rounds made */
    uint64_t until;        /* end of this step; RESTING: when to try again */
    uint64_t heard;        /* UP: when something came last */
    struct gi_watch_frame in;
    size_t got;
    char *out; /* not yet sent */
    size_t out_n, out_cap;
};

struct gi_watch_caller {
    int fd;
    uint64_t until;
    struct gi_watch_frame in;
    size_t got;
};

struct gi_watch_list {
    struct gi_watch_news *news;
    unsigned n, cap;
};

struct gi_watch {
    struct gi_watch_config config;
    struct gi_watch_card card; /* mine */
    int listener;
    int bell; /* something was told, or the end */
    struct gi_watch_edge *edges;
    unsigned n_edges;
    struct gi_watch_caller callers[GI_WATCH_CALLERS];
    unsigned n_callers;
    uint64_t next_beat;
    uint64_t awake;            /* when the thread was last known to run; 0: not yet */
    struct gi_watch_list kept; /* all news so far, for connections that come up late */
    uint64_t deaf_until;       /* nobody is let in before: descriptors are used up */
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t cond;
    unsigned char *known;      /* by rank: its death; [size]: that all is over */
    struct gi_watch_list told; /* for the thread */
    bool settled;              /* all connections are there, or will not be */
    bool idle;                 /* nothing told is unsent */
    bool stop;
};

/* boot_watch_edge.c */

/* Listen and fill in my card; false where that cannot be. */
bool gi_watch_listen(struct gi_watch *w);
unsigned gi_watch_neighbours(int rank, int size, struct gi_watch_edge *edges); /* NULL: count */
/* Something is due: an attempt, the end of a step. */
void gi_watch_edge_due(struct gi_watch *w, struct gi_watch_edge *e, uint64_t now);
/* Its descriptor is ready. A frame that came goes to gi_watch_frame_came(). */
void gi_watch_edge_ready(struct gi_watch *w, struct gi_watch_edge *e, short revents);
void gi_watch_accept(struct gi_watch *w);
/* Callers that have something to say, or time is over for; p[i] is of callers[i]. */
void gi_watch_callers_ready(struct gi_watch *w, const struct pollfd *p, uint64_t now);
/* Queue and send what can go; false: the connection is lost. */
bool gi_watch_send(struct gi_watch_edge *e, const struct gi_watch_frame *f);
bool gi_watch_push(struct gi_watch_edge *e);
void gi_watch_edge_end(struct gi_watch_edge *e, enum gi_watch_step step);

/* boot_watch.c */
void gi_watch_frame_came(struct gi_watch *w, struct gi_watch_edge *e,
                         const struct gi_watch_frame *f);
/* A connection has come up: send the news that there has been. */
void gi_watch_catch_up(struct gi_watch *w, struct gi_watch_edge *e);
/* The connection of a neighbour that is UP has ended. */
void gi_watch_lost(struct gi_watch *w, struct gi_watch_edge *e, const char *why);

#endif
