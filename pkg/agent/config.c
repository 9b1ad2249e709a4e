/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <yaml.h>

#include "agent/addr.h"
#include "base/mem.h"

#define CONFIG_MAX_BYTES (256 * 1024)

struct reader {
    struct agent_config *c;
    const char *file;
    struct base_err *err;
    bool seen[AGENT_OPTIONS_MAX], section[AGENT_OPTIONS_MAX]; /* of each option: it, its section was read */
};

static size_t line_of(const yaml_event_t *ev)
{
    return ev->start_mark.line + 1;
}

static int refuse(struct reader *r, size_t line, const char *key, struct base_str value, const char *remedy)
{
    return base_err_set(r->err, BASE_EINVAL, "%s:%zu: %s: '%.*s': %s", r->file, line, key,
                        (int)(value.len > 80 ? 80 : value.len), value.ptr ? value.ptr : "", remedy);
}

/* The same where the value may be a secret that was put into the wrong place: a key for a key's path, a word
 * that is no option. */
static int refuse_hidden(struct reader *r, size_t line, const char *key, const char *remedy)
{
    return base_err_set(r->err, BASE_EINVAL, "%s:%zu: %s: the value (not shown): %s", r->file, line, key,
                        remedy);
}

/* Judged by what will be asked to listen there. */
static bool is_address(struct base_str s)
{
    char text[AGENT_ADDR_SIZE];
    struct sockaddr_storage ss;
    socklen_t len;

    return !base_copy_str(text, sizeof text, s) && !agent_addr_parse(text, &ss, &len, NULL);
}

static int set_enum(struct reader *r, const struct agent_option *o, struct base_str v, size_t line,
                    int64_t *at)
{
    const char *p = o->choices;
    char remedy[96];

    for (int64_t i = 0;; i++) {
        size_t n = strcspn(p, "|");

        if (base_str_eq(v, (struct base_str){p, n})) {
            *at = i;
            return BASE_OK;
        }
        if (!p[n])
            break;
        p += n + 1;
    }
    (void)base_fmt(remedy, sizeof remedy, "must be one of %s", o->choices);
    return refuse(r, line, o->path, v, remedy);
}

static int set_option(struct reader *r, const struct agent_option *o, struct base_str v, size_t line)
{
    char *at = (char *)r->c + o->offset;
    char remedy[96];
    uint64_t n;

    if (!v.len && o->preset[0])
        return refuse(r, line, o->path, v, "must not be empty; for the default, remove the line");
    switch (o->type) {
    case AGENT_OPT_INT:
        if (base_parse_u64(v, INT64_MAX, &n) || (int64_t)n < o->min || (int64_t)n > o->max) {
            (void)base_fmt(remedy, sizeof remedy, "must be a whole number from %lld to %lld",
                           (long long)o->min, (long long)o->max);
            return refuse(r, line, o->path, v, remedy);
        }
        *(int64_t *)(void *)at = (int64_t)n;
        return BASE_OK;
    case AGENT_OPT_ENUM:
        return set_enum(r, o, v, line, (int64_t *)(void *)at);
    case AGENT_OPT_LABEL:
        if (v.len && !base_is_label(v, 63))
            return refuse(r, line, o->path, v,
                          "must be an RFC 1123 label: a-z, 0-9, '-', at most 63 characters");
        break;
    case AGENT_OPT_NODE:
        if (v.len && !base_is_subdomain(v, CONTRACT_NODE_SIZE - 1))
            return refuse(r, line, o->path, v,
                          "must be a node name of at most 125 characters (object names are built from it)");
        break;
    case AGENT_OPT_PATH:
        if (v.len && v.ptr[0] != '/')
            return refuse_hidden(r, line, o->path, "must be an absolute path");
        break;
    case AGENT_OPT_ADDRESS:
        if (v.len && !is_address(v))
            return refuse(r, line, o->path, v,
                          "must be <address>:<port>, for instance [::]:4433 or 127.0.0.1:4433");
        break;
    case AGENT_OPT_STRING:
        break;
    }
    if (base_copy_str(at, o->size, v)) {
        (void)base_fmt(remedy, sizeof remedy, "is longer than %zu characters, or holds a NUL", o->size - 1);
        return refuse_hidden(r, line, o->path, remedy);
    }
    return BASE_OK;
}

