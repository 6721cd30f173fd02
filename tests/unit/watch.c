/* SPDX-License-Identifier: BSD-3-Clause */
/* The watch by itself: who is connected with whom, and news among ranks that are threads. */
#include <arpa/inet.h>
#include <errno.h>
#include <ginshmem/status.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/os.h"
#include "boot/boot_watch_int.h"
#include "tests/pt.h"

#define RANKS    11
#define PATIENCE 60000000000ull

/* Who connects is awaited, nobody twice, and news reaches all. */
TEST(neighbours_agree)
{
    for (int size = 1; size <= 70; size++) {
        static unsigned char wants[70][70], reached[70];
        memset(wants, 0, sizeof(wants));
        for (int r = 0; r < size; r++) {
            unsigned n = gi_watch_neighbours(r, size, NULL);
            struct gi_watch_edge *e = calloc(n + 1, sizeof(*e));
            EXPECT_EQ_INT(gi_watch_neighbours(r, size, e), n);
            for (unsigned i = 0; i < n; i++) {
                EXPECT(e[i].rank != r && e[i].rank >= 0 && e[i].rank < size);
                EXPECT_EQ_INT(wants[r][e[i].rank], 0);
                wants[r][e[i].rank] = e[i].mine ? 1 : 2;
            }
            free(e);
        }
        for (int a = 0; a < size; a++)
            for (int b = 0; b < size; b++)
                EXPECT_EQ_INT(wants[a][b], (3 - wants[b][a]) % 3);
        /* without every third rank, from rank 1 */
        memset(reached, 0, sizeof(reached));
        reached[1] = 1;
        for (int hop = 0; hop < size; hop++)
            for (int a = 0; a < size; a++)
                for (int b = 0; b < size && reached[a]; b++)
                    reached[b] |= wants[a][b] != 0 && b % 3 != 0;
        for (int r = 1; r < size && size > 7; r++)
            EXPECT_EQ_INT(reached[r], r % 3 != 0);
    }
}

static struct {
    pthread_barrier_t all;
    struct gi_watch_card cards[RANKS];
    _Atomic unsigned heard[RANKS], over[RANKS];
} job;

struct member {
    int rank;
    pthread_t thread;
};

static int gather(void *arg, const void *mine, void *all, size_t bytes)
{
    struct member *m = arg;
    memcpy(&job.cards[m->rank], mine, bytes);
    pthread_barrier_wait(&job.all);
    memcpy(all, job.cards, RANKS * bytes);
    pthread_barrier_wait(&job.all);
    return GIN_OK;
}

static void hear(void *arg, const struct gi_watch_news *n)
{
    struct member *m = arg;
    if (m->rank == 5) /* the others do without it */
        return;
    if (n->kind == GI_WATCH_OVER) {
        job.over[m->rank]++;
        EXPECT_EQ_STR(n->why, "rank 2 says so");
    } else {
        job.heard[m->rank]++;
        EXPECT_EQ_INT(n->rank, 5);
        EXPECT_EQ_STR(n->why, "rank 5 is dead: a test");
    }
}

static void await(_Atomic unsigned *word)
{
    uint64_t began = gi_now_ns();
    while (*word == 0 && EXPECT(gi_now_ns() - began < PATIENCE))
        gi_os_sleep_ns(1000000);
}

static void *live(void *arg)
{
    struct member *m = arg;
    struct gi_watch_config c = {.rank = m->rank,
                                .size = RANKS,
                                .silence_ns = PATIENCE,
                                .gather = gather,
                                .hear = hear,
                                .arg = m};
    struct gi_watch_news dead = {5, GI_WATCH_DEAD, "rank 5 is dead: a test"};
    struct gi_watch_news over = {2, GI_WATCH_OVER, "rank 2 says so"};
    struct gi_watch *w = NULL;
    EXPECT_EQ_INT(gi_watch_open(&c, &w), GIN_OK);
    EXPECT(w != NULL);
    pthread_barrier_wait(&job.all);
    if (w != NULL && (m->rank == 3 || m->rank == 8)) { /* two find out, perhaps at once */
        gi_watch_tell(w, &dead);
        gi_watch_tell(w, &dead);
    }
    if (w != NULL && m->rank == 2) {
        gi_watch_tell(w, &over);
        EXPECT(gi_watch_flush(w, gi_deadline_in(PATIENCE)));
    }
    if (m->rank != 3 && m->rank != 8 && m->rank != 5)
        await(&job.heard[m->rank]);
    if (m->rank != 2 && m->rank != 5)
        await(&job.over[m->rank]);
    pthread_barrier_wait(&job.all);
    gi_watch_close(w); /* nobody takes that for a death */
    return NULL;
}

