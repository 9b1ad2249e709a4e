/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenario files: one statement a line (README.md). Everything that can be wrong in a file is found here.
 */
#include "admission.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX 4096

struct cursor {
    const char *p;
    const char *file;
    int line;
    struct base_err *err;
};

static int wrong(const struct cursor *c, const char *want)
{
    return base_err_set(c->err, BASE_EINVAL, "%s:%d: expected %s at '%.40s'", c->file, c->line, want, c->p);
}

static void blanks(struct cursor *c)
{
    while (*c->p == ' ' || *c->p == '\t')
        c->p++;
}

static struct base_str word(struct cursor *c)
{
    blanks(c);
    const char *start = c->p;
    while (*c->p && *c->p != ' ' && *c->p != '\t')
        c->p++;
    return (struct base_str){start, (size_t)(c->p - start)};
}

static char *take(const char *p, size_t n)
{
    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    char *z = base_calloc(1, n + 1);
    if (z)
        memcpy(z, p, n);
    return z;
}

static int quoted(struct cursor *c, char **ret)
{
    blanks(c);
    if (*c->p != '"')
        return wrong(c, "a name in quotes");
    const char *start = ++c->p;
    while (*c->p && *c->p != '"')
        c->p++;
    if (*c->p != '"')
        return wrong(c, "a closing quote");
    *ret = take(start, (size_t)(c->p - start));
    c->p++;
    return *ret ? BASE_OK : base_err_set(c->err, BASE_ENOMEM, "no memory");
}

/* The length up to the next ';' or " ! " that stands outside of quotes. */
static size_t until_mark(const char *p)
{
    bool in = false;
    size_t i = 0;
    for (; p[i]; i++) {
        if (p[i] == '\\' && in && p[i + 1])
            i++;
        else if (p[i] == '"')
            in = !in;
        else if (!in && (p[i] == ';' || (p[i] == '!' && p[i + 1] == ' ' && i > 0 && p[i - 1] == ' ')))
            break;
    }
    return i;
}

static int add_change(struct adm_stmt *st, char *text, struct cursor *c)
{
    char **more = text ? base_realloc(st->changes, (st->n_changes + 1) * sizeof *more) : NULL;
    if (!more) {
        base_free(text);
        return base_err_set(c->err, BASE_ENOMEM, "no memory");
    }
    st->changes = more;
    st->changes[st->n_changes++] = text;
    return BASE_OK;
}

static int verb_of(struct base_str w)
{
    static const char *const words[ADM_VERB_N] = {
        [ADM_CREATE] = "create", [ADM_PUT] = "put",
        [ADM_STATUS] = "status", [ADM_DELETE] = "delete",
        [ADM_JSON] = "json",     [ADM_JSON_STATUS] = "json-status",
        [ADM_MERGE] = "merge",   [ADM_MERGE_STATUS] = "merge-status",
        [ADM_APPLY] = "apply",   [ADM_GET] = "get",
    };
    for (int i = 0; i < ADM_VERB_N; i++)
        if (base_str_eqz(w, words[i]))
            return i;
    return -1;
}

static int tail(struct cursor *c, struct adm_stmt *st)
{
    blanks(c);
    if (*c->p == '=') {
        c->p++;
        blanks(c);
        size_t n = until_mark(c->p);
        st->body = take(c->p, n);
        c->p += n;
        if (!st->body)
            return base_err_set(c->err, BASE_ENOMEM, "no memory");
    }
    while (*c->p == ';') {
        c->p++;
        blanks(c);
        size_t n = until_mark(c->p);
        if (n == 0)
            return wrong(c, "a change after ';'");
        int rc = add_change(st, take(c->p, n), c);
        if (rc)
            return rc;
        c->p += n;
    }
    if (*c->p == '!') {
        c->p++;
        blanks(c);
        st->fragment = take(c->p, strlen(c->p));
        if (!st->fragment)
            return base_err_set(c->err, BASE_ENOMEM, "no memory");
        c->p += strlen(c->p);
    }
    return *c->p ? wrong(c, "the end, ';', '=' or ' ! '") : BASE_OK;
}

static int request(struct cursor *c, struct adm_stmt *st)
{
    int who = adm_who_of(word(c));
    if (who < 0)
        return wrong(c, "who: admin a b fa fb np npf auth op");
    int verb = verb_of(word(c));
    if (verb < 0)
        return wrong(c, "a verb: create put status delete json json-status merge merge-status apply get");
    st->who = (enum adm_who)who;
    st->verb = (enum adm_verb)verb;
    if (base_copy_str(st->target, sizeof st->target, word(c)) || !st->target[0])
        return wrong(c, "a target such as rc:1");
    int rc = tail(c, st);
    if (rc)
        return rc;
    bool patch = verb >= ADM_JSON && verb <= ADM_APPLY;
    if (patch != (st->body != NULL))
        return wrong(c, patch ? "'= BODY' for a patch" : "no '= BODY' (only patches have one)");
    return BASE_OK;
}

