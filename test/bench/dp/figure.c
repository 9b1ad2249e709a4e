/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>

struct bench_figures {
    FILE *file;
    unsigned n, failed, exceptions;
};

void bench_note(struct bench_figures *f, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    (void)vprintf(fmt, ap);
    (void)putchar('\n');
    (void)fflush(stdout);
    if (f->file) {
        (void)vfprintf(f->file, fmt, again);
        (void)fputc('\n', f->file);
        (void)fflush(f->file);
    }
    va_end(again);
    va_end(ap);
}

/* The value of a "name : value" line in a file of /proc. */
static void fact(struct bench_figures *f, const char *path, const char *name, const char *label)
{
    char line[256];
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in)) {
        const char *v = strchr(line, ':');
        if (strncmp(line, name, strlen(name)) == 0 && v) {
            line[strcspn(line, "\n")] = '\0';
            v += 1 + strspn(v + 1, " \t");
            bench_note(f, "  %-10s %s", label, v);
            break;
        }
    }
    if (in)
        (void)fclose(in);
}

struct bench_figures *bench_figures_new(const char *file)
{
    struct bench_figures *f = calloc(1, sizeof *f);
    struct utsname u;
    double load[3] = {0};
    if (!f)
        bench_die("memory");
    f->file = fopen(file, "we");
    (void)uname(&u);
    (void)getloadavg(load, 3);
    bench_note(f, "machine:");
    fact(f, "/proc/cpuinfo", "model name", "processor");
    fact(f, "/proc/meminfo", "MemTotal", "memory");
    bench_note(f, "  %-10s %ld, load average %.1f %.1f %.1f", "cores", sysconf(_SC_NPROCESSORS_ONLN), load[0],
               load[1], load[2]);
    bench_note(f, "  %-10s %s %s, ngtcp2 %s, nghttp3 %s, GnuTLS %s", "software", u.sysname, u.release,
               ngtcp2_version(0)->version_str, nghttp3_version(0)->version_str, gnutls_check_version(NULL));
    bench_note(
        f,
        "packets of %d bytes; CPU time of the server's process by the scheduler's count; median [min .. max]",
        BENCH_PACKET);
    return f;
}

int bench_figures_end(struct bench_figures *f)
{
    unsigned failed = f->failed;
    bench_watch(NULL, NULL);
    bench_note(f, "bench: %u of %u figures hold; exceptions in KNOWN_LIMITS.md: %u", f->n - failed, f->n,
               f->exceptions);
    if (f->file)
        (void)fclose(f->file);
    free(f);
    return failed > 0 ? 1 : 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const double *v, unsigned n)
{
    double s[BENCH_PAIRS_MAX];
    memcpy(s, v, n * sizeof *v);
    qsort(s, n, sizeof s[0], by_size);
    return n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

static const char *verdict(struct bench_figures *f, double v, enum bench_side side, double limit,
                           double exception, char *text, size_t size)
{
    double held = exception > 0 ? exception : limit;
    bool within = side == BENCH_AT_LEAST ? v >= limit : v <= limit;
    bool ok = side == BENCH_AT_LEAST ? v >= held : v <= held;
    if (limit <= 0)
        return "";
    f->n++;
    f->failed += !ok;
    f->exceptions += exception > 0;
    (void)snprintf(text, size, "  %s %.2f: %s%s", side == BENCH_AT_LEAST ? "at least" : "at most", limit,
                   within ? "holds"
                   : ok   ? "exception"
                          : "DOES NOT HOLD",
                   exception > 0 && within ? " (its exception is not needed)" : "");
    return text;
}

void bench_ratio(struct bench_figures *f, const char *name, const double *a, const double *b, unsigned n,
                 enum bench_side side, double limit, double exception)
{
    double r[BENCH_PAIRS_MAX], lo = 0, hi = 0;
    char text[128];
    for (unsigned i = 0; i < n; i++) {
        r[i] = a[i] / b[i];
        lo = i == 0 || r[i] < lo ? r[i] : lo;
        hi = i == 0 || r[i] > hi ? r[i] : hi;
    }
    double m = bench_median(r, n);
    bench_note(f, "%-58s %5.2f [%.2f .. %.2f]%s", name, m, lo, hi,
               verdict(f, m, side, limit, exception, text, sizeof text));
}

void bench_value(struct bench_figures *f, const char *name, double v, const char *unit, enum bench_side side,
                 double limit, double exception)
{
    char text[128];
    bench_note(f, "%-58s %5.*f %s%s", name, v < 100 ? 2 : 0, v, unit,
               verdict(f, v, side, limit, exception, text, sizeof text));
}
