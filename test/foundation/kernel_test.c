/* SPDX-License-Identifier: Apache-2.0
 * The kernel's side on the real kernel, as root in a namespace of its own (kernel_test.sh): gate, default
 * drop, devices, routes, watchdog, lock. Every "closed drops" is preceded by "open passes" of the same
 * packet. */
#include "gate_abi.h"
#include "kernel.h"
#include "lock.h"

#include "base/cleanup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FLAGS (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE)
#define PORT 7000

static char bpffs[256], tun_node[256];

static base_time now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * BASE_SEC + t.tv_nsec;
}

static struct kernel_config config(const char *test)
{
    const char *dir = getenv("FOUNDATION_TEST_DIR");

    cr_assert_not_null(dir, "run by kernel_test.sh");
    base_fmt(bpffs, sizeof bpffs, "%s/bpf/%s", dir, test);
    base_fmt(tun_node, sizeof tun_node, "%s/tun", dir);
    return (struct kernel_config){.bpffs = bpffs, .tun = tun_node, .tun_owner = 65532, .table = 200};
}

static struct kernel *start(const char *test)
{
    struct kernel_config cfg = config(test);
    struct kernel *k = NULL;
    struct base_err err;

    cr_assert_eq(kernel_new(&k, &cfg, &err), BASE_OK, "%s", err.msg);
    return k;
}

static void make(struct kernel *k, const char *name)
{
    struct base_err err;

    cr_assert_eq(kernel_device_make(k, name, 1400, &err), BASE_OK, "%s", err.msg);
}

static void drop_device(struct kernel *k, const char *name)
{
    struct base_err err;

    cr_assert_eq(kernel_device_delete(k, name, &err), BASE_OK, "%s", err.msg);
}

/* The kernel learns late that a link is up while namespaces are torn down elsewhere, and sends nothing until
 * then. */
static void wait_running(const char *name)
{
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    base_time end = now() + 10 * BASE_SEC;
    struct ifreq r;

    memset(&r, 0, sizeof r);
    base_copy(r.ifr_name, sizeof r.ifr_name, name);
    do {
        cr_assert_eq(ioctl(fd, SIOCGIFFLAGS, &r), 0);
        if ((r.ifr_flags & (IFF_UP | IFF_RUNNING)) != IFF_UP)
            break;
        usleep(1000);
    } while (now() < end);
    close(fd);
}

static int attach_fd(const char *name)
{
    struct ifreq r;
    int fd = open(tun_node, O_RDWR | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    memset(&r, 0, sizeof r);
    base_copy(r.ifr_name, sizeof r.ifr_name, name);
    r.ifr_flags = (short)FLAGS;
    if (ioctl(fd, TUNSETIFF, &r)) {
        int e = errno;

        close(fd);
        return -e;
    }
    wait_running(name);
    return fd;
}

static struct fnd_gate gate_of(const char *device, const char *prefix, base_time deadline)
{
    struct fnd_gate g = {.deadline = deadline, .epoch = 7, .uid = {{1, 2, 3}}};

    cr_assert_eq(base_prefix_parse(&g.prefix, base_str_of(prefix)), BASE_OK);
    base_copy(g.device, sizeof g.device, device);
    return g;
}

static void set(struct kernel *k, const char *device, const char *prefix, base_time deadline)
{
    struct fnd_gate g = gate_of(device, prefix, deadline);
    struct base_err err;

    cr_assert_eq(kernel_gate(k, &g, &err), BASE_OK, "%s", err.msg);
}

/* ---- packets ---- */
static void address(uint8_t dst[16], const char *text)
{
    struct base_ip6 ip;

    cr_assert_eq(base_ip6_parse(&ip, base_str_of(text)), BASE_OK);
    memcpy(dst, ip.b, 16);
}

/* A UDP packet with a virtio header in front, as the agent writes it. Returns its length. */
static size_t packet(uint8_t *p, const char *src, const char *dst)
{
    uint8_t *ip = p + 10, *udp = ip + 40;
    uint32_t sum = 17 + 12;

    memset(p, 0, 62);
    ip[0] = 0x60;
    ip[5] = 12;
    ip[6] = 17;
    ip[7] = 64;
    address(ip + 8, src);
    address(ip + 24, dst);
    udp[1] = 9;
    udp[2] = PORT >> 8;
    udp[3] = PORT & 255;
    udp[5] = 12;
    memcpy(udp + 8, "test", 4);
    for (int i = 8; i < 40; i += 2)
        sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
    for (int i = 0; i < 12; i += 2)
        sum += (uint32_t)(udp[i] << 8 | udp[i + 1]);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    udp[6] = (uint8_t)(~sum >> 8);
    udp[7] = (uint8_t)~sum;
    return 62;
}

static int host_socket(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(PORT)};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address(a.sin6_addr.s6_addr, "fd20::10");
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0, "bind: %d", errno);
    return fd;
}

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

