/* SPDX-License-Identifier: Apache-2.0
 *
 * config.c - where the API server is and who we are: kubeconfig files, merged as kubectl does, or a pod's own
 * files.
 *
 * Merging: an entry (cluster, user, context) comes whole from the first file that has its name;
 * current-context from the first file that sets it. A relative path is relative to the file that names it.
 * Data wins over a file of the same kind; tokenFile wins over token.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube_int.h"

#define FILES_MAX 16

struct doc {
    char *path, *text;
    struct base_arena *arena;
    struct kube_ynode *root;
};
struct docs {
    struct doc d[FILES_MAX];
    unsigned n;
};

static void docs_fini(struct docs *ds)
{
    for (unsigned i = 0; i < ds->n; i++) {
        base_free(ds->d[i].path);
        kube_wipe(ds->d[i].text);
        base_arena_free(ds->d[i].arena);
    }
    ds->n = 0;
}

static int doc_read(struct docs *ds, const char *path, struct base_err *err)
{
    struct doc d = {0};
    size_t len = 0;
    int rc;

    if (ds->n == FILES_MAX)
        return base_err_set(err, BASE_EINVAL, "KUBECONFIG names more than %d files", FILES_MAX);
    rc = kube_file_read(&d.text, &len, path, KUBE_FILE_MAX, err);
    if (rc != BASE_OK)
        return rc;
    d.path = base_strdup(path);
    d.arena = base_arena_new(16 * KUBE_FILE_MAX);
    if (!d.path || !d.arena)
        rc = base_err_set(err, BASE_ENOMEM, "no memory");
    if (rc == BASE_OK)
        rc = kube_yaml_parse(&d.root, d.arena, (struct base_str){d.text, len}, err);
    if (rc == BASE_OK && d.root->kind != KUBE_Y_NULL && d.root->kind != KUBE_Y_MAP)
        rc = base_err_set(err, BASE_EINVAL, "line %u: this is no kubeconfig; it must be a map", d.root->line);
    if (rc == BASE_OK) {
        const struct kube_ynode *kind = kube_yaml_get(d.root, "kind");

        if (kind && (kind->kind != KUBE_Y_SCALAR || strcmp(kind->text, "Config") != 0))
            rc = base_err_set(err, BASE_EINVAL, "line %u: kind must be Config", kind->line);
    }
    ds->d[ds->n++] = d; /* released with the others, also after a failure */
    if (rc != BASE_OK)
        base_err_wrap(err, "kubeconfig %.200s", path);
    return rc;
}

/* ---- looking things up */
/* One entry of a list of named things: the map behind `inner`, and where it stands. */
struct entry {
    const struct doc *d;
    const struct kube_ynode *map;
    const char *what, *name;
};

static int bad(const struct doc *d, const struct kube_ynode *n, struct base_err *err, const char *text)
{
    return base_err_set(err, BASE_EINVAL, "kubeconfig %.160s: line %u: %s", d->path, n->line, text);
}

static int find(const struct docs *ds, const char *list, const char *inner, const char *name,
                struct entry *ret, struct base_err *err)
{
    for (unsigned i = 0; i < ds->n; i++) {
        const struct kube_ynode *l = kube_yaml_get(ds->d[i].root, list);
        bool found = false;

        if (l && l->kind != KUBE_Y_LIST)
            return bad(&ds->d[i], l, err, "clusters, users and contexts must be lists");
        for (const struct kube_ynode *e = l ? l->first : NULL; e; e = e->next) {
            const struct kube_ynode *n = kube_yaml_get(e, "name"), *m = kube_yaml_get(e, inner);

            if (!n || n->kind != KUBE_Y_SCALAR || (m && m->kind != KUBE_Y_MAP))
                return bad(&ds->d[i], e, err, "each entry needs a name and a map beside it");
            if (strcmp(n->text, name) != 0)
                continue;
            if (found)
                return bad(&ds->d[i], n, err, "two entries of one list have this name");
            found = true;
            *ret = (struct entry){&ds->d[i], m, inner, name};
        }
        if (found)
            return BASE_OK;
    }
    return base_err_set(err, BASE_EINVAL, "kubeconfig: there is no %s named \"%.100s\"", inner, name);
}

