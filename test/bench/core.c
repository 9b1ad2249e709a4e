/* SPDX-License-Identifier: Apache-2.0
 *
 * bench-core: the figures that issue after issue asks of the ownership core. Exit 1 when one does not hold.
 *
 *   a step        what one event of one connector costs, mean and 99th percentile, in a mix as of a busy
 *                 node: connectors come, are admitted, are proved, reconnect on the same node, are taken
 *                 over by other nodes, go; bindings and services change. Steps that look at many connectors
 *                 (a proof makes the whole collection good) count per connector that they look at.
 *   memory        what session_core_new takes for one connector more, and what of it is touched by a core
 *                 that is started and has nothing to do.
 *   allocations   malloc, calloc and realloc of the whole process (interposed) from the first session on.
 *
 * The world around the core answers at once: the API server accepts every write, the foundation opens every
 * gate. Time is virtual; only the core's own steps are measured.
 */
#include "contract/contract.h"
#include "session/core.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTORS = 1000, ROUNDS = 12, PASSES = 60, QUEUE = 1 << 16, SAMPLES = 1 << 18 };

/* ---- allocations, interposed */
static unsigned long n_malloc;
static size_t n_bytes;
static char early[4096]; /* dlsym allocates before it is known */
static size_t early_n;
typedef void *(*malloc_fn)(size_t);
typedef void *(*calloc_fn)(size_t, size_t);
typedef void *(*realloc_fn)(void *, size_t);
static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}
void *malloc(size_t n)
{
    static malloc_fn next;
    if (!next) {
        void *p = real("malloc");
        memcpy(&next, &p, sizeof next);
    }
    n_malloc++;
    n_bytes += n;
    return next(n);
}
void *calloc(size_t n, size_t size)
{
    static calloc_fn next;
    static int busy;
    if (!next) {
        void *p;
        if (busy) {
            void *q = early + early_n;
            early_n += (n * size + 15) / 16 * 16;
            return early_n <= sizeof early ? q : NULL;
        }
        busy = 1;
        p = real("calloc");
        memcpy(&next, &p, sizeof next);
    }
    n_malloc++;
    n_bytes += n * size;
    return next(n, size);
}
void *realloc(void *p, size_t n)
{
    static realloc_fn next;
    if (!next) {
        void *q = real("realloc");
        memcpy(&next, &q, sizeof next);
    }
    n_malloc++;
    n_bytes += n;
    return next(p, n);
}

