/* SPDX-License-Identifier: Apache-2.0
 *
 * What the API server checks of an object, in C: first the schema (the rows of schema.c), then the CEL rules
 * of the CRDs (the rows below, one per rule, same words). test/twin compares the two.
 */
#include "contract/schema_int.h"

static bool label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool reason_ok(struct base_str s)
{
    if (s.len == 0 || s.ptr[0] < 'A' || s.ptr[0] > 'Z')
        return false;
    for (size_t i = 1; i < s.len; i++)
        if (!label_char(s.ptr[i]) && (s.ptr[i] < 'A' || s.ptr[i] > 'Z'))
            return false;
    return true;
}

bool contract_form_ok(enum contract_form form, struct base_str s)
{
    const char *dot;
    uint8_t device[4];

    switch (form) {
    case FORM_ANY:
        return true;
    case FORM_LABEL:
        return base_is_label(s, s.len);
    case FORM_NAME:
        return base_is_subdomain(s, s.len);
    case FORM_INSTANCE:
        dot = s.len ? memchr(s.ptr, '.', s.len) : NULL;
        return dot && base_is_label((struct base_str){s.ptr, (size_t)(dot - s.ptr)}, 63) &&
               base_is_subdomain((struct base_str){dot + 1, (size_t)(s.ptr + s.len - dot - 1)}, s.len);
    case FORM_DEVICE:
        if (s.len != 10 || !base_str_starts(s, "hf"))
            return false;
        for (size_t i = 2; i < s.len; i++)
            if (s.ptr[i] >= 'A' && s.ptr[i] <= 'F')
                return false;
        return base_unhex(device, 4, (struct base_str){s.ptr + 2, 8}) == BASE_OK;
    case FORM_REASON:
        return reason_ok(s);
    }
    return false;
}

static const char *form_text(enum contract_form form)
{
    switch (form) {
    case FORM_ANY:
        return "text";
    case FORM_LABEL:
        return "lower-case letters, digits and '-', first and last a letter or digit";
    case FORM_NAME:
        return "lower-case letters, digits, '-' and '.', first and last a letter or digit";
    case FORM_INSTANCE:
        return "<provider>.<node>";
    case FORM_DEVICE:
        return "\"hf\" and 8 lower-case hex digits";
    case FORM_REASON:
        return "one CamelCase word";
    }
    return "";
}

struct place { /* where in the object; its path is made only when something is wrong there */
    const struct place *in;
    const char *name;
    struct base_err *err;
};

static void path_text(char *dst, size_t size, const struct place *p)
{
    size_t n;

    dst[0] = '\0';
    if (!p->in)
        return;
    path_text(dst, size, p->in);
    n = strlen(dst);
    (void)base_cat(dst + n, size - n, n ? "." : "", p->name, NULL);
}

static int wrong(const struct place *p, const struct contract_field *f, const void *base,
                 const char *expected)
{
    struct base_buf b;
    char path[160];

    path_text(path, sizeof path, p);
    base_buf_init(&b, 1024);
    contract_print_field(&b, f, base);
    (void)base_err_set(p->err, BASE_EINVAL, "%s: %.80s is not accepted; %s is expected", path,
                       b.data ? b.data : "the value", expected);
    base_buf_fini(&b);
    return BASE_EINVAL;
}

static int check_number(const struct place *p, const struct contract_field *f, const void *base, int64_t v)
{
    char want[64];

    if (v >= f->lo && v <= f->hi)
        return BASE_OK;
    (void)base_fmt(want, sizeof want, "an integer of %lld to %lld", (long long)f->lo, (long long)f->hi);
    return wrong(p, f, base, want);
}

static int check_prefix(const struct place *p, const struct contract_field *f, const void *base,
                        const struct base_prefix *x)
{
    char want[64];

    if (x->len >= f->lo && x->len <= f->hi)
        return BASE_OK;
    if (f->lo == f->hi)
        (void)base_fmt(want, sizeof want, "a canonical IPv6 /%lld", (long long)f->lo);
    else
        (void)base_fmt(want, sizeof want, "a canonical IPv6 prefix of at most /%lld", (long long)f->hi);
    return wrong(p, f, base, want);
}

