/* SPDX-License-Identifier: Apache-2.0
 *
 * contract/test_samples.h - one valid object of each kind, for unit tests and test/twin. Not part of any
 * archive.
 */
#ifndef CONTRACT_TEST_SAMPLES_H
#define CONTRACT_TEST_SAMPLES_H

#include "contract/contract.h"

#define SAMPLE_T0 ((base_wall)1795953600000000) /* 2026-11-29T12:00:00Z */
#define SAMPLE_S ((base_wall)1000000)

static inline struct base_uuid sample_uuid(unsigned n)
{
    struct base_uuid u = {{0, 0, 0, 0, 0, 0, 0x40, 0, 0x80}};

    u.b[14] = (uint8_t)(n >> 8);
    u.b[15] = (uint8_t)n;
    return u;
}
static inline struct base_prefix sample_prefix(const char *z)
{
    struct base_prefix p = {0};

    (void)base_prefix_parse(&p, base_str_of(z));
    return p;
}
static inline struct contract_object sample_instance(const char *node, struct base_uuid node_uid)
{
    struct contract_object o = {.kind = CONTRACT_INSTANCE};
    struct contract_instance_spec *s = &o.u.instance.spec;

    (void)contract_instance_name(o.u.meta.name, "masque", node, NULL);
    (void)base_copy(s->provider, sizeof s->provider, "masque");
    (void)base_copy(s->node, sizeof s->node, node);
    s->node_uid = node_uid;
    s->process_id = sample_uuid(1);
    s->epoch = 1;
    s->lease_seconds = 30;
    s->renew.boot_id = sample_uuid(11);
    s->renew.boot_time_us = 1000000;
    s->renew.time = SAMPLE_T0;
    return o;
}
static inline struct contract_object sample_attachment(const char *node, const char *vpc,
                                                       struct base_uuid instance_uid)
{
    struct contract_object o = {.kind = CONTRACT_ATTACHMENT};
    struct contract_attachment_spec *s = &o.u.attachment.spec;

    (void)contract_attachment_name(o.u.meta.name, "masque", node, vpc, NULL);
    (void)contract_instance_name(s->instance.name, "masque", node, NULL);
    s->instance.uid = instance_uid;
    s->instance_epoch = 1;
    (void)base_copy(s->vpc, sizeof s->vpc, vpc);
    return o;
}
static inline struct contract_object sample_service(const char *name, const char *tenant, const char *pool,
                                                    base_wall until)
{
    struct contract_object o = {.kind = CONTRACT_SERVICE};
    struct contract_service *s = &o.u.service;

    (void)base_copy(o.u.meta.name, sizeof o.u.meta.name, name);
    (void)base_copy(s->provider, sizeof s->provider, "masque");
    (void)base_copy(s->tenant, sizeof s->tenant, tenant);
    (void)base_copy(s->vpc, sizeof s->vpc, "vpc-a");
    s->pool = sample_prefix(pool);
    s->n_destinations = 1;
    s->destinations[0] = sample_prefix("fd20::/64");
    s->valid_until = until;
    return o;
}
/* Connector c<i> of tenant t1, prefix fd12::1:0:<i>:0:0/96, held by process 1 of `node`. */
static inline struct contract_object sample_claim(unsigned i, const char *node, const char *service,
                                                  struct base_uuid service_uid)
{
    struct contract_object o = {.kind = CONTRACT_CLAIM};
    struct contract_claim_spec *s = &o.u.claim.spec;

    (void)base_copy(s->provider, sizeof s->provider, "masque");
    s->prefix = sample_prefix("fd12:0:0:1::/96");
    s->prefix.addr.b[10] = (uint8_t)(i >> 8);
    s->prefix.addr.b[11] = (uint8_t)i;
    contract_claim_name(o.u.meta.name, &s->prefix);
    (void)base_copy(s->tenant, sizeof s->tenant, "t1");
    (void)base_copy(s->vpc, sizeof s->vpc, "vpc-a");
    (void)base_fmt(s->connector, sizeof s->connector, "c%u", i);
    (void)base_copy(s->service.name, sizeof s->service.name, service);
    s->service.uid = service_uid;
    s->lease_uuid = sample_uuid(100);
    s->epoch = 1;
    (void)contract_instance_name(s->holder.instance, "masque", node, NULL);
    s->holder.instance_uid = sample_uuid(1);
    s->holder.instance_epoch = 1;
    s->holder.process_id = sample_uuid(1);
    (void)base_copy(s->holder.node, sizeof s->holder.node, node);
    s->holder.boot_id = sample_uuid(11);
    (void)contract_attachment_name(s->attachment.name, "masque", node, "vpc-a", NULL);
    s->attachment.uid = sample_uuid(2);
    s->acquire_time = SAMPLE_T0;
    s->lease_seconds = 30;
    s->max_lease_seconds = 30;
    s->correlation.b[0] = 0xab;
    return o;
}
/* The takeover of `o` by process n of `node`. */
static inline void sample_takeover(struct contract_object *o, const char *node, unsigned n)
{
    struct contract_claim_spec *s = &o->u.claim.spec;

    s->previous.epoch = s->epoch;
    memcpy(s->previous.node, s->holder.node, sizeof s->previous.node);
    s->previous.boot_id = s->holder.boot_id;
    s->epoch++;
    s->lease_uuid = sample_uuid(n);
    memset(s->holder.instance, 0, sizeof s->holder.instance);
    (void)contract_instance_name(s->holder.instance, s->provider, node, NULL);
    memset(s->holder.node, 0, sizeof s->holder.node);
    (void)base_copy(s->holder.node, sizeof s->holder.node, node);
    s->holder.process_id = sample_uuid(n);
    s->holder.boot_id = sample_uuid(12);
    s->acquire_time += 60 * SAMPLE_S;
    s->release_time = 0;
}
static inline struct contract_object sample_binding(const char *connector)
{
    struct contract_object o = {.kind = CONTRACT_BINDING};
    struct contract_binding_spec *s = &o.u.binding.spec;

    (void)contract_binding_name(o.u.meta.name, "t1", connector, NULL);
    (void)base_copy(s->tenant, sizeof s->tenant, "t1");
    (void)base_copy(s->connector, sizeof s->connector, connector);
    (void)base_copy(s->vpc, sizeof s->vpc, "vpc-a");
    (void)base_copy(s->service, sizeof s->service, "s1");
    s->n_identities = 1;
    s->identities[0].kind = CONTRACT_IDENTITY_URI;
    (void)base_fmt(s->identities[0].value, sizeof s->identities[0].value, "spiffe://example.test/t1/%s",
                   connector);
    s->retention_seconds = -1;
    return o;
}

#endif
