/* SPDX-License-Identifier: Apache-2.0
 *
 * exec.c - a kubeconfig's exec plug-in, run as kubectl runs it: client.authentication.k8s.io/v1 (and
 * v1beta1), ExecCredential in KUBERNETES_EXEC_INFO and on the plug-in's standard output. Only for tools that
 * a person runs: an agent never starts another program (kube_config_load refuses such a user).
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_int.h"

#define ARGS_MAX 256
#define GROUP "client.authentication.k8s.io/"
#define INFO "KUBERNETES_EXEC_INFO"
#define EXTENSION "client.authentication.k8s.io/exec"

extern char **environ;

enum mode { MODE_IF_AVAILABLE = 0, MODE_NEVER, MODE_ALWAYS };
struct kube_exec {
    char *command, *version, *hint, *server, *config; /* config: JSON of the cluster's extension */
    char *args[ARGS_MAX], *env[ARGS_MAX];             /* "NAME=value" */
    unsigned n_args, n_env;
    enum mode mode;
    bool cluster;
};

struct kube_exec *kube_exec_free(struct kube_exec *e)
{
    if (!e)
        return NULL;
    for (unsigned i = 0; i < e->n_args; i++)
        base_free(e->args[i]);
    for (unsigned i = 0; i < e->n_env; i++)
        kube_wipe(e->env[i]);
    base_free(e->command);
    base_free(e->version);
    base_free(e->hint);
    base_free(e->server);
    base_free(e->config);
    return base_free(e);
}

struct kube_exec *kube_exec_dup(const struct kube_exec *e)
{
    struct kube_exec *d = base_calloc(1, sizeof *d);
    bool ok = d != NULL;

    if (ok) {
        d->mode = e->mode;
        d->cluster = e->cluster;
        ok = kube_dup(&d->command, e->command) && kube_dup(&d->version, e->version) &&
             kube_dup(&d->hint, e->hint) && kube_dup(&d->server, e->server) &&
             kube_dup(&d->config, e->config);
    }
    for (unsigned i = 0; ok && i < e->n_args; i++, d->n_args += ok)
        ok = kube_dup(&d->args[i], e->args[i]);
    for (unsigned i = 0; ok && i < e->n_env; i++, d->n_env += ok)
        ok = kube_dup(&d->env[i], e->env[i]);
    return ok ? d : kube_exec_free(d);
}

/* ---- what the kubeconfig says */

static int bad(const struct kube_ynode *n, struct base_err *err, const char *text)
{
    return base_err_set(err, BASE_EINVAL, "line %u: exec: %s", n->line, text);
}

static const char *text_of(const struct kube_ynode *map, const char *key)
{
    const struct kube_ynode *n = kube_yaml_get(map, key);

    return n && n->kind == KUBE_Y_SCALAR ? n->text : "";
}

static bool is_number(const char *z)
{
    char *end;

    if (!(*z == '-' || (*z >= '0' && *z <= '9')) || strlen(z) > 40 || (z[0] == '0' && z[1] && z[1] != '.'))
        return false;
    if (z[strspn(z, "0123456789+-.eE")])
        return false;
    (void)strtod(z, &end);
    return *end == '\0';
}

static cJSON *json_of(const struct kube_ynode *n)
{
    cJSON *o = NULL;

    switch (n->kind) {
    case KUBE_Y_NULL:
        return cJSON_CreateNull();
    case KUBE_Y_SCALAR:
        if (n->plain && (strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0))
            return cJSON_CreateBool(n->text[0] == 't');
        return n->plain && is_number(n->text) ? cJSON_CreateRaw(n->text) : cJSON_CreateString(n->text);
    case KUBE_Y_MAP:
        o = cJSON_CreateObject();
        for (const struct kube_ynode *m = n->first; m; m = m->next)
            (void)cJSON_AddItemToObject(o, m->key, json_of(m));
        return o;
    case KUBE_Y_LIST:
        o = cJSON_CreateArray();
        for (const struct kube_ynode *m = n->first; m; m = m->next)
            (void)cJSON_AddItemToArray(o, json_of(m));
        return o;
    }
    return o;
}

