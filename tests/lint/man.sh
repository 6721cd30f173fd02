#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manual as it is built: mandoc has nothing to complain of; pages of section 3 have their
# sections; what a page refers to, names and quotes exists; every synopsis is the prototype of the
# header; every alias leads to a page that names it.
# shellcheck disable=SC2086 # $pages is a list of plain names
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
[ -d man/man3 ] || skip "the pages are not built here (make)"
work_folder

pages=$(for page in man/man[137]/*.[137]; do grep -q '^\.so ' "$page" || echo "$page"; done)

for page in $pages; do
    for section in NAME DESCRIPTION; do
        grep -q "^\.Sh $section\$" "$page" || complain "$page: no section $section"
    done
    case $page in
    *.3)
        for section in LIBRARY SYNOPSIS 'RETURN VALUES' EXAMPLES ERRORS 'SEE ALSO'; do
            grep -q "^\.Sh $section\$" "$page" || complain "$page: no section $section"
        done
        # what takes a context runs in kernels too, and the page says how
        if grep -q '^\.Fa "const gin_t \*g"' "$page" && ! grep -q '^\.Ss In kernels$' "$page"; then
            complain "$page: no subsection In kernels"
        fi
        sed -n '/^\.Sh EXAMPLES/,/^\.Sh ERRORS/p' "$page" | grep -q '^\.Bd -literal' ||
            complain "$page: no example"
        ;;
    *.1)
        for section in SYNOPSIS 'EXIT STATUS' EXAMPLES; do
            grep -q "^\.Sh $section\$" "$page" || complain "$page: no section $section"
        done
        ;;
    esac
done

# References to pages of ours, to variables and to constants.
grep -h '^\.*.*\bXr gin' $pages | sed 's/.*\bXr \(gin[a-z0-9_]*\) \([1-8]\).*/\2 \1/' | sort -u |
    while read -r section name; do
        [ -f "man/man$section/$name.$section" ] || echo "no page $name($section), but it is referred to"
    done >"$work/log"
sed -n 's/^GI_ENV([a-z_]*, \([A-Z_]*\),.*/GINSHMEM_\1/p' "$top/lib/base/env_table.h" | sort >"$work/env"
[ -s "$work/env" ] || complain "no variable found in env_table.h: the check is broken"
cat $pages | grep -o 'Ev GINSHMEM_[A-Z_]*' | sed 's/Ev //' | sort -u | comm -23 - "$work/env" |
    sed 's/$/: a page names this variable, which is not in lib\/base\/env_table.h/' >>"$work/log"
cat "$top"/include/ginshmem/*.h | grep -o '\bGIN_[A-Z0-9_]*' | sort -u >"$work/constants"
cat $pages | grep -v '^\.Dt' | grep -o '\bGIN_[A-Z0-9_]*' | sort -u | comm -23 - "$work/constants" |
    sed 's/$/: a page names this constant, which is not in the public headers/' >>"$work/log"

# Aliases.
grep -v '^#' "$top/man/aliases" | while read -r symbol page; do
    [ -f "man/man3/$page" ] || echo "man/aliases: $symbol: no page $page"
    [ -f "man/man3/$symbol.3" ] || echo "man/aliases: $symbol: no alias was built"
    grep -q "^\.Nm $symbol\( ,\)\{0,1\}\$" "man/man3/$page" || echo "$page: does not name $symbol"
    grep -q "^\.Fo $symbol\$" "man/man3/$page" || echo "$page: has no synopsis of $symbol"
done >>"$work/log"

# Synopses: "int gin_wait(const gin_t *g, ...)", each on one line.
for page in man/man3/*.3; do
    awk '/^\.Sh / { inside = /SYNOPSIS/ }
        !inside { next }
        /^\.Ft / { type = substr($0, 5); next }
        /^\.Fo / { line = type " " $2 "("; comma = ""; next }
        /^\.Fa / { sub(/^\.Fa "/, ""); sub(/"$/, ""); line = line comma $0; comma = ", "; next }
        /^\.Fc/ { print line ")" }' "$page"
done | sed 's/ \*  *\(gin_\)/ *\1/; s/\* gin_/*gin_/' | sort >"$work/synopses"
for kind in GIN_API GIN_OP GIN_VALUE; do
    prototypes "$kind"
done | grep -v '\bgin_i_[a-z0-9_]*(' | sort -u >"$work/prototypes"
comm -23 "$work/synopses" "$work/prototypes" | sed 's/$/: not so in the headers/' >>"$work/log"
comm -13 "$work/synopses" "$work/prototypes" | sed 's/$/: not so in a page/' >>"$work/log"

cat "$work/log"
[ ! -s "$work/log" ] || bad=1

if command -v mandoc >/dev/null 2>&1; then
    mandoc -T lint -W warning $pages >"$work/log" 2>&1
    if grep -v 'outdated mandoc.db' "$work/log" | grep .; then
        bad=1
    fi
    for page in $pages; do
        # tables and examples keep to 80 columns
        mandoc -T ascii -O width=78 "$page" | sed 's/.\x08//g' | awk -v page="$page" 'length($0) > 80 {
            print page ": wider than 80 columns: " $0; bad = 1 } END { exit bad }' || bad=1
    done
elif [ "$bad" = 0 ]; then
    skip "mandoc is not installed; the rest was checked"
fi
finish
