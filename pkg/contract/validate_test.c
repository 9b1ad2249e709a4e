/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/test_samples.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>

#define SPEC (o->u.claim.spec)
#define STAT (o->u.claim.status)
#define PI (o->u.instance.spec)
#define HA (o->u.attachment.spec)
#define PS (o->u.service)
#define CB (o->u.binding.spec)
#define SET(dst, z) (void)base_copy((dst), sizeof(dst), (z))

typedef void (*edit)(struct contract_object *o);
#define E(name, ...)                                                                                         \
    static void name(struct contract_object *o)                                                              \
    {                                                                                                        \
        __VA_ARGS__;                                                                                         \
    }

/* ---- starting points ---- */
E(none, (void)o)
E(accept, STAT.accepted_epoch = SPEC.epoch; STAT.accepted_lease_uuid = SPEC.lease_uuid)
E(gate_open, STAT.gate.epoch = SPEC.epoch; STAT.gate.state = CONTRACT_GATE_OPEN;
  SET(STAT.gate.reason, "Accepted"))
E(up, accept(o); gate_open(o))
E(taken, up(o); sample_takeover(o, "edge2", 200))
E(taken_unaccepted, sample_takeover(o, "edge2", 200))
E(taken_twice, taken(o); sample_takeover(o, "edge1", 201))
E(released, SPEC.release_time = SAMPLE_T0 + SAMPLE_S)
E(closed1, STAT.closed_epoch = 1; STAT.closed_reason = CONTRACT_CLOSED_CONFIRMED)
E(taken_closed, taken(o); closed1(o))
E(all_closed, released(o); closed1(o))

/* ---- claims ---- */
E(rc_name, SET(o->u.meta.name, "rc-000000000000000000000000"))
E(rc_prefix64, SPEC.prefix.len = 64)
E(rc_no_prefix, SPEC.prefix = (struct base_prefix){0})
E(rc_tenant_dot, SET(SPEC.tenant, "t.1"))
E(rc_no_uuid, SPEC.lease_uuid = (struct base_uuid){{0}})
E(rc_lease9, SPEC.lease_seconds = 9)
E(rc_lease301, SPEC.lease_seconds = SPEC.max_lease_seconds = 301)
E(rc_max301, SPEC.max_lease_seconds = 301)
E(rc_max_below, SPEC.max_lease_seconds = 20)
E(rc_epoch2, SPEC.epoch = 2; SPEC.previous.epoch = 1; SET(SPEC.previous.node, "edge2");
  SPEC.previous.boot_id = sample_uuid(4))
E(rc_previous, SPEC.previous.epoch = 1; SET(SPEC.previous.node, "edge2");
  SPEC.previous.boot_id = sample_uuid(4))
E(rc_half_previous, SET(SPEC.previous.node, "edge2"))
E(rc_instance, SET(SPEC.holder.instance, "other.edge1"))
E(rc_huge_epoch, SPEC.epoch = 9007199254740992)
E(rc_no_correlation, SPEC.correlation = (struct base_correlation){{0}})
E(rc_vpc, SET(SPEC.vpc, "vpc-b"))
E(rc_epoch_back, SPEC.epoch = 1; SPEC.lease_uuid = sample_uuid(7);
  memset(&SPEC.previous, 0, sizeof SPEC.previous))
