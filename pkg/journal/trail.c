/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/trail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "journal/file.h"

#define CHUNK (256 * 1024)
#define LINE_MAX_BYTES (64 * 1024)

static int failed(struct base_err *err, int e, const char *path)
{
    if (e == ENOENT)
        return base_err_set(err, BASE_ENOTFOUND, "%s: no such file or directory", path);
    return base_err_sys(err, e == EACCES || e == EPERM ? BASE_EDENIED : BASE_EIO, e, "%s: cannot be read",
                        path);
}

/* Gives the lines of `buf[0..n)`; returns how many bytes were used up in *ret_used. */
static int give(const struct journal_reader *r, const char *buf, size_t n, uint64_t *number, bool *cut,
                size_t *ret_used)
{
    size_t at = 0;
    const char *end;

    while (at < n && (end = memchr(buf + at, '\n', n - at))) {
        size_t len = (size_t)(end - (buf + at));

        if (!*cut) {
            int rc = r->line(r->arg, ++*number, (struct base_str){buf + at, len}, true);

            if (rc)
                return rc;
        }
        *cut = false; /* the rest of a line that was too long */
        at += len + 1;
    }
    *ret_used = at;
    return BASE_OK;
}

static int read_fd(int fd, const char *path, const struct journal_reader *r, struct base_err *err)
{
    char *buf = base_calloc(1, CHUNK + LINE_MAX_BYTES);
    uint64_t number = 0;
    size_t have = 0, used;
    bool cut = false;
    int rc = buf ? BASE_OK : base_err_set(err, BASE_ENOMEM, "%s: no memory to read it", path);

    while (!rc) {
        ssize_t n = read(fd, buf + have, CHUNK + LINE_MAX_BYTES - have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = failed(err, errno, path);
        if (n <= 0)
            break;
        have += (size_t)n;
        rc = give(r, buf, have, &number, &cut, &used);
        if (rc)
            break;
        memmove(buf, buf + used, have - used);
        have -= used;
        if (have > LINE_MAX_BYTES) {
            if (!cut)
                rc = r->line(r->arg, ++number, (struct base_str){buf, LINE_MAX_BYTES}, true);
            cut = true;
            have = 0;
        }
    }
    if (!rc && have && !cut)
        rc = r->line(r->arg, ++number, (struct base_str){buf, have}, false);
    base_free(buf);
    return rc;
}

/* Opens, asks whether it is wanted, reads. `unless` is a file that is read elsewhere. */
static int read_file(const char *path, uint64_t last_seq, const struct stat *unless,
                     const struct journal_reader *r, struct base_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc = BASE_OK;
    struct stat st;

    if (fd < 0)
        return failed(err, errno, path);
    if (fstat(fd, &st) != 0)
        rc = failed(err, errno, path);
    else if (!S_ISREG(st.st_mode))
        rc = base_err_set(err, BASE_EINVAL, "%s: neither a file nor a directory", path);
    else if (!(unless && unless->st_ino == st.st_ino && unless->st_dev == st.st_dev) &&
             (!r->file || r->file(r->arg, path, last_seq,
                                  (base_wall)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000)))
        rc = read_fd(fd, path, r, err);
    (void)close(fd);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int list(const char *dir, uint64_t **ret, size_t *ret_n, struct base_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    size_t room = 0;
    uint64_t number;

    *ret = NULL;
    *ret_n = 0;
    if (!d)
        return failed(err, errno, dir);
    while ((e = readdir(d))) {
        if (!journal_rotated_number(e->d_name, &number))
            continue;
        if (*ret_n == room) {
            uint64_t *more = base_realloc(*ret, (room + 64) * 2 * sizeof **ret);

            if (!more) {
                (void)closedir(d);
                return base_err_set(err, BASE_ENOMEM, "%s: no memory to read it", dir);
            }
            room = (room + 64) * 2;
            *ret = more;
        }
        (*ret)[(*ret_n)++] = number;
    }
    (void)closedir(d);
    if (*ret_n)
        qsort(*ret, *ret_n, sizeof **ret, by_number);
    return BASE_OK;
}

static int read_dir(const char *dir, const struct journal_reader *r, struct base_err *err)
{
    char path[4200], current[4200];
    uint64_t *numbers = NULL;
    size_t n = 0;
    struct stat now;
    int fd, rc;

    if (!base_fmt(current, sizeof current, "%s/audit.jsonl", dir))
        return base_err_set(err, BASE_EINVAL, "%.80s…: the path is too long", dir);
    /* The current file first: it may be rotated while the others are read, and is then the same inode. */
    fd = open(current, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return failed(err, errno, current);
    if (fd >= 0 && fstat(fd, &now) != 0) {
        rc = failed(err, errno, current);
        (void)close(fd);
        return rc;
    }
    if (fd >= 0 && !S_ISREG(now.st_mode)) {
        (void)close(fd);
        return base_err_set(err, BASE_EINVAL, "%s: no file", current);
    }
    rc = list(dir, &numbers, &n, err);
    if (!rc && !n && fd < 0)
        rc = base_err_set(err, BASE_ENOTFOUND, "%s: there is no audit.jsonl and no audit-*.jsonl in it", dir);
    for (size_t i = 0; !rc && i < n; i++) {
        (void)base_fmt(path, sizeof path, "%s/audit-%020llu.jsonl", dir, (unsigned long long)numbers[i]);
        rc = read_file(path, numbers[i], fd >= 0 ? &now : NULL, r, err);
        if (rc == BASE_ENOTFOUND) /* deleted by the agent's retention meanwhile */
            rc = BASE_OK;
    }
    if (!rc && fd >= 0 &&
        (!r->file ||
         r->file(r->arg, current, 0, (base_wall)now.st_mtim.tv_sec * 1000000 + now.st_mtim.tv_nsec / 1000)))
        rc = read_fd(fd, current, r, err);
    if (fd >= 0)
        (void)close(fd);
    base_free(numbers);
    return rc;
}

int journal_read(const char *path, const struct journal_reader *r, struct base_err *err)
{
    struct stat st;
    uint64_t number = 0;
    const char *name = strrchr(path, '/');

    if (stat(path, &st) != 0)
        return failed(err, errno, path);
    if (S_ISDIR(st.st_mode))
        return read_dir(path, r, err);
    (void)journal_rotated_number(name ? name + 1 : path, &number);
    return read_file(path, number, NULL, r, err);
}
