/* SPDX-License-Identifier: Apache-2.0
 *
 * contract/contract.h - the objects of the foundation contract, version v1alpha1, as values.
 *
 * Pure. Every struct is plain data of fixed size, holds no pointer and may be copied with `=`; strings end in NUL and
 * were refused, not cut, when they were too long. Optional members carry presence: a `has_x`, an empty string, a zero
 * UUID or epoch 0 (epochs start at 1) mean "absent". Wall times are microseconds (base_wall), 0 = absent.
 * Source: the contract, sections 1 to 4 and 9 (ARCHITECTURE.md links them).
 */
#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"

#define CONTRACT_GROUP "edge.galactic.datumapis.com"
#define CONTRACT_MASQUE_GROUP "masque.galactic.datumapis.com"
#define CONTRACT_VERSION "v1alpha1"
#define CONTRACT_DRAIN_ANNOTATION "masque.galactic.datumapis.com/drain"
#define CONTRACT_AGENT_ANNOTATION "masque.galactic.datumapis.com/agent-version"
#define CONTRACT_GATE_FINALIZER "gate.edge.galactic.datumapis.com/"

#define CONTRACT_NAME_SIZE 254 /* object names */
#define CONTRACT_LABEL_SIZE 64 /* provider, tenant, vpc */
#define CONTRACT_CONNECTOR_SIZE 190
#define CONTRACT_NODE_SIZE 126
#define CONTRACT_RV_SIZE 44 /* resourceVersion: up to 128 bits in decimal */
#define CONTRACT_REASON_SIZE 64
#define CONTRACT_DEVICE_SIZE 16
#define CONTRACT_SOFTWARE_SIZE 32 /* "1.2.3-rc.1+abc" */

enum contract_kind {
    CONTRACT_INSTANCE = 1, /* ProviderInstance */
    CONTRACT_ATTACHMENT,   /* HostAttachment */
    CONTRACT_SERVICE,      /* ProviderService */
    CONTRACT_CLAIM,        /* RouteClaim */
    CONTRACT_BINDING,      /* ConnectorBinding */
};
#define CONTRACT_KIND_N 6
const char *contract_kind_name(enum contract_kind k);   /* "RouteClaim" */
const char *contract_kind_plural(enum contract_kind k); /* "routeclaims" */
const char *contract_kind_group(enum contract_kind k);
/* 0 when `name` is no kind of the contract. */
enum contract_kind contract_kind_of(struct base_str name);

#define CONTRACT_FINALIZERS_MAX 8
struct contract_meta {
    char name[CONTRACT_NAME_SIZE];
    struct base_uuid uid;      /* zero before creation */
    char rv[CONTRACT_RV_SIZE]; /* resourceVersion; "" before creation */
    int64_t generation;
    base_wall created;
    base_wall deleting;   /* deletionTimestamp; 0 = not being deleted */
    bool drain;           /* annotation CONTRACT_DRAIN_ANNOTATION is "true" */
    uint8_t n_finalizers; /* all of them counted; those beyond the table are kept by the store, not shown */
    char finalizers[CONTRACT_FINALIZERS_MAX][128];
};

struct contract_ref {
    char name[CONTRACT_NAME_SIZE];
    struct base_uuid uid;
};

enum contract_cond_status {
    CONTRACT_COND_ABSENT = 0,
    CONTRACT_COND_FALSE,
    CONTRACT_COND_TRUE,
    CONTRACT_COND_UNKNOWN
};
struct contract_cond { /* one condition; the store keeps those of other types as they are */
    enum contract_cond_status status;
    char reason[CONTRACT_REASON_SIZE];
    /* for people: the one string that is cut when it is longer; the store keeps the whole */
    char message[160];
    int64_t observed_generation;
    base_wall transition;
};

/* ---- ProviderInstance ---------------------------------------------------------------------------------------- */
struct contract_renew {
    struct base_uuid boot_id;
    int64_t boot_time_us; /* CLOCK_BOOTTIME in microseconds, read before the write was sent */
    base_wall time;
};
struct contract_instance_spec {
    char provider[CONTRACT_LABEL_SIZE];
    char node[CONTRACT_NODE_SIZE];
    struct base_uuid node_uid;
    struct base_uuid process_id;
    int64_t epoch;
    int32_t lease_seconds; /* 10..300, fixed within an epoch */
    struct contract_renew renew;
    base_wall release_time;
    bool draining;
};
struct contract_instance_status {
    int64_t accepted_epoch;
    struct base_uuid accepted_process_id;
    struct contract_cond accepted, ready;
};
struct contract_instance {
    struct contract_meta meta;
    struct contract_instance_spec spec;
    struct contract_instance_status status;
    char agent_version[CONTRACT_SOFTWARE_SIZE]; /* annotation CONTRACT_AGENT_ANNOTATION, for people; "" =
                                                   absent, or none */
};