/* From the TUN to the host. */
static bool up(int tun, int host, const char *src)
{
    uint8_t p[64];
    size_t n = packet(p, src, "fd20::10");
    bool got;

    cr_assert_eq(write(tun, p, n), (ssize_t)n, "write to the TUN: %d", errno);
    got = readable(host, 150);
    while (recv(host, p, sizeof p, 0) > 0)
        ;
    return got;
}

/* From the host to the TUN; noise of the kernel does not count. */
static bool down(int tun, int host, const char *dst)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    uint8_t p[2048], want[16];
    base_time end = now() + 150 * BASE_MS;
    bool got = false;

    address(a.sin6_addr.s6_addr, dst);
    address(want, dst);
    (void)sendto(host, "down", 4, 0, (struct sockaddr *)&a, sizeof a);
    while (!got && now() < end) {
        ssize_t n;

        if (!readable(tun, 10))
            continue;
        while ((n = read(tun, p, sizeof p)) > 0)
            got |= n >= 50 && memcmp(p + 10 + 24, want, 16) == 0;
    }
    return got;
}

static void route_to(struct kernel *k, const char *device, const char *prefix, int64_t epoch, base_time until)
{
    struct fnd_gate g = gate_of(device, prefix, 0);
    struct base_err err;

    g.epoch = epoch;
    cr_assert_eq(kernel_publish(k, &g, until, &err), BASE_OK, "%s", err.msg);
}

#define P1 "fd12::1:0:5:0:0/96"
#define A1 "fd12::1:0:5:0:7"
#define P2 "fd12::1:0:6:0:0/96"
#define A2 "fd12::1:0:6:0:7"

/* ---- gate ---- */
Test(foundation_kernel, open_passes_and_zero_drops_both_ways)
{
    struct kernel *k = start("zero");
    int tun, host = host_socket();

    make(k, "hf00000001");
    tun = attach_fd("hf00000001");
    cr_assert_geq(tun, 0);
    route_to(k, "hf00000001", P1, 1, now() + 60 * BASE_SEC);
    cr_assert_not(up(tun, host, A1), "open by default");
    cr_assert_not(down(tun, host, A1), "open by default");
    set(k, "hf00000001", P1, now() + 60 * BASE_SEC);
    cr_assert(up(tun, host, A1), "open does not pass from the TUN");
    cr_assert(down(tun, host, A1), "open does not pass to the TUN");
    cr_assert_not(up(tun, host, A2), "another prefix passes");
    set(k, "", P1, 0);
    cr_assert_not(up(tun, host, A1), "zero passes from the TUN");
    cr_assert_not(down(tun, host, A1), "zero passes to the TUN");
    close(tun);
    close(host);
    drop_device(k, "hf00000001");
    kernel_free(k);
}

