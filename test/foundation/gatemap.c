/* SPDX-License-Identifier: Apache-2.0 */
#include "gatemap.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "gate.skel.h"
#pragma GCC diagnostic pop

_Static_assert(sizeof(struct fnd_record) == 72, "gate.bpf.c has the size of a record");

struct gatemap {
    struct gate_bpf *obj;
    int gate, record, route;
    struct gate_key gate_keys[GATE_MAX]; /* of a walk: shutting must not depend on memory */
    struct route_key route_keys[GATE_MAX];
};

#define PROGRAM_PRIORITY 1
#define PROGRAM_HANDLE 1

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    (void)level;
    (void)fmt;
    (void)ap;
    return 0; /* errors come back as codes; libbpf's own text goes to nobody */
}

static int check_dir(const char *dir, struct base_err *err)
{
    struct statfs fs;

    if (mkdir(dir, 0700) && errno != EEXIST)
        return base_err_sys(err, BASE_EINVAL, errno, "--bpffs: cannot make '%s'", dir);
    if (statfs(dir, &fs))
        return base_err_sys(err, BASE_EINVAL, errno, "--bpffs: cannot look at '%s'", dir);
    if (fs.f_type != BPF_FS_MAGIC)
        return base_err_set(
            err, BASE_EINVAL,
            "--bpffs: '%s' is on no bpf file system, pinned maps would not outlive this process; "
            "mount one first: mount -t bpf bpf DIR",
            dir);
    return BASE_OK;
}

static int pin(struct bpf_map *map, const char *dir, const char *name, struct base_err *err)
{
    char path[512];

    if (!base_fmt(path, sizeof path, "%s/%s", dir, name))
        return base_err_set(err, BASE_EINVAL, "--bpffs: '%s' is too long", dir);
    if (bpf_map__set_pin_path(map, path))
        return base_err_sys(err, BASE_EIO, errno, "gate: cannot pin '%s'", path);
    return BASE_OK;
}

int gatemap_new(struct gatemap **ret, const char *dir, struct base_err *err)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct gatemap *m;
    int r = check_dir(dir, err);

    if (r)
        return r;
    (void)setrlimit(RLIMIT_MEMLOCK, &all); /* kernels before 5.11 count maps there */
    libbpf_set_print(quiet);
    m = base_calloc(1, sizeof *m);
    if (!m)
        return base_err_set(err, BASE_ENOMEM, "gate: no memory");
    m->obj = gate_bpf__open();
    if (!m->obj) {
        r = base_err_sys(err, BASE_EIO, errno, "gate: cannot open the eBPF program");
        gatemap_free(m);
        return r;
    }
    r = pin(m->obj->maps.gate, dir, "gate", err);
    if (!r)
        r = pin(m->obj->maps.record, dir, "record", err);
    if (!r)
        r = pin(m->obj->maps.route, dir, "route", err);
    if (!r && gate_bpf__load(m->obj)) {
        int e = errno;

        r = e == EINVAL
                ? base_err_set(
                      err, BASE_EINVAL,
                      "gate: the maps pinned in '%s' have another layout, or the kernel refuses the "
                      "program; when the node was upgraded, end every session and remove that folder",
                      dir)
                : base_err_sys(err, e == EPERM ? BASE_EDENIED : BASE_EIO, e,
                               "gate: cannot load the eBPF program (needs CAP_BPF and CAP_NET_ADMIN)");
    }
    if (r) {
        gatemap_free(m);
        return r;
    }
    m->gate = bpf_map__fd(m->obj->maps.gate);
    m->record = bpf_map__fd(m->obj->maps.record);
    m->route = bpf_map__fd(m->obj->maps.route);
    *ret = m;
    return BASE_OK;
}

struct gatemap *gatemap_free(struct gatemap *m)
{
    if (!m)
        return NULL;
    if (m->obj)
        gate_bpf__destroy(m->obj);
    return base_free(m);
}

