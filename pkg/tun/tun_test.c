/* SPDX-License-Identifier: Apache-2.0
 * Runs as root (see netns_test.h); the opening itself is always done as uid 65532 without capabilities. */
#include "tun/tun.h"

#include "tun/netns_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "fence/fence.h"
#include "loop/loop.h"
#include "tun/link.h"

#define DEV "hf0badcafe"

static void deadly(void)
{
    (void)alarm(60);
}
TestSuite(tun_tun, .init = deadly);

static struct fence_table *table;
static struct fence_slot *slot;
static const struct fence_pass *open_pass(void)
{
    if (!table) {
        table = fence_table_new(1);
        slot = fence_slot_take(table, 1);
    }
    fence_set(slot, loop_clock() + 60 * BASE_SEC);
    return fence_check(slot, loop_clock());
}

static bool exists(const char *device)
{
    struct tun_link l;

    return tun_link_get(&l, device, NULL) == BASE_OK;
}

/* ---- what is refused, with the reason */
Test(tun_tun, says_why_it_does_not_open)
{
    static const struct {
        const char *name, *device;
        int mtu, code;
        const char *text;
    } t[] = {
        {"missing", "hf00000000", 1400, BASE_EDENIED, "does not exist in this network namespace"},
        {"name that asks for a new device", "hf%d", 1400, BASE_EINVAL, "no name that the foundation gives"},
        {"empty name", "", 1400, BASE_EINVAL, "no name that the foundation gives"},
        {"too long", "hf01234567890123", 1400, BASE_EINVAL, "no name that the foundation gives"},
        {"path", "hf/../lo", 1400, BASE_EINVAL, "no name that the foundation gives"},
        {"loopback", "lo", 1400, BASE_EINVAL, "no name that the foundation gives"},
        {"another owner", "hfowner", 1400, BASE_EDENIED,
         "belongs to uid 1000, but this process is uid 65532"},
        {"no owner", "hfnobody", 1400, BASE_EDENIED, "has no owner"},
        {"single queue", "hfsingle", 1400, BASE_EINVAL, "multi_queue off"},
        {"without vnet_hdr", "hfplain", 1400, BASE_EINVAL, "vnet_hdr off"},
        {"with packet information", "hfpi", 1400, BASE_EINVAL, "no_pi off"},
        {"tap", "hftap", 1400, BASE_EINVAL, "is not a TUN device"},
        {"not a tun at all", "hfveth", 1400, BASE_EINVAL, "is not a TUN device"},
        {"other mtu", DEV, 1500, BASE_EINVAL, "has MTU 1400, the foundation says 1500"},
        {"mtu below IPv6", "hfsmall", 1279, BASE_EINVAL, "at least 1280"},
        {"down", "hfdown", 1400, BASE_EIO, "is down"},
    };
    struct base_err err;
    struct tun *x = NULL;

    netns_enter(0666);
    (void)netns_make_tun(DEV, NETNS_FOUNDATION, NETNS_AGENT_UID, 1400, true);
    (void)netns_make_tun("hfowner", NETNS_FOUNDATION, 1000, 1400, true);
    (void)netns_make_tun("hfnobody", NETNS_FOUNDATION, -1, 1400, true);
    (void)netns_make_tun("hfsingle", NETNS_FOUNDATION & ~IFF_MULTI_QUEUE, NETNS_AGENT_UID, 1400, true);
    (void)netns_make_tun("hfplain", NETNS_FOUNDATION & ~IFF_VNET_HDR, NETNS_AGENT_UID, 1400, true);
    (void)netns_make_tun("hfpi", NETNS_FOUNDATION & ~IFF_NO_PI, NETNS_AGENT_UID, 1400, true);
    (void)netns_make_tun("hftap", (NETNS_FOUNDATION & ~IFF_TUN) | IFF_TAP, NETNS_AGENT_UID, 1400, true);
    (void)netns_make_tun("hfdown", NETNS_FOUNDATION, NETNS_AGENT_UID, 1400, false);
    (void)netns_make_tun("hfsmall", NETNS_FOUNDATION, NETNS_AGENT_UID, 1280, true);
    netns_run("ip", "link", "set", "hfsmall", "mtu", "1279", NULL);
    netns_run("ip", "link", "add", "hfveth", "type", "veth", "peer", "name", "hfveth2", NULL);
    netns_run("ip", "link", "set", "hfveth", "mtu", "1400", "up", NULL);
    netns_drop();
    for (size_t i = 0; i < BASE_LEN(t); i++) {
        base_err_clear(&err);
        cr_expect_eq(tun_open(&x, t[i].device, t[i].mtu, &err), t[i].code, "%s: %s: %s", t[i].name,
                     base_code_name(err.code), err.msg);
        cr_expect(strstr(err.msg, t[i].text), "%s: %s", t[i].name, err.msg);
        cr_expect_null(x, "%s", t[i].name);
    }
    cr_expect_not(exists("hf00000000"));
    cr_expect_not(exists("hf0"));
    cr_expect_eq(tun_open(&x, DEV, 1400, &err), BASE_OK, "%s", err.msg);
    tun_free(x);
    /* The refused ones still have the flags that they were made with. */
    struct tun_link l;
    cr_expect(tun_link_get(&l, "hfplain", &err) == BASE_OK && !l.vnet_hdr,
              "opening rewrote the flags of a device");
    cr_expect(tun_link_get(&l, "hfpi", &err) == BASE_OK && !l.no_pi, "opening rewrote the flags of a device");
}

