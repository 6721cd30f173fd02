/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Experts in a kernel, for few tokens: 20_moe_low_latency with a block for each expert of the job.
 * A block puts the tokens of its expert, near or far, straight into that expert's slots for this
 * rank; then it is the expert for one rank: the block that sends to expert e of rank r takes what
 * rank r sends to expert e of this one. So no block waits for another one of its own rank.
 *
 * The end of a kernel joins its blocks, so each round is a kernel: whoever has heard of all ranks
 * in a round knows that their kernels of the round before are done, and may use its slots again.
 */
#include "example_cuda.h"
#include "moe.h"

#define MOST    48 /* tokens of a rank */
#define ROUNDS  12
#define THREADS 128
#define TOLD    ((uint64_t)1 << 32)

enum { BACK, HERE }; /* signals: results; from HERE on, tokens of an expert from a rank */

struct note { /* to an expert */
    uint64_t n;
    int32_t place[MOST]; /* of the results; a token goes to an expert once */
};

struct memory { /* each with its place */
    gin_at_t x_at, slots_at, notes_at, told_at, back_at;
    moe_row_t *x, *slots, *back; /* [token], [turn, expert][from][slot], [token, k] */
    struct note *notes, *told;   /* [turn, expert][from], for each expert of the job */
};

__device__ static gin_at_t row_at(gin_at_t rows, int i)
{
    return gin_at(rows.win, rows.off + (uint64_t)i * sizeof(moe_row_t));
}

__device__ static gin_at_t note_at(gin_at_t notes, int i)
{
    return gin_at(notes.win, notes.off + (uint64_t)i * sizeof(struct note));
}

__global__ void fill(struct memory m, int round, int rank, int tokens)
{
    for (int t = (int)blockIdx.x; t < tokens; t += (int)gridDim.x)
        for (int i = (int)threadIdx.x; i < HIDDEN; i += (int)blockDim.x)
            m.x[t][i] = moe_input(round, rank, t, i);
}

/* until: results that this rank has been sent when all of the round are here. */
__global__ void __launch_bounds__(THREADS)
    layer(gin_devcomm_t dev, struct memory m, enum moe_kind kind, int round, uint64_t until,
          int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    gin_team_t world = gin_world(&g);
    int size = g.size, rank = g.rank, e = (int)blockIdx.x, experts = size * LOCAL;
    int peer = e / LOCAL, expert = round % 2 * LOCAL + e % LOCAL, n = 0;
    int mine = expert * size + rank, theirs = expert * size + peer;
    int tokens = moe_tokens(kind, rank, MOST), t0 = (int)threadIdx.x, threads = (int)blockDim.x;
    /* begin dispatch */
    for (int t = 0; t < tokens; t++)
        for (int k = 0; k < TOP; k++) {
            if (moe_expert(kind, round, rank, t, k, experts) != e)
                continue;
            CALL(ok, gin_put(&g, gin_block(), world, peer, row_at(m.slots_at, mine * MOST + n),
                             row_at(m.x_at, t), sizeof(moe_row_t),
                             gin_weak_inc(HERE + (uint32_t)mine)));
            if (t0 == 0)
                m.told[e].place[n] = t * TOP + k;
            n++;
        }
    if (t0 == 0)
        m.told[e].n = (uint64_t)n;
    CALL(ok, gin_put(&g, gin_block(), world, peer, note_at(m.notes_at, mine), note_at(m.told_at, e),
                     sizeof(uint64_t) + (size_t)n * sizeof(int32_t),
                     gin_weak_add(HERE + (uint32_t)mine, TOLD - (uint64_t)n)));
    CALL(ok, gin_wait_signal(&g, gin_block(), HERE + (uint32_t)theirs,
                             TOLD * (uint64_t)(round / 2 + 1)));
    /* end dispatch */
    const struct note *note = &m.notes[theirs];
    for (int i = 0; i < (int)note->n; i++) {
        float *row = m.slots[theirs * MOST + i];
        for (int c = t0; c < HIDDEN; c += threads)
            row[c] = moe_apply(rank * LOCAL + e % LOCAL, row[c]);
        CALL(ok,
             gin_put(&g, gin_block(), world, peer, row_at(m.back_at, note->place[i]),
                     row_at(m.slots_at, theirs * MOST + i), sizeof(moe_row_t), gin_weak_inc(BACK)));
    }
    CALL(ok, gin_wait_signal(&g, gin_block(), BACK, until));
    for (int t = e; t < tokens; t += experts)
        for (int c = t0; c < HIDDEN; c += threads) {
            float sum = 0;
            for (int k = 0; k < TOP; k++)
                sum += moe_weight(t, k) * m.back[t * TOP + k][c];
            MUST(ok, sum == moe_result(kind, round, rank, t, c, experts));
        }
    CALL(ok, gin_flush(&g, gin_block())); /* tokens, slots and notes may change */
}

static void *take(gin_comm_t *comm, size_t bytes, gin_at_t *at)
{
    void *p = CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, bytes));
    *at = place_of(comm, p);
    return p;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    struct memory m;
    uint64_t until = 0;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok(), rank = gin_rank(comm);
    unsigned experts = (unsigned)gin_size(comm) * LOCAL;
    m.x = (moe_row_t *)take(comm, MOST * sizeof(moe_row_t), &m.x_at);
    m.slots = (moe_row_t *)take(comm, 2 * experts * MOST * sizeof(moe_row_t), &m.slots_at);
    m.back = (moe_row_t *)take(comm, MOST * TOP * sizeof(moe_row_t), &m.back_at);
    m.notes = (struct note *)take(comm, 2 * experts * sizeof(struct note), &m.notes_at);
    m.told = (struct note *)take(comm, experts * sizeof(struct note), &m.told_at);
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = 1;
    reqs.signals = HERE + 2 * experts;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));

    for (int round = 0; round < ROUNDS; round++) {
        enum moe_kind kind = (enum moe_kind)(round % MOE_KINDS);
        int tokens = moe_tokens(kind, rank, MOST);
        until += (uint64_t)tokens * TOP;
        fill<<<experts, THREADS>>>(m, round, rank, tokens);
        layer<<<experts, THREADS>>>(dev, m, kind, round, until, ok);
    }
    CUDA(cudaDeviceSynchronize());

    CHECK(gin_devcomm_destroy(comm, &dev));
    void *blocks[] = {m.told, m.notes, m.back, m.slots, m.x};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
        CHECK(gin_free(comm, blocks[i]));
    return finish(comm, *ok, "experts in kernels: 12 rounds, a block for each expert");
}
