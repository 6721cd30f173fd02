/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory objects, address ranges and mappings. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/os.h"
#include "base/os_inject.h"

#define HUGE_BYTES  ((size_t)2 << 20)
#define RANGE_ALIGN ((size_t)1 << 30)

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

int gi_os_shrink(int fd, uint64_t to)
{
    int r;

    do
        r = ftruncate(fd, (off_t)to);
    while (r != 0 && errno == EINTR);
    return r != 0 ? -errno : 0;
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

/*
 * A range begins at a multiple of the largest power of two up to it, at most 1 GiB: offsets then
 * keep their alignment, and the kernel may use huge pages. Where addresses are short (RLIMIT_AS)
 * the boundary of a huge page has to do.
 */
int gi_os_reserve(size_t bytes, void **addr)
{
    size_t align = RANGE_ALIGN, page = gi_os_page_size(), head, end;
    int err = gi_os_injected(GI_OS_MMAP);
    char *p;
    if (bytes == 0 || bytes + RANGE_ALIGN < bytes)
        return -EINVAL;
    if (err != 0)
        return -err;
    while (align > bytes && align > page)
        align /= 2;
    for (;; align = HUGE_BYTES) {
        p = mmap(NULL, bytes + (align > page ? align : 0), PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED)
            break;
        if (errno != ENOMEM || align <= HUGE_BYTES)
            return -errno;
    }
    *addr = p;
    if (align <= page)
        return 0;
    head = -(uintptr_t)p & (align - 1);
    if (head != 0)
        munmap(p, head);
    end = (head + bytes + page - 1) & ~(page - 1);
    if (end < bytes + align)
        munmap(p + end, bytes + align - end);
    *addr = p + head;
    return 0;
}

/* MAP_NORESERVE: the length may exceed the object, and huge pages would be set aside for all of it.
 */
int gi_os_map_shared(void *addr, int fd, uint64_t off, size_t bytes)
{
    int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (addr == NULL)
        return -EINVAL;
    void *p = map(addr, bytes, PROT_READ | PROT_WRITE, flags, fd, off);
    return p == MAP_FAILED ? -errno : 0;
}

int gi_os_unreserve(void *addr, size_t bytes)
{
    return munmap(addr, bytes) != 0 ? -errno : 0;
}

void *gi_os_map_private(size_t bytes)
{
    void *p = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (madvise(p, bytes, MADV_WIPEONFORK) != 0) {
        munmap(p, bytes);
        return NULL;
    }
    return p;
}

void gi_os_unmap(void *addr, size_t bytes)
{
    munmap(addr, bytes);
}

bool gi_os_is_mapped(uint64_t addr)
{
    size_t page = gi_os_page_size();
    unsigned char resident;
    return mincore((void *)(uintptr_t)(addr & ~(uint64_t)(page - 1)), page, &resident) == 0 ||
           errno != ENOMEM;
}

uint64_t gi_os_address_limit(void)
{
    struct rlimit l;
    return getrlimit(RLIMIT_AS, &l) != 0 || l.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                        : (uint64_t)l.rlim_cur;
}

int gi_os_file_id(int fd, uint64_t id[2], uint64_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    id[0] = (uint64_t)st.st_dev;
    id[1] = (uint64_t)st.st_ino;
    *size = (uint64_t)st.st_size;
    return 0;
}
