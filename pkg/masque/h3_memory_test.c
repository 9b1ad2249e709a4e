/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoint when an allocation fails: the i-th one, for every i. Nothing crashes, nothing is left behind,
 * and what was there before goes on.
 */
#include "base/mem.h"
#include "masque/testenv_test.h"

#include <string.h>

/* The same time-out as the other suites: Criterion 2.4.1 leaks a timer when they differ. */
TestSuite(masque_h3_memory, .timeout = 60);

Test(masque_h3_memory, a_new_endpoint_fails_cleanly)
{
    struct testenv *e = testenv_new(NULL);
    unsigned long n = 0;
    for (int rv = BASE_ENOMEM; rv != BASE_OK;) {
        struct masque_h3 *h = NULL;
        struct base_err err = {0};
        e->cfg.listen = "[::1]:0";
        base_mem_fail_after(++n);
        rv = masque_h3_new(&h, &e->cfg, &err);
        base_mem_fail_after(0);
        cr_assert_eq(h != NULL, rv == BASE_OK, "allocation %lu", n);
        if (rv != BASE_OK)
            cr_assert_eq(rv, BASE_ENOMEM, "allocation %lu: %s", n, err.msg);
        masque_h3_free(h);
        cr_assert(n < 100);
    }
    cr_assert_gt(n, 5, "only %lu allocations: is the hook in use?", n);
    e->cfg.listen = NULL;
    testenv_free(e);
}

/* From the first packet to packets both ways, with allocations from the i-th on failing in the endpoint for a
 * while. */
static bool session(struct testenv *e, unsigned long fail_at)
{
    struct testclient *c =
        testenv_client(e, (struct testclient_config){.cert_file = e->cert, .key_file = e->key, .alpn = "h3"});
    bool asked = false, sent = false;
    base_mem_fail_after(fail_at);
    int turns = fail_at > 0
                    ? 400
                    : 5000; /* of 1 ms where nothing comes; all the time in the world where it must work */
    for (int turn = 0; turn < turns && !c->closed && c->n_datagrams == 0; turn++) {
        testenv_turn(e);
        if (c->handshaken && c->got_settings && !asked) {
            (void)testenv_request(c, NULL);
            testclient_datagram(c, "\0\0early", 7);
            asked = true;
        }
        if (asked && c->streams[0].status == 200 && !sent && e->n_rq > 0)
            sent = testenv_send(e, e->rq[e->n_rq - 1].flow, 100, 1) == BASE_OK;
        if (fail_at > 0 && turn > 60)
            break;
    }
    base_mem_fail_after(0);
    return c->n_datagrams > 0;
}

static void accept_if_there_is_memory(struct testenv *e, const struct masque_request *rq)
{
    int rv = testenv_accept(e, rq->flow);
    cr_assert(rv == BASE_OK || rv == BASE_EFULL, "%d", rv);
}

Test(masque_h3_memory, every_allocation_of_a_session_may_fail)
{
    unsigned failed = 0;
    bool ok = false;
    for (unsigned long n = 1; !ok && n < 60; n++) {
        struct testenv *e = testenv_new(NULL);
        e->on_request = accept_if_there_is_memory;
        ok = session(e, n);
        failed += !ok;
        for (unsigned i = 0; i < e->n_clients; i++)
            e->clients[i]->closed = true;
        cr_assert(session(e, 0), "the endpoint is of no use after allocation %lu failed", n);
        testenv_free(e);
    }
    cr_assert(ok, "it never worked");
    cr_assert_gt(failed, 5, "only %u allocations: is the hook in use?", failed);
}
