# SPDX-License-Identifier: BSD-3-Clause
# What the checks share. Each runs from the build folder and takes the tree's place from automake's
# srcdir or from its own; by hand from the tree it looks into build/ for what make made.
# shellcheck shell=sh

top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
if [ ! -f config.status ] && [ -f "$top/build/config.status" ]; then
    cd "$top/build" || exit 99
fi
LC_ALL=C
export LC_ALL
bad=0

skip() {
    echo "SKIP: $*"
    exit 77
}

need() {
    command -v "$1" >/dev/null 2>&1 || skip "$1 is not installed"
}

complain() {
    echo "$*"
    bad=1
}

finish() {
    exit "$bad"
}

# A folder of our own that goes away with the check.
work_folder() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/ginshmem-lint.XXXXXX") || exit 99
    trap 'rm -rf "$work"' EXIT
}

# tree_files PATTERN...: files of the tree with these names, relative to it, without what a build in
# the tree makes.
tree_files() (
    cd "$top" || exit 99
    for pattern in "$@"; do
        find include lib heap transport tests examples man -name "$pattern" -type f \
            ! -path 'man/man[137]/*' ! -path '*/.libs/*' ! -path '*/.deps/*'
    done | sort
)

# Name, on one line each, of what the public headers declare: GIN_API (exported), GIN_OP and
# GIN_VALUE (inline). public_names KIND...
public_names() {
    for kind in "$@"; do
        prototypes "$kind" | sed 's/^[^(]*\b\(gin_[a-z0-9_]*\)(.*/\1/'
    done | sort -u
}

# prototypes KIND: "int gin_wait(const gin_t *g, ...)" on one line each, from the public headers and,
# for what inlined code calls, impl/slow.h.
prototypes() {
    for header in "$top"/include/ginshmem/*.h "$top"/include/ginshmem/impl/slow.h; do
        awk -v kind="$1" '
        { gsub(/\/\*.*\*\//, "") }
        /\/\*/ { sub(/\/\*.*/, ""); comment = 1; text = text " " $0; next }
        comment { if (!sub(/.*\*\//, "")) next; comment = 0 }
        /^#/ { next }
        { text = text " " $0 }
        END {
            n = split(text, part, /[;{}]/)
            for (i = 1; i <= n; i++) {
                at = match(part[i], "(^|[^A-Za-z_])" kind "[ \t]")
                if (!at)
                    continue
                line = substr(part[i], RSTART + RLENGTH)
                gsub(/[ \t]+/, " ", line)
                sub(/^ /, "", line)
                sub(/ $/, "", line)
                if (line ~ /gin_[a-z0-9_]*\(.*\)$/)
                    print line
            }
        }' "$header"
    done
}
