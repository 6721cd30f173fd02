#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gininfo by its output: every kind of question, under a launcher, and with a bad environment.
# The programs of the build folder in which this runs.

LC_ALL=C
# What libfabric's providers leave behind when they are unloaded is not ours to free.
ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export LC_ALL ASAN_OPTIONS
bad=0
for v in $(env | sed -n 's/^\(GINSHMEM_[A-Z_]*\)=.*/\1/p'); do
    unset "$v"
done

# has WHAT STATUS PATTERN COMMAND...: the command ends with STATUS and prints a line like PATTERN.
has() {
    what=$1 want=$2 pattern=$3
    shift 3
    out=$(timeout 60 "$@" 2>&1)
    got=$?
    if [ "$got" != "$want" ]; then
        echo "$what: status $got, not $want"
        printf '%s\n' "$out"
        bad=1
    elif ! printf '%s\n' "$out" | grep -q -- "$pattern"; then
        echo "$what: no line has \"$pattern\""
        printf '%s\n' "$out"
        bad=1
    fi
}

if ! [ -x ./gininfo ]; then
    echo "SKIP: gininfo is not built here"
    exit 77
fi
has version 0 'gininfo (ginshmem) [0-9]' ./gininfo --version
has help 0 '--check' ./gininfo --help
has version 0 'gininfo (ginshmem) [0-9]' ./gininfo -V
has "bad option" 2 nonsense ./gininfo --nonsense
has "bad option" 2 'see gininfo --help' ./gininfo --nonsense
has "bad word" 2 '"word"' ./gininfo word
for p in opx psm3 "udp;ofi_rxd"; do
    has "overview of $p" 0 "^  $p  *\(yes\|no\): " ./gininfo
done
has overview 0 '^  tcp .* yes: ' ./gininfo
if ./gininfo | grep -q '^  provider  *net: ' && ./gininfo | grep -q '^  tcp .* yes: .*RDM'; then
    echo "net was chosen, although tcp comes first and has what it takes"
    bad=1
fi
has overview 0 '^  cores ' ./gininfo
has overview 0 '^  joins by .* self: ' env -u PMI_FD -u PMIX_NAMESPACE ./gininfo
has variables 0 'GINSHMEM_HEAP_SIZE .*1G  (environment; default ' \
    env GINSHMEM_HEAP_SIZE=1G ./gininfo --env
has secret 0 'GINSHMEM_SECRET .*(not shown)' env GINSHMEM_SECRET=hush ./gininfo --env
has check 0 '^  memory objects .* pass' ./gininfo --check
if ./gininfo --check | grep -q '^  network .* pass'; then
    has "the device that is named" 0 '^  network .* pass: .*device: lo' env GINSHMEM_NIC=lo ./gininfo --check
    has "no such device" 1 '^  network .* FAIL: .*GINSHMEM_NIC=nope: .*here; there are .*lo' \
        env GINSHMEM_NIC=nope ./gininfo --check
    has "no such device" 0 '^  provider .* no: .*GINSHMEM_NIC=nope' env GINSHMEM_NIC=nope ./gininfo
    has "no such provider" 1 'GINSHMEM_PROVIDER=nope: .*here; there are [a-z]' \
        env GINSHMEM_PROVIDER=nope ./gininfo --check
    ! ./gininfo | grep -q '^  tcp .* yes: ' ||
        has "a provider by its short name" 0 '^  network .* pass: tcp' \
            env GINSHMEM_PROVIDER=tcp ./gininfo --check
    has "one device of several" 1 '^  network .* FAIL: GINSHMEM_NICS=lo,nope: .*has such a device' \
        env GINSHMEM_NICS=lo,nope ./gininfo --check
    has "the devices that are named" 0 '^  network .* pass: .*device: lo' \
        env GINSHMEM_NICS=lo ./gininfo --check
    has "more rails than devices" 1 '^  network .* FAIL: GINSHMEM_RAILS=2, but GINSHMEM_NICS=lo ' \
        env GINSHMEM_NICS=lo GINSHMEM_RAILS=2 ./gininfo --check
    has "a device twice" 0 '^  provider .* no: GINSHMEM_NICS=lo,lo: lo is there twice' \
        env GINSHMEM_NICS=lo,lo ./gininfo
    if [ -x ./ginrun ]; then
        has "job with no such device" 0 '^  net .* no: .*GINSHMEM_NIC=nope' \
            env GINSHMEM_NIC=nope ./ginrun -n 2 -H 2 ./gininfo --job
        has "how signals go, to the end" 0 '^  net .* yes: .*; strong: once delivered$' \
            env GINSHMEM_TEST_NET=class=C,dc=0 ./ginrun -n 2 -H 2 ./gininfo --job
    fi
fi
has "RDMA devices" 0 '^rdma$' ./gininfo
fake=$(pwd)/tests/life/.libs/fake_verbs.so
# on_fake WHAT PATTERN: gininfo of a machine with made-up devices
on_fake() {
    has "$1" 0 "$2" env LD_PRELOAD="$fake" ./gininfo
}
case $(ldd ./.libs/gininfo ./gininfo 2>/dev/null) in *asan*) fake=none ;; esac
if [ -f "$fake" ]; then
    on_fake "port in use" '^  good port 1 .* yes: PORT_ACTIVE, Ethernet, MTU 1024 of at most 4096'
    on_fake "its address" '^  good port 1 gid 2 .* fe80:0:0:0:0:0:0:3: RoCE v2'
    on_fake "port that is down" '^  bad port 1 .* no: the port is down: '
    on_fake "port without address" '^  bad port 2 .* no: it has no address'
    on_fake "port without manager" '^  bad port 3 .* no: it waits for a subnet manager'
    on_fake "device without its file" \
        '^  shut .* no: /dev/infiniband/uverbs_nowhere is not there'
fi
has "check of a bad value" 1 'variables .* FAIL: GINSHMEM_HEAP_SIZE="20Mabc"' \
    env GINSHMEM_HEAP_SIZE=20Mabc ./gininfo --check
has "job of a bad value" 1 'GINSHMEM_HEAP_SIZE="20Mabc"' \
    env GINSHMEM_HEAP_SIZE=20Mabc ./gininfo --job
has job 0 '^  ranks .* 1$' ./gininfo --job
has "job without neighbours" 0 '^  lsa .* no: no other rank' ./gininfo --job
if [ -x ./ginrun ]; then
    has "job of three" 0 '^  ranks .* 3$' ./ginrun -n 3 ./gininfo --job
    has "job of three" 0 '^  lsa .* yes: 2 of 2' ./ginrun -n 3 ./gininfo --job
    has "job on two hosts" 0 '^  hosts .* 2$' ./ginrun -n 4 --hosts 2 ./gininfo --job
    has "lsa switched off" 0 '^  lsa .* no: GINSHMEM_DISABLE_LSA=1' \
        env GINSHMEM_DISABLE_LSA=1 ./ginrun -n 2 ./gininfo --job
fi
if ./gininfo --json --env >/dev/null 2>&1; then
    has json 0 '"origin": "default"' ./gininfo --json --env
    has json 0 '"requirements": {' ./gininfo --json --check
    if command -v python3 >/dev/null 2>&1 && ! ./gininfo --json | python3 -m json.tool >/dev/null; then
        echo "json: not well formed"
        bad=1
    fi
else
    has "json refused" 1 jansson ./gininfo --json --env
fi
exit "$bad"