E(rc_epoch_plus2, sample_takeover(o, "edge2", 200); SPEC.epoch++)
E(rc_holder_only, SET(SPEC.holder.node, "edge2"); SET(SPEC.holder.instance, "masque.edge2"))
E(rc_lease_only, SPEC.lease_uuid = sample_uuid(9))
E(rc_take_same_lease, sample_takeover(o, "edge2", 100))
E(rc_take, sample_takeover(o, "edge2", 200))
E(rc_take_no_previous, sample_takeover(o, "edge2", 200); memset(&SPEC.previous, 0, sizeof SPEC.previous))
E(rc_take_boot, sample_takeover(o, "edge2", 200); SPEC.previous.boot_id = sample_uuid(77))
E(rc_take_node, sample_takeover(o, "edge2", 200); SET(SPEC.previous.node, "edge3"))
E(rc_take_max, sample_takeover(o, "edge2", 200); SPEC.lease_seconds = SPEC.max_lease_seconds = 20)
E(rc_take_closing, sample_takeover(o, "edge2", 200); SPEC.release_time = SAMPLE_T0 + 9 * SAMPLE_S)
E(rc_service, SET(SPEC.service.name, "s2"))
E(rc_acquire_time, SPEC.acquire_time++)
E(rc_correlation, SPEC.correlation.b[3] = 9)
E(rc_unrelease, SPEC.release_time = 0)
E(rc_rerelease, SPEC.release_time++)
E(rc_previous_edit, SPEC.previous.epoch = 2)
E(st_accepted_above, STAT.accepted_epoch = 2; STAT.accepted_lease_uuid = SPEC.lease_uuid)
E(st_accepted_lease, STAT.accepted_epoch = SPEC.epoch; STAT.accepted_lease_uuid = sample_uuid(55))
E(st_accepted_half, STAT.accepted_epoch = 1)
E(st_accepted_gone, STAT.accepted_epoch = 0; STAT.accepted_lease_uuid = (struct base_uuid){{0}})
E(st_status_gone, memset(&STAT, 0, sizeof STAT))
E(st_gate_reopen, gate_open(o); SET(STAT.gate.reason, "Again"))
E(st_gate_no_reason, gate_open(o); STAT.gate.reason[0] = '\0')
E(st_gate_bad_reason, gate_open(o); SET(STAT.gate.reason, "not a word"))
E(st_gate_above, STAT.gate.epoch = 2; STAT.gate.state = CONTRACT_GATE_CLOSED; SET(STAT.gate.reason, "X"))
E(st_published_above, STAT.published_epoch = 2)
E(st_closed_reason_less, STAT.closed_epoch = 1)
E(st_closed2, STAT.closed_epoch = 2; STAT.closed_reason = CONTRACT_CLOSED_CONFIRMED)
E(st_closed2_waited, STAT.closed_epoch = 2; STAT.closed_reason = CONTRACT_CLOSED_WAITED)
E(st_closed1_waited, STAT.closed_epoch = 1; STAT.closed_reason = CONTRACT_CLOSED_WAITED)
E(st_closed3, STAT.closed_epoch = 3; STAT.closed_reason = CONTRACT_CLOSED_CONFIRMED)
E(st_closed_gone, STAT.closed_epoch = 0; STAT.closed_reason = CONTRACT_CLOSED_ABSENT)
E(st_closed_reason, STAT.closed_reason = CONTRACT_CLOSED_WAITED)
E(st_one_write, closed1(o); accept(o); gate_open(o))
E(st_withdrawn, STAT.withdrawn_epoch = 1)
E(st_withdrawn_gone, STAT.withdrawn_epoch = 0)
E(st_cond, STAT.accepted = (struct contract_cond){CONTRACT_COND_TRUE, "Ok", "", 1, SAMPLE_T0})
E(st_cond_no_time, STAT.accepted = (struct contract_cond){CONTRACT_COND_TRUE, "Ok", "", 1, 0})
E(st_cond_no_reason, STAT.accepted = (struct contract_cond){CONTRACT_COND_TRUE, "", "", 1, SAMPLE_T0})

