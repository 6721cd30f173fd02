#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ginshmem_requirements(7) and gininfo --check have the same features, in the same order, and the
# page calls required what the check does.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
work_folder
sed -n 's/^    {"\(.*\)", \(true\|false\), [a-z_0-9]*},$/\2 \1/p' "$top/lib/tools/gininfo_check.c" >"$work/checked"
awk '/^\.Ss/ { kind = /Required to run/ ? "true" : /Each for something/ ? "false" : "" }
     /^\.It / && kind != "" { sub(/^\.It /, ""); print kind, $0 }' \
    "$top/man/ginshmem_requirements.7" >"$work/written"
[ -s "$work/checked" ] || complain "gininfo_check.c: no features found"
diff "$work/checked" "$work/written" >"$work/diff" ||
    complain "features that are checked (<) and those in ginshmem_requirements(7) (>) differ:
$(cat "$work/diff")"
if [ -x ./gininfo ]; then
    ./gininfo --check 2>/dev/null | sed -n 's/^  \([^ ].*[^ ]\)  *\(pass\|missing\|FAIL\): .*/\1/p' |
        sed 's/ *$//' >"$work/shown"
    cut -d' ' -f2- "$work/checked" | diff - "$work/shown" >"$work/diff" ||
        complain "gininfo --check does not show them all: $(cat "$work/diff")"
fi
finish
