/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ask_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)256 * 1024)

static bool same(const struct ask_file *f, const struct stat *st)
{
    return f->text && f->dev == st->st_dev && f->ino == st->st_ino && f->size == st->st_size &&
           f->mtime_ns == (int64_t)st->st_mtim.tv_sec * BASE_SEC + st->st_mtim.tv_nsec;
}

static int read_all(const struct ask_file *f, int fd, size_t size, struct base_secret **ret,
                    struct base_err *err)
{
    char *text = base_calloc(1, size + 1);
    size_t n = 0;
    ssize_t k = 1;

    if (!text)
        return base_err_set(err, BASE_ENOMEM, "%s: no memory", f->what);
    while (n < size && (k = read(fd, text + n, size - n)) > 0)
        n += (size_t)k;
    if (k >= 0)
        *ret = base_secret_new((struct base_str){text, n});
    base_wipe(text, size);
    base_free(text);
    if (k < 0)
        return base_err_sys(err, BASE_EIO, errno, "%s: cannot read %s", f->what, f->path);
    return *ret ? BASE_OK : base_err_set(err, BASE_ENOMEM, "%s: no memory", f->what);
}

int agent_ask_file_read(struct ask_file *f, bool *ret_changed, struct base_err *err)
{
    struct base_secret *text = NULL;
    struct stat st;
    int rc, fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    *ret_changed = false;
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = base_err_sys(err, BASE_EINVAL, errno, "%s: cannot read %s; mount the file or name another one",
                          f->what, f->path);
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    if (same(f, &st)) {
        (void)close(fd);
        return BASE_OK;
    }
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uintmax_t)st.st_size > FILE_MAX)
        rc = base_err_set(err, BASE_EINVAL, "%s: %s must be a PEM file of 1 byte to 256 KiB", f->what,
                          f->path);
    else
        rc = read_all(f, fd, (size_t)st.st_size, &text, err);
    (void)close(fd);
    if (rc == BASE_OK && !memmem(base_secret_text(text).ptr, base_secret_text(text).len, "-----BEGIN ", 11))
        rc = base_err_set(err, BASE_EINVAL, "%s: %s holds no PEM text ('-----BEGIN …')", f->what, f->path);
    if (rc != BASE_OK) {
        base_secret_free(text);
        return rc;
    }
    base_secret_free(f->text);
    f->text = text;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->size = st.st_size;
    f->mtime_ns = (int64_t)st.st_mtim.tv_sec * BASE_SEC + st.st_mtim.tv_nsec;
    *ret_changed = true;
    return BASE_OK;
}

void agent_ask_file_fini(struct ask_file *f)
{
    f->text = base_secret_free(f->text);
}
