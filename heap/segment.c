/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the memory of a heap comes from, and what to say when it does not. The kernel kills rather
 * than refuses a process that takes more than there is, and sends a signal to one that exceeds its
 * file size limit; so both are looked at before every piece that is reserved.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "heap/segment.h"

#define PIECE_MIN ((uint64_t)1 << 20)
#define PIECE_MAX ((uint64_t)256 << 20)
#define SPARE     ((uint64_t)4 << 20) /* for what else the processes need */

typedef unsigned long long ull;

enum gi_hugepages gi_hugepages_of(const char *word)
{
    if (strcmp(word, "yes") == 0)
        return GI_HUGEPAGES_YES;
    return strcmp(word, "try") == 0 ? GI_HUGEPAGES_TRY : GI_HUGEPAGES_NO;
}

/* "64 MiB", "1000 bytes" */
static const char *size_text(char *buf, size_t n, uint64_t bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned u = 0;

    while (u < 6 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(buf, n, "%llu %s", (ull)bytes, unit[u]);
    return buf;
}

/*
 * Reserve [from, to) of the object. 0 or -errno; what was reserved before a failure is given back.
 * Where memory is out the kernel kills instead of refusing, and all ranks of a host reserve at the
 * same moment: each looks again before every piece, and the less there is the smaller the pieces.
 */
static int reserve(int fd, uint64_t from, uint64_t to, bool huge)
{
    uint64_t at = from;
    int r = 0;

    if (to > gi_os_file_limit())
        return -EFBIG;
    while (r == 0 && at < to) {
        uint64_t room = huge ? UINT64_MAX : gi_os_memory_free(), n = room / 64;

        n = n < PIECE_MIN ? PIECE_MIN : n > PIECE_MAX ? PIECE_MAX : n;
        n = to - at < n ? to - at : n;
        if (room < SPARE || to - at > room - SPARE)
            r = -ENOMEM;
        else
            r = gi_os_grow(fd, at, at + n);
        at += n;
    }
    if (r != 0 && from > 0)
        gi_os_shrink(fd, from);
    return r;
}

static bool is_shortage(int err)
{
    return err == -ENOSPC || err == -ENOMEM || err == -EFBIG || err == -EDQUOT;
}

static int huge_refused(uint64_t bytes, int err, bool growth)
{
    uint64_t page = 0, n_free = 0;

    gi_os_huge_pages(&page, &n_free);
    return gi_fail(is_shortage(err) ? GIN_ENOMEM : GIN_ENOTSUP,
                   "cannot reserve %llu bytes of huge pages%s: error %s; %llu bytes of them are "
                   "free (pages of %llu); raise /proc/sys/vm/nr_hugepages or set "
                   "GINSHMEM_HUGEPAGES=%s",
                   (ull)bytes, growth ? " to grow the heap" : "", gi_os_strerror(err), (ull)n_free,
                   (ull)page, growth ? "no" : "try");
}

static int refused(const struct gi_segment *s, uint64_t bytes, int err, bool growth)
{
    char limit[80] = "none";

    if (s->huge)
        return huge_refused(bytes, err, growth);
    if (!is_shortage(err))
        return gi_fail(GIN_ESYS, "cannot reserve %llu bytes for the heap: error %s", (ull)bytes,
                       gi_os_strerror(err));
    if (gi_os_file_limit() != UINT64_MAX)
        snprintf(limit, sizeof(limit), "%llu", (ull)gi_os_file_limit());
    return gi_fail(GIN_ENOMEM,
                   "cannot reserve %llu bytes for the heap, which has %llu: error %s; free memory "
                   "%llu of %llu bytes (the control group's where that is less), RLIMIT_FSIZE %s; "
                   "%s",
                   (ull)bytes, (ull)s->bytes, gi_os_strerror(err), (ull)gi_os_memory_free(),
                   (ull)gi_os_memory_total(), limit,
                   growth ? "allocate less, or grow by less with GINSHMEM_HEAP_CHUNK"
                          : "lower GINSHMEM_HEAP_SIZE");
}

uint64_t gi_segment_total(uint64_t control, uint64_t bytes, uint64_t granule)
{
    uint64_t total = control + bytes;

    return total + (granule - total % granule) % granule;
}

/* One attempt; 0 or -errno. */
static int back(struct gi_segment *s, bool huge, uint64_t total)
{
    int r, fd = gi_os_memfd("ginshmem", huge);

    if (fd < 0)
        return fd;
    r = reserve(fd, 0, total, huge);
    if (r != 0) {
        gi_os_close(fd);
        return r;
    }
    s->fd = fd;
    s->huge = huge;
    return 0;
}

/* free_huge: memory in huge pages that is free, where such were wanted; else "". */
static void describe(struct gi_segment *s, uint64_t page, const char *free_huge)
{
    char text[16];
    size_text(text, sizeof(text), page);
    if (s->huge)
        snprintf(s->backing, sizeof(s->backing), "%s huge pages", text);
    else
        snprintf(s->backing, sizeof(s->backing), "%s pages%s%s%s", text,
                 *free_huge ? "; huge pages: " : "", free_huge,
                 *free_huge ? " free, see /proc/sys/vm/nr_hugepages" : "");
}

int gi_segment_create(uint64_t control, uint64_t bytes, enum gi_hugepages wish,
                      struct gi_segment **seg)
{
    uint64_t page = gi_os_page_size(), huge_page = 0, n_free = 0, total;
    struct gi_segment *s;
    char why[16] = "";
    int r, st;

    if (bytes > UINT64_MAX / 4)
        return gi_fail(GIN_EINVAL,
                       "a heap of %llu bytes is more than any machine can address; set "
                       "GINSHMEM_HEAP_SIZE to what a rank needs",
                       (ull)bytes);
    if (control % page || bytes == 0)
        return gi_fail(GIN_EINVAL, "a heap of %llu bytes behind %llu", (ull)bytes, (ull)control);
    s = calloc(1, sizeof(*s));
    if (!s)
        return gi_fail(GIN_ENOMEM, "no memory for a segment");
    s->control = control;
    s->granule = page;
    if (wish != GI_HUGEPAGES_NO && gi_os_huge_pages(&huge_page, &n_free) && huge_page > page)
        s->granule = huge_page;
    total = gi_segment_total(control, bytes, s->granule);
    r = -ENOTSUP; /* for a kernel without huge pages */
    if (huge_page) {
        r = back(s, true, total);
        size_text(why, sizeof(why), n_free);
    }
    if (r != 0 && wish == GI_HUGEPAGES_YES) {
        st = huge_refused(total, r, false);
        goto free_segment;
    }
    if (r != 0) {
        r = back(s, false, total);
        if (r != 0) {
            st = refused(s, total, r, false);
            goto free_segment;
        }
    }
    s->bytes = total - control;
    describe(s, s->huge ? huge_page : page, why);
    *seg = s;
    return GIN_OK;
free_segment:
    free(s);
    return st;
}

int gi_segment_grow(struct gi_segment *s, uint64_t bytes)
{
    uint64_t total = gi_segment_total(s->control, bytes, s->granule), have = s->control + s->bytes;
    int r;

    if (total <= have)
        return GIN_OK;
    if (s->ops != NULL) {
        int st = s->ops->grow(s->arg, have, total);
        if (st == GIN_OK)
            s->bytes = total - s->control;
        return st;
    }
    r = reserve(s->fd, have, total, s->huge);
    if (r != 0)
        return refused(s, total - have, r, true);
    s->bytes = total - s->control;
    return GIN_OK;
}

void gi_segment_shrink(struct gi_segment *s, uint64_t bytes)
{
    if (s->ops != NULL && bytes < s->bytes) {
        s->ops->shrink(s->arg, s->control + bytes);
        s->bytes = bytes;
        return;
    }
    /* Where the kernel does not take them back they stay, reserved for the next growth. */
    if (bytes < s->bytes && gi_os_shrink(s->fd, s->control + bytes) == 0)
        s->bytes = bytes;
}

void gi_segment_close(struct gi_segment *s)
{
    if (!s)
        return;
    gi_os_close(s->fd);
    free(s);
}