/* A text field; *ret NULL when it is absent. */
static int text_field(const struct entry *e, const char *key, const char **ret, struct base_err *err)
{
    const struct kube_ynode *n = kube_yaml_get(e->map, key);

    *ret = NULL;
    if (!n)
        return BASE_OK;
    if (n->kind != KUBE_Y_SCALAR)
        return base_err_set(err, BASE_EINVAL, "kubeconfig %.160s: line %u: %s \"%.60s\": %s must be text",
                            e->d->path, n->line, e->what, e->name, key);
    if (n->text[0])
        *ret = n->text;
    return BASE_OK;
}

static int take(char **dst, const char *z, struct base_err *err)
{
    if (!z)
        return BASE_OK;
    *dst = base_strdup(z);
    return *dst ? BASE_OK : base_err_set(err, BASE_ENOMEM, "no memory");
}

static int copy_field(const struct entry *e, const char *key, char **dst, struct base_err *err)
{
    const char *z;
    int rc = text_field(e, key, &z, err);

    return rc != BASE_OK ? rc : take(dst, z, err);
}

/* A path, absolute or relative to the kubeconfig that names it. */
static int path_field(const struct entry *e, const char *key, char **dst, struct base_err *err)
{
    char full[PATH_MAX];
    const char *z, *slash;
    int rc = text_field(e, key, &z, err);

    if (rc != BASE_OK || !z || z[0] == '/')
        return rc != BASE_OK ? rc : take(dst, z, err);
    slash = strrchr(e->d->path, '/');
    if (!base_fmt(full, sizeof full, "%.*s%s", slash ? (int)(slash - e->d->path) + 1 : 0, e->d->path, z))
        return base_err_set(err, BASE_EINVAL, "kubeconfig %.160s: %s is too long", e->d->path, key);
    return take(dst, full, err);
}

static int data_field(const struct entry *e, const char *key, char **dst, struct base_err *err)
{
    const char *z;
    size_t len = 0;
    int rc = text_field(e, key, &z, err);

    if (rc != BASE_OK || !z)
        return rc;
    rc = kube_base64(dst, &len, base_str_of(z));
    if (rc == BASE_OK && strlen(*dst) != len) {
        *dst = kube_wipe(*dst);
        rc = BASE_EINVAL;
    }
    if (rc == BASE_EINVAL)
        return base_err_set(err, rc, "kubeconfig %.160s: %s \"%.60s\": %s is not base64 of a PEM text",
                            e->d->path, e->what, e->name, key);
    return rc == BASE_OK ? rc : base_err_set(err, rc, "no memory");
}

/* Fields that would change who we are or what is checked; ignoring them would be worse than stopping. */
static int refuse(const struct entry *e, const char *key, const char *remedy, struct base_err *err)
{
    const struct kube_ynode *n = kube_yaml_get(e->map, key);

    if (!n || (n->kind == KUBE_Y_SCALAR && n->plain && strcmp(n->text, "false") == 0))
        return BASE_OK;
    return base_err_set(err, BASE_EINVAL, "kubeconfig %.160s: line %u: %s \"%.60s\": %s is not supported: %s",
                        e->d->path, n->line, e->what, e->name, key, remedy);
}

static int read_cluster(struct kube_config *c, const struct entry *e, struct base_err *err)
{
    int rc = refuse(e, "insecure-skip-tls-verify",
                    "TLS is always verified; give certificate-authority or "
                    "certificate-authority-data",
                    err);

    if (rc == BASE_OK)
        rc = copy_field(e, "server", &c->server, err);
    if (rc == BASE_OK && !c->server)
        rc = base_err_set(err, BASE_EINVAL,
                          "kubeconfig %.160s: cluster \"%.60s\": server is missing; give https://host:port",
                          e->d->path, e->name);
    if (rc == BASE_OK)
        rc = data_field(e, "certificate-authority-data", &c->ca, err);
    if (rc == BASE_OK && !c->ca)
        rc = path_field(e, "certificate-authority", &c->ca_file, err);
    if (rc == BASE_OK)
        rc = copy_field(e, "tls-server-name", &c->tls_server_name, err);
    if (rc == BASE_OK)
        rc = copy_field(e, "proxy-url", &c->proxy, err);
    return rc;
}

static int read_exec(struct kube_config *c, const struct entry *e, const struct entry *cluster,
                     struct base_err *err)
{
    const struct kube_ynode *exec = kube_yaml_get(e->map, "exec");
    int rc;

