/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes in and out of the ranks: whole lines with "[rank] " in front; a terminal's input. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tools/ginrun.h"

#define LINE_MOST 65536 /* a longer line is printed in pieces */

bool run_queue_add(struct run_queue *q, const void *data, size_t n)
{
    if (q->begin > 0 && q->begin == q->end)
        q->begin = q->end = 0;
    if (q->end + n > q->cap && q->begin > 0) {
        memmove(q->data, q->data + q->begin, q->end - q->begin);
        q->end -= q->begin;
        q->begin = 0;
    }
    if (q->end + n > q->cap) {
        size_t cap = q->cap * 2 > q->end + n ? q->cap * 2 : q->end + n + 512;
        char *bigger = realloc(q->data, cap);
        if (bigger == NULL)
            return false;
        q->data = bigger;
        q->cap = cap;
    }
    memcpy(q->data + q->end, data, n);
    q->end += n;
    return true;
}

void run_queue_drop(struct run_queue *q, size_t n)
{
    q->begin += n;
}

/* One write, so that lines of ranks do not mix even where others share our output. */
static void write_labelled(int fd, int rank, const char *text, size_t n)
{
    static char buf[LINE_MOST + 32];
    size_t len = (size_t)snprintf(buf, sizeof(buf), "[%d] ", rank), done = 0;

    memcpy(buf + len, text, n);
    len += n;
    if (buf[len - 1] != '\n')
        buf[len++] = '\n';
    /* A reader that went away ends the output, not the job. */
    while (done < len) {
        ssize_t w = write(fd, buf + done, len - done);
        if (w < 0 && errno != EINTR)
            return;
        done += w > 0 ? (size_t)w : 0;
    }
}

static void print_lines(struct run_queue *q, int fd, int rank, bool all)
{
    while (q->begin < q->end) {
        const char *text = q->data + q->begin;
        size_t n = q->end - q->begin;
        const char *nl = memchr(text, '\n', n);
        if (nl == NULL && !all && n < LINE_MOST)
            return;
        n = nl != NULL ? (size_t)(nl - text) + 1 : n;
        n = n < LINE_MOST ? n : LINE_MOST;
        write_labelled(fd, rank, text, n);
        run_queue_drop(q, n);
    }
}

/* Read once; false when there is nothing more, now or ever. */
static bool read_some(struct run_job *job, int rank, int which)
{
    struct run_rank *r = &job->rank[rank];
    char buf[16384];
    ssize_t n = read(r->pipe[which], buf, sizeof(buf));

    if (n > 0 && run_queue_add(&r->line[which], buf, (size_t)n)) {
        print_lines(&r->line[which], which + 1, rank, false);
        return true;
    }
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    close(r->pipe[which]);
    r->pipe[which] = -1;
    print_lines(&r->line[which], which + 1, rank, true);
    return false;
}

void run_io_event(struct run_job *job, int rank, int which)
{
    if (job->rank[rank].pipe[which] >= 0)
        read_some(job, rank, which);
}

/* The rank is gone; a child that it left behind may hold the pipe open and is not waited for. */
void run_io_drain(struct run_job *job, int rank)
{
    struct run_rank *r = &job->rank[rank];

    for (int which = 0; which < 2; which++) {
        while (r->pipe[which] >= 0 && read_some(job, rank, which))
            ;
        if (r->pipe[which] >= 0)
            close(r->pipe[which]);
        r->pipe[which] = -1;
        print_lines(&r->line[which], which + 1, rank, true);
        free(r->line[which].data);
        r->line[which] = (struct run_queue){.data = NULL};
    }
}

static void close_feed(struct run_job *job)
{
    if (job->feed >= 0)
        close(job->feed);
    job->feed = -1;
}

/* One read of the terminal, passed on as rank 0 takes it. */
void run_feed_read(struct run_job *job)
{
    char buf[4096];
    ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0 && job->feed >= 0 && run_queue_add(&job->input, buf, (size_t)n)) {
        run_feed_write(job);
        return;
    }
    epoll_ctl(job->epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
    job->input_ended = true;
    run_feed_write(job);
}

void run_feed_write(struct run_job *job)
{
    struct run_queue *q = &job->input;

    while (job->feed >= 0 && q->begin < q->end) {
        ssize_t n = write(job->feed, q->data + q->begin, q->end - q->begin);
        if (n > 0)
            run_queue_drop(q, (size_t)n);
        else if (n < 0 && errno == EAGAIN)
            break;
        else if (n < 0 && errno != EINTR)
            close_feed(job);
    }
    if (q->begin == q->end && job->input_ended)
        close_feed(job);
    if (job->feed >= 0)
        run_rewatch(job, job->feed, EV_FEED, 0, q->begin < q->end ? EPOLLOUT : 0);
}
