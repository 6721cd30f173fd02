#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The functional and litmus tests once more, over the network that the library chooses: as many of
# them as go into half a minute, from another one on each time. All of them, other networks, and
# more rounds: tests/providers/matrix.sh, which see.
exec bash "$(dirname "$0")/../providers/matrix.sh" -m procs -f 200 -b 35 -w "choice" "$@"
