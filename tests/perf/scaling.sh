#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a rank needs by the number of ranks: memory, exchanges, time of bring-up, per step of
# "ginperf --scaling", every rank on a host of its own. Prints the figures, the line through them
# (least squares) and what it says for 10 000 and 100 000 ranks. Run in the build folder.
#
#   scaling.sh [RANKS...]      default: 2 4 8 16 32
#
# Memory and exchanges are exact. Times are those of all ranks on the cores of this machine.
set -u
ranks=("$@")
[ ${#ranks[@]} != 0 ] || ranks=(2 4 8 16 32)
lines=$(mktemp "${TMPDIR:-/tmp}/scaling.XXXXXX")
trap 'rm -f "$lines"' EXIT
for n in "${ranks[@]}"; do
    timeout 300 ./ginrun -n "$n" -H "$n" ./ginperf --scaling >>"$lines" || exit 1
    tail -n 1 "$lines"
done
awk '
{
    for (i = 1; i <= NF; i++) {
        split($i, pair, "=")
        if (pair[1] == "ranks") { x[NR] = pair[2]; continue }
        if (!(pair[1] in known)) { known[pair[1]] = ++names; name[names] = pair[1] }
        y[pair[1], NR] = pair[2]
    }
}
END {
    printf "\n%-18s %14s %14s %14s %14s\n", "figure", "fixed", "per rank", "at 10000", "at 100000"
    for (k = 1; k <= names; k++) {
        sx = sy = sxx = sxy = 0
        for (i = 1; i <= NR; i++) {
            v = y[name[k], i]
            sx += x[i]; sy += v; sxx += x[i] * x[i]; sxy += x[i] * v
        }
        d = NR * sxx - sx * sx
        slope = d != 0 ? (NR * sxy - sx * sy) / d : 0
        fixed = (sy - slope * sx) / NR
        printf "%-18s %14.2f %14.3f %14.0f %14.0f\n", name[k], fixed, slope, fixed + 10000 * slope,
            fixed + 100000 * slope
    }
}' "$lines"