    if (!exec)
        return BASE_OK;
    if (kube_yaml_get(e->map, "token") || kube_yaml_get(e->map, "tokenFile"))
        return base_err_set(err, BASE_EINVAL,
                            "kubeconfig %.160s: line %u: user \"%.60s\": exec beside a token; leave one out",
                            e->d->path, exec->line, e->name);
    rc = kube_exec_read(&c->exec, exec, cluster->map, e->d->path, err);
    return rc == BASE_OK ? rc : base_err_wrap(err, "kubeconfig %.160s: user \"%.60s\"", e->d->path, e->name);
}

/* `cluster` NULL: no exec plug-in. */
static int read_user(struct kube_config *c, const struct entry *e, const struct entry *cluster,
                     struct base_err *err)
{
    static const char use[] = "use a token, a tokenFile or a client certificate";
    static const char *const other[] = {"auth-provider", "username", "password"};
    static const char *const as[] = {"as", "as-uid", "as-groups", "as-user-extra"};
    int rc = cluster ? read_exec(c, e, cluster, err) : refuse(e, "exec", use, err);

    for (unsigned i = 0; rc == BASE_OK && i < BASE_LEN(other); i++)
        rc = refuse(e, other[i], use, err);
    for (unsigned i = 0; rc == BASE_OK && i < BASE_LEN(as); i++)
        rc = refuse(e, as[i], "use credentials of the identity itself", err);
    if (rc == BASE_OK)
        rc = data_field(e, "client-certificate-data", &c->cert, err);
    if (rc == BASE_OK && !c->cert)
        rc = path_field(e, "client-certificate", &c->cert_file, err);
    if (rc == BASE_OK)
        rc = data_field(e, "client-key-data", &c->key, err);
    if (rc == BASE_OK && !c->key)
        rc = path_field(e, "client-key", &c->key_file, err);
    if (rc == BASE_OK)
        rc = copy_field(e, "token", &c->token, err);
    if (rc == BASE_OK)
        rc = path_field(e, "tokenFile", &c->token_file, err);
    return rc;
}

static int from_docs(struct kube_config *c, const struct docs *ds, const char *context, bool person,
                     struct base_err *err)
{
    struct entry e = {0}, at = {0};
    const char *cluster = NULL, *user = NULL;
    int rc = BASE_OK;

    for (unsigned i = 0; !context && i < ds->n; i++) {
        const struct kube_ynode *n = kube_yaml_get(ds->d[i].root, "current-context");

        if (n && n->kind != KUBE_Y_SCALAR)
            return bad(&ds->d[i], n, err, "current-context must be text");
        if (n && n->text[0])
            context = n->text;
    }
    if (!context)
        return base_err_set(err, BASE_EINVAL,
                            "kubeconfig %.160s: current-context is missing; set it or name a context",
                            ds->d[0].path);
    rc = find(ds, "contexts", "context", context, &e, err);
    if (rc == BASE_OK)
        rc = text_field(&e, "cluster", &cluster, err);
    if (rc == BASE_OK)
        rc = text_field(&e, "user", &user, err);
    if (rc == BASE_OK)
        rc = copy_field(&e, "namespace", &c->ns, err);
    if (rc == BASE_OK && !cluster)
        rc = base_err_set(err, BASE_EINVAL, "kubeconfig: context \"%.100s\": cluster is missing", context);
    if (rc == BASE_OK)
        rc = find(ds, "clusters", "cluster", cluster, &at, err);
    if (rc == BASE_OK)
        rc = read_cluster(c, &at, err);
    if (rc == BASE_OK && user) {
        rc = find(ds, "users", "user", user, &e, err);
        if (rc == BASE_OK)
            rc = read_user(c, &e, person ? &at : NULL, err);
    }
    return rc;
}

/* ---- the whole */
static int read_pem(char **dst, const char *path, const char *field, struct base_err *err)
{
    size_t len = 0;
    int rc;

    if (!path || *dst)
        return BASE_OK;
    rc = kube_file_read(dst, &len, path, KUBE_FILE_MAX, err);
    return rc == BASE_OK ? rc : base_err_wrap(err, "%s", field);
}

