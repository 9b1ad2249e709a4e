/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "exact.h"

typedef __int128 wide;

static const base_time edges[] = {INT64_MIN,
                                  INT64_MIN + 1,
                                  -300 * BASE_SEC,
                                  -1,
                                  0,
                                  1,
                                  2,
                                  BASE_MS,
                                  BASE_SEC - 1,
                                  BASE_SEC,
                                  2 * BASE_SEC,
                                  30 * BASE_SEC,
                                  300 * BASE_SEC,
                                  (base_time)1 << 53,
                                  INT64_MAX / 2,
                                  INT64_MAX - 300 * BASE_SEC - 1,
                                  INT64_MAX - 300 * BASE_SEC,
                                  INT64_MAX - 1,
                                  INT64_MAX};
static const int32_t leases[] = {INT32_MIN, -1, 0, 1, 10, 11, 30, 299, 300, 301, INT32_MAX};
#define N(a) (sizeof(a) / sizeof(a)[0])

static base_time clamp(wide v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (base_time)v;
}

const char *exact_add(const struct exact_fns *f, uint64_t *n)
{
    static char text[160];

    for (size_t i = 0; i < N(edges); i++)
        for (size_t k = 0; k < N(edges); k++, ++*n) {
            base_time got = f->add(edges[i], edges[k]), want = clamp((wide)edges[i] + edges[k]);

            if (got != want) {
                snprintf(text, sizeof text, "%lld + %lld = %lld, not %lld", (long long)edges[i],
                         (long long)edges[k], (long long)got, (long long)want);
                return text;
            }
        }
    return NULL;
}

/* Never later than the exact value; exactly that wherever nothing sticks; 0 for what was never proved. */
static const char *until_one(const struct exact_fns *f, base_time t0, int32_t lease_s, base_time guard)
{
    static char text[200];
    base_time got = f->until(t0, lease_s, guard);
    int32_t capped = lease_s > LEASE_SECONDS_MAX ? LEASE_SECONDS_MAX : lease_s;
    wide exact = (wide)t0 + (wide)capped * BASE_SEC - guard;
    bool sticks = (wide)t0 + (wide)capped * BASE_SEC > INT64_MAX;
    bool ok = t0 <= 0 || lease_s <= 0 ? got == 0
              : sticks                ? (wide)got <= exact && got >= INT64_MAX - guard
                                      : got == clamp(exact);

    if (ok)
        return NULL;
    snprintf(text, sizeof text, "until(t0 %lld, lease %d, guard %lld) = %lld", (long long)t0, lease_s,
             (long long)guard, (long long)got);
    return text;
}

const char *exact_until(const struct exact_fns *f, uint64_t *n)
{
    const char *bad = NULL;

    for (size_t i = 0; i < N(edges) && !bad; i++)
        for (size_t k = 0; k < N(leases) && !bad; k++)
            for (base_time g = 0; g <= 60 * BASE_SEC && !bad; g += 500 * BASE_MS, ++*n)
                bad = until_one(f, edges[i], leases[k], g);
    for (base_time t0 = 0; t0 < 40 && !bad; t0++)
        for (int32_t l = 0; l <= 300 && !bad; l++)
            for (base_time g = 0; g < 4 && !bad; g++, ++*n)
                bad = until_one(f, t0 * BASE_SEC, l, g * BASE_SEC);
    return bad;
}

/* The plainest possible reading of contract section 6. */
static wide plain_deadline(const struct lease_facts *f)
{
    wide lease =
        (wide)(f->instance_lease_s < f->row_lease_s ? f->instance_lease_s : f->row_lease_s) * BASE_SEC;
    wide all[4], least;

    lease = lease > 300 * (wide)BASE_SEC ? 300 * (wide)BASE_SEC : lease;

    if (f->authority_t0 <= 0 || f->renewed <= 0 || f->claim_t0 <= 0 || f->service_until <= 0 || lease <= 0)
        return 0;
    all[0] = (wide)f->authority_t0 + f->grant;
    all[1] = (wide)f->renewed + lease - f->guard;
    all[2] = (wide)f->claim_t0 + lease - f->guard;
    all[3] = f->service_until;
    least = all[0];
    for (int i = 1; i < 4; i++)
        least = all[i] < least ? all[i] : least;
    return least > 0 ? least : 0;
}

