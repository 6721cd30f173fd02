#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shellcheck has nothing to say on every script of the tree.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
need shellcheck

cd "$top" || exit 99
{
    tree_files '*.sh'
    find include lib heap transport tests examples man -type f -perm -u+x ! -name '*.*' \
        ! -path '*/.libs/*' ! -path '*/.deps/*'
    ls autogen.sh .ci/run 2>/dev/null
} | while read -r file; do
    # libtool's wrappers and other products of a build in the tree are not ours
    case $(head -n 1 "$file" | tr -d '\0') in
    '#!/bin/sh' | '#!/bin/bash' | '#!/usr/bin/env bash' | '# SPDX-License'*) ;;
    *) continue ;;
    esac
    head -n 3 "$file" | grep -q SPDX-License || continue
    echo "$file"
done | sort -u | xargs shellcheck -x || bad=1
finish
