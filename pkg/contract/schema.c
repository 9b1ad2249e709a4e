/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/schema_int.h"

#define EPOCH_MAX 9007199254740991 /* 2^53-1: exact in every JSON reader */

#define STR(T, m, json, req, frm, len)                                                                       \
    {                                                                                                        \
        .name = json, .type = FT_STR, .required = req, .form = frm, .at = offsetof(T, m),                    \
        .size = sizeof(((T *)0)->m), .lo = 1, .hi = len                                                      \
    }
#define PLAIN(T, m, json, req, ft)                                                                           \
    {                                                                                                        \
        .name = json, .type = ft, .required = req, .at = offsetof(T, m)                                      \
    }
#define UUID(T, m, json, req) PLAIN(T, m, json, req, FT_UUID)
#define TIME(T, m, json, req) PLAIN(T, m, json, req, FT_TIME)
#define BOOL(T, m, json) PLAIN(T, m, json, false, FT_BOOL)
#define EPOCH(T, m, json, req)                                                                               \
    {                                                                                                        \
        .name = json, .type = FT_I64, .required = req, .at = offsetof(T, m), .lo = 1, .hi = EPOCH_MAX        \
    }
#define I32(T, m, json, req, min, max)                                                                       \
    {                                                                                                        \
        .name = json, .type = FT_I32, .required = req, .at = offsetof(T, m), .lo = min, .hi = max            \
    }
#define ENUM(T, m, json, req, list)                                                                          \
    {                                                                                                        \
        .name = json, .type = FT_ENUM, .required = req, .at = offsetof(T, m), .names = list,                 \
        .n_names = sizeof(list) / sizeof((list)[0])                                                          \
    }
#define PREFIX(T, m, json, min, max)                                                                         \
    {                                                                                                        \
        .name = json, .type = FT_PREFIX, .required = true, .at = offsetof(T, m), .lo = min, .hi = max        \
    }
#define OBJ(off, json, req, table)                                                                           \
    {                                                                                                        \
        .name = json, .type = FT_OBJECT, .required = req, .at = off, .sub = table                            \
    }
#define CONDS(table)                                                                                         \
    {                                                                                                        \
        .name = "conditions", .type = FT_CONDITIONS, .conds = table                                          \
    }
#define END                                                                                                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

static const struct contract_field ref_fields[] = {
    STR(struct contract_ref, name, "name", true, FORM_NAME, 253),
    UUID(struct contract_ref, uid, "uid", true),
    END,
};

/* ---- ProviderInstance ---- */
static const struct contract_field renew_fields[] = {
    UUID(struct contract_renew, boot_id, "bootID", true),
    {.name = "bootTimeMicros",
     .type = FT_I64,
     .required = true,
     .always = true,
     .at = offsetof(struct contract_renew, boot_time_us),
     .lo = 0,
     .hi = EPOCH_MAX},
    TIME(struct contract_renew, time, "time", true),
    END,
};
static const struct contract_field instance_spec[] = {
    STR(struct contract_instance_spec, provider, "provider", true, FORM_LABEL, 63),
    STR(struct contract_instance_spec, node, "nodeName", true, FORM_NAME, 125),
    UUID(struct contract_instance_spec, node_uid, "nodeUID", true),
    UUID(struct contract_instance_spec, process_id, "processID", true),
    EPOCH(struct contract_instance_spec, epoch, "epoch", true),
    I32(struct contract_instance_spec, lease_seconds, "leaseDurationSeconds", true, 10, 300),
    OBJ(offsetof(struct contract_instance_spec, renew), "renew", true, renew_fields),
    TIME(struct contract_instance_spec, release_time, "releaseTime", false),
    BOOL(struct contract_instance_spec, draining, "draining"),
    END,
};
static const struct contract_cond_slot instance_conds[] = {
    {"Accepted", offsetof(struct contract_instance_status, accepted)},
    {"Ready", offsetof(struct contract_instance_status, ready)},
    {NULL, 0},
};
static const struct contract_field instance_status[] = {
    EPOCH(struct contract_instance_status, accepted_epoch, "acceptedEpoch", false),
    UUID(struct contract_instance_status, accepted_process_id, "acceptedProcessID", false),
    CONDS(instance_conds),
    END,
};
static const struct contract_field instance_top[] = {
    OBJ(offsetof(struct contract_instance, spec), "spec", true, instance_spec),
    OBJ(offsetof(struct contract_instance, status), "status", false, instance_status),
    END,
};

