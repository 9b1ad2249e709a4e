/* SPDX-License-Identifier: Apache-2.0
 *
 * loop/log.h - log lines in the shape that Kubernetes components write (JSON), or text for people.
 *
 * Any thread. One line per call, written with one write(2) to stderr, at most 4 KiB (longer values are cut
 * and marked). Nobody waits longer than 20 ms, and only once, for a reader that does not read, or for another
 * thread that was stopped while it wrote: the line is lost, and counted in the next one that goes (log_lost).
 * Identities are fields; tokens, keys, payload and grants are never passed here. Equal events are
 * rate-limited per call site key: LOOP_LOG_BURST lines, then one summary per second with `suppressed`.
 *
 *     loop_log(log, LOOP_INFO, "session_state", "session moved",
 *              LOG_STR("connector", name), LOG_INT("epoch", e), LOG_END);
 */
#ifndef LOOP_LOG_H
#define LOOP_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum loop_level { LOOP_ERROR = 0, LOOP_WARN, LOOP_INFO, LOOP_DEBUG };
enum loop_field_kind { LOOP_F_END = 0, LOOP_F_STR, LOOP_F_INT, LOOP_F_BOOL };
struct loop_field {
    enum loop_field_kind kind;
    const char *key; /* lowerCamelCase */
    const char *str;
    int64_t num;
};
#define LOG_STR(k, v) ((struct loop_field){LOOP_F_STR, (k), (v), 0})
#define LOG_INT(k, v) ((struct loop_field){LOOP_F_INT, (k), (const char *)0, (int64_t)(v)})
#define LOG_BOOL(k, v) ((struct loop_field){LOOP_F_BOOL, (k), (const char *)0, (v) ? 1 : 0})

/* Lines of one event (and level) per second before the rest is only counted. */
#define LOOP_LOG_BURST 50

struct loop_log;
/* `fd` stays the caller's. NULL when there is no memory. */
struct loop_log *loop_log_new(int fd, enum loop_level max, bool json, const char *logger);
struct loop_log *loop_log_free(struct loop_log *l);
void loop_log_level(struct loop_log *l, enum loop_level max);
/* Messages of this level so far, written or not (below the level, rate-limited). Any thread. */
uint64_t loop_log_count(struct loop_log *l, enum loop_level level);
/* Writes the summaries that are due (also done by every log call and by free); for a timer of the owner. */
void loop_log_flush(struct loop_log *l);
/* `event` is a constant ("session_state"), `msg` a plain sentence. NULL log = nothing. */
void loop_log_fields(struct loop_log *l, enum loop_level level, const char *event, const char *msg,
                     const struct loop_field *fields, unsigned n);
#define loop_log(l, level, event, msg, ...)                                                                  \
    loop_log_fields((l), (level), (event), (msg), (const struct loop_field[]){__VA_ARGS__},                  \
                    sizeof((const struct loop_field[]){__VA_ARGS__}) / sizeof(struct loop_field))
#define LOG_END ((struct loop_field){LOOP_F_END, (const char *)0, (const char *)0, 0})

#endif
