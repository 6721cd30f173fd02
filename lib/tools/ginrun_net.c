/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts that are more than a name (--netns): each has its own network, host name, shared memory and
 * System V objects, as namespaces that only open descriptors hold. Nothing of them has a name in
 * the system, so the kernel takes all away with ginrun and the ranks, however they end. A further
 * namespace, the switch, bridges the hosts; host i is 10.99.0.(i + 1) behind port p<i>.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/ginrun.h"

static const struct {
    const char *name;
    int flag;
} spaces[RUN_SPACES] = {
    {"net", CLONE_NEWNET},
    {"uts", CLONE_NEWUTS},
    {"ipc", CLONE_NEWIPC},
    {"mnt", CLONE_NEWNS}, /* last: what is opened by path must be open by then */
};

/* What a namespace process tells its maker. */
struct word {
    int err;
    char what[28];
};

/*
 * The hosts' names, for launchers and programs that ask for an address: a file laid over
 * /etc/hosts. It needs no name once it is mounted. Without /etc/hosts there are addresses only.
 */
static bool name_hosts(int hosts)
{
    static const char path[] = "/dev/shm/.hosts";
    FILE *f;
    bool ok;

    if (access("/etc/hosts", F_OK) != 0)
        return true;
    f = fopen(path, "wxe");
    if (f == NULL)
        return false;
    fprintf(f, "127.0.0.1 localhost\n::1 localhost\n");
    for (int i = 0; i < hosts; i++)
        fprintf(f, "10.99.0.%d host%d\n", i + 1, i);
    ok = fclose(f) == 0 && chmod(path, 0644) == 0 &&
         mount(path, "/etc/hosts", NULL, MS_BIND, NULL) == 0;
    unlink(path);
    return ok;
}

static struct word attempt(int host, int hosts)
{
    struct word w = {.err = 0};
    char name[32];
    int flags = 0;

    for (int i = 0; i < RUN_SPACES; i++)
        flags |= spaces[i].flag;
    snprintf(name, sizeof(name), "host%d", host);
    strcpy(w.what, "namespaces");
    if (unshare(flags) != 0)
        goto failed;
    strcpy(w.what, "mounts");
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777") != 0)
        goto failed;
    strcpy(w.what, "/etc/hosts");
    if (!name_hosts(hosts))
        goto failed;
    strcpy(w.what, "host name");
    if (sethostname(name, strlen(name)) != 0)
        goto failed;
    return w;
failed:
    w.err = errno;
    return w;
}

/* The process that makes a host's namespaces and stays in them until ginrun holds them. */
__attribute__((noreturn)) static void live_there(int host, int hosts, int tell, int hold)
{
    struct word w = attempt(host, hosts);
    char byte;

    if (write(tell, &w, sizeof(w)) == (ssize_t)sizeof(w) && read(hold, &byte, 1) < 0)
        _exit(1);
    _exit(0);
}

static bool hold_spaces(struct run_host *h, pid_t pid)
{
    char path[64];

    for (int i = 0; i < RUN_SPACES; i++) {
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, spaces[i].name);
        h->space[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (h->space[i] < 0)
            return false;
    }
    /* To enter a mount namespace leaves a chroot behind: this is its root there. */
    snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    h->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return h->root >= 0;
}

