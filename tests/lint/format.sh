#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every .c and .h has the form of .clang-format. The form is that of clang-format 14: other versions
# differ in details, so they are not asked.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"

tool=
for try in clang-format-14 clang-format; do
    if command -v $try >/dev/null 2>&1 && $try --version | grep -q 'version 14\.'; then
        tool=$try
        break
    fi
done
[ -n "$tool" ] || skip "clang-format 14 is not installed"

cd "$top" || exit 99
tree_files '*.[ch]' '*.cu' | xargs "$tool" --dry-run --Werror --style=file 2>&1 |
    grep -E 'error:|warning:' | sed 's/: error: .*/: not formatted/' | awk -F: '!seen[$1]++ { print }' |
    grep . && bad=1
finish