static int check_destinations(const struct place *p, const struct contract_field *f, const void *base)
{
    const struct base_prefix *d = CONTRACT_CAT2(base, f, struct base_prefix);
    unsigned n = *CONTRACT_CAT(base, f, uint8_t);

    if (n > CONTRACT_DESTINATIONS_MAX)
        return wrong(p, f, base, "a list of at most 64 prefixes");
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++)
            if (base_prefix_eq(d + i, d + k))
                return wrong(p, f, base, "a list that names each prefix once");
    return BASE_OK;
}

static bool uri_ok(struct base_str s)
{
    size_t i = 1;

    if (s.len < 3 || s.ptr[0] < 'a' || s.ptr[0] > 'z')
        return false;
    while (i < s.len && (label_char(s.ptr[i]) || strchr("-+.", s.ptr[i])))
        i++;
    if (i + 1 >= s.len || s.ptr[i] != ':')
        return false;
    for (i++; i < s.len; i++)
        if (s.ptr[i] < '!' || s.ptr[i] > '~')
            return false;
    return true;
}

/* As the CRD says: printable ASCII. An object that the API server takes must be one that can be read here. */
static bool user_ok(struct base_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < ' ' || s.ptr[i] > '~')
            return false;
    return s.len > 0;
}

static int check_identities(const struct place *p, const struct contract_field *f, const void *base)
{
    const struct contract_identity *id = CONTRACT_CAT2(base, f, struct contract_identity);
    unsigned n = *CONTRACT_CAT(base, f, uint8_t);

    if (n < 1 || n > CONTRACT_IDENTITIES_MAX)
        return wrong(p, f, base, "a list of 1 to 8 identities");
    for (unsigned i = 0; i < n; i++) {
        struct base_str v = base_str_of(id[i].value);

        if (id[i].kind != CONTRACT_IDENTITY_URI && id[i].kind != CONTRACT_IDENTITY_USER)
            return wrong(p, f, base, "exactly one of uri and user in each identity");
        if (!(id[i].kind == CONTRACT_IDENTITY_URI ? uri_ok(v) : user_ok(v)))
            return wrong(p, f, base, "uri: scheme:rest in printable ASCII; user: printable ASCII, not empty");
        for (unsigned k = 0; k < i; k++)
            if (id[i].kind == id[k].kind && strcmp(id[i].value, id[k].value) == 0)
                return wrong(p, f, base, "a list that names each identity once");
    }
    return BASE_OK;
}

static int check_conditions(const struct place *p, const struct contract_field *f, const void *base)
{
    for (const struct contract_cond_slot *s = f->conds; s->type; s++) {
        const struct contract_cond *c = (const void *)((const char *)base + s->at);

        if (c->status == CONTRACT_COND_ABSENT)
            continue;
        if (c->status > CONTRACT_COND_UNKNOWN || !reason_ok(base_str_of(c->reason)) || c->transition == 0 ||
            c->observed_generation < 0)
            return wrong(p, f, base, "status, CamelCase reason and lastTransitionTime in each condition");
    }
    return BASE_OK;
}

static int check_fields(const struct contract_field *table, const void *base, const struct place *p);

static int check_field(const struct contract_field *f, const void *base, const struct place *p)
{
    struct base_str s;

    switch (f->type) {
    case FT_STR:
        s = base_str_of(CONTRACT_CAT(base, f, char));
        if ((int64_t)s.len < f->lo || (int64_t)s.len > f->hi || !contract_form_ok(f->form, s))
            return wrong(p, f, base, form_text(f->form));
        return BASE_OK;
    case FT_UUID:
    case FT_CORR:
    case FT_TIME:
    case FT_BOOL:
        return BASE_OK;
    case FT_I64:
        return check_number(p, f, base, *CONTRACT_CAT(base, f, int64_t));
    case FT_I32:
        return check_number(p, f, base, *CONTRACT_CAT(base, f, int32_t));
    case FT_ENUM:
        return *CONTRACT_CAT(base, f, unsigned) < f->n_names ? BASE_OK : wrong(p, f, base, "a listed word");
    case FT_PREFIX:
        return check_prefix(p, f, base, CONTRACT_CAT(base, f, struct base_prefix));
    case FT_OPT_PREFIX:
        return check_prefix(p, f, base, CONTRACT_CAT2(base, f, struct base_prefix));
    case FT_PREFIXES:
        return check_destinations(p, f, base);
    case FT_IDENTITIES:
        return check_identities(p, f, base);
    case FT_CONDITIONS:
        return check_conditions(p, f, base);
    case FT_OBJECT:
        return check_fields(f->sub, CONTRACT_CAT(base, f, char), p);
    }
    return BASE_EINVAL;
}

