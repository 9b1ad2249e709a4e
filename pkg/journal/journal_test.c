/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/journal.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/chain.h"
#include "journal/trail.h"
#include "base/mem.h"
#include "loop/loop.h"

struct seen {
    unsigned n, durable;
    uint64_t last;
};

static void on_done(void *arg, uint64_t ask, bool durable)
{
    struct seen *s = arg;

    s->n++;
    s->durable += durable;
    s->last = ask;
}

static const char *temp_dir(char *dst)
{
    (void)base_fmt(dst, 64, "/tmp/holdfast-journal-XXXXXX");
    cr_assert_not_null(mkdtemp(dst));
    return dst;
}

/* The whole trail of a directory must verify; returns the verifier. Rotated files first, by number. */
static struct audit_verifier verify_with(const char *dir, const struct base_key *key)
{
    base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
    const struct base_key *const keys[] = {key};
    struct audit_verifier v;
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);

    audit_verifier_init(&v);
    v.keys = keys;
    v.n_keys = key ? 1 : 0;
    cr_assert_geq(n, 0);
    for (int i = 0; i < n; i++) { /* "audit-…" sorts before "audit.jsonl" */
        char path[512];
        char *line = NULL;
        size_t room = 0;
        ssize_t len;
        FILE *f;

        if (strncmp(names[i]->d_name, "audit", 5) == 0) {
            (void)base_fmt(path, sizeof path, "%s/%s", dir, names[i]->d_name);
            f = fopen(path, "re");
            cr_assert_not_null(f);
            audit_verifier_file(&v);
            while ((len = getline(&line, &room, f)) > 0) {
                bool whole = line[len - 1] == '\n';

                (void)audit_verifier_line(&v, h, (struct base_str){line, (size_t)len - whole}, whole);
            }
            free(line);
            (void)fclose(f);
        }
        free(names[i]);
    }
    free(names);
    (void)audit_verifier_end(&v);
    cr_assert_eq(v.flaw, AUDIT_FLAW_NONE, "%s: %s at %lu:%lu", dir, audit_flaw_name(v.flaw),
                 (unsigned long)v.flaw_file, (unsigned long)v.flaw_line);
    return v;
}

static struct audit_verifier verify(const char *dir)
{
    return verify_with(dir, NULL);
}

static void wait_for(struct loop *l, const struct seen *s, unsigned n)
{
    base_time until = loop_clock() + 10 * BASE_SEC;

    while (s->n < n && loop_clock() < until)
        loop_step(l, true);
    cr_assert_eq(s->n, n);
}

Test(journal, lines_are_durable_in_order_and_many_share_a_sync)
{
    struct journal_stats stats;
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    char dir[64];

    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = temp_dir(dir)}, on_done, &seen, NULL),
                 BASE_OK);
    for (unsigned i = 1; i <= 1000; i++) {
        char line[32];

        (void)base_fmt(line, sizeof line, "{\"n\":%u}\n", i);
        cr_assert_eq(journal_append(j, base_str_of(line), i), BASE_OK);
    }
    wait_for(l, &seen, 1000);
    cr_assert_eq(seen.durable, 1000);
    cr_assert_eq(seen.last, 1000);
    journal_stats(j, &stats);
    cr_assert_lt(stats.syncs, 1000, "no group commit: %llu syncs", (unsigned long long)stats.syncs);
    cr_assert(stats.healthy);
    cr_assert_eq(stats.seq, 1001); /* and the start line */
    cr_assert_eq(verify(dir).records, 1000);
    journal_free(j);
    loop_free(l);
}

static unsigned append_some(const char *dir, const struct journal_config *cfg, unsigned n,
                            struct journal_stats *ret)
{
    struct journal_config c = *cfg;
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;

    c.dir = dir;
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &c, on_done, &seen, NULL), BASE_OK);
    for (unsigned i = 1; i <= n; i++) {
        cr_assert_eq(journal_append(j, BASE_STR("{\"event\":\"renew\"}\n"), i), BASE_OK);
        wait_for(l, &seen, i);
    }
    journal_stats(j, ret);
    journal_free(j);
    loop_free(l);
    return seen.durable;
}