static int read_cluster(struct kube_exec *e, const struct kube_ynode *cluster, struct base_err *err)
{
    const struct kube_ynode *list = kube_yaml_get(cluster, "extensions");

    e->server = base_strdup(text_of(cluster, "server"));
    if (!e->server)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    for (const struct kube_ynode *x = list && list->kind == KUBE_Y_LIST ? list->first : NULL; x;
         x = x->next) {
        const struct kube_ynode *ext = kube_yaml_get(x, "extension");
        cJSON *doc;
        char *text;

        if (!ext || strcmp(text_of(x, "name"), EXTENSION) != 0)
            continue;
        doc = json_of(ext);
        text = cJSON_PrintUnformatted(doc);
        cJSON_Delete(doc);
        base_free(e->config);
        e->config = text ? base_strdup(text) : NULL;
        cJSON_free(text);
        if (!e->config)
            return base_err_set(err, BASE_ENOMEM, "no memory");
    }
    return BASE_OK;
}

static int add(char **list, unsigned *n, const char *text, const struct kube_ynode *at, struct base_err *err)
{
    if (*n == ARGS_MAX - 1)
        return bad(at, err, "more than 255 arguments or variables");
    list[*n] = base_strdup(text);
    if (!list[*n])
        return base_err_set(err, BASE_ENOMEM, "no memory");
    ++*n;
    return BASE_OK;
}

static int read_lists(struct kube_exec *e, const struct kube_ynode *n, struct base_err *err)
{
    const struct kube_ynode *args = kube_yaml_get(n, "args"), *env = kube_yaml_get(n, "env");
    int rc = BASE_OK;

    if (args && args->kind != KUBE_Y_LIST)
        return bad(args, err, "args must be a list of texts");
    if (env && env->kind != KUBE_Y_LIST)
        return bad(env, err, "env must be a list of {name, value}");
    for (const struct kube_ynode *a = args ? args->first : NULL; !rc && a; a = a->next)
        rc = a->kind != KUBE_Y_SCALAR && a->kind != KUBE_Y_NULL
                 ? bad(a, err, "args must be a list of texts")
                 : add(e->args, &e->n_args, a->text ? a->text : "", a, err);
    for (const struct kube_ynode *v = env ? env->first : NULL; !rc && v; v = v->next) {
        const char *name = text_of(v, "name");
        struct base_buf b;

        if (!name[0] || strchr(name, '='))
            return bad(v, err, "each entry of env needs a name without '=', and a value");
        base_buf_init(&b, KUBE_FILE_MAX);
        (void)base_buf_addf(&b, "%s=%s", name, text_of(v, "value"));
        rc = b.failed ? base_err_set(err, b.failed, "exec: env is too large")
                      : add(e->env, &e->n_env, b.data, v, err);
        base_buf_fini(&b);
    }
    return rc;
}

static int read_mode(struct kube_exec *e, const struct kube_ynode *n, struct base_err *err)
{
    static const char *const names[] = {
        [MODE_IF_AVAILABLE] = "IfAvailable", [MODE_NEVER] = "Never", [MODE_ALWAYS] = "Always"};
    const char *mode = text_of(n, "interactiveMode");

    if (!mode[0] && strcmp(e->version, GROUP "v1beta1") == 0)
        mode = names[MODE_IF_AVAILABLE]; /* v1beta1 need not say */
    for (unsigned i = 0; i < BASE_LEN(names); i++)
        if (strcmp(mode, names[i]) == 0) {
            e->mode = (enum mode)i;
            return BASE_OK;
        }
    return bad(n, err, "interactiveMode must be IfAvailable, Never or Always");
}

