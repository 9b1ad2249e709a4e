/* SPDX-License-Identifier: Apache-2.0
 *
 * pkg/kube against a real kube-apiserver (test/kubeapi/run.sh DIR starts it): what it answers, what the client
 * makes of it, and what is left when the server stands still or dies.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kube/client.h"
#include "loop/log.h"
#include "loop/loop.h"

static unsigned passed, failed;
static struct loop *loop;
static struct kube_client *client;
static const char *dir;

#define CHECK(cond, ...)                                                                                     \
    do {                                                                                                     \
        if (cond) {                                                                                          \
            passed++;                                                                                        \
        } else {                                                                                             \
            failed++;                                                                                        \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #cond);                                                \
            printf(__VA_ARGS__);                                                                             \
            putchar('\n');                                                                                   \
        }                                                                                                    \
    } while (0)

struct answer {
    bool done;
    int code, status, port, err_code;
    bool sent;
    base_time sent_at;
    char reason[64], err[BASE_ERR_MSG_MAX];
    char *body;
    /* streams */
    unsigned opens, lines;
    char last[2048], first[2048];
    struct kube_call *call;
};

static void fill(struct answer *a, const struct kube_resp *r)
{
    a->done = true;
    a->code = r->code;
    a->status = r->http_status;
    a->port = r->local_port;
    a->err_code = r->err.code;
    a->sent = r->sent;
    a->sent_at = r->sent_at;
    base_copy(a->reason, sizeof a->reason, r->reason);
    base_copy(a->err, sizeof a->err, r->err.msg);
    free(a->body);
    a->body = calloc(1, r->body.len + 1);
    if (a->body && r->body.len)
        memcpy(a->body, r->body.ptr, r->body.len);
}

static void on_done(void *arg, const struct kube_resp *r)
{
    fill(arg, r);
}

static void on_stream(void *arg, enum kube_stream_what what, struct base_str line,
                      const struct kube_resp *end)
{
    struct answer *a = arg;

    switch (what) {
    case KUBE_STREAM_OPEN:
        a->opens++;
        break;
    case KUBE_STREAM_LINE:
        base_fmt(a->last, sizeof a->last, "%.*s", (int)(line.len < 2000 ? line.len : 2000), line.ptr);
        if (a->lines++ == 0)
            memcpy(a->first, a->last, sizeof a->first);
        break;
    case KUBE_STREAM_END:
        fill(a, end);
        break;
    }
}

static void begin(struct kube_client *c, struct answer *a, const char *method, const char *path,
                  const char *body, int lane, int ms)
{
    struct kube_req r = {.method = method,
                         .path = path,
                         .body = base_str_of(body),
                         .lane = lane,
                         .timeout = ms * BASE_MS,
                         .audit_id = "5eed5eed5eed5eed5eed5eed5eed5eed"};
    struct base_err err = {0};

    a->done = false;
    if (kube_request(c, &r, on_done, a, &a->call, &err) != BASE_OK) {
        a->done = true;
        a->code = err.code;
        base_copy(a->err, sizeof a->err, err.msg);
    }
}

static void wait_for(const struct answer *a)
{
    while (!a->done)
        loop_step(loop, true);
}

static void ask(struct answer *a, const char *method, const char *path, const char *body)
{
    begin(client, a, method, path, body, KUBE_LANE_DEFAULT, 10000);
    wait_for(a);
}

static void watch(struct answer *a, const char *path, int lane, int ms, int idle_ms)
{
    struct kube_req r = {.method = "GET", .path = path, .lane = lane, .timeout = ms * BASE_MS};

    if (kube_stream(client, &r, idle_ms * BASE_MS, on_stream, a, &a->call, NULL) != BASE_OK)
        abort();
}

/* The value of a text member, by its first appearance; good enough for metadata of one object. */
static const char *member(const char *json, const char *key, char dst[128])
{
    char pattern[64];
    const char *p;

    base_fmt(pattern, sizeof pattern, "\"%s\":\"", key);
    p = json ? strstr(json, pattern) : NULL;
    dst[0] = '\0';
    if (p)
        base_fmt(dst, 128, "%.*s", (int)strcspn(p + strlen(pattern), "\""), p + strlen(pattern));
    return dst;
}

#define MAPS "/api/v1/namespaces/default/configmaps"

