/* SPDX-License-Identifier: BSD-3-Clause */
/* The watch by itself: who is connected with whom, and news among ranks that are threads. */
#include <ginshmem/status.h>
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
