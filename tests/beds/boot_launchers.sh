#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The bootstrap under every launcher of this machine. Runs in the build folder.
GINRUN=${GINRUN:-./ginrun}
export GINRUN
exec "$(dirname "$0")/launchers" -n 3 "$(readlink -f tests/beds/boot_try)"
