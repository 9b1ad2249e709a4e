/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/contract.h"

static int check(const char *what, const char *z, size_t max, bool dots, struct base_err *err)
{
    struct base_str s = base_str_of(z);

    if (s.len > max)
        return base_err_set(
            err, BASE_EINVAL,
            "%s \"%.60s%s\" is %zu characters long; at most %zu fit, because object names end at 253", what,
            z, s.len > 60 ? "..." : "", s.len, max);
    if (dots ? base_is_subdomain(s, max) : base_is_label(s, max))
        return BASE_OK;
    return base_err_set(
        err, BASE_EINVAL,
        "%s \"%.60s\" must be lower-case letters, digits and '-'%s, first and last a letter or digit", what,
        s.ptr ? s.ptr : "", dots ? " or '.'" : "");
}

static int join(char *dst, const char *a, const char *b, const char *c, struct base_err *err)
{
    if (base_cat(dst, CONTRACT_NAME_SIZE, a, ".", b) &&
        (!c || base_cat(dst + strlen(dst), CONTRACT_NAME_SIZE - strlen(dst), ".", c, NULL)))
        return BASE_OK;
    dst[0] = '\0';
    return base_err_set(err, BASE_EINVAL,
                        "name \"%.40s.%.40s...\" is longer than 253 characters; shorten a part", a, b);
}

int contract_instance_name(char *dst, const char *provider, const char *node, struct base_err *err)
{
    int rc = check("provider", provider, CONTRACT_LABEL_SIZE - 1, false, err);

    if (!rc)
        rc = check("node name", node, CONTRACT_NODE_SIZE - 1, true, err);
    return rc ? rc : join(dst, provider, node, NULL, err);
}

int contract_attachment_name(char *dst, const char *provider, const char *node, const char *vpc,
                             struct base_err *err)
{
    int rc = check("provider", provider, CONTRACT_LABEL_SIZE - 1, false, err);

    if (!rc)
        rc = check("node name", node, CONTRACT_NODE_SIZE - 1, true, err);
    if (!rc)
        rc = check("vpc", vpc, CONTRACT_LABEL_SIZE - 1, false, err);
    return rc ? rc : join(dst, provider, node, vpc, err);
}

int contract_binding_name(char *dst, const char *tenant, const char *connector, struct base_err *err)
{
    int rc = check("tenant", tenant, CONTRACT_LABEL_SIZE - 1, false, err);

    if (!rc)
        rc = check("connector", connector, CONTRACT_CONNECTOR_SIZE - 1, true, err);
    return rc ? rc : join(dst, tenant, connector, NULL, err);
}

void contract_claim_name(char dst[CONTRACT_NAME_SIZE], const struct base_prefix *prefix)
{
    memcpy(dst, "rc-", 3);
    base_hex(dst + 3, prefix->addr.b, 12);
}

void contract_finalizer(char dst[CONTRACT_FINALIZER_SIZE], const struct base_uuid *node_uid,
                        const struct base_uuid *boot_id)
{
    char node[BASE_UUID_SIZE], boot[17];

    base_uuid_text(node, node_uid);
    base_hex(boot, boot_id->b, 8);
    (void)base_fmt(dst, CONTRACT_FINALIZER_SIZE, "%s%s.%s", CONTRACT_GATE_FINALIZER, node, boot);
}

static unsigned slots(const struct contract_meta *m)
{
    return m->n_finalizers < CONTRACT_FINALIZERS_MAX ? m->n_finalizers : CONTRACT_FINALIZERS_MAX;
}

bool contract_has_finalizer(const struct contract_meta *m, const char *finalizer)
{
    for (unsigned i = 0; i < slots(m); i++)
        if (strcmp(m->finalizers[i], finalizer) == 0)
            return true;
    return false;
}

int contract_finalizer_add(struct contract_meta *m, const char *finalizer)
{
    char copy[sizeof m->finalizers[0]];

    if (contract_has_finalizer(m, finalizer))
        return BASE_OK;
    if (base_copy(copy, sizeof copy, finalizer) || !copy[0])
        return BASE_EINVAL;
    if (m->n_finalizers >= CONTRACT_FINALIZERS_MAX)
        return BASE_EFULL;
    memcpy(m->finalizers[m->n_finalizers++], copy, sizeof copy);
    return BASE_OK;
}

bool contract_finalizer_remove(struct contract_meta *m, const char *finalizer)
{
    unsigned n = slots(m);

    for (unsigned i = 0; i < n; i++) {
        if (strcmp(m->finalizers[i], finalizer) != 0)
            continue;
        memmove(m->finalizers[i], m->finalizers[i + 1], (n - i - 1) * sizeof m->finalizers[0]);
        memset(m->finalizers[n - 1], 0, sizeof m->finalizers[0]);
        m->n_finalizers--;
        return true;
    }
    return false;
}
