/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of PMI-1 and the letters of its values: what is read, what is refused. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "boot/boot_impl.h"
#include "boot/boot_sock.h"
#include "boot/pmi_wire.h"
#include "tests/pt.h"

static bool parse(const char *line, struct gi_pmi_msg *m)
{
    return gi_pmi_parse(line, strlen(line), m);
}

TEST(lines)
{
    static char big[GI_PMI_LINE_MAX + 8];

    EXPECT_EQ_INT(gi_pmi_line("", 0), 0);
    EXPECT_EQ_INT(gi_pmi_line(NULL, 0), 0);
    EXPECT_EQ_INT(gi_pmi_line("cmd=x", 5), 0);
    EXPECT_EQ_INT(gi_pmi_line("cmd=x\n", 6), 6);
    EXPECT_EQ_INT(gi_pmi_line("\n", 1), 1);
    EXPECT_EQ_INT(gi_pmi_line("a\nb\n", 4), 2);
    memset(big, 'a', sizeof(big));
    EXPECT_EQ_INT(gi_pmi_line(big, GI_PMI_LINE_MAX - 1), 0);
    EXPECT_EQ_INT(gi_pmi_line(big, GI_PMI_LINE_MAX), -1);
    big[GI_PMI_LINE_MAX - 1] = '\n';
    EXPECT_EQ_INT(gi_pmi_line(big, sizeof(big)), GI_PMI_LINE_MAX);
    big[GI_PMI_LINE_MAX - 1] = 'a';
    big[GI_PMI_LINE_MAX] = '\n';
    EXPECT_EQ_INT(gi_pmi_line(big, sizeof(big)), -1);
}

TEST(words)
{
    struct gi_pmi_msg m;
    char text[16];
    int v = 99;

    if (!EXPECT(parse("cmd=put kvsname=k_1 key=card-0 value=a=b=c \n", &m)))
        return;
    EXPECT_EQ_INT(m.n, 4);
    EXPECT_EQ_INT(m.stray, 0);
    EXPECT(gi_pmi_is(&m, "put"));
    EXPECT(!gi_pmi_is(&m, "pu"));
    EXPECT(!gi_pmi_is(&m, "putt"));
    EXPECT(gi_pmi_copy(&m, "value", text, sizeof(text)));
    EXPECT_EQ_STR(text, "a=b=c");
    EXPECT(gi_pmi_copy(&m, "key", text, 7));
    EXPECT_EQ_STR(text, "card-0");
    EXPECT(!gi_pmi_copy(&m, "key", text, 6));
    EXPECT_EQ_PTR(gi_pmi_find(&m, "kvs"), NULL);
    EXPECT(!gi_pmi_int(&m, "key", INT_MIN, INT_MAX, &v));
    EXPECT_EQ_INT(v, 99);
    EXPECT(parse("cmd=barrier_out", &m));
    EXPECT(parse("  cmd=x   rc=0", &m));
    EXPECT(parse("cmd=get_result rc=-1 msg=not found here", &m));
    EXPECT_EQ_INT(m.stray, 2);
    EXPECT(parse("cmd=put value=", &m));
    EXPECT(!gi_pmi_copy(&m, "value", text, sizeof(text)));
}

TEST(no_messages)
{
    struct gi_pmi_msg m;
    char many[512] = "cmd=x", long_line[GI_PMI_LINE_MAX + 2];

    EXPECT(!parse("", &m));
    EXPECT(!parse("\n", &m));
    EXPECT(!parse("   \n", &m));
    EXPECT(!parse("hello\n", &m));
    EXPECT(!parse("hello cmd=x\n", &m));
    EXPECT(!parse("key=1 cmd=x\n", &m));
    EXPECT(!parse("mcmd=spawn\n", &m));
    EXPECT(!parse("cmd=x =1\n", &m));
    EXPECT(!parse("cmd=x a=1 a=2\n", &m));
    EXPECT(!parse("cmd=x\ty=1\n", &m));
    EXPECT(!parse("cmd=x y=\x80\n", &m));
    EXPECT(!parse("cmd=x\ncmd=y\n", &m));
    EXPECT(!gi_pmi_parse("cmd=x\0y=1", 9, &m));
    for (int i = 0; i < GI_PMI_WORDS - 1; i++)
        sprintf(many + strlen(many), " k%d=v", i);
    EXPECT(parse(many, &m));
    EXPECT_EQ_INT(m.n, GI_PMI_WORDS);
    strcat(many, " last=v");
    EXPECT(!parse(many, &m));
    memset(long_line, 'a', sizeof(long_line));
    memcpy(long_line, "cmd=", 4);
    EXPECT(gi_pmi_parse(long_line, GI_PMI_LINE_MAX, &m));
    EXPECT(!gi_pmi_parse(long_line, GI_PMI_LINE_MAX + 1, &m));
}

