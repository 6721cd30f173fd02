/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the host's examples of a layer of experts share: a main() that runs their way and that by
 * plain all-to-alls, round by round, and checks every number. With --bench it prints times, too.
 */
#ifndef MOE_HOST_H
#define MOE_HOST_H

#include "bench.h"
#include "moe_plain.h"

/* One round: tokens made, the layer, every number checked. *us: how long the slowest rank took. */
static inline int moe_round(struct moe *m, enum moe_kind kind, const struct moe_way *way,
                            void *memory, double *us)
{
    int ok = 1;
    m->tokens = moe_tokens(kind, m->rank, m->most);
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++) {
            m->to[t][k] = moe_expert(kind, m->round, m->rank, t, k, m->experts);
            m->weight[t][k] = moe_weight(t, k);
        }
    for (int t = 0; t < m->tokens; t++)
        for (int i = 0; i < HIDDEN; i++)
            m->x[t][i] = moe_input(m->round, m->rank, t, i);
    memset(m->y, 0xff, (size_t)m->most * sizeof(moe_row_t)); /* no number */
    CHECK(gin_sync(&m->g, gin_thread(), gin_world(&m->g), 0));
    double begin = now_us();
    way->layer(m, memory);
    *us = slowest(&m->g, now_us() - begin);
    for (int t = 0; t < m->tokens; t++)
        for (int i = 0; i < HIDDEN; i++)
            ok = ok && m->y[t][i] == moe_result(kind, m->round, m->rank, t, i, m->experts);
    return ok;
}

/* Where all ranks are. */
static inline void moe_find_spots(struct moe *m)
{
    m->lsa = gin_team_lsa(m->comm);
    m->rail = gin_team_rail(m->comm);
    struct moe_spot mine = {m->rail.rank, m->lsa.rank};
    m->spots = malloc((size_t)m->size * sizeof(mine));
    CHECK(gin_comm_allgather(m->comm, &mine, m->spots, sizeof(mine)));
}

/* Rounds of `most` tokens per rank, by both ways in turn; a line with their medians if asked. */
static inline int moe_rounds(struct moe *m, const struct moe_way *ways, int most, int rounds,
                             int bench)
{
    int ok = 1;
    double us[2][rounds], middle[2];
    void *memory[2];
    m->most = most;
    m->x = malloc((size_t)most * sizeof(moe_row_t));
    m->y = malloc((size_t)most * sizeof(moe_row_t));
    m->to = malloc((size_t)most * sizeof(*m->to));
    m->weight = malloc((size_t)most * sizeof(*m->weight));
    for (int w = 0; w < 2; w++)
        memory[w] = CHECK_PTR(gin_malloc(m->comm, ways[w].bytes(m)));
    for (int i = 0; i < rounds; i++, m->round++)
        for (int w = 0; w < 2; w++)
            ok &= moe_round(m, bench ? MOE_CHANCE : (enum moe_kind)(i % MOE_KINDS), &ways[w],
                            memory[w], &us[w][i]);
    for (int w = 0; w < 2; w++) {
        CHECK(gin_free(m->comm, memory[w]));
        middle[w] = median(us[w], rounds);
    }
    for (int w = 0; bench && m->rank == 0 && w < 2; w++)
        printf("%4d tokens per rank, %-17s %9.1f us %11.0f tokens/s, %.2f of all-to-all\n", most,
               ways[w].name, middle[w], m->size * most / middle[w] * 1e6, middle[w] / middle[1]);
    free(m->x), free(m->y), free(m->to), free(m->weight);
    return ok;
}

/* The program of a way that takes so many signals, and so many for each rank. */
static inline int moe_main(int argc, char **argv, const struct moe_way *way, uint32_t signals,
                           uint32_t rank_signals)
{
    const struct moe_way ways[2] = {*way, {"plain all-to-all", plain_bytes, plain, 0}};
    struct moe m = {.round = 0};
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    char line[120];
    int ok = 1, bench = bench_asked(argc, argv);
    CHECK(gin_init(NULL, &m.comm));
    gin_devcomm_reqs_init(&reqs);
    reqs.signals = signals + rank_signals * (uint32_t)gin_size(m.comm);
    CHECK(gin_devcomm_create(m.comm, &reqs, &dev));
    CHECK(gin_open(&dev, 0, &m.g));
    m.rank = m.g.rank, m.size = m.g.size, m.experts = m.size * LOCAL;
    int fits = !way->rails || hosts_are_even(m.comm);
    moe_find_spots(&m);
    for (int most = 1; bench && fits && most <= 512; most *= 8)
        ok &= moe_rounds(&m, ways, most, 101, 1);
    if (!bench && fits)
        ok = moe_rounds(&m, ways, 1, 12, 0) & moe_rounds(&m, ways, 77, 24, 0);
    show_paths(m.comm);
    CHECK(gin_devcomm_destroy(m.comm, &dev));
    free(m.spots);
    snprintf(line, sizeof(line), "experts, %s: %d rounds%s", way->name, m.round,
             fits ? "" : ", it takes as many ranks on each host");
    return finish(m.comm, ok, line);
}

#endif
