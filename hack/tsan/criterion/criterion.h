/* SPDX-License-Identifier: Apache-2.0
 *
 * criterion.h - stands in for Criterion under SAN=thread, where the real one cannot run: it puts its arena at
 * addresses that ThreadSanitizer keeps for itself. The part of the interface that the unit tests use; each
 * test in a child process, with its time limit; the same closing line.
 */
#ifndef CRITERION_STANDIN_H
#define CRITERION_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct crx_test {
    struct crx_test *next;
    const char *suite, *name;
    void (*fn)(void);
    double timeout;
    int signal, exit_code;
    bool disabled;
    const char *description;
    void (*init)(void);
    void (*fini)(void);
};

__attribute__((weak)) struct crx_test *crx_tests, *crx_suites;
__attribute__((weak)) int crx_failed;

#define CRX_ADD(list, var)                                                                                   \
    __attribute__((constructor)) static void crx_add_##var(void)                                             \
    {                                                                                                        \
        var.next = list;                                                                                     \
        list = &var;                                                                                         \
    }
#define Test(s, n, ...)                                                                                      \
    static void crx_fn_##s##_##n(void);                                                                      \
    static struct crx_test crx_##s##_##n = {                                                                 \
        .suite = #s, .name = #n, .fn = crx_fn_##s##_##n __VA_OPT__(, ) __VA_ARGS__};                         \
    CRX_ADD(crx_tests, crx_##s##_##n)                                                                        \
    static void crx_fn_##s##_##n(void)
#define TestSuite(s, ...)                                                                                    \
    static struct crx_test crx_suite_##s = {.suite = #s __VA_OPT__(, ) __VA_ARGS__};                         \
    CRX_ADD(crx_suites, crx_suite_##s)

__attribute__((unused)) static void crx_fail(bool fatal, const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: Assertion failed: %s\n", file, line, what);
    crx_failed = 1;
    if (fatal)
        _exit(1);
}
#define CRX(fatal, cond, text, ...)                                                                          \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            __VA_OPT__(fprintf(stderr, __VA_ARGS__); fputc('\n', stderr);)                                   \
            crx_fail(fatal, __FILE__, __LINE__, text);                                                       \
        }                                                                                                    \
    } while (0)

#define cr_assert(c, ...) CRX(true, (c), #c __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect(c, ...) CRX(false, (c), #c __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not(c, ...) CRX(true, !(c), "not " #c __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_not(c, ...) CRX(false, !(c), "not " #c __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_eq(a, b, ...) CRX(true, (a) == (b), #a " == " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_eq(a, b, ...) CRX(false, (a) == (b), #a " == " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_neq(a, b, ...) CRX(true, (a) != (b), #a " != " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_neq(a, b, ...) CRX(false, (a) != (b), #a " != " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_lt(a, b, ...) CRX(true, (a) < (b), #a " < " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_lt(a, b, ...) CRX(false, (a) < (b), #a " < " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_leq(a, b, ...) CRX(true, (a) <= (b), #a " <= " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_leq(a, b, ...) CRX(false, (a) <= (b), #a " <= " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_float_eq(a, b, within, ...)                                                                \
    CRX(true, (a) - (b) <= (within) && (b) - (a) <= (within), #a " is about " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_gt(a, b, ...) CRX(true, (a) > (b), #a " > " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_gt(a, b, ...) CRX(false, (a) > (b), #a " > " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_geq(a, b, ...) CRX(true, (a) >= (b), #a " >= " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_geq(a, b, ...) CRX(false, (a) >= (b), #a " >= " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_null(p, ...) CRX(true, (p) == NULL, #p " == NULL" __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_null(p, ...) CRX(false, (p) == NULL, #p " == NULL" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not_null(p, ...) CRX(true, (p) != NULL, #p " != NULL" __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_not_null(p, ...) CRX(false, (p) != NULL, #p " != NULL" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) CRX(true, strcmp((a), (b)) == 0, #a " is " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) CRX(false, strcmp((a), (b)) == 0, #a " is " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)                                                                         \
    CRX(true, strcmp((a), (b)) != 0, #a " is not " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)                                                                         \
    CRX(false, strcmp((a), (b)) != 0, #a " is not " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_empty(a, ...) CRX(true, (a)[0] == '\0', #a " is empty" __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_str_empty(a, ...) CRX(false, (a)[0] == '\0', #a " is empty" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                                       \
    CRX(true, memcmp((a), (b), (n)) == 0, #a " equals " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...)                                                                       \
    CRX(false, memcmp((a), (b), (n)) == 0, #a " equals " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_arr_neq(a, b, n, ...)                                                                      \
    CRX(true, memcmp((a), (b), (n)) != 0, #a " differs from " #b __VA_OPT__(, ) __VA_ARGS__)
#define cr_fail(...) CRX(false, false, "cr_fail" __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_fail(...) CRX(true, false, "cr_assert_fail" __VA_OPT__(, ) __VA_ARGS__)
#define cr_fatal(...) CRX(true, false, "cr_fatal" __VA_OPT__(, ) __VA_ARGS__)
#define cr_skip_test(...)                                                                                    \
    do {                                                                                                     \
        __VA_OPT__(fprintf(stderr, __VA_ARGS__); fputc('\n', stderr);)                                       \
        _exit(77);                                                                                           \
    } while (0)
#define cr_skip(...) cr_skip_test(__VA_ARGS__)
#define cr_log_info(...) ((void)fprintf(stderr, __VA_ARGS__))
#define cr_log_warn(...) ((void)fprintf(stderr, __VA_ARGS__))

__attribute__((unused)) static void crx_child(const struct crx_test *t)
{
    const struct crx_test *s = crx_suites;

    while (s && strcmp(s->suite, t->suite) != 0)
        s = s->next;
    if (s && s->init)
        s->init();
    if (t->init)
        t->init();
    t->fn();
    if (t->fini)
        t->fini();
    if (s && s->fini)
        s->fini();
    exit(crx_failed);
}

/* Arguments are accepted and ignored. */
__attribute__((weak)) int main(void)
{
    unsigned n = 0, pass = 0, fail = 0, crash = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct crx_test *t = crx_tests; t; t = t->next) {
        double limit = t->timeout > 0 ? t->timeout * 4 : 120; /* the sanitizer is slow */
        int st = 0;
        pid_t pid;

        if (t->disabled)
            continue;
        pid = fork();
        if (pid == 0) {
            alarm((unsigned)limit + 1);
            crx_child(t);
        }
        if (pid < 0 || waitpid(pid, &st, 0) != pid)
            st = 1;
        n++;
        if (t->signal ? WIFSIGNALED(st) && WTERMSIG(st) == t->signal
                      : WIFEXITED(st) && (WEXITSTATUS(st) == t->exit_code || WEXITSTATUS(st) == 77)) {
            pass++;
            continue;
        }
        if (WIFSIGNALED(st))
            crash++;
        else
            fail++;
        printf("[FAIL] %s::%s (%s %d)\n", t->suite, t->name, WIFSIGNALED(st) ? "signal" : "exit status",
               WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
    }
    printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: %u\n", n, pass, fail, crash);
    return fail + crash ? 1 : 0;
}

#endif
