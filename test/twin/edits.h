/* SPDX-License-Identifier: Apache-2.0
 *
 * edits.h - what the steps of the table do to an object before it is written. `r` is the rig, `s` the side,
 * `o` the object as it is stored there (or an empty one of that kind for a creation). Included by table.c
 * only.
 */
#ifndef TWIN_EDITS_H
#define TWIN_EDITS_H

#include "contract/test_samples.h"
#include "twin.h"

#define E(name, ...)                                                                                         \
    static void name(struct rig *r, struct side *s, struct contract_object *o)                               \
    {                                                                                                        \
        (void)r;                                                                                             \
        (void)s;                                                                                             \
        __VA_ARGS__;                                                                                         \
    }
#define SET(dst, z)                                                                                          \
    do {                                                                                                     \
        memset((dst), 0, sizeof(dst));                                                                       \
        (void)base_copy((dst), sizeof(dst), (z));                                                            \
    } while (0)
#define META (o->u.meta)
#define PI (o->u.instance.spec)
#define PIS (o->u.instance.status)
#define HA (o->u.attachment.spec)
#define HAS (o->u.attachment.status)
#define PS (o->u.service)
#define RC (o->u.claim.spec)
#define RCS (o->u.claim.status)
#define CB (o->u.binding.spec)
#define CBS (o->u.binding.status)

bool side_get(struct rig *r, struct side *s, enum contract_kind kind, const char *name,
              struct contract_object *ret);

static struct base_uuid uid_of(struct rig *r, struct side *s, enum contract_kind kind, const char *name)
{
    struct contract_object o;

    return side_get(r, s, kind, name, &o) ? o.u.meta.uid : (struct base_uuid){{0}};
}
static void finalizer(struct rig *r, struct contract_object *o, bool first_node)
{
    char f[CONTRACT_FINALIZER_SIZE];
    struct base_uuid boot = {{1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}};

    contract_finalizer(f, first_node ? &r->node1 : &r->node2, &boot);
    (void)contract_finalizer_add(&o->u.meta, f);
}
static void no_finalizers(struct contract_object *o)
{
    o->u.meta.n_finalizers = 0;
    memset(o->u.meta.finalizers, 0, sizeof o->u.meta.finalizers);
}
static void gate(struct contract_object *o, enum contract_gate_state state, const char *reason)
{
    RCS.gate.epoch = RC.epoch;
    RCS.gate.state = state;
    SET(RCS.gate.reason, reason);
    RCS.gate.since = SAMPLE_T0;
}
static void closed(struct contract_object *o, int64_t epoch, enum contract_closed_reason why)
{
    RCS.closed_epoch = epoch;
    RCS.closed_reason = why;
    RCS.closed_time = epoch ? SAMPLE_T0 + 120 * SAMPLE_S : 0;
}
static void new_claim(struct rig *r, struct side *s, struct contract_object *o, unsigned i, const char *node)
{
    *o = sample_claim(i, node, "s1", uid_of(r, s, CONTRACT_SERVICE, "s1"));
}

/* ---- anything ---- */
E(as_is, )
E(no_rv, META.rv[0] = '\0')
E(rv_zero, SET(META.rv, "0"))
E(rv_abc, SET(META.rv, "abc"))
E(rv_old, SET(META.rv, "1"))
E(no_uid, META.uid = (struct base_uuid){{0}})
E(other_uid, META.uid = sample_uuid(999))
E(other_uid_no_rv, META.uid = sample_uuid(999); META.rv[0] = '\0')
E(foreign_finalizer, (void)contract_finalizer_add(&META, "x.y/z"))
E(gate_finalizer_1, finalizer(r, o, true))
E(gate_finalizer_2, finalizer(r, o, false))
E(finalizers_off, no_finalizers(o))
E(drain_on, META.drain = true)
E(drain_off, META.drain = false)

