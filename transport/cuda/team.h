/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of an LSA team that share this process, whom memory of the GPU reaches by the same
 * addresses; the one in the lowest slot acts for them.
 */
#ifndef GI_TRANSPORT_CUDA_TEAM_H
#define GI_TRANSPORT_CUDA_TEAM_H

#include <stdbool.h>
#include "transport/shm/shm.h"

static inline bool gi_cuda_in_process(const struct gi_shm_config *shm, const struct gi_shm *team,
                                      int slot)
{
    return shm->ranks[team->world_of[slot]].process == shm->ranks[shm->rank].process;
}

static inline int gi_cuda_leader(const struct gi_shm_config *shm, const struct gi_shm *team)
{
    int slot = 0;
    while (!gi_cuda_in_process(shm, team, slot))
        slot++;
    return slot;
}

#endif
