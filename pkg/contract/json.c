/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/json.h"

struct reader {
    struct base_arena *arena;
    const char *start, *p, *end;
    unsigned keep; /* levels that get nodes; UINT_MAX = all */
    struct base_err *err;
};

static int bad(struct reader *r, const char *what)
{
    return base_err_set(r->err, BASE_EINVAL, "JSON, byte %zu: %s", (size_t)(r->p - r->start), what);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Length of the UTF-8 sequence at p, 0 when it is invalid (overlong, surrogate, above U+10FFFF, cut). */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    unsigned lo = 0x80, hi = 0xbf;
    size_t n;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        if (p[0] == 0xe0)
            lo = 0xa0;
        if (p[0] == 0xed)
            hi = 0x9f;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        if (p[0] == 0xf0)
            lo = 0x90;
        if (p[0] == 0xf4)
            hi = 0x8f;
    } else {
        return 0;
    }
    if (left < n || p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return n;
}

static char *put_utf8(char *dst, unsigned cp)
{
    if (cp < 0x80) {
        *dst++ = (char)cp;
    } else if (cp < 0x800) {
        *dst++ = (char)(0xc0 | cp >> 6);
        *dst++ = (char)(0x80 | (cp & 0x3f));
    } else if (cp < 0x10000) {
        *dst++ = (char)(0xe0 | cp >> 12);
        *dst++ = (char)(0x80 | (cp >> 6 & 0x3f));
        *dst++ = (char)(0x80 | (cp & 0x3f));
    } else {
        *dst++ = (char)(0xf0 | cp >> 18);
        *dst++ = (char)(0x80 | (cp >> 12 & 0x3f));
        *dst++ = (char)(0x80 | (cp >> 6 & 0x3f));
        *dst++ = (char)(0x80 | (cp & 0x3f));
    }
    return dst;
}

static bool hex4(const char *p, const char *end, unsigned *ret)
{
    uint8_t b[2];

    if (end - p < 4 || base_unhex(b, 2, (struct base_str){p, 4}))
        return false;
    *ret = (unsigned)b[0] << 8 | b[1];
    return true;
}

/* Decodes the checked text between the quotes; dst has room for it (escapes only shrink). */
static size_t unescape(char *dst, const char *p, const char *end)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char *d = dst;

    while (p < end) {
        unsigned cp = 0xfffd, low;
        const char *at;

        if (*p != '\\') {
            *d++ = *p++;
            continue;
        }
        if (p[1] != 'u') {
            at = strchr(from, p[1]);
            if (at)
                *d++ = to[at - from];
            p += 2;
            continue;
        }
        (void)hex4(p + 2, end, &cp);
        p += 6;
        if (cp >= 0xd800 && cp <= 0xdbff && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
            hex4(p + 2, end, &low) && low >= 0xdc00 && low <= 0xdfff) {
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        } else if (cp >= 0xd800 && cp <= 0xdfff) {
            cp = 0xfffd;
        }
        d = put_utf8(d, cp);
    }
    return (size_t)(d - dst);
}

/* At the opening quote. `ret` NULL: only checked. */
static int read_string(struct reader *r, struct base_str *ret)
{
    const char *first = ++r->p;
    bool escapes = false;
    unsigned cp;
    char *copy;

    while (r->p < r->end && *r->p != '"') {
        if ((unsigned char)*r->p < 0x20)
            return bad(r, "control character in a string");
        if (*r->p == '\\') {
            escapes = true;
            if (r->end - r->p < 2)
                return bad(r, "string has no end");
            if (r->p[1] == 'u') {
                if (!hex4(r->p + 2, r->end, &cp))
                    return bad(r, "\\u needs four hex digits");
                r->p += 6;
            } else {
                if (!r->p[1] || !strchr("\"\\/bfnrt", r->p[1]))
                    return bad(r, "unknown escape");
                r->p += 2;
            }
        } else {
            size_t n = utf8_len((const unsigned char *)r->p, (size_t)(r->end - r->p));

            if (n == 0)
                return bad(r, "invalid UTF-8");
            r->p += n;
        }
    }
    if (r->p >= r->end)
        return bad(r, "string has no end");
    r->p++;
    if (!ret)
        return BASE_OK;
    *ret = (struct base_str){first, (size_t)(r->p - 1 - first)};
    if (!escapes)
        return BASE_OK;
    copy = base_arena_alloc(r->arena, ret->len + 1);
    if (!copy)
        return base_err_set(r->err, BASE_ENOMEM, "JSON: no memory for a string of %zu bytes", ret->len);
    ret->len = unescape(copy, ret->ptr, ret->ptr + ret->len);
    ret->ptr = copy;
    return BASE_OK;
}

