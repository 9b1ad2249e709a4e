/* SPDX-License-Identifier: Apache-2.0
 *
 * tun/netns_test.h - for tests only: a private network namespace with TUN devices as the foundation makes
 * them.
 *
 * Needs root. The calling process moves into new network and mount namespaces for good (each Criterion test
 * is a process of its own), so that nothing of it is ever seen outside and nothing has to be cleaned up.
 * Functions abort with a message on failure: a test without its set-up proves nothing.
 */
#ifndef TUN_NETNS_TEST_H
#define TUN_NETNS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define NETNS_AGENT_UID 65532
#define NETNS_FOUNDATION (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE)
#define NETNS_UNUSED __attribute__((unused))

static NETNS_UNUSED void netns_fail(const char *what)
{
    (void)fprintf(stderr, "test set-up: %s: %s\n", what, strerror(errno));
    abort();
}

static NETNS_UNUSED void netns_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        netns_fail(path);
    (void)close(fd);
}

/* New namespaces, loopback up, a /dev/net/tun of its own with the mode that udev gives (`mode` 0 = none at
 * all). */
static NETNS_UNUSED void netns_enter(mode_t mode)
{
    struct ifreq rq;
    int s;

    if (geteuid() != 0) {
        (void)fprintf(stderr,
                      "test set-up: this test makes network namespaces and TUN devices: run it as root\n");
        abort();
    }
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
        netns_fail("unshare");
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        netns_fail("private mounts");
    if (mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755") < 0)
        netns_fail("/dev/net");
    if (mode != 0 &&
        (mknod("/dev/net/tun", S_IFCHR | 0600, makedev(10, 200)) < 0 || chmod("/dev/net/tun", mode) < 0))
        netns_fail("/dev/net/tun");
    s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memset(&rq, 0, sizeof rq);
    memcpy(rq.ifr_name, "lo", 3);
    rq.ifr_flags = IFF_UP;
    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &rq) < 0)
        netns_fail("lo up");
    (void)close(s);
}

/* Runs one command ("ip", "-6", ...; ends with NULL) and expects it to succeed. */
static NETNS_UNUSED void netns_run(const char *first, ...)
{
    char *argv[32];
    va_list ap;
    int n = 0, st = 0;
    pid_t p;

    va_start(ap, first);
    for (const char *a = first; a && n < 31; a = va_arg(ap, const char *))
        argv[n++] = strdup(a);
    va_end(ap);
    argv[n] = NULL;
    p = fork();
    if (p == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
    if (p < 0 || waitpid(p, &st, 0) != p || st != 0) {
        (void)fprintf(stderr, "test set-up: '%s %s %s' ended with status %d\n", argv[0], n > 1 ? argv[1] : "",
                      n > 2 ? argv[2] : "", st);
        abort();
    }
    for (int i = 0; i < n; i++)
        free(argv[i]);
}

/* Makes a device as the foundation does; `owner` < 0 = none. Returns a keeper descriptor whose queue is
 * detached. */
static NETNS_UNUSED int netns_make_tun(const char *name, int flags, int owner, int mtu, bool up)
{
    struct ifreq rq;
    char path[128];
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK),
        s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memset(&rq, 0, sizeof rq);
    memcpy(rq.ifr_name, name, strlen(name));
    rq.ifr_flags = (short)flags;
    if (fd < 0 || s < 0 || ioctl(fd, TUNSETIFF, &rq) < 0)
        netns_fail(name);
    if ((owner >= 0 && ioctl(fd, TUNSETOWNER, owner) < 0) || ioctl(fd, TUNSETPERSIST, 1) < 0)
        netns_fail("owner, persist");
    (void)snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/addr_gen_mode", name);
    netns_put(path, "1");
    rq.ifr_mtu = mtu;
    if (ioctl(s, SIOCSIFMTU, &rq) < 0)
        netns_fail("mtu");
    rq.ifr_flags = IFF_UP;
    if (up && ioctl(s, SIOCSIFFLAGS, &rq) < 0)
        netns_fail("up");
    (void)close(s);
    if (flags & IFF_MULTI_QUEUE) {
        memset(&rq, 0, sizeof rq);
        rq.ifr_flags = IFF_DETACH_QUEUE;
        if (ioctl(fd, TUNSETQUEUE, &rq) < 0)
            netns_fail("detach");
    }
    return fd;
}

/* Becomes the agent: uid 65532, no groups, no capability, no new privileges. For good. */
static NETNS_UNUSED void netns_drop(void)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{0, 0, 0}, {0, 0, 0}};

    for (int c = 0; c <= CAP_LAST_CAP; c++)
        (void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (setgroups(0, NULL) < 0 || setresgid(NETNS_AGENT_UID, NETNS_AGENT_UID, NETNS_AGENT_UID) < 0 ||
        setresuid(NETNS_AGENT_UID, NETNS_AGENT_UID, NETNS_AGENT_UID) < 0 || syscall(SYS_capset, &h, d) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) /* the leak check reads its own threads */
        netns_fail("dropping privileges");
}

#endif
