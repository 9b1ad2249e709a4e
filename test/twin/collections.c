/* SPDX-License-Identifier: Apache-2.0
 *
 * Collections on a real API server: lists, changes, proofs, a stopped and a restarted server.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/test_samples.h"
#include "twin.h"

/* ---- what a collection told ---- */
#define NOTES_MAX 4096
struct told {
    enum kubestore_notice what;
    enum store_event_type type;
    char name[CONTRACT_NAME_SIZE], rv[CONTRACT_RV_SIZE], node[CONTRACT_NODE_SIZE];
    int64_t epoch;
    uint64_t proof;
    base_time t0, at;
};
struct recorder {
    struct told *n;
    size_t count;
    /* what is waited for */
    enum kubestore_notice until;
    uint64_t proof;
    const char *name;
    bool done;
};

static void on_note(void *arg, const struct kubestore_note *n)
{
    struct recorder *rec = arg;
    struct told *t = &rec->n[rec->count < NOTES_MAX - 1 ? rec->count++ : NOTES_MAX - 1];

    *t = (struct told){.what = n->what, .proof = n->proof_id, .t0 = n->t0, .at = loop_clock()};
    (void)base_copy(t->name, sizeof t->name, n->name ? n->name : "");
    (void)base_copy(t->rv, sizeof t->rv, n->version ? n->version : "");
    if (n->ev) {
        t->type = n->ev->type;
        if (n->ev->object.kind == CONTRACT_CLAIM) {
            t->epoch = n->ev->object.u.claim.spec.epoch;
            (void)base_copy(t->node, sizeof t->node, n->ev->object.u.claim.spec.holder.node);
        }
    }
    if (n->what == rec->until && (!rec->proof || n->proof_id == rec->proof) &&
        (!rec->name || strcmp(t->name, rec->name) == 0))
        rec->done = true;
    if (rec->proof && n->proof_id == rec->proof &&
        (n->what == KUBESTORE_NOT_PROVED || n->what == KUBESTORE_PROVED))
        rec->done = true;
}

static bool wait_note(struct rig *r, struct recorder *rec, enum kubestore_notice what, uint64_t proof,
                      const char *name, int64_t ms)
{
    rec->until = what;
    rec->proof = proof;
    rec->name = name;
    rec->done = false;
    return rig_wait(r, &rec->done, ms);
}

static size_t count(const struct recorder *rec, enum kubestore_notice what, size_t from);

/* Until `n` notes of that kind came after `from`; they may have come before this call. */
static bool wait_count(struct rig *r, struct recorder *rec, enum kubestore_notice what, size_t from, size_t n,
                       int64_t ms)
{
    base_time end = base_time_add(loop_clock(), ms * BASE_MS);

    while (count(rec, what, from) < n && loop_clock() < end)
        (void)wait_note(r, rec, what, 0, NULL, (end - loop_clock()) / BASE_MS + 1);
    return count(rec, what, from) >= n;
}

static size_t count(const struct recorder *rec, enum kubestore_notice what, size_t from)
{
    size_t n = 0;

    for (size_t i = from; i < rec->count; i++)
        n += rec->n[i].what == what;
    return n;
}

/* The last note of that kind; one that says nothing when there is none. */
static const struct told *last(const struct recorder *rec, enum kubestore_notice what)
{
    static const struct told none;

    for (size_t i = rec->count; i > 0; i--)
        if (rec->n[i - 1].what == what)
            return &rec->n[i - 1];
    return &none;
}

/* ---- writes ---- */
static struct contract_object write_it(struct rig *r, enum who who, enum store_op op,
                                       struct contract_object o)
{
    struct store_req req = {.op = op, .kind = o.kind, .object = &o, .uid = o.u.meta.uid};
    struct contract_object back = o;
    struct answer a;

    (void)base_copy(req.name, sizeof req.name, o.u.meta.name);
    (void)base_copy(req.rv, sizeof req.rv, o.u.meta.rv);
    real_do(r, who, &req, &a);
    if (a.code != BASE_OK) {
        report(r, false, "set-up of a collection test", "%s: %d %s", o.u.meta.name, a.http, a.text);
    } else if (a.n) {
        back = a.objects[0];
    }
    answer_clear(&a);
    return back;
}

