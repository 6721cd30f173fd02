/* SPDX-License-Identifier: BSD-3-Clause */
/* gininfo(1): what was found, what is off and why. */
#include <getopt.h>
#include <string.h>
#include <ginshmem.h>
#include "lib/tools/gininfo.h"

static const char usage[] =
    "usage: gininfo [--check] [--env] [--job] [--json] [--help] [--version]\n"
    "Tell what the library finds on this machine, what is off, and why.\n"
    "  --check    try the requirements; exit status 1 when a required one fails\n"
    "  --env      variables with value, origin and default\n"
    "  --job      join the job (under a launcher, or alone) and ask its rank 0\n"
    "  --json     print as JSON\n"
    "Without --check, --env and --job: everything but the requirements and the job.\n";

enum { CHECK = 1, ENV = 2, JOB = 4, JSON = 8 };

/* What was asked for; -1: nothing to do but exit with *status. */
static int options(int argc, char **argv, int *status)
{
    static const struct option known[] = {
        {"check", no_argument, NULL, 'c'},
        {"env", no_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},
        {"job", no_argument, NULL, 'j'},
        {"json", no_argument, NULL, 's'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    static char name[] = "gininfo"; /* in getopt's messages, too, whatever runs this */
    int c, what = 0;
    *status = 0;
    if (argc > 0)
        argv[0] = name;
    while ((c = getopt_long(argc, argv, "hV", known, NULL)) != -1)
        switch (c) {
        case 'c': what |= CHECK; break;
        case 'e': what |= ENV; break;
        case 'j': what |= JOB; break;
        case 's': what |= JSON; break;
        case 'h': fputs(usage, stdout); return -1;
        case 'V':
            printf("gininfo (ginshmem) %d.%d.%d\n", GIN_VERSION_MAJOR, GIN_VERSION_MINOR,
                   GIN_VERSION_PATCH);
            return -1;
        default:
            fputs("gininfo: see gininfo --help\n", stderr);
            *status = 2;
            return -1;
        }
    if (optind < argc) {
        fprintf(stderr, "gininfo: what is \"%s\"? see gininfo --help\n", argv[optind]);
        *status = 2;
        return -1;
    }
    return what;
}

int main(int argc, char **argv)
{
    int status, rank = 0, what = options(argc, argv, &status);
    if (what < 0)
        return status;
    if ((what & (CHECK | ENV | JOB)) == 0) {
        info_library();
        info_network();
        info_rdma();
        info_machine();
        info_launchers();
        info_variables();
    }
    if (what & ENV)
        info_variables();
    if (what & CHECK && info_check() != 0)
        status = 1;
    if (what & JOB && info_job(&rank) != GIN_OK) {
        fprintf(stderr, "gininfo: %s\n", gin_last_error());
        status = 1;
    }
    if (rank == 0) {
        if ((what & JSON) == 0)
            info_print_text(stdout);
        else if (info_print_json(stdout) != 0)
            status = 1;
    }
    info_free();
    return fflush(stdout) != 0 ? 1 : status;
}
