/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/served.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/cleanup.h"
#include "contract/contract.h"

struct kind_fields {
    const char *group, *kind, *fields[40];
};
static const struct kind_fields needed[] = {
    {CONTRACT_GROUP,
     "ProviderInstance",
     {"spec.provider", "spec.nodeName", "spec.nodeUID", "spec.processID", "spec.epoch",
      "spec.leaseDurationSeconds", "spec.renew.bootID", "spec.renew.bootTimeMicros", "spec.renew.time",
      "spec.releaseTime", "spec.draining", "status.acceptedEpoch", "status.acceptedProcessID",
      "status.conditions", NULL}},
    {CONTRACT_GROUP,
     "HostAttachment",
     {"spec.instanceRef.name", "spec.instanceRef.uid", "spec.instanceRef.epoch", "spec.vpc",
      "status.acceptedInstanceEpoch", "status.device", "status.mtu", "status.conditions", NULL}},
    {CONTRACT_GROUP,
     "ProviderService",
     {"spec.provider", "spec.tenant", "spec.vpc", "spec.allowedPrefix", "spec.destinations",
      "spec.validUntil", "spec.revoked", NULL}},
    {CONTRACT_GROUP,
     "RouteClaim",
     {"spec.provider",
      "spec.prefix",
      "spec.tenant",
      "spec.vpc",
      "spec.connector",
      "spec.serviceRef.name",
      "spec.serviceRef.uid",
      "spec.leaseUUID",
      "spec.epoch",
      "spec.holder.instance",
      "spec.holder.instanceUID",
      "spec.holder.instanceEpoch",
      "spec.holder.processID",
      "spec.holder.node",
      "spec.holder.bootID",
      "spec.previous.node",
      "spec.previous.bootID",
      "spec.previous.epoch",
      "spec.attachmentRef.name",
      "spec.attachmentRef.uid",
      "spec.acquireTime",
      "spec.releaseTime",
      "spec.leaseDurationSeconds",
      "spec.maxLeaseDurationSeconds",
      "spec.correlationID",
      "status.acceptedEpoch",
      "status.acceptedLeaseUUID",
      "status.gate.epoch",
      "status.gate.state",
      "status.closedEpoch",
      "status.closedReason",
      NULL}},
    {CONTRACT_MASQUE_GROUP,
     "ConnectorBinding",
     {"spec.tenant", "spec.connector", "spec.vpc", "spec.serviceName", "spec.identities", "spec.suspended",
      "spec.takeover", "spec.grantSeconds", "status.prefix", "status.lastSession", "status.conditions",
      NULL}},
};

static bool has_field(const cJSON *schema, const char *path)
{
    while (schema && *path) {
        size_t n = strcspn(path, ".");
        char key[64];

        if (base_copy_str(key, sizeof key, (struct base_str){path, n}))
            return false;
        schema =
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(schema, "properties"), key);
        path += n + (path[n] == '.');
    }
    return schema != NULL;
}

/* The schema whose name ends in ".<kind>". */
static const cJSON *schema_of(const cJSON *schemas, const char *kind)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, schemas)
    {
        size_t n = s->string ? strlen(s->string) : 0, k = strlen(kind);

        if (n > k && s->string[n - k - 1] == '.' && strcmp(s->string + n - k, kind) == 0)
            return s;
    }
    return NULL;
}

int contract_served(struct base_str openapi, const char *group, struct base_err *err)
{
    cJSON *doc = cJSON_ParseWithLength(openapi.ptr, openapi.len);
    const cJSON *schemas =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "components"), "schemas");
    int rc = BASE_OK;

    for (size_t i = 0; !rc && i < BASE_LEN(needed); i++) {
        const cJSON *schema = schema_of(schemas, needed[i].kind);

        if (strcmp(needed[i].group, group) != 0)
            continue;
        if (!schema)
            rc = base_err_set(err, BASE_EINVAL,
                              "CustomResourceDefinition of %s (%s/%s) is not served: apply manifests/crds",
                              needed[i].kind, group, CONTRACT_VERSION);
        for (size_t f = 0; !rc && needed[i].fields[f]; f++)
            if (!has_field(schema, needed[i].fields[f]))
                rc = base_err_set(
                    err, BASE_EINVAL,
                    "%s (%s/%s) is served without the field %s: its CustomResourceDefinition is older than "
                    "this program; apply manifests/crds of this version",
                    needed[i].kind, group, CONTRACT_VERSION, needed[i].fields[f]);
    }
    cJSON_Delete(doc);
    return rc;
}