static struct contract_object suspended(struct rig *r, struct contract_object o, bool yes)
{
    o.u.binding.spec.suspended = yes;
    return write_it(r, ADMIN, STORE_UPDATE, o);
}

static struct kubestore_watch *watch(struct rig *r, struct recorder *rec, enum contract_kind kind,
                                     const struct store_selector *sel)
{
    struct kubestore_watch *w = NULL;
    struct base_err err = {0};

    rec->count = 0;
    if (kubestore_watch_new(&w, r->store[ADMIN], kind, sel, on_note, rec, &err)) {
        report(r, false, "a watch starts", "%s", err.msg);
        abort();
    }
    return w;
}

/* ---- the tests ---- */
static void test_changes(struct rig *r, struct recorder *rec)
{
    struct contract_object a = write_it(r, ADMIN, STORE_CREATE, sample_binding("w1")), b;
    struct kubestore_watch *w = watch(r, rec, CONTRACT_BINDING, NULL);
    size_t mark;

    report(r, !kubestore_watch_synced(w), "collection: not in step before its list", "synced");
    report(r, wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000), "collection: listed", "no LISTED");
    report(r, count(rec, KUBESTORE_RELIST, 0) == 1 && rec->n[0].what == KUBESTORE_RELIST,
           "collection: RELIST comes first", "%zu of them", count(rec, KUBESTORE_RELIST, 0));
    rig_sleep(r, 300);
    report(r, kubestore_watch_synced(w), "collection: in step", "not synced");
    mark = rec->count;
    b = write_it(r, ADMIN, STORE_CREATE, sample_binding("w2"));
    a = suspended(r, a, true);
    a = suspended(r, a, false);
    (void)write_it(r, ADMIN, STORE_DELETE, b);
    report(r, wait_count(r, rec, KUBESTORE_EVENT, mark, 4, 3000), "collection: changes arrive", "not all");
    rig_sleep(r, 300);
    report(r,
           rec->count == mark + 4 && rec->n[mark].type == STORE_ADDED &&
               rec->n[mark + 1].type == STORE_MODIFIED && rec->n[mark + 2].type == STORE_MODIFIED &&
               rec->n[mark + 3].type == STORE_DELETED,
           "collection: each change once, in order", "%zu notes", rec->count - mark);
    kubestore_watch_free(w);
    (void)write_it(r, ADMIN, STORE_DELETE, a);
}

static void test_selector(struct rig *r, struct recorder *rec)
{
    struct contract_object svc = sample_service("sw", "t1", "fd12:0:0:1::/64", loop_wall() + 60 * SAMPLE_S),
                           c;
    struct store_selector sel = {.node = "edge1"};
    struct kubestore_watch *w;
    struct store_req req;
    struct answer a = {0};
    size_t mark;

    svc = write_it(r, ADMIN, STORE_CREATE, svc);
    c = sample_claim(70, "edge1", "sw", svc.u.meta.uid);
    req = (struct store_req){.op = STORE_CREATE, .kind = CONTRACT_CLAIM, .object = &c};
    for (int i = 0; i < 100 && a.http != 201; i++) { /* until the pool policy has seen the service */
        answer_clear(&a);
        real_do(r, ADMIN, &req, &a);
        if (a.http != 201)
            rig_sleep(r, 100);
    }
    if (a.http != 201) {
        report(r, false, "selector: set-up", "%s", a.text);
        return;
    }
    c = a.objects[0];
    answer_clear(&a);
    w = watch(r, rec, CONTRACT_CLAIM, &sel);
    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000);
    report(r, count(rec, KUBESTORE_EVENT, 0) >= 1, "selector: the row is listed", "no row");
    mark = rec->count;
    sample_takeover(&c, "edge2", 500);
    c = write_it(r, ADMIN, STORE_UPDATE, c);
    report(r, wait_count(r, rec, KUBESTORE_EVENT, mark, 1, 3000), "selector: the row's leaving is told",
           "no event");
    report(r,
           last(rec, KUBESTORE_EVENT)->type == STORE_DELETED && last(rec, KUBESTORE_EVENT)->epoch == 1 &&
               strcmp(last(rec, KUBESTORE_EVENT)->rv, c.u.meta.rv) == 0,
           "selector: DELETED with the old content and the new version",
           "type %d, epoch %lld, version %s (row's: %s)", (int)last(rec, KUBESTORE_EVENT)->type,
           (long long)last(rec, KUBESTORE_EVENT)->epoch, last(rec, KUBESTORE_EVENT)->rv, c.u.meta.rv);
    kubestore_watch_free(w);
    (void)write_it(r, ADMIN, STORE_DELETE, c);
    (void)write_it(r, ADMIN, STORE_DELETE, svc);
}