/* ---- services ---- */
E(ps_1, *o = sample_service("s1", "t1", "fd12:0:0:1::/64", r->now + 60 * SAMPLE_S))
E(ps_2, *o = sample_service("s2", "t2", "fd12:0:0:1::/64", r->now + 60 * SAMPLE_S))
E(ps_3, *o = sample_service("s3", "t1", "fd12:0:0:1::/64", r->now + 60 * SAMPLE_S))
E(ps_96, *o = sample_service("s9", "t1", "fd12::1:0:0:0/96", r->now + 60 * SAMPLE_S))
E(ps_name, *o = sample_service("S9", "t1", "fd12:0:0:1::/64", r->now + 60 * SAMPLE_S))
E(ps_far, *o = sample_service("s9", "t1", "fd12:0:0:1::/64", r->now + 600 * SAMPLE_S))
E(ps_twice, ps_1(r, s, o); PS.n_destinations = 2; PS.destinations[1] = PS.destinations[0])
E(ps_none, *o = sample_service("s9", "t9", "fd19::/64", r->now + 60 * SAMPLE_S); PS.n_destinations = 0)
E(ps_later, PS.valid_until = r->now + 200 * SAMPLE_S)
E(ps_too_late, PS.valid_until = r->now + 600 * SAMPLE_S)
E(ps_revoke, PS.revoked = true)
E(ps_unrevoke, PS.revoked = false)
E(ps_tenant, SET(PS.tenant, "t7"))
E(ps_destinations, PS.n_destinations = 2; PS.destinations[1] = sample_prefix("fd21::/64"))

/* ---- instances ---- */
E(pi_1, *o = sample_instance("edge1", r->node1))
E(pi_2, *o = sample_instance("edge2", r->node2))
E(pi_wrong_uid, *o = sample_instance("edge1", r->node2))
E(pi_name, pi_1(r, s, o); SET(META.name, "masque.edgex"))
E(pi_epoch2, pi_1(r, s, o); PI.epoch = 2)
E(pi_lease9, pi_1(r, s, o); PI.lease_seconds = 9)
E(pi_lease301, pi_1(r, s, o); PI.lease_seconds = 301)
E(pi_2_53, pi_1(r, s, o); PI.renew.boot_time_us = 9007199254740992)
E(pi_no_lease, pi_1(r, s, o); PI.lease_seconds = 0)
E(pi_finalizer, pi_1(r, s, o); foreign_finalizer(r, s, o))
E(pi_with_rv, pi_1(r, s, o); SET(META.rv, "5"))
E(pi_with_rv_bad, pi_epoch2(r, s, o); SET(META.rv, "5"))
E(pi_with_uid_status, pi_1(r, s, o); META.uid = sample_uuid(5); META.generation = 7; PIS.accepted_epoch = 1;
  PIS.accepted_process_id = PI.process_id)
E(pi_renew, PI.renew.boot_time_us += 1000000)
E(pi_renew_with_status, PI.renew.boot_time_us += 1000000; PIS.accepted_epoch = 0)
E(pi_renew_back, PI.renew.boot_time_us -= 1)
E(pi_boot, PI.renew.boot_id = sample_uuid(13))
E(pi_process, PI.process_id = sample_uuid(3))
E(pi_next_same, PI.epoch++)
E(pi_next2, PI.epoch += 2; PI.process_id = sample_uuid(3))
E(pi_lease20, PI.lease_seconds = 20)
E(pi_node_uid, PI.node_uid = sample_uuid(9))
E(pi_node, SET(PI.node, "edge2"))
E(pi_accept2, PIS.accepted_epoch = 2; PIS.accepted_process_id = PI.process_id)
E(pi_accept_other, PIS.accepted_epoch = 1; PIS.accepted_process_id = sample_uuid(7))
E(pi_accept_half, PIS.accepted_process_id = PI.process_id)
E(pi_accept, PIS.accepted_epoch = PI.epoch; PIS.accepted_process_id = PI.process_id)
E(pi_accept_cond, pi_accept(r, s, o);
  PIS.accepted = (struct contract_cond){CONTRACT_COND_TRUE, "Ok", "said \"so\"", 1, SAMPLE_T0})
