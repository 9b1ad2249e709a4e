/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t read_pid(int fd)
{
    char text[16];
    uint64_t pid;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    struct base_str s = {text, n > 0 ? (size_t)n : 0};

    if (s.len && s.ptr[s.len - 1] == '\n')
        s.len--;
    return base_parse_u64(s, 1u << 30, &pid) ? 0 : (pid_t)pid;
}

static void make_folder(const char *path)
{
    char dir[512];
    char *slash;

    if (base_copy(dir, sizeof dir, path))
        return;
    slash = strrchr(dir, '/');
    if (slash && slash != dir) {
        *slash = '\0';
        (void)mkdir(dir, 0755); /* opening the file tells what is wrong */
    }
}

int lock_take(const char *path, struct base_err *err)
{
    char text[16];
    int fd;

    make_folder(path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return base_err_sys(err, BASE_EIO, errno, "--lock: cannot open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        int e = errno;
        pid_t pid = read_pid(fd);

        close(fd);
        if (e == EWOULDBLOCK)
            return base_err_set(
                err, BASE_EAGAIN,
                "--lock: process %ld holds '%s'; there is one foundation per kernel, end that one first",
                (long)pid, path);
        return base_err_sys(err, BASE_EIO, e, "--lock: cannot lock '%s'", path);
    }
    base_fmt(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, text, strlen(text), 0) < 0)
        return base_err_sys(err, BASE_EIO, errno, "--lock: cannot write '%s'", path);
    return BASE_OK; /* the descriptor stays open for life */
}

pid_t lock_holder(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    pid_t pid = fd >= 0 ? read_pid(fd) : 0;

    if (fd >= 0)
        close(fd);
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM) ? pid : 0;
}