static void objects_and_reasons(void)
{
    struct answer a = {0};
    char rv[128], uid[128], body[1024];

    ask(&a, "GET", "/version", NULL);
    CHECK(a.code == BASE_OK && a.status == 200, "%s", a.err);
    ask(&a, "GET", MAPS "/none", NULL);
    CHECK(a.status == 404 && !strcmp(a.reason, "NotFound") && a.err_code == BASE_ENOTFOUND, "%d %s", a.status,
          a.err);
    ask(&a, "POST", MAPS "?fieldValidation=Strict",
        "{\"metadata\":{\"name\":\"one\"},\"data\":{\"k\":\"1\"}}");
    CHECK(a.status == 201 && a.sent && a.sent_at > 0, "%d %s", a.status, a.err);
    CHECK(!strchr(a.body, '\n') || !strstr(a.body, "\n  "), "not pretty-printed");
    member(a.body, "resourceVersion", rv);
    member(a.body, "uid", uid);
    ask(&a, "POST", MAPS, "{\"metadata\":{\"name\":\"one\"}}");
    CHECK(a.status == 409 && !strcmp(a.reason, "AlreadyExists"), "%d %s", a.status, a.err);
    base_fmt(
        body, sizeof body,
        "{\"metadata\":{\"name\":\"one\",\"uid\":\"%s\",\"resourceVersion\":\"%s\"},\"data\":{\"k\":\"2\"}}",
        uid, rv);
    ask(&a, "PUT", MAPS "/one", body);
    CHECK(a.status == 200, "%d %s", a.status, a.err);
    ask(&a, "PUT", MAPS "/one", body);
    CHECK(a.status == 409 && !strcmp(a.reason, "Conflict") && a.err_code == BASE_ECONFLICT, "%d %s", a.status,
          a.err);
    ask(&a, "POST", MAPS "?fieldValidation=Strict", "{\"metadata\":{\"name\":\"two\"},\"datum\":{}}");
    CHECK(a.status == 400 && !strcmp(a.reason, "BadRequest"), "%d %s", a.status, a.err);
    ask(&a, "POST", MAPS, "{\"metadata\":{\"name\":\"Not A Name\"}}");
    CHECK(a.status == 422 && !strcmp(a.reason, "Invalid") && a.err_code == BASE_EINVAL, "%d %s", a.status,
          a.err);
    ask(&a, "DELETE", MAPS "/one",
        "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"wrong\"}}");
    CHECK(a.status == 409, "%d %s", a.status, a.err);
    {
        struct base_buf b;

        base_buf_init(&b, 512);
        base_buf_addz(&b, MAPS "?limit=1&labelSelector=");
        kube_escape(&b, BASE_STR("a in (b, c),!d"));
        ask(&a, "GET", b.data, NULL);
        CHECK(a.status == 200 && strstr(a.body, "\"items\":[]"), "%d %s %s", a.status, a.err, a.body);
        base_buf_fini(&b);
    }
    free(a.body);
}

static void one_connection_for_many(void)
{
    static struct answer a[60];
    unsigned ok = 0, same = 0;

    for (unsigned i = 0; i < BASE_LEN(a); i++)
        begin(client, &a[i], "GET", MAPS "/one", NULL, KUBE_LANE_DEFAULT, 20000);
    for (unsigned i = 0; i < BASE_LEN(a); i++) {
        wait_for(&a[i]);
        ok += a[i].status == 200;
        same += a[i].port == a[0].port;
        free(a[i].body);
    }
    CHECK(ok == BASE_LEN(a) && same == ok, "%u of %zu, %u on one connection", ok, BASE_LEN(a), same);
}

static void rolling_watch(int lane)
{
    struct answer w = {0}, list = {0}, put = {0};
    char rv[128], path[512];
    base_time t0;

    begin(client, &list, "GET", MAPS "?limit=1", NULL, lane, 10000);
    wait_for(&list);
    member(list.body, "resourceVersion", rv);
    CHECK(rv[0] != '\0', "%s", list.err);
    base_fmt(path, sizeof path, MAPS "?watch=1&allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion=%s",
             rv);
    t0 = loop_clock();
    watch(&w, path, lane, 20000, 10000);
    while (!w.opens && !w.done)
        loop_step(loop, true);
    ask(&put, "POST", MAPS, "{\"metadata\":{\"generateName\":\"seen-\"}}");
    CHECK(put.status == 201, "%s", put.err);
    while (!w.lines && !w.done)
        loop_step(loop, true);
    CHECK(strstr(w.first, "\"type\":\"ADDED\"") && strstr(w.first, "seen-"), "%s", w.first);
    begin(client, &list, "GET", MAPS "?limit=1", NULL, lane, 10000);
    wait_for(&list);
    wait_for(&w);
    CHECK(w.code == BASE_OK && w.status == 200 && w.err_code == BASE_OK, "%s %s", base_code_name(w.code),
          w.err);
    CHECK(strstr(w.last, "\"type\":\"BOOKMARK\""), "%s", w.last);
    CHECK(loop_clock() - t0 < 15 * BASE_SEC, "%lld ms", (long long)((loop_clock() - t0) / BASE_MS));
    CHECK(list.port == w.port && list.port != put.port, "LIST %d, watch %d, others %d", list.port, w.port,
          put.port);
    free(w.body);
    free(list.body);
    free(put.body);
}

