/* SPDX-License-Identifier: Apache-2.0
 *
 * bench-bare DEVICE PKI: the shortest loop that ngtcp2 and a TUN device allow, for one client: no HTTP, no
 * checks, no fence, no queue, no counters. A datagram is two zero bytes and a packet. Mutual TLS as in the
 * real thing. Prints "ready PORT".
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include "dataplane/h3.h"
#include "loop/loop.h"
#include "wire.h"

enum { VNET = 10, UDP_PAYLOAD = 1444, RUN = 52, TUN_BURST = 128 };

static struct {
    int udp, tun;
    struct sockaddr_in6 local, remote;
    ngtcp2_conn *quic;
    gnutls_session_t tls;
    gnutls_certificate_credentials_t cred;
    ngtcp2_crypto_conn_ref ref;
    struct bench_run out;
    uint8_t in[65536], pkt[VNET + 65536];
} s;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench-bare: %s: %s\n", what, why);
    exit(1);
}

static ngtcp2_tstamp now_ts(void)
{
    return (ngtcp2_tstamp)loop_clock();
}

/* ---- QUIC ---- */
static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    return s.quic;
}
static int on_datagram(ngtcp2_conn *q, uint32_t flags, const uint8_t *p, size_t n, void *user)
{
    if (n < 2)
        return 0;
    memset(s.pkt, 0, VNET);
    memcpy(s.pkt + VNET, p + 2, n - 2);
    (void)!write(s.tun, s.pkt, n - 2 + VNET); /* a full device loses packets, as any network */
    return 0;
}

static const ngtcp2_callbacks callbacks = {
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
    .encrypt = ngtcp2_crypto_encrypt_cb,
    .decrypt = ngtcp2_crypto_decrypt_cb,
    .hp_mask = ngtcp2_crypto_hp_mask_cb,
    .update_key = ngtcp2_crypto_update_key_cb,
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
    .rand = h3_rand,
    .get_new_connection_id = h3_new_cid,
    .recv_datagram = on_datagram,
};