/* ---- HostAttachment ---- */
static const struct contract_field instance_ref[] = {
    STR(struct contract_attachment_spec, instance.name, "name", true, FORM_INSTANCE, 189),
    UUID(struct contract_attachment_spec, instance.uid, "uid", true),
    EPOCH(struct contract_attachment_spec, instance_epoch, "epoch", true),
    END,
};
static const struct contract_field attachment_spec[] = {
    OBJ(0, "instanceRef", true, instance_ref),
    STR(struct contract_attachment_spec, vpc, "vpc", true, FORM_LABEL, 63),
    END,
};
static const struct contract_cond_slot attachment_conds[] = {
    {"Accepted", offsetof(struct contract_attachment_status, accepted)},
    {"Ready", offsetof(struct contract_attachment_status, ready)},
    {NULL, 0},
};
static const struct contract_field attachment_status[] = {
    EPOCH(struct contract_attachment_status, accepted_instance_epoch, "acceptedInstanceEpoch", false),
    STR(struct contract_attachment_status, device, "device", false, FORM_DEVICE, 10),
    I32(struct contract_attachment_status, mtu, "mtu", false, 1280, 65535),
    CONDS(attachment_conds),
    END,
};
static const struct contract_field attachment_top[] = {
    OBJ(offsetof(struct contract_attachment, spec), "spec", true, attachment_spec),
    OBJ(offsetof(struct contract_attachment, status), "status", false, attachment_status),
    END,
};

/* ---- ProviderService ---- */
static const struct contract_field service_spec[] = {
    STR(struct contract_service, provider, "provider", true, FORM_LABEL, 63),
    STR(struct contract_service, tenant, "tenant", true, FORM_LABEL, 63),
    STR(struct contract_service, vpc, "vpc", true, FORM_LABEL, 63),
    PREFIX(struct contract_service, pool, "allowedPrefix", 0, 95),
    {.name = "destinations",
     .type = FT_PREFIXES,
     .at = offsetof(struct contract_service, n_destinations),
     .size = offsetof(struct contract_service, destinations)},
    TIME(struct contract_service, valid_until, "validUntil", true),
    BOOL(struct contract_service, revoked, "revoked"),
    END,
};
static const struct contract_field service_top[] = {
    OBJ(0, "spec", true, service_spec),
    END,
};