/* ---- figures */
static unsigned failed, figures;
static void figure(bool holds, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void figure(bool holds, const char *fmt, ...)
{
    va_list ap;
    figures++;
    failed += !holds;
    (void)printf("%s  ", holds ? "holds" : "FAILS");
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    (void)printf("\n");
}

static long resident_kib(void)
{
    long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%ld %ld", &all, &pages) != 2)
            pages = 0;
        (void)fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench-core: %s\n", what);
    exit(2);
}

/* ---- the world */
static struct session_core *core;
static struct session_out *out;
static base_time now = 1000 * BASE_SEC;
static uint64_t rv = 100, flows;
static struct contract_object instance, attachment, service;
static struct contract_object *binding, *claim; /* of each connector */
static bool has_claim[CONNECTORS], forwards[CONNECTORS];
static uint64_t flow_of[CONNECTORS];
static struct base_uuid other;

struct todo {
    struct session_in in;
    int object; /* -1 none, -2 instance, -3 attachment, -4 service, 2i binding i, 2i+1 claim i */
};
static struct todo *queue;
static unsigned q_head, q_len;

static void bump(struct contract_object *o)
{
    (void)base_fmt(o->u.meta.rv, sizeof o->u.meta.rv, "%llu", (unsigned long long)++rv);
}

static struct base_uuid uuid(unsigned kind, unsigned n)
{
    struct base_uuid u = {{(uint8_t)kind, 7}};
    memcpy(u.b + 8, &n, sizeof n);
    return u;
}

static void later(const struct session_in *in, int object)
{
    if (q_len == QUEUE)
        fail("the queue is full");
    queue[(q_head + q_len++) % QUEUE] = (struct todo){*in, object};
}

static const struct contract_object *object_of(int o)
{
    return o == -2   ? &instance
           : o == -3 ? &attachment
           : o == -4 ? &service
           : o % 2   ? &claim[o / 2]
                     : &binding[o / 2];
}

static void row(int object)
{
    struct session_in in = {.ev = SESSION_EV_ROW};
    in.u.row.kind = object_of(object)->kind;
    later(&in, object);
}

static void answer(uint64_t ask, int code, int object)
{
    struct session_in in = {.ev = SESSION_EV_ANSWER};
    in.u.answer.ask = ask;
    in.u.answer.code = code;
    in.u.answer.sent = now;
    later(&in, object);
}

static int named(const char *name)
{
    if (strcmp(name, instance.u.meta.name) == 0)
        return -2;
    if (strcmp(name, attachment.u.meta.name) == 0)
        return -3;
    if (strcmp(name, service.u.meta.name) == 0)
        return -4;
    if (strncmp(name, "rc-", 3) == 0) {
        for (int i = 0; i < CONNECTORS; i++)
            if (has_claim[i] && strcmp(claim[i].u.meta.name, name) == 0)
                return 2 * i + 1;
        return -1;
    }
    uint64_t n = 0; /* acme.c17 */
    (void)base_parse_u64(base_str_of(strrchr(name, 'c') + 1), CONNECTORS - 1, &n);
    return 2 * (int)n;
}

/* The foundation accepts, opens, and confirms what is over. */
static void foundation(int i)
{
    struct contract_claim *k = &claim[i].u.claim;
    if (k->spec.release_time) {
        k->status.closed_epoch = k->spec.epoch;
        k->status.gate.state = CONTRACT_GATE_CLOSED;
    } else {
        k->status.closed_epoch = k->spec.epoch - 1;
        k->status.accepted_epoch = k->status.gate.epoch = k->spec.epoch;
        k->status.accepted_lease_uuid = k->spec.lease_uuid;
        k->status.gate.state = CONTRACT_GATE_OPEN;
    }
    bump(&claim[i]);
    row(2 * i + 1);
}

static void wrote(const struct session_fx *fx)
{
    const struct contract_object *o = fx->u.store.object;
    int at = named(o->u.meta.name);
    switch (o->kind) {
    case CONTRACT_INSTANCE:
        instance.u.instance.spec = o->u.instance.spec;
        instance.u.meta.uid = uuid(1, 1);
        bump(&instance);
        answer(fx->u.store.ask, BASE_OK, -2);
        instance.u.instance.status.accepted_epoch = o->u.instance.spec.epoch;
        instance.u.instance.status.accepted_process_id = o->u.instance.spec.process_id;
        row(-2);
        return;
    case CONTRACT_ATTACHMENT:
        attachment.u.attachment.spec = o->u.attachment.spec;
        attachment.u.meta.uid = uuid(2, 1);
        bump(&attachment);
        attachment.u.attachment.status.accepted_instance_epoch = o->u.attachment.spec.instance_epoch;
        attachment.u.attachment.status.ready.status = CONTRACT_COND_TRUE;
        (void)base_copy(attachment.u.attachment.status.device, CONTRACT_DEVICE_SIZE, "hf00000001");
        attachment.u.attachment.status.mtu = 1400;
        answer(fx->u.store.ask, BASE_OK, -3);
        return;
    case CONTRACT_CLAIM:
        if (at == -1) { /* whose reservation is it? */
            for (int i = 0; i < CONNECTORS; i++)
                if (strcmp(binding[i].u.binding.spec.connector, o->u.claim.spec.connector) == 0)
                    at = 2 * i + 1;
            claim[at / 2] = *o;
            claim[at / 2].u.meta.uid = uuid(3, (unsigned)at);
            has_claim[at / 2] = true;
        } else {
            claim[at / 2].u.claim.spec = o->u.claim.spec;
        }
        bump(&claim[at / 2]);
        answer(fx->u.store.ask, BASE_OK, at);
        foundation(at / 2);
        return;
    case CONTRACT_BINDING:
        contract_copy_status(&binding[at / 2], o);
        bump(&binding[at / 2]);
        answer(fx->u.store.ask, BASE_OK, at);
        row(at);
        return;
    case CONTRACT_SERVICE:
        break;
    }
    fail("a write that no agent makes");
}

static int connector_of(uint64_t flow)
{
    for (int i = 0; i < CONNECTORS; i++)
        if (flow_of[i] == flow)
            return i;
    return -1;
}

static void execute(const struct session_fx *fx)
{
    struct session_in in = {.ev = SESSION_EV_TICK};
    int at;
    switch (fx->kind) {
    case SESSION_FX_GET:
        at = named(fx->u.store.name);
        answer(fx->u.store.ask,
               at == -1 || (at == -2 && !instance.u.instance.spec.epoch) ? BASE_ENOTFOUND : BASE_OK, at);
        return;
    case SESSION_FX_LIST:
        answer(fx->u.store.ask, BASE_OK, -1);
        return;
    case SESSION_FX_CREATE:
    case SESSION_FX_UPDATE:
    case SESSION_FX_STATUS:
        wrote(fx);
        return;
    case SESSION_FX_PROVE:
        in.ev = SESSION_EV_PROOF;
        in.u.proof.ask = fx->u.prove.ask;
        in.u.proof.collection = fx->u.prove.collection;
        in.u.proof.proved = true;
        in.u.proof.t0 = now;
        later(&in, -1);
        return;
    case SESSION_FX_AUDIT:
        if (!fx->u.audit.ask)
            return;
        in.ev = SESSION_EV_AUDIT;
        in.u.audit.ask = fx->u.audit.ask;
        in.u.audit.durable = true;
        later(&in, -1);
        return;
    case SESSION_FX_TUN_OPEN:
        in.ev = SESSION_EV_TUN;
        in.u.tun.tun_id = fx->u.tun.tun_id;
        in.u.tun.code = BASE_OK;
        later(&in, -1);
        return;
    case SESSION_FX_ADMIT:
        at = connector_of(fx->u.admit.flow);
        if (at >= 0)
            forwards[at] = true;
        return;
    case SESSION_FX_STOP:
        in.ev = SESSION_EV_STOPPED;
        in.u.flow = fx->u.flow;
        later(&in, -1);
        at = connector_of(fx->u.flow);
        if (at >= 0)
            forwards[at] = false;
        return;
    case SESSION_FX_REFUSE:
    case SESSION_FX_UNSET:
    case SESSION_FX_DELETE:
    case SESSION_FX_AUTHORIZE:
    case SESSION_FX_TUN_CLOSE:
    case SESSION_FX_FENCE:
    case SESSION_FX_CLOSE:
    case SESSION_FX_TRACE:
    case SESSION_FX_CONDITION:
    case SESSION_FX_RELIST:
    case SESSION_FX_DRAINED:
        return;
    }
}

/* ---- measuring
 * Everything is the same in each pass, and a step is what its fastest pass took: what else runs on this
 * machine is not measured. */
struct sample {
    uint32_t ns;
    uint8_t event; /* that the step, or the row of CONTINUE steps, began with */
    uint8_t looks; /* 0: one thing; else a step of many, with so many connectors */
};
static struct sample *sample;
static size_t n_samples;
static bool measuring, first_pass;
static base_time wake;

static base_time clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (base_time)t.tv_sec * BASE_SEC + t.tv_nsec;
}

