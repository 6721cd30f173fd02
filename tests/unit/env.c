/* SPDX-License-Identifier: BSD-3-Clause */
/* The grammar of the environment, the loading of the table, and near misses of names. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/env_parse.h"
#include "base/log.h"
#include "base/os.h"
#include "tests/pt.h"

#define NO UINT64_C(0xdeaddeaddeaddead) /* refused; the output keeps this */
#define K  UINT64_C(1024)
#define G  (K * K * K)
#define TI (K * K * K * K)
#define S  UINT64_C(1000000000)

struct row {
    enum gi_env_kind kind;
    const char *text;
    uint64_t value;
};

static const struct row grammar[] = {
    {GI_ENV_SIZE, "1g", G},
    {GI_ENV_SIZE, "1G", G},
    {GI_ENV_SIZE, "1GiB", G},
    {GI_ENV_SIZE, "1gib", G},
    {GI_ENV_SIZE, "1.5GB", 1500000000},
    {GI_ENV_SIZE, "1.5G", G + G / 2},
    {GI_ENV_SIZE, "0.5K", 512},
    {GI_ENV_SIZE, "0.1K", 102},
    {GI_ENV_SIZE, "1.000000000000000001T", TI},
    {GI_ENV_SIZE, "100kB", 100000},
    {GI_ENV_SIZE, "100KB", 100000},
    {GI_ENV_SIZE, "3MB", 3000000},
    {GI_ENV_SIZE, "2TB", 2000000000000},
    {GI_ENV_SIZE, "2T", 2 * TI},
    {GI_ENV_SIZE, "17", 17},
    {GI_ENV_SIZE, "17B", 17},
    {GI_ENV_SIZE, "0", 0},
    {GI_ENV_SIZE, "18446744073709551615", UINT64_MAX},
    {GI_ENV_SIZE, "16777215T", 16777215 * TI},
    {GI_ENV_SIZE, "0x10", NO},
    {GI_ENV_SIZE, "010", NO},
    {GI_ENV_SIZE, "00", NO},
    {GI_ENV_SIZE, " 8M", NO},
    {GI_ENV_SIZE, "8M ", NO},
    {GI_ENV_SIZE, "8 M", NO},
    {GI_ENV_SIZE, "8M\n", NO},
    {GI_ENV_SIZE, "-1", NO},
    {GI_ENV_SIZE, "+1", NO},
    {GI_ENV_SIZE, "-1G", NO},
    {GI_ENV_SIZE, "1e3", NO},
    {GI_ENV_SIZE, "1kk", NO},
    {GI_ENV_SIZE, "1KiBs", NO},
    {GI_ENV_SIZE, "1i", NO},
    {GI_ENV_SIZE, "20Mabc", NO},
    {GI_ENV_SIZE, "abc", NO},
    {GI_ENV_SIZE, "M", NO},
    {GI_ENV_SIZE, "", NO},
    {GI_ENV_SIZE, ".5G", NO},
    {GI_ENV_SIZE, "5.G", NO},
    {GI_ENV_SIZE, "1.5.5G", NO},
    {GI_ENV_SIZE, "1,5G", NO},
    {GI_ENV_SIZE, "0.5", NO},
    {GI_ENV_SIZE, "1.5B", NO},
    {GI_ENV_SIZE, "1.0", NO},
    {GI_ENV_SIZE, "1.0000000000000000001G", NO},
    {GI_ENV_SIZE, "18446744073709551616", NO},
    {GI_ENV_SIZE, "99999999999999999999999999", NO},
    {GI_ENV_SIZE, "16777216T", NO},
    {GI_ENV_SIZE, "18446744073709551615K", NO},
    {GI_ENV_SIZE, "1m\xc3\xa9", NO},
    {GI_ENV_COUNT, "0", 0},
    {GI_ENV_COUNT, "4096", 4096},
    {GI_ENV_COUNT, "1k", NO},
    {GI_ENV_COUNT, "1.5", NO},
    {GI_ENV_COUNT, "-1", NO},
    {GI_ENV_COUNT, "07", NO},
    {GI_ENV_COUNT, "", NO},
    {GI_ENV_TIME, "2", 2 * S},
    {GI_ENV_TIME, "2s", 2 * S},
    {GI_ENV_TIME, "1.5s", S + S / 2},
    {GI_ENV_TIME, "0.25", S / 4},
    {GI_ENV_TIME, "200ms", S / 5},
    {GI_ENV_TIME, "200MS", S / 5},
    {GI_ENV_TIME, "50us", 50000},
    {GI_ENV_TIME, "7ns", 7},
    {GI_ENV_TIME, "7.5ns", NO},
    {GI_ENV_TIME, "2m", NO},
    {GI_ENV_TIME, "2h", NO},
    {GI_ENV_TIME, "s", NO},
    {GI_ENV_TIME, "18446744073s", 18446744073 * S},
    {GI_ENV_TIME, "18446744074s", NO},
    {GI_ENV_TIME, "inf", NO},
    {GI_ENV_BOOL, "0", 0},
    {GI_ENV_BOOL, "no", 0},
    {GI_ENV_BOOL, "off", 0},
    {GI_ENV_BOOL, "FALSE", 0},
    {GI_ENV_BOOL, "1", 1},
    {GI_ENV_BOOL, "Yes", 1},
    {GI_ENV_BOOL, "on", 1},
    {GI_ENV_BOOL, "true", 1},
    {GI_ENV_BOOL, "2", NO},
    {GI_ENV_BOOL, "-1", NO},
    {GI_ENV_BOOL, "01", NO},
    {GI_ENV_BOOL, "y", NO},
    {GI_ENV_BOOL, "yes ", NO},
    {GI_ENV_BOOL, "", NO},
};

