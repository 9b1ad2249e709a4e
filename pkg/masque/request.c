/* SPDX-License-Identifier: Apache-2.0 */
#include "masque/request.h"

#include "base/mutant.h"
#include "masque/bearer.h"

enum { FIELD_OVERHEAD = 32 };

void masque_headers_init(struct masque_headers *h, uint32_t max_bytes)
{
    memset(h, 0, sizeof *h);
    h->max = max_bytes;
}

void masque_headers_fini(struct masque_headers *h)
{
    h->token = base_secret_free(h->token);
}

static void take_authorization(struct masque_headers *h, struct base_str v)
{
    struct base_str token;
    h->authorization_twice = h->has_authorization;
    h->has_authorization = true;
    if (h->authorization_twice || !masque_bearer_parse(&token, v))
        return;
    h->token = base_secret_new(token);
    h->no_memory = h->token == NULL;
}

static void keep_printable(char *dst, size_t size, struct base_str v)
{
    size_t n = v.len < size - 1 ? v.len : size - 1;
    for (size_t i = 0; i < n; i++)
        dst[i] = v.ptr[i] >= 0x20 && v.ptr[i] < 0x7f && v.ptr[i] != '"' ? v.ptr[i] : '?';
    dst[n] = 0;
}

static void take_path(struct masque_headers *h, struct base_str v)
{
    h->has_path = true;
    h->path_cut = v.len > sizeof h->path;
    h->n_path = (uint16_t)(h->path_cut ? sizeof h->path : v.len);
    memcpy(h->path, v.ptr, h->n_path);
}

static void take_pseudo(struct masque_headers *h, struct base_str name, struct base_str v)
{
    if (base_str_eqz(name, ":method")) {
        h->has_method = true;
        h->is_connect = base_str_eqz(v, "CONNECT");
    } else if (base_str_eqz(name, ":protocol")) {
        h->has_protocol = true;
        h->is_connect_ip = base_str_eqz(v, "connect-ip");
        h->is_cf_protocol = base_str_eqz(v, "cf-connect-ip");
        keep_printable(h->protocol, sizeof h->protocol, v);
    } else if (base_str_eqz(name, ":scheme")) {
        h->has_scheme = true;
        h->is_https = base_str_eqz(v, "https");
    } else if (base_str_eqz(name, ":authority")) {
        h->has_authority = v.len > 0;
    } else if (base_str_eqz(name, ":path")) {
        take_path(h, v);
    }
}

int masque_headers_add(struct masque_headers *h, struct base_str name, struct base_str value)
{
    uint64_t bytes = (uint64_t)h->bytes + name.len + value.len + FIELD_OVERHEAD;
    if (bytes > h->max) {
        h->bytes = UINT32_MAX;
        return BASE_EFULL;
    }
    h->bytes = (uint32_t)bytes;
    static const char *const forbidden[] = {"content-length", "content-type", "transfer-encoding"};
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (base_str_eqz(name, forbidden[i]))
            h->forbidden = forbidden[i];
    if (masque_names_tenant(name))
        h->has_tenant = true;
    if (h->bearer && base_str_eqz(name, "authorization")) {
        take_authorization(h, value);
    } else if (base_str_eqz(name, "cf-connect-proto")) {
        h->is_cf_header = base_str_eqz(value, "cf-connect-ip");
    } else if (base_str_eqz(name, "traceparent")) {
        h->traceparent_twice = h->has_traceparent;
        h->has_traceparent = true;
        if (base_copy_str(h->traceparent, sizeof h->traceparent, value) != BASE_OK)
            h->traceparent[0] = 0;
    } else if (name.len > 0 && name.ptr[0] == ':') {
        take_pseudo(h, name, value);
    }
    return BASE_OK;
}

static int refuse(struct base_err *err, int status, const char *text)
{
    int rv = base_err_set(err, BASE_EINVAL, "%s", text);
    if (err)
        err->http_status = status;
    return rv;
}

bool masque_headers_bare(const struct masque_headers *h)
{
    return h->cloudflare && h->plain && !h->has_protocol && h->is_cf_header;
}

static bool cloudflare(const struct masque_headers *h)
{
    return (h->cloudflare && h->is_cf_protocol) || masque_headers_bare(h);
}

static int check_method(const struct masque_headers *h, struct base_err *err)
{
    const char *served = h->no_rfc ? "cf-connect-ip" : "connect-ip";
    int rv;
    if (!h->has_method || !h->is_connect) {
        rv = base_err_set(err, BASE_EINVAL, "method: only CONNECT with :protocol %s is served here", served);
        if (err)
            err->http_status = 405;
        return rv;
    }
    if (cloudflare(h) || (h->has_protocol && h->is_connect_ip && !h->no_rfc))
        return BASE_OK;
    rv = h->has_protocol
             ? base_err_set(err, BASE_EINVAL, "protocol \"%s\": only %s is served here", h->protocol, served)
             : base_err_set(err, BASE_EINVAL, "protocol: missing; only %s is served here", served);
    if (err)
        err->http_status = 501;
    return rv;
}

static int check_address(const struct masque_headers *h, struct base_err *err)
{
    bool bare = masque_headers_bare(h);
    if (!bare && (!h->has_scheme || !h->is_https))
        return refuse(err, 400, "scheme: must be https");
    if (!h->has_authority)
        return refuse(err, 400, "authority: missing");
    if (!bare && !h->has_path)
        return refuse(err, 400, "path: missing");
    return BASE_OK;
}

static int take_target(const struct masque_headers *h, struct masque_path *ret, struct base_err *err)
{
    if (cloudflare(h)) {
        *ret = (struct masque_path){.target = MASQUE_TARGET_ANY, .ipproto = -1};
        return BASE_OK;
    }
    if (h->path_cut)
        return refuse(err, 400, "path: longer than 256 bytes");
    int rv = masque_path_parse(ret, (struct base_str){h->path, h->n_path}, err);
    if (rv != BASE_OK && err)
        err->http_status = 400;
    return rv;
}

int masque_headers_check(const struct masque_headers *h, bool fin, struct masque_path *ret_path,
                         struct base_correlation *ret_correlation, struct base_err *err)
{
    if (h->bytes > h->max) {
        int rv = base_err_set(err, BASE_EINVAL, "headers: more than %u bytes", h->max);
        if (err)
            err->http_status = 431;
        return rv;
    }
    int rv = check_method(h, err);
    if (rv != BASE_OK)
        return rv;
    rv = check_address(h, err);
    if (rv != BASE_OK)
        return rv;
    if (h->forbidden) {
        rv = base_err_set(err, BASE_EINVAL, "header %s: not allowed in a request that carries capsules",
                          h->forbidden);
        if (err)
            err->http_status = 400;
        return rv;
    }
    if (h->has_tenant && !base_mutant("request.tenant"))
        return refuse(
            err, 400,
            "header: names a tenant; the tenant comes from the client's credential alone, leave it out");
    if (h->authorization_twice)
        return refuse(err, 400, "header authorization: given twice; send one");
    if (h->no_memory)
        return refuse(err, 503, "no memory for the request");
    if (fin)
        return refuse(err, 400, "request stream: ended with the headers; a tunnel needs it open");
    rv = take_target(h, ret_path, err);
    if (rv != BASE_OK)
        return rv;
    memset(ret_correlation, 0, sizeof *ret_correlation);
    if (h->has_traceparent && !h->traceparent_twice) {
        struct base_correlation c;
        if (base_traceparent_parse(&c, base_str_of(h->traceparent)) == BASE_OK)
            *ret_correlation = c;
    }
    return BASE_OK;
}