static int check_fields(const struct contract_field *table, const void *base, const struct place *p)
{
    for (const struct contract_field *f = table; f->name; f++) {
        struct place in = {p, f->name, p->err};
        char path[160];
        int rc;

        if (!contract_field_present(f, base)) {
            if (f->required) {
                path_text(path, sizeof path, &in);
                return base_err_set(p->err, BASE_EINVAL, "%s: is missing; set it", path);
            }
            continue;
        }
        rc = check_field(f, base, &in);
        if (rc)
            return rc;
    }
    return BASE_OK;
}

/* ---- the CEL rules */
#define N_SPEC(k) (&n->u.k.spec)
#define O_SPEC(k) (&o->u.k.spec)
#define N_STAT(k) (&n->u.k.status)
#define O_STAT(k) (&o->u.k.status)
typedef const struct contract_object obj;

static bool name_is(obj *n, const char *a, const char *b)
{
    char want[CONTRACT_NAME_SIZE + CONTRACT_NAME_SIZE];

    (void)base_cat(want, sizeof want, a, ".", b);
    return strcmp(n->u.meta.name, want) == 0;
}

/* -- ProviderInstance -- */
static bool pi_name(obj *n, obj *o)
{
    return name_is(n, N_SPEC(instance)->provider, N_SPEC(instance)->node);
}
static bool pi_accepted_max(obj *n, obj *o)
{
    return N_STAT(instance)->accepted_epoch <= N_SPEC(instance)->epoch;
}
static bool pi_accepted_back(obj *n, obj *o)
{
    return N_STAT(instance)->accepted_epoch >= O_STAT(instance)->accepted_epoch;
}
static bool pi_accepted_process(obj *n, obj *o)
{
    return N_STAT(instance)->accepted_epoch != N_SPEC(instance)->epoch ||
           base_uuid_eq(&N_STAT(instance)->accepted_process_id, &N_SPEC(instance)->process_id);
}
static bool pi_accepted_pair(obj *n, obj *o)
{
    return (N_STAT(instance)->accepted_epoch != 0) ==
           !base_uuid_is_zero(&N_STAT(instance)->accepted_process_id);
}
static bool pi_immutable(obj *n, obj *o)
{
    return strcmp(N_SPEC(instance)->provider, O_SPEC(instance)->provider) == 0 &&
           strcmp(N_SPEC(instance)->node, O_SPEC(instance)->node) == 0;
}
static bool pi_epoch_back(obj *n, obj *o)
{
    return N_SPEC(instance)->epoch >= O_SPEC(instance)->epoch;
}
static bool pi_epoch_step(obj *n, obj *o)
{
    return N_SPEC(instance)->epoch - O_SPEC(instance)->epoch <= 1;
}
static bool pi_process(obj *n, obj *o)
{
    return base_uuid_eq(&N_SPEC(instance)->process_id, &O_SPEC(instance)->process_id) ==
           (N_SPEC(instance)->epoch == O_SPEC(instance)->epoch);
}
static bool pi_same(obj *n, obj *o)
{
    return N_SPEC(instance)->epoch == O_SPEC(instance)->epoch;
}
static bool pi_node_uid(obj *n, obj *o)
{
    return !pi_same(n, o) || base_uuid_eq(&N_SPEC(instance)->node_uid, &O_SPEC(instance)->node_uid);
}
static bool pi_lease(obj *n, obj *o)
{
    return !pi_same(n, o) || N_SPEC(instance)->lease_seconds == O_SPEC(instance)->lease_seconds;
}
static bool pi_boot_id(obj *n, obj *o)
{
    return !pi_same(n, o) || base_uuid_eq(&N_SPEC(instance)->renew.boot_id, &O_SPEC(instance)->renew.boot_id);
}
static bool pi_boot_time(obj *n, obj *o)
{
    return !pi_same(n, o) || N_SPEC(instance)->renew.boot_time_us >= O_SPEC(instance)->renew.boot_time_us;
}
static bool pi_release(obj *n, obj *o)
{
    return !pi_same(n, o) || !O_SPEC(instance)->release_time ||
           N_SPEC(instance)->release_time == O_SPEC(instance)->release_time;
}
static bool pi_first(obj *n, obj *o)
{
    return N_SPEC(instance)->epoch == 1;
}

