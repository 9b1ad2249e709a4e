/* SPDX-License-Identifier: Apache-2.0
 *
 * kube_int.h - between the files of this folder.
 */
#ifndef KUBE_INT_H
#define KUBE_INT_H

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"
#include "kube/client.h"

#define KUBE_FILE_MAX ((size_t)1 << 20)   /* kubeconfig, CA bundle, certificate */
#define KUBE_TOKEN_MAX ((size_t)16 << 10) /* a bearer token */

/* ---- file.c: small files and texts */
/* The whole file with a NUL behind it, base_free. BASE_OK, BASE_ENOTFOUND, BASE_EIO, BASE_EFULL, BASE_ENOMEM,
 * BASE_EINVAL (a NUL in it); the text names the path. */
int kube_file_read(char **ret, size_t *ret_len, const char *path, size_t max, struct base_err *err);
/* Standard base64 with padding; white space is skipped. BASE_OK, BASE_EINVAL, BASE_ENOMEM. */
int kube_base64(char **ret, size_t *ret_len, struct base_str s);
/* Cuts white space at both ends; BASE_EINVAL when nothing is left or when it holds what cannot be in a
 * header. */
int kube_token_clean(char *token, struct base_err *err);
/* BASE_OK when the PEM holds a certificate, or the pair belongs together. */
int kube_pem_ca(const char *pem, struct base_err *err);
int kube_pem_pair(const char *cert, const char *key, struct base_err *err);
/* Overwrites and frees a secret. NULL ok; returns NULL. */
char *kube_wipe(char *secret);
/* A copy that the caller frees; NULL stays NULL. False: no memory. */
bool kube_dup(char **dst, const char *src);

/* ---- yaml.c: one YAML document as a tree */
enum kube_ykind { KUBE_Y_NULL = 1, KUBE_Y_SCALAR, KUBE_Y_MAP, KUBE_Y_LIST };
struct kube_ynode {
    enum kube_ykind kind;
    const char *key; /* in a map */
    const char *text;
    bool plain; /* scalar without quotes */
    unsigned line;
    struct kube_ynode *first, *last, *next; /* children in order */
};
/* Lives in `a`. Refuses: aliases, duplicate keys, more than one document, NUL in a scalar, more than 32
 * levels. An empty text is a NULL node. BASE_OK, BASE_EINVAL (with the line), BASE_ENOMEM. */
int kube_yaml_parse(struct kube_ynode **ret, struct base_arena *a, struct base_str text,
                    struct base_err *err);
/* The child with this key; NULL when there is none or it is null. */
const struct kube_ynode *kube_yaml_get(const struct kube_ynode *map, const char *key);

/* ---- url.c */
struct kube_url {
    char host[256]; /* without brackets */
    bool v6, ip;    /* host is an IPv6 literal; an IP literal of either kind */
    int port;
    char prefix[512]; /* "" or "/…" without a slash at the end */
};
/* https only, no user, query or fragment. BASE_OK or BASE_EINVAL. */
int kube_url_parse(struct kube_url *ret, const char *url, struct base_err *err);
/* "host:port", with brackets where needed. */
void kube_url_hostport(char *dst, size_t size, const struct kube_url *u);
/* A request path: begins with '/', printable ASCII, no fragment, no "." or ".." segment. BASE_OK or
 * BASE_EINVAL. */
int kube_path_check(const char *path, struct base_err *err);

/* ---- config.c */
struct kube_config {
    char *server, *ns, *tls_server_name, *proxy;
    /* PEM as it stands now, and the files to read again (NULL: it was inline) */
    char *ca, *cert, *key, *token;
    char *ca_file, *cert_file, *key_file, *token_file;
    struct kube_exec *exec; /* NULL: none; what it gave is in token, cert and key */
    base_wall until;        /* of the plug-in's credentials; 0 = until they are refused */
};
#define KUBE_IN_CLUSTER_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
/* In-cluster with everything as an argument. */
int kube_config_in_cluster(struct kube_config **ret, const char *host, const char *port, const char *dir,
                           struct base_err *err);