/* ---- RouteClaim ---- */
static const struct contract_field holder_fields[] = {
    STR(struct contract_holder, instance, "instance", true, FORM_NAME, 189),
    UUID(struct contract_holder, instance_uid, "instanceUID", true),
    EPOCH(struct contract_holder, instance_epoch, "instanceEpoch", true),
    UUID(struct contract_holder, process_id, "processID", true),
    STR(struct contract_holder, node, "node", true, FORM_NAME, 125),
    UUID(struct contract_holder, boot_id, "bootID", true),
    END,
};
static const struct contract_field previous_fields[] = {
    STR(struct contract_previous, node, "node", true, FORM_NAME, 125),
    UUID(struct contract_previous, boot_id, "bootID", true),
    EPOCH(struct contract_previous, epoch, "epoch", true),
    END,
};
static const struct contract_field claim_spec[] = {
    STR(struct contract_claim_spec, provider, "provider", true, FORM_LABEL, 63),
    PREFIX(struct contract_claim_spec, prefix, "prefix", 96, 96),
    STR(struct contract_claim_spec, tenant, "tenant", true, FORM_LABEL, 63),
    STR(struct contract_claim_spec, vpc, "vpc", true, FORM_LABEL, 63),
    STR(struct contract_claim_spec, connector, "connector", true, FORM_NAME, 189),
    OBJ(offsetof(struct contract_claim_spec, service), "serviceRef", true, ref_fields),
    UUID(struct contract_claim_spec, lease_uuid, "leaseUUID", true),
    EPOCH(struct contract_claim_spec, epoch, "epoch", true),
    OBJ(offsetof(struct contract_claim_spec, holder), "holder", true, holder_fields),
    OBJ(offsetof(struct contract_claim_spec, previous), "previous", false, previous_fields),
    OBJ(offsetof(struct contract_claim_spec, attachment), "attachmentRef", true, ref_fields),
    TIME(struct contract_claim_spec, acquire_time, "acquireTime", true),
    TIME(struct contract_claim_spec, release_time, "releaseTime", false),
    I32(struct contract_claim_spec, lease_seconds, "leaseDurationSeconds", true, 10, 300),
    I32(struct contract_claim_spec, max_lease_seconds, "maxLeaseDurationSeconds", true, 10, 300),
    PLAIN(struct contract_claim_spec, correlation, "correlationID", true, FT_CORR),
    END,
};
static const char *const gate_states[] = {NULL, "Open", "Closed"};
static const char *const closed_reasons[] = {NULL, "Confirmed", "Waited"};
static const struct contract_field gate_fields[] = {
    EPOCH(struct contract_claim_status, gate.epoch, "epoch", true),
    ENUM(struct contract_claim_status, gate.state, "state", true, gate_states),
    STR(struct contract_claim_status, gate.reason, "reason", true, FORM_REASON, 128),
    TIME(struct contract_claim_status, gate.since, "since", false),
    END,
};
static const struct contract_cond_slot claim_conds[] = {
    {"Accepted", offsetof(struct contract_claim_status, accepted)},
    {"GateOpen", offsetof(struct contract_claim_status, gate_open)},
    {"Published", offsetof(struct contract_claim_status, published)},
    {NULL, 0},
};
static const struct contract_field claim_status[] = {
    EPOCH(struct contract_claim_status, accepted_epoch, "acceptedEpoch", false),
    UUID(struct contract_claim_status, accepted_lease_uuid, "acceptedLeaseUUID", false),
    OBJ(0, "gate", false, gate_fields),
    EPOCH(struct contract_claim_status, published_epoch, "publishedEpoch", false),
    TIME(struct contract_claim_status, published_time, "publishedTime", false),
    EPOCH(struct contract_claim_status, closed_epoch, "closedEpoch", false),
    ENUM(struct contract_claim_status, closed_reason, "closedReason", false, closed_reasons),
    TIME(struct contract_claim_status, closed_time, "closedTime", false),
    EPOCH(struct contract_claim_status, withdrawn_epoch, "withdrawnEpoch", false),
    TIME(struct contract_claim_status, withdrawn_time, "withdrawnTime", false),
    CONDS(claim_conds),
    END,
};
static const struct contract_field claim_top[] = {
    OBJ(offsetof(struct contract_claim, spec), "spec", true, claim_spec),
    OBJ(offsetof(struct contract_claim, status), "status", false, claim_status),
    END,
};

