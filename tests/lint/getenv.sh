#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Only lib/base/env.c reads the environment, only lib/base/os*.c makes system calls. The sources are
# looked at for the first, the objects of the library for the second: what an object asks of libc
# says the truth.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
work_folder

for file in $(tree_files '*.[ch]' | grep -E '^(include|lib|heap|transport)/'); do
    case $file in lib/base/env.c | lib/tools/*) continue ;; esac
    grep -nE '\b(secure_)?getenv *\(|\b(setenv|putenv|unsetenv) *\(|\benviron\b *[^ a-z.,]' "$top/$file" |
        grep -v '^[0-9]*: \*\|^[0-9]*:/\*' | sed "s|^|$file:|"
done >"$work/env"
cat "$work/env"
[ ! -s "$work/env" ] || bad=1

calls='accept accept4 bind close connect copy_file_range dup dup2 dup3 epoll_create1 epoll_ctl
epoll_wait eventfd execv execve execvp fallocate fcntl fcntl64 fork fstat ftruncate ftruncate64
getrandom getrlimit getrlimit64 getsockname getsockopt ioctl kill listen madvise mbind memfd_create
mkdir mlock mmap mmap64 mprotect mremap munmap nanosleep open open64 openat pidfd_open pipe pipe2
poll posix_fallocate posix_fallocate64 ppoll pread preadv process_vm_readv process_vm_writev
pthread_create pwrite read readlink readv recv recvfrom recvmsg sched_getaffinity sched_yield select
send sendmsg sendto setrlimit setsockopt shm_open shm_unlink shutdown sigprocmask sleep socket
socketpair stat syscall timerfd_create truncate unlink usleep vfork waitpid write writev'
echo "$calls" | tr ' ' '\n' | sort >"$work/calls"

need nm
find lib heap transport -name '*.o' -path '*.libs*' ! -path 'lib/tools/*' 2>/dev/null |
    grep -v '^lib/base/\.libs/os[a-z_]*\.o$' | while read -r object; do
    nm -u "$object" 2>/dev/null | sed 's/^ *[Uw] //; s/@.*//' | sort -u | comm -12 - "$work/calls" |
        sed "s|^|$object: calls |; s|\$|, not lib/base/os.h|"
done >"$work/sys"
cat "$work/sys"
[ ! -s "$work/sys" ] || bad=1
find lib/base -name 'os.o' -path '*.libs*' 2>/dev/null | grep -q . ||
    [ "$bad" = 1 ] || skip "the library is not built here: its objects were not looked at"
finish