/* -- HostAttachment -- */
static bool ha_name(obj *n, obj *o)
{
    return name_is(n, N_SPEC(attachment)->instance.name, N_SPEC(attachment)->vpc);
}
static bool ha_accepted_max(obj *n, obj *o)
{
    return N_STAT(attachment)->accepted_instance_epoch <= N_SPEC(attachment)->instance_epoch;
}
static bool ha_accepted_back(obj *n, obj *o)
{
    return N_STAT(attachment)->accepted_instance_epoch >= O_STAT(attachment)->accepted_instance_epoch;
}
static bool ha_device(obj *n, obj *o)
{
    const struct contract_attachment_status *a = N_STAT(attachment), *b = O_STAT(attachment);

    /* It does not go away either, or the next one would pass as the first. */
    return !b->device[0] || strcmp(a->device, b->device) == 0 ||
           a->accepted_instance_epoch != b->accepted_instance_epoch;
}
static bool ha_device_accepted(obj *n, obj *o)
{
    return !N_STAT(attachment)->device[0] || N_STAT(attachment)->accepted_instance_epoch;
}
static bool ha_immutable(obj *n, obj *o)
{
    const struct contract_attachment_spec *a = N_SPEC(attachment), *b = O_SPEC(attachment);

    return strcmp(a->vpc, b->vpc) == 0 && strcmp(a->instance.name, b->instance.name) == 0 &&
           base_uuid_eq(&a->instance.uid, &b->instance.uid);
}
static bool ha_epoch_back(obj *n, obj *o)
{
    return N_SPEC(attachment)->instance_epoch >= O_SPEC(attachment)->instance_epoch;
}

/* -- ProviderService -- */
static bool ps_immutable(obj *n, obj *o)
{
    const struct contract_service *a = &n->u.service, *b = &o->u.service;

    return strcmp(a->provider, b->provider) == 0 && strcmp(a->tenant, b->tenant) == 0 &&
           strcmp(a->vpc, b->vpc) == 0 && base_prefix_eq(&a->pool, &b->pool);
}
static bool ps_revoked(obj *n, obj *o)
{
    return !o->u.service.revoked || n->u.service.revoked;
}

