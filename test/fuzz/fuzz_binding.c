/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_binding.c - objects of the contract, ConnectorBinding first: decode, encode, validate.
 *
 * Input: one byte (its low three bits: the kind; 0 = taken from the text), the JSON of an object, and, behind
 * a NUL, that of its successor. Whatever it is: what is refused changes nothing and says why; what is decoded
 * is written back and read again as the same; a valid object follows itself, keeps within every cap, and its
 * text without the original is a fixed point; what may follow never takes an epoch, a release or a closure
 * back.
 */
#include "fuzz.h"

#include "base/mem.h"
#include "contract/contract.h"

#define MAX ((size_t)1 << 20)

static bool decode(struct contract_object *ret, int kind, struct base_str json)
{
    static struct contract_object before;
    struct base_err err = {0};
    int rc;

    memset(&before, 0xa5, sizeof before);
    memcpy(ret, &before, sizeof *ret);
    rc = kind ? contract_decode(ret, (enum contract_kind)kind, json, &err)
              : contract_decode_any(ret, json, &err);
    if (rc) {
        CHECK(memcmp(ret, &before, sizeof before) == 0, "refused, but something was written");
        CHECK(err.code == rc && err.msg[0], "refused without a reason");
        for (const char *p = err.msg; *p; p++)
            CHECK((unsigned char)*p >= 0x20 && *p != 0x7f, "byte %02x in an error text", (unsigned char)*p);
    }
    return rc == BASE_OK;
}

static void encode(struct base_buf *b, const struct contract_object *o, struct base_str raw)
{
    struct base_err err = {0};

    base_buf_init(b, 2 * MAX);
    CHECK(!contract_encode(b, o, raw, &err), "what was decoded is not written: %s", err.msg);
}

static struct base_str text(const struct base_buf *b)
{
    return (struct base_str){b->data, b->len};
}

static void same(const struct contract_object *a, const struct contract_object *b)
{
    CHECK(a->kind == b->kind && contract_spec_equal(a, b), "another spec");
    CHECK(contract_status_equal(a, b), "another status");
    CHECK(strcmp(a->u.meta.name, b->u.meta.name) == 0 && strcmp(a->u.meta.rv, b->u.meta.rv) == 0 &&
              base_uuid_eq(&a->u.meta.uid, &b->u.meta.uid) && a->u.meta.drain == b->u.meta.drain,
          "another metadata");
}

/* The original is given: nothing of it may get lost, and the text settles. */
static void back_with(const struct contract_object *o, struct base_str json)
{
    struct contract_object *again = calloc(1, sizeof *again);
    struct base_buf one, two;

    encode(&one, o, json);
    CHECK(again && decode(again, (int)o->kind, text(&one)), "what was written is not read: %s", one.data);
    same(o, again);
    encode(&two, again, text(&one));
    CHECK(base_str_eq(text(&one), text(&two)), "no fixed point:\n%s\n%s", one.data, two.data);
    base_buf_fini(&one);
    base_buf_fini(&two);
    free(again);
}

static void back_without(const struct contract_object *o)
{
    struct contract_object *again = calloc(1, sizeof *again);
    struct base_buf one, two;

    encode(&one, o, BASE_STR(""));
    CHECK(again && decode(again, (int)o->kind, text(&one)), "what was written is not read: %s", one.data);
    same(o, again);
    encode(&two, again, BASE_STR(""));
    CHECK(base_str_eq(text(&one), text(&two)), "no fixed point:\n%s\n%s", one.data, two.data);
    CHECK(!contract_validate(again, again, NULL), "valid before it was written, not after");
    base_buf_fini(&one);
    base_buf_fini(&two);
    free(again);
}

