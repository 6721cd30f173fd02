#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts with networks of their own: what they share and what not, their switch, and that nothing is
# left of them however a job ends. Runs in the build folder.
# shellcheck disable=SC2016 # the ranks' shells expand what is quoted here
set -u
GINRUN=$(readlink -f "${GINRUN:-./ginrun}")
D=$(mktemp -d "${TMPDIR:-/tmp}/netns_life.XXXXXX")
trap 'rm -rf "$D"' EXIT
export D
failed=0

if ! why=$("$GINRUN" -n 1 --hosts 1 --netns true 2>&1); then echo "SKIP: $why"; exit 77; fi

fail() {
    echo "FAIL $*"
    sed 's/^/    /' "$D/err" 2>/dev/null | head -n 5
    failed=$((failed + 1))
}

# soon NAME COMMAND...: the command succeeds in the end
soon() {
    local name=$1 i
    shift
    for ((i = 0; i < 400; i++)); do
        "$@" && return
        sleep .05
    done
    fail "$name: never came true: $*"
}

# run STATUS NAME ARGUMENT...
run() {
    local want=$1 name=$2 got
    shift 2
    timeout 60 "$GINRUN" "$@" >"$D/out" 2>"$D/err" </dev/null
    got=$?
    [ $got = "$want" ] || fail "$name: status $got, not $want"
}

# ---- what is shared ----
run 0 "spaces" -n 4 --hosts 2 --netns bash -c '
    for s in net uts ipc mnt; do readlink /proc/self/ns/$s; done >"$D/spaces.$PMI_RANK"'
for s in 1 2 3 4; do
    for r in 0 1 2 3; do sed -n ${s}p "$D/spaces.$r"; done >"$D/s"
    [ "$(sort -u "$D/s" | wc -l)" = 2 ] || fail "spaces: not two of them: $(tr '\n' ' ' <"$D/s")"
    [ "$(sed -n 1p "$D/s")" = "$(sed -n 2p "$D/s")" ] || fail "spaces: ranks of a host differ"
done
if grep -qxF "$(readlink /proc/self/ns/net)" "$D"/spaces.*; then fail "spaces: a host is this one"; fi

run 0 "shared memory" -n 4 --hosts 2 --netns bash -c '
    if [ $PMI_RANK = 0 ]; then touch /dev/shm/mine "$D/made"; fi
    until [ -e "$D/made" ]; do sleep .02; done
    case $PMI_RANK in 0 | 1) test -e /dev/shm/mine ;; *) test ! -e /dev/shm/mine ;; esac'
run 0 "names" -n 3 --hosts 3 --netns bash -c '
    test "$(hostname)" = host$PMI_RANK && getent hosts host2 | grep -q "^10\.99\.0\.3 "'
run 0 "host ids" -n 4 --hosts 2 --netns ./gininfo --job
grep -q '^ *hosts  *2$' "$D/out" || fail "host ids: $(grep hosts "$D/out")"

if command -v python3 >/dev/null; then
    cat >"$D/loop.py" <<'END'
import os, socket, time
rank, d = int(os.environ["PMI_RANK"]), os.environ["D"]
def reached(host, port):
    try:
        socket.create_connection((host, port), 20).close()
        return True
    except ConnectionRefusedError:
        return False
