#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Who may include whom: include <- lib/base <- lib/cuda <- {heap, transport, lib/boot} <- lib <-
# lib/coll <- lib/compat (the right side includes the left); heap, transport and lib/boot do not know
# each other. Examples see the public headers only, and nobody's header is named from outside its
# room by a relative path.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
work_folder

# The room of a path, with its floor.
room() {
    case $1 in
    include/*) echo "0 include" ;;
    lib/base/*) echo "1 base" ;;
    lib/cuda/*) echo "2 cuda" ;;
    heap/*) echo "3 heap" ;;
    transport/*) echo "3 transport" ;;
    lib/boot/*) echo "3 boot" ;;
    lib/coll/*) echo "5 coll" ;;
    lib/compat/*) echo "6 compat" ;;
    lib/tools/*) echo "7 tools" ;;
    lib/*) echo "4 lib" ;;
    tests/*) echo "8 tests" ;;
    examples/* | man/examples/*) echo "9 examples" ;;
    *) echo "9 $1" ;;
    esac
}

tree_files '*.[ch]' '*.cu' '*.cuh' | while read -r file; do
    sed -n 's/^[ \t]*#[ \t]*include[ \t]*\([<"][^>"]*\)[>"].*/\1/p' "$top/$file" |
        while read -r quoted; do
            name=${quoted#?}
            case $quoted in
            '<ginshmem'*) found=include/$name ;;
            '<'*) continue ;;
            *config.h) continue ;;
            *..*) found= ;;
            *)
                found=
                for try in "${file%/*}/$name" "include/$name" "lib/$name" "$name"; do
                    if [ -f "$top/$try" ]; then
                        found=$try
                        break
                    fi
                done
                ;;
            esac
            if [ -z "$found" ] || [ ! -f "$top/$found" ]; then
                echo "$file: includes $name, which no root has"
                continue
            fi
            echo "$file $(room "$file") $found $(room "$found")"
        done
done >"$work/arrows"

awk '
NF != 6 { print; next }
{
    file = $1; floor = $2; room = $3; found = $4; below = $5; other = $6
    if (room == other)
        next
    if (room == "examples" && (other != "include" || found ~ /\/impl\//))
        print file ": an example includes " found
    else if (room == "compat" && other != "include")
        print file ": the compatibility layers use the public API only, not " found
    else if (floor == below)
        print file ": " room " and " other " do not know each other, but it includes " found
    else if (floor < below)
        print file ": " room " lies below " other ", but it includes " found
}' "$work/arrows" >"$work/wrong"

cat "$work/wrong"
[ -s "$work/arrows" ] || complain "no include found: the check is broken"
[ ! -s "$work/wrong" ] || bad=1
finish