/* ---- HostAttachment ------------------------------------------------------------------------------------------ */
struct contract_attachment_spec {
    struct contract_ref instance; /* uid immutable */
    int64_t instance_epoch;
    char vpc[CONTRACT_LABEL_SIZE];
};
struct contract_attachment_status {
    int64_t accepted_instance_epoch;
    char device[CONTRACT_DEVICE_SIZE]; /* "hf" + 8 hex digits */
    int32_t mtu;
    struct contract_cond accepted, ready;
};
struct contract_attachment {
    struct contract_meta meta;
    struct contract_attachment_spec spec;
    struct contract_attachment_status status;
};

/* ---- ProviderService ----------------------------------------------------------------------------------------- */
#define CONTRACT_DESTINATIONS_MAX 64
struct contract_service {
    struct contract_meta meta;
    char provider[CONTRACT_LABEL_SIZE];
    char tenant[CONTRACT_LABEL_SIZE];
    char vpc[CONTRACT_LABEL_SIZE];
    struct base_prefix pool; /* allowedPrefix, at most a /95 */
    uint8_t n_destinations;
    struct base_prefix destinations[CONTRACT_DESTINATIONS_MAX];
    base_wall valid_until;
    bool revoked;
};

/* ---- RouteClaim ---------------------------------------------------------------------------------------------- */
struct contract_holder {
    char instance[CONTRACT_CONNECTOR_SIZE]; /* <provider>.<node> */
    struct base_uuid instance_uid;
    int64_t instance_epoch;
    struct base_uuid process_id;
    char node[CONTRACT_NODE_SIZE];
    struct base_uuid boot_id;
};
struct contract_previous {
    char node[CONTRACT_NODE_SIZE];
    struct base_uuid boot_id;
    int64_t epoch; /* 0 = absent */
};
struct contract_claim_spec {
    char provider[CONTRACT_LABEL_SIZE];
    struct base_prefix prefix; /* a /96 */
    char tenant[CONTRACT_LABEL_SIZE];
    char vpc[CONTRACT_LABEL_SIZE];
    char connector[CONTRACT_CONNECTOR_SIZE];
    struct contract_ref service;
    struct base_uuid lease_uuid;
    int64_t epoch;
    struct contract_holder holder;
    struct contract_previous previous;
    struct contract_ref attachment;
    base_wall acquire_time;
    base_wall release_time; /* 0 = held */
    int32_t lease_seconds;
    int32_t max_lease_seconds;
    struct base_correlation correlation;
};
enum contract_gate_state { CONTRACT_GATE_ABSENT = 0, CONTRACT_GATE_OPEN, CONTRACT_GATE_CLOSED };
enum contract_closed_reason { CONTRACT_CLOSED_ABSENT = 0, CONTRACT_CLOSED_CONFIRMED, CONTRACT_CLOSED_WAITED };
struct contract_claim_status {
    int64_t accepted_epoch;
    struct base_uuid accepted_lease_uuid;
    struct {
        int64_t epoch;
        enum contract_gate_state state;
        char reason[CONTRACT_REASON_SIZE];
        base_wall since;
    } gate;
    int64_t published_epoch;
    base_wall published_time;
    int64_t closed_epoch;
    enum contract_closed_reason closed_reason;
    base_wall closed_time;
    int64_t withdrawn_epoch;
    base_wall withdrawn_time;
    struct contract_cond accepted, gate_open, published;
};
struct contract_claim {
    struct contract_meta meta;
    struct contract_claim_spec spec;
    struct contract_claim_status status;
};

/* ---- ConnectorBinding ---------------------------------------------------------------------------------------- */
#define CONTRACT_IDENTITIES_MAX 8
enum contract_identity_kind { CONTRACT_IDENTITY_URI = 1, CONTRACT_IDENTITY_USER };
struct contract_identity {
    enum contract_identity_kind kind;
    char value[513];
};
enum contract_takeover { CONTRACT_TAKEOVER_ALLOWED = 0, CONTRACT_TAKEOVER_DENIED };
struct contract_binding_spec {
    char tenant[CONTRACT_LABEL_SIZE];
    char connector[CONTRACT_CONNECTOR_SIZE];
    char vpc[CONTRACT_LABEL_SIZE];
    char service[CONTRACT_NAME_SIZE]; /* serviceName */
    uint8_t n_identities;
    struct contract_identity identities[CONTRACT_IDENTITIES_MAX];
    bool suspended;
    enum contract_takeover takeover;
    int32_t grant_seconds;     /* 6..30; 0 = absent */
    int32_t retention_seconds; /* -1 = absent */
};
struct contract_last_session { /* absent when node is "" */
    char node[CONTRACT_NODE_SIZE];
    char generation[129];
    char transport[33];
    base_wall since, until;
};
struct contract_binding_status {
    bool has_prefix;
    struct base_prefix prefix;
    struct contract_last_session last;
    struct contract_cond ready, prefix_assigned;
    /* Of a write, never of what was read: that part stays as it stands on the server. */
    bool keep_last, keep_ready, keep_assigned;
};
struct contract_binding {
    struct contract_meta meta;
    struct contract_binding_spec spec;
    struct contract_binding_status status;
};

