/* SPDX-License-Identifier: Apache-2.0
 *
 * agent/config.h - the agent's configuration: one YAML file, const once it is read.
 *
 * One row per option in config_table.c (path, type, range, default, reloadable, where it lands). Unknown
 * keys, wrong types and values out of range are refused with file, line, key, value and remedy; nothing is
 * half-applied.
 */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include "contract/contract.h"

#define AGENT_PATH_SIZE 512
#define AGENT_ADDR_SIZE 80

enum agent_policy { AGENT_POLICY_DENY = 0, AGENT_POLICY_KUBERNETES, AGENT_POLICY_WEBHOOK };
struct agent_config {
    char provider[CONTRACT_LABEL_SIZE];
    char node_name[CONTRACT_NODE_SIZE];
    char ns[CONTRACT_LABEL_SIZE];
    char kubeconfig[AGENT_PATH_SIZE];
    char listen_h3[AGENT_ADDR_SIZE];
    int64_t http2, rfc9484, cloudflare, udp_offload, tun_offload; /* 0 or 1 */
    int64_t data_threads;                                         /* 0 = as many as there are CPUs */
    char tls_cert[AGENT_PATH_SIZE], tls_key[AGENT_PATH_SIZE], tls_client_ca[AGENT_PATH_SIZE];
    int64_t policy;        /* enum agent_policy */
    int64_t bearer;        /* 0 or 1: connectors may come with a bearer token instead of a certificate */
    int64_t grant_seconds; /* 6..30 */
    char webhook_url[AGENT_PATH_SIZE];
    char webhook_ca[AGENT_PATH_SIZE], webhook_cert[AGENT_PATH_SIZE], webhook_key[AGENT_PATH_SIZE];
    int64_t authority_timeout_ms;
    int64_t lease_seconds; /* L, 10..300 */
    int64_t guard_ms;      /* g */
    int64_t quiesce_ms;    /* Q */
    int64_t gap_ms;
    char audit_dir[AGENT_PATH_SIZE];
    int64_t audit_deadline_ms, audit_queue, audit_file_mb, audit_file_hours, audit_files;
    int64_t audit_renew_s, audit_reject_s; /* what is added up for so long; 0 = nothing */
    char audit_key[AGENT_PATH_SIZE];       /* "" = no checkpoints */
    int64_t audit_key_records, audit_key_minutes;
    int64_t audit_copy; /* to stdout */
    int64_t audit_page;
    int64_t audit_events;
    int64_t max_connectors, max_services, max_attachments;
    int64_t max_connections, max_per_source, max_handshakes, handshake_rate, handshake_seconds, idle_seconds,
        queue_ms;
    int64_t queue_packets, queue_bytes, header_bytes, session_packets, session_bytes, tenant_sessions,
        tenant_requests, tenant_packets, h3_resets, header_seconds, capsule_seconds;
    int64_t h2_unsent, h2_window, h2_resets, h2_control, h2_small, h2_ping, h2_blocked;
    char health_listen[AGENT_ADDR_SIZE], metrics_listen[AGENT_ADDR_SIZE];
    int64_t log_level; /* enum loop_level */
    int64_t log_json;
    int64_t metrics_auth; /* 0 or 1: /metrics only to who may get it */
    /* no options: where the others came from */
    char file[AGENT_PATH_SIZE]; /* "" = defaults */
    bool format_forced;         /* --log-format was given */
};

/* Defaults, then `path` (NULL or "": defaults only), then what the environment adds where the file says
 * nothing: NODE_NAME, POD_NAMESPACE. `env` looks a variable up (getenv; a test gives its own). BASE_OK,
 * BASE_EINVAL, BASE_ENOTFOUND, BASE_EIO, BASE_ENOMEM; *ret is untouched on failure. */
int agent_config_load(struct agent_config *ret, const char *path, const char *(*env)(const char *),
                      struct base_err *err);
/* The same from memory; `name` stands for the file in errors. */
int agent_config_parse(struct agent_config *ret, struct base_str yaml, const char *name,
                       const char *(*env)(const char *), struct base_err *err);
/* Timing parameters that follow from the configuration, checked. */
int agent_config_timing(const struct agent_config *c, struct contract_timing *ret, struct base_err *err);
/* How long to wait for the answer of a renewal, `most` at the longest: the next one is due an interval after
 * the last confirmed one, sessions end L - g after it, and one whose answer is lost has to be read back
 * before that. */
base_time agent_renewal_timeout(const struct contract_timing *t, base_time most);
/* What the policy needs and what does not go with it: BASE_OK, or BASE_EINVAL with the key and the remedy. */
int agent_config_policy(const struct agent_config *c, struct base_err *err);
/* All options with type, range and default, one line each, for --help and the docs' check. */
struct base_buf;
int agent_config_describe(struct base_buf *out);

/* ---- the table (config_table.c) */
enum agent_option_type {
    AGENT_OPT_STRING = 1,
    AGENT_OPT_LABEL,
    AGENT_OPT_NODE,
    AGENT_OPT_PATH,
    AGENT_OPT_ADDRESS,
    AGENT_OPT_INT,
    AGENT_OPT_ENUM
};
struct agent_option {
    const char *path; /* "tls.certFile" */
    enum agent_option_type type;
    size_t offset, size; /* size of a string's room */
    int64_t min, max;    /* AGENT_OPT_INT */
    const char *choices; /* AGENT_OPT_ENUM: "deny|kubernetes", value = position */
    const char *preset;  /* default, as it would be written */
    bool reloadable;
    const char *what;
};
extern const struct agent_option agent_options[];
enum { AGENT_OPTIONS_MAX = 128 };
extern const size_t agent_options_n; /* at most AGENT_OPTIONS_MAX */

#endif
