/* SPDX-License-Identifier: Apache-2.0
 *
 * A bounded memory of raw objects: one slot per hash of kind and name, the newest version wins. Losing a text
 * costs one GET.
 */
#include "kubestore/kubestore_int.h"

#include "base/hash.h"

#define SLOTS 1024
#define TEXT_MAX ((size_t)256 << 10)

struct slot {
    enum contract_kind kind;
    char name[CONTRACT_NAME_SIZE];
    struct base_uuid uid;
    char rv[CONTRACT_RV_SIZE];
    struct base_str text; /* owned */
};
struct kubestore_raw {
    struct slot *slots[SLOTS];
};

static size_t place(enum contract_kind kind, const char *name)
{
    uint64_t h = base_fnv1a(BASE_FNV1A ^ (uint64_t)kind, name, strlen(name));

    return (size_t)(h ^ h >> 32) % SLOTS;
}

struct kubestore_raw *kubestore_raw_new(void)
{
    return base_calloc(1, sizeof(struct kubestore_raw));
}

static void drop(struct slot *s)
{
    char *text = s ? (char *)(uintptr_t)s->text.ptr : NULL;

    base_free(text);
    base_free(s);
}

struct kubestore_raw *kubestore_raw_free(struct kubestore_raw *r)
{
    if (!r)
        return NULL;
    for (size_t i = 0; i < SLOTS; i++)
        drop(r->slots[i]);
    return base_free(r);
}

void kubestore_raw_clear(struct kubestore_raw *r)
{
    for (size_t i = 0; i < SLOTS; i++) {
        drop(r->slots[i]);
        r->slots[i] = NULL;
    }
}

void kubestore_raw_put(struct kubestore_raw *r, const struct contract_object *o, struct base_str text)
{
    size_t at = place(o->kind, o->u.meta.name);
    struct slot *s = r->slots[at];
    char *copy;
    int cmp;

    if (s && s->kind == o->kind && strcmp(s->name, o->u.meta.name) == 0 &&
        base_uuid_eq(&s->uid, &o->u.meta.uid) && base_rv_cmp(o->u.meta.rv, s->rv, &cmp) == BASE_OK && cmp < 0)
        return; /* an event that was overtaken by an answer */
    drop(r->slots[at]);
    r->slots[at] = NULL;
    if (text.len == 0 || text.len > TEXT_MAX)
        return;
    s = base_calloc(1, sizeof *s);
    copy = base_calloc(1, text.len);
    if (!s || !copy) {
        base_free(s);
        base_free(copy);
        return;
    }
    memcpy(copy, text.ptr, text.len);
    s->kind = o->kind;
    memcpy(s->name, o->u.meta.name, sizeof s->name);
    s->uid = o->u.meta.uid;
    memcpy(s->rv, o->u.meta.rv, sizeof s->rv);
    s->text = (struct base_str){copy, text.len};
    r->slots[at] = s;
}

struct base_str kubestore_raw_get(const struct kubestore_raw *r, enum contract_kind kind, const char *name,
                                  const struct base_uuid *uid, const char *rv)
{
    const struct slot *s = r->slots[place(kind, name)];

    if (s && s->kind == kind && strcmp(s->name, name) == 0 && base_uuid_eq(&s->uid, uid) &&
        strcmp(s->rv, rv) == 0)
        return s->text;
    return (struct base_str){"", 0};
}