int kube_config_finish(struct kube_config *c, struct base_err *err)
{
    struct kube_url u;
    char hostport[300], full[900];
    int rc = kube_url_parse(&u, c->server, err);

    if (rc != BASE_OK)
        return rc;
    kube_url_hostport(hostport, sizeof hostport, &u);
    base_fmt(full, sizeof full, "https://%s%s", hostport, u.prefix);
    base_free(c->server);
    c->server = base_strdup(full);
    if (!c->ns)
        c->ns = base_strdup("");
    if (!c->server || !c->ns)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    if (c->ns[0] && !base_is_label(base_str_of(c->ns), 63))
        return base_err_set(err, BASE_EINVAL, "namespace \"%.80s\" is no name of a namespace", c->ns);
    if (c->tls_server_name && !base_is_subdomain(base_str_of(c->tls_server_name), 253))
        return base_err_set(err, BASE_EINVAL, "tls-server-name \"%.80s\" is no DNS name", c->tls_server_name);
    if (c->proxy && strncmp(c->proxy, "http://", 7) != 0 && strncmp(c->proxy, "https://", 8) != 0 &&
        strncmp(c->proxy, "socks5://", 9) != 0)
        return base_err_set(err, BASE_EINVAL, "proxy-url must begin with http://, https:// or socks5://");
    rc = read_pem(&c->ca, c->ca_file, "certificate-authority", err);
    if (rc == BASE_OK && c->ca && (rc = kube_pem_ca(c->ca, err)) != BASE_OK)
        base_err_wrap(err, "certificate-authority%s%.200s", c->ca_file ? " " : "-data",
                      c->ca_file ? c->ca_file : "");
    if (rc == BASE_OK)
        rc = read_pem(&c->cert, c->cert_file, "client-certificate", err);
    if (rc == BASE_OK)
        rc = read_pem(&c->key, c->key_file, "client-key", err);
    if (rc == BASE_OK && !c->cert != !c->key)
        rc = base_err_set(err, BASE_EINVAL, "%s is given without %s; give both or none",
                          c->cert ? "client-certificate" : "client-key",
                          c->cert ? "client-key" : "client-certificate");
    if (rc == BASE_OK && c->cert)
        rc = kube_pem_pair(c->cert, c->key, err);
    if (rc == BASE_OK && c->token && strlen(c->token) > KUBE_TOKEN_MAX)
        rc = base_err_set(err, BASE_EINVAL, "token: longer than %zu bytes", KUBE_TOKEN_MAX);
    if (rc == BASE_OK && c->token && (rc = kube_token_clean(c->token, err)) != BASE_OK)
        base_err_wrap(err, "token");
    if (rc == BASE_OK && c->token_file) {
        char *token = NULL;
        size_t len = 0;

        rc = kube_file_read(&token, &len, c->token_file, KUBE_TOKEN_MAX, err);
        if (rc == BASE_OK)
            rc = kube_token_clean(token, err);
        if (rc == BASE_OK) {
            kube_wipe(c->token);
            c->token = token;
        } else {
            kube_wipe(token);
            if (c->token && rc != BASE_ENOMEM)
                rc = BASE_OK; /* the file wins when it can be read; it is tried again */
            else
                base_err_wrap(err, "tokenFile %.200s", c->token_file);
        }
    }
    return rc == BASE_ENOTFOUND ? BASE_EIO : rc; /* a named file that is missing is not "no configuration" */
}

struct kube_config *kube_config_free(struct kube_config *c)
{
    if (!c)
        return NULL;
    base_free(c->server);
    base_free(c->ns);
    base_free(c->tls_server_name);
    base_free(c->proxy);
    base_free(c->ca);
    base_free(c->cert);
    kube_wipe(c->key);
    kube_wipe(c->token);
    base_free(c->ca_file);
    base_free(c->cert_file);
    base_free(c->key_file);
    base_free(c->token_file);
    kube_exec_free(c->exec);
    return base_free(c);
}

bool kube_dup(char **dst, const char *src)
{
    *dst = src ? base_strdup(src) : NULL;
    return *dst || !src;
}

struct kube_config *kube_config_dup(const struct kube_config *c)
{
    struct kube_config *d = base_calloc(1, sizeof *d);

    if (!d)
        return NULL;
    d->until = c->until;
    d->exec = c->exec ? kube_exec_dup(c->exec) : NULL;
    if ((d->exec || !c->exec) && kube_dup(&d->server, c->server) && kube_dup(&d->ns, c->ns) &&
        kube_dup(&d->tls_server_name, c->tls_server_name) && kube_dup(&d->proxy, c->proxy) &&
        kube_dup(&d->ca, c->ca) && kube_dup(&d->cert, c->cert) && kube_dup(&d->key, c->key) &&
        kube_dup(&d->token, c->token) && kube_dup(&d->ca_file, c->ca_file) &&
        kube_dup(&d->cert_file, c->cert_file) && kube_dup(&d->key_file, c->key_file) &&
        kube_dup(&d->token_file, c->token_file))
        return d;
    return kube_config_free(d);
}

