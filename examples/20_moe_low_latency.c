/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Experts, for few tokens: each is put straight from where it lies into a slot of its expert, and
 * what the expert makes of it straight into the place of its rank. Nothing is exchanged before.
 *
 * Nobody knows how many tokens will come. So each rank tells each other one about its n tokens,
 * before, behind or between them, by adding 2^32 - n to the signal that each token adds 1 to: that
 * signal is at least 2^32 exactly when all has come. The same put brings the experts of the tokens
 * and the places that the results go to.
 *
 * Slots are used in turn, as inboxes in 04_alltoall: who has heard of all ranks in a round knows
 * that they are through with the one before.
 */
#include "moe_host.h"

#define TOLD ((uint64_t)1 << 32)

enum { BACK, HERE }; /* signals: results; from HERE on, tokens of each rank, in both turns */

struct note { /* from a rank to a rank */
    uint64_t n;
    struct {
        int32_t expert, place;
    } token[]; /* of each expert in the order of its slots */
};

static size_t note_bytes(size_t tokens)
{
    return sizeof(struct note) + tokens * sizeof(((struct note *)NULL)->token[0]);
}

static size_t low_latency_bytes(const struct moe *m)
{
    size_t size = (size_t)m->size, most = (size_t)m->most;
    return most * sizeof(moe_row_t[TOP]) +
           2 * size * (LOCAL * most * sizeof(moe_row_t) + note_bytes(most * TOP));
}

static void low_latency(struct moe *m, void *memory)
{
    gin_team_t world = gin_world(&m->g);
    gin_group_t me = gin_thread();
    size_t turn = (size_t)m->round % 2, size = (size_t)m->size, most = (size_t)m->most;
    uint32_t here = HERE + (uint32_t)(turn * size);
    size_t bytes = note_bytes(most * TOP);
    moe_row_t(*back)[TOP] = memory;
    moe_row_t(*slots)[LOCAL][most] = (void *)(back + most); /* [turn, from][expert][slot] */
    char *notes = (char *)(slots + 2 * size), *told = calloc(size, bytes);
    slots += turn * size;
    notes += turn * size * bytes;

    /* begin dispatch */
    size_t used[m->experts];
    memset(used, 0, sizeof(used));
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++) {
            int e = m->to[t][k], to = e / LOCAL;
            struct note *note = (struct note *)(told + (size_t)to * bytes);
            CHECK(gin_put(
                &m->g, me, world, to, gin_at_ptr(&m->g, slots[m->rank][e % LOCAL][used[e]++]),
                gin_at_local(m->x[t]), sizeof(moe_row_t), gin_weak_inc(here + (uint32_t)m->rank)));
            note->token[note->n].expert = e % LOCAL;
            note->token[note->n++].place = t * TOP + k;
        }
    for (size_t to = 0; to < size; to++) {
        struct note *note = (struct note *)(told + to * bytes);
        CHECK(gin_put(&m->g, me, world, (int)to, gin_at_ptr(&m->g, notes + (size_t)m->rank * bytes),
                      gin_at_local(note), note_bytes(note->n),
                      gin_weak_add(here + (uint32_t)m->rank, TOLD - note->n)));
    }
    /* end dispatch */
    for (size_t i = 0; i < size; i++) {
        size_t from = ((size_t)m->rank + i) % size, seen[LOCAL] = {0};
        CHECK(gin_increase_shadow(&m->g, here + (uint32_t)from, TOLD));
        CHECK(gin_wait_signal_meet_shadow(&m->g, me, here + (uint32_t)from, NULL));
        const struct note *note = (struct note *)(notes + from * bytes);
        for (uint64_t n = 0; n < note->n; n++) {
            int e = note->token[n].expert;
            float *row = slots[from][e][seen[e]++];
            moe_expert_row(m->rank * LOCAL + e, row, row);
            CHECK(gin_put(&m->g, me, world, (int)from,
                          gin_at_ptr(&m->g, (moe_row_t *)back + note->token[n].place),
                          gin_at_local(row), sizeof(moe_row_t), gin_weak_inc(BACK)));
        }
    }
    /* begin combine */
    CHECK(gin_increase_shadow(&m->g, BACK, (uint64_t)m->tokens * TOP));
    CHECK(gin_wait_signal_meet_shadow(&m->g, me, BACK, NULL));
    memset(m->y, 0, (size_t)m->tokens * sizeof(moe_row_t));
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++)
            moe_add_row(m->y[t], m->weight[t][k], back[t][k]);
    CHECK(gin_flush(&m->g, me)); /* tokens, slots and notes may change */
    /* end combine */
    free(told);
}

int main(int argc, char **argv)
{
    const struct moe_way way = {"low latency", low_latency_bytes, low_latency, 0};
    return moe_main(argc, argv, &way, HERE, 2);
}