Test(journal, the_chain_goes_on_over_restarts_and_rotation_and_the_oldest_files_go)
{
    struct journal_config cfg = {.node = "edge1", .max_file_bytes = 1000, .max_files = 3};
    struct audit_verifier v;
    struct journal_stats stats;
    char dir[64];

    temp_dir(dir);
    cr_assert_eq(append_some(dir, &cfg, 5, &stats), 5);
    cr_assert_eq(append_some(dir, &cfg, 5, &stats), 5);
    v = verify(dir);
    cr_assert_eq(v.records, 10);
    cr_assert_gt(v.files, 1);
    cr_assert_str_eq(v.node, "edge1");
    cr_assert_eq(append_some(dir, &cfg, 50, &stats), 50);
    cr_assert_gt(stats.rotations, 3);
    v = verify(dir);
    cr_assert_eq(v.files, 4, "%lu", (unsigned long)v.files); /* three and the current one */
    cr_assert_lt(v.records, 60);
    cr_assert_eq(v.chain.seq, stats.seq);
}

/* A crash between the two steps of a rotation: the current file is gone, or new and empty. */
Test(journal, a_crash_in_the_middle_of_a_rotation_loses_nothing)
{
    struct journal_config cfg = {.node = "edge1"};
    struct journal_stats stats;
    char dir[64], from[128], to[128];

    for (int empty = 0; empty < 2; empty++) {
        temp_dir(dir);
        cr_assert_eq(append_some(dir, &cfg, 5, &stats), 5);
        (void)base_fmt(from, sizeof from, "%s/audit.jsonl", dir);
        (void)base_fmt(to, sizeof to, "%s/audit-%020llu.jsonl", dir, (unsigned long long)stats.seq);
        cr_assert_eq(rename(from, to), 0);
        if (empty)
            (void)close(open(from, O_WRONLY | O_CREAT, 0600));
        cr_assert_eq(append_some(dir, &cfg, 5, &stats), 5);
        cr_assert_eq(verify(dir).records, 10);
    }
}

/* Crash at every byte of the last record, the start line included. */
Test(journal, what_a_crash_tore_off_is_cut_away_and_accounted_for)
{
    struct journal_config cfg = {.node = "edge1"};
    struct journal_stats stats;
    char dir[64], path[128];
    struct stat st;

    for (off_t cut = 1;; cut++) {
        struct audit_verifier v;
        uint64_t kept;

        temp_dir(dir);
        cr_assert_eq(append_some(dir, &cfg, 1, &stats), 1);
        (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
        cr_assert_eq(stat(path, &st), 0);
        if (cut > st.st_size)
            break;
        cr_assert_eq(truncate(path, st.st_size - cut), 0);
        kept = cut == st.st_size ? 0 : verify(dir).records;
        cr_assert_eq(append_some(dir, &cfg, 1, &stats), 1);
        v = verify(dir);
        cr_assert_eq(v.records, kept + 1, "cut %ld", (long)cut);
        cr_assert_leq(v.torn, 1);
        cr_assert_eq(v.torn, stats.torn, "cut %ld", (long)cut);
    }
}

Test(journal, a_directory_has_one_writer)
{
    struct journal_config cfg = {.node = "edge1"};
    struct journal *a = NULL, *b = NULL;
    struct base_err err = {0};
    struct loop *l;
    char dir[64];

    cfg.dir = temp_dir(dir);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&a, l, &cfg, on_done, NULL, NULL), BASE_OK);
    cr_assert_eq(journal_new(&b, l, &cfg, on_done, NULL, &err), BASE_EDENIED);
    cr_assert_not_null(strstr(err.msg, dir));
    journal_free(a);
    cr_assert_eq(journal_new(&b, l, &cfg, on_done, NULL, NULL), BASE_OK);
    journal_free(b);
    loop_free(l);
    (void)verify(dir);
}

Test(journal, a_foreign_file_is_refused_and_left_alone)
{
    struct journal_config cfg = {.node = "edge1"};
    struct base_err err = {0};
    struct journal *j = NULL;
    struct loop *l;
    char dir[64], path[128];
    struct stat st;
    int fd;

    cfg.dir = temp_dir(dir);
    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_eq(write(fd, "hello\n", 6), 6);
    (void)close(fd);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &cfg, on_done, NULL, &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, path));
    cr_assert_not_null(strstr(err.msg, "empty directory"));
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_size, 6);
    loop_free(l);
}

