/* SPDX-License-Identifier: BSD-3-Clause */
/* Cores, control groups, time slices, threads, randomness, texts of errno, and fault injection. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/os.h"
#include "base/os_inject.h"

/* Written by tests only, while nothing else runs; counted down by any thread. */
static struct {
    unsigned calls, first, last;
    int err;
} inject[GI_OS_CALLS];

void gi_os_inject(enum gi_os_call call, unsigned first, unsigned count, int err)
{
    inject[call].calls = 0;
    inject[call].first = first;
    inject[call].last = count != 0 ? first + count - 1 : 0;
    __atomic_store_n(&inject[call].err, count != 0 ? err : 0, __ATOMIC_RELEASE);
}

int gi_os_injected(enum gi_os_call call)
{
    int err = __atomic_load_n(&inject[call].err, __ATOMIC_ACQUIRE);
    if (err == 0)
        return 0;
    unsigned n = __atomic_add_fetch(&inject[call].calls, 1, __ATOMIC_RELAXED);
    return n >= inject[call].first && n <= inject[call].last ? err : 0;
}

size_t gi_os_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_file(const char *path, int flags)
{
    for (;;) {
        int fd = open(path, flags | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EINTR)
            return -errno;
    }
}

int gi_os_append(const char *path)
{
    return open_file(path, O_WRONLY | O_APPEND | O_CREAT);
}

int gi_os_read_file(const char *path, char *buf, size_t n)
{
    int fd = open_file(path, O_RDONLY);
    if (fd < 0)
        return fd;
    size_t got = 0;
    ssize_t r = 0;
    while (got < n - 1 && (r = gi_os_read(fd, buf + got, n - 1 - got)) > 0)
        got += (size_t)r;
    gi_os_close(fd);
    buf[got] = 0;
    return r < 0 ? (int)r : (int)got;
}

/* The path of this process in a control group hierarchy: "" is version 2, else a controller. */
static int cgroup_path(const char *controller, char *path, size_t n)
{
    char text[4096], *save = NULL;
    if (gi_os_read_file("/proc/self/cgroup", text, sizeof(text)) < 0)
        return -ENOENT;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':');
        char *where = names ? strchr(names + 1, ':') : NULL;
        if (where == NULL)
            continue;
        *where++ = 0;
        names++;
        size_t len = strlen(controller);
        const char *hit = strstr(names, controller);
        bool same = len == 0 ? *names == 0
                             : hit && (hit == names || hit[-1] == ',') &&
                                   (hit[len] == 0 || hit[len] == ',');
        if (same && strlen(where) < n) {
            strcpy(path, where);
            return 0;
        }
    }
    return -ENOENT;
}

void gi_os_cgroup_walk(const char *controller, const char *file,
                       void (*look)(const char *dir, const char *text, void *arg), void *arg)
{
    char path[1024], dir[1200], full[1400], text[128];
    if (cgroup_path(controller, path, sizeof(path)) < 0)
        return;
    for (;;) {
        snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s%s%s", *controller ? "/" : "", controller,
                 strcmp(path, "/") == 0 ? "" : path);
        snprintf(full, sizeof(full), "%s/%s", dir, file);
        if (gi_os_read_file(full, text, sizeof(text)) > 0)
            look(dir, text, arg);
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[0] == 0)
            return;
        *slash = 0;
    }
}

static void lower_quota(const char *dir, const char *text, void *arg)
{
    (void)dir;
    int *cores = arg;
    long long quota, period;
    if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return;
    long long whole = (quota + period - 1) / period;
    if (whole < *cores)
        *cores = (int)whole;
}

int gi_os_cores(void)
{
    int cores = 0;
    for (int max = 1024; max <= 1 << 20 && cores == 0; max *= 4) {
        cpu_set_t *set = CPU_ALLOC(max);
        if (set == NULL)
            break;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE(max), set) == 0)
            cores = CPU_COUNT_S(CPU_ALLOC_SIZE(max), set);
        CPU_FREE(set);
    }
    gi_os_cgroup_walk("", "cpu.max", lower_quota, &cores);
    return cores > 0 ? cores : 1;
}

int gi_os_random(void *buf, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = getrandom((char *)buf + got, n - got, 0);
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r > 0)
            got += (size_t)r;
    }
    return 0;
}

void gi_os_yield(void)
{
    sched_yield();
}

void gi_os_sleep_ns(uint64_t ns)
{
    uint64_t until = gi_deadline_in(ns);
    struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

int gi_os_thread(pthread_t *thread, void *(*run)(void *), void *arg, const char *name)
{
    sigset_t all, old;
    int err = gi_os_injected(GI_OS_THREAD);
    if (err != 0)
        return -err;
    /* The program's signals are the program's threads' business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err == 0 && name != NULL)
        pthread_setname_np(*thread, name);
    return -err;
}

const char *gi_os_strerror(int e)
{
    static _Thread_local char text[96];
    char buf[80];
    e = e < 0 ? -e : e;
    snprintf(text, sizeof(text), "%d (%s)", e, strerror_r(e, buf, sizeof(buf)));
    return text;
}