/* ---- ConnectorBinding ---- */
static const char *const takeovers[] = {"Allowed", "Denied"};
static const struct contract_field binding_spec[] = {
    STR(struct contract_binding_spec, tenant, "tenant", true, FORM_LABEL, 63),
    STR(struct contract_binding_spec, connector, "connector", true, FORM_NAME, 189),
    STR(struct contract_binding_spec, vpc, "vpc", true, FORM_LABEL, 63),
    STR(struct contract_binding_spec, service, "serviceName", true, FORM_NAME, 253),
    {.name = "identities",
     .type = FT_IDENTITIES,
     .required = true,
     .at = offsetof(struct contract_binding_spec, n_identities),
     .size = offsetof(struct contract_binding_spec, identities)},
    BOOL(struct contract_binding_spec, suspended, "suspended"),
    ENUM(struct contract_binding_spec, takeover, "takeover", false, takeovers),
    I32(struct contract_binding_spec, grant_seconds, "grantSeconds", false, 6, 30),
    {.name = "retentionSeconds",
     .type = FT_I32,
     .at = offsetof(struct contract_binding_spec, retention_seconds),
     .lo = 0,
     .hi = 31536000, /* a year */
     .absent = -1},
    END,
};
static const struct contract_field session_fields[] = {
    STR(struct contract_last_session, node, "node", true, FORM_NAME, 125),
    STR(struct contract_last_session, generation, "generation", true, FORM_ANY, 128),
    STR(struct contract_last_session, transport, "transport", false, FORM_ANY, 32),
    TIME(struct contract_last_session, since, "since", true),
    TIME(struct contract_last_session, until, "until", false),
    END,
};
static const struct contract_cond_slot binding_conds[] = {
    {"Ready", offsetof(struct contract_binding_status, ready)},
    {"PrefixAssigned", offsetof(struct contract_binding_status, prefix_assigned)},
    {NULL, 0},
};
static const struct contract_field binding_status[] = {
    {.name = "prefix",
     .type = FT_OPT_PREFIX,
     .at = offsetof(struct contract_binding_status, has_prefix),
     .size = offsetof(struct contract_binding_status, prefix),
     .lo = 96,
     .hi = 96},
    OBJ(offsetof(struct contract_binding_status, last), "lastSession", false, session_fields),
    CONDS(binding_conds),
    END,
};
static const struct contract_field binding_top[] = {
    OBJ(offsetof(struct contract_binding, spec), "spec", true, binding_spec),
    OBJ(offsetof(struct contract_binding, status), "status", false, binding_status),
    END,
};

static const struct {
    const char *name, *plural, *group;
    const struct contract_field *top;
    size_t size;
} kinds[CONTRACT_KIND_N] = {
    [CONTRACT_INSTANCE] = {"ProviderInstance", "providerinstances", CONTRACT_GROUP, instance_top,
                           sizeof(struct contract_instance)},
    [CONTRACT_ATTACHMENT] = {"HostAttachment", "hostattachments", CONTRACT_GROUP, attachment_top,
                             sizeof(struct contract_attachment)},
    [CONTRACT_SERVICE] = {"ProviderService", "providerservices", CONTRACT_GROUP, service_top,
                          sizeof(struct contract_service)},
    [CONTRACT_CLAIM] = {"RouteClaim", "routeclaims", CONTRACT_GROUP, claim_top,
                        sizeof(struct contract_claim)},
    [CONTRACT_BINDING] = {"ConnectorBinding", "connectorbindings", CONTRACT_MASQUE_GROUP, binding_top,
                          sizeof(struct contract_binding)},
};

static bool known(enum contract_kind k)
{
    return (unsigned)k >= 1 && (unsigned)k < CONTRACT_KIND_N;
}

const char *contract_kind_name(enum contract_kind k)
{
    return known(k) ? kinds[k].name : "";
}

const char *contract_kind_plural(enum contract_kind k)
{
    return known(k) ? kinds[k].plural : "";
}

const char *contract_kind_group(enum contract_kind k)
{
    return known(k) ? kinds[k].group : "";
}

enum contract_kind contract_kind_of(struct base_str name)
{
    for (unsigned k = 1; k < CONTRACT_KIND_N; k++)
        if (base_str_eqz(name, kinds[k].name))
            return (enum contract_kind)k;
    return (enum contract_kind)0;
}

const struct contract_field *contract_schema(enum contract_kind k)
{
    return known(k) ? kinds[k].top : NULL;
}

size_t contract_kind_size(enum contract_kind k)
{
    return known(k) ? kinds[k].size : 0;
}

const struct contract_field *contract_schema_status(enum contract_kind k)
{
    const struct contract_field *top = contract_schema(k);

    return top && top[1].name ? &top[1] : NULL;
}
