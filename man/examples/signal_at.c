/* SPDX-License-Identifier: BSD-3-Clause */
/* A flag in the receiver's own data. */
#include "frame.h"

/* begin mailbox */
struct mailbox {
    char text[56];
    uint64_t
        full; /* aligned to 8; peers set it, the owner resets it */
};

/* Post one text (the box must be empty); gin_set_at() is strong, so
 * it is there when the flag is seen. */
static int post(const gin_t *g, struct mailbox *box, int peer,
                const char *text)
{
    gin_team_t world = gin_world(g);
    if (strlen(text) >= sizeof(box->text))
        return GIN_ERANGE;
    int st = gin_put(g, gin_thread(), world, peer,
                     gin_at_ptr(g, box->text), gin_at_local(text),
                     strlen(text) + 1, gin_no_action());

    return st == GIN_OK
               ? gin_signal(g, gin_thread(), world, peer,
                            gin_set_at(gin_at_ptr(g, &box->full), 1))
               : st;
}

static int receive(const gin_t *g, struct mailbox *box, char *text)
{
    gin_at_t full = gin_at_ptr(g, &box->full);
    int st = gin_wait_signal_until_at(g, gin_thread(), full,
                                      GIN_CMP_EQ, 1, NULL);

    if (st != GIN_OK)
        return st;
    strcpy(text, box->text);
    return gin_reset_signal_at(g, full, NULL);
}
/* end mailbox */

int example(gin_comm_t *comm, const gin_t *g)
{
    int right = (gin_rank(comm) + 1) % gin_size(comm);
    int left = (gin_rank(comm) + gin_size(comm) - 1) % gin_size(comm);
    char out[56], in[56], expected[56];
    struct mailbox *box = gin_calloc(comm, 1, sizeof(*box));
    if (box == NULL)
        return gin_last_status();
    snprintf(out, sizeof(out), "from %d", gin_rank(comm));
    snprintf(expected, sizeof(expected), "from %d", left);
    int st = post(g, box, right, out);
    if (st == GIN_OK)
        st = receive(g, box, in);
    if (st == GIN_OK && strcmp(in, expected) != 0)
        st = GIN_ERANGE;
    int freed = gin_free(comm, box);
    return st != GIN_OK ? st : freed;
}
