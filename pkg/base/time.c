/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"

#include "base/err.h"

base_time base_time_add(base_time a, base_time b)
{
    base_time r;

    if (__builtin_add_overflow(a, b, &r))
        return b > 0 ? BASE_TIME_NEVER : INT64_MIN;
    return r;
}

/* Days since 1970-01-01 of a proleptic Gregorian date, and back (the usual 400-year-era arithmetic). */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    int64_t era, yoe, doy, doe;

    y -= m <= 2;
    era = (y >= 0 ? y : y - 399) / 400;
    yoe = y - era * 400;
    doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

void base_rfc3339(char *dst, base_wall t)
{
    int64_t sec = t / 1000000, us = t % 1000000, days, rem, era, doe, yoe, y, doy, mp;
    int d, m;

    if (us < 0) {
        us += 1000000;
        sec--;
    }
    days = sec / 86400;
    rem = sec % 86400;
    if (rem < 0) {
        rem += 86400;
        days--;
    }
    days += 719468;
    era = (days >= 0 ? days : days - 146096) / 146097;
    doe = days - era * 146097;
    yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    y = yoe + era * 400;
    doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    mp = (5 * doy + 2) / 153;
    d = (int)(doy - (153 * mp + 2) / 5 + 1);
    m = (int)(mp < 10 ? mp + 3 : mp - 9);
    (void)base_fmt(dst, BASE_RFC3339_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (int)(y + (m <= 2)), m, d,
                   (int)(rem / 3600), (int)(rem / 60 % 60), (int)(rem % 60), (int)us);
}

static int number(struct base_str s, size_t at, size_t n, int lo, int hi, int *ret)
{
    int v = 0;

    if (at + n > s.len)
        return BASE_EINVAL;
    for (size_t i = at; i < at + n; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return BASE_EINVAL;
        v = v * 10 + (s.ptr[i] - '0');
    }
    if (v < lo || v > hi)
        return BASE_EINVAL;
    *ret = v;
    return BASE_OK;
}

static bool is_char(struct base_str s, size_t at, const char *set)
{
    return at < s.len && s.ptr[at] && strchr(set, s.ptr[at]) != NULL;
}

#define LAST_US INT64_C(253402300799999999) /* the end of the year 9999 */

int base_rfc3339_parse(struct base_str s, base_wall *ret)
{
    static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y, mo, d, h, mi, se, oh = 0, om = 0, last, sign = 1;
    int64_t us = 0, scale = 100000;
    size_t i = 19;

    if (number(s, 0, 4, 1970, 9999, &y) || !is_char(s, 4, "-") || number(s, 5, 2, 1, 12, &mo) ||
        !is_char(s, 7, "-") || number(s, 8, 2, 1, 31, &d) || !is_char(s, 10, "Tt") ||
        number(s, 11, 2, 0, 23, &h) || !is_char(s, 13, ":") || number(s, 14, 2, 0, 59, &mi) ||
        !is_char(s, 16, ":") || number(s, 17, 2, 0, 59, &se))
        return BASE_EINVAL;
    last = month_days[mo - 1] + (mo == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
    if (d > last)
        return BASE_EINVAL;
    if (is_char(s, i, ".")) {
        size_t first = ++i;

        for (; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++) {
            us += (s.ptr[i] - '0') * scale;
            scale /= 10;
        }
        if (i == first)
            return BASE_EINVAL;
    }
    if (is_char(s, i, "Zz")) {
        i++;
    } else {
        if (!is_char(s, i, "+-"))
            return BASE_EINVAL;
        sign = s.ptr[i] == '-' ? -1 : 1;
        if (number(s, i + 1, 2, 0, 23, &oh) || !is_char(s, i + 3, ":") || number(s, i + 4, 2, 0, 59, &om))
            return BASE_EINVAL;
        i += 6;
    }
    if (i != s.len)
        return BASE_EINVAL;
    us += (days_from_civil(y, mo, d) * 86400 + h * 3600 + mi * 60 + se - sign * (oh * 3600 + om * 60)) *
          1000000;
    if (us < 0 || us > LAST_US) /* the offset leads out of these years */
        return BASE_EINVAL;
    *ret = us;
    return BASE_OK;
}
