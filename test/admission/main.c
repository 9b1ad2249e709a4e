/* SPDX-License-Identifier: Apache-2.0
 *
 * admission: who may write what, tried on a real API server.  run.sh and mutants.sh start it.
 *
 *   admission [--mutants] [--only TEXT] [--jobs N] --url URL --dir DIR FILE...
 */
#include "admission.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define JOBS_MAX 8

struct batch {
    const struct adm_lab *lab;
    const struct adm_suite *suite;
    const char *only;
    enum adm_phase phase;
    atomic_size_t next;
    atomic_int passed, failed;
    pthread_mutex_t out;
};

static atomic_uint last_number;

unsigned adm_next_number(void)
{
    return atomic_fetch_add(&last_number, 1) + 1;
}

static void run_scenario(struct batch *b, struct adm_client *client, const struct adm_scenario *sc)
{
    struct adm_run r = {.client = client, .lab = b->lab, .number = adm_next_number()};
    for (size_t i = 0; i < sc->n_stmts; i++) {
        const struct adm_stmt *st = &sc->stmts[i];
        struct adm_verdict v;
        adm_run_stmt(&r, st, NULL, &v);
        if (v.ok && st->name)
            atomic_fetch_add(&b->passed, 1);
        if (!v.ok) {
            atomic_fetch_add(&b->failed, 1);
            pthread_mutex_lock(&b->out);
            printf("FAIL %s: %s (%s:%d)\n%s", sc->name, st->name ? st->name : "step", sc->file, st->line,
                   v.text ? v.text : "");
            pthread_mutex_unlock(&b->out);
        }
        adm_verdict_fini(&v);
    }
    adm_run_clean(&r);
}

static void *worker(void *user)
{
    struct batch *b = user;
    struct adm_client *client = adm_client_new(b->lab);
    for (;;) {
        size_t i = atomic_fetch_add(&b->next, 1);
        if (i >= b->suite->n)
            break;
        const struct adm_scenario *sc = &b->suite->items[i];
        if (sc->phase == b->phase && (!b->only || strstr(sc->name, b->only)))
            run_scenario(b, client, sc);
    }
    adm_client_free(client);
    return NULL;
}

static bool any_of(const struct batch *b)
{
    for (size_t i = 0; i < b->suite->n; i++)
        if (b->suite->items[i].phase == b->phase && (!b->only || strstr(b->suite->items[i].name, b->only)))
            return true;
    return false;
}

/* "Alone" is without any service, which a server of somebody else's may have. */
static bool has_services(struct adm_client *client)
{
    struct adm_answer a;
    adm_request(client, ADM_ADMIN, "GET", ADM_EDGE "/namespaces/" ADM_NAMESPACE "/providerservices?limit=1",
                NULL, NULL, &a);
    int n = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(a.body, "items"));
    adm_answer_fini(&a);
    return n > 0;
}

static int run_phase(struct batch *b, int jobs, struct base_err *err)
{
    if (!any_of(b))
        return BASE_OK;
    struct adm_client *client = adm_client_new(b->lab);
    int rc = client ? BASE_OK : base_err_set(err, BASE_ENOMEM, "no memory");
    if (!rc && b->phase == ADM_PHASE_ALONE && has_services(client)) {
        printf("note: this server has services: the cases without any are left out\n");
        adm_client_free(client);
        return BASE_OK;
    }
    if (!rc && b->phase == ADM_PHASE_WIDE)
        rc = adm_set_wide(client, true, err);
    if (!rc) {
        pthread_t threads[JOBS_MAX];
        int n = 0;
        atomic_store(&b->next, 0);
        while (n < (b->phase == ADM_PHASE_ALONE ? 1 : jobs) &&
               pthread_create(&threads[n], NULL, worker, b) == 0)
            n++;
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
        if (n == 0)
            rc = base_err_set(err, BASE_ENOMEM, "no thread could be started");
    }
    if (client && b->phase == ADM_PHASE_WIDE) {
        int off = adm_set_wide(client, false, rc ? NULL : err);
        rc = rc ? rc : off;
    }
    adm_client_free(client);
    return rc;
}

static int run_all(const struct adm_lab *lab, const struct adm_suite *suite, const char *only, int jobs)
{
    struct batch b = {.lab = lab, .suite = suite, .only = only, .out = PTHREAD_MUTEX_INITIALIZER};
    struct base_err err = {0};
    for (int p = 0; p < ADM_PHASE_N; p++) {
        b.phase = (enum adm_phase)p;
        if (run_phase(&b, jobs, &err)) {
            atomic_fetch_add(&b.failed, 1);
            printf("FAIL %s\n", err.msg);
        }
    }
    printf("admission: %d passed, %d failed\n", atomic_load(&b.passed), atomic_load(&b.failed));
    return atomic_load(&b.failed) || !atomic_load(&b.passed) ? 1 : 0;
}

static int usage(const char *why)
{
    fprintf(
        stderr,
        "admission: %s\nusage: admission [--mutants] [--only TEXT] [--jobs N] --url URL --dir DIR FILE...\n",
        why);
    return 2;
}

int main(int argc, char **argv)
{
    const char *url = NULL, *dir = NULL, *only = NULL;
    bool mutants = false;
    int jobs = 3, i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--mutants") == 0)
            mutants = true;
        else if (strcmp(argv[i], "--url") == 0 && more)
            url = argv[++i];
        else if (strcmp(argv[i], "--dir") == 0 && more)
            dir = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && more)
            only = argv[++i];
        else if (strcmp(argv[i], "--jobs") == 0 && more)
            jobs = (int)strtol(argv[++i], NULL, 10);
        else
            return usage(argv[i]);
    }
    if (!url || !dir || i == argc || jobs < 1 || jobs > JOBS_MAX)
        return usage("an address, a folder, scenario files and 1 to 8 jobs are needed");
    curl_global_init(CURL_GLOBAL_DEFAULT);
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* Names of runs on a server that has seen earlier ones must not meet theirs. */
    atomic_store(&last_number, (unsigned)getpid() % 30000 + 1);
    struct adm_lab lab;
    struct adm_suite suite = {0};
    struct base_err err = {0};
    int rc = adm_lab_load(&lab, url, dir, &err);
    for (; i < argc && !rc; i++)
        rc = adm_suite_load(&suite, argv[i], &err);
    if (rc)
        fprintf(stderr, "admission: %s\n", err.msg);
    else
        rc = run_all(&lab, &suite, mutants ? NULL : only, jobs);
    if (!rc && mutants)
        rc = adm_mutants(&lab, &suite, only);
    adm_suite_fini(&suite);
    adm_lab_fini(&lab);
    curl_global_cleanup();
    return rc ? 1 : 0;
}