static struct kube_client *with_token_file(struct kube_config **cfg, const char *server)
{
    char path[512], text[2048];
    struct kube_client *c = NULL;
    struct base_err err = {0};
    FILE *f;

    base_fmt(path, sizeof path, "%s/token.kubeconfig", dir);
    base_fmt(text, sizeof text,
             "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
             "clusters: [{name: k, cluster: {server: '%s', certificate-authority: ca.crt}}]\n"
             "users: [{name: u, user: {tokenFile: token}}]\n",
             server);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
    if (kube_config_load(cfg, path, NULL, &err) != BASE_OK ||
        kube_client_new(&c, loop, *cfg, "holdfast-test/1", NULL, &err) != BASE_OK) {
        printf("%s\n", err.msg);
        abort();
    }
    return c;
}

static void rotated_token(const char *server)
{
    char token[512], good[512];
    struct kube_config *cfg = NULL;
    struct kube_client *c;
    struct answer a = {0};
    FILE *f;

    base_fmt(token, sizeof token, "%s/token", dir);
    base_fmt(good, sizeof good, "%s/good-token", dir);
    f = fopen(token, "w");
    if (!f || fputs("not-a-token\n", f) < 0 || fclose(f) != 0)
        abort();
    c = with_token_file(&cfg, server);
    begin(c, &a, "GET", MAPS, NULL, KUBE_LANE_DEFAULT, 10000);
    wait_for(&a);
    CHECK(a.status == 401 && !strcmp(a.reason, "Unauthorized") && a.err_code == BASE_EDENIED, "%d %s",
          a.status, a.err);
    if (rename(good, token) != 0)
        abort();
    begin(c, &a, "PUT", MAPS "/one", "{}", KUBE_LANE_DEFAULT, 10000);
    wait_for(&a);
    CHECK(a.status == 403 && !strcmp(a.reason, "Forbidden"), "the new token is known: %d %s", a.status,
          a.err);
    kube_client_free(c);
    kube_config_free(cfg);
    free(a.body);
}

static void audit_id_is_recorded(void)
{
    char path[512], line[65536];
    bool seen = false;
    FILE *f;

    base_fmt(path, sizeof path, "%s/audit.log", dir);
    f = fopen(path, "r");
    while (f && !seen && fgets(line, sizeof line, f))
        seen = strstr(line, "5eed5eed5eed5eed5eed5eed5eed5eed") && strstr(line, "holdfast-test/1");
    if (f)
        fclose(f);
    CHECK(seen, "Audit-ID and User-Agent in %s", path);
}