TEST(numbers)
{
    static const struct {
        const char *text;
        bool ok;
        int value;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"7", true, 7},
        {"-1", true, -1},
        {"007", true, 7},
        {"2147483647", true, INT_MAX},
        {"2147483648", false, 0},
        {"-2147483648", true, INT_MIN},
        {"-2147483649", false, 0},
        {"99999999999", false, 0},
        {"999999999999", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {"1a", false, 0},
        {"0x1", false, 0},
        {"--1", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gi_pmi_msg m;
        char line[64];
        int v = 12345;
        snprintf(line, sizeof(line), "cmd=x n=%s", rows[i].text);
        EXPECT(parse(line, &m));
        EXPECT_EQ_INT(gi_pmi_int(&m, "n", INT_MIN, INT_MAX, &v), rows[i].ok);
        EXPECT_EQ_INT(v, rows[i].ok ? rows[i].value : 12345);
    }
    struct gi_pmi_msg m;
    int v;
    EXPECT(parse("cmd=x n=8", &m));
    EXPECT(!gi_pmi_int(&m, "n", 0, 7, &v));
    EXPECT(!gi_pmi_int(&m, "n", 9, 20, &v));
    EXPECT(gi_pmi_int(&m, "n", 8, 8, &v));
}

/* Every length, random bytes: there and back, with room to the byte and guards behind it. */
TEST(letters)
{
    uint64_t rng = PT_SEED;
    unsigned char in[600], out[601];
    char text[GI_PMI_ENCODED(600) + 1];

    for (size_t n = 0; n <= sizeof(in); n++) {
        size_t letters = GI_PMI_ENCODED(n);
        for (size_t i = 0; i < n; i++)
            in[i] = (unsigned char)pt_random(&rng);
        memset(text, '!', sizeof(text));
        memset(out, 0xee, sizeof(out));
        gi_pmi_encode(in, n, text);
        EXPECT_EQ_INT(text[letters], '!');
        for (size_t i = 0; i < letters; i++)
            EXPECT(text[i] > ' ' && text[i] < 127 && text[i] != '=' && text[i] != ';');
        EXPECT_EQ_INT(GI_PMI_DECODED(letters), n);
        if (!EXPECT_EQ_INT(gi_pmi_decode(text, letters, out, n), n))
            return;
        EXPECT(memcmp(in, out, n) == 0);
        EXPECT_EQ_INT(out[n], 0xee);
        if (n > 0)
            EXPECT_EQ_INT(gi_pmi_decode(text, letters, out, n - 1), -1);
    }
}

TEST(bad_letters)
{
    unsigned char out[8];

    EXPECT_EQ_INT(gi_pmi_decode("", 0, out, 8), 0);
    EXPECT_EQ_INT(gi_pmi_decode("A", 1, out, 8), -1);
    EXPECT_EQ_INT(gi_pmi_decode("AA", 2, out, 8), 1);
    EXPECT_EQ_INT(gi_pmi_decode("AB", 2, out, 8), -1); /* bits left over */
    EXPECT_EQ_INT(gi_pmi_decode("AAE", 3, out, 8), 2);
    EXPECT_EQ_INT(gi_pmi_decode("AAB", 3, out, 8), -1);
    EXPECT_EQ_INT(gi_pmi_decode("AAAAA", 5, out, 8), -1);
    EXPECT_EQ_INT(gi_pmi_decode("A A=", 4, out, 8), -1);
    EXPECT_EQ_INT(gi_pmi_decode("AA+/", 4, out, 8), -1);
    EXPECT_EQ_INT(gi_pmi_decode("____", 4, out, 8), 3);
    EXPECT_EQ_INT(out[0], 255);
}

TEST(addresses)
{
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {{"10.0.0.1:5000", "10.0.0.1", 5000},
                {"[::1]:1", "::1", 1},
                {"node7:65535", "node7", 65535},
                {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
                {"a:00080", "a", 80}};
    static const char *const bad[] = {
        "",     ":",      "a",     "a:",      ":1",    "a:0",     "a:65536",  "a:-1",
        "a:1x", "::1:80", "[]:80", "[::1:80", "[::1]", "[::1]80", "a:999999", "[::1]x:80"};
    char host[32];
    uint16_t port;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (!EXPECT(gi_addr_split(good[i].text, host, sizeof(host), &port)))
            continue;
        EXPECT_EQ_STR(host, good[i].host);
        EXPECT_EQ_INT(port, good[i].port);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (gi_addr_split(bad[i], host, sizeof(host), &port))
            FAIL("\"%s\" was accepted as an address", bad[i]);
    EXPECT(!gi_addr_split("12345:80", host, 5, &port));
    EXPECT(gi_addr_split("1234:80", host, 5, &port));
}

TEST(rank_lists)
{
    struct gi_rank_list none = {.n = 0}, some = {.n = 0}, many = {.n = 0};
    static const int ranks[] = {0, 2, 3, 7, 8, 9, 10, 1000};

    EXPECT_EQ_STR(gi_rank_list_text(&none), "no rank");
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
        gi_rank_list_add(&some, ranks[i]);
    EXPECT_EQ_STR(gi_rank_list_text(&some), "0, 2, 3, 7-10, 1000");
    for (int i = 0; i < 2000; i += 2)
        gi_rank_list_add(&many, i);
    EXPECT_EQ_INT(many.n, 1000);
    const char *text = gi_rank_list_text(&many);
    EXPECT(strlen(text) < sizeof(many.text));
    EXPECT_HAS(text, "0, 2, 4, ");
    EXPECT_HAS(text, ", ...");
}
