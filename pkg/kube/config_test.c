/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sys/stat.h>

#include "http/testserver.h"
#include "kube_int.h"

static char dir[64];
static struct ts_id ca, me, other;

static void setup(void)
{
    base_fmt(dir, sizeof dir, "/tmp/hf-kube-config.XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    ca = ts_issue("root", NULL, NULL);
    me = ts_issue("edge1", NULL, &ca);
    other = ts_issue("edge2", NULL, &ca);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("HOME", dir, 1);
}

static void cleanup(void)
{
    char cmd[5][128];

    base_fmt(cmd[0], sizeof cmd[0], "%s/sub", dir);
    (void)!chdir("/");
    {
        static const char *const names[] = {"config",     "a",          "b",        "token",
                                            "ca.crt",     "cert",       "key",      "namespace",
                                            "sub/config", "sub/ca.crt", "sub/token"};

        for (unsigned i = 0; i < BASE_LEN(names); i++) {
            base_fmt(cmd[1], sizeof cmd[1], "%s/%s", dir, names[i]);
            (void)unlink(cmd[1]);
        }
    }
    (void)rmdir(cmd[0]);
    (void)rmdir(dir);
    ts_id_free(&ca);
    ts_id_free(&me);
    ts_id_free(&other);
}

TestSuite(kube_config, .init = setup, .fini = cleanup);

static const char *put(const char *name, const char *text)
{
    static char path[4][128];
    static unsigned turn;
    char *p = path[turn++ % 4];
    FILE *f;

    base_fmt(p, 128, "%s/%s", dir, name);
    f = fopen(p, "w");
    cr_assert_not_null(f, "%s", p);
    fputs(text, f);
    fclose(f);
    return p;
}

static char *b64(const char *z)
{
    size_t n = strlen(z);
    char *out = calloc(1, n / 3 * 4 + 8);

    EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)z, (int)n);
    return out;
}

/* One kubeconfig with this inside of cluster and user. */
static const char *config(const char *cluster, const char *user)
{
    static char text[16384];

    base_fmt(text, sizeof text,
             "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
             "contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: ns-1}\n"
             "clusters:\n- name: k\n  cluster:\n%s"
             "users:\n- name: u\n  user:\n%s",
             cluster, user);
    return text;
}

static int load(const char *text, struct kube_config **c, struct base_err *err)
{
    memset(err, 0, sizeof *err);
    *c = NULL;
    return kube_config_load(c, put("config", text), NULL, err);
}