E(pi_cond_bad, PIS.ready = (struct contract_cond){CONTRACT_COND_TRUE, "not a word", "", 1, SAMPLE_T0})
E(pi_no_status, memset(&PIS, 0, sizeof PIS))
E(pi_draining, PI.draining = true)
E(pi_release, PI.release_time = SAMPLE_T0)
E(pi_unrelease, PI.release_time = 0)
E(pi_rerelease, PI.release_time += 1)
E(pi_take, PI.epoch++; PI.process_id = sample_uuid(3); PI.renew.boot_id = sample_uuid(13);
  PI.renew.boot_time_us = 5; PI.release_time = 0; PI.draining = false; PI.lease_seconds = 60)
E(pi_back, PI.epoch = 1; PI.process_id = sample_uuid(1))
E(pi_accept_back, PIS.accepted_epoch = 1; PIS.accepted_process_id = sample_uuid(1))

/* ---- attachments ---- */
E(ha_1, *o = sample_attachment("edge1", "vpc-a", uid_of(r, s, CONTRACT_INSTANCE, "masque.edge1")))
E(ha_2, *o = sample_attachment("edge2", "vpc-a", sample_uuid(4)))
E(ha_name, ha_1(r, s, o); SET(HA.vpc, "vpc-b"))
E(ha_uid, HA.instance.uid = sample_uuid(2))
E(ha_above, HAS.accepted_instance_epoch = 2)
E(ha_accept, HAS.accepted_instance_epoch = 1; SET(HAS.device, "hf01234567"); HAS.mtu = 1400)
E(ha_device_only, SET(HAS.device, "hf01234567"))
E(ha_tun0, HAS.accepted_instance_epoch = 1; SET(HAS.device, "tun0"))
E(ha_mtu, HAS.accepted_instance_epoch = 1; HAS.mtu = 1279)
E(ha_device2, SET(HAS.device, "hf01234568"))
E(ha_epoch2, HA.instance_epoch = 2)
E(ha_epoch1, HA.instance_epoch = 1)
E(ha_accept2, HAS.accepted_instance_epoch = 2; SET(HAS.device, "hf01234568"))

/* ---- claims ---- */
E(rc_1, new_claim(r, s, o, 1, "edge1"))
E(rc_2, new_claim(r, s, o, 2, "edge1"))
E(rc_3, new_claim(r, s, o, 3, "edge1"))
E(rc_4, new_claim(r, s, o, 4, "edge1"))
E(rc_1_edge2, new_claim(r, s, o, 1, "edge2"))
E(rc_name, rc_1(r, s, o); SET(META.name, "rc-fd1200000000000100000002"))
E(rc_epoch2, rc_1(r, s, o); RC.epoch = 2; SET(RC.previous.node, "edge2");
  RC.previous.boot_id = sample_uuid(12); RC.previous.epoch = 1)
E(rc_previous1, rc_epoch2(r, s, o); RC.epoch = 1)
E(rc_released, rc_1(r, s, o); RC.release_time = SAMPLE_T0)
E(rc_max20, rc_1(r, s, o); RC.max_lease_seconds = 20)
E(rc_instance, rc_1(r, s, o); SET(RC.holder.instance, "other.edge1"))
E(rc_finalizer, rc_1(r, s, o); foreign_finalizer(r, s, o))
E(rc_outside, *o = sample_claim(1, "edge1", "s1", uid_of(r, s, CONTRACT_SERVICE, "s1"));
  RC.prefix = sample_prefix("fd13::1:0:0/96"); contract_claim_name(META.name, &RC.prefix))
E(rc_service_uid, rc_1(r, s, o); RC.service.uid = uid_of(r, s, CONTRACT_SERVICE, "s2"))
E(rc_service_tenant, rc_1(r, s, o); SET(RC.service.name, "s2");
  RC.service.uid = uid_of(r, s, CONTRACT_SERVICE, "s2"))
E(rc_service_revoked, rc_1(r, s, o); SET(RC.service.name, "s3");
  RC.service.uid = uid_of(r, s, CONTRACT_SERVICE, "s3"))
E(rc_service_unknown, new_claim(r, s, o, 90, "edge1"); SET(RC.service.name, "nope");
  RC.service.uid = sample_uuid(8))
E(rc_service_none, new_claim(r, s, o, 92, "edge1"); SET(RC.service.name, "nope");
  RC.service.uid = sample_uuid(8))