static unsigned audit_requests(const struct rig *r, long *from)
{
    char path[1024], line[16384];
    unsigned n = 0;
    FILE *f;

    (void)base_fmt(path, sizeof path, "%s/audit.log", r->dir);
    f = fopen(path, "r");
    if (!f)
        return 0;
    (void)fseek(f, *from, SEEK_SET);
    while (fgets(line, sizeof line, f))
        n += strstr(line, "holdfast-twin-test") && strstr(line, "/connectorbindings?") &&
             !strstr(line, "\"ResponseStarted\"");
    *from = ftell(f);
    (void)fclose(f);
    return n;
}

#define PROOFS 5
static void test_proofs(struct rig *r, struct recorder *rec)
{
    struct contract_object a = write_it(r, ADMIN, STORE_CREATE, sample_binding("p1")),
                           other = sample_service("p", "t1", "fd12:0:0:1::/64", loop_wall() + 60 * SAMPLE_S);
    struct kubestore_watch *w = watch(r, rec, CONTRACT_BINDING, &(struct store_selector){.connector = "p1"});
    base_time asked, worst = 0, sum = 0;
    long audit = 0;
    unsigned reads;
    bool all = true, order = true, fresh = true;
    size_t mark;

    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000);
    other = write_it(r, ADMIN, STORE_CREATE, other);
    rig_sleep(r, 300);
    mark = rec->count;
    (void)audit_requests(r, &audit);
    for (uint64_t id = 1; id <= PROOFS; id++) {
        a = suspended(r, a, id % 2);
        other.u.service.valid_until++; /* another kind: R is beyond the last change of this collection */
        other = write_it(r, ADMIN, STORE_UPDATE, other);
        asked = loop_clock();
        kubestore_watch_prove(w, id, 8 * BASE_SEC);
        all &=
            wait_note(r, rec, KUBESTORE_PROVED, id, NULL, 10000) && last(rec, KUBESTORE_PROVED)->proof == id;
        if (!all)
            break;
        order &= strcmp(last(rec, KUBESTORE_EVENT)->rv, a.u.meta.rv) == 0;
        fresh &= last(rec, KUBESTORE_PROVED)->t0 >= asked && last(rec, KUBESTORE_PROVED)->t0 <= loop_clock();
        sum += loop_clock() - asked;
        worst = base_time_max(worst, loop_clock() - asked);
    }
    report(r, all, "proof: by bookmark", "one did not come");
    report(r, order, "proof: what was written before is told before", "the last change was not told");
    report(r, fresh, "proof: t0 lies after the asking", "it does not");
    report(r, worst < 6 * BASE_SEC, "proof: within 6 s", "the slowest took %lld ms",
           (long long)(worst / BASE_MS));
    report(r, count(rec, KUBESTORE_RELIST, mark) <= 1,
           "proof: without a full list (one is forgiven on a busy machine)", "%zu lists",
           count(rec, KUBESTORE_RELIST, mark));
    rig_sleep(r, 3500); /* the last probe ends, its audit line is written */
    reads = audit_requests(r, &audit);
    report(r, reads <= 2 * PROOFS + 3, "proof: costs two reads", "%u reads for %d proofs", reads, PROOFS);
    (void)printf("note: %d proofs: mean %lld ms, worst %lld ms, %u reads\n", PROOFS,
                 (long long)(sum / PROOFS / BASE_MS), (long long)(worst / BASE_MS), reads);
    asked = loop_clock();
    mark = rec->count;
    for (uint64_t id = 100; id < 120; id++)
        kubestore_watch_prove(w, id, 8 * BASE_SEC);
    (void)wait_note(r, rec, KUBESTORE_PROVED, 115, NULL, 10000);
    rig_sleep(r, 100);
    report(r, count(rec, KUBESTORE_PROVED, mark) == 16 && count(rec, KUBESTORE_NOT_PROVED, mark) == 4,
           "proof: sixteen at a time, the others are refused", "%zu proved, %zu not",
           count(rec, KUBESTORE_PROVED, mark), count(rec, KUBESTORE_NOT_PROVED, mark));
    kubestore_watch_free(w);
    (void)write_it(r, ADMIN, STORE_DELETE, a);
    (void)write_it(r, ADMIN, STORE_DELETE, other);
}

