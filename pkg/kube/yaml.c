/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml.c - libyaml's events as a small tree. What a kubeconfig does not need is refused, not guessed at.
 */
#include <string.h>
#include <yaml.h>

#include "kube_int.h"

#define DEPTH_MAX 32
#define NODES_MAX 50000

struct ctx {
    yaml_parser_t p;
    struct base_arena *a;
    struct base_err *err;
    unsigned nodes;
};

static int fail(struct ctx *c, size_t line, const char *text)
{
    return base_err_set(c->err, BASE_EINVAL, "line %zu: %s", line + 1, text);
}

static int next(struct ctx *c, yaml_event_t *ev)
{
    if (yaml_parser_parse(&c->p, ev))
        return BASE_OK;
    if (c->p.error == YAML_MEMORY_ERROR)
        return base_err_set(c->err, BASE_ENOMEM, "no memory");
    return base_err_set(c->err, BASE_EINVAL, "line %zu: not YAML: %s", c->p.problem_mark.line + 1,
                        c->p.problem ? c->p.problem : "unreadable");
}

static int scalar_text(struct ctx *c, const yaml_event_t *ev, const char **ret)
{
    struct base_str s = {(const char *)ev->data.scalar.value, ev->data.scalar.length};

    if (memchr(s.ptr, '\0', s.len))
        return fail(c, ev->start_mark.line, "a value holds a NUL character");
    *ret = base_arena_strdup(c->a, s);
    return *ret ? BASE_OK : base_err_set(c->err, BASE_ENOMEM, "no memory, or the document is too large");
}

static bool is_null(const char *z)
{
    return *z == '\0' || strcmp(z, "~") == 0 || strcmp(z, "null") == 0 || strcmp(z, "Null") == 0 ||
           strcmp(z, "NULL") == 0;
}

static int value(struct ctx *c, yaml_event_t *ev, unsigned depth, struct kube_ynode **ret);

static int children(struct ctx *c, struct kube_ynode *n, unsigned depth)
{
    yaml_event_type_t end = n->kind == KUBE_Y_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;

    for (;;) {
        struct kube_ynode *child = NULL;
        const char *key = NULL;
        yaml_event_t ev;
        int rc = next(c, &ev);

        if (rc != BASE_OK)
            return rc;
        if (ev.type == end) {
            yaml_event_delete(&ev);
            return BASE_OK;
        }
        if (n->kind == KUBE_Y_MAP) {
            if (ev.type == YAML_SCALAR_EVENT)
                rc = scalar_text(c, &ev, &key);
            else
                rc = fail(c, ev.start_mark.line,
                          "a key must be plain text (aliases and merge keys are not supported)");
            for (const struct kube_ynode *o = n->first; rc == BASE_OK && o; o = o->next)
                if (strcmp(o->key, key) == 0)
                    rc = base_err_set(c->err, BASE_EINVAL, "line %zu: the key \"%.60s\" is there twice",
                                      ev.start_mark.line + 1, key);
            yaml_event_delete(&ev);
            if (rc == BASE_OK)
                rc = next(c, &ev);
            if (rc != BASE_OK)
                return rc;
        }
        rc = value(c, &ev, depth + 1, &child);
        if (rc != BASE_OK)
            return rc;
        child->key = key;
        if (n->last)
            n->last->next = child;
        else
            n->first = child;
        n->last = child;
    }
}

/* Takes the event. */
static int value(struct ctx *c, yaml_event_t *ev, unsigned depth, struct kube_ynode **ret)
{
    struct kube_ynode *n = base_arena_alloc(c->a, sizeof *n);
    size_t line = ev->start_mark.line;
    int rc = BASE_OK;

    if (!n) {
        yaml_event_delete(ev);
        return base_err_set(c->err, BASE_ENOMEM, "no memory, or the document is too large");
    }
    n->line = (unsigned)line + 1;
    *ret = n;
    switch ((int)ev->type) {
    case YAML_SCALAR_EVENT:
        rc = scalar_text(c, ev, &n->text);
        n->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        n->kind = rc == BASE_OK && n->plain && is_null(n->text) ? KUBE_Y_NULL : KUBE_Y_SCALAR;
        break;
    case YAML_MAPPING_START_EVENT:
        n->kind = KUBE_Y_MAP;
        break;
    case YAML_SEQUENCE_START_EVENT:
        n->kind = KUBE_Y_LIST;
        break;
    default:
        rc = fail(c, line, "aliases are not supported; write the value out");
    }
    if (depth > DEPTH_MAX)
        rc = fail(c, line, "nested too deeply");
    else if (++c->nodes > NODES_MAX)
        rc = fail(c, line, "too many values");
    yaml_event_delete(ev);
    return rc == BASE_OK && n->kind >= KUBE_Y_MAP ? children(c, n, depth) : rc;
}

static int document(struct ctx *c, struct kube_ynode **ret)
{
    struct kube_ynode *root = NULL;
    yaml_event_t ev;
    int rc;

    for (;;) {
        rc = next(c, &ev);
        if (rc != BASE_OK)
            return rc;
        if (ev.type == YAML_STREAM_END_EVENT) {
            yaml_event_delete(&ev);
            break;
        }
        if (ev.type == YAML_STREAM_START_EVENT || ev.type == YAML_DOCUMENT_END_EVENT ||
            ev.type == YAML_DOCUMENT_START_EVENT) {
            bool second = ev.type == YAML_DOCUMENT_START_EVENT && root;
            size_t line = ev.start_mark.line;

            yaml_event_delete(&ev);
            if (second)
                return fail(c, line, "a second document begins here; one file holds one");
            continue;
        }
        rc = value(c, &ev, 0, &root);
        if (rc != BASE_OK)
            return rc;
    }
    if (!root) {
        root = base_arena_alloc(c->a, sizeof *root);
        if (!root)
            return base_err_set(c->err, BASE_ENOMEM, "no memory");
        root->kind = KUBE_Y_NULL;
        root->line = 1;
    }
    *ret = root;
    return BASE_OK;
}

int kube_yaml_parse(struct kube_ynode **ret, struct base_arena *a, struct base_str text, struct base_err *err)
{
    struct ctx c = {.a = a, .err = err};
    int rc;

    if (!yaml_parser_initialize(&c.p))
        return base_err_set(err, BASE_ENOMEM, "no memory");
    yaml_parser_set_input_string(&c.p, (const unsigned char *)text.ptr, text.len);
    rc = document(&c, ret);
    yaml_parser_delete(&c.p);
    return rc;
}

const struct kube_ynode *kube_yaml_get(const struct kube_ynode *map, const char *key)
{
    if (!map || map->kind != KUBE_Y_MAP)
        return NULL;
    for (const struct kube_ynode *n = map->first; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n->kind == KUBE_Y_NULL ? NULL : n;
    return NULL;
}
