/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a call goes. */
#ifndef GI_COLL_CHOOSE_H
#define GI_COLL_CHOOSE_H

#include "coll/coll.h"

/* What it costs to meet, ns: of a round of messages, of each of them, of 1024 bytes. */
struct gi_coll_cost {
    uint64_t near_wait, near_each, near_kib; /* by load and store */
    uint64_t far_wait, far_each, far_kib;    /* over the network */
    uint64_t fold_kib;                       /* of combining elements */
};

struct gi_coll_choice {
    enum gi_coll_way forced[GI_COLL_KINDS]; /* GI_COLL_AUTO: the cheapest */
    struct gi_coll_cost cost;
};

/* What the environment asks for, or a refusal that names the variable. */
int gi_coll_choice_read(const gin_comm_t *comm, struct gi_coll_choice *choice);
/* The way of a call that is resolved; or why the one asked for cannot be, on all members alike. */
int gi_coll_choose(const struct gi_coll_call *o, enum gi_coll_way *way);
const char *gi_coll_way_name(enum gi_coll_way way);

#endif
