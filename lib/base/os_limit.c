/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process may still have: memory, and descriptors. Who takes more memory does not get an
 * error, but is killed, or another one is; so whoever takes much asks here first. Descriptors run
 * out within libraries that do not say so.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/os.h"
#include "base/os_inject.h"

/* The number behind `key` in a text of lines "key value" or "key: value kB"; 0 without it. */
static uint64_t number_of(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && (line[n] == ' ' || line[n] == ':')) {
            char *end;
            uint64_t v = strtoull(line + n + 1, &end, 10);

            return strncmp(end, " kB", 3) == 0 ? v * 1024 : v;
        }
    }
    return 0;
}

static bool number(const char *text, uint64_t *v)
{
    char *end;

    *v = strtoull(text, &end, 10);
    return end != text; /* "max" is none */
}

static void lower_limit(const char *dir, const char *text, void *arg)
{
    uint64_t *least = arg, v;

    (void)dir;
    if (number(text, &v) && v < *least)
        *least = v;
}

uint64_t gi_os_memory_total(void)
{
    uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * gi_os_page_size();

    gi_os_cgroup_walk("", "memory.max", lower_limit, &total);
    gi_os_cgroup_walk("memory", "memory.limit_in_bytes", lower_limit, &total);
    return total;
}

static int read_in(const char *dir, const char *file, char *buf, size_t n)
{
    char path[1400];

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    return gi_os_read_file(path, buf, n);
}

/* What a group with this limit has left: files cached for it are dropped before it runs out. */
static void lower_room(const char *dir, const char *text, void *arg)
{
    uint64_t *least = arg, limit, used, cache;
    char buf[8192];

    if (!number(text, &limit))
        return;
    if ((read_in(dir, "memory.current", buf, sizeof(buf)) <= 0 &&
         read_in(dir, "memory.usage_in_bytes", buf, sizeof(buf)) <= 0) ||
        !number(buf, &used) || read_in(dir, "memory.stat", buf, sizeof(buf)) <= 0)
        return;
    cache = number_of(buf, "inactive_file") + number_of(buf, "active_file");
    used -= cache < used ? cache : used;
    limit -= used < limit ? used : limit;
    if (limit < *least)
        *least = limit;
}

uint64_t gi_os_memory_free(void)
{
    char text[8192];
    uint64_t room = UINT64_MAX;

    if (gi_os_read_file("/proc/meminfo", text, sizeof(text)) > 0)
        room = number_of(text, "MemAvailable") + number_of(text, "SwapFree");
    gi_os_cgroup_walk("", "memory.max", lower_room, &room);
    gi_os_cgroup_walk("memory", "memory.limit_in_bytes", lower_room, &room);
    return room;
}

uint64_t gi_os_file_limit(void)
{
    struct rlimit r;

    return getrlimit(RLIMIT_FSIZE, &r) != 0 || r.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                           : r.rlim_cur;
}

uint64_t gi_os_files_left(uint64_t *limit)
{
    struct rlimit r;
    uint64_t used = 0;

    *limit = UINT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    *limit = r.rlim_cur;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return errno == EMFILE ? 0 : UINT64_MAX;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        used += e->d_name[0] != '.';
    closedir(dir);
    used--; /* the folder's own */
    return *limit > used ? *limit - used : 0;
}

bool gi_os_huge_pages(uint64_t *bytes, uint64_t *free)
{
    char text[8192];
    uint64_t count, reserved, taken, surplus = 0;

    if (gi_os_read_file("/proc/meminfo", text, sizeof(text)) <= 0)
        return false;
    *bytes = number_of(text, "Hugepagesize");
    count = number_of(text, "HugePages_Free");
    reserved = number_of(text, "HugePages_Rsvd");
    taken = number_of(text, "HugePages_Surp");
    if (gi_os_read_file("/proc/sys/vm/nr_overcommit_hugepages", text, sizeof(text)) > 0)
        number(text, &surplus);
    count -= reserved < count ? reserved : count;
    surplus -= taken < surplus ? taken : surplus;
    *free = (count + surplus) * *bytes;
    return *bytes != 0;
}
