#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An example under every launcher that starts ranks on two hosts with networks of their own: two
# ranks on each, so that loads and stores and the network are both taken. Runs in the build folder.
GINRUN=${GINRUN:-./ginrun}
export GINRUN
list=netns,netns-root,netns-torch,netns-openmpi,netns-hydra
exec "$(dirname "$0")/launchers" -n 4 -s -o $list "$(readlink -f examples/16_hybrid)"