static int attach_one(unsigned ifindex, enum bpf_tc_attach_point where, const struct bpf_program *prog,
                      struct base_err *err)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = where);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = PROGRAM_HANDLE, .priority = PROGRAM_PRIORITY,
                .prog_fd = bpf_program__fd(prog), .flags = BPF_TC_F_REPLACE);
    int r = bpf_tc_hook_create(&hook);

    if (r && r != -EEXIST)
        return base_err_sys(err, BASE_EIO, -r, "gate: cannot add clsact to interface %u", ifindex);
    r = bpf_tc_attach(&hook, &opts);
    if (r)
        return base_err_sys(err, BASE_EIO, -r, "gate: cannot attach to interface %u", ifindex);
    return BASE_OK;
}

int gatemap_attach(struct gatemap *m, unsigned ifindex, struct base_err *err)
{
    int r = attach_one(ifindex, BPF_TC_INGRESS, m->obj->progs.gate_ingress, err);

    return r ? r : attach_one(ifindex, BPF_TC_EGRESS, m->obj->progs.gate_egress, err);
}

int gatemap_attached(struct gatemap *m, unsigned ifindex, struct base_err *err)
{
    static const enum bpf_tc_attach_point where[] = {BPF_TC_INGRESS, BPF_TC_EGRESS};

    (void)m;
    for (unsigned i = 0; i < BASE_LEN(where); i++) {
        LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = where[i]);
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = PROGRAM_HANDLE, .priority = PROGRAM_PRIORITY);
        int r = bpf_tc_query(&hook, &opts);

        if (r)
            return base_err_sys(err, BASE_ENOTFOUND, -r, "gate: no program on interface %u", ifindex);
    }
    return BASE_OK;
}

/* ---- gate ---- */
static struct gate_key gate_key(unsigned ifindex, const struct base_prefix *p)
{
    struct gate_key k = {.ifindex = ifindex};

    memcpy(k.prefix, p->addr.b, sizeof k.prefix);
    return k;
}

int gatemap_set(struct gatemap *m, unsigned ifindex, const struct fnd_gate *g, struct base_err *err)
{
    struct gate_key k = gate_key(ifindex, &g->prefix);
    struct gate_value v = {.deadline = (uint64_t)g->deadline, .epoch = g->epoch};

    if (base_mutant("gate.expiry"))
        v.deadline += UINT64_C(3600) * BASE_SEC;
    memcpy(v.uid, g->uid.b, sizeof v.uid);
    if (bpf_map_update_elem(m->gate, &k, &v, BPF_ANY))
        return base_err_sys(err, BASE_EIO, errno, "gate: cannot set a deadline");
    return BASE_OK;
}

static int drop_key(struct gatemap *m, const struct gate_key *k, struct base_err *err)
{
    struct gate_value zero = {0};

    if (bpf_map_delete_elem(m->gate, k) == 0 || errno == ENOENT)
        return BASE_OK;
    if (bpf_map_update_elem(m->gate, k, &zero, BPF_EXIST) == 0 || errno == ENOENT)
        return BASE_OK;
    return base_err_sys(err, BASE_EIO, errno, "gate: cannot shut a prefix");
}

int gatemap_shut(struct gatemap *m, unsigned ifindex, const struct base_prefix *prefix, struct base_err *err)
{
    struct gate_key k = gate_key(ifindex, prefix);

    return drop_key(m, &k, err);
}

struct purge {
    struct gatemap *m;
    unsigned ifindex;
    int code;
    struct base_err *err;
};

static void purge_one(void *arg, unsigned ifindex, const struct fnd_gate *g)
{
    struct purge *p = arg;
    struct gate_key k = gate_key(ifindex, &g->prefix);
    int r = ifindex == p->ifindex ? drop_key(p->m, &k, p->err) : BASE_OK;

    if (r)
        p->code = r;
}

int gatemap_purge(struct gatemap *m, unsigned ifindex, struct base_err *err)
{
    struct purge p = {.m = m, .ifindex = ifindex, .code = BASE_OK, .err = err};

    gatemap_each_gate(m, purge_one, &p);
    return p.code;
}