/* Root could create what is missing: the check stands in front of the ioctl, not behind the lack of rights. */
Test(tun_tun, never_creates_a_device_even_as_root)
{
    struct base_err err;
    struct tun *x = NULL;

    netns_enter(0666);
    cr_expect_eq(tun_open(&x, "hf00000000", 1400, &err), BASE_EDENIED);
    cr_expect_not(exists("hf00000000"));
}

Test(tun_tun, no_node)
{
    static const struct {
        const char *name;
        mode_t mode;
        const char *text;
    } t[] = {{"missing", 0, "load the kernel module"},
             {"mode 0600", 0600, "its mode does not let uid 65532 in"}};

    for (size_t i = 0; i < BASE_LEN(t); i++) {
        pid_t p = fork();
        int st;

        if (p == 0) {
            struct base_err err = {0};
            struct tun *x = NULL;

            netns_enter(0600);
            (void)netns_make_tun(DEV, NETNS_FOUNDATION, NETNS_AGENT_UID, 1400, true);
            if (t[i].mode == 0)
                (void)unlink("/dev/net/tun");
            netns_drop();
            if (tun_open(&x, DEV, 1400, &err) == BASE_EIO && strstr(err.msg, t[i].text) && !x)
                _exit(0);
            (void)fprintf(stderr, "%s: %s\n", t[i].name, err.msg);
            _exit(1);
        }
        cr_assert_eq(waitpid(p, &st, 0), p);
        cr_expect_eq(st, 0, "%s", t[i].name);
    }
}

Test(tun_tun, no_memory)
{
    struct base_err err;
    struct tun *x = NULL;

    netns_enter(0666);
    (void)netns_make_tun(DEV, NETNS_FOUNDATION, NETNS_AGENT_UID, 1400, true);
    netns_drop();
    base_mem_fail_after(1);
    cr_expect_eq(tun_open(&x, DEV, 1400, &err), BASE_ENOMEM);
    base_mem_fail_after(0);
    cr_expect_null(x);
    cr_expect_null(tun_free(NULL));
}

/* ---- packets */
static int udp(const char *addr, int port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    cr_assert_eq(inet_pton(AF_INET6, addr, &a.sin6_addr), 1);
    cr_assert_eq(bind(s, (const struct sockaddr *)&a, sizeof a), 0, "%s", strerror(errno));
    return s;
}

static void send_udp(int s, const char *addr, int port, const void *p, size_t n)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

    cr_assert_eq(inet_pton(AF_INET6, addr, &a.sin6_addr), 1);
    cr_assert_eq(sendto(s, p, n, 0, (const struct sockaddr *)&a, sizeof a), (ssize_t)n, "%s",
                 strerror(errno));
}

