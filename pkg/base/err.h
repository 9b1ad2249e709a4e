/* SPDX-License-Identifier: Apache-2.0
 *
 * base/err.h - one error: a code for callers, a text for people.
 *
 * Pure. `struct base_err` lives on the caller's stack, owns nothing and may be NULL wherever it is passed.
 * Functions return a `enum base_code` (0 or negative); callers act on the code and never compare texts.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum base_code {
    BASE_OK = 0,
    BASE_ENOMEM = -1,    /* no memory; nothing was changed */
    BASE_EINVAL = -2,    /* an argument or an input is wrong; the text names field, value and remedy */
    BASE_EAGAIN = -3,    /* not now; try again when something has changed */
    BASE_ENOTFOUND = -4, /* no such object */
    BASE_EEXIST = -5,    /* the object is there already */
    BASE_ECONFLICT = -6, /* a precondition (UID, resourceVersion, epoch) did not hold */
    BASE_EGONE = -7,     /* the resourceVersion asked for is too old (HTTP 410) */
    BASE_EDENIED = -8,   /* not allowed: 401, 403, EPERM */
    BASE_ETIMEDOUT = -9, /* no answer in time; a write may have landed */
    BASE_EPROTO = -10,   /* the peer broke the protocol, or answered nonsense */
    BASE_EIO = -11,      /* I/O failed; see sys_errno */
    BASE_ECLOSED = -12,  /* the object, connection or thread has ended */
    BASE_EFULL = -13,    /* a bound is reached: buffer, queue, table, pool */
    BASE_EUNKNOWN = -14, /* a write whose outcome is unknown (contract section 4) */
    BASE_ERANGE = -15,   /* a number is outside its range */
};

#define BASE_ERR_MSG_MAX 512

struct base_err {
    int code;        /* enum base_code */
    int sys_errno;   /* errno when the cause is a system call, else 0 */
    int http_status; /* HTTP status when the cause is an answer, else 0 */
    char msg[BASE_ERR_MSG_MAX];
};

/* Fills *err (when not NULL) and returns `code`. The text is cut at the size of msg; control characters in it
 * become '?'. */
int base_err_set(struct base_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same with the errno of a failed system call; its text is appended. */
int base_err_sys(struct base_err *err, int code, int sys_errno, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "prefix: " before the text and returns the code that *err holds (BASE_EINVAL when err is NULL). */
int base_err_wrap(struct base_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void base_err_clear(struct base_err *err);
/* "ECONFLICT" and so on; never NULL. */
const char *base_code_name(int code);

#endif
