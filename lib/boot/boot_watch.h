/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch: how a rank's death, or somebody's word that all is over, gets known on every host
 * although nobody is owed anything. Launchers tell little of it (hydra and mpirun end the job or
 * say nothing, PMIx loses fences, a program's own allgather says nothing at all), so the watch is
 * no part of a bootstrap: it needs an allgather once, and makes connections of its own.
 *
 * Rank r is connected with ranks r + 1, r + 2, r + 4 ... and those that are so far behind it, both
 * ways round the circle: about 2 log2(size) connections per rank, and one piece of news reaches all
 * in log2(size) hops, also where many of them are dead. A connection that ends without a farewell
 * is a death; so is one over which nothing comes for the time allowed, while beats are sent at a
 * quarter of it: that finds the stopped and the unreachable. A thread per rank does all of this and
 * sleeps in between.
 */
#ifndef GI_BOOT_BOOT_WATCH_H
#define GI_BOOT_BOOT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GI_WATCH_WHY 144

struct gi_watch;

enum gi_watch_kind {
    GI_WATCH_DEAD = 1, /* rank is dead, unreachable, or gone without the others */
    GI_WATCH_OVER = 2  /* rank says that all is over, for everybody */
};

struct gi_watch_news {
    int rank;
    enum gi_watch_kind kind;
    char why[GI_WATCH_WHY]; /* a whole sentence that names the rank */
};

struct gi_watch_config {
    int rank, size;
    const char *iface;   /* NULL: all of them */
    uint64_t silence_ns; /* as long as a living rank may be silent */
    /* Collective: bytes of every rank. Returns a status. */
    int (*gather)(void *arg, const void *mine, void *all, size_t bytes);
    /* News, each once, and none that this rank told itself. Called by the watch's thread. */
    void (*hear)(void *arg, const struct gi_watch_news *news);
    void *arg;
};

/*
 * Collective. Returns when this rank is connected with whom it should, or has tried long enough:
 * where ranks cannot reach each other the watch sees less, and that is no failure. *w is NULL where
 * this rank cannot take part at all. Not GIN_OK: the gathering failed.
 */
int gi_watch_open(const struct gi_watch_config *config, struct gi_watch **w);
/* Pass news on; what is known already is not told twice. Any thread. */
void gi_watch_tell(struct gi_watch *w, const struct gi_watch_news *news);
/* Wait until the neighbours have been sent what was told; false at the deadline. Any thread. */
bool gi_watch_flush(struct gi_watch *w, uint64_t deadline);
/* Bid farewell, so that nobody takes the end for a death. NULL: nothing. */
void gi_watch_close(struct gi_watch *w);

#endif
