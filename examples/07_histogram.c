/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histogram of a text file by atomics: usage: 07_histogram [FILE]; default: COPYING.
 *
 * Each rank counts its part of the file. The bins lie spread over the ranks, bin b on rank
 * b % size; atomic adds of many ranks to one bin lose nothing. Rank 0 compares with its own count
 * of the whole file.
 */
#include <ctype.h>
#include <string.h>
#include "example.h"

#define BYTE_BINS 256
#define WORD_BINS 4096 /* words by a hash of their letters */
#define BINS      (BYTE_BINS + WORD_BINS)

static char *read_file(const char *name, size_t *bytes)
{
    FILE *f = fopen(name, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0) {
        fprintf(stderr, "cannot read %s: give a text file as argument\n", name);
        exit(1);
    }
    long n = ftell(f);
    char *text = malloc((size_t)n + 1);
    rewind(f);
    *bytes = fread(text, 1, (size_t)n, f);
    text[*bytes] = 0;
    fclose(f);
    return text;
}

static int is_letter(const char *text, size_t bytes, size_t i)
{
    return i < bytes && isalpha((unsigned char)text[i]);
}

/* Calls add(arg, bin) for each byte, and each word that begins, in [from, to). */
static void count(const char *text, size_t bytes, size_t from, size_t to,
                  void (*add)(void *arg, unsigned bin), void *arg)
{
    for (size_t i = from; i < to; i++) {
        add(arg, (unsigned char)text[i]);
        if (!is_letter(text, bytes, i) || (i > 0 && is_letter(text, bytes, i - 1)))
            continue;
        uint32_t hash = 2166136261u;
        for (size_t k = i; is_letter(text, bytes, k); k++)
            hash = (hash ^ (uint32_t)tolower((unsigned char)text[k])) * 16777619u;
        add(arg, BYTE_BINS + hash % WORD_BINS);
    }
}

struct bins {
    gin_t g;
    gin_at_t at; /* of this rank's share; the same place on every rank */
    int size;
};

/* begin histogram */
static void add_remote(void *arg, unsigned bin)
{
    struct bins *b = arg;
    gin_at_t at = gin_at(b->at.win, b->at.off + bin / (unsigned)b->size * sizeof(uint64_t));
    CHECK(
        gin_amo_add(&b->g, gin_thread(), gin_world(&b->g), (int)(bin % (unsigned)b->size), at, 1));
}
/* end histogram */

static void add_local(void *arg, unsigned bin)
{
    ((uint64_t *)arg)[bin]++;
}

int main(int argc, char **argv)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    struct bins b;
    int ok = 1;
    size_t bytes;
    char *text = read_file(argc > 1 ? argv[1] : "COPYING", &bytes), line[120];
    CHECK(gin_init(NULL, &comm));
    size_t rank = (size_t)gin_rank(comm), size = (size_t)gin_size(comm);
    size_t each = BINS / size + 1;
    uint64_t *share = CHECK_PTR(gin_calloc(comm, each, sizeof(*share)));
    CHECK(gin_devcomm_create(comm, NULL, &dev)); /* also divides the zeroing from the adds */
    CHECK(gin_open(&dev, 0, &b.g));
    b.at = gin_at_ptr(&b.g, share);
    b.size = (int)size;

    count(text, bytes, bytes * rank / size, bytes * (rank + 1) / size, add_remote, &b);
    /* The adds of all ranks are complete behind it. */
    CHECK(
        gin_barrier(&b.g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));

    uint64_t *serial = calloc(BINS, sizeof(*serial)), words = 0, sum = 0;
    uint64_t *all = calloc(size * each, sizeof(*all)); /* the shares one after the other */
    count(text, bytes, 0, bytes, add_local, serial);
    for (size_t r = 0; rank == 0 && r < size; r++)
        CHECK(gin_get(&b.g, gin_thread(), gin_world(&b.g), (int)r, b.at,
                      gin_at_local(all + r * each), each * sizeof(*all)));
    CHECK(gin_flush(&b.g, gin_thread()));
    for (unsigned bin = 0; rank == 0 && bin < BINS; bin++) {
        uint64_t n = all[bin % size * each + bin / size];
        ok = ok && n == serial[bin];
        sum += bin < BYTE_BINS ? n : 0;
        words += bin < BYTE_BINS ? 0 : n;
    }
    ok = ok && (rank != 0 || sum == bytes);
    snprintf(line, sizeof(line), "histogram: %zu bytes, %llu words", bytes,
             (unsigned long long)words);
    show_paths(comm);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, share));
    free(all);
    free(serial);
    free(text);
    return finish(comm, ok, line);
}
