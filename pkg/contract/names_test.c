/* SPDX-License-Identifier: Apache-2.0 */
#include "contract/test_samples.h"
#include "base/cleanup.h"

#include <criterion/criterion.h>

Test(contract_names, are_built_from_their_parts)
{
    char name[CONTRACT_NAME_SIZE];
    struct base_prefix p = sample_prefix("fd12::1:0:ab:0:0/96");

    cr_expect_eq(contract_instance_name(name, "masque", "edge1.example", NULL), BASE_OK);
    cr_expect_str_eq(name, "masque.edge1.example");
    cr_expect_eq(contract_attachment_name(name, "masque", "edge1", "vpc-a", NULL), BASE_OK);
    cr_expect_str_eq(name, "masque.edge1.vpc-a");
    cr_expect_eq(contract_binding_name(name, "t1", "c1.site", NULL), BASE_OK);
    cr_expect_str_eq(name, "t1.c1.site");
    contract_claim_name(name, &p);
    cr_expect_str_eq(name, "rc-fd12000000000001000000ab");
}

Test(contract_names, refuses_what_does_not_fit)
{
    static const struct {
        const char *provider, *node, *says;
    } rows[] = {
        {"masque", "", "node name"},          {"masque", "Edge", "lower-case"},
        {"masque", "-a", "lower-case"},       {"masque", "a_b", "lower-case"},
        {"mas.que", "a", "provider"},         {"", "a", "provider"},
        {"masque", "a\xc3\xa9", "node name"},
    };
    char name[CONTRACT_NAME_SIZE], node[200] = "";
    struct base_err err = {0};

    for (size_t i = 0; i < BASE_LEN(rows); i++) {
        cr_expect_eq(contract_instance_name(name, rows[i].provider, rows[i].node, &err), BASE_EINVAL,
                     "row %zu", i);
        cr_expect(strstr(err.msg, rows[i].says), "row %zu: %s", i, err.msg);
    }
    memset(node, 'n', 125);
    cr_expect_eq(contract_instance_name(name, "masque", node, &err), BASE_OK, "%s", err.msg);
    node[125] = 'n';
    cr_expect_eq(contract_instance_name(name, "masque", node, &err), BASE_EINVAL);
    cr_expect(strstr(err.msg, "126 characters") && strstr(err.msg, "at most 125"), "%s", err.msg);
}

Test(contract_names, the_longest_parts_still_fit)
{
    char provider[64] = "", node[126] = "", vpc[64] = "", connector[190] = "", name[CONTRACT_NAME_SIZE];
    struct base_err err = {0};

    memset(provider, 'p', 63);
    memset(node, 'n', 125);
    memset(vpc, 'v', 63);
    memset(connector, 'c', 189);
    cr_expect_eq(contract_attachment_name(name, provider, node, vpc, &err), BASE_OK, "%s", err.msg);
    cr_expect_eq(strlen(name), 253);
    cr_expect_eq(contract_binding_name(name, provider, connector, &err), BASE_OK, "%s", err.msg);
    cr_expect_eq(strlen(name), 253);
}

Test(contract_names, finalizers)
{
    struct contract_meta m = {.n_finalizers = 0};
    struct base_uuid node = sample_uuid(7), boot = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    char f[CONTRACT_FINALIZER_SIZE], other[16];

    contract_finalizer(f, &node, &boot);
    cr_expect_str_eq(
        f, "gate.edge.galactic.datumapis.com/00000000-0000-4000-8000-000000000007.0102030405060708");
    cr_expect(!contract_has_finalizer(&m, f));
    cr_expect_eq(contract_finalizer_add(&m, f), BASE_OK);
    cr_expect_eq(contract_finalizer_add(&m, f), BASE_OK, "twice is once");
    cr_expect_eq(m.n_finalizers, 1);
    for (int i = 1; i < CONTRACT_FINALIZERS_MAX; i++) {
        (void)base_fmt(other, sizeof other, "x.y/%d", i);
        cr_expect_eq(contract_finalizer_add(&m, other), BASE_OK);
    }
    cr_expect_eq(contract_finalizer_add(&m, "x.y/z"), BASE_EFULL);
    cr_expect(contract_finalizer_remove(&m, f));
    cr_expect(!contract_finalizer_remove(&m, f));
    cr_expect_eq(m.n_finalizers, CONTRACT_FINALIZERS_MAX - 1);
    cr_expect_str_eq(m.finalizers[0], "x.y/1");
    cr_expect_str_eq(m.finalizers[CONTRACT_FINALIZERS_MAX - 1], "", "the freed slot is empty");
}

Test(contract_names, kinds)
{
    for (int k = 1; k < CONTRACT_KIND_N; k++)
        cr_expect_eq(contract_kind_of(base_str_of(contract_kind_name((enum contract_kind)k))),
                     (enum contract_kind)k);
    cr_expect_eq((int)contract_kind_of(BASE_STR("Pod")), 0);
    cr_expect_str_eq(contract_kind_plural(CONTRACT_CLAIM), "routeclaims");
    cr_expect_str_eq(contract_kind_group(CONTRACT_BINDING), "masque.galactic.datumapis.com");
    cr_expect_str_eq(contract_kind_name((enum contract_kind)77), "");
}
