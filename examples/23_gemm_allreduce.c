/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Product of matrices with its sum over ranks: rank r has columns of A and rows of B, C is the sum
 * of their products. Each tile of C is summed while the next ones are computed, in three steps
 * that are a tile apart:
 *
 *   tile j      is multiplied; I arrive at the barrier of my host
 *   tile j - 1  is there at all neighbours: I load my slice of it from all, put the sum along the
 *               rail to the other hosts
 *   tile j - 2  its slice of the other hosts is here: I store the whole sum into all neighbours' C
 *
 * So a wait is for what began a tile ago. What other hosts send has two places, used in turn, each
 * with signals of its own, as in 04_alltoall; the rest is kept by the barriers.
 *
 * With --bench it prints times beside those of the product first, then gin_allreduce().
 */
#include "gemm.h"
#include "bench.h"

/* My neighbour's address of what I have at v. */
static double *near(const struct product *p, int rank, const double *v)
{
    return gin_lsa_ptr(&p->g, rank, gin_at_ptr(&p->g, v));
}

static void tile_by_tile(const struct product *p)
{
    int first = TILE * p->lsa.rank / p->lsa.size, last = TILE * (p->lsa.rank + 1) / p->lsa.size;
    int hosts = p->rail.size, host = p->rail.rank, turn = p->round % 2;
    for (int j = 0; j < TILES + 2; j++) {
        /* begin steps */
        if (j < TILES) {
            multiply(p, j);
            CHECK(gin_lsa_arrive(&p->g, gin_thread(), (uint32_t)j % 2, GIN_ORDER_RELEASE));
        }
        if (j >= 1 && j - 1 < TILES) {
            int tile = j - 1, at = tile * TILE;
            double *sum = p->sum + at, *far = p->far + (turn * TILES + tile) * hosts * TILE;
            CHECK(gin_lsa_wait(&p->g, gin_thread(), (uint32_t)tile % 2, GIN_ORDER_ACQUIRE, NULL));
            memset(sum + first, 0, (size_t)(last - first) * sizeof(*sum));
            for (int r = 0; r < p->lsa.size; r++) {
                const double *part = near(p, r, p->mine + at);
                for (int i = first; i < last; i++)
                    sum[i] += part[i];
            }
            for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts)
                CHECK(gin_put(&p->g, gin_thread(), p->rail, h,
                              gin_at_ptr(&p->g, far + host * TILE + first),
                              gin_at_local(sum + first), (size_t)(last - first) * sizeof(*sum),
                              gin_weak_inc((uint32_t)(turn * TILES + tile))));
        }
        if (j >= 2) {
            int tile = j - 2, at = tile * TILE;
            double *sum = p->sum + at, *far = p->far + (turn * TILES + tile) * hosts * TILE;
            CHECK(gin_wait_signal(&p->g, gin_thread(), (uint32_t)(turn * TILES + tile),
                                  (uint64_t)(hosts - 1) * (uint64_t)(p->round / 2 + 1)));
            double total[TILE];
            for (int i = first; i < last; i++)
                total[i] = sum[i];
            for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts)
                for (int i = first; i < last; i++)
                    total[i] += far[h * TILE + i];
            for (int r = 0; r < p->lsa.size; r++)
                memcpy(near(p, r, p->c + at + first), total + first,
                       (size_t)(last - first) * sizeof(double));
        }
        /* end steps */
    }
    CHECK(
        gin_barrier(&p->g, gin_thread(), gin_barrier_lsa(), 2, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    CHECK(gin_flush(&p->g, gin_thread())); /* sums may change */
}

/* The same by the library, behind the last tile. */
static void tiles_first(const struct product *p)
{
    for (int j = 0; j < TILES; j++)
        multiply(p, j);
    CHECK(gin_allreduce(&p->g, gin_thread(), gin_world(&p->g), 0, gin_at_ptr(&p->g, p->c),
                        gin_at_ptr(&p->g, p->mine), TILES * TILE, GIN_DOUBLE, GIN_SUM));
}

int main(int argc, char **argv)
{
    static void (*const ways[])(const struct product *) = {tile_by_tile, tiles_first};
    const size_t bytes = (size_t)TILES * TILE * sizeof(double);
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    struct product p = {.round = 0};
    int ok = 1, rounds = bench_asked(argc, argv) ? 51 : 5;
    double us[2][51];
    CHECK(gin_init(NULL, &comm));
    gin_devcomm_reqs_init(&reqs);
    reqs.signals = 2 * TILES;
    reqs.lsa_barriers = 3;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));
    CHECK(gin_open(&dev, 0, &p.g));
    p.size = gin_size(comm), p.lsa = gin_team_lsa(comm), p.rail = gin_team_rail(comm);
    if (!hosts_are_even(comm))
        return finish(comm, 1, "gemm: more ranks on some hosts than on others, nothing done");
    p.mine = CHECK_PTR(gin_malloc(comm, bytes));
    p.c = CHECK_PTR(gin_malloc(comm, bytes));
    p.far = CHECK_PTR(gin_malloc(comm, 2 * bytes * (size_t)p.rail.size));
    p.sum = malloc(bytes);
    p.a = malloc(SIDE * EDGE * DEEP * sizeof(double));
    p.b = malloc(SIDE * EDGE * DEEP * sizeof(double));
    double *right = malloc(bytes);
    for (; p.round < rounds; p.round++) {
        alone(&p, right);
        fill(&p, p.g.rank);
        for (int w = 0; w < 2; w++) {
            memset(p.c, 0xff, bytes);
            CHECK(gin_sync(&p.g, gin_thread(), gin_world(&p.g), 0));
            double begin = now_us();
            ways[w](&p);
            us[w][p.round] = slowest(&p.g, now_us() - begin);
            ok = ok && is_same(p.c, right);
        }
    }
    double each = median(us[0], rounds), whole = median(us[1], rounds);
    if (p.g.rank == 0 && bench_asked(argc, argv))
        printf("tile by tile %.1f us, product first %.1f us: %.2f\n", each, whole, each / whole);
    show_paths(comm);
    free(p.a), free(p.b), free(p.sum), free(right);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, p.far));
    CHECK(gin_free(comm, p.c));
    CHECK(gin_free(comm, p.mine));
    return finish(comm, ok, "gemm, sum over ranks: 288 x 288, 5 rounds");
}
