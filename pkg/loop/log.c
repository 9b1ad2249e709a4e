/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loop/loop.h"

#define LINE_MAX_BYTES 4096
#define VALUE_MAX_BYTES 1024 /* of a value, escapes counted; the rest is cut and marked */
#define NAME_MAX_BYTES 128   /* of logger, event and keys */
#define TAIL_BYTES 32        /* kept free for what closes a line */
#define N_SLOTS 128
#define PATIENCE (20 * BASE_MS) /* with whoever has the lock, and with whoever reads */

/* How often one event came in the running second. */
struct slot {
    const char *event; /* constant text of the caller */
    enum loop_level level;
    base_time since;
    uint32_t count;
    uint64_t suppressed;
};

struct loop_log {
    pthread_mutex_t lock;
    int fd;
    atomic_int max;
    _Atomic uint64_t counts[4]; /* by level */
    _Atomic uint64_t lost;      /* lines, since it was last said */
    atomic_bool stuck;          /* patience ended in vain, and nothing went since: nobody has any more */
    bool json, torn;            /* torn: the last line was written in part */
    char *logger;
    struct slot slots[N_SLOTS];
};

/* One line in the making. `full` once something did not fit: then nothing more is added. */
struct line {
    char buf[LINE_MAX_BYTES];
    size_t n;
    bool full;
};

static void add(struct line *o, const char *p, size_t n)
{
    if (o->full || n > sizeof o->buf - TAIL_BYTES - o->n) {
        o->full = true;
        return;
    }
    memcpy(o->buf + o->n, p, n);
    o->n += n;
}

static void addz(struct line *o, const char *z)
{
    add(o, z, strlen(z));
}

static void add_int(struct line *o, int64_t v)
{
    char t[24];

    base_fmt(t, sizeof t, "%lld", (long long)v);
    addz(o, t);
}

/* Length of the well-formed UTF-8 sequence at p, or 0. */
static size_t utf8_len(const unsigned char *p, size_t left, uint32_t *cp)
{
    size_t n = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : (p[0] & 0xf0) == 0xe0       ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;
    uint32_t c;

    if (n == 0 || n > left)
        return 0;
    c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) || (c >= 0xd800 && c < 0xe000))
        return 0;
    *cp = c;
    return n;
}

/* The text as the inside of a JSON string: no control character, no line break of any kind, no bidirectional
 * override, valid UTF-8; at most `max` bytes come out (and the mark). */
