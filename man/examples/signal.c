/* SPDX-License-Identifier: BSD-3-Clause */
/* Many puts, one strong signal. */
#include "frame.h"

/* begin column */
enum { ROWS = 16, WIDTH = 8, PITCH = 32, HALO = 1 };

/* A column of a matrix, row by row, then one signal that covers all
 * rows.
 */
static int send_column(const gin_t *g, int peer, double (*dst)[PITCH],
                       double (*src)[PITCH])
{
    gin_team_t world = gin_world(g);

    for (int row = 0; row < ROWS; row++) {
        int st =
            gin_put(g, gin_thread(), world, peer,
                    gin_at_ptr(g, dst[row]), gin_at_ptr(g, src[row]),
                    WIDTH * sizeof(double), gin_no_action());
        if (st != GIN_OK)
            return st;
    }
    return gin_signal(g, gin_thread(), world, peer,
                      gin_strong_inc(HALO));
}
/* end column */

int example(gin_comm_t *comm, const gin_t *g)
{
    int right = (gin_rank(comm) + 1) % gin_size(comm);
    int left = (gin_rank(comm) + gin_size(comm) - 1) % gin_size(comm);
    double(*m)[PITCH] = gin_calloc(comm, 2 * ROWS, sizeof(*m));
    if (m == NULL)
        return gin_last_status();
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < WIDTH; i++)
            m[row][i] = gin_rank(comm) * 1000 + row * WIDTH + i;
    int st = send_column(g, right, m + ROWS, m);
    if (st == GIN_OK)
        st = gin_wait_signal(g, gin_thread(), HALO, 1);
    for (int row = 0; st == GIN_OK && row < ROWS; row++)
        for (int i = 0; i < WIDTH; i++)
            if (m[ROWS + row][i] != left * 1000 + row * WIDTH + i)
                st = GIN_ERANGE;
    if (st == GIN_OK)
        st = gin_reset_signal(g, HALO, NULL);
    int freed = gin_free(comm, m);
    return st != GIN_OK ? st : freed;
}