static bool is_section(struct base_str key)
{
    for (size_t i = 0; i < agent_options_n; i++)
        if (strlen(agent_options[i].path) > key.len && agent_options[i].path[key.len] == '.' &&
            memcmp(agent_options[i].path, key.ptr, key.len) == 0)
            return true;
    return false;
}

static const char *known_keys(char *dst, size_t size, const char *section)
{
    size_t prefix = strlen(section), n = 0;

    dst[0] = '\0';
    for (size_t i = 0; i < agent_options_n; i++) {
        const char *path = agent_options[i].path;
        size_t len;

        if (prefix && (strncmp(path, section, prefix) != 0 || path[prefix] != '.'))
            continue;
        path += prefix ? prefix + 1 : 0;
        len = strcspn(path, ".");
        if (i && !prefix && strncmp(agent_options[i - 1].path, path, len + 1) == 0)
            continue;
        (void)base_fmt(dst + n, size - n, "%s%.*s", n ? ", " : "", (int)len, path);
        n = strlen(dst);
    }
    return dst;
}

static int scalar(struct reader *r, const char *section, struct base_str key, struct base_str v, size_t line)
{
    char path[64], keys[256], remedy[300];
    bool plain; /* else it is no option, whatever `path` makes of it */

    if (!base_fmt(path, sizeof path, "%s%s%.*s", section, section[0] ? "." : "",
                  (int)(key.len > 48 ? 48 : key.len), key.ptr))
        path[sizeof path - 1] = '\0';
    plain = key.len <= 48 && !memchr(key.ptr, '\0', key.len) && !memchr(key.ptr, '.', key.len);
    for (size_t i = 0; plain && i < agent_options_n; i++) {
        if (strcmp(agent_options[i].path, path) != 0)
            continue;
        if (r->seen[i])
            return refuse_hidden(r, line, path, "is given twice; remove one");
        r->seen[i] = true;
        return set_option(r, &agent_options[i], v, line);
    }
    if (!section[0] && is_section(key))
        return refuse_hidden(r, line, path, "is a section; write its keys below it");
    (void)base_fmt(remedy, sizeof remedy, "no such option%s%s; known here: %s", section[0] ? " in " : "",
                   section, known_keys(keys, sizeof keys, section));
    return refuse_hidden(r, line, path, remedy);
}

/* One event; the parser's own errors become ours. */
static int next(struct reader *r, yaml_parser_t *p, yaml_event_t *ev)
{
    if (yaml_parser_parse(p, ev))
        return BASE_OK;
    return base_err_set(r->err, BASE_EINVAL, "%s:%zu: not YAML: %s", r->file, p->problem_mark.line + 1,
                        p->problem ? p->problem : "unreadable");
}

static struct base_str text(const yaml_event_t *ev)
{
    return (struct base_str){(const char *)ev->data.scalar.value, ev->data.scalar.length};
}

/* A second section of the same name would be another parser's only one. */
static int section_begins(struct reader *r, size_t line, const char *section)
{
    size_t n = strlen(section);

    for (size_t i = 0; i < agent_options_n; i++) {
        if (strncmp(agent_options[i].path, section, n) != 0 || agent_options[i].path[n] != '.')
            continue;
        if (r->section[i])
            return refuse_hidden(r, line, section, "is given twice; write its keys into one section");
        r->section[i] = true;
    }
    return BASE_OK;
}