static const struct {
    const char *name;
    edit start; /* NULL: a creation */
    edit change;
    const char *says; /* NULL = accepted */
} claims[] = {
    {"create", NULL, none, NULL},
    {"create: name is not the prefix", NULL, rc_name, "name must be rc-"},
    {"create: prefix is a /64", NULL, rc_prefix64, "spec.prefix"},
    {"create: no prefix", NULL, rc_no_prefix, "spec.prefix: is missing"},
    {"create: tenant with a dot", NULL, rc_tenant_dot, "spec.tenant: \"t.1\""},
    {"create: no leaseUUID", NULL, rc_no_uuid, "spec.leaseUUID: is missing"},
    {"create: lease 9", NULL, rc_lease9, "spec.leaseDurationSeconds: 9 "},
    {"create: lease 301", NULL, rc_lease301, "spec.leaseDurationSeconds: 301 "},
    {"create: max 301", NULL, rc_max301, "spec.maxLeaseDurationSeconds: 301 "},
    {"create: max below lease", NULL, rc_max_below, "at least leaseDurationSeconds"},
    {"create: epoch 2", NULL, rc_epoch2, "starts at epoch 1"},
    {"create: previous at epoch 1", NULL, rc_previous, "epoch > 1"},
    {"create: half a previous", NULL, rc_half_previous, "spec.previous.bootID: is missing"},
    {"create: released", NULL, released, "not released"},
    {"create: instance of another provider", NULL, rc_instance, "holder.instance"},
    {"create: epoch 2^53", NULL, rc_huge_epoch, "spec.epoch: 9007199254740992"},
    {"create: no correlation", NULL, rc_no_correlation, "spec.correlationID: is missing"},
    {"nothing changes", up, none, NULL},
    {"vpc changes", none, rc_vpc, "immutable"},
    {"epoch back", taken_unaccepted, rc_epoch_back, "never goes back"},
    {"epoch+2", up, rc_epoch_plus2, "exactly one"},
    {"holder without epoch", up, rc_holder_only, "exactly epoch+1"},
    {"leaseUUID without epoch", none, rc_lease_only, "new leaseUUID"},
    {"takeover with the old leaseUUID", up, rc_take_same_lease, "new leaseUUID"},
    {"takeover", up, rc_take, NULL},
    {"takeover of a released row clears the release", released, rc_take, NULL},
    {"takeover without previous", up, rc_take_no_previous, "spec.previous"},
    {"takeover, other boot id in previous", up, rc_take_boot, "old holder"},
    {"takeover, other node in previous", up, rc_take_node, "old holder"},
    {"takeover, max lease falls", up, rc_take_max, "cannot fall"},
    {"takeover, max lease falls after closure", all_closed, rc_take_max, NULL},
    {"closing takeover", up, rc_take_closing, NULL},
    {"serviceRef within the epoch", up, rc_service, "within an epoch only"},
    {"acquireTime within the epoch", up, rc_acquire_time, "within an epoch only"},
    {"correlationID within the epoch", up, rc_correlation, NULL},
    {"release", up, released, NULL},
    {"release taken back", released, rc_unrelease, "release is final"},
    {"release moved", released, rc_rerelease, "release is final"},
    {"previous edited", taken, rc_previous_edit, "previous is fixed"},
    {"accepted", none, accept, NULL},
    {"accepted above epoch", none, st_accepted_above, "never above"},
    {"accepted with another leaseUUID", none, st_accepted_lease, "acceptedLeaseUUID"},
    {"acceptedEpoch alone", taken_unaccepted, st_accepted_half, "go together"},
    {"accepted goes away", up, st_accepted_gone, "nor away"},
    {"status goes away", up, st_status_gone, "nor away"},
    {"gate before accept", none, gate_open, "gate opens only"},
    {"gate after accept", accept, gate_open, NULL},
    {"gate without reason", accept, st_gate_no_reason, "status.gate.reason: is missing"},
    {"gate with a sentence for a reason", accept, st_gate_bad_reason, "CamelCase"},
    {"gate of the next epoch before its accept", taken, gate_open, "gate opens only"},
    {"old open gate may stand after a takeover", taken, none, NULL},
    {"gate closed above epoch", none, st_gate_above, "never above"},
    {"published above epoch", none, st_published_above, "never above"},
    {"gate opens on a released row", all_closed, up, "gate opens only"},
    {"closed without reason", none, st_closed_reason_less, "go together"},
    {"closed by (b)", taken, closed1, NULL},
    {"closed by (c)", taken, st_closed1_waited, NULL},
    {"spec.epoch confirmed over a gap", taken, st_closed2, "moves by one"},
    {"spec.epoch by Waited", taken, st_closed2_waited, "moves by one"},
    {"closed above epoch", taken, st_closed3, "never above"},
    {"old epoch confirmed after two takeovers", taken_twice, closed1, "moves by one"},
    {"two epochs confirmed at once", taken_twice, st_closed2, "moves by one"},
    {"Waited closes a gap", taken_twice, st_closed2_waited, NULL},
    {"closed goes away", taken_closed, st_closed_gone, "nor away"},
    {"reason edited", taken_closed, st_closed_reason, "changes only with"},
    {"spec.epoch after the older one", taken_closed, st_closed2, NULL},
    {"(b), accept and open in one write", taken, st_one_write, NULL},
    {"withdrawn", none, st_withdrawn, NULL},
    {"withdrawn goes away", st_withdrawn, st_withdrawn_gone, "nor away"},
    {"open gate may get another reason while open", up, st_gate_reopen, NULL},
    {"condition", none, st_cond, NULL},
    {"condition without a time", none, st_cond_no_time, "status.conditions"},
    {"condition without a reason", none, st_cond_no_reason, "status.conditions"},
};