static void test_pages(struct rig *r, struct recorder *rec)
{
    enum { N = 620 };
    struct kubestore_watch *w;
    struct store_req req = {.op = STORE_LIST, .kind = CONTRACT_BINDING, .selector = {.vpc = "vpc-pages"}};
    struct answer a;
    int failed = r->failed;

    for (unsigned i = 0; i < N && r->failed == failed; i++) {
        struct contract_object o;
        char name[32];

        (void)base_fmt(name, sizeof name, "page%03u", i);
        o = sample_binding(name);
        (void)base_copy(o.u.binding.spec.vpc, sizeof o.u.binding.spec.vpc, "vpc-pages");
        (void)write_it(r, ADMIN, STORE_CREATE, o);
    }
    real_do(r, AGENT1, &req, &a);
    report(r, a.code == BASE_OK && a.n == N && a.list_rv[0], "pages: LIST", "%d, %zu rows", a.http, a.n);
    w = watch(r, rec, CONTRACT_BINDING, &req.selector);
    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 8000);
    report(r, count(rec, KUBESTORE_EVENT, 0) == N && count(rec, KUBESTORE_RELIST, 0) == 1,
           "pages: collection", "%zu rows", count(rec, KUBESTORE_EVENT, 0));
    kubestore_watch_free(w);
    answer_clear(&a);
    report(r,
           real_raw(r, ADMIN, "DELETE",
                    "/apis/masque.galactic.datumapis.com/v1alpha1/namespaces/" NAMESPACE "/connectorbindings",
                    "") == 200,
           "pages: cleaned up", "deletecollection failed");
}

/* An object that the schema passes and this program refuses: an all-zero UUID. */
static void test_nonsense(struct rig *r, struct recorder *rec)
{
    static const char
        path[] = "/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/" NAMESPACE "/hostattachments",
        body[] = "{\"apiVersion\":\"edge.galactic.datumapis.com/"
                 "v1alpha1\",\"kind\":\"HostAttachment\",\"metadata\":{\"name\":\"masque.edge9.vpc-n\"},"
                 "\"spec\":{\"vpc\":\"vpc-n\",\"instanceRef\":{\"name\":\"masque.edge9\",\"epoch\":1,\"uid\":"
                 "\"00000000-0000-0000-0000-000000000000\"}}}";
    struct kubestore_watch *w = watch(r, rec, CONTRACT_ATTACHMENT, NULL);
    struct store_req req = {.op = STORE_GET, .kind = CONTRACT_ATTACHMENT, .name = "masque.edge9.vpc-n"};
    struct answer ans;

    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000);
    rig_sleep(r, 200);
    report(r, real_raw(r, ADMIN, "POST", path, body) == 201, "nonsense: the server stores it", "it does not");
    report(r,
           wait_count(r, rec, KUBESTORE_BAD_OBJECT, 0, 1, 3000) &&
               strcmp(last(rec, KUBESTORE_BAD_OBJECT)->name, "masque.edge9.vpc-n") == 0,
           "nonsense: told as a bad object", "no note");
    real_do(r, ADMIN, &req, &ans);
    report(r, ans.code == BASE_EIO && strstr(ans.text, "spec.instanceRef.uid"),
           "nonsense: a GET says what is wrong", "%s: %s", base_code_name(ans.code), ans.text);
    answer_clear(&ans);
    req = (struct store_req){.op = STORE_LIST, .kind = CONTRACT_ATTACHMENT, .selector = {.vpc = "vpc-n"}};
    real_do(r, ADMIN, &req, &ans);
    report(r, ans.code == BASE_EIO && strstr(ans.text, "masque.edge9.vpc-n"),
           "nonsense: a LIST names the row", "%s: %s", base_code_name(ans.code), ans.text);
    answer_clear(&ans);
    kubestore_watch_prove(w, 1, 8 * BASE_SEC);
    report(r, wait_note(r, rec, KUBESTORE_PROVED, 1, NULL, 10000) && last(rec, KUBESTORE_PROVED)->proof == 1,
           "nonsense: the collection goes on", "no proof");
    kubestore_watch_free(w);
    w = watch(r, rec, CONTRACT_ATTACHMENT, NULL);
    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000);
    report(r, count(rec, KUBESTORE_BAD_OBJECT, 0) == 1, "nonsense: told by a list too", "no note");
    kubestore_watch_free(w);
    report(r,
           real_raw(r, ADMIN, "DELETE",
                    "/apis/edge.galactic.datumapis.com/v1alpha1/namespaces/" NAMESPACE
                    "/hostattachments/masque.edge9.vpc-n",
                    "") == 200,
           "nonsense: removed", "it stays");
}

