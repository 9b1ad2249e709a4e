/* SPDX-License-Identifier: Apache-2.0
 *
 * base/str.h - borrowed strings, bounded copies, exact number parsing.
 *
 * Pure. A `struct base_str` never owns its bytes and need not end in NUL.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct base_str {
    const char *ptr;
    size_t len;
};

#define BASE_STR(lit) ((struct base_str){(lit), sizeof(lit) - 1})

static inline struct base_str base_str_of(const char *s)
{
    return (struct base_str){s, s ? strlen(s) : 0};
}
bool base_str_eq(struct base_str a, struct base_str b);
bool base_str_eqz(struct base_str a, const char *z);
bool base_str_starts(struct base_str s, const char *prefix);

/* snprintf that never fails: returns true when everything fitted, else cuts and returns false. */
bool base_fmt(char *dst, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool base_vfmt(char *dst, size_t size, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));
/* Copies z into dst[size]. BASE_OK, or BASE_ERANGE (dst = "") when it does not fit whole: identifiers are
 * never cut. */
int base_copy(char *dst, size_t size, const char *z);
int base_copy_str(char *dst, size_t size, struct base_str s);
/* For texts that people read: as much of z (NULL = "") as fits, at a fraction of what formatting costs. */
void base_copy_cut(char *dst, size_t size, const char *z);
/* a, b and c behind each other (c may be NULL). True, or false (cut) when they do not fit whole. */
bool base_cat(char *dst, size_t size, const char *a, const char *b, const char *c);
#define BASE_U64_SIZE 21
/* Decimal, no sign, no leading zero. */
void base_u64_text(char dst[BASE_U64_SIZE], uint64_t v);

/* Decimal digits only, no sign, no spaces, no leading zero but "0". BASE_OK, BASE_EINVAL or BASE_ERANGE. */
int base_parse_u64(struct base_str s, uint64_t max, uint64_t *ret);
/* Lower-case hexadecimal of n bytes into dst[2n+1]. */
void base_hex(char *dst, const uint8_t *src, size_t n);
/* Exactly 2n hexadecimal digits. BASE_OK or BASE_EINVAL. */
int base_unhex(uint8_t *dst, size_t n, struct base_str s);

/* RFC 1123 label (no dots) or, with dots, subdomain; 1..max characters, lower case. */
bool base_is_label(struct base_str s, size_t max);
bool base_is_subdomain(struct base_str s, size_t max);

/* Compares two resourceVersions as integers of any length (KEP-5504): digits only, no leading zero.
 * Returns BASE_OK and <0, 0, >0 in *ret, or BASE_EINVAL when one is no such number. */
int base_rv_cmp(const char *a, const char *b, int *ret);

/* "ENOENT (no such file or directory)": text without locale or global state. */
const char *base_errno_name(int sys_errno);

#endif