/* Nothing of the caller's surroundings. */
static void clear_all(void)
{
    const struct gi_env_row *rows;
    for (size_t n = gi_env_rows(&rows); n > 0; n--)
        unsetenv(rows[n - 1].name);
}

/* The first test, in a child: the warning comes once per process. */
TEST(a_near_miss_warns_once)
{
    char path[] = "env-warn-XXXXXX", text[2048];
    int fd = mkstemp(path);
    pid_t child = fork();
    if (child == 0) {
        struct gi_env env;
        clear_all();
        setenv("GINSHMEM_HEAPSIZE", "1G", 1);
        dup2(fd, STDERR_FILENO);
        int st = gi_env_load(&env);
        gi_env_release(&env);
        st |= gi_env_load(&env);
        _exit(st != GIN_OK);
    }
    int status;
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    EXPECT(gi_os_read_file(path, text, sizeof(text)) > 0);
    unlink(path);
    close(fd);
    EXPECT_EQ_INT(status, 0);
    EXPECT_HAS(text, "GINSHMEM_HEAPSIZE is not a variable of ginshmem; did you mean "
                     "GINSHMEM_HEAP_SIZE?");
    EXPECT(strstr(text, "did you") == NULL || strstr(strstr(text, "did you") + 1, "did") == NULL);
}

TEST(numbers)
{
    for (size_t i = 0; i < sizeof(grammar) / sizeof(grammar[0]); i++) {
        const struct row *r = &grammar[i];
        uint64_t v = NO;
        gin_clear_error();
        int st = gi_env_parse_number(r->kind, r->text, 0, UINT64_MAX, &v);
        if (v != r->value || st != (r->value == NO ? GIN_EINVAL : GIN_OK))
            FAIL("\"%s\" gives %d and %llu, not %llu", r->text, st, (unsigned long long)v,
                 (unsigned long long)r->value);
        if (r->value == NO) {
            EXPECT_HAS(gin_last_error(), r->text);
            EXPECT_HAS(gin_last_error(), "accepted: ");
        }
    }
}

TEST(limits)
{
    uint64_t v = 1;
    EXPECT_EQ_INT(gi_env_parse_number(GI_ENV_SIZE, "64K", 65536, 65536, &v), GIN_OK);
    EXPECT_EQ_U64(v, 65536);
    EXPECT_EQ_INT(gi_env_parse_number(GI_ENV_SIZE, "65535", 65536, INT64_MAX, &v), GIN_EINVAL);
    EXPECT_EQ_STR(gin_last_error(), "\"65535\" is too small; accepted: a size such as 4096, 64M, "
                                    "1.5G or 100kB, at least 64K");
    EXPECT_EQ_INT(gi_env_parse_number(GI_ENV_COUNT, "9", 1, 8, &v), GIN_EINVAL);
    EXPECT_EQ_STR(gin_last_error(), "\"9\" is too large; accepted: a whole number, from 1 to 8");
    EXPECT_EQ_INT(gi_env_parse_number(GI_ENV_TEXT, "9", 1, 8, &v), GIN_EINVAL);
    EXPECT_EQ_U64(v, 65536);
}