/* ---- the server's process ---- */
static pid_t server_pid(const struct rig *r)
{
    char path[1024], text[32] = "";
    uint64_t pid = 0;
    FILE *f;

    (void)base_fmt(path, sizeof path, "%s/apiserver.pid", r->dir);
    f = fopen(path, "r");
    if (f) {
        if (fgets(text, sizeof text, f))
            text[strcspn(text, "\n")] = '\0';
        (void)fclose(f);
    }
    if (base_parse_u64(base_str_of(text), 1 << 30, &pid) || pid < 2) {
        (void)fprintf(stderr, "twin: %s holds no process id\n", path);
        abort();
    }
    return (pid_t)pid;
}

/* Stops the server and returns when none of its threads runs any more (the signal reaches them one after the
 * other). */
static void stop_server(struct rig *r)
{
    pid_t pid = server_pid(r);
    bool running = true;

    (void)kill(pid, SIGSTOP);
    for (int i = 0; i < 1000 && running; i++) {
        char path[300], text[512];
        DIR *d;
        struct dirent *e;

        (void)base_fmt(path, sizeof path, "/proc/%d/task", (int)pid);
        d = opendir(path);
        if (!d)
            abort();
        running = false;
        while ((e = readdir(d))) {
            const char *state = NULL;
            FILE *f;

            (void)base_fmt(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, e->d_name);
            f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
            if (f && fgets(text, sizeof text, f))
                state = strrchr(text, ')');
            if (f)
                (void)fclose(f);
            running |= state && state[1] && state[2] != 'T';
        }
        (void)closedir(d);
        if (running)
            rig_sleep(r, 5);
    }
    if (running)
        abort();
}

static void test_stopped(struct rig *r, struct recorder *rec)
{
    struct contract_object a = write_it(r, ADMIN, STORE_CREATE, sample_binding("z1"));
    struct kubestore_watch *w = watch(r, rec, CONTRACT_BINDING, NULL);
    struct store_req
        put = {.op = STORE_UPDATE, .kind = CONTRACT_BINDING, .object = &a, .timeout = 1500 * BASE_MS},
        get = {.op = STORE_GET, .kind = CONTRACT_BINDING, .name = "t1.z1", .timeout = 1500 * BASE_MS};
    struct answer ans;
    base_time asked;
    bool up = false;

    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000);
    rig_sleep(r, 300);
    stop_server(r);
    asked = loop_clock();
    kubestore_watch_prove(w, 7, 4 * BASE_SEC);
    report(r,
           wait_note(r, rec, KUBESTORE_NOT_PROVED, 7, NULL, 8000) &&
               rec->n[rec->count - 1].what == KUBESTORE_NOT_PROVED,
           "stopped server: NOT_PROVED", "the last note is of kind %d, proof %llu, version %s",
           (int)rec->n[rec->count - 1].what, (unsigned long long)rec->n[rec->count - 1].proof,
           rec->n[rec->count - 1].rv);
    report(r, loop_clock() - asked < 4500 * BASE_MS, "stopped server: in time", "after %lld ms",
           (long long)((loop_clock() - asked) / BASE_MS));
    a.u.binding.spec.suspended = true;
    real_do(r, ADMIN, &put, &ans);
    report(r, ans.code == BASE_EUNKNOWN, "stopped server: a write is of unknown outcome", "%s",
           base_code_name(ans.code));
    answer_clear(&ans);
    real_do(r, ADMIN, &get, &ans);
    report(r, ans.code == BASE_ETIMEDOUT, "stopped server: a read times out", "%s", base_code_name(ans.code));
    answer_clear(&ans);
    (void)kill(server_pid(r), SIGCONT);
    for (uint64_t id = 20; id < 30 && !up; id++) {
        kubestore_watch_prove(w, id, 4 * BASE_SEC);
        (void)wait_note(r, rec, KUBESTORE_PROVED, id, NULL, 6000);
        up = rec->n[rec->count - 1].what == KUBESTORE_PROVED;
    }
    report(r, up, "stopped server: proofs come again when it goes on", "none of ten");
    kubestore_watch_free(w);
    real_do(r, ADMIN,
            &(struct store_req){
                .op = STORE_DELETE, .kind = CONTRACT_BINDING, .name = "t1.z1", .uid = a.u.meta.uid},
            &ans);
    answer_clear(&ans);
}

