/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/rows.c - what `status` shows of claims, as the API server's table: a tenth of the bytes of the objects,
 * which with 10,000 of them is what decides how long it takes. The columns are the CRD's; one that lacks them
 * (an older CRD) is BASE_ENOTFOUND, and the objects themselves are listed then.
 */
#include "cli/cli_int.h"

#include "contract/json.h"

#define ARENA_MAX ((size_t)256 << 20)

enum column {
    COL_NAME,
    COL_PREFIX,
    COL_CONNECTOR,
    COL_NODE,
    COL_EPOCH,
    COL_GATE,
    COL_PUBLISHED,
    COL_CLOSED,
    COL_REASON,
    COL_TENANT,
    COL_VPC,
    COL_INSTANCE,
    COL_GATE_EPOCH,
    COL_LEASE,
    COL_ACQUIRED,
    COL_RELEASED,
    COL_DELETED,
};
/* manifests/crds/routeclaims.yaml; times are columns of type string: a date comes as an age. */
static const char *const names[] = {"Name",         "Prefix",     "Connector",  "Node",       "Epoch",
                                    "Gate",         "Published",  "Closed",     "Reason",     "Tenant",
                                    "VPC",          "Instance",   "Gate Epoch", "Lease UUID", "Acquire Time",
                                    "Release Time", "Delete Time"};

static struct base_str text(const struct contract_json *cell)
{
    return cell->type == CONTRACT_JSON_STRING ? cell->str : (struct base_str){"", 0};
}

static int whole(int64_t *dst, const struct contract_json *cell)
{
    *dst = 0;
    return cell->type == CONTRACT_JSON_NULL ? BASE_OK : contract_json_int(cell, dst);
}

static int moment(base_wall *dst, const struct contract_json *cell)
{
    *dst = 0;
    return text(cell).len ? base_rfc3339_parse(text(cell), dst) : BASE_OK;
}

#define COPY(field, cell) base_copy_str(field, sizeof(field), text(cell))

static int put(struct contract_claim *r, enum column col, const struct contract_json *cell)
{
    switch (col) {
    case COL_NAME:
        return COPY(r->meta.name, cell);
    case COL_PREFIX:
        return base_prefix_parse(&r->spec.prefix, text(cell));
    case COL_CONNECTOR:
        return COPY(r->spec.connector, cell);
    case COL_NODE:
        return COPY(r->spec.holder.node, cell);
    case COL_EPOCH:
        return whole(&r->spec.epoch, cell);
    case COL_GATE:
        r->status.gate.state = base_str_eqz(text(cell), "Open")     ? CONTRACT_GATE_OPEN
                               : base_str_eqz(text(cell), "Closed") ? CONTRACT_GATE_CLOSED
                                                                    : CONTRACT_GATE_ABSENT;
        return BASE_OK;
    case COL_PUBLISHED:
        return whole(&r->status.published_epoch, cell);
    case COL_CLOSED:
        return whole(&r->status.closed_epoch, cell);
    case COL_REASON:
        return COPY(r->status.gate.reason, cell);
    case COL_TENANT:
        return COPY(r->spec.tenant, cell);
    case COL_VPC:
        return COPY(r->spec.vpc, cell);
    case COL_INSTANCE:
        return COPY(r->spec.holder.instance, cell);
    case COL_GATE_EPOCH:
        return whole(&r->status.gate.epoch, cell);
    case COL_LEASE:
        return base_uuid_parse(&r->spec.lease_uuid, text(cell));
    case COL_ACQUIRED:
        return moment(&r->spec.acquire_time, cell);
    case COL_RELEASED:
        return moment(&r->spec.release_time, cell);
    case COL_DELETED:
        return moment(&r->meta.deleting, cell);
    }
    return BASE_OK;
}

struct page {
    struct cli *c;
    cli_object_fn fn;
    void *arg;
    struct contract_object o;
};

/* Where our columns are among the table's: at[i] is the column of its i-th cell, or -1. */
static int columns(const struct contract_json *defs, int *at, size_t max, struct base_err *err)
{
    const struct contract_json *d = defs && defs->type == CONTRACT_JSON_ARRAY ? defs->child : NULL;
    unsigned seen = 0;

    for (size_t i = 0; d && i < max; d = d->next, i++) {
        at[i] = -1;
        for (size_t k = 0; k < BASE_LEN(names); k++)
            if (base_str_eqz(contract_json_str(d, "name"), names[k])) {
                at[i] = (int)k;
                seen |= 1u << k;
            }
    }
    return seen + 1 == 1u << BASE_LEN(names)
               ? BASE_OK
               : base_err_set(err, BASE_ENOTFOUND, "the table of claims lacks columns that this tool needs");
}

static int take(void *arg, struct base_str body, struct base_buf *next, struct base_err *err)
{
    base_cleanup(base_arena_freep) struct base_arena *arena = base_arena_new(ARENA_MAX);
    struct page *p = arg;
    const struct contract_json *root, *rows, *cells;
    int at[64], rc;

    for (size_t i = 0; i < BASE_LEN(at); i++)
        at[i] = -1;
    rc =
        arena ? contract_json_parse(&root, arena, body, 0, err) : base_err_set(err, BASE_ENOMEM, "no memory");
    if (!rc)
        rc = columns(contract_json_get(root, "columnDefinitions"), at, BASE_LEN(at), err);
    if (rc)
        return rc;
    rows = contract_json_get(root, "rows");
    for (const struct contract_json *r = rows ? rows->child : NULL; r && !rc; r = r->next) {
        struct contract_claim *claim = &p->o.u.claim;
        bool good = true;
        size_t i = 0;

        memset(&p->o, 0, contract_object_size(CONTRACT_CLAIM));
        p->o.kind = CONTRACT_CLAIM;
        cells = contract_json_get(r, "cells");
        for (const struct contract_json *v = cells ? cells->child : NULL; v && i < BASE_LEN(at);
             v = v->next, i++)
            if (at[i] >= 0)
                good &= put(claim, (enum column)at[i], v) == BASE_OK;
        if (good && claim->meta.name[0])
            rc = p->fn(p->arg, &p->o, err);
        else
            cli_warn(p->c, "claim %.253s makes no sense and is left out", claim->meta.name);
    }
    return rc ? rc : cli_page_next(next, root);
}

int cli_claim_rows(struct cli *c, cli_object_fn fn, void (*restart)(void *arg), void *arg,
                   struct base_err *err)
{
    struct page *p = base_calloc(1, sizeof *p);
    int rc = BASE_ENOMEM;

    if (!p)
        return base_err_set(err, rc, "no memory");
    *p = (struct page){.c = c, .fn = fn, .arg = arg};
    restart(arg);
    rc = cli_api_pages(c, CONTRACT_CLAIM, "includeObject=None&limit=2000",
                       "Accept: application/json;as=Table;g=meta.k8s.io;v=v1", take, p, err);
    base_free(p);
    /* an older CRD, a server without tables, a list that took too long: the objects themselves */
    if (rc == BASE_ENOTFOUND || rc == BASE_EINVAL || rc == BASE_EGONE || rc == BASE_EPROTO)
        rc = cli_api_each(c, CONTRACT_CLAIM, NULL, fn, restart, arg, err);
    return rc;
}