TEST(words)
{
    static const char help[] = "no|try|yes -- yes|maybe";
    EXPECT(gi_env_is_word(help, "no"));
    EXPECT(gi_env_is_word(help, "try"));
    EXPECT(gi_env_is_word(help, "yes"));
    EXPECT(!gi_env_is_word(help, "maybe"));
    EXPECT(!gi_env_is_word(help, "NO"));
    EXPECT(!gi_env_is_word(help, "n"));
    EXPECT(!gi_env_is_word(help, "not"));
    EXPECT(!gi_env_is_word(help, ""));
    EXPECT(!gi_env_is_word(help, "--"));
    EXPECT(!gi_env_is_word(help, "no|try"));
}

/* Every row of the table keeps its own rules. */
TEST(table_is_sound)
{
    const struct gi_env_row *rows;
    size_t n = gi_env_rows(&rows);
    for (size_t i = 0; i < n; i++) {
        uint64_t v;
        char accepts[200];
        const struct gi_env_row *r = &rows[i];
        pt_step("%s", r->name);
        EXPECT(strncmp(r->name, GI_ENV_PREFIX, strlen(GI_ENV_PREFIX)) == 0);
        EXPECT(strlen(r->help) > 10);
        EXPECT_EQ_PTR(gi_env_meant(r->name, rows, n), NULL);
        gi_env_accepts(r, accepts, sizeof(accepts));
        EXPECT(strlen(accepts) > 3 && strlen(accepts) < sizeof(accepts) - 1);
        if (r->kind == GI_ENV_WORD)
            EXPECT(gi_env_is_word(r->help, r->def));
        else if (r->kind != GI_ENV_TEXT && r->def[0] != 0)
            EXPECT_EQ_INT(gi_env_parse_number(r->kind, r->def, r->min, r->max, &v), GIN_OK);
        for (size_t j = 0; j < i; j++)
            EXPECT(strcmp(r->name, rows[j].name) != 0);
    }
}

static uint64_t default_of(const char *name)
{
    const struct gi_env_row *rows;
    uint64_t v = 0;
    for (size_t n = gi_env_rows(&rows); n > 0; n--)
        if (strcmp(rows[n - 1].name, name) == 0)
            EXPECT_EQ_PTR(gi_env_scan(rows[n - 1].kind, rows[n - 1].def, &v), NULL);
    return v;
}

TEST(load_defaults)
{
    struct gi_env env;
    clear_all();
    if (!EXPECT_EQ_INT(gi_env_load(&env), GIN_OK))
        return;
    EXPECT_EQ_STR(env.log, "warn");
    EXPECT_EQ_STR(env.log_file, "");
    EXPECT_EQ_U64(env.heap_size, default_of("GINSHMEM_HEAP_SIZE"));
    EXPECT_EQ_U64(env.wait_warn, 30 * S);
    EXPECT_EQ_U64(env.check, 0);
    EXPECT_EQ_U64(env.rank, 0);
    EXPECT(!env.set.rank && !env.set.log && !env.set.heap_size);
    gi_env_release(&env);
    gi_env_release(&env); /* harmless */
}

TEST(load_sets_the_level_of_the_log)
{
    struct gi_env env;
    clear_all();
    setenv("GINSHMEM_LOG", "debug", 1);
    EXPECT_EQ_INT(gi_env_load(&env), GIN_OK);
    EXPECT_EQ_INT(gi_log_level, GI_LOG_DEBUG);
    gi_env_release(&env);
    clear_all();
    EXPECT_EQ_INT(gi_env_load(&env), GIN_OK);
    EXPECT_EQ_INT(gi_log_level, GI_LOG_WARN);
    gi_env_release(&env);
}

TEST(load_values)
{
    struct gi_env env;
    clear_all();
    setenv("GINSHMEM_HEAP_SIZE", "1.5M", 1);
    setenv("GINSHMEM_HUGEPAGES", "try", 1);
    setenv("GINSHMEM_HOST_ID", " any thing=", 1);
    setenv("GINSHMEM_CHECK", "on", 1);
    setenv("GINSHMEM_RANK", "0", 1);
    setenv("GINSHMEM_SIZE", "", 1);
    if (!EXPECT_EQ_INT(gi_env_load(&env), GIN_OK))
        return;
    unsetenv("GINSHMEM_HOST_ID"); /* the struct owns its strings */
    EXPECT_EQ_U64(env.heap_size, 1536 * K);
    EXPECT_EQ_STR(env.hugepages, "try");
    EXPECT_EQ_STR(env.host_id, " any thing=");
    EXPECT_EQ_U64(env.check, 1);
    EXPECT(env.set.heap_size && env.set.hugepages && env.set.host_id && env.set.check);
    EXPECT(env.set.rank && !env.set.size);
    gi_env_release(&env);
    clear_all();
}

