/* SPDX-License-Identifier: Apache-2.0
 *
 * preflight_facts.c - what preflight.c judges by: permissions, files, answers.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>

#include "agent/preflight.h"
#include "agent/preflight_int.h"
#include "base/mem.h"

/* manifests/rbac/agent.yaml and agent-reviews.yaml; a test compares. */
#define EDGE(resource, verb)                                                                                 \
    {                                                                                                        \
        CONTRACT_GROUP, resource, "", verb, AGENT_PERMIT_ALWAYS                                              \
    }
#define EDGE_ALL(resource)                                                                                   \
    EDGE(resource, "get"), EDGE(resource, "list"), EDGE(resource, "watch"), EDGE(resource, "create"),        \
        EDGE(resource, "update"), EDGE(resource, "patch")
#define MASQUE(sub, verb)                                                                                    \
    {                                                                                                        \
        CONTRACT_MASQUE_GROUP, "connectorbindings", sub, verb, AGENT_PERMIT_ALWAYS                           \
    }
const struct agent_permission agent_permissions[] = {
    EDGE_ALL("providerinstances"),
    EDGE_ALL("hostattachments"),
    EDGE_ALL("routeclaims"),
    EDGE("hostattachments", "delete"),
    EDGE("providerservices", "get"),
    EDGE("providerservices", "list"),
    EDGE("providerservices", "watch"),
    MASQUE("", "get"),
    MASQUE("", "list"),
    MASQUE("", "watch"),
    MASQUE("status", "get"),
    MASQUE("status", "update"),
    MASQUE("status", "patch"),
    {"events.k8s.io", "events", "", "create", AGENT_PERMIT_EVENTS},
    {"events.k8s.io", "events", "", "patch", AGENT_PERMIT_EVENTS},
    {"authentication.k8s.io", "tokenreviews", "", "create", AGENT_PERMIT_REVIEWS},
    {"authorization.k8s.io", "subjectaccessreviews", "", "create", AGENT_PERMIT_REVIEWS},
};
const size_t agent_permissions_n = BASE_LEN(agent_permissions);

bool agent_preflight_skew(struct base_str review, base_wall sent, base_wall got, double *ret)
{
    cJSON *doc = cJSON_ParseWithLength(review.ptr, review.len);
    const char *stamp = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(doc, "metadata"), "creationTimestamp"));
    base_wall at = 0;
    bool there = stamp && base_rfc3339_parse(base_str_of(stamp), &at) == 0;

    cJSON_Delete(doc);
    if (!there)
        return false;
    /* The stamp is in whole seconds, and lies between the two moments if the clocks agree. */
    if (at + 1000000 < sent)
        *ret = (double)(at + 1000000 - sent) / 1e6;
    else if (at > got)
        *ret = (double)(at - got) / 1e6;
    else
        *ret = 0;
    return true;
}

int agent_preflight_fence(int status, struct base_str body, struct base_err *err)
{
    static const char mark[] = "ValidatingAdmissionPolicy 'holdfast-agent-writes'";

    if (status == 403 && body.len && memmem(body.ptr, body.len, mark, sizeof mark - 1))
        return BASE_OK;
    if (status == 201)
        return base_err_set(
            err, BASE_EINVAL,
            "an object of another node would be taken: the admission policies do not act; apply "
            "manifests/admission (chart: admission.enabled)");
    return base_err_set(
        err, BASE_EINVAL,
        "the dry run was answered with %d instead of a refusal by holdfast-agent-writes; mend what is above "
        "first",
        status);
}

/* ---- TLS files */

static int no_file(const char *option, const char *path, struct base_err *err)
{
    return base_err_sys(err, BASE_EINVAL, errno, "%s: cannot read %s; mount the Secret", option, path);
}

static int read_cert(const char *option, const char *path, X509 **ret, struct base_err *err)
{
    FILE *f = fopen(path, "re");

    if (!f)
        return no_file(option, path, err);
    *ret = PEM_read_X509(f, NULL, NULL, NULL);
    (void)fclose(f);
    return *ret ? BASE_OK
                : base_err_set(err, BASE_EINVAL, "%s: %s holds no PEM certificate ('-----BEGIN CERTIFICATE')",
                               option, path);
}

static int in_time(const char *option, const char *path, const X509 *x, struct base_err *err)
{
    if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0)
        return base_err_set(err, BASE_EINVAL, "%s: %s is not valid yet; is the clock right?", option, path);
    if (X509_cmp_current_time(X509_get0_notAfter(x)) < 0)
        return base_err_set(err, BASE_EINVAL, "%s: %s has expired; renew it", option, path);
    return BASE_OK;
}

static int read_key(const struct agent_config *cfg, const X509 *x, struct base_err *err)
{
    FILE *f = fopen(cfg->tls_key, "re");
    EVP_PKEY *key;
    int rc = BASE_OK;

    if (!f)
        return no_file("tls.keyFile", cfg->tls_key, err);
    key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
    (void)fclose(f);
    if (!key)
        rc = base_err_set(err, BASE_EINVAL, "tls.keyFile: %s holds no PEM private key without a passphrase",
                          cfg->tls_key);
    else if (X509_check_private_key(x, key) != 1)
        rc = base_err_set(err, BASE_EINVAL, "tls.keyFile: %s does not belong to the certificate %s",
                          cfg->tls_key, cfg->tls_cert);
    EVP_PKEY_free(key);
    return rc;
}

int agent_preflight_tls(const struct agent_config *cfg, struct base_err *err)
{
    X509 *leaf = NULL, *ca = NULL;
    int rc = read_cert("tls.certFile", cfg->tls_cert, &leaf, err);

    if (!rc)
        rc = in_time("tls.certFile", cfg->tls_cert, leaf, err);
    if (!rc)
        rc = read_key(cfg, leaf, err);
    if (!rc)
        rc = read_cert("tls.clientCAFile", cfg->tls_client_ca, &ca, err);
    if (!rc)
        rc = in_time("tls.clientCAFile", cfg->tls_client_ca, ca, err);
    X509_free(leaf);
    X509_free(ca);
    ERR_clear_error();
    return rc;
}
