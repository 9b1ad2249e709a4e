/* SPDX-License-Identifier: Apache-2.0
 *
 * dataplane DIR [NAME]: the data thread on real parts. Each scenario is a process with namespaces of its own.
 * DIR holds the test PKI (test/peers/pki/mk.sh), readable by uid 65532.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"
#include "scenarios.h"

static int child(const struct scenario *s, const char *dir, unsigned threads)
{
    static struct rig r;

    (void)alarm(180);
    rig_open(&r, dir, threads, &s->tenant);
    s->run(&r);
    rig_close(&r);
    (void)fflush(stdout);
    return r.failed ? 1 : 0;
}

static bool run_one(const struct scenario *s, const char *dir, unsigned threads)
{
    int st = 0;
    base_time from = loop_clock();
    pid_t p;

    (void)fflush(stdout);
    p = fork();
    if (p == 0)
        exit(child(s, dir, threads)); /* with the sanitizers' checks at exit */
    if (p < 0 || waitpid(p, &st, 0) != p)
        return false;
    (void)printf("%s %s%s%s (%d ms)", st == 0 ? "ok  " : "FAIL", dp_over_h2() ? "http2 " : "",
                 threads > 1 ? "two-threads " : "", s->name, (int)((loop_clock() - from) / BASE_MS));
    if (WIFSIGNALED(st))
        (void)printf(": signal %d", WTERMSIG(st));
    else if (st != 0)
        (void)printf(": status %d", WEXITSTATUS(st));
    (void)printf("\n");
    return st == 0;
}

static bool fits(const struct scenario *s, bool for_two, unsigned threads, bool h2)
{
    if (threads == 1)
        return !for_two && !(h2 && s->h3_only);
    /* What is about two threads on both transports, the rest on one. */
    return for_two ? !(h2 && s->h3_only) : s->threads2 && !h2;
}

int main(int argc, char **argv)
{
    const struct scenario *lists[] = {dp_packets, dp_authority, dp_threads};
    unsigned passed = 0, failed = 0;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: dataplane DIR [NAME]\n");
        return 2;
    }
    for (unsigned t = 0; t < 4; t++) {
        unsigned threads = t < 2 ? 1 : 2;

        (void)setenv("DATAPLANE_TRANSPORT", t % 2 == 0 ? "h3" : "h2", 1);
        for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
            for (const struct scenario *s = lists[l]; s->name; s++) {
                if ((argc > 2 && strcmp(argv[2], s->name) != 0) ||
                    !fits(s, lists[l] == dp_threads, threads, t % 2 == 1))
                    continue;
                if (run_one(s, argv[1], threads))
                    passed++;
                else
                    failed++;
            }
    }
    (void)printf("dataplane: %u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