/* -- RouteClaim -- */
static bool rc_name(obj *n, obj *o)
{
    char want[CONTRACT_NAME_SIZE];

    contract_claim_name(want, &N_SPEC(claim)->prefix);
    return strcmp(n->u.meta.name, want) == 0;
}
static bool rc_same(obj *n, obj *o)
{
    return N_SPEC(claim)->epoch == O_SPEC(claim)->epoch;
}
static bool rc_max_lease_falls(obj *n, obj *o)
{
    return rc_same(n, o) || N_SPEC(claim)->max_lease_seconds >= O_SPEC(claim)->max_lease_seconds ||
           O_STAT(claim)->closed_epoch >= O_SPEC(claim)->epoch;
}
static bool rc_closed_max(obj *n, obj *o)
{
    return N_STAT(claim)->closed_epoch <= N_SPEC(claim)->epoch;
}
static bool rc_closed_back(obj *n, obj *o)
{
    return N_STAT(claim)->closed_epoch >= O_STAT(claim)->closed_epoch;
}
static bool rc_closed_step(obj *n, obj *o)
{
    int64_t closed = N_STAT(claim)->closed_epoch, was = O_STAT(claim)->closed_epoch,
            epoch = N_SPEC(claim)->epoch;

    if (closed == 0 || closed == was)
        return true;
    if (N_STAT(claim)->closed_reason == CONTRACT_CLOSED_WAITED)
        return closed == epoch - 1;
    return closed == was + 1 && closed >= epoch - 1;
}
static bool rc_closed_reason(obj *n, obj *o)
{
    return !O_STAT(claim)->closed_epoch || N_STAT(claim)->closed_epoch != O_STAT(claim)->closed_epoch ||
           N_STAT(claim)->closed_reason == O_STAT(claim)->closed_reason;
}
static bool rc_closed_pair(obj *n, obj *o)
{
    return (N_STAT(claim)->closed_epoch != 0) == (N_STAT(claim)->closed_reason != CONTRACT_CLOSED_ABSENT);
}
static bool rc_accepted_max(obj *n, obj *o)
{
    return N_STAT(claim)->accepted_epoch <= N_SPEC(claim)->epoch;
}
static bool rc_accepted_back(obj *n, obj *o)
{
    return N_STAT(claim)->accepted_epoch >= O_STAT(claim)->accepted_epoch;
}
static bool rc_accepted_lease(obj *n, obj *o)
{
    return N_STAT(claim)->accepted_epoch != N_SPEC(claim)->epoch ||
           base_uuid_eq(&N_STAT(claim)->accepted_lease_uuid, &N_SPEC(claim)->lease_uuid);
}
static bool rc_accepted_pair(obj *n, obj *o)
{
    return (N_STAT(claim)->accepted_epoch != 0) == !base_uuid_is_zero(&N_STAT(claim)->accepted_lease_uuid);
}
static bool gate_same(obj *n, obj *o)
{
    return N_STAT(claim)->gate.epoch == O_STAT(claim)->gate.epoch &&
           N_STAT(claim)->gate.state == O_STAT(claim)->gate.state &&
           N_STAT(claim)->gate.since == O_STAT(claim)->gate.since &&
           strcmp(N_STAT(claim)->gate.reason, O_STAT(claim)->gate.reason) == 0;
}
static bool rc_gate(obj *n, obj *o)
{
    const struct contract_claim_status *s = N_STAT(claim);
    int64_t epoch = N_SPEC(claim)->epoch;

    if (s->gate.state != CONTRACT_GATE_OPEN || gate_same(n, o))
        return true;
    return s->gate.epoch == epoch && s->accepted_epoch == epoch && !N_SPEC(claim)->release_time &&
           s->closed_epoch < epoch;
}
static bool rc_epochs_max(obj *n, obj *o)
{
    const struct contract_claim_status *s = N_STAT(claim);
    int64_t epoch = N_SPEC(claim)->epoch;

    return s->gate.epoch <= epoch && s->published_epoch <= epoch && s->withdrawn_epoch <= epoch;
}
static bool rc_withdrawn_back(obj *n, obj *o)
{
    return N_STAT(claim)->withdrawn_epoch >= O_STAT(claim)->withdrawn_epoch;
}
static bool rc_immutable(obj *n, obj *o)
{
    const struct contract_claim_spec *a = N_SPEC(claim), *b = O_SPEC(claim);

    return strcmp(a->provider, b->provider) == 0 && base_prefix_eq(&a->prefix, &b->prefix) &&
           strcmp(a->tenant, b->tenant) == 0 && strcmp(a->vpc, b->vpc) == 0 &&
           strcmp(a->connector, b->connector) == 0;
}
static bool rc_epoch_back(obj *n, obj *o)
{
    return N_SPEC(claim)->epoch >= O_SPEC(claim)->epoch;
}
static bool rc_epoch_step(obj *n, obj *o)
{
    return N_SPEC(claim)->epoch - O_SPEC(claim)->epoch <= 1;
}
static bool holder_same(const struct contract_holder *a, const struct contract_holder *b)
{
    return strcmp(a->instance, b->instance) == 0 && base_uuid_eq(&a->instance_uid, &b->instance_uid) &&
           a->instance_epoch == b->instance_epoch && base_uuid_eq(&a->process_id, &b->process_id) &&
           strcmp(a->node, b->node) == 0 && base_uuid_eq(&a->boot_id, &b->boot_id);
}
static bool rc_holder(obj *n, obj *o)
{
    return holder_same(&N_SPEC(claim)->holder, &O_SPEC(claim)->holder) ||
           N_SPEC(claim)->epoch - O_SPEC(claim)->epoch == 1;
}
static bool rc_lease_uuid(obj *n, obj *o)
{
    return base_uuid_eq(&N_SPEC(claim)->lease_uuid, &O_SPEC(claim)->lease_uuid) == rc_same(n, o);
}
static bool ref_same(const struct contract_ref *a, const struct contract_ref *b)
{
    return strcmp(a->name, b->name) == 0 && base_uuid_eq(&a->uid, &b->uid);
}
static bool rc_fixed(obj *n, obj *o)
{
    const struct contract_claim_spec *a = N_SPEC(claim), *b = O_SPEC(claim);

    return a->epoch != b->epoch ||
           (ref_same(&a->service, &b->service) && ref_same(&a->attachment, &b->attachment) &&
            a->acquire_time == b->acquire_time && a->lease_seconds == b->lease_seconds &&
            a->max_lease_seconds == b->max_lease_seconds);
}
static bool rc_previous_fixed(obj *n, obj *o)
{
    const struct contract_previous *a = &N_SPEC(claim)->previous, *b = &O_SPEC(claim)->previous;

    return !rc_same(n, o) ||
           (strcmp(a->node, b->node) == 0 && base_uuid_eq(&a->boot_id, &b->boot_id) && a->epoch == b->epoch);
}
static bool rc_previous(obj *n, obj *o)
{
    const struct contract_previous *p = &N_SPEC(claim)->previous;

    return rc_same(n, o) ||
           (strcmp(p->node, O_SPEC(claim)->holder.node) == 0 &&
            base_uuid_eq(&p->boot_id, &O_SPEC(claim)->holder.boot_id) && p->epoch == O_SPEC(claim)->epoch);
}
static bool rc_previous_iff(obj *n, obj *o)
{
    return (N_SPEC(claim)->previous.epoch != 0) == (N_SPEC(claim)->epoch > 1);
}
static bool rc_release(obj *n, obj *o)
{
    return !rc_same(n, o) || !O_SPEC(claim)->release_time ||
           N_SPEC(claim)->release_time == O_SPEC(claim)->release_time;
}
static bool rc_max_lease(obj *n, obj *o)
{
    return N_SPEC(claim)->max_lease_seconds >= N_SPEC(claim)->lease_seconds;
}
static bool rc_instance(obj *n, obj *o)
{
    char want[CONTRACT_NAME_SIZE];

    (void)base_cat(want, sizeof want, N_SPEC(claim)->provider, ".", N_SPEC(claim)->holder.node);
    return strcmp(N_SPEC(claim)->holder.instance, want) == 0;
}
static bool rc_first(obj *n, obj *o)
{
    return N_SPEC(claim)->epoch == 1 && !N_SPEC(claim)->release_time;
}