static void server_stands_still(pid_t server, int lane)
{
    struct answer def = {0}, renew = {0}, after = {0}, w = {0}, list = {0};
    char path[512], rv[128];
    base_time t0;

    ask(&def, "GET", MAPS "/one", NULL);
    begin(client, &renew, "GET", MAPS "/one", NULL, KUBE_LANE_RENEW, 10000);
    wait_for(&renew);
    begin(client, &list, "GET", MAPS "?limit=1", NULL, lane, 10000);
    wait_for(&list);
    base_fmt(path, sizeof path, MAPS "?watch=1&timeoutSeconds=60&resourceVersion=%s",
             member(list.body, "resourceVersion", rv));
    watch(&w, path, lane, 60000, 1500);
    while (!w.opens)
        loop_step(loop, true);
    CHECK(renew.port != def.port && list.port != def.port && list.port != renew.port, "%d %d %d", def.port,
          renew.port, list.port);
    {
        int def_port = def.port, renew_port = renew.port;

        kill(server, SIGSTOP);
        t0 = loop_clock();
        begin(client, &renew, "POST", MAPS, "{\"metadata\":{\"name\":\"while-stopped\"}}", KUBE_LANE_RENEW,
              500);
        begin(client, &def, "POST", MAPS, "{\"metadata\":{\"name\":\"while-stopped-2\"}}", KUBE_LANE_DEFAULT,
              1000);
        wait_for(&renew);
        CHECK(renew.code == BASE_ETIMEDOUT && renew.sent && renew.port == renew_port, "%s %s",
              base_code_name(renew.code), renew.err);
        CHECK(!def.done, "the other lane's request goes on");
        wait_for(&def);
        CHECK(def.code == BASE_ETIMEDOUT && def.sent && def.port == def_port, "%s", def.err);
        wait_for(&w);
        CHECK(w.code == BASE_ETIMEDOUT && strstr(w.err, "no byte"), "%s %s", base_code_name(w.code), w.err);
        CHECK(loop_clock() - t0 < 10 * BASE_SEC, "%lld ms", (long long)((loop_clock() - t0) / BASE_MS));
        /* a new connection is accepted by the kernel and then nothing: certainly not sent */
        begin(client, &after, "PUT", MAPS "/one", "{}", KUBE_LANE_RENEW, 500);
        wait_for(&after);
        CHECK(after.code == BASE_ETIMEDOUT && !after.sent, "%s sent=%d", after.err, after.sent);
        kill(server, SIGCONT);
        begin(client, &after, "GET", MAPS "/one", NULL, KUBE_LANE_RENEW, 10000);
        wait_for(&after);
        CHECK(after.status == 200 && after.port != renew_port, "%s, port %d again", after.err, after.port);
        ask(&after, "GET", MAPS "/one", NULL);
        CHECK(after.status == 200 && after.port != def_port, "%s, port %d again", after.err, after.port);
    }
    free(def.body);
    free(renew.body);
    free(after.body);
    free(w.body);
    free(list.body);
}

static void server_dies(pid_t server, int lane)
{
    struct answer a = {0}, w = {0};
    bool known = true;
    base_time t0;

    watch(&w, MAPS "?watch=1&timeoutSeconds=60", lane, 60000, 0);
    while (!w.opens)
        loop_step(loop, true);
    kill(server, SIGKILL);
    t0 = loop_clock();
    wait_for(&w);
    CHECK(w.code == BASE_ECLOSED, "%s %s", base_code_name(w.code), w.err);
    CHECK(loop_clock() - t0 < 5 * BASE_SEC, "%lld ms", (long long)((loop_clock() - t0) / BASE_MS));
    do { /* a kept connection may be found dead only by this request; the next ones are refused */
        ask(&a, "PUT", MAPS "/one", "{}");
        known = a.code == BASE_EIO || a.code == BASE_ECLOSED;
    } while (known && a.sent && loop_clock() - t0 < 20 * BASE_SEC);
    CHECK(known, "%s %s", base_code_name(a.code), a.err);
    CHECK(a.code == BASE_EIO && !a.sent, "%s %s", base_code_name(a.code), a.err);
    free(a.body);
    free(w.body);
}

int main(int argc, char **argv)
{
    char path[512];
    struct kube_config *cfg = NULL;
    struct loop_log *log = loop_log_new(STDERR_FILENO, LOOP_WARN, false, "kube");
    struct base_err err = {0};
    int lane, pid = 0;
    FILE *f;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    dir = argv[1];
    signal(SIGPIPE, SIG_IGN);
    base_fmt(path, sizeof path, "%s/apiserver.pid", dir);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%d", &pid) != 1 || pid <= 1) {
        fprintf(stderr, "%s holds no process id\n", path);
        return 2;
    }
    fclose(f);
    base_fmt(path, sizeof path, "%s/admin.kubeconfig", dir);
    if (loop_new(&loop, &err) != BASE_OK || kube_config_load(&cfg, path, NULL, &err) != BASE_OK ||
        kube_client_new(&client, loop, cfg, "holdfast-test/1", log, &err) != BASE_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    lane = kube_lane_new(client);
    objects_and_reasons();
    one_connection_for_many();
    rolling_watch(lane);
    rotated_token(kube_config_server(cfg));
    audit_id_is_recorded();
    server_stands_still((pid_t)pid, lane);
    server_dies((pid_t)pid, lane);
    kube_client_free(client);
    kube_config_free(cfg);
    loop_free(loop);
    loop_log_free(log);
    printf("kube-apiserver: %u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
