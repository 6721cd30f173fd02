/* SPDX-License-Identifier: BSD-3-Clause */
/* gininfo(1): what was found, what is off and why. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <ginshmem.h>
#include "lib/tools/gininfo.h"

static const char usage[] =
    "usage: gininfo [--check] [--env] [--job] [--probe [-v] [--rounds N]] [--json]\n"
    "       gininfo --help | --version\n"
    "Tell what the library finds on this machine, what is off, and why.\n"
    "  --check    try the requirements; exit status 1 when a required one fails\n"
    "  --env      variables with value, origin and default\n"
    "  --job      join the job (under a launcher, or alone) and ask its rank 0\n"
    "  --json     print as JSON\n"
    "  --probe    join the job and measure what operations cost between its ranks\n"
    "  --rounds N of the probe: so many samples of each, not what two seconds allow\n"
    "  -v, --verbose  of the probe: all pairs of ranks, however many\n"
    "Without --check, --env, --job and --probe: everything but these.\n";

enum { CHECK = 1, ENV = 2, JOB = 4, JSON = 8, PROBE = 16, VERBOSE = 32 };

static long rounds;

static int bad(const char *what, const char *text)
{
    fprintf(stderr, "gininfo: %s \"%s\"? see gininfo --help\n", what, text);
    return -1;
}

/* What was asked for; -1: nothing to do but exit with *status. */
static int options(int argc, char **argv, int *status)
{
    static const struct option known[] = {
        {"check", no_argument, NULL, 'c'},        {"env", no_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},         {"job", no_argument, NULL, 'j'},
        {"json", no_argument, NULL, 's'},         {"probe", no_argument, NULL, 'p'},
        {"rounds", required_argument, NULL, 'r'}, {"verbose", no_argument, NULL, 'v'},
        {"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0},
    };
    static char name[] = "gininfo"; /* in getopt's messages, too, whatever runs this */
    char *end;
    int c, what = 0;
    *status = 0;
    if (argc > 0)
        argv[0] = name;
    while ((c = getopt_long(argc, argv, "hvV", known, NULL)) != -1)
        switch (c) {
        case 'c': what |= CHECK; break;
        case 'e': what |= ENV; break;
        case 'j': what |= JOB; break;
        case 's': what |= JSON; break;
        case 'p': what |= PROBE; break;
        case 'v': what |= VERBOSE; break;
        case 'r':
            rounds = strtol(optarg, &end, 10);
            if (rounds < 1 || *end != 0)
                return *status = 2, bad("how many rounds is", optarg);
            break;
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
    if (optind < argc)
        return *status = 2, bad("what is", argv[optind]);
    if ((what & PROBE) == 0 && (rounds != 0 || what & VERBOSE))
        return *status = 2, bad("without --probe, what is", rounds != 0 ? "--rounds" : "-v");
    return what;
}

int main(int argc, char **argv)
{
    int status, rank = 0, what = options(argc, argv, &status);
    if (what < 0)
        return status;
    if ((what & (CHECK | ENV | JOB | PROBE)) == 0) {
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
    if (what & PROBE && info_probe(&rank, rounds, (what & VERBOSE) != 0) != GIN_OK) {
        fprintf(stderr, "gininfo: rank %d: %s\n", rank, gin_last_error());
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
