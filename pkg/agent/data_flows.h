/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/data_flows.h - the data thread's table of flows: from a flow id, and from a destination address.
 *
 * Pure; one thread; fixed capacity, nothing is allocated after agent_flows_new. An entry lives from the
 * request's arrival to the flow's end. Only an entry in state OPEN can be found by address, and no two of
 * them have the same prefix.
 */
#ifndef AGENT_DATA_FLOWS_H
#define AGENT_DATA_FLOWS_H

#include "agent/data_shared.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "masque/icmp6.h"
#include "masque/packet.h"

struct agent_admit;
struct agent_rate;
struct fence_slot;

enum agent_flow_state {
    AGENT_FLOW_ASKED = 1, /* reported to control, no answer yet */
    AGENT_FLOW_OPEN,      /* admitted: packets pass as far as its fence allows */
    AGENT_FLOW_STOPPED,   /* the barrier has passed: no packet any more; the stream may still be there */
};
struct agent_flow {
    uint64_t id; /* 0 = free */
    enum agent_flow_state state;
    uint32_t next;    /* in its bucket, or in the free list */
    base_time opened; /* OPEN: since when; set by agent_flows_open's caller */
    uint32_t tun;     /* index of the data thread's TUN; UINT32_MAX = none (closed or lost) */
    const struct fence_slot *slot;
    struct base_prefix target; /* what the request asked for; len 0 = anything */
    int ipproto;               /* likewise; -1 = anything */
    struct masque_rules rules; /* OPEN only; its destinations are the array below */
    struct masque_icmp6_bucket bucket;
    struct agent_tenant *tenant;    /* NULL = not known */
    base_time packets_at, bytes_at; /* when what it has sent is used up, at its rate; see agent_flow_rate */
    struct base_prefix destinations[64];
};

struct agent_flows;
/* NULL: no memory, or `max` is 0 or above 2^20. */
struct agent_flows *agent_flows_new(uint32_t max, uint64_t seed);
struct agent_flows *agent_flows_free(struct agent_flows *t);
BASE_DEFINE_CLEANUP(struct agent_flows *, agent_flows_free)
/* One of several tables, of `thread`: open flows claim their prefixes in `s`, and tenants are counted there.
 * Before the first flow; `s` stays the caller's. */
void agent_flows_join(struct agent_flows *t, struct agent_shared *s, unsigned thread);

/* A new entry in state ASKED. NULL: full, the id is 0, or known already. */
struct agent_flow *agent_flows_add(struct agent_flows *t, uint64_t id);
struct agent_flow *agent_flows_find(struct agent_flows *t, uint64_t id);
/* The OPEN flow whose prefix holds `addr`, or NULL. */
struct agent_flow *agent_flows_by_address(struct agent_flows *t, const uint8_t addr[16]);

/* Makes an ASKED flow OPEN with what control decided, narrowed to what the request asked for. BASE_OK;
 * BASE_EINVAL: it is not ASKED, the prefix is no /96, there is no slot, too many destinations; BASE_EEXIST:
 * another flow is open with this prefix (that one stays), here or in another thread; BASE_EFULL. On failure
 * nothing was changed. */
int agent_flows_open(struct agent_flows *t, struct agent_flow *f, const struct agent_admit *a, uint32_t tun);
/* The barrier: no longer found by address, its slot forgotten. Any state. */
void agent_flows_stop(struct agent_flows *t, struct agent_flow *f);
/* Forgets it (stops it first). */
void agent_flows_remove(struct agent_flows *t, struct agent_flow *f);
/* Every flow of this TUN loses it. */
void agent_flows_drop_tun(struct agent_flows *t, uint32_t tun);
/* May it send `len` bytes into the VPC now? True = yes, and counted. */
bool agent_flow_rate(struct agent_flow *f, const struct agent_rate *r, base_time now, size_t len);
uint32_t agent_flows_count(const struct agent_flows *t);

/* The tenant of a URI; NULL when it has no host. */
struct agent_tenant *agent_flows_tenant(struct agent_flows *t, const char *uri);
/* The flow belongs to this tenant (NULL ok) from now until its end. False: it has `limit` flows (0 = no
 * limit) already. */
bool agent_flow_belongs(struct agent_flow *f, struct agent_tenant *x, uint32_t limit);

#endif
