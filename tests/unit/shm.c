/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of transport/shm that one process can test: groups, regions, copies by the kernel. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ginshmem/status.h>
#include "base/clock.h"
#include "base/os.h"
#include "transport/shm/shm_int.h"
#include "tests/pt.h"

#define MIB ((uint64_t)1 << 20)

/* ---- groups ---- */

TEST(propose_by_host_and_space)
{
    struct gi_shm_rank ranks[8] = {{0}};
    struct gi_shm_hello hello[8];
    struct gi_shm_pair pairs[8];
    uint64_t host[8] = {7, 3, 7, 3, 7, 9, 7, 7};
    int group[8], want[8] = {0, 1, 0, 1, 2, 3, 4, 0};
    memset(hello, 0, sizeof(hello));
    for (int r = 0; r < 8; r++) {
        ranks[r].host = host[r];
        hello[r].lsa = r != 4;      /* switched off */
        hello[r].space[0] = r == 6; /* another network namespace */
    }
    EXPECT_EQ_INT(gi_shm_propose(ranks, hello, 8, pairs, group), 5);
    for (int r = 0; r < 8; r++)
        EXPECT_EQ_INT(group[r], want[r]);
}

static bool bit(const uint64_t *seen, int words, int row, int i)
{
    return (seen[row * words + i / 64] >> (i % 64) & 1) != 0;
}

/* The same by the words of the rule. */
static int naive(const int *group, int size, const uint64_t *seen, int words, int *team)
{
    int place[256], n = 0;
    for (int r = 0; r < size; r++) {
        place[r] = 0;
        for (int k = 0; k < r; k++)
            place[r] += group[k] == group[r];
    }
    for (int r = 0; r < size; r++) {
        team[r] = -1;
        for (int t = 0; t < n && team[r] < 0; t++) {
            bool fits = true;
            for (int k = 0; k < r && fits; k++)
                if (team[k] == t)
                    fits = group[k] == group[r] && bit(seen, words, r, place[k]) &&
                           bit(seen, words, k, place[r]);
            if (fits)
                team[r] = t;
        }
        if (team[r] < 0)
            team[r] = n++;
    }
    return n;
}

TEST(partition_is_first_fit)
{
    uint64_t rng = PT_SEED;
    static uint64_t seen[256 * 4];
    int group[256], team[256], index[256], want[256], scratch[5 * 256];
    for (int round = 0; round < 3000; round++) {
        int size = 1 + (int)pt_below(&rng, round % 100 == 0 ? 256 : 24);
        int groups = 1 + (int)pt_below(&rng, 4), n_groups = 0, words = (size + 63) / 64;
        int map[4] = {-1, -1, -1, -1};
        uint64_t percent = pt_below(&rng, 2) ? 100 : pt_below(&rng, 101);
        for (int r = 0; r < size; r++) {
            int g = (int)pt_below(&rng, (uint64_t)groups);
            if (map[g] < 0)
                map[g] = n_groups++;
            group[r] = map[g];
        }
        memset(seen, 0, sizeof(seen));
        for (int r = 0; r < size; r++)
            for (int i = 0; i < size; i++)
                if (pt_below(&rng, 100) < percent)
                    seen[r * words + i / 64] |= (uint64_t)1 << (i % 64);
        int n = gi_shm_partition(group, n_groups, size, seen, words, team, index, scratch);
        EXPECT_EQ_INT(n, naive(group, size, seen, words, want));
        for (int r = 0; r < size; r++) {
            int before = 0;
            for (int k = 0; k < r; k++)
                before += want[k] == want[r];
            if (!EXPECT_EQ_INT(team[r], want[r]) || !EXPECT_EQ_INT(index[r], before))
                return;
        }
        if (percent == 100)
            EXPECT_EQ_INT(n, n_groups);
    }
}

/* ---- regions ---- */

static const uint64_t job[2] = {1, 2};