struct kube_config *kube_config_dup(const struct kube_config *c);
/* Checks the whole: URL, names, PEM, token; reads the files that it names. Fills server in its normal form. */
int kube_config_finish(struct kube_config *c, struct base_err *err);

/* ---- exec.c: a plug-in that knows who we are */
/* From a user's `exec` and the cluster beside it; `file`: the kubeconfig. BASE_OK, BASE_EINVAL (with line and
 * field), BASE_ENOMEM. */
int kube_exec_read(struct kube_exec **ret, const struct kube_ynode *exec, const struct kube_ynode *cluster,
                   const char *file, struct base_err *err);
struct kube_exec *kube_exec_dup(const struct kube_exec *e);
struct kube_exec *kube_exec_free(struct kube_exec *e);
/* Runs it and waits for its end; c->token, cert, key and until are new then, or as they were. BASE_OK;
 * BASE_EIO (not started), BASE_EDENIED (it failed, or wants a terminal), BASE_EPROTO (its answer),
 * BASE_EFULL, BASE_EINVAL, BASE_ENOMEM. No text holds what it wrote. */
int kube_exec_run(struct kube_config *c, struct base_err *err);

/* ---- creds.c: who we are, read again from the files */
struct loop_log;
struct kube_creds {
    struct kube_config *c;
    struct loop_log *log;
    base_time next_read; /* CLOCK_BOOTTIME */
    uint64_t gen;        /* grows with each change */
};
#define KUBE_REREAD (60 * BASE_SEC)
#define KUBE_RETRY (10 * BASE_SEC) /* after a failed read */
void kube_creds_init(struct kube_creds *cr, struct kube_config *c, struct loop_log *log, base_time now);
void kube_creds_fini(struct kube_creds *cr);
/* Reads the files again when it is time, or at once when forced; keeps the last good content otherwise. */
void kube_creds_refresh(struct kube_creds *cr, base_time now, bool force);

/* ---- status.c */
struct kube_status {
    char reason[64];
    char message[256]; /* one line, without control characters; the start of the body when it is no Status */
    base_time retry_after;
};
/* Never fails: whatever the body is, something comes out. */
void kube_status_parse(struct kube_status *ret, struct base_str body);
/* The base_code that an HTTP status stands for (BASE_OK below 400). */
int kube_status_code(int http_status);

/* ---- frame.c: lines out of chunks */
#define KUBE_LINE_MAX ((size_t)4 << 20)
struct kube_frame {
    struct base_buf part; /* an unfinished line */
};
/* false = stop. */
typedef bool (*kube_frame_fn)(void *arg, struct base_str line);
void kube_frame_init(struct kube_frame *f, size_t max);
void kube_frame_fini(struct kube_frame *f);
/* Calls `fn` for each line that is complete now (without its end, empty ones left out). BASE_OK; BASE_EFULL:
 * a line is too long; BASE_ENOMEM; BASE_ECLOSED: fn said stop, and *f may be gone. */
int kube_frame_feed(struct kube_frame *f, struct base_str piece, kube_frame_fn fn, void *arg);
/* The last line of a stream that ended in good order need not have an end. */
int kube_frame_end(struct kube_frame *f, kube_frame_fn fn, void *arg);

/* ---- resolve.c: the server's addresses, known beforehand */
struct loop;
struct kube_resolve;
/* Starts asking. BASE_OK or BASE_ENOMEM. */
int kube_resolve_new(struct kube_resolve **ret, struct loop *l, const struct kube_url *u);
struct kube_resolve *kube_resolve_free(struct kube_resolve *r);
/* "host:port:address,address" of the last good answer, NULL before the first. Asks again when it is older
 * than 30 s; never waits. */
const char *kube_resolve_get(struct kube_resolve *r, base_time now);

#endif