/* Mission B3 and contract section 9: no value beyond a cap leaves the validation. */
static void within_caps(const struct contract_object *o)
{
    switch (o->kind) {
    case CONTRACT_INSTANCE:
        CHECK(o->u.instance.spec.lease_seconds >= 10 && o->u.instance.spec.lease_seconds <= 300, "lease");
        return;
    case CONTRACT_ATTACHMENT:
        CHECK(o->u.attachment.spec.instance_epoch >= 1, "epoch");
        return;
    case CONTRACT_SERVICE:
        CHECK(o->u.service.pool.len <= 95 && o->u.service.n_destinations <= CONTRACT_DESTINATIONS_MAX,
              "pool");
        return;
    case CONTRACT_CLAIM: {
        const struct contract_claim_spec *s = &o->u.claim.spec;

        CHECK(s->lease_seconds >= 10 && s->max_lease_seconds >= s->lease_seconds &&
                  s->max_lease_seconds <= 300,
              "lease %d, max %d", s->lease_seconds, s->max_lease_seconds);
        CHECK(s->prefix.len == 96 && s->epoch >= 1 && (s->previous.epoch != 0) == (s->epoch > 1), "epoch");
        return;
    }
    case CONTRACT_BINDING: {
        const struct contract_binding_spec *s = &o->u.binding.spec;

        CHECK(s->grant_seconds == 0 || (s->grant_seconds >= 6 && s->grant_seconds <= 30), "grant of %d s",
              s->grant_seconds);
        CHECK(s->n_identities >= 1 && s->n_identities <= CONTRACT_IDENTITIES_MAX, "%u identities",
              s->n_identities);
        CHECK(!o->u.binding.status.has_prefix || o->u.binding.status.prefix.len == 96, "a /%u",
              o->u.binding.status.prefix.len);
        return;
    }
    }
    CHECK(0, "kind %d", (int)o->kind);
}

static void follows(const struct contract_object *old, const struct contract_object *next)
{
    struct base_err err = {0};

    if (contract_validate(next, old, &err)) {
        CHECK(err.msg[0], "refused without a reason");
        return;
    }
    CHECK(old->kind == next->kind, "another kind follows");
    if (next->kind == CONTRACT_CLAIM) {
        const struct contract_claim *a = &old->u.claim, *b = &next->u.claim;

        CHECK(b->spec.epoch == a->spec.epoch || b->spec.epoch == a->spec.epoch + 1, "epoch");
        CHECK(base_uuid_eq(&a->spec.lease_uuid, &b->spec.lease_uuid) == (a->spec.epoch == b->spec.epoch),
              "a nonce is drawn for every attempt");
        CHECK(b->spec.epoch != a->spec.epoch || !a->spec.release_time ||
                  b->spec.release_time == a->spec.release_time,
              "a release is final");
        CHECK(b->status.closed_epoch >= a->status.closed_epoch, "closing is final");
    } else if (next->kind == CONTRACT_INSTANCE) {
        CHECK(next->u.instance.spec.epoch == old->u.instance.spec.epoch ||
                  next->u.instance.spec.epoch == old->u.instance.spec.epoch + 1,
              "epoch");
    } else if (next->kind == CONTRACT_SERVICE) {
        CHECK(!old->u.service.revoked || next->u.service.revoked, "a revocation is final");
    }
}

static void one(const struct contract_object *o, struct base_str json)
{
    struct base_err err = {0};

    back_with(o, json);
    if (!contract_validate(o, NULL, &err))
        CHECK(!contract_validate(o, o, &err), "may be made, but not stay: %s", err.msg);
    if (contract_validate(o, o, &err))
        return;
    within_caps(o);
    back_without(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct contract_object *o = NULL, *next = NULL;
    const uint8_t *nul;
    struct base_str first;
    int kind;

    if (size < 2 || (kind = data[0] & 7) >= CONTRACT_KIND_N)
        return 0;
    nul = memchr(data + 1, 0, size - 1);
    first = fuzz_text(data + 1, nul ? (size_t)(nul - data) - 1 : size - 1);
    o = calloc(1, sizeof *o);
    next = calloc(1, sizeof *next);
    if (o && next && decode(o, kind, first)) {
        one(o, first);
        if (nul && decode(next, (int)o->kind, fuzz_text(nul + 1, (size_t)(data + size - nul) - 1)))
            follows(o, next);
    }
    free(o);
    free(next);
    return 0;
}
