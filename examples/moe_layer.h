/* SPDX-License-Identifier: BSD-3-Clause */
/* A layer of experts on the host: what it works on, and a way to do it. */
#ifndef MOE_LAYER_H
#define MOE_LAYER_H

#include <string.h>
#include "moe.h"

struct moe {
    gin_comm_t *comm;
    gin_t g;
    gin_team_t lsa, rail;
    struct moe_spot {
        int32_t host, near;        /* rank in its rail team, and in its LSA team */
    } * spots;                     /* of each rank */
    int rank, size, experts, most; /* most: tokens of any rank */
    int round, tokens;             /* this round; mine in it */
    moe_row_t *x, *y;              /* in, out */
    int (*to)[TOP];                /* experts of each token, with these weights */
    float (*weight)[TOP];
};

/* A way to do the layer, in symmetric memory of so many bytes. */
struct moe_way {
    const char *name;
    size_t (*bytes)(const struct moe *m);
    void (*layer)(struct moe *m, void *memory);
    int rails; /* it takes as many ranks on each host */
};

static inline void moe_expert_row(int expert, float *y, const float *x)
{
    for (int i = 0; i < HIDDEN; i++)
        y[i] = moe_apply(expert, x[i]);
}

static inline void moe_add_row(float *sum, float weight, const float *x)
{
    for (int i = 0; i < HIDDEN; i++)
        sum[i] += weight * x[i];
}

#endif