Test(kube_config, data_token_and_namespace)
{
    char cluster[8192], *ca64 = b64(ca.cert_pem);
    struct kube_config *c;
    struct base_err err;

    base_fmt(cluster, sizeof cluster,
             "    server: https://[fd00:c::1]:6443/\n    certificate-authority-data: %s\n    "
             "tls-server-name: kube.test\n"
             "    insecure-skip-tls-verify: false\n    certificate-authority: /nowhere\n",
             ca64);
    cr_assert_eq(load(config(cluster, "    token: abc\n"), &c, &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(kube_config_server(c), "https://[fd00:c::1]:6443");
    cr_assert_str_eq(kube_config_namespace(c), "ns-1");
    cr_assert_str_eq(c->token, "abc");
    cr_assert_str_eq(c->ca, ca.cert_pem);
    cr_assert_null(c->ca_file, "data wins over the file");
    cr_assert_str_eq(c->tls_server_name, "kube.test");
    kube_config_free(c);
    free(ca64);
}

Test(kube_config, json_is_a_kubeconfig_too)
{
    struct kube_config *c;
    struct base_err err;

    cr_assert_eq(
        load(
            "{\"kind\":\"Config\",\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{"
            "\"cluster\":"
            "\"k\",\"user\":\"\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://h:1\"}}],"
            "\"users\":null,\"preferences\":{}}",
            &c, &err),
        BASE_OK, "%s", err.msg);
    cr_assert_str_eq(kube_config_server(c), "https://h:1");
    cr_assert_str_eq(kube_config_namespace(c), "");
    kube_config_free(c);
}

Test(kube_config, relative_paths_are_relative_to_their_file)
{
    struct kube_config *c = NULL;
    struct base_err err = {0};
    char sub[80];

    base_fmt(sub, sizeof sub, "%s/sub", dir);
    cr_assert_eq(mkdir(sub, 0700), 0);
    put("sub/ca.crt", ca.cert_pem);
    put("sub/token", "  from-file\n\n");
    put("cert", me.cert_pem);
    put("key", me.key_pem);
    put("sub/config", config("    server: https://h:1\n    certificate-authority: ca.crt\n",
                             "    tokenFile: token\n    token: inline\n    client-certificate: ../cert\n    "
                             "client-key: ../key\n"));
    cr_assert_eq(chdir(dir), 0);
    cr_assert_eq(kube_config_load(&c, "sub/config", NULL, &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(c->ca, ca.cert_pem);
    cr_assert_str_eq(c->token, "from-file", "tokenFile wins over token");
    cr_assert_str_eq(c->cert, me.cert_pem);
    cr_assert_str_eq(c->key, me.key_pem);
    kube_config_free(c);
}

Test(kube_config, several_files_merge_as_kubectl_does)
{
    struct kube_config *c = NULL;
    struct base_err err = {0};
    char list[512];
    const char *a, *b;

    /* the first file sets the context and the user; the cluster comes whole from the first file that has it */
    a = put("a", "current-context: one\nusers:\n- name: u\n  user: {token: first}\ncontexts:\n- name: two\n  "
                 "context: {cluster: "
                 "k, user: u}\n");
    b = put("b", "current-context: two\nusers:\n- name: u\n  user: {token: second, username: "
                 "x}\nclusters:\n- name: k\n"
                 "  cluster: {server: 'https://k:1'}\ncontexts:\n- name: one\n  context: {cluster: k, user: "
                 "u, namespace: n}\n");
    base_fmt(list, sizeof list, "%s/none::%s:%s", dir, a, b);
    setenv("KUBECONFIG", list, 1);
    cr_assert_eq(kube_config_load(&c, NULL, NULL, &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(c->token, "first");
    cr_assert_str_eq(c->ns, "n");
    c = kube_config_free(c);
    cr_assert_eq(kube_config_load(&c, NULL, "two", &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(c->ns, "");
    c = kube_config_free(c);
    cr_assert_eq(kube_config_load(&c, NULL, "three", &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "three"), "%s", err.msg);
    base_fmt(list, sizeof list, "%s/none:%s/nothing", dir, dir);
    setenv("KUBECONFIG", list, 1);
    cr_assert_eq(kube_config_load(&c, NULL, NULL, &err), BASE_ENOTFOUND);
    cr_assert(strstr(err.msg, "nothing"), "%s", err.msg);
}

Test(kube_config, no_configuration_anywhere)
{
    struct kube_config *c = NULL;
    struct base_err err = {0};

    cr_assert_eq(kube_config_load(&c, NULL, NULL, &err), BASE_ENOTFOUND);
    cr_assert(strstr(err.msg, ".kube/config"), "%s", err.msg);
    cr_assert_eq(kube_config_load(&c, "/no/such/file", NULL, &err), BASE_ENOTFOUND);
    cr_assert(strstr(err.msg, "/no/such/file"), "%s", err.msg);
    cr_assert_null(c);
}

Test(kube_config, what_is_refused_names_the_field_and_the_remedy)
{
#define OKC "    server: https://h:1\n"
#define OKU "    token: abc\n"
    static const struct {
        const char *cluster, *user, *words[3];
    } row[] = {
        {OKC, "    exec: {command: aws, apiVersion: x}\n", {"exec", "not supported", "tokenFile"}},
        {OKC, "    auth-provider: {name: gcp}\n", {"auth-provider", "not supported", "line 14"}},
        {OKC,
         "    username: admin\n    password: s3cret\n",
         {"username", "not supported", "client certificate"}},
        {OKC, "    as: root\n", {"as is not supported", "identity", ""}},
        {OKC, "    as-groups: [system:masters]\n", {"as-groups", "", ""}},
        {OKC "    insecure-skip-tls-verify: true\n",
         OKU,
         {"insecure-skip-tls-verify", "always verified", "certificate-authority"}},
        {OKC "    insecure-skip-tls-verify: \"false\"\n", OKU, {"insecure-skip-tls-verify", "", ""}},
        {"    server: http://h:1\n", OKU, {"server", "only https", ""}},
        {"    certificate-authority-data: AAAA\n", OKU, {"server is missing", "", ""}},
        {OKC "    certificate-authority-data: '*'\n", OKU, {"certificate-authority-data", "base64", ""}},
        {OKC "    certificate-authority-data: aGVsbG8=\n",
         OKU,
         {"certificate-authority-data", "no certificate", ""}},
        {OKC "    certificate-authority-data: aAB4\n",
         OKU,
         {"certificate-authority-data", "base64 of a PEM", ""}},
        {OKC "    certificate-authority: /no/ca\n", OKU, {"certificate-authority", "/no/ca", ""}},
        {OKC "    tls-server-name: 'a b'\n", OKU, {"tls-server-name", "a b", ""}},
        {OKC "    proxy-url: ftp://x\n", OKU, {"proxy-url", "http", ""}},
        {OKC "    server: https://i:1\n", OKU, {"twice", "", ""}},
        {"    server: [1]\n", OKU, {"server must be text", "", ""}},
        {OKC, "    token: \"a b s3cret\"\n", {"token", "space", ""}},
        {OKC, "    token: \"a\\nX: s3cret\"\n", {"token", "control", ""}},
        {OKC, "    tokenFile: /no/token\n", {"tokenFile", "/no/token", ""}},
        {OKC,
         "    client-certificate-data: aGVsbG8=\n",
         {"client-certificate is given without client-key", "", ""}},
        {OKC, "    client-key-data: aGVsbG8=\n", {"client-key is given without client-certificate", "", ""}},
        {OKC,
         "    client-certificate-data: aGVsbG8=\n    client-key-data: aGVsbG8=\n",
         {"client certificate", "PEM", ""}},
        {OKC,
         "    client-certificate: /no/cert\n    client-key: /no/key\n",
         {"client-certificate", "/no/cert", ""}},
        {OKC, "    token: {a: b}\n", {"token must be text", "", ""}},
        {"    server: https://h:1\n- cluster: x\n  name: y\n", OKU, {"each entry", "", ""}},
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct kube_config *c;
        struct base_err err;
        int rc = load(config(row[i].cluster, row[i].user), &c, &err);

        cr_expect(rc == BASE_EINVAL || rc == BASE_EIO, "row %u: %s", i, base_code_name(rc));
        for (unsigned k = 0; k < 3 && row[i].words[k]; k++)
            cr_expect(strstr(err.msg, row[i].words[k]) != NULL, "row %u: \"%s\" lacks \"%s\"", i, err.msg,
                      row[i].words[k]);
        cr_expect(strstr(err.msg, "kubeconfig") != NULL, "row %u: %s", i, err.msg);
        cr_expect_null(strstr(err.msg, "s3cret"), "row %u: %s", i, err.msg);
        cr_expect_null(c, "row %u", i);
        kube_config_free(c);
    }
}

Test(kube_config, structure_that_is_none)
{
    static const char *const row[] = {
        "",
        "[]",
        "just text",
        "kind: Pod\n",
        "kind: Config\n",
        "current-context: [x]\n",
        "current-context: c\n",
        "current-context: c\ncontexts: {}\n",
        "current-context: c\ncontexts: [x]\n",
        "current-context: c\ncontexts: [{name: c}]\n",
        "current-context: c\ncontexts: [{name: c, context: 7}]\n",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k}]\n",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, "
        "cluster: {server: "
        "'https://h'}}]\n",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}, {name: c, context: {cluster: "
        "k}}]\nclusters: [{name: "
        "k, cluster: {server: 'https://h'}}]\n",
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, namespace: ../x}}]\nclusters: "
        "[{name: k, cluster: "
        "{server: 'https://h'}}]\n",
    };

    for (unsigned i = 0; i < BASE_LEN(row); i++) {
        struct kube_config *c;
        struct base_err err;

        cr_expect_eq(load(row[i], &c, &err), BASE_EINVAL, "row %u: %s", i, err.msg);
        cr_expect_neq(err.msg[0], '\0', "row %u", i);
    }
}

Test(kube_config, a_key_that_belongs_to_another_certificate)
{
    char user[8192], *cert = b64(me.cert_pem), *key = b64(other.key_pem);
    struct kube_config *c;
    struct base_err err;

    base_fmt(user, sizeof user, "    client-certificate-data: %s\n    client-key-data: %s\n", cert, key);
    cr_assert_eq(load(config(OKC, user), &c, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "does not belong"), "%s", err.msg);
    free(cert);
    free(key);
}

Test(kube_config, in_cluster)
{
    struct kube_config *c = NULL;
    struct base_err err = {0};

    put("token", "tok\n");
    put("ca.crt", ca.cert_pem);
    put("namespace", "holdfast-system\n");
    cr_assert_eq(kube_config_in_cluster(&c, "fd00:10::1", "443", dir, &err), BASE_OK, "%s", err.msg);
    cr_assert_str_eq(kube_config_server(c), "https://[fd00:10::1]:443");
    cr_assert_str_eq(kube_config_namespace(c), "holdfast-system");
    cr_assert_str_eq(c->token, "tok");
    c = kube_config_free(c);
    cr_assert_eq(kube_config_in_cluster(&c, "10.96.0.1", "https", dir, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "in-cluster") && strstr(err.msg, "port"), "%s", err.msg);
    put("token", "\n");
    cr_assert_eq(kube_config_in_cluster(&c, "10.96.0.1", "443", dir, &err), BASE_EINVAL);
    cr_assert(strstr(err.msg, "empty"), "%s", err.msg);
    cr_assert_null(c);
}

/* AKS has tokens of several KiB; the official C client cut them. */
Test(kube_config, long_tokens)
{
    static char user[40000];
    struct kube_config *c;
    struct base_err err;
    char *t = calloc(1, KUBE_TOKEN_MAX + 2);

    memset(t, 'x', 8192);
    base_fmt(user, sizeof user, "    token: %s\n", t);
    cr_assert_eq(load(config(OKC, user), &c, &err), BASE_OK, "%s", err.msg);
    cr_assert_eq(strlen(c->token), 8192);
    kube_config_free(c);
    memset(t, 'x', KUBE_TOKEN_MAX + 1);
    put("token", t);
    base_fmt(user, sizeof user, "    tokenFile: token\n");
    cr_assert_eq(load(config(OKC, user), &c, &err), BASE_EFULL, "%s", err.msg);
    free(t);
}

Test(kube_config, survives_every_failed_allocation)
{
    struct kube_config *c = NULL;
    char cluster[8192], *ca64 = b64(ca.cert_pem);
    const char *path;
    unsigned long n;
    int rc = BASE_ENOMEM;

    base_fmt(cluster, sizeof cluster, "    server: https://h:1\n    certificate-authority-data: %s\n", ca64);
    put("token", "abc");
    path = put("config", config(cluster, "    tokenFile: token\n"));
    for (n = 1; n < 300 && rc != BASE_OK; n++) {
        base_mem_fail_after(n);
        rc = kube_config_load(&c, path, NULL, NULL);
        base_mem_fail_after(0);
        cr_assert(rc == BASE_OK || rc == BASE_ENOMEM, "allocation %lu: %s", n, base_code_name(rc));
    }
    cr_assert_eq(rc, BASE_OK);
    cr_assert_gt(n, 10);
    kube_config_free(c);
    free(ca64);
}

/* ---- reading again */
Test(kube_config, credentials_are_read_again_and_the_last_good_ones_kept)
{
    struct kube_config *c = NULL;
    struct kube_creds cr;
    base_time t = 1000 * BASE_SEC;
    uint64_t gen;

    put("token", "one");
    put("ca.crt", ca.cert_pem);
    put("cert", me.cert_pem);
    put("key", me.key_pem);
    put("config", config("    server: https://h:1\n    certificate-authority: ca.crt\n",
                         "    tokenFile: token\n    client-certificate: cert\n    client-key: key\n"));
    {
        char path[128];

        base_fmt(path, sizeof path, "%s/config", dir);
        cr_assert_eq(kube_config_load(&c, path, NULL, NULL), BASE_OK);
    }
    kube_creds_init(&cr, c, NULL, t);
    gen = cr.gen;
    put("token", "two\n");
    kube_creds_refresh(&cr, t + 59 * BASE_SEC, false);
    cr_assert_str_eq(c->token, "one", "not yet due");
    kube_creds_refresh(&cr, t + 60 * BASE_SEC, false);
    cr_assert_str_eq(c->token, "two");
    cr_assert_eq(cr.gen, ++gen);
    /* an empty file, a missing file, a broken one: the last good stays, and the next look is sooner */
    put("token", "\n");
    kube_creds_refresh(&cr, t + 120 * BASE_SEC, false);
    cr_assert_str_eq(c->token, "two");
    put("token", "thr ee");
    kube_creds_refresh(&cr, t + 130 * BASE_SEC, false);
    cr_assert_str_eq(c->token, "two");
    cr_assert_eq(cr.gen, gen);
    put("token", "three");
    kube_creds_refresh(&cr, t + 139 * BASE_SEC, false);
    cr_assert_str_eq(c->token, "two", "not yet due");
    kube_creds_refresh(&cr, t + 140 * BASE_SEC, false);
    cr_assert_str_eq(c->token, "three", "10 s after a failed read");
    cr_assert_eq(cr.gen, ++gen);
    put("token", "four");
    kube_creds_refresh(&cr, t + 141 * BASE_SEC, true);
    cr_assert_str_eq(c->token, "four", "forced");
    cr_assert_eq(cr.gen, ++gen);
    /* a new certificate without its key yet */
    put("cert", other.cert_pem);
    kube_creds_refresh(&cr, t + 200 * BASE_SEC, true);
    cr_assert_str_eq(c->cert, me.cert_pem);
    cr_assert_eq(cr.gen, gen);
    put("key", other.key_pem);
    put("ca.crt", "rubbish");
    kube_creds_refresh(&cr, t + 300 * BASE_SEC, true);
    cr_assert_str_eq(c->cert, other.cert_pem);
    cr_assert_str_eq(c->key, other.key_pem);
    cr_assert_str_eq(c->ca, ca.cert_pem);
    cr_assert_gt(cr.gen, gen);
    kube_creds_fini(&cr);
}
