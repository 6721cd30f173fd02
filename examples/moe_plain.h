/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layer of experts by the library's all-to-alls, which the examples' own ways are compared with:
 * counts first, then as many tokens as there are, there and back.
 */
#ifndef MOE_PLAIN_H
#define MOE_PLAIN_H

#include "moe_layer.h"

static inline size_t plain_bytes(const struct moe *m)
{
    return (size_t)(m->size + 1) * (size_t)m->most * TOP * sizeof(moe_row_t);
}

static inline void plain(struct moe *m, void *memory)
{
    size_t size = (size_t)m->size, room = (size_t)m->most * TOP, at[m->most][TOP];
    size_t out[size * LOCAL], in[size * LOCAL], first[size * LOCAL], send[size], receive[size];
    moe_row_t *outbox = memory, *inbox = outbox + room;
    gin_team_t world = gin_world(&m->g);
    memset(out, 0, sizeof(out));
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++)
            out[m->to[t][k]]++;
    CHECK(gin_alltoall(&m->g, gin_thread(), world, 0, gin_at_local(in), gin_at_local(out), LOCAL,
                       GIN_UINT64));
    for (size_t e = 0, n = 0; e < size * LOCAL; n += out[e++])
        first[e] = n;
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++)
            memcpy(outbox[at[t][k] = first[m->to[t][k]]++], m->x[t], sizeof(moe_row_t));
    for (size_t r = 0; r < size; r++) {
        send[r] = receive[r] = 0;
        for (size_t e = 0; e < LOCAL; e++) {
            send[r] += out[r * LOCAL + e] * HIDDEN;
            receive[r] += in[r * LOCAL + e] * HIDDEN;
        }
    }
    gin_at_t there = gin_at_ptr(&m->g, inbox), here = gin_at_ptr(&m->g, outbox);
    CHECK(gin_alltoallv(&m->g, gin_thread(), world, 0, there, receive, NULL, here, send, NULL,
                        GIN_FLOAT));
    moe_row_t *row = inbox;
    for (size_t e = 0; e < size * LOCAL; e++)
        for (size_t i = 0; i < in[e]; i++, row++)
            moe_expert_row(m->rank * LOCAL + (int)(e % LOCAL), *row, *row);
    CHECK(gin_alltoallv(&m->g, gin_thread(), world, 0, here, send, NULL, there, receive, NULL,
                        GIN_FLOAT));
    memset(m->y, 0, (size_t)m->tokens * sizeof(moe_row_t));
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++)
            moe_add_row(m->y[t], m->weight[t][k], outbox[at[t][k]]);
}

#endif
