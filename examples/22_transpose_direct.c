/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transpose by stores: every rank turns its rows over straight into the columns of the ranks of its
 * host. Rows for another host go there as they are, in chunks along the rail, and the rank that
 * gets them turns them over into the columns of its own host: no block is turned over at one place
 * and copied at another, and no two ranks of one host send to the same rank.
 *
 * Both matrices are spread by blocks of rows, in the order of places: hosts one after the other.
 * The barrier before says that all old results have been read, the one behind that all stores of
 * neighbours are done. Strong signals: the n-th one means that the first n chunks are here.
 *
 * With --bench it prints times beside those of all-to-all and a transposition of one's own.
 */
#include "spread.h"

#define CHUNK 32 /* rows */

/* begin turn */
/* Rows y .. of the matrix, in my host's columns, become columns of my host's ranks. */
static void turn_over(const struct spread *s, const double *rows, int stride, int y, int count)
{
    int left = host_first(s, s->rail.rank);
    for (int near = 0; near < s->lsa.size; near++) {
        int x0 = first(s, s->rail.rank * s->lsa.size + near);
        int x1 = first(s, s->rail.rank * s->lsa.size + near + 1);
        double *b = gin_lsa_ptr(&s->g, near, gin_at_ptr(&s->g, s->b));
        for (int x = x0; x < x1; x++)
            for (int i = 0; i < count; i++)
                b[(size_t)(x - x0) * (size_t)s->n + (size_t)(y + i)] = rows[i * stride + x - left];
    }
}
/* end turn */

/* Rows y .. y + count - 1 of mine, in the columns of a host, to the rank of my rail there. */
static void send_rows(const struct spread *s, int host, int y, int count)
{
    int left = host_first(s, host), width = host_first(s, host + 1) - left;
    double *to = s->in + (size_t)s->rail.rank * host_room(s) + y * width;
    double *out = s->out + (size_t)host * host_room(s) + y * width;
    for (int i = 0; i < count; i++)
        memcpy(out + i * width, s->a + (y + i) * s->n + left, (size_t)width * sizeof(double));
    CHECK(gin_put(&s->g, gin_thread(), s->rail, host, gin_at_ptr(&s->g, to), gin_at_local(out),
                  (size_t)count * (size_t)width * sizeof(double),
                  gin_strong_inc((uint32_t)s->rail.rank)));
}

static int chunk_of(int y, int rows)
{
    return rows - y < CHUNK ? rows - y : CHUNK;
}

static void direct(const struct spread *s)
{
    int hosts = s->rail.size, host = s->rail.rank,
        rows = first(s, s->place + 1) - first(s, s->place);
    int left = host_first(s, host), width = host_first(s, host + 1) - left;
    CHECK(gin_barrier(&s->g, gin_thread(), gin_barrier_hybrid(), 0, GIN_ORDER_ACQ_REL,
                      GIN_FENCE_NONE));
    for (int y = 0; y < rows; y += CHUNK)
        for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts)
            send_rows(s, h, y, chunk_of(y, rows));
    for (int y = 0; y < rows; y += CHUNK)
        turn_over(s, s->a + y * s->n + left, s->n, first(s, s->place) + y, chunk_of(y, rows));
    for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts) {
        int from = h * s->lsa.size + s->lsa.rank, y0 = first(s, from);
        for (int y = 0; y < first(s, from + 1) - y0; y += CHUNK) {
            CHECK(gin_increase_shadow(&s->g, (uint32_t)h, 1));
            CHECK(gin_wait_signal_meet_shadow(&s->g, gin_thread(), (uint32_t)h, NULL));
            turn_over(s, s->in + (size_t)h * host_room(s) + y * width, width, y0 + y,
                      chunk_of(y, first(s, from + 1) - y0));
        }
    }
    CHECK(
        gin_barrier(&s->g, gin_thread(), gin_barrier_lsa(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    CHECK(gin_flush(&s->g, gin_thread())); /* what I sent may change */
}

int main(int argc, char **argv)
{
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    struct spread s = {.n = 0};
    int ok = 1;
    double us[2];
    CHECK(gin_init(NULL, &s.comm));
    gin_devcomm_reqs_init(&reqs);
    reqs.signals = (uint32_t)gin_size(s.comm);
    CHECK(gin_devcomm_create(s.comm, &reqs, &dev));
    CHECK(gin_open(&dev, 0, &s.g));
    s.lsa = gin_team_lsa(s.comm), s.rail = gin_team_rail(s.comm), s.places = s.g.size;
    if (!hosts_are_even(s.comm))
        return finish(s.comm, 1,
                      "transpose: more ranks on some hosts than on others, nothing done");
    ok = transpose(&s, direct, 333, 10, us);
    for (int n = 64; bench_asked(argc, argv) && n <= 1024; n *= 4) {
        ok &= transpose(&s, direct, n, 31, us);
        if (s.g.rank == 0)
            printf("%4d rows: direct %.1f us, all-to-all and own transposition %.1f us: %.2f\n", n,
                   us[0], us[1], us[0] / us[1]);
    }
    show_paths(s.comm);
    CHECK(gin_devcomm_destroy(s.comm, &dev));
    return finish(s.comm, ok, "transpose by stores: 333 x 333, 10 rounds");
}