TEST(region_is_aligned_and_shared)
{
    int members[3] = {0, 4, 5};
    struct gi_shm_region *r, *again;
    if (!EXPECT_EQ_INT(gi_shm_region_open(job, members, 3, 5 * MIB, MIB, &r), 0))
        return;
    EXPECT_EQ_U64(r->stride, 6 * MIB);
    EXPECT_EQ_U64((uintptr_t)r->base % (2 * MIB), 0);
    again = gi_shm_region_get(job, members, 3);
    EXPECT_EQ_PTR(again, r);
    EXPECT_EQ_PTR(gi_shm_region_get(job, members, 2), NULL);
    members[2] = 6;
    EXPECT_EQ_PTR(gi_shm_region_get(job, members, 3), NULL);
    gi_shm_region_trim(r, 2 * MIB);
    int fd = gi_os_memfd("shm-unit", false);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ_INT(gi_shm_region_map(r, i, fd), 0);
    /* Memory appears behind the end of what was mapped. */
    EXPECT_EQ_INT(gi_os_grow(fd, 0, 2 * MIB), 0);
    strcpy(gi_shm_slot(r, 0) + 2 * MIB - 8, "grown");
    EXPECT_EQ_STR(gi_shm_slot(r, 2) + 2 * MIB - 8, "grown");
    gi_shm_region_put(r);
    EXPECT_EQ_STR(gi_shm_slot(again, 1) + 2 * MIB - 8, "grown");
    gi_shm_region_put(again);
    members[2] = 5;
    EXPECT_EQ_PTR(gi_shm_region_get(job, members, 3), NULL);
    gi_os_close(fd);
}

TEST(region_stride_is_halved)
{
    int members[2] = {0, 1};
    struct gi_shm_region *r = NULL;
    gi_os_inject(GI_OS_MMAP, 1, 3, ENOMEM);
    if (!EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, 64 * MIB, 2 * MIB, &r), 0))
        return;
    EXPECT_EQ_U64(r->stride, 8 * MIB);
    gi_shm_region_put(r);
    gi_os_inject(GI_OS_MMAP, 1, 100, ENOMEM);
    EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, 64 * MIB, 2 * MIB, &r), -ENOMEM);
    gi_os_inject(GI_OS_MMAP, 1, 1, EPERM);
    EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, 64 * MIB, 2 * MIB, &r), -EPERM);
    gi_os_inject(GI_OS_MMAP, 0, 0, 0);
    /* More than any machine has. */
    if (EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, UINT64_MAX, 2 * MIB, &r), 0))
        gi_shm_region_put(r);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static uint64_t vm_size(void)
{
    char text[64];
    if (gi_os_read_file("/proc/self/statm", text, sizeof(text)) < 0)
        return 0;
    return strtoull(text, NULL, 10) * gi_os_page_size();
}

static int child_status(pid_t child)
{
    int status = -1;
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    return status;
}

TEST(region_leaves_addresses_to_the_program)
{
    pid_t child = fork();
    if (child == 0) {
        int members[2] = {0, 1};
        struct gi_shm_region *r = NULL;
        struct rlimit l = {vm_size() + 300 * MIB, vm_size() + 300 * MIB};
        if (setrlimit(RLIMIT_AS, &l) != 0)
            _exit(2);
        EXPECT_EQ_U64(gi_os_address_limit(), l.rlim_cur);
        if (EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, 1024 * MIB, 2 * MIB, &r), 0)) {
            EXPECT_EQ_U64(r->stride, 64 * MIB);
            void *rest = mmap(NULL, 128 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            EXPECT(rest != MAP_FAILED);
        }
        EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, 1024 * MIB, 512 * MIB, &r), -ENOMEM);
        _exit(pt_failures() != 0);
    }
    EXPECT_EQ_INT(child_status(child), 0);
}
#endif

