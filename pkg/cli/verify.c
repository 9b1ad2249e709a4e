/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/verify.c - audit verify: is the chain whole?
 */
#include "cli/cli_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "audit/chain.h"
#include "journal/trail.h"

#define PEM_MAX 16384

struct run { /* one trail */
    struct cli *c;
    struct base_hasher *hasher;
    struct audit_verifier v;
    char first[512], file[512];
    cJSON *trails;
    bool flawed, any;
};

static bool on_file(void *arg, const char *path, uint64_t last_seq, base_wall mtime)
{
    struct run *r = arg;

    (void)last_seq;
    (void)mtime;
    if (r->v.flaw)
        return false;
    audit_verifier_file(&r->v);
    (void)base_fmt(r->file, sizeof r->file, "%s", path);
    return true;
}

static int on_line(void *arg, uint64_t number, struct base_str line, bool whole)
{
    struct run *r = arg;

    (void)number;
    return audit_verifier_line(&r->v, r->hasher, line, whole) ? BASE_ECLOSED : BASE_OK;
}

static void begin(struct run *r, const char *path, const struct base_key *const *keys)
{
    audit_verifier_init(&r->v);
    r->v.keys = keys;
    r->v.n_keys = r->c->a.n_keys;
    (void)base_fmt(r->first, sizeof r->first, "%s", path);
    (void)base_copy(r->file, sizeof r->file, r->first);
    r->any = true;
}

static void conclude(struct run *r)
{
    const struct audit_verifier *v = &r->v;
    bool json = r->c->a.format == CLI_JSON || r->c->a.format == CLI_YAML, unsigned_trail;
    char hex[2 * BASE_SHA256_SIZE + 1];
    uint64_t loose;

    if (!r->any)
        return;
    r->any = false;
    (void)audit_verifier_end(&r->v);
    base_hex(hex, v->chain.hash, sizeof v->chain.hash);
    unsigned_trail = !v->flaw && v->n_keys && v->signed_seq == 0;
    loose = v->n_keys && v->signed_seq ? v->chain.seq - v->signed_seq - (v->chain.seq > v->signed_seq) : 0;
    r->flawed |= v->flaw != AUDIT_FLAW_NONE || unsigned_trail;
    if (json) {
        cJSON *o = cJSON_CreateObject();

        cli_add_str(o, "trail", r->first);
        cli_add_str(o, "node", v->node);
        (void)cJSON_AddBoolToObject(o, "good", v->flaw == AUDIT_FLAW_NONE && !unsigned_trail);
        cli_add_int(o, "files", (int64_t)v->files);
        cli_add_int(o, "records", (int64_t)v->records);
        cli_add_int(o, "tornLines", (int64_t)v->torn);
        cli_add_int(o, "checkpoints", (int64_t)v->checkpoints);
        cli_add_int(o, "lastSeq", (int64_t)v->chain.seq);
        cli_add_str(o, "lastHash", hex);
        if (v->n_keys)
            cli_add_int(o, "signedSeq", (int64_t)v->signed_seq);
        if (v->flaw) {
            cli_add_str(o, "file", r->file);
            cli_add_int(o, "line", (int64_t)v->flaw_line);
            cli_add_str(o, "flaw", audit_flaw_name(v->flaw));
        } else if (unsigned_trail) {
            cli_add_str(o, "flaw", "no checkpoint is signed by a given key");
        }
        (void)cJSON_AddItemToArray(r->trails, o);
        return;
    }
    if (v->flaw)
        (void)fprintf(r->c->out, "%sFLAW%s  %s:%llu: %s\n", cli_on(r->c, CLI_BAD), cli_off(r->c), r->file,
                      (unsigned long long)v->flaw_line, audit_flaw_name(v->flaw));
    else if (unsigned_trail)
        (void)fprintf(r->c->out, "%sFLAW%s  %s: no checkpoint is signed by a given key\n",
                      cli_on(r->c, CLI_BAD), cli_off(r->c), r->first);
    else
        (void)fprintf(
            r->c->out,
            "%sgood%s  %s: node %s, %llu records in %llu files, lines up to %llu, last hash %.16s…\n",
            cli_on(r->c, CLI_GOOD), cli_off(r->c), r->first, v->node[0] ? v->node : "(none)",
            (unsigned long long)v->records, (unsigned long long)v->files, (unsigned long long)v->chain.seq,
            hex);
    if (!v->flaw && v->torn)
        (void)fprintf(r->c->out, "      %llu line(s) that a crash tore off\n", (unsigned long long)v->torn);
    if (!v->flaw && v->n_keys && v->signed_seq)
        (void)fprintf(r->c->out,
                      "      signed up to line %llu; %llu line(s) after the last checkpoint are not\n",
                      (unsigned long long)v->signed_seq, (unsigned long long)loose);
    else if (!v->flaw && !v->n_keys && v->checkpoints)
        (void)fprintf(r->c->out,
                      "      %llu checkpoint(s), whose signatures were not verified (--key FILE does)\n",
                      (unsigned long long)v->checkpoints);
}