/* -- ConnectorBinding -- */
static bool cb_name(obj *n, obj *o)
{
    return name_is(n, N_SPEC(binding)->tenant, N_SPEC(binding)->connector);
}
static bool cb_prefix(obj *n, obj *o)
{
    return !N_STAT(binding)->has_prefix || !O_STAT(binding)->has_prefix ||
           base_prefix_eq(&N_STAT(binding)->prefix, &O_STAT(binding)->prefix);
}
static bool cb_immutable(obj *n, obj *o)
{
    const struct contract_binding_spec *a = N_SPEC(binding), *b = O_SPEC(binding);

    return strcmp(a->tenant, b->tenant) == 0 && strcmp(a->connector, b->connector) == 0 &&
           strcmp(a->vpc, b->vpc) == 0 && strcmp(a->service, b->service) == 0;
}

enum when { ALWAYS = 0, CREATION, CHANGE /* needs the old object */ };
struct rule {
    enum contract_kind kind;
    enum when when;
    const char *field; /* whose value the text shows; "" = none */
    bool (*ok)(obj *n, obj *o);
    const char *text;
};
static const struct rule rules[] = {
    {CONTRACT_INSTANCE, ALWAYS, "spec.nodeName", pi_name, "name must be <provider>.<node>"},
    {CONTRACT_INSTANCE, ALWAYS, "status.acceptedEpoch", pi_accepted_max,
     "acceptedEpoch is never above spec.epoch"},
    {CONTRACT_INSTANCE, CHANGE, "status.acceptedEpoch", pi_accepted_back,
     "acceptedEpoch never goes back, nor away"},
    {CONTRACT_INSTANCE, ALWAYS, "status.acceptedProcessID", pi_accepted_process,
     "acceptedProcessID must be the processID of the accepted epoch"},
    {CONTRACT_INSTANCE, ALWAYS, "status.acceptedEpoch", pi_accepted_pair,
     "acceptedEpoch and acceptedProcessID go together"},
    {CONTRACT_INSTANCE, CHANGE, "spec.nodeName", pi_immutable, "provider and nodeName are immutable"},
    {CONTRACT_INSTANCE, CHANGE, "spec.epoch", pi_epoch_back, "epoch never goes back"},
    {CONTRACT_INSTANCE, CHANGE, "spec.epoch", pi_epoch_step, "epoch goes up by exactly one"},
    {CONTRACT_INSTANCE, CHANGE, "spec.processID", pi_process,
     "a new processID needs epoch+1, and epoch+1 a new processID"},
    {CONTRACT_INSTANCE, CHANGE, "spec.nodeUID", pi_node_uid, "nodeUID cannot change within an epoch"},
    {CONTRACT_INSTANCE, CHANGE, "spec.leaseDurationSeconds", pi_lease,
     "leaseDurationSeconds is fixed within an epoch"},
    {CONTRACT_INSTANCE, CHANGE, "spec.renew", pi_boot_id, "bootID cannot change within an epoch"},
    {CONTRACT_INSTANCE, CHANGE, "spec.renew", pi_boot_time, "a renewal never goes back on the boot clock"},
    {CONTRACT_INSTANCE, CHANGE, "spec.releaseTime", pi_release, "a release is final within its epoch"},
    {CONTRACT_INSTANCE, CREATION, "spec.epoch", pi_first, "a new instance starts at epoch 1"},

    {CONTRACT_ATTACHMENT, ALWAYS, "spec.vpc", ha_name, "name must be <provider>.<node>.<vpc>"},
    {CONTRACT_ATTACHMENT, ALWAYS, "status.acceptedInstanceEpoch", ha_accepted_max,
     "acceptedInstanceEpoch is never above spec.instanceRef.epoch"},
    {CONTRACT_ATTACHMENT, CHANGE, "status.acceptedInstanceEpoch", ha_accepted_back,
     "acceptedInstanceEpoch never goes back, nor away"},
    {CONTRACT_ATTACHMENT, CHANGE, "status.device", ha_device, "an accepted epoch never gets a second device"},
    {CONTRACT_ATTACHMENT, ALWAYS, "status.device", ha_device_accepted,
     "a device needs an accepted instance epoch"},
    {CONTRACT_ATTACHMENT, CHANGE, "spec.instanceRef", ha_immutable,
     "vpc, instanceRef.name and instanceRef.uid are immutable"},
    {CONTRACT_ATTACHMENT, CHANGE, "spec.instanceRef", ha_epoch_back, "instance epoch never goes back"},

    {CONTRACT_SERVICE, CHANGE, "spec.allowedPrefix", ps_immutable,
     "provider, tenant, vpc and allowedPrefix are immutable"},
    {CONTRACT_SERVICE, CHANGE, "spec.revoked", ps_revoked, "revocation is final"},

    {CONTRACT_CLAIM, ALWAYS, "spec.prefix", rc_name, "name must be rc-<the /96 as 24 hex digits>"},
    {CONTRACT_CLAIM, CHANGE, "spec.maxLeaseDurationSeconds", rc_max_lease_falls,
     "maxLeaseDurationSeconds cannot fall while an older epoch is not closed"},
    {CONTRACT_CLAIM, ALWAYS, "status.closedEpoch", rc_closed_max, "closedEpoch is never above spec.epoch"},
    {CONTRACT_CLAIM, CHANGE, "status.closedEpoch", rc_closed_back, "closedEpoch never goes back, nor away"},
    {CONTRACT_CLAIM, CHANGE, "status.closedEpoch", rc_closed_step,
     "closedEpoch moves by one to spec.epoch or spec.epoch-1 (Confirmed), or to spec.epoch-1 (Waited)"},
    {CONTRACT_CLAIM, CHANGE, "status.closedReason", rc_closed_reason,
     "closedReason changes only with closedEpoch"},
    {CONTRACT_CLAIM, ALWAYS, "status.closedEpoch", rc_closed_pair,
     "closedEpoch and closedReason go together"},
    {CONTRACT_CLAIM, ALWAYS, "status.acceptedEpoch", rc_accepted_max,
     "acceptedEpoch is never above spec.epoch"},
    {CONTRACT_CLAIM, CHANGE, "status.acceptedEpoch", rc_accepted_back,
     "acceptedEpoch never goes back, nor away"},
    {CONTRACT_CLAIM, ALWAYS, "status.acceptedLeaseUUID", rc_accepted_lease,
     "acceptedLeaseUUID must be the leaseUUID of the accepted epoch"},
    {CONTRACT_CLAIM, ALWAYS, "status.acceptedEpoch", rc_accepted_pair,
     "acceptedEpoch and acceptedLeaseUUID go together"},
    {CONTRACT_CLAIM, CHANGE, "status.gate", rc_gate,
     "a gate opens only for the accepted, current, not released, not closed epoch"},
    {CONTRACT_CLAIM, ALWAYS, "status.gate", rc_epochs_max,
     "gate.epoch, publishedEpoch and withdrawnEpoch are never above spec.epoch"},
    {CONTRACT_CLAIM, CHANGE, "status.withdrawnEpoch", rc_withdrawn_back,
     "withdrawnEpoch never goes back, nor away"},
    {CONTRACT_CLAIM, CHANGE, "spec.connector", rc_immutable,
     "provider, prefix, tenant, vpc and connector are immutable"},
    {CONTRACT_CLAIM, CHANGE, "spec.epoch", rc_epoch_back, "epoch never goes back"},
    {CONTRACT_CLAIM, CHANGE, "spec.epoch", rc_epoch_step, "epoch goes up by exactly one"},
    {CONTRACT_CLAIM, CHANGE, "spec.holder", rc_holder, "a change of holder needs exactly epoch+1"},
    {CONTRACT_CLAIM, CHANGE, "spec.leaseUUID", rc_lease_uuid,
     "a new leaseUUID needs epoch+1, and epoch+1 a new leaseUUID"},
    {CONTRACT_CLAIM, CHANGE, "spec.epoch", rc_fixed,
     "within an epoch only releaseTime and correlationID may change"},
    {CONTRACT_CLAIM, CHANGE, "spec.previous", rc_previous_fixed, "previous is fixed within an epoch"},
    {CONTRACT_CLAIM, CHANGE, "spec.previous", rc_previous,
     "previous must be the old holder's node, bootID and epoch"},
    {CONTRACT_CLAIM, ALWAYS, "spec.previous", rc_previous_iff, "previous is there if and only if epoch > 1"},
    {CONTRACT_CLAIM, CHANGE, "spec.releaseTime", rc_release, "a release is final within its epoch"},
    {CONTRACT_CLAIM, ALWAYS, "spec.maxLeaseDurationSeconds", rc_max_lease,
     "maxLeaseDurationSeconds is at least leaseDurationSeconds"},
    {CONTRACT_CLAIM, ALWAYS, "spec.holder", rc_instance, "holder.instance must be <provider>.<holder.node>"},
    {CONTRACT_CLAIM, CREATION, "spec.epoch", rc_first, "a new claim starts at epoch 1, not released"},

    {CONTRACT_BINDING, ALWAYS, "spec.connector", cb_name, "name must be <tenant>.<connector>"},
    {CONTRACT_BINDING, CHANGE, "status.prefix", cb_prefix,
     "the reserved prefix never goes from one value to another, only through absent"},
    {CONTRACT_BINDING, CHANGE, "spec.serviceName", cb_immutable,
     "tenant, connector, vpc and serviceName are immutable"},
};