TEST(load_refuses_and_names)
{
    static const char *const bad[][3] = {
        {"GINSHMEM_HEAP_SIZE", "20Mabc", "a size such as"},
        {"GINSHMEM_HEAP_SIZE", "1", "at least 64K"},
        {"GINSHMEM_LOG", "loud", "one of error|warn|info|debug|trace"},
        {"GINSHMEM_CHECK", "2", "1, yes, on, true, 0, no, off or false"},
        {"GINSHMEM_INIT_TIMEOUT", "0s", "a time such as"},
        {"GINSHMEM_RANK", "-1", "a whole number, from 0 to 2147483647"},
        {"GINSHMEM_SPIN", "4000000000", "from 0 to 1000000000"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gi_env env, before;
        clear_all();
        memset(&env, 0x5a, sizeof(env));
        before = env;
        setenv(bad[i][0], bad[i][1], 1);
        EXPECT_EQ_INT(gi_env_load(&env), GIN_EINVAL);
        EXPECT_HAS(gin_last_error(), bad[i][0]);
        EXPECT_HAS(gin_last_error(), bad[i][1]);
        EXPECT_HAS(gin_last_error(), bad[i][2]);
        EXPECT(memcmp(&env, &before, sizeof(env)) == 0); /* outputs only on success */
    }
    clear_all();
}

TEST(distance)
{
    EXPECT_EQ_U64(gi_env_distance("", ""), 0);
    EXPECT_EQ_U64(gi_env_distance("HEAP", "heap"), 0);
    EXPECT_EQ_U64(gi_env_distance("HEAP", "HEPA"), 1);
    EXPECT_EQ_U64(gi_env_distance("HEAP", "HAP"), 1);
    EXPECT_EQ_U64(gi_env_distance("HEAP", "HEAPS"), 1);
    EXPECT_EQ_U64(gi_env_distance("", "HEAP"), 4);
    EXPECT_EQ_U64(gi_env_distance("kitten", "sitting"), 3);
    char longer[200];
    memset(longer, 'A', sizeof(longer));
    longer[199] = 0;
    EXPECT_EQ_U64(gi_env_distance(longer, "A"), UINT32_MAX);
}

TEST(near_misses)
{
    static const char *const pairs[][2] = {
        {"GINSHMEM_HEAPSIZE", "GINSHMEM_HEAP_SIZE"},
        {"GINSHMEM_HEAP_SIZ", "GINSHMEM_HEAP_SIZE"},
        {"GINSHMEM_HAEP_SIZE", "GINSHMEM_HEAP_SIZE"},
        {"GINSHMEM_heap_size", "GINSHMEM_HEAP_SIZE"},
        {"ginshmem_heap_size", "GINSHMEM_HEAP_SIZE"},
        {"GINSHM_HEAP_SIZE", "GINSHMEM_HEAP_SIZE"},
        {"GINSHEM_HEAP_SIZE", "GINSHMEM_HEAP_SIZE"},
        {"GINSMHEM_LOG", "GINSHMEM_LOG"},
        {"GIN_SHMEM_LOG", "GINSHMEM_LOG"},
        {"GINSHMEM_LOGS", "GINSHMEM_LOG"},
        {"GINSHMEM_INIT_TIME_OUT", "GINSHMEM_INIT_TIMEOUT"},
        {"GINSHMEM_HEAP_SIZE", NULL},
        {"GINSHMEM_SOMETHING_OF_MINE", NULL},
        {"GINSHMEM_", NULL},
        {"GINSHMEM", NULL},
        {"GIN_LOG_LEVEL", NULL},
        {"NVSHMEM_LOG", NULL},
        {"SHMEM_HEAP_SIZE", NULL},
        {"PATH", NULL},
        {"", NULL},
    };
    const struct gi_env_row *rows;
    size_t n = gi_env_rows(&rows);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        EXPECT_EQ_STR(gi_env_meant(pairs[i][0], rows, n), pairs[i][1]);
}
