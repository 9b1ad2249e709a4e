/* SPDX-License-Identifier: Apache-2.0
 *
 * test/admission/admission.h - the admission tests' own types: requests as one of the identities, scenarios
 * read from text, and their verdicts.  README.md has the language of the scenario files.
 *
 * Ownership: a `struct adm_lab` and the loaded scenarios live as long as the program and are read-only once
 * loaded; a `struct adm_client` belongs to one thread.  Everything that returns int returns BASE_OK or a
 * base_code with *err.
 */
#ifndef ADMISSION_H
#define ADMISSION_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <cjson/cJSON.h>

/* Who sends a request. */
enum adm_who {
    ADM_ADMIN,            /* system:masters */
    ADM_AGENT_A,          /* a:  agent on edge1 */
    ADM_AGENT_B,          /* b:  agent on edge2 */
    ADM_FOUNDATION_A,     /* fa: foundation on edge1 */
    ADM_FOUNDATION_B,     /* fb: foundation on edge2 */
    ADM_NOPOD,            /* np: the agent's service account, token without a pod */
    ADM_NOPOD_FOUNDATION, /* npf: the foundation's, likewise */
    ADM_AUTHORITY,        /* auth */
    ADM_OPERATOR,         /* op: client certificate in holdfast:operators */
    ADM_WHO_N
};
/* The word of the scenario files; -1 for none of them. */
int adm_who_of(struct base_str word);
const char *adm_who_name(enum adm_who who);

#define ADM_NAMESPACE "holdfast-system"
#define ADM_EDGE "/apis/edge.galactic.datumapis.com/v1alpha1"
#define ADM_MASQUE "/apis/masque.galactic.datumapis.com/v1alpha1"
#define ADM_PATH_MAX 512

struct adm_lab {
    char url[256];
    char dir[256]; /* of test/apiserver/up.sh: certificates and tokens */
    char *token[ADM_WHO_N];
    char node_uid[2][64]; /* edge1, edge2 */
};

struct adm_answer {
    long code; /* HTTP status; 0 = no answer, then message says why */
    char reason[64];
    char message[4096];
    cJSON *body; /* NULL when it was not JSON */
};
void adm_answer_fini(struct adm_answer *a);

struct adm_client;
struct adm_client *adm_client_new(const struct adm_lab *lab);
struct adm_client *adm_client_free(struct adm_client *c);
/* One request over the identity's own kept-alive connection; 429 is repeated. `path` is below the server's
 * address and may have a query. `body` NULL = none. Always fills *ret (adm_answer_fini). */
void adm_request(struct adm_client *c, enum adm_who who, const char *method, const char *path,
                 const char *content_type, const char *body, struct adm_answer *ret);

/* Reads tokens and node UIDs. */
int adm_lab_load(struct adm_lab *lab, const char *url, const char *dir, struct base_err *err);
void adm_lab_fini(struct adm_lab *lab);

/* ---- scenarios */
enum adm_verb {
    ADM_CREATE, /* POST of the target's template, changed */
    ADM_PUT,    /* PUT of the object as it is now, changed */
    ADM_STATUS, /* the same on the status subresource */
    ADM_DELETE,
    ADM_JSON, /* JSON patch, body given */
    ADM_JSON_STATUS,
    ADM_MERGE, /* merge patch, body given */
    ADM_MERGE_STATUS,
    ADM_APPLY, /* server-side apply, body given */
    ADM_GET,
    ADM_VERB_N
};
enum adm_kind { ADM_PI, ADM_HA, ADM_PS, ADM_RC, ADM_CB, ADM_EV, ADM_KIND_N };

enum adm_stmt_kind {
    ADM_CASE, /* CODE "name" WHO VERB TARGET ... */
    ADM_DO,   /* a step that must succeed, not counted */
    ADM_SAME, /* the object has these values */
    ADM_ROWS, /* a LIST with a field selector has so many rows */
    ADM_CAN,  /* RBAC: exactly these verbs */
    ADM_SLEEP,
    ADM_SERVICES, /* creates s1, s2 (another tenant), s3 (revoked); waits until the pool policy knows them */
};
struct adm_stmt {
    enum adm_stmt_kind kind;
    int line;
    bool retry; /* CODE~: as a dry run, repeated until that is the answer */
    long code;
    char reason[32]; /* "" = that of the code */
    char *name;      /* of the case */
    enum adm_who who;
    enum adm_verb verb;
    char target[64];
    char **changes; /* texts between ';' */
    size_t n_changes;
    char *body;     /* of patches: the text after '=' */
    char *fragment; /* of the message, after '!'; NULL = any */
};
enum adm_phase { ADM_PHASE_ALONE, ADM_PHASE_NORMAL, ADM_PHASE_WIDE, ADM_PHASE_N };
struct adm_scenario {
    char *file, *name;
    enum adm_phase phase;
    struct adm_stmt *stmts;
    size_t n_stmts;
};
struct adm_suite {
    struct adm_scenario *items;
    size_t n;
};
/* Appends the scenarios of one file. BASE_EINVAL with file, line and what was expected. */
int adm_suite_load(struct adm_suite *s, const char *file, struct base_err *err);
void adm_suite_fini(struct adm_suite *s);

/* One run of one scenario: its own provider, tenant and pool, so that runs do not meet. */
#define ADM_MADE_MAX 48
struct adm_run {
    struct adm_client *client;
    const struct adm_lab *lab;
    unsigned number; /* 1..65535, never used twice on one server */
    struct {
        char target[64];
        char uid[64];
        char path[ADM_PATH_MAX];
    } made[ADM_MADE_MAX];
    size_t n_made;
};
/* Path of the collection, or of the object when `target` names one. */
int adm_target_path(const struct adm_run *r, const char *target, bool object, char dst[ADM_PATH_MAX],
                    enum adm_kind *ret_kind, struct base_err *err);
/* The object that CREATE sends before its changes; the caller deletes it. NULL with *err. */
cJSON *adm_template(const struct adm_run *r, const char *target, enum adm_who who, struct base_err *err);
/* Applies one change text to `obj`. */
int adm_change(struct adm_run *r, cJSON *obj, const char *change, struct base_err *err);
/* `$` substitutions. The caller frees the result; NULL with *err. */
char *adm_expand(struct adm_run *r, const char *text, struct base_err *err);
/* Is the value at the path of `change` ("path=JSON" or "-path") what it says? */
int adm_same(struct adm_run *r, const cJSON *obj, const char *change, struct base_err *err);

/* What came of a statement. `text` explains a failure in full. */
struct adm_verdict {
    bool ok;
    long code;    /* that came; 0 where there is none */
    char got[96]; /* "422 Invalid" */
    char *text;
};
void adm_verdict_fini(struct adm_verdict *v);
/* Runs one statement. Sends it as a dry run with `manager` as field manager when `manager` is not NULL. */
void adm_run_stmt(struct adm_run *r, const struct adm_stmt *st, const char *manager, struct adm_verdict *ret);
/* Deletes what the run made. */
void adm_run_clean(struct adm_run *r);

/* ---- the two programs */
/* Grants agents, foundations and operators every verb, or takes that back; returns when it acts. */
int adm_set_wide(struct adm_client *c, bool on, struct base_err *err);
/* A number that no run has had. */
unsigned adm_next_number(void);
int adm_mutants(const struct adm_lab *lab, const struct adm_suite *suite, const char *only);

#endif
