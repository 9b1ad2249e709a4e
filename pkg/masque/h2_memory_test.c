/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP/2 endpoint when an allocation fails: the i-th one, for every i. Nothing crashes, nothing is left
 * behind, and what was there before goes on.
 */
#include "base/mem.h"
#include "masque/h2client_test.h"

#include <string.h>

TestSuite(masque_h2_memory, .timeout = 60);

Test(masque_h2_memory, a_new_endpoint_fails_cleanly)
{
    struct testenv *e = testenv_new(NULL);
    struct masque_h2_config cfg = {.listen = "[::1]:0",
                                   .cert_file = e->server_cert,
                                   .key_file = e->server_key,
                                   .client_ca_file = e->client_ca,
                                   .events = e->cfg.events};
    unsigned long n = 0;
    for (int rv = BASE_ENOMEM; rv != BASE_OK;) {
        struct masque_h2 *h = NULL;
        struct base_err err = {0};
        base_mem_fail_after(++n);
        rv = masque_h2_new(&h, &cfg, &err);
        base_mem_fail_after(0);
        cr_assert_eq(h != NULL, rv == BASE_OK, "allocation %lu", n);
        if (rv != BASE_OK)
            cr_assert_eq(rv, BASE_ENOMEM, "allocation %lu: %s", n, err.msg);
        masque_h2_free(h);
        cr_assert(n < 100);
    }
    cr_assert_gt(n, 5, "only %lu allocations: is the hook in use?", n);
    testenv_free(e);
}

/* From the first packet to packets both ways, with allocations from the i-th on failing in the endpoint for a
 * while. */
static bool session(struct testenv *e, unsigned long fail_at)
{
    struct h2client *c =
        h2client_new(e, (struct h2client_config){.cert_file = e->cert, .key_file = e->key, .alpn = "\2h2"});
    static const uint8_t up[] = {0, 2, 0, 0x60};
    size_t last = 0;
    bool asked = false, sent = false, ok = false;
    base_mem_fail_after(fail_at);
    for (int turn = 0; turn < 5000 && !c->eof && !ok; turn++) {
        testenv_turn(e);
        if (c->settings_seen && !asked) {
            (void)h2client_connect_ip(c);
            h2client_send(c, 0, up, sizeof up);
            asked = true;
        }
        if (asked && c->streams[0]->status == 200 && !sent && e->n_rq > 0)
            sent = testenv_send(e, e->rq[e->n_rq - 1].flow, 100, 1) == BASE_OK;
        ok = sent && h2client_packets(c->streams[0], &last, false) == 1;
        if (fail_at > 0 && turn > 300)
            break;
    }
    base_mem_fail_after(0);
    h2client_free(c);
    testenv_endpoint(e);
    return ok;
}

static void accept_if_there_is_memory(struct testenv *e, const struct masque_request *rq)
{
    int rv = testenv_accept(e, rq->flow);
    cr_assert(rv == BASE_OK || rv == BASE_EFULL, "%d", rv);
}

Test(masque_h2_memory, every_allocation_of_a_session_may_fail)
{
    unsigned failed = 0;
    bool ok = false;
    for (unsigned long n = 1; !ok && n < 60; n++) {
        struct testenv *e = testenv_new(NULL);
        testenv_h2(e, NULL);
        e->on_request = accept_if_there_is_memory;
        ok = session(e, n);
        failed += !ok;
        cr_assert(session(e, 0), "the endpoint is of no use after allocation %lu failed", n);
        h2client_free_all(e);
        testenv_free(e);
    }
    cr_assert(ok, "it never worked");
    cr_assert_gt(failed, 3, "only %u allocations: is the hook in use?", failed);
}
