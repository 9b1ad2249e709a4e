/* SPDX-License-Identifier: Apache-2.0 */
#include "admission.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BODY_MAX (4u << 20)

struct adm_client {
    const struct adm_lab *lab;
    CURL *easy[ADM_WHO_N]; /* one kept-alive connection for each identity */
};

static const struct {
    const char *word;  /* in scenario files */
    const char *token; /* file in DIR/tokens; NULL = client certificate */
    const char *cert;  /* name in DIR/pki */
} who_table[ADM_WHO_N] = {
    [ADM_ADMIN] = {"admin", NULL, "admin"},
    [ADM_AGENT_A] = {"a", "agent-edge1", NULL},
    [ADM_AGENT_B] = {"b", "agent-edge2", NULL},
    [ADM_FOUNDATION_A] = {"fa", "foundation-edge1", NULL},
    [ADM_FOUNDATION_B] = {"fb", "foundation-edge2", NULL},
    [ADM_NOPOD] = {"np", "nopod", NULL},
    [ADM_NOPOD_FOUNDATION] = {"npf", "nopod-foundation", NULL},
    [ADM_AUTHORITY] = {"auth", "authority", NULL},
    [ADM_OPERATOR] = {"op", NULL, "operator"},
};

int adm_who_of(struct base_str word)
{
    for (int i = 0; i < ADM_WHO_N; i++)
        if (base_str_eqz(word, who_table[i].word))
            return i;
    return -1;
}

const char *adm_who_name(enum adm_who who)
{
    return who_table[who].word;
}

void adm_answer_fini(struct adm_answer *a)
{
    cJSON_Delete(a->body);
    a->body = NULL;
}

struct adm_client *adm_client_new(const struct adm_lab *lab)
{
    struct adm_client *c = base_calloc(1, sizeof *c);
    if (c)
        c->lab = lab;
    return c;
}

struct adm_client *adm_client_free(struct adm_client *c)
{
    if (!c)
        return NULL;
    for (int i = 0; i < ADM_WHO_N; i++)
        curl_easy_cleanup(c->easy[i]);
    return base_free(c);
}

static size_t on_body(char *p, size_t size, size_t n, void *user)
{
    return base_buf_add(user, p, size * n) == BASE_OK ? size * n : 0;
}

static CURL *easy_of(struct adm_client *c, enum adm_who who)
{
    if (c->easy[who])
        return c->easy[who];
    CURL *e = curl_easy_init();
    if (!e)
        return NULL;
    char path[512];
    base_fmt(path, sizeof path, "%s/ca.crt", c->lab->dir);
    curl_easy_setopt(e, CURLOPT_CAINFO, path);
    if (who_table[who].cert) {
        base_fmt(path, sizeof path, "%s/pki/%s.crt", c->lab->dir, who_table[who].cert);
        curl_easy_setopt(e, CURLOPT_SSLCERT, path);
        base_fmt(path, sizeof path, "%s/pki/%s.key", c->lab->dir, who_table[who].cert);
        curl_easy_setopt(e, CURLOPT_SSLKEY, path);
    }
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, 30000L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(e, CURLOPT_USERAGENT, "holdfast-admission-test");
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    c->easy[who] = e;
    return e;
}

static void copy_text(char *dst, size_t size, const cJSON *v)
{
    if (cJSON_IsString(v))
        base_fmt(dst, size, "%s", v->valuestring);
}

