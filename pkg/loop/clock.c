/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.c - what only the kernel knows: clocks, random bytes, boot id, time namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loop_int.h"

base_time loop_clock(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0)
        abort();
    return (base_time)ts.tv_sec * BASE_SEC + ts.tv_nsec;
}

base_wall loop_wall(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
        abort();
    return (base_wall)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void loop_random(void *dst, size_t n)
{
    unsigned char *p = dst;

    while (n) {
        ssize_t r = getrandom(p, n, 0);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            abort();
        p += r;
        n -= (size_t)r;
    }
}

/* Reads a small file of /proc whole, with a NUL behind it. Returns its length or -errno. */
static ssize_t slurp(const char *path, char *dst, size_t size)
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    while (n + 1 < size) {
        ssize_t r = read(fd, dst + n, size - 1 - n);

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0) {
            r = -errno;
            (void)close(fd);
            return r;
        }
        if (r == 0)
            break;
        n += (size_t)r;
    }
    (void)close(fd);
    dst[n] = '\0';
    return (ssize_t)n;
}

int loop_boot_id(struct base_uuid *ret, struct base_err *err)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    char text[64];
    ssize_t n = slurp(path, text, sizeof text);

    if (n < 0)
        return base_err_sys(err, BASE_EIO, (int)-n, "boot id: cannot read %s", path);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    if (base_uuid_parse(ret, (struct base_str){text, (size_t)n}) != BASE_OK || base_uuid_is_zero(ret))
        return base_err_set(err, BASE_EIO, "boot id: %s holds no UUID", path);
    return BASE_OK;
}

int loop_check_time_namespace(struct base_err *err)
{
    static const char path[] = "/proc/self/timens_offsets";
    char text[512];
    ssize_t n = slurp(path, text, sizeof text);
    struct stat own, children;
    const char *line;

    if (n == -ENOENT)
        return BASE_OK; /* a kernel without time namespaces */
    if (n < 0)
        return base_err_sys(err, BASE_EIO, (int)-n, "time namespace: cannot read %s", path);
    /* The file shows the offsets of the namespace that children get; ours must be the same one. */
    if (stat("/proc/self/ns/time", &own) == 0 && stat("/proc/self/ns/time_for_children", &children) == 0 &&
        (own.st_ino != children.st_ino || own.st_dev != children.st_dev))
        return base_err_set(
            err, BASE_EINVAL,
            "time namespace: this process and its children are in different time namespaces; start it "
            "in the host's time namespace (do not use `unshare --time`)");
    line = strstr(text, "boottime");
    if (!line)
        return base_err_set(err, BASE_EIO, "time namespace: %s names no boottime", path);
    {
        char *end;
        long long sec = strtoll(line + strlen("boottime"), &end, 10), nsec = strtoll(end, NULL, 10);

        if (sec != 0 || nsec != 0)
            return base_err_set(
                err, BASE_EINVAL,
                "time namespace: CLOCK_BOOTTIME is shifted by %lld.%09lld s, but deadlines are shared with "
                "other processes of this host; start it in the host's time namespace",
                sec, nsec);
    }
    return BASE_OK;
}
