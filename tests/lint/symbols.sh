#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What the headers declare, what lib/libginshmem.map exports, what the built library exports and
# what the manual describes is the same: every exported symbol has its line in the map, every public
# one and every public inline function has a row in man/aliases, and no row is of nothing.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
work_folder

# same WHAT-IS-LEFT FILE WHAT-IS-RIGHT FILE: sorted lists
same() {
    comm -23 "$2" "$4" | sed "s|\$|: $1, but not $3|" >"$work/left"
    comm -13 "$2" "$4" | sed "s|\$|: $3, but not $1|" >"$work/right"
    cat "$work/left" "$work/right"
    [ ! -s "$work/left" ] && [ ! -s "$work/right" ] || bad=1
}

public_names GIN_API >"$work/api"
public_names GIN_API GIN_OP GIN_VALUE | grep -v '^gin_i_' >"$work/public"
grep -v '^#' "$top/man/aliases" | cut -d ' ' -f 1 | sort >"$work/pages"
sed -n 's/^ *\(gin_[a-z0-9_]*\);.*/\1/p' "$top/lib/libginshmem.map" | sort >"$work/map"
# one node of the map for the API, one for what inlined code calls
sed -n '/^GINSHMEM_0/,/^}/s/^ *\(gin_i_[a-z0-9_]*\);.*/\1: in the wrong node of the map/p
        /^GINSHMEM_INLINE/,/^}/s/^ *\(gin_[^i][a-z0-9_]*\);.*/\1: in the wrong node of the map/p' \
    "$top/lib/libginshmem.map" >"$work/node"

[ "$(wc -l <"$work/api")" -gt 50 ] || complain "hardly any declaration found: the check is broken"
uniq -d "$work/pages" | sed 's/$/: twice in man\/aliases/' | grep . && bad=1
grep . "$work/node" && bad=1
same "declared GIN_API in the headers" "$work/api" "in lib/libginshmem.map" "$work/map"
same "declared in the public headers" "$work/public" "in man/aliases" "$work/pages"

library=$(find .libs -name 'libginshmem.so' 2>/dev/null)
[ -n "$library" ] || { [ "$bad" = 0 ] && skip "no shared library was built"; finish; }
need nm
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    sort >"$work/exported"
same "in lib/libginshmem.map" "$work/map" "exported by the library" "$work/exported"
finish
