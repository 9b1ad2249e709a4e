/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/out.c - what comes out: tables, JSON, YAML, ages, colours.
 */
#include "cli/cli_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

static const char *const colours[] = {
    [CLI_PLAIN] = "",         [CLI_BAD] = "\033[31m",   [CLI_GOOD] = "\033[32m",
    [CLI_DOUBT] = "\033[33m", [CLI_STRONG] = "\033[1m", [CLI_FAINT] = "\033[2m"};

const char *cli_on(const struct cli *c, enum cli_colour colour)
{
    return c->colour ? colours[colour] : "";
}

const char *cli_off(const struct cli *c)
{
    return c->colour ? "\033[0m" : "";
}

void cli_tame(char *z)
{
    for (unsigned char *p = (unsigned char *)z; *p; p++)
        if (*p < ' ' || *p == 0x7f) { /* C0, DEL */
            *p = '?';
        } else if (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) { /* C1, in UTF-8 */
            p[0] = p[1] = '?';
        }
}

int cli_fail(struct cli *c, int exit_code, const char *fmt, ...)
{
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    (void)base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_tame(text);
    (void)fprintf(c->err, "error: %s\n", text);
    return exit_code;
}

void cli_warn(struct cli *c, const char *fmt, ...)
{
    char text[1200];
    va_list ap;

    va_start(ap, fmt);
    (void)base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_tame(text);
    (void)fprintf(c->err, "warning: %s\n", text);
}

/* ---- documents */

static void indent_by(struct base_buf *b, unsigned n)
{
    (void)base_buf_addf(b, "%*s", (int)n, "");
}

static bool is_word(const char *z)
{
    static const char *const reserved[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};

    if (!((z[0] >= 'a' && z[0] <= 'z') || (z[0] >= 'A' && z[0] <= 'Z')))
        return false;
    for (const char *p = z; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '-' ||
              *p == '_' || *p == '.' || *p == '/'))
            return false;
    for (size_t i = 0; i < BASE_LEN(reserved); i++) {
        const char *a = z, *r = reserved[i];

        for (; *a && (*a | 32) == *r; a++, r++)
            ;
        if (!*a && !*r)
            return false;
    }
    return true;
}

static void yaml_scalar(struct base_buf *b, const cJSON *v)
{
    if (cJSON_IsString(v) && is_word(v->valuestring)) {
        (void)base_buf_addf(b, "%s\n", v->valuestring);
        return;
    }
    char *text = cJSON_PrintUnformatted(v); /* a JSON string is a YAML string in double quotes */

    (void)base_buf_addf(b, "%s\n", text ? text : "null");
    cJSON_free(text);
}

static void yaml_node(struct base_buf *b, const cJSON *v, unsigned depth, bool first_inline)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, v)
    {
        bool nested = (cJSON_IsObject(m) || cJSON_IsArray(m)) && m->child;

        if (!first_inline)
            indent_by(b, depth);
        first_inline = false;
        if (cJSON_IsArray(v)) {
            (void)base_buf_addz(b, "- ");
            if (nested && cJSON_IsObject(m)) {
                yaml_node(b, m, depth + 2, true);
                continue;
            }
        } else if (is_word(m->string)) {
            (void)base_buf_addf(b, "%s:%s", m->string, nested ? "\n" : " ");
        } else {
            cJSON *key = cJSON_CreateString(m->string);
            char *text = cJSON_PrintUnformatted(key);

            (void)base_buf_addf(b, "%s:%s", text ? text : "?", nested ? "\n" : " ");
            cJSON_free(text);
            cJSON_Delete(key);
        }
        if (!nested) {
            yaml_scalar(b, m);
            continue;
        }
        if (cJSON_IsArray(v))
            (void)base_buf_addz(b, "\n");
        yaml_node(b, m, cJSON_IsArray(m) && cJSON_IsObject(v) ? depth : depth + 2, false);
    }
}

void cli_yaml(struct base_buf *out, const cJSON *doc)
{
    if (!(cJSON_IsObject(doc) || cJSON_IsArray(doc)) || !doc->child)
        yaml_scalar(out, doc);
    else
        yaml_node(out, doc, 0, false);
}

void cli_print_doc(struct cli *c, cJSON *doc)
{
    if (c->a.format == CLI_YAML) {
        struct base_buf b;

        base_buf_init(&b, (size_t)256 << 20);
        cli_yaml(&b, doc);
        (void)fputs(b.data ? b.data : "", c->out);
        base_buf_fini(&b);
    } else {
        char *text = cJSON_Print(doc);

        (void)fprintf(c->out, "%s\n", text ? text : "null");
        cJSON_free(text);
    }
    cJSON_Delete(doc);
}

const char *cli_text(const cJSON *o, const char *key)
{
    const char *z = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

    return z ? z : "";
}

void cli_add_str(cJSON *o, const char *key, const char *value)
{
    if (value && value[0])
        (void)cJSON_AddStringToObject(o, key, value);
}

void cli_add_int(cJSON *o, const char *key, int64_t value)
{
    (void)cJSON_AddNumberToObject(o, key, (double)value);
}

void cli_add_time(cJSON *o, const char *key, base_wall t)
{
    char text[BASE_RFC3339_SIZE];

    if (t <= 0)
        return;
    base_rfc3339(text, t);
    (void)cJSON_AddStringToObject(o, key, text);
}