static base_time clock_costs; /* to look at the clock twice, at best */
static void calibrate(void)
{
    clock_costs = BASE_SEC;
    for (int i = 0; i < 100000; i++) {
        base_time a = clock_ns();
        clock_costs = base_time_min(clock_costs, clock_ns() - a);
    }
}

static void step(struct session_in *in)
{
    enum session_ev event = in->ev;
    bool many = event == SESSION_EV_PROOF;
    bool all = event == SESSION_EV_ROW &&
               (in->u.row.kind == CONTRACT_INSTANCE || in->u.row.kind == CONTRACT_SERVICE);
    do {
        in->now = now;
        in->wall = INT64_C(1764450000000000) + now / BASE_US;
        base_time a = clock_ns();
        int rc = session_core_step(core, in, out);
        base_time ns = base_time_max(clock_ns() - a - clock_costs, 0);
        unsigned looks = 0;
        if (rc != BASE_OK)
            fail("an event was refused");
        for (unsigned i = 0; i < out->n_fx; i++)
            looks += out->fx[i].kind == SESSION_FX_FENCE;
        /* the instance's and a service's rows concern every connector, and so does asking for a proof */
        for (unsigned i = 0; i < out->n_fx; i++)
            all = all || out->fx[i].kind == SESSION_FX_PROVE;
        many = many || all || out->more || looks > 1;
        if (all && looks < 2)
            looks = CONNECTORS / 2; /* at least so many are at work */
        all = false;
        if (measuring) {
            struct sample *x = &sample[n_samples++];
            if (n_samples == SAMPLES)
                fail("more steps than expected");
            if (first_pass || ns < x->ns)
                *x = (struct sample){(uint32_t)ns, (uint8_t)event, many ? (uint16_t)(looks ? looks : 1) : 0};
        }
        for (unsigned i = 0; i < out->n_fx; i++)
            execute(&out->fx[i]);
        in->ev = SESSION_EV_CONTINUE;
    } while (out->more);
    wake = out->wake_at;
}

