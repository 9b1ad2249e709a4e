/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop/loop.h"

#define TAIL_BYTES 65536 /* more than the longest line */
#define DIGITS 20

/* Writes everything and syncs; on failure the file is cut back to `at`. What a failed write has left behind
 * because cutting it back failed, too, goes first: a line after it would not verify. 0 or an errno. */
static int write_at_end(int fd, uint64_t at, const char *p, size_t n)
{
    size_t done = 0;
    struct stat st;
    int e = 0;

    if (fstat(fd, &st) != 0)
        return errno;
    if ((uint64_t)st.st_size < at)
        at = (uint64_t)st.st_size; /* somebody has cut it: to be seen, not to be filled up with zeros */
    else if ((uint64_t)st.st_size > at && ftruncate(fd, (off_t)at) != 0)
        return errno;
    while (done < n && !e) {
        ssize_t k = write(fd, p + done, n - done);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            e = k < 0 ? errno : EIO;
        else
            done += (size_t)k;
    }
    if (!e && fdatasync(fd) != 0)
        e = errno;
    if (e)
        (void)!ftruncate(fd, (off_t)at);
    return e;
}

/* ---- the copy */

/* A pipe that polls as writable takes PIPE_BUF bytes at once: no line of ours is longer. */
static bool copy_line(struct journal_file *f, const char *p, size_t n)
{
    struct pollfd pfd = {.fd = f->copy_fd, .events = POLLOUT};
    ssize_t k;

    if (n > PIPE_BUF || poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT) ||
        (pfd.revents & (POLLERR | POLLNVAL)))
        return false;
    k = write(f->copy_fd, p, n);
    return k == (ssize_t)n;
}

/* What has just become durable. */
static void copy_out(struct journal_file *f)
{
    if (!f->copy)
        return;
    for (size_t at = 0; at < f->sealed.len;) {
        const char *end = memchr(f->sealed.data + at, '\n', f->sealed.len - at);
        size_t n = (size_t)(end - (f->sealed.data + at)) + 1;
        char text[64];

        (void)base_fmt(text, sizeof text, "{\"chain\":\"copy\",\"missed\":%llu}\n",
                       (unsigned long long)f->missed_now);
        if (f->missed_now && copy_line(f, text, strlen(text)))
            f->missed_now = 0; /* said */
        if (!f->missed_now && copy_line(f, f->sealed.data + at, n)) {
            f->copied++;
        } else {
            f->missed++;
            f->missed_now++;
        }
        at += n;
    }
}

/* ---- the files */

static int sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), e = 0;

    if (fd < 0)
        return errno;
    if (fsync(fd) != 0)
        e = errno;
    (void)close(fd);
    return e;
}

/* Where the last whole line of a file ends (0 = there is none). What follows it has no end; a power loss can
 * leave any number of zeros there. 0 or an errno. */
static int end_of_lines(int fd, uint64_t size, char buf[TAIL_BYTES], uint64_t *ret)
{
    uint64_t to = size;

    *ret = 0;
    while (to > 0) {
        uint64_t from = to > TAIL_BYTES ? to - TAIL_BYTES : 0;
        ssize_t n = pread(fd, buf, (size_t)(to - from), (off_t)from);
        const char *end;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if ((uint64_t)n < to - from)
            return EIO; /* it was cut while it was read */
        end = memrchr(buf, '\n', (size_t)n);
        if (end) {
            *ret = from + (uint64_t)(end - buf) + 1;
            return 0;
        }
        to = from;
    }
    return 0;
}

/* The state of the chain at the end of a file, and how many bytes at its end are no whole line. `ret->seq`
 * stays 0 when there is no whole line. 0 or an errno; EBADMSG when the last whole line is none of ours, or
 * when there is none and more than one line's worth of bytes. */
