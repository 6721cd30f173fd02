/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining the memory of a host: results, cliques, growth, death, resources, time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <ginshmem/status.h>
#include "base/log.h"
#include "base/os.h"
#include "tests/life/shm_ranks.h"

#define MIB ((uint64_t)1 << 20)

static char *slot_of(const struct gi_shm *s, int lsa_rank)
{
    return s->base + (uint64_t)lsa_rank * s->stride;
}

/* Arrays agree with each other and with the teams in `want` (by world rank). */
static void check_arrays(const struct rank *r, const struct gi_shm *s, const int *want)
{
    int n_teams = 0, place[MAX_SIZE] = {0}, count[MAX_SIZE] = {0};
    for (int k = 0; k < r->size; k++) {
        place[k] = count[want[k]]++;
        n_teams = want[k] + 1 > n_teams ? want[k] + 1 : n_teams;
        EXPECT_EQ_INT(s->team_of[k], want[k]);
        EXPECT_EQ_INT(s->index_of[k], place[k]);
        EXPECT_EQ_INT(s->lsa_of[k], want[k] == want[r->rank] ? place[k] : -1);
        EXPECT_EQ_INT(s->why[k] == GI_SHM_OK, want[k] == want[r->rank]);
        if (want[k] == want[r->rank])
            EXPECT_EQ_INT(s->world_of[place[k]], k);
    }
    EXPECT_EQ_INT(s->n_teams, n_teams);
    EXPECT_EQ_INT(s->lsa_size, count[want[r->rank]]);
    EXPECT_EQ_INT(s->lsa_rank, place[r->rank]);
    EXPECT_EQ_U64(s->mapped, (uint64_t)s->lsa_size * s->stride);
    EXPECT_EQ_U64((uintptr_t)s->base % (2 * MIB), 0);
}

/* Everybody's bytes are seen by everybody of the team; so is memory that appears later. */
static void check_memory(struct rank *r, const struct gi_shm *s)
{
    char *mine = slot_of(s, s->lsa_rank);
    memset(mine + 64, r->rank + 1, 4096);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    for (int i = 0; i < s->lsa_size; i++)
        EXPECT_FILLED(slot_of(s, i) + 64, 4096, (unsigned char)(s->world_of[i] + 1));
    EXPECT_EQ_INT(gi_os_grow(r->config.fd, 1 * MIB, 3 * MIB), 0);
    memset(mine + 3 * MIB - 64, r->rank + 1, 64);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    for (int i = 0; i < s->lsa_size; i++)
        EXPECT_FILLED(slot_of(s, i) + 3 * MIB - 64, 64, (unsigned char)(s->world_of[i] + 1));
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
}

/* Join, look at everything, leave; nothing is left. */
static void join_and_check(struct rank *r, const int *want)
{
    struct gi_shm *s = NULL;
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    int fds = count_fds(), maps = count_maps();
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK)) {
        fprintf(stderr, "%s\n", gin_last_error());
        _exit(1);
    }
    check_arrays(r, s, want);
    check_memory(r, s);
    EXPECT_EQ_INT(count_fds(), fds + r->processes - 1); /* the pidfds */
    EXPECT_EQ_INT(gi_shm_dead_after(s, -1), -1);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    gi_shm_leave(s);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    EXPECT_EQ_INT(count_fds(), fds);
    EXPECT_EQ_INT(count_maps(), maps);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
}

static void expect_one_team(struct rank *r)
{
    int want[MAX_SIZE] = {0};
    join_and_check(r, want);
}

static const int sizes[] = {1, 2, 3, 5, 8};

TEST(all_see_all)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int processes = 1; processes <= sizes[i]; processes++)
            for (int blocks = 0; blocks < 2; blocks++)
                run_world(&(struct world){.size = sizes[i],
                                          .processes = processes,
                                          .blocks = blocks != 0,
                                          .body = expect_one_team});
}

/* More ranks than one message has descriptors. */
TEST(many_ranks_in_few_processes)
{
    run_world(&(struct world){.size = 200, .processes = 3, .body = expect_one_team});
    run_world(&(struct world){.size = 40, .processes = 40, .body = expect_one_team});
}

/* ---- several hosts, and access switched off ---- */