Test(foundation_kernel, the_deadline_is_absolute_also_when_the_foundation_is_stopped)
{
    struct kernel *k = start("stopped");
    base_time deadline, last_up = 0, last_down = 0, t;
    int tun, host = host_socket(), status;
    struct kernel_config cfg = config("stopped");
    struct fnd_record rec = {.uid = {{1}}, .kind = CONTRACT_CLAIM};
    pid_t child;

    make(k, "hf00000002");
    cr_assert_eq(kernel_record(k, &rec, NULL), BASE_OK); /* these maps are in use */
    tun = attach_fd("hf00000002");
    route_to(k, "hf00000002", P1, 1, now() + 60 * BASE_SEC);
    deadline = now() + 600 * BASE_MS;
    /* Another process writes the deadline and is stopped at once: nobody is left to close anything. */
    child = fork();
    if (child == 0) {
        struct kernel *mine;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (kernel_new(&mine, &cfg, NULL))
            _exit(1);
        {
            struct fnd_gate g = gate_of("hf00000002", P1, deadline);

            if (kernel_gate(mine, &g, NULL))
                _exit(2);
        }
        raise(SIGSTOP);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
    cr_assert(WIFSTOPPED(status));
    while ((t = now()) < deadline + 300 * BASE_MS) {
        uint8_t p[64];
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
        size_t n = packet(p, A1, "fd20::10");

        address(a.sin6_addr.s6_addr, A1);
        (void)sendto(host, &t, sizeof t, 0, (struct sockaddr *)&a, sizeof a);
        t = now();
        cr_assert_eq(write(tun, p, n), (ssize_t)n);
        if (recv(host, p, sizeof p, 0) > 0)
            last_up = t;
        for (uint8_t q[2048]; (n = (size_t)read(tun, q, sizeof q)) != (size_t)-1;)
            if (n == 10 + 48 + sizeof t && q[10 + 6] == 17)
                memcpy(&last_down, q + 10 + 48, sizeof t);
    }
    cr_assert_gt(last_up, deadline - 100 * BASE_MS, "open did not pass until shortly before the deadline");
    cr_assert_gt(last_down, deadline - 100 * BASE_MS, "open did not pass until shortly before the deadline");
    cr_assert_lt(last_up, deadline, "a packet passed %lld ns late", (long long)(last_up - deadline));
    cr_assert_lt(last_down, deadline, "a packet passed %lld ns late", (long long)(last_down - deadline));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(tun);
    close(host);
    drop_device(k, "hf00000002");
    kernel_free(k);
}

Test(foundation_kernel, a_gate_is_of_one_device_and_forwarding_needs_both)
{
    struct kernel *k = start("two");
    uint8_t p[64];
    int a, b;
    size_t n;

    make(k, "hf00000003");
    make(k, "hf00000004");
    a = attach_fd("hf00000003");
    b = attach_fd("hf00000004");
    route_to(k, "hf00000003", P1, 1, now() + 60 * BASE_SEC);
    route_to(k, "hf00000004", P2, 1, now() + 60 * BASE_SEC);
    n = packet(p, A1, A2);
    for (int step = 0; step < 4; step++) {
        uint8_t q[2048], want[16];
        base_time end;
        bool got = false;

        address(want, A2);
        if (step == 1)
            set(k, "hf00000004", P1, now() + 60 * BASE_SEC); /* on the wrong device */
        if (step == 1)
            set(k, "hf00000004", P2, now() + 60 * BASE_SEC);
        if (step == 2)
            set(k, "hf00000003", P1, now() + 60 * BASE_SEC);
        if (step == 3)
            set(k, "", P2, 0);
        cr_assert_eq(write(a, p, n), (ssize_t)n);
        for (end = now() + 150 * BASE_MS; !got && now() < end;) {
            ssize_t len;

            if (!readable(b, 10))
                continue;
            while ((len = read(b, q, sizeof q)) > 0)
                got |= len >= 50 && memcmp(q + 34, want, 16) == 0;
        }
        cr_assert_eq(got, step == 2, "step %d: %s", step, got ? "passed" : "dropped");
    }
    close(a);
    close(b);
    drop_device(k, "hf00000003");
    drop_device(k, "hf00000004");
    kernel_free(k);
}

static void shell(const char *command)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "failed: %s", command);
}