/* A UDP packet with a right checksum in `pkt` (TUN_HEADROOM bytes stand before it). */
static size_t make_udp(uint8_t *pkt, const char *src, const char *dst, int port, size_t n)
{
    uint32_t sum = 0;

    memset(pkt, 0, 48 + n);
    pkt[0] = 0x60;
    pkt[4] = (uint8_t)((n + 8) >> 8);
    pkt[5] = (uint8_t)(n + 8);
    pkt[6] = 17;
    pkt[7] = 64;
    cr_assert(inet_pton(AF_INET6, src, pkt + 8) == 1 && inet_pton(AF_INET6, dst, pkt + 24) == 1);
    pkt[40] = pkt[42] = (uint8_t)(port >> 8);
    pkt[41] = pkt[43] = (uint8_t)port;
    memcpy(pkt + 44, pkt + 4, 2);
    for (size_t i = 0; i < n; i++)
        pkt[48 + i] = (uint8_t)i;
    for (size_t i = 8; i < 48 + n; i++)
        sum += i & 1 ? pkt[i] : (uint32_t)pkt[i] << 8;
    sum += (uint32_t)n + 8 + 17;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    pkt[46] = (uint8_t)(~sum >> 8);
    pkt[47] = (uint8_t)~sum;
    return 48 + n;
}

struct taken {
    unsigned n, marked; /* marked: to port 7000 */
    size_t last_len;
    bool bad;
    uint8_t last[2048];
};
static void take(void *arg, uint8_t *pkt, size_t len)
{
    struct taken *t = arg;

    t->n++;
    if (len < 48 || pkt[6] != 17 || pkt[42] != 7000 >> 8 || pkt[43] != (7000 & 0xff))
        return; /* the kernel's own talk */
    t->marked++;
    t->last_len = len;
    memcpy(t->last, pkt, len < sizeof t->last ? len : sizeof t->last);
    memset(pkt - TUN_HEADROOM, 0xee, TUN_HEADROOM); /* writable by contract */
    for (size_t i = 48; i < len; i++)
        t->bad = t->bad || pkt[i] != (uint8_t)(i - 48);
}

static int vpc_socket;
static struct tun *set_up(void)
{
    struct base_err err = {0};
    struct tun *t = NULL;

    netns_enter(0666);
    (void)netns_make_tun(DEV, NETNS_FOUNDATION, NETNS_AGENT_UID, 1400, true);
    netns_run("ip", "-6", "addr", "add", "fd20::10/128", "dev", "lo", "nodad", NULL);
    netns_run("ip", "-6", "route", "add", "fd12:0:0:1::/64", "dev", DEV, NULL);
    vpc_socket = udp("fd20::10", 7001);
    return tun_open(&t, DEV, 1400, &err) == BASE_EDENIED ? t : NULL;
}

static struct tun *opened(void)
{
    struct base_err err = {0};
    struct tun *t = NULL;

