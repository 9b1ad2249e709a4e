/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_process.c - process_*: the usual names, from /proc/self. What cannot be read is left out.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/metrics_page.h"
#include "base/mem.h"

static void sample(struct base_buf *b, const char *name, const char *type, const char *help, double value)
{
    (void)base_buf_addf(b, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.3f\n", name, help, name,
                        type, name, value);
}

/* Field `n` (1 = pid) of /proc/self/stat, which begins again after the last ')'. */
static double stat_field(const char *text, int n)
{
    const char *p = strrchr(text, ')');

    for (int i = 2; p && i < n; i++)
        p = strchr(p + 1, ' ');
    return p ? strtod(p + 1, NULL) : -1;
}

static long boot_time(void)
{
    FILE *f = fopen("/proc/stat", "re");
    char line[256];
    long t = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "btime ", 6) == 0)
            t = strtol(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    return t;
}

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    if (!d)
        return -1;
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 3; /* ".", ".." and the folder itself */
}

void agent_metrics_process(struct base_buf *b)
{
    double tick = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/stat", "re");
    char text[2048] = "";
    struct rlimit rl;
    int files = open_files();

    if (f) {
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        (void)fclose(f);
    }
    if (strrchr(text, ')')) {
        sample(b, "cpu_seconds_total", "counter", "CPU time of this process.",
               (stat_field(text, 14) + stat_field(text, 15)) / tick);
        sample(b, "resident_memory_bytes", "gauge", "Resident memory.", stat_field(text, 24) * page);
        sample(b, "virtual_memory_bytes", "gauge", "Virtual memory.", stat_field(text, 23));
        sample(b, "start_time_seconds", "gauge", "Start of this process, Unix time.",
               (double)boot_time() + stat_field(text, 22) / tick);
        sample(b, "threads", "gauge", "Threads.", stat_field(text, 20));
    }
    if (files >= 0)
        sample(b, "open_fds", "gauge", "Open file descriptors.", files);
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur != RLIM_INFINITY)
        sample(b, "max_fds", "gauge", "Limit of open file descriptors.", (double)rl.rlim_cur);
}