static int read_number(struct reader *r)
{
    if (*r->p == '-')
        r->p++;
    if (r->p >= r->end || !is_digit(*r->p))
        return bad(r, "no digit where a number must go on");
    if (*r->p++ != '0')
        while (r->p < r->end && is_digit(*r->p))
            r->p++;
    if (r->p < r->end && *r->p == '.') {
        if (++r->p >= r->end || !is_digit(*r->p))
            return bad(r, "no digit after the decimal point");
        while (r->p < r->end && is_digit(*r->p))
            r->p++;
    }
    if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
        r->p++;
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            r->p++;
        if (r->p >= r->end || !is_digit(*r->p))
            return bad(r, "no digit in the exponent");
        while (r->p < r->end && is_digit(*r->p))
            r->p++;
    }
    return BASE_OK;
}

static bool word(struct reader *r, const char *w)
{
    size_t n = strlen(w);

    if ((size_t)(r->end - r->p) < n || memcmp(r->p, w, n) != 0)
        return false;
    r->p += n;
    return true;
}

static int read_value(struct reader *r, unsigned depth, struct contract_json *v);

static struct contract_json *node(struct reader *r, unsigned depth, struct contract_json *scratch)
{
    struct contract_json *n = scratch;

    if (depth <= r->keep)
        n = base_arena_alloc(r->arena, sizeof *n);
    if (n)
        *n = (struct contract_json){0};
    return n;
}

static bool has_key(const struct contract_json *first, struct base_str key)
{
    for (; first; first = first->next)
        if (base_str_eq(first->key, key))
            return true;
    return false;
}

/* An array or object, at its opening bracket. */
static int read_compound(struct reader *r, unsigned depth, struct contract_json *v)
{
    bool object = *r->p == '{', kept = depth + 1 <= r->keep;
    char close = object ? '}' : ']';
    struct contract_json *last = NULL;
    size_t members = 0;

    if (depth >= CONTRACT_JSON_DEPTH)
        return bad(r, "nested deeper than 64 levels");
    v->type = object ? CONTRACT_JSON_OBJECT : CONTRACT_JSON_ARRAY;
    r->p++;
    skip_space(r);
    if (r->p < r->end && *r->p == close) {
        r->p++;
        return BASE_OK;
    }
    for (;;) {
        struct contract_json scratch, *n = node(r, depth + 1, &scratch);
        struct base_str key = {0};
        int rc;

        if (!n)
            return base_err_set(r->err, BASE_ENOMEM, "JSON: the document has too many values");
        skip_space(r);
        if (object) {
            if (r->p >= r->end || *r->p != '"')
                return bad(r, "a member name in quotes is expected");
            rc = read_string(r, kept ? &key : NULL);
            if (rc)
                return rc;
            if (kept && has_key(v->child, key))
                return bad(r, "duplicate member");
            if (kept && ++members > CONTRACT_JSON_MEMBERS)
                return bad(r, "more than 1024 members in one object");
            skip_space(r);
            if (r->p >= r->end || *r->p != ':')
                return bad(r, "':' is expected after a member name");
            r->p++;
        }
        rc = read_value(r, depth + 1, n);
        if (rc)
            return rc;
        n->key = key;
        if (kept) {
            if (last)
                last->next = n;
            else
                v->child = n;
            last = n;
        }
        skip_space(r);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            continue;
        }
        if (r->p >= r->end || *r->p != close)
            return bad(r, object ? "',' or '}' is expected" : "',' or ']' is expected");
        r->p++;
        return BASE_OK;
    }
}