static void settle(void)
{
    while (q_len) {
        static struct contract_object o; /* rows and answers are borrowed for the step */
        struct todo t = queue[q_head];
        q_head = (q_head + 1) % QUEUE;
        q_len--;
        if (t.object != -1)
            contract_object_copy(&o, object_of(t.object));
        if (t.in.ev == SESSION_EV_ROW)
            t.in.u.row.object = &o;
        if (t.in.ev == SESSION_EV_ANSWER && t.in.u.answer.code == BASE_OK && t.object != -1) {
            t.in.u.answer.objects = &o;
            t.in.u.answer.n_objects = 1;
        }
        step(&t.in);
    }
}

static void run(base_time by)
{
    base_time end = now + by;
    settle();
    while (now < end) {
        struct session_in in = {.ev = SESSION_EV_TICK};
        now = base_time_min(end, base_time_max(wake, now + BASE_MS));
        step(&in);
        settle();
    }
}

static void request(int i)
{
    struct session_in in = {.ev = SESSION_EV_REQUEST};
    in.u.request.flow = flow_of[i] = ++flows;
    in.u.request.transport = SESSION_H3;
    in.u.request.identity = SESSION_ID_URI;
    (void)base_copy(in.u.request.uri, sizeof in.u.request.uri, binding[i].u.binding.spec.identities[0].value);
    (void)base_copy(in.u.request.credential_id, sizeof in.u.request.credential_id, "c0ffee");
    in.u.request.any_target = true;
    in.u.request.ipproto = -1;
    in.u.request.correlation.b[0] = 1;
    later(&in, -1);
}

static void ended(int i)
{
    struct session_in in = {.ev = SESSION_EV_ENDED};
    in.u.flow = flow_of[i];
    later(&in, -1);
}

static void taken_over(int i)
{
    struct contract_claim_spec *s = &claim[i].u.claim.spec;
    if (!has_claim[i] || !forwards[i])
        return;
    s->epoch++;
    s->lease_uuid = uuid(9, (unsigned)rv);
    s->holder.process_id = other;
    (void)base_copy(s->holder.node, sizeof s->holder.node, "edge2");
    bump(&claim[i]);
    row(2 * i + 1);
}

static struct session_config config(uint32_t connectors)
{
    struct session_config cfg = {.node_uid = uuid(5, 1),
                                 .boot_id = uuid(6, 1),
                                 .timing = contract_timing_default(),
                                 .policy = SESSION_POLICY_KUBERNETES,
                                 .max_connectors = connectors,
                                 .max_services = 64,
                                 .max_attachments = 16,
                                 .max_guests = 512};
    (void)base_copy(cfg.provider, sizeof cfg.provider, "masque");
    (void)base_copy(cfg.node, sizeof cfg.node, "edge1");
    cfg.seed[0] = 1;
    return cfg;
}