void gatemap_each_gate(struct gatemap *m, gatemap_gate_fn fn, void *arg)
{
    struct gate_key *keys = m->gate_keys;
    struct gate_key next;
    struct gate_value v;
    const void *at = NULL;
    size_t n = 0;

    /* First the keys: the callback deletes. This thread is the only writer. */
    while (n < GATE_MAX && bpf_map_get_next_key(m->gate, at, &next) == 0) {
        keys[n] = next;
        at = &keys[n++];
    }
    for (size_t i = 0; i < n; i++) {
        struct fnd_gate g = {.prefix = {.len = 96}};

        if (bpf_map_lookup_elem(m->gate, &keys[i], &v))
            continue;
        memcpy(g.prefix.addr.b, keys[i].prefix, sizeof keys[i].prefix);
        memcpy(g.uid.b, v.uid, sizeof g.uid.b);
        g.deadline = (base_time)v.deadline;
        g.epoch = v.epoch;
        fn(arg, keys[i].ifindex, &g);
    }
}

/* ---- records and routes ---- */
int gatemap_record(struct gatemap *m, const struct fnd_record *r, struct base_err *err)
{
    if (bpf_map_update_elem(m->record, r->uid.b, r, BPF_ANY))
        return base_err_sys(err, BASE_EIO, errno, "gate: cannot keep a record");
    return BASE_OK;
}

bool gatemap_empty(struct gatemap *m)
{
    uint8_t first[16];

    return bpf_map_get_next_key(m->record, NULL, first) != 0;
}

int gatemap_forget(struct gatemap *m, const struct base_uuid *uid, struct base_err *err)
{
    if (bpf_map_delete_elem(m->record, uid->b) && errno != ENOENT)
        return base_err_sys(err, BASE_EIO, errno, "gate: cannot forget a record");
    return BASE_OK;
}

void gatemap_each_record(struct gatemap *m, gatemap_record_fn fn, void *arg)
{
    uint8_t k[16], next[16];
    const void *at = NULL;
    struct fnd_record r;

    while (bpf_map_get_next_key(m->record, at, next) == 0) {
        if (bpf_map_lookup_elem(m->record, next, &r) == 0)
            fn(arg, &r);
        memcpy(k, next, sizeof k);
        at = k;
    }
}

static struct route_key route_key(const struct base_prefix *p)
{
    struct route_key k;

    memcpy(k.prefix, p->addr.b, sizeof k.prefix);
    return k;
}

int gatemap_route_get(struct gatemap *m, const struct base_prefix *prefix, struct route_value *ret)
{
    struct route_key k = route_key(prefix);

    return bpf_map_lookup_elem(m->route, &k, ret) ? BASE_ENOTFOUND : BASE_OK;
}

int gatemap_route_set(struct gatemap *m, const struct base_prefix *prefix, const struct route_value *v,
                      struct base_err *err)
{
    struct route_key k = route_key(prefix);

    if (bpf_map_update_elem(m->route, &k, v, BPF_ANY))
        return base_err_sys(err, BASE_EIO, errno, "gate: cannot keep a route's limit");
    return BASE_OK;
}

int gatemap_route_drop(struct gatemap *m, const struct base_prefix *prefix)
{
    struct route_key k = route_key(prefix);

    (void)bpf_map_delete_elem(m->route, &k);
    return BASE_OK;
}

void gatemap_each_route(struct gatemap *m, gatemap_route_fn fn, void *arg)
{
    struct route_key *keys = m->route_keys;
    struct route_key next;
    struct route_value v;
    const void *at = NULL;
    size_t n = 0;

    /* First the keys: the callback deletes. */
    while (n < GATE_MAX && bpf_map_get_next_key(m->route, at, &next) == 0) {
        keys[n] = next;
        at = &keys[n++];
    }
    for (size_t i = 0; i < n; i++) {
        struct base_prefix p = {.len = 96};

        if (bpf_map_lookup_elem(m->route, &keys[i], &v))
            continue;
        memcpy(p.addr.b, keys[i].prefix, sizeof keys[i].prefix);
        fn(arg, &p, &v);
    }
}
