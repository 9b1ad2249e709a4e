/* SPDX-License-Identifier: Apache-2.0
 *
 * creds.c - tokens and certificates are replaced on disk while we run; the last good ones stay in use until
 * then.
 */
#include <string.h>

#include "kube_int.h"
#include "loop/log.h"
#include "loop/loop.h"

void kube_creds_init(struct kube_creds *cr, struct kube_config *c, struct loop_log *log, base_time now)
{
    *cr = (struct kube_creds){.c = c, .log = log, .next_read = base_time_add(now, KUBE_REREAD), .gen = 1};
}

void kube_creds_fini(struct kube_creds *cr)
{
    cr->c = kube_config_free(cr->c);
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void complain(struct kube_creds *cr, const char *path, const struct base_err *err)
{
    loop_log(cr->log, LOOP_WARN, "kube_credentials", "cannot be read again; the last good ones stay in use",
             LOG_STR("path", path), LOG_STR("err", err->msg), LOG_END);
}

/* The new content when it is good and another one, else NULL. */
static char *reread(struct kube_creds *cr, const char *path, size_t max, const char *old,
                    int (*check)(char *text, struct base_err *err), bool *ok)
{
    struct base_err err = {0};
    char *text = NULL;
    size_t len = 0;
    int rc = kube_file_read(&text, &len, path, max, &err);

    if (rc == BASE_OK)
        rc = check(text, &err);
    if (rc != BASE_OK) {
        complain(cr, path, &err);
        *ok = false;
        return kube_wipe(text);
    }
    return same(text, old) ? kube_wipe(text) : text;
}

static int check_ca(char *pem, struct base_err *err)
{
    return kube_pem_ca(pem, err);
}

static int check_any(char *text, struct base_err *err)
{
    return BASE_OK;
}

static void replace(struct kube_creds *cr, char **dst, char *text)
{
    kube_wipe(*dst);
    *dst = text;
    cr->gen++;
}

static void reread_pair(struct kube_creds *cr, bool *ok)
{
    struct kube_config *c = cr->c;
    struct base_err err = {0};
    char *cert = c->cert_file ? reread(cr, c->cert_file, KUBE_FILE_MAX, c->cert, check_any, ok) : NULL;
    char *key = c->key_file ? reread(cr, c->key_file, KUBE_FILE_MAX, c->key, check_any, ok) : NULL;

    if (!cert && !key)
        return;
    /* Between the two files' replacement they do not belong together: wait for the other one. */
    if (kube_pem_pair(cert ? cert : c->cert, key ? key : c->key, &err) != BASE_OK) {
        complain(cr, cert ? c->cert_file : c->key_file, &err);
        *ok = false;
        kube_wipe(cert);
        kube_wipe(key);
        return;
    }
    if (cert)
        replace(cr, &c->cert, cert);
    if (key)
        replace(cr, &c->key, key);
    loop_log(cr->log, LOOP_INFO, "kube_credentials", "client certificate was replaced",
             LOG_STR("path", c->cert_file ? c->cert_file : c->key_file), LOG_END);
}

/* The plug-in once more when its credentials are over, or were refused. */
static void rerun(struct kube_creds *cr, bool force)
{
    struct kube_config *c = cr->c;
    struct base_err err = {0};

    if (!force && (!c->until || loop_wall() < c->until))
        return;
    if (kube_exec_run(c, &err) == BASE_OK)
        cr->gen++;
    else
        loop_log(cr->log, LOOP_WARN, "kube_credentials",
                 "the exec plug-in gave none; the last ones stay in use", LOG_STR("err", err.msg), LOG_END);
}

void kube_creds_refresh(struct kube_creds *cr, base_time now, bool force)
{
    struct kube_config *c = cr->c;
    bool ok = true;
    char *text;

    if (c->exec)
        rerun(cr, force);
    if (!c->token_file && !c->cert_file && !c->key_file && !c->ca_file)
        return;
    if (!force && now < cr->next_read)
        return;
    if (c->token_file &&
        (text = reread(cr, c->token_file, KUBE_TOKEN_MAX, c->token, kube_token_clean, &ok))) {
        replace(cr, &c->token, text);
        loop_log(cr->log, LOOP_INFO, "kube_credentials", "token was replaced", LOG_STR("path", c->token_file),
                 LOG_END);
    }
    if (c->ca_file && (text = reread(cr, c->ca_file, KUBE_FILE_MAX, c->ca, check_ca, &ok))) {
        replace(cr, &c->ca, text);
        loop_log(cr->log, LOOP_INFO, "kube_credentials", "CA was replaced", LOG_STR("path", c->ca_file),
                 LOG_END);
    }
    if (c->cert_file || c->key_file)
        reread_pair(cr, &ok);
    cr->next_read = base_time_add(now, ok ? KUBE_REREAD : KUBE_RETRY);
}
