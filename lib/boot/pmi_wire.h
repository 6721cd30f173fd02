/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI-1 wire protocol: text lines of "key=value" words parted by blanks, the first of which is
 * "cmd=…". Pure functions over buffers, shared by the client (boot_pmi1.c) and the server (ginrun);
 * nothing here reads, writes, allocates or trusts its input.
 */
#ifndef GI_BOOT_PMI_WIRE_H
#define GI_BOOT_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GI_PMI_KVSNAME_MAX 256
#define GI_PMI_KEY_MAX     64
#define GI_PMI_VALUE_MAX   1024
/* Longest line with its newline; longer ones are an error of the sender. */
#define GI_PMI_LINE_MAX 2048
#define GI_PMI_WORDS    16

/* Gets that may be under way at once, with a server that says it takes them. */
#define GI_PMI_WINDOW 32

struct gi_pmi_word {
    const char *key, *value;
    unsigned key_len, value_len;
};

/* A line taken apart; points into the line. */
struct gi_pmi_msg {
    unsigned n;
    unsigned stray; /* words without '='; some servers put blanks into their messages */
    struct gi_pmi_word word[GI_PMI_WORDS];
};

/* Length of the first line of buf with its newline; 0: none yet; -1: longer than a line may be. */
int gi_pmi_line(const char *buf, size_t n);

/*
 * Take apart one line (with or without its newline). False if it is none: a control character or
 * a byte above 126, no leading cmd=, an empty key, a key twice, too many words, too long.
 */
bool gi_pmi_parse(const char *line, size_t n, struct gi_pmi_msg *msg);

/* The word of that key, or NULL. */
const struct gi_pmi_word *gi_pmi_find(const struct gi_pmi_msg *msg, const char *key);
/* Whether the message's command is cmd. */
bool gi_pmi_is(const struct gi_pmi_msg *msg, const char *cmd);
/* The decimal number under key, in min..max; false if absent or not a number. */
bool gi_pmi_int(const struct gi_pmi_msg *msg, const char *key, int min, int max, int *value);
/* Copy the value of key as a string; false if absent, empty or longer than size - 1. */
bool gi_pmi_copy(const struct gi_pmi_msg *msg, const char *key, char *buf, size_t size);

/* Values hold no blank or newline, so bytes travel in 64 letters: A-Z a-z 0-9 - and _. */
#define GI_PMI_ENCODED(bytes) (((bytes)*4 + 2) / 3)
/* Bytes that fit into so many letters. */
#define GI_PMI_DECODED(letters) ((letters) / 4 * 3 + (letters) % 4 * 3 / 4)
/* out holds GI_PMI_ENCODED(n) letters, no terminator. */
void gi_pmi_encode(const void *in, size_t n, char *out);
/* Number of bytes in out, which holds cap; -1 if a letter is none, bits are left over, or cap is
 * small. */
int gi_pmi_decode(const char *in, size_t n, void *out, size_t cap);

#endif
