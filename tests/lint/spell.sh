#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# codespell finds no known misspelling, in the sources and in the pages as a reader sees them.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
need codespell
work_folder

# words that are names here
words="inout,nd,fo,upto,whats,get's"

(
    cd "$top" || exit 99
    {
        tree_files '*.[ch]' '*.cu' '*.sh' '*.m4' '*.inc'
        ls configure.ac Makefile.am README.md CONTRIBUTING NEWS autogen.sh 2>/dev/null
    } | xargs codespell -L "$words"
) || bad=1

if command -v mandoc >/dev/null 2>&1 && [ -d man/man3 ]; then
    for page in man/man[137]/*.[137]; do
        grep -q '^\.so ' "$page" && continue
        mandoc -T ascii "$page" | sed 's/.\x08//g' >"$work/${page##*/}.txt"
    done
    codespell -L "$words" "$work"/*.txt || bad=1
fi
finish
