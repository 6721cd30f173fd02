#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The functional and litmus tests once more, over the network that the library chooses. Other
# networks, and more rounds: tests/providers/matrix.sh, which see.
exec bash "$(dirname "$0")/../providers/matrix.sh" -m procs -f 50 -w "choice" "$@"
