/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preflight.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/addr.h"
#include "agent/boot.h"
#include "agent/preflight_int.h"
#include "agent/reload.h"
#include "base/mem.h"
#include "contract/served.h"
#include "kube/client.h"
#include "loop/loop.h"

#define SKEW_MAX 5.0 /* s */
#define REQUEST_TIMEOUT (5 * BASE_SEC)

enum verdict { OK = 0, FAILED, SKIPPED };
struct run {
    const struct agent_config *cfg;
    FILE *out;
    unsigned n[3];
    struct loop *loop;
    struct kube_config *config;
    struct kube_client *client;
    char ns[CONTRACT_LABEL_SIZE];
};

static void say(struct run *r, enum verdict v, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void say(struct run *r, enum verdict v, const char *name, const char *fmt, ...)
{
    static const char *const words[] = {"ok", "FAILED", "skipped"};
    char text[700];
    va_list ap;

    va_start(ap, fmt);
    (void)base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    r->n[v]++;
    (void)fprintf(r->out, "%-8s %-16s %s\n", words[v], name, text);
}

/* ---- this machine */

static void check_config(struct run *r)
{
    struct contract_timing t;
    struct base_err err = {0};

    if (agent_config_timing(r->cfg, &t, &err) || agent_config_policy(r->cfg, &err))
        say(r, FAILED, "configuration", "%s", err.msg);
    else
        say(r, OK, "configuration", "%s", r->cfg->file[0] ? r->cfg->file : "defaults");
    if (loop_check_time_namespace(&err))
        say(r, FAILED, "clock", "%s", err.msg);
}

static void check_audit(struct run *r)
{
    const char *dir = r->cfg->audit_dir;
    struct statvfs vfs;
    struct stat st;

    if (stat(dir, &st) != 0)
        say(r, FAILED, "audit", "audit.directory: %s: %s; make it, owned by uid %d with mode 0700", dir,
            strerror(errno), (int)geteuid());
    else if (!S_ISDIR(st.st_mode))
        say(r, FAILED, "audit", "audit.directory: %s is no folder", dir);
    else if (faccessat(AT_FDCWD, dir, R_OK | W_OK | X_OK, AT_EACCESS) != 0)
        say(r, FAILED, "audit",
            "audit.directory: %s: uid %d may not write there (owner %d, mode %04o): %s; chown it", dir,
            (int)geteuid(), (int)st.st_uid, (unsigned)st.st_mode & 07777u, strerror(errno));
    else if (st.st_mode & 07)
        say(r, FAILED, "audit", "audit.directory: %s is open to others (mode %04o); chmod 0700", dir,
            (unsigned)st.st_mode & 07777u);
    else if (statvfs(dir, &vfs) == 0 && (uint64_t)vfs.f_bavail * vfs.f_frsize < (uint64_t)64 << 20)
        say(r, FAILED, "audit", "audit.directory: %s has %llu MiB left; free some (64 at least)", dir,
            (unsigned long long)((uint64_t)vfs.f_bavail * vfs.f_frsize >> 20));
    else
        say(r, OK, "audit", "%s", dir);
}

static void check_tun(struct run *r)
{
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

    if (fd >= 0) {
        (void)close(fd);
        say(r, OK, "tun", "/dev/net/tun can be opened; devices are the foundation's");
    } else if (errno == ENOENT) {
        say(r, FAILED, "tun",
            "/dev/net/tun is not here: mount it (chart: tun.access hostPath), or `modprobe tun` on the node");
    } else if (errno == EPERM) {
        say(r, FAILED, "tun",
            "/dev/net/tun: the container runtime forbids it (runc 1.2.0 to 1.2.3, crun 1.8): use a device "
            "plugin (chart: tun.access devicePlugin) or another version");
    } else {
        say(r, FAILED, "tun",
            "/dev/net/tun: %s; uid %d needs to read and write it (mode 0666, as udev makes it)",
            strerror(errno), (int)geteuid());
    }
}

static void check_port(struct run *r, const char *option, const char *listen_addr, int type)
{
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    struct base_err err = {0};
    int fd, zero = 0, one = 1;

    if (agent_addr_parse(listen_addr, &ss, &len, &err)) {
        say(r, FAILED, "port", "%s: %s", option, err.msg);
        return;
    }
    fd = socket(ss.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd >= 0 && ss.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (fd >= 0 && type == SOCK_STREAM)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&ss, len) != 0 || (type == SOCK_STREAM && listen(fd, 1) != 0)) {
        if (errno == EADDRINUSE)
            say(r, FAILED, "port",
                "%s: %s is in use (%s); end the other process, name another port, or say --running "
                "when it is this agent",
                option, listen_addr, type == SOCK_DGRAM ? "UDP" : "TCP");
        else if (errno == EACCES)
            say(r, FAILED, "port",
                "%s: %s needs a privilege: lower net.ipv4.ip_unprivileged_port_start or name a port "
                "above it",
                option, listen_addr);
        else
            say(r, FAILED, "port", "%s: %s: %s", option, listen_addr, strerror(errno));
    } else {
        say(r, OK, "port", "%s: %s (%s)", option, listen_addr, type == SOCK_DGRAM ? "UDP" : "TCP");
    }
    if (fd >= 0)
        (void)close(fd);
}