static int broken(const struct rule *r, obj *n, struct base_err *err)
{
    const struct contract_field *f = contract_schema(n->kind);
    const void *base = &n->u;
    const char *dot = strchr(r->field, '.');
    struct base_buf b;

    base_buf_init(&b, 2048);
    while (f->name && strncmp(f->name, r->field, (size_t)(dot - r->field)) != 0)
        f++;
    if (f->name) {
        base = CONTRACT_CAT(base, f, char);
        for (f = f->sub; f->name && strcmp(f->name, dot + 1) != 0; f++)
            ;
        if (f->name && contract_field_present(f, base))
            contract_print_field(&b, f, base);
    }
    (void)base_err_set(err, BASE_EINVAL, "%s %.160s: %s: %.120s is not accepted; %s",
                       contract_kind_name(n->kind), n->u.meta.name, r->field,
                       b.data && b.len ? b.data : "an absent value", r->text);
    base_buf_fini(&b);
    return BASE_EINVAL;
}

int contract_validate(const struct contract_object *next, const struct contract_object *old,
                      struct base_err *err)
{
    const struct contract_field *top = contract_schema(next->kind);
    struct place p = {NULL, "", err};
    int rc;

    if (!top)
        return base_err_set(err, BASE_EINVAL, "kind %d is no kind of the contract", (int)next->kind);
    if (old && old->kind != next->kind)
        return base_err_set(err, BASE_EINVAL, "%s cannot follow %s", contract_kind_name(next->kind),
                            contract_kind_name(old->kind));
    rc = check_fields(top, &next->u, &p);
    if (rc) {
        (void)base_err_wrap(err, "%s %.160s", contract_kind_name(next->kind), next->u.meta.name);
        return rc;
    }
    for (size_t i = 0; i < BASE_LEN(rules); i++) {
        const struct rule *r = &rules[i];

        if (r->kind != next->kind || (r->when == CHANGE && !old) || (r->when == CREATION && old))
            continue;
        if (!r->ok(next, old))
            return broken(r, next, err);
    }
    return BASE_OK;
}