static void make_world(void)
{
    struct base_prefix pool;
    now = 1000 * BASE_SEC;
    rv = 100;
    flows = 0;
    memset(&instance, 0, sizeof instance);
    memset(&attachment, 0, sizeof attachment);
    memset(&service, 0, sizeof service);
    memset(binding, 0, CONNECTORS * sizeof *binding);
    memset(claim, 0, CONNECTORS * sizeof *claim);
    memset(has_claim, 0, sizeof has_claim);
    memset(forwards, 0, sizeof forwards);
    memset(flow_of, 0, sizeof flow_of);
    (void)base_prefix_parse(&pool, BASE_STR("fd12:0:0:1::/64"));
    instance.kind = CONTRACT_INSTANCE;
    (void)base_copy(instance.u.meta.name, CONTRACT_NAME_SIZE, "masque.edge1");
    attachment.kind = CONTRACT_ATTACHMENT;
    (void)base_copy(attachment.u.meta.name, CONTRACT_NAME_SIZE, "masque.edge1.vpc-a");
    service.kind = CONTRACT_SERVICE;
    struct contract_service *s = &service.u.service;
    (void)base_copy(s->meta.name, CONTRACT_NAME_SIZE, "svc-a");
    s->meta.uid = uuid(4, 1);
    (void)base_copy(s->provider, CONTRACT_LABEL_SIZE, "masque");
    (void)base_copy(s->tenant, CONTRACT_LABEL_SIZE, "acme");
    (void)base_copy(s->vpc, CONTRACT_LABEL_SIZE, "vpc-a");
    s->pool = pool;
    bump(&service);
    for (int i = 0; i < CONNECTORS; i++) {
        struct contract_binding *b = &binding[i].u.binding;
        binding[i].kind = CONTRACT_BINDING;
        (void)base_fmt(b->meta.name, sizeof b->meta.name, "acme.c%d", i);
        b->meta.uid = uuid(8, (unsigned)i);
        b->meta.generation = 1;
        (void)base_copy(b->spec.tenant, CONTRACT_LABEL_SIZE, "acme");
        (void)base_fmt(b->spec.connector, sizeof b->spec.connector, "c%d", i);
        (void)base_copy(b->spec.vpc, CONTRACT_LABEL_SIZE, "vpc-a");
        (void)base_copy(b->spec.service, CONTRACT_NAME_SIZE, "svc-a");
        b->spec.n_identities = 1;
        b->spec.identities[0].kind = CONTRACT_IDENTITY_URI;
        (void)base_fmt(b->spec.identities[0].value, sizeof b->spec.identities[0].value, "spiffe://acme/c%d",
                       i);
        bump(&binding[i]);
    }
    other = uuid(7, 7);
}

static void listed(enum contract_kind kind, int from, int by, int n)
{
    struct session_in in = {.ev = SESSION_EV_RELIST};
    in.u.collection = kind;
    later(&in, -1);
    for (int i = 0; i < n; i++)
        row(from + i * by);
    in.ev = SESSION_EV_LISTED;
    later(&in, -1);
    settle();
}

