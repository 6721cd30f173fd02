/* SPDX-License-Identifier: BSD-3-Clause */
/* What launchers say in environment variables: ranks, sizes, and lists of ranks for messages. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "boot/boot_impl.h"

bool gi_boot_env_int(const char *name, int min, int max, int *value)
{
    const char *text = gi_env_foreign(name);
    uint64_t v;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return false;
    v = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || v > INT_MAX)
            return false;
        v = v * 10 + (uint64_t)(*p - '0');
    }
    if (v > INT_MAX || (int)v < min || (int)v > max)
        return false;
    *value = (int)v;
    return true;
}

static bool pair(const char *rank_name, const char *size_name, int *rank, int *size)
{
    int r, n;

    if (!gi_boot_env_int(size_name, 1, INT_MAX, &n) || !gi_boot_env_int(rank_name, 0, n - 1, &r))
        return false;
    *rank = r;
    *size = n;
    return true;
}

/* Most particular first: a launcher inside another's allocation inherits the outer's variables. */
static const struct {
    const char *rank, *size;
} rank_vars[] = {
    {"PMI_RANK", "PMI_SIZE"},         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"RANK", "WORLD_SIZE"},           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

bool gi_boot_env_rank(const struct gi_env *env, int *rank, int *size, const char **from)
{
    if (env->set.rank && env->set.size && env->rank < env->size) {
        *rank = (int)env->rank;
        *size = (int)env->size;
        *from = "GINSHMEM_RANK";
        return true;
    }
    for (size_t i = 0; i < sizeof(rank_vars) / sizeof(rank_vars[0]); i++)
        if (pair(rank_vars[i].rank, rank_vars[i].size, rank, size)) {
            *from = rank_vars[i].rank;
            return true;
        }
    return false;
}

void gi_boot_env_local(int *local_rank, int *local_size)
{
    *local_rank = *local_size = -1;
    if (pair("MPI_LOCALRANKID", "MPI_LOCALNRANKS", local_rank, local_size) ||
        pair("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", local_rank, local_size) ||
        pair("LOCAL_RANK", "LOCAL_WORLD_SIZE", local_rank, local_size))
        return;
    gi_boot_env_int("SLURM_LOCALID", 0, INT_MAX, local_rank);
}

/* Close the open range. A list too long for the buffer ends in "..."; n tells how many there are.
 */
static void flush(struct gi_rank_list *list)
{
    size_t room = sizeof(list->text) - list->used;
    char range[40];
    int n;

    if (list->first == list->last)
        n = snprintf(range, sizeof(range), "%s%d", list->shown ? ", " : "", list->first);
    else
        n = snprintf(range, sizeof(range), "%s%d%s%d", list->shown ? ", " : "", list->first,
                     list->last == list->first + 1 ? ", " : "-", list->last);
    if ((size_t)n + sizeof(", ...") > room) {
        if (list->shown >= 0)
            snprintf(list->text + list->used, room, ", ...");
        list->used += strlen(list->text + list->used);
        list->shown = -1;
    }
    if (list->shown < 0)
        return;
    memcpy(list->text + list->used, range, (size_t)n + 1);
    list->used += (size_t)n;
    list->shown++;
}

void gi_rank_list_add(struct gi_rank_list *list, int rank)
{
    if (list->n++ == 0) {
        list->first = list->last = rank;
    } else if (rank == list->last + 1) {
        list->last = rank;
    } else {
        flush(list);
        list->first = list->last = rank;
    }
}

const char *gi_rank_list_text(struct gi_rank_list *list)
{
    if (list->n == 0)
        return "no rank";
    flush(list);
    return list->text;
}
