/* SPDX-License-Identifier: BSD-3-Clause */
/* Which provider, asked for by name and by a ladder of hints. Opens nothing. */
#ifndef GI_OFI_FIND_H
#define GI_OFI_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>

/* What is wanted; zeros ask for the best of the library's own list. */
struct gi_ofi_want {
    const char *provider; /* as GINSHMEM_PROVIDER has it: one name, of a provider or of
                           * what a layer makes usable; NULL or "": own list */
    const char *nic;      /* domain (network interface, device); NULL or "": any */
    int ranks;            /* of the job; sizes tables. 0: not known */
    bool hmem;            /* GPU memory, if the provider can */
    bool atomics;         /* also those that the target's CPU applies, where they cost no order */
    /* Where no provider is named: what to choose from, NULL behind the last; NULL: own list. */
    const char *const *names;
};

/* What was asked and granted: the rung of the ladder. */
struct gi_ofi_rung {
    bool order, behind, atomic, source, hmem; /* behind: messages, too */
};

struct gi_ofi_pick {
    struct fi_info *info; /* one entry; give back with gi_ofi_unpick() */
    struct gi_ofi_rung rung;
    const char *name;    /* as it was asked for */
    bool named;          /* the user named it */
    char rung_text[160]; /* what had to be left out of the hints to get it; empty: nothing */
    char text[200];      /* "net, domain eth0, RDM, version 117.0" */
};

/* Why names were not taken, for people: "cxi: no device; efa: ..."; the devices seen. */
struct gi_ofi_tried {
    char text[600];
    char devices[200];
};
void gi_ofi_tried(struct gi_ofi_tried *t, const char *name, const char *why);

/*
 * GIN_OK and *pick with the first that is had, from the *at-th name on; *at is behind it then, so
 * that one that turns out to be of no use can be passed over by calling again. Otherwise
 * GIN_ENOTSUP with a text that says for every name in *tried why it was not had.
 */
int gi_ofi_pick(const struct gi_ofi_want *want, size_t *at, struct gi_ofi_tried *tried,
                struct gi_ofi_pick *pick);
void gi_ofi_unpick(struct gi_ofi_pick *pick);
/* All that has the endpoints of a pick, to be given back with fi_freeinfo(); or NULL. */
struct fi_info *gi_ofi_like(const struct gi_ofi_pick *pick);
bool gi_ofi_is_like(const struct gi_ofi_pick *pick, const struct fi_info *info);

/* A name of the own list, best first for a job of so many ranks (0: not known); NULL behind the
 * last. */
const char *gi_ofi_own(size_t i, int ranks);

/* Both name the same layers, in any order; hooks (of FI_HOOK) do not count. */
bool gi_ofi_same_name(const char *a, const char *b);

/* Variables that libfabric must find before it is first asked. Once per process; later calls do
 * nothing. */
void gi_ofi_environment(int ranks);

/* What gi_ofi_environment() has set: "FI_UNIVERSE_SIZE=4 ..."; "" before or where all were set. */
const char *gi_ofi_environment_text(void);

/* The API version that is asked for: what both the headers and the library that runs know. */
uint32_t gi_ofi_api(void);

#endif
