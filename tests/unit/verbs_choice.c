/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of verbs' two ways a job takes: by its size, unless one is named. */
#include <string.h>
#include <ginshmem/status.h>
#include "tests/pt.h"
#include "transport/ofi/ofi_find.h"

/* The one of the two that comes first. */
static const char *first_own(int ranks)
{
    const char *name;
    for (size_t i = 0; (name = gi_ofi_own(i, ranks)) != NULL; i++)
        if (strncmp(name, "verbs", 5) == 0)
            return name;
    return "none";
}

TEST(of_itself)
{
    EXPECT_EQ_STR(first_own(1), "verbs-msg");
    EXPECT_EQ_STR(first_own(64), "verbs-msg");
    EXPECT_EQ_STR(first_own(65), "verbs;ofi_rxm");
    EXPECT_EQ_STR(first_own(0), "verbs;ofi_rxm");
}

/* What is asked for first, be it there or not, and how many were asked for. */
static void asks(const char *provider, int ranks, const char *first, size_t names)
{
    struct gi_ofi_want want = {.provider = provider, .ranks = ranks};
    struct gi_ofi_tried tried = {.text = ""};
    struct gi_ofi_pick pick = {.info = NULL};
    size_t at = 0, len = strlen(first);
    char name[64] = "";
    int st = gi_ofi_pick(&want, &at, &tried, &pick);
    if (st == GIN_OK) {
        EXPECT_EQ_STR(pick.name, first);
        gi_ofi_unpick(&pick);
        return;
    }
    EXPECT_EQ_INT(st, GIN_ENOTSUP);
    strncat(name, tried.text, len);
    EXPECT_EQ_STR(name, first);
    EXPECT(tried.text[len] == ':');
    EXPECT_EQ_INT(at, names);
}

TEST(as_it_is_named)
{
    asks("verbs", 2, "verbs-msg", 2);
    asks("verbs", 1000, "verbs;ofi_rxm", 2);
    asks("verbs-msg", 1000, "verbs-msg", 1);
    asks("verbs;ofi_rxm", 2, "verbs;ofi_rxm", 1);
}