static void open_tls(void)
{
    static unsigned char bare[] = {'b', 'a', 'r', 'e'};
    const gnutls_datum_t alpn = {bare, sizeof bare};
    if (gnutls_init(&s.tls, GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET) != 0 ||
        gnutls_priority_set_direct(s.tls, BENCH_TLS, NULL) != 0 ||
        gnutls_credentials_set(s.tls, GNUTLS_CRD_CERTIFICATE, s.cred) != 0 ||
        gnutls_alpn_set_protocols(s.tls, &alpn, 1, 0) != 0 ||
        ngtcp2_crypto_gnutls_configure_server_session(s.tls) != 0)
        die("TLS", "set-up");
    gnutls_certificate_server_set_request(s.tls, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_ptr(s.tls, &s.ref);
}

static void accept_client(const uint8_t *p, size_t n, ngtcp2_tstamp now)
{
    static const uint16_t probes[] = {1314, 1331, 1406, 1444};
    ngtcp2_pkt_hd hd;
    ngtcp2_settings set;
    ngtcp2_transport_params tp;
    ngtcp2_cid scid = {.datalen = 8};
    ngtcp2_path path = {
        {(ngtcp2_sockaddr *)&s.local, sizeof s.local}, {(ngtcp2_sockaddr *)&s.remote, sizeof s.remote}, NULL};
    if (ngtcp2_accept(&hd, p, n) != 0)
        return;
    loop_random(scid.data, scid.datalen);
    ngtcp2_settings_default(&set);
    set.initial_ts = now;
    set.max_tx_udp_payload_size = UDP_PAYLOAD;
    set.pmtud_probes = probes;
    set.pmtud_probeslen = sizeof probes / sizeof probes[0];
    ngtcp2_transport_params_default(&tp);
    tp.original_dcid = hd.dcid;
    tp.original_dcid_present = 1;
    tp.max_datagram_frame_size = 65535;
    tp.max_idle_timeout = 300 * NGTCP2_SECONDS;
    s.ref = (ngtcp2_crypto_conn_ref){get_conn, NULL};
    open_tls();
    if (ngtcp2_conn_server_new(&s.quic, &hd.scid, &scid, &path, hd.version, &callbacks, &set, &tp, NULL,
                               NULL) != 0)
        die("QUIC", "set-up");
    ngtcp2_conn_set_tls_native_handle(s.quic, s.tls);
}

/* ---- the sockets ---- */
static void write_quic(ngtcp2_tstamp now)
{
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_ssize n;
    ngtcp2_path_storage_zero(&ps);
    while ((n = ngtcp2_conn_write_pkt(s.quic, &ps.path, &pi, s.out.data + s.out.len, UDP_PAYLOAD, now)) > 0)
        bench_run_add(&s.out, s.udp, &s.remote, (size_t)n, RUN);
    bench_run_flush(&s.out, s.udp, &s.remote);
    if (n < 0)
        die("QUIC", ngtcp2_strerror((int)n));
    ngtcp2_conn_update_pkt_tx_time(s.quic, now);
}

static void from_tun(ngtcp2_tstamp now)
{
    static uint8_t head[2];
    ngtcp2_path_storage ps;
    ngtcp2_pkt_info pi;
    ngtcp2_path_storage_zero(&ps);
    for (unsigned i = 0; i < TUN_BURST; i++) {
        ssize_t k = read(s.tun, s.pkt, sizeof s.pkt);
        if (k <= VNET)
            break;
        ngtcp2_vec v[2] = {{head, sizeof head}, {s.pkt + VNET, (size_t)k - VNET}};
        for (int accepted = 0; s.quic && !accepted && s.pkt[VNET + 24] != 0xff;) {
            ngtcp2_ssize n = ngtcp2_conn_writev_datagram(s.quic, &ps.path, &pi, s.out.data + s.out.len,
                                                         UDP_PAYLOAD, &accepted, 0, 0, v, 2, now);
            if (n <= 0)
                break;
            bench_run_add(&s.out, s.udp, &s.remote, (size_t)n, RUN);
        }
    }
}

static bool from_udp(ngtcp2_tstamp now)
{
    size_t len, seg;
    if (!bench_take_run(s.udp, s.in, sizeof s.in, &s.remote, &len, &seg))
        return false;
    ngtcp2_path path = {
        {(ngtcp2_sockaddr *)&s.local, sizeof s.local}, {(ngtcp2_sockaddr *)&s.remote, sizeof s.remote}, NULL};
    ngtcp2_pkt_info pi = {0};
    for (size_t at = 0; at < len; at += seg) {
        size_t k = len - at < seg ? len - at : seg;
        if (!s.quic)
            accept_client(s.in + at, k, now);
        if (s.quic && ngtcp2_conn_read_pkt(s.quic, &path, &pi, s.in + at, k, now) != 0)
            exit(0); /* the client has gone */
    }
    return true;
}

static void open_sockets(const char *device)
{
    const int one = 1, size = 8 << 20;
    socklen_t n = sizeof s.local;
    s.local = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    s.udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(s.udp, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    (void)setsockopt(s.udp, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    (void)setsockopt(s.udp, SOL_UDP, UDP_GRO, &one, sizeof one);
    if (bind(s.udp, (struct sockaddr *)&s.local, n) != 0 ||
        getsockname(s.udp, (struct sockaddr *)&s.local, &n) != 0)
        die("bind", strerror(errno));
    s.tun = bench_tun_open(device);
    if (s.tun < 0)
        die(device, strerror(errno));
}

int main(int argc, char **argv)
{
    char cert[300], key[300], ca[300];
    if (argc < 3)
        return 2;
    (void)snprintf(cert, sizeof cert, "%s/edge1.crt", argv[2]);
    (void)snprintf(key, sizeof key, "%s/edge1.key", argv[2]);
    (void)snprintf(ca, sizeof ca, "%s/client-ca.crt", argv[2]);
    if (gnutls_certificate_allocate_credentials(&s.cred) != 0 ||
        gnutls_certificate_set_x509_key_file(s.cred, cert, key, GNUTLS_X509_FMT_PEM) != 0 ||
        gnutls_certificate_set_x509_trust_file(s.cred, ca, GNUTLS_X509_FMT_PEM) < 1)
        die("certificates", argv[2]);
    open_sockets(argv[1]);
    (void)printf("ready %u\n", (unsigned)ntohs(s.local.sin6_port));
    (void)fflush(stdout);
    for (;;) {
        struct pollfd p[2] = {{s.udp, POLLIN, 0}, {s.tun, POLLIN, 0}};
        ngtcp2_tstamp due = s.quic ? ngtcp2_conn_get_expiry(s.quic) : UINT64_MAX, now = now_ts();
        uint64_t left = due == UINT64_MAX ? NGTCP2_SECONDS : due > now ? due - now : 0;
        struct timespec ts = {(time_t)(left / NGTCP2_SECONDS), (long)(left % NGTCP2_SECONDS)};
        (void)ppoll(p, 2, &ts, NULL);
        now = now_ts();
        if (p[1].revents)
            from_tun(now);
        if (p[0].revents)
            for (int i = 0; i < 16 && from_udp(now); i++)
                ;
        if (!s.quic)
            continue;
        if (ngtcp2_conn_get_expiry(s.quic) <= now && ngtcp2_conn_handle_expiry(s.quic, now) != 0)
            exit(0);
        write_quic(now);
    }
}
