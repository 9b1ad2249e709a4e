/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/testserver.h"
#include "kube_int.h"

static char dir[64], plugin[128], file[128];
static struct ts_id ca, me, other;

static void setup(void)
{
    base_fmt(dir, sizeof dir, "/tmp/hf-kube-exec.XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    base_fmt(plugin, sizeof plugin, "%s/plugin", dir);
    base_fmt(file, sizeof file, "%s/config", dir);
    ca = ts_issue("root", NULL, NULL);
    me = ts_issue("me", NULL, &ca);
    other = ts_issue("other", NULL, &ca);
}

static void cleanup(void)
{
    static const char *const names[] = {"plugin", "config", "seen", "turn"};
    char path[192];

    for (unsigned i = 0; i < BASE_LEN(names); i++) {
        base_fmt(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
    ts_id_free(&ca);
    ts_id_free(&me);
    ts_id_free(&other);
}

TestSuite(kube_exec, .init = setup, .fini = cleanup);

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    cr_assert_not_null(f, "%s", path);
    fputs(text, f);
    fclose(f);
    cr_assert_eq(chmod(path, mode), 0);
}

/* A plug-in that writes down what it was given, and prints `answer`. */
static void plugin_says(const char *answer, const char *then)
{
    char text[32768];

    base_fmt(
        text, sizeof text,
        "#!/bin/sh\n{ printf '%%s\\n' \"$KUBERNETES_EXEC_INFO\" \"$A\" \"$HOME\" \"$#\" \"$@\"; } >%s/seen\n"
        "cat <<'EOS'\n%s\nEOS\n%s\n",
        dir, answer, then);
    put(plugin, text, 0700);
}

/* A kubeconfig whose user has these lines in its exec. */
static void config(const char *exec, const char *user)
{
    char text[8192], *b64 = calloc(1, strlen(ca.cert_pem) * 2);

    EVP_EncodeBlock((unsigned char *)b64, (const unsigned char *)ca.cert_pem, (int)strlen(ca.cert_pem));
    base_fmt(
        text, sizeof text,
        "kind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters:\n- name: k\n  cluster:\n    server: https://api.example\n    certificate-authority-data: "
        "%s\n    extensions:\n    - name: client.authentication.k8s.io/exec\n      extension: {audience: 7, "
        "deep: [true, x]}\n"
        "users:\n- name: u\n  user:\n%s    exec:\n%s",
        b64, user, exec);
    free(b64);
    put(file, text, 0600);
}

#define V1 "      apiVersion: client.authentication.k8s.io/v1\n"
#define QUIET "      interactiveMode: Never\n"
#define HERE "      command: ./plugin\n"
#define CRED(status)                                                                                         \
    "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"

static char *seen(void)
{
    static char text[16384];
    char path[192];
    FILE *f;

    base_fmt(path, sizeof path, "%s/seen", dir);
    f = fopen(path, "r");
    cr_assert_not_null(f, "the plug-in was not run");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

Test(kube_exec, runs_as_kubectl_runs_it)
{
    struct kube_config *c = NULL;
    struct base_err err = {0};
    const char *z;

    setenv("A", "old", 1);
    plugin_says(CRED("\"token\":\"t-1\",\"expirationTimestamp\":\"2030-01-01T00:00:00+01:00\""), "");
    config(V1 QUIET HERE "      args: [get-token, --x]\n      env: [{name: A, value: b c}]\n"
                         "      provideClusterInfo: true\n",
           "");
    cr_assert_eq(kube_config_load_person(&c, file, NULL, &err), BASE_OK, "%s", err.msg);
    cr_expect_str_eq(c->token, "t-1");
    cr_expect_eq(c->until, 1893452400000000);
    z = seen();
    cr_expect_not_null(
        strstr(z, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                  "\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://api.example\","
                  "\"certificate-authority-data\":\""),
        "%s", z);
    cr_expect_not_null(strstr(z, "\"config\":{\"audience\":7,\"deep\":[true,\"x\"]}}}}\nb c\n"), "%s", z);
    cr_expect_not_null(strstr(z, "\n2\nget-token\n--x\n"), "%s", z);
    kube_config_free(c);
}

Test(kube_exec, gives_a_client_certificate_and_says_nothing_of_the_cluster_unasked)
{
    char answer[16384];
    cJSON *doc = cJSON_Parse(CRED("")), *status = cJSON_GetObjectItem(doc, "status");
    struct kube_config *c = NULL, *d;
    struct base_err err = {0};
    char *text;

    cJSON_AddStringToObject(status, "clientCertificateData", me.cert_pem);
    cJSON_AddStringToObject(status, "clientKeyData", me.key_pem);
    text = cJSON_PrintUnformatted(doc);
    base_fmt(answer, sizeof answer, "%s", text);
    cJSON_free(text);
    cJSON_Delete(doc);
    plugin_says(answer, "");
    config(V1 QUIET HERE, "");
    cr_assert_eq(kube_config_load_person(&c, file, NULL, &err), BASE_OK, "%s", err.msg);
    cr_expect_str_eq(c->cert, me.cert_pem);
    cr_expect_null(c->token);
    cr_expect_null(strstr(seen(), "cluster"));
    d = kube_config_dup(c);
    cr_assert_eq(kube_exec_run(d, &err), BASE_OK, "a copy runs it, too: %s", err.msg);
    kube_config_free(d);
    kube_config_free(c);
}

Test(kube_exec, an_agent_never_runs_one)
{
    struct kube_config *c = NULL;
    struct base_err err = {0};
    char path[192];

    plugin_says(CRED("\"token\":\"t\""), "");
    config(V1 QUIET HERE, "");
    cr_expect_eq(kube_config_load(&c, file, NULL, &err), BASE_EINVAL);
    cr_expect_not_null(strstr(err.msg, "exec is not supported"), "%s", err.msg);
    base_fmt(path, sizeof path, "%s/seen", dir);
    cr_expect_neq(access(path, F_OK), 0, "it was run");
}

Test(kube_exec, refuses_with_the_reason)
{
    static const struct {
        const char *what, *exec, *user, *answer, *then;
        int code;
        const char *says;
    } rows[] = {
        {"version", "      apiVersion: client.authentication.k8s.io/v1alpha1\n" QUIET HERE, "", "", "",
         BASE_EINVAL, "line 16: exec: apiVersion \"client.authentication.k8s.io/v1alpha1\""},
        {"no command", V1 QUIET, "", "", "", BASE_EINVAL, "command is missing"},
        {"no mode", V1 HERE, "", "", "", BASE_EINVAL, "interactiveMode must be"},
        {"mode", V1 HERE "      interactiveMode: Maybe\n", "", "", "", BASE_EINVAL,
         "interactiveMode must be"},
        {"args", V1 QUIET HERE "      args: {a: b}\n", "", "", "", BASE_EINVAL, "args must be a list"},
        {"args of maps", V1 QUIET HERE "      args: [{a: b}]\n", "", "", "", BASE_EINVAL,
         "args must be a list"},
        {"env", V1 QUIET HERE "      env: [{name: a=b, value: c}]\n", "", "", "", BASE_EINVAL,
         "env needs a name"},
        {"info", V1 QUIET HERE "      provideClusterInfo: perhaps\n", "", "", "", BASE_EINVAL,
         "provideClusterInfo must be"},
        {"token beside", V1 QUIET HERE, "    token: x\n", "", "", BASE_EINVAL, "exec beside a token"},
        {"auth-provider beside", V1 QUIET HERE, "    auth-provider: {name: x}\n", "", "", BASE_EINVAL,
         "auth-provider is not supported"},
        {"not there", V1 QUIET "      command: hf-no-such-program\n      installHint: apt install it\n", "",
         "", "", BASE_EIO, "No such file or directory: apt install it"},
        {"a terminal", V1 HERE "      interactiveMode: Always\n", "", "", "", BASE_EDENIED,
         "needs a terminal"},
        {"fails", V1 QUIET HERE, "", CRED("\"token\":\"hush\""), "exit 3", BASE_EDENIED, "exit status 3"},
        {"killed", V1 QUIET HERE, "", "", "kill -9 $$", BASE_EDENIED, "signal 9"},
        {"nonsense", V1 QUIET HERE, "", "hush", "", BASE_EPROTO, "no ExecCredential"},
        {"nothing", V1 QUIET HERE, "", "", "", BASE_EPROTO, "no ExecCredential"},
        {"another version", V1 QUIET HERE, "",
         "{\"apiVersion\":\"client.authentication.k8s.io/"
         "v1beta1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"hush\"}}",
         "", BASE_EPROTO, "another apiVersion"},
        {"no status", V1 QUIET HERE, "",
         "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\"}", "", BASE_EPROTO,
         "no status"},
        {"empty status", V1 QUIET HERE, "", CRED(""), "", BASE_EPROTO, "neither a token"},
        {"half", V1 QUIET HERE, "", CRED("\"clientKeyData\":\"hush\""), "", BASE_EPROTO, "only one of"},
        {"time", V1 QUIET HERE, "", CRED("\"token\":\"hush\",\"expirationTimestamp\":\"soon\""), "",
         BASE_EPROTO, "no time of RFC 3339"},
        {"token", V1 QUIET HERE, "", CRED("\"token\":\"hu sh\""), "", BASE_EINVAL, "the token holds a space"},
        {"pair", V1 QUIET HERE, "", CRED("\"clientKeyData\":\"hush\",\"clientCertificateData\":\"hush\""), "",
         BASE_EINVAL, "no certificate in PEM"},
        {"endless", V1 QUIET HERE, "", "", "exec yes hush", BASE_EFULL, "larger than 1048576"},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct kube_config *c = NULL;
        struct base_err err = {0};
        int null = open("/dev/null", O_RDONLY);

        (void)dup2(null, 0); /* no terminal */
        (void)close(null);
        plugin_says(rows[i].answer, rows[i].then);
        config(rows[i].exec, rows[i].user);
        cr_expect_eq(kube_config_load_person(&c, file, NULL, &err), rows[i].code, "%s: %s", rows[i].what,
                     err.msg);
        cr_expect_not_null(strstr(err.msg, rows[i].says), "%s: %s", rows[i].what, err.msg);
        cr_expect_null(strstr(err.msg, "hush"), "%s: what the plug-in wrote is in: %s", rows[i].what,
                       err.msg);
    }
}

/* A turn counter in a file: each run gives another token. */
static void counting_plugin(const char *until)
{
    char text[1024];

    base_fmt(text, sizeof text,
             "#!/bin/sh\nn=$(($(cat %s/turn 2>/dev/null || echo 0) + 1))\necho $n >%s/turn\n[ $n -lt 9 ] || "
             "exit 1\n"
             "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
             "\"status\":{\"token\":\"t-'$n'\"%s}}'\n",
             dir, dir, until);
    put(plugin, text, 0700);
    config(V1 QUIET HERE, "");
}

static const char *refreshed(struct kube_creds *cr, bool force)
{
    kube_creds_refresh(cr, 0, force);
    return cr->c->token;
}

Test(kube_exec, is_run_again_when_refused_or_over_and_not_before)
{
    struct kube_creds cr;
    struct kube_config *c = NULL;
    struct base_err err = {0};
    char path[192];
    uint64_t gen;

    counting_plugin("");
    cr_assert_eq(kube_config_load_person(&c, file, NULL, &err), BASE_OK, "%s", err.msg);
    kube_creds_init(&cr, c, NULL, 0);
    cr_expect_str_eq(refreshed(&cr, false), "t-1");
    gen = cr.gen;
    cr_expect_str_eq(refreshed(&cr, true), "t-2", "refused");
    cr_expect_neq(cr.gen, gen, "the request is sent once more");
    kube_creds_fini(&cr);

    counting_plugin(",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"");
    cr_assert_eq(kube_config_load_person(&c, file, NULL, &err), BASE_OK, "%s", err.msg);
    kube_creds_init(&cr, c, NULL, 0);
    cr_expect_str_eq(refreshed(&cr, false), "t-4", "its time is over");
    base_fmt(path, sizeof path, "%s/turn", dir);
    put(path, "20\n", 0600);
    gen = cr.gen;
    cr_expect_str_eq(refreshed(&cr, true), "t-4", "the plug-in fails: the last one stays");
    cr_expect_eq(cr.gen, gen, "and nothing is sent again for it");
    kube_creds_fini(&cr);
}