static bool make_host(struct run_host *h, int host, int hosts)
{
    struct word w = {.err = EIO, .what = "namespaces"};
    int tell[2], hold[2];
    bool ok = false;
    pid_t pid;

    if (pipe2(tell, O_CLOEXEC) != 0 || pipe2(hold, O_CLOEXEC) != 0) {
        run_say("--netns: %s", strerror(errno));
        return false;
    }
    pid = fork();
    if (pid == 0) {
        close(hold[1]); /* ginrun's end is the last one: its death lets us go */
        live_there(host, hosts, tell[1], hold[0]);
    }
    close(tell[1]);
    close(hold[0]);
    if (pid > 0 && read(tell[0], &w, sizeof(w)) == (ssize_t)sizeof(w) && w.err == 0) {
        ok = hold_spaces(h, pid);
        w.err = errno;
    }
    close(tell[0]);
    close(hold[1]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (!ok)
        run_say("--netns: cannot make the %s of host %d: %s; it takes root and a kernel that lets "
                "it (--hosts alone needs neither)",
                w.what, host, strerror(w.err));
    return ok;
}

/* ---- ip(8) ---- */

__attribute__((noreturn)) static void become_ip(int net, int input)
{
    static const char *const places[] = {"ip", "/usr/sbin/ip", "/sbin/ip"};
    char *argv[] = {"ip", "-batch", "-", NULL};

    if (setns(net, CLONE_NEWNET) != 0 || dup2(input, STDIN_FILENO) < 0)
        _exit(RUN_FAILED);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        execvp(places[i], argv);
    _exit(errno == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_EXEC);
}

/* Run the lines of an open file as commands of ip in a network namespace. */
static bool run_ip(int net, FILE *lines)
{
    int status = 0;
    pid_t pid;

    if (fflush(lines) != 0 || lseek(fileno(lines), 0, SEEK_SET) != 0)
        return false;
    pid = fork();
    if (pid == 0)
        become_ip(net, fileno(lines));
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        run_say("--netns: cannot run ip: %s", strerror(errno));
        return false;
    }
    if (status == 0)
        return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == RUN_NOT_FOUND)
        run_say("--netns needs the command ip, which is not there (package iproute2)");
    else
        run_say("--netns: ip failed with status %d",
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return false;
}

/* Fills a file by `write_lines` and runs it. */
static bool with_lines(int net, void (*write_lines)(FILE *f, const struct run_job *job, int host),
                       const struct run_job *job, int host)
{
    FILE *f = tmpfile();
    bool ok;

    if (f == NULL) {
        run_say("--netns: no temporary file: %s", strerror(errno));
        return false;
    }
    write_lines(f, job, host);
    ok = run_ip(net, f);
    fclose(f);
    return ok;
}

static void write_switch(FILE *f, const struct run_job *job, int unused)
{
    (void)unused;
    fprintf(f, "link set lo up\nlink add br0 type bridge\nlink set br0 up\n");
    for (int i = 0; i < job->opt.hosts; i++)
        fprintf(f,
                "link add p%d type veth peer name eth0 netns /proc/%d/fd/%d\n"
                "link set p%d master br0 up\n",
                i, (int)getpid(), job->host[i].space[0], i);
}

static void write_host(FILE *f, const struct run_job *job, int host)
{
    (void)job;
    fprintf(f, "link set lo up\naddr add 10.99.0.%d/24 dev eth0\nlink set eth0 up\n", host + 1);
}

/* ---- for the others ---- */

bool run_net_open(struct run_job *job)
{
    int n = job->opt.hosts;

    if (!job->opt.netns)
        return true;
    if (geteuid() != 0) {
        run_say("--netns needs root, to make network namespaces; --hosts alone does not");
        return false;
    }
    job->host = calloc((size_t)n + 1, sizeof(*job->host));
    if (job->host == NULL) {
        run_say("no memory for %d hosts", n);
        return false;
    }
    for (int i = 0; i <= n; i++) /* the last one is the switch */
        if (!make_host(&job->host[i], i, n))
            return false;
    if (!with_lines(job->host[n].space[0], write_switch, job, 0))
        return false;
    for (int i = 0; i < n; i++)
        if (!with_lines(job->host[i].space[0], write_host, job, i))
            return false;
    return true;
}

bool run_net_enter(const struct run_job *job, int host)
{
    char cwd[4096], path[64];

    if (!job->opt.netns)
        return true;
    if (getcwd(cwd, sizeof(cwd)) == NULL)
        return false;
    for (int i = 0; i < RUN_SPACES; i++)
        if (setns(job->host[host].space[i], spaces[i].flag) != 0)
            return false;
    if (fchdir(job->host[host].root) != 0 || chroot(".") != 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getppid(),
             job->host[job->opt.hosts].space[0]);
    setenv("GINRUN_SWITCH", path, 1);
    return chdir(cwd) == 0;
}