static void add_escaped(struct line *o, const char *z, size_t max)
{
    size_t len = z ? strnlen(z, max + 1) : 0, end = o->n + max, i = 0, k, w;

    while (i < len && !o->full) {
        uint32_t c = 0;
        char t[8] = {'\\', 0};
        const char *src = t;

        k = utf8_len((const unsigned char *)z + i, len - i, &c);
        if (k == 0) {
            memcpy(t, "\\ufffd", 7);
            w = 6;
            k = 1;
        } else if (c == '"' || c == '\\') {
            t[1] = (char)c;
            w = 2;
        } else if (c == '\n' || c == '\r' || c == '\t') {
            t[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
            w = 2;
        } else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
                   (c >= 0x200e && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
                   (c >= 0x2066 && c <= 0x2069)) {
            base_fmt(t, sizeof t, "\\u%04x", (unsigned)c);
            w = 6;
        } else {
            src = z + i;
            w = k;
        }
        if (o->n + w > end) {
            addz(o, "...(cut)");
            return;
        }
        add(o, src, w);
        i += k;
    }
}

static void add_quoted(struct line *o, const char *z, size_t max)
{
    addz(o, "\"");
    add_escaped(o, z, max);
    addz(o, "\"");
}

/* In text, a value that needs no quotes has none. */
static void add_text_value(struct line *o, const char *z)
{
    size_t n = z ? strnlen(z, VALUE_MAX_BYTES + 1) : 0;
    bool plain = n > 0 && n <= VALUE_MAX_BYTES;

    for (size_t i = 0; plain && i < n; i++)
        plain = z[i] > ' ' && z[i] < 0x7f && z[i] != '"' && z[i] != '\\' && z[i] != '=';
    if (plain)
        add(o, z, n);
    else
        add_quoted(o, z, VALUE_MAX_BYTES);
}

static void add_field(struct line *o, bool json, const struct loop_field *f)
{
    size_t mark = o->n;

    if (json) {
        addz(o, ",");
        add_quoted(o, f->key, NAME_MAX_BYTES);
        addz(o, ":");
    } else {
        addz(o, " ");
        add_escaped(o, f->key, NAME_MAX_BYTES);
        addz(o, "=");
    }
    switch (f->kind) {
    case LOOP_F_STR:
        if (json)
            add_quoted(o, f->str, VALUE_MAX_BYTES);
        else
            add_text_value(o, f->str);
        break;
    case LOOP_F_INT:
        add_int(o, f->num);
        break;
    case LOOP_F_BOOL:
        addz(o, f->num ? "true" : "false");
        break;
    case LOOP_F_END:
        break;
    }
    if (o->full)
        o->n = mark; /* a field is there whole or not at all */
}

/* Kubernetes' component-base: ts in ms since 1970, v = verbosity for information, err for errors. */
static void build(struct line *o, const struct loop_log *l, enum loop_level level, const char *event,
                  const char *msg, const struct loop_field *fields, unsigned n)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    base_wall now = loop_wall();
    bool has_err = false, cut;
    char t[BASE_RFC3339_SIZE + 16];

    for (unsigned i = 0; i < n && fields[i].kind != LOOP_F_END; i++)
        has_err = has_err || strcmp(fields[i].key, "err") == 0;
    o->n = 0;
    o->full = false;
    if (l->json) {
        base_fmt(t, sizeof t, "{\"ts\":%lld.%03lld,", (long long)(now / 1000), (long long)(now % 1000));
        addz(o, t);
        if (level != LOOP_ERROR)
            addz(o, level == LOOP_DEBUG ? "\"v\":4," : "\"v\":0,");
        addz(o, "\"level\":");
        add_quoted(o, names[level], NAME_MAX_BYTES);
        addz(o, ",\"logger\":");
        add_quoted(o, l->logger, NAME_MAX_BYTES);
        addz(o, ",\"event\":");
        add_quoted(o, event, NAME_MAX_BYTES);
        addz(o, ",\"msg\":");
        add_quoted(o, msg, VALUE_MAX_BYTES);
        if (level == LOOP_ERROR && !has_err) {
            addz(o, ",\"err\":");
            add_quoted(o, msg, VALUE_MAX_BYTES);
        }
    } else {
        base_rfc3339(t, now);
        addz(o, t);
        base_fmt(t, sizeof t, " %-5s ", names[level]);
        addz(o, t);
        add_escaped(o, l->logger, NAME_MAX_BYTES);
        addz(o, " ");
        add_escaped(o, event, NAME_MAX_BYTES);
        addz(o, ": ");
        add_escaped(o, msg, VALUE_MAX_BYTES);
    }
    for (unsigned i = 0; i < n && !o->full && fields[i].kind != LOOP_F_END; i++)
        add_field(o, l->json, &fields[i]);
    cut = o->full;
    o->full = false;
    /* TAIL_BYTES are free for this */
    if (cut) {
        const char *z = l->json ? ",\"truncated\":true" : " truncated=true";

        memcpy(o->buf + o->n, z, strlen(z));
        o->n += strlen(z);
    }
    if (l->json)
        o->buf[o->n++] = '}';
    o->buf[o->n++] = '\n';
}

/* False: somebody has the lock and stands still (a thread that was stopped). Not pthread_mutex_timedlock,
 * whose time is the wall clock's, nor _clocklock, which the thread sanitizer does not know. */
static bool take_lock(struct loop_log *l)
{
    static const struct timespec nap = {.tv_nsec = 200 * BASE_US};

    for (unsigned i = 0; i < 100; i++) {
        if (pthread_mutex_trylock(&l->lock) == 0)
            return true;
        if (atomic_load(&l->stuck))
            return false;
        (void)sched_yield();
    }
    for (base_time until = loop_clock() + PATIENCE; loop_clock() < until;) {
        if (pthread_mutex_trylock(&l->lock) == 0)
            return true;
        (void)nanosleep(&nap, NULL);
    }
    atomic_store(&l->stuck, true);
    return false;
}

/* Under the lock. False: nobody reads what was written before. A pipe that says so takes a whole line. */
static bool takes_a_line(struct loop_log *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};
    int n;

    do
        n = poll(&p, 1, atomic_load(&l->stuck) ? 0 : (int)(PATIENCE / BASE_MS));
    while (n < 0 && errno == EINTR);
    atomic_store(&l->stuck, n == 0);
    return n != 0;
}