/* Every combination of small values: any two arguments that are taken for each other differ somewhere. */
const char *exact_session_deadline(const struct exact_fns *f, uint64_t *n)
{
    static char text[240];
    static const int32_t small_lease[] = {0, 10, 30, 400};
    static const base_time t[] = {0, 1, 7 * BASE_SEC, 40 * BASE_SEC, 100 * BASE_SEC};

    for (uint32_t code = 0; code < 5 * 5 * 5 * 5 * 4 * 4 * 3 * 3; code++, ++*n) {
        uint32_t c = code;
        struct lease_facts x = {0};
        enum lease_part part = LEASE_PART_N;
        base_time got;

        x.authority_t0 = t[c % 5], c /= 5;
        x.renewed = t[c % 5], c /= 5;
        x.claim_t0 = t[c % 5], c /= 5;
        x.service_until = t[c % 5], c /= 5;
        x.instance_lease_s = small_lease[c % 4], c /= 4;
        x.row_lease_s = small_lease[c % 4], c /= 4;
        x.guard = (base_time)(c % 3) * 2 * BASE_SEC, c /= 3;
        x.grant = (base_time[]){6 * BASE_SEC, 29 * BASE_SEC, 30 * BASE_SEC}[c];
        got = f->session_deadline(&x, &part);
        if (got != plain_deadline(&x) || part >= LEASE_PART_N) {
            snprintf(text, sizeof text,
                     "deadline(authority %lld, grant %lld, renewed %lld, claim %lld, service %lld, leases %d "
                     "%d, guard %lld) = "
                     "%lld",
                     (long long)x.authority_t0, (long long)x.grant, (long long)x.renewed,
                     (long long)x.claim_t0, (long long)x.service_until, x.instance_lease_s, x.row_lease_s,
                     (long long)x.guard, (long long)got);
            return text;
        }
    }
    return NULL;
}

/* (1+r)(L/(1-r)+G)+2 s in exact fractions, rounded up. */
static base_time plain_wait(int64_t r, base_time lag, int32_t lease_s)
{
    wide m = 1000000, num = (m + r) * ((wide)lease_s * BASE_SEC * m + (wide)lag * (m - r)), den = m * (m - r);

    return (base_time)((num + den - 1) / den) + 2 * BASE_SEC;
}

static const char *wait_one(const struct exact_fns *f, int64_t r, base_time lag, int32_t lease_s)
{
    static char text[160];
    struct contract_timing t = contract_timing_default();
    bool allowed =
        r >= 0 && r <= 100000 && lag >= 0 && lag <= 10 * BASE_SEC && lease_s >= 0 && lease_s <= 300;
    base_time got, want = allowed ? plain_wait(r, lag, lease_s) : BASE_TIME_NEVER;

    t.rate_ppm = r;
    t.gate_lag = lag;
    got = f->wait(&t, lease_s);
    if (got == want)
        return NULL;
    snprintf(text, sizeof text, "wait(rate %lld ppm, lag %lld, lease %d) = %lld, not %lld", (long long)r,
             (long long)lag, lease_s, (long long)got, (long long)want);
    return text;
}

const char *exact_wait(const struct exact_fns *f, uint64_t *n)
{
    static const base_time lags[] = {
        INT64_MIN, -1, 0, 1, 500 * BASE_MS, 10 * BASE_SEC - 1, 10 * BASE_SEC, 10 * BASE_SEC + 1, INT64_MAX};
    static const int64_t rates[] = {INT64_MIN, -1,    0,     1,      999,    1000,
                                    1001,      33333, 99999, 100000, 100001, INT64_MAX};
    const char *bad = NULL;

    for (size_t i = 0; i < N(rates) && !bad; i++)
        for (size_t k = 0; k < N(lags) && !bad; k++)
            for (size_t l = 0; l < N(leases) && !bad; l++, ++*n)
                bad = wait_one(f, rates[i], lags[k], leases[l]);
    /* each lease with each rate, whole */
    for (int64_t r = 0; r <= 100000 && !bad; r++)
        for (int32_t l = 0; l <= 300 && !bad; l += r % 100 == 0 ? 1 : 37, ++*n)
            bad = wait_one(f, r, 500 * BASE_MS, l);
    return bad;
}

const char *exact_wait_end(const struct exact_fns *f, uint64_t *n)
{
    static char text[120];
    struct contract_timing t = contract_timing_default();

    for (size_t i = 0; i < N(edges); i++)
        for (int32_t l = 0; l <= 300; l++, ++*n) {
            base_time want = edges[i] <= 0 ? BASE_TIME_NEVER : clamp((wide)edges[i] + contract_wait(&t, l));
            base_time got = f->wait_end(l, edges[i], &t);

            if (got != want) {
                snprintf(text, sizeof text, "wait_end(lease %d, seen %lld) = %lld", l, (long long)edges[i],
                         (long long)got);
                return text;
            }
        }
    return NULL;
}