static bool says(const char *command, const char *what)
{
    char out[4096] = "";
    FILE *f = popen(command, "r");
    size_t n = f ? fread(out, 1, sizeof out - 1, f) : 0;

    out[n] = '\0';
    if (f)
        pclose(f);
    return strstr(out, what) != NULL;
}

Test(foundation_kernel, a_device_without_the_program_passes_nothing)
{
    struct kernel *k = start("naked");
    int tun, host = host_socket(), other;

    /* The same device under a name that is not ours passes: it is the default drop that stops the hf one. */
    shell("ip tuntap add dev xx0000005 mode tun vnet_hdr multi_queue && ip link set xx0000005 up && "
          "ip -6 route add " P1 " dev xx0000005");
    other = attach_fd("xx0000005");
    cr_assert_geq(other, 0);
    cr_assert(up(other, host, A1) && down(other, host, A1), "the check itself does not work");
    close(other);
    shell("ip link del xx0000005");
    shell("ip tuntap add dev hf00000005 mode tun vnet_hdr multi_queue && ip link set hf00000005 up && "
          "ip -6 route add " P1 " dev hf00000005");
    tun = attach_fd("hf00000005");
    cr_assert_geq(tun, 0);
    cr_assert_not(up(tun, host, A1));
    cr_assert_not(down(tun, host, A1));
    close(tun);
    close(host);
    shell("ip link del hf00000005");
    kernel_free(k);
}

/* ---- devices ---- */
Test(foundation_kernel, deleting_a_device_ends_every_descriptor)
{
    struct kernel *k = start("delete");
    base_time t, make_ns, delete_ns;
    uint8_t p[64];
    size_t n = packet(p, A1, "fd20::10");
    int tun;

    t = now();
    make(k, "hf00000006");
    make_ns = now() - t;
    tun = attach_fd("hf00000006");
    cr_assert_geq(tun, 0);
    set(k, "hf00000006", P1, now() + 60 * BASE_SEC);
    cr_assert_eq(write(tun, p, n), (ssize_t)n);
    t = now();
    drop_device(k, "hf00000006");
    delete_ns = now() - t;
    cr_assert_lt(write(tun, p, n), 0);
    cr_assert(errno == EBADFD || errno == EIO, "write after deletion: %d", errno);
    cr_assert_eq(if_nametoindex("hf00000006"), 0u);
    cr_log_info("make %.1f ms, delete %.1f ms", (double)make_ns / 1e6, (double)delete_ns / 1e6);
    cr_assert_lt(make_ns, BASE_SEC);
    cr_assert_lt(delete_ns, BASE_SEC);
    drop_device(k, "hf00000006"); /* again: nothing to do */
    close(tun);
    kernel_free(k);
}

/* Attaches as that uid, without any capability; 0 or errno. With `spite`, then clears persistence and leaves. */
static int as_uid(uid_t uid, const char *name, bool spite)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        int fd;

        if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
            _exit(99);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        fd = attach_fd(name);
        if (fd >= 0 && spite && ioctl(fd, TUNSETPERSIST, 0))
            _exit(98);
        _exit(fd >= 0 ? 0 : -fd);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(foundation_kernel, the_owner_gets_in_and_cannot_take_the_device_away)
{
    struct kernel *k = start("owner");

    chmod(getenv("FOUNDATION_TEST_DIR"), 0755); /* the tun node is reached through it */
    make(k, "hf00000007");
    cr_assert_eq(as_uid(65532, "hf00000007", false), 0);
    cr_assert_eq(as_uid(1000, "hf00000007", false), EPERM);
    cr_assert_eq(as_uid(65532, "hf00000007", true), 0);
    cr_assert_neq(if_nametoindex("hf00000007"), 0u, "gone with its owner's descriptor: no keeper");
    cr_assert(says("ip -d link show hf00000007", "group 18502"));
    cr_assert(says("ip -d link show hf00000007", "addrgenmode none"));
    cr_assert(says("ip -d link show hf00000007", "mtu 1400"));
    cr_assert_not(says("ip -6 addr show dev hf00000007", "fe80"), "an address of its own");
    drop_device(k, "hf00000007");
    kernel_free(k);
}