static void check_ports(struct run *r, bool running)
{
    if (running) {
        say(r, SKIPPED, "port", "this agent holds its ports (--running)");
        return;
    }
    check_port(r, "listen.h3", r->cfg->listen_h3, SOCK_DGRAM);
    if (r->cfg->http2)
        check_port(r, "listen.http2", r->cfg->listen_h3, SOCK_STREAM);
    check_port(r, "health.listen", r->cfg->health_listen, SOCK_STREAM);
    check_port(r, "metrics.listen", r->cfg->metrics_listen, SOCK_STREAM);
}

static void check_tls(struct run *r)
{
    struct base_err err = {0};
    char until[BASE_RFC3339_SIZE];

    if (agent_preflight_tls(r->cfg, &err)) {
        say(r, FAILED, "tls", "%s", err.msg);
        return;
    }
    base_rfc3339(until, (base_wall)agent_tls_expiry(r->cfg->tls_cert) * 1000000);
    say(r, OK, "tls", "%s, good until %.10s", r->cfg->tls_cert, until);
}

/* ---- the API server */

struct answer {
    bool done;
    int code, status;
    char reason[64];
    struct base_buf body;
    struct base_err err;
    base_wall sent, got;
};

static void on_answer(void *arg, const struct kube_resp *resp)
{
    struct answer *a = arg;

    a->done = true;
    a->code = resp->code;
    a->status = resp->http_status;
    a->err = resp->err;
    a->got = loop_wall();
    (void)base_copy(a->reason, sizeof a->reason, resp->reason);
    (void)base_buf_add(&a->body, resp->body.ptr, resp->body.len);
}

/* True when there is an HTTP answer; base_buf_fini(&a->body) in any case. */
static bool ask(struct run *r, struct answer *a, const char *method, const char *path, struct base_str body)
{
    struct kube_req req = {.method = method, .path = path, .body = body, .timeout = REQUEST_TIMEOUT};

    for (int tries = 0;; tries++) {
        *a = (struct answer){.sent = loop_wall()};
        base_buf_init(&a->body, (size_t)16 << 20);
        if (kube_request(r->client, &req, on_answer, a, NULL, &a->err)) {
            a->code = BASE_EIO;
            return false;
        }
        while (!a->done)
            loop_step(r->loop, true);
        /* One lost connection is no verdict (a 401 may come as a stream that ends early). */
        if (a->code == BASE_OK || tries == 2)
            return a->code == BASE_OK;
        base_buf_fini(&a->body);
    }
}

static struct base_str text_of(const struct answer *a)
{
    return (struct base_str){a->body.data ? a->body.data : "", a->body.len};
}

static bool check_credentials(struct run *r)
{
    static const char review[] =
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}";
    char node[CONTRACT_NODE_SIZE] = "";
    struct base_uuid uid;
    struct base_err err = {0};
    struct answer a;
    double skew = 0;
    bool there = ask(r, &a, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", BASE_STR(review));

    if (!there)
        say(r, FAILED, "apiserver", "%s: %s", kube_config_server(r->config), a.err.msg);
    else if (a.status == 401)
        say(r, FAILED, "credentials",
            "the token is expired or not known here (401): mount a projected service-account token");
    else if (a.status != 201)
        say(r, FAILED, "credentials", "SelfSubjectReview was answered with %d %s", a.status, a.reason);
    else if (agent_boot_identity(text_of(&a), r->cfg->node_name, node, &uid, &err))
        say(r, FAILED, "credentials", "%s", err.msg);
    else
        say(r, OK, "credentials", "bound to node %s", node);
    there = there && a.status != 401;
    if (there && agent_preflight_skew(text_of(&a), a.sent, a.got, &skew)) {
        if (skew > SKEW_MAX || skew < -SKEW_MAX)
            say(r, FAILED, "clock",
                "this node's clock is %.0f s %s the API server's; run an NTP client (validity of tokens and "
                "services is judged by it)",
                skew < 0 ? -skew : skew, skew < 0 ? "ahead of" : "behind");
        else
            say(r, OK, "clock", "within %.0f s of the API server's, and in the initial time namespace",
                SKEW_MAX);
    } else if (there) {
        say(r, SKIPPED, "clock", "the API server did not tell its time");
    }
    base_buf_fini(&a.body);
    return there;
}