/* The keys of one mapping; `section` is "" at the top. The mapping's start event was read. */
static int mapping(struct reader *r, yaml_parser_t *p, const char *section)
{
    for (;;) {
        yaml_event_t k, v;
        int rc = next(r, p, &k);

        if (rc)
            return rc;
        if (k.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&k);
            return BASE_OK;
        }
        if (k.type != YAML_SCALAR_EVENT) {
            rc =
                base_err_set(r->err, BASE_EINVAL, "%s:%zu: a key must be a plain word", r->file, line_of(&k));
            yaml_event_delete(&k);
            return rc;
        }
        rc = next(r, p, &v);
        if (!rc) {
            if (v.type == YAML_SCALAR_EVENT) {
                rc = scalar(r, section, text(&k), text(&v), line_of(&v));
            } else if (v.type == YAML_MAPPING_START_EVENT && !section[0] && is_section(text(&k))) {
                char name[32];

                (void)base_copy_str(name, sizeof name, text(&k));
                rc = section_begins(r, line_of(&k), name);
                if (!rc)
                    rc = mapping(r, p, name);
            } else if (v.type == YAML_MAPPING_START_EVENT && !section[0]) {
                rc = scalar(r, section, text(&k), BASE_STR("{…}"), line_of(&k));
            } else {
                rc = refuse(r, line_of(&v), (const char *)k.data.scalar.value, BASE_STR(""),
                            "must be a single value, not a list, alias or nested section");
            }
            yaml_event_delete(&v);
        }
        yaml_event_delete(&k);
        if (rc)
            return rc;
    }
}

static int document(struct reader *r, yaml_parser_t *p)
{
    bool have = false;

    for (;;) {
        yaml_event_t ev;
        int rc = next(r, p, &ev);
        yaml_event_type_t type;
        size_t line;
        bool empty;

        if (rc)
            return rc;
        type = ev.type;
        line = line_of(&ev);
        empty = type == YAML_SCALAR_EVENT && text(&ev).len == 0;
        yaml_event_delete(&ev);
        if (type == YAML_STREAM_END_EVENT)
            return BASE_OK;
        if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT ||
            type == YAML_DOCUMENT_END_EVENT || empty)
            continue;
        if (type != YAML_MAPPING_START_EVENT || have)
            return base_err_set(r->err, BASE_EINVAL, "%s:%zu: the file must be one mapping of options",
                                r->file, line);
        have = true;
        rc = mapping(r, p, "");
        if (rc)
            return rc;
    }
}

static int from_env(struct reader *r, const char *(*env)(const char *))
{
    static const struct {
        const char *variable, *path;
    } rows[] = {{"NODE_NAME", "nodeName"}, {"POD_NAMESPACE", "namespace"}};

    for (size_t i = 0; env && i < BASE_LEN(rows); i++)
        for (size_t o = 0; o < agent_options_n; o++) {
            const char *value;

            if (strcmp(agent_options[o].path, rows[i].path) != 0 || r->seen[o])
                continue;
            value = env(rows[i].variable);
            if (value && value[0] && set_option(r, &agent_options[o], base_str_of(value), 0))
                return base_err_wrap(r->err, "environment variable %s", rows[i].variable);
        }
    return BASE_OK;
}

int agent_config_parse(struct agent_config *ret, struct base_str yaml, const char *name,
                       const char *(*env)(const char *), struct base_err *err)
{
    struct agent_config c = {0};
    struct reader r = {.c = &c, .file = name, .err = err};
    yaml_parser_t parser;
    int rc = BASE_OK;

    for (size_t i = 0; !rc && i < agent_options_n; i++)
        rc = set_option(&r, &agent_options[i], base_str_of(agent_options[i].preset), 0);
    if (rc)
        return rc;
    if (yaml.len) {
        if (!yaml_parser_initialize(&parser))
            return base_err_set(err, BASE_ENOMEM, "%s: no memory", name);
        yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.ptr, yaml.len);
        rc = document(&r, &parser);
        yaml_parser_delete(&parser);
    }
    if (!rc)
        rc = from_env(&r, env);
    if (!rc)
        *ret = c;
    return rc;
}