/* The file-size limit stands in for a full disk: write(2) fails in the middle of a line. */
Test(journal, a_write_that_fails_is_refused_and_leaves_no_part_of_a_line)
{
    struct rlimit old, tight = {.rlim_cur = 500};
    struct journal_stats stats;
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    char dir[64];

    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &old);
    tight.rlim_max = old.rlim_max;
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = temp_dir(dir)}, on_done, &seen, NULL),
                 BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("{\"n\":1}\n"), 1), BASE_OK);
    wait_for(l, &seen, 1);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (uint64_t i = 2; i <= 5; i++) {
        cr_assert_eq(
            journal_append(j,
                           BASE_STR("{\"second\":\"this line does not fit into the file any more, since its "
                                    "limit was set to five hundred bytes\"}\n"),
                           i),
            BASE_OK);
        wait_for(l, &seen, (unsigned)i);
    }
    cr_assert_lt(seen.durable, 5);
    journal_stats(j, &stats);
    cr_assert_not(stats.healthy);
    cr_assert_not_null(strstr(stats.reason, "EFBIG"));
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    cr_assert_eq(verify(dir).records, seen.durable);
    cr_assert_eq(journal_append(j, BASE_STR("{\"n\":3}\n"), 9), BASE_OK);
    wait_for(l, &seen, 6);
    journal_stats(j, &stats);
    cr_assert(stats.healthy);
    cr_assert_eq(verify(dir).records, seen.durable);
    journal_free(j);
    loop_free(l);
}

Test(journal, the_queue_is_bounded_and_a_line_must_be_whole)
{
    char dir[64];
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    unsigned ok = 0;
    int rc = BASE_OK;

    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = temp_dir(dir), .max_lines = 16}, on_done,
                             &seen, NULL),
                 BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("{no newline}"), 1), BASE_EINVAL);
    cr_assert_eq(journal_append(j, BASE_STR(""), 1), BASE_EINVAL);
    cr_assert_eq(journal_append(j, BASE_STR("{\"a\":1}\n{\"b\":1}\n"), 1), BASE_EINVAL);
    for (uint64_t i = 1; i <= 17 && rc == BASE_OK; i++) {
        rc = journal_append(j, BASE_STR("{\"x\":1}\n"), i);
        ok += rc == BASE_OK;
    }
    cr_assert_eq(rc, BASE_EFULL); /* nobody turned the loop: 16 are waiting */
    cr_assert_eq(ok, 16);
    wait_for(l, &seen, 16);
    journal_free(j);
    loop_free(l);
}

Test(journal, a_directory_that_is_missing_is_named)
{
    struct base_err err = {0};
    struct journal *j = NULL;
    struct loop *l;

    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(
        journal_new(&j, l, &(struct journal_config){.dir = "/nonexistent/audit"}, on_done, NULL, &err),
        BASE_EIO);
    cr_assert_not_null(strstr(err.msg, "/nonexistent/audit/audit.jsonl"));
    cr_assert_not_null(strstr(err.msg, "ENOENT"));
    loop_free(l);
}

/* ---- checkpoints */
static const char key_pem[] =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIHrEzksVLOK5FHNBPpqf9rxwh0IcqC4bYdO1ZY6CFEuB\n-----END "
    "PRIVATE KEY-----\n";
static const char pub_pem[] =
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA48gC03txmsaQkx3SQdpJRk7ui5dNzY7m4aBVE77ybrc=\n-----END "
    "PUBLIC KEY-----\n";