static void check_crds(struct run *r)
{
    static const char *const groups[] = {CONTRACT_GROUP, CONTRACT_MASQUE_GROUP};

    for (size_t i = 0; i < BASE_LEN(groups); i++) {
        struct base_err err = {0};
        struct answer a;
        char path[200];

        (void)base_fmt(path, sizeof path, "/openapi/v3/apis/%s/%s", groups[i], CONTRACT_VERSION);
        if (!ask(r, &a, "GET", path, BASE_STR("")))
            say(r, FAILED, "crds", "%s", a.err.msg);
        else if (a.status == 404)
            say(r, FAILED, "crds", "API group %s/%s is not served: apply manifests/crds", groups[i],
                CONTRACT_VERSION);
        else if (a.status != 200)
            say(r, FAILED, "crds", "the OpenAPI document of %s was answered with %d %s", groups[i], a.status,
                a.reason);
        else if (contract_served(text_of(&a), groups[i], &err))
            say(r, FAILED, "crds", "%s", err.msg);
        else
            say(r, OK, "crds", "%s/%s has every field that this agent needs", groups[i], CONTRACT_VERSION);
        base_buf_fini(&a.body);
    }
}

static bool needed(const struct run *r, const struct agent_permission *p)
{
    switch (p->when) {
    case AGENT_PERMIT_ALWAYS:
        return true;
    case AGENT_PERMIT_EVENTS:
        return r->cfg->audit_events != 0;
    case AGENT_PERMIT_REVIEWS:
        return r->cfg->bearer || r->cfg->audit_page || r->cfg->metrics_auth;
    }
    return true;
}

/* -1: not answered; 0, 1. */
static int allowed(struct run *r, const struct agent_permission *p)
{
    struct base_buf body;
    struct answer a;
    cJSON *doc;
    int yes = -1;

    base_buf_init(&body, 4096);
    (void)base_buf_addf(
        &body,
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{"
        "\"resourceAttributes\":{\"group\":\"%s\",\"resource\":\"%s\",\"subresource\":\"%s\",\"verb\":"
        "\"%s\",\"namespace\":\"%s\"}}}",
        p->group, p->resource, p->subresource, p->verb, p->when == AGENT_PERMIT_REVIEWS ? "" : r->ns);
    if (ask(r, &a, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            (struct base_str){body.data, body.len}) &&
        a.status == 201) {
        doc = cJSON_ParseWithLength(text_of(&a).ptr, text_of(&a).len);
        yes = cJSON_IsTrue(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "status"), "allowed"));
        cJSON_Delete(doc);
    }
    base_buf_fini(&a.body);
    base_buf_fini(&body);
    return yes;
}

static void check_rbac(struct run *r)
{
    unsigned good = 0, bad = 0;

    for (size_t i = 0; i < agent_permissions_n; i++) {
        const struct agent_permission *p = &agent_permissions[i];
        int yes = needed(r, p) ? allowed(r, p) : 1;

        if (yes > 0) {
            good++;
            continue;
        }
        bad++;
        if (yes < 0) {
            say(r, FAILED, "rbac", "SelfSubjectAccessReview was not answered");
            return;
        }
        say(r, FAILED, "rbac", "may not %s %s%s%s%s%s: %s", p->verb, p->resource,
            p->subresource[0] ? "/" : "", p->subresource, p->group[0] ? "." : "", p->group,
            p->when == AGENT_PERMIT_REVIEWS ? "bind the ClusterRole holdfast-agent-reviews"
                                            : "apply manifests/rbac/agent.yaml");
    }
    if (!bad)
        say(r, OK, "rbac", "%u permissions in namespace %s", good, r->ns);
}

