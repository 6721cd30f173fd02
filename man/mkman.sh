#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the pages and their aliases: mkman.sh SRCDIR OUTDIR GENENV
# A line `.\" example FILE NAME` in a page becomes what FILE has between `/* begin NAME */` and
# `/* end NAME */`; FILE counts from SRCDIR. Every row of man/aliases becomes a `.so` page.
# ginshmem_environment(7) is what GENENV prints.
set -eu
src=$1 out=$2 genenv=$3
mkdir -p "$out/man1" "$out/man3" "$out/man7"

for page in "$src"/man/*.[137]; do
    name=${page##*/}
    awk -v src="$src" '
    /^\.\\" example / {
        file = src "/" $3; inside = found = 0
        print ".Bd -literal -offset 4n"
        while ((getline line < file) > 0) {
            if (line == "/* end " $4 " */")
                inside = 0
            if (inside) {
                gsub(/\\/, "\\e", line)
                if (line ~ /^[.'"'"']/)
                    line = "\\&" line
                print line
            }
            if (line == "/* begin " $4 " */")
                inside = found = 1
        }
        close(file)
        print ".Ed"
        if (!found || inside) {
            print FILENAME ": no complete example " $4 " in " file > "/dev/stderr"
            exit 1
        }
        next
    }
    { print }' "$page" > "$out/man${name##*.}/$name.tmp"
    mv "$out/man${name##*.}/$name.tmp" "$out/man${name##*.}/$name"
done

while read -r symbol page; do
    case $symbol in '#'* | '') continue ;; esac
    [ "$symbol.3" = "$page" ] || echo ".so man3/$page" > "$out/man3/$symbol.3"
done < "$src/man/aliases"

"$genenv" > "$out/man7/ginshmem_environment.7"