TEST(news_reach_all_once)
{
    struct member members[RANKS];
    pthread_barrier_init(&job.all, NULL, RANKS);
    for (int r = 0; r < RANKS; r++) {
        members[r].rank = r;
        EXPECT_EQ_INT(pthread_create(&members[r].thread, NULL, live, &members[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(members[r].thread, NULL);
    for (int r = 0; r < RANKS; r++) {
        if (r == 5)
            continue;
        EXPECT(job.heard[r] == 1 || r == 3 || r == 8);
        EXPECT_EQ_INT(job.over[r], r != 2);
    }
    pthread_barrier_destroy(&job.all);
}

/* ---- a connection that comes up late brings the news that there were ---- */

static struct gi_watch_card late[2];

static int gather_late(void *arg, const void *mine, void *all, size_t bytes)
{
    (void)arg;
    memcpy(&late[0], mine, sizeof(late[0]));
    memcpy(all, late, 2 * bytes);
    return GIN_OK;
}

static void hear_nothing(void *arg, const struct gi_watch_news *n)
{
    (void)arg;
    (void)n;
}

static bool read_frame(int fd, struct gi_watch_frame *f)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t got = 0;
    while (got < sizeof(*f)) {
        if (!EXPECT_EQ_INT(gi_os_poll(&p, 1, gi_deadline_in(PATIENCE)), 1))
            return false;
        ssize_t n = gi_sock_recv(fd, (char *)f + got, sizeof(*f) - got);
        if (n != -EAGAIN && !EXPECT(n > 0))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return EXPECT_EQ_INT(f->magic, GI_WATCH_MAGIC);
}

/* Rank 1 in the test's words: it answers a hello and waits for both pieces of news. */
static void hear_old_news(int fd)
{
    struct gi_watch_frame f;
    if (!read_frame(fd, &f))
        return;
    EXPECT_EQ_INT(f.kind, GI_FRAME_HELLO);
    f = (struct gi_watch_frame){.magic = GI_WATCH_MAGIC, .kind = GI_FRAME_HELLO, .rank = 1};
    memcpy(f.key, late[0].key, sizeof(f.key));
    EXPECT_EQ_INT(gi_sock_send(fd, &f, sizeof(f), NULL, 0), sizeof(f));
    for (unsigned seen = 0; seen != 3u;) {
        if (!read_frame(fd, &f))
            return;
        if (f.kind != GI_FRAME_NEWS)
            continue;
        EXPECT_EQ_STR(f.why, f.news == GI_WATCH_OVER ? "rank 0 says so" : "rank 1 is dead: a test");
        seen |= f.news == GI_WATCH_OVER ? 1u : 2u;
    }
}

TEST(old_news_reach_who_comes_late)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct pollfd p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
    struct gi_watch_news over = {0, GI_WATCH_OVER, "rank 0 says so"};
    struct gi_watch_news dead = {1, GI_WATCH_DEAD, "rank 1 is dead: a test"};
    struct gi_watch_config c = {
        .size = 2, .silence_ns = PATIENCE, .gather = gather_late, .hear = hear_nothing};
    struct gi_watch *w = NULL;
    EXPECT_EQ_INT(bind(p.fd, (struct sockaddr *)&a, sizeof(a)), 0); /* it does not listen yet */
    late[1] = (struct gi_watch_card){.key = {1, 2}, .n = 1};
    late[1].place[0].family = AF_INET;
    late[1].place[0].port = gi_sock_port(p.fd);
    memcpy(late[1].place[0].bytes, &a.sin_addr, 4);
    EXPECT_EQ_INT(gi_watch_open(&c, &w), GIN_OK);
    EXPECT(w != NULL);
    if (w == NULL)
        return;
    gi_watch_tell(w, &over);
    gi_watch_tell(w, &dead);
    EXPECT(gi_watch_flush(w, gi_deadline_in(PATIENCE)));
    EXPECT_EQ_INT(listen(p.fd, 4), 0);
    EXPECT_EQ_INT(gi_os_poll(&p, 1, gi_deadline_in(PATIENCE)), 1);
    int fd = gi_os_accept(p.fd, NULL, NULL, 0);
    if (EXPECT(fd >= 0)) {
        hear_old_news(fd);
        gi_os_close(fd);
    }
    gi_watch_close(w);
    gi_os_close(p.fd);
}

/* ---- who was stopped accuses nobody ---- */

#define SHORT 2000000000ull

static struct {
    pthread_barrier_t all;
    struct gi_watch_card cards[2];
    _Atomic unsigned slept, accused;
} nap;

static int gather_two(void *arg, const void *mine, void *all, size_t bytes)
{
    memcpy(&nap.cards[*(int *)arg], mine, bytes);
    pthread_barrier_wait(&nap.all);
    memcpy(all, nap.cards, 2 * bytes);
    return GIN_OK;
}

/* The watch's thread stands still in here, as it may anywhere when its process is stopped. */
static void hear_and_sleep(void *arg, const struct gi_watch_news *n)
{
    if (*(int *)arg != 0)
        return; /* finds rank 0 silent, and is right */
    if (n->kind == GI_WATCH_OVER) {
        gi_os_sleep_ns(SHORT + SHORT / 2);
        nap.slept++;
    } else if (n->rank == 1) {
        nap.accused++;
    }
}

static void *live_two(void *arg)
{
    int rank = *(int *)arg;
    struct gi_watch_config c = {.rank = rank,
                                .size = 2,
                                .silence_ns = SHORT,
                                .gather = gather_two,
                                .hear = hear_and_sleep,
                                .arg = arg};
    struct gi_watch_news over = {1, GI_WATCH_OVER, "rank 1 says so"};
    struct gi_watch_news self = {0, GI_WATCH_DEAD, "a turn of its thread"};
    struct gi_watch *w = NULL;
    EXPECT_EQ_INT(gi_watch_open(&c, &w), GIN_OK);
    pthread_barrier_wait(&nap.all);
    if (w != NULL && rank == 1)
        gi_watch_tell(w, &over);
    if (w != NULL && rank == 0) {
        await(&nap.slept);
        gi_watch_tell(w, &self);
        EXPECT(gi_watch_flush(w, gi_deadline_in(PATIENCE)));
    }
    pthread_barrier_wait(&nap.all);
    gi_watch_close(w);
    return NULL;
}

TEST(pauses_are_forgiven)
{
    pthread_t thread[2];
    int rank[2] = {0, 1};
    pthread_barrier_init(&nap.all, NULL, 2);
    for (int r = 0; r < 2; r++)
        EXPECT_EQ_INT(pthread_create(&thread[r], NULL, live_two, &rank[r]), 0);
    for (int r = 0; r < 2; r++)
        pthread_join(thread[r], NULL);
    EXPECT_EQ_INT(nap.slept, 1);
    EXPECT_EQ_INT(nap.accused, 0);
    pthread_barrier_destroy(&nap.all);
}

/* ---- whoever calls again has given up the first call ---- */

/* Rank 0 says hello to rank 1's watch. */
static int call(const struct gi_watch *w)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct gi_watch_frame f = {.magic = GI_WATCH_MAGIC, .kind = GI_FRAME_HELLO};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_port = htons(gi_sock_port(w->listener));
    memcpy(f.key, w->card.key, sizeof(f.key));
    EXPECT_EQ_INT(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    EXPECT_EQ_INT(send(fd, &f, sizeof(f), MSG_NOSIGNAL), sizeof(f));
    return fd;
}

TEST(the_last_call_counts)
{
    struct gi_watch *w = calloc(1, sizeof(*w));
    struct gi_watch_edge e = {.rank = 0, .step = GI_EDGE_RESTING, .fd = -1};
    struct gi_watch_frame f;
    struct pollfd p[2];
    w->config.rank = 1;
    w->config.size = 2;
    w->edges = &e;
    w->n_edges = 1;
    if (!EXPECT(gi_watch_listen(w)))
        return;
    int first = call(w), second = call(w);
    gi_os_close(first);
    while (w->n_callers < 2)
        gi_watch_accept(w);
    for (unsigned i = 0; i < 2; i++) {
        p[i] = (struct pollfd){.fd = w->callers[i].fd, .events = POLLIN};
        EXPECT_EQ_INT(gi_os_poll(&p[i], 1, gi_deadline_in(PATIENCE)), 1);
    }
    gi_watch_callers_ready(w, p, gi_now_ns());
    EXPECT_EQ_INT(w->n_callers, 0);
    EXPECT_EQ_INT(e.step, GI_EDGE_ANSWERED);
    EXPECT_EQ_INT(recv(second, &f, sizeof(f), MSG_WAITALL), sizeof(f));
    EXPECT_EQ_INT(f.kind, GI_FRAME_HELLO);
    /* and it is not ended: nothing comes, no end either */
    EXPECT_EQ_INT(recv(second, &f, 1, MSG_DONTWAIT), -1);
    EXPECT_EQ_INT(errno, EAGAIN);
    gi_watch_edge_end(&e, GI_EDGE_OVER);
    free(e.out);
    gi_os_close(second);
    gi_os_close(w->listener);
    free(w);
}
