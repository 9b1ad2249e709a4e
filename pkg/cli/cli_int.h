/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/cli_int.h - the tool's own insides: its command line, its output, and one function per command.
 */
#ifndef CLI_CLI_INT_H
#define CLI_CLI_INT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "audit/parse.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "contract/contract.h"

#define CLI_NAMESPACE "holdfast-system"
enum { CLI_EXIT_OK = 0, CLI_EXIT_FOUND = 1, CLI_EXIT_USAGE = 2, CLI_EXIT_BLIND = 3 };

/* ---- command line (args.c) */
enum cli_format { CLI_TABLE = 0, CLI_WIDE, CLI_JSON, CLI_YAML };
enum cli_command_id {
    CLI_STATUS = 1,
    CLI_VERIFY,
    CLI_SHOW,
    CLI_EXPLAIN,
    CLI_PRUNE,
    CLI_INSTANCES,
    CLI_CLAIMS,
    CLI_SESSIONS,
    CLI_DRAIN,
    CLI_UNDRAIN,
    CLI_EVENTS,
    CLI_COMPLETION,
    CLI_VERSION,
    CLI_CHECK,
    CLI_DUMP,
    CLI_HELP,
};
#define CLI_KEYS_MAX 8
#define CLI_AGENTS_MAX 64
#define CLI_REST_MAX 1024
struct cli_args {
    const char *name; /* how the tool was called: "kubectl holdfast" */
    enum cli_command_id command;
    bool help, dry_run, from_agents, client_only;
    enum cli_format format;
    const char *ns, *context, *kubeconfig;
    const char *connector, *agent_token, *file;
    struct base_correlation correlation; /* zero = not given */
    base_wall since, until;              /* 0 = not given */
    int64_t retention_s, limit, timeout_s;
    uint16_t agent_port;
    const char *keys[CLI_KEYS_MAX];
    size_t n_keys;
    const char *agents[CLI_AGENTS_MAX]; /* "NODE=ADDRESS:PORT" */
    size_t n_agents;
    const char *rest[CLI_REST_MAX];
    size_t n_rest;
};
/* Borrows from argv. BASE_OK, or BASE_EINVAL with a text that names flag, value and remedy. */
int cli_args_parse(struct cli_args *ret, int argc, char **argv, base_wall now, struct base_err *err);
/* "90s", "10m", "2h", "7d": seconds. BASE_OK or BASE_EINVAL. */
int cli_duration(const char *text, int64_t *ret_s);
void cli_help(FILE *out, const struct cli_args *a);
/* A script for bash: commands and their flags. */
void cli_completion(FILE *out);

/* ---- the run */
struct cli_api;
struct cli {
    struct cli_args a;
    FILE *out, *err;
    bool colour;
    base_wall now;
    struct cli_api *api; /* opened by the first who needs it */
};
int cli_status(struct cli *c);
int cli_verify(struct cli *c);
int cli_show(struct cli *c);
int cli_explain(struct cli *c);
int cli_prune(struct cli *c);
int cli_drain(struct cli *c); /* and undrain, by c->a.command */
int cli_sessions(struct cli *c);
int cli_events(struct cli *c);
int cli_versions(struct cli *c);
int cli_check(struct cli *c);
int cli_dump(struct cli *c);
/* What `check` and `version` found (cJSON_Delete). *ret_blind: something could not be looked at. */
cJSON *cli_check_doc(struct cli *c, bool *ret_blind, bool *ret_failed);
cJSON *cli_version_doc(struct cli *c, bool client_only, bool *ret_blind);
/* "error: …" on c->err; returns `exit`. */
/* A terminal obeys control characters: what others wrote (an Event's note, an agent's answer, a status) is
 * shown with '?' in their place. */
