/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every system call of the library. EINTR is handled here; failures come back as -errno (or a
 * count / descriptor >= 0), never through errno. Tests make the n-th call of a kind fail through
 * gi_os_inject().
 */
#ifndef GI_BASE_OS_H
#define GI_BASE_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pollfd;
struct iovec;
struct msghdr;
struct sockaddr;

/* Kinds of call that a test can make fail. */
enum gi_os_call {
    GI_OS_MEMFD,
    GI_OS_FALLOCATE,
    GI_OS_MMAP,
    GI_OS_SOCKET,
    GI_OS_PIDFD,
    GI_OS_CMA,
    GI_OS_THREAD,
    GI_OS_CALLS
};
/*
 * Make calls first..first+count-1 (counted from 1, from now) of a kind fail with err. Test only.
 * GI_OS_CMA alone takes a negative err: those calls move at most -err bytes.
 */
void gi_os_inject(enum gi_os_call call, unsigned first, unsigned count, int err);

size_t gi_os_page_size(void);
uint64_t gi_os_memory_total(void); /* bytes of RAM, or the cgroup's limit where lower */
uint64_t gi_os_memory_free(void);  /* bytes to be had without the OOM killer, both limits seen */
uint64_t gi_os_file_limit(void);   /* RLIMIT_FSIZE, which holds for memory objects too */
/* Descriptors that may still be opened, out of *limit (RLIMIT_NOFILE); UINT64_MAX: unknown. */
uint64_t gi_os_files_left(uint64_t *limit);
bool gi_os_huge_pages(uint64_t *bytes, uint64_t *free); /* size and free bytes; false: no such */
int gi_os_cores(void);                                  /* cores this process may run on, >= 1 */
int gi_os_random(void *buf, size_t n);                  /* 0 or -errno */

/* Memory objects and mappings */
int gi_os_memfd(const char *name, bool huge);       /* fd or -errno */
int gi_os_grow(int fd, uint64_t from, uint64_t to); /* reserve pages: no SIGBUS later */
int gi_os_shrink(int fd, uint64_t to);              /* give back the pages from `to` on */
int gi_os_reserve(size_t bytes, void **addr);       /* PROT_NONE range, well aligned */
int gi_os_map_shared(void *addr, int fd, uint64_t off, size_t bytes); /* over a reserved range */
int gi_os_unreserve(void *addr, size_t bytes);
uint64_t gi_os_address_limit(void); /* RLIMIT_AS in bytes, UINT64_MAX: none */
int gi_os_file_id(int fd, uint64_t id[2], uint64_t *size); /* device and inode; its length */
void *gi_os_map_private(
    size_t bytes); /* zeroed pages that a fork()ed child finds zeroed; or NULL */
void gi_os_unmap(void *addr, size_t bytes);
bool gi_os_is_mapped(uint64_t addr); /* something is at this address */

/* Descriptors and sockets; all are close-on-exec */
int gi_os_close(int fd);
void gi_os_forked(void); /* in a fork()ed child: closes sockets and bells */
int gi_os_socket(int domain, int type, int protocol);
int gi_os_bind(int fd, const struct sockaddr *sa, uint32_t len);
int gi_os_listen(int fd, int backlog);
int gi_os_accept(int fd, struct sockaddr *sa, uint32_t *len, uint64_t deadline);
int gi_os_connect(int fd, const struct sockaddr *sa, uint32_t len, uint64_t deadline);
/* A descriptor that poll(2) finds readable once it was rung; answered before it is slept on again.
 */
int gi_os_bell(void);
void gi_os_bell_ring(int fd);
void gi_os_bell_answer(int fd);
int gi_os_poll(struct pollfd *fds, unsigned n, uint64_t deadline); /* 0 at the deadline */
ssize_t gi_os_read(int fd, void *buf, size_t n);
ssize_t gi_os_write(int fd, const void *buf, size_t n);              /* no SIGPIPE on sockets */
int gi_os_read_full(int fd, void *buf, size_t n, uint64_t deadline); /* -ECONNRESET on early EOF */
int gi_os_write_full(int fd, const void *buf, size_t n, uint64_t deadline);
ssize_t gi_os_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t gi_os_recvmsg(int fd, struct msghdr *msg, int flags);
int gi_os_peer(int fd, pid_t *pid, uid_t *uid); /* who is at the other end of a Unix socket */
int gi_os_set_option(int fd, int level, int option, int value);
int gi_os_sockname(int fd, struct sockaddr *sa, uint32_t *len); /* *len: room in, length out */
int gi_os_peername(int fd, struct sockaddr *sa, uint32_t *len);
int gi_os_dup(int fd); /* another descriptor, close-on-exec and above 2 */

/* Processes */
int gi_os_pidfd_open(pid_t pid);
bool gi_os_pidfd_dead(int pidfd); /* true once the process has exited */
/* When a living process began, in an unspecified unit (0: not known); -ESRCH once it has exited. */
int gi_os_process_start(pid_t pid, uint64_t *start);
uint64_t gi_os_namespace(const char *kind); /* number of this process's "net" ...; 0: not known */
ssize_t gi_os_vm_read(pid_t pid, const struct iovec *local, const struct iovec *remote);
ssize_t gi_os_vm_write(pid_t pid, const struct iovec *local, const struct iovec *remote);
int gi_os_host_id(char *buf, size_t n); /* boot id + ipc/net/pid namespaces of this process */
void gi_os_yield(void);
void gi_os_sleep_ns(uint64_t ns);

/* Handle a signal that is at its default: 1; 0 and nothing done where the program handles it. */
int gi_os_signal_take(int sig, void (*handler)(int));
void gi_os_signal_give_back(int sig, void (*handler)(int)); /* to its default, if still ours */

/* Start a thread that takes none of the program's signals; name may be NULL. 0 or -errno. */
int gi_os_thread(pthread_t *thread, void *(*run)(void *), void *arg, const char *name);

/* Keep this thread to the cores beside a PCI device ("0000:1b:00.0"), as far as it may use them and
 * the system says which; else it goes on where it is. */
void gi_os_stay_near(const char *pci);

/* Text of a small file, cut to n - 1 bytes and terminated; its length or -errno. */
int gi_os_read_file(const char *path, char *buf, size_t n);

/* Open a file for appending, made if need be; fd or -errno. */
int gi_os_append(const char *path);

/* "12 (Cannot allocate memory)" for messages; e may be negative. Thread-local buffer. */
const char *gi_os_strerror(int e);

#endif