static void authority(void)
{
    service.u.service.valid_until = INT64_C(1764450000000000) + now / BASE_US + INT64_C(295000000);
    bump(&service);
    row(-4);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(unsigned long allocations)
{
    struct {
        double ns, n;
    } of[SESSION_EV_N] = {{0, 0}};
    uint32_t *one = calloc(n_samples, sizeof *one);
    double sum = 0, many = 0, looks = 0;
    size_t n = 0;
    if (!one)
        fail("no memory");
    for (size_t i = 0; i < n_samples; i++) {
        const struct sample *x = &sample[i];
        if (x->looks) {
            many += x->ns;
            looks += x->looks;
            continue;
        }
        one[n++] = x->ns;
        sum += x->ns;
        of[x->event].ns += x->ns;
        of[x->event].n++;
    }
    qsort(one, n, sizeof *one, by_size);
    (void)printf("%zu steps of one thing, %.0f looks at a connector in steps of many; by event (core.h):\n",
                 n, looks);
    for (int i = 0; i < SESSION_EV_N; i++)
        if (of[i].n > 0)
            (void)printf("  %2d: %6.0f, mean %4.0f ns\n", i, of[i].n, of[i].ns / of[i].n);
    figure(sum / (double)n < 1000, "a step, mean: %.0f ns (under 1000)", sum / (double)n);
    figure(one[n * 99 / 100] < 1000, "a step, 99th percentile: %u ns (under 1000), median %u",
           one[n * 99 / 100], one[n / 2]);
    figure(many / looks < 1000, "a connector in a step of many: %.0f ns (under 1000)", many / looks);
    figure(allocations == 0, "allocations after the first session: %lu (none)", allocations);
    free(one);
}

/* The same story in every pass. */
static unsigned long story(void)
{
    struct base_prng r = {.state = 7};
    struct session_in in = {.ev = SESSION_EV_START};
    struct session_summary s;
    struct session_config cfg = config(CONNECTORS);
    unsigned long before;

    make_world();
    if (session_core_new(&core, &cfg, NULL))
        fail("no core");
    authority();
    step(&in);
    settle();
    listed(CONTRACT_INSTANCE, -2, 0, 0);
    listed(CONTRACT_ATTACHMENT, -3, 0, 0);
    listed(CONTRACT_SERVICE, -4, 0, 1);
    listed(CONTRACT_CLAIM, 1, 2, 0);
    listed(CONTRACT_BINDING, 0, 2, CONNECTORS);
    run(BASE_SEC);
    request(0);
    run(BASE_SEC);
    if (!forwards[0])
        fail("the first connector was not admitted");
    before = n_malloc;
    n_samples = 0;
    measuring = true;
    for (int i = 1; i < CONNECTORS; i++) {
        request(i);
        run(5 * BASE_MS);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        authority();
        for (int k = 0; k < 200; k++) {
            int i = (int)base_prng_below(&r, CONNECTORS);
            switch (base_prng_below(&r, 5)) {
            case 0: /* gone, and back */
                ended(i);
                run(5 * BASE_MS);
                request(i);
                break;
            case 1: /* a second connection while the first is open */
                request(i);
                break;
            case 2:
                taken_over(i);
                break;
            case 3:
                bump(&binding[i]);
                row(2 * i);
                break;
            default:
                if (!forwards[i])
                    request(i);
            }
            run(5 * BASE_MS);
        }
        run(9 * BASE_SEC);
    }
    measuring = false;
    before = n_malloc - before;
    session_core_check(core);
    session_core_summary(core, &s);
    if (s.forwarding < CONNECTORS / 2)
        fail("hardly anybody forwards: this is no mix");
    core = session_core_free(core);
    return before;
}

static void memory(void)
{
    struct session_config cfg = config(10000);
    size_t bytes[2];
    long rss = resident_kib();
    for (int i = 0; i < 2; i++) {
        cfg.max_connectors = i ? 20000 : 10000;
        size_t before = n_bytes;
        if (session_core_new(&core, &cfg, NULL))
            fail("no core");
        bytes[i] = n_bytes - before;
        if (i == 0)
            rss = resident_kib() - rss;
        core = session_core_free(core);
    }
    double each = (double)(bytes[1] - bytes[0]) / 10000;
    figure(each < 4096, "memory of a connector: %.0f B (under 4096)", each);
    figure(rss < 2048,
           "touched by a core for 10,000 connectors that has nothing to do: %ld KiB of %zu (under 2048)", rss,
           bytes[0] / 1024);
}

int main(void)
{
    unsigned long allocations = 0;
    memory();
    binding = calloc(CONNECTORS, sizeof *binding);
    claim = calloc(CONNECTORS, sizeof *claim);
    queue = calloc(QUEUE, sizeof *queue);
    sample = calloc(SAMPLES, sizeof *sample);
    out = calloc(1, sizeof *out);
    if (!binding || !claim || !queue || !sample || !out)
        fail("no memory");
    calibrate();
    for (int pass = 0; pass < PASSES; pass++) {
        first_pass = pass == 0;
        allocations += story();
    }
    report(allocations);
    (void)printf("bench-core: %u of %u figures hold; exceptions in KNOWN_LIMITS.md: 1\n", figures - failed,
                 figures);
    return failed ? 1 : 0;
}