static int read_tail(int fd, uint64_t size, struct audit_chain *ret, uint64_t *ret_torn, bool *ret_signed)
{
    char buf[TAIL_BYTES];
    uint64_t whole, from;
    const char *start, *end;
    ssize_t n;
    int e = end_of_lines(fd, size, buf, &whole);

    *ret = (struct audit_chain){.seq = 0};
    *ret_torn = size - whole;
    *ret_signed = false;
    if (e || whole == 0)
        return !e && size > TAIL_BYTES ? EBADMSG : e;
    from = whole > TAIL_BYTES ? whole - TAIL_BYTES : 0;
    n = pread(fd, buf, (size_t)(whole - from), (off_t)from);
    if (n < 0)
        return errno;
    if ((uint64_t)n < whole - from)
        return EIO;
    end = buf + n - 1;
    start = end > buf ? memrchr(buf, '\n', (size_t)(end - buf)) : NULL;
    start = start ? start + 1 : buf;
    *ret_signed = memmem(start, (size_t)(end - start), "\"chain\":\"checkpoint\"", 20) != NULL;
    return audit_chain_parse((struct base_str){start, (size_t)(end - start)}, ret) ? EBADMSG : 0;
}

bool journal_rotated_number(const char *name, uint64_t *ret)
{
    struct base_str s = base_str_of(name);
    uint64_t v = 0;

    if (s.len != 6 + DIGITS + 6 || !base_str_starts(s, "audit-") || strcmp(name + 6 + DIGITS, ".jsonl") != 0)
        return false;
    for (size_t i = 6; i < 6 + DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(name[i] - '0');
    }
    *ret = v;
    return true;
}

/* Counts the rotated files and finds the oldest and the newest. 0 or an errno. */
static int scan(const char *dir, unsigned *ret_n, uint64_t *ret_oldest, uint64_t *ret_newest)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    uint64_t number;

    *ret_n = 0;
    *ret_oldest = UINT64_MAX;
    *ret_newest = 0;
    if (!d)
        return errno;
    while ((e = readdir(d)))
        if (journal_rotated_number(e->d_name, &number)) {
            (*ret_n)++;
            *ret_oldest = number < *ret_oldest ? number : *ret_oldest;
            *ret_newest = number > *ret_newest ? number : *ret_newest;
        }
    (void)closedir(d);
    return 0;
}

static void rotated_path(const struct journal_file *f, uint64_t number, char *dst, size_t size)
{
    (void)base_fmt(dst, size, "%s/audit-%020llu.jsonl", f->dir, (unsigned long long)number);
}