void cli_add_uuid(cJSON *o, const char *key, const struct base_uuid *u)
{
    char text[BASE_UUID_SIZE];

    if (base_uuid_is_zero(u))
        return;
    base_uuid_text(text, u);
    (void)cJSON_AddStringToObject(o, key, text);
}

void cli_add_prefix(cJSON *o, const char *key, const struct base_prefix *p)
{
    char text[BASE_PREFIX_SIZE];

    base_prefix_text(text, p);
    (void)cJSON_AddStringToObject(o, key, text);
}

/* The record's own line again, so that no key is missed. */
cJSON *cli_record_json(const struct audit_line *l)
{
    struct base_buf b;
    cJSON *o = NULL;

    base_buf_init(&b, 2 * AUDIT_LINE_MAX);
    if (audit_encode(&b, &l->record, NULL) == BASE_OK)
        o = cJSON_ParseWithLength(b.data, b.len);
    base_buf_fini(&b);
    if (o && l->seq)
        cli_add_int(o, "seq", (int64_t)l->seq);
    return o ? o : cJSON_CreateNull();
}

/* ---- tables */

void cli_table_init(struct cli_table *t, const char *const *head, size_t n, unsigned wide)
{
    *t = (struct cli_table){.n_columns = n, .wide = wide, .arena = base_arena_new((size_t)512 << 20)};
    for (size_t i = 0; i < n && head; i++)
        t->head[i] = head[i];
    t->tail = &t->rows;
}

struct cli_row *cli_table_row(struct cli_table *t)
{
    struct cli_row *r = t->arena ? base_arena_alloc(t->arena, sizeof *r) : NULL;

    if (!r)
        return NULL;
    *t->tail = r;
    t->tail = &r->next;
    return r;
}

void cli_cell(struct cli_table *t, struct cli_row *r, size_t column, enum cli_colour colour, const char *fmt,
              ...)
{
    char text[1024];
    va_list ap;

    if (!r)
        return;
    va_start(ap, fmt);
    (void)base_vfmt(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_tame(text);
    r->colour[column] = colour;
    r->cell[column] = base_arena_strdup(t->arena, base_str_of(text));
}

/* Columns of the terminal that a UTF-8 text takes (our texts have no wide characters). */
static size_t width_of(const char *z)
{
    size_t n = 0;

    for (; z && *z; z++)
        n += ((unsigned char)*z & 0xc0) != 0x80;
    return n;
}

static void print_row(struct cli *c, const struct cli_table *t, const char *const *cell,
                      const enum cli_colour *colour, const size_t *width, const char *indent)
{
    size_t last = 0;

    for (size_t i = 0; i < t->n_columns; i++)
        if (width[i] && cell[i] && cell[i][0])
            last = i;
    (void)fputs(indent, c->out);
    for (size_t i = 0; i <= last; i++) {
        const char *text = cell[i] ? cell[i] : "";

        if (!width[i])
            continue;
        (void)fprintf(c->out, "%s%s%s", colour && colour[i] ? cli_on(c, colour[i]) : "", text,
                      colour && colour[i] ? cli_off(c) : "");
        if (i < last)
            (void)fprintf(c->out, "%*s", (int)(width[i] - width_of(text) + 3), "");
    }
    (void)fputc('\n', c->out);
}

static void measure(const struct cli *c, const struct cli_table *t, size_t width[CLI_COLUMNS_MAX])
{
    for (size_t i = 0; i < t->n_columns; i++) {
        width[i] = 0;
        if ((t->wide >> i & 1) && c->a.format != CLI_WIDE)
            continue;
        width[i] = t->head[0] ? width_of(t->head[i]) : 1;
        for (const struct cli_row *r = t->rows; r; r = r->next)
            if (width_of(r->cell[i]) > width[i])
                width[i] = width_of(r->cell[i]);
    }
}

void cli_table_print_group(struct cli *c, const struct cli_table *t, size_t group, bool heading,
                           const char *indent)
{
    size_t width[CLI_COLUMNS_MAX];

    measure(c, t, width);
    if (heading)
        print_row(c, t, t->head, NULL, width, indent);
    for (const struct cli_row *r = t->rows; r; r = r->next)
        if (r->group == group)
            print_row(c, t, r->cell, r->colour, width, indent);
}

void cli_table_fini(struct cli_table *t)
{
    t->arena = base_arena_free(t->arena);
    t->rows = NULL;
}

void cli_table_print(struct cli *c, struct cli_table *t, const char *indent)
{
    cli_table_print_group(c, t, 0, t->head[0] != NULL, indent);
    cli_table_fini(t);
}

void cli_age(char dst[CLI_AGE_SIZE], base_wall now, base_wall then)
{
    int64_t s = (now - then) / 1000000;
    const char *in = "";

    if (s < 0) {
        in = "in ";
        s = -s;
    }
    if (s < 120)
        (void)base_fmt(dst, CLI_AGE_SIZE, "%s%llds", in, (long long)s);
    else if (s < 3600)
        (void)base_fmt(dst, CLI_AGE_SIZE, "%s%lldm%llds", in, (long long)(s / 60), (long long)(s % 60));
    else if (s < 172800)
        (void)base_fmt(dst, CLI_AGE_SIZE, "%s%lldh%lldm", in, (long long)(s / 3600),
                       (long long)(s / 60 % 60));
    else
        (void)base_fmt(dst, CLI_AGE_SIZE, "%s%lldd", in, (long long)(s / 86400));
}