static void by_hosts(struct rank *r)
{
    const char *hosts = r->arg;
    int want[MAX_SIZE], n = 0, seen[256];
    memset(seen, -1, sizeof(seen));
    for (int k = 0; k < r->size; k++) {
        unsigned char h = (unsigned char)hosts[(size_t)k % strlen(hosts)];
        if (seen[h] < 0)
            seen[h] = n++;
        want[k] = seen[h];
    }
    join_and_check(r, want);
}

TEST(hosts_are_apart)
{
    static const char *const hosts[] = {"AB", "AABB", "ABCAA"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        for (int processes = 1; processes <= 8; processes += processes == 1 ? 2 : 5)
            run_world(&(struct world){.size = 8,
                                      .processes = processes,
                                      .hosts = hosts[i],
                                      .body = by_hosts,
                                      .arg = (void *)hosts[i]});
}

static void some_switched_off(struct rank *r)
{
    int want[MAX_SIZE] = {0, 1, 0, 2, 0};
    struct gi_shm *s = NULL;
    r->config.lsa = r->rank != 1 && r->rank != 3;
    r->config.cma = r->rank != 2;
    join_and_check(r, want);
    if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
        return;
    for (int k = 0; k < r->size; k++) {
        bool off = r->rank == 1 || r->rank == 3 || k == 1 || k == 3;
        EXPECT_EQ_INT(s->why[k], k == r->rank || !off ? GI_SHM_OK : GI_SHM_DISABLED);
        if (r->rank == 2)
            EXPECT_EQ_INT(s->cma[k], 0);
    }
    if (r->rank == 2)
        EXPECT_EQ_STR(s->cma_reason, "switched off");
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    gi_shm_leave(s);
}

TEST(access_can_be_switched_off)
{
    for (int processes = 1; processes <= 5; processes += 2)
        run_world(&(struct world){.size = 5, .processes = processes, .body = some_switched_off});
}

static void cma_refused(struct rank *r)
{
    struct gi_shm *s = NULL;
    if (r->rank == 1)
        gi_os_inject(GI_OS_CMA, 1, UINT32_MAX, EPERM);
    if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
        return;
    for (int k = 0; k < r->size; k++)
        EXPECT_EQ_INT(s->cma[k], r->rank != 1);
    if (r->rank == 1)
        EXPECT_HAS(s->cma_reason, "process_vm_readv to rank 0: 1 (Operation not permitted)");
    else
        EXPECT_EQ_STR(s->cma_reason, "");
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    gi_shm_leave(s);
}

TEST(cma_is_probed)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = cma_refused});
}

/* ---- proof ---- */

struct blindness {
    bool (*blind)(int reader, int owner);
    int want[8];
};

static bool nobody_reads_2(int reader, int owner)
{
    return owner == 2 && reader != 2;
}
static bool three_reads_none(int reader, int owner)
{
    return reader == 3 && owner != 3;
}
static bool even_odd(int reader, int owner)
{
    return (reader ^ owner) & 1;
}
static bool chain(int reader, int owner) /* neighbours only, and only one way with rank 5 */
{
    int d = reader > owner ? reader - owner : owner - reader;
    return d > 1 || (reader == 5 && owner == 4);
}
static bool all_blind(int reader, int owner)
{
    return reader != owner;
}

static void with_blindness(struct rank *r)
{
    const struct blindness *b = r->arg;
    join_and_check(r, b->want);
}

TEST(cliques_follow_the_proof)
{
    static const struct blindness b[] = {{nobody_reads_2, {0, 0, 1, 0, 0, 0, 0, 0}},
                                         {three_reads_none, {0, 0, 0, 1, 0, 0, 0, 0}},
                                         {even_odd, {0, 1, 0, 1, 0, 1, 0, 1}},
                                         {chain, {0, 0, 1, 1, 2, 3, 3, 4}},
                                         {all_blind, {0, 1, 2, 3, 4, 5, 6, 7}}};
    static const int processes[] = {1, 2, 3, 8};
    int level = gi_log_level;
    gi_log_level = GI_LOG_ERROR; /* a warning is right, and expected */
    for (size_t i = 0; i < sizeof(b) / sizeof(b[0]); i++) {
        gi_shm_test_blind = b[i].blind; /* the children inherit it */
        for (size_t p = 0; p < 4; p++)
            run_world(&(struct world){.size = 8,
                                      .processes = processes[p],
                                      .body = with_blindness,
                                      .arg = (void *)&b[i]});
    }
    gi_shm_test_blind = NULL;
    gi_log_level = level;
}

