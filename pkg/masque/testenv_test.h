/* SPDX-License-Identifier: Apache-2.0
 *
 * masque/testenv_test.h - an endpoint, its fence, its events on record, and clients, in one thread. Time is
 * CLOCK_BOOTTIME plus a skew that a test may push forward.
 */
#ifndef MASQUE_TESTENV_TEST_H
#define MASQUE_TESTENV_TEST_H

#include <criterion/criterion.h>

#include "fence/fence.h"
#include "loop/loop.h"
#include "masque/capsule.h"
#include "masque/h2.h"
#include "masque/h3.h"
#include "masque/testclient_test.h"
#include "masque/testpki_test.h"

struct h2client;
enum testenv_answer { TESTENV_HOLD = 0, TESTENV_ACCEPT, TESTENV_REFUSE };
enum { TESTENV_MAX = 64, TESTENV_CLIENTS = 16 };

struct testenv {
    char dir[64];
    char server_cert[96], server_key[96], client_ca[96], cert[96], key[96];
    struct testpki_cert *root;
    struct masque_h3_config cfg;
    struct masque_h3 *h;
    struct masque_h2 *h2;            /* NULL until testenv_h2 */
    void (*turn)(struct testenv *e); /* h2client_test.c: its clients' part of a turn */
    struct h2client *h2clients;
    struct fence_table *fences;
    struct fence_slot *slot;
    struct base_prefix prefix, routes[2];

    enum testenv_answer answer;
    bool quiet; /* requests, packets and ends are counted, not kept */
    struct masque_request rq[TESTENV_MAX];
    unsigned n_rq;
    struct {
        uint64_t flow;
        enum masque_end why;
        char detail[200];
    } ended[TESTENV_MAX];
    unsigned n_ended;
    struct {
        uint64_t flow;
        size_t len;
        uint8_t data[1500];
    } packets[TESTENV_MAX];
    unsigned n_packets;
    void (*on_packet)(struct testenv *e, uint64_t flow); /* called from within the event */
    void (*on_request)(struct testenv *e, const struct masque_request *rq);

    struct testclient *clients[TESTENV_CLIENTS];
    unsigned n_clients;
};

extern base_time testenv_skew;
base_time testenv_clock(void);

/* Certificates, a fence that is open, an endpoint on [::1] with `limits` (NULL = defaults). */
struct testenv *testenv_new(const struct masque_h3_limits *limits);
void testenv_free(struct testenv *e);
void testenv_start(struct testenv *e, uint16_t port);
/* Opens an HTTP/2 endpoint beside the HTTP/3 one, with the same certificates, events and fence. */
void testenv_h2(struct testenv *e, const struct masque_h2_limits *limits);
/* One turn of the endpoint and every client. */
void testenv_turn(struct testenv *e);
void testenv_endpoint(struct testenv *e); /* the endpoint alone */
/* A client with a good certificate and the given deviations; port and certificate are filled in where they
 * are 0. */
struct testclient *testenv_client(struct testenv *e, struct testclient_config cfg);
/* Handshake done and SETTINGS seen. */
struct testclient *testenv_connected(struct testenv *e);
/* A good request with path `path` (NULL = any). Returns the stream's index. */
size_t testenv_request(struct testclient *c, const char *path);
/* A tunnel that was accepted, with 200 seen; *ret_flow is its number. */
struct testclient *testenv_tunnel(struct testenv *e, uint64_t *ret_flow);
int testenv_accept(struct testenv *e, uint64_t flow);
int testenv_send(struct testenv *e, uint64_t flow, size_t len, uint8_t mark);
struct masque_h3_stats testenv_stats(const struct testenv *e);
/* Which capsules are in what the client has read on its stream: their types, up to `max`. */
size_t testenv_capsules(const struct testclient_stream *s, uint64_t *types,
                        struct masque_address *last_assigned, size_t *n_assigned, struct masque_route *routes,
                        size_t *n_routes, size_t max);

/* Turns until `expr` holds or 5 s have passed. */
#define TESTENV_UNTIL(e, expr)                                                                               \
    ({                                                                                                       \
        base_time until_ = loop_clock() + 5 * BASE_SEC;                                                      \
        bool ok_ = false;                                                                                    \
        while (!(ok_ = (expr)) && loop_clock() < until_)                                                     \
            testenv_turn(e);                                                                                 \
        ok_;                                                                                                 \
    })
#define WAIT(e, expr) cr_assert(TESTENV_UNTIL(e, expr), "not seen in time: %s", #expr)
/* Turns for `ms`, for things that must not happen. */
void testenv_settle(struct testenv *e, unsigned ms);

#endif