static void one_request(struct adm_client *c, enum adm_who who, const char *method, const char *path,
                        const char *content_type, const char *body, struct adm_answer *ret)
{
    memset(ret, 0, sizeof *ret);
    CURL *e = easy_of(c, who);
    if (!e) {
        base_fmt(ret->message, sizeof ret->message, "no memory");
        return;
    }
    struct base_buf in;
    base_buf_init(&in, BODY_MAX);
    char url[1024], text[4096];
    struct curl_slist *headers = NULL;
    if (who_table[who].token) {
        base_fmt(text, sizeof text, "Authorization: Bearer %s", c->lab->token[who]);
        headers = curl_slist_append(headers, text);
    }
    base_fmt(text, sizeof text, "Content-Type: %s", content_type ? content_type : "application/json");
    headers = curl_slist_append(headers, text);
    headers = curl_slist_append(headers, "Expect:");
    base_fmt(url, sizeof url, "%s%s", c->lab->url, path);
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, &in);
    if (body) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
        curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, body);
    } else {
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
    CURLcode rc = curl_easy_perform(e);
    if (rc != CURLE_OK) {
        base_fmt(ret->message, sizeof ret->message, "no answer: %s", curl_easy_strerror(rc));
    } else {
        curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &ret->code);
        if (in.len > 0)
            ret->body = cJSON_ParseWithLength(in.data, in.len);
        if (ret->code >= 400 && ret->body) {
            copy_text(ret->reason, sizeof ret->reason, cJSON_GetObjectItemCaseSensitive(ret->body, "reason"));
            copy_text(ret->message, sizeof ret->message,
                      cJSON_GetObjectItemCaseSensitive(ret->body, "message"));
        } else if (ret->code >= 400) {
            base_fmt(ret->message, sizeof ret->message, "%.*s", (int)(in.len < 400 ? in.len : 400),
                     in.len ? in.data : "");
        }
    }
    curl_slist_free_all(headers);
    base_buf_fini(&in);
}

void adm_request(struct adm_client *c, enum adm_who who, const char *method, const char *path,
                 const char *content_type, const char *body, struct adm_answer *ret)
{
    /* A collection answers 429 for less than 0.1 s after a change of its CRD. */
    for (int i = 0; i < 50; i++) {
        one_request(c, who, method, path, content_type, body, ret);
        if (ret->code != 429)
            return;
        if (i < 49)
            adm_answer_fini(ret);
        usleep(50000);
    }
}

static char *read_token(const char *dir, const char *name, struct base_err *err)
{
    char path[512], text[4096];
    base_fmt(path, sizeof path, "%s/tokens/%s", dir, name);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] == '\0') {
        base_err_set(err, BASE_EINVAL, "%s: no token there; run nodes.sh %s edge1 edge2 first", path, dir);
        return NULL;
    }
    return base_strdup(text);
}

int adm_lab_load(struct adm_lab *lab, const char *url, const char *dir, struct base_err *err)
{
    memset(lab, 0, sizeof *lab);
    if (base_copy(lab->url, sizeof lab->url, url) || base_copy(lab->dir, sizeof lab->dir, dir))
        return base_err_set(err, BASE_EINVAL, "address or folder is too long");
    for (int i = 0; i < ADM_WHO_N; i++)
        if (who_table[i].token && !(lab->token[i] = read_token(dir, who_table[i].token, err)))
            return BASE_EINVAL;
    struct adm_client *c = adm_client_new(lab);
    int rc = c ? BASE_OK : base_err_set(err, BASE_ENOMEM, "no memory");
    for (int i = 0; i < 2 && !rc; i++) {
        struct adm_answer a;
        adm_request(c, ADM_ADMIN, "GET", i ? "/api/v1/nodes/edge2" : "/api/v1/nodes/edge1", NULL, NULL, &a);
        const cJSON *meta = cJSON_GetObjectItemCaseSensitive(a.body, "metadata");
        copy_text(lab->node_uid[i], sizeof lab->node_uid[i], cJSON_GetObjectItemCaseSensitive(meta, "uid"));
        if (a.code != 200 || lab->node_uid[i][0] == '\0')
            rc = base_err_set(err, BASE_EINVAL, "node edge%d: %ld %s (run nodes.sh first)", i + 1, a.code,
                              a.message);
        adm_answer_fini(&a);
    }
    adm_client_free(c);
    return rc;
}

void adm_lab_fini(struct adm_lab *lab)
{
    for (int i = 0; i < ADM_WHO_N; i++)
        lab->token[i] = base_free(lab->token[i]);
}