Test(foundation_kernel, a_foreign_interface_of_that_name_is_not_taken)
{
    struct kernel *k = start("foreign");
    struct base_err err;

    shell("ip tuntap add dev hf00000008 mode tun");
    cr_assert_eq(kernel_device_make(k, "hf00000008", 1400, &err), BASE_EEXIST);
    cr_assert_not_null(strstr(err.msg, "hf00000008"));
    drop_device(k, "hf00000008");
    kernel_free(k);
}

static char lost[CONTRACT_DEVICE_SIZE];
static void on_device(void *arg, const char *name, bool present)
{
    (void)arg;
    if (!present)
        base_copy(lost, sizeof lost, name);
}

Test(foundation_kernel, a_device_that_somebody_deletes_is_news)
{
    struct kernel *k = start("news");

    make(k, "hf00000009");
    make(k, "hf0000000a");
    drop_device(k, "hf0000000a");
    kernel_news(k, on_device, NULL);
    cr_assert_str_eq(lost, "", "one's own deletion is no news");
    shell("ip link del hf00000009");
    cr_assert(readable(kernel_monitor_fd(k), 1000));
    kernel_news(k, on_device, NULL);
    cr_assert_str_eq(lost, "hf00000009");
    kernel_free(k);
}

/* ---- restart ---- */
struct found {
    unsigned records, gates, devices;
    struct fnd_record record;
    struct fnd_gate gate;
};
static void found_record(void *arg, const struct fnd_record *r)
{
    struct found *f = arg;

    f->records++;
    f->record = *r;
}
static void found_gate(void *arg, const struct fnd_gate *g)
{
    struct found *f = arg;

    f->gates++;
    f->gate = *g;
}
static void found_device(void *arg, const char *name, bool present)
{
    struct found *f = arg;

    (void)name;
    f->devices += present;
}

Test(foundation_kernel, what_is_pinned_outlives_the_process)
{
    struct kernel *k = start("restart");
    struct fnd_record rec = {.uid = {{9}}, .kind = CONTRACT_CLAIM, .accepted = 5, .tomb = 4, .nonce = {{8}}};
    struct found f = {0};
    struct base_err err;
    int tun, host = host_socket();
    base_time deadline = now() + 60 * BASE_SEC;

    make(k, "hf0000000b");
    set(k, "hf0000000b", P1, deadline);
    route_to(k, "hf0000000b", P1, 7, now() + 60 * BASE_SEC);
    cr_assert_eq(kernel_record(k, &rec, &err), BASE_OK, "%s", err.msg);
    kernel_free(k);
    tun = attach_fd("hf0000000b");
    cr_assert(up(tun, host, A1) && down(tun, host, A1), "the gate stays open without its foundation");
    k = start("restart");
    kernel_restore(k, found_record, found_gate, found_device, &f);
    cr_assert_eq(f.records, 1u);
    cr_assert_eq(memcmp(&f.record, &rec, sizeof rec), 0);
    cr_assert_eq(f.gates, 1u);
    cr_assert_eq(f.gate.deadline, deadline);
    cr_assert_eq(f.gate.epoch, 7);
    cr_assert_eq(f.gate.uid.b[0], 1);
    cr_assert_str_eq(f.gate.device, "hf0000000b");
    cr_assert_geq(f.devices, 1u);
    set(k, "", P1, 0);
    cr_assert_not(up(tun, host, A1), "the next process can shut it");
    cr_assert_eq(kernel_forget(k, &rec.uid, &err), BASE_OK);
    close(tun);
    close(host);
    drop_device(k, "hf0000000b");
    kernel_free(k);
}