static int read_key(struct base_key **ret, const char *path, struct base_err *err)
{
    FILE *f = fopen(path, "re");
    char pem[PEM_MAX];
    size_t n;
    int rc;

    if (!f)
        return base_err_sys(err, BASE_EIO, errno, "--key %s: cannot be read", path);
    n = fread(pem, 1, sizeof pem, f);
    (void)fclose(f);
    rc = base_key_public(ret, (struct base_str){pem, n}, err);
    return rc ? base_err_wrap(err, "--key %s", path) : BASE_OK;
}

/* Do two arguments belong to one trail: files of one directory? */
static bool same_trail(const char *a, const char *b)
{
    const char *sa = strrchr(a, '/'), *sb = strrchr(b, '/');
    size_t na = sa ? (size_t)(sa - a) : 0, nb = sb ? (size_t)(sb - b) : 0;
    struct stat st;

    return na == nb && memcmp(a, b, na) == 0 && !(stat(a, &st) == 0 && S_ISDIR(st.st_mode)) &&
           !(stat(b, &st) == 0 && S_ISDIR(st.st_mode));
}

static int verify_all(struct cli *c, struct run *r, const struct base_key *const *keys)
{
    struct journal_reader jr = {r, on_file, on_line};
    int code = CLI_EXIT_OK;

    for (size_t i = 0; i < c->a.n_rest; i++) {
        struct base_err err = {0};
        int rc;

        if (i == 0 || !r->any || !same_trail(c->a.rest[i - 1], c->a.rest[i])) {
            conclude(r);
            begin(r, c->a.rest[i], keys);
        }
        rc = journal_read(c->a.rest[i], &jr, &err);
        if (rc && rc != BASE_ECLOSED) {
            code = cli_fail(c, CLI_EXIT_BLIND, "%s", err.msg);
            if (r->v.flaw) /* found before: not less wrong for what cannot be read */
                conclude(r);
            r->any = false;
        }
    }
    conclude(r);
    return r->flawed ? CLI_EXIT_FOUND : code;
}

int cli_verify(struct cli *c)
{
    struct base_key *keys[CLI_KEYS_MAX] = {NULL};
    const struct base_key *view[CLI_KEYS_MAX] = {NULL};
    struct run *r = base_calloc(1, sizeof *r);
    struct base_err err = {0};
    int code = CLI_EXIT_OK;

    if (!r)
        return cli_fail(c, CLI_EXIT_BLIND, "no memory");
    r->c = c;
    r->hasher = base_hasher_new();
    r->trails = cJSON_CreateArray();
    for (size_t i = 0; i < c->a.n_keys && code == CLI_EXIT_OK; i++) {
        if (read_key(&keys[i], c->a.keys[i], &err))
            code = cli_fail(c, CLI_EXIT_USAGE, "%s", err.msg);
        view[i] = keys[i];
    }
    if (code == CLI_EXIT_OK)
        code = r->hasher ? verify_all(c, r, view) : cli_fail(c, CLI_EXIT_BLIND, "no memory");
    if (code != CLI_EXIT_USAGE && (c->a.format == CLI_JSON || c->a.format == CLI_YAML)) {
        cJSON *doc = cJSON_CreateObject();

        (void)cJSON_AddBoolToObject(doc, "good", code == CLI_EXIT_OK);
        (void)cJSON_AddItemToObject(doc, "trails", r->trails);
        cli_print_doc(c, doc);
    } else {
        cJSON_Delete(r->trails);
    }
    for (size_t i = 0; i < c->a.n_keys; i++)
        base_key_free(keys[i]);
    base_hasher_free(r->hasher);
    base_free(r);
    return code;
}