void cli_tame(char *z);
int cli_fail(struct cli *c, int exit, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void cli_warn(struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- output (out.c) */
enum cli_colour { CLI_PLAIN = 0, CLI_BAD, CLI_GOOD, CLI_DOUBT, CLI_STRONG, CLI_FAINT };
/* Escape sequences, or "" when there is no terminal. */
const char *cli_on(const struct cli *c, enum cli_colour colour);
const char *cli_off(const struct cli *c);
/* As JSON or YAML, by c->a.format; frees it. */
void cli_print_doc(struct cli *c, cJSON *doc);
/* For tests: the YAML text of `doc`. */
void cli_yaml(struct base_buf *out, const cJSON *doc);

#define CLI_COLUMNS_MAX 16
struct cli_table {
    const char *head[CLI_COLUMNS_MAX]; /* NULL: no heading line */
    size_t n_columns;
    unsigned wide; /* bit i: column i only with -o wide */
    struct base_arena *arena;
    struct cli_row {
        struct cli_row *next;
        enum cli_colour colour[CLI_COLUMNS_MAX];
        const char *cell[CLI_COLUMNS_MAX];
        size_t group;
    } * rows, **tail;
};
void cli_table_init(struct cli_table *t, const char *const *head, size_t n, unsigned wide);
/* A new row; cells are "" until set. NULL when there is no memory. */
struct cli_row *cli_table_row(struct cli_table *t);
void cli_cell(struct cli_table *t, struct cli_row *r, size_t column, enum cli_colour colour, const char *fmt,
              ...) __attribute__((format(printf, 5, 6)));
/* Prints and releases it. */
void cli_table_print(struct cli *c, struct cli_table *t, const char *indent);
/* Prints the rows of one group (row->group) under the widths of the whole table. */
void cli_table_print_group(struct cli *c, const struct cli_table *t, size_t group, bool heading,
                           const char *indent);
void cli_table_fini(struct cli_table *t);

/* "4s", "3m12s", "2h5m", "6d"; negative: "in 4s". */
#define CLI_AGE_SIZE 24
void cli_age(char dst[CLI_AGE_SIZE], base_wall now, base_wall then);
/* A member's text; "" when there is none, or it is something else. */
const char *cli_text(const cJSON *o, const char *key);
/* Adds members when they are there. */
void cli_add_str(cJSON *o, const char *key, const char *value);
void cli_add_int(cJSON *o, const char *key, int64_t value);
void cli_add_time(cJSON *o, const char *key, base_wall t);
void cli_add_uuid(cJSON *o, const char *key, const struct base_uuid *u);
void cli_add_prefix(cJSON *o, const char *key, const struct base_prefix *p);
cJSON *cli_record_json(const struct audit_line *l);

/* ---- API server (api.c) */
struct cli_list { /* objects of one kind */
    struct contract_object *o;
    size_t n, room;
    bool seen; /* the listing worked */
};
/* Opens c->api when it is not open. BASE_OK, or a text with remedy. */
int cli_api_open(struct cli *c, struct base_err *err);
void cli_api_close(struct cli *c);
const char *cli_api_namespace(const struct cli *c);
const char *cli_api_server(const struct cli *c);
/* All objects of a kind; `fields` is a field selector or NULL. An object that cannot be read is warned of and
 * left out. */
int cli_api_list(struct cli *c, enum contract_kind kind, const char *fields, struct cli_list *ret,
                 struct base_err *err);
void cli_list_fini(struct cli_list *l);
/* The same one by one, for kinds of which there are many: `fn` gets each, for the call only, and may end the
 * listing with an error; `restart` is called before the first, and again when the API server could not go on
 * with a list. */
typedef int (*cli_object_fn)(void *arg, const struct contract_object *o, struct base_err *err);
int cli_api_each(struct cli *c, enum contract_kind kind, const char *fields, cli_object_fn fn,
                 void (*restart)(void *arg), void *arg, struct base_err *err);
/* What both rest on: one page after the other. `query`: escaped, with its limit; `header`: NULL, or one line. `fn` gets
 * each page's text and says with cli_page_next what comes after it. */
struct contract_json;
typedef int (*cli_page_fn)(void *arg, struct base_str text, struct base_buf *next, struct base_err *err);
int cli_api_pages(struct cli *c, enum contract_kind kind, const char *query, const char *header,
                  cli_page_fn fn, void *arg, struct base_err *err);
int cli_page_next(struct base_buf *next, const struct contract_json *list);
/* Each claim with what `status` shows of it, and nothing else filled in. */
int cli_claim_rows(struct cli *c, cli_object_fn fn, void (*restart)(void *arg), void *arg,
                   struct base_err *err);
/* BASE_ENOTFOUND: there is none. */
int cli_api_get(struct cli *c, enum contract_kind kind, const char *name, struct contract_object *ret,
                struct base_err *err);
/* With uid and resourceVersion of *o as preconditions. BASE_ECONFLICT: it changed meanwhile. */
int cli_api_delete(struct cli *c, const struct contract_object *o, struct base_err *err);
/* Any request; `body` takes the answer's text, which lives until its fini. `header` NULL: none. Returns
 * BASE_OK for a status below 300. */
int cli_api_call(struct cli *c, const char *method, const char *path, const char *json, const char *header,
                 struct base_buf *body, int *ret_status, struct base_err *err);
/* A GET's answer of at most `max` bytes; cJSON_Delete. NULL: err says why. */
cJSON *cli_api_json(struct cli *c, const char *path, size_t max, struct base_err *err);
/* Holdfast's own Events, as the API server lists them; others' notes may hold anything. The same. */
cJSON *cli_events_list(struct cli *c, struct base_err *err);
/* The same on plain HTTP at ADDRESS:PORT (an agent's own page). */
int cli_api_plain(struct cli *c, const char *address, const char *path, const char *header,
                  struct base_buf *body, int *ret_status, struct base_err *err);

/* "v1.35.2" */
int cli_server_version(struct cli *c, char *dst, size_t size, struct base_err *err);
/* Is the group served with every field? BASE_EINVAL: no, and what to do. */
int cli_served(struct cli *c, const char *group, struct base_err *err);

/* ---- the trail (trail.c, agents.c) */
#define CLI_BLIND_MAX 64
struct cli_trail { /* what was found, in order of time */
    struct audit_line *l;
    size_t n, room, limit; /* the newest `limit` are kept */
    bool cut;              /* there were more */
    uint64_t bad_lines;
    char nodes[CLI_BLIND_MAX][CONTRACT_NODE_SIZE]; /* whose trail was read */
    size_t n_nodes;
    char blind[CLI_BLIND_MAX][320]; /* what could not be seen, and why */
    size_t n_blind;
};
void cli_trail_init(struct cli_trail *t, size_t limit);
void cli_trail_fini(struct cli_trail *t);
/* From the files and directories in c->a.rest[from..] and, with --from-agents or --agent, from the agents. */
void cli_trail_read(struct cli *c, struct cli_trail *t, const struct audit_query *q, size_t from);
void cli_trail_agents(struct cli *c, struct cli_trail *t, const struct audit_query *q);
void cli_trail_add(struct cli_trail *t, const struct audit_line *l);
void cli_trail_node(struct cli_trail *t, const char *node);
bool cli_trail_saw(const struct cli_trail *t, const char *node);
void cli_trail_blind(struct cli_trail *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A page of the agent (JSON lines and a last line about the page) into `t`. *ret_next: where to go on, 0 =
 * that was all. BASE_OK or BASE_EPROTO. */
int cli_trail_page(struct cli_trail *t, const struct audit_query *q, struct base_str page, uint64_t *ret_next,
                   struct base_err *err);
/* The names under which records speak of a connector (show.c). */
void cli_connector_objects(struct cli *c, struct cli_trail *t, const char *name, struct audit_query *q);
void cli_records_table(struct cli *c, const struct cli_trail *t, size_t from, const char *indent);
/* Adds records, auditOfNodes and notSeen; returns `doc`. */
cJSON *cli_trail_doc(const struct cli_trail *t, cJSON *doc);

#endif
