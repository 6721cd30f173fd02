/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device's driver keeps the pages of what it has pinned from fork()ed children, with all that
 * lies beside it: what the library does in a child may touch nothing that was allocated. Here the
 * whole of malloc()'s memory is kept from the child.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/mp.h"

/* Of what brk(2) gave. */
static bool keep_heap(int advice)
{
    uintptr_t from, to;
    char line[512], name[64];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %63s", &from, &to, name) == 3 &&
            strcmp(name, "[heap]") == 0)
            n += madvise((void *)from, to - from, advice) == 0;
    if (f != NULL)
        fclose(f);
    return n != 0;
}

MP_TEST_OPT(children_do_without_pinned_pages, .ranks = "1 3")
{
    int status = -1;
    if (mp->threads)
        MP_SKIP("other ranks would fork without their memory");
    if (PT_LEAK_DETECTOR || PT_RACE_DETECTOR)
        MP_SKIP("a sanitizer allocates elsewhere, and looks into children");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT(keep_heap(MADV_DONTFORK));
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    EXPECT(keep_heap(MADV_DOFORK));
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