/* After all are mapped and before they look, rank 2's object gets another token. */
static void swap_token(struct rank *r, unsigned nth, bool after, const void *data)
{
    static const uint64_t other = 0x5a5a5a5a5a5a5a5a;
    (void)data;
    if (nth == 4 && !after && r->rank == 2)
        EXPECT_EQ_INT(pwrite(r->config.fd, &other, sizeof(other), 7 * sizeof(other)),
                      sizeof(other));
}

static void with_a_swapped_token(struct rank *r)
{
    static const int want[] = {0, 0, 1};
    r->on_gather = swap_token;
    r->gathers = 0;
    join_and_check(r, want);
}

TEST(memory_with_another_token_is_no_peer)
{
    int level = gi_log_level;
    gi_log_level = GI_LOG_ERROR;
    run_world(&(struct world){.size = 3, .processes = 3, .body = with_a_swapped_token});
    gi_log_level = level;
}

/* ---- death ---- */

static void one_dies(struct rank *r)
{
    const bool *no_pidfd = r->arg;
    struct gi_shm *s = NULL;
    int victim = r->size - 2;
    if (*no_pidfd)
        gi_os_inject(GI_OS_PIDFD, 1, UINT32_MAX, ENOSYS);
    if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
        return;
    EXPECT_EQ_INT(gi_shm_dead_after(s, -1), -1);
    for (int k = 0; k < r->size; k++)
        EXPECT(!gi_shm_has_exited(s, k));
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    if (r->rank == victim)
        raise(SIGKILL);
    uint64_t began = gi_now_ns();
    int dead = -1;
    while ((dead = gi_shm_dead_after(s, -1)) < 0 && gi_now_ns() - began < 30000ull * MS)
        usleep(1000);
    EXPECT_EQ_INT(dead, victim % r->processes); /* lowest rank of that process */
    for (int k = 0; k < r->size; k++)
        EXPECT_EQ_INT(gi_shm_has_exited(s, k), k % r->processes == dead);
    rank_survivors(r, r->size - 1);
    gi_shm_leave(s);
}

TEST(a_killed_process_is_reported)
{
    bool no_pidfd[2] = {false, true};
    for (int i = 0; i < 4; i++) {
        run_world(&(struct world){.size = 4,
                                  .processes = 4,
                                  .doomed = "..x.",
                                  .body = one_dies,
                                  .keep_zombies = (i & 2) != 0,
                                  .arg = &no_pidfd[i & 1]});
    }
}

/* ---- resources ---- */

static void count_maps_of_many(struct rank *r)
{
    struct gi_shm *s = NULL;
    r->config.stride = 64 * MIB;
    if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
        return;
    EXPECT_EQ_INT(s->lsa_size, r->size);
    EXPECT_EQ_INT(count_maps(), r->size);
    slot_of(s, s->lsa_rank)[64] = 1;
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    for (int i = 0; i < s->lsa_size; i++)
        EXPECT_EQ_INT(slot_of(s, i)[64], 1);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    gi_shm_leave(s);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    EXPECT_EQ_INT(count_maps(), 0);
}

TEST(threads_share_one_range)
{
    run_world(&(struct world){.size = 256, .processes = 1, .body = count_maps_of_many});
}

static void many_cycles(struct rank *r)
{
    int fds = count_fds(), maps = count_maps();
    for (int i = 0; i < 100; i++) {
        struct gi_shm *s = NULL;
        r->config.job[0]++;
        if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
            _exit(1);
        gi_shm_leave(s);
    }
    EXPECT_EQ_INT(count_fds(), fds);
    EXPECT_EQ_INT(count_maps(), maps);
}

TEST(cycles_leave_nothing)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = many_cycles});
}

