/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A layer of experts, as the examples of dispatch and combine have it. Each rank owns LOCAL experts
 * and some tokens, rows of numbers. A token goes to TOP experts, wherever they are, and comes back
 * as the weighted sum of what they make of it.
 *
 * All numbers are small and whole: sums are exact in any order, so each result has one right value.
 */
#ifndef MOE_H
#define MOE_H

#include "example.h"

#define LOCAL  4   /* experts of a rank: e belongs to rank e / LOCAL */
#define TOP    2   /* experts of a token, two different ones */
#define HIDDEN 512 /* numbers of a token */

typedef float moe_row_t[HIDDEN];

/* Routes: by chance; expert 0 for all, but the last one for none; all to the last rank; by chance,
 * but odd ranks have no tokens. */
enum moe_kind { MOE_CHANCE, MOE_CROWDED, MOE_ONE_RANK, MOE_IDLE_RANKS, MOE_KINDS };

BOTH uint32_t moe_mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    return h ^ h >> 13;
}

BOTH int moe_tokens(enum moe_kind kind, int rank, int most)
{
    return kind == MOE_IDLE_RANKS && rank % 2 == 1 ? 0 : most;
}

/* The k-th expert of a token. */
BOTH int moe_expert(enum moe_kind kind, int round, int rank, int token, int k, int experts)
{
    uint32_t h = moe_mix((uint32_t)round, (uint32_t)rank, (uint32_t)token);
    int one = (int)(h % (uint32_t)experts), another = (int)((h >> 16) % (uint32_t)(experts - 2));
    if (kind == MOE_CROWDED)
        return k == 0 ? 0 : 1 + another;
    if (kind == MOE_ONE_RANK)
        return experts - 1 - k;
    return k == 0 ? one : (one + 1 + another) % experts;
}

BOTH float moe_weight(int token, int k)
{
    return (float)((token + k) % 3 + 1);
}

BOTH float moe_input(int round, int rank, int token, int i)
{
    return (float)(moe_mix((uint32_t)(round * 64 + rank), (uint32_t)token, (uint32_t)i) % 1000);
}

/* What an expert makes of a number; a real one multiplies matrices. */
BOTH float moe_apply(int expert, float x)
{
    return x * (float)(expert + 1) + (float)expert;
}

/* Number i of the layer's result for a token, by one rank alone. */
BOTH float moe_result(enum moe_kind kind, int round, int rank, int token, int i, int experts)
{
    float sum = 0;
    for (int k = 0; k < TOP; k++)
        sum += moe_weight(token, k) * moe_apply(moe_expert(kind, round, rank, token, k, experts),
                                                moe_input(round, rank, token, i));
    return sum;
}

#endif
