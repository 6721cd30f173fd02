/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints ginshmem_environment(7) in mdoc from the table. Build-time tool. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"

#define COLUMNS 78

/* Running text: wrapped, and no control character of roff stands first in a line. */
static void print_text(const char *text)
{
    size_t column = 0;
    while (*text != 0) {
        size_t n = strcspn(text, " ");
        if (column != 0 && column + 1 + n > COLUMNS) {
            putchar('\n');
            column = 0;
        }
        if (column != 0)
            putchar(' ');
        else if (*text == '.' || *text == '\'')
            printf("\\&");
        for (size_t i = 0; i < n; i++)
            if (text[i] == '\\')
                printf("\\e");
            else
                putchar(text[i]);
        column += n + (column != 0);
        text += n + strspn(text + n, " ");
    }
    putchar('\n');
}

static void print_sentence(const char *text)
{
    char sentence[400];
    snprintf(sentence, sizeof(sentence), "%s.", text);
    sentence[0] = (char)toupper((unsigned char)sentence[0]);
    print_text(sentence);
}

static void print_default(const struct gi_env_row *row)
{
    if (row->def[0] != 0)
        printf("The default is\n.Ql %s .\n", row->def);
    else if (row->kind != GI_ENV_TEXT)
        printf("There is no default.\n");
}

static void print_row(const struct gi_env_row *row)
{
    char accepts[200];
    const char *help = row->help;
    printf(".It Ev %s\n", row->name);
    if (row->kind == GI_ENV_WORD) {
        const char *end = strstr(help, " -- ");
        help = end + 4;
        print_sentence(help);
        printf("One of\n");
        for (const char *p = row->help; p < end;) {
            size_t n = strcspn(p, "| ");
            const char *next = p + n + 1;
            printf(".Ql %.*s%s\n", (int)n, p,
                   next > end                             ? " ."
                   : next + strcspn(next, "| ") + 1 > end ? "\nor"
                                                          : " ,");
            p = next;
        }
    } else {
        print_sentence(help);
        snprintf(accepts, sizeof(accepts), "takes ");
        gi_env_accepts(row, accepts + 6, sizeof(accepts) - 6);
        if (row->kind != GI_ENV_TEXT)
            print_sentence(accepts);
    }
    print_default(row);
}

/* What the secret of a job is good for, and what not. */
static void print_secret(void)
{
    printf(".Ss The job secret\n"
           "Where ranks meet over TCP, by\n"
           ".Ev GINSHMEM_ROOT ,\n"
           "under torchrun or by a unique id, they and rank 0 show each other that they\n"
           "belong to the job: by\n"
           ".Ev GINSHMEM_SECRET ,\n"
           "or by 32 random bytes of the unique id.\n"
           "A rank shows the first, third, fifth ... character, rank 0 the others.\n"
           "Who only listens where rank 0 should be can keep ranks from joining, so that\n"
           "the job fails, and learns half of the secret; it cannot pass for rank 0.\n"
           "With that half it could join a job of the same secret as a rank: use a new one\n"
           "for each job, of 16 random characters or more.\n"
           "Without one, by\n"
           ".Ev GINSHMEM_ROOT\n"
           "or under torchrun, nobody shows anything.\n"
           ".Pp\n"
           "The halves travel as they are, and nothing after them is encrypted or signed.\n"
           "Who reads or changes what the network carries, or stands between a rank and\n"
           "rank 0 and passes their words on, has the secret and, with what ranks tell each\n"
           "other, the addresses and keys of their memory: the network among the hosts, and\n"
           "who may listen on them, must be trusted.\n");
}

int main(void)
{
    const struct gi_env_row *rows;
    size_t n = gi_env_rows(&rows);
    printf(".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
           ".\\\" Generated from lib/base/env_table.h\n"
           ".Dd $Mdocdate$\n"
           ".Dt GINSHMEM_ENVIRONMENT 7\n"
           ".Os\n"
           ".Sh NAME\n"
           ".Nm ginshmem_environment\n"
           ".Nd variables that steer the library\n"
           ".Sh DESCRIPTION\n"
           "The library reads these variables once, when\n"
           ".Fn gin_init\n"
           "is called.\n"
           "An empty variable counts as not set.\n"
           "A value that cannot be taken whole is an error:\n"
           ".Fn gin_init\n"
           "returns\n"
           ".Dv GIN_EINVAL\n"
           "and\n"
           ".Fn gin_last_error\n"
           "names the variable, its value and what is accepted.\n"
           "A variable whose name is nearly one of these draws a warning.\n"
           ".Pp\n"
           "Numbers are decimal, without sign, space or leading zero.\n"
           "Sizes are in bytes; the units K, M, G and T, also written KiB, MiB, GiB and\n"
           "TiB, are powers of 1024, and kB, MB, GB and TB powers of 1000.\n"
           "Times are in seconds or have one of the units ns, us, ms and s.\n"
           "Sizes and times with a unit may have a fraction, as in 1.5G.\n"
           "The case of units does not matter.\n"
           ".Pp\n"
           "The variables of the heap,\n"
           ".Ev GINSHMEM_CHECK ,\n"
           ".Ev GINSHMEM_PEER_TIMEOUT ,\n"
           ".Ev GINSHMEM_PROVIDER ,\n"
           ".Ev GINSHMEM_RAILS ,\n"
           "and how many devices\n"
           ".Ev GINSHMEM_NICS\n"
           "has, must be alike on all ranks, else\n"
           ".Fn gin_last_error\n"
           "has both values.\n"
           ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < n; i++)
        print_row(&rows[i]);
    printf(".El\n");
    print_secret();
    printf(".Sh SEE ALSO\n"
           ".Xr gininfo 1 ,\n"
           ".Xr ginrun 1 ,\n"
           ".Xr gin_init 3 ,\n"
           ".Xr ginshmem 7 ,\n"
           ".Xr ginshmem_backends 7 ,\n"
           ".Xr ginshmem_faults 7\n");
    return ferror(stdout) || fflush(stdout) != 0;
}
