/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 1 dies while the others meet through the launcher alone. What they are told goes into a file
 * each in the folder given, since a launcher may end them before they end by themselves.
 * With "late" they meet when the launcher is likely to have seen the death.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <ginshmem.h>

static int report(const char *folder, int rank, int status)
{
    char path[512], text[512];
    snprintf(path, sizeof(path), "%s/rank%d", folder, rank);
    int n = snprintf(text, sizeof(text), "%s %s\n", gin_status_name(status), gin_last_error());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return fd >= 0 && write(fd, text, (size_t)n) == n && close(fd) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    gin_comm_t *comm;
    signal(SIGTERM, SIG_IGN);
    if (argc < 3 || gin_init(NULL, &comm) != GIN_OK) {
        fprintf(stderr, "gin_init: %s\n", gin_last_error());
        return 1;
    }
    int rank = gin_rank(comm), st = GIN_OK, out[64];
    for (int i = 0; i < 1000 && st == GIN_OK; i++) {
        if (i == 3 && rank == 1)
            raise(SIGKILL);
        if (i == 3 && strcmp(argv[2], "late") ==
                          0) /* the launcher is likely to have seen it before they meet */
            usleep(300000);
        st = gin_comm_allgather(comm, &rank, out, sizeof(rank));
    }
    return report(argv[1], rank, st);
}