static int case_line(struct cursor *c, struct adm_stmt *st, struct base_str w)
{
    st->kind = ADM_CASE;
    char *end = NULL;
    st->code = strtol(w.ptr, &end, 10);
    if (end != w.ptr + 3 || st->code < 200 || st->code > 599)
        return wrong(c, "a status code, do, same, rows, can, services or sleep");
    if (*end == '~') {
        st->retry = true;
        end++;
    }
    if (*end == '/') {
        end++;
        if (base_copy_str(st->reason, sizeof st->reason,
                          (struct base_str){end, (size_t)(w.ptr + w.len - end)}))
            return wrong(c, "a shorter reason");
    } else if (end != w.ptr + w.len) {
        return wrong(c, "CODE, CODE~ or CODE/Reason");
    }
    int rc = quoted(c, &st->name);
    return rc ? rc : request(c, st);
}

static int statement(struct cursor *c, struct adm_stmt *st)
{
    struct base_str w = word(c);
    st->line = c->line;
    if (base_str_eqz(w, "do")) {
        st->kind = ADM_DO;
        return request(c, st);
    }
    if (base_str_eqz(w, "services")) {
        st->kind = ADM_SERVICES;
        return tail(c, st);
    }
    if (base_str_eqz(w, "sleep")) {
        st->kind = ADM_SLEEP;
        uint64_t ms = 0;
        if (base_parse_u64(word(c), 10000, &ms))
            return wrong(c, "milliseconds up to 10000");
        st->code = (long)ms;
        return tail(c, st);
    }
    bool same = base_str_eqz(w, "same"), rows = base_str_eqz(w, "rows"), can = base_str_eqz(w, "can");
    if (!same && !rows && !can)
        return case_line(c, st, w);
    st->kind = same ? ADM_SAME : rows ? ADM_ROWS : ADM_CAN;
    int rc = quoted(c, &st->name);
    if (rc)
        return rc;
    if (can) {
        int who = adm_who_of(word(c));
        if (who < 0)
            return wrong(c, "who");
        st->who = (enum adm_who)who;
    }
    if (base_copy_str(st->target, sizeof st->target, word(c)) || !st->target[0])
        return wrong(c, "a target");
    return tail(c, st);
}

static struct adm_scenario *add_scenario(struct adm_suite *s)
{
    struct adm_scenario *more = base_realloc(s->items, (s->n + 1) * sizeof *more);
    if (!more)
        return NULL;
    s->items = more;
    memset(&s->items[s->n], 0, sizeof *more);
    return &s->items[s->n++];
}

static int header(struct cursor *c, struct adm_suite *s)
{
    const char *end = strchr(c->p, ']');
    if (!end)
        return wrong(c, "[name of a scenario]");
    struct adm_scenario *sc = add_scenario(s);
    if (!sc || !(sc->name = take(c->p + 1, (size_t)(end - c->p - 1))) || !(sc->file = base_strdup(c->file)))
        return base_err_set(c->err, BASE_ENOMEM, "no memory");
    c->p = end + 1;
    struct base_str w = word(c);
    sc->phase = ADM_PHASE_NORMAL;
    if (base_str_eqz(w, "wide"))
        sc->phase = ADM_PHASE_WIDE;
    else if (base_str_eqz(w, "alone"))
        sc->phase = ADM_PHASE_ALONE;
    else if (w.len)
        return wrong(c, "wide, alone or nothing after the name");
    return BASE_OK;
}

static int one_line(struct cursor *c, struct adm_suite *s)
{
    blanks(c);
    if (*c->p == '\0' || *c->p == '#')
        return BASE_OK;
    if (*c->p == '[')
        return header(c, s);
    struct adm_scenario *sc = s->n ? &s->items[s->n - 1] : NULL;
    if (!sc || strcmp(sc->file, c->file) != 0)
        return wrong(c, "[name of a scenario] first");
    struct adm_stmt *more = base_realloc(sc->stmts, (sc->n_stmts + 1) * sizeof *more);
    if (!more)
        return base_err_set(c->err, BASE_ENOMEM, "no memory");
    sc->stmts = more;
    memset(&more[sc->n_stmts], 0, sizeof *more);
    return statement(c, &more[sc->n_stmts++]);
}

int adm_suite_load(struct adm_suite *s, const char *file, struct base_err *err)
{
    FILE *f = fopen(file, "re");
    if (!f)
        return base_err_set(err, BASE_EINVAL, "%s cannot be read", file);
    char line[LINE_MAX];
    struct cursor c = {.file = file, .err = err};
    int rc = BASE_OK;
    while (!rc && fgets(line, sizeof line, f)) {
        c.line++;
        c.p = line;
        size_t n = strlen(line);
        if (n == sizeof line - 1)
            rc = wrong(&c, "a shorter line");
        while (n > 0 && isspace((unsigned char)line[n - 1]))
            line[--n] = '\0';
        if (!rc)
            rc = one_line(&c, s);
    }
    fclose(f);
    return rc;
}

void adm_suite_fini(struct adm_suite *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct adm_scenario *sc = &s->items[i];
        for (size_t k = 0; k < sc->n_stmts; k++) {
            struct adm_stmt *st = &sc->stmts[k];
            for (size_t j = 0; j < st->n_changes; j++)
                base_free(st->changes[j]);
            base_free(st->changes);
            base_free(st->name);
            base_free(st->body);
            base_free(st->fragment);
        }
        base_free(sc->stmts);
        base_free(sc->name);
        base_free(sc->file);
    }
    s->items = base_free(s->items);
    s->n = 0;
}