/* Where the newest rotated file left the chain. */
static int chain_of_rotated(struct journal_file *f)
{
    uint64_t oldest, newest, torn;
    char path[512];
    struct stat st;
    bool is_signed;
    unsigned n;
    int fd, e = scan(f->dir, &n, &oldest, &newest);

    if (e || n == 0)
        return e;
    rotated_path(f, newest, path, sizeof path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    e = fstat(fd, &st) != 0 ? errno : read_tail(fd, (uint64_t)st.st_size, &f->chain, &torn, &is_signed);
    (void)close(fd);
    return e;
}

static int write_own_line(struct journal_file *f, bool torn, uint64_t bytes)
{
    struct audit_chain next = f->chain;
    int e;

    base_buf_reset(&f->sealed);
    if (torn ? audit_chain_torn(&next, f->hasher, &f->sealed, loop_wall(), bytes)
             : audit_chain_start(&next, f->hasher, &f->sealed, loop_wall(), f->node))
        return ENOMEM;
    e = write_at_end(f->fd, f->size, f->sealed.data, f->sealed.len);
    if (!e) {
        f->size += f->sealed.len;
        f->chain = next;
        copy_out(f);
    }
    return e;
}

/* An existing file: cut off what is torn, take up the chain. */
static int recover(struct journal_file *f)
{
    struct audit_chain last;
    uint64_t torn;
    bool is_signed;
    int e = read_tail(f->fd, f->size, &last, &torn, &is_signed);

    if (e)
        return e;
    if (torn) {
        if (ftruncate(f->fd, (off_t)(f->size - torn)) != 0)
            return errno;
        f->size -= torn;
        f->torn++;
    }
    if (last.seq)
        f->chain = last;
    else
        e = chain_of_rotated(f);
    if (!e && f->size == 0)
        e = write_own_line(f, false, 0);
    if (!e && torn)
        e = write_own_line(f, true, torn);
    /* what an earlier process left may be unsigned */
    f->unsigned_lines = f->chain.seq > 0 && (torn || !is_signed);
    return e;
}

/* One writer a directory: two would tear the chain apart. The lock ends with the process. */
static int lock_dir(struct journal_file *f, struct base_err *err)
{
    f->lock = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock >= 0 && flock(f->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return base_err_set(
            err, BASE_EDENIED,
            "audit.directory: another process writes its audit trail to %s; end it, or give each "
            "agent a directory of its own",
            f->dir);
    return BASE_OK; /* what else is wrong with the directory shows when the file is opened */
}

/* How old an open file is: by its first line, which says when it was begun. */
static base_time age_of(int fd)
{
    static const char key[] = "{\"ts\":\"";
    char head[sizeof key - 1 + 64];
    ssize_t n = pread(fd, head, sizeof head, 0);
    const char *end;
    base_wall t;

    if (n < (ssize_t)sizeof key || memcmp(head, key, sizeof key - 1) != 0)
        return 0;
    end = memchr(head + sizeof key - 1, '"', (size_t)n - (sizeof key - 1));
    if (!end || base_rfc3339_parse(
                    (struct base_str){head + sizeof key - 1, (size_t)(end - head) - (sizeof key - 1)}, &t))
        return 0;
    return base_time_max((base_time)(loop_wall() - t) * BASE_US, 0);
}

static int open_current(struct journal_file *f)
{
    struct stat st;

    f->fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return errno;
    if (fstat(f->fd, &st) != 0)
        return errno;
    f->size = (uint64_t)st.st_size;
    f->opened = loop_clock() - (f->max_age ? base_time_min(age_of(f->fd), f->max_age) : 0);
    return 0;
}

/* A new file at f->path goes on with the chain; the one that was written last is `old`. 0 or an errno: then
 * it goes on being written. */
static int next_file(struct journal_file *f)
{
    int old = f->fd, e;
    uint64_t size = f->size;
    base_time opened = f->opened;

    e = open_current(f);
    if (!e)
        e = f->size ? EEXIST : write_own_line(f, false, 0);
    if (!e) {
        (void)close(old);
        (void)sync_dir(f->dir);
        return 0;
    }
    if (f->fd >= 0 && f->fd != old)
        (void)close(f->fd);
    f->fd = old;
    f->size = size;
    f->opened = opened;
    return e;
}

/* Is the file that is written still the one at its path? What is written to one that was deleted is gone with
 * this process, what is written to one that was moved away belongs to no trail: neither is durable. A new
 * file then goes on with the chain, and shows by it that something is missing. 0 or an errno. */
static int still_there(struct journal_file *f)
{
    struct stat mine, there;

    if (fstat(f->fd, &mine) != 0)
        return errno;
    if (stat(f->path, &there) == 0 && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev)
        return 0;
    return next_file(f);
}

int journal_file_open(struct journal_file *f, const struct journal_config *cfg, struct base_err *err)
{
    int e;

    *f = (struct journal_file){.fd = -1,
                               .lock = -1,
                               .max_bytes = cfg->max_file_bytes ? cfg->max_file_bytes : 64u << 20,
                               .max_age = cfg->max_age,
                               .max_files = cfg->max_files ? cfg->max_files : 16,
                               .key = cfg->key,
                               .checkpoint_lines = cfg->checkpoint_lines ? cfg->checkpoint_lines : 10000,
                               .checkpoint_age = cfg->checkpoint_age ? cfg->checkpoint_age : 600 * BASE_SEC,
                               .checkpoint_at = loop_clock(),
                               .copy = cfg->copy,
                               .copy_fd = cfg->copy_fd};
    base_buf_init(&f->sealed, 64u << 20);
    if (base_copy(f->dir, sizeof f->dir, cfg->dir) ||
        !base_fmt(f->path, sizeof f->path, "%s/audit.jsonl", cfg->dir))
        return base_err_set(err, BASE_EINVAL, "audit.directory: '%.80s…' is too long", cfg->dir);
    if (base_copy(f->node, sizeof f->node, cfg->node && cfg->node[0] ? cfg->node : "unnamed"))
        return base_err_set(err, BASE_EINVAL, "audit: node name '%.80s…' is too long", cfg->node);
    f->hasher = base_hasher_new();
    if (!f->hasher)
        return base_err_set(err, BASE_ENOMEM, "audit journal: no memory");
    e = lock_dir(f, err);
    if (e)
        return e;
    e = open_current(f);
    if (e)
        return base_err_sys(
            err, e == EACCES || e == EPERM || e == EROFS ? BASE_EDENIED : BASE_EIO, e,
            "audit.directory: cannot open %s for appending; the directory must exist and belong to the "
            "agent's user (65532, mode 0700)",
            f->path);
    e = recover(f);
    if (e == EBADMSG)
        return base_err_set(
            err, BASE_EINVAL,
            "audit.directory: the last line of %s (or of the newest rotated file) is no sealed audit record; "
            "keep the file elsewhere as evidence and start with an empty directory",
            f->path);
    if (!e)
        e = sync_dir(f->dir);
    if (e)
        return base_err_sys(err, BASE_EIO, e, "audit.directory: cannot make %s durable", f->path);
    return BASE_OK;
}

void journal_file_close(struct journal_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    f->fd = -1;
    if (f->lock >= 0)
        (void)close(f->lock);
    f->lock = -1;
    base_buf_fini(&f->sealed);
    f->hasher = base_hasher_free(f->hasher);
}

int journal_file_append(struct journal_file *f, struct base_str batch)
{
    int e = still_there(f); /* before the chain is looked at: it may write a line */
    struct audit_chain next = f->chain;
    uint64_t lines = f->unsigned_lines;
    base_time now = loop_clock();
    size_t at = 0;
    bool sign;

    if (e)
        return e;
    base_buf_reset(&f->sealed);
    while (at < batch.len) {
        const char *end = memchr(batch.ptr + at, '\n', batch.len - at);
        struct base_str line = {batch.ptr + at, (size_t)(end - (batch.ptr + at)) + 1};

        if (audit_chain_seal(&next, f->hasher, &f->sealed, line))
            return ENOMEM;
        at += line.len;
        lines++;
    }
    /* in the same write as the last record that it signs */
    sign = f->key && (lines >= f->checkpoint_lines || now - f->checkpoint_at >= f->checkpoint_age);
    if (sign && audit_chain_checkpoint(&next, f->hasher, &f->sealed, loop_wall(), f->node, f->key))
        return ENOMEM;
    e = write_at_end(f->fd, f->size, f->sealed.data, f->sealed.len);
    if (e)
        return e;
    f->size += f->sealed.len;
    f->chain = next;
    f->unsigned_lines = sign ? 0 : lines;
    if (sign) {
        f->checkpoints++;
        f->checkpoint_at = now;
    }
    copy_out(f);
    return 0;
}

base_time journal_file_checkpoint_due(const struct journal_file *f)
{
    return f->key && f->unsigned_lines ? base_time_add(f->checkpoint_at, f->checkpoint_age) : BASE_TIME_NEVER;
}

int journal_file_checkpoint(struct journal_file *f, base_time now, bool now_at_any_rate)
{
    struct audit_chain next = f->chain;
    int e;

    if (!f->key || !f->unsigned_lines || (!now_at_any_rate && now < journal_file_checkpoint_due(f)))
        return 0;
    base_buf_reset(&f->sealed);
    if (audit_chain_checkpoint(&next, f->hasher, &f->sealed, loop_wall(), f->node, f->key))
        return ENOMEM;
    e = write_at_end(f->fd, f->size, f->sealed.data, f->sealed.len);
    f->checkpoint_at = now; /* also when it failed: not again at once */
    if (e)
        return e;
    f->size += f->sealed.len;
    f->chain = next;
    f->unsigned_lines = 0;
    f->checkpoints++;
    copy_out(f);
    return 0;
}

/* Deletes the oldest rotated files until `max_files` are left. */
static void retain(struct journal_file *f)
{
    uint64_t oldest, newest;
    char path[512];
    unsigned n;

    while (scan(f->dir, &n, &oldest, &newest) == 0 && n > f->max_files) {
        rotated_path(f, oldest, path, sizeof path);
        if (unlink(path) != 0)
            return;
    }
}

int journal_file_rotate(struct journal_file *f, base_time now)
{
    char path[512];
    int e;

    if (f->size < f->max_bytes && (!f->max_age || now - f->opened < f->max_age))
        return 0;
    rotated_path(f, f->chain.seq, path, sizeof path);
    if (rename(f->path, path) != 0)
        return errno;
    e = next_file(f);
    if (e) { /* go on with the old file under its old name */
        (void)rename(path, f->path);
        return e;
    }
    f->rotations++;
    retain(f);
    return 0;
}