    cr_expect_null(set_up(), "root is not the owner");
    cr_assert_eq(setresuid(NETNS_AGENT_UID, NETNS_AGENT_UID, 0), 0);
    cr_assert_eq(tun_open(&t, DEV, 1400, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(setresuid(0, 0, 0), 0);
    cr_assert_eq(tun_mtu(t), 1400);
    cr_assert_str_eq(tun_device(t), DEV);
    cr_assert_gt(tun_queue_len(t), 0);
    return t;
}

Test(tun_tun, packets_come_out_whole_and_the_queue_ends_with_again)
{
    struct tun *t = opened();
    struct taken got = {0};
    struct base_err err;
    uint8_t data[1352];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    cr_expect_eq(tun_read(t, 10, take, &got, &err), BASE_EAGAIN);
    for (int i = 0; i < 20; i++)
        send_udp(vpc_socket, "fd12:0:0:1:0:7:0:5", 7000, data, i == 19 ? sizeof data : (size_t)i);
    got = (struct taken){0};
    cr_expect_eq(tun_read(t, 5, take, &got, &err), BASE_OK, "five were asked for, more are there");
    cr_expect_eq(got.n, 5);
    cr_expect_eq(tun_read(t, 100, take, &got, &err), BASE_EAGAIN);
    cr_expect_eq(got.marked, 20);
    cr_expect_eq(got.last_len, 1400);
    cr_expect_not(got.bad, "payload changed");
    /* With offloads off the kernel has filled in the checksum. */
    uint32_t sum = 1360 + 17;
    for (size_t i = 8; i < 1400; i++)
        sum += i & 1 ? got.last[i] : (uint32_t)got.last[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    cr_expect_eq(sum, 0xffff, "checksum of the packet that was read");
    cr_expect_eq(tun_read(t, 1, NULL, NULL, &err), BASE_EAGAIN);
    tun_free(t);
}

Test(tun_tun, read_without_a_function_throws_away)
{
    struct tun *t = opened();
    struct taken got = {0};
    struct base_err err;

    for (int i = 0; i < 7; i++)
        send_udp(vpc_socket, "fd12:0:0:1:0:7:0:5", 7000, "x", 1);
    cr_expect_eq(tun_read(t, tun_queue_len(t) + 1, NULL, NULL, &err), BASE_EAGAIN);
    cr_expect_eq(tun_read(t, 10, take, &got, &err), BASE_EAGAIN);
    cr_expect_eq(got.n, 0);
    tun_free(t);
}

static unsigned arrived(void)
{
    uint8_t b[2048];
    unsigned n = 0;

    while (recv(vpc_socket, b, sizeof b, 0) >= 0)
        n++;
    return n;
}

Test(tun_tun, writes_only_with_a_pass_that_holds)
{
    struct tun *t = opened();
    struct base_err err = {0};
    uint8_t buf[TUN_HEADROOM + 2048], *pkt = buf + TUN_HEADROOM;
    size_t n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 1200);
    const struct fence_pass *p = open_pass();

    memset(buf, 0xff, TUN_HEADROOM); /* dirt in the headroom must not become an offload request */
    cr_expect_eq(tun_write(t, p, pkt, n, &err), BASE_OK, "%s", err.msg);
    cr_expect_eq(arrived(), 1, "open passes");
    cr_expect_eq(tun_write(t, NULL, pkt, n, &err), BASE_EDENIED);
    cr_expect_eq(arrived(), 0, "without a pass");

    fence_set(slot, FENCE_CLOSED);
    cr_expect_eq(tun_write(t, p, pkt, n, &err), BASE_EDENIED,
                 "the pass was earned before the fence was shut");
    fence_set(slot, loop_clock() - 1);
    cr_expect_eq(tun_write(t, p, pkt, n, &err), BASE_EDENIED, "past the deadline");
    cr_expect_eq(arrived(), 0);
    cr_expect_eq(tun_write(t, open_pass(), pkt, n, &err), BASE_OK);
    cr_expect_eq(arrived(), 1);
    fence_kill(slot);
    cr_expect_eq(tun_write(t, p, pkt, n, &err), BASE_EDENIED);
    cr_expect_eq(arrived(), 0);
    tun_free(t);
}

Test(tun_tun, odd_writes_do_no_harm)
{
    struct tun *t = opened();
    struct base_err err = {0};
    static uint8_t buf[TUN_HEADROOM + TUN_PACKET_MAX];
    uint8_t *pkt = buf + TUN_HEADROOM;
    size_t n;

    cr_expect_eq(tun_write(t, open_pass(), pkt, 0, &err), BASE_EINVAL, "no byte");
    cr_expect_neq(tun_write(t, open_pass(), pkt, 1, &err), BASE_ECLOSED);
    n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 65000 - 48);
    cr_expect_eq(tun_write(t, open_pass(), pkt, n, &err), BASE_OK,
                 "larger than the MTU: the kernel forwards or tells");
    cr_expect_eq(arrived(), 1);
    tun_free(t);
}

Test(tun_tun, device_gone)
{
    struct tun *t = opened();
    struct base_err err = {0};
    uint8_t buf[TUN_HEADROOM + 256], *pkt = buf + TUN_HEADROOM;
    size_t n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 100);
    struct pollfd pf = {.fd = tun_fd(t), .events = POLLIN};