/* A name without a slash is looked for in PATH; a relative path is relative to the kubeconfig. */
static int read_command(struct kube_exec *e, const struct kube_ynode *n, const char *file,
                        struct base_err *err)
{
    const char *command = text_of(n, "command"), *slash = strrchr(file, '/');
    char full[PATH_MAX];

    if (!command[0])
        return bad(n, err, "command is missing; name the program");
    if (command[0] != '/' && strchr(command, '/')) {
        if (!base_fmt(full, sizeof full, "%.*s%s", slash ? (int)(slash - file) + 1 : 0, file, command))
            return bad(n, err, "command is too long");
        command = full;
    }
    e->command = base_strdup(command);
    e->version = base_strdup(text_of(n, "apiVersion"));
    e->hint = base_strdup(text_of(n, "installHint"));
    if (!e->command || !e->version || !e->hint)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    if (strcmp(e->version, GROUP "v1") != 0 && strcmp(e->version, GROUP "v1beta1") != 0)
        return base_err_set(err, BASE_EINVAL,
                            "line %u: exec: apiVersion \"%.80s\" is not known; it must be " GROUP
                            "v1 (or v1beta1): a newer version of the plug-in has it",
                            n->line, e->version);
    return BASE_OK;
}

int kube_exec_read(struct kube_exec **ret, const struct kube_ynode *exec, const struct kube_ynode *cluster,
                   const char *file, struct base_err *err)
{
    const struct kube_ynode *info = kube_yaml_get(exec, "provideClusterInfo");
    struct kube_exec *e;
    int rc;

    if (exec->kind != KUBE_Y_MAP)
        return bad(exec, err, "must be a map with apiVersion and command");
    if (info && (info->kind != KUBE_Y_SCALAR || !info->plain ||
                 (strcmp(info->text, "true") != 0 && strcmp(info->text, "false") != 0)))
        return bad(info, err, "provideClusterInfo must be true or false");
    e = base_calloc(1, sizeof *e);
    if (!e)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    e->cluster = info && info->text[0] == 't';
    rc = read_command(e, exec, file, err);
    if (!rc)
        rc = read_mode(e, exec, err);
    if (!rc)
        rc = read_lists(e, exec, err);
    if (!rc)
        rc = read_cluster(e, cluster, err);
    if (rc)
        kube_exec_free(e);
    else
        *ret = e;
    return rc;
}

/* ---- running it */

static void add_text(cJSON *o, const char *key, const char *value)
{
    if (value && value[0])
        (void)cJSON_AddStringToObject(o, key, value);
}

static cJSON *cluster_info(const struct kube_config *c)
{
    const struct kube_exec *e = c->exec;
    cJSON *o = cJSON_CreateObject();

    add_text(o, "server", e->server);
    add_text(o, "tls-server-name", c->tls_server_name);
    add_text(o, "proxy-url", c->proxy);
    if (c->ca) {
        size_t n = strlen(c->ca);
        char *text = base_calloc(1, n / 3 * 4 + 8);

        if (text)
            (void)EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)c->ca, (int)n);
        add_text(o, "certificate-authority-data", text);
        base_free(text);
    }
    (void)cJSON_AddRawToObject(o, "config", e->config ? e->config : "null"); /* as kubectl */
    return o;
}