TEST(region_of_huge_pages)
{
    int members[2] = {0, 1}, fd;
    uint64_t size = 0, free = 0;
    struct gi_shm_region *r;
    if (!gi_os_huge_pages(&size, &free) || size > 2 * MIB || free < 2 * size)
        SKIP("no huge pages of 2 MiB are free (vm.nr_hugepages)");
    if ((fd = gi_os_memfd("shm-unit", true)) < 0)
        SKIP("no memory object of huge pages: %s", gi_os_strerror(fd));
    EXPECT_EQ_INT(gi_os_grow(fd, 0, size), 0);
    if (EXPECT_EQ_INT(gi_shm_region_open(job, members, 2, 1024 * MIB, MIB, &r), 0)) {
        uint64_t before = free, now = 0;
        for (int i = 0; i < 2; i++)
            EXPECT_EQ_INT(gi_shm_region_map(r, i, fd), 0);
        gi_os_huge_pages(&size, &now);
        EXPECT(before - now <= size); /* the slots have set nothing aside */
        gi_shm_slot(r, 0)[size - 1] = 5;
        EXPECT_EQ_INT(gi_shm_slot(r, 1)[size - 1], 5);
        EXPECT_EQ_INT(gi_os_grow(fd, size, 2 * size), 0);
        gi_shm_slot(r, 1)[2 * size - 1] = 6;
        EXPECT_EQ_INT(gi_shm_slot(r, 0)[2 * size - 1], 6);
        gi_shm_region_put(r);
    }
    gi_os_close(fd);
}

/* ---- copies by the kernel ---- */

#define BYTES (3 * MIB)

struct other {
    unsigned char *memory; /* private: at the same address there and here */
    pid_t pid;
};