/* ---- any of them --------------------------------------------------------------------------------------------- */
struct contract_object {
    enum contract_kind kind;
    union {
        struct contract_meta meta; /* the common first member */
        struct contract_instance instance;
        struct contract_attachment attachment;
        struct contract_service service;
        struct contract_claim claim;
        struct contract_binding binding;
    } u;
};

/* Names. BASE_OK, or BASE_EINVAL with a text when a part is malformed or the name would not fit (a node name longer
 * than 125 characters). `dst` holds CONTRACT_NAME_SIZE bytes. */
int contract_instance_name(char *dst, const char *provider, const char *node, struct base_err *err);
int contract_attachment_name(char *dst, const char *provider, const char *node, const char *vpc,
                             struct base_err *err);
int contract_binding_name(char *dst, const char *tenant, const char *connector, struct base_err *err);
/* "rc-" and the first 24 hex digits of a /96. */
void contract_claim_name(char dst[CONTRACT_NAME_SIZE], const struct base_prefix *prefix);
/* The finalizer of a node and boot: prefix, node UID, ".", first 16 hex digits of the boot id without dashes. */
#define CONTRACT_FINALIZER_SIZE 128
void contract_finalizer(char dst[CONTRACT_FINALIZER_SIZE], const struct base_uuid *node_uid,
                        const struct base_uuid *boot_id);
bool contract_has_finalizer(const struct contract_meta *m, const char *finalizer);
/* Adds it unless it is there. BASE_OK, BASE_EINVAL (empty or too long for the table), BASE_EFULL. */
int contract_finalizer_add(struct contract_meta *m, const char *finalizer);
/* True when it was there. */
bool contract_finalizer_remove(struct contract_meta *m, const char *finalizer);

/* JSON. Decoding refuses wrong types, numbers that are not exact integers, strings over their bound and enums that are
 * not listed: BASE_EINVAL with the path of the field, its value and what is expected; unknown members are ignored (the
 * store keeps them). *ret is written whole or not at all. `json` need not end in NUL. */
int contract_decode(struct contract_object *ret, enum contract_kind kind, struct base_str json,
                    struct base_err *err);
/* The kind is taken from "kind"; BASE_EINVAL also for a kind or apiVersion of somebody else. */
int contract_decode_any(struct contract_object *ret, struct base_str json, struct base_err *err);
/* Writes the whole object (apiVersion, kind, metadata with name, uid, resourceVersion, finalizers, spec, status) into
 * `out`. When `raw` is not empty it must be the JSON of the object that the value was decoded from: members that this
 * package does not know (labels, owner references, annotations, unknown conditions, unknown fields) are kept from it,
 * finalizers are those of the value. Integers are written as integers. BASE_OK, BASE_EFULL, BASE_ENOMEM, BASE_EINVAL. */
struct base_buf;
int contract_encode(struct base_buf *out, const struct contract_object *o, struct base_str raw,
                    struct base_err *err);

/* Same kind and same spec (status): by value, not by text. Metadata is not looked at. */
bool contract_spec_equal(const struct contract_object *a, const struct contract_object *b);
bool contract_status_equal(const struct contract_object *a, const struct contract_object *b);
/* What a write of a binding's status says to keep becomes what `old` has. */
void contract_fill_kept(struct contract_object *o, const struct contract_object *old);
/* Status of `src` (same kind) into `dst`; NULL empties it. */
void contract_copy_status(struct contract_object *dst, const struct contract_object *src);
/* Bytes that an object of this kind uses, and a copy of just those: claims are half as large as bindings. A caller that
 * keeps objects in blocks of that size never assigns them whole. */
size_t contract_object_size(enum contract_kind kind);
void contract_object_copy(struct contract_object *dst, const struct contract_object *src);

/* What the CRDs' schema and CEL rules say, in C: is `next` a legal object, and a legal successor of `old` (NULL for a
 * creation)? Returns BASE_OK or BASE_EINVAL (the API server's 422) with a text that names the field. For a write of
 * one half (spec or status) the other half of `next` is that of `old`, as the server takes it. */
int contract_validate(const struct contract_object *next, const struct contract_object *old,
                      struct base_err *err);

/* Timing parameters, section 9: one set for the whole provider. All in ns. */
struct contract_timing {
    base_time lease;    /* L, 10..300 s */
    base_time interval; /* renew and proof interval: min(L, smallest grant)/3 */
    base_time guard;    /* g */
    base_time gate_lag; /* G */
    base_time grant;    /* at most 30 s */
    base_time quiesce;  /* Q */
    base_time gap;
    base_time wall_skew; /* for validUntil only */
    int64_t rate_ppm;    /* rho: bound on the clock rate error, parts per million */
};
struct contract_timing contract_timing_default(void);
/* BASE_EINVAL with the name of the parameter, its value and its range. */
int contract_timing_check(const struct contract_timing *t, struct base_err *err);
/* Takeover wait W for a row whose maxLeaseDurationSeconds is `max_lease_seconds`: (1+rho)(maxL/(1-rho)+G)+2 s, rounded
 * up to ns, without overflow for 0..300 s. */
base_time contract_wait(const struct contract_timing *t, int32_t max_lease_seconds);

#endif