static int read_value(struct reader *r, unsigned depth, struct contract_json *v)
{
    const char *first;
    int rc = BASE_OK;

    skip_space(r);
    first = r->p;
    if (r->p >= r->end)
        return bad(r, "a value is expected, the text ends");
    if (*r->p == '{' || *r->p == '[') {
        rc = read_compound(r, depth, v);
    } else if (*r->p == '"') {
        v->type = CONTRACT_JSON_STRING;
        rc = read_string(r, depth <= r->keep ? &v->str : NULL);
    } else if (*r->p == '-' || is_digit(*r->p)) {
        v->type = CONTRACT_JSON_NUMBER;
        rc = read_number(r);
    } else if (word(r, "true")) {
        v->type = CONTRACT_JSON_BOOL;
        v->boolean = true;
    } else if (word(r, "false")) {
        v->type = CONTRACT_JSON_BOOL;
    } else if (word(r, "null")) {
        v->type = CONTRACT_JSON_NULL;
    } else {
        return bad(r, "a value is expected");
    }
    v->raw = (struct base_str){first, (size_t)(r->p - first)};
    return rc;
}

int contract_json_parse(const struct contract_json **ret, struct base_arena *arena, struct base_str text,
                        unsigned keep, struct base_err *err)
{
    struct reader r = {
        .arena = arena, .start = text.ptr ? text.ptr : "", .keep = keep ? keep : UINT32_MAX, .err = err};
    struct contract_json *root = base_arena_alloc(arena, sizeof *root);
    int rc;

    if (!root)
        return base_err_set(err, BASE_ENOMEM, "JSON: no memory");
    r.p = r.start;
    r.end = r.start + text.len;
    rc = read_value(&r, 0, root);
    if (rc)
        return rc;
    skip_space(&r);
    if (r.p != r.end)
        return bad(&r, "something follows the value");
    *ret = root;
    return BASE_OK;
}

const struct contract_json *contract_json_get(const struct contract_json *o, const char *name)
{
    if (!o || o->type != CONTRACT_JSON_OBJECT)
        return NULL;
    for (const struct contract_json *m = o->child; m; m = m->next)
        if (base_str_eqz(m->key, name))
            return m;
    return NULL;
}

struct base_str contract_json_str(const struct contract_json *o, const char *name)
{
    const struct contract_json *m = contract_json_get(o, name);

    return m && m->type == CONTRACT_JSON_STRING ? m->str : (struct base_str){"", 0};
}

int contract_json_int(const struct contract_json *v, int64_t *ret)
{
    struct base_str digits = v->raw;
    bool negative = digits.len && digits.ptr[0] == '-';
    uint64_t u;

    if (v->type != CONTRACT_JSON_NUMBER)
        return BASE_EINVAL;
    if (negative) {
        digits.ptr++;
        digits.len--;
    }
    if (base_parse_u64(digits, (uint64_t)INT64_MAX + (negative ? 1 : 0), &u))
        return BASE_EINVAL;
    *ret = negative ? (u > INT64_MAX ? INT64_MIN : -(int64_t)u) : (int64_t)u;
    return BASE_OK;
}

const char *contract_json_type_name(enum contract_json_type t)
{
    static const char *const names[] = {"nothing",  "null",   "a boolean", "a number",
                                        "a string", "a list", "an object"};

    return (unsigned)t < sizeof names / sizeof names[0] ? names[t] : names[0];
}

void contract_json_quote(struct base_buf *out, struct base_str s)
{
    size_t plain = 0;

    (void)base_buf_addz(out, "\"");
    for (size_t i = 0; i <= s.len; i++) {
        unsigned char c = i < s.len ? (unsigned char)s.ptr[i] : 0;

        if (i < s.len && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
            continue;
        (void)base_buf_add(out, s.ptr + plain, i - plain);
        plain = i + 1;
        if (i == s.len)
            break;
        if (c == '"' || c == '\\')
            (void)base_buf_addf(out, "\\%c", c);
        else
            (void)base_buf_addf(out, "\\u%04x", c);
    }
    (void)base_buf_addz(out, "\"");
}
