/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ranks tell each other that a step of theirs failed, and with which words: a report is the
 * first thing in what each rank shows the others.
 */
#ifndef GI_TRANSPORT_CUDA_REPORT_H
#define GI_TRANSPORT_CUDA_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "transport/shm/shm.h"

struct gi_cuda_report {
    int32_t status;
    uint32_t own; /* 1: it failed by itself, not because another one did */
    char text[184];
};

/* With the recorded text, if status is a failure. */
void gi_cuda_say(struct gi_cuda_report *report, int status, bool own);
/*
 * All ranks' records of `bytes` bytes, each with a report in front, in *all (the caller frees it,
 * also after a failure). One rank's failure is everybody's, with its text.
 */
int gi_cuda_hear(const struct gi_shm_config *config, const void *mine, size_t bytes, void **all);

#endif
