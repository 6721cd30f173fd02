/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is proposed as a candidate, and which teams follow from what was proven. */
#include <stdlib.h>
#include <string.h>
#include "transport/shm/shm_int.h"

static int compare(const void *a, const void *b)
{
    const struct gi_shm_pair *x = a, *y = b;
    for (int i = 0; i < 4; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

void gi_shm_sort_pairs(struct gi_shm_pair *pairs, int n)
{
    qsort(pairs, (size_t)n, sizeof(*pairs), compare);
}

int gi_shm_propose(const struct gi_shm_rank *ranks, const struct gi_shm_hello *hello, int size,
                   struct gi_shm_pair *pairs, int *group)
{
    for (int r = 0; r < size; r++) {
        uint64_t alone = hello[r].lsa ? 0 : (uint64_t)r + 1;
        pairs[r] =
            (struct gi_shm_pair){{ranks[r].host, hello[r].space[0], hello[r].space[1], alone}, r};
    }
    gi_shm_sort_pairs(pairs, size);
    /* First every rank's first companion, then numbers: a companion is never behind its rank. */
    for (int i = 0, first = 0; i < size; i++) {
        if (memcmp(pairs[i].key, pairs[first].key, sizeof(pairs[i].key)) != 0)
            first = i;
        group[pairs[i].rank] = pairs[first].rank;
    }
    int n = 0;
    for (int r = 0; r < size; r++)
        group[r] = group[r] == r ? n++ : group[group[r]];
    return n;
}

static bool sees(const uint64_t *seen, int i)
{
    return (seen[i / 64] >> (i % 64) & 1) != 0;
}

/* Teams of one group, numbered from 0: local[place]. refused is scratch, a flag per team. */
static void split_group(const int *members, int n, const uint64_t *seen, int words, int *local,
                        int *refused)
{
    int teams = 0;
    for (int i = 0; i < n; i++) {
        const uint64_t *mine = seen + (size_t)members[i] * (size_t)words;
        int t = 0;
        memset(refused, 0, (size_t)teams * sizeof(*refused));
        for (int k = 0; k < i; k++)
            if (!sees(mine, k) || !sees(seen + (size_t)members[k] * (size_t)words, i))
                refused[local[k]] = 1;
        while (t < teams && refused[t])
            t++;
        local[i] = t;
        teams += t == teams;
    }
}

/*
 * Members of a group are chained through index[] and walked into scratch; team[] holds the local
 * numbers until the last pass gives those of the world.
 */
int gi_shm_partition(const int *group, int n_groups, int size, const uint64_t *seen, int words,
                     int *team, int *index, int *scratch)
{
    int *head = scratch, *members = scratch + size, *local = scratch + 2 * size;
    int *refused = scratch + 3 * size, *first = scratch + 4 * size;
    for (int g = 0; g < n_groups; g++)
        head[g] = -1;
    for (int r = size - 1; r >= 0; r--) {
        index[r] = head[group[r]];
        head[group[r]] = r;
    }
    for (int g = 0; g < n_groups; g++) {
        int n = 0;
        for (int r = head[g]; r >= 0; r = index[r])
            members[n++] = r;
        split_group(members, n, seen, words, local, refused);
        /* As a team's name until all are known: its first rank. */
        for (int i = 0; i < n; i++)
            first[i] = -1;
        for (int i = 0; i < n; i++) {
            if (first[local[i]] < 0)
                first[local[i]] = members[i];
            team[members[i]] = first[local[i]];
        }
    }
    int n_teams = 0;
    int *count = refused;
    for (int r = 0; r < size; r++) {
        if (team[r] == r) {
            count[n_teams] = 0;
            team[r] = n_teams++;
        } else {
            team[r] = team[team[r]];
        }
        index[r] = count[team[r]]++;
    }
    return n_teams;
}