const char *exact_earlier_over(const struct exact_fns *f, uint64_t *n)
{
    static char text[160];
    static const int64_t epochs[] = {
        1, 2, 3, 4, 5, ((int64_t)1 << 32) + 6, LEASE_EPOCH_MAX - 1, LEASE_EPOCH_MAX};
    static const base_time seen[] = {0, 1, 5 * BASE_SEC, 100 * BASE_SEC, INT64_MAX - BASE_SEC};
    static const int32_t l[] = {10, 30, 300};
    struct contract_timing t = contract_timing_default();

    for (size_t e = 0; e < N(epochs); e++)
        for (int64_t back = -1; back <= 6; back++) {
            /* the last round: far behind, and ahead in the low 32 bits */
            int64_t closed = back == 6 ? 7 : epochs[e] - back < 0 ? 0 : epochs[e] - back;

            for (size_t s = 0; s < N(seen); s++)
                for (size_t k = 0; k < N(l); k++)
                    for (base_time off = -1; off <= 1; off++, ++*n) {
                        wide end = (wide)seen[s] + contract_wait(&t, l[k]);
                        base_time now = clamp(end + off);
                        bool waited = seen[s] > 0 && (wide)now >= (end > INT64_MAX ? INT64_MAX : end);
                        bool want = closed + 1 >= epochs[e] || waited;

                        if (f->earlier_over(epochs[e], closed, l[k], seen[s], now, &t) != want) {
                            snprintf(text, sizeof text,
                                     "over(epoch %lld, closed %lld, seen %lld, now %lld) != %d",
                                     (long long)epochs[e], (long long)closed, (long long)seen[s],
                                     (long long)now, want);
                            return text;
                        }
                    }
        }
    return NULL;
}

const char *exact_generation(const struct exact_fns *f, uint64_t *n)
{
    static char text[80];
    static const int64_t v[] = {0, 1, INT64_MAX};
    static const uint8_t u[] = {0, 1, 255};

    for (uint32_t code = 0; code < 81 * 81; code++, ++*n) {
        struct lease_generation g[2];
        int64_t key[2][4];
        uint32_t c = code;
        int want = 0, got;

        memset(g, 0, sizeof g);
        for (int i = 0; i < 2; i++) {
            g[i].created = v[c % 3], key[i][0] = v[c % 3], c /= 3;
            g[i].uid.b[15] = u[c % 3], key[i][1] = u[c % 3], c /= 3;
            g[i].epoch = v[c % 3], key[i][2] = v[c % 3], c /= 3;
            g[i].counter = c % 3 == 2 ? UINT64_MAX : c % 3, key[i][3] = (int64_t)(c % 3), c /= 3;
        }
        for (int k = 0; k < 4 && want == 0; k++)
            want = (key[0][k] > key[1][k]) - (key[0][k] < key[1][k]);
        got = f->generation_cmp(&g[0], &g[1]);
        if (((got > 0) - (got < 0)) != want) {
            snprintf(text, sizeof text, "generation case %u: %d, not %d", code, got, want);
            return text;
        }
    }
    return NULL;
}

/* Strings of up to 3 characters out of "0 1 9 a", and long numbers around powers of ten and of two. */
static unsigned make_strings(char (*s)[48], unsigned max)
{
    static const char *const extra[] = {"9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "99999999999999999999",
                                        "100000000000000000000",
                                        "1000000000000000000000000000000000000000000",
                                        "2",
                                        "10 ",
                                        "+1",
                                        "-1"};
    unsigned n = 0;

    for (int len = 0; len <= 3; len++)
        for (int c = 0; c < 1 << (2 * len); c++, n++) {
            for (int i = 0; i < len; i++)
                s[n][i] = "019a"[c >> (2 * i) & 3];
            s[n][len] = '\0';
        }
    for (size_t i = 0; i < N(extra) && n < max; i++) {
        (void)base_copy(s[n], sizeof s[n], extra[i]);
        n++;
    }
    return n;
}

static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");

    return n > 0 && s[n] == '\0' && s[0] != '0';
}

const char *exact_rv(const struct exact_fns *f, uint64_t *n)
{
    static char text[120], s[128][48];
    unsigned k = make_strings(s, 128);

    for (unsigned i = 0; i < k; i++)
        for (unsigned j = 0; j < k; j++, ++*n) {
            int got = 77, code = f->rv_cmp(s[i], s[j], &got), want = 0;
            bool ok = is_number(s[i]) && is_number(s[j]);
            char a[49], b[49];

            memset(a, '0', 48), memset(b, '0', 48), a[48] = b[48] = '\0';
            memcpy(a + 48 - strlen(s[i]), s[i], strlen(s[i]));
            memcpy(b + 48 - strlen(s[j]), s[j], strlen(s[j]));
            want = strcmp(a, b);
            if (ok ? code != BASE_OK || (got > 0) - (got < 0) != (want > 0) - (want < 0)
                   : code != BASE_EINVAL) {
                snprintf(text, sizeof text, "rv_cmp(\"%s\", \"%s\"): code %d, %d", s[i], s[j], code, got);
                return text;
            }
        }
    return NULL;
}
