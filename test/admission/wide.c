/* SPDX-License-Identifier: Apache-2.0
 *
 * With the wide role, RBAC lets agents, foundations and operators do everything to the five kinds, so that
 * what is refused is refused by a policy. Without it RBAC answers first for much of what the policies also
 * refuse. */
#include "admission.h"

#include <unistd.h>

#define ROLES "/apis/rbac.authorization.k8s.io/v1/namespaces/" ADM_NAMESPACE "/roles"
#define BINDINGS "/apis/rbac.authorization.k8s.io/v1/namespaces/" ADM_NAMESPACE "/rolebindings"
#define NAME "admission-test-wide"
#define SA(name) "{\"kind\":\"ServiceAccount\",\"name\":\"" name "\",\"namespace\":\"" ADM_NAMESPACE "\"}"

static const char role[] =
    "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"Role\",\"metadata\":{\"name\":\"" NAME
    "\"},\"rules\":[{\"apiGroups\":"
    "[\"edge.galactic.datumapis.com\",\"masque.galactic.datumapis.com\"],\"resources\":[\"*\"],\"verbs\":[\"*"
    "\"]}]}";
static const char binding[] =
    "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"RoleBinding\",\"metadata\":{\"name\":\"" NAME
    "\"},\"roleRef\":"
    "{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"" NAME
    "\"},\"subjects\":[" SA("holdfast-agent") "," SA(
        "holdfast-foundation") ",{\"kind\":\"Group\",\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":"
                               "\"holdfast:operators\"}]}";
static const char review[] =
    "{\"apiVersion\":\"authorization.k8s.io/"
    "v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{\"namespace\":"
    "\"" ADM_NAMESPACE "\",\"group\":\"masque.galactic.datumapis.com\",\"resource\":\"connectorbindings\","
    "\"verb\":\"deletecollection\"}}}";

static int ask(struct adm_client *c, const char *method, const char *path, const char *body, long fine,
               struct base_err *err)
{
    struct adm_answer a;
    adm_request(c, ADM_ADMIN, method, path, NULL, body, &a);
    int rc = BASE_OK;
    if ((a.code < 200 || a.code > 299) && a.code != fine)
        rc = base_err_set(err, BASE_EIO, "%s %s: %ld %.200s", method, path, a.code, a.message);
    adm_answer_fini(&a);
    return rc;
}

int adm_set_wide(struct adm_client *c, bool on, struct base_err *err)
{
    int rc = on ? ask(c, "POST", ROLES, role, 409, err) : ask(c, "DELETE", BINDINGS "/" NAME, NULL, 404, err);
    if (!rc)
        rc = on ? ask(c, "POST", BINDINGS, binding, 409, err)
                : ask(c, "DELETE", ROLES "/" NAME, NULL, 404, err);
    for (int i = 0; i < 250 && !rc; i++) {
        int n = 0;
        static const enum adm_who who[] = {ADM_AGENT_A, ADM_FOUNDATION_A, ADM_OPERATOR};
        for (size_t k = 0; k < BASE_LEN(who); k++) {
            struct adm_answer a;
            adm_request(c, who[k], "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", NULL,
                        review, &a);
            const cJSON *status = cJSON_GetObjectItemCaseSensitive(a.body, "status");
            n += cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(status, "allowed")) == on;
            adm_answer_fini(&a);
        }
        if (n == (int)BASE_LEN(who))
            return BASE_OK;
        usleep(20000);
    }
    return rc ? rc : base_err_set(err, BASE_ETIMEDOUT, "the wide role does not act after 5 s");
}