/* Kills the server and starts it again with the same command line. */
static void restart_server(struct rig *r)
{
    static char text[65536];
    char path[1024], *argv[256];
    pid_t pid = server_pid(r), child;
    size_t n = 0;
    ssize_t len;
    int fd, argc = 0;
    FILE *f;

    (void)base_fmt(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY);
    len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len <= 0)
        abort();
    (void)close(fd);
    while (n < (size_t)len && argc < 255) {
        argv[argc++] = text + n;
        n += strlen(text + n) + 1;
    }
    argv[argc] = NULL;
    (void)kill(pid, SIGKILL);
    for (int i = 0; i < 200 && kill(pid, 0) == 0; i++)
        rig_sleep(r, 20);
    child = fork();
    if (child == 0) {
        (void)base_fmt(path, sizeof path, "%s/apiserver.log", r->dir);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)setsid();
        if (fd >= 0) {
            (void)dup2(fd, 1);
            (void)dup2(fd, 2);
        }
        for (int i = 3; i < 1024; i++)
            (void)close(i);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    (void)base_fmt(path, sizeof path, "%s/apiserver.pid", r->dir);
    f = fopen(path, "w");
    if (!f || child < 0)
        abort();
    (void)fprintf(f, "%d\n", (int)child);
    (void)fclose(f);
}

static void test_restarted(struct rig *r, struct recorder *rec)
{
    struct contract_object a = write_it(r, ADMIN, STORE_CREATE, sample_binding("r1")), other;
    struct kubestore_watch *w = watch(r, rec, CONTRACT_BINDING, NULL);
    size_t mark;
    bool ready = false;

    (void)wait_note(r, rec, KUBESTORE_LISTED, 0, NULL, 5000);
    rig_sleep(r, 300);
    mark = rec->count;
    /* a newer version than the collection knows: what it knows is too old for the server after its restart */
    other = write_it(r, ADMIN, STORE_CREATE, sample_attachment("edge9", "vpc-r", sample_uuid(4)));
    restart_server(r);
    for (int i = 0; i < 600 && !ready; i++) {
        rig_sleep(r, 100);
        ready = real_raw(r, ADMIN, "GET", "/readyz", "") == 200;
    }
    report(r, ready, "restarted server: ready", "not within 60 s");
    a = suspended(r, a, true);
    report(r, wait_count(r, rec, KUBESTORE_LISTED, mark, 1, 15000), "restarted server: 410, then a list",
           "no list within 15 s");
    kubestore_watch_prove(w, 3, 8 * BASE_SEC);
    report(r, wait_note(r, rec, KUBESTORE_PROVED, 3, NULL, 10000) && last(rec, KUBESTORE_PROVED)->proof == 3,
           "restarted server: a proof", "none");
    report(r, strcmp(last(rec, KUBESTORE_EVENT)->rv, a.u.meta.rv) == 0,
           "restarted server: nothing is missing", "the last change was not told");
    kubestore_watch_free(w);
    (void)write_it(r, ADMIN, STORE_DELETE, other);
    (void)write_it(r, ADMIN, STORE_DELETE, a);
}

void collections_run(struct rig *r)
{
    struct recorder rec = {.n = calloc(NOTES_MAX, sizeof(struct told))};

    if (!rec.n)
        abort();
    test_changes(r, &rec);
    test_selector(r, &rec);
    test_proofs(r, &rec);
    test_pages(r, &rec);
    test_nonsense(r, &rec);
    test_stopped(r, &rec);
    test_restarted(r, &rec);
    free(rec.n);
}