struct flood {
    _Atomic bool stop;
    unsigned sent, got;
    int tun;
};

static void *flood(void *arg)
{
    struct flood *f = arg;
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int s = socket(AF_INET6, SOCK_DGRAM, 0);

    address(a.sin6_addr.s6_addr, A1);
    while (!f->stop) {
        a.sin6_port = htons((uint16_t)(1024 + f->sent % 64)); /* many flows, which may go to any queue */
        f->sent += sendto(s, "flood", 5, 0, (struct sockaddr *)&a, sizeof a) == 5;
        usleep(20);
    }
    close(s);
    return NULL;
}

static void *drain(void *arg)
{
    struct flood *f = arg;
    uint8_t p[2048], want[16];
    bool more = true;

    address(want, A1);
    while (more) {
        bool stop = f->stop;
        ssize_t n;

        more = readable(f->tun, 100) || !stop;
        while ((n = read(f->tun, p, sizeof p)) > 0)
            f->got += n >= 50 && memcmp(p + 10 + 24, want, 16) == 0;
    }
    return NULL;
}

Test(foundation_kernel, a_restart_loses_no_packet)
{
    struct kernel *k = start("flood");
    struct fnd_record rec = {.uid = {{7}}, .kind = CONTRACT_CLAIM, .accepted = 7, .nonce = {{8}}};
    struct flood f = {0};
    pthread_t out, in;

    make(k, "hf0000000f");
    set(k, "hf0000000f", P1, now() + 60 * BASE_SEC);
    route_to(k, "hf0000000f", P1, 7, now() + 60 * BASE_SEC);
    cr_assert_eq(kernel_record(k, &rec, NULL), BASE_OK);
    shell("ip link set hf0000000f txqueuelen 100000");
    f.tun = attach_fd("hf0000000f");
    pthread_create(&in, NULL, drain, &f);
    pthread_create(&out, NULL, flood, &f);
    for (int i = 0; i < 50; i++) {
        kernel_free(k);
        k = start("flood");
    }
    f.stop = true;
    pthread_join(out, NULL);
    pthread_join(in, NULL);
    cr_assert_gt(f.sent, 1000u);
    cr_assert_eq(f.got, f.sent, "%u packets of %u came", f.got, f.sent);
    close(f.tun);
    cr_assert_eq(kernel_forget(k, &rec.uid, NULL), BASE_OK);
    drop_device(k, "hf0000000f");
    kernel_free(k);
}

Test(foundation_kernel, with_empty_maps_everything_goes_first)
{
    struct kernel *k = start("lost");
    int tun, host = host_socket();

    make(k, "hf0000000e");
    set(k, "hf0000000e", P1, now() + 60 * BASE_SEC);
    route_to(k, "hf0000000e", P1, 7, now() + 60 * BASE_SEC);
    kernel_free(k);
    tun = attach_fd("hf0000000e");
    cr_assert(up(tun, host, A1), "open");
    k = start("lost-and-found"); /* another folder: the maps of before cannot be reached */
    cr_assert_eq(if_nametoindex("hf0000000e"), 0u, "a gate that nobody can shut");
    cr_assert_not(says("ip -6 route show table 200", "proto 199"));
    close(tun);
    close(host);
    kernel_free(k);
}

Test(foundation_kernel, a_folder_that_does_not_outlive_us_is_refused)
{
    struct kernel_config cfg = config("x");
    struct kernel *k = NULL;
    struct base_err err;
    char dir[300];

    base_fmt(dir, sizeof dir, "%s/plain", getenv("FOUNDATION_TEST_DIR"));
    cfg.bpffs = dir;
    cr_assert_eq(kernel_new(&k, &cfg, &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "mount -t bpf"), "%s", err.msg);
}

