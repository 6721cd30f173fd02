/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Experts, for many tokens: a token crosses to another host once, however many experts it has
 * there, and one sum comes back. Between hosts go chunks of packed tokens along the rail, to the
 * rank with my place there. That one hands them on to its neighbours by stores, a chunk while the
 * next ones travel, and sums up what the experts make of them.
 *
 * First everybody tells everybody how many tokens go to which expert and host. So whoever hands a
 * token on knows its place in its expert's batch, batches are dense, and every wait knows its
 * number; and everybody knows that all are through with the round before. Signals are strong: the
 * n-th one means that the first n chunks are here.
 */
#include "moe_host.h"
#include "moe_rails.h"

/* begin counts */
/* next: the places of my tokens in the batch of each expert; mine: tokens of my experts. */
static void count(const struct moe *m, struct box *b, size_t *next, size_t *mine)
{
    size_t ranks = (size_t)m->size, experts = (size_t)m->experts, hosts = (size_t)m->rail.size;
    size_t row[experts + hosts], all[ranks][experts + hosts];
    memset(row, 0, sizeof(row));
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++) {
            row[m->to[t][k]]++;
            row[experts + (size_t)host_of(m, m->to[t][k])] += (size_t)is_first(m, t, k);
        }
    CHECK(gin_allgather(&m->g, gin_thread(), gin_world(&m->g), 0, gin_at_local(all),
                        gin_at_local(row), experts + hosts, GIN_UINT64));
    for (size_t e = 0, slot = 0; e < experts; e++) { /* batches: by expert, then by rank */
        slot = e % LOCAL == 0 ? 0 : slot;
        size_t before = slot;
        for (size_t r = 0; r < ranks; slot += all[r++][e])
            if (r == (size_t)m->rank)
                next[e] = slot;
        if (e / LOCAL == (size_t)m->rank)
            mine[e % LOCAL] = slot - before;
    }
    for (size_t h = 0; h < hosts; h++) {
        b->n[h] = row[experts + h];
        b->come[h] = all[gin_world_rank(&m->g, m->rail, (int)h)][experts + (size_t)m->rail.rank];
    }
}
/* end counts */

/* Tokens for other hosts go while later ones are packed. */
static void pack(const struct moe *m, const struct box *b, size_t *next)
{
    size_t n[m->rail.size];
    memset(n, 0, sizeof(n));
    for (int t = 0; t < m->tokens; t++)
        for (int k = 0; k < TOP; k++) {
            int host = host_of(m, m->to[t][k]);
            if (!is_first(m, t, k))
                continue;
            size_t i = n[host]++;
            struct parcel *p = of_host(m, b->out, host) + i;
            of_host(m, b->home, host)[i] = t;
            for (int j = 0; j < TOP; j++) {
                p->expert[j] = m->to[t][j];
                p->weight[j] = m->weight[t][j];
                p->slot[j] = host_of(m, p->expert[j]) == host ? (int32_t)next[p->expert[j]]++ : -1;
            }
            memcpy(p->x, m->x[t], sizeof(moe_row_t));
            size_t chunk = i / CHUNK * CHUNK;
            if (host != m->rail.rank && i + 1 == chunk + chunk_of(chunk, b->n[host]))
                send_chunk(m, host, b->in, b->out, sizeof(*p), chunk, i + 1 - chunk, THERE);
        }
}

static void throughput(struct moe *m, void *memory)
{
    int hosts = m->rail.size, host = m->rail.rank;
    size_t next[m->experts], mine[LOCAL], n[hosts], come[hosts];
    int32_t home[hosts * m->most];
    struct box b = boxes(m, memory);
    b.n = n, b.come = come, b.home = home;
    count(m, &b, next, mine);
    pack(m, &b, next);
    /* begin forward */
    hand_on(m, &b, b.out, host, 0, n[host]);
    for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts)
        for (size_t c = 0; c < come[h]; c += CHUNK) {
            await_chunk(m, h, THERE);
            hand_on(m, &b, b.in, h, c, chunk_of(c, come[h]));
        }
    /* end forward */
    meet(m); /* all tokens of my experts are here */
    const struct work *w = b.batch;
    for (int e = 0; e < LOCAL; e++)
        for (size_t i = 0; i < mine[e]; i++, w++)
            moe_expert_row(m->rank * LOCAL + e, near_ptr(m, w->near, b.part + w->part), w->x);
    meet(m); /* the results of all that I handed on are here */
    for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts)
        for (size_t c = 0; c < come[h]; c += CHUNK) {
            sum_up(m, &b, b.in, h, c, chunk_of(c, come[h]));
            send_chunk(m, h, b.back, b.sum, sizeof(moe_row_t), c, chunk_of(c, come[h]), BACK);
        }
    sum_up(m, &b, b.out, host, 0, n[host]);
    memset(m->y, 0, (size_t)m->tokens * sizeof(moe_row_t));
    for (int i = 0, h = host; i < hosts; i++, h = (h + 1) % hosts)
        for (size_t c = 0; c < n[h]; c++) {
            if (h != host && c % CHUNK == 0)
                await_chunk(m, h, BACK);
            moe_add_row(m->y[of_host(m, home, h)[c]], 1, of_host(m, i == 0 ? b.sum : b.back, h)[c]);
        }
    CHECK(gin_flush(&m->g, gin_thread())); /* parcels and sums may change */
}

int main(int argc, char **argv)
{
    const struct moe_way way = {"throughput", throughput_bytes, throughput, 1};
    return moe_main(argc, argv, &way, 0, 2);
}