Test(contract_validate, claims)
{
    for (size_t i = 0; i < BASE_LEN(claims); i++) {
        struct contract_object old = sample_claim(1, "edge1", "s1", sample_uuid(3)), next;
        struct base_err err = {0};
        int rc;

        if (claims[i].start)
            claims[i].start(&old);
        next = old;
        claims[i].change(&next);
        rc = contract_validate(&next, claims[i].start ? &old : NULL, &err);
        cr_expect_eq(rc, claims[i].says ? BASE_EINVAL : BASE_OK, "%s: %s", claims[i].name, err.msg);
        if (claims[i].says)
            cr_expect(strstr(err.msg, claims[i].says), "%s: '%s' does not say '%s'", claims[i].name, err.msg,
                      claims[i].says);
    }
}

/* ---- the other kinds ---- */
E(pi_name, SET(o->u.meta.name, "masque.edge9"))
E(pi_lease, PI.lease_seconds = 20)
E(pi_lease9, PI.lease_seconds = 9)
E(pi_epoch2, PI.epoch = 2)
E(pi_take, PI.epoch++; PI.process_id = sample_uuid(3); PI.renew.boot_id = sample_uuid(13);
  PI.renew.boot_time_us = 5; PI.release_time = 0; PI.lease_seconds = 60)
E(pi_take_same, PI.epoch++)
E(pi_take2, pi_take(o); PI.epoch++)
E(pi_process, PI.process_id = sample_uuid(3))
E(pi_node_uid, PI.node_uid = sample_uuid(9))
E(pi_boot, PI.renew.boot_id = sample_uuid(13))
E(pi_renew, PI.renew.boot_time_us++)
E(pi_renew_back, PI.renew.boot_time_us--)
E(pi_release, PI.release_time = SAMPLE_T0)
E(pi_unrelease, PI.release_time = 0)
E(pi_epoch_back, PI.epoch = 1; PI.process_id = sample_uuid(1))
E(pi_accept, o->u.instance.status.accepted_epoch = PI.epoch;
  o->u.instance.status.accepted_process_id = PI.process_id)
E(pi_accept_other, o->u.instance.status.accepted_epoch = PI.epoch;
  o->u.instance.status.accepted_process_id = sample_uuid(66))
E(pi_accept_above, o->u.instance.status.accepted_epoch = 2;
  o->u.instance.status.accepted_process_id = PI.process_id)
E(pi_accept_gone, memset(&o->u.instance.status, 0, sizeof o->u.instance.status))
E(pi_accept_half, o->u.instance.status.accepted_process_id = PI.process_id)
E(pi_boot_2_53, PI.renew.boot_time_us = 9007199254740992)
E(pi_node, SET(PI.node, "edge2"); SET(o->u.meta.name, "masque.edge2"))
E(ha_vpc, SET(HA.vpc, "vpc-b"))
E(ha_uid, HA.instance.uid = sample_uuid(9))
E(ha_epoch2, HA.instance_epoch = 2)
E(ha_epoch1, HA.instance_epoch = 1)
E(ha_no_dot, SET(HA.instance.name, "masque"); SET(o->u.meta.name, "masque.vpc-a"))
E(ha_accept, o->u.attachment.status.accepted_instance_epoch = HA.instance_epoch;
  SET(o->u.attachment.status.device, "hf01234567"); o->u.attachment.status.mtu = 1400)
