/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory objects: sizes, growth under a map, every way in which there may not be enough. */
#include <errno.h>
#include <fcntl.h>
#include <ginshmem/status.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/os.h"
#include "heap/segment.h"
#include "tests/pt.h"

#define CONTROL ((uint64_t)65536)
#define MiB     ((uint64_t)1 << 20)
#define GiB     ((uint64_t)1 << 30)

static uint64_t blocks(const struct gi_segment *s)
{
    struct stat st;

    return fstat(s->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static unsigned open_files(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TEST(pages_are_there_at_once)
{
    struct gi_segment *s = NULL;

    if (!EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB + 1, GI_HUGEPAGES_NO, &s), GIN_OK))
        return;
    EXPECT_EQ_U64(s->granule, gi_os_page_size());
    EXPECT_EQ_U64(s->bytes, MiB + gi_os_page_size());
    EXPECT_EQ_U64(blocks(s), CONTROL + s->bytes);
    EXPECT(!s->huge);
    EXPECT_HAS(s->backing, "KiB pages");
    gi_segment_close(s);
    gi_segment_close(NULL);
    EXPECT_EQ_INT(gi_segment_create(CONTROL, 0, GI_HUGEPAGES_NO, &s), GIN_EINVAL);
    EXPECT_EQ_INT(gi_segment_create(100, MiB, GI_HUGEPAGES_NO, &s), GIN_EINVAL);
    EXPECT_EQ_INT(gi_segment_create(CONTROL, UINT64_MAX, GI_HUGEPAGES_NO, &s), GIN_EINVAL);
}

/* Two maps made before the growth, longer than the object, both see the new pages. */
TEST(growth_appears_in_maps)
{
    struct gi_segment *s = NULL;
    char *map[2];

    if (!EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_OK))
        return;
    for (int i = 0; i < 2; i++) {
        map[i] = mmap(NULL, GiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
        if (!EXPECT(map[i] != MAP_FAILED))
            return;
    }
    memset(map[0], 1, CONTROL + MiB);
    EXPECT_EQ_INT(gi_segment_grow(s, MiB / 2), GIN_OK); /* there already */
    EXPECT_EQ_U64(s->bytes, MiB);
    EXPECT_EQ_INT(gi_segment_grow(s, 4 * MiB - 1), GIN_OK);
    EXPECT_EQ_U64(s->bytes, 4 * MiB);
    EXPECT_EQ_U64(blocks(s), CONTROL + 4 * MiB);
    memset(map[0] + CONTROL + MiB, 2, 3 * MiB);
    EXPECT_FILLED(map[1] + CONTROL, MiB, 1);
    EXPECT_FILLED(map[1] + CONTROL + MiB, 3 * MiB, 2);
    gi_segment_shrink(s, MiB);
    EXPECT_EQ_U64(s->bytes, MiB);
    EXPECT_EQ_U64(blocks(s), CONTROL + MiB);
    EXPECT_EQ_INT(gi_segment_grow(s, 2 * MiB), GIN_OK);
    EXPECT_FILLED(map[1] + CONTROL, MiB, 1);
    EXPECT_FILLED(map[1] + CONTROL + MiB, MiB, 0); /* new pages */
    for (int i = 0; i < 2; i++)
        munmap(map[i], GiB);
    gi_segment_close(s);
}

TEST(injected_shortage)
{
    static const int errors[] = {ENOSPC, ENOMEM, EDQUOT};
    unsigned files = open_files();
    struct gi_segment *s = NULL;

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        s = NULL;
        gi_os_inject(GI_OS_FALLOCATE, 1, 1, errors[i]);
        EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_ENOMEM);
        EXPECT(s == NULL);
        EXPECT_HAS(gin_last_error(), "1114112 bytes");
        EXPECT_HAS(gin_last_error(), strerror(errors[i]));
        EXPECT_HAS(gin_last_error(), "free memory");
        EXPECT_HAS(gin_last_error(), "RLIMIT_FSIZE");
        EXPECT_HAS(gin_last_error(), "GINSHMEM_HEAP_SIZE");
    }
    gi_os_inject(GI_OS_FALLOCATE, 1, 1, EIO);
    EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_ESYS);
    gi_os_inject(GI_OS_MEMFD, 1, 1, EMFILE);
    EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_ESYS);
    EXPECT_HAS(gin_last_error(), "Too many open files");
    gi_os_inject(GI_OS_MEMFD, 0, 0, 0);
    EXPECT_EQ_INT(open_files(), files);

    if (!EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_OK))
        return;
    /* the second piece fails: the first is given back */
    gi_os_inject(GI_OS_FALLOCATE, 2, 1, ENOSPC);
    EXPECT_EQ_INT(gi_segment_grow(s, 300 * MiB), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "GINSHMEM_HEAP_CHUNK");
    EXPECT_HAS(gin_last_error(), "which has 1048576");
    gi_os_inject(GI_OS_FALLOCATE, 0, 0, 0);
    EXPECT_EQ_U64(s->bytes, MiB);
    EXPECT_EQ_U64(blocks(s), CONTROL + MiB);
    EXPECT_EQ_INT(gi_segment_grow(s, 2 * MiB), GIN_OK);
    gi_segment_close(s);
    EXPECT_EQ_INT(open_files(), files);
}

