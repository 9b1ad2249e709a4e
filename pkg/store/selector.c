/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <stddef.h>

#include "base/cleanup.h"

/* What the CRDs list under selectableFields, as far as somebody asks for it. */
static const struct {
    enum contract_kind kind;
    const char *path;
    size_t sel, obj; /* offsets: in the selector, in the object's union */
} fields[] = {
#define SEL(m) offsetof(struct store_selector, m)
#define OBJ(k, m) offsetof(struct contract_##k, m)
    {CONTRACT_CLAIM, "spec.holder.node", SEL(node), OBJ(claim, spec.holder.node)},
    {CONTRACT_CLAIM, "spec.previous.node", SEL(previous_node), OBJ(claim, spec.previous.node)},
    {CONTRACT_CLAIM, "spec.tenant", SEL(tenant), OBJ(claim, spec.tenant)},
    {CONTRACT_CLAIM, "spec.connector", SEL(connector), OBJ(claim, spec.connector)},
    {CONTRACT_CLAIM, "spec.vpc", SEL(vpc), OBJ(claim, spec.vpc)},
    {CONTRACT_CLAIM, "spec.provider", SEL(provider), OBJ(claim, spec.provider)},
    {CONTRACT_INSTANCE, "spec.nodeName", SEL(node), OBJ(instance, spec.node)},
    {CONTRACT_INSTANCE, "spec.provider", SEL(provider), OBJ(instance, spec.provider)},
    {CONTRACT_ATTACHMENT, "spec.vpc", SEL(vpc), OBJ(attachment, spec.vpc)},
    {CONTRACT_SERVICE, "spec.tenant", SEL(tenant), OBJ(service, tenant)},
    {CONTRACT_SERVICE, "spec.vpc", SEL(vpc), OBJ(service, vpc)},
    {CONTRACT_SERVICE, "spec.provider", SEL(provider), OBJ(service, provider)},
    {CONTRACT_BINDING, "spec.tenant", SEL(tenant), OBJ(binding, spec.tenant)},
    {CONTRACT_BINDING, "spec.connector", SEL(connector), OBJ(binding, spec.connector)},
    {CONTRACT_BINDING, "spec.vpc", SEL(vpc), OBJ(binding, spec.vpc)},
#undef SEL
#undef OBJ
};
static const struct {
    const char *name;
    size_t sel;
} members[] = {
    {"node", offsetof(struct store_selector, node)},
    {"previous_node", offsetof(struct store_selector, previous_node)},
    {"tenant", offsetof(struct store_selector, tenant)},
    {"connector", offsetof(struct store_selector, connector)},
    {"vpc", offsetof(struct store_selector, vpc)},
    {"provider", offsetof(struct store_selector, provider)},
};

static const char *wanted(const struct store_selector *sel, size_t at)
{
    return (const char *)sel + at;
}

bool store_selector_match(const struct store_selector *sel, const struct contract_object *o)
{
    for (size_t m = 0; sel && m < BASE_LEN(members); m++) {
        const char *want = wanted(sel, members[m].sel);
        bool match = *want == '\0';

        for (size_t i = 0; !match && i < BASE_LEN(fields); i++)
            match = fields[i].kind == o->kind && fields[i].sel == members[m].sel &&
                    strcmp((const char *)&o->u + fields[i].obj, want) == 0;
        if (!match)
            return false;
    }
    return true;
}

int store_selector_query(char *dst, size_t size, enum contract_kind kind, const struct store_selector *sel,
                         struct base_err *err)
{
    dst[0] = '\0';
    for (size_t m = 0; sel && m < BASE_LEN(members); m++) {
        const char *want = wanted(sel, members[m].sel), *path = NULL;
        size_t n = strlen(dst);

        if (!*want)
            continue;
        for (size_t i = 0; i < BASE_LEN(fields); i++)
            if (fields[i].kind == kind && fields[i].sel == members[m].sel)
                path = fields[i].path;
        if (!path)
            return base_err_set(err, BASE_EINVAL, "%s: %s=\"%.80s\" cannot be selected by; leave it empty",
                                contract_kind_name(kind), members[m].name, want);
        if (!base_fmt(dst + n, size - n, "%s%s=%s", n ? "," : "", path, want))
            return base_err_set(err, BASE_EFULL, "%s: the selector is longer than %zu bytes",
                                contract_kind_name(kind), size - 1);
    }
    return BASE_OK;
}