/* An instance of a node that is not ours: the fence of admission/agent.yaml must refuse it. Dry run. */
static void check_fence(struct run *r)
{
    static const char uuid[] = "00000000-0000-4000-8000-000000000000";
    struct base_err err = {0};
    struct base_buf body;
    struct answer a;
    char path[256];

    base_buf_init(&body, 4096);
    (void)base_buf_addf(
        &body,
        "{\"apiVersion\":\"%s/"
        "%s\",\"kind\":\"ProviderInstance\",\"metadata\":{\"name\":\"preflight.preflight\"},"
        "\"spec\":{\"provider\":\"preflight\",\"nodeName\":\"preflight\",\"nodeUID\":\"%s\",\"processID\":\"%"
        "s\","
        "\"epoch\":1,\"leaseDurationSeconds\":10,\"renew\":{\"bootID\":\"%s\",\"bootTimeMicros\":1,\"time\":"
        "\"2026-01-01T00:00:00Z\"}}}",
        CONTRACT_GROUP, CONTRACT_VERSION, uuid, uuid, uuid);
    (void)base_fmt(path, sizeof path,
                   "/apis/%s/%s/namespaces/%s/providerinstances?dryRun=All&fieldValidation=Strict",
                   CONTRACT_GROUP, CONTRACT_VERSION, r->ns);
    if (!ask(r, &a, "POST", path, (struct base_str){body.data, body.len}))
        say(r, FAILED, "policies", "%s", a.err.msg);
    else if (agent_preflight_fence(a.status, text_of(&a), &err))
        say(r, FAILED, "policies", "%s", err.msg);
    else
        say(r, OK, "policies", "another node's object is refused");
    base_buf_fini(&a.body);
    base_buf_fini(&body);
}

static void check_namespace(struct run *r)
{
    struct answer a;
    char path[128];
    cJSON *doc;
    const char *level;

    (void)base_fmt(path, sizeof path, "/api/v1/namespaces/%s", r->ns);
    if (!ask(r, &a, "GET", path, BASE_STR(""))) {
        say(r, FAILED, "namespace", "%s", a.err.msg);
    } else if (a.status == 404) {
        say(r, FAILED, "namespace", "%s does not exist: apply manifests/namespace.yaml", r->ns);
    } else if (a.status != 200) {
        say(r, SKIPPED, "namespace",
            "this agent may not read it; `kubectl holdfast check` does (a pod that runs has passed "
            "Pod Security)");
    } else {
        doc = cJSON_ParseWithLength(text_of(&a).ptr, text_of(&a).len);
        level = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "metadata"), "labels"),
            "pod-security.kubernetes.io/enforce"));
        if (level && strcmp(level, "privileged") == 0)
            say(r, OK, "namespace", "%s allows the node's network", r->ns);
        else
            say(r, FAILED, "namespace",
                "%s is not labelled pod-security.kubernetes.io/enforce=privileged: label it, or no pod "
                "starts where Pod Security is enforced",
                r->ns);
        cJSON_Delete(doc);
    }
    base_buf_fini(&a.body);
}

static void check_api(struct run *r)
{
    const struct agent_config *cfg = r->cfg;
    struct base_err err = {0};
    const char *ns = cfg->ns;
    int rc = kube_config_load(&r->config, cfg->kubeconfig[0] ? cfg->kubeconfig : NULL, NULL, &err);

    if (rc) {
        say(r, FAILED, "credentials", "kubeconfig: %s", err.msg);
        return;
    }
    if (!ns[0])
        ns = kube_config_namespace(r->config);
    if (!ns[0]) {
        say(r, FAILED, "namespace",
            "not given by the configuration, $POD_NAMESPACE, the service account or the kubeconfig; set one "
            "of them");
        return;
    }
    (void)base_copy(r->ns, sizeof r->ns, ns);
    rc = loop_new(&r->loop, &err);
    if (!rc)
        rc = kube_client_new(&r->client, r->loop, r->config, "holdfast-agent/" HOLDFAST_VERSION, NULL, &err);
    if (rc)
        say(r, FAILED, "apiserver", "%s", err.msg);
    else if (check_credentials(r)) {
        check_crds(r);
        check_rbac(r);
        check_fence(r);
        check_namespace(r);
    }
    kube_client_free(r->client);
    loop_free(r->loop);
    kube_config_free(r->config);
}

int agent_preflight(const struct agent_config *cfg, bool running, FILE *out)
{
    struct run r = {.cfg = cfg, .out = out};

    check_config(&r);
    check_tls(&r);
    check_audit(&r);
    check_tun(&r);
    check_ports(&r, running);
    check_api(&r);
    (void)fprintf(out, "%u ok, %u failed, %u skipped\n", r.n[OK], r.n[FAILED], r.n[SKIPPED]);
    return r.n[FAILED] ? 1 : 0;
}
