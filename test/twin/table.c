/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of requests, in order, made to both sides. Of each step the HTTP status and reason are also
 * written here, so that the table says what the contract expects and not only that two programs agree.
 */
#include "edits.h"

#define I1 "masque.edge1"
#define A1 "masque.edge1.vpc-a"
#define C1 "rc-fd1200000000000100000001"
#define C2 "rc-fd1200000000000100000002"
#define C3 "rc-fd1200000000000100000003"
#define C4 "rc-fd1200000000000100000004"
#define C90 "rc-fd120000000000010000005a"
#define B1 "t1.c1"

#define CREATE(n, who, k, e, http, why)                                                                      \
    {                                                                                                        \
        n, who, STORE_CREATE, CONTRACT_##k, "", e, http, why, 0,                                             \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define CREATE_S(n, who, k, e, http, why)                                                                    \
    {                                                                                                        \
        n, who, STORE_CREATE, CONTRACT_##k, "", e, http, why, SETTLE,                                        \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define PUT(n, who, k, key, e, http, why)                                                                    \
    {                                                                                                        \
        n, who, STORE_UPDATE, CONTRACT_##k, key, e, http, why, 0,                                            \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define PUT_S(n, who, k, key, e, http, why)                                                                  \
    {                                                                                                        \
        n, who, STORE_UPDATE, CONTRACT_##k, key, e, http, why, SETTLE,                                       \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define STATUS(n, who, k, key, e, http, why)                                                                 \
    {                                                                                                        \
        n, who, STORE_UPDATE_STATUS, CONTRACT_##k, key, e, http, why, 0,                                     \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define DELETE(n, who, k, key, e, http, why)                                                                 \
    {                                                                                                        \
        n, who, STORE_DELETE, CONTRACT_##k, key, e, http, why, 0,                                            \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define GET(n, who, k, key, http, why)                                                                       \
    {                                                                                                        \
        n, who, STORE_GET, CONTRACT_##k, key, as_is, http, why, 0,                                           \
        {                                                                                                    \
            .node = ""                                                                                       \
        }                                                                                                    \
    }
#define LIST(n, who, k, http, why, ...)                                                                      \
    {                                                                                                        \
        n, who, STORE_LIST, CONTRACT_##k, "", as_is, http, why, 0,                                           \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define OK_ ""
#define INV "Invalid"
#define FORB "Forbidden"
#define CONF "Conflict"

const struct step steps[] = {
    /* ---- services ---- */
    CREATE("claim without any service", ADMIN, CLAIM, rc_service_none, 201, OK_),
    CREATE("service s1", AUTHORITY, SERVICE, ps_1, 201, OK_),
    CREATE("service s2 of another tenant", AUTHORITY, SERVICE, ps_2, 201, OK_),
    CREATE("service s3", AUTHORITY, SERVICE, ps_3, 201, OK_),
    CREATE("service again", AUTHORITY, SERVICE, ps_1, 409, "AlreadyExists"),
    CREATE("service: pool is a /96", AUTHORITY, SERVICE, ps_96, 422, INV),
    CREATE("service: upper case name", AUTHORITY, SERVICE, ps_name, 422, INV),
    CREATE("service: invalid before exists", AUTHORITY, SERVICE, ps_twice, 422, INV),
    CREATE("service: 10 minutes ahead", AUTHORITY, SERVICE, ps_far, 403, FORB),
    CREATE("service: no destinations", AUTHORITY, SERVICE, ps_none, 201, OK_),
    CREATE("service: by an agent", AGENT1, SERVICE, ps_none, 403, FORB),
    PUT("service: validUntil moves on", AUTHORITY, SERVICE, "s1", ps_later, 200, OK_),
    PUT("service: nothing changes", AUTHORITY, SERVICE, "s1", as_is, 200, OK_),
    PUT("service: too far ahead", AUTHORITY, SERVICE, "s1", ps_too_late, 403, FORB),
    PUT("service: destinations", AUTHORITY, SERVICE, "s2", ps_destinations, 200, OK_),
    PUT("service: tenant", AUTHORITY, SERVICE, "s1", ps_tenant, 422, INV),
    PUT("service: revoked", AUTHORITY, SERVICE, "s3", ps_revoke, 200, OK_),
    PUT("service: revocation taken back", AUTHORITY, SERVICE, "s3", ps_unrevoke, 422, INV),
    PUT("service: by an agent", AGENT1, SERVICE, "s1", ps_revoke, 403, FORB),
    STATUS("service: status by the authority", AUTHORITY, SERVICE, "s1", as_is, 403, FORB),
    LIST("services", AGENT1, SERVICE, 200, OK_, .provider = "masque"),
    LIST("services of a tenant", AGENT1, SERVICE, 200, OK_, .tenant = "t1"),

    /* ---- instances ---- */
    GET("instance: none yet", AGENT1, INSTANCE, I1, 404, "NotFound"),
    PUT("instance: PUT of a missing one", AGENT1, INSTANCE, I1, pi_1, 404, "NotFound"),
    CREATE("instance: name", AGENT1, INSTANCE, pi_name, 422, INV),
    CREATE("instance: of another node", AGENT1, INSTANCE, pi_2, 403, FORB),
    CREATE("instance: token without a pod", NOPOD, INSTANCE, pi_1, 403, FORB),
    CREATE("instance: other node's uid", AGENT1, INSTANCE, pi_wrong_uid, 403, FORB),
    CREATE("instance: epoch 2", AGENT1, INSTANCE, pi_epoch2, 422, INV),
    CREATE("instance: lease 9", AGENT1, INSTANCE, pi_lease9, 422, INV),
    CREATE("instance: lease 301", AGENT1, INSTANCE, pi_lease301, 422, INV),
    CREATE("instance: no lease", AGENT1, INSTANCE, pi_no_lease, 422, INV),
    CREATE("instance: 2^53 microseconds", AGENT1, INSTANCE, pi_2_53, 422, INV),
    CREATE("instance: with a finalizer", AGENT1, INSTANCE, pi_finalizer, 403, FORB),
    CREATE("instance: by the foundation", FOUND1, INSTANCE, pi_1, 403, FORB),
    CREATE("instance: resourceVersion set", AGENT1, INSTANCE, pi_with_rv, 500, OK_),
    CREATE("instance: resourceVersion set and invalid", AGENT1, INSTANCE, pi_with_rv_bad, 422, INV),
    CREATE("instance: own, with uid and status that are dropped", AGENT1, INSTANCE, pi_with_uid_status, 201,
           OK_),
    CREATE("instance: again", AGENT1, INSTANCE, pi_1, 409, "AlreadyExists"),
    CREATE("instance: again, by another agent", AGENT2, INSTANCE, pi_1, 403, FORB),
    GET("instance: read", FOUND2, INSTANCE, I1, 200, OK_),
    GET("instance: the authority reads none", AUTHORITY, INSTANCE, I1, 403, FORB),
    PUT("instance: renewed", AGENT1, INSTANCE, I1, pi_renew, 200, OK_),
    PUT("instance: nothing changes", AGENT1, INSTANCE, I1, as_is, 200, OK_),
    PUT("instance: no resourceVersion", AGENT1, INSTANCE, I1, no_rv, 422, INV),
    PUT("instance: resourceVersion 0", AGENT1, INSTANCE, I1, rv_zero, 422, INV),
    PUT("instance: resourceVersion abc", AGENT1, INSTANCE, I1, rv_abc, 500, OK_),
    PUT("instance: old resourceVersion, same content", AGENT1, INSTANCE, I1, rv_old, 409, CONF),
    PUT("instance: other uid", AGENT1, INSTANCE, I1, other_uid, 409, CONF),
    PUT("instance: other uid, no resourceVersion", AGENT1, INSTANCE, I1, other_uid_no_rv, 409, CONF),
    PUT("instance: no uid", AGENT1, INSTANCE, I1, no_uid, 200, OK_),
    PUT("instance: renewal back", AGENT1, INSTANCE, I1, pi_renew_back, 422, INV),
    PUT("instance: boot id in the epoch", AGENT1, INSTANCE, I1, pi_boot, 422, INV),
    PUT("instance: process in the epoch", AGENT1, INSTANCE, I1, pi_process, 422, INV),
    PUT("instance: epoch+1, same process", AGENT1, INSTANCE, I1, pi_next_same, 422, INV),
    PUT("instance: epoch+2", AGENT1, INSTANCE, I1, pi_next2, 422, INV),
    PUT("instance: lease in the epoch", AGENT1, INSTANCE, I1, pi_lease20, 422, INV),
    PUT("instance: node uid in the epoch", AGENT1, INSTANCE, I1, pi_node_uid, 422, INV),
    PUT("instance: node", AGENT1, INSTANCE, I1, pi_node, 422, INV),
    PUT("instance: by another agent", AGENT2, INSTANCE, I1, pi_renew, 403, FORB),
    PUT("instance: invalid before policy", AGENT2, INSTANCE, I1, pi_renew_back, 422, INV),
    PUT("instance: agent adds a finalizer", AGENT1, INSTANCE, I1, foreign_finalizer, 403, FORB),
    STATUS("instance: status by the agent", AGENT1, INSTANCE, I1, pi_accept, 403, FORB),
    STATUS("instance: accepted above epoch", FOUND1, INSTANCE, I1, pi_accept2, 422, INV),
    STATUS("instance: accepted with another process", FOUND1, INSTANCE, I1, pi_accept_other, 422, INV),
    STATUS("instance: accepted half", FOUND1, INSTANCE, I1, pi_accept_half, 422, INV),
    STATUS("instance: condition without a word", FOUND1, INSTANCE, I1, pi_cond_bad, 422, INV),
    STATUS("instance: accepted by another node", FOUND2, INSTANCE, I1, pi_accept, 403, FORB),
    STATUS("instance: old resourceVersion of a status", FOUND1, INSTANCE, I1, rv_old, 409, CONF),
    STATUS("instance: other uid in a status", FOUND1, INSTANCE, I1, other_uid, 409, CONF),
    STATUS("instance: accepted, with a condition", FOUND1, INSTANCE, I1, pi_accept_cond, 200, OK_),
    STATUS("instance: the same status again", FOUND1, INSTANCE, I1, as_is, 200, OK_),
    STATUS("instance: status removed", FOUND1, INSTANCE, I1, pi_no_status, 422, INV),
    PUT("instance: renewal does not touch the status", AGENT1, INSTANCE, I1, pi_renew_with_status, 200, OK_),
    PUT("instance: foundation writes spec", FOUND1, INSTANCE, I1, pi_renew, 403, FORB),
    PUT("instance: operator asks for a drain", OPERATOR, INSTANCE, I1, drain_on, 200, OK_),
    PUT("instance: operator writes spec", OPERATOR, INSTANCE, I1, pi_draining, 403, FORB),
    PUT("instance: agent drains", AGENT1, INSTANCE, I1, pi_draining, 200, OK_),
    PUT("instance: operator takes the drain back", OPERATOR, INSTANCE, I1, drain_off, 200, OK_),
    PUT("instance: released", AGENT1, INSTANCE, I1, pi_release, 200, OK_),
    PUT("instance: release taken back", AGENT1, INSTANCE, I1, pi_unrelease, 422, INV),
    PUT("instance: release moved", AGENT1, INSTANCE, I1, pi_rerelease, 422, INV),
    PUT("instance: takeover", AGENT1, INSTANCE, I1, pi_take, 200, OK_),
    PUT("instance: epoch back", AGENT1, INSTANCE, I1, pi_back, 422, INV),
    STATUS("instance: accepted again", FOUND1, INSTANCE, I1, pi_accept, 200, OK_),
    STATUS("instance: accepted goes back", FOUND1, INSTANCE, I1, pi_accept_back, 422, INV),
    DELETE("instance: by the agent", AGENT1, INSTANCE, I1, as_is, 403, FORB),
    LIST("instances of a node", AGENT1, INSTANCE, 200, OK_, .node = "edge1"),
    LIST("instances of no node", AGENT1, INSTANCE, 200, OK_, .node = "edge7"),

    /* ---- attachments ---- */
    CREATE("attachment: name", AGENT1, ATTACHMENT, ha_name, 422, INV),
    CREATE("attachment: of another node", AGENT1, ATTACHMENT, ha_2, 403, FORB),
    CREATE("attachment: own", AGENT1, ATTACHMENT, ha_1, 201, OK_),
    PUT("attachment: instance uid", AGENT1, ATTACHMENT, A1, ha_uid, 422, INV),
    STATUS("attachment: accepted above", FOUND1, ATTACHMENT, A1, ha_above, 422, INV),
    STATUS("attachment: device without accept", FOUND1, ATTACHMENT, A1, ha_device_only, 422, INV),
    STATUS("attachment: device name", FOUND1, ATTACHMENT, A1, ha_tun0, 422, INV),
    STATUS("attachment: mtu", FOUND1, ATTACHMENT, A1, ha_mtu, 422, INV),
    STATUS("attachment: by another node", FOUND2, ATTACHMENT, A1, ha_accept, 403, FORB),
    STATUS("attachment: accepted", FOUND1, ATTACHMENT, A1, ha_accept, 200, OK_),
    STATUS("attachment: second device", FOUND1, ATTACHMENT, A1, ha_device2, 422, INV),
    PUT("attachment: next epoch", AGENT1, ATTACHMENT, A1, ha_epoch2, 200, OK_),
    STATUS("attachment: next device", FOUND1, ATTACHMENT, A1, ha_accept2, 200, OK_),
    PUT("attachment: epoch back", AGENT1, ATTACHMENT, A1, ha_epoch1, 422, INV),
    DELETE("attachment: by another agent", AGENT2, ATTACHMENT, A1, as_is, 403, FORB),
    DELETE("attachment: old resourceVersion", AGENT1, ATTACHMENT, A1, rv_old, 409, CONF),
    DELETE("attachment: other uid", AGENT1, ATTACHMENT, A1, other_uid, 409, CONF),
    DELETE("attachment: resourceVersion abc", AGENT1, ATTACHMENT, A1, rv_abc, 409, CONF),
    DELETE("attachment: deleted", AGENT1, ATTACHMENT, A1, as_is, 200, OK_),
    DELETE("attachment: again", AGENT1, ATTACHMENT, A1, as_is, 404, "NotFound"),
    LIST("attachments of a vpc", AGENT1, ATTACHMENT, 200, OK_, .vpc = "vpc-a"),

    /* ---- claims: creation ---- */
    CREATE_S("claim 2", AGENT1, CLAIM, rc_2, 201, OK_),
    CREATE("claim: name", AGENT1, CLAIM, rc_name, 422, INV),
    CREATE("claim: epoch 2", AGENT1, CLAIM, rc_epoch2, 422, INV),
    CREATE("claim: previous at epoch 1", AGENT1, CLAIM, rc_previous1, 422, INV),
    CREATE("claim: released", AGENT1, CLAIM, rc_released, 422, INV),
    CREATE("claim: max below lease", AGENT1, CLAIM, rc_max20, 422, INV),
    CREATE("claim: instance of another provider", AGENT1, CLAIM, rc_instance, 422, INV),
    CREATE("claim: held by another node", AGENT1, CLAIM, rc_1_edge2, 403, FORB),
    CREATE("claim: with a finalizer", AGENT1, CLAIM, rc_finalizer, 403, FORB),
    CREATE("claim: outside the pool", AGENT1, CLAIM, rc_outside, 403, FORB),
    CREATE("claim: uid of another service", AGENT1, CLAIM, rc_service_uid, 403, FORB),
    CREATE("claim: service of another tenant", AGENT1, CLAIM, rc_service_tenant, 403, FORB),
    CREATE_S("claim: revoked service", AGENT1, CLAIM, rc_service_revoked, 403, FORB),
    CREATE("claim: service that does not exist", AGENT1, CLAIM, rc_service_unknown, 201, OK_),
    CREATE("claim: token without a pod", NOPOD, CLAIM, rc_1, 403, FORB),
    CREATE("claim: by the foundation", FOUND1, CLAIM, rc_1, 403, FORB),
    CREATE("claim: by the operator", OPERATOR, CLAIM, rc_1, 403, FORB),
    CREATE("claim: by the authority", AUTHORITY, CLAIM, rc_1, 403, FORB),
    CREATE("claim: resourceVersion set", AGENT1, CLAIM, rc_with_rv, 500, OK_),
    CREATE("claim 1", AGENT1, CLAIM, rc_1, 201, OK_),
    CREATE("claim 1 again", AGENT1, CLAIM, rc_1, 409, "AlreadyExists"),
    CREATE("claim 3", AGENT1, CLAIM, rc_3, 201, OK_),
    CREATE("claim 4", AGENT1, CLAIM, rc_4, 201, OK_),

    /* ---- claims: the way up ---- */
    STATUS("claim: accepted above epoch", FOUND1, CLAIM, C1, rc_accept_above, 422, INV),
    STATUS("claim: accepted with another leaseUUID", FOUND1, CLAIM, C1, rc_accept_lease, 422, INV),
    STATUS("claim: accepted by another node", FOUND2, CLAIM, C1, rc_accept, 403, FORB),
    STATUS("claim: gate before accept", FOUND1, CLAIM, C1, rc_open, 422, INV),
    STATUS("claim: accepted", FOUND1, CLAIM, C1, rc_accept_cond, 200, OK_),
    STATUS("claim: accepted half", FOUND1, CLAIM, C1, rc_accept_half, 422, INV),
    STATUS("claim: reason is a sentence", FOUND1, CLAIM, C1, rc_open_sentence, 422, INV),
    STATUS("claim: published above epoch", FOUND1, CLAIM, C1, rc_publish_above, 422, INV),
    STATUS("claim: open and published", FOUND1, CLAIM, C1, rc_open_publish, 200, OK_),
    STATUS("claim: status by the agent", AGENT1, CLAIM, C1, rc_open, 403, FORB),
    PUT("claim: foundation's own finalizer", FOUND1, CLAIM, C1, gate_finalizer_1, 200, OK_),
    PUT("claim: finalizer of another node", FOUND1, CLAIM, C1, gate_finalizer_2, 403, FORB),
    PUT("claim: foreign finalizer", FOUND1, CLAIM, C1, foreign_finalizer, 403, FORB),
    PUT("claim: finalizer off by another node", FOUND2, CLAIM, C1, finalizers_off, 403, FORB),
    PUT("claim: finalizer off by the agent", AGENT1, CLAIM, C1, finalizers_off, 403, FORB),
    PUT("claim: foundation writes spec", FOUND1, CLAIM, C1, rc_release, 403, FORB),
    DELETE("claim: by the agent", AGENT1, CLAIM, C1, as_is, 403, FORB),
    DELETE("claim: by the foundation", FOUND1, CLAIM, C1, as_is, 403, FORB),

    /* ---- claims: takeover ---- */
    PUT("takeover: holder without epoch", AGENT2, CLAIM, C1, rc_holder, 422, INV),
    PUT("takeover: epoch+2", AGENT2, CLAIM, C1, rc_take_plus2, 422, INV),
    PUT("takeover: old leaseUUID", AGENT2, CLAIM, C1, rc_take_lease, 422, INV),
    PUT("takeover: no previous", AGENT2, CLAIM, C1, rc_take_no_previous, 422, INV),
    PUT("takeover: other boot id in previous", AGENT2, CLAIM, C1, rc_take_boot, 422, INV),
    PUT("takeover: other epoch in previous", AGENT2, CLAIM, C1, rc_take_epoch, 422, INV),
    PUT("takeover: max lease falls", AGENT2, CLAIM, C1, rc_take_max, 422, INV),
    PUT("takeover: connector changes", AGENT2, CLAIM, C1, rc_take_connector, 422, INV),
    PUT("takeover: for somebody else", AGENT1, CLAIM, C1, rc_take2, 403, FORB),
    PUT("takeover: with a revoked service", AGENT2, CLAIM, C1, rc_take_revoked, 403, FORB),
    PUT("takeover: with an old resourceVersion", AGENT2, CLAIM, C1, rv_old, 409, CONF),
    PUT("takeover", AGENT2, CLAIM, C1, rc_take2, 200, OK_),
    PUT("takeover: previous edited", AGENT2, CLAIM, C1, rc_previous_edit, 422, INV),
    PUT("takeover: the old holder releases", AGENT1, CLAIM, C1, rc_release, 403, FORB),
    LIST("claims of a node", FOUND2, CLAIM, 200, OK_, .node = "edge2"),
    LIST("claims that a node held before", FOUND1, CLAIM, 200, OK_, .previous_node = "edge1"),

    /* ---- claims: closing ---- */
    STATUS("close: old holder writes the gate", FOUND1, CLAIM, C1, rc_close_gate, 403, FORB),
    STATUS("close: new holder confirms for the old one", FOUND2, CLAIM, C1, rc_closed1, 403, FORB),
    STATUS("close: old holder says Waited", FOUND1, CLAIM, C1, rc_closed1_waited, 403, FORB),
    STATUS("close: without a reason", FOUND1, CLAIM, C1, rc_closed_no_reason, 422, INV),
    STATUS("close: over a gap", FOUND2, CLAIM, C1, rc_closed2, 422, INV),
    STATUS("close: spec.epoch by Waited", FOUND2, CLAIM, C1, rc_closed2_waited, 422, INV),
    STATUS("close: above spec.epoch", FOUND2, CLAIM, C1, rc_closed3, 422, INV),
    STATUS("close: (b), withdrawn", FOUND1, CLAIM, C1, rc_closed1_withdrawn, 200, OK_),
    STATUS("close: withdrawn of the new epoch", FOUND1, CLAIM, C1, rc_withdrawn2, 403, FORB),
    STATUS("close: goes away", FOUND1, CLAIM, C1, rc_closed_gone, 422, INV),
    STATUS("close: status removed", FOUND2, CLAIM, C1, rc_no_status, 422, INV),
    STATUS("close: reason edited", FOUND2, CLAIM, C1, rc_closed_reason, 422, INV),
    STATUS("close: accept and open the next", FOUND2, CLAIM, C1, rc_acc_open, 200, OK_),
    STATUS("close: (a) by the old node", FOUND1, CLAIM, C1, rc_closed2, 403, FORB),
    PUT("release", AGENT2, CLAIM, C1, rc_release, 200, OK_),
    STATUS("release: gate opens again", FOUND2, CLAIM, C1, rc_open_again, 422, INV),
    STATUS("close: (a)", FOUND2, CLAIM, C1, rc_closed2_gate, 200, OK_),
    PUT("takeover: max lease falls after closure", AGENT1, CLAIM, C1, rc_take1_max, 200, OK_),
    STATUS("close: gate of a closed epoch", FOUND1, CLAIM, C1, rc_old_gate, 422, INV),
    PUT("(c): takeover", AGENT2, CLAIM, C2, rc_take2, 200, OK_),
    STATUS("(c): Waited", FOUND2, CLAIM, C2, rc_closed1_waited, 200, OK_),
    STATUS("(c): accepted", FOUND2, CLAIM, C2, rc_accept, 200, OK_),
    STATUS("(c): accepted goes back", FOUND2, CLAIM, C2, rc_accept_back, 422, INV),
    STATUS("(c): withdrawn", FOUND2, CLAIM, C2, rc_withdrawn2, 200, OK_),
    STATUS("(c): withdrawn goes back", FOUND2, CLAIM, C2, rc_withdrawn1, 422, INV),
    PUT("gap: takeover", AGENT2, CLAIM, C3, rc_take2, 200, OK_),
    PUT("gap: and another", AGENT1, CLAIM, C3, rc_take1, 200, OK_),
    STATUS("gap: epoch 2 confirmed", FOUND2, CLAIM, C3, rc_closed2, 422, INV),
    STATUS("gap: epoch 1 confirmed", FOUND1, CLAIM, C3, rc_closed1, 422, INV),
    STATUS("gap: Waited", FOUND1, CLAIM, C3, rc_closed2_waited_acc, 200, OK_),
    PUT("one node: takeover", AGENT1, CLAIM, C4, rc_take1, 200, OK_),
    STATUS("one node: (b), accept, open in one write", FOUND1, CLAIM, C4, rc_one_write, 200, OK_),
    PUT("release: by another agent", AGENT2, CLAIM, C4, rc_release, 403, FORB),
    PUT("release: own, other correlation", AGENT1, CLAIM, C4, rc_release_corr, 200, OK_),
    PUT("release: taken back", AGENT1, CLAIM, C4, rc_unrelease, 422, INV),
    PUT("release: moved", AGENT1, CLAIM, C4, rc_rerelease, 422, INV),
    PUT("release: service edited", AGENT1, CLAIM, C4, rc_service_edit, 422, INV),
    PUT("release: lease edited", AGENT1, CLAIM, C4, rc_lease_edit, 422, INV),
    PUT("release: connector edited", AGENT1, CLAIM, C4, rc_connector, 422, INV),
    LIST("claims of a connector", AGENT1, CLAIM, 200, OK_, .tenant = "t1", .connector = "c4"),
    LIST("claims", OPERATOR, CLAIM, 200, OK_, .vpc = "vpc-a"),

    /* ---- claims: a service that ends; deletion ---- */
    PUT("service s1 is revoked", AUTHORITY, SERVICE, "s1", ps_revoke, 200, OK_),
    PUT_S("takeover: its service is revoked", AGENT2, CLAIM, C3, rc_take2, 403, FORB),
    PUT("release: its service is revoked", AGENT1, CLAIM, C3, rc_release, 200, OK_),
    PUT("closing takeover: no service needed", AGENT2, CLAIM, C3, rc_take_closing, 200, OK_),
    STATUS("closing takeover: never opened", FOUND2, CLAIM, C3, rc_acc_open, 422, INV),
    PUT("delete: finalizer of edge1", FOUND1, CLAIM, C4, gate_finalizer_1, 200, OK_),
    DELETE("delete: operator, row with a finalizer", OPERATOR, CLAIM, C4, as_is, 200, OK_),
    DELETE("delete: again", OPERATOR, CLAIM, C4, as_is, 200, OK_),
    PUT("delete: closing takeover of a deleting row", AGENT1, CLAIM, C4, rc_take1_closing, 403, FORB),
    PUT("delete: nothing changes", AGENT1, CLAIM, C4, as_is, 200, OK_),
    PUT("delete: another finalizer", FOUND2, CLAIM, C4, gate_finalizer_2, 422, INV),
    STATUS("delete: status of a deleting row", FOUND1, CLAIM, C4, rc_closed2, 200, OK_),
    PUT("delete: agent takes the finalizer off", AGENT1, CLAIM, C4, finalizers_off, 403, FORB),
    PUT("delete: another foundation takes it off, the row goes", FOUND2, CLAIM, C4, finalizers_off, 200, OK_),
    GET("delete: it is gone", ADMIN, CLAIM, C4, 404, "NotFound"),
    PUT("delete: PUT of what is gone", AGENT1, CLAIM, C4, rc_4, 404, "NotFound"),
    DELETE("delete: a row without finalizers", OPERATOR, CLAIM, C90, as_is, 200, OK_),

    /* ---- bindings ---- */
    CREATE("binding", OPERATOR, BINDING, cb_1, 201, OK_),
    CREATE("binding: connector with a dot", OPERATOR, BINDING, cb_2, 201, OK_),
    CREATE("binding: every member", OPERATOR, BINDING, cb_full, 201, OK_),
    CREATE("binding: name", OPERATOR, BINDING, cb_name, 422, INV),
    CREATE("binding: nobody", OPERATOR, BINDING, cb_nobody, 422, INV),
    CREATE("binding: an identity twice", OPERATOR, BINDING, cb_twice, 422, INV),
    CREATE("binding: no URI", OPERATOR, BINDING, cb_bad_uri, 422, INV),
    CREATE("binding: grant 31", OPERATOR, BINDING, cb_grant31, 422, INV),
    CREATE("binding: retention -2", OPERATOR, BINDING, cb_retention, 422, INV),
    CREATE("binding: by an agent", AGENT1, BINDING, cb_1, 403, FORB),
    GET("binding: the foundation reads none", FOUND1, BINDING, B1, 403, FORB),
    PUT("binding: vpc", OPERATOR, BINDING, B1, cb_vpc, 422, INV),
    PUT("binding: suspended", OPERATOR, BINDING, B1, cb_suspend, 200, OK_),
    PUT("binding: spec by an agent", AGENT1, BINDING, B1, cb_resume, 403, FORB),
    STATUS("binding: status by the operator", OPERATOR, BINDING, B1, cb_reserve, 403, FORB),
    STATUS("binding: status by the foundation", FOUND1, BINDING, B1, cb_reserve, 403, FORB),
    STATUS("binding: token without a pod", NOPOD, BINDING, B1, cb_reserve, 403, FORB),
    STATUS("binding: prefix is a /80", AGENT1, BINDING, B1, cb_reserve80, 422, INV),
    STATUS("binding: reserved, spec and annotation ignored", AGENT1, BINDING, B1, cb_reserve_ignored, 200,
           OK_),
    STATUS("binding: another prefix", AGENT2, BINDING, B1, cb_reserve2, 422, INV),
    STATUS("binding: cleared", AGENT2, BINDING, B1, cb_clear, 200, OK_),
    STATUS("binding: reserved anew", AGENT2, BINDING, B1, cb_reserve2, 200, OK_),
    STATUS("binding: last session of the own node", AGENT1, BINDING, B1, cb_last1, 200, OK_),
    STATUS("binding: last session of another node", AGENT1, BINDING, B1, cb_last2, 403, FORB),
    STATUS("binding: another node's session ended", AGENT2, BINDING, B1, cb_last_until, 403, FORB),
    STATUS("binding: another node's session removed", AGENT2, BINDING, B1, cb_last_gone, 403, FORB),
    STATUS("binding: replaced by the own one", AGENT2, BINDING, B1, cb_last2, 200, OK_),
    STATUS("binding: half a session", AGENT2, BINDING, "t1.c3", cb_last_half, 422, INV),
    STATUS("binding: a condition beside another's session", AGENT1, BINDING, B1, cb_ready, 200, OK_),
    PUT("binding: resumed, status stays", OPERATOR, BINDING, B1, cb_resume, 200, OK_),
    LIST("bindings of a tenant", AGENT1, BINDING, 200, OK_, .tenant = "t1"),
    LIST("bindings of a connector", AGENT1, BINDING, 200, OK_, .tenant = "t1", .connector = "c1"),
    LIST("bindings of no foundation", FOUND1, BINDING, 403, FORB, .tenant = "t1"),
    DELETE("binding: by an agent", AGENT1, BINDING, B1, as_is, 403, FORB),
    DELETE("binding: without preconditions", OPERATOR, BINDING, "t1.c3", no_uid, 200, OK_),
    PUT("binding: finalizer of the administrator", ADMIN, BINDING, B1, foreign_finalizer, 200, OK_),
    DELETE("binding: waits for its finalizer", OPERATOR, BINDING, B1, as_is, 200, OK_),
    PUT("binding: finalizer off", ADMIN, BINDING, B1, finalizers_off, 200, OK_),
    CREATE("binding: the name again", OPERATOR, BINDING, cb_1, 201, OK_),
    PUT("binding: uid of the old one", OPERATOR, BINDING, B1, other_uid, 409, CONF),
};
const size_t n_steps = sizeof steps / sizeof steps[0];