Test(journal, checkpoints_come_by_number_by_age_and_at_the_end)
{
    base_cleanup(base_key_freep) struct base_key *key = NULL, *pub = NULL;
    struct journal_config cfg = {.node = "edge1", .checkpoint_lines = 5, .max_file_bytes = 4000};
    struct journal_stats stats;
    struct audit_verifier v;
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    char dir[64];

    cr_assert_eq(base_key_private(&key, base_str_of(key_pem), NULL), BASE_OK);
    cr_assert_eq(base_key_public(&pub, base_str_of(pub_pem), NULL), BASE_OK);
    cfg.key = key;
    temp_dir(dir);
    cr_assert_eq(append_some(dir, &cfg, 12, &stats), 12);
    cr_assert_geq(stats.checkpoints, 2);
    v = verify_with(dir, pub);
    cr_assert_eq(v.records, 12);
    cr_assert_geq(v.checkpoints, 3); /* and one at the end */
    cr_assert_eq(v.signed_seq, v.chain.seq - 1);
    /* over a rotation and a restart, by age */
    cfg.checkpoint_lines = 1000000;
    cfg.checkpoint_age = 200 * BASE_MS;
    cfg.dir = dir;
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &cfg, on_done, &seen, NULL), BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("{\"n\":1}\n"), 1), BASE_OK);
    wait_for(l, &seen, 1);
    for (base_time until = loop_clock() + 10 * BASE_SEC; loop_clock() < until;) {
        journal_stats(j, &stats);
        if (stats.checkpoints)
            break;
        (void)usleep(1000);
    }
    cr_assert_eq(stats.checkpoints, 1);
    (void)usleep(500000); /* nothing new: nothing is signed again */
    journal_stats(j, &stats);
    cr_assert_eq(stats.checkpoints, 1);
    journal_free(j);
    loop_free(l);
    v = verify_with(dir, pub);
    cr_assert_eq(v.records, 13);
    cr_assert_eq(v.signed_seq, v.chain.seq - 1);
    /* processes that come and go without a record sign nothing again */
    for (int i = 0; i < 3; i++)
        (void)append_some(dir, &cfg, 0, &stats);
    cr_assert_eq(verify_with(dir, pub).chain.seq, v.chain.seq);
}