E(rc_with_rv, new_claim(r, s, o, 91, "edge1"); SET(META.rv, "5"))
E(rc_accept_above, RCS.accepted_epoch = 2; RCS.accepted_lease_uuid = RC.lease_uuid)
E(rc_accept_lease, RCS.accepted_epoch = RC.epoch; RCS.accepted_lease_uuid = sample_uuid(101))
E(rc_accept_half, RCS.accepted_lease_uuid = (struct base_uuid){{0}})
E(rc_accept, RCS.accepted_epoch = RC.epoch; RCS.accepted_lease_uuid = RC.lease_uuid)
E(rc_accept_cond, rc_accept(r, s, o);
  RCS.accepted = (struct contract_cond){CONTRACT_COND_TRUE, "Accepted", "epoch 1", 1, SAMPLE_T0})
E(rc_accept_back, RCS.accepted_epoch = 1; RCS.accepted_lease_uuid = sample_uuid(100))
E(rc_open, gate(o, CONTRACT_GATE_OPEN, "Test"))
E(rc_open_again, gate(o, CONTRACT_GATE_OPEN, "Again"))
E(rc_close_gate, gate(o, CONTRACT_GATE_CLOSED, "Test"))
E(rc_open_sentence, gate(o, CONTRACT_GATE_OPEN, "not a word"))
E(rc_open_publish, rc_open(r, s, o); RCS.published_epoch = RC.epoch; RCS.published_time = SAMPLE_T0)
E(rc_publish_above, RCS.published_epoch = RC.epoch + 1)
E(rc_release, RC.release_time = SAMPLE_T0 + 180 * SAMPLE_S)
E(rc_release_corr, rc_release(r, s, o); RC.correlation.b[5] = 7)
E(rc_unrelease, RC.release_time = 0)
E(rc_rerelease, RC.release_time += SAMPLE_S)
E(rc_service_edit, SET(RC.service.name, "s2"))
E(rc_lease_edit, RC.lease_seconds = 20)
E(rc_connector, SET(RC.connector, "cx"))
E(rc_holder, SET(RC.holder.node, "edge2"); SET(RC.holder.instance, "masque.edge2"))
E(rc_take2, sample_takeover(o, "edge2", 200))
E(rc_take1, sample_takeover(o, "edge1", 201))
E(rc_take_plus2, sample_takeover(o, "edge2", 200); RC.epoch++)
E(rc_take_lease, sample_takeover(o, "edge2", 100))
E(rc_take_no_previous, rc_take2(r, s, o); memset(&RC.previous, 0, sizeof RC.previous))
E(rc_take_boot, rc_take2(r, s, o); RC.previous.boot_id = sample_uuid(77))
E(rc_take_epoch, rc_take2(r, s, o); RC.previous.epoch = 2)
E(rc_take_max, rc_take2(r, s, o); RC.lease_seconds = RC.max_lease_seconds = 20)
E(rc_take1_max, rc_take1(r, s, o); RC.lease_uuid = sample_uuid(300);
  RC.lease_seconds = RC.max_lease_seconds = 20)
E(rc_take_connector, rc_take2(r, s, o); SET(RC.connector, "cx"))
E(rc_take_revoked, rc_take2(r, s, o); SET(RC.service.name, "s3");
  RC.service.uid = uid_of(r, s, CONTRACT_SERVICE, "s3"))
E(rc_take_closing, rc_take2(r, s, o); RC.release_time = SAMPLE_T0 + 200 * SAMPLE_S)
E(rc_take1_closing, rc_take1(r, s, o); RC.lease_uuid = sample_uuid(400);
  RC.release_time = SAMPLE_T0 + 200 * SAMPLE_S)