/* More than the machine has: a status, not a killed process. */
TEST(real_shortage)
{
    struct gi_segment *s = NULL;
    uint64_t too_much = 2 * gi_os_memory_total();

    EXPECT_EQ_INT(gi_segment_create(CONTROL, too_much, GI_HUGEPAGES_NO, &s), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "free memory");
    if (!EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_OK))
        return;
    EXPECT_EQ_INT(gi_segment_grow(s, too_much), GIN_ENOMEM);
    EXPECT_EQ_U64(blocks(s), CONTROL + MiB);
    gi_segment_close(s);
}

/* The kernel would send SIGXFSZ, whose default is to kill. */
TEST(file_size_limit)
{
    struct rlimit old, low;
    struct gi_segment *s = NULL;

    signal(SIGXFSZ, SIG_DFL);
    if (getrlimit(RLIMIT_FSIZE, &old) != 0)
        SKIP("no RLIMIT_FSIZE");
    low = old;
    low.rlim_cur = 2 * MiB;
    if (setrlimit(RLIMIT_FSIZE, &low) != 0)
        SKIP("RLIMIT_FSIZE cannot be set");
    EXPECT_EQ_INT(gi_segment_create(CONTROL, 2 * MiB, GI_HUGEPAGES_NO, &s), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "RLIMIT_FSIZE 2097152");
    if (EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_NO, &s), GIN_OK)) {
        EXPECT_EQ_INT(gi_segment_grow(s, 2 * MiB), GIN_ENOMEM);
        EXPECT_HAS(gin_last_error(), "RLIMIT_FSIZE 2097152");
        EXPECT_EQ_U64(s->bytes, MiB);
        gi_segment_close(s);
    }
    setrlimit(RLIMIT_FSIZE, &old);
}

TEST(huge_pages)
{
    struct gi_segment *s = NULL;
    uint64_t page = 0, free = 0;

    EXPECT_EQ_INT(gi_hugepages_of("no"), GI_HUGEPAGES_NO);
    EXPECT_EQ_INT(gi_hugepages_of("try"), GI_HUGEPAGES_TRY);
    EXPECT_EQ_INT(gi_hugepages_of("yes"), GI_HUGEPAGES_YES);
    if (!gi_os_huge_pages(&page, &free))
        SKIP("a kernel without huge pages");
    /* with and without any free, the size is the same */
    if (EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_TRY, &s), GIN_OK)) {
        EXPECT_EQ_U64(s->granule, page);
        EXPECT_EQ_U64((s->bytes + CONTROL) % page, 0);
        EXPECT_EQ_INT(s->huge, free >= page);
        EXPECT_HAS(s->backing, s->huge ? "huge pages" : "huge pages: 0 bytes free, see /proc");
        EXPECT(strlen(s->backing) < sizeof(s->backing) - 1);
        gi_segment_close(s);
    }
    gi_os_inject(GI_OS_FALLOCATE, 1, 1, ENOSPC);
    if (EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_TRY, &s), GIN_OK)) {
        EXPECT(!s->huge);
        gi_segment_close(s);
    }
    gi_os_inject(GI_OS_FALLOCATE, 1, 1, ENOSPC);
    EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_YES, &s), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "/proc/sys/vm/nr_hugepages");
    EXPECT_HAS(gin_last_error(), "GINSHMEM_HUGEPAGES=try");
    gi_os_inject(GI_OS_FALLOCATE, 0, 0, 0);
}

/* Real ones, where there are some: "echo 16 > /proc/sys/vm/nr_hugepages" makes them. */
TEST(huge_pages_had)
{
    struct gi_segment *s = NULL;
    uint64_t page = 0, free = 0, all;
    char *map;

    if (!gi_os_huge_pages(&page, &all) || all < 8 * page)
        SKIP("no 8 huge pages are free");
    if (EXPECT_EQ_INT(gi_segment_create(CONTROL, MiB, GI_HUGEPAGES_YES, &s), GIN_OK)) {
        EXPECT(s->huge);
        EXPECT_HAS(s->backing, "huge pages");
        map = mmap(NULL, all + 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd,
                   0);
        if (EXPECT(map != MAP_FAILED)) {
            EXPECT_EQ_INT(gi_segment_grow(s, 4 * page), GIN_OK);
            memset(map, 1, CONTROL + s->bytes);
            EXPECT_EQ_INT(gi_segment_grow(s, all + page), GIN_ENOMEM);
            EXPECT_HAS(gin_last_error(), "GINSHMEM_HUGEPAGES=no");
            gi_os_huge_pages(&page, &free);
            EXPECT_EQ_U64(free, all - CONTROL - s->bytes);
            gi_segment_shrink(s, 2 * page - CONTROL);
            gi_os_huge_pages(&page, &free);
            EXPECT_EQ_U64(free, all - 2 * page);
            EXPECT_EQ_INT(gi_segment_grow(s, 4 * page), GIN_OK);
            memset(map, 1, CONTROL + s->bytes);
            munmap(map, all + 8 * page);
        }
        gi_segment_close(s);
    }
}

TEST(cost)
{
    struct gi_segment *s = NULL;
    uint64_t began = gi_now_ns();

    if (!EXPECT_EQ_INT(gi_segment_create(CONTROL, 64 * MiB, GI_HUGEPAGES_NO, &s), GIN_OK))
        return;
    printf("64 MiB: %.1f ms\n", (double)(gi_now_ns() - began) * 1e-6);
    began = gi_now_ns();
    gi_os_memory_free();
    printf("asking for free memory: %.1f us\n", (double)(gi_now_ns() - began) * 1e-3);
    gi_segment_close(s);
}