/* A process that waits, with `memory` full of its own bytes. */
static bool start_other(struct other *o)
{
    int ready[2];
    char c = 0;
    o->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (o->memory == MAP_FAILED || pipe(ready) != 0)
        return false;
    o->pid = fork();
    if (o->pid == 0) {
        memset(o->memory, 0xab, BYTES);
        if (write(ready[1], &c, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    bool ok = read(ready[0], &c, 1) == 1;
    close(ready[0]);
    close(ready[1]);
    return ok;
}

static void stop_other(struct other *o)
{
    kill(o->pid, SIGKILL);
    waitpid(o->pid, NULL, 0);
    munmap(o->memory, BYTES);
}

static void both_ways(const struct other *o, size_t bytes)
{
    unsigned char *mine = malloc(bytes), *back = malloc(bytes);
    uint64_t rng = PT_SEED;
    for (size_t i = 0; i < bytes; i++)
        mine[i] = (unsigned char)pt_random(&rng);
    memset(back, 0, bytes);
    EXPECT_EQ_INT(gi_cma_read(o->pid, back, o->memory, bytes), GIN_OK);
    EXPECT_FILLED(back, bytes, 0xab);
    EXPECT_EQ_INT(gi_cma_write(o->pid, o->memory, mine, bytes), GIN_OK);
    EXPECT_EQ_INT(gi_cma_read(o->pid, back, o->memory, bytes), GIN_OK);
    EXPECT(memcmp(mine, back, bytes) == 0);
    memset(back, 0xab, bytes);
    EXPECT_EQ_INT(gi_cma_write(o->pid, o->memory, back, bytes), GIN_OK);
    free(mine);
    free(back);
}

TEST(cma_copies)
{
    struct other o;
    if (!EXPECT(start_other(&o)))
        return;
    char word;
    if (gi_cma_read(o.pid, &word, o.memory, 1) == GIN_ESYS) {
        stop_other(&o);
        SKIP("%s", gin_last_error());
    }
    EXPECT_EQ_INT(gi_cma_read(o.pid, &word, o.memory, 0), GIN_OK);
    both_ways(&o, BYTES);
    gi_os_inject(GI_OS_CMA, 1, UINT32_MAX, -1); /* one byte per call */
    both_ways(&o, 100001);
    gi_os_inject(GI_OS_CMA, 1, UINT32_MAX, -4097);
    both_ways(&o, BYTES);
    gi_os_inject(GI_OS_CMA, 0, 0, 0);

    /* The object ends in the middle; then the process is gone. */
    gin_clear_error();
    char *buf = malloc(2 * MIB);
    EXPECT_EQ_INT(gi_cma_read(o.pid, buf, (void *)(uintptr_t)16, 64), GIN_ESYS);
    EXPECT_HAS(gin_last_error(), "from byte 0 on are not mapped");
    gi_os_inject(GI_OS_CMA, 1, 1, EPERM);
    EXPECT_EQ_INT(gi_cma_write(o.pid, o.memory, buf, 8), GIN_ESYS);
    EXPECT_HAS(gin_last_error(), "may not be accessed");
    gi_os_inject(GI_OS_CMA, 0, 0, 0);
    free(buf);
    stop_other(&o);
    EXPECT_EQ_INT(gi_cma_read(o.pid, &word, &word, 1), GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "has exited");
}

/* ---- processes ---- */

TEST(process_start_tells_the_living)
{
    uint64_t mine = 0, start = 0;
    EXPECT_EQ_INT(gi_os_process_start(getpid(), &mine), 0);
    EXPECT(mine != 0);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    EXPECT_EQ_INT(gi_os_process_start(child, &start), 0);
    EXPECT(start >= mine);
    kill(child, SIGKILL);
    uint64_t deadline = gi_deadline_in(30000000000u);
    while (gi_os_process_start(child, &start) == 0 && gi_now_ns() < deadline)
        usleep(1000);
    EXPECT_EQ_INT(gi_os_process_start(child, &start), -ESRCH); /* not reaped yet */
    waitpid(child, NULL, 0);
    EXPECT_EQ_INT(gi_os_process_start(child, &start), -ESRCH);
}

/* ---- one rank ---- */

static int alone_gather(void *arg, const void *in, void *out, size_t bytes)
{
    (void)arg;
    memcpy(out, in, bytes);
    return GIN_OK;
}

TEST(one_rank_has_its_own_slot)
{
    static uint64_t number = 0x1234;
    struct gi_shm_rank me = {1, number, 1, (uint64_t)(uintptr_t)&number, getpid(), geteuid()};
    struct gi_shm_config c = {.size = 1,
                              .ranks = &me,
                              .job = {3, 4},
                              .stride = 64 * MIB,
                              .min_stride = 2 * MIB,
                              .cma = true,
                              .allgather = alone_gather,
                              .deadline = gi_deadline_in(5000000000)};
    struct gi_shm *s = NULL;
    c.fd = gi_os_memfd("shm-unit", false);
    for (int lsa = 0; lsa < 2; lsa++) {
        c.lsa = lsa != 0;
        EXPECT_EQ_INT(gi_os_shrink(c.fd, 0), 0);
        if (lsa == 0) {
            EXPECT_EQ_INT(gi_shm_join(&c, &s), GIN_EINVAL); /* an empty object has no place */
            EXPECT_HAS(gin_last_error(), "memory object");
        }
        EXPECT_EQ_INT(gi_os_grow(c.fd, 0, 2 * MIB), 0);
        if (!EXPECT_EQ_INT(gi_shm_join(&c, &s), GIN_OK))
            return;
        EXPECT_EQ_INT(s->lsa_size, 1);
        EXPECT_EQ_INT(s->lsa_rank, 0);
        EXPECT_EQ_INT(s->world_of[0], 0);
        EXPECT_EQ_INT(s->n_teams, 1);
        EXPECT_EQ_INT(s->why[0], GI_SHM_OK);
        EXPECT_EQ_INT(s->cma[0], s->cma_reason[0] == 0);
        EXPECT_EQ_U64(s->mapped, 64 * MIB);
        EXPECT_EQ_INT(gi_shm_dead_after(s, -1), -1);
        memset(s->base + 64, 0x55, 2 * MIB - 64);
        gi_shm_leave(s);
    }
    gi_os_close(c.fd);
}