Test(journal, a_crash_at_every_byte_of_a_checkpoint)
{
    base_cleanup(base_key_freep) struct base_key *key = NULL, *pub = NULL;
    struct journal_config cfg = {.node = "edge1"};
    struct journal_stats stats;
    char dir[64], path[128];
    struct stat st;

    cr_assert_eq(base_key_private(&key, base_str_of(key_pem), NULL), BASE_OK);
    cr_assert_eq(base_key_public(&pub, base_str_of(pub_pem), NULL), BASE_OK);
    cfg.key = key;
    for (off_t cut = 1; cut < 400; cut += 7) {
        struct audit_verifier v;

        temp_dir(dir);
        cr_assert_eq(append_some(dir, &cfg, 2, &stats), 2);
        (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
        cr_assert_eq(stat(path, &st), 0);
        cr_assert_eq(truncate(path, st.st_size - cut), 0);
        cr_assert_eq(append_some(dir, &cfg, 1, &stats), 1);
        v = verify_with(dir, pub);
        cr_assert_eq(v.torn, 1);
        cr_assert_eq(v.signed_seq, v.chain.seq - 1, "cut %ld", (long)cut);
    }
}

/* ---- the copy */

Test(journal, the_copy_is_what_is_durable_and_never_makes_it_wait)
{
    struct journal_config cfg = {.node = "edge1", .copy = true};
    struct journal_stats stats;
    char dir[64], path[128], *copy = calloc(1, 1 << 20), *file = calloc(1, 1 << 20);
    size_t n = 0;
    ssize_t k;
    int fd, p[2];

    cr_assert_eq(pipe(p), 0);
    cfg.copy_fd = p[1];
    temp_dir(dir);
    cr_assert_eq(append_some(dir, &cfg, 10, &stats), 10);
    cr_assert_eq(stats.copied, 11);
    cr_assert_eq(stats.missed, 0);
    (void)fcntl(p[0], F_SETFL, O_NONBLOCK);
    while ((k = read(p[0], copy + n, (1 << 20) - n)) > 0)
        n += (size_t)k;
    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    fd = open(path, O_RDONLY);
    cr_assert_eq(read(fd, file, 1 << 20), (ssize_t)n);
    cr_assert_eq(memcmp(file, copy, n), 0);
    (void)close(fd);
    /* nobody reads: the pipe is full, records are durable all the same, and the gap is counted */
    (void)fcntl(p[1], F_SETPIPE_SZ, 4096);
    cr_assert_eq(append_some(dir, &cfg, 200, &stats), 200);
    cr_assert_gt(stats.missed, 100);
    cr_assert_eq(stats.copied + stats.missed, 200);
    n = 0;
    while ((k = read(p[0], copy + n, (1 << 20) - n)) > 0)
        n += (size_t)k;
    free(copy);
    free(file);
}

Test(journal, the_gap_in_a_copy_is_said_when_it_ends)
{
    struct journal_config cfg = {.node = "edge1", .copy = true};
    struct journal_stats stats;
    char dir[64], text[128], *copy = calloc(1, 1 << 20);
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    size_t n = 0;
    ssize_t k;
    int p[2];

    cr_assert_eq(pipe(p), 0);
    (void)fcntl(p[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(p[1], F_SETPIPE_SZ, 2 * 4096);
    cfg.copy_fd = p[1];
    cfg.dir = temp_dir(dir);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &cfg, on_done, &seen, NULL), BASE_OK);
    for (unsigned i = 1; i <= 100; i++) {
        cr_assert_eq(journal_append(j, BASE_STR("{\"event\":\"renew\"}\n"), i), BASE_OK);
        wait_for(l, &seen, i);
    }
    journal_stats(j, &stats);
    cr_assert_gt(stats.missed, 0);
    while ((k = read(p[0], copy, 1 << 20)) > 0)
        ;
    cr_assert_eq(journal_append(j, BASE_STR("{\"event\":\"last\"}\n"), 101), BASE_OK);
    wait_for(l, &seen, 101);
    journal_free(j);
    loop_free(l);
    while ((k = read(p[0], copy + n, (1 << 20) - n)) > 0)
        n += (size_t)k;
    (void)base_fmt(text, sizeof text, "{\"chain\":\"copy\",\"missed\":%llu}\n{\"event\":\"last\"",
                   (unsigned long long)stats.missed);
    cr_assert_eq(strncmp(copy, text, strlen(text)), 0, "%s", copy);
    free(copy);
}

/* ---- what a broken disk leaves behind */

static uint64_t size_of(const char *path)
{
    struct stat st;

    cr_assert_eq(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* A power loss can leave a file longer than what was written, with zeros at its end. */
Test(journal, a_long_unfinished_end_costs_no_line_before_it)
{
    static const off_t zeros[] = {1, 65535, 65536, 65537, 200000};
    struct journal_config cfg = {.node = "edge1"};
    struct journal_stats stats;
    char dir[64], path[128];

    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
        struct audit_verifier v;

        temp_dir(dir);
        cr_assert_eq(append_some(dir, &cfg, 3, &stats), 3);
        (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
        cr_assert_eq(truncate(path, (off_t)size_of(path) + zeros[i]), 0);
        cr_assert_eq(append_some(dir, &cfg, 1, &stats), 1);
        v = verify(dir);
        cr_assert_eq(v.records, 4, "%ld zeros: %lu records", (long)zeros[i], (unsigned long)v.records);
        cr_assert_eq(v.torn, 1);
    }
}

Test(journal, a_long_file_without_a_line_is_foreign_and_left_alone)
{
    struct journal_config cfg = {.node = "edge1"};
    struct base_err err = {0};
    struct journal *j = NULL;
    struct loop *l;
    char dir[64], path[128];

    cfg.dir = temp_dir(dir);
    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    (void)close(open(path, O_WRONLY | O_CREAT, 0600));
    cr_assert_eq(truncate(path, 100000), 0);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &cfg, on_done, NULL, &err), BASE_EINVAL);
    cr_assert_not_null(strstr(err.msg, "empty directory"));
    cr_assert_eq(size_of(path), 100000);
    loop_free(l);
}

/* A memfd that may not shrink stands in for a disk on which cutting back fails, too. */
Test(journal, what_could_not_be_cut_back_goes_before_the_next_line)
{
    struct rlimit old, tight = {.rlim_cur = 600};
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    char dir[64], path[128], to[64];
    int fd = memfd_create("trail", MFD_ALLOW_SEALING);

    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &old);
    tight.rlim_max = old.rlim_max;
    temp_dir(dir);
    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    (void)base_fmt(to, sizeof to, "/proc/self/fd/%d", fd);
    cr_assert_eq(symlink(to, path), 0);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = dir}, on_done, &seen, NULL), BASE_OK);
    cr_assert_eq(journal_append(j, BASE_STR("{\"n\":1}\n"), 1), BASE_OK);
    wait_for(l, &seen, 1);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (uint64_t i = 2; i <= 6; i++) { /* until one does not fit */
        cr_assert_eq(journal_append(j,
                                    BASE_STR("{\"second\":\"seventy bytes and more of a line that does not "
                                             "fit into the rest of it\"}\n"),
                                    i),
                     BASE_OK);
        wait_for(l, &seen, (unsigned)i);
    }
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    cr_assert_lt(seen.durable, 6);
    /* half a line is there and cannot be taken away: nothing may be called durable behind it */
    unsigned before = seen.durable;
    cr_assert_eq(journal_append(j, BASE_STR("{\"n\":3}\n"), 7), BASE_OK);
    wait_for(l, &seen, 7);
    cr_assert_eq(seen.durable, before);
    cr_assert_lt(verify(dir).torn, 2);
    journal_free(j);
    (void)close(fd);
    loop_free(l);
}