/* "KUBERNETES_EXEC_INFO={…}"; base_free. */
static char *info_of(const struct kube_config *c, bool interactive)
{
    cJSON *doc = cJSON_CreateObject(), *spec;
    char *text, *all = NULL;

    add_text(doc, "kind", "ExecCredential");
    add_text(doc, "apiVersion", c->exec->version);
    spec = cJSON_AddObjectToObject(doc, "spec");
    (void)cJSON_AddBoolToObject(spec, "interactive", interactive);
    if (c->exec->cluster)
        (void)cJSON_AddItemToObject(spec, "cluster", cluster_info(c));
    text = cJSON_PrintUnformatted(doc);
    cJSON_Delete(doc);
    if (text) {
        size_t n = strlen(text) + sizeof INFO + 1;

        all = base_calloc(1, n);
        if (all)
            (void)base_fmt(all, n, INFO "=%s", text);
    }
    cJSON_free(text);
    return all;
}

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* Ours, and what the plug-in's own variables do not replace. The array is the caller's, its texts are not. */
static char **environment(const struct kube_exec *e, char *info)
{
    size_t n = 0, at = 0;
    char **list;

    for (char **v = environ; v && *v; v++)
        n++;
    list = base_calloc(n + e->n_env + 2, sizeof *list);
    if (!list)
        return NULL;
    for (char **v = environ; v && *v; v++) {
        bool replaced = same_name(info, *v);

        for (unsigned i = 0; i < e->n_env; i++)
            replaced |= same_name(e->env[i], *v);
        if (!replaced)
            list[at++] = *v;
    }
    for (unsigned i = 0; i < e->n_env; i++)
        if (!same_name(info, e->env[i]))
            list[at++] = e->env[i];
    list[at] = info;
    return list;
}

static int start(const struct kube_config *c, bool interactive, int fd, pid_t *ret_pid, struct base_err *err)
{
    struct kube_exec *e = c->exec;
    base_cleanup(base_freep) char *info = info_of(c, interactive);
    char *argv[ARGS_MAX + 1] = {e->command}, **env = info ? environment(e, info) : NULL;
    posix_spawn_file_actions_t fa;
    int rc;

    if (!env)
        return base_err_set(err, BASE_ENOMEM, "no memory");
    for (unsigned i = 0; i < e->n_args; i++)
        argv[i + 1] = e->args[i];
    rc = posix_spawn_file_actions_init(&fa);
    if (!rc && !interactive)
        rc = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&fa, fd, 1);
    if (!rc)
        rc = posix_spawnp(ret_pid, e->command, &fa, NULL, argv, env);
    (void)posix_spawn_file_actions_destroy(&fa);
    base_free(env);
    if (rc)
        return base_err_set(err, BASE_EIO, "exec plug-in %.120s: %s%s%.300s", e->command, strerror(rc),
                            e->hint[0] ? ": " : "; install it, or name another context", e->hint);
    return BASE_OK;
}

static int collect(const char *command, int fd, pid_t pid, struct base_buf *out, struct base_err *err)
{
    char chunk[8192];
    int rc = BASE_OK, status = 0;

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc =
                base_err_sys(err, BASE_EIO, errno, "exec plug-in %.120s: its output cannot be read", command);
        if (n <= 0)
            break;
        rc = base_buf_add(out, chunk, (size_t)n);
        if (rc) {
            base_err_set(err, rc, "exec plug-in %.120s: its output is larger than %zu bytes", command,
                         KUBE_FILE_MAX);
            break;
        }
    }
    explicit_bzero(chunk, sizeof chunk);
    (void)close(fd); /* a plug-in that goes on writing ends by SIGPIPE */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (rc)
        return rc;
    if (WIFSIGNALED(status))
        return base_err_set(err, BASE_EDENIED, "exec plug-in %.120s: ended by signal %d", command,
                            WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return base_err_set(err, BASE_EDENIED,
                            "exec plug-in %.120s: exit status %d: log in as it says, or name another context",
                            command, WEXITSTATUS(status));
    return BASE_OK;
}

static const char *member(const cJSON *o, const char *key)
{
    const char *z = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

    return z ? z : "";
}

