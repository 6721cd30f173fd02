#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tree speaks of the project alone: no notes of work to do, no path of the machine it was written
# on, and the licence in the first lines of every file.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"

cd "$top" || exit 99
files="$(tree_files '*.[ch]' '*.cu' '*.sh' '*.m4' '*.inc' '*.[137]' '*.map' '*.in' aliases)
configure.ac Makefile.am README.md CONTRIBUTING NEWS autogen.sh .clang-format"
# this check has to name the words
files=$(echo "$files" | tr ' ' '\n' | grep -v '^tests/lint/words\.sh$')

# shellcheck disable=SC2086
grep -nE '\b(TODO|FIXME|XXX|HACK|WIP)\b|not implemented yet|/(work|root|home)/|/tmp/[a-z]+(/|$)' $files && bad=1

for file in $(tree_files '*.[ch]' '*.cu' '*.sh' '*.m4' '*.inc' '*.[137]'); do
    head -n 2 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
        complain "$file: no licence in its first lines"
done
finish