    cr_expect_eq(poll(&pf, 1, 0), 0, "quiet");
    netns_run("ip", "link", "del", DEV, NULL);
    cr_expect_eq(poll(&pf, 1, 1000), 1, "a poller is woken");
    cr_expect_eq(tun_read(t, 10, NULL, NULL, &err), BASE_ECLOSED);
    cr_expect(err.sys_errno == EBADFD && strstr(err.msg, DEV), "%s", err.msg);
    cr_expect_eq(tun_write(t, open_pass(), pkt, n, &err), BASE_ECLOSED);
    cr_expect_eq(err.sys_errno, EBADFD);
    tun_free(t);
}

Test(tun_tun, link_down_counts_as_gone)
{
    struct tun *t = opened();
    struct base_err err = {0};
    uint8_t buf[TUN_HEADROOM + 256], *pkt = buf + TUN_HEADROOM;
    size_t n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 100);

    netns_run("ip", "link", "set", DEV, "down", NULL);
    cr_expect_eq(tun_write(t, open_pass(), pkt, n, &err), BASE_ECLOSED);
    cr_expect_eq(err.sys_errno, EIO);
    tun_free(t);
}

/* Another holder of the device switches its offloads on, behind our back: super-packets are dropped, a
 * checksum that was left to us is filled in. */
