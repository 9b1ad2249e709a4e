/* SPDX-License-Identifier: Apache-2.0
 *
 * holdfast-agent: the provider agent of one edge node.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "agent/agent.h"
#include "agent/preflight.h"
#include "base/mem.h"

static const char usage[] =
    "usage: holdfast-agent [--config FILE] [--log-format json|text] [--check-config]\n"
    "       holdfast-agent check [--config FILE] [--running]\n"
    "\n"
    "Terminates connectors' CONNECT-IP sessions on this edge node and moves their packets.\n"
    "\n"
    "  --config FILE           YAML configuration (default /etc/holdfast/agent.yaml)\n"
    "  --log-format FORMAT     json or text; wins over log.format\n"
    "  --check-config          reads the configuration, says what is wrong with it, and ends\n"
    "  --running               with check: this agent runs, so its ports are in use\n"
    "  --version               prints the version\n"
    "  --help                  prints this text and every option of the configuration\n"
    "\n"
    "check looks at everything that this agent needs here (files, TUN, ports, clock, credentials, CRDs, each "
    "permission,\n"
    "admission policies, namespace), says what to do about what is missing, and ends with 0 or 1. Nothing is "
    "changed.\n"
    "SIGTERM drains and ends with 0 (SIGINT, too; a second SIGINT breaks the drain off); SIGHUP reads TLS "
    "files, credentials and configuration again\n"
    "and logs what changed and what needs a restart.\n";

static const char *environment(const char *name)
{
    return getenv(name);
}

/* Private keys and tokens live in the memory of TLS libraries: no core dump, and no reading of this process's
 * memory by others of its user. Before anything secret is read. */
static int seal_memory(void)
{
    static const struct rlimit none = {0, 0};

    return setrlimit(RLIMIT_CORE, &none) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -1;
}

/* Each HTTP/2 connection is a descriptor: as many as the system lets us have. The endpoint takes no more
 * connections than that, whatever this comes to. */
static void raise_descriptors(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &rl);
    }
}

static int help(void)
{
    struct base_buf b;

    base_buf_init(&b, 65536);
    (void)agent_config_describe(&b);
    (void)fputs(usage, stdout);
    (void)printf("\nOptions of the configuration file:\n%s", b.data ? b.data : "");
    base_buf_fini(&b);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"log-format", required_argument, NULL, 'l'},
                                            {"check-config", no_argument, NULL, 'k'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"running", no_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    const char *path = "/etc/holdfast/agent.yaml", *format = NULL;
    struct agent_config cfg;
    struct contract_timing timing;
    struct base_err err = {0};
    struct agent *agent = NULL;
    bool check = false, preflight = false, running = false;
    int o, code;

    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (o) {
        case 'c':
            path = optarg;
            break;
        case 'l':
            format = optarg;
            break;
        case 'k':
            check = true;
            break;
        case 'r':
            running = true;
            break;
        case 'v':
            (void)printf("holdfast-agent %s\n", HOLDFAST_VERSION);
            return 0;
        case 'h':
            return help();
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    if (optind < argc && strcmp(argv[optind], "check") == 0) {
        preflight = true;
        optind++;
    }
    if (running && !preflight) {
        (void)fprintf(stderr, "holdfast-agent: --running goes with check only; see --help\n");
        return 2;
    }
    if (optind < argc) {
        (void)fprintf(stderr, "holdfast-agent: '%s': no such command (known: check); see --help\n",
                      argv[optind]);
        return 2;
    }
    if (format && strcmp(format, "json") != 0 && strcmp(format, "text") != 0) {
        (void)fprintf(stderr, "holdfast-agent: --log-format: '%s': must be json or text\n", format);
        return 2;
    }
    if (!path[0]) { /* "$UNSET", say: not a wish for the defaults */
        (void)fprintf(stderr, "holdfast-agent: --config: is empty; name a file\n");
        return 2;
    }
    raise_descriptors();
    if (seal_memory() != 0) {
        (void)fprintf(stderr,
                      "holdfast-agent: core dumps cannot be switched off (RLIMIT_CORE, PR_SET_DUMPABLE)\n");
        return 1;
    }
    if (agent_config_load(&cfg, path, environment, &err)) {
        (void)fprintf(stderr, "holdfast-agent: %s\n", err.msg);
        return 2;
    }
    if (format) {
        cfg.log_json = strcmp(format, "json") == 0;
        cfg.format_forced = true;
    }
    if (check && (agent_config_timing(&cfg, &timing, &err) || agent_config_policy(&cfg, &err))) {
        (void)fprintf(stderr, "holdfast-agent: %s: %s\n", path, err.msg);
        return 2;
    }
    if (check) {
        (void)printf("holdfast-agent: %s is good\n", path);
        return 0;
    }
    if (preflight)
        return agent_preflight(&cfg, running, stdout);
    if (agent_new(&agent, &cfg, &err)) {
        (void)fprintf(stderr, "holdfast-agent: %s\n", err.msg);
        return 1;
    }
    code = agent_run(agent);
    agent_free(agent);
    return code;
}
