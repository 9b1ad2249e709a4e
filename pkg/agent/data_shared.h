/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/data_shared.h - what the data threads have in common: which of them has a prefix, and what each
 * tenant has used up. Single words, changed with atomic operations; nobody waits for anybody.
 *
 * Who has a prefix is asked for packets that came out of another thread's TUN queue: it is where to carry
 * them, no permission (the thread that gets one looks it up in its own table of flows). It is also a second
 * guard of "one session per prefix": of two threads that claim one, at most one succeeds.
 *
 * Pure, but for what other threads do meanwhile; fixed capacity.
 */
#ifndef AGENT_DATA_SHARED_H
#define AGENT_DATA_SHARED_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/time.h"

#define AGENT_NOBODY UINT_MAX

struct agent_tenant;
struct agent_tenant_limits;
struct agent_shared;
/* Room for `max` prefixes (0 = none, for a thread that is alone; at most 2^21). NULL: no memory, or out of
 * range. */
struct agent_shared *agent_shared_new(uint32_t max, uint64_t seed);
struct agent_shared *agent_shared_free(struct agent_shared *s);
BASE_DEFINE_CLEANUP(struct agent_shared *, agent_shared_free)

/* From now on packets for this /96 are carried to `thread` (0 .. 63). BASE_OK; BASE_EEXIST: a thread, even
 * this one, has it; BASE_EFULL. When two threads claim one at the same time both may get BASE_EEXIST. */
int agent_shared_claim(struct agent_shared *s, const struct base_prefix *p, unsigned thread);
/* Takes this thread's claim back, if there is one. */
void agent_shared_release(struct agent_shared *s, const struct base_prefix *p, unsigned thread);
/* The thread that has the /96 of this address, or AGENT_NOBODY. */
unsigned agent_shared_owner(const struct agent_shared *s, const uint8_t addr[16]);

/* ---- tenants ----
 * A tenant is known before anything is asked or written: by the scheme and host of its certificates' URI
 * ("spiffe://acme" of "spiffe://acme/site-1"). Tenants share AGENT_TENANTS entries by a keyed hash, so that
 * nobody can make the table grow, nor choose whose budget is used up without the key. */
enum { AGENT_TENANTS = 4096 };
/* The tenant of a URI; NULL when it has no host. */
struct agent_tenant *agent_shared_tenant(struct agent_shared *s, const char *uri);
enum agent_tenant_verdict { AGENT_TENANT_PASS = 0, AGENT_TENANT_SESSIONS, AGENT_TENANT_REQUESTS };
/* May it have one flow more now? A request that passes is counted, the flow is not yet. NULL passes. */
enum agent_tenant_verdict agent_tenant_request(struct agent_tenant *x, const struct agent_tenant_limits *l,
                                               base_time now);
/* One packet of it, in either direction: false = its budget is used up. NULL passes. */
bool agent_tenant_packet(struct agent_tenant *x, const struct agent_tenant_limits *l, base_time now);
/* It has one flow more (false: another thread has given it the last one of its `limit`, 0 = none; not
 * counted), or one less. NULL ok. */
bool agent_tenant_add(struct agent_tenant *x, uint32_t limit);
void agent_tenant_sub(struct agent_tenant *x);

/* When a sender of `rate` units a second that has sent up to `at` may be done with `n` more (a tenth of the
 * rate, or `least`, may come at once); 0 = not now. Rate 0 = no limit. */
base_time agent_spend(base_time at, uint64_t rate, uint64_t least, base_time now, uint64_t n);

#endif