int kube_config_in_cluster(struct kube_config **ret, const char *host, const char *port, const char *dir,
                           struct base_err *err)
{
    struct kube_config *c = base_calloc(1, sizeof *c);
    char text[PATH_MAX];
    size_t len = 0;
    int rc = BASE_OK;

    if (!c)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    base_fmt(text, sizeof text, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    c->server = base_strdup(text);
    base_fmt(text, sizeof text, "%s/ca.crt", dir);
    c->ca_file = base_strdup(text);
    base_fmt(text, sizeof text, "%s/token", dir);
    c->token_file = base_strdup(text);
    if (!c->server || !c->ca_file || !c->token_file)
        rc = base_err_set(err, BASE_ENOMEM, "no memory");
    base_fmt(text, sizeof text, "%s/namespace", dir);
    if (rc == BASE_OK && kube_file_read(&c->ns, &len, text, 256, NULL) == BASE_OK)
        c->ns[strcspn(c->ns, " \t\r\n")] = '\0';
    if (rc == BASE_OK)
        rc = kube_config_finish(c, err);
    if (rc != BASE_OK) {
        base_err_wrap(err, "in-cluster configuration");
        kube_config_free(c);
        return rc;
    }
    *ret = c;
    return BASE_OK;
}

static int load_files(struct docs *ds, const char *path, struct base_err *err)
{
    const char *env = getenv("KUBECONFIG"), *home = getenv("HOME");
    char one[PATH_MAX];
    int rc = BASE_OK;

    if (path)
        return doc_read(ds, path, err);
    if (!env || !*env) {
        if (!home || !*home || !base_fmt(one, sizeof one, "%s/.kube/config", home))
            return base_err_set(err, BASE_ENOTFOUND,
                                "no kubeconfig: KUBECONFIG and HOME are not set, and this is no pod");
        rc = doc_read(ds, one, err);
        return rc == BASE_ENOTFOUND
                   ? base_err_set(err, rc,
                                  "no kubeconfig: KUBECONFIG is not set, this is no pod, and %.200s does "
                                  "not exist",
                                  one)
                   : rc;
    }
    for (const char *p = env; rc == BASE_OK && *p; p += strcspn(p, ":"), p += *p == ':') {
        size_t n = strcspn(p, ":");

        if (n == 0)
            continue;
        if (base_copy_str(one, sizeof one, (struct base_str){p, n}) != BASE_OK)
            return base_err_set(err, BASE_EINVAL, "KUBECONFIG: a path is longer than %d bytes", PATH_MAX - 1);
        rc = doc_read(ds, one, err);
        if (rc == BASE_ENOTFOUND)
            rc = BASE_OK; /* as kubectl does */
    }
    if (rc == BASE_OK && ds->n == 0)
        return base_err_set(err, BASE_ENOTFOUND,
                            "no kubeconfig: none of the files in KUBECONFIG (%.300s) exists", env);
    return rc;
}

static int load(struct kube_config **ret, const char *path, const char *context, bool person,
                struct base_err *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    const char *env = getenv("KUBECONFIG");
    struct docs ds = {.n = 0};
    struct kube_config *c;
    int rc;

    if (!path && !context && (!env || !*env) && host && *host && port && *port &&
        access(KUBE_IN_CLUSTER_DIR "/token", F_OK) == 0)
        return kube_config_in_cluster(ret, host, port, KUBE_IN_CLUSTER_DIR, err);
    c = base_calloc(1, sizeof *c);
    if (!c)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    rc = load_files(&ds, path, err);
    if (rc == BASE_OK)
        rc = from_docs(c, &ds, context, person, err);
    if (rc == BASE_OK) {
        rc = kube_config_finish(c, err);
        if (rc != BASE_OK)
            base_err_wrap(err, "kubeconfig %.160s", ds.d[0].path);
    }
    if (rc == BASE_OK && c->exec)
        rc = kube_exec_run(c, err);
    docs_fini(&ds);
    if (rc != BASE_OK) {
        kube_config_free(c);
        return rc;
    }
    *ret = c;
    return BASE_OK;
}

int kube_config_load(struct kube_config **ret, const char *path, const char *context, struct base_err *err)
{
    return load(ret, path, context, false, err);
}

int kube_config_load_person(struct kube_config **ret, const char *path, const char *context,
                            struct base_err *err)
{
    return load(ret, path, context, true, err);
}

const char *kube_config_server(const struct kube_config *c)
{
    return c->server;
}

const char *kube_config_namespace(const struct kube_config *c)
{
    return c->ns;
}
