#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An installed tree is enough to build and link every example, by pkg-config alone, and has the pages:
# installed.sh PREFIX-PKGCONFIG-FOLDER MANDIR; `make installcheck` calls it.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
work_folder

PKG_CONFIG_PATH=$1${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs ginshmem) || complain "pkg-config does not find ginshmem in $1"

for source in "$top"/examples/*.c "$top"/man/examples/*.c; do
    [ -f "$source" ] || continue
    more=
    case $source in
    */man/examples/frame.c) continue ;;
    */man/examples/init.c) ;;
    */man/examples/*) more=$top/man/examples/frame.c ;;
    esac
    # shellcheck disable=SC2086
    ${CC:-cc} -std=gnu11 -Wall -Werror "$source" $more -o "$work/program" $flags -lpthread -lm \
        >"$work/log" 2>&1 || {
        complain "$source does not build against the installed tree:"
        head -n 10 "$work/log"
    }
done

grep -v '^#' "$top/man/aliases" | while read -r symbol page; do
    [ -f "$2/man3/$symbol.3" ] && [ -f "$2/man3/$page" ] || echo "$symbol: no page in $2"
done >"$work/log"
cat "$work/log"
[ ! -s "$work/log" ] || bad=1
finish