/* Descriptors run out on one rank; all are told, and room makes it work again. */
static void few_descriptors(struct rank *r)
{
    struct gi_shm *s[80] = {NULL};
    int n = 0, st = GIN_OK;
    struct rlimit old, tight;
    getrlimit(RLIMIT_NOFILE, &old);
    if (r->rank == 1) {
        tight = (struct rlimit){64, old.rlim_max};
        EXPECT_EQ_INT(setrlimit(RLIMIT_NOFILE, &tight), 0);
    }
    int fds = count_fds(), take[80], taken = 0;
    while (n < 80) {
        r->config.job[0]++;
        st = gi_shm_join(&r->config, &s[n]);
        if (st != GIN_OK)
            break;
        n++;
        if (r->rank == 1) /* every communicator has objects of its own */
            take[taken++] = gi_os_memfd("shm-filler", false);
    }
    EXPECT(st != GIN_OK);
    EXPECT_HAS(gin_last_error(), "Too many open files");
    if (r->rank != 1)
        EXPECT_HAS(gin_last_error(), "rank 1");
    while (taken > 0)
        gi_os_close(take[--taken]);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    r->config.job[0]++;
    EXPECT_EQ_INT(gi_shm_join(&r->config, &s[n]), GIN_OK);
    for (int i = 0; i <= n; i++)
        gi_shm_leave(s[i]);
    EXPECT_EQ_INT(count_fds(), fds);
}

TEST(out_of_descriptors)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = few_descriptors});
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static void tight_address_space(struct rank *r)
{
    struct gi_shm *s = NULL;
    if (r->rank == 1) {
        char text[64];
        gi_os_read_file("/proc/self/statm", text, sizeof(text));
        uint64_t size = strtoull(text, NULL, 10) * gi_os_page_size() + 300 * MIB;
        struct rlimit l = {size, size};
        EXPECT_EQ_INT(setrlimit(RLIMIT_AS, &l), 0);
    }
    if (EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK)) {
        EXPECT_EQ_U64(s->stride, 32 * MIB); /* 512 halved until twice three slots fit into 300 */
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
        gi_shm_leave(s);
    }
    r->config.min_stride = 256 * MIB;
    EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), r->rank == 1 ? "ulimit -v" : "rank 1");
}

TEST(address_space_is_limited)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = tight_address_space});
}
#endif

/* ---- signals and time ---- */

static void on_prof(int sig)
{
    (void)sig;
}

static void under_signals(struct rank *r)
{
    struct sigaction sa = {.sa_handler = on_prof}; /* no SA_RESTART */
    struct itimerval t = {{0, 1000}, {0, 1000}};
    sigaction(SIGALRM, &sa, NULL);
    setitimer(ITIMER_REAL, &t, NULL);
    for (int i = 0; i < 30; i++) {
        struct gi_shm *s = NULL;
        r->config.job[0]++;
        if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
            _exit(1);
        gi_shm_leave(s);
    }
    t = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &t, NULL);
}

TEST(signals_do_not_disturb)
{
    run_world(&(struct world){.size = 4, .processes = 4, .body = under_signals});
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void timed(struct rank *r)
{
    uint64_t ns[21];
    r->config.stride = 16384 * MIB;
    for (int i = 0; i < 21; i++) {
        struct gi_shm *s = NULL;
        r->config.job[0]++;
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
        ns[i] = gi_now_ns();
        EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK);
        ns[i] = gi_now_ns() - ns[i];
        gi_shm_leave(s);
    }
    qsort(ns, 21, sizeof(ns[0]), by_size);
    if (r->rank == 0)
        printf("%d ranks in %d processes join in %.2f ms (median of 21; worst %.2f)\n", r->size,
               r->processes, (double)ns[10] / 1e6, (double)ns[20] / 1e6);
    EXPECT(ns[10] < 5000ull * MS); /* far off: the machine is busy with other things, too */
}

TEST(joining_is_quick)
{
    static const int shapes[][2] = {{2, 2}, {2, 1}, {16, 16}, {16, 4}, {16, 1}, {64, 64}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        run_world(&(struct world){.size = shapes[i][0], .processes = shapes[i][1], .body = timed});
}

TEST(nothing_in_dev_shm)
{
    int before = count_dev_shm();
    run_world(&(struct world){.size = 3, .processes = 3, .body = expect_one_team});
    EXPECT_EQ_INT(count_dev_shm(), before);
}