int agent_config_load(struct agent_config *ret, const char *path, const char *(*env)(const char *),
                      struct base_err *err)
{
    struct base_buf b;
    char chunk[4096];
    size_t n;
    FILE *f;
    int rc = BASE_OK;

    if (!path || !path[0])
        return agent_config_parse(ret, BASE_STR(""), "defaults", env, err);
    f = fopen(path, "re");
    if (!f)
        return base_err_sys(err, errno == ENOENT ? BASE_ENOTFOUND : BASE_EIO, errno,
                            "--config: cannot read %s; name another file or mount this one", path);
    base_buf_init(&b, CONFIG_MAX_BYTES);
    while (!rc && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        rc = base_buf_add(&b, chunk, n);
    if (!rc && ferror(f))
        rc = base_err_sys(err, BASE_EIO, errno, "--config: cannot read %s", path);
    else if (rc)
        rc = base_err_set(err, BASE_EINVAL, "--config: %s is larger than %d bytes", path, CONFIG_MAX_BYTES);
    (void)fclose(f);
    if (!rc)
        rc = agent_config_parse(ret, (struct base_str){b.data, b.len}, path, env, err);
    base_buf_fini(&b);
    if (!rc && base_copy(ret->file, sizeof ret->file, path))
        rc =
            base_err_set(err, BASE_EINVAL, "--config: the path is longer than %d bytes", AGENT_PATH_SIZE - 1);
    return rc;
}

int agent_config_timing(const struct agent_config *c, struct contract_timing *ret, struct base_err *err)
{
    struct contract_timing t = contract_timing_default();

    t.lease = c->lease_seconds * BASE_SEC;
    t.guard = c->guard_ms * BASE_MS;
    t.quiesce = c->quiesce_ms * BASE_MS;
    t.gap = c->gap_ms * BASE_MS;
    t.grant = c->grant_seconds * BASE_SEC;
    t.interval = base_time_min(t.lease, t.grant) / 3;
    if (contract_timing_check(&t, err))
        return base_err_wrap(err, "lease");
    *ret = t;
    return BASE_OK;
}

base_time agent_renewal_timeout(const struct contract_timing *t, base_time most)
{
    return base_time_min(most, base_time_max(BASE_SEC, (t->lease - t->guard - t->interval) / 4 * 3));
}

int agent_config_policy(const struct agent_config *c, struct base_err *err)
{
    const char *url = c->webhook_url;

    if (c->policy != AGENT_POLICY_WEBHOOK)
        return url[0] ? base_err_set(
                            err, BASE_EINVAL,
                            "authority.webhookURL: is given, but authority.policy is not 'webhook'; set the "
                            "policy or remove the URL")
                      : BASE_OK;
    if (strncmp(url, "https://", 8) != 0 || !url[8] || strpbrk(url, " \"<>\\^`{|}#@"))
        return base_err_set(err, BASE_EINVAL,
                            "authority.webhookURL: must be an https:// URL of your authorization service, "
                            "without a user and a fragment");
    return BASE_OK;
}

int agent_config_describe(struct base_buf *out)
{
    for (size_t i = 0; i < agent_options_n; i++) {
        const struct agent_option *o = &agent_options[i];
        char range[64] = "";

        if (o->type == AGENT_OPT_INT)
            (void)base_fmt(range, sizeof range, " (%lld..%lld)", (long long)o->min, (long long)o->max);
        else if (o->type == AGENT_OPT_ENUM)
            (void)base_fmt(range, sizeof range, " (%s)", o->choices);
        (void)base_buf_addf(out, "  %-28s %s%s; default %s\n", o->path, o->what, range,
                            o->preset[0] ? o->preset : "none");
    }
    return out->failed;
}