# Both hosts listen on the same port of the same address: rank 0 and rank 2 are the first of theirs.
if rank % 2 == 0:
    near, far = socket.create_server(("127.0.0.1", 5555)), socket.create_server(("10.99.0.%d" % (rank // 2 + 1), 5556))
    if rank == 0:
        only = socket.create_server(("127.0.0.1", 5557))
    open("%s/listens.%d" % (d, rank), "w").close()
while not all(os.path.exists("%s/listens.%d" % (d, r)) for r in (0, 2)):
    time.sleep(.02)
assert reached("127.0.0.1", 5555) and reached("10.99.0.1", 5556) and reached("10.99.0.2", 5556)
assert reached("127.0.0.1", 5557) == (rank < 2)
open("%s/tried.%d" % (d, rank), "w").close()
while not all(os.path.exists("%s/tried.%d" % (d, r)) for r in range(4)):
    time.sleep(.02)
END
    run 0 "loopback" -n 4 --hosts 2 --netns python3 "$D/loop.py"
fi

run 0 "switch" -n 2 --hosts 2 --netns bash -c '
    carrier() { ip -o link show eth0 | grep -q "[<,]LOWER_UP[,>]"; }
    switch() { nsenter --net="$GINRUN_SWITCH" ip link set "$@"; }
    if [ $PMI_RANK = 0 ]; then
        switch p1 down
        until [ -e "$D/cut" ]; do sleep .02; done
        carrier || exit 3 # the others stay
        switch p1 up
    else
        while carrier; do sleep .02; done
        touch "$D/cut"
        until carrier; do sleep .02; done
    fi'

# ---- what is left ----
# Every rank writes the numbers of its network and of the switch, then does what the test is about.
note='stat -L -c %i /proc/self/ns/net "$GINRUN_SWITCH" >"$D/r.new$PMI_RANK"; mv "$D/r.new$PMI_RANK" "$D/r.$PMI_RANK"; '

alive() { # a process is in one of the networks
    local p
    for p in /proc/[0-9]*/ns/net; do
        grep -qxF "$(stat -L -c %i "$p" 2>/dev/null)" "$D/spaces" && return
    done
    return 1
}
nobody() { ! alive; }
noted() { [ -s "$D/r.0" ] && [ -s "$D/r.1" ]; }

# gone NAME: none of the networks that the last job noted
gone() {
    noted || { fail "$1: the ranks noted nothing"; return; }
    cat "$D"/r.[0-9]* | sort -u >"$D/spaces"
    [ "$(wc -l <"$D/spaces")" = 3 ] || fail "$1: $(wc -l <"$D/spaces") networks, not 3"
    soon "$1: nobody is left" nobody
    rm -f "$D"/r.*
}

# ends STATUS NAME PROGRAM
ends() {
    run "$1" "$2" -n 2 --hosts 2 --netns bash -c "$note$3"
    gone "$2"
}
ends 0 "all end well" :
ends 5 "a rank fails" 'test $PMI_RANK = 0 || { until [ -s "$D/r.0" ]; do sleep .02; done; exit 5; }; sleep 300'
ends 137 "a rank is killed" 'test $PMI_RANK = 0 || { until [ -s "$D/r.0" ]; do sleep .02; done; kill -9 $$; }; sleep 300'
ends 5 "a rank with children fails" 'sleep 300 & test $PMI_RANK = 0 || {
    until [ -s "$D/r.0" ]; do sleep .02; done; exit 5; }; wait'
run 124 "time is over" -t 1.5 -n 2 --hosts 2 --netns bash -c "$note"'exec sleep 300'
if noted; then gone "time is over"; fi # a slow machine may need longer to begin
for signal in INT:130 TERM:143 KILL:137; do
    env --default-signal=INT "$GINRUN" -n 2 --hosts 2 --netns bash -c "$note"'exec sleep 300' 2>"$D/err" &
    pid=$!
    soon "$signal: start" noted
    kill "-${signal%:*}" $pid
    wait $pid 2>/dev/null
    got=$?
    [ $got = "${signal#*:}" ] || fail "$signal: status $got"
    gone "$signal"
done

# Killed while it makes the hosts: its helpers see its end of their pipe close.
marker=netns-life-$$
helpers() { grep -lzx "netns-lif[e]-$$" /proc/[0-9]*/cmdline 2>/dev/null | grep -q .; } # not grep itself
no_helper() { ! helpers; }
for i in 0 1 2 3 4 5; do
    "$GINRUN" -n 3 --hosts 3 --netns sleep 300 "$marker" 2>/dev/null &
    pid=$!
    sleep ".0$i"
    kill -9 $pid
    wait $pid 2>/dev/null
done
soon "killed at the start" no_helper
if compgen -G '/run/netns/host*' >/dev/null; then fail "names in /run/netns"; fi

if [ $failed = 0 ]; then echo "ok"; else exit 1; fi
