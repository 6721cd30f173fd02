/* SPDX-License-Identifier: BSD-3-Clause */
/* What a line of the log looks like and where it goes. Each case in a child: set-up is once. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/os.h"
#include "tests/pt.h"

/* Run fn with standard error in a file; its text, and its return value as the child's status. */
static int capture(int (*fn)(void), char *text, size_t n)
{
    char path[] = "log-test-XXXXXX";
    int fd = mkstemp(path), status = -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(fd, STDERR_FILENO);
        _exit(fn());
    }
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    EXPECT(gi_os_read_file(path, text, n) >= 0);
    close(fd);
    unlink(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int levels(void)
{
    int st = gi_log_setup("info", "", 0);
    gi_error("room", "first %d", 1);
    gi_log_set_rank(3);
    gi_warn("room", "second");
    gi_info("heap", "third");
    gi_debug("heap", "not printed");
    gi_log_level = GI_LOG_ERROR;
    gi_warn("heap", "nor this");
    return st;
}

TEST(lines_and_levels)
{
    char text[4096];
    EXPECT_EQ_INT(capture(levels, text, sizeof(text)), 0);
    EXPECT_EQ_STR(text, "ginshmem ERROR room: first 1\n"
                        "ginshmem[3] WARN room: second\n"
                        "ginshmem[3] INFO heap: third\n");
}

static int failures(void)
{
    gi_fail(GIN_ENOMEM, "not seen at level warn");
    gi_log_level = GI_LOG_INFO;
    gi_fail(GIN_ERANGE, "offset %d", 9);
    return 0;
}

TEST(failures_are_printed_at_info)
{
    char text[4096];
    EXPECT_EQ_INT(capture(failures, text, sizeof(text)), 0);
    EXPECT_EQ_STR(text, "ginshmem INFO fail: GIN_ERANGE: offset 9\n");
}

static int long_line(void)
{
    char longer[5000];
    memset(longer, 'y', sizeof(longer));
    longer[4999] = 0;
    gi_error(longer, "%s", longer);
    gi_error("room", "%s", longer);
    return 0;
}

TEST(long_lines_are_cut_and_end)
{
    char text[16384];
    EXPECT_EQ_INT(capture(long_line, text, sizeof(text)), 0);
    char *end = strchr(text, '\n');
    if (EXPECT(end != NULL)) {
        EXPECT_HAS(end, "\nginshmem ERROR room: yyy");
        EXPECT_EQ_INT(text[strlen(text) - 1], '\n');
    }
}

static int refused(void)
{
    if (gi_log_setup("loud", "", 0) != GIN_EINVAL || strstr(gin_last_error(), "loud") == NULL)
        return 1;
    if (gi_log_setup("warn", "x%q", 0) != GIN_EINVAL || strstr(gin_last_error(), "x%q") == NULL)
        return 2;
    if (gi_log_setup("warn", "x%", 0) != GIN_EINVAL)
        return 3;
    if (gi_log_setup("warn", "/no/such/folder/x", 0) != GIN_EINVAL ||
        strstr(gin_last_error(), "/no/such/folder/x: 2 (") == NULL)
        return 4;
    return 0;
}

TEST(bad_settings_are_refused)
{
    char text[4096];
    EXPECT_EQ_INT(capture(refused, text, sizeof(text)), 0);
    EXPECT_EQ_STR(text, "");
}

static int to_file(void)
{
    char path[64], text[256];
    int st = gi_log_setup("warn", "log-%%-%r-%p", 7);
    gi_log_set_rank(7);
    gi_warn("room", "in the file");
    gi_warn("room", "appended");
    snprintf(path, sizeof(path), "log-%%-7-%d", (int)getpid());
    if (gi_os_read_file(path, text, sizeof(text)) < 0)
        return 9;
    unlink(path);
    return st != 0 ||
           strcmp(text, "ginshmem[7] WARN room: in the file\nginshmem[7] WARN room: appended\n");
}

TEST(a_file_takes_the_lines)
{
    char text[4096];
    EXPECT_EQ_INT(capture(to_file, text, sizeof(text)), 0);
    EXPECT_EQ_STR(text, "");
}
