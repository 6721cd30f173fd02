/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory objects, address ranges and mappings. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/os.h"
#include "base/os_inject.h"

#define HUGE_BYTES ((size_t)2 << 20)

int gi_os_memfd(const char *name, bool huge)
{
    int err = gi_os_injected(GI_OS_MEMFD);
    if (err != 0)
        return -err;
    int fd = memfd_create(name, MFD_CLOEXEC | (huge ? MFD_HUGETLB : 0u));
    return fd < 0 ? -errno : fd;
}

/*
 * A signal makes the kernel undo the whole piece it was working on. Under a profiling timer a large
 * piece would never end, so each interruption halves it.
 */
int gi_os_grow(int fd, uint64_t from, uint64_t to)
{
    uint64_t piece = (uint64_t)1 << 30, least = HUGE_BYTES;
    int err = gi_os_injected(GI_OS_FALLOCATE);
    if (err != 0)
        return -err;
    while (from < to) {
        uint64_t n = to - from < piece ? to - from : piece;
        if (fallocate(fd, 0, (off_t)from, (off_t)n) == 0)
            from += n;
        else if (errno != EINTR)
            return -errno;
        else if (piece > least)
            piece /= 2;
    }
    return 0;
}

static void *map(void *addr, size_t bytes, int prot, int flags, int fd, uint64_t off)
{
    int err = gi_os_injected(GI_OS_MMAP);
    if (err != 0) {
        errno = err;
        return MAP_FAILED;
    }
    return mmap(addr, bytes, prot, flags, fd, (off_t)off);
}

/* Ranges of a huge page and more begin at a huge page's boundary, so that the kernel may use one.
 */
int gi_os_reserve(size_t bytes, void **addr)
{
    size_t slack = bytes >= HUGE_BYTES ? HUGE_BYTES : 0;
    if (bytes == 0 || bytes + slack < bytes)
        return -EINVAL;
    char *p =
        map(NULL, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    size_t head = slack != 0 ? -(uintptr_t)p & (slack - 1) : 0;
    if (head != 0)
        munmap(p, head);
    if (slack - head != 0) {
        size_t page = gi_os_page_size(), end = (head + bytes + page - 1) & ~(page - 1);
        if (end < bytes + slack)
            munmap(p + end, bytes + slack - end);
    }
    *addr = p + head;
    return 0;
}

int gi_os_map_shared(void *addr, int fd, uint64_t off, size_t bytes)
{
    if (addr == NULL)
        return -EINVAL;
    void *p = map(addr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, off);
    return p == MAP_FAILED ? -errno : 0;
}

int gi_os_unreserve(void *addr, size_t bytes)
{
    return munmap(addr, bytes) != 0 ? -errno : 0;
}

int gi_os_protect_none(void *addr, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap(addr, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED ? -errno : 0;
}
