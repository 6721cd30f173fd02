#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Make configure and its droppings. Needs autoconf >= 2.71, automake >= 1.16, libtool, pkg-config.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf -fi