/* Under the lock. A line that could be written in part only is closed before the next one. */
static void emit(struct loop_log *l, struct line *o)
{
    size_t done = 0;

    if (!takes_a_line(l)) {
        atomic_fetch_add(&l->lost, 1);
        return;
    }
    if (l->torn) {
        if (write(l->fd, "\n", 1) != 1)
            return;
        l->torn = false;
    }
    while (done < o->n) {
        ssize_t r = write(l->fd, o->buf + done, o->n - done);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0) {
            l->torn = done > 0;
            return;
        }
        done += (size_t)r;
    }
}

/* Under the lock: writes "so many more of that event" for each slot whose second is over. */
static void summaries(struct loop_log *l, base_time now, bool all)
{
    struct line o;

    for (unsigned i = 0; i < N_SLOTS; i++) {
        struct slot *s = &l->slots[i];

        if (!s->suppressed || (!all && now - s->since < BASE_SEC))
            continue;
        build(&o, l, s->level, s->event, "more of the same were not written",
              &LOG_INT("suppressed", s->suppressed), 1);
        emit(l, &o);
        s->suppressed = 0;
    }
}

/* Under the lock: may this event be written now? */
static bool admit(struct loop_log *l, base_time now, enum loop_level level, const char *event)
{
    struct slot *s = NULL;
    uint32_t h = 2166136261u + (uint32_t)level;

    for (const char *p = event; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    for (unsigned i = 0; i < N_SLOTS; i++) {
        struct slot *c = &l->slots[(h + i) % N_SLOTS];

        if (!c->event || (c->level == level && strcmp(c->event, event) == 0)) {
            s = c;
            break;
        }
    }
    if (!s)
        return true; /* more kinds of events than slots: those go unlimited */
    if (!s->event || now - s->since >= BASE_SEC) {
        s->event = event;
        s->level = level;
        s->since = now;
        s->count = 0;
    }
    if (s->count < LOOP_LOG_BURST) {
        s->count++;
        return true;
    }
    s->suppressed++;
    return false;
}

/* Under the lock. */
static void say_what_was_lost(struct loop_log *l)
{
    uint64_t n = atomic_load(&l->lost);
    struct line o;

    if (n == 0 || !takes_a_line(l))
        return;
    build(&o, l, LOOP_WARN, "log_lost",
          "lines were lost: nobody read them, or a thread that wrote one stood still", &LOG_INT("lines", n),
          1);
    emit(l, &o);
    atomic_fetch_sub(&l->lost, n);
}

struct loop_log *loop_log_new(int fd, enum loop_level max, bool json, const char *logger)
{
    struct loop_log *l = base_calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->logger = base_strdup(logger ? logger : "");
    if (!l->logger)
        return base_free(l);
    if (pthread_mutex_init(&l->lock, NULL) != 0) {
        base_free(l->logger);
        return base_free(l);
    }
    l->fd = fd;
    l->json = json;
    atomic_init(&l->max, (int)max);
    return l;
}

struct loop_log *loop_log_free(struct loop_log *l)
{
    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    say_what_was_lost(l);
    summaries(l, 0, true);
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_destroy(&l->lock);
    base_free(l->logger);
    return base_free(l);
}

void loop_log_level(struct loop_log *l, enum loop_level max)
{
    if (l)
        atomic_store_explicit(&l->max, (int)max, memory_order_relaxed);
}

uint64_t loop_log_count(struct loop_log *l, enum loop_level level)
{
    return l ? atomic_load_explicit(&l->counts[level & 3], memory_order_relaxed) : 0;
}

void loop_log_flush(struct loop_log *l)
{
    if (!l || !take_lock(l))
        return;
    say_what_was_lost(l);
    summaries(l, loop_clock(), false);
    pthread_mutex_unlock(&l->lock);
}

void loop_log_fields(struct loop_log *l, enum loop_level level, const char *event, const char *msg,
                     const struct loop_field *fields, unsigned n)
{
    struct line o;
    base_time now;

    if (l)
        atomic_fetch_add_explicit(&l->counts[level & 3], 1, memory_order_relaxed);
    if (!l || (int)level > atomic_load_explicit(&l->max, memory_order_relaxed))
        return;
    now = loop_clock();
    if (!take_lock(l)) {
        atomic_fetch_add(&l->lost, 1);
        return;
    }
    say_what_was_lost(l);
    summaries(l, now, false);
    if (admit(l, now, level, event)) {
        build(&o, l, level, event, msg, fields, n);
        emit(l, &o);
    }
    pthread_mutex_unlock(&l->lock);
}
