/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks for the tests of transport/shm. */
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <ginshmem/status.h>
#include "base/os.h"
#include "tests/life/shm_ranks.h"

struct ranks_shared {
    _Atomic uint32_t arrived, generation, survivors;
    struct gi_shm_rank table[MAX_SIZE];
    uint64_t process[MAX_SIZE]; /* numbers of processes */
    uint64_t job[2];
    char data[2][MAX_SIZE][RECORD];
};

static uint64_t my_process; /* the word that probes read */
static unsigned failures_before_fork;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER; /* opens a descriptor itself */

/* What orders threads of one process through another one is hidden from ThreadSanitizer. */
static _Atomic unsigned passed;

int rank_barrier(struct rank *r)
{
    struct ranks_shared *s = r->shared;
    atomic_fetch_add(&passed, 1);
    uint32_t gen = atomic_load(&s->generation);
    if (atomic_fetch_add(&s->arrived, 1) == (uint32_t)r->size - 1) {
        atomic_store(&s->arrived, 0);
        atomic_fetch_add(&s->generation, 1);
        syscall(SYS_futex, &s->generation, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        atomic_fetch_add(&passed, 1);
        return GIN_OK;
    }
    uint64_t deadline = gi_deadline_in(r->patience);
    while (atomic_load(&s->generation) == gen) {
        struct timespec t = {0, 100000000};
        if (gi_now_ns() > deadline)
            return GIN_ETIMEDOUT;
        syscall(SYS_futex, &s->generation, FUTEX_WAIT, gen, &t, NULL, 0);
    }
    atomic_fetch_add(&passed, 1);
    return GIN_OK;
}

int rank_allgather(void *arg, const void *in, void *out, size_t bytes)
{
    struct rank *r = arg;
    char(*data)[RECORD] = r->shared->data[r->parity ^= 1];
    unsigned nth = ++r->gathers;
    if (bytes > RECORD)
        abort();
    if (r->on_gather != NULL)
        r->on_gather(r, nth, false, in);
    memcpy(data[r->rank], in, bytes);
    int st = rank_barrier(r);
    for (int i = 0; i < r->size && st == GIN_OK; i++)
        memcpy((char *)out + (size_t)i * bytes, data[i], bytes);
    if (r->on_gather != NULL)
        r->on_gather(r, nth, true, out);
    return st;
}

void rank_survivors(struct rank *r, int n)
{
    atomic_fetch_add(&r->shared->survivors, 1);
    while (atomic_load(&r->shared->survivors) < (uint32_t)n)
        gi_os_sleep_ns(MS);
}

pid_t pid_of(const struct rank *r, int rank)
{
    return r->shared->table[rank].pid;
}

struct start {
    const struct world *world;
    struct ranks_shared *shared;
    int rank, process;
};

static int process_of(const struct world *w, int rank)
{
    return w->blocks ? rank * w->processes / w->size : rank % w->processes;
}

static void *run_rank(void *arg)
{
    struct start *a = arg;
    const struct world *w = a->world;
    struct ranks_shared *s = a->shared;
    char host = w->hosts != NULL ? w->hosts[(size_t)a->rank % strlen(w->hosts)] : 'A';
    struct rank r = {.rank = a->rank,
                     .size = w->size,
                     .process = a->process,
                     .processes = w->processes,
                     .patience = 30000 * MS,
                     .shared = s,
                     .arg = w->arg};
    s->table[a->rank] = (struct gi_shm_rank){.host = (uint64_t)host,
                                             .process = my_process,
                                             .pid_space = 1,
                                             .probe = (uint64_t)(uintptr_t)&my_process,
                                             .pid = getpid(),
                                             .uid = geteuid()};
    r.config = (struct gi_shm_config){.rank = a->rank,
                                      .size = w->size,
                                      .ranks = s->table,
                                      .job = {s->job[0], s->job[1]},
                                      .stride = (uint64_t)512 << 20,
                                      .min_stride = 4 << 20,
                                      .lsa = true,
                                      .cma = true,
                                      .allgather = rank_allgather,
                                      .arg = &r,
                                      .deadline = gi_deadline_in(20000 * MS)};
    if (a->rank < 48) /* it has room for 64 threads */
        pt_step("rank %d of %d", a->rank, w->size);
    r.config.fd = gi_os_memfd(OBJECT_NAME, false);
    EXPECT(r.config.fd >= 0);
    EXPECT_EQ_INT(gi_os_grow(r.config.fd, 0, 1 << 20), 0);
    EXPECT_EQ_INT(rank_barrier(&r), GIN_OK);
    w->body(&r);
    gi_os_close(r.config.fd);
    return NULL;
}

static int run_process(const struct world *w, struct ranks_shared *s, int process)
{
    pthread_t threads[MAX_SIZE];
    struct start starts[MAX_SIZE];
    int n = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    my_process = s->process[process];
    failures_before_fork = pt_failures();
    for (int r = 0; r < w->size; r++)
        if (process_of(w, r) == process)
            starts[n++] = (struct start){w, s, r, process};
    if (n == 1) {
        run_rank(&starts[0]);
        return pt_failures() != failures_before_fork;
    }
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run_rank, &starts[i]) != 0)
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return pt_failures() != failures_before_fork;
}

bool run_world(const struct world *w)
{
    pid_t child[MAX_SIZE];
    bool ok = true;
    struct ranks_shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED || gi_os_random(s->process, sizeof(s->process)) != 0 ||
        gi_os_random(s->job, sizeof(s->job)) != 0)
        abort();
    pt_step("%d ranks in %d processes", w->size, w->processes);
    fflush(NULL);
    for (int p = 0; p < w->processes; p++) {
        child[p] = fork();
        if (child[p] == 0) {
            int status = run_process(w, s, p);
            fflush(NULL);
            _exit(status);
        }
    }
    for (int p = 0; p < w->processes; p++) {
        bool doomed = w->doomed != NULL && w->doomed[p] == 'x';
        int status = 0;
        if (doomed && w->keep_zombies)
            continue;
        if (waitpid(child[p], &status, 0) != child[p] || (status != 0 && !doomed)) {
            FAIL("process %d of %d (%d ranks) ended with 0x%x", p, w->processes, w->size, status);
            ok = false;
        }
    }
    for (int p = 0; p < w->processes; p++)
        if (w->keep_zombies && w->doomed != NULL && w->doomed[p] == 'x')
            waitpid(child[p], NULL, 0);
    munmap(s, sizeof(*s));
    return ok;
}

static int count_entries(const char *path)
{
    int n = 0;
    pthread_mutex_lock(&counting);
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    pthread_mutex_unlock(&counting);
    return n;
}

int count_fds(void)
{
    return count_entries("/proc/self/fd");
}

int count_dev_shm(void)
{
    return count_entries("/dev/shm");
}

/* Sanitizers reserve ranges of their own. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define COUNT_RESERVED 0
#else
#define COUNT_RESERVED 1
#endif

int count_maps(void)
{
    char line[512], prot[8];
    unsigned long long from, to;
    int n = 0;
    pthread_mutex_lock(&counting);
    FILE *f = fopen("/proc/self/maps", "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "%llx-%llx %7s", &from, &to, prot) == 3)
            n += strstr(line, OBJECT_NAME) != NULL ||
                 (COUNT_RESERVED && strcmp(prot, "---p") == 0 && to - from >= (256u << 20));
    if (f != NULL)
        fclose(f);
    pthread_mutex_unlock(&counting);
    return n;
}
