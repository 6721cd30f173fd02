#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A file has at most 600 lines, an example 150: what does not fit is two concepts.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"

check() { # LIMIT FILE
    lines=$(wc -l <"$top/$2")
    [ "$lines" -le "$1" ] || complain "$2: $lines lines, more than $1"
}

for file in $(tree_files '*.[ch]' '*.cu' '*.sh' '*.m4' '*.inc' '*.[137]') configure.ac Makefile.am; do
    check 600 "$file"
done
for file in $(cd "$top" && find examples -name '*.[ch]' -type f); do
    check 150 "$file"
done
finish
