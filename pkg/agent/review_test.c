/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/review.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/parse.h"
#include "base/mem.h"

#define OURS "\"audiences\":[\"" AUDIT_PAGE_AUDIENCE "\"]"
#define USER                                                                                                 \
    "\"user\":{\"username\":\"system:serviceaccount:ns:auditor\",\"groups\":[\"g\"],\"extra\":{\"k\":["      \
    "\"v\"]}}"

Test(agent_review, who_is_let_in_by_a_token_review)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {
        {"{\"status\":{\"authenticated\":true," USER "," OURS "}}", BASE_OK},
        {"{\"status\":{\"authenticated\":false," USER "," OURS "}}", BASE_EDENIED},
        {"{\"status\":{" USER "," OURS "}}", BASE_EDENIED},                            /* absent */
        {"{\"status\":{\"authenticated\":\"true\"," USER "," OURS "}}", BASE_EDENIED}, /* of another type */
        {"{\"status\":{\"Authenticated\":true," USER "," OURS "}}", BASE_EDENIED},     /* in another case */
        {"{\"status\":{\"authenticated\":true," USER "}}", BASE_EDENIED}, /* for nobody in particular */
        {"{\"status\":{\"authenticated\":true," USER ",\"audiences\":[]}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true," USER ",\"audiences\":[\"https://kubernetes.default.svc\"]}}",
         BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true," USER ",\"audiences\":[7]}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true,\"user\":{}," OURS "}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}," OURS "}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true,\"user\":{\"username\":9}," OURS "}}", BASE_EDENIED},
        {"{\"status\":{\"authenticated\":true," OURS "}}", BASE_EDENIED},
        {"{}", BASE_EPROTO},
        {"nonsense", BASE_EPROTO},
        {"", BASE_EPROTO},
    };

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_err err = {0};
        struct base_buf out;
        char user[64] = "";

        base_buf_init(&out, 65536);
        cr_assert_eq(agent_review_access(&out, base_str_of(rows[i].answer), AUDIT_PAGE_AUDIENCE, "/audit",
                                         user, sizeof user, &err),
                     rows[i].code, "row %zu: %s", i, err.msg);
        if (rows[i].code == BASE_OK)
            cr_assert_str_eq(
                out.data, "{\"apiVersion\":\"authorization.k8s.io/"
                          "v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{\"user\":"
                          "\"system:serviceaccount:ns:auditor\",\"groups\":[\"g\"],\"extra\":{\"k\":[\"v\"]},"
                          "\"nonResourceAttributes\":{\"path\":\"/audit\",\"verb\":\"get\"}}}");
        else
            cr_assert_eq(out.len, 0, "row %zu", i);
        base_buf_fini(&out);
    }
}

Test(agent_review, what_a_subject_access_review_allows)
{
    static const struct {
        const char *answer;
        int code;
    } rows[] = {{"{\"status\":{\"allowed\":true}}", BASE_OK},
                {"{\"status\":{\"allowed\":true,\"denied\":true}}", BASE_EDENIED},
                {"{\"status\":{\"allowed\":false}}", BASE_EDENIED},
                {"{\"status\":{\"allowed\":\"true\"}}", BASE_EDENIED},
                {"{\"status\":{\"allowed\":1}}", BASE_EDENIED},
                {"{\"status\":{}}", BASE_EDENIED},
                {"{\"allowed\":true}", BASE_EPROTO},
                {"x", BASE_EPROTO}};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        struct base_err err = {0};

        cr_assert_eq(agent_review_allowed(base_str_of(rows[i].answer), "bind it", &err), rows[i].code,
                     "row %zu", i);
    }
}

Test(agent_review, the_review_asks_for_our_audience)
{
    struct base_buf out;

    base_buf_init(&out, 65536);
    cr_assert_eq(agent_review_token(&out, BASE_STR("abc"), AUDIT_PAGE_AUDIENCE), BASE_OK);
    cr_assert_str_eq(out.data, "{\"apiVersion\":\"authentication.k8s.io/"
                               "v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":\"abc\"," OURS "}}");
    base_buf_fini(&out);
}

/* The longest that is taken at the door fits into what reviewer.c gives it. */
Test(agent_review, the_longest_token_fits)
{
    static char token[AGENT_REVIEW_TOKEN_MAX];
    struct base_buf out;

    memset(token, 'a', sizeof token);
    base_buf_init(&out, 4 * AGENT_REVIEW_TOKEN_MAX);
    cr_assert_eq(agent_review_token(&out, (struct base_str){token, sizeof token - 1}, AUDIT_PAGE_AUDIENCE),
                 BASE_OK);
    base_buf_reset(&out);
    cr_assert_eq(agent_review_token(&out, (struct base_str){token, sizeof token}, NULL), BASE_EINVAL);
    cr_assert_eq(agent_review_token(&out, (struct base_str){token, 0}, NULL), BASE_EINVAL);
    base_buf_fini(&out);
}

