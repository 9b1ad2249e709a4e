/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: names, and the random ones ("swarm": each takes a random subset of the faults, at random rates).
 */
#include "plan.h"

#include "base/cleanup.h"
#include "base/id.h"

static const char *const names[SIM_FAULT_N] = {
    [SIM_F_NONE] = "none",
    [SIM_F_REQ_LOST] = "req-lost",
    [SIM_F_ANS_LOST] = "ans-lost",
    [SIM_F_LATE_APPLY] = "late-apply",
    [SIM_F_NEVER] = "never-answered",
    [SIM_F_DUP_REQ] = "dup-req",
    [SIM_F_ERR5_APPLIED] = "5xx-applied",
    [SIM_F_ERR5] = "5xx",
    [SIM_F_ERR429] = "429",
    [SIM_F_SLOW] = "slow",
    [SIM_F_REORDER] = "reorder",
    [SIM_F_DUP_EVENT] = "dup-event",
    [SIM_F_PROOF_FAIL] = "proof-fail",
    [SIM_F_AUDIT_FAIL] = "audit-fail",
    [SIM_F_AUDIT_SLOW] = "audit-slow",
    [SIM_F_TUN_FAIL] = "tun-fail",
    [SIM_F_KERNEL_FAIL] = "kernel-fail",
    [SIM_F_BARRIER_LATE] = "barrier-late",
    [SIM_F_CUT] = "cut",
    [SIM_F_CUT_UP] = "cut-up",
    [SIM_F_CUT_DOWN] = "cut-down",
    [SIM_F_LINK_SLOW] = "link-slow",
    [SIM_F_LAG] = "lag",
    [SIM_F_SILENT] = "silent",
    [SIM_F_BREAK] = "break",
    [SIM_F_GONE] = "gone",
    [SIM_F_FRONT_DOWN] = "front-down",
    [SIM_F_API_DOWN] = "api-down",
    [SIM_F_RESTORE] = "restore",
    [SIM_F_AGENT_CRASH] = "agent-crash",
    [SIM_F_AGENT_DRAIN] = "agent-drain",
    [SIM_F_STOP_CONTROL] = "stop-control",
    [SIM_F_STOP_DATA] = "stop-data",
    [SIM_F_STOP_AGENT] = "stop-agent",
    [SIM_F_STOP_MIDSTEP] = "stop-midstep",
    [SIM_F_OLD_BESIDE] = "old-beside",
    [SIM_F_FND_CRASH] = "fnd-crash",
    [SIM_F_FND_STOP] = "fnd-stop",
    [SIM_F_FND_MIDSTEP] = "fnd-midstep",
    [SIM_F_FND_EMPTY] = "fnd-empty",
    [SIM_F_NODE_PAUSE] = "node-pause",
    [SIM_F_NODE_FREEZE] = "node-freeze",
    [SIM_F_REBOOT] = "reboot",
    [SIM_F_POWER_OFF] = "power-off",
    [SIM_F_WALL_STEP] = "wall-step",
    [SIM_F_CLOCK_RATE] = "clock-rate",
    [SIM_F_TWIN] = "twin",
    [SIM_F_CLAIM_DELETE] = "claim-delete",
    [SIM_F_INSTANCE_DELETE] = "instance-delete",
    [SIM_F_ATTACHMENT_DELETE] = "attachment-delete",
    [SIM_F_BINDING_DELETE] = "binding-delete",
    [SIM_F_BINDING_SUSPEND] = "binding-suspend",
    [SIM_F_SERVICE_REVOKE] = "service-revoke",
    [SIM_F_AUTHORITY_OUT] = "authority-out",
    [SIM_F_POOL_MOVE] = "pool-move",
    [SIM_F_OPERATOR_DRAIN] = "operator-drain",
    [SIM_F_FOREIGN_ROW] = "foreign-row",
    [SIM_F_LEASE_CHANGE] = "lease-change",
    [SIM_F_TAKEOVER_DENIED] = "takeover-denied",
    [SIM_F_MOVE] = "move",
    [SIM_F_MOVE_QUIET] = "move-quiet",
    [SIM_F_RECONNECT] = "reconnect",
    [SIM_F_SECOND] = "second",
    [SIM_F_TRANSPORT] = "transport",
    [SIM_F_LEAVE] = "leave",
};

const char *sim_fault_name(enum sim_fault f)
{
    return names[f];
}

enum sim_fault sim_fault_of(struct base_str name)
{
    for (unsigned i = 1; i < SIM_FAULT_N; i++)
        if (names[i] && base_str_eqz(name, names[i]))
            return (enum sim_fault)i;
    return SIM_F_NONE;
}

/* Not among the random ones: outside the contract. */
bool sim_fault_off(enum sim_fault f)
{
    return f == SIM_F_NODE_FREEZE || f == SIM_F_RATES_END;
}
