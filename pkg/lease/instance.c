/* SPDX-License-Identifier: Apache-2.0 */
#include "lease/row.h"

#include "base/mutant.h"

#include <string.h>

static void fill(struct contract_instance *row, const struct lease_self *me, int64_t boot_us, base_wall wall)
{
    struct contract_instance_spec *s = &row->spec;
    s->node_uid = me->node_uid;
    s->process_id = me->process_id;
    s->lease_seconds = me->lease_seconds;
    s->renew = (struct contract_renew){.boot_id = me->boot_id, .boot_time_us = boot_us, .time = wall};
    s->release_time = 0;
    s->draining = false;
}

void lease_build_instance(struct contract_instance *ret, const struct lease_self *me, int64_t boot_us,
                          base_wall wall)
{
    memset(ret, 0, sizeof *ret);
    (void)base_copy(ret->meta.name, sizeof ret->meta.name, me->instance);
    (void)base_copy(ret->spec.provider, sizeof ret->spec.provider, me->provider);
    (void)base_copy(ret->spec.node, sizeof ret->spec.node, me->node);
    fill(ret, me, boot_us, wall);
    ret->spec.epoch = 1;
    if (base_mutant("instance-create.nonce-process"))
        ret->spec.process_id = (struct base_uuid){{0}};
    if (base_mutant("instance-create.nonce-boot"))
        ret->spec.renew.boot_time_us = 0;
}

void lease_build_instance_takeover(struct contract_instance *row, const struct lease_self *me,
                                   int64_t boot_us, base_wall wall)
{
    struct contract_instance_spec old = row->spec;
    fill(row, me, boot_us, wall);
    row->spec.epoch = old.epoch + 1;
    if (base_mutant("instance-takeover.nonce-process"))
        row->spec.process_id = old.process_id;
    if (base_mutant("instance-takeover.nonce-boot"))
        row->spec.renew.boot_time_us = old.renew.boot_time_us;
    if (base_mutant("instance-takeover.uid"))
        row->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("instance-takeover.rv"))
        row->meta.rv[0] = '\0';
}

void lease_build_renewal(struct contract_instance *row, int64_t boot_us, base_wall wall, bool draining)
{
    int64_t old = row->spec.renew.boot_time_us;
    row->spec.renew.boot_time_us = boot_us;
    row->spec.renew.time = wall;
    row->spec.draining = draining;
    if (base_mutant("renew.nonce-boot"))
        row->spec.renew.boot_time_us = old;
    if (base_mutant("renew.nonce-process"))
        row->spec.process_id = (struct base_uuid){{0}};
    if (base_mutant("renew.uid"))
        row->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("renew.rv"))
        row->meta.rv[0] = '\0';
}

void lease_build_instance_release(struct contract_instance *row, int64_t boot_us, base_wall wall)
{
    row->spec.renew.boot_time_us = boot_us;
    row->spec.renew.time = wall;
    row->spec.release_time = wall;
    row->spec.draining = true;
    if (base_mutant("instance-release.nonce-boot"))
        row->spec.renew.boot_time_us = 0;
    if (base_mutant("instance-release.uid"))
        row->meta.uid = (struct base_uuid){{0}};
    if (base_mutant("instance-release.rv"))
        row->meta.rv[0] = '\0';
}

enum lease_outcome lease_instance_outcome(const struct lease_instance_attempt *a,
                                          const struct contract_instance *row)
{
    if (!row) /* as for claims: a lost create is settled by a new POST, never by a 404 */
        return base_uuid_is_zero(&a->uid) ? LEASE_MAY_LAND : LEASE_OVER;
    bool mine = base_uuid_eq(&row->spec.process_id, &a->process_id);
    if (mine && row->spec.renew.boot_time_us == a->boot_us && !base_mutant("instance-outcome.nonce") &&
        (base_uuid_is_zero(&a->uid) || base_uuid_eq(&row->meta.uid, &a->uid)))
        return LEASE_LANDED;
    if (base_uuid_is_zero(&a->uid) || !base_uuid_eq(&row->meta.uid, &a->uid))
        return LEASE_OVER;
    return strcmp(row->meta.rv, a->rv) == 0 ? LEASE_MAY_LAND : LEASE_OVER;
}