E(rc_previous_edit, RC.previous.epoch = 2)
E(rc_closed1, closed(o, 1, CONTRACT_CLOSED_CONFIRMED))
E(rc_closed1_waited, closed(o, 1, CONTRACT_CLOSED_WAITED))
E(rc_closed2, closed(o, 2, CONTRACT_CLOSED_CONFIRMED))
E(rc_closed2_waited, closed(o, 2, CONTRACT_CLOSED_WAITED))
E(rc_closed2_waited_acc, rc_closed2_waited(r, s, o); rc_accept(r, s, o))
E(rc_closed3, closed(o, 3, CONTRACT_CLOSED_CONFIRMED))
E(rc_closed_no_reason, RCS.closed_epoch = 1)
E(rc_closed_gone, closed(o, 0, CONTRACT_CLOSED_ABSENT))
E(rc_closed_reason, RCS.closed_reason = CONTRACT_CLOSED_WAITED)
E(rc_no_status, memset(&RCS, 0, sizeof RCS))
E(rc_closed1_withdrawn, rc_closed1(r, s, o); RCS.withdrawn_epoch = 1; RCS.withdrawn_time = SAMPLE_T0)
E(rc_withdrawn2, RCS.withdrawn_epoch = 2)
E(rc_withdrawn1, RCS.withdrawn_epoch = 1)
E(rc_acc_open, rc_accept(r, s, o); rc_open(r, s, o))
E(rc_closed2_gate, rc_closed2(r, s, o); rc_close_gate(r, s, o))
E(rc_one_write, rc_closed1(r, s, o); rc_acc_open(r, s, o); RCS.published_epoch = 2)
E(rc_old_gate, rc_accept(r, s, o); RCS.gate.epoch = 2; RCS.gate.state = CONTRACT_GATE_OPEN;
  SET(RCS.gate.reason, "Old"))

/* ---- bindings ---- */
E(cb_1, *o = sample_binding("c1"))
E(cb_2, *o = sample_binding("c2.site"))
E(cb_full, *o = sample_binding("c3"); CB.suspended = true; CB.takeover = CONTRACT_TAKEOVER_DENIED;
  CB.grant_seconds = 6; CB.retention_seconds = 0; CB.n_identities = 2;
  CB.identities[1].kind = CONTRACT_IDENTITY_USER; SET(CB.identities[1].value, "system:serviceaccount:a:b"))
E(cb_name, cb_1(r, s, o); SET(META.name, "t1.cx"))
E(cb_nobody, *o = sample_binding("c9"); CB.n_identities = 0)
E(cb_twice, *o = sample_binding("c9"); CB.n_identities = 2; CB.identities[1] = CB.identities[0])
E(cb_bad_uri, *o = sample_binding("c9"); SET(CB.identities[0].value, "nothing"))
E(cb_grant31, *o = sample_binding("c9"); CB.grant_seconds = 31)
E(cb_retention, *o = sample_binding("c9"); CB.retention_seconds = -2)
E(cb_vpc, SET(CB.vpc, "vpc-b"))
E(cb_suspend, CB.suspended = true; CB.takeover = CONTRACT_TAKEOVER_DENIED)
E(cb_resume, CB.suspended = false)
E(cb_reserve, CBS.has_prefix = true; CBS.prefix = sample_prefix("fd12::1:0:1:0:0/96"))
E(cb_reserve_ignored, cb_reserve(r, s, o); CB.suspended = false; META.drain = true)
E(cb_reserve2, CBS.has_prefix = true; CBS.prefix = sample_prefix("fd12::1:0:2:0:0/96"))
E(cb_reserve80, CBS.has_prefix = true; CBS.prefix = sample_prefix("fd12:0:0:1::/80"))
E(cb_clear, CBS.has_prefix = false)
static void last(struct contract_object *o, const char *node, const char *generation)
{
    SET(CBS.last.node, node);
    SET(CBS.last.generation, generation);
    SET(CBS.last.transport, "h3");
    CBS.last.since = SAMPLE_T0;
}
E(cb_last1, last(o, "edge1", "g1"))
E(cb_last2, last(o, "edge2", "g2"))
E(cb_last_until, CBS.last.until = SAMPLE_T0 + SAMPLE_S)
E(cb_last_gone, memset(&CBS.last, 0, sizeof CBS.last))
E(cb_last_half, SET(CBS.last.node, "edge1"))
E(cb_ready, CBS.ready = (struct contract_cond){CONTRACT_COND_TRUE, "Ok", "", 1, SAMPLE_T0})

#endif