/* Prometheus' own token: whatever audience the API server takes. */
Test(agent_review, without_an_audience_the_servers_own_counts)
{
    struct base_err err = {0};
    struct base_buf out;
    char user[64] = "";

    base_buf_init(&out, 65536);
    cr_assert_eq(agent_review_token(&out, BASE_STR("abc"), NULL), BASE_OK);
    cr_assert_null(strstr(out.data, "audiences"));
    base_buf_reset(&out);
    cr_assert_eq(agent_review_access(&out, BASE_STR("{\"status\":{\"authenticated\":true," USER "}}"), NULL,
                                     "/metrics", user, sizeof user, &err),
                 BASE_OK);
    cr_assert_not_null(strstr(out.data, "\"path\":\"/metrics\""));
    cr_assert_eq(agent_review_access(&out, BASE_STR("{\"status\":{" USER "}}"), NULL, "/metrics", user,
                                     sizeof user, &err),
                 BASE_EDENIED);
    base_buf_fini(&out);
}

/* ---- what stays in memory */

enum { TOKEN = 200, TAIL = 64, MASK = 0x5a };

static char token_byte(size_t i) /* nowhere in one piece but where the test puts it */
{
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[(i * 37 + i / 7 * 11 + 5) % 64];
}

static size_t find_tail(const char *p, size_t n, const uint8_t masked[TAIL])
{
    size_t found = 0;

    for (size_t i = 0; i + TAIL <= n; i++) {
        size_t k = 0;

        while (k < TAIL && ((uint8_t)p[i + k] ^ MASK) == masked[k])
            k++;
        found += k == TAIL;
    }
    return found;
}

/* How often the end of the token is in what this process may write (free memory too: all that a core has). */
static size_t copies(void)
{
    static char chunk[1 << 16];
    uint8_t masked[TAIL];
    FILE *maps = fopen("/proc/self/maps", "re");
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char line[512];
    size_t found = 0;

    cr_assert(maps && mem >= 0);
    for (size_t i = 0; i < TAIL; i++)
        masked[i] = (uint8_t)token_byte(TOKEN - TAIL + i) ^ MASK;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char rights[5];

        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || rights[1] != 'w' ||
            to - from > 1UL << 28) /* what sanitizers reserve */
            continue;
        for (unsigned long at = from; at < to; at += sizeof chunk - TAIL) {
            unsigned long left = to - at;
            ssize_t n = pread(mem, chunk, left < sizeof chunk ? left : sizeof chunk, (off_t)at);

            if (n > 0)
                found += find_tail(chunk, (size_t)n, masked);
            explicit_bzero(chunk, sizeof chunk);
        }
    }
    (void)close(mem);
    (void)fclose(maps);
    return found;
}

Test(agent_review, no_token_stays_in_memory)
{
    static char token[TOKEN], answer[2048];
    struct base_err err = {0};
    struct base_buf out;
    char user[64];
    size_t n;

    for (size_t i = 0; i < TOKEN; i++)
        token[i] = token_byte(i);
    cr_assert_gt(copies(), 0, "the search finds it");
    base_buf_init(&out, 65536);
    cr_assert_eq(agent_review_token(&out, (struct base_str){token, TOKEN}, AUDIT_PAGE_AUDIENCE), BASE_OK);
    cr_assert(out.len > TOKEN && memmem(out.data, out.len, token, TOKEN));
    explicit_bzero(out.data, out.cap); /* as its caller does */
    base_buf_fini(&out);

    n = (size_t)snprintf(answer, sizeof answer,
                         "{\"spec\":{\"token\":\"%.*s\"},\"status\":{\"authenticated\":true," USER "," OURS
                         "}}",
                         TOKEN, token);
    base_buf_init(&out, 65536);
    cr_assert_eq(agent_review_access(&out, (struct base_str){answer, n}, AUDIT_PAGE_AUDIENCE, "/audit", user,
                                     sizeof user, &err),
                 BASE_OK, "%s", err.msg);
    base_buf_fini(&out);
    explicit_bzero(answer, sizeof answer);
    explicit_bzero(token, sizeof token);
    cr_assert_eq(copies(), 0);
}
