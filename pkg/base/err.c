/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* A text holds what somebody sent: one line stays one line wherever it is shown. */
static void plain(struct base_err *err)
{
    for (char *p = err->msg; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
}

int base_err_set(struct base_err *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    err->code = code;
    err->sys_errno = 0;
    err->http_status = 0;
    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    plain(err);
    return code;
}

int base_err_sys(struct base_err *err, int code, int sys_errno, const char *fmt, ...)
{
    va_list ap;
    size_t n;

    if (!err)
        return code;
    err->code = code;
    err->sys_errno = sys_errno;
    err->http_status = 0;
    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    n = strlen(err->msg);
    (void)snprintf(err->msg + n, sizeof err->msg - n, ": %s", base_errno_name(sys_errno));
    plain(err);
    return code;
}

int base_err_wrap(struct base_err *err, const char *fmt, ...)
{
    char prefix[BASE_ERR_MSG_MAX];
    char old[BASE_ERR_MSG_MAX];
    va_list ap;

    if (!err)
        return BASE_EINVAL;
    va_start(ap, fmt);
    (void)vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    memcpy(old, err->msg, sizeof old);
    old[sizeof old - 1] = '\0';
    base_fmt(err->msg, sizeof err->msg, "%s: %s", prefix, old);
    plain(err);
    return err->code;
}

void base_err_clear(struct base_err *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

const char *base_code_name(int code)
{
    static const char *const names[] = {"OK",        "ENOMEM", "EINVAL",   "EAGAIN",    "ENOTFOUND", "EEXIST",
                                        "ECONFLICT", "EGONE",  "EDENIED",  "ETIMEDOUT", "EPROTO",    "EIO",
                                        "ECLOSED",   "EFULL",  "EUNKNOWN", "ERANGE"};
    int i = -code;

    return i >= 0 && i < (int)(sizeof names / sizeof names[0]) ? names[i] : "E?";
}
