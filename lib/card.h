/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of the first exchange: making and comparing it. */
#ifndef GI_CARD_H
#define GI_CARD_H

#include <unistd.h>

#include "comm.h"

/* My card, from environment and config. */
int gi_card_make(const gin_comm_t *comm, const gin_config_t *config, struct gi_card *card);
/* Compare all; the same verdict on every rank. */
int gi_cards_check(const struct gi_card *cards, int size);

#endif
