#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Three ranks reserve heaps at once that only one of them could have in their control group. They
# must be refused with GIN_ENOMEM, not killed for memory.
set -u
skip() {
    echo "SKIP $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "only root makes control groups"
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/ginshmem-test.$$ file=memory.max
else
    group=/sys/fs/cgroup/memory/ginshmem-test.$$ file=memory.limit_in_bytes
fi
mkdir "$group" 2>/dev/null || skip "no control group can be made"
trap 'rmdir "$group"' EXIT
echo 64M 2>/dev/null >"$group/$file" || skip "no limit of memory can be set"
bad=0
for _ in 1 2 3; do
    out=$(
        echo "$BASHPID" >"$group/cgroup.procs" || exit 77
        GINSHMEM_HEAP_SIZE=40M exec timeout 60 ./ginrun -k -n 3 tests/regress/small_memory_group 2>&1
    )
    status=$?
    [ $status = 77 ] && skip "cannot enter the control group"
    if [ $status != 0 ] || [ "$(grep -c '^GIN_ENOMEM' <<<"$out")" != 3 ]; then
        echo "status $status: $out"
        bad=1
    fi
    for ((i = 0; i < 50; i++)); do # the kernel takes its time to let go of them
        [ -n "$(cat "$group/cgroup.procs")" ] || break
        sleep .1
    done
done
exit $bad
