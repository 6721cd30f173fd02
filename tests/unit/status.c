/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, sentences and the thread's last error. */
#include <pthread.h>
#include <string.h>
#include "base/log.h"
#include "tests/pt.h"

static const int all[] = {GIN_OK,      GIN_EAGAIN, GIN_EINVAL,    GIN_ERANGE,
                          GIN_ENOTSUP, GIN_ESTATE, GIN_ENOMEM,    GIN_EMISMATCH,
                          GIN_ESYS,    GIN_EPEER,  GIN_ETIMEDOUT, GIN_ENET};
#define ALL (sizeof(all) / sizeof(all[0]))

TEST(names_differ_and_are_known)
{
    EXPECT_EQ_STR(gin_status_name(GIN_OK), "GIN_OK");
    EXPECT_EQ_STR(gin_status_name(GIN_EMISMATCH), "GIN_EMISMATCH");
    for (size_t i = 0; i < ALL; i++)
        for (size_t j = 0; j < i; j++) {
            EXPECT(strcmp(gin_status_name(all[i]), gin_status_name(all[j])) != 0);
            EXPECT(strcmp(gin_strerror(all[i]), gin_strerror(all[j])) != 0);
        }
}

TEST(any_number_has_a_text)
{
    for (int s = -300; s < 300; s++) {
        EXPECT(gin_status_name(s) != NULL && gin_status_name(s)[0] != 0);
        EXPECT(gin_strerror(s) != NULL && gin_strerror(s)[0] != 0);
    }
    EXPECT_EQ_STR(gin_status_name(1), "GIN_E?");
    EXPECT_EQ_STR(gin_status_name(INT32_MIN), "GIN_E?");
}

TEST(fail_keeps_status_and_text)
{
    gin_clear_error();
    EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    EXPECT_EQ_STR(gin_last_error(), "");
    EXPECT_EQ_INT(gi_fail(GIN_ERANGE, "rank %d is not below %d", 7, 4), GIN_ERANGE);
    EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
    EXPECT_EQ_STR(gin_last_error(), "rank 7 is not below 4");
    EXPECT_EQ_INT(gi_fail(GIN_OK, "nothing"), GIN_OK);
    EXPECT_EQ_STR(gin_last_error(), "rank 7 is not below 4");
    gi_set_last_status(GIN_OK);
    EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    gin_clear_error();
    EXPECT_EQ_STR(gin_last_error(), "");
}

TEST(fail_may_quote_the_last_text)
{
    gi_fail(GIN_ESYS, "mmap: no");
    gi_fail(GIN_ENOMEM, "%s, twice %s", gin_last_error(), gin_last_error());
    EXPECT_EQ_STR(gin_last_error(), "mmap: no, twice mmap: no");
    EXPECT_EQ_INT(gi_fail_context("heap of rank %d", 3), GIN_ENOMEM);
    EXPECT_EQ_STR(gin_last_error(), "heap of rank 3: mmap: no, twice mmap: no");
}

TEST(long_texts_are_cut)
{
    char longer[5000];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 0;
    gi_fail(GIN_EINVAL, "%s", longer);
    EXPECT(strlen(gin_last_error()) < sizeof(longer));
    EXPECT(gin_last_error()[0] == 'x');
    gi_fail_context("%s", longer);
    gi_fail_context("where");
    EXPECT_HAS(gin_last_error(), "where: xxx");
}

static void *other_thread(void *arg)
{
    (void)arg;
    EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    EXPECT_EQ_STR(gin_last_error(), "");
    gi_fail(GIN_ENET, "of the other thread");
    return NULL;
}

TEST(each_thread_has_its_own)
{
    pthread_t t;
    gi_fail(GIN_EPEER, "mine");
    EXPECT_EQ_INT(pthread_create(&t, NULL, other_thread, NULL), 0);
    pthread_join(t, NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EPEER);
    EXPECT_EQ_STR(gin_last_error(), "mine");
}
