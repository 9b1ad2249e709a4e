/* SPDX-License-Identifier: Apache-2.0
 *
 * conformance [--write FILE | --check FILE] [NAME]: every case on every transport, each in a process of its
 * own; then the table of requirements and verdicts: written to FILE, or compared with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf.h"

enum { SECONDS = 60, ROWS = 160, TRANSPORTS = 2 };
enum verdict { NONE = 0, PASS, FAIL, NOT_YET };
static const struct conf_transport *const transports[TRANSPORTS] = {&conf_h3_transport, &conf_h2_transport};
static const char *const names[TRANSPORTS] = {"HTTP/3", "HTTP/2"};
static const struct {
    const char *title;
    const struct conf_case *cases;
} lists[] = {{"Opening the tunnel", conf_opening},
             {"Capsules", conf_capsules},
             {"Datagrams", conf_datagrams},
             {"Packets and routing", conf_packets},
             {"Bugs of other implementations", conf_bugs}};
enum { LISTS = sizeof lists / sizeof lists[0] };

struct row {
    const struct conf_case *c;
    size_t list;
    enum verdict v[TRANSPORTS];
};
static struct row rows[ROWS];
static size_t n_rows;

static enum verdict run(const struct conf_case *c, const struct conf_transport *tr, const char *dir)
{
    int st = 0;
    pid_t p;
    base_time from = loop_clock();
    (void)fflush(stdout);
    p = fork();
    if (p == 0) {
        static struct conf t;
        (void)alarm(SECONDS);
        conf_open(&t, tr, dir, NULL);
        c->run(&t);
        conf_close(&t);
        exit(0);
    }
    if (p < 0 || waitpid(p, &st, 0) != p)
        abort();
    (void)printf("%s %-7s %-38s %5d ms%s\n", st == 0 ? "ok  " : "FAIL", tr->name, c->name,
                 (int)((loop_clock() - from) / BASE_MS),
                 !WIFSIGNALED(st)          ? ""
                 : WTERMSIG(st) == SIGALRM ? " (did not end)"
                                           : " (crashed)");
    return st == 0 ? PASS : FAIL;
}

static const struct row *by_name(const char *name)
{
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].c->run && strcmp(rows[i].c->name, name) == 0)
            return &rows[i];
    (void)fprintf(stderr, "conformance: a row names the case '%s', which is not there\n", name);
    exit(2);
}

static void collect(void)
{
    for (size_t l = 0; l < LISTS; l++)
        for (const struct conf_case *c = lists[l].cases; c->row; c++) {
            if (n_rows == ROWS)
                abort();
            for (size_t i = 0; i < n_rows; i++)
                if (strcmp(rows[i].c->row, c->row) == 0 ||
                    (c->run && rows[i].c->run && strcmp(rows[i].c->name, c->name) == 0)) {
                    (void)fprintf(stderr, "conformance: row %s or its case is there twice\n", c->row);
                    exit(2);
                }
            rows[n_rows++] = (struct row){.c = c, .list = l};
        }
}

static void run_all(const char *dir, const char *only)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < TRANSPORTS; k++) {
            const struct conf_case *c = rows[i].c;
            unsigned bit = k == 0 ? CONF_H3 : CONF_H2;
            if (!(c->on & bit) || !c->run || (only && strcmp(only, c->name) != 0))
                continue;
            rows[i].v[k] = transports[k] ? run(c, transports[k], dir) : NOT_YET;
        }
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].c->run)
            continue;
        const struct row *r = by_name(rows[i].c->name);
        for (size_t k = 0; k < TRANSPORTS; k++)
            rows[i].v[k] = (rows[i].c->on & (k == 0 ? CONF_H3 : CONF_H2)) ? r->v[k] : NONE;
    }
}

static const char *text(enum verdict v)
{
    switch (v) {
    case NONE:
        return "";
    case PASS:
        return "pass";
    case FAIL:
        return "**fail**";
    case NOT_YET:
        return "open";
    }
    return "?";
}

static void table(FILE *f)
{
    size_t list = LISTS, n[TRANSPORTS][4] = {{0}};
    (void)fprintf(f, "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
                     "# Conformance\n\n"
                     "Written by `make conformance-table`; `make conformance` runs the cases and fails when "
                     "this file says "
                     "anything else.\nA row's case is a function of that name in this folder; no verdict: "
                     "the row does not "
                     "concern the transport.\n");
    for (size_t i = 0; i < n_rows; i++) {
        const struct conf_case *c = rows[i].c;
        if (rows[i].list != list) {
            list = rows[i].list;
            (void)fprintf(f,
                          "\n## %s\n\n| row | section | | requirement | case | %s | %s |\n| --- | --- | --- "
                          "| --- | --- | --- | --- |\n",
                          lists[list].title, names[0], names[1]);
        }
        (void)fprintf(f, "| %s | %s | %s | %s | `%s` | %s | %s |\n", c->row, c->section, c->level, c->what,
                      c->name, text(rows[i].v[0]), text(rows[i].v[1]));
        for (size_t k = 0; k < TRANSPORTS; k++)
            n[k][rows[i].v[k]]++;
    }
    (void)fprintf(f, "\n| transport | pass | fail | open |\n| --- | --- | --- | --- |\n");
    for (size_t k = 0; k < TRANSPORTS; k++)
        (void)fprintf(f, "| %s | %zu | %zu | %zu |\n", names[k], n[k][PASS], n[k][FAIL], n[k][NOT_YET]);
}

static bool same(const char *file)
{
    char *want = NULL, got[1 << 16];
    size_t n_want = 0;
    FILE *m = open_memstream(&want, &n_want), *f = fopen(file, "re");
    if (!m)
        abort();
    table(m);
    (void)fclose(m);
    size_t n = f ? fread(got, 1, sizeof got, f) : 0;
    if (f)
        (void)fclose(f);
    bool ok = n == n_want && memcmp(got, want, n) == 0;
    free(want);
    (void)printf("%s table  %s\n", ok ? "ok  " : "FAIL", file);
    if (!ok)
        (void)printf(
            "  %s is not what this run found: look at the failures above, then `make conformance-table`\n",
            file);
    return ok;
}

static void remove_dir(const char *dir)
{
    static const char *const files[] = {"ca.crt",     "server.crt",   "server.key",  "client.crt",
                                        "client.key", "stranger.crt", "stranger.key"};
    char name[160];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", dir, files[i]);
        (void)unlink(name);
    }
    (void)rmdir(dir);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/holdfast-conformance.XXXXXX";
    const char *write = NULL, *check = NULL, *only = NULL;
    unsigned n[4] = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            write = argv[++i];
        else if (strcmp(argv[i], "--check") == 0 && i + 1 < argc)
            check = argv[++i];
        else
            only = argv[i];
    }
    collect();
    if (!mkdtemp(dir)) {
        perror("conformance: /tmp");
        return 2;
    }
    conf_pki(dir);
    run_all(dir, only);
    remove_dir(dir);
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < TRANSPORTS; k++)
            n[rows[i].v[k]] += rows[i].c->run != NULL;
    if (write) {
        FILE *f = fopen(write, "we");
        if (!f) {
            perror(write);
            return 2;
        }
        table(f);
        (void)fclose(f);
    }
    if (check)
        n[same(check) ? PASS : FAIL]++;
    if (n[NOT_YET] > 0)
        (void)printf("%u cases wait for an endpoint on their transport\n", n[NOT_YET]);
    (void)printf("conformance: %u passed, %u failed\n", n[PASS], n[FAIL]);
    return n[FAIL] > 0 || n[PASS] == 0;
}
