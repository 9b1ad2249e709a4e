/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "base/cleanup.h"
#include "contract/contract.h"

enum type { T_TEXT, T_NUMBER, T_UUID, T_FORMAT, T_LEVEL, T_FLAG };
struct row {
    const char *name;
    enum type type;
    size_t at;
    uint64_t min, max;
};
#define ROW(flag, type, member)                                                                              \
    {                                                                                                        \
        flag, type, offsetof(struct options, member), 0, 0                                                   \
    }
#define NUM(flag, member, lo, hi)                                                                            \
    {                                                                                                        \
        flag, T_NUMBER, offsetof(struct options, member), lo, hi                                             \
    }

static const struct row table[] = {
    ROW("kubeconfig", T_TEXT, kubeconfig),
    ROW("namespace", T_TEXT, ns),
    ROW("node", T_TEXT, node),
    ROW("node-uid", T_UUID, node_uid),
    ROW("provider", T_TEXT, provider),
    ROW("bpffs", T_TEXT, bpffs),
    ROW("lock", T_TEXT, lock),
    ROW("tun", T_TEXT, tun),
    NUM("tun-owner", tun_owner, 1, 4294967294),
    NUM("mtu", mtu, 1280, 9000),
    NUM("route-table", table, 1, 4294967295),
    NUM("lease-seconds", lease_seconds, 10, 300),
    ROW("authority-kubeconfig", T_TEXT, authority_kubeconfig),
    ROW("log-format", T_FORMAT, json),
    ROW("log-level", T_LEVEL, level),
    NUM("watchdog", watchdog, 1, 1u << 30),
    ROW("help", T_FLAG, help),
    ROW("version", T_FLAG, version),
};

static int set(struct options *o, const struct row *r, const char *value, struct base_err *err)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    void *at = (char *)o + r->at;
    uint64_t n;

    switch (r->type) {
    case T_TEXT:
        if (!value[0])
            return base_err_set(err, BASE_EINVAL, "--%s: is empty", r->name);
        *(const char **)at = value;
        return BASE_OK;
    case T_NUMBER:
        if (base_parse_u64(base_str_of(value), r->max, &n) || n < r->min)
            return base_err_set(err, BASE_EINVAL, "--%s: '%s' is no number from %llu to %llu", r->name, value,
                                (unsigned long long)r->min, (unsigned long long)r->max);
        *(uint32_t *)at = (uint32_t)n;
        return BASE_OK;
    case T_UUID:
        if (base_uuid_parse(at, base_str_of(value)))
            return base_err_set(err, BASE_EINVAL, "--%s: '%s' is no UUID in lower case", r->name, value);
        return BASE_OK;
    case T_FORMAT:
        if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
            return base_err_set(err, BASE_EINVAL, "--%s: '%s' is neither json nor text", r->name, value);
        *(bool *)at = value[0] == 'j';
        return BASE_OK;
    case T_LEVEL:
        for (unsigned i = 0; i < BASE_LEN(levels); i++)
            if (strcmp(value, levels[i]) == 0) {
                *(enum loop_level *)at = (enum loop_level)i;
                return BASE_OK;
            }
        return base_err_set(err, BASE_EINVAL, "--%s: '%s' is none of error, warn, info, debug", r->name,
                            value);
    case T_FLAG:
        *(bool *)at = true;
        return BASE_OK;
    }
    return BASE_EINVAL;
}

/* "--name value" and "--name=value". */
static int one(struct options *o, int argc, const char *const argv[], int *i, struct base_err *err)
{
    const char *arg = argv[*i], *eq = strchr(arg, '=');
    size_t len = eq ? (size_t)(eq - arg) : strlen(arg);

    for (unsigned r = 0; r < BASE_LEN(table) && strncmp(arg, "--", 2) == 0; r++) {
        if (strlen(table[r].name) + 2 != len || strncmp(arg + 2, table[r].name, len - 2) != 0)
            continue;
        if (table[r].type == T_FLAG)
            return eq ? base_err_set(err, BASE_EINVAL, "--%s: takes no value", table[r].name)
                      : set(o, &table[r], "", err);
        if (eq)
            return set(o, &table[r], eq + 1, err);
        if (*i + 1 >= argc)
            return base_err_set(err, BASE_EINVAL, "--%s: needs a value", table[r].name);
        return set(o, &table[r], argv[++*i], err);
    }
    return base_err_set(err, BASE_EINVAL, "unknown argument '%s'; --help lists them", arg);
}

int options_parse(struct options *ret, int argc, const char *const argv[], struct base_err *err)
{
    struct options o = {
        .ns = "holdfast-system",
        .provider = "masque",
        .bpffs = "/sys/fs/bpf/holdfast",
        .lock = "/run/holdfast/foundation.lock",
        .tun = "/dev/net/tun",
        .tun_owner = 65532,
        .mtu = 1400,
        .table = 200,
        .lease_seconds = 30,
        .json = true,
        .level = LOOP_INFO,
    };

    for (int i = 1; i < argc; i++) {
        int r = one(&o, argc, argv, &i, err);

        if (r)
            return r;
    }
    *ret = o;
    if (o.help || o.version || o.watchdog)
        return BASE_OK;
    if (!o.node)
        return base_err_set(err, BASE_EINVAL, "--node: is missing; give the name of this node's Node object");
    if (!base_is_subdomain(base_str_of(o.node), CONTRACT_NODE_SIZE - 1))
        return base_err_set(err, BASE_EINVAL, "--node: '%s' is no node name of 1 to 125 characters", o.node);
    if (!base_is_label(base_str_of(o.ns), 63))
        return base_err_set(err, BASE_EINVAL, "--namespace: '%s' is no namespace name", o.ns);
    if (!base_is_label(base_str_of(o.provider), 63))
        return base_err_set(err, BASE_EINVAL, "--provider: '%s' is no provider name", o.provider);
    return BASE_OK;
}

const char *options_help(void)
{
    return "holdfast-foundation: the reference foundation of one node (test equipment)\n"
           "\n"
           "  --kubeconfig FILE            this node's foundation identity (default: as kubectl, or "
           "in-cluster)\n"
           "  --namespace NS               where the objects are (holdfast-system)\n"
           "  --node NAME                  this node (required)\n"
           "  --node-uid UUID              UID of the Node object (default: from the token)\n"
           "  --provider NAME              whose services the authority role moves on (masque)\n"
           "  --bpffs DIR                  folder on a bpf file system for the pinned maps "
           "(/sys/fs/bpf/holdfast)\n"
           "  --lock FILE                  held for life (/run/holdfast/foundation.lock)\n"
           "  --tun PATH                   TUN control node (/dev/net/tun)\n"
           "  --tun-owner UID              owner of the devices (65532)\n"
           "  --mtu BYTES                  of the devices (1400)\n"
           "  --route-table N              kernel table that BIRD reads (200)\n"
           "  --lease-seconds N            L of proofs and watchdog (30)\n"
           "  --authority-kubeconfig FILE  also plays the lab authority, with this identity\n"
           "  --log-format json|text       on stderr (json)\n"
           "  --log-level LEVEL            error, warn, info or debug (info)\n"
           "  --watchdog PID               internal: withdraws routes that process PID does not refresh\n"
           "  --version, --help\n";
}
