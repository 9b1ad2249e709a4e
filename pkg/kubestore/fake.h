/* SPDX-License-Identifier: Apache-2.0
 *
 * kubestore/fake.h - an API client and a loop in the test's hands (fake_test.c): no socket, no clock that
 * runs. The unit tests link these instead of pkg/kube and pkg/loop, answer every request themselves and move
 * the time.
 */
#ifndef KUBESTORE_FAKE_H
#define KUBESTORE_FAKE_H

#include "kube/client.h"
#include "kubestore/kubestore.h"
#include "loop/loop.h"

struct kube_call {
    struct kube_call *next;
    char method[8], path[4096], audit_id[64];
    char *body;
    int lane;
    base_time timeout, idle, sent_at;
    kube_done done;
    kube_stream_fn fn;
    void *arg;
};
void fake_reset(void); /* at the start of each test: time 1000 s, nothing open */
/* Everything was released: no call, no timer. */
bool fake_clean(void);
base_time fake_now(void);
/* Moves the time on; fires timers in order. */
void fake_advance(int64_t ms);
/* The open calls whose path holds `part`: how many, and the newest. */
unsigned fake_calls(const char *part);
struct kube_call *fake_call(const char *part);
/* Calls made since fake_reset. */
unsigned fake_made(void);
/* Times a lane was dropped. */
unsigned fake_drops(void);
/* Times that connections in the making were asked for anew. */
unsigned fake_agains(void);
/* Ends a request (or a stream). `body` NULL: no answer came; code then says why. */
void fake_answer(struct kube_call *c, int http, const char *reason, const char *body);
void fake_fail(struct kube_call *c, int code, bool sent);
void fake_retry_after(struct kube_call *c, int http, base_time after);
/* Streams. False when the call is gone after it. */
bool fake_open(struct kube_call *c);
bool fake_line(struct kube_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