E(ha_accept_next, HA.instance_epoch = 2; ha_accept(o); SET(o->u.attachment.status.device, "hf01234568"))
E(ha_device2, SET(o->u.attachment.status.device, "hf01234568"))
E(ha_device_gone, o->u.attachment.status.device[0] = '\0')
E(ha_device_bad, ha_accept(o); SET(o->u.attachment.status.device, "tun0"))
E(ha_device_upper, ha_accept(o); SET(o->u.attachment.status.device, "hf0123456A"))
E(ha_mtu, ha_accept(o); o->u.attachment.status.mtu = 1279)
E(ha_above, o->u.attachment.status.accepted_instance_epoch = 2)
E(ha_gone, memset(&o->u.attachment.status, 0, sizeof o->u.attachment.status))
E(ps_pool96, PS.pool.len = 96)
E(ps_pool95, PS.pool.len = 95)
E(ps_dup, PS.n_destinations = 2; PS.destinations[1] = PS.destinations[0])
E(ps_no_dest, PS.n_destinations = 0)
E(ps_revoke, PS.revoked = true)
E(ps_unrevoke, PS.revoked = false)
E(ps_tenant, SET(PS.tenant, "t2"))
E(ps_until, PS.valid_until += SAMPLE_S)
E(ps_no_until, PS.valid_until = 0)
E(cb_name, SET(o->u.meta.name, "t1.cx"))
E(cb_none, CB.n_identities = 0)
E(cb_nine, CB.n_identities = 9)
E(cb_dup, CB.n_identities = 2; CB.identities[1] = CB.identities[0])
E(cb_user, CB.identities[0].kind = CONTRACT_IDENTITY_USER;
  SET(CB.identities[0].value, "system:serviceaccount:a:b"))
E(cb_user_umlaut, CB.identities[0].kind = CONTRACT_IDENTITY_USER; SET(CB.identities[0].value, "gr\xc3\xbcn"))
E(cb_uri, SET(CB.identities[0].value, "no-scheme"))
E(cb_uri_space, SET(CB.identities[0].value, "a:b c"))
E(cb_kind, CB.identities[0].kind = (enum contract_identity_kind)0)
E(cb_grant31, CB.grant_seconds = 31)
E(cb_grant5, CB.grant_seconds = 5)
E(cb_grant6, CB.grant_seconds = 6)
E(cb_retention, CB.retention_seconds = -2)
E(cb_suspend, CB.suspended = true; CB.takeover = CONTRACT_TAKEOVER_DENIED)
E(cb_takeover, CB.takeover = (enum contract_takeover)2)
E(cb_service, SET(CB.service, "s2"))
E(cb_reserve, o->u.binding.status.has_prefix = true;
  o->u.binding.status.prefix = sample_prefix("fd12::1:0:1:0:0/96"))
E(cb_reserve2, o->u.binding.status.has_prefix = true;
  o->u.binding.status.prefix = sample_prefix("fd12::1:0:2:0:0/96"))
E(cb_clear, o->u.binding.status.has_prefix = false)
E(cb_reserve80, o->u.binding.status.has_prefix = true;
  o->u.binding.status.prefix = sample_prefix("fd12::/80"))
E(cb_session, SET(o->u.binding.status.last.node, "edge1"))

