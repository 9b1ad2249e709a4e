/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_int.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define FILES_MAX 8

/* ---- files that are replaced */

struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
    bool there;
};
struct agent_files {
    struct loop_timer *timer;
    void (*fn)(void *arg);
    void *arg;
    unsigned n;
    const char *paths[FILES_MAX];
    struct stamp stamps[FILES_MAX];
};

static bool changed(struct stamp *s, const char *path)
{
    struct stat st;
    struct stamp now = {.there = false};
    bool differs;

    if (stat(path, &st) == 0)
        now = (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_mtim, true};
    differs = now.there != s->there || now.dev != s->dev || now.ino != s->ino || now.size != s->size ||
              now.mtime.tv_sec != s->mtime.tv_sec || now.mtime.tv_nsec != s->mtime.tv_nsec;
    *s = now;
    return differs && now.there; /* one that is gone is no news: what was loaded stays in use */
}

void agent_files_look(struct agent_files *f)
{
    bool any = false;

    for (unsigned i = 0; i < f->n; i++)
        any |= changed(&f->stamps[i], f->paths[i]);
    if (any)
        f->fn(f->arg);
    loop_timer_set(f->timer, base_time_add(loop_clock(), AGENT_FILES_EVERY));
}

static void on_timer(void *arg)
{
    agent_files_look(arg);
}

int agent_files_new(struct agent_files **ret, struct loop *l, const char *const *paths, unsigned n,
                    void (*fn)(void *arg), void *arg, struct base_err *err)
{
    struct agent_files *f = base_calloc(1, sizeof *f);
    int rc;

    if (!f)
        return base_err_set(err, BASE_ENOMEM, "agent: no memory");
    f->fn = fn;
    f->arg = arg;
    for (; f->n < n && f->n < FILES_MAX; f->n++) {
        f->paths[f->n] = paths[f->n];
        (void)changed(&f->stamps[f->n], paths[f->n]);
    }
    rc = loop_timer_new(&f->timer, l, on_timer, f, err);
    if (rc) {
        base_free(f);
        return rc;
    }
    loop_timer_set(f->timer, base_time_add(loop_clock(), AGENT_FILES_EVERY));
    *ret = f;
    return BASE_OK;
}

struct agent_files *agent_files_free(struct agent_files *f)
{
    if (!f)
        return NULL;
    loop_timer_free(f->timer);
    return base_free(f);
}

int64_t agent_tls_expiry(const char *cert_file)
{
    FILE *f = fopen(cert_file, "re");
    X509 *x = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
    struct tm tm;
    int64_t end = 0;

    if (x && ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) == 1)
        end = (int64_t)timegm(&tm);
    X509_free(x);
    if (f)
        (void)fclose(f);
    return end;
}

/* ---- what differs */

static void write_value(char *dst, size_t size, const struct agent_option *o, const struct agent_config *c)
{
    const char *at = (const char *)c + o->offset, *choice = o->choices;
    int64_t n;

    if (o->size) {
        (void)base_fmt(dst, size, "%s", at);
        return;
    }
    memcpy(&n, at, sizeof n);
    if (o->type != AGENT_OPT_ENUM) {
        (void)base_fmt(dst, size, "%lld", (long long)n);
        return;
    }
    for (; n > 0 && choice; n--) {
        choice = strchr(choice, '|');
        choice = choice ? choice + 1 : NULL;
    }
    (void)base_fmt(dst, size, "%.*s", choice ? (int)strcspn(choice, "|") : 0, choice ? choice : "");
}

void agent_config_diff(const struct agent_config *from, const struct agent_config *to, agent_diff_fn fn,
                       void *arg)
{
    char a[AGENT_PATH_SIZE], b[AGENT_PATH_SIZE];

    for (size_t i = 0; i < agent_options_n; i++) {
        write_value(a, sizeof a, &agent_options[i], from);
        write_value(b, sizeof b, &agent_options[i], to);
        if (strcmp(a, b) != 0)
            fn(arg, &agent_options[i], a, b);
    }
}

/* ---- SIGHUP */

struct report {
    struct agent *a;
    const struct agent_config *fresh;
    unsigned applied, left;
};

static void on_difference(void *arg, const struct agent_option *o, const char *from, const char *to)
{
    struct report *r = arg;
    struct agent_config *cfg = &r->a->cfg;
    const char *effect = "needs a restart of this agent";
    bool apply = o->reloadable;

    if (o->offset == offsetof(struct agent_config, max_connections) &&
        r->fresh->max_connections > r->a->connections_at_start) {
        effect = "needs a restart of this agent: memory was taken for fewer when it started";
        apply = false;
    }
    if (apply) {
        memcpy((char *)cfg + o->offset, (const char *)r->fresh + o->offset, sizeof(int64_t));
        effect = "applied";
    }
    r->applied += apply;
    r->left += !apply;
    loop_log(r->a->log, apply ? LOOP_INFO : LOOP_WARN, "config_changed", "an option has another value now",
             LOG_STR("option", o->path), LOG_STR("from", from), LOG_STR("to", to), LOG_STR("effect", effect));
}

static const char *environment(const char *name)
{
    return getenv(name);
}

void agent_reload_late(struct agent *a)
{
    loop_log(a->log, LOOP_WARN, "reload_late",
             "a data thread takes no orders now; it reads what is new as soon as it does", LOG_END);
    agent_retry_later(a);
}

static void reload_config(struct agent *a)
{
    struct agent_config fresh = a->cfg;
    struct report r = {.a = a, .fresh = &fresh};
    struct masque_h3_limits limits;
    struct contract_timing timing;
    struct base_err err = {0};
    int rc = agent_config_load(&fresh, a->cfg.file, environment, &err);

    if (!rc)
        rc = agent_config_timing(&fresh, &timing, &err);
    if (!rc)
        rc = agent_config_policy(&fresh, &err);
    if (rc) {
        a->n.reloads[1]++;
        loop_log(a->log, LOOP_ERROR, "config_refused", "the configuration is wrong; nothing of it is used",
                 LOG_STR("err", err.msg));
        return;
    }
    if (a->cfg.format_forced)
        fresh.log_json = a->cfg.log_json;
    agent_config_diff(&a->cfg, &fresh, on_difference, &r);
    a->n.reloads[0]++;
    loop_log_level(a->log, (enum loop_level)a->cfg.log_level);
    limits = agent_limits(&a->cfg);
    if (agent_data_limits(a->data, &limits))
        agent_reload_late(a);
    loop_log(a->log, LOOP_INFO, "config_reloaded", "the configuration was read again",
             LOG_STR("file", a->cfg.file[0] ? a->cfg.file : "defaults"), LOG_INT("applied", r.applied),
             LOG_INT("needRestart", r.left));
}

void agent_reload(struct agent *a)
{
    a->tls_expiry = agent_tls_expiry(a->cfg.tls_cert);
    if (agent_data_reload(a->data))
        agent_reload_late(a);
    kube_client_reread(a->client);
    reload_config(a);
}
