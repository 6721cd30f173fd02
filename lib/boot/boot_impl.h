/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bootstraps share with the choice between them; not for other rooms. */
#ifndef GI_BOOT_BOOT_IMPL_H
#define GI_BOOT_BOOT_IMPL_H

#include <ginshmem/init.h>
#include "boot/boot.h"

struct pollfd;

/* Text of a failure that is kept for later calls. */
#define GI_BOOT_WHY 256

/* Rank numbers, gathered as ranges: "2, 5-7, 9". */
struct gi_rank_list {
    char text[160];
    size_t used;
    int n;                  /* ranks added */
    int first, last, shown; /* the open range; ranges printed */
};
void gi_rank_list_add(struct gi_rank_list *list, int rank); /* in ascending order */
const char *gi_rank_list_text(struct gi_rank_list *list);   /* "no rank" when empty */

/*
 * What launchers tell in the environment beside their bootstrap. Each returns true where something
 * is said; *from is the name of the variable.
 */
bool gi_boot_env_int(const char *name, int min, int max, int *value);
bool gi_boot_env_rank(const struct gi_env *env, int *rank, int *size, const char **from);
void gi_boot_env_local(int *local_rank, int *local_size);

/* Has it been asked to give up? b may be NULL: no. */
bool gi_boot_stopped(struct gi_boot *b);
/* gi_os_poll() that asks; -ECANCELED when so. */
int gi_boot_poll(struct gi_boot *b, struct pollfd *fds, unsigned n, uint64_t deadline);
#define GI_BOOT_ASK_NS 20000000u /* between two questions */

/* One per way of being started. All set *boot on success only and call gi_fail() otherwise. */
int gi_boot_self_open(struct gi_boot **boot);
int gi_boot_user_open(const struct gin_config *config, int rank, int size, struct gi_boot **boot);
int gi_boot_pmi1_open(uint64_t deadline, struct gi_boot **boot);
int gi_boot_pmi2_open(uint64_t deadline, struct gi_boot **boot);
int gi_boot_pmix_open(uint64_t deadline, struct gi_boot **boot);
int gi_boot_id_open(const struct gi_env *env, const struct gin_unique_id *id, int rank, int size,
                    uint64_t deadline, struct gi_boot **boot);
int gi_boot_root_open(const struct gi_env *env, uint64_t deadline, struct gi_boot **boot);
int gi_boot_torch_open(const struct gi_env *env, uint64_t deadline, struct gi_boot **boot);

/*
 * Whether the environment offers this one. *why says what was found or missing, for the text of a
 * refusal and for gininfo.
 */
bool gi_boot_pmi1_offered(const char **why);
bool gi_boot_pmi2_offered(const char **why);
bool gi_boot_pmix_offered(const char **why);
bool gi_boot_root_offered(const struct gi_env *env, const char **why);
bool gi_boot_torch_offered(const char **why);

#endif