/* ---- routes ---- */
Test(foundation_kernel, routes_carry_the_epoch_and_follow_it)
{
    struct kernel *k = start("routes");
    struct fnd_gate g;
    struct base_err err;

    shell("ip -6 route flush table 200 2>/dev/null || :"); /* of other tests */
    make(k, "hf0000000c");
    route_to(k, "hf0000000c", P1, 3, now() + 60 * BASE_SEC);
    cr_assert(says("ip -6 route show table 200", "blackhole fd12::1:0:5:0:0/96 dev lo proto 199 metric 3"));
    cr_assert(says("ip -6 route show", "fd12::1:0:5:0:0/96 dev hf0000000c proto 199"));
    route_to(k, "hf0000000c", P1, 3, now() + 60 * BASE_SEC);
    route_to(k, "hf0000000c", P1, 4, now() + 60 * BASE_SEC);
    cr_assert(says("ip -6 route show table 200", "metric 4"));
    cr_assert_not(says("ip -6 route show table 200", "metric 3"), "the older epoch's route lingers");
    g = gate_of("", P1, 0);
    cr_assert_eq(kernel_withdraw(k, &g.prefix, &err), BASE_OK, "%s", err.msg);
    cr_assert_not(says("ip -6 route show table 200", "fd12"));
    cr_assert_not(says("ip -6 route show", "fd12"));
    cr_assert_eq(kernel_withdraw(k, &g.prefix, &err), BASE_OK, "again: nothing to do");
    route_to(k, "hf0000000c", P1, (int64_t)1 << 40, now() + 60 * BASE_SEC);
    cr_assert(says("ip -6 route show table 200", "metric 4294967294"), "an epoch beyond 32 bits");
    cr_assert_eq(kernel_withdraw(k, &g.prefix, &err), BASE_OK);
    drop_device(k, "hf0000000c");
    kernel_free(k);
}

Test(foundation_kernel, the_watchdog_withdraws_what_is_not_refreshed)
{
    struct kernel_config cfg = config("watchdog");
    struct kernel *k = start("watchdog");
    struct kernel_watch *w = NULL;
    struct base_err err;
    unsigned gone = 0;
    base_time t = now();

    shell("ip -6 route flush table 200 2>/dev/null || :");
    make(k, "hf0000000d");
    route_to(k, "hf0000000d", P1, 3, t + 10 * BASE_SEC);
    route_to(k, "hf0000000d", P2, 3, t + 20 * BASE_SEC);
    kernel_free(k); /* the foundation is gone */
    cr_assert_eq(kernel_watch_new(&w, &cfg, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(kernel_watch_pass(w, t + 9 * BASE_SEC, &gone), 2u);
    cr_assert_eq(gone, 0u);
    cr_assert_eq(kernel_watch_pass(w, t + 11 * BASE_SEC, &gone), 1u);
    cr_assert_eq(gone, 1u);
    cr_assert_not(says("ip -6 route show table 200", "fd12::1:0:5"));
    cr_assert(says("ip -6 route show table 200", "fd12::1:0:6"));
    cr_assert_eq(kernel_watch_pass(w, t + 21 * BASE_SEC, &gone), 0u);
    kernel_watch_free(w);
    k = start("watchdog");
    drop_device(k, "hf0000000d");
    kernel_free(k);
}

/* ---- lock ---- */
Test(foundation_kernel, one_foundation_per_kernel)
{
    struct base_err err;
    char path[300];
    pid_t child;
    int status;

    base_fmt(path, sizeof path, "%s/lock", getenv("FOUNDATION_TEST_DIR"));
    cr_assert_eq(lock_take(path, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(lock_holder(path), getpid());
    child = fork();
    if (child == 0) {
        struct base_err mine;

        if (lock_take(path, &mine) != BASE_EAGAIN || !strstr(mine.msg, "process"))
            _exit(1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a second one got the lock");
}