/* What is wrong with it, NULL = nothing; the texts are copied into *token, *cert, *key. */
static const char *take(const struct kube_exec *e, const cJSON *doc, char **token, char **cert, char **key,
                        base_wall *until)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(doc, "status"),
                *when = cJSON_GetObjectItemCaseSensitive(status, "expirationTimestamp");
    const char *t = member(status, "token"), *c = member(status, "clientCertificateData"),
               *k = member(status, "clientKeyData");

    if (!cJSON_IsObject(doc) || strcmp(member(doc, "kind"), "ExecCredential") != 0)
        return "its output is no ExecCredential in JSON";
    if (strcmp(member(doc, "apiVersion"), e->version) != 0)
        return "its answer is of another apiVersion than the kubeconfig's exec says";
    if (!cJSON_IsObject(status))
        return "its answer has no status";
    if (!t[0] && !c[0] && !k[0])
        return "its answer has neither a token nor a client certificate";
    if (!c[0] != !k[0])
        return "its answer has only one of clientCertificateData and clientKeyData";
    if (when && !cJSON_IsNull(when) &&
        (!cJSON_IsString(when) || base_rfc3339_parse(base_str_of(when->valuestring), until)))
        return "expirationTimestamp is no time of RFC 3339";
    if (strlen(t) > KUBE_TOKEN_MAX)
        return "its token is longer than 16 KiB";
    *token = t[0] ? base_strdup(t) : NULL;
    *cert = c[0] ? base_strdup(c) : NULL;
    *key = k[0] ? base_strdup(k) : NULL;
    return (t[0] && !*token) || (c[0] && !*cert) || (k[0] && !*key) ? "no memory" : NULL;
}

/* cJSON frees its strings as they are: overwrite them first. */
static void wipe_doc(cJSON *o)
{
    for (; o; o = o->next) {
        if (o->valuestring)
            explicit_bzero(o->valuestring, strlen(o->valuestring));
        wipe_doc(o->child);
    }
}

static int use(struct kube_config *c, const struct base_buf *out, struct base_err *err)
{
    cJSON *doc = cJSON_ParseWithLength(out->data ? out->data : "", out->len);
    char *token = NULL, *cert = NULL, *key = NULL;
    base_wall until = 0;
    const char *wrong = take(c->exec, doc, &token, &cert, &key, &until);
    int rc = wrong ? base_err_set(err, BASE_EPROTO, "%s", wrong) : BASE_OK;

    wipe_doc(doc);
    cJSON_Delete(doc);
    if (!rc && token)
        rc = kube_token_clean(token, err);
    if (!rc && cert)
        rc = kube_pem_pair(cert, key, err);
    if (rc) {
        base_err_wrap(err, "exec plug-in %.120s", c->exec->command);
        kube_wipe(token);
        kube_wipe(cert);
        kube_wipe(key);
        return rc;
    }
    kube_wipe(c->token);
    c->token = token;
    if (cert) {
        kube_wipe(c->cert);
        kube_wipe(c->key);
        c->cert = cert;
        c->key = key;
    }
    c->until = until;
    return BASE_OK;
}

int kube_exec_run(struct kube_config *c, struct base_err *err)
{
    bool terminal = isatty(STDIN_FILENO);
    struct base_buf out;
    int fds[2], rc;
    pid_t pid = -1;

    if (c->exec->mode == MODE_ALWAYS && !terminal)
        return base_err_set(
            err, BASE_EDENIED,
            "exec plug-in %.120s: it needs a terminal (interactiveMode: Always), and standard "
            "input is none",
            c->exec->command);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return base_err_sys(err, BASE_EIO, errno, "exec plug-in %.120s: no pipe", c->exec->command);
    base_buf_init(&out, KUBE_FILE_MAX);
    (void)base_buf_reserve(&out, 65536); /* so that a secret is not left behind where it moved from */
    rc = start(c, terminal && c->exec->mode != MODE_NEVER, fds[1], &pid, err);
    (void)close(fds[1]);
    if (!rc)
        rc = collect(c->exec->command, fds[0], pid, &out, err);
    else
        (void)close(fds[0]);
    if (!rc)
        rc = use(c, &out, err);
    if (out.data)
        explicit_bzero(out.data, out.len);
    base_buf_fini(&out);
    return rc;
}
