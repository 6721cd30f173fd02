#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A few programs of the memory model and of each kind of operation over the other providers, and
# over a network that is as bad as each class allows.
exec bash "$(dirname "$0")/matrix.sh" -m procs -n 3 -f 200 \
    -w "rxm shm B64 B32 B0 Btiny Bagain C64 C32 C0 Cnodc Ctiny Cagain A D" "$@" \
    litmus/message litmus/order func/t_amo
