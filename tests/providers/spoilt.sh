#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs of the memory model and of each kind of operation over the other providers, and over a
# network that is as bad as each class allows, and the contracts of devices that are not here: some
# of them each time, half a minute long.
exec bash "$(dirname "$0")/matrix.sh" -m procs -n 2 -f 200 -b 30 \
    -w "rxm shm shmA B64 B32 B0 Btiny Bagain C64 C32 C0 Cnodc Ctiny Cagain kefa kdirect krecv
        kcxi kloose kverbs kmsg kquirk kstream E64 E32 Eagain Etiny Eefa
        Edirect" "$@" \
    litmus/message func/t_amo
