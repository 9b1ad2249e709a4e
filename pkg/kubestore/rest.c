/* SPDX-License-Identifier: Apache-2.0 */
#include "kubestore/kubestore_int.h"

bool kubestore_escape(char *dst, size_t size, struct base_str s)
{
    size_t n = strlen(dst);

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);

        if (n + 4 > size)
            return false;
        if (plain && c)
            dst[n++] = (char)c;
        else {
            (void)base_fmt(dst + n, 4, "%%%02X", c);
            n += 3;
        }
        dst[n] = '\0';
    }
    return true;
}

bool kubestore_path(char *dst, size_t size, const char *ns, enum contract_kind kind, const char *name,
                    bool status)
{
    size_t n;

    if (!base_fmt(dst, size, "/apis/%s/%s/namespaces/", contract_kind_group(kind), CONTRACT_VERSION) ||
        !kubestore_escape(dst, size, base_str_of(ns)))
        return false;
    n = strlen(dst);
    if (!base_fmt(dst + n, size - n, "/%s%s", contract_kind_plural(kind), name ? "/" : ""))
        return false;
    if (name && !kubestore_escape(dst, size, base_str_of(name)))
        return false;
    n = strlen(dst);
    return !status || base_fmt(dst + n, size - n, "/status");
}

/* An HTTP status that is not 2xx. */
static int code_of(int http, const char *reason, bool write)
{
    switch (http) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
        return BASE_EINVAL;
    case 401:
    case 403:
        return BASE_EDENIED;
    case 404:
        return BASE_ENOTFOUND;
    case 409:
        return strcmp(reason, "AlreadyExists") == 0 ? BASE_EEXIST : BASE_ECONFLICT;
    case 410:
        return BASE_EGONE;
    case 429:
        return BASE_EAGAIN;
    case 504:
        return write ? BASE_EUNKNOWN : BASE_ETIMEDOUT;
    default:
        return write ? BASE_EUNKNOWN : BASE_EIO;
    }
}

void kubestore_classify(struct store_resp *ret, bool write, const struct kube_resp *resp)
{
    bool answered = resp->code == BASE_OK && resp->http_status > 0;

    ret->http_status = resp->http_status;
    ret->sent = resp->sent_at;
    ret->err = resp->err;
    (void)base_copy(ret->reason, sizeof ret->reason, resp->reason);
    if (answered && resp->http_status >= 200 && resp->http_status <= 299)
        ret->code = BASE_OK;
    else if (answered)
        ret->code = code_of(resp->http_status, resp->reason, write);
    else if (write)
        ret->code = resp->sent ? BASE_EUNKNOWN : BASE_EAGAIN;
    else
        ret->code = resp->code == BASE_ETIMEDOUT ? BASE_ETIMEDOUT : BASE_EIO;
    if (ret->code != BASE_OK && !ret->err.msg[0])
        (void)base_err_set(&ret->err, ret->code, "HTTP %d %s", resp->http_status, resp->reason);
    ret->err.code = ret->code;
    ret->err.http_status = resp->http_status;
}