/* An operator who makes room by deleting the file, a logrotate that moves it away. */
Test(journal, a_file_that_was_deleted_or_moved_is_replaced_and_the_gap_shows)
{
    for (int moved = 0; moved < 2; moved++) {
        struct journal_stats stats;
        struct seen seen = {0};
        struct journal *j;
        struct loop *l;
        char dir[64], path[128], away[128];

        temp_dir(dir);
        (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
        (void)base_fmt(away, sizeof away, "%s/old", dir);
        cr_assert_eq(loop_new(&l, NULL), BASE_OK);
        cr_assert_eq(journal_new(&j, l, &(struct journal_config){.dir = dir}, on_done, &seen, NULL), BASE_OK);
        cr_assert_eq(journal_append(j, BASE_STR("{\"n\":1}\n"), 1), BASE_OK);
        wait_for(l, &seen, 1);
        cr_assert_eq(moved ? rename(path, away) : unlink(path), 0);
        cr_assert_eq(journal_append(j, BASE_STR("{\"n\":2}\n"), 2), BASE_OK);
        wait_for(l, &seen, 2);
        cr_assert_eq(seen.durable, 2);
        cr_assert_eq(verify(dir).records, 1); /* the new file by itself */
        journal_stats(j, &stats);
        cr_assert_eq(stats.seq, 4, "%lu", (unsigned long)stats.seq); /* two starts, two records: one chain */
        /* a file that is not ours at that path: nothing is durable until it is gone */
        cr_assert_eq(unlink(path), 0);
        {
            FILE *f = fopen(path, "we");

            cr_assert_not_null(f);
            (void)fputs("hello\n", f);
            (void)fclose(f);
        }
        cr_assert_eq(journal_append(j, BASE_STR("{\"n\":3}\n"), 3), BASE_OK);
        wait_for(l, &seen, 3);
        cr_assert_eq(seen.durable, 2);
        cr_assert_eq(size_of(path), 6);
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(journal_append(j, BASE_STR("{\"n\":4}\n"), 4), BASE_OK);
        wait_for(l, &seen, 4);
        cr_assert_eq(seen.durable, 3);
        cr_assert_eq(verify(dir).records, 1);
        journal_free(j);
        loop_free(l);
    }
}

/* What only reports is not lost with a full disk: in the trail when there is room again, in its order, and
 * without the lines whose operations were refused. */
Test(journal, lines_that_nobody_waits_for_outlast_a_full_disk)
{
    struct rlimit old, tight = {.rlim_cur = 300};
    struct journal_stats stats;
    struct seen seen = {0};
    struct journal *j;
    struct loop *l;
    char dir[64], path[128], text[8192];
    base_time until;
    uint64_t syncs;
    FILE *f;
    size_t n;

    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &old);
    tight.rlim_max = old.rlim_max;
    temp_dir(dir);
    (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
    cr_assert_eq(loop_new(&l, NULL), BASE_OK);
    cr_assert_eq(
        journal_new(&j, l, &(struct journal_config){.dir = dir, .max_lines = 16}, on_done, &seen, NULL),
        BASE_OK);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (unsigned i = 1; i <= 3; i++) {
        char line[32];

        (void)base_fmt(line, sizeof line, "{\"expiry\":%u}\n", i);
        cr_assert_eq(journal_append(j, base_str_of(line), 0), BASE_OK);
        (void)base_fmt(line, sizeof line, "{\"takeover\":%u}\n", i);
        cr_assert_eq(journal_append(j, base_str_of(line), i), BASE_OK);
        wait_for(l, &seen, i);
    }
    cr_assert_eq(seen.durable, 0);
    journal_stats(j, &stats);
    cr_assert_not(stats.healthy);
    cr_assert_eq(stats.failed, 3);
    cr_assert_eq(stats.kept, 3);
    until = loop_clock() + 10 * BASE_SEC;
    while (stats.kept < 8 && loop_clock() < until) {
        (void)journal_append(j, BASE_STR("{\"more\":1}\n"), 0);
        journal_stats(j, &stats);
    }
    for (unsigned i = 4; i <= 7; i++) { /* bounded: a half is left for those who wait */
        cr_assert_eq(journal_append(j, BASE_STR("{\"takeover\":9}\n"), i), BASE_OK);
        wait_for(l, &seen, i);
        cr_assert_eq(journal_append(j, BASE_STR("{\"more\":2}\n"), 0), BASE_OK);
    }
    cr_assert_eq(seen.durable, 0);
    (void)usleep(50000);
    journal_stats(j, &stats);
    cr_assert_eq(stats.kept, 8);
    syncs = stats.syncs;
    (void)usleep(300000);
    journal_stats(j, &stats);
    cr_assert_leq(stats.syncs, syncs + 1, "a full disk is tried %lu times in 0.3 s",
                  (unsigned long)(stats.syncs - syncs));
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    until = loop_clock() + 10 * BASE_SEC; /* by itself: nothing else is written */
    do {
        (void)usleep(20000);
        journal_stats(j, &stats);
    } while ((!stats.healthy || stats.kept) && loop_clock() < until);
    cr_assert(stats.healthy, "%s", stats.reason);
    cr_assert_geq(verify(dir).records, 8);
    cr_assert_leq(verify(dir).records, 16);
    f = fopen(path, "re");
    cr_assert_not_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    (void)fclose(f);
    cr_assert_null(strstr(text, "takeover"));
    cr_assert_lt(strstr(text, "\"expiry\":1"), strstr(text, "\"expiry\":2"));
    cr_assert_lt(strstr(text, "\"expiry\":2"), strstr(text, "\"expiry\":3"));
    cr_assert_lt(strstr(text, "\"expiry\":3"), strstr(text, "\"more\""));
    journal_free(j);
    loop_free(l);
}

/* The age that rotates a file is the file's, not the process's. */
Test(journal, a_file_is_as_old_as_its_first_line)
{
    static const int hours[] = {0, 2, -2}; /* a clock that was set back makes no file old */

    for (size_t i = 0; i < sizeof hours / sizeof hours[0]; i++) {
        base_cleanup(base_hasher_freep) struct base_hasher *h = base_hasher_new();
        struct journal_config cfg = {.node = "edge1", .max_age = 3600 * BASE_SEC};
        struct audit_chain chain = {.seq = 0};
        struct journal_stats stats;
        char dir[64], path[128];
        struct base_buf b;
        FILE *f;

        temp_dir(dir);
        (void)base_fmt(path, sizeof path, "%s/audit.jsonl", dir);
        base_buf_init(&b, 4096);
        cr_assert_eq(
            audit_chain_start(&chain, h, &b, loop_wall() - (base_wall)hours[i] * 3600 * 1000000, "edge1"),
            BASE_OK);
        f = fopen(path, "we");
        cr_assert_not_null(f);
        cr_assert_eq(fwrite(b.data, 1, b.len, f), b.len);
        (void)fclose(f);
        base_buf_fini(&b);
        cr_assert_eq(append_some(dir, &cfg, 2, &stats), 2);
        cr_assert_eq(stats.rotations, hours[i] > 0 ? 1 : 0, "%d hours: %lu", hours[i],
                     (unsigned long)stats.rotations);
        cr_assert_eq(verify(dir).records, 2);
    }
}

static int no_line(void *arg, uint64_t number, struct base_str line, bool whole)
{
    (void)arg;
    (void)number;
    (void)line;
    (void)whole;
    cr_assert_fail("a line of a device");
    return BASE_EINVAL;
}

/* One without an end would be read for ever. */
Test(journal_trail, what_is_no_file_is_not_read, .timeout = 10)
{
    static const char *const names[] = {"audit.jsonl", "audit-00000000000000000007.jsonl"};
    struct journal_reader r = {NULL, NULL, no_line};

    for (size_t i = 0; i < 2; i++) {
        struct base_err err = {0};
        char dir[64], path[128];

        temp_dir(dir);
        (void)base_fmt(path, sizeof path, "%s/%s", dir, names[i]);
        cr_assert_eq(symlink("/dev/zero", path), 0);
        cr_assert_eq(journal_read(dir, &r, &err), BASE_EINVAL);
        cr_assert_not_null(strstr(err.msg, names[i]));
    }
}
