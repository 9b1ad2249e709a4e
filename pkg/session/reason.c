/* SPDX-License-Identifier: Apache-2.0
 *
 * session/reason.c - every reason that the core gives: its name, a sentence for people, HTTP status and
 * Retry-After.
 */
#include "session/int.h"

static const struct session_reason table[WHY_N] = {
    [WHY_NONE] = {NULL, "", 200, 0},
    [WHY_STARTING] = {"Starting", "the agent has just started", 503, 1},
    [WHY_NOT_LISTED] = {"NotListed", "the API server has not been listed yet", 503, 1},
    [WHY_API_UNAVAILABLE] = {"APIUnavailable", "the API server does not answer; retrying", 503, 1},
    [WHY_AUDIT_UNAVAILABLE] = {"AuditUnavailable", "the audit record could not be made durable", 503, 2},
    [WHY_INSTANCE_TAKEN] = {"InstanceTaken",
                            "another process holds this node's instance; waiting for it to end", 503, 5},
    [WHY_INSTANCE_REFUSED] = {"InstanceRefused", "the API server refused the instance row; see RBAC and CRDs",
                              503, 5},
    [WHY_INSTANCE_DELETING] = {"InstanceDeleting", "the instance row is being deleted", 503, 1},
    [WHY_INSTANCE_NOT_ACCEPTED] = {"InstanceNotAccepted",
                                   "waiting for this node's foundation to accept the instance", 503, 1},
    [WHY_INSTANCE_LOST] = {"InstanceLost", "this process lost its instance row", 503, 1},
    [WHY_LEASE_EXPIRED] = {"LeaseExpired", "the instance lease could not be renewed in time", 503, 1},
    [WHY_DRAINING] = {"Draining", "this node is being drained; use another one", 503, 5},
    [WHY_RELEASED] = {"Released", "the instance is released; the process is about to end", 503, 5},
    [WHY_TUN_LOST] = {"TunLost", "the foundation took the TUN device away: this instance has ended", 503, 1},
    [WHY_ATTACHMENT_NOT_READY] = {"AttachmentNotReady", "waiting for the foundation's device in this VPC",
                                  503, 1},
    [WHY_AUTHORITY_UNAVAILABLE] = {"AuthorityUnavailable", "the binding could not be read afresh", 503, 1},
    [WHY_POLICY_UNAVAILABLE] = {"AuthorizationUnavailable",
                                "the authorization service or the TokenReview API does not answer; retrying",
                                503, 1},
    [WHY_TOO_MANY_BINDINGS] = {"TooManyBindings", "more ConnectorBindings than limits.connectors allows", 503,
                               30},
    [WHY_POOL_EXHAUSTED] = {"PoolExhausted", "no free /96 in the service's pool", 503, 10},
    [WHY_ARBITRATION_BUSY] = {"ArbitrationBusy", "the connector's rows kept changing", 503, 1},
    [WHY_RESERVATION_REFUSED] = {"ReservationRefused", "the API server refused to reserve a prefix", 503, 5},
    [WHY_CLAIM_REFUSED] = {"ClaimRefused", "the API server refused the claim", 503, 5},
    [WHY_CLAIM_DELETING] = {"ClaimDeleting", "the claim is being deleted; retry when it is gone", 503, 1},
    [WHY_CLAIM_LOST] = {"ClaimLost", "another node or process took the claim over", 503, 1},
    [WHY_CLAIM_DELETED] = {"ClaimDeleted", "the claim was deleted", 503, 1},
    [WHY_CLAIM_CLOSED] = {"ClaimClosed",
                          "the foundation closed this epoch of the claim; the next one follows", 503, 1},
    [WHY_TAKEOVER_DENIED] = {"TakeoverDenied", "the binding denies takeover while the holder lives", 503, 5},
    [WHY_EPOCH_EXHAUSTED] = {"EpochExhausted", "the claim's epoch cannot go up; delete the row", 503, 30},
    [WHY_CONFLICT] = {"Conflict", "the row changed between read and write", 503, 1},
    [WHY_CLOSING] = {"ClosingOldRow", "waiting until an older row of this connector is closed", 503, 1},
    [WHY_BINDING_UNCONFIRMED] = {"BindingUnconfirmed", "the binding is being read again after the claim", 503,
                                 1},
    [WHY_NOT_ACCEPTED] = {"ClaimNotAccepted", "waiting for the foundation to accept the claim", 503, 1},
    [WHY_GATE_NOT_OPEN] = {"GateNotOpen", "waiting for the foundation to open the gate", 503, 1},
    [WHY_TAKEOVER_WAIT] = {"TakeoverWait", "nobody confirmed that the earlier holder is closed; waiting", 503,
                           1},
    [WHY_GAP] = {"Gap", "a data thread was stopped; waiting for a claim proof", 503, 1},
    [WHY_EPOCH_REGRESSED] =
        {"EpochRegressed",
         "the API server went back to an older state; waiting until nobody can hold on to the newer one", 503,
         5},
    [WHY_GRANT_EXPIRED] = {"GrantExpired", "the authority could not be asked again in time", 503, 1},
    [WHY_CLAIM_PROOF_EXPIRED] = {"ClaimProofExpired", "the claim could not be proved fresh in time", 503, 1},
    [WHY_SERVICE_EXPIRED] = {"ServiceExpired", "the ProviderService's validUntil is past", 503, 1},
    [WHY_SUPERSEDED] = {"Superseded", "a newer request of this connector took its place", 503, 1},
    [WHY_HANDOFF] = {"HandoffInProgress", "another request of this connector is replacing the old session",
                     503, 1},
    [WHY_NOT_STOPPED] = {"OldSessionNotStopped", "the old session's packet I/O did not stop in time", 503, 1},
    [WHY_RETIRED] = {"Retired", "an old session of this connector has not stopped yet", 503, 1},
    [WHY_ENDED] = {"SessionEnded", "the session ended", 503, 0},
    [WHY_NOBODY_CAME] = {"NobodyCame", "the claim was ready, but no request joined it", 503, 1},
    [WHY_BUSY] = {"Overloaded", "too many connectors at once", 503, 1},
};

struct session_reason session_reason_of(enum session_why w)
{
    return table[w];
}

struct session_reason session_reason_auth(enum authority_reason r)
{
    if (r == AUTHORITY_OK)
        return table[WHY_NONE];
    struct session_reason why = {.name = authority_reason_name(r), .text = authority_reason_text(r)};
    why.status = authority_reason_status(r, &why.retry_after);
    return why;
}