Test(tun_tun, offloads_switched_on_by_others)
{
    struct tun *t = opened();
    struct taken got = {0};
    struct base_err err;
    const uint8_t data[3] = {0, 1, 2};
    uint32_t sum = 8 + 3 + 17;

    cr_assert_eq(ioctl(tun_fd(t), TUNSETOFFLOAD, TUN_F_CSUM), 0);
    send_udp(vpc_socket, "fd12:0:0:1:0:7:0:5", 7000, data, sizeof data);
    cr_expect_eq(tun_read(t, 100, take, &got, &err), BASE_EAGAIN);
    cr_assert_eq(got.marked, 1);
    cr_assert_eq(got.last_len, 51);
    for (size_t i = 8; i < 51; i++)
        sum += i & 1 ? got.last[i] : (uint32_t)got.last[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    cr_expect_eq(sum, 0xffff);

    const int segment = 100, all = 0x67; /* CSUM, TSO4, TSO6, USO4, USO6 */
    uint8_t three[300];

    for (size_t i = 0; i < sizeof three; i++)
        three[i] = (uint8_t)(i % 100);
    cr_assert_eq(setsockopt(vpc_socket, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
    cr_assert_eq(ioctl(tun_fd(t), TUNSETOFFLOAD, all), 0);
    got = (struct taken){0};
    send_udp(vpc_socket, "fd12:0:0:1:0:7:0:5", 7000, three, sizeof three);
    cr_expect_eq(tun_read(t, 100, take, &got, &err), BASE_EAGAIN);
    cr_expect_eq(got.marked, 0, "a super-packet was handed on");

    /* Opening switches them off again: the kernel cuts. */
    tun_free(t);
    cr_assert_eq(setresuid(NETNS_AGENT_UID, NETNS_AGENT_UID, 0), 0);
    cr_assert_eq(tun_open(&t, DEV, 1400, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(setresuid(0, 0, 0), 0);
    got = (struct taken){0};
    send_udp(vpc_socket, "fd12:0:0:1:0:7:0:5", 7000, three, sizeof three);
    cr_expect_eq(tun_read(t, 100, take, &got, &err), BASE_EAGAIN);
    cr_expect_eq(got.marked, 3);
    cr_expect_not(got.bad);
    tun_free(t);
}

/* The same segments in one call with offload on: read as packets with right checksums. */
Test(tun_tun, reads_and_writes_super_packets)
{
    struct tun *t = opened();
    struct taken got = {0};
    struct base_err err = {0};
    struct tun_flushed f;
    const int segment = 100;
    uint8_t three[300], buf[TUN_HEADROOM + 2048], *pkt = buf + TUN_HEADROOM;
    uint32_t sum = 108 + 17;

    for (size_t i = 0; i < sizeof three; i++)
        three[i] = (uint8_t)(i % 100);
    if (!tun_offload(t) || setsockopt(vpc_socket, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
        cr_skip_test("the kernel has no offloads");
    cr_expect_eq(tun_read(t, 100, NULL, NULL, &err), BASE_EAGAIN);
    send_udp(vpc_socket, "fd12:0:0:1:0:7:0:5", 7000, three, sizeof three);
    cr_expect_eq(tun_read(t, 1, take, &got, &err), BASE_OK, "one read brings all of them");
    cr_expect_eq(got.marked, 3);
    cr_expect_not(got.bad);
    for (size_t i = 8; i < 148; i++)
        sum += i & 1 ? got.last[i] : (uint32_t)got.last[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    cr_expect_eq(sum, 0xffff);

    size_t n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 1200);
    const struct fence_pass *p = open_pass();
    for (int i = 0; i < 10; i++)
        cr_expect_eq(tun_put(t, p, pkt, n, &err), BASE_OK);
    cr_expect_eq(arrived(), 0, "they wait");
    cr_expect_eq(tun_flush(t, &f, &err), BASE_OK, "%s", err.msg);
    cr_expect(f.sent == 10 && f.lost == 0 && f.bytes == 10 * n, "%u, %u, %zu", f.sent, f.lost, f.bytes);
    cr_expect_eq(arrived(), 10);
    cr_expect_eq(tun_flush(t, &f, &err), BASE_OK);
    cr_expect_eq(f.sent, 0, "twice");

    cr_expect_eq(tun_put(t, p, pkt, n, &err), BASE_OK);
    n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 1201);
    cr_expect_eq(tun_put(t, p, pkt, n, &err), BASE_EAGAIN, "a longer one");
    cr_expect_eq(tun_discard(t), 1);
    cr_expect_eq(tun_flush(t, &f, &err), BASE_OK);
    cr_expect_eq(arrived(), 0, "thrown away");
    tun_free(t);
}

/* A run is written under a look at the fence of its own, and never under two passes. */
Test(tun_tun, a_run_passes_only_while_its_pass_holds)
{
    struct tun *t = opened();
    struct base_err err = {0};
    struct tun_flushed f;
    uint8_t buf[TUN_HEADROOM + 2048], *pkt = buf + TUN_HEADROOM;
    size_t n = make_udp(pkt, "fd12:0:0:1:0:7:0:5", "fd20::10", 7001, 1200);

    if (!tun_offload(t))
        cr_skip_test("the kernel has no offloads");
    cr_expect_eq(tun_put(t, NULL, pkt, n, &err), BASE_EDENIED, "without a pass");
    for (int dead = 0; dead < 2; dead++) {
        const struct fence_pass *p = open_pass();
        cr_expect_eq(tun_put(t, p, pkt, n, &err), BASE_OK);
        cr_expect_eq(tun_put(t, p, pkt, n, &err), BASE_OK);
        struct fence_table *other = fence_table_new(1);
        struct fence_slot *s = fence_slot_take(other, 9);
        cr_assert(fence_set(s, loop_clock() + BASE_SEC));
        cr_expect_eq(tun_put(t, fence_check(s, loop_clock()), pkt, n, &err), BASE_EAGAIN, "another session");
        if (dead)
            fence_kill(slot);
        else
            fence_set(slot, loop_clock() - 1);
        cr_expect_eq(tun_flush(t, &f, &err), BASE_EDENIED);
        cr_expect(f.sent == 0 && f.lost == 2, "%u, %u", f.sent, f.lost);
        cr_expect_eq(arrived(), 0);
        fence_table_free(other);
    }
    tun_free(t);
}
