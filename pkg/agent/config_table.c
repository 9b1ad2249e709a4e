/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config.h"

#include <stddef.h>

#include "base/cleanup.h"

#define STR(field) offsetof(struct agent_config, field), sizeof(((struct agent_config *)0)->field), 0, 0, NULL
#define NUM(field, lo, hi) offsetof(struct agent_config, field), 0, (lo), (hi), NULL
#define ONE(field, of) offsetof(struct agent_config, field), 0, 0, 0, (of)

const struct agent_option agent_options[] = {
    {"provider", AGENT_OPT_LABEL, STR(provider), "masque", false, "name of the provider in every object"},
    {"nodeName", AGENT_OPT_NODE, STR(node_name), "", false,
     "this node; default: $NODE_NAME; must be the token's node"},
    {"namespace", AGENT_OPT_LABEL, STR(ns), "", false,
     "namespace of all objects; default: $POD_NAMESPACE, the service account's, the kubeconfig's"},
    {"kubeconfig", AGENT_OPT_PATH, STR(kubeconfig), "", false,
     "kubeconfig file; default: in-cluster credentials"},
    {"listen.h3", AGENT_OPT_ADDRESS, STR(listen_h3), "[::]:4433", false,
     "UDP address for connectors over HTTP/3"},
    {"tls.certFile", AGENT_OPT_PATH, STR(tls_cert), "/etc/holdfast/tls/tls.crt", false,
     "PEM server certificate, leaf first"},
    {"tls.keyFile", AGENT_OPT_PATH, STR(tls_key), "/etc/holdfast/tls/tls.key", false, "PEM private key"},
    {"tls.clientCAFile", AGENT_OPT_PATH, STR(tls_client_ca), "/etc/holdfast/tls/client-ca.crt", false,
     "PEM roots for connectors' certificates"},
    {"authority.policy", AGENT_OPT_ENUM, ONE(policy, "deny|kubernetes"), "deny", false,
     "who may connect: nobody, or who a ConnectorBinding names"},
    {"authority.grantSeconds", AGENT_OPT_INT, NUM(grant_seconds, 6, 30), "30", false,
     "how long one proof of authorization lasts"},
    {"lease.durationSeconds", AGENT_OPT_INT, NUM(lease_seconds, 10, 300), "30", false,
     "L: instance lease; also how long an API outage may last before traffic stops"},
    {"lease.guardMilliseconds", AGENT_OPT_INT, NUM(guard_ms, 500, 10000), "2000", false,
     "g: sessions end so long before the lease"},
    {"lease.quiesceMilliseconds", AGENT_OPT_INT, NUM(quiesce_ms, 100, 1000), "1000", false,
     "Q: bound for an old session's packet I/O to stop"},
    {"lease.gapMilliseconds", AGENT_OPT_INT, NUM(gap_ms, 200, 2000), "500", false,
     "a data thread that was stopped for longer drops what it holds"},
    {"audit.directory", AGENT_OPT_PATH, STR(audit_dir), "/var/lib/holdfast/audit", false,
     "where audit.jsonl is kept"},
    {"audit.deadlineMilliseconds", AGENT_OPT_INT, NUM(audit_deadline_ms, 10, 10000), "2000", false,
     "a record that is not durable in time refuses the operation"},
    {"audit.queue", AGENT_OPT_INT, NUM(audit_queue, 16, 1000000), "4096", false,
     "records that may wait for the disk"},
    {"audit.maxFileMegabytes", AGENT_OPT_INT, NUM(audit_file_mb, 1, 4096), "64", false,
     "a file is closed beyond this size"},
    {"audit.maxFileHours", AGENT_OPT_INT, NUM(audit_file_hours, 0, 8760), "24", false,
     "a file is closed beyond this age; 0 = never"},
    {"audit.maxFiles", AGENT_OPT_INT, NUM(audit_files, 1, 10000), "16", false, "closed files that are kept"},
    {"limits.connectors", AGENT_OPT_INT, NUM(max_connectors, 1, 100000), "10000", false,
     "ConnectorBindings known at once"},
    {"limits.services", AGENT_OPT_INT, NUM(max_services, 1, 10000), "256", false,
     "ProviderServices known at once"},
    {"limits.attachments", AGENT_OPT_INT, NUM(max_attachments, 1, 256), "16", false, "VPCs served at once"},
    {"limits.connections", AGENT_OPT_INT, NUM(max_connections, 1, 1000000), "4096", false,
     "QUIC connections"},
    {"limits.connectionsPerSource", AGENT_OPT_INT, NUM(max_per_source, 1, 1000000), "64", false,
     "QUIC connections from one source address"},
    {"limits.handshakes", AGENT_OPT_INT, NUM(max_handshakes, 1, 1000000), "256", false,
     "handshakes under way"},
    {"limits.queuePackets", AGENT_OPT_INT, NUM(queue_packets, 16, 65536), "512", false,
     "packets queued towards one connector"},
    {"limits.queueBytes", AGENT_OPT_INT, NUM(queue_bytes, 65536, 67108864), "524288", false,
     "bytes queued towards one connector"},
    {"health.listen", AGENT_OPT_ADDRESS, STR(health_listen), "[::]:9780", false,
     "TCP address of /livez and /readyz"},
    {"metrics.listen", AGENT_OPT_ADDRESS, STR(metrics_listen), "[::]:9781", false, "TCP address of /metrics"},
    {"log.level", AGENT_OPT_ENUM, ONE(log_level, "error|warn|info|debug"), "info", true,
     "least severe lines written"},
    {"log.format", AGENT_OPT_ENUM, ONE(log_json, "text|json"), "json", false,
     "lines for people or for machines"},
};
const size_t agent_options_n = BASE_LEN(agent_options);
