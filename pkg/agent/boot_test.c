/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/boot.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/mem.h"
#include "contract/served.h"

#define REVIEW(extra)                                                                                        \
    "{\"status\":{\"userInfo\":{\"username\":\"system:serviceaccount:a:b\",\"extra\":{" extra "}}}}"
#define NODE(n) "\"authentication.kubernetes.io/node-name\":[\"" n "\"]"
#define UID(u) "\"authentication.kubernetes.io/node-uid\":[\"" u "\"]"
#define GOOD "0d5c2f5e-8a9b-4c7d-9e1f-2a3b4c5d6e7f"

Test(agent_boot, identity_comes_from_the_token_and_must_be_this_node)
{
    static const struct {
        const char *what, *json, *node;
        int code;
        const char *says;
    } rows[] = {
        {"own node", REVIEW(NODE("edge1") "," UID(GOOD)), "edge1", BASE_OK, ""},
        {"node not configured", REVIEW(NODE("edge1") "," UID(GOOD)), "", BASE_OK, ""},
        {"another node", REVIEW(NODE("edge2") "," UID(GOOD)), "edge1", BASE_EDENIED,
         "belongs to node 'edge2'"},
        {"no node claim", REVIEW(""), "edge1", BASE_EINVAL, "projected service-account token"},
        {"no uid", REVIEW(NODE("edge1")), "edge1", BASE_EINVAL, "node claim"},
        {"uid is no UUID", REVIEW(NODE("edge1") "," UID("7")), "edge1", BASE_EDENIED, "no UUID"},
        {"no userInfo", "{\"status\":{}}", "edge1", BASE_EPROTO, "userInfo"},
        {"not JSON", "<html>", "edge1", BASE_EPROTO, "userInfo"},
        {"empty", "", "edge1", BASE_EPROTO, "userInfo"},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        char node[CONTRACT_NODE_SIZE] = "";
        struct base_uuid uid;
        struct base_err err = {0};

        cr_assert_eq(agent_boot_identity(base_str_of(rows[i].json), rows[i].node, node, &uid, &err),
                     rows[i].code, "%s: %s", rows[i].what, err.msg);
        if (rows[i].code)
            cr_assert_not_null(strstr(err.msg, rows[i].says), "%s: %s", rows[i].what, err.msg);
        else
            cr_assert_str_eq(node, "edge1", "%s", rows[i].what);
    }
}

/* schemas.<kind>.properties.a.properties.b … */
static cJSON *descend(cJSON *schema, const char *path, bool make)
{
    while (schema && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        cJSON *props = cJSON_GetObjectItemCaseSensitive(schema, "properties");

        (void)base_copy_str(key, sizeof key, (struct base_str){path, n});
        if (!props && make)
            props = cJSON_AddObjectToObject(schema, "properties");
        schema = cJSON_GetObjectItemCaseSensitive(props, key);
        if (!schema && make)
            schema = cJSON_AddObjectToObject(props, key);
        path += n + (path[n] == '.');
    }
    return schema;
}

static int check(cJSON *doc, const char *group, struct base_err *err)
{
    char *text = cJSON_PrintUnformatted(doc);
    int rc = contract_served(base_str_of(text), group, err);

    cJSON_free(text);
    return rc;
}

/* Adds what is asked for until nothing is missing; each field alone, taken away again, must be named. */
static unsigned walk(const char *group, const char *const *kinds)
{
    cJSON *doc = cJSON_CreateObject();
    cJSON *schemas = cJSON_AddObjectToObject(cJSON_AddObjectToObject(doc, "components"), "schemas");
    char kind[64], field[64];
    unsigned n = 0;
    struct base_err err = {0};

    for (; *kinds; kinds++) {
        char name[128];

        cr_assert_eq(check(doc, group, &err), BASE_EINVAL);
        cr_assert_not_null(strstr(err.msg, *kinds), "%s", err.msg);
        cr_assert_not_null(strstr(err.msg, "apply manifests/crds"));
        (void)base_fmt(name, sizeof name, "com.example.v1alpha1.%s", *kinds);
        (void)cJSON_AddObjectToObject(schemas, name);
        while (check(doc, group, &err) &&
               sscanf(err.msg, "%63s (%*[^)]) is served without the field %63[^:]", kind, field) == 2) {
            cr_assert_str_eq(kind, *kinds);
            cr_assert_not_null(descend(cJSON_GetObjectItemCaseSensitive(schemas, name), field, true));
            cr_assert_lt(n++, 200, "it asks for ever: %s", err.msg);
        }
    }
    cr_assert_eq(check(doc, group, &err), BASE_OK, "%s", err.msg);
    cJSON_Delete(doc);
    return n;
}

Test(agent_boot, every_field_that_is_relied_on_is_asked_for_by_name)
{
    static const char *const edge[] = {"ProviderInstance", "HostAttachment", "ProviderService", "RouteClaim",
                                       NULL};
    static const char *const masque[] = {"ConnectorBinding", NULL};

    cr_assert_geq(walk(CONTRACT_GROUP, edge), 55);
    cr_assert_geq(walk(CONTRACT_MASQUE_GROUP, masque), 10);
    cr_assert_eq(contract_served(BASE_STR("not JSON"), CONTRACT_GROUP, NULL), BASE_EINVAL);
}
