/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c - what an answer that is no object says. The body may be a Status, plain text (429 by priority and
 * fairness), HTML of a proxy, or nothing.
 */
#include <cjson/cJSON.h>
#include <string.h>

#include "kube_int.h"

#define PARSE_MAX ((size_t)1 << 20)

/* One line, no control characters, cut at the size. */
static void one_line(char *dst, size_t size, struct base_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len && n + 1 < size; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c == 0x7f)
            c = ' ';
        if (c == ' ' && (n == 0 || dst[n - 1] == ' '))
            continue;
        dst[n++] = (char)c;
    }
    while (n && dst[n - 1] == ' ')
        n--;
    dst[n] = '\0';
}

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    return cJSON_IsString(v) && v->valuestring ? v->valuestring : "";
}

void kube_status_parse(struct kube_status *ret, struct base_str body)
{
    cJSON *j = NULL;

    memset(ret, 0, sizeof *ret);
    if (body.len && body.len <= PARSE_MAX)
        j = cJSON_ParseWithLengthOpts(body.ptr, body.len, NULL, 0);
    if (cJSON_IsObject(j) && strcmp(text_of(j, "kind"), "Status") == 0) {
        const cJSON *wait = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(j, "details"),
                                                             "retryAfterSeconds");

        (void)base_copy(ret->reason, sizeof ret->reason, text_of(j, "reason"));
        one_line(ret->message, sizeof ret->message, base_str_of(text_of(j, "message")));
        if (cJSON_IsNumber(wait) && wait->valuedouble > 0)
            ret->retry_after = wait->valuedouble > 3600 ? 3600 * BASE_SEC
                                                        : (base_time)(wait->valuedouble * (double)BASE_SEC);
    } else {
        one_line(ret->message, sizeof ret->message, body);
    }
    cJSON_Delete(j);
}

int kube_status_code(int http_status)
{
    switch (http_status) {
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
    case 412:
        return BASE_ECONFLICT;
    case 410:
        return BASE_EGONE;
    case 429:
        return BASE_EAGAIN;
    default:
        break;
    }
    if (http_status >= 500)
        return BASE_EUNKNOWN; /* whatever it says, a write may have landed */
    return http_status >= 300 ? BASE_EPROTO : BASE_OK;
}