static const struct {
    const char *name;
    enum contract_kind kind;
    edit start, change;
    const char *says;
} others[] = {
    {"pi create", CONTRACT_INSTANCE, NULL, none, NULL},
    {"pi name", CONTRACT_INSTANCE, NULL, pi_name, "<provider>.<node>"},
    {"pi create at 2", CONTRACT_INSTANCE, NULL, pi_epoch2, "starts at epoch 1"},
    {"pi lease 9", CONTRACT_INSTANCE, NULL, pi_lease9, "spec.leaseDurationSeconds"},
    {"pi 2^53", CONTRACT_INSTANCE, NULL, pi_boot_2_53, "spec.renew.bootTimeMicros"},
    {"pi renew", CONTRACT_INSTANCE, none, pi_renew, NULL},
    {"pi renew back", CONTRACT_INSTANCE, none, pi_renew_back, "boot clock"},
    {"pi lease", CONTRACT_INSTANCE, none, pi_lease, "fixed within an epoch"},
    {"pi boot", CONTRACT_INSTANCE, none, pi_boot, "bootID"},
    {"pi process", CONTRACT_INSTANCE, none, pi_process, "processID"},
    {"pi epoch, old process", CONTRACT_INSTANCE, none, pi_take_same, "processID"},
    {"pi takeover", CONTRACT_INSTANCE, pi_release, pi_take, NULL},
    {"pi epoch+2", CONTRACT_INSTANCE, none, pi_take2, "exactly one"},
    {"pi epoch back", CONTRACT_INSTANCE, pi_take, pi_epoch_back, "never goes back"},
    {"pi node uid", CONTRACT_INSTANCE, none, pi_node_uid, "nodeUID"},
    {"pi node", CONTRACT_INSTANCE, none, pi_node, "immutable"},
    {"pi release", CONTRACT_INSTANCE, none, pi_release, NULL},
    {"pi release back", CONTRACT_INSTANCE, pi_release, pi_unrelease, "release is final"},
    {"pi accept", CONTRACT_INSTANCE, none, pi_accept, NULL},
    {"pi accept other", CONTRACT_INSTANCE, none, pi_accept_other, "acceptedProcessID"},
    {"pi accept above", CONTRACT_INSTANCE, none, pi_accept_above, "never above"},
    {"pi accept half", CONTRACT_INSTANCE, none, pi_accept_half, "go together"},
    {"pi accept gone", CONTRACT_INSTANCE, pi_accept, pi_accept_gone, "nor away"},
    {"ha create", CONTRACT_ATTACHMENT, NULL, none, NULL},
    {"ha name", CONTRACT_ATTACHMENT, NULL, ha_vpc, "name must be"},
    {"ha instance without node", CONTRACT_ATTACHMENT, NULL, ha_no_dot, "<provider>.<node>"},
    {"ha uid", CONTRACT_ATTACHMENT, none, ha_uid, "immutable"},
    {"ha epoch back", CONTRACT_ATTACHMENT, ha_epoch2, ha_epoch1, "never goes back"},
    {"ha accept", CONTRACT_ATTACHMENT, none, ha_accept, NULL},
    {"ha above", CONTRACT_ATTACHMENT, none, ha_above, "never above"},
    {"ha device first", CONTRACT_ATTACHMENT, none, ha_device2, "needs an accepted"},
    {"ha second device", CONTRACT_ATTACHMENT, ha_accept, ha_device2, "second device"},
    {"ha device removed", CONTRACT_ATTACHMENT, ha_accept, ha_device_gone, "second device"},
    {"ha next epoch", CONTRACT_ATTACHMENT, ha_accept, ha_accept_next, NULL},
    {"ha device name", CONTRACT_ATTACHMENT, none, ha_device_bad, "status.device"},
    {"ha device upper", CONTRACT_ATTACHMENT, none, ha_device_upper, "status.device"},
    {"ha mtu", CONTRACT_ATTACHMENT, none, ha_mtu, "1280 to 65535"},
    {"ha gone", CONTRACT_ATTACHMENT, ha_accept, ha_gone, "nor away"},
    {"ps create", CONTRACT_SERVICE, NULL, none, NULL},
    {"ps no destination", CONTRACT_SERVICE, NULL, ps_no_dest, NULL},
    {"ps /96", CONTRACT_SERVICE, NULL, ps_pool96, "at most /95"},
    {"ps /95", CONTRACT_SERVICE, NULL, ps_pool95, NULL},
    {"ps twice", CONTRACT_SERVICE, NULL, ps_dup, "once"},
    {"ps no validUntil", CONTRACT_SERVICE, NULL, ps_no_until, "spec.validUntil: is missing"},
    {"ps validUntil", CONTRACT_SERVICE, none, ps_until, NULL},
    {"ps revoke", CONTRACT_SERVICE, none, ps_revoke, NULL},
    {"ps unrevoke", CONTRACT_SERVICE, ps_revoke, ps_unrevoke, "revocation is final"},
    {"ps tenant", CONTRACT_SERVICE, none, ps_tenant, "immutable"},
    {"cb create", CONTRACT_BINDING, NULL, none, NULL},
    {"cb name", CONTRACT_BINDING, NULL, cb_name, "<tenant>.<connector>"},
    {"cb nobody", CONTRACT_BINDING, NULL, cb_none, "spec.identities: is missing"},
    {"cb nine", CONTRACT_BINDING, NULL, cb_nine, "1 to 8"},
    {"cb twice", CONTRACT_BINDING, NULL, cb_dup, "once"},
    {"cb user", CONTRACT_BINDING, NULL, cb_user, NULL},
    {"cb user outside ASCII", CONTRACT_BINDING, NULL, cb_user_umlaut, "printable ASCII"},
    {"cb uri", CONTRACT_BINDING, NULL, cb_uri, "scheme"},
    {"cb uri with a blank", CONTRACT_BINDING, NULL, cb_uri_space, "scheme"},
    {"cb neither", CONTRACT_BINDING, NULL, cb_kind, "exactly one"},
    {"cb grant 31", CONTRACT_BINDING, NULL, cb_grant31, "6 to 30"},
    {"cb grant 5", CONTRACT_BINDING, NULL, cb_grant5, "6 to 30"},
    {"cb grant 6", CONTRACT_BINDING, NULL, cb_grant6, NULL},
    {"cb retention", CONTRACT_BINDING, NULL, cb_retention, "retentionSeconds"},
    {"cb takeover", CONTRACT_BINDING, NULL, cb_takeover, "spec.takeover"},
    {"cb suspend", CONTRACT_BINDING, none, cb_suspend, NULL},
    {"cb service", CONTRACT_BINDING, none, cb_service, "immutable"},
    {"cb reserve", CONTRACT_BINDING, none, cb_reserve, NULL},
    {"cb reserve another", CONTRACT_BINDING, cb_reserve, cb_reserve2, "only through absent"},
    {"cb clear", CONTRACT_BINDING, cb_reserve, cb_clear, NULL},
    {"cb /80", CONTRACT_BINDING, none, cb_reserve80, "status.prefix"},
    {"cb half a session", CONTRACT_BINDING, none, cb_session, "status.lastSession.generation: is missing"},
};

