/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sentences of the status codes. The thread's last error is kept in log.c. */
#include <ginshmem/status.h>

static const struct {
    int status;
    const char *name, *sentence;
} rows[] = {
    {GIN_OK, "GIN_OK", "success"},
    {GIN_EAGAIN, "GIN_EAGAIN", "not possible now, the same call may succeed later"},
    {GIN_EINVAL, "GIN_EINVAL", "an argument has no meaning"},
    {GIN_ERANGE, "GIN_ERANGE", "an offset, id, rank or length lies outside its object"},
    {GIN_ENOTSUP, "GIN_ENOTSUP", "not possible here"},
    {GIN_ESTATE, "GIN_ESTATE", "the object is not in a state that allows this call"},
    {GIN_EMISMATCH, "GIN_EMISMATCH", "ranks passed different arguments to a collective call"},
    {GIN_ENOMEM, "GIN_ENOMEM", "memory, heap space or a table is exhausted"},
    {GIN_ESYS, "GIN_ESYS", "a system call or a library below failed"},
    {GIN_ETIMEDOUT, "GIN_ETIMEDOUT", "the deadline passed"},
    {GIN_EPEER, "GIN_EPEER", "a peer died or the communicator was aborted"},
    {GIN_ENET, "GIN_ENET", "the network failed"},
};
#define ROWS (int)(sizeof(rows) / sizeof(rows[0]))

const char *gin_status_name(int status)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].status == status)
            return rows[i].name;
    return "GIN_E?";
}

const char *gin_strerror(int status)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].status == status)
            return rows[i].sentence;
    return "a number that is no status of this library";
}