static struct contract_object sample(enum contract_kind k)
{
    switch (k) {
    case CONTRACT_INSTANCE:
        return sample_instance("edge1", sample_uuid(3));
    case CONTRACT_ATTACHMENT:
        return sample_attachment("edge1", "vpc-a", sample_uuid(4));
    case CONTRACT_SERVICE:
        return sample_service("s1", "t1", "fd12:0:0:1::/64", SAMPLE_T0);
    case CONTRACT_CLAIM:
        return sample_claim(1, "edge1", "s1", sample_uuid(3));
    case CONTRACT_BINDING:
        return sample_binding("c1");
    }
    return (struct contract_object){0};
}

Test(contract_validate, other_kinds)
{
    for (size_t i = 0; i < BASE_LEN(others); i++) {
        struct contract_object old = sample(others[i].kind), next;
        struct base_err err = {0};
        int rc;

        if (others[i].start)
            others[i].start(&old);
        next = old;
        others[i].change(&next);
        rc = contract_validate(&next, others[i].start ? &old : NULL, &err);
        cr_expect_eq(rc, others[i].says ? BASE_EINVAL : BASE_OK, "%s: %s", others[i].name, err.msg);
        if (others[i].says)
            cr_expect(strstr(err.msg, others[i].says), "%s: '%s' does not say '%s'", others[i].name, err.msg,
                      others[i].says);
    }
}

Test(contract_validate, kinds_do_not_follow_each_other)
{
    struct contract_object a = sample(CONTRACT_CLAIM), b = sample(CONTRACT_BINDING), zero = {0};
    struct base_err err = {0};

    cr_expect_eq(contract_validate(&a, &b, &err), BASE_EINVAL);
    cr_expect_eq(contract_validate(&zero, NULL, &err), BASE_EINVAL);
}
